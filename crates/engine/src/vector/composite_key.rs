//! Composite keys: several whole numbers packed into one, each as a digit (`krao`).

use algebra::krao;
use algebra::lift::Bounds;

use crate::error::{Error, Result};
use crate::vector::value::{Values, Vector};

/// How the vectors of a key become one whole number.
#[derive(Debug)]
pub(crate) enum CompositeKey {
    /// The key is a single vector, which is the number itself.
    Same,
    /// Each vector is a digit; the first is the most significant.
    Digits(Vec<KeyDigit>),
}

/// One digit: a value `v` becomes `v - base`. Invariant: the product of the sizes of all digits is below 2^62.
#[derive(Debug)]
pub(crate) struct KeyDigit {
    base: i64,
    size: u64,
}

/// Keys as numbers, and which rows have one (`None`: all).
type PackedKeys<'a> = (&'a [i64], Option<&'a [bool]>);

impl CompositeKey {
    /// The encoding for keys with values like those of `vectors`. `None` if a vector does not hold 64-bit whole
    /// numbers, or if the ranges of values are too wide to pack.
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
            // Placeholders of NULLs can only make the range larger than necessary.
            let bounds = Bounds::of(values).unwrap_or(Bounds::exactly(0));
            let size = u64::try_from(bounds.max - bounds.min + 1).ok()?;
            product = product.checked_mul(size).filter(|p| *p < 1 << 62)?;
            digits.push(KeyDigit {
                base: bounds.min as i64,
                size,
            });
        }
        Some(CompositeKey::Digits(digits))
    }

    /// The packed keys of the rows of `vectors`, and which rows have one: those without NULL whose values all lie
    /// within the digits' ranges.
    pub fn pack<'a>(
        &self,
        vectors: &[&'a Vector],
        numbers: &'a mut Vec<i64>,
        valid: &'a mut Vec<bool>,
    ) -> Result<PackedKeys<'a>> {
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
