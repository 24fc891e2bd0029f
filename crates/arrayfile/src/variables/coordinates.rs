//! The coordinates of dimensions: decimals, as they are written.

use array::{Buffer, Coordinates, DataType, Decimal, Region, Scalar};

use crate::cf;
use crate::error::Result;
use crate::job::Job;
use crate::values::bytes_mut;
use crate::variables::model::Container;

/// The most coordinates that are read.
const MOST: u64 = 1 << 20;

/// Bytes of a coordinate while they are read.
const EACH: u64 = 48;

/// The coordinates that a variable has for a dimension of `length`. `None` where they are no coordinates that a dimension
/// can have; `notes` then says why.
///
/// # Errors
/// If the variable cannot be read.
pub(super) fn coordinates(
    container: &mut dyn Container,
    variable: usize,
    length: u64,
    job: &Job<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Coordinates>> {
    let of = &container.variables()[variable];
    let name = of.name.clone();
    let mut refused = |why: &str| {
        notes.push(format!("'{name}' {why}: the dimension counts from 0"));
        Ok(None)
    };
    let data_type = match &of.data_type {
        Ok(data_type) => *data_type,
        Err(what) => return refused(what),
    };
    if of.half {
        return refused("has floats of 16 bits");
    }
    if length == 0 {
        return Ok(None);
    }
    if of.shape() != [length] {
        return refused("is not as long as its dimension");
    }
    if length > MOST {
        return refused(&format!("has more than {MOST} coordinates"));
    }
    let number = |name: &str| of.numbers(name).first().and_then(|of| of.to_f64());
    let scale = match (number("scale_factor"), number("add_offset")) {
        (None, None) => None,
        (scale, offset) => Some((scale.unwrap_or(1.0), offset.unwrap_or(0.0))),
    };
    let missing = of.numbers("_FillValue").to_vec();
    // Moments are not rounded to the digits that a float of 32 bits was written with.
    let digits_of = match data_type {
        DataType::F32 if cf::counts_from_a_moment(&of.attributes) => DataType::F64,
        other => other,
    };
    let _reserved = job.reserve("the coordinates of a dimension", length * EACH)?;
    container.prepare(variable, job, 0)?;
    let mut values = Buffer::zeros(data_type, length as usize);
    let whole = Region::of_shape(&[length]);
    container.read(variable, &whole, bytes_mut(&mut values))?;
    let mut list = Vec::with_capacity(values.len());
    for at in 0..values.len() {
        let value = values.get(at);
        if missing.contains(&value) {
            return refused("lacks a coordinate");
        }
        match decimal(value, digits_of, scale) {
            Some(decimal) => list.push(decimal),
            None => {
                return refused(&format!(
                    "has the coordinate {value}, which is no decimal of 18 digits"
                ));
            }
        }
    }
    match of_list(list) {
        Some(found) => Ok(Some(found)),
        None => refused("neither rises nor falls"),
    }
}

/// A value as the shortest decimal that stands for it.
fn decimal(value: Scalar, of: DataType, scale: Option<(f64, f64)>) -> Option<Decimal> {
    let value = match (scale, value) {
        (Some((factor, offset)), value) => Scalar::Float(value.to_f64()? * factor + offset),
        (None, value) => value,
    };
    match value {
        Scalar::Int(whole) => Decimal::new(i64::try_from(whole).ok()?, 0),
        // The digits of a float of 32 bits are those that it was written with, not those of the double.
        Scalar::Float(float) if of == DataType::F32 && scale.is_none() => {
            format!("{}", float as f32).parse().ok()
        }
        Scalar::Float(float) => format!("{float}").parse().ok(),
        Scalar::Bool(_) | Scalar::Null => None,
    }
}

/// The coordinates of a list: whole numbers one after the other, a regular step, or the list. `None` if it neither rises
/// nor falls.
fn of_list(list: Vec<Decimal>) -> Option<Coordinates> {
    let first = *list.first()?;
    if list
        .iter()
        .enumerate()
        .all(|(at, &of)| first.plus(1.into(), at as u64) == Some(of))
        && let Some(start) = first.to_i64()
    {
        return Some(Coordinates::Integer { start });
    }
    let rises = list.windows(2).all(|two| two[0] < two[1]);
    let falls = list.windows(2).all(|two| two[0] > two[1]);
    if !rises && !falls {
        return None;
    }
    let step = list.get(1).and_then(|&second| difference(first, second));
    if let Some(step) = step
        && list
            .iter()
            .enumerate()
            .all(|(at, &of)| first.plus(step, at as u64) == Some(of))
    {
        return Some(Coordinates::Regular { start: first, step });
    }
    Some(Coordinates::Listed(list))
}

/// What leads from one decimal to another, if it has so few digits.
fn difference(from: Decimal, to: Decimal) -> Option<Decimal> {
    let scale = from.scale().max(to.scale());
    let digits = to.digits(scale)?.checked_sub(from.digits(scale)?)?;
    Decimal::new(i64::try_from(digits).ok()?, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], data_type: DataType) -> Option<Coordinates> {
        let list = values
            .iter()
            .map(|&of| decimal(Scalar::Float(of), data_type, None));
        of_list(list.collect::<Option<Vec<_>>>()?)
    }

    fn regular(start: &str, step: &str) -> Option<Coordinates> {
        let of = |text: &str| text.parse().unwrap();
        Some(Coordinates::Regular {
            start: of(start),
            step: of(step),
        })
    }

    #[test]
    fn coordinates_are_those_that_were_written() {
        let tenths: Vec<f64> = [0.1f32, 0.2, 0.3, 0.4].map(f64::from).to_vec();
        assert_eq!(of(&tenths, DataType::F32), regular("0.1", "0.1"));
        assert_eq!(
            of(&[90.0, 87.5, 85.0], DataType::F64),
            regular("90", "-2.5")
        );
        let years = of(&[1990.0, 1991.0, 1992.0], DataType::F64);
        assert_eq!(years, Some(Coordinates::Integer { start: 1990 }));
        let levels = of(&[1000.0, 850.0, 500.0, 10.5], DataType::F64);
        assert!(matches!(levels, Some(Coordinates::Listed(list)) if list.len() == 4));
        assert_eq!(
            of(&[5.0], DataType::F64),
            Some(Coordinates::Integer { start: 5 })
        );
        for wrong in [
            &[1.0, 3.0, 2.0][..],
            &[1.0, 1.0],
            &[1.0, f64::NAN],
            &[1e300, 2e300],
        ] {
            assert_eq!(of(wrong, DataType::F64), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_packed_coordinate_is_unpacked() {
        let packed = decimal(Scalar::Int(5), DataType::I16, Some((0.25, 10.0)));
        assert_eq!(packed, Some("11.25".parse().unwrap()));
    }
}
