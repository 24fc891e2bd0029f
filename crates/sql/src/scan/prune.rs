//! Which parts of a table a query need not read: row groups of files, chunks of arrays, of which the least and greatest values
//! are known.
//!
//! Only what certainly has no row that passes is left out: what cannot be told of a part, by a filter that is not understood
//! or a value that is not known, keeps it.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar, UInt64Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp;
use arrow::compute::{CastOptions, and, cast_with_options, not, or};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::expr::{InList, Like};
use datafusion_expr::{Between, BinaryExpr, Expr, Operator};

/// Most values of `in` that are looked at.
const MOST_VALUES: usize = 1_000;

/// What is known of one column: of each part the least value, the greatest, and the number of NULLs. A NULL says that it is
/// not known.
#[derive(Clone, Debug)]
pub(crate) struct ZoneBounds {
    pub min: ArrayRef,
    pub max: ArrayRef,
    pub nulls: UInt64Array,
}

/// Zones of a table of which something is known.
pub(crate) trait Zones {
    /// How many there are.
    fn count(&self) -> usize;

    /// What is known of the column of that name.
    fn bounds(&self, column: &str) -> Option<ZoneBounds>;
}

/// For each part whether it may have rows that pass all `filters` over columns of `schema`; none if all of them may.
pub(crate) fn kept(filters: &[Expr], schema: &Schema, zones: &dyn Zones) -> Option<Vec<bool>> {
    let pruning = Pruning { schema, zones };
    let mut all: Option<BooleanArray> = None;
    for filter in filters {
        all = both(all, pruning.may_be(filter));
    }
    let all = all?;
    Some(all.values().iter().collect())
}

struct Pruning<'a> {
    schema: &'a Schema,
    zones: &'a dyn Zones,
}

/// The parts that pass both tests, of which one that says nothing passes all.
fn both(one: Option<BooleanArray>, other: Option<BooleanArray>) -> Option<BooleanArray> {
    match (one, other) {
        (Some(one), Some(other)) => and(&one, &other).ok(),
        (one, other) => one.or(other),
    }
}

/// The parts that pass one of two tests.
fn either(one: Option<BooleanArray>, other: Option<BooleanArray>) -> Option<BooleanArray> {
    or(&one?, &other?).ok()
}

/// A test whose NULLs, of what is not known, pass.
fn or_unknown(test: BooleanArray) -> BooleanArray {
    match test.nulls() {
        None => test,
        Some(known) => BooleanArray::new(test.values() | &!known.inner(), None),
    }
}

