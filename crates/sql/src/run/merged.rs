//! `select * from a join b using (k)` has `k` as its first column, and `natural join` the columns that both have. The planner
//! leaves them where they are in `a`, takes their values from `a` alone also in a `right` or `full join`, and refuses `k` in
//! `where`. So such joins are [written with `on`](super::wide_joins), and `k` as what it is. Where the columns of a table are not
//! known, only `*` is written out, as far as it can be.

use std::cell::Cell;
use std::ops::ControlFlow;

use datafusion_expr::planner::ContextProvider;
use datafusion_sql::parser::Statement as Extended;
use sqlparser::ast::{
    Ident, ObjectName, OrderBy, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableFactor, VisitorMut, WildcardAdditionalOptions,
};
use syntax::flow::{flow, outcome};
use syntax::names::column_name;
use syntax::walk::WalkMut;

use crate::error::{Error, Result};
use crate::run::dependent_columns::Dependent;
use crate::run::shared_columns::{Column, Columns, Cte, Lookup, is_plain, shares, shares_columns};
use crate::run::{file_columns, system_columns, wide_joins};

/// The statement with its `*` written out where tables share columns, and with the columns that keys of groups
/// [determine](super::dependent_columns) among these. What `from` names is looked up in
/// `names`; a `*` over anything else is left as it is.
///
/// # Errors
/// If tables of a `right` or `full join` share columns that are not known.
pub(super) fn first(mut statement: Extended, names: &impl ContextProvider) -> Result<Extended> {
    if let Extended::Statement(sql) = &mut statement {
        let mut known = Vec::new();
        let _ = sql.walk_mut(&mut CommonTables(&mut known));
        let lookup = Lookup {
            names,
            known,
            depth: Cell::new(0),
        };
        // `*` does not return the places of rows.
        let all = system_columns::reads_places(&**sql) || file_columns::are_read(sql);
        file_columns::write_out(sql, &lookup)?;
        system_columns::write_out(sql, &lookup);
        outcome(sql.walk_mut(&mut Stars {
            lookup: &lookup,
            all,
        }))?;
        let _ = sql.walk_mut(&mut Dependent(&lookup));
    }
    Ok(statement)
}

/// Collects what `with` defines: its names hide those of tables.
struct CommonTables<'a>(&'a mut Vec<Cte>);

impl VisitorMut for CommonTables<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(with.map(|cte| {
            Cte {
                name: column_name(&cte.alias.name),
                query: cte.query.clone(),
                columns: cte
                    .alias
                    .columns
                    .iter()
                    .map(|column| column_name(&column.name))
                    .collect(),
            }
        }));
        ControlFlow::Continue(())
    }
}

struct Stars<'n, 'l, N> {
    lookup: &'l Lookup<'n, N>,
    /// Whether each `*` is written out.
    all: bool,
}

impl<N: ContextProvider> VisitorMut for Stars<'_, '_, N> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        flow(self.body(&mut query.body, query.order_by.as_mut()))
    }
}

impl<N: ContextProvider> Stars<'_, '_, N> {
    fn body(&self, body: &mut SetExpr, order_by: Option<&mut OrderBy>) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select, order_by),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, None)?;
                self.body(right, None)
            }
            _ => Ok(()),
        }
    }

    fn select(&self, select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
        let is_wide = wide_joins::is_wide(select);
        if !is_wide && !select.from.iter().any(shares_columns) {
            if self.all {
                self.write_out(select);
            }
            return Ok(());
        }
        let (mut written, mut keys) = (select.clone(), order_by.as_deref().cloned());
        match wide_joins::write_out(self.lookup, &mut written, keys.as_mut()) {
            Ok(()) => {
                *select = written;
                if let (Some(order_by), Some(keys)) = (order_by, keys) {
                    *order_by = keys;
                }
                Ok(())
            }
            // The planner knows the columns, but not all that a name alone may be.
            Err(Error::Unsupported { .. }) if !is_wide => {
                self.write_out(select);
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Writes `*` out by table where the columns of some are not known, such as those of `unnest(...) as u`.
    fn by_table(&self, select: &mut Select) {
        let mut items = Vec::new();
        for from in &select.from {
            if from.joins.iter().any(|join| shares(&join.join_operator)) {
                return;
            }
            let joined = from.joins.iter().map(|join| &join.relation);
            for factor in std::iter::once(&from.relation).chain(joined) {
                match (self.lookup.factor(factor), alias(factor)) {
                    (Some(own), _) => {
                        let own = own.wanted.iter().map(Column::written);
                        items.extend(own.map(SelectItem::UnnamedExpr));
                    }
                    (None, Some(alias)) => items.push(SelectItem::QualifiedWildcard(
                        SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![
                            alias.clone(),
                        ])),
                        WildcardAdditionalOptions::default(),
                    )),
                    (None, None) => return,
                }
            }
        }
        for item in std::mem::take(&mut select.projection) {
            match &item {
                SelectItem::Wildcard(options) if self.all && is_plain(options) => {
                    select.projection.extend(items.iter().cloned());
                }
                _ => select.projection.push(item),
            }
        }
    }

    /// Writes `*` out, if its columns are known.
    fn write_out(&self, select: &mut Select) {
        let plain =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(options) if is_plain(options));
        if !self.all && !select.projection.iter().any(plain) {
            return;
        }
        let mut columns = Columns::default();
        for from in &select.from {
            match self.lookup.chain(from) {
                Some(own) => columns.join(own, &[]),
                None => return self.by_table(select),
            }
        }
        for item in std::mem::take(&mut select.projection) {
            let of_table = match &item {
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(table),
                    options,
                ) if self.all && is_plain(options) => table.0.last().and_then(|own| own.as_ident()),
                item if plain(item) => None,
                _ => {
                    select.projection.push(item);
                    continue;
                }
            };
            let table = of_table.map(column_name);
            let is_own = |own: &&Column| {
                let called = own.table.last().map(column_name);
                table.is_none() || called == table
            };
            let written = columns.wanted.iter().filter(is_own).map(Column::written);
            let written: Vec<SelectItem> = written.map(SelectItem::UnnamedExpr).collect();
            select.projection.extend(written);
        }
    }
}

/// What a table that is no name is called.
fn alias(factor: &TableFactor) -> Option<&Ident> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::TableFunction { alias, .. } => alias.as_ref().map(|alias| &alias.name),
        _ => None,
    }
}
