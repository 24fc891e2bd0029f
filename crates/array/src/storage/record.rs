//! Records of chunks: where the values of an attribute lie, and what is known of them.

use buffer::PageId;
use serde::{Deserialize, Serialize};

use crate::data::block::Column;
use crate::model::schema::Compression;
use crate::model::types::{DataType, Element, Scalar, with_type};
use crate::storage::codec::BLOCK;

/// An attribute of a chunk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The placement bucket of its pages.
    pub bucket: u8,
    /// The cells along each dimension that are stored: fewer than the chunk may have at the end of a dimension. Of a
    /// sparse chunk just how many there are.
    pub shape: Vec<u32>,
    pub statistics: Statistics,
    pub values: Plane,
    /// A byte for each cell, 0 where it is null, if any is.
    pub valid: Option<Plane>,
}

impl Record {
    /// What it has in pages: the values, and which are null.
    pub fn planes(&self) -> impl Iterator<Item = &Plane> {
        [Some(&self.values), self.valid.as_ref()]
            .into_iter()
            .flatten()
    }
}

/// Bytes in pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plane {
    /// Before compression.
    pub bytes: u64,
    /// Bytes of a value.
    pub width: u8,
    pub compression: Compression,
    /// Bytes of each compressed block; none where it is not compressed.
    pub blocks: Vec<u32>,
    /// The pages as runs: the first of each, and how many.
    pub pages: Vec<(PageId, u32)>,
}

impl Plane {
    /// Bytes as they are stored.
    pub fn stored(&self) -> u64 {
        match self.compression {
            Compression::None => self.bytes,
            _ => self.blocks.iter().map(|&length| u64::from(length)).sum(),
        }
    }

    /// The page with this number, from 0.
    pub fn page(&self, number: u64) -> Option<PageId> {
        let mut left = number;
        for &(first, count) in &self.pages {
            if left < u64::from(count) {
                return first.checked_add(left as u32);
            }
            left -= u64::from(count);
        }
        None
    }

    /// All pages.
    pub fn each_page(&self) -> impl Iterator<Item = PageId> {
        let run =
            |&(first, count): &(PageId, u32)| (0..count).map(move |at| first.wrapping_add(at));
        self.pages.iter().flat_map(run)
    }

    /// Whether it names as many blocks and pages as its bytes take, so that nothing more is asked of these numbers.
    pub fn has_its_pages(&self, page_size: usize) -> bool {
        let blocks = match self.compression {
            Compression::None => 0,
            _ => self.bytes.div_ceil(BLOCK as u64),
        };
        self.blocks.len() as u64 == blocks
            && self.page_count() == self.stored().div_ceil(page_size as u64)
    }

    /// How many pages there are.
    pub fn page_count(&self) -> u64 {
        self.pages.iter().map(|&(_, count)| u64::from(count)).sum()
    }
}

/// What is known of the values of an attribute in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The cells.
    pub cells: u64,
    /// How many of them are null.
    pub nulls: u64,
    /// How many are no number.
    pub nans: u64,
    /// The least value that is a number; null if there is none.
    pub min: Scalar,
    /// The greatest value that is a number; null if there is none.
    pub max: Scalar,
}

impl Statistics {
    /// Those of a column.
    pub(crate) fn of(column: &Column) -> Statistics {
        let of = column.values().data_type();
        let (nulls, nans, ends) = with_type!(of, T => {
            let values = column.values().values::<T>();
            let (nulls, nans, ends) = scan(values, column.valid());
            (nulls, nans, ends.map(|(low, high)| (scalar(of, low), scalar(of, high))))
        });
        let (min, max) = ends.unwrap_or((Scalar::Null, Scalar::Null));
        Statistics {
            cells: column.values().len() as u64,
            nulls,
            nans,
            min,
            max,
        }
    }

    /// Those of `cells` cells that all have one value.
    pub(crate) fn constant(value: Scalar, cells: u64) -> Statistics {
        let nan = matches!(value, Scalar::Float(value) if value.is_nan());
        let end = if nan { Scalar::Null } else { value };
        Statistics {
            cells,
            nulls: if value.is_null() { cells } else { 0 },
            nans: if nan { cells } else { 0 },
            min: end,
            max: end,
        }
    }

    /// Those of the cells of both.
    pub(crate) fn merged(self, other: Statistics) -> Statistics {
        let pick = |a: Scalar, b: Scalar, first: std::cmp::Ordering| match (a.order(b), a, b) {
            (_, Scalar::Null, only) | (_, only, Scalar::Null) => only,
            (Some(order), a, b) => {
                if order == first {
                    a
                } else {
                    b
                }
            }
            (None, a, _) => a,
        };
        Statistics {
            cells: self.cells + other.cells,
            nulls: self.nulls + other.nulls,
            nans: self.nans + other.nans,
            min: pick(self.min, other.min, std::cmp::Ordering::Less),
            max: pick(self.max, other.max, std::cmp::Ordering::Greater),
        }
    }
}

/// How many are null, how many no number, and the least and greatest of the others.
fn scan<T: Element>(values: &[T], valid: Option<&[u8]>) -> (u64, u64, Option<(T, T)>) {
    let (mut nulls, mut nans) = (0, 0);
    let mut ends: Option<(T, T)> = None;
    for (at, &value) in values.iter().enumerate() {
        if valid.is_some_and(|valid| valid[at] == 0) {
            nulls += 1;
            continue;
        }
        // What does not equal itself is no number.
        if value.partial_cmp(&value).is_none() {
            nans += 1;
            continue;
        }
        ends = Some(match ends {
            None => (value, value),
            Some((low, high)) => (
                if value < low { value } else { low },
                if value > high { value } else { high },
            ),
        });
    }
    (nulls, nans, ends)
}

fn scalar<T: Element>(of: DataType, value: T) -> Scalar {
    match of {
        DataType::Bool => Scalar::Bool(value.to_i128() != 0),
        DataType::F32 | DataType::F64 => Scalar::Float(value.to_f64()),
        _ => Scalar::Int(value.to_i128()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::buffer::Buffer;

    #[test]
    fn nulls_and_nans_are_counted_and_no_ends() {
        let values = Buffer::of(DataType::F32, &[f32::NAN, 3.0, -1.0, 99.0]);
        let of = Statistics::of(&Column::nullable(values, vec![1, 1, 1, 0]));
        assert_eq!((of.nulls, of.nans), (1, 1));
        assert_eq!((of.min, of.max), (Scalar::Float(-1.0), Scalar::Float(3.0)));
        let both = of.merged(Statistics::constant(Scalar::Float(f64::NAN), 2));
        assert_eq!(
            (both.cells, both.nans, both.max),
            (6, 3, Scalar::Float(3.0))
        );
        let both = of.merged(Statistics::constant(Scalar::Float(7.0), 2));
        assert_eq!(
            (both.min, both.max),
            (Scalar::Float(-1.0), Scalar::Float(7.0))
        );
    }

    #[test]
    fn pages_are_found_in_their_runs() {
        let plane = Plane {
            bytes: 0,
            width: 8,
            compression: Compression::None,
            blocks: Vec::new(),
            pages: vec![(7, 2), (40, 1), (9, 3)],
        };
        let all: Vec<_> = (0..6).map_while(|at| plane.page(at)).collect();
        assert_eq!(all, [7, 8, 40, 9, 10, 11]);
        assert_eq!(plane.each_page().collect::<Vec<_>>(), all);
        assert_eq!(plane.page(6), None);
    }
}
