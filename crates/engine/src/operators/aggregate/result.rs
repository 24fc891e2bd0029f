//! The results of aggregate functions, from accumulators.

use std::sync::Arc;

use arrow::array::StringViewArray;
use arrow::datatypes::i256;

use crate::error::{Error, Result};
use crate::logical::relation::{Fold, Function, PairFunction};
use crate::operators::aggregate::accumulator::{AccumulatedValues, Accumulator, overflow};
use crate::operators::aggregate::extremes::text;
use crate::operators::aggregate::pair_sums::PairSums;
use crate::vector::strings::Strings;
use crate::vector::value::{Kind, Type, Values, Vector};

/// The results of `function` for `groups`, of type `ty`.
///
/// `values` is the accumulator of its argument, `counts` the number of values by group if the function needs it,
/// and `arg_scale` the number of digits after the argument's decimal point.
///
/// # Errors
/// [`Error::Overflow`] if a result does not fit `ty`.
pub(crate) fn result(
    function: Function,
    values: &dyn Accumulator,
    counts: Option<&[i64]>,
    groups: &[u32],
    ty: &Type,
    arg_scale: i8,
) -> Result<Vector> {
    let at = || groups.iter().map(|group| *group as usize);
    if matches!(
        function,
        Function::Count | Function::CountDistinct | Function::CountTotal
    ) {
        let counts = counts.ok_or_else(|| Error::internal("a count that was not made"))?;
        return Ok(Vector::new(Values::Int(
            at().map(|group| counts[group]).collect(),
        )));
    }
    let found = values.found();
    if let AccumulatedValues::Deviations(counts, squares) = found {
        return variances(function, &mut at(), counts, squares);
    }
    if let (AccumulatedValues::Pairs(sums), Function::OfPairs { function, .. }) = (found, function)
    {
        return Ok(of_pairs(function, &mut at(), sums));
    }
    let valid: Option<Vec<bool>> = match (seen(found), counts) {
        (Some(seen), _) => Some(at().map(|group| seen[group]).collect()),
        (None, Some(counts)) => Some(at().map(|group| counts[group] > 0).collect()),
        (None, None) => None,
    };
    let values = match (function, counts) {
        (Function::Avg | Function::AvgDistinct | Function::AvgOfSums { .. }, Some(counts)) => {
            average(found, &mut at(), counts, ty, arg_scale)?
        }
        _ => plain(found, &mut at(), ty)?,
    };
    let valid = valid.filter(|valid| valid.contains(&false));
    Ok(Vector { values, valid })
}

/// The result of a function of kept rows, which belong to `groups` and lie at `places`; `None` for other functions.
pub(crate) fn row_result(
    fold: &Fold,
    rows: &dyn Accumulator,
    groups: &[u32],
    places: &[u32],
) -> Result<Option<Vector>> {
    Ok(match (fold.function, fold.arg) {
        (Function::First(_), Some(arg)) => Some(rows.row_values(arg, places)?),
        (Function::First(_), None) => return Err(Error::internal("the first of no values")),
        (Function::RowNumber(_), _) => {
            let numbers = rows.row_numbers(groups, places)?;
            Some(Vector::new(Values::Int(numbers)))
        }
        _ => None,
    })
}

/// The results of a sum or an average for each of many sets of values, of which the sums are `found` and the numbers of
/// values `counts`; of type `ty`. NULL for those without a value.
///
/// # Errors
/// Those of [`result`].
pub(crate) fn of_sums(
    function: Function,
    found: AccumulatedValues<'_>,
    counts: &[i64],
    ty: &Type,
    arg_scale: i8,
) -> Result<Vector> {
    let mut all = 0..counts.len();
    let values = if function == Function::Avg {
        average(found, &mut all, counts, ty, arg_scale)?
    } else {
        plain(found, &mut all, ty)?
    };
    let some = counts.contains(&0);
    let valid = some.then(|| counts.iter().map(|count| *count > 0).collect());
    Ok(Vector { values, valid })
}

/// The variances, or their square roots, of many sets of values, of which these are the numbers of values and the sums of
/// squared differences from the mean.
///
/// # Errors
/// An internal error for another function.
pub(crate) fn of_deviations(function: Function, counts: &[i64], squares: &[f64]) -> Result<Vector> {
    variances(function, &mut (0..counts.len()), counts, squares)
}

