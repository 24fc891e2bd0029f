//! Doubles and reals as keys: in PostgreSQL there is one zero and one NaN, and Arrow compares their bits.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion_common::plan_err;
use datafusion_expr::{Expr, ScalarUDF};
use messages::types::type_name;

use crate::own::Own;

/// The name of the function, which statements cannot write.
const NAME: &str = "one zero";

static LEVEL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        NAME,
        |types| match types {
            [ty] if ty.is_floating() => Ok(vec![ty.clone()]),
            [ty] => plan_err!("a value of type {} has one zero", type_name(ty)),
            _ => plan_err!("{NAME} takes a value"),
        },
        |types| Ok(types[0].clone()),
        |args, _| Ok(levelled(&args[0])),
    );
    Arc::new(own.into())
});

/// `value`, a float, with one zero and one NaN.
pub fn level(value: Expr) -> Expr {
    LEVEL.call(vec![value])
}

/// Whether a value has one zero and one NaN already.
pub fn is_level(value: &Expr) -> bool {
    matches!(value, Expr::ScalarFunction(function) if function.func.name() == NAME)
}

fn levelled(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let values = values.as_primitive::<Float32Type>();
            // The sum of zeros of both signs is the positive one.
            Arc::new(
                values.unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x + 0.0 }),
            )
        }
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>();
            Arc::new(
                values.unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x + 0.0 }),
            )
        }
        _ => Arc::clone(values),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    #[test]
    fn zeros_and_nans_are_the_same_bits() {
        let odd = f64::from_bits(f64::NAN.to_bits() ^ (1 << 63) ^ 1);
        let values: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, odd, -1.5]));
        let level = levelled(&values);
        let bits: Vec<u64> = level
            .as_primitive::<Float64Type>()
            .values()
            .iter()
            .map(|x| x.to_bits())
            .collect();
        assert_eq!(bits[0], bits[1]);
        assert_eq!(bits[2], bits[3]);
        assert_eq!(bits[4], (-1.5f64).to_bits());
    }
}
