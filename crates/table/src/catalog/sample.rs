//! A sample of a table's rows: which rows it has, and what was read of their columns.
//!
//! Planners estimate by it. Rows are chosen once for a version of a table, each from its own stretch of the rows, and columns are
//! read when they are first asked for (`scan/sample.rs`). A version that differs from the one before by few rows takes its sample
//! over.

use std::sync::{Arc, OnceLock};

use arrow::array::ArrayRef;
use roaring::RoaringBitmap;
use tokio::sync::OnceCell;

use crate::dictionary::Dictionary;

/// The most rows of a sample that has not all rows of its table.
pub const SAMPLE_ROWS: usize = 4_096;
/// The sample of a table with at most so many rows has all of them: of a dimension it is then known which keys its predicates leave.
pub const COMPLETE_ROWS: usize = 16_384;
/// The most pieces (blocks, chunks of the tail) that they are from.
const MOST_PIECES: usize = 16;
/// A sample without the newest rows, or with deleted ones, is as good if these are at most one of so many.
const FEW: u64 = 8;

/// The values of one column in the rows of a sample.
#[derive(Debug)]
pub struct SampledColumn {
    /// The values, in the order of the sample's rows. There may be fewer than rows: of texts, which lie on many pages, only those
    /// of the first pieces are read.
    pub values: ArrayRef,
    /// The same values as codes into the column's dictionary, which is beside them, if it is stored so.
    pub codes: Option<(Arc<Dictionary>, Vec<u32>)>,
    /// A number for each value, which is the same for equal values: the value itself for whole numbers of 64 bits. What stands for
    /// a NULL is not specified. Absent if values have none.
    pub keys: Option<Vec<u64>>,
    /// Whether each value is not NULL; absent if all are not.
    pub valid: Option<Vec<bool>>,
    /// Estimated number of distinct values that are not NULL, in the whole table; absent without `keys`.
    pub distinct: Option<f64>,
}

/// The sample of a table.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Its rows, by piece.
    pub pieces: Vec<Piece>,
    /// Whether it has all rows of the table.
    pub complete: bool,
    pub columns: Vec<OnceCell<Arc<SampledColumn>>>,
}

/// The rows of a sample that are of one block, or of one chunk of the tail.
#[derive(Debug)]
pub(crate) struct Piece {
    pub tail: bool,
    /// Its number among the blocks or chunks.
    pub index: usize,
    /// Their positions, ascending.
    pub rows: Vec<u32>,
}

/// The place of a table's sample.
#[derive(Debug, Default)]
pub(crate) struct SampleSlot(OnceLock<Arc<Sample>>);

impl SampleSlot {
    /// The sample, chosen by the first call.
    pub fn get_or_init(&self, choose: impl FnOnce() -> Sample) -> &Arc<Sample> {
        self.0.get_or_init(|| Arc::new(choose()))
    }

    /// A slot with the same sample, if there is one already.
    pub fn taken_over(&self) -> SampleSlot {
        let slot = SampleSlot::default();
        if let Some(sample) = self.0.get() {
            // The slot is new, so setting it cannot fail.
            let _ = slot.0.set(Arc::clone(sample));
        }
        slot
    }
}

/// How many rows the blocks and the chunks of the tail have.
pub(crate) struct PieceRows {
    pub blocks: Vec<usize>,
    pub tail: Vec<usize>,
}

impl PieceRows {
    /// Whether so many of the rows in blocks are few.
    pub fn are_few(&self, rows: u64) -> bool {
        rows * FEW <= self.stored() as u64
    }

    pub fn stored(&self) -> usize {
        self.blocks.iter().sum()
    }

    pub fn in_tail(&self) -> usize {
        self.tail.iter().sum()
    }

    fn is_small(&self) -> bool {
        self.stored() + self.in_tail() <= COMPLETE_ROWS
    }

    /// The pieces that rows are chosen from: whether it is of the tail, its number, and its rows.
    fn pieces(&self) -> Vec<(bool, usize, usize)> {
        let blocks = self.blocks.iter().enumerate();
        let mut all: Vec<(bool, usize, usize)> =
            blocks.map(|(i, rows)| (false, i, *rows)).collect();
        if self.is_small() || !self.are_few(self.in_tail() as u64) {
            let chunks = self.tail.iter().enumerate();
            all.extend(chunks.map(|(i, rows)| (true, i, *rows)));
        }
        if all.len() <= MOST_PIECES || self.is_small() {
            return all;
        }
        let at = |i: usize| all[i * all.len() / MOST_PIECES];
        (0..MOST_PIECES).map(at).collect()
    }
}

