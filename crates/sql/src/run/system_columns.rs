//! Columns that every table of PostgreSQL has and no `*` returns: `tableoid`, the number of the table; `ctid`, where a row is, by
//! which programs find it again in the same transaction; and `xmin`, `cmin`, `xmax`, `cmax`, the transactions that have written and deleted a row, and their statements. A row that is seen was written by a
//! transaction that has ended, which PostgreSQL calls 2 where it does not know it any more, and nobody has deleted it.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    Expr, FromTable, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement as Sql,
    TableFactor, TableWithJoins, Value, Visitor, VisitorMut,
};
use table::ROW_COLUMN;

use crate::frontend::call::call;
use crate::frontend::walk::{Walk, WalkMut};
use crate::functions::catalog::ROW_PLACE;
use crate::messages::numbers::table_number;
use crate::names::{PG_CATALOG, base, column_name, table_name};
use crate::run::shared_columns::{Lookup, only};
use crate::scan::provider::Provider;

const TABLE: &str = "tableoid";
const PLACE: &str = "ctid";

/// The columns that are the same in all rows, with their values.
const FIXED: [(&str, i64); 4] = [("xmin", 2), ("cmin", 0), ("xmax", 0), ("cmax", 0)];

fn is_one(name: &str) -> bool {
    name == TABLE || name == PLACE || FIXED.iter().any(|(own, _)| *own == name)
}

/// The name of the column that an expression is, if it is called as one of these.
fn named(expr: &Expr) -> Option<(&[Ident], String)> {
    let (table, name) = match expr {
        Expr::Identifier(name) => (&[][..], name),
        Expr::CompoundIdentifier(parts) => {
            let (name, table) = parts.split_last()?;
            (table, name)
        }
        _ => return None,
    };
    let name = column_name(name);
    is_one(&name).then_some((table, name))
}

/// Writes them as what they are, unless a table has a column of that name.
pub(super) fn write_out<N: ContextProvider>(statement: &mut Sql, lookup: &Lookup<'_, N>) {
    if statement.walk(&mut Mentioned).is_break() {
        let _ = statement.walk_mut(&mut Written {
            lookup,
            scopes: Vec::new(),
        });
    }
}

