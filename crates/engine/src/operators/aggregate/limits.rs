//! Which rows of a batch may be among the first of their groups, as far as their first key tells.
//!
//! Most rows of a group that has many come after those that are kept of it. They are left out by comparing two numbers each,
//! before any row is compared with another.

use crate::operators::aggregate::accumulator::grow;
use crate::operators::aggregate::kept_columns::{BatchColumn, Cell};
use crate::vector::value::Values;

/// The limit of a group that may take any row, and the rank of a row that comes last.
const OPEN: u64 = u64::MAX;
/// The highest bit.
const SIGN: u64 = 1 << 63;
/// All NaNs, as bits.
const NAN: u64 = 0x7FF8_0000_0000_0000;

/// How values of a key become ranks: a row of a lesser rank comes first. Rows of one rank are equal in this key, except those of
/// the ranks 0 and `u64::MAX`, which NULLs have together with the ends of what whole numbers can be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranking {
    /// What ranks of an ascending order are combined with by exclusive or.
    flip: u64,
    null: u64,
}

impl Ranking {
    /// The ranking of a key.
    pub fn new(descending: bool, nulls_first: bool) -> Ranking {
        Ranking {
            flip: if descending { u64::MAX } else { 0 },
            null: if nulls_first { 0 } else { u64::MAX },
        }
    }

    #[inline(always)]
    fn whole(self, value: i64) -> u64 {
        value as u64 ^ SIGN ^ self.flip
    }

    /// Zeros are equal, and so are NaNs, which are the greatest.
    #[inline(always)]
    fn float(self, value: f64) -> u64 {
        // The sum of both zeros is the positive one.
        let bits = if value.is_nan() {
            NAN
        } else {
            (value + 0.0).to_bits()
        };
        // Negative numbers are the greater as bits, the less they are.
        let negative = (bits as i64 >> 63) as u64;
        bits ^ (negative | SIGN) ^ self.flip
    }

    /// The rank of a kept value; that of rows that come last, if values of its kind have none.
    pub fn of(self, cell: Cell<'_>) -> u64 {
        match cell {
            Cell::Null => self.null,
            Cell::Int(value) => self.whole(value),
            Cell::Float(value) => self.float(value),
            _ => OPEN,
        }
    }

    /// The ranks of a batch's values, in `ranks`; 0 if values of their kind have none.
    fn all(self, column: &BatchColumn<'_>, ranks: &mut Vec<u64>) {
        let (values, valid) = column.parts();
        ranks.clear();
        match values {
            Values::Int(values) => ranks.extend(values.iter().map(|value| self.whole(*value))),
            Values::Float(values) => ranks.extend(values.iter().map(|value| self.float(*value))),
            _ => return ranks.resize(values.len(), 0),
        }
        if let Some(valid) = valid {
            for (rank, valid) in ranks.iter_mut().zip(valid) {
                *rank = if *valid { *rank } else { self.null };
            }
        }
    }
}

/// For each group the greatest rank of a row that may be one of its first.
#[derive(Debug, Default)]
pub(crate) struct Limits(Vec<u64>);

impl Limits {
    /// Groups that may take any row.
    pub fn open(groups: usize) -> Limits {
        Limits(vec![OPEN; groups])
    }

    /// Grows to `groups` groups.
    pub fn resize(&mut self, groups: usize) {
        grow(&mut self.0, groups, |n| vec![OPEN; n], OPEN);
    }

    /// Whether a row of this rank may be one of the first of the group.
    #[inline(always)]
    pub fn allows(&self, group: usize, rank: u64) -> bool {
        rank <= self.0[group]
    }

    /// Notes that the group has as many rows as it keeps, of which the last has this rank. `equals` says whether it may also
    /// take rows that are equal in the first key.
    pub fn set(&mut self, group: usize, rank: u64, equals: bool) {
        // Of the ranks 0 and `OPEN` not all are equal.
        self.0[group] = match rank {
            0 | OPEN => rank,
            _ => rank - u64::from(!equals),
        };
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        8 * self.0.capacity()
    }
}

/// The rows of a batch that may be among the first of their groups. Reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// The rank of each row of the batch.
    ranks: Vec<u64>,
    rows: Vec<u32>,
}

