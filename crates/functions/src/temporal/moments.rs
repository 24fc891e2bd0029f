//! Sums and differences of dates, timestamps and intervals of which some may be infinite.
//!
//! Arrow's arithmetic does the work; what is infinite is taken out before, and put back. The same of writing them as Arrow does.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Datum, Int64Array, StringViewArray};
use arrow::compute::cast;
use arrow::compute::kernels::numeric::{add, sub};
use arrow::datatypes::{DataType, Int64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_common::DataFusionError;
use datafusion_common::{Result, internal_err};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion_physical_expr_common::datum::apply;
use messages::Error;
use table::{finite_part, has_infinite, infinity_at};

use crate::arguments::TEXT;
use crate::own::Own;

static PLUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Guarded::new("+").into()));
static MINUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Guarded::new("-").into()));

fn is_moment(ty: &DataType) -> bool {
    matches!(ty, DataType::Date32 | DataType::Timestamp(_, _))
}

/// The sum or difference of two values of these types of which one is a date or timestamp; none of others. It must come after
/// type coercion.
pub fn guarded(binary: &BinaryExpr, left: &DataType, right: &DataType) -> Option<Expr> {
    let function = match binary.op {
        Operator::Plus => &PLUS,
        Operator::Minus => &MINUS,
        _ => return None,
    };
    let operands = || vec![(*binary.left).clone(), (*binary.right).clone()];
    (is_moment(left) || is_moment(right)).then(|| function.call(operands()))
}

/// The error for what is infinite and subtracted, or subtracted from; `what` are dates or timestamps.
pub(crate) fn not_subtracted(what: &str) -> DataFusionError {
    Error::coded("22008", format!("cannot subtract infinite {what}")).into()
}

static WRITTEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let takes = |types: &[DataType]| Ok(types.to_vec());
    let run = |args: &[ArrayRef], _| plain_texts(&args[0]);
    Arc::new(Own::new("written in a file", takes, |_| Ok(TEXT), run).into())
});

/// A date or timestamp as the text that files have of it.
pub fn written_in_file(value: Expr) -> Expr {
    WRITTEN.call(vec![value])
}

/// Dates or timestamps as texts, as Arrow writes them but for those that are infinite.
///
/// # Errors
/// For a value that has no date.
pub fn plain_texts(values: &ArrayRef) -> Result<ArrayRef> {
    let options = FormatOptions::default();
    let format = ArrayFormatter::try_new(values.as_ref(), &options)?;
    let of = |row: usize| match infinity_at(values, row) {
        Some(infinity) => Ok(infinity.text().to_string()),
        None => format.value(row).try_to_string(),
    };
    let texts = (0..values.len()).map(|row| values.is_valid(row).then(|| of(row)).transpose());
    let texts = texts.collect::<Result<StringViewArray, ArrowError>>()?;
    Ok(Arc::new(texts))
}

/// An operator.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Guarded {
    operator: &'static str,
    signature: Signature,
}

impl Guarded {
    fn new(operator: &'static str) -> Guarded {
        Guarded {
            operator,
            signature: Signature::any(2, Volatility::Immutable),
        }
    }

    /// What Arrow makes of finite values.
    fn finite(&self, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
        if self.operator == "+" {
            return add(left, right);
        }
        let found = sub(left, right)?;
        let of_dates = [left, right]
            .iter()
            .all(|side| *side.get().0.data_type() == DataType::Date32);
        if !of_dates {
            return Ok(found);
        }
        // Seconds, of which as many as a day has are a day.
        let seconds = cast(&found, &DataType::Int64)?;
        let days: Int64Array = seconds
            .as_primitive::<Int64Type>()
            .unary(|seconds| seconds / 86_400);
        Ok(Arc::new(days))
    }