impl Sample {
    /// The number of its rows.
    pub fn rows(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rows.len()).sum()
    }

    /// The sample of a table of so many `columns` with these rows, of which those of a block that are `deleted` are left out.
    pub fn choose<'d>(
        rows: &PieceRows,
        columns: usize,
        deleted: impl Fn(usize) -> Option<&'d RoaringBitmap>,
    ) -> Sample {
        let pieces = rows.pieces();
        let all: usize = pieces.iter().map(|(_, _, rows)| rows).sum();
        let wanted = if rows.is_small() { all } else { SAMPLE_ROWS };
        let mut chosen: Vec<Option<Piece>> = Vec::with_capacity(pieces.len());
        let (mut row, mut before) = (0, 0);
        for (tail, index, rows) in pieces {
            let mut own = Vec::new();
            while row < wanted && place(row, wanted, all) < before + rows {
                own.push((place(row, wanted, all) - before) as u32);
                row += 1;
            }
            before += rows;
            if let Some(deleted) = deleted(index).filter(|_| !tail) {
                own.retain(|row| !deleted.contains(*row));
            }
            let piece = Piece {
                tail,
                index,
                rows: own,
            };
            chosen.push(Some(piece).filter(|piece| !piece.rows.is_empty()));
        }
        let in_turn = spread(chosen.len()).into_iter();
        Sample {
            pieces: in_turn.filter_map(|place| chosen[place].take()).collect(),
            complete: rows.is_small(),
            columns: (0..columns).map(|_| OnceCell::new()).collect(),
        }
    }
}

/// The numbers below `count` in an order whose first ones are from everywhere: by their bits, read backwards.
fn spread(count: usize) -> Vec<usize> {
    let bits = count.next_power_of_two().trailing_zeros();
    let turned = |place: &usize| place.reverse_bits().checked_shr(usize::BITS - bits);
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by_key(|place| turned(place).unwrap_or(0));
    places
}

/// Row number `row` of `wanted` from `all`: from its own stretch of them, at a place that has no period.
fn place(row: usize, wanted: usize, all: usize) -> usize {
    let (from, to) = (row * all / wanted, (row + 1) * all / wanted);
    let mixed = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    from + ((mixed >> 32) as usize) % (to - from).max(1)
}

/// An estimate of the distinct values among `rows` rows, from a number for each value of a sample of them: the estimator Duj1 of
/// Haas and Stokes (1998). Where no value comes twice, all rows have their own.
pub fn distinct_values(mut sample: Vec<u64>, rows: f64) -> f64 {
    let size = sample.len() as f64;
    if sample.is_empty() {
        return 0.0;
    }
    sample.sort_unstable();
    let (mut found, mut once) = (0.0, 0.0);
    for run in sample.chunk_by(|a, b| a == b) {
        found += 1.0;
        once += f64::from(run.len() == 1);
    }
    let rows = rows.max(size);
    let estimate = size * found / (size - once + once * size / rows);
    estimate.clamp(found, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_of_its_own_stretch() {
        for (wanted, all) in [(10, 10), (10, 1_000), (4_096, 73_049), (7, 8)] {
            let places: Vec<usize> = (0..wanted).map(|row| place(row, wanted, all)).collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{wanted} of {all}");
            assert!(places.last().is_some_and(|last| *last < all));
        }
    }

    #[test]
    fn the_first_pieces_are_from_everywhere() {
        assert_eq!(spread(8), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(spread(5), [0, 4, 2, 1, 3]);
        assert_eq!((spread(0), spread(1)), (vec![], vec![0]));
    }

    #[test]
    fn distinct_values_are_about_as_many_as_there_are() {
        let drawn = |values: u64, size: u64| -> Vec<u64> {
            let mixed = |i: u64| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            (0..size).map(|i| mixed(i * i + i) % values).collect()
        };
        assert_eq!(distinct_values(drawn(10, 4_096), 1e6), 10.0);
        assert_eq!(distinct_values((0..4_096).collect(), 1e6), 1e6);
        let found = distinct_values(drawn(50_000, 4_096), 2e6);
        assert!((25_000.0..100_000.0).contains(&found), "{found}");
        assert_eq!(distinct_values(vec![], 9.0), 0.0);
    }
}
