//! Variances, standard deviations, covariances and regressions, by the sums of Youngs and Cramer that PostgreSQL keeps.
//!
//! DataFusion keeps means, whose last digits are others: `covar_pop` of six whole numbers was 1.4999999999999993 instead of 1.5.
//! And where finite numbers have sums that are not, it has an infinity or a NaN, and PostgreSQL an error.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature};
use messages::Error;

use crate::registry::Registry;

/// What is made of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Found {
    Variance { of_sample: bool, is_root: bool },
    Covariance { of_sample: bool },
    Correlation,
    Count,
    AverageX,
    AverageY,
    SquaresX,
    SquaresY,
    Products,
    Slope,
    Intercept,
    Determination,
}

/// The functions, by DataFusion's names.
const ALL: [(&str, Found); 16] = [
    ("var", variance(true, false)),
    ("var_pop", variance(false, false)),
    ("stddev", variance(true, true)),
    ("stddev_pop", variance(false, true)),
    ("covar_samp", Found::Covariance { of_sample: true }),
    ("covar_pop", Found::Covariance { of_sample: false }),
    ("corr", Found::Correlation),
    ("regr_count", Found::Count),
    ("regr_avgx", Found::AverageX),
    ("regr_avgy", Found::AverageY),
    ("regr_sxx", Found::SquaresX),
    ("regr_syy", Found::SquaresY),
    ("regr_sxy", Found::Products),
    ("regr_slope", Found::Slope),
    ("regr_intercept", Found::Intercept),
    ("regr_r2", Found::Determination),
];

const fn variance(of_sample: bool, is_root: bool) -> Found {
    Found::Variance { of_sample, is_root }
}

