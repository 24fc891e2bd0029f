//! Groups by hash that hardly shrink: they are collected without looking whether a key has come before, and merged partition by
//! partition, in tables that are small.

use std::ops::Range;

use algebra::krao::{Groups, Partition};

use crate::error::{Error, Result};
use crate::operators::aggregate::grouping::layout::Layout;
use crate::operators::aggregate::grouping::shrinking::{FIRST_LOOK, Shrinking, different};
use crate::operators::aggregate::grouping::{Grouping, KeyIndex};
use crate::physical::shared_aggregates::Accumulation;
use crate::vector::interner::Interner;
use crate::vector::key_encoding::SharedStrings;

/// Groups that were divided by their hashes.
#[derive(Debug)]
pub(crate) struct Divided {
    /// What is accumulated; the keys are in the partitions.
    groups: Grouping,
    parts: Vec<Partition>,
}

impl KeyIndex {
    /// For keys of this layout, with room for so many groups before it grows.
    pub(super) fn hash(layout: Layout, groups: usize) -> KeyIndex {
        KeyIndex::Hash {
            groups: Groups::with_capacity(layout.words(), groups),
            layout,
            interners: vec![],
            shrinking: Shrinking::default(),
        }
    }
}

impl Grouping {
    /// Whether its groups can be merged partition by partition: they are found by hashes of what means the same for all
    /// workers, and what is accumulated has one cell for each group.
    pub fn is_by_hash(&self) -> bool {
        let has_cells = |own: &Accumulation| {
            !own.is_of_rows()
                && !matches!(own, Accumulation::Distinct { .. } | Accumulation::Call(_))
        };
        matches!(
            &self.key_index,
            KeyIndex::Hash { .. } | KeyIndex::Text { .. }
        ) && self.accumulated.iter().all(|own| has_cells(&own.what))
    }

    /// Whether some of its keys are strings with numbers of their own.
    pub(super) fn has_long_texts(&self) -> bool {
        matches!(&self.key_index, KeyIndex::Hash { interners, .. } if !interners.is_empty())
    }

    /// Whether several of its groups may have the same key, which [`tighten`](Self::tighten) and
    /// [`of_partition`](Self::of_partition) mend.
    pub fn is_loose(&self) -> bool {
        matches!(&self.key_index, KeyIndex::Hash { groups, .. } if groups.is_loose())
    }

    /// To be called before `rows` rows are numbered. Groups that are nearly as many as their rows become loose; where many of loose
    /// groups have the same key, they do not stay so.
    pub(super) fn look(&mut self, rows: usize) -> Result<()> {
        let now = self.group_count();
        let (KeyIndex::Hash { shrinking, .. } | KeyIndex::Text { shrinking, .. }) =
            &mut self.key_index
        else {
            return Ok(());
        };
        if now < shrinking.next {
            shrinking.rows += rows;
            return Ok(());
        }
        let shrinks = shrinking.rows * 7 > (now - shrinking.groups) * 8;
        *shrinking = Shrinking {
            rows,
            groups: now,
            next: 2 * now,
        };
        if let KeyIndex::Hash {
            groups, interners, ..
        } = &mut self.key_index
            && groups.is_loose()
        {
            let (different, all) = different(groups);
            if 2 * different < all {
                return self.tighten();
            }
            interners.iter_mut().for_each(Interner::loosen_if_new);
        } else if !shrinks && self.is_by_hash() {
            self.loosen();
        }
        Ok(())
    }

    /// Makes its groups, found by hash, loose.
    pub(super) fn loosen(&mut self) {
        self.words_of_texts();
        if let KeyIndex::Hash {
            groups, interners, ..
        } = &mut self.key_index
        {
            groups.loosen();
            interners.iter_mut().for_each(Interner::loosen_if_new);
        }
    }

    /// Gives groups that were found by the number of an interned string words, as others have; they are loose then.
    fn words_of_texts(&mut self) {
        let KeyIndex::Text {
            texts,
            ty,
            shrinking,
        } = &mut self.key_index
        else {
            return;
        };
        let layout = Layout::of(std::slice::from_ref(ty));
        let mut groups = Groups::new(layout.words());
        groups.loosen();
        let end = texts.len() as u32;
        for first in (0..end).step_by(algebra::VECTOR_ROWS) {
            let some = first..end.min(first + algebra::VECTOR_ROWS as u32);
            layout.interned(texts, some, &mut self.words);
            let words = &self.words;
            groups.insert(&words.hashes, &words.columns(), &mut self.numbers);
        }
        self.key_index = KeyIndex::Hash {
            layout,
            groups,
            interners: vec![std::mem::take(&mut **texts)],
            shrinking: std::mem::take(shrinking),
        };
    }

