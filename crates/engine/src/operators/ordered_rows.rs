//! The rows of a join table by their keys, those of a key in the order of a number: what lies in a range, or next to a number, is found
//! by halving.

use std::borrow::Cow;
use std::ops::Range;

use algebra::dot::NONE;

use crate::logical::relation::Key;
use crate::vector::value::{Values, Var, Vector};

/// Rows in the order of a number, without those in which it is NULL.
#[derive(Debug)]
pub(crate) struct OrderedRows {
    /// The vector of the numbers.
    of: Var,
    /// The order of rows with the same number.
    ties: Vec<Key>,
    /// Where the rows of each group of equal keys begin, and behind the last.
    starts: Vec<u32>,
    /// The numbers, those of a group ascending.
    values: Vec<i64>,
    /// The row of each.
    rows: Vec<u32>,
}

impl OrderedRows {
    /// Those of groups of rows, which are given one after the other with where each begins and where the last ends; `ranks` says of
    /// rows with the same number which comes first. `None` if `column`, which is the vector of the order, has no numbers of 64 bits.
    pub fn new(
        (of, ties): (Var, &[Key]),
        column: &Vector,
        (starts, all): (&[u32], &[u32]),
        ranks: Option<&[u32]>,
    ) -> Option<OrderedRows> {
        let numbers = ordinals(column)?;
        let valid = column.valid.as_deref();
        let (mut values, mut rows) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
        let mut own: Vec<(i64, u32, u32)> = Vec::new();
        let mut ends = Vec::with_capacity(starts.len());
        ends.push(0);
        for group in starts.windows(2) {
            own.clear();
            for row in &all[group[0] as usize..group[1] as usize] {
                let at = *row as usize;
                if valid.is_none_or(|valid| valid[at]) {
                    own.push((numbers[at], ranks.map_or(0, |ranks| ranks[at]), *row));
                }
            }
            // Rows of a table often have the order of time.
            if !own.is_sorted() {
                own.sort_unstable();
            }
            values.extend(own.iter().map(|(value, ..)| *value));
            rows.extend(own.iter().map(|(.., row)| *row));
            ends.push(rows.len() as u32);
        }
        Some(OrderedRows {
            of,
            ties: ties.to_vec(),
            starts: ends,
            values,
            rows,
        })
    }

    /// About the bytes of the order of so many rows.
    pub fn memory(rows: usize) -> usize {
        rows * (size_of::<i64>() + 2 * size_of::<u32>())
    }

    /// Whether this is the order of the vector `of` and of `ties`.
    pub fn is_by(&self, of: Var, ties: &[Key]) -> bool {
        self.of == of && self.ties == ties
    }

    /// The places of the rows of each of these groups; none for [`NONE`].
    pub fn runs(&self, groups: &[u32]) -> Vec<Range<usize>> {
        let run = |group: &u32| match *group {
            NONE => 0..0,
            group => {
                let group = group as usize;
                self.starts[group] as usize..self.starts[group + 1] as usize
            }
        };
        groups.iter().map(run).collect()
    }

    /// The numbers by place.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// The rows by place.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}

/// Numbers of 64 bits that compare as those of a vector do; `None` if it has none.
pub(crate) fn ordinals(column: &Vector) -> Option<Cow<'_, [i64]>> {
    match &column.values {
        Values::Int(values) => Some(Cow::Borrowed(values)),
        Values::Float(values) => Some(values.iter().map(|value| ordinal(*value)).collect()),
        _ => None,
    }
}

/// A whole number for a float: both zeros have one, and that of NaN is greater than all others.
fn ordinal(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_ordered_as_postgresql_orders_them() {
        let ascending = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            f64::from_bits(1),
            1.5,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        let numbers = ascending.map(ordinal);
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(ordinal(-0.0), ordinal(0.0));
        assert_eq!(ordinal(-f64::NAN), ordinal(f64::NAN));
    }

    #[test]
    fn rows_are_ordered_within_their_groups() {
        let column = Vector {
            values: Values::Int(vec![5, 3, 0, 4, 3, 9]),
            valid: Some(vec![true, true, false, true, true, true]),
        };
        let groups: (&[u32], &[u32]) = (&[0, 4, 4, 6], &[0, 1, 2, 4, 3, 5]);
        let plain = OrderedRows::new((7, &[]), &column, groups, None).unwrap();
        assert!(plain.is_by(7, &[]) && !plain.is_by(8, &[]));
        assert_eq!(plain.values(), [3, 3, 5, 4, 9]);
        assert_eq!(plain.rows(), [1, 4, 0, 3, 5]);
        assert_eq!(plain.runs(&[2, NONE, 1, 0]), [3..5, 0..0, 3..3, 0..3]);
        let ranks = [0, 2, 0, 0, 1, 0];
        let tied = OrderedRows::new((7, &[]), &column, groups, Some(&ranks)).unwrap();
        assert_eq!(tied.rows(), [4, 1, 0, 3, 5]);
    }
}
