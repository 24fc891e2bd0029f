//! `in`, `exists`, `any` and `all` over subqueries, in three-valued logic and wherever an expression may stand.
//!
//! DataFusion turns `in` and `exists` into joins where they filter rows. Used as values it takes NULL for false, and in
//! other places it does not support them. [`Memberships`] turns all others into joins before DataFusion sees them. A
//! comparison with `any` row of a set is
//!
//! * true if it is true for at least one row,
//! * otherwise NULL if it is NULL for at least one row: the left side is NULL and there are rows, or a row is NULL,
//! * otherwise false; so also for a NULL and a set without rows.
//!
//! A comparison with `all` rows is the negation of the opposite comparison with `any`. For a set that does not depend
//! on the row outside it suffices to know how many rows it has, how many of them are not NULL, the least and the
//! greatest; for `=` the value is looked up. For a set that does, two mark joins find the rows for which the
//! comparison is true, and for which it is NULL, at least once.

use std::sync::Arc;

use datafusion::common::alias::AliasGenerator;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    EmptyRelation, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    binary_expr, lit, not, when,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

use crate::error::Error;
use crate::optimize::correlated;
use crate::optimize::correlated::Place;

/// The analyzer rule; it must come after type coercion, which makes both sides of a comparison of one type.
#[derive(Debug)]
pub(crate) struct Memberships;

impl AnalyzerRule for Memberships {
    fn name(&self) -> &str {
        "memberships"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let names = AliasGenerator::new();
        plan.transform_up_with_subqueries(|node| rewritten(node, &names))
            .data()
    }
}

fn is_member(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
    )
}

fn has_member(expr: &Expr) -> bool {
    // The closure does not fail.
    expr.exists(|e| Ok(is_member(e))).unwrap_or(true)
}

fn rewritten(node: LogicalPlan, names: &AliasGenerator) -> Result<Transformed<LogicalPlan>> {
    let exprs = node.expressions();
    if !exprs.iter().any(has_member) {
        return Ok(Transformed::no(node));
    }
    if let LogicalPlan::Filter(filter) = node {
        let input = Arc::unwrap_or_clone(filter.input);
        return chosen(filter.predicate, input, names);
    }
    if let LogicalPlan::Join(mut join) = node {
        if join.join_type != JoinType::Inner {
            return Err(unsupported("in the condition of an outer join").into());
        }
        // An inner join keeps the pairs for which its condition is true.
        let condition = join.filter.take();
        let plan = LogicalPlan::Join(join);
        return chosen(condition.unwrap_or(lit(true)), plan, names);
    }
    let [input] = node.inputs()[..] else {
        return Err(unsupported("in this place").into());
    };
    let mut below = Below::new(input.clone(), names);
    let preserver = NamePreserver::new(&node);
    let mut values = Vec::with_capacity(exprs.len());
    for expr in exprs {
        let name = preserver.save(&expr);
        values.push(name.restore(below.value(expr)?));
    }
    let columns = node.schema().columns();
    let above = node.with_new_exprs(values, vec![below.input])?;
    if above.schema().fields().len() == columns.len() {
        Ok(Transformed::yes(above))
    } else {
        Ok(Transformed::yes(only(above, columns)?))
    }
}

fn only(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    let columns = columns.into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!(
        "not supported: `in`, `exists`, `any` or `all` over a subquery {what}"
    ))
}

/// The rows of `input` for which `predicate` is true.
fn chosen(
    predicate: Expr,
    input: LogicalPlan,
    names: &AliasGenerator,
) -> Result<Transformed<LogicalPlan>> {
    let columns = input.schema().columns();
    let mut below = Below::new(input, names);
    let (mut left, mut changed) = (Vec::new(), false);
    for part in split_conjunction_owned(predicate) {
        if !has_member(&part) || is_for_datafusion(&part)? {
            left.push(part);
            continue;
        }
        left.push(below.value(part)?);
        changed = true;
    }
    let plan = LogicalPlanBuilder::from(below.input);
    let plan = match conjunction(left) {
        Some(predicate) => plan.filter(predicate)?.build()?,
        None => plan.build()?,
    };
    if changed {
        Ok(Transformed::yes(only(plan, columns)?))
    } else {
        Ok(Transformed::no(plan))
    }
}

