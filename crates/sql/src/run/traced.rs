//! The [origins](Origins) of the columns of a query, by its plan.

use datafusion_common::{Column, DFSchema, JoinType};
use datafusion_expr::{Distinct, Expr, LogicalPlan, TableScan};

use crate::run::context::StatementContext;
use crate::run::modifiers;
use crate::run::origins::{self, Origin, Origins};
use crate::run::resolver::name_of;
use crate::scan::provider::Provider;

/// Columns that are looked for: their places in the result, and in a part of its plan.
type Wanted = Vec<(usize, usize)>;

impl StatementContext {
    /// The origins of the columns of a query that has this plan, which is not optimised.
    pub(crate) fn origins(&self, plan: &LogicalPlan) -> Origins {
        let width = plan.schema().fields().len();
        let mut found = vec![None; width];
        self.trace(plan, (0..width).map(|at| (at, at)).collect(), &mut found);
        Origins::new(found, modifiers::of_plan(plan))
    }

    fn trace(&self, plan: &LogicalPlan, wanted: Wanted, found: &mut [Option<Origin>]) {
        if wanted.is_empty() {
            return;
        }
        match plan {
            LogicalPlan::TableScan(scan) => of_scan(scan, &wanted, found),
            LogicalPlan::Projection(own) => {
                let wanted = columns(&own.expr, own.input.schema(), wanted);
                self.trace(&own.input, wanted, found);
            }
            LogicalPlan::Aggregate(own) => {
                let wanted = columns(&own.group_expr, own.input.schema(), wanted);
                self.trace(&own.input, wanted, found);
            }
            LogicalPlan::Distinct(Distinct::On(own)) => {
                let wanted = columns(&own.select_expr, own.input.schema(), wanted);
                self.trace(&own.input, wanted, found);
            }
            LogicalPlan::Window(own) => {
                let width = own.input.schema().fields().len();
                let wanted = wanted.into_iter().filter(|(_, at)| *at < width);
                self.trace(&own.input, wanted.collect(), found);
            }
            LogicalPlan::Join(own) => {
                let width = match own.join_type {
                    JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                        own.left.schema().fields().len()
                    }
                    // Those that subqueries become have no columns of the result above them.
                    _ => return,
                };
                let (left, right): (Wanted, Wanted) =
                    wanted.into_iter().partition(|(_, at)| *at < width);
                let right = right.into_iter().map(|(to, at)| (to, at - width));
                self.trace(&own.left, left, found);
                self.trace(&own.right, right.collect(), found);
            }
            // A view is not told from a subquery of its name, and its columns are not those of a table.
            LogicalPlan::SubqueryAlias(own) => {
                let is_view = !self.tables.views().is_empty() && {
                    let name = name_of(&own.alias, &self.tables, &self.path);
                    self.tables.view(&name).is_some()
                };
                if !is_view {
                    self.trace(&own.input, wanted, found);
                }
            }
            LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Distinct(Distinct::All(_))
            | LogicalPlan::Subquery(_) => {
                if let [input] = plan.inputs()[..] {
                    self.trace(input, wanted, found);
                }
            }
            _ => {}
        }
    }
}

fn of_scan(scan: &TableScan, wanted: &[(usize, usize)], found: &mut [Option<Origin>]) {
    let Some(provider) = scan.source.downcast_ref::<Provider>() else {
        return;
    };
    let definition = provider.table().definition();
    let places = wanted.iter().map(|(_, at)| match &scan.projection {
        Some(projection) => projection.get(*at).copied().unwrap_or(usize::MAX),
        None => *at,
    });
    let places: Vec<usize> = places.collect();
    let origins = origins::of_columns(&definition.name, &places);
    for (((to, _), place), origin) in wanted.iter().zip(&places).zip(origins) {
        // Behind the columns are row ids.
        if *place < definition.columns.len() {
            found[*to] = origin;
        }
    }
}

/// The columns that are wanted, where these expressions are columns of what is below them.
fn columns(exprs: &[Expr], below: &DFSchema, wanted: Wanted) -> Wanted {
    let places = wanted.into_iter().filter_map(|(to, at)| {
        let column = plain(exprs.get(at)?)?;
        Some((to, place(column, below, at)?))
    });
    places.collect()
}

/// The column that an expression is.
fn plain(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => plain(&alias.expr),
        _ => None,
    }
}

/// The place of a column; `near` is where it often stands.
fn place(column: &Column, below: &DFSchema, near: usize) -> Option<usize> {
    if near < below.fields().len() {
        let (relation, field) = below.qualified_field(near);
        if relation == column.relation.as_ref() && *field.name() == column.name {
            return Some(near);
        }
    }
    below.maybe_index_of_column(column)
}
