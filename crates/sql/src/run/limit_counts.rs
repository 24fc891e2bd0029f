//! `limit` and `offset` of any expression without columns, as in `limit (select count(*) from t) / 2`: they are computed
//! before the query that they stand in, and are numbers in its plan.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::Array;
use datafusion_common::Result as Planned;
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, Limit, LogicalPlan, LogicalPlanBuilder};
use futures::TryStreamExt;

use crate::error::{Error, Result};
use crate::messages::types::type_name;
use crate::optimize::known_limits::is_plain;
use crate::run::context::StatementContext;
use crate::run::query;

/// Which of the two a number is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Clause {
    Limit,
    Offset,
}

impl Clause {
    fn name(self) -> &'static str {
        match self {
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
        }
    }
}

/// What was computed.
type Counts = HashMap<(Clause, Expr), Option<i64>>;

impl StatementContext {
    /// `plan` with numbers for all that its limits compute.
    ///
    /// # Errors
    /// Those of computing them; for what is no number of rows.
    pub(crate) async fn with_counts<'p>(
        &mut self,
        plan: &'p LogicalPlan,
    ) -> Result<Cow<'p, LogicalPlan>> {
        let wanted = wanted(plan)?;
        if wanted.is_empty() {
            return Ok(Cow::Borrowed(plan));
        }
        let mut counts = Counts::new();
        for (clause, expr) in wanted {
            if counts.contains_key(&(clause, expr.clone())) {
                continue;
            }
            let value = match &expr {
                Expr::Literal(value, _) => value.clone(),
                other => {
                    check(clause, other)?;
                    self.value_of(other).await?
                }
            };
            let is_written = matches!(expr, Expr::Literal(..));
            let count = count(clause, &value, is_written)?;
            counts.insert((clause, expr), count);
        }
        Ok(Cow::Owned(in_place(plan.clone(), &counts)?))
    }

    /// The value of an expression without columns.
    ///
    /// # Errors
    /// Those of computing it.
    pub(super) async fn value_of(&mut self, expr: &Expr) -> Result<ScalarValue> {
        let plan = LogicalPlanBuilder::empty(true)
            .project(vec![expr.clone().alias("value")])?
            .build()?;
        let mut rows = Box::pin(query::rows(self, &plan)).await?;
        let mut value = ScalarValue::try_from(plan.schema().field(0).data_type())?;
        while let Some(batch) = rows.try_next().await? {
            if let Some(column) = batch.columns().first()
                && !column.is_empty()
            {
                value = ScalarValue::try_from_array(column, 0)?;
            }
        }
        Ok(value)
    }
}

