//! As-of joins in optimised plans.

use datafusion_common::{Column, JoinType};
use datafusion_expr::expr_rewriter::unalias;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{Expr, Join, LogicalPlan, Operator, SortExpr, Window};

use crate::optimize::as_of::is_any_number;

/// An as-of join in an optimised plan, whose rows a window numbers and a filter keeps the first of.
pub(crate) struct Known<'p> {
    /// The join to all rows that may match.
    pub join: &'p Join,
    /// The window that numbers the rows of the left side, which nothing else reads.
    pub rows: &'p Window,
    /// What is compared on the right side.
    pub of: Column,
    /// How it compares with columns of the left side; the first decides which row is the nearest.
    pub bounds: Vec<(Operator, Column)>,
    /// The order of rows that are as near.
    pub ties: Vec<(Column, SortExpr)>,
}

impl Known<'_> {
    /// That of a window that numbers the matches of each row; none if it is of something else.
    pub(crate) fn of<'p>(
        window: &'p Window,
        partition: &[Expr],
        order: &[SortExpr],
    ) -> Option<Known<'p>> {
        let [Expr::Column(row)] = partition else {
            return None;
        };
        let (join, columns) = joined(&window.input, &[row])?;
        if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return None;
        }
        let [row] = &columns[..] else {
            return None;
        };
        let rows = rows(&join.left, row)?;
        let mut keys = Vec::with_capacity(order.len());
        for key in order {
            let Expr::Column(column) = &key.expr else {
                return None;
            };
            let (_, found) = joined(&window.input, &[column])?;
            let column = found.into_iter().next()?;
            if !join.right.schema().has_column(&column) {
                return None;
            }
            keys.push((column, key.clone()));
        }
        let (of, first) = keys.first().cloned()?;
        keys.remove(0);
        let mut bounds = Vec::new();
        for condition in split_conjunction(join.filter.as_ref()?) {
            bounds.push(bound(condition, &of, join)?);
        }
        let is_towards = |op: Operator| {
            if first.asc {
                matches!(op, Operator::Gt | Operator::GtEq)
            } else {
                matches!(op, Operator::Lt | Operator::LtEq)
            }
        };
        bounds.sort_by_key(|(op, _)| !is_towards(*op));
        let towards = bounds.iter().filter(|(op, _)| is_towards(*op)).count();
        (towards == 1).then_some(Known {
            join,
            rows,
            of,
            bounds,
            ties: keys,
        })
    }
}

/// A comparison of `of` with a column of the left side.
fn bound(condition: &Expr, of: &Column, join: &Join) -> Option<(Operator, Column)> {
    let Expr::BinaryExpr(binary) = condition else {
        return None;
    };
    let (Expr::Column(a), Expr::Column(b)) = (binary.left.as_ref(), binary.right.as_ref()) else {
        return None;
    };
    let (op, end) = match (a == of, b == of) {
        (true, false) => (binary.op, b),
        (false, true) => (binary.op.swap()?, a),
        _ => return None,
    };
    let is_end = join.left.schema().has_column(end);
    let is_bound = matches!(
        op,
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
    );
    (is_end && is_bound).then(|| (op, end.clone()))
}

/// The join that a plan is of, below projections that only choose columns, and what `columns` are called there.
fn joined<'p>(plan: &'p LogicalPlan, columns: &[&Column]) -> Option<(&'p Join, Vec<Column>)> {
    match plan {
        LogicalPlan::Join(join) => Some((join, columns.iter().map(|c| (*c).clone()).collect())),
        LogicalPlan::Projection(projection) => {
            let all = projection.expr.iter();
            if !all
                .clone()
                .all(|e| matches!(unalias(e.clone()), Expr::Column(_)))
            {
                return None;
            }
            let below = columns.iter().map(|column| {
                let place = projection.schema.maybe_index_of_column(column)?;
                match unalias(projection.expr.get(place)?.clone()) {
                    Expr::Column(below) => Some(below),
                    _ => None,
                }
            });
            let below = below.collect::<Option<Vec<Column>>>()?;
            joined(&projection.input, &below.iter().collect::<Vec<_>>())
        }
        _ => None,
    }
}

/// The window that makes the numbers of rows in `column` of a plan.
fn rows<'p>(plan: &'p LogicalPlan, column: &Column) -> Option<&'p Window> {
    let place = plan.schema().maybe_index_of_column(column)?;
    let here = |input: &LogicalPlan| Some(input.schema().columns().get(place)?.clone());
    match plan {
        LogicalPlan::Projection(projection) => match unalias(projection.expr.get(place)?.clone()) {
            Expr::Column(below) => rows(&projection.input, &below),
            _ => None,
        },
        LogicalPlan::Filter(filter) => rows(&filter.input, column),
        LogicalPlan::SubqueryAlias(alias) => rows(&alias.input, &here(&alias.input)?),
        LogicalPlan::Window(window) => {
            let is_own = place == window.input.schema().fields().len();
            (is_own && is_any_number(window)).then_some(window)
        }
        _ => None,
    }
}
