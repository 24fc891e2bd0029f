//! The coordinates of a dimension as the values of a variable that is written.

use std::ops::Range;

use array::{Coordinates, DataType, Decimal, Dimension, MetadataValue};

/// How many coordinates are made at a time.
pub(crate) const AT_A_TIME: u64 = 1 << 16;

/// The type of the values that the coordinates of a dimension become: whole numbers of 32 bits where they fit, those of 64
/// where `long` says that the file has them, else doubles. `None` if they count from 0 and nothing is `said` of them, so that nothing need be written.
///
/// # Errors
/// A coordinate that is no double, in words.
pub(crate) fn value_type(
    dimension: &Dimension,
    said: &[(String, MetadataValue)],
    long: bool,
) -> Result<Option<DataType>, String> {
    let all = || (0..dimension.length()).filter_map(|at| dimension.coordinate(at));
    let short = |of: Decimal| of.to_i64().is_some_and(|of| i32::try_from(of).is_ok());
    match dimension.coordinates() {
        Coordinates::Integer { start: 0 } if said.is_empty() => return Ok(None),
        Coordinates::Integer { start } => {
            let last = dimension.length().saturating_sub(1);
            let ends = [Some(Decimal::from(*start)), dimension.coordinate(last)];
            if ends.into_iter().flatten().all(short) {
                return Ok(Some(DataType::I32));
            }
        }
        _ if all().all(short) => return Ok(Some(DataType::I32)),
        _ => {}
    }
    if long && all().all(|of| of.to_i64().is_some()) {
        return Ok(Some(DataType::I64));
    }
    match all().find(|&of| !is_double(of)) {
        None => Ok(Some(DataType::F64)),
        Some(of) => {
            let name = dimension.name();
            Err(format!(
                "the coordinate {of} of dimension '{name}' has more digits than a double of NetCDF keeps"
            ))
        }
    }
}

/// Whether the shortest decimal that stands for its double, which is what is read back, is the coordinate.
fn is_double(of: Decimal) -> bool {
    format!("{}", of.to_f64()).parse::<Decimal>().ok() == Some(of)
}

/// The coordinates of these positions as values of a type that [`value_type`] gave, little-endian.
pub(crate) fn values(dimension: &Dimension, of: DataType, positions: Range<u64>) -> Vec<u8> {
    let coordinates = positions.filter_map(|at| dimension.coordinate(at));
    let mut bytes = Vec::new();
    for coordinate in coordinates {
        let whole = coordinate.to_i64().unwrap_or_default();
        match of {
            DataType::I32 => bytes.extend((whole as i32).to_le_bytes()),
            DataType::I64 => bytes.extend(whole.to_le_bytes()),
            _ => bytes.extend(coordinate.to_f64().to_le_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_take_the_narrowest_type_that_keeps_them() {
        let decimal = |text: &str| text.parse::<Decimal>().unwrap();
        let of = |dimension: &Dimension, long| value_type(dimension, &[], long);
        let from = |start| Dimension::integer("x", start, 3);
        assert_eq!(of(&from(0), true), Ok(None));
        let said = [("units".to_owned(), "days since 2000-01-01".into())];
        assert_eq!(value_type(&from(0), &said, true), Ok(Some(DataType::I32)));
        assert_eq!(of(&from(-2), true), Ok(Some(DataType::I32)));
        let far = from(i64::from(i32::MAX) - 1);
        assert_eq!(of(&far, true), Ok(Some(DataType::I64)));
        assert_eq!(of(&far, false), Ok(Some(DataType::F64)));
        let furthest = from(i64::MAX - 3);
        assert_eq!(of(&furthest, true), Ok(Some(DataType::I64)));
        assert!(of(&furthest, false).unwrap_err().contains("more digits"));
        let tenths = Dimension::regular("x", decimal("0"), decimal("0.1"), 4);
        assert_eq!(of(&tenths, true), Ok(Some(DataType::F64)));
        let expected = [0.1f64, 0.2].map(f64::to_le_bytes).concat();
        assert_eq!(values(&tenths, DataType::F64, 1..3), expected);
        let tens = Dimension::listed("x", ["10", "20.0", "40"].map(decimal).to_vec());
        assert_eq!(of(&tens, true), Ok(Some(DataType::I32)));
        let long = Dimension::listed(
            "x",
            vec![decimal("0.1234567890123456789".get(..20).unwrap())],
        );
        assert!(of(&long, true).unwrap_err().contains("'x'"));
    }
}
