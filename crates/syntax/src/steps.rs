//! `with` whose parts change tables: `with moved as (delete from t returning *) insert into u select * from moved`.
//!
//! Such a statement is cut into its parts, which run in order, in one transaction; the rows of each part are a temporary table
//! for the parts after it. PostgreSQL runs all parts over one snapshot. The answers are the same unless one part reads a
//! table that another changes, and `statements::steps` refuses that.

use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Cte, FromTable, Ident, ObjectName, Query, SetExpr, Statement as Sql, TableFactor, TableObject,
    With, visit_relations,
};

use crate::grammar::{refused, refused_for};
use crate::names::column_name;
use crate::returning::plain_query;

/// A statement in its parts, as they were parsed.
pub(super) struct Split {
    pub before: Vec<Part>,
    pub last: Sql,
}

impl Split {
    /// A query that changes nothing.
    pub(super) fn of(query: Box<Query>) -> Split {
        Split {
            before: Vec::new(),
            last: Sql::Query(query),
        }
    }
}

/// A part of a `with`.
pub(super) struct Part {
    pub name: String,
    /// The names that its columns get, if it says any.
    pub columns: Vec<String>,
    pub statement: Sql,
}

/// What a part of a statement reads and changes.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// The tables that it names to read them.
    pub reads: Vec<ObjectName>,
    /// The table that it changes.
    pub changes: Option<ObjectName>,
}

fn changes(query: &Query) -> bool {
    matches!(
        query.body.as_ref(),
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}

/// The parts of a query that changes tables; the query itself if it does not.
///
/// # Errors
/// For clauses that would be lost, and for `merge` within `with`.
pub(super) fn split(mut query: Box<Query>) -> Result<std::result::Result<Split, Box<Query>>> {
    let parts = query.with.as_ref().map(|with| &with.cte_tables[..]);
    let last = parts
        .unwrap_or_default()
        .iter()
        .rposition(|part| changes(&part.query));
    if last.is_none() && !changes(&query) {
        return Ok(Err(query));
    }
    let with = query.with.take();
    let (recursive, mut parts) =
        with.map_or((false, vec![]), |with| (with.recursive, with.cte_tables));
    let mut whole = changed(query)?;
    // What stands behind the last part that changes anything can stay where it is.
    let first = last.map_or(0, |last| last + 1);
    let rest = parts.split_off(first);
    let rest = keep(&mut whole, recursive, rest)?;
    let parts = parts.into_iter().chain(rest);
    Ok(Ok(Split {
        before: parts
            .map(|part| step(part, recursive))
            .collect::<Result<_>>()?,
        last: whole,
    }))
}

/// The error for `copy (select ... into table)`.
pub(super) fn into_copied() -> Error {
    Error::coded("0A000", "COPY (SELECT INTO) is not supported")
}

/// The name of what a statement in a `copy` returns.
const COPIED: &str = "__copied";

/// The parts of a statement whose rows are copied: those that the last part returns, if that changes a table.
///
/// # Errors
/// If it returns none.
pub(super) fn returned(split: Split) -> Result<Split> {
    let Split { mut before, last } = split;
    let returns = match &last {
        Sql::Insert(insert) => insert.returning.is_some(),
        Sql::Update(update) => update.returning.is_some(),
        Sql::Delete(delete) => delete.returning.is_some(),
        _ => return Ok(Split { before, last }),
    };
    if !returns {
        return Err(Error::coded(
            "0A000",
            "COPY query must have a RETURNING clause",
        ));
    }
    before.push(Part {
        name: COPIED.into(),
        columns: Vec::new(),
        statement: last,
    });
    let query = plain_query(&format!("select * from \"{COPIED}\""))?;
    Ok(Split {
        before,
        last: Sql::Query(query),
    })
}

/// The statement that is the body of a query, or the query itself.
fn changed(query: Box<Query>) -> Result<Sql> {
    if !changes(&query) {
        return Ok(Sql::Query(query));
    }
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = *query;
    let bare = with.is_none()
        && order_by.is_none()
        && limit_clause.is_none()
        && fetch.is_none()
        && locks.is_empty()
        && for_clause.is_none()
        && settings.is_none()
        && format_clause.is_none()
        && pipe_operators.is_empty();
    if !bare {
        return Err(refused("a clause behind a statement within `with`"));
    }
    match *body {
        SetExpr::Insert(sql) | SetExpr::Update(sql) | SetExpr::Delete(sql) => Ok(sql),
        _ => Err(refused_for(
            "merge in a query",
            "write it as a statement of its own",
        )),
    }
}

/// Gives parts that change nothing to the statement that reads them; they come back if it has no place for them.
fn keep(statement: &mut Sql, recursive: bool, parts: Vec<Cte>) -> Result<Vec<Cte>> {
    if parts.is_empty() {
        return Ok(vec![]);
    }
    let query = match statement {
        Sql::Query(query) => query,
        Sql::Insert(insert) => match &mut insert.source {
            Some(source) => source,
            None => return Ok(parts),
        },
        _ => return Ok(parts),
    };
    match &mut query.with {
        Some(own) if own.recursive || recursive => {
            return Err(refused("`with recursive` around another `with`"));
        }
        Some(own) => {
            let inner = std::mem::take(&mut own.cte_tables);
            own.cte_tables = parts.into_iter().chain(inner).collect();
        }
        none @ None => {
            *none = Some(With {
                with_token: AttachedToken::empty(),
                recursive,
                cte_tables: parts,
            });
        }
    }
    Ok(vec![])
}

fn step(part: Cte, recursive: bool) -> Result<Part> {
    let name = column_name(&part.alias.name);
    let columns = part.alias.columns.iter();
    let columns = columns.map(|column| column_name(&column.name)).collect();
    let statement = if recursive && !changes(&part.query) {
        let own = Ident::with_quote('"', &name);
        let mut query = plain_query(&format!("select * from {own}"))?;
        query.with = Some(With {
            with_token: AttachedToken::empty(),
            recursive,
            cte_tables: vec![part],
        });
        Sql::Query(query)
    } else {
        changed(part.query)?
    };
    Ok(Part {
        name,
        columns,
        statement,
    })
}

/// What a statement reads and changes.
pub(super) fn touched(statement: &Sql) -> Touched {
    let changes = match statement {
        Sql::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => Some(name.clone()),
            _ => None,
        },
        Sql::Update(update) => named(&update.table.relation),
        Sql::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            from.first().and_then(|first| named(&first.relation))
        }
        _ => None,
    };
    let mut reads: Vec<ObjectName> = Vec::new();
    let _ = visit_relations(statement, |name| {
        reads.push(name.clone());
        ControlFlow::<()>::Continue(())
    });
    // An insert does not read the table that it adds rows to, but once it names it again.
    if let (Sql::Insert(_), Some(own)) = (statement, &changes)
        && let Some(at) = reads.iter().position(|name| name == own)
    {
        reads.remove(at);
    }
    Touched { reads, changes }
}

fn named(factor: &TableFactor) -> Option<ObjectName> {
    match factor {
        TableFactor::Table { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// The error for a part that would read what another changes.
pub fn conflict(table: &str) -> Error {
    Error::unsupported(format!(
        "table \"{table}\" is changed by a part of `with` and read or changed again by another, which is not supported: read the rows that `returning` gives, or write two statements"
    ))
}
