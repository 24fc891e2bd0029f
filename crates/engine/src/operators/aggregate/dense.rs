//! Dense (perfect-hash) aggregation: the group number is computed from the keys, which are the digits of a
//! mixed-radix number.

use algebra::krao::{combine, combine_i64, occurring, start, start_i64};

use crate::error::{Error, Result};
use crate::vector::value::{Kind, Type, Values, Vector};

/// A grouping key of a known number of possible values: one digit of a number that all keys are packed into.
#[derive(Clone, Debug)]
pub(crate) struct DenseKey {
    base: i64,
    /// The number of possible values. NULL, if it is possible, is the last one.
    size: u64,
    ty: Type,
}

/// The dense keys for keys of these types, and the number of possible groups; `None` if these are more than `most`.
pub(crate) fn dense_keys(types: &[Type], most: u64) -> Option<(Vec<DenseKey>, u64)> {
    let mut product: u64 = 1;
    let mut digits = Vec::with_capacity(types.len());
    for ty in types {
        let (base, values) = match ty.kind {
            Kind::Bool => (0, 2),
            Kind::Code => (0, ty.labels.as_ref()?.len() as u64),
            Kind::Int => {
                let span = ty.bounds.1.checked_sub(ty.bounds.0)?.checked_add(1)?;
                (i64::try_from(ty.bounds.0).ok()?, u64::try_from(span).ok()?)
            }
            _ => return None,
        };
        let size = values.checked_add(u64::from(ty.nullable))?.max(1);
        product = product.checked_mul(size).filter(|p| *p <= most)?;
        digits.push(DenseKey {
            base,
            size,
            ty: ty.clone(),
        });
    }
    Some((digits, product))
}

/// Records which groups occur.
pub(crate) fn note(numbers: &[u32], seen: &mut [bool]) {
    if seen.len() > 32 {
        numbers.iter().for_each(|n| seen[*n as usize] = true);
        return;
    }
    let bits = occurring(numbers);
    for (group, seen) in seen.iter_mut().enumerate() {
        *seen |= bits >> group & 1 == 1;
    }
}

impl DenseKey {
    /// Sets `index` to the digits of the first key.
    fn start(&self, vector: &Vector, rows: usize, index: &mut Vec<u64>) -> Result<()> {
        match (&vector.values, &vector.valid) {
            (Values::Code(codes), None) => start(codes, index),
            (Values::Int(values), None) => start_i64(values, self.base, index),
            _ => {
                index.clear();
                index.resize(rows, 0);
                self.combine(vector, index)?;
            }
        }
        Ok(())
    }

    fn combine(&self, vector: &Vector, index: &mut [u64]) -> Result<()> {
        let Some(valid) = &vector.valid else {
            match &vector.values {
                Values::Code(codes) => combine(index, codes, self.size),
                Values::Int(values) => combine_i64(index, values, self.base, self.size),
                Values::Bool(values) => {
                    index
                        .iter_mut()
                        .zip(values)
                        .for_each(|(i, v)| *i = *i * self.size + u64::from(*v));
                }
                _ => return Err(Error::internal("a dense grouping key of another kind")),
            }
            return Ok(());
        };
        let digit = |row: usize| match &vector.values {
            _ if !valid[row] => self.size - 1,
            Values::Code(codes) => u64::from(codes[row]),
            Values::Int(values) => values[row].wrapping_sub(self.base) as u64,
            Values::Bool(values) => u64::from(values[row]),
            _ => 0,
        };
        for (row, index) in index.iter_mut().enumerate() {
            *index = *index * self.size + digit(row);
        }
        Ok(())
    }
}

/// The numbers that the keys of rows are the digits of.
pub(crate) fn encode_keys(
    dense_keys: &[DenseKey],
    vectors: &[&Vector],
    rows: usize,
    index: &mut Vec<u64>,
) -> Result<()> {
    for (place, (key, vector)) in dense_keys.iter().zip(vectors).enumerate() {
        match place {
            0 => key.start(vector, rows, index)?,
            _ => key.combine(vector, index)?,
        }
    }
    Ok(())
}

/// Takes the last digit of a number off.
#[inline(always)]
fn last_digit(number: &mut u64, size: u64) -> u64 {
    // One division of 64 bits takes longer than all else here.
    let rest = *number / size;
    let digit = *number - rest * size;
    *number = rest;
    digit
}

/// Decodes such numbers into key vectors.
pub(crate) fn decode_keys(dense_keys: &[DenseKey], mut left: Vec<u64>) -> Vec<Vector> {
    let mut vectors = Vec::with_capacity(dense_keys.len());
    for (place, key) in dense_keys.iter().enumerate().rev() {
        // What is left for the first key is its value.
        let own: Vec<u64> = match place {
            0 => std::mem::take(&mut left),
            _ => left
                .iter_mut()
                .map(|number| last_digit(number, key.size))
                .collect(),
        };
        let values = match key.ty.kind {
            Kind::Code => Values::Code(own.iter().map(|digit| *digit as u32).collect()),
            Kind::Bool => Values::Bool(own.iter().map(|digit| *digit == 1).collect()),
            _ => {
                let value = |digit: &u64| key.base.wrapping_add(*digit as i64);
                Values::Int(own.iter().map(value).collect())
            }
        };
        let is_there = |digit: &u64| *digit != key.size - 1;
        let valid: Option<Vec<bool>> = key.ty.nullable.then(|| own.iter().map(is_there).collect());
        vectors.push(Vector {
            values,
            valid: valid.filter(|valid| valid.contains(&false)),
        });
    }
    vectors.reverse();
    vectors
}
