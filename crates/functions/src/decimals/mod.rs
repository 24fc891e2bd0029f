//! `NaN` and the infinities of decimals of 39 to 76 digits, which are [values](NotFinite) like others to whatever only compares
//! them: how they are [computed with](arithmetic), [cast](casts) (numbers that float: `floats`; texts: `exponents`), and [summed](totals); [functions](through) that leave them as
//! they are; and the refusal of all that knows nothing of them. Also how many digits products and quotients of decimals
//! [have](operators), and those that are rounded.
//!
//! Each way begins with one pass over the values, which nearly always finds that all are numbers; then it is DataFusion's way.

pub mod arithmetic;
pub mod bare;
pub mod casts;
pub(crate) mod exponents;
mod floats;
pub mod operators;
pub(crate) mod products;
pub(super) mod rounded;
pub mod through;
pub mod totals;

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array};
use arrow::datatypes::{DataType, Decimal256Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{Expr, ScalarUDF, lit};
use messages::Error;
use table::NotFinite;

use crate::own::Own;

/// The digits of a decimal that holds NaN or an infinity and whose type says none: all, and those behind the point.
pub const DIGITS: (u8, i8) = (76, 10);

/// The constant for NaN or an infinity, as a decimal with at least so many digits behind the point.
pub fn constant(own: NotFinite, scale: i8) -> Expr {
    let (precision, least) = DIGITS;
    let value = ScalarValue::Decimal256(Some(own.value()), precision, scale.max(least));
    Expr::Literal(value, None)
}

/// The name of the function that refuses NaN and infinities. Statements cannot write it.
pub const FINITE: &str = "finite numbers";

static ONLY_FINITE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        FINITE,
        |types| Ok(types.to_vec()),
        |types| Ok(types[0].clone()),
        finite,
    );
    Arc::new(own.into())
});

/// `value`, an argument of what is called `by`, which knows nothing of NaN and infinities: these are an error.
pub fn only_finite(value: Expr, by: &str) -> Expr {
    ONLY_FINITE.call(vec![value, lit(by)])
}

fn finite(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let Some(own) = table::not_finite(args[0].as_ref()) else {
        return Ok(Arc::clone(&args[0]));
    };
    let by = args[1].as_string_opt::<i32>();
    let by = by
        .filter(|by| !by.is_empty())
        .map_or("here", |by| by.value(0));
    Err(Error::unsupported(format!(
        "not supported: {} of type numeric in {by}: cast it to double precision",
        own.text()
    ))
    .into())
}

/// The decimals of an array, and whether some are no numbers.
fn decimals(array: &ArrayRef) -> Option<&Decimal256Array> {
    let own = array.as_primitive_opt::<Decimal256Type>()?;
    table::not_finite(own).is_some().then_some(own)
}

/// The number of digits, and of those behind the point, of a type of decimals that may hold what is no number.
fn digits(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Decimal256(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}
