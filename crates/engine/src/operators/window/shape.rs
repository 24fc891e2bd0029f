//! Partitions, peers and frames among sorted rows.

use std::ops::Range;

use crate::logical::relation::{FrameBounds, FrameEdge};
use crate::operators::window::cells::Cells;

/// Where partitions and groups of peers begin. Both end with the number of rows.
pub(super) struct Shape {
    pub rows: usize,
    partitions: Vec<usize>,
    peers: Vec<usize>,
}

/// The rows of a partition.
pub(super) struct Partition<'s> {
    pub rows: Range<usize>,
    /// Where its groups of peers begin, and its end.
    peers: &'s [usize],
}

impl Shape {
    /// That of rows sorted by the keys `partition` and then by `order`.
    pub fn of(rows: usize, partition: &[Cells<'_>], order: &[Cells<'_>]) -> Shape {
        let (mut partitions, mut peers) = (vec![], vec![]);
        for row in 0..rows {
            let differs = |key: &Cells<'_>| row == 0 || !key.same(row - 1, row);
            let begins = row == 0 || partition.iter().any(differs);
            if begins {
                partitions.push(row);
            }
            if begins || order.iter().any(differs) {
                peers.push(row);
            }
        }
        partitions.push(rows);
        peers.push(rows);
        Shape {
            rows,
            partitions,
            peers,
        }
    }

    /// All partitions, in their order.
    pub fn partitions(&self) -> impl Iterator<Item = Partition<'_>> {
        let mut first = 0;
        self.partitions.windows(2).map(move |ends| {
            let (from, end) = (first, ends[1]);
            while self.peers[first] < end {
                first += 1;
            }
            Partition {
                rows: ends[0]..end,
                peers: &self.peers[from..=first],
            }
        })
    }
}

impl Partition<'_> {
    /// The groups of peers, in their order.
    pub fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        self.peers.windows(2).map(|ends| ends[0]..ends[1])
    }

    /// The frames of its rows, in their order. Neither their starts nor their ends ever go back.
    pub fn frames(&self, frame: FrameBounds) -> impl Iterator<Item = Range<usize>> {
        let Range { start, end } = self.rows;
        let mut group = 0;
        self.rows.clone().map(move |row| {
            let mut own = row..row + 1;
            if frame.peers {
                while self.peers[group + 1] <= row {
                    group += 1;
                }
                own = self.peers[group]..self.peers[group + 1];
            }
            let from = match frame.start {
                FrameEdge::First => start,
                FrameEdge::Preceding(rows) => row.saturating_sub(distance(rows)).max(start),
                FrameEdge::Current => own.start,
                FrameEdge::Following(rows) => row.saturating_add(distance(rows)).min(end),
                FrameEdge::Last => end,
            };
            let to = match frame.end {
                FrameEdge::First => start,
                FrameEdge::Preceding(rows) => (row + 1).saturating_sub(distance(rows)).max(start),
                FrameEdge::Current => own.end,
                FrameEdge::Following(rows) => (row + 1).saturating_add(distance(rows)).min(end),
                FrameEdge::Last => end,
            };
            from..to.max(from)
        })
    }
}

fn distance(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}