/// Whether DataFusion itself makes the right join of `part`, given that it only matters whether `part` is true.
fn is_for_datafusion(part: &Expr) -> Result<bool> {
    let (part, negated) = match part {
        Expr::Not(inner) => (inner.as_ref(), true),
        part => (part, false),
    };
    match part {
        Expr::Exists(exists) => {
            if correlated::is_one_row(&exists.subquery.subquery) {
                return Ok(false);
            }
            correlated::check(&exists.subquery, Place::Exists)?;
            Ok(true)
        }
        Expr::InSubquery(within) => {
            let plan = &within.subquery.subquery;
            if has_member(&within.expr) || correlated::is_one_row(plan) {
                return Ok(false);
            }
            correlated::check(&within.subquery, Place::In)?;
            // DataFusion looks at columns only to find out whether the left side may be NULL.
            let plain = matches!(*within.expr, Expr::Column(_));
            let depends = !plan.all_out_ref_exprs().is_empty();
            Ok(negated == within.negated || plain && !depends)
        }
        _ => Ok(false),
    }
}

/// The input of a node, to which the sets that its expressions need are joined.
struct Below<'n> {
    input: LogicalPlan,
    names: &'n AliasGenerator,
}

/// Names of the only column of a subquery, and of aggregates over its values.
const VALUE: &str = "value of the set";
const ROWS: &str = "rows of the set";
const KNOWN: &str = "known values of the set";
const LEAST: &str = "least of the set";
const GREATEST: &str = "greatest of the set";
const TRUE: &str = "values it is true of";

impl<'n> Below<'n> {
    fn new(input: LogicalPlan, names: &'n AliasGenerator) -> Below<'n> {
        Below { input, names }
    }

    /// `expr` with columns of the input in place of subqueries.
    fn value(&mut self, expr: Expr) -> Result<Expr> {
        expr.transform_up(|e| match e {
            Expr::Exists(exists) => Ok(Transformed::yes(self.exists(exists)?)),
            Expr::InSubquery(InSubquery {
                expr,
                subquery,
                negated,
            }) => {
                let any = self.any(*expr, Operator::Eq, subquery)?;
                Ok(Transformed::yes(if negated { not(any) } else { any }))
            }
            Expr::SetComparison(comparison) => Ok(Transformed::yes(self.compared(comparison)?)),
            e => Ok(Transformed::no(e)),
        })
        .data()
    }

    fn exists(&mut self, exists: Exists) -> Result<Expr> {
        let Exists { subquery, negated } = exists;
        let any = if correlated::is_one_row(&subquery.subquery) {
            lit(true)
        } else if subquery.subquery.all_out_ref_exprs().is_empty() {
            let name = self.names.next("__exists");
            let set = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
                .limit(0, Some(1))?
                .aggregate(Vec::<Expr>::new(), vec![count(lit(1i64)).alias(ROWS)])?
                .alias(name.as_str())?
                .build()?;
            self.beside(set)?;
            column(&name, ROWS).gt(lit(0i64))
        } else {
            correlated::check(&subquery, Place::Exists)?;
            self.marked(&subquery, None)?
        };
        Ok(if negated { not(any) } else { any })
    }

    fn compared(&mut self, comparison: SetComparison) -> Result<Expr> {
        let SetComparison {
            expr,
            subquery,
            op,
            quantifier,
        } = comparison;
        match quantifier {
            SetQuantifier::Any => self.any(*expr, op, subquery),
            SetQuantifier::All => {
                let opposite = op.negate().ok_or_else(|| {
                    Error::unsupported(format!("not supported: `{op} all` over a subquery"))
                })?;
                Ok(not(self.any(*expr, opposite, subquery)?))
            }
        }
    }

    /// `mine op any (subquery)`.
    fn any(&mut self, mine: Expr, op: Operator, subquery: Subquery) -> Result<Expr> {
        use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if !matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            return Err(
                Error::unsupported(format!("not supported: `{op} any` over a subquery")).into(),
            );
        }
        if correlated::is_one_row(&subquery.subquery) {
            correlated::check(&subquery, Place::Scalar)?;
            return Ok(binary_expr(mine, op, Expr::ScalarSubquery(subquery)));
        }
        correlated::check(&subquery, Place::In)?;
        let nullable = mine.nullable(self.input.schema())?
            || subquery.subquery.schema().field(0).is_nullable();
        if !subquery.subquery.all_out_ref_exprs().is_empty() {
            let found = self.marked(&subquery, Some(binary_expr(mine.clone(), op, value())))?;
            if !nullable {
                return Ok(found);
            }
            let unknown = binary_expr(mine, op, value()).is_null();
            let unknown = self.marked(&subquery, Some(unknown))?;
            return when(found, lit(true))
                .when(unknown, lit(ScalarValue::Boolean(None)))
                .otherwise(lit(false));
        }
        if !mine.any_column_refs() && !mine.contains_outer() {
            return self.any_of_constant(mine, op, &subquery);
        }
        match op {
            Eq => self.looked_up(mine, &subquery, nullable),
            _ => self.ranged(mine, op, &subquery),
        }
    }

