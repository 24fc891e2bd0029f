//! Partitions and peers among sorted rows.

use std::ops::Range;

use arrow::array::AsArray;

use crate::cancel::Stop;
use crate::error::Result;
use crate::vector::value::{Values, Vector};

/// Rows after which it is looked whether the query was cancelled.
const BLOCK: usize = 1 << 16;

/// Where partitions and groups of peers begin. Both end with the number of rows.
pub(super) struct Shape {
    pub rows: usize,
    partitions: Vec<usize>,
    /// Empty if nobody asks for peers.
    peers: Vec<usize>,
    pub stop: Stop,
}

/// The rows of a partition.
pub(super) struct Partition<'s> {
    pub rows: Range<usize>,
    /// Where its groups of peers begin, and its end.
    pub peers: &'s [usize],
}

impl Shape {
    /// That of rows sorted by the keys `partition` and then by `order`; without peers if there is no order given.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled); those of strings.
    pub fn of(
        rows: usize,
        partition: &[&Vector],
        order: Option<&[&Vector]>,
        stop: &Stop,
    ) -> Result<Shape> {
        let mut begins = vec![false; rows];
        if let Some(first) = begins.first_mut() {
            *first = true;
        }
        for key in partition {
            mark(key, &mut begins, stop)?;
        }
        let partitions = places(&begins);
        let peers = match order {
            None => vec![],
            Some(order) => {
                for key in order {
                    mark(key, &mut begins, stop)?;
                }
                places(&begins)
            }
        };
        Ok(Shape {
            rows,
            partitions,
            peers,
            stop: stop.clone(),
        })
    }

    /// All partitions, in their order.
    pub fn partitions(&self) -> impl Iterator<Item = Partition<'_>> {
        let mut first = 0;
        self.partitions.windows(2).map(move |ends| {
            let (from, end) = (first, ends[1]);
            let peers = if self.peers.is_empty() {
                &self.peers[..]
            } else {
                // It is there: what ends partitions ends peers.
                first += self.peers[first..].partition_point(|begin| *begin < end);
                &self.peers[from..=first]
            };
            Partition {
                rows: ends[0]..end,
                peers,
            }
        })
    }

    /// Calls `each` with runs of rows, in their order, of a partition each. Between, the query can be cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn each_run(&self, mut each: impl FnMut(Range<usize>)) -> Result<()> {
        for ends in self.partitions.windows(2) {
            each_block(ends[0]..ends[1], &self.stop, &mut each)?;
        }
        Ok(())
    }
}

/// Calls `each` with blocks of `rows`, in their order. Between, the query can be cancelled.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(super) fn each_block(
    rows: Range<usize>,
    stop: &Stop,
    mut each: impl FnMut(Range<usize>),
) -> Result<()> {
    let mut from = rows.start;
    while from < rows.end {
        let to = rows.end.min((from / BLOCK + 1) * BLOCK);
        // Blocks begin at the same rows whatever the partitions are.
        if from % BLOCK == 0 {
            stop.check()?;
        }
        each(from..to);
        from = to;
    }
    Ok(())
}

impl Partition<'_> {
    /// The groups of peers, in their order.
    pub fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        self.peers.windows(2).map(|ends| ends[0]..ends[1])
    }
}

/// The rows with a mark, and the number of rows.
fn places(marks: &[bool]) -> Vec<usize> {
    let count = marks.iter().filter(|mark| **mark).count();
    let mut places = Vec::with_capacity(count + 1);
    let marked = marks.iter().enumerate().filter(|(_, mark)| **mark);
    places.extend(marked.map(|(row, _)| row));
    places.push(marks.len());
    places
}

/// Marks the rows whose value is not that of the row before. NULL is the same as NULL.
fn mark(key: &Vector, marks: &mut [bool], stop: &Stop) -> Result<()> {
    let valid = key.valid.as_deref();
    match &key.values {
        Values::Int(v) => differing(valid, marks, stop, |row| v[row] != v[row - 1]),
        Values::Wide(v) => differing(valid, marks, stop, |row| v[row] != v[row - 1]),
        Values::Bool(v) => differing(valid, marks, stop, |row| v[row] != v[row - 1]),
        Values::Code(v) => differing(valid, marks, stop, |row| v[row] != v[row - 1]),
        Values::Float(v) => differing(valid, marks, stop, |row| {
            let (a, b) = (v[row], v[row - 1]);
            a != b && !(a.is_nan() && b.is_nan())
        }),
        Values::Text(v) => {
            let array = v.array()?;
            let texts = array.as_string_view();
            let views = texts.views();
            differing(valid, marks, stop, |row| {
                let (a, b) = (views[row], views[row - 1]);
                // The lower half has the length and the first bytes.
                a != b && (a as u64 != b as u64 || texts.value(row) != texts.value(row - 1))
            })
        }
    }
}

fn differing(
    valid: Option<&[bool]>,
    marks: &mut [bool],
    stop: &Stop,
    differs: impl Fn(usize) -> bool,
) -> Result<()> {
    each_block(1..marks.len(), stop, |rows| match valid {
        None => {
            for row in rows {
                marks[row] |= differs(row);
            }
        }
        Some(valid) => {
            for row in rows {
                let (own, last) = (valid[row], valid[row - 1]);
                marks[row] |= own != last || own && differs(row);
            }
        }
    })
}