impl Pruning<'_> {
    /// The parts in which `expr` may be true for a row; none if nothing can be told.
    fn may_be(&self, expr: &Expr) -> Option<BooleanArray> {
        match expr {
            Expr::Literal(value, _) => match value {
                ScalarValue::Boolean(Some(true)) => None,
                ScalarValue::Boolean(_) | ScalarValue::Null => Some(self.none()),
                _ => None,
            },
            Expr::Alias(alias) => self.may_be(&alias.expr),
            Expr::IsTrue(inner) => self.may_be(inner),
            Expr::IsFalse(inner) => self.may_be_false(inner),
            Expr::Not(inner) => self.may_be_false(inner),
            Expr::Column(_) => self.compared(expr, Operator::Eq, &ScalarValue::Boolean(Some(true))),
            Expr::IsNull(inner) => match &**inner {
                Expr::Column(column) => {
                    let nulls = self.zones.bounds(&column.name)?.nulls;
                    let none = Scalar::new(UInt64Array::from(vec![0]));
                    cmp::neq(&nulls, &none).ok().map(or_unknown)
                }
                _ => None,
            },
            Expr::BinaryExpr(binary) => self.binary(binary),
            Expr::Between(between) if !between.negated => self.between(between),
            Expr::InList(list) if !list.negated => self.in_list(list),
            Expr::Like(like) if !like.negated && !like.case_insensitive => self.like(like),
            _ => None,
        }
    }

    /// The parts in which `expr` may be false for a row.
    fn may_be_false(&self, expr: &Expr) -> Option<BooleanArray> {
        match expr {
            Expr::Column(_) => {
                self.compared(expr, Operator::Eq, &ScalarValue::Boolean(Some(false)))
            }
            Expr::Not(inner) => self.may_be(inner),
            Expr::BinaryExpr(binary) => match binary.op {
                Operator::And => either(
                    self.may_be_false(&binary.left),
                    self.may_be_false(&binary.right),
                ),
                Operator::Or => both(
                    self.may_be_false(&binary.left),
                    self.may_be_false(&binary.right),
                ),
                op => self.binary(&BinaryExpr {
                    op: op.negate()?,
                    ..binary.clone()
                }),
            },
            _ => None,
        }
    }

    /// No part.
    fn none(&self) -> BooleanArray {
        BooleanArray::new(BooleanBuffer::new_unset(self.zones.count()), None)
    }

    fn binary(&self, binary: &BinaryExpr) -> Option<BooleanArray> {
        let BinaryExpr { left, op, right } = binary;
        match (op, &**left, &**right) {
            (Operator::And, left, right) => both(self.may_be(left), self.may_be(right)),
            (Operator::Or, left, right) => either(self.may_be(left), self.may_be(right)),
            (op, value, Expr::Literal(constant, _)) => self.compared(value, *op, constant),
            (op, Expr::Literal(constant, _), value) => self.compared(value, op.swap()?, constant),
            _ => None,
        }
    }

    fn between(&self, between: &Between) -> Option<BooleanArray> {
        let end = |op, end: &Expr| match end {
            Expr::Literal(constant, _) => self.compared(&between.expr, op, constant),
            _ => None,
        };
        both(
            end(Operator::GtEq, &between.low),
            end(Operator::LtEq, &between.high),
        )
    }

    fn in_list(&self, list: &InList) -> Option<BooleanArray> {
        if list.list.len() > MOST_VALUES {
            return None;
        }
        let range = self.range(&list.expr)?;
        let mut found = self.none();
        for value in &list.list {
            let Expr::Literal(constant, _) = value else {
                return None;
            };
            found = or(&found, &self.within(&range, Operator::Eq, constant)?).ok()?;
        }
        Some(found)
    }

    /// The parts in which `value op constant` may be true.
    fn compared(&self, value: &Expr, op: Operator, constant: &ScalarValue) -> Option<BooleanArray> {
        self.within(&self.range(value)?, op, constant)
    }

    /// The same of a value whose least and greatest are known.
    fn within(
        &self,
        (min, max): &(ArrayRef, ArrayRef),
        op: Operator,
        constant: &ScalarValue,
    ) -> Option<BooleanArray> {
        if constant.is_null() {
            let is_never_true = matches!(
                op,
                Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
            );
            return is_never_true.then(|| self.none());
        }
        // Zeros of both signs are equal in SQL, but not to the kernels.
        if matches!(constant, ScalarValue::Float64(Some(zero)) if *zero == 0.0)
            || matches!(constant, ScalarValue::Float32(Some(zero)) if *zero == 0.0)
        {
            return None;
        }
        let wanted = constant.data_type();
        let (min, max) = if is_text(min.data_type()) && is_text(&wanted) {
            (cast(min, &wanted)?, cast(max, &wanted)?)
        } else {
            (ArrayRef::clone(min), ArrayRef::clone(max))
        };
        if *min.data_type() != wanted {
            return None;
        }
        let constant = constant.to_scalar().ok()?;
        let test = match op {
            Operator::Eq | Operator::IsNotDistinctFrom => {
                let low = or_unknown(cmp::lt_eq(&min, &constant).ok()?);
                let high = or_unknown(cmp::gt_eq(&max, &constant).ok()?);
                and(&low, &high)
            }
            Operator::NotEq => {
                let low = cmp::eq(&min, &constant).ok()?;
                let high = cmp::eq(&max, &constant).ok()?;
                and(&low, &high).and_then(|only| not(&only))
            }
            Operator::Lt => cmp::lt(&min, &constant),
            Operator::LtEq => cmp::lt_eq(&min, &constant),
            Operator::Gt => cmp::gt(&max, &constant),
            Operator::GtEq => cmp::gt_eq(&max, &constant),
            _ => return None,
        };
        test.ok().map(or_unknown)
    }

    /// The least and the greatest value of an expression in each part: of a column, also one that is cast so that the order
    /// of its values stays.
    fn range(&self, expr: &Expr) -> Option<(ArrayRef, ArrayRef)> {
        match expr {
            Expr::Column(column) => {
                let own = self.schema.field_with_name(&column.name).ok()?.data_type();
                let ZoneBounds { min, max, .. } = self.zones.bounds(&column.name)?;
                Some((cast(&min, own)?, cast(&max, own)?))
            }
            Expr::Cast(to) => {
                let (min, max) = self.range(&to.expr)?;
                let to = to.field.data_type();
                if !is_ordered_alike(min.data_type(), to) {
                    return None;
                }
                Some((cast(&min, to)?, cast(&max, to)?))
            }
            _ => None,
        }
    }

    /// The parts that may have texts with the beginning that a pattern asks for.
    fn like(&self, like: &Like) -> Option<BooleanArray> {
        let Expr::Literal(pattern, _) = &*like.pattern else {
            return None;
        };
        let pattern = pattern.try_as_str()??;
        let end = pattern.find(['%', '_', '\\'])?;
        let beginning = &pattern.as_bytes()[..end];
        if beginning.is_empty() || like.escape_char.is_some() {
            return None;
        }
        let (min, max) = self.range(&like.expr)?;
        if !is_text(min.data_type()) {
            return None;
        }
        let (min, max) = (cast(&min, &DataType::Utf8)?, cast(&max, &DataType::Utf8)?);
        let (min, max) = (min.as_string::<i32>(), max.as_string::<i32>());
        let test = min.iter().zip(max).map(|(min, max)| {
            let low = min.is_none_or(|min| {
                let min = min.as_bytes();
                min[..min.len().min(beginning.len())] <= *beginning
            });
            let high = max.is_none_or(|max| max.as_bytes() >= beginning);
            Some(low && high)
        });
        Some(test.collect())
    }
}

