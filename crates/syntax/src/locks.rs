//! `for update` and `for share`: which tables the lock clauses of a query name.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, LimitClause, LockClause, LockType, NonBlock, ObjectName, ObjectNamePart, Query, SetExpr,
    Statement as Sql, TableFactor, TableWithJoins, Value, Visitor, VisitorMut,
};

use crate::names::column_name;
use crate::walk::{Walk, WalkMut};

/// What the lock clauses of a query ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Locks {
    /// The statement for messages: `SELECT FOR UPDATE`; none without a clause.
    pub what: Option<&'static str>,
    /// The tables, as they are written.
    pub tables: Vec<ObjectName>,
    /// Whether a clause says `nowait`.
    pub nowait: bool,
    /// Whether one says `skip locked`.
    pub skip: bool,
}

/// What a lock clause is called.
pub(crate) fn title(lock: &LockClause) -> &'static str {
    match lock.lock_type {
        LockType::Update => "FOR UPDATE",
        LockType::Share => "FOR SHARE",
    }
}

/// What the clauses of a query, and of those within it, ask for.
pub fn of(statement: &Sql) -> Locks {
    let mut locks = Locks::default();
    if matches!(statement, Sql::Query(_)) {
        let _ = statement.walk(&mut locks);
    }
    locks
}

impl Visitor for Locks {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for lock in &query.locks {
            self.what = Some(match lock.lock_type {
                LockType::Update => "SELECT FOR UPDATE",
                LockType::Share => "SELECT FOR SHARE",
            });
            self.nowait |= lock.nonblock == Some(NonBlock::Nowait);
            self.skip |= lock.nonblock == Some(NonBlock::SkipLocked);
            for own in tables(&query.body) {
                if named(lock, &own) && !self.tables.contains(&own.name) {
                    self.tables.push(own.name);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Has the queries that skip locked rows find none.
pub fn skip_all(statement: &mut Sql) {
    struct Skipping;

    impl VisitorMut for Skipping {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
            let mut locks = query.locks.iter();
            if locks.any(|lock| lock.nonblock == Some(NonBlock::SkipLocked)) {
                query.limit_clause = Some(LimitClause::LimitOffset {
                    limit: Some(Expr::value(Value::Number("0".into(), false))),
                    offset: None,
                    limit_by: vec![],
                });
            }
            ControlFlow::Continue(())
        }
    }

    let _ = statement.walk_mut(&mut Skipping);
}

/// A table that a `from` names.
pub(crate) struct Source {
    /// What it is called there.
    called: String,
    name: ObjectName,
}

/// Whether a clause is about this table.
pub(crate) fn named(lock: &LockClause, source: &Source) -> bool {
    match &lock.of {
        None => true,
        Some(of) => last(of).is_some_and(|name| name == source.called),
    }
}

/// The tables of the `from` of a query, and of queries in it.
pub(crate) fn tables(body: &SetExpr) -> Vec<Source> {
    let mut found = Vec::new();
    of_body(body, &mut found);
    found
}

fn of_body(body: &SetExpr, found: &mut Vec<Source>) {
    match body {
        SetExpr::Select(select) => select.from.iter().for_each(|from| of_from(from, found)),
        SetExpr::Query(query) => of_body(&query.body, found),
        SetExpr::SetOperation { left, right, .. } => {
            of_body(left, found);
            of_body(right, found);
        }
        _ => {}
    }
}

fn of_from(from: &TableWithJoins, found: &mut Vec<Source>) {
    of_factor(&from.relation, found);
    for join in &from.joins {
        of_factor(&join.relation, found);
    }
}

fn of_factor(factor: &TableFactor, found: &mut Vec<Source>) {
    match factor {
        TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } => {
            let alias = alias.as_ref().map(|alias| column_name(&alias.name));
            if let Some(called) = alias.or_else(|| last(name)) {
                let name = name.clone();
                found.push(Source { called, name });
            }
        }
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => of_from(table_with_joins, found),
        TableFactor::Derived {
            subquery, alias, ..
        } => {
            let from = found.len();
            of_body(&subquery.body, found);
            if let Some(alias) = alias {
                let called = column_name(&alias.name);
                for own in found.iter_mut().skip(from) {
                    own.called.clone_from(&called);
                }
            }
        }
        _ => {}
    }
}

fn last(name: &ObjectName) -> Option<String> {
    let part = name.0.last().and_then(ObjectNamePart::as_ident);
    part.map(column_name)
}
