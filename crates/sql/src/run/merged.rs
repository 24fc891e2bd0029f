//! `select * from a join b using (k)` has `k` as its first column, and `natural join` the columns that both have. The planner
//! leaves them where they are in `a`, so `*` is written out where that is another place. In a `right` or `full join` it takes
//! their values from `a` alone, so [these](super::wide_joins) are written in another way.

use std::cell::Cell;
use std::ops::ControlFlow;

use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::parser::Statement as Extended;
use datafusion::sql::sqlparser::ast::{OrderBy, Query, Select, SelectItem, SetExpr, VisitorMut};

use crate::error::{Error, Result};
use crate::frontend::flow::{flow, outcome};
use crate::frontend::walk::WalkMut;
use crate::names::column_name;
use crate::run::shared_columns::{Column, Columns, Cte, Lookup, is_plain, shares};
use crate::run::wide_joins;

/// The statement with its `*` written out where tables share columns. What `from` names is looked up in
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
        outcome(sql.walk_mut(&mut Stars(lookup)))?;
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

struct Stars<'n, N>(Lookup<'n, N>);

impl<N: ContextProvider> VisitorMut for Stars<'_, N> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        flow(self.body(&mut query.body, query.order_by.as_mut()))
    }
}

impl<N: ContextProvider> Stars<'_, N> {
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
        if wide_joins::is_wide(select) {
            return wide_joins::write_out(&self.0, select, order_by);
        }
        let mut joins = select.from.iter().flat_map(|from| &from.joins);
        if joins.any(|join| shares(&join.join_operator)) {
            self.write_out(select);
        }
        Ok(())
    }

    /// Writes `*` out, if its columns are known.
    fn write_out(&self, select: &mut Select) {
        let plain =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(options) if is_plain(options));
        if !select.projection.iter().any(plain) {
            return;
        }
        let mut columns = Columns::default();
        for from in &select.from {
            match self.0.chain(from) {
                Some(own) => columns.join(own, &[]),
                None => return,
            }
        }
        for item in std::mem::take(&mut select.projection) {
            if plain(&item) {
                let written = columns.wanted.iter().map(Column::written);
                let written = written.map(SelectItem::UnnamedExpr);
                select.projection.extend(written);
            } else {
                select.projection.push(item);
            }
        }
    }
}
