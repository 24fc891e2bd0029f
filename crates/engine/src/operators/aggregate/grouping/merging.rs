//! Merging the groups of workers one after the other, and moving groups to another kind of index.

use crate::error::{Error, Result};
use crate::operators::aggregate::grouping::{Grouping, KeyIndex, set};

/// Groups that are renumbered at a time.
const TAKEN: usize = 1 << 16;

impl Grouping {
    /// Moves its groups, of which several may have the same key, to `settled`, which it becomes.
    pub(super) fn settle(&mut self, mut settled: Grouping) -> Result<()> {
        settled.held = std::mem::take(&mut self.held);
        let before = std::mem::replace(self, settled);
        self.add_groups(before)
    }

    /// Adds groups that were found by another kind of index.
    fn add_groups(&mut self, mut other: Grouping) -> Result<()> {
        other.each_chunk(|other| {
            for from in other.numbers().chunks(TAKEN) {
                let keys = other.keys(from)?;
                self.number(&keys.iter().collect::<Vec<_>>(), None, from.len())?;
                for (state, other) in self.states.iter_mut().zip(&other.states) {
                    state.merge(other.as_ref(), from, &self.numbers)?;
                }
            }
            self.close_full(0)
        })
    }

    /// Merges the groups of another worker.
    pub fn merge(&mut self, mut other: Grouping) -> Result<()> {
        if self.has_long_texts() || other.has_long_texts() {
            self.tighten()?;
            other.tighten()?;
        }
        match (&self.key_index, &other.key_index) {
            (KeyIndex::Sorted(_), KeyIndex::Dense { .. } | KeyIndex::Hash { .. })
            | (KeyIndex::Hash { .. }, KeyIndex::Text { .. }) => {
                std::mem::swap(&mut self.held, &mut other.held);
                std::mem::swap(self, &mut other);
                self.add_groups(other)
            }
            (KeyIndex::Dense { .. } | KeyIndex::Hash { .. }, KeyIndex::Sorted(_))
            | (KeyIndex::Dense { .. }, KeyIndex::Hash { .. })
            | (KeyIndex::Text { .. }, KeyIndex::Hash { .. })
            | (KeyIndex::Hash { .. }, KeyIndex::Dense { .. }) => self.add_groups(other),
            _ => other.each_chunk(|other| self.adopt(other)),
        }
    }

    /// Merges groups that are found by the same kind of index.
    fn adopt(&mut self, other: &Grouping) -> Result<()> {
        let (from, to) = match (&mut self.key_index, &other.key_index) {
            (KeyIndex::One, KeyIndex::One) => (vec![0], vec![0]),
            (KeyIndex::Dense { seen: mine, .. }, KeyIndex::Dense { seen: theirs, .. })
            | (KeyIndex::Row { seen: mine }, KeyIndex::Row { seen: theirs }) => {
                let from = set(theirs);
                from.iter().for_each(|g| mine[*g as usize] = true);
                (from.clone(), from)
            }
            (
                KeyIndex::Hash {
                    groups,
                    interners,
                    layout,
                    ..
                },
                KeyIndex::Hash {
                    groups: theirs,
                    interners: their_texts,
                    ..
                },
            ) => {
                let to = layout.adopt((groups, interners), (theirs, their_texts))?;
                self.resize();
                ((0..theirs.len() as u32).collect(), to)
            }
            (KeyIndex::Text { texts, .. }, KeyIndex::Text { texts: theirs, .. }) => {
                let to = texts.adopt(theirs);
                self.resize();
                ((0..to.len() as u32).collect(), to)
            }
            (KeyIndex::Sorted(mine), KeyIndex::Sorted(theirs)) => {
                let to = mine.adopt(theirs);
                self.resize();
                ((0..to.len() as u32).collect(), to)
            }
            _ => return Err(Error::internal("groups made in different ways")),
        };
        for (state, other) in self.states.iter_mut().zip(&other.states) {
            state.merge(other.as_ref(), &from, &to)?;
        }
        self.close_full(0)
    }
}