/// Whether a statement names places of rows, so that its tables are read with these.
pub(super) fn reads_places(statement: &Sql) -> bool {
    struct Places;

    impl Visitor for Places {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match named(expr) {
                Some((_, name)) if name == PLACE => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }

    statement.walk(&mut Places).is_break()
}

/// Breaks off where one is named.
struct Mentioned;

impl Visitor for Mentioned {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match named(expr) {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

/// What a `from` names.
struct Source {
    /// What it is called there.
    called: Vec<Ident>,
    /// The number of the table, and whether it is read with places of rows; none of what is no table.
    table: Option<(i64, bool)>,
    /// The names of its columns; none if they are not known.
    columns: Option<Vec<String>>,
}

impl Source {
    fn has(&self, name: &str) -> bool {
        let columns = self.columns.as_ref();
        columns.is_none_or(|all| all.iter().any(|own| own == name))
    }

    /// Whether it is what is written so: by its alias, or its name with or without its schema.
    fn is(&self, table: &[Ident]) -> bool {
        let mut own = self.called.iter().rev().map(column_name);
        let mut written = table.iter().rev().map(column_name);
        written.all(|part| own.next() == Some(part))
    }
}

struct Written<'n, 'l, N> {
    lookup: &'l Lookup<'n, N>,
    /// What the queries around an expression name, the innermost last.
    scopes: Vec<Vec<Source>>,
}

impl<N: ContextProvider> VisitorMut for Written<'_, '_, N> {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Sql) -> ControlFlow<Infallible> {
        let mut sources = Vec::new();
        match statement {
            Sql::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let others = delete.using.iter().flatten();
                for from in from.iter().chain(others) {
                    self.of_from(from, &mut sources);
                }
            }
            Sql::Update(update) => self.of_from(&update.table, &mut sources),
            _ => {}
        }
        self.scopes.push(sources);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let mut sources = Vec::new();
        self.of_body(&query.body, &mut sources);
        self.scopes.push(sources);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some((_, name)) = named(expr)
                && let Some(expr) = self.value(expr)
            {
                *item = SelectItem::ExprWithAlias {
                    expr,
                    alias: Ident::with_quote('"', name),
                };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(value) = self.value(expr) {
            *expr = value;
        }
        ControlFlow::Continue(())
    }
}

impl<N: ContextProvider> Written<'_, '_, N> {
    fn value(&self, expr: &Expr) -> Option<Expr> {
        let (table, name) = named(expr)?;
        for scope in self.scopes.iter().rev() {
            let mut sources = scope.iter().filter(|source| source.is(table)).peekable();
            if sources.peek().is_none() {
                continue;
            }
            let sources: Vec<&Source> = sources.collect();
            if sources.iter().any(|source| source.has(&name)) {
                return None;
            }
            let of_table = |source: &&&Source| source.table.is_some();
            let source = sources.iter().find(of_table)?;
            let (number, has_places) = source.table?;
            if name == PLACE {
                let mut row = source.called.clone();
                row.push(Ident::with_quote('"', ROW_COLUMN));
                let place = || call(ROW_PLACE, vec![Expr::CompoundIdentifier(row)]);
                return has_places.then(place);
            }
            let fixed = FIXED.iter().find(|(own, _)| *own == name);
            let value = fixed.map_or(number, |(_, value)| *value);
            return Some(Expr::value(Value::Number(value.to_string(), false)));
        }
        None
    }

    fn of_body(&self, body: &SetExpr, found: &mut Vec<Source>) {
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

    fn of_from(&self, from: &TableWithJoins, found: &mut Vec<Source>) {
        let joined = from.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&from.relation).chain(joined) {
            match factor {
                TableFactor::NestedJoin {
                    table_with_joins,
                    alias: None,
                } => self.of_from(table_with_joins, found),
                factor => found.push(self.source(factor)),
            }
        }
    }

    fn source(&self, factor: &TableFactor) -> Source {
        let columns = self.lookup.factor(factor);
        let columns = columns.map(|all| {
            all.wanted
                .into_iter()
                .map(|own| own.name)
                .collect::<Vec<_>>()
        });
        let (name, alias) = match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => (Some(name), alias),
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => (None, alias),
            _ => (None, &None),
        };
        let called = match (alias, name) {
            (Some(alias), _) => vec![alias.name.clone()],
            (None, Some(name)) => {
                let parts = name.0.iter().filter_map(|part| part.as_ident());
                parts.cloned().collect()
            }
            (None, None) => Vec::new(),
        };
        Source {
            called,
            table: name.and_then(|name| self.table(name)),
            columns,
        }
    }

    /// The number of the table of that name, and whether it is read with places of rows.
    fn table(&self, name: &ObjectName) -> Option<(i64, bool)> {
        let single = only(name);
        let mut hiding = self.lookup.known.iter();
        if hiding.any(|cte| single.as_ref() == Some(&cte.name)) {
            return None;
        }
        let reference = object_name_to_table_reference(name.clone(), true).ok()?;
        let of_system = match reference.schema() {
            Some(schema) => schema == PG_CATALOG,
            None => reference.table().starts_with("pg_"),
        };
        let source = self.lookup.names.get_table_source(reference).ok()?;
        let provider = source_as_provider(&source).ok()?;
        let (known, has_places) = match provider.downcast_ref::<Provider>() {
            Some(provider) => {
                let known = provider.table().definition().name.clone();
                (known, provider.has_row_ids())
            }
            None => (table_name(name).ok()?, false),
        };
        let known = if of_system { base(&known) } else { &known };
        Some((table_number(known), has_places))
    }
}
