//! The values of a column, compared with each other.

use std::cmp::Ordering;

use arrow::array::{ArrayRef, AsArray};

use crate::error::{Error, Result};
use crate::vector::value::{Type, Values, Vector};

/// The values of a column of sorted rows.
pub(super) struct Cells<'a> {
    values: CellValues<'a>,
    valid: Option<&'a [bool]>,
}

enum CellValues<'a> {
    Int(&'a [i64]),
    Wide(&'a [i128]),
    Float(&'a [f64]),
    Bool(&'a [bool]),
    /// Codes, and the place of each among the sorted labels.
    Code(&'a [u32], &'a [u32]),
    Text(ArrayRef),
}

impl<'a> Cells<'a> {
    /// The values of `vector`, which is of type `ty`.
    ///
    /// # Errors
    /// An internal error for codes without labels; those of strings.
    pub fn of(vector: &'a Vector, ty: &'a Type) -> Result<Cells<'a>> {
        let values = match &vector.values {
            Values::Int(v) => CellValues::Int(v),
            Values::Wide(v) => CellValues::Wide(v),
            Values::Float(v) => CellValues::Float(v),
            Values::Bool(v) => CellValues::Bool(v),
            Values::Code(v) => {
                let labels = ty.labels.as_ref();
                let labels = labels.ok_or_else(|| Error::internal("codes without labels"))?;
                CellValues::Code(v, labels.rank())
            }
            Values::Text(v) => CellValues::Text(v.array()?),
        };
        let valid = vector.valid.as_deref();
        Ok(Cells { values, valid })
    }

    /// Whether the row has a value.
    pub fn is_valid(&self, row: usize) -> bool {
        self.valid.is_none_or(|valid| valid[row])
    }

    /// Whether two rows have the same value; NULL is the same as NULL.
    pub fn same(&self, a: usize, b: usize) -> bool {
        match (self.is_valid(a), self.is_valid(b)) {
            (true, true) => match &self.values {
                CellValues::Code(codes, _) => codes[a] == codes[b],
                _ => self.compare(a, b).is_eq(),
            },
            (a, b) => a == b,
        }
    }

    /// The order of the values of two rows, neither of which is NULL. NaN is greater than all other floats.
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        match &self.values {
            CellValues::Int(v) => v[a].cmp(&v[b]),
            CellValues::Wide(v) => v[a].cmp(&v[b]),
            CellValues::Float(v) => compare_floats(v[a], v[b]),
            CellValues::Bool(v) => v[a].cmp(&v[b]),
            CellValues::Code(codes, rank) => rank[codes[a] as usize].cmp(&rank[codes[b] as usize]),
            CellValues::Text(texts) => {
                let texts = texts.as_string_view();
                texts.value(a).cmp(texts.value(b))
            }
        }
    }
}

/// The order of two floats: there is one zero and one NaN, which is the greatest.
pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) => order,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_the_greatest_and_zeros_are_equal() {
        let sorted = [f64::NEG_INFINITY, -1.0, 0.0, f64::INFINITY, f64::NAN];
        for (a, x) in sorted.iter().enumerate() {
            for (b, y) in sorted.iter().enumerate() {
                assert_eq!(compare_floats(*x, *y), a.cmp(&b), "{x} {y}");
            }
        }
        assert!(compare_floats(-0.0, 0.0).is_eq());
        assert!(compare_floats(-f64::NAN, f64::NAN).is_eq());
    }
}
