//! Keys of several whole numbers as one: krao of digits.

use algebra::krao;
use algebra::lift::Bounds;

use crate::error::{Error, Result};
use crate::vector::value::{Values, Vector};

/// How the vectors of a key become one whole number.
#[derive(Debug)]
pub(crate) enum CompositeKey {
    /// The one vector is the number.
    Same,
    /// Each is a digit, the first the most significant.
    Digits(Vec<DenseKey>),
}

/// Invariant: the product of the sizes of all digits is below 2^62.
#[derive(Debug)]
pub(crate) struct DenseKey {
    base: i64,
    size: u64,
}

/// Whole numbers and, if some rows have none, which have.
type Given<'a> = (&'a [i64], Option<&'a [bool]>);

impl CompositeKey {
    /// For keys that are like those of `vectors`; `None` if they are no whole numbers or too far apart.
    pub fn of(vectors: &[&Vector]) -> Option<CompositeKey> {
        if let [one] = vectors {
            return matches!(one.values, Values::Int(_)).then_some(CompositeKey::Same);
        }
        let mut product = 1u64;
        let mut digits = Vec::with_capacity(vectors.len());
        for vector in vectors {
            let Values::Int(values) = &vector.values else {
                return None;
            };
            // What stands where a value is NULL may only make the digit larger than it need be.
            let bounds = Bounds::of(values).unwrap_or(Bounds::exactly(0));
            let size = u64::try_from(bounds.max - bounds.min + 1).ok()?;
            product = product.checked_mul(size).filter(|p| *p < 1 << 62)?;
            digits.push(DenseKey {
                base: bounds.min as i64,
                size,
            });
        }
        Some(CompositeKey::Digits(digits))
    }

    /// The numbers of the keys in `vectors`, and which rows have one: those without NULL whose digits are among
    /// the table's.
    pub fn given<'a>(
        &self,
        vectors: &[&'a Vector],
        numbers: &'a mut Vec<i64>,
        valid: &'a mut Vec<bool>,
    ) -> Result<Given<'a>> {
        let digits = match self {
            CompositeKey::Same => return Ok((ints(vectors[0])?, vectors[0].valid.as_deref())),
            CompositeKey::Digits(digits) => digits,
        };
        let rows = vectors.first().map_or(0, |v| v.len());
        numbers.clear();
        numbers.resize(rows, 0);
        valid.clear();
        valid.resize(rows, true);
        for (digit, vector) in digits.iter().zip(vectors) {
            krao::digit(numbers, valid, ints(vector)?, digit.base, digit.size);
            if let Some(there) = &vector.valid {
                valid
                    .iter_mut()
                    .zip(there)
                    .for_each(|(valid, there)| *valid &= there);
            }
        }
        let all = !valid.contains(&false);
        Ok((numbers, (!all).then_some(&valid[..])))
    }
}

fn ints(vector: &Vector) -> Result<&[i64]> {
    match &vector.values {
        Values::Int(values) => Ok(values),
        _ => Err(Error::internal("a key of another kind")),
    }
}
