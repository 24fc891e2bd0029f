//! Names of tables of queries further outside: `d.id` in a subquery, where `d` is a table there.
//!
//! In PostgreSQL `d.id` is a column of the table `d`, wherever around it that stands. The planner looks for a column `d` of the
//! subquery first, and takes its field `id`: `exists (select from w where w.d = d.id)` would not see the table `d`. A schema before
//! the name of the table keeps it from doing so, and it takes tables that have none for tables of any schema.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Delete, Expr, FromTable, Ident, ObjectName, Query, Select, SetExpr, Statement, TableFactor,
    TableWithJoins, VisitorMut,
};

use crate::names::{SCHEMA, column_name};
use crate::walk::WalkMut;

/// Puts schemas before the names of tables of outer queries.
pub fn qualify(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Scopes::default());
}

/// What a query reads, by the names that it has for it, and the schema that stands before each or may.
type Tables = HashMap<String, Ident>;

/// The queries around an expression, the innermost last.
#[derive(Default)]
struct Scopes(Vec<Tables>);

fn take(tables: &mut Tables, factor: &TableFactor) {
    let alias = match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => return take_joined(tables, table_with_joins),
        _ => None,
    };
    match (alias, factor) {
        (Some(alias), _) => {
            tables.insert(column_name(&alias.name), Ident::new(SCHEMA));
        }
        (None, TableFactor::Table { name, .. }) => named(tables, name),
        _ => {}
    }
}

fn named(tables: &mut Tables, name: &ObjectName) {
    let mut parts = name.0.iter().rev().filter_map(|part| part.as_ident());
    if let Some(table) = parts.next() {
        let schema = parts.next().cloned();
        tables.insert(
            column_name(table),
            schema.unwrap_or_else(|| Ident::new(SCHEMA)),
        );
    }
}

fn take_joined(tables: &mut Tables, from: &TableWithJoins) {
    take(tables, &from.relation);
    for join in &from.joins {
        take(tables, &join.relation);
    }
}

fn all<'f>(from: impl IntoIterator<Item = &'f TableWithJoins>) -> Tables {
    let mut tables = Tables::new();
    for from in from {
        take_joined(&mut tables, from);
    }
    tables
}

fn of_delete(delete: &Delete) -> Tables {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    all(from.iter().chain(delete.using.iter().flatten()))
}

impl VisitorMut for Scopes {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        self.0.push(match statement {
            Statement::Update(update) => all([&update.table]),
            Statement::Delete(delete) => of_delete(delete),
            _ => Tables::new(),
        });
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _: &mut Statement) -> ControlFlow<()> {
        self.0.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        // Its sort keys stand beside the `select`, whose tables they see.
        self.0.push(match query.body.as_ref() {
            SetExpr::Select(select) => all(&select.from),
            _ => Tables::new(),
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.0.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.0.push(all(&select.from));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.0.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::CompoundIdentifier(parts) = expr else {
            return ControlFlow::Continue(());
        };
        let [table, _] = &parts[..] else {
            return ControlFlow::Continue(());
        };
        let table = column_name(table);
        let mut scopes = self.0.iter().rev();
        if scopes.next().is_some_and(|own| own.contains_key(&table)) {
            return ControlFlow::Continue(());
        }
        if let Some(schema) = scopes.find_map(|outer| outer.get(&table)) {
            parts.insert(0, schema.clone());
        }
        ControlFlow::Continue(())
    }
}
