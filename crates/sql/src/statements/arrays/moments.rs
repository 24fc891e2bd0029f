//! Times of rows as the numbers that an array has for them.

use std::collections::BTreeMap;

use array::{Attribute, Decimal, Dimension, Scalar, Time};

use crate::error::{Error, Result};

/// The most coordinates of a dimension that an import looks at one by one.
const MOST: u64 = 1 << 20;

/// The coordinates of a dimension by their moments, and those that it may have besides.
pub(super) struct Coordinates<'a> {
    dimension: &'a Dimension,
    time: Time,
    known: BTreeMap<i64, Decimal>,
}

impl<'a> Coordinates<'a> {
    /// Those of a dimension whose coordinates are times.
    pub(super) fn new(dimension: &'a Dimension, time: Time) -> Coordinates<'a> {
        // Longer ones have no list of their own, and coordinates that say their moments exactly.
        let length = dimension.length();
        let looked_at = if length <= MOST { length } else { 0 };
        let known = (0..looked_at).filter_map(|at| {
            let coordinate = dimension.coordinate(at)?;
            Some((time.of_decimal(coordinate)?, coordinate))
        });
        Coordinates {
            dimension,
            time,
            known: known.collect(),
        }
    }

    /// The coordinate of a moment: the one that says it to the microsecond, if the dimension has one, else the one that says
    /// it exactly.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn of(&self, moment: i64) -> Result<Decimal> {
        let known = self.known.get(&moment).copied();
        let found = known.or_else(|| self.time.decimal(moment));
        // A coordinate that is read back as another time, or as none, is not written.
        let found = found.filter(|&of| self.time.of_decimal(of) == Some(moment));
        found.ok_or_else(|| unsayable("dimension", self.dimension.name()))
    }
}

/// The value of an attribute that says a moment.
///
/// # Errors
/// If its type has none.
pub(super) fn value(attribute: &Attribute, time: Time, moment: i64) -> Result<Scalar> {
    let of = attribute.data_type();
    let value = if of.is_float() {
        time.float(moment).map(Scalar::Float)
    } else {
        time.whole(moment).map(Scalar::Int)
    };
    let value = value.and_then(|value| value.cast(of));
    let value = value.filter(|&value| time.of_scalar(value) == Some(moment));
    value.ok_or_else(|| unsayable("attribute", attribute.name()))
}

fn unsayable(what: &str, name: &str) -> Error {
    Error::coded(
        "22008",
        format!(
            "{what} '{name}' counts in units that do not say this time to the microsecond, or its type has no room for it"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use array::DataType;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn times_are_written_as_the_numbers_that_say_them() {
        let time = Time::new(0, 24 * HOUR).unwrap();
        let third: Decimal = "0.3333333333333333".parse().unwrap();
        let list = vec![Decimal::from(0), third, Decimal::from(1)];
        let dimension = Dimension::listed("t", list);
        let coordinates = Coordinates::new(&dimension, time);
        assert_eq!(
            coordinates.of(8 * HOUR).unwrap(),
            third,
            "as the array has it"
        );
        assert_eq!(coordinates.of(36 * HOUR).unwrap(), "1.5".parse().unwrap());
        let error = coordinates.of(16 * HOUR).unwrap_err().to_string();
        assert!(error.contains("dimension 't'"), "{error}");

        let days = Attribute::new("seen", DataType::I16);
        assert_eq!(value(&days, time, 48 * HOUR).unwrap(), Scalar::Int(2));
        assert!(value(&days, time, HOUR).is_err(), "a part of a day");
        assert!(
            value(&days, time, 40_000 * 24 * HOUR).is_err(),
            "beyond 16 bits"
        );
        let exact = Attribute::new("seen", DataType::F64);
        assert_eq!(
            value(&exact, time, 16 * HOUR).unwrap(),
            Scalar::Float(2.0 / 3.0)
        );
        let short = Attribute::new("seen", DataType::F32);
        assert!(value(&short, time, 20_000 * 24 * HOUR + 1).is_err());
    }
}