    /// The same of values of which some are infinite.
    fn of_all(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        let (own, other) = (finite_part(left), finite_part(right));
        let (l, r) = (
            own.as_ref().map_or(left, |(finite, _)| finite),
            other.as_ref().map_or(right, |(finite, _)| finite),
        );
        let found = self.finite(l, r)?;
        if is_moment(left.data_type()) && is_moment(right.data_type()) {
            let sides = [(&own, right), (&other, left)];
            let any = sides.into_iter().any(|(side, beside)| {
                side.as_ref().is_some_and(|(_, infinities)| {
                    let mut rows = infinities.iter().enumerate();
                    rows.any(|(row, infinity)| infinity.is_some() && beside.is_valid(row))
                })
            });
            return match (any, left.data_type()) {
                (false, _) => Ok(found),
                (true, DataType::Date32) => Err(not_subtracted("dates")),
                (true, _) => Err(not_subtracted("timestamps")),
            };
        }
        let (infinities, beside) = match (own, other) {
            (Some((_, infinities)), _) => (infinities, right),
            (None, Some((_, infinities))) => (infinities, left),
            (None, None) => return Ok(found),
        };
        // Where what is added is NULL, the sum is.
        Ok(infinities.beside(beside.as_ref()).put_into(found))
    }
}

impl ScalarUDFImpl for Guarded {
    fn name(&self) -> &str {
        self.operator
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [left, right] = types else {
            return internal_err!("{} takes two operands", self.operator);
        };
        let operator = match self.operator {
            "+" => Operator::Plus,
            _ => Operator::Minus,
        };
        BinaryTypeCoercer::new(left, &operator, right).get_result_type()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("{} takes two operands", self.operator);
        };
        let may_be_infinite = |side: &ColumnarValue| match side {
            ColumnarValue::Array(values) => Ok(has_infinite(values)),
            ColumnarValue::Scalar(value) => value.to_array().map(|values| has_infinite(&values)),
        };
        if !may_be_infinite(left)? && !may_be_infinite(right)? {
            return apply(left, right, |left, right| self.finite(left, right));
        }
        let constants = [left, right].map(|side| matches!(side, ColumnarValue::Scalar(_)));
        let constant = constants == [true, true];
        let rows = if constant { 1 } else { args.number_rows };
        let found = self.of_all(&left.to_array(rows)?, &right.to_array(rows)?)?;
        if constant {
            let found = datafusion_common::ScalarValue::try_from_array(&found, 0)?;
            return Ok(ColumnarValue::Scalar(found));
        }
        Ok(ColumnarValue::Array(found))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, IntervalMonthDayNanoArray, TimestampMicrosecondArray};
    use arrow::datatypes::{IntervalMonthDayNano, TimestampMicrosecondType};

    use super::*;

    #[test]
    fn what_is_infinite_stays_so_whatever_is_added() {
        let stamps: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
            Some(i64::MAX),
            Some(0),
            Some(-i64::MAX),
            Some(i64::MAX),
            None,
        ]));
        let day = Some(IntervalMonthDayNano::new(0, 1, 0));
        let days: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![
            day, day, day, None, day,
        ]));
        for (operator, wanted) in [("+", 86_400_000_000), ("-", -86_400_000_000)] {
            let found = Guarded::new(operator).of_all(&stamps, &days).unwrap();
            let found: Vec<_> = found
                .as_primitive::<TimestampMicrosecondType>()
                .iter()
                .collect();
            let ends = (Some(i64::MAX), Some(-i64::MAX));
            assert_eq!(found, [ends.0, Some(wanted), ends.1, None, None]);
        }
    }

    #[test]
    fn what_is_infinite_is_not_subtracted() {
        let of = |days: [Option<i32>; 2]| Arc::new(Date32Array::from(days.to_vec())) as ArrayRef;
        let minus = |left, right| Guarded::new("-").of_all(&of(left), &of(right));
        let found = minus([Some(10), Some(i32::MAX)], [Some(4), None]).unwrap();
        let found = found.as_primitive::<Int64Type>();
        assert_eq!((found.value(0), found.is_null(1)), (6, true));
        let wrong = minus([Some(10), Some(3)], [Some(4), Some(-i32::MAX)]).unwrap_err();
        assert!(wrong.to_string().contains("cannot subtract infinite dates"));
    }
}
