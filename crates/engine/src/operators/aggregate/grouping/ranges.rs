//! Merging sorted groups range by range of their keys, so that each range can be merged by another worker.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::operators::aggregate::grouping::{Grouping, KeyIndex};
use crate::operators::aggregate::sorted::SortedGroups;

/// Keys of each worker that are looked at to find ranges of about as many groups.
const SAMPLE: usize = 256;

impl Grouping {
    /// Whether its groups can be merged range by range: they are sorted, as one worker found them, and what is accumulated has one
    /// cell for each group.
    pub fn is_by_range(&self) -> bool {
        self.sorted().is_some_and(SortedGroups::is_one_run) && self.has_cells()
    }

    fn sorted(&self) -> Option<&SortedGroups> {
        match &self.key_index {
            KeyIndex::Sorted(groups) => Some(groups),
            _ => None,
        }
    }

    /// Up to `parts` ranges of keys, each of about as many groups of `sources`, which have all of them.
    pub fn ranges(sources: &[Grouping], parts: usize) -> Vec<Range<Option<i64>>> {
        let mut sample = Vec::with_capacity(SAMPLE * sources.len());
        for groups in sources.iter().filter_map(Grouping::sorted) {
            let step = (groups.len() / SAMPLE).max(1);
            sample.extend(groups.ascending().iter().skip(step / 2).step_by(step));
        }
        sample.sort_unstable();
        let cut = |part: usize| sample.get(part * sample.len() / parts.max(1)).copied();
        let mut cuts: Vec<i64> = (1..parts).filter_map(cut).collect();
        cuts.dedup();
        let starts = [None].into_iter().chain(cuts.iter().map(|cut| Some(*cut)));
        let ends = cuts.iter().map(|cut| Some(*cut)).chain([None]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// The groups of several workers with keys in a range.
    ///
    /// # Errors
    /// [`Error::Overflow`]; an internal error for groups that are not [sorted](Self::is_by_range).
    pub fn of_range(sources: &[Grouping], range: &Range<Option<i64>>) -> Result<Grouping> {
        let unlike = || Error::internal("a range of groups that are not sorted");
        let first = sources.first().ok_or_else(unlike)?;
        let mut all = first.like(KeyIndex::Sorted(
            first.sorted().ok_or_else(unlike)?.without_groups(),
        ))?;
        for source in sources {
            let theirs = source.sorted().ok_or_else(unlike)?;
            let run = theirs.within(range);
            let KeyIndex::Sorted(mine) = &mut all.key_index else {
                return Err(unlike());
            };
            let to = mine.adopt_run(&theirs.ascending()[run.clone()]);
            all.resize();
            let from: Vec<u32> = (run.start as u32..run.end as u32).collect();
            for (state, other) in all.states.iter_mut().zip(&source.states) {
                state.merge(other.as_ref(), &from, &to)?;
            }
        }
        Ok(all)
    }
}
