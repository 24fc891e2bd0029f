//! What a `from` names: its tables and queries one by one, what they are called there, their columns, and the tables behind
//! them. Who asks more of a table says what.

use std::sync::Arc;

use datafusion_common::TableReference;
use datafusion_expr::TableSource;
use datafusion_expr::planner::ContextProvider;
use datafusion_sql::planner::object_name_to_table_reference;
use sqlparser::ast::{
    Expr, Ident, Join, JoinOperator, ObjectName, SetExpr, TableFactor, TableWithJoins,
};
use syntax::names::{column_name, is_literal};

use crate::run::shared_columns::{Lookup, only};

/// One of what a `from` names.
pub(super) struct Source<T> {
    /// What it is called there.
    pub called: Vec<Ident>,
    /// The names of its columns; none if they are not known.
    pub columns: Option<Vec<String>>,
    /// Whether an outer join may make rows of NULLs of it.
    pub outer: bool,
    /// What else is known of it.
    pub of: T,
}

impl<T> Source<T> {
    /// Whether it has a column of that name, as far as it is known.
    pub(super) fn has(&self, name: &str) -> bool {
        let columns = self.columns.as_ref();
        columns.is_none_or(|all| all.iter().any(|own| own == name))
    }

    /// Its column of that name.
    pub(super) fn column(&self, name: &str) -> Expr {
        let mut parts = self.called.clone();
        parts.push(Ident::with_quote('"', name));
        Expr::CompoundIdentifier(parts)
    }

    /// Whether it is what is written so: by its alias, or its name with or without its schema.
    pub(super) fn is(&self, table: &[Ident]) -> bool {
        let mut own = self.called.iter().rev().map(column_name);
        let mut written = table.iter().rev().map(column_name);
        written.all(|part| own.next() == Some(part))
    }
}

/// Whether a join may make rows of NULLs of what stands before it, and of what it joins.
pub(super) fn makes_rows(join: &Join) -> (bool, bool) {
    match join.join_operator {
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
        JoinOperator::FullOuter(_) => (true, true),
        _ => (false, false),
    }
}

/// The table that has a name in a `from`, as it was found, and what provides its rows; none for what `with` defines, and what
/// there is not.
pub(super) fn provider<N: ContextProvider>(
    lookup: &Lookup<'_, N>,
    name: &ObjectName,
) -> Option<(TableReference, Arc<dyn TableSource>)> {
    let single = only(name);
    let mut hiding = lookup.known.iter();
    if hiding.any(|cte| single.as_ref() == Some(&cte.name)) {
        return None;
    }
    let reference = object_name_to_table_reference(name.clone(), true).ok()?;
    let source = lookup.names.get_table_source(reference.clone()).ok()?;
    Some((reference, source))
}

/// Collects what is named, and what `of` says of each table that stands there by its name.
pub(super) struct Walk<'w, 'n, N, F> {
    pub lookup: &'w Lookup<'n, N>,
    pub of: F,
}

impl<N: ContextProvider, F> Walk<'_, '_, N, F> {
    /// All that the body of a query names, in each `select` of a union.
    pub(super) fn of_body<T>(&self, body: &SetExpr, found: &mut Vec<Source<T>>)
    where
        F: Fn(Option<&ObjectName>) -> T,
    {
        match body {
            SetExpr::Select(select) => {
                for from in &select.from {
                    self.of_from(from, found);
                }
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.of_body(left, found);
                self.of_body(right, found);
            }
            _ => {}
        }
    }

    /// What is joined.
    pub(super) fn of_from<T>(&self, from: &TableWithJoins, found: &mut Vec<Source<T>>)
    where
        F: Fn(Option<&ObjectName>) -> T,
    {
        let first = found.len();
        self.of_factor(&from.relation, found);
        for join in &from.joins {
            let (before, after) = makes_rows(join);
            let middle = found.len();
            self.of_factor(&join.relation, found);
            for (at, source) in found.iter_mut().enumerate().skip(first) {
                source.outer |= if at < middle { before } else { after };
            }
        }
    }

    fn of_factor<T>(&self, factor: &TableFactor, found: &mut Vec<Source<T>>)
    where
        F: Fn(Option<&ObjectName>) -> T,
    {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.of_from(table_with_joins, found),
            factor => found.push(self.source(factor)),
        }
    }

    fn source<T>(&self, factor: &TableFactor) -> Source<T>
    where
        F: Fn(Option<&ObjectName>) -> T,
    {
        let columns = self.lookup.factor(factor);
        let columns = columns.map(|all| all.wanted.into_iter().map(|own| own.name).collect());
        let (name, alias) = match factor {
            TableFactor::Table { name, alias, .. } => (Some(name), alias),
            TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => (None, alias),
            _ => (None, &None),
        };
        let called = match (alias, name) {
            (Some(alias), _) => vec![alias.name.clone()],
            (None, Some(name)) => called(name),
            (None, None) => Vec::new(),
        };
        Source {
            called,
            columns,
            outer: false,
            of: (self.of)(table_of(factor)),
        }
    }
}

/// The name of a table that stands in a `from` without arguments.
pub(super) fn table_of(factor: &TableFactor) -> Option<&ObjectName> {
    match factor {
        TableFactor::Table {
            name, args: None, ..
        } => Some(name),
        _ => None,
    }
}

/// What a table without an alias is called. A path in single quotes is a text where an expression stands.
fn called(name: &ObjectName) -> Vec<Ident> {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    let own = parts.map(|part| {
        if is_literal(part) {
            Ident::with_quote('"', &part.value)
        } else {
            part.clone()
        }
    });
    own.collect()
}
