//! Columns that the keys of a group determine: in `select a.*, count(*) from a join b ... group by a.id`, where `id` is the
//! primary key of `a`, the rows of a group have one value in each column of `a`. The planner wants them among the keys, so
//! those that the query reads are put there.
//!
//! Only a primary key that holds counts, as in PostgreSQL, and only that of a table that the query itself names.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion_expr::planner::ContextProvider;
use datafusion_sql::planner::object_name_to_table_reference;
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, Value, Visitor,
    VisitorMut,
};
use syntax::names::column_name;
use syntax::walk::Walk;

use crate::run::shared_columns::{Column, Lookup, only};
use crate::scan::provider::Provider;

/// Completes the keys of all queries that are visited.
pub(super) struct Dependent<'n, 'l, N>(pub(super) &'l Lookup<'n, N>);

impl<N: ContextProvider> VisitorMut for Dependent<'_, '_, N> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.body(&mut query.body, query.order_by.as_ref());
        ControlFlow::Continue(())
    }
}

/// A table of a `from`, and the names of its key's columns; none if it has no primary key that holds.
struct Source {
    columns: Vec<Column>,
    key: Vec<String>,
}

impl<N: ContextProvider> Dependent<'_, '_, N> {
    fn body(&self, body: &mut SetExpr, order_by: Option<&OrderBy>) {
        match body {
            SetExpr::Select(select) => self.select(select, order_by),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, None);
                self.body(right, None);
            }
            _ => {}
        }
    }

    fn select(&self, select: &mut Select, order_by: Option<&OrderBy>) {
        let GroupByExpr::Expressions(keys, _) = &select.group_by else {
            return;
        };
        let is_set =
            |key: &Expr| matches!(key, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
        if keys.is_empty() || keys.iter().any(is_set) {
            return;
        }
        let mut sources = Vec::new();
        let mut is_known = true;
        for from in &select.from {
            is_known &= self.sources(from, &mut sources);
        }
        let names = Names {
            sources: &sources,
            is_known,
        };
        let grouped: Vec<&Column> = keys
            .iter()
            .filter_map(|key| names.key(key, &select.projection))
            .collect();
        let determined: Vec<&Source> = sources
            .iter()
            .filter(|source| {
                let has = |name: &String| {
                    let mut own = source.columns.iter().filter(|own| own.name == *name);
                    own.any(|own| grouped.contains(&own))
                };
                !source.key.is_empty() && source.key.iter().all(has)
            })
            .collect();
        if determined.is_empty() {
            return;
        }
        let read = self.read(select, order_by, &names);
        let is_new = |column: &&Column| {
            let of = |source: &&Source| source.columns.contains(column);
            determined.iter().any(of) && !grouped.contains(column)
        };
        let new: Vec<Expr> = read
            .into_iter()
            .filter(is_new)
            .map(Column::written)
            .collect();
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.extend(new);
        }
    }

    /// Adds the tables of a `from`; returns whether the columns of all are known.
    fn sources(&self, from: &TableWithJoins, found: &mut Vec<Source>) -> bool {
        let joined = from.joins.iter().map(|join| &join.relation);
        let factors = std::iter::once(&from.relation).chain(joined);
        let mut is_known = true;
        for factor in factors {
            is_known &= self.source(factor, found);
        }
        is_known
    }

    fn source(&self, factor: &TableFactor, found: &mut Vec<Source>) -> bool {
        if let TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } = factor
        {
            return self.sources(table_with_joins, found);
        }
        let Some(columns) = self.0.factor(factor) else {
            return false;
        };
        found.push(Source {
            key: self.key(factor, &columns.wanted).unwrap_or_default(),
            columns: columns.wanted,
        });
        true
    }

    /// What a factor calls the columns of its table's primary key, if that holds.
    fn key(&self, factor: &TableFactor, columns: &[Column]) -> Option<Vec<String>> {
        let TableFactor::Table {
            name, args: None, ..
        } = factor
        else {
            return None;
        };
        let single = only(name);
        let mut hiding = self.0.known.iter();
        if hiding.any(|cte| single.as_ref() == Some(&cte.name)) {
            return None;
        }
        let reference = object_name_to_table_reference(name.clone(), true).ok()?;
        let source = self.0.names.get_table_source(reference).ok()?;
        let table = source.downcast_ref::<Provider>()?.table();
        let key = table.definition().keys.iter().find(|key| key.primary)?;
        let names = key.columns.iter().map(|at| columns.get(*at));
        names.map(|own| Some(own?.name.clone())).collect()
    }

    /// The columns that a query reads outside of aggregates, each once.
    fn read<'s>(
        &self,
        select: &Select,
        order_by: Option<&OrderBy>,
        names: &Names<'s>,
    ) -> Vec<&'s Column> {
        let mut reads = Reads {
            functions: self.0.names,
            names,
            within: 0,
            found: Vec::new(),
        };
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(_) => names.all().for_each(|column| reads.add(column)),
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(table),
                    _,
                ) => {
                    let parts = table.0.iter().map(|part| part.as_ident().cloned());
                    let parts: Option<Vec<Ident>> = parts.collect();
                    let parts = parts.unwrap_or_default();
                    let own = names.all().filter(|column| is_of(column, &parts));
                    own.for_each(|column| reads.add(column));
                }
                item => _ = item.walk(&mut reads),
            }
        }
        let _ = select.having.as_ref().map(|having| having.walk(&mut reads));
        let _ = select.qualify.as_ref().map(|own| own.walk(&mut reads));
        if let Some(Distinct::On(exprs)) = &select.distinct {
            exprs.iter().for_each(|expr| _ = expr.walk(&mut reads));
        }
        if let Some(OrderByKind::Expressions(keys)) = order_by.map(|order| &order.kind) {
            keys.iter().for_each(|key| _ = key.expr.walk(&mut reads));
        }
        reads.found
    }
}