    /// Makes those of its groups one that have the same key.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn tighten(&mut self) -> Result<()> {
        if !self.is_loose() {
            return Ok(());
        }
        if self.has_long_texts() {
            self.tighten_texts()?;
        } else {
            self.tighten_words()?;
        }
        let now = self.group_count();
        if let KeyIndex::Hash { shrinking, .. } | KeyIndex::Text { shrinking, .. } =
            &mut self.key_index
        {
            shrinking.groups = now;
            shrinking.next = (2 * now).max(FIRST_LOOK);
        }
        Ok(())
    }

    /// With long strings among the keys: each is copied once, so that equal ones do not stay.
    fn tighten_texts(&mut self) -> Result<()> {
        let KeyIndex::Hash { layout, .. } = &self.key_index else {
            return Err(unlike());
        };
        if layout.text().is_some() {
            return self.intern_keys();
        }
        let settled = self.of_same_kind(0)?;
        self.settle(settled)
    }

    fn tighten_words(&mut self) -> Result<()> {
        let empty = self.of_same_kind(0)?;
        let mut loose = std::mem::replace(self, empty);
        let held = std::mem::take(&mut loose.held);
        let mut tight = Grouping::joined(&[loose.divided(0, false)], 0, 0)?;
        tight.held = held;
        *self = tight;
        Ok(())
    }

    /// Whether its groups are found by the number of an interned string.
    pub fn is_interned(&self) -> bool {
        matches!(self.key_index, KeyIndex::Text { .. })
    }

    /// Divides its groups into `2^bits` partitions of their hashes; none if they are not found [by hash](Self::is_by_hash). Those of
    /// all workers are divided alike: by strings if `interned`, as they are [all](Self::is_interned) found by these, else by words.
    pub fn divided(mut self, bits: u32, interned: bool) -> Divided {
        if !interned {
            self.words_of_texts();
        }
        let parts = match &mut self.key_index {
            KeyIndex::Hash {
                groups, interners, ..
            } => {
                interners.iter_mut().for_each(Interner::seal);
                let parts = groups.partitions(bits);
                *groups = Groups::new(groups.words());
                parts
            }
            KeyIndex::Text { texts, .. } => {
                texts.seal();
                texts.partitions(bits)
            }
            _ => vec![],
        };
        Divided {
            groups: self,
            parts,
        }
    }

    /// The groups of one partition of several workers.
    ///
    /// # Errors
    /// [`Error::Overflow`]; an internal error for groups that are not found [by hash](Self::is_by_hash).
    pub fn of_partition(sources: &[Divided], part: usize) -> Result<Grouping> {
        let sizes = sources.iter().map(|source| source.parts[part].groups.len());
        Grouping::joined(sources, part, sizes.max().unwrap_or(0))
    }

    /// The same, with room for so many groups before it grows.
    fn joined(sources: &[Divided], part: usize, room: usize) -> Result<Grouping> {
        let first = sources.first().ok_or_else(unlike)?;
        let mut all = first.groups.of_same_kind(room)?;
        for source in sources {
            all.take(&source.groups, &source.parts[part], source.parts.len())?;
        }
        Ok(all)
    }

    /// An empty one of the same functions, with room for so many groups before it grows.
    fn of_same_kind(&self, groups: usize) -> Result<Grouping> {
        self.like(match &self.key_index {
            KeyIndex::Hash { layout, .. } => KeyIndex::hash(layout.clone(), groups),
            KeyIndex::Text { ty, .. } => KeyIndex::Text {
                texts: Box::default(),
                ty: ty.clone(),
                shrinking: Shrinking::default(),
            },
            _ => return Err(unlike()),
        })
    }

    /// Adds groups of `other`, of which several may have the same key: one of so many `parts` of them.
    fn take(&mut self, other: &Grouping, some: &Partition, parts: usize) -> Result<()> {
        match (&mut self.key_index, &other.key_index) {
            (
                KeyIndex::Hash {
                    layout, interners, ..
                },
                KeyIndex::Hash {
                    interners: theirs, ..
                },
            ) => {
                let strings = layout.share(interners, theirs, parts);
                self.take_words(other, some, (strings, theirs.as_slice()))
            }
            (KeyIndex::Text { texts, .. }, KeyIndex::Text { texts: theirs, .. }) => {
                let first = texts.share(theirs, parts);
                self.take_texts(other, some, (&**theirs, first))
            }
            _ => Err(unlike()),
        }
    }

    /// The same of groups that are found by words. `strings` are those of the words that `theirs` numbered.
    fn take_words(
        &mut self,
        other: &Grouping,
        some: &Partition,
        (mut strings, theirs): (Vec<SharedStrings>, &[Interner]),
    ) -> Result<()> {
        for run in runs(some) {
            let KeyIndex::Hash {
                groups, interners, ..
            } = &mut self.key_index
            else {
                return Err(unlike());
            };
            let mut keys: Vec<&[u64]> = some.keys.iter().map(|keys| &keys[run.clone()]).collect();
            for own in &mut strings {
                own.renumber(interners, theirs, &keys);
            }
            for own in &strings {
                own.put(&mut keys);
            }
            groups.insert(&some.hashes[run.clone()], &keys, &mut self.numbers);
            self.merge_states(other, &some.groups[run])?;
        }
        Ok(())
    }

    /// The same of groups that are found by the numbers of strings, in `theirs`, whose blocks are shared from `first` on.
    fn take_texts(
        &mut self,
        other: &Grouping,
        some: &Partition,
        (theirs, first): (&Interner, u32),
    ) -> Result<()> {
        for run in runs(some) {
            let KeyIndex::Text { texts, .. } = &mut self.key_index else {
                return Err(unlike());
            };
            let own = (&some.groups[run.clone()], &some.hashes[run.clone()]);
            texts.adopt_some(theirs, first, own, &mut self.numbers);
            self.merge_states(other, &some.groups[run])?;
        }
        Ok(())
    }

    /// Adds what groups of `other` have accumulated to the groups of the same keys here, which were numbered last.
    fn merge_states(&mut self, other: &Grouping, from: &[u32]) -> Result<()> {
        self.resize();
        for (state, other) in self.states.iter_mut().zip(&other.states) {
            state.merge(other.as_ref(), from, &self.numbers)?;
        }
        Ok(())
    }
}

/// The places of groups that are taken at once.
fn runs(some: &Partition) -> impl Iterator<Item = Range<usize>> {
    let all = some.groups.len();
    let runs = (0..all).step_by(algebra::VECTOR_ROWS);
    runs.map(move |first| first..all.min(first + algebra::VECTOR_ROWS))
}

fn unlike() -> Error {
    Error::internal("groups that are not found by hash")
}