fn is_text(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Whether values cast from one type to another keep their order, or become equal.
fn is_ordered_alike(from: &DataType, to: &DataType) -> bool {
    let is_moment = |of: &DataType| {
        matches!(
            of,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)
        )
    };
    from == to
        || from.is_numeric() && to.is_numeric()
        || is_moment(from) && is_moment(to)
        || is_text(from) && is_text(to)
}

/// A cast whose values that do not fit are not known.
fn cast(values: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    if values.data_type() == to {
        return Some(ArrayRef::clone(values));
    }
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    cast_with_options(values, to, &options).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::Field;
    use datafusion_expr::{col, in_list, lit};

    use super::*;

    /// Four parts: 1 to 5, 6 to 9, 6 to 6, and one of which nothing is known.
    struct Four;

    impl Zones for Four {
        fn count(&self) -> usize {
            4
        }

        fn bounds(&self, column: &str) -> Option<ZoneBounds> {
            let nulls = UInt64Array::from(vec![Some(0), Some(2), Some(0), None]);
            let (min, max): (ArrayRef, ArrayRef) = match column {
                "a" => (
                    Arc::new(Int64Array::from(vec![Some(1), Some(6), Some(6), None])),
                    Arc::new(Int64Array::from(vec![Some(5), Some(9), Some(6), None])),
                ),
                "t" => (
                    Arc::new(StringArray::from(vec![
                        Some("ab"),
                        Some("b"),
                        Some("c"),
                        None,
                    ])),
                    Arc::new(StringArray::from(vec![
                        Some("ax"),
                        Some("bz"),
                        Some("c"),
                        None,
                    ])),
                ),
                _ => return None,
            };
            Some(ZoneBounds { min, max, nulls })
        }
    }

    fn kept(filter: Expr) -> Option<[bool; 4]> {
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("t", DataType::Utf8View, true),
            Field::new("other", DataType::Int64, true),
        ]);
        let found = super::kept(&[filter], &schema, &Four)?;
        Some(found.try_into().unwrap())
    }

    #[test]
    fn parts_without_a_row_that_passes_are_left_out() {
        let a = || col("a");
        for (filter, wanted) in [
            (a().eq(lit(5i64)), [true, false, false, true]),
            (a().gt(lit(5i64)), [false, true, true, true]),
            (lit(5i64).gt_eq(a()), [true, false, false, true]),
            (a().lt(lit(1i64)), [false, false, false, true]),
            (a().lt_eq(lit(1i64)), [true, false, false, true]),
            (a().gt_eq(lit(9i64)), [false, true, false, true]),
            (a().not_eq(lit(6i64)), [true, true, false, true]),
            (!a().eq(lit(6i64)), [true, true, false, true]),
            (!a().lt(lit(6i64)), [false, true, true, true]),
            (
                a().between(lit(7i64), lit(20i64)),
                [false, true, false, true],
            ),
            (a().is_null(), [false, true, false, true]),
            (
                in_list(a(), vec![lit(2i64), lit(6i64)], false),
                [true, true, true, true],
            ),
            (
                in_list(a(), vec![lit(0i64), lit(7i64)], false),
                [false, true, false, true],
            ),
            (
                a().eq(lit(2i64)).or(a().eq(lit(8i64))),
                [true, true, false, true],
            ),
            (
                a().gt(lit(5i64)).and(col("other").eq(lit(1i64))),
                [false, true, true, true],
            ),
            (
                datafusion_expr::cast(a(), DataType::Float64).gt(lit(8.5)),
                [false, true, false, true],
            ),
            (col("t").eq(lit("b")), [false, true, false, true]),
            (col("t").like(lit("b%")), [false, true, false, true]),
            (col("t").like(lit("a_c")), [true, false, false, true]),
            (lit(false), [false; 4]),
            (a().eq(lit(ScalarValue::Int64(None))), [false; 4]),
        ] {
            assert_eq!(kept(filter.clone()), Some(wanted), "{filter}");
        }
    }

    #[test]
    fn what_is_not_understood_leaves_nothing_out() {
        for filter in [
            lit(true),
            col("other").eq(lit(1i64)),
            (col("a") + lit(1i64)).eq(lit(100i64)),
            col("a").eq(lit(100i64)).or(col("other").eq(lit(1i64))),
            datafusion_expr::cast(col("t"), DataType::Int64).eq(lit(100i64)),
            datafusion_expr::cast(col("a"), DataType::Float64).eq(lit(-0.0)),
            col("t").like(lit("%b")),
            col("t").ilike(lit("b%")),
            col("t").not_like(lit("b%")),
            col("a").is_not_null(),
            col("a").eq(col("other")),
        ] {
            assert_eq!(kept(filter.clone()), None, "{filter}");
        }
    }
}
