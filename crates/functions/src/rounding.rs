//! Timestamps, times and intervals with so many digits of a second: `timestamp(2)`, `time(0)`, `interval(3)`.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type, IntervalUnit, TimeUnit};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{Expr, ScalarUDF, lit};
use messages::Error;
use messages::types::type_name;
use table::{timetz_type, to_second_digits};

use crate::lists::types::{is_list, plain};
use crate::own::Own;

/// The name of the function that rounds to digits of a second. Statements cannot write it.
pub const ROUND: &str = "round seconds";

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const TIME: DataType = DataType::Time64(TimeUnit::Nanosecond);

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        ROUND,
        |types| match types {
            [ty @ DataType::Timestamp(..), _] => Ok(vec![ty.clone(), DataType::Int64]),
            [DataType::Time32(_) | DataType::Time64(_), _] => Ok(vec![TIME, DataType::Int64]),
            [DataType::Interval(_), _] => Ok(vec![INTERVAL, DataType::Int64]),
            [ty, _] if *ty == timetz_type() => Ok(vec![timetz_type(), DataType::Int64]),
            [DataType::Null, _] => Ok(vec![DataType::Null, DataType::Int64]),
            [ty, _] if is_list(ty) => Ok(vec![plain(ty), DataType::Int64]),
            [ty, _] => plan_err!("a value of type {} has no seconds", type_name(ty)),
            _ => plan_err!("{ROUND} takes a value and a number of digits"),
        },
        |types| Ok(types[0].clone()),
        round,
    )]
}

static ROUNDED: LazyLock<Option<Arc<ScalarUDF>>> =
    LazyLock::new(|| all().pop().map(|own| Arc::new(own.into())));

/// `value`, a timestamp, with so many digits of its seconds.
pub fn rounded(value: Expr, digits: i64) -> Expr {
    match ROUNDED.as_ref() {
        Some(function) => function.call(vec![value, lit(digits)]),
        None => value,
    }
}

/// How many digits a unit has behind the second.
pub fn digits(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn round(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let wanted = args[1].as_primitive::<Int64Type>();
    // It is a constant.
    let wanted = wanted.iter().flatten().next().unwrap_or(9);
    let wanted = u8::try_from(wanted.clamp(0, 9)).unwrap_or(9);
    to_second_digits(&args[0], wanted).map_err(|e| {
        let message = e.to_string();
        Error::coded("22008", message).into()
    })
}