impl Candidates {
    /// Finds the rows of a batch of `rows` rows that `limits` allow. `first` is the first key with its ranking; without one,
    /// these are all rows.
    pub fn find(
        &mut self,
        first: Option<(Ranking, &BatchColumn<'_>)>,
        groups: Option<&[u32]>,
        limits: &Limits,
        rows: usize,
    ) {
        match first {
            Some((ranking, column)) => ranking.all(column, &mut self.ranks),
            None => {
                self.ranks.clear();
                self.ranks.resize(rows, 0);
            }
        }
        let ranks = &self.ranks[..rows];
        self.rows.resize(rows, 0);
        // No branch: each row is written, and the next one over it unless it is a candidate.
        let mut count = 0;
        match groups {
            None => {
                for (row, rank) in ranks.iter().enumerate() {
                    self.rows[count] = row as u32;
                    count += usize::from(limits.allows(0, *rank));
                }
            }
            Some(groups) => {
                for (row, (rank, group)) in ranks.iter().zip(groups).enumerate() {
                    self.rows[count] = row as u32;
                    count += usize::from(limits.allows(*group as usize, *rank));
                }
            }
        }
        self.rows.truncate(count);
    }

    /// The rows, ascending, and the rank of each.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let rows = self.rows.iter().map(|row| *row as usize);
        rows.map(move |row| (row, self.ranks[row]))
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        8 * self.ranks.capacity() + 4 * self.rows.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::aggregate::kept_columns::Cells;
    use crate::vector::value::Vector;

    /// The ranks of values, each also as a kept one has it.
    fn ranks(ranking: Ranking, vector: &Vector) -> Vec<u64> {
        let column = BatchColumn::of(vector).unwrap();
        let mut ranks = vec![7];
        ranking.all(&column, &mut ranks);
        let kept: Vec<u64> = (0..vector.len())
            .map(|row| ranking.of(column.cell(row)))
            .collect();
        assert_eq!(ranks, kept);
        ranks
    }

    #[test]
    fn ranks_are_in_the_order_of_floats() {
        let values = vec![
            f64::NEG_INFINITY,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
            f64::NAN,
            -f64::NAN,
        ];
        let vector = Vector::new(Values::Float(values));
        let up = ranks(Ranking::new(false, true), &vector);
        assert!(up.is_sorted() && up[0] > 0 && up[9] < OPEN);
        let equals: Vec<usize> = (1..10).filter(|at| up[*at - 1] == up[*at]).collect();
        assert_eq!(equals, [4, 9]);
        let down = ranks(Ranking::new(true, true), &vector);
        assert!(up.iter().zip(&down).all(|(up, down)| *up == !down));
    }

    #[test]
    fn ranks_are_in_the_order_of_whole_numbers_and_nulls() {
        let values = vec![i64::MIN, -2, 0, 0, 1, i64::MAX, 5];
        let mut vector = Vector::new(Values::Int(values));
        vector.valid = Some(vec![true, true, true, true, true, true, false]);
        for descending in [false, true] {
            let first = ranks(Ranking::new(descending, true), &vector);
            let mut last = ranks(Ranking::new(descending, false), &vector);
            assert_eq!((first[6], last[6]), (0, OPEN));
            last.truncate(6);
            assert_eq!(first[..6], last);
            if descending {
                last.reverse();
            }
            assert!(last.is_sorted() && last[0] == 0 && last[5] == OPEN);
            assert_eq!(last.windows(2).filter(|two| two[0] == two[1]).count(), 1);
        }
    }

    #[test]
    fn only_rows_that_cannot_be_first_are_left_out() {
        let vector = Vector::new(Values::Int(vec![3, 4, 5, 9, 4]));
        let column = BatchColumn::of(&vector).unwrap();
        let ranking = Ranking::new(false, false);
        let four = ranking.of(Cell::Int(4));
        let mut limits = Limits::open(1);
        limits.resize(3);
        limits.set(0, four, true);
        let mut candidates = Candidates::default();
        let mut found = |limits: &Limits, groups: Option<&[u32]>, first| {
            candidates.find(first, groups, limits, 5);
            let rows: Vec<usize> = candidates.iter().map(|(row, _)| row).collect();
            rows
        };
        let first = Some((ranking, &column));
        assert_eq!(found(&limits, None, first), [0, 1, 4]);
        assert_eq!(found(&limits, Some(&[0, 0, 0, 2, 2]), first), [0, 1, 3, 4]);
        assert_eq!(found(&limits, None, None), [0, 1, 2, 3, 4]);
        limits.set(0, four, false);
        assert_eq!(found(&limits, None, first), [0]);
        // NULLs may have the ranks at the ends, too.
        for end in [0, OPEN] {
            limits.set(1, end, false);
            assert!(limits.allows(1, end));
        }
    }
}
