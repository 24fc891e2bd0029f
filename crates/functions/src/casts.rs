//! Casts that differ from DataFusion's.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    ArrayRef, AsArray, Float32Array, Float64Array, PrimitiveArray, TimestampNanosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int64Type, TimeUnit, TimestampNanosecondType,
};
use chrono::{DateTime, Utc};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use table::Infinity;

use crate::arguments::nanoseconds;
use crate::own::Own;

/// The name of the function that rounds numbers that float before they become whole ones.
pub const HALF_EVEN: &str = "round_half_even";

static ROUND: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        HALF_EVEN,
        |types| Ok(vec![DataType::Float64; types.len()]),
        |_| Ok(DataType::Float64),
        round,
    );
    Arc::new(own.into())
});

/// `value`, a floating-point number, rounded half to even, as a double.
pub fn round_half_even(value: Expr) -> Expr {
    ROUND.call(vec![value])
}

fn round(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let values = cast(&args[0], &DataType::Float64)?;
    let rounded: Float64Array = values
        .as_primitive::<Float64Type>()
        .unary(f64::round_ties_even);
    Ok(Arc::new(rounded))
}

static REAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        "real",
        |types| Ok(vec![DataType::Float64; types.len()]),
        |_| Ok(DataType::Float32),
        narrow,
    );
    Arc::new(own.into())
});

/// `value`, a double, as a real; an error if it is too great or too near to zero for one.
pub fn real(value: Expr) -> Expr {
    REAL.call(vec![value])
}

fn narrow(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let of = |value: f64| {
        let real = value as f32;
        if real.is_infinite() && value.is_finite() {
            return exec_err!("value out of range: overflow");
        }
        if real == 0.0 && value != 0.0 {
            return exec_err!("value out of range: underflow");
        }
        Ok(real)
    };
    let values = args[0].as_primitive::<Float64Type>();
    let found = values.iter().map(|value| value.map(of).transpose());
    Ok(Arc::new(found.collect::<Result<Float32Array>>()?))
}

/// A date as a timestamp in nanoseconds; an error if it is out of their range.
pub fn date_to_nanoseconds(date: Expr, to: &DataType) -> Expr {
    let function = ScalarUDF::from(To {
        to: to.clone(),
        signature: Signature::any(1, Volatility::Immutable),
    });
    Arc::new(function).call(vec![date])
}

static NANOSECONDS_OR_END: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let returns = |types: &[DataType]| match types {
        [DataType::Timestamp(_, zone)] => {
            Ok(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()))
        }
        _ => plan_err!("a timestamp can only be compared with a timestamp"),
    };
    let own = Own::new(
        "nanoseconds_or_end",
        |types| Ok(types.to_vec()),
        returns,
        saturated,
    );
    Arc::new(own.into())
});

/// A timestamp in nanoseconds, for comparisons. One that is out of their range becomes the least or greatest of them that is
/// finite.
pub fn nanoseconds_or_end(stamp: Expr) -> Expr {
    NANOSECONDS_OR_END.call(vec![stamp])
}

fn saturated(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, zone) = args[0].data_type() else {
        return plan_err!("a timestamp can only be compared with a timestamp");
    };
    let factor = nanoseconds(*unit);
    let counts = cast(&args[0], &DataType::Int64)?;
    let stamps: TimestampNanosecondArray =
        counts
            .as_primitive::<Int64Type>()
            .unary(|count| match Infinity::of_count(count) {
                Some(infinity) => infinity.count(),
                None => count
                    .saturating_mul(factor)
                    .clamp(1 - i64::MAX, i64::MAX - 1),
            });
    Ok(Arc::new(stamps.with_timezone_opt(zone.clone())))
}

/// A cast of dates to timestamps in nanoseconds.
#[derive(Debug, PartialEq, Eq, Hash)]
struct To {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for To {
    fn name(&self) -> &str {
        "timestamp"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [arg] = &args.args[..] else {
            return plan_err!("a cast takes one value");
        };
        let constant = matches!(arg, ColumnarValue::Scalar(_));
        let values = arg.to_array(if constant { 1 } else { args.number_rows })?;
        let found = self.date(&values)?;
        if constant {
            Ok(ColumnarValue::Scalar(
                datafusion_common::ScalarValue::try_from_array(&found, 0)?,
            ))
        } else {
            Ok(ColumnarValue::Array(found))
        }
    }
}

impl To {
    fn date(&self, values: &ArrayRef) -> Result<ArrayRef> {
        const DAY: i64 = 86_400_000_000_000;
        let days = values.as_primitive::<Date32Type>();
        let stamps: PrimitiveArray<TimestampNanosecondType> = days.try_unary(|day| {
            if let Some(infinity) = Infinity::of_day(day) {
                return Ok(infinity.count());
            }
            i64::from(day).checked_mul(DAY).ok_or_else(|| {
                arrow::error::ArrowError::ComputeError(format!(
                    "the date {} is out of range for a timestamp of nanoseconds",
                    Date32Type::to_naive_date_opt(day)
                        .map_or_else(|| day.to_string(), |date| date.to_string())
                ))
            })
        })?;
        match &self.to {
            DataType::Timestamp(_, Some(zone)) => {
                let stamps: TimestampNanosecondArray = stamps;
                Ok(Arc::new(stamps.with_timezone(Arc::clone(zone))))
            }
            _ => Ok(Arc::new(stamps)),
        }
    }
}

/// The instant of a count of microseconds since 1970.
pub(super) fn instant(micros: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
}
