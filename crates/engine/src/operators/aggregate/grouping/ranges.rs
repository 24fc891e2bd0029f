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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::*;
    use crate::logical::relation::{Fold, Function};
    use crate::operators::aggregate::grouping::GroupedBy;
    use crate::vector::batch::Batch;
    use crate::vector::value::{Type, Values, Vector};

    /// Keys are far apart, so that no small dense index will do.
    const APART: i64 = 1 << 12;

    /// The number of rows.
    fn count() -> [Fold; 1] {
        [Fold {
            var: 2,
            function: Function::Count,
            arg: None,
        }]
    }

    proptest! {
        /// Each group is in one range, with what all workers counted of it.
        #[test]
        fn sorted_groups_of_workers_are_merged_by_range(
            workers in prop::collection::vec(prop::collection::btree_map(0i64..200, 1i64..5, 0..120), 1..6),
            parts in 1usize..9,
        ) {
            let types = |_| Type::of(&DataType::Int64, true).unwrap();
            let (mut sources, mut naive) = (vec![], BTreeMap::new());
            for worker in &workers {
                let own = [types(0)];
                let mut groups = Grouping::new(GroupedBy::Keys(&own), &count(), &types, 0, &[]).unwrap();
                let rows = worker.iter().flat_map(|(key, rows)| std::iter::repeat_n(key * APART, *rows as usize));
                let keys: Vec<i64> = rows.collect();
                let mut batch = Batch::new(3);
                batch.restart(keys.len());
                batch.set(0, Vector::new(Values::Int(keys)));
                groups.add(&batch, &[0], None).unwrap();
                prop_assert!(groups.is_by_range());
                sources.push(groups);
                for (key, rows) in worker {
                    *naive.entry(key * APART).or_insert(0) += rows;
                }
            }
            let ranges = Grouping::ranges(&sources, parts);
            prop_assert!((1..=parts).contains(&ranges.len()));
            let mut found = BTreeMap::new();
            for range in &ranges {
                for (key, count) in counts_by_one(Grouping::of_range(&sources, range).unwrap()) {
                    prop_assert!(found.insert(key, count).is_none(), "{} is in two ranges", key);
                }
            }
            prop_assert_eq!(found, naive);
        }
    }

    /// The counts of groups of one key.
    fn counts_by_one(groups: Grouping) -> Vec<(i64, i64)> {
        let types = |_| Type::of(&DataType::Int64, false).unwrap();
        let found = groups.finish(&count(), &types).unwrap();
        match (&found.keys[0].values, &found.results[0].values) {
            (Values::Int(keys), Values::Int(counts)) => {
                keys.iter().copied().zip(counts.iter().copied()).collect()
            }
            _ => panic!("{found:?}"),
        }
    }
}
