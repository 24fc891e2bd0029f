//! Rows of a morsel, by position.

use std::ops::Range;

/// Most rows of a batch that a scan delivers; no batch straddles more pages than it must.
pub const BATCH_ROWS: usize = 8_192;

/// The rows of one batch, by their positions in a morsel: a run of rows, or some of them in ascending order.
#[derive(Clone, Debug)]
pub enum Rows<'a> {
    /// From one position up to another.
    Run(Range<usize>),
    /// These positions, ascending.
    Some(&'a [u32]),
}

impl Rows<'_> {
    /// How many they are.
    pub fn len(&self) -> usize {
        match self {
            Rows::Run(run) => run.len(),
            Rows::Some(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part that lies in `page`.
    pub(crate) fn within(&self, page: &Range<usize>) -> PageRows<'_> {
        match self {
            Rows::Run(run) => {
                let (start, end) = (run.start.max(page.start), run.end.min(page.end));
                PageRows::Run(start - page.start..end.max(start) - page.start)
            }
            Rows::Some(rows) => {
                let from = rows.partition_point(|r| (*r as usize) < page.start);
                let to = rows.partition_point(|r| (*r as usize) < page.end);
                PageRows::Some(&rows[from..to])
            }
        }
    }
}

/// Rows in one page: a run counts from the first row of the page, positions from that of the block.
pub(crate) enum PageRows<'a> {
    Run(Range<usize>),
    Some(&'a [u32]),
}

impl PageRows<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            PageRows::Run(run) => run.is_empty(),
            PageRows::Some(rows) => rows.is_empty(),
        }
    }
}