    /// Joins aggregates over all values of a set to each row; returns the name of their table.
    fn known(&mut self, subquery: &Subquery, besides: Vec<Expr>) -> Result<String> {
        let name = self.names.next("__known");
        let mut functions = vec![
            count(lit(1i64)).alias(ROWS),
            count(Expr::Column(Column::new_unqualified(VALUE))).alias(KNOWN),
        ];
        functions.extend(besides);
        let set = LogicalPlanBuilder::from(values(subquery)?)
            .aggregate(Vec::<Expr>::new(), functions)?
            .alias(name.as_str())?
            .build()?;
        self.beside(set)?;
        Ok(name)
    }

    /// Joins the only row of `set` to each row.
    fn beside(&mut self, set: LogicalPlan) -> Result<()> {
        let nothing = EmptyRelation {
            produce_one_row: true,
            schema: Arc::new(DFSchema::empty()),
        };
        let input = std::mem::replace(&mut self.input, LogicalPlan::EmptyRelation(nothing));
        self.input = match input {
            LogicalPlan::EmptyRelation(one)
                if one.produce_one_row && one.schema.fields().is_empty() =>
            {
                set
            }
            input => LogicalPlanBuilder::from(input).cross_join(set)?.build()?,
        };
        Ok(())
    }

    /// `mine op any (subquery)` where `mine` is the same for all rows.
    fn any_of_constant(&mut self, mine: Expr, op: Operator, subquery: &Subquery) -> Result<Expr> {
        let own = Expr::Column(Column::new_unqualified(VALUE));
        let holds = when(binary_expr(mine.clone(), op, own), lit(1i64)).end()?;
        let name = self.known(subquery, vec![count(holds).alias(TRUE)])?;
        let found = column(&name, TRUE).gt(lit(0i64));
        three_valued(found, mine, &name)
    }

    /// `mine = any (subquery)` by a lookup in the set.
    fn looked_up(&mut self, mine: Expr, subquery: &Subquery, nullable: bool) -> Result<Expr> {
        if nullable && !correlated::is_repeatable(&subquery.subquery) {
            return Err(unsupported(
                "that may have other rows each time (a `limit` without order, `random()`), where NULL matters",
            )
            .into());
        }
        let equal = binary_expr(mine.clone(), Operator::Eq, value());
        let found = self.marked(subquery, Some(equal))?;
        if !nullable {
            return Ok(found);
        }
        let name = self.known(subquery, vec![])?;
        three_valued(found, mine, &name)
    }