/// All of them.
pub(super) fn all(registry: &Registry) -> Vec<Arc<AggregateUDF>> {
    let all = ALL.iter().filter_map(|(name, found)| {
        let inner = Arc::clone(registry.aggregates().get(*name)?);
        let found = *found;
        Some(Arc::new(AggregateUDF::from(Deviation { inner, found })))
    });
    all.collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Deviation {
    /// DataFusion's, which computes it of distinct values.
    inner: Arc<AggregateUDF>,
    found: Found,
}

impl AggregateUDFImpl for Deviation {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self.found {
            Found::Count => Ok(DataType::Int64),
            _ => self.inner.return_type(types),
        }
    }

    fn is_nullable(&self) -> bool {
        self.found != Found::Count
    }

    fn default_value(&self, ty: &DataType) -> Result<ScalarValue> {
        match self.found {
            Found::Count => Ok(ScalarValue::Int64(Some(0))),
            _ => ScalarValue::try_from(ty),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return self.inner.accumulator(args);
        }
        Ok(Box::new(Sums {
            found: self.found,
            sums: [0.0; SUMS],
        }))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            return self.inner.state_fields(args);
        }
        let names = ["count", "x", "xx", "y", "yy", "xy"];
        let field = |name: &str| {
            let name = format_state_name(args.name, name);
            Arc::new(Field::new(name, DataType::Float64, true))
        };
        Ok(names.into_iter().map(field).collect())
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// How many sums there are.
const SUMS: usize = 6;

/// The number of rows, the sum of `x`, that of the squares of its differences from the mean, the same of `y`, and the sum of the
/// products of both differences.
#[derive(Debug)]
struct Sums {
    found: Found,
    sums: [f64; SUMS],
}

fn overflow() -> Error {
    Error::coded("22003", "value out of range: overflow")
}

/// A sum of squares or products; one that is infinite is no number.
fn no_infinity(sum: f64) -> f64 {
    if sum.is_infinite() { f64::NAN } else { sum }
}

impl Sums {
    /// Adds a row.
    ///
    /// # Errors
    /// If finite values have a sum that is not.
    fn add(&mut self, x: f64, y: f64) -> Result<(), Error> {
        let [before, old_x, mut xx, old_y, mut yy, mut xy] = self.sums;
        let (count, sum_x, sum_y) = (before + 1.0, old_x + x, old_y + y);
        if before > 0.0 {
            let (apart_x, apart_y) = (x * count - sum_x, y * count - sum_y);
            if matches!(self.found, Found::Variance { .. }) {
                xx += apart_x * apart_x / (count * before);
            } else {
                let scale = 1.0 / (count * before);
                xx += apart_x * apart_x * scale;
                yy += apart_y * apart_y * scale;
                xy += apart_x * apart_y * scale;
            }
            let is_odd = |one: f64, other: f64| one.is_infinite() || other.is_infinite();
            let finite_x = !is_odd(old_x, x);
            let finite_y = !is_odd(old_y, y);
            if is_odd(sum_x, xx) && finite_x
                || is_odd(sum_y, yy) && finite_y
                || xy.is_infinite() && finite_x && finite_y
            {
                return Err(overflow());
            }
            (xx, yy, xy) = (no_infinity(xx), no_infinity(yy), no_infinity(xy));
            if sum_x.is_infinite() {
                xx = f64::NAN;
            }
            if sum_y.is_infinite() {
                yy = f64::NAN;
            }
        } else {
            if !x.is_finite() {
                (xx, xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (yy, xy) = (f64::NAN, f64::NAN);
            }
        }
        self.sums = [count, sum_x, xx, sum_y, yy, xy];
        Ok(())
    }

    /// Adds the sums of other rows.
    ///
    /// # Errors
    /// As [`Sums::add`].
    fn merge(&mut self, other: [f64; SUMS]) -> Result<(), Error> {
        let [before, x, xx, y, yy, xy] = self.sums;
        let [more, other_x, other_xx, other_y, other_yy, other_xy] = other;
        if more == 0.0 {
            return Ok(());
        }
        if before == 0.0 {
            self.sums = other;
            return Ok(());
        }
        let count = before + more;
        let apart_x = x / before - other_x / more;
        let apart_y = y / before - other_y / more;
        let weight = before * more;
        let sums = [
            count,
            x + other_x,
            xx + other_xx + weight * apart_x * apart_x / count,
            y + other_y,
            yy + other_yy + weight * apart_y * apart_y / count,
            xy + other_xy + weight * apart_x * apart_y / count,
        ];
        for ((sum, own), other) in sums.iter().zip(self.sums).zip(other) {
            if sum.is_infinite() && !own.is_infinite() && !other.is_infinite() {
                return Err(overflow());
            }
        }
        self.sums = sums;
        Ok(())
    }

    /// What is wanted of the sums; NULL where there are too few rows, or nothing to divide by.
    fn value(&self) -> Option<f64> {
        let [count, x, xx, y, yy, xy] = self.sums;
        let least = match self.found {
            Found::Variance { of_sample, .. } | Found::Covariance { of_sample } => {
                f64::from(u8::from(of_sample))
            }
            _ => 0.0,
        };
        if count <= least {
            return None;
        }
        let over = |by: f64, value: f64| (by != 0.0).then(|| value / by);
        match self.found {
            Found::Variance { is_root, .. } => {
                let own = xx / (count - least);
                Some(if is_root { own.sqrt() } else { own })
            }
            Found::Covariance { .. } => Some(xy / (count - least)),
            Found::Correlation if xx == 0.0 || yy == 0.0 => None,
            Found::Correlation => Some(xy / (xx * yy).sqrt()),
            Found::Count => Some(count),
            Found::AverageX => Some(x / count),
            Found::AverageY => Some(y / count),
            Found::SquaresX => Some(xx),
            Found::SquaresY => Some(yy),
            Found::Products => Some(xy),
            Found::Slope => over(xx, xy),
            Found::Intercept => over(xx, x * xy).map(|own| (y - own) / count),
            Found::Determination if xx == 0.0 => None,
            Found::Determination if yy == 0.0 => Some(1.0),
            Found::Determination => Some(xy * xy / (xx * yy)),
        }
    }
}

fn floats(values: &ArrayRef) -> Result<Float64Array> {
    let values = cast(values, &DataType::Float64)?;
    Ok(values.as_primitive::<Float64Type>().clone())
}

impl Accumulator for Sums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // `y` comes first.
        let (xs, ys) = match values {
            [values] => (floats(values)?, None),
            [ys, xs] => (floats(xs)?, Some(floats(ys)?)),
            _ => return internal_err!("a deviation of {} values", values.len()),
        };
        for (row, x) in xs.iter().enumerate() {
            let y = match &ys {
                None => Some(0.0),
                Some(ys) => ys.is_valid(row).then(|| ys.value(row)),
            };
            if let (Some(x), Some(y)) = (x, y) {
                self.add(x, y)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.found {
            Found::Count => ScalarValue::Int64(Some(self.sums[0] as i64)),
            _ => ScalarValue::Float64(self.value()),
        })
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sums = self.sums.iter();
        Ok(sums.map(|sum| ScalarValue::Float64(Some(*sum))).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns = states.iter().map(floats).collect::<Result<Vec<_>>>()?;
        let Ok(columns) = <[Float64Array; SUMS]>::try_from(columns) else {
            return internal_err!("a state of other sums");
        };
        let rows = columns.first().map_or(0, Float64Array::len);
        for row in 0..rows {
            let mut other = [0.0; SUMS];
            for (sum, column) in other.iter_mut().zip(&columns) {
                *sum = column.value(row);
            }
            self.merge(other)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(found: Found, rows: &[(f64, f64)]) -> Result<Sums, Error> {
        let mut sums = Sums {
            found,
            sums: [0.0; SUMS],
        };
        rows.iter().try_for_each(|(x, y)| sums.add(*x, *y))?;
        Ok(sums)
    }

    /// Values of PostgreSQL 15.
    #[test]
    fn sums_are_those_of_postgresql() {
        let rows = [
            (1.0, 10.0),
            (2.0, 10.0),
            (3.0, 20.0),
            (5.0, 5.0),
            (6.0, 7.0),
            (7.0, 20.0),
        ];
        for (found, wanted) in [
            (Found::Correlation, 0.117_369_119_465_392_75),
            (Found::Covariance { of_sample: false }, 1.5),
            (Found::Covariance { of_sample: true }, 1.8),
            (Found::Slope, 0.321_428_571_428_571_4),
            (Found::Intercept, 10.714_285_714_285_715),
            (Found::Determination, 0.013_775_510_204_081_631),
            (Found::Count, 6.0),
        ] {
            assert_eq!(of(found, &rows).unwrap().value(), Some(wanted), "{found:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let var = variance(false, false);
        for rows in [[(1e308, 0.0), (-1e308, 0.0)], [(1e154, 0.0), (3e154, 0.0)]] {
            assert!(of(var, &rows).is_err());
            let mut one = of(var, &rows[..1]).unwrap();
            assert!(one.merge(of(var, &rows[1..]).unwrap().sums).is_err());
        }
        assert!(of(Found::Products, &[(1e200, 1e200), (2e200, 3e200)]).is_err());
        let odd = of(var, &[(f64::INFINITY, 0.0), (1.0, 0.0)]).unwrap();
        assert!(odd.value().is_some_and(f64::is_nan));
        assert_eq!(
            of(variance(true, true), &[(1.0, 0.0)]).unwrap().value(),
            None
        );
        assert_eq!(of(Found::Correlation, &[(1.0, 1.0)]).unwrap().value(), None);
    }

    #[test]
    fn parts_are_merged() {
        let rows: Vec<(f64, f64)> = (0..100)
            .map(|n| (f64::from(n), f64::from(n * n % 17)))
            .collect();
        let all = of(Found::Covariance { of_sample: false }, &rows).unwrap();
        let mut parts = of(all.found, &[]).unwrap();
        for part in rows.chunks(13) {
            parts.merge(of(all.found, part).unwrap().sums).unwrap();
        }
        let (whole, merged) = (all.value().unwrap(), parts.value().unwrap());
        assert!((whole - merged).abs() < 1e-9, "{whole} {merged}");
    }
}
