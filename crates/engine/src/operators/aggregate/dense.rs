//! Dense (perfect-hash) aggregation: the group number is computed from the keys, which are the digits of a
//! mixed-radix number.

use algebra::krao::{combine, combine_i64, occurring, start, start_i64};

use crate::error::{Error, Result};
use crate::vector::value::{Kind, Type, Values, Vector};

/// A grouping key of few possible values: one digit of the group number.
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
    pub(crate) fn start(&self, vector: &Vector, rows: usize, index: &mut Vec<u64>) -> Result<()> {
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

    pub(crate) fn combine(&self, vector: &Vector, index: &mut [u64]) -> Result<()> {
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

/// Decodes group numbers into key vectors.
pub(crate) fn decode_groups(dense_keys: &[DenseKey], groups: &[u32]) -> Vec<Vector> {
    let mut left = groups.to_vec();
    let mut vectors = Vec::with_capacity(dense_keys.len());
    for (place, key) in dense_keys.iter().enumerate().rev() {
        // A dense index has fewer than 2^32 entries. What is left for the first key is its value.
        let size = key.size as u32;
        let own: Vec<u32> = match place {
            0 => std::mem::take(&mut left),
            _ => left.iter().map(|g| g % size).collect(),
        };
        left.iter_mut().for_each(|g| *g /= size);
        let values = match key.ty.kind {
            Kind::Code => Values::Code(own.clone()),
            Kind::Bool => Values::Bool(own.iter().map(|d| *d == 1).collect()),
            _ => Values::Int(
                own.iter()
                    .map(|d| key.base.wrapping_add(i64::from(*d)))
                    .collect(),
            ),
        };
        let valid = key
            .ty
            .nullable
            .then(|| own.iter().map(|d| *d != size - 1).collect::<Vec<bool>>());
        vectors.push(Vector {
            values,
            valid: valid.filter(|v| v.contains(&false)),
        });
    }
    vectors.reverse();
    vectors
}