    /// `mine op any (subquery)` by a comparison with the least and the greatest value.
    fn ranged(&mut self, mine: Expr, op: Operator, subquery: &Subquery) -> Result<Expr> {
        let own = || Expr::Column(Column::new_unqualified(VALUE));
        let ends = vec![min(own()).alias(LEAST), max(own()).alias(GREATEST)];
        let name = self.known(subquery, ends)?;
        let with = |end: &str| binary_expr(mine.clone(), op, column(&name, end));
        let found = match op {
            Operator::Gt | Operator::GtEq => with(LEAST),
            Operator::Lt | Operator::LtEq => with(GREATEST),
            _ => with(LEAST).or(with(GREATEST)),
        };
        three_valued(found, mine, &name)
    }

    /// Whether `condition` is true for a row of `subquery`; in it, [`value`] stands for the row's value.
    fn marked(&mut self, subquery: &Subquery, condition: Option<Expr>) -> Result<Expr> {
        let name = self.names.next("__set");
        let set = values(subquery)?;
        let mut pull = PullUpCorrelatedExpr::new().with_exists_sub_query(condition.is_none());
        let set = if set.all_out_ref_exprs().is_empty() {
            set
        } else {
            set.rewrite(&mut pull).data()?
        };
        if !pull.can_pull_up || pull.pulled_up_scalar_agg {
            return Err(correlated::refused().into());
        }
        let own = |c: &Column| {
            pull.correlated_subquery_cols_map
                .values()
                .any(|columns| columns.contains(c))
        };
        let mut conditions = Vec::new();
        for filter in &pull.join_filters {
            conditions.push(renamed(filter.clone(), &own, &name)?);
        }
        let is_value = |c: &Column| c.relation.is_none() && c.name == VALUE;
        if let Some(condition) = condition {
            conditions.push(renamed(condition, &is_value, &name)?);
        }
        let set = LogicalPlanBuilder::from(set)
            .alias(name.as_str())?
            .build()?;
        let condition = conjunction(conditions).unwrap_or(lit(true));
        // Only the columns that it reads, under the name of the set, after which the mark is named.
        let mut read: Vec<Column> = set.schema().columns();
        let named = condition.column_refs();
        read.retain(|column| named.contains(column));
        let set = if read.is_empty() {
            set
        } else {
            only(set, read)?
        };
        let input = std::mem::replace(
            &mut self.input,
            LogicalPlan::EmptyRelation(EmptyRelation {
                produce_one_row: false,
                schema: Arc::new(DFSchema::empty()),
            }),
        );
        self.input = LogicalPlanBuilder::from(input)
            .join_on(set, JoinType::LeftMark, Some(condition))?
            .build()?;
        Ok(column(&name, "mark"))
    }
}

fn column(table: &str, name: &str) -> Expr {
    Expr::Column(Column::new(Some(table), name))
}

/// The value of a row of a set.
fn value() -> Expr {
    Expr::Column(Column::new_unqualified(VALUE))
}

/// `expr` with the columns that are `own` as columns of the table `name`.
fn renamed(expr: Expr, own: &dyn Fn(&Column) -> bool, name: &str) -> Result<Expr> {
    expr.transform(|e| match e {
        Expr::Column(c) if own(&c) => Ok(Transformed::yes(column(name, &c.name))),
        e => Ok(Transformed::no(e)),
    })
    .data()
}

/// The rows of a subquery with their only column named [`VALUE`].
fn values(subquery: &Subquery) -> Result<LogicalPlan> {
    let plan = subquery.subquery.as_ref().clone();
    let first = Column::from(plan.schema().qualified_field(0));
    LogicalPlanBuilder::from(plan)
        .project([Expr::Column(first).alias(VALUE)])?
        .build()
}

/// True where `found`; otherwise false for a set without rows, NULL if `mine` or a value of the set is NULL, else
/// false.
fn three_valued(found: Expr, mine: Expr, name: &str) -> Result<Expr> {
    let unknown = mine
        .is_null()
        .or(column(name, KNOWN).lt(column(name, ROWS)));
    when(found, lit(true))
        .when(column(name, ROWS).eq(lit(0i64)), lit(false))
        .when(unknown, lit(ScalarValue::Boolean(None)))
        .otherwise(lit(false))
}
