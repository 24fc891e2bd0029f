//! `select ... for update` and its kin, and `lock table`. One transaction writes at a time, so a query that locks rows takes the turn to write for
//! its transaction: what it has read is what there is until that ends.

use std::sync::Arc;
use std::time::Instant;

use sqlparser::ast::{Lock, LockTableMode, Statement as Sql};
use syntax::locks::{self, Locks};
use syntax::names::{base, written};
use table::Privileges;

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_table;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::query::Asked;
use crate::statements::access::is_there;
use crate::statements::scope::Scope;

/// Whether a query locks rows.
pub(crate) fn is_locking(statement: &Sql) -> bool {
    locks::of(statement).what.is_some()
}

/// What a query that somebody asks for sees, as [`read`].
///
/// # Errors
/// Those of [`read`].
pub(crate) async fn asked(
    scope: &mut Scope<'_>,
    asked: &mut Asked,
    started: Instant,
) -> Result<StatementContext> {
    match asked {
        Asked::Written(query, kept) => {
            if !is_locking(query) {
                return scope.read(started).await;
            }
            // It may be asked for no rows, so the plan of its text is not its own.
            *kept = None;
            read(scope, Arc::make_mut(query), started).await
        }
        // Those that lock rows are planned with their values.
        Asked::Prepared(_) => scope.read(started).await,
    }
}

/// What a query sees, which holds the turn to write if it locks rows and is one of several statements of a transaction. One that
/// skips locked rows finds none while another transaction writes: any row may be one that this changes.
///
/// # Errors
/// As [`Scope::write`]; if another transaction writes and the query does not wait; [`Error::Denied`] without the right to
/// update the tables.
pub(crate) async fn read(
    scope: &mut Scope<'_>,
    statement: &mut Sql,
    started: Instant,
) -> Result<StatementContext> {
    let Locks {
        what,
        tables,
        nowait,
        skip,
    } = locks::of(statement);
    let Some(what) = what else {
        return scope.read(started).await;
    };
    let mut names = Vec::with_capacity(tables.len());
    for table in &tables {
        names.push(scope.own(&written(table)?)?);
    }
    let busy = !scope.is_alone() && !scope.has_turn() && scope.instance.turns.is_taken();
    if busy && nowait {
        let shown = names.first().map_or("", |name| base(name));
        return Err(Error::Conflict {
            code: "55P03",
            message: format!("could not obtain lock on row in relation \"{shown}\""),
        });
    }
    let context = if busy && skip {
        locks::skip_all(statement);
        scope.read(started).await?
    } else {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        scope.lock(what, &names, started).await?
    };
    for name in names.iter().filter(|name| is_there(&context, name)) {
        context.may(name, Privileges::UPDATE)?;
    }
    Ok(context)
}

/// `lock table a, b [in ... mode] [nowait]`. Readers see what there was when their transaction began, so a lock that keeps
/// writers out is the turn to write, and one that keeps out nobody but those who drop the table is nothing.
///
/// # Errors
/// Outside of a transaction of several statements; if there is no such table, or another transaction writes and the statement
/// does not wait; [`Error::Denied`].
pub(crate) async fn lock_table(
    scope: &mut Scope<'_>,
    lock: Lock,
    started: Instant,
) -> Result<Answer> {
    let Lock {
        tables,
        lock_mode,
        nowait,
    } = lock;
    if scope.is_alone() {
        return Err(Error::Transaction {
            code: "25P01",
            message: "LOCK TABLE can only be used in transaction blocks".into(),
        });
    }
    let mut names = Vec::with_capacity(tables.len());
    for table in &tables {
        names.push(scope.own(&written(&table.name)?)?);
    }
    let reads = lock_mode == Some(LockTableMode::AccessShare);
    if nowait && !reads && !scope.has_turn() && scope.instance.turns.is_taken() {
        let shown = names.first().map_or("", |name| base(name));
        return Err(Error::Conflict {
            code: "55P03",
            message: format!("could not obtain lock on relation \"{shown}\""),
        });
    }
    let context = if reads {
        scope.read(started).await?
    } else {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        scope.lock("LOCK TABLE", &names, started).await?
    };
    for name in &names {
        if context.tables.get(name).is_none() && context.tables.view(name).is_none() {
            return Err(unknown_table(name, &context.tables));
        }
        let wanted = match lock_mode {
            Some(LockTableMode::AccessShare) => Privileges::SELECT,
            Some(LockTableMode::RowExclusive) => Privileges::INSERT,
            _ => Privileges::UPDATE,
        };
        context.may(name, wanted)?;
    }
    Ok(Answer::changed(None, &context.clock))
}