/// Whether each group has a value, if the accumulator knows.
fn seen(found: AccumulatedValues<'_>) -> Option<&[bool]> {
    match found {
        AccumulatedValues::Counts
        | AccumulatedValues::Int(_)
        | AccumulatedValues::Wide(_)
        | AccumulatedValues::Long(_)
        | AccumulatedValues::Float(_)
        | AccumulatedValues::Pairs(_)
        | AccumulatedValues::Deviations(..) => None,
        AccumulatedValues::ExtremeInt(_, seen)
        | AccumulatedValues::ExtremeWide(_, seen)
        | AccumulatedValues::ExtremeFloat(_, seen)
        | AccumulatedValues::ExtremeCode(_, seen)
        | AccumulatedValues::ExtremeString(_, seen) => Some(seen),
    }
}

/// The accumulated values of the groups `at`, as type `ty`.
fn plain(
    found: AccumulatedValues<'_>,
    at: &mut dyn Iterator<Item = usize>,
    ty: &Type,
) -> Result<Values> {
    Ok(match (found, ty.kind) {
        (AccumulatedValues::Int(v) | AccumulatedValues::ExtremeInt(v, _), Kind::Int) => {
            Values::Int(at.map(|g| v[g]).collect())
        }
        (AccumulatedValues::Int(v) | AccumulatedValues::ExtremeInt(v, _), Kind::Wide) => {
            Values::Wide(at.map(|g| i128::from(v[g])).collect())
        }
        (AccumulatedValues::ExtremeInt(v, _), Kind::Bool) => {
            Values::Bool(at.map(|g| v[g] != 0).collect())
        }
        (AccumulatedValues::Wide(v) | AccumulatedValues::ExtremeWide(v, _), Kind::Wide) => {
            Values::Wide(at.map(|g| fitting(v[g], ty)).collect::<Result<_>>()?)
        }
        (AccumulatedValues::Wide(v) | AccumulatedValues::ExtremeWide(v, _), Kind::Int) => {
            Values::Int(at.map(|g| narrowed(v[g], ty)).collect::<Result<_>>()?)
        }
        (AccumulatedValues::Long(v), Kind::Wide) => Values::Wide(
            at.map(|g| fitting(short(v[g])?, ty))
                .collect::<Result<_>>()?,
        ),
        (AccumulatedValues::Long(v), Kind::Int) => Values::Int(
            at.map(|g| narrowed(short(v[g])?, ty))
                .collect::<Result<_>>()?,
        ),
        (AccumulatedValues::Float(v) | AccumulatedValues::ExtremeFloat(v, _), Kind::Float) => {
            Values::Float(at.map(|g| v[g]).collect())
        }
        (AccumulatedValues::ExtremeCode(v, _), Kind::Code) => {
            Values::Code(at.map(|g| v[g]).collect())
        }
        (AccumulatedValues::ExtremeString(v, _), Kind::Text) => {
            let strings = StringViewArray::from_iter_values(at.map(|g| text(&v[g])));
            Values::Text(Strings::new(Arc::new(strings)))
        }
        _ => return Err(Error::internal("a result of another kind")),
    })
}

fn average(
    found: AccumulatedValues<'_>,
    at: &mut dyn Iterator<Item = usize>,
    counts: &[i64],
    ty: &Type,
    arg_scale: i8,
) -> Result<Values> {
    if let AccumulatedValues::Float(sums) = found {
        // PostgreSQL begins the sum of an average with 0, so that this is never -0.
        return Ok(Values::Float(
            at.map(|g| (sums[g] + 0.0) / counts[g] as f64).collect(),
        ));
    }
    let sum = |g: usize| match found {
        AccumulatedValues::Int(sums) => i128::from(sums[g]),
        AccumulatedValues::Wide(sums) => sums[g],
        _ => 0,
    };
    if ty.kind == Kind::Float {
        let sum = |g: usize| match found {
            AccumulatedValues::Long(sums) => float(sums[g]),
            _ => sum(g) as f64,
        };
        return Ok(Values::Float(
            at.map(|g| sum(g) / counts[g] as f64).collect(),
        ));
    }
    let up = u32::try_from(ty.scale() - arg_scale);
    let up = up.map_err(|_| Error::unsupported("an average of fewer digits"))?;
    let factor = 10i128.checked_pow(up).ok_or_else(overflow)?;
    let mut all = Vec::new();
    for g in at {
        let count = counts[g].max(1).into();
        let average = match found {
            AccumulatedValues::Long(sums) => divided_long(sums[g], count, factor),
            _ => divided(sum(g), count, factor),
        };
        all.push(fitting(average.ok_or_else(overflow)?, ty)?);
    }
    Ok(if ty.kind == Kind::Int {
        let narrow = all.into_iter().map(|v| narrowed(v, ty));
        Values::Int(narrow.collect::<Result<_>>()?)
    } else {
        Values::Wide(all)
    })
}