/// The columns that names mean.
struct Names<'s> {
    sources: &'s [Source],
    /// Whether there are no others.
    is_known: bool,
}

impl<'s> Names<'s> {
    fn all(&self) -> impl Iterator<Item = &'s Column> + use<'s> {
        self.sources.iter().flat_map(|source| &source.columns)
    }

    /// The one column that an expression is the name of.
    fn column(&self, expr: &Expr) -> Option<&'s Column> {
        let (table, name) = match expr {
            Expr::Identifier(name) if self.is_known => (&[][..], name),
            Expr::CompoundIdentifier(parts) => {
                let (name, table) = parts.split_last()?;
                (table, name)
            }
            _ => return None,
        };
        let name = column_name(name);
        let mut found = self
            .all()
            .filter(|own| own.name == name && is_of(own, table));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// The column that a key of the groups is: by its name, or by that or the number of what the query returns.
    fn key(&self, key: &Expr, projection: &[SelectItem]) -> Option<&'s Column> {
        match key {
            Expr::Nested(inner) => self.key(inner, projection),
            Expr::Value(value) => {
                let Value::Number(number, _) = &value.value else {
                    return None;
                };
                let at = number.parse::<usize>().ok()?.checked_sub(1)?;
                match projection.get(at)? {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                        self.column(expr)
                    }
                    _ => None,
                }
            }
            Expr::Identifier(name) => self.column(key).or_else(|| {
                let wanted = column_name(name);
                let is_column = self.all().any(|own| own.name == wanted);
                let mut items = projection.iter().filter(|_| !is_column);
                items.find_map(|item| match item {
                    SelectItem::ExprWithAlias { expr, alias } if column_name(alias) == wanted => {
                        self.column(expr)
                    }
                    _ => None,
                })
            }),
            other => self.column(other),
        }
    }
}

/// Whether a column is one of the table that is written so: by its alias, or its name with or without its schema.
fn is_of(column: &Column, table: &[Ident]) -> bool {
    let mut own = column.table.iter().rev().map(column_name);
    table
        .iter()
        .rev()
        .all(|part| own.next() == Some(column_name(part)))
}

/// Collects columns.
struct Reads<'a, 's, N> {
    functions: &'a N,
    names: &'a Names<'s>,
    /// How many aggregates stand around.
    within: usize,
    found: Vec<&'s Column>,
}

impl<'s, N: ContextProvider> Reads<'_, 's, N> {
    fn add(&mut self, column: &'s Column) {
        if !self.found.contains(&column) {
            self.found.push(column);
        }
    }

    fn is_aggregate(&self, expr: &Expr) -> bool {
        let Expr::Function(function) = expr else {
            return false;
        };
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let name = name.map(column_name).unwrap_or_default();
        function.over.is_none() && self.functions.get_aggregate_meta(&name).is_some()
    }
}

impl<N: ContextProvider> Visitor for Reads<'_, '_, N> {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if self.is_aggregate(expr) {
            self.within += 1;
        } else if self.within == 0
            && let Some(column) = self.names.column(expr)
        {
            self.add(column);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if self.is_aggregate(expr) {
            self.within -= 1;
        }
        ControlFlow::Continue(())
    }
}
