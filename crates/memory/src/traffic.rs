//! Counters of the bytes that the engine reads, by the node of the reader and the node of the page.

use std::sync::atomic::{AtomicU64, Ordering};

/// Two 64-byte lines: processors fetch lines in pairs.
const CELLS: usize = 16;

/// Holds counters of one row of the matrix only, so that readers on different nodes never write to the same line (no
/// false sharing).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; CELLS]);

/// Bytes read, per node of the reader and node of the page.
///
/// The engine adds what its kernels consume (value width times values); no hardware counter is
/// involved. All nodes are indexes into the machine's nodes.
///
/// ```
/// let traffic = memory::Traffic::new(2);
/// traffic.add(0, 0, 300);
/// traffic.add(0, 1, 100);
/// assert_eq!(traffic.matrix(), [[300, 100], [0, 0]]);
/// assert_eq!((traffic.local(), traffic.total()), (300, 400));
/// ```
#[derive(Debug)]
pub struct Traffic {
    nodes: usize,
    /// Lines per row.
    stride: usize,
    lines: Vec<Line>,
}

impl Traffic {
    /// No bytes yet, between `nodes` nodes (at least one is assumed).
    pub fn new(nodes: usize) -> Traffic {
        let nodes = nodes.max(1);
        let stride = nodes.div_ceil(CELLS);
        let lines = std::iter::repeat_with(Line::default)
            .take(nodes * stride)
            .collect();
        Traffic {
            nodes,
            stride,
            lines,
        }
    }

    fn cell(&self, reader: usize, page: usize) -> &AtomicU64 {
        &self.lines[reader * self.stride + page / CELLS].0[page % CELLS]
    }

    /// A reader on node `reader` consumed `bytes` of a page on node `page`. A node that does
    /// not exist is a bug of the caller: asserted in debug builds, otherwise not counted.
    pub fn add(&self, reader: usize, page: usize, bytes: u64) {
        debug_assert!(
            reader < self.nodes && page < self.nodes,
            "no node {reader} or {page}"
        );
        if reader < self.nodes && page < self.nodes {
            self.cell(reader, page).fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Adds all that `other` counted; nodes that this one does not have are left out.
    pub fn merge(&self, other: &Traffic) {
        let nodes = self.nodes.min(other.nodes);
        for reader in 0..nodes {
            for page in 0..nodes {
                let bytes = other.cell(reader, page).load(Ordering::Relaxed);
                if bytes > 0 {
                    self.add(reader, page, bytes);
                }
            }
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Bytes by `[node of the reader][node of the page]`.
    pub fn matrix(&self) -> Vec<Vec<u64>> {
        let row = |reader| {
            (0..self.nodes)
                .map(|page| self.cell(reader, page).load(Ordering::Relaxed))
                .collect()
        };
        (0..self.nodes).map(row).collect()
    }

    /// Bytes that were read on the node they are on.
    pub fn local(&self) -> u64 {
        (0..self.nodes)
            .map(|node| self.cell(node, node).load(Ordering::Relaxed))
            .sum()
    }

    /// All bytes read.
    pub fn total(&self) -> u64 {
        self.matrix().iter().flatten().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_do_not_share_lines_and_cells_do_not_mix() {
        let traffic = Traffic::new(17);
        for reader in 0..17 {
            for page in 0..17 {
                traffic.add(reader, page, (reader * 100 + page) as u64);
            }
        }
        for (reader, row) in traffic.matrix().iter().enumerate() {
            for (page, bytes) in row.iter().enumerate() {
                assert_eq!(*bytes, (reader * 100 + page) as u64);
            }
        }
        let first = std::ptr::from_ref(traffic.cell(0, 16)).addr();
        let second = std::ptr::from_ref(traffic.cell(1, 0)).addr();
        assert_ne!(first / 128, second / 128);
        let sum = Traffic::new(17);
        sum.merge(&traffic);
        sum.merge(&traffic);
        assert_eq!(sum.total(), 2 * traffic.total());
        assert_eq!(sum.local(), 2 * traffic.local());
    }

    #[test]
    fn counts_exactly_under_threads() {
        let traffic = Traffic::new(2);
        std::thread::scope(|scope| {
            for reader in 0..4 {
                let traffic = &traffic;
                scope.spawn(move || (0..10_000).for_each(|_| traffic.add(reader % 2, 1, 3)));
            }
        });
        assert_eq!(traffic.total(), 4 * 10_000 * 3);
    }
}