/// The variances, or their square roots, of groups with these numbers of values and sums of squared differences from
/// the mean.
fn variances(
    function: Function,
    at: &mut dyn Iterator<Item = usize>,
    counts: &[i64],
    squares: &[f64],
) -> Result<Vector> {
    // A sample has a degree of freedom less than values.
    let (fewer, root) = match function {
        Function::VarSamp => (1, false),
        Function::VarPop => (0, false),
        Function::StddevSamp => (1, true),
        Function::StddevPop => (0, true),
        _ => return Err(Error::internal("another function of deviations")),
    };
    let (mut values, mut valid) = (Vec::new(), Vec::new());
    for group in at {
        let freedom = counts[group] - fewer;
        let variance = squares[group] / freedom as f64;
        valid.push(freedom > 0);
        values.push(if root { variance.sqrt() } else { variance });
    }
    let valid = Some(valid).filter(|valid| valid.contains(&false));
    Ok(Vector {
        values: Values::Float(values),
        valid,
    })
}

/// What `function` gives of the pairs of the groups `at`.
fn of_pairs(
    function: PairFunction,
    at: &mut dyn Iterator<Item = usize>,
    sums: &[PairSums],
) -> Vector {
    if function == PairFunction::Count {
        return Vector::new(Values::Int(at.map(|group| sums[group].count()).collect()));
    }
    let found: Vec<Option<f64>> = at.map(|group| sums[group].value(function)).collect();
    let valid: Vec<bool> = found.iter().map(Option::is_some).collect();
    Vector {
        values: Values::Float(found.into_iter().map(Option::unwrap_or_default).collect()),
        valid: Some(valid).filter(|valid| valid.contains(&false)),
    }
}

/// `sum` times `factor` over `count`, rounded half away from zero; `None` if that needs more than 128 bits.
fn divided(sum: i128, count: i128, factor: i128) -> Option<i128> {
    let whole = (sum / count).checked_mul(factor)?;
    let rest = (sum % count).checked_mul(factor)?;
    let (more, rest) = (rest / count, rest % count);
    let up = rest.abs() >= count - rest.abs();
    whole
        .checked_add(more)?
        .checked_add(if up { rest.signum() } else { 0 })
}

/// The same of a sum in 256 bits.
fn divided_long(sum: i256, count: i128, factor: i128) -> Option<i128> {
    let count = i256::from_i128(count);
    let product = sum.checked_mul(i256::from_i128(factor))?;
    let (whole, rest) = (product.checked_div(count)?, product.checked_rem(count)?);
    let up = rest.wrapping_abs() >= count.wrapping_sub(rest.wrapping_abs());
    let up = if up { rest.signum() } else { i256::ZERO };
    whole.checked_add(up)?.to_i128()
}

fn float(sum: i256) -> f64 {
    match (sum.to_i128(), sum.to_parts()) {
        (Some(sum), _) => sum as f64,
        (None, (low, high)) => high as f64 * 2f64.powi(128) + low as f64,
    }
}

fn short(sum: i256) -> Result<i128> {
    sum.to_i128().ok_or_else(overflow)
}

/// `sum`, if it is within the bounds of `ty`: a decimal of 38 digits has a smaller range than 128 bits.
fn fitting(sum: i128, ty: &Type) -> Result<i128> {
    if (ty.bounds.0..=ty.bounds.1).contains(&sum) {
        Ok(sum)
    } else {
        Err(overflow())
    }
}

fn narrowed(sum: i128, ty: &Type) -> Result<i64> {
    i64::try_from(fitting(sum, ty)?).map_err(|_| overflow())
}

#[cfg(test)]
mod tests {
    use super::divided;

    #[test]
    fn averages_are_rounded_half_away_from_zero() {
        for (sum, count, factor, wanted) in [
            (5, 3, 10_000, Some(16_667)),
            (-5, 3, 10_000, Some(-16_667)),
            (5, 2, 1, Some(3)),
            (-5, 2, 1, Some(-3)),
            (4, 3, 1, Some(1)),
            (0, 7, 1_000, Some(0)),
            (i128::MAX, 2, 1, Some(i128::MAX / 2 + 1)),
            (i128::MAX, 2, 10, None),
        ] {
            assert_eq!(
                divided(sum, count, factor),
                wanted,
                "{sum} {count} {factor}"
            );
        }
    }
}