/// The clauses of a plan that are to be computed, in the order in which PostgreSQL does. Those that depend on rows outside are
/// none of them, and those within others are computed with these.
fn wanted(plan: &LogicalPlan) -> Result<Vec<(Clause, Expr)>> {
    let mut found = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for (clause, expr) in [(Clause::Offset, &limit.skip), (Clause::Limit, &limit.fetch)] {
                if let Some(expr) = expr
                    && !is_plain(Some(expr))
                    && is_alone(expr)?
                {
                    found.push((clause, (**expr).clone()));
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether an expression has a value of its own, without a row or a parameter.
fn is_alone(expr: &Expr) -> Planned<bool> {
    let depends = expr.exists(|expr| {
        Ok(match expr {
            Expr::Placeholder(_) | Expr::OuterReferenceColumn(..) => true,
            Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
            Expr::Exists(exists) => !exists.subquery.outer_ref_columns.is_empty(),
            Expr::InSubquery(membership) => !membership.subquery.outer_ref_columns.is_empty(),
            _ => false,
        })
    })?;
    Ok(!depends)
}

/// Refuses what has no value of its own.
fn check(clause: Clause, expr: &Expr) -> Result<()> {
    let name = clause.name();
    let mut wrong = None;
    expr.apply(|expr| {
        wrong = match expr {
            Expr::AggregateFunction(_) => Some(("42803", "aggregate functions")),
            Expr::WindowFunction(_) => Some(("42P20", "window functions")),
            Expr::Unnest(_) => Some(("0A000", "set-returning functions")),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    })?;
    match wrong {
        Some((code, what)) => Err(Error::coded(
            code,
            format!("{what} are not allowed in {name}"),
        )),
        None => Ok(()),
    }
}

/// The number of rows that a value is, as PostgreSQL assigns it to a `bigint`; none for NULL. A text is one only where it
/// `is_written` as a constant.
fn count(clause: Clause, value: &ScalarValue, is_written: bool) -> Result<Option<i64>> {
    let wide = |count: i128| i64::try_from(count).map_err(|_| out_of_range());
    let count = match value {
        value if value.is_null() => return Ok(None),
        ScalarValue::Int8(Some(count)) => i64::from(*count),
        ScalarValue::Int16(Some(count)) => i64::from(*count),
        ScalarValue::Int32(Some(count)) => i64::from(*count),
        ScalarValue::Int64(Some(count)) => *count,
        ScalarValue::UInt8(Some(count)) => i64::from(*count),
        ScalarValue::UInt16(Some(count)) => i64::from(*count),
        ScalarValue::UInt32(Some(count)) => i64::from(*count),
        ScalarValue::UInt64(Some(count)) => wide(i128::from(*count))?,
        ScalarValue::Decimal128(Some(digits), _, scale) => wide(rounded(*digits, *scale))?,
        ScalarValue::Decimal256(Some(digits), _, scale) => {
            let digits = digits.to_i128().ok_or_else(out_of_range)?;
            wide(rounded(digits, *scale))?
        }
        ScalarValue::Float32(Some(value)) => whole(f64::from(*value))?,
        ScalarValue::Float64(Some(value)) => whole(*value)?,
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
            if is_written =>
        {
            text.trim().parse().map_err(|_| {
                Error::coded(
                    "22P02",
                    format!("invalid input syntax for type bigint: \"{text}\""),
                )
            })?
        }
        other => {
            let data_type = other.data_type();
            let given = if data_type.is_string() {
                "text".to_owned()
            } else {
                type_name(&data_type)
            };
            return Err(Error::coded(
                "42804",
                format!(
                    "argument of {} must be type bigint, not type {given}",
                    clause.name()
                ),
            ));
        }
    };
    if count >= 0 {
        return Ok(Some(count));
    }
    let (code, name) = match clause {
        Clause::Limit => ("2201W", "LIMIT"),
        Clause::Offset => ("2201X", "OFFSET"),
    };
    Err(Error::coded(code, format!("{name} must not be negative")))
}

fn out_of_range() -> Error {
    Error::coded("22003", "bigint out of range")
}

/// The whole number nearest to one of so many digits behind the point; away from zero if two are.
fn rounded(digits: i128, scale: i8) -> i128 {
    let Ok(scale) = u32::try_from(scale) else {
        let zeros = 10_i128.checked_pow(scale.unsigned_abs().into());
        return zeros.map_or(i128::MAX, |zeros| digits.saturating_mul(zeros));
    };
    // Ten to the power of 38 is the largest there is; a number of less digits is next to nothing.
    let Some(one) = 10_i128.checked_pow(scale) else {
        return 0;
    };
    let rest = digits % one;
    let up = rest.unsigned_abs() >= one.unsigned_abs().div_ceil(2);
    digits / one + i128::from(up && scale > 0) * digits.signum()
}

/// The whole number nearest to a float; the even one if two are.
fn whole(value: f64) -> Result<i64> {
    /// Two to the power of 63, which no `bigint` is.
    const END: f64 = 9_223_372_036_854_775_808.0;
    let value = value.round_ties_even();
    if !(-END..END).contains(&value) {
        return Err(out_of_range());
    }
    Ok(value as i64)
}

/// `plan` with these numbers in their places.
fn in_place(plan: LogicalPlan, counts: &Counts) -> Result<LogicalPlan> {
    let number = |clause: Clause, expr: Option<Box<Expr>>| {
        expr.map(|expr| {
            let key = (clause, *expr);
            match counts.get(&key) {
                Some(count) => Box::new(Expr::Literal(ScalarValue::Int64(*count), None)),
                None => Box::new(key.1),
            }
        })
    };
    let replaced = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Limit(limit) => Ok(Transformed::yes(LogicalPlan::Limit(Limit {
            skip: number(Clause::Offset, limit.skip),
            fetch: number(Clause::Limit, limit.fetch),
            input: Arc::clone(&limit.input),
        }))),
        other => Ok(Transformed::no(other)),
    });
    Ok(replaced?.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_rounded_away_from_zero_and_floats_to_the_even_number() {
        for (digits, scale, count) in [
            (25, 1, 3),
            (15, 1, 2),
            (14, 1, 1),
            (-4, 1, 0),
            (-5, 1, -1),
            (7, 0, 7),
            (7, -2, 700),
            (1, 39, 0),
        ] {
            assert_eq!(rounded(digits, scale), count, "{digits} {scale}");
        }
        for (value, count) in [(2.5, 2), (3.5, 4), (-0.4, 0), (1e2, 100)] {
            assert_eq!(whole(value).unwrap(), count, "{value}");
        }
        for value in [
            1e30,
            -1e30,
            f64::NAN,
            f64::INFINITY,
            9_223_372_036_854_775_808.0,
        ] {
            assert_eq!(whole(value).unwrap_err().sqlstate(), "22003", "{value}");
        }
    }

    #[test]
    fn what_is_no_number_of_rows_is_refused() {
        let told = |value: ScalarValue, is_written| {
            let error = count(Clause::Limit, &value, is_written).unwrap_err();
            (error.sqlstate(), error.to_string())
        };
        let negative = count(Clause::Offset, &ScalarValue::from(-1_i64), true).unwrap_err();
        assert_eq!(negative.sqlstate(), "2201X");
        assert_eq!(
            told(ScalarValue::from(-1_i32), true),
            ("2201W", "LIMIT must not be negative".into())
        );
        assert_eq!(told(ScalarValue::from("x"), true).0, "22P02");
        assert_eq!(
            told(ScalarValue::from("2"), false),
            (
                "42804",
                "argument of LIMIT must be type bigint, not type text".into()
            )
        );
        assert_eq!(told(ScalarValue::from(true), true).0, "42804");
        let two = count(Clause::Limit, &ScalarValue::from("2"), true);
        assert_eq!(two.unwrap(), Some(2));
        assert_eq!(
            count(Clause::Limit, &ScalarValue::Null, true).unwrap(),
            None
        );
    }
}
