//! Reading ahead over the blocks that a scan opens next (row B13).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use buffer::{PageId, Pool};

use crate::catalog::table::Table;
use crate::format::block::{Block, Matrix};
use crate::scan::filter::Filter;
use crate::scan::parts::DocumentPart;

/// Blocks of the largest window, as far as the pool allows so many.
const MOST: usize = 32;
/// The pages asked for at once take at most this share of the frames.
const SHARE: usize = 8;

/// How far a scan reads ahead. All workers share it: together they open the blocks in their order,
/// or nearly so.
///
/// Nothing is read ahead until a worker has to wait for a page; each time one has to, the window
/// doubles. So a scan of pages that are in memory pays nothing, and one that is fast enough for the
/// device has no larger window than it needs.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Blocks that are read ahead of the one that is opened.
    window: AtomicUsize,
    /// The blocks before this one were asked for.
    front: AtomicUsize,
    /// Pages of the wanted columns in the blocks opened so far, and how many of them were needed: few,
    /// where filters leave few rows.
    offered: AtomicU64,
    needed: AtomicU64,
}

impl Ahead {
    /// Whether most pages of the wanted columns are needed, so that it pays to read them ahead.
    fn all_columns(&self) -> bool {
        let offered = self.offered.load(Ordering::Relaxed);
        self.needed.load(Ordering::Relaxed) * 2 >= offered
    }

    /// Notes how many pages of the wanted columns of a block were needed.
    pub fn needed(&self, needed: usize, offered: usize) {
        self.needed.fetch_add(needed as u64, Ordering::Relaxed);
        self.offered.fetch_add(offered as u64, Ordering::Relaxed);
    }

    /// Notes that a worker had to wait for a page.
    pub fn waited(&self) {
        let window = self.window.load(Ordering::Relaxed);
        let wider = (window * 2).clamp(1, MOST);
        // Where several waited for the same, one of them counts.
        let swap = &self.window;
        let _ = swap.compare_exchange(window, wider, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Which block to read next when this one is opened, and up to which; `None` if more than half of
    /// the window was asked for already.
    fn turn(&self, opened: usize, blocks: usize) -> Option<(usize, usize)> {
        let window = self.window.load(Ordering::Relaxed);
        let end = (opened + 1 + window).min(blocks);
        let mut front = self.front.load(Ordering::Relaxed);
        if front > opened + 1 + 2 * MOST {
            // The scan has begun anew.
            front = 0;
        }
        let from = front.max(opened + 1);
        (from < end && from <= opened + 1 + window / 2).then_some((from, end))
    }

    /// Asks for the pages of the blocks after the one that is opened, as far as the window goes: those
    /// of `filters`, and those of `columns` if most of them are needed.
    pub fn read(
        &self,
        pool: &Arc<Pool>,
        table: &Table,
        opened: usize,
        filters: &[Filter],
        (columns, parts): (&[usize], &[DocumentPart]),
    ) {
        let blocks = &table.body.blocks;
        let seen = self.front.load(Ordering::Relaxed);
        let Some((from, end)) = self.turn(opened, blocks.len()) else {
            return;
        };
        let wanted = if self.all_columns() {
            (columns, parts)
        } else {
            (&[][..], &[][..])
        };
        let most = (pool.frames() / SHARE).max(1);
        let (mut pages, mut reached) = (Vec::new(), from);
        for stored in &blocks[from..end] {
            if pages.len() >= most {
                break;
            }
            add_pages(&stored.value, filters, wanted, &mut pages);
            reached += 1;
        }
        // One block may have more than the pool can spare: the rest is loaded when it is opened. Beside
        // a block that takes half of the frames there is no room for another.
        if pages.len() > most * SHARE / 2 {
            return;
        }
        pages.truncate(most);
        // Another worker that was here at the same time asks for the same.
        let swap = &self.front;
        let mine = swap.compare_exchange(seen, reached, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_ok() {
            pool.prefetch(&pages);
        }
    }
}

/// Adds the pages of a block that are read for `filters`, and of columns and parts of documents.
fn add_pages(
    block: &Block,
    filters: &[Filter],
    (columns, parts): (&[usize], &[DocumentPart]),
    pages: &mut Vec<PageId>,
) {
    if filters.iter().any(|filter| filter.excludes(block)) {
        return;
    }
    let filtered = filters.iter().flat_map(|filter| &filter.columns);
    let mut columns: Vec<usize> = filtered.chain(columns).copied().collect();
    for part in parts {
        match part.place(block) {
            place if place.form.is_some() => pages.extend(all_pages(place.matrix)),
            _ => columns.push(part.column),
        }
    }
    columns.sort_unstable();
    columns.dedup();
    for column in columns {
        pages.extend(all_pages(&block.columns[column]));
    }
}

/// All pages of a column of a block.
fn all_pages(matrix: &Matrix) -> impl Iterator<Item = PageId> + '_ {
    let values = matrix.pages.iter();
    let values = values.flat_map(|page| std::iter::once(page.id).chain(page.more.iter().copied()));
    values.chain(matrix.validity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_with_each_wait_and_is_asked_for_by_halves() {
        let ahead = Ahead::default();
        assert_eq!(ahead.turn(0, 1000), None, "nobody waited");
        ahead.waited();
        assert_eq!(ahead.turn(0, 1000), Some((1, 2)));
        for _ in 0..10 {
            ahead.waited();
        }
        assert_eq!(ahead.turn(0, 1000), Some((1, 1 + MOST)));
        ahead.front.store(1 + MOST, Ordering::Relaxed);
        assert_eq!(ahead.turn(5, 1000), None, "half of it is still ahead");
        assert_eq!(ahead.turn(16, 1000), Some((1 + MOST, 17 + MOST)));
        assert_eq!(ahead.turn(16, 20), None, "the table ends");
        ahead.front.store(900, Ordering::Relaxed);
        assert_eq!(ahead.turn(0, 1000), Some((1, 1 + MOST)), "it begins anew");
    }

    #[test]
    fn columns_that_filters_leave_little_of_are_not_read_ahead() {
        let ahead = Ahead::default();
        assert!(ahead.all_columns());
        ahead.needed(1, 10);
        assert!(!ahead.all_columns());
        ahead.needed(20, 20);
        assert!(ahead.all_columns());
    }
}
