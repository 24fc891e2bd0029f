//! Rows of a morsel, by position.

use std::ops::Range;

/// The most rows of a batch that a scan delivers.
pub const BATCH_ROWS: usize = 8_192;

/// Rows of a morsel, by their positions in it: of a block or of a chunk of the tail.
#[derive(Clone, Debug)]
pub enum Rows<'a> {
    /// All rows of a range of positions.
    Run(Range<usize>),
    /// These positions, ascending.
    Some(&'a [u32]),
}

impl Rows<'_> {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Rows::Run(run) => run.len(),
            Rows::Some(rows) => rows.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those that lie in a page, `page` being the positions of its rows.
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

/// Rows of one page: a run counts from the first row of the page, positions from that of the block.
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
