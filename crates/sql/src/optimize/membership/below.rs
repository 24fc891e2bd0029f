//! The subqueries of a node's expressions as joins below it.

use datafusion_common::Result;
use datafusion_common::alias::AliasGenerator;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, JoinType, ScalarValue};
use datafusion_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr, lit,
    not, when,
};
use datafusion_functions_aggregate::expr_fn::{count, max, min};

use crate::error::Error;
use crate::functions::single::single;
use crate::optimize::as_of::AsOf;
use crate::optimize::correlated;
use crate::optimize::correlated::Place;
use crate::optimize::membership::find::{has_dependent, has_member};
use crate::optimize::membership::set::{
    GREATEST, KNOWN, LEAST, ROWS, TRUE, VALUE, column, nothing, only, pulled_up, renamed,
    three_valued, unsupported, value, values,
};
use crate::optimize::outer;
use crate::optimize::unnest;

/// The input of a node, to which the sets that its expressions need are joined.
pub(super) struct Below<'n> {
    /// The rows, without the sets.
    rows: LogicalPlan,
    pub(super) input: LogicalPlan,
    names: &'n AliasGenerator,
    /// Whether DataFusion makes joins of subqueries that stand for values in this node.
    pub(super) values_are_left: bool,
}
impl<'n> Below<'n> {
    pub(super) fn new(input: LogicalPlan, names: &'n AliasGenerator) -> Below<'n> {
        Below {
            rows: input.clone(),
            input,
            names,
            values_are_left: false,
        }
    }

    /// Whether DataFusion itself makes the right join of `part`, given that it only matters whether `part` is true.
    pub(super) fn is_for_datafusion(&self, part: &Expr) -> Result<bool> {
        if !has_member(part) {
            return self.leaves(std::slice::from_ref(part));
        }
        let (part, negated) = match part {
            Expr::Not(inner) => (inner.as_ref(), true),
            part => (part, false),
        };
        let outer = self.rows.schema();
        match part {
            Expr::Exists(exists) => Ok(!correlated::is_one_row(&exists.subquery.subquery)
                && correlated::is_join(&exists.subquery, Place::Exists, outer)?),
            Expr::InSubquery(within) => {
                let plan = &within.subquery.subquery;
                if has_member(&within.expr)
                    || has_dependent(&within.expr)
                    || correlated::is_one_row(plan)
                    || !correlated::is_join(&within.subquery, Place::In, outer)?
                {
                    return Ok(false);
                }
                // DataFusion looks at columns only to find out whether the left side may be NULL.
                let plain = matches!(*within.expr, Expr::Column(_));
                let depends = outer::depends(plan);
                Ok(negated == within.negated || plain && !depends)
            }
            _ => Ok(false),
        }
    }

    /// Whether DataFusion makes joins of all subqueries in `exprs`, which stand for values.
    pub(super) fn leaves(&self, exprs: &[Expr]) -> Result<bool> {
        let mut all = true;
        for expr in exprs {
            expr.apply(|e| {
                if let Expr::ScalarSubquery(subquery) = e {
                    all &= self.leaves_value(subquery)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(all)
    }

    fn leaves_value(&self, subquery: &Subquery) -> Result<bool> {
        let plan = &subquery.subquery;
        if !outer::depends(plan) {
            return Ok(true);
        }
        Ok(self.values_are_left
            && correlated::is_one_row(plan)
            && correlated::is_join(subquery, Place::Scalar, self.rows.schema())?)
    }

    /// `expr` with columns of the input in place of subqueries.
    pub(super) fn value(&mut self, expr: Expr) -> Result<Expr> {
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
            Expr::ScalarSubquery(subquery) if !self.leaves_value(&subquery)? => {
                Ok(Transformed::yes(self.scalar(&subquery)?))
            }
            e => Ok(Transformed::no(e)),
        })
        .data()
    }

    /// The value of the only row of `subquery`, which depends on the row outside.
    fn scalar(&mut self, subquery: &Subquery) -> Result<Expr> {
        let plan = subquery.subquery.as_ref();
        if let Some(found) = AsOf::of(plan, self.rows.schema(), self.names)? {
            let name = self.names.next("__scalar");
            let input = std::mem::replace(&mut self.input, nothing(false));
            let called = Column::new(Some(name.as_str()), VALUE);
            self.input = found.joined(input, JoinType::Left, &[called])?;
            return Ok(column(&name, VALUE));
        }
        let value = Expr::Column(Column::from(plan.schema().qualified_field(0)));
        let made = unnest::unnested(plan, &self.rows, self.names)?;
        let name = self.names.next("__scalar");
        let domain: Vec<Expr> = made.values.iter().cloned().map(Expr::Column).collect();
        let set = LogicalPlanBuilder::from(made.plan.clone());
        let set = if correlated::is_single(plan) {
            set.project(domain.into_iter().chain([value.alias(VALUE)]))?
        } else {
            set.aggregate(domain, [single(value).alias(VALUE)])?
        };
        let set = set.alias(name.as_str())?.build()?;
        let condition = made.belongs(self.rows.schema(), &name)?;
        let input = std::mem::replace(&mut self.input, nothing(false));
        self.input = LogicalPlanBuilder::from(input)
            .join_on(set, JoinType::Left, [condition])?
            .build()?;
        Ok(column(&name, VALUE))
    }

    fn exists(&mut self, exists: Exists) -> Result<Expr> {
        let Exists { subquery, negated } = exists;
        let any = if correlated::is_one_row(&subquery.subquery) {
            lit(true)
        } else if !outer::depends(&subquery.subquery) {
            let name = self.names.next("__exists");
            let set = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
                .limit(0, Some(1))?
                .aggregate(Vec::<Expr>::new(), vec![count(lit(1i64)).alias(ROWS)])?
                .alias(name.as_str())?
                .build()?;
            self.beside(set)?;
            column(&name, ROWS).gt(lit(0i64))
        } else {
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
            let theirs = if self.leaves_value(&subquery)? {
                Expr::ScalarSubquery(subquery)
            } else {
                self.scalar(&subquery)?
            };
            return Ok(binary_expr(mine, op, theirs));
        }
        let nullable = mine.nullable(self.input.schema())?
            || subquery.subquery.schema().field(0).is_nullable();
        if outer::depends(&subquery.subquery) {
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
        let input = std::mem::replace(&mut self.input, nothing(true));
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
        let place = if condition.is_none() {
            Place::Exists
        } else {
            Place::In
        };
        let (set, mut conditions) = if correlated::is_join(subquery, place, self.rows.schema())? {
            pulled_up(subquery, place, &name)?
        } else {
            self.made(subquery, &name)?
        };
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
        let input = std::mem::replace(&mut self.input, nothing(false));
        self.input = LogicalPlanBuilder::from(input)
            .join_on(set, JoinType::LeftMark, Some(condition))?
            .build()?;
        Ok(column(&name, "mark"))
    }

    /// The values of `subquery` for all rows, and the condition that they belong to a row. The set is to be `name`d.
    fn made(&self, subquery: &Subquery, name: &str) -> Result<(LogicalPlan, Vec<Expr>)> {
        let made = unnest::unnested(&values(subquery)?, &self.rows, self.names)?;
        let condition = made.belongs(self.rows.schema(), name)?;
        Ok((made.plan, vec![condition]))
    }
}
