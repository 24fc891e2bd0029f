//! Groups by hash, divided and merged partition by partition, in tables that are small.

use std::ops::Range;

use algebra::krao::{Groups, Partition};

use crate::error::Result;
use crate::operators::aggregate::accumulator::Accumulator;
use crate::operators::aggregate::grouping::chunks::runs;
use crate::operators::aggregate::grouping::layout::Layout;
use crate::operators::aggregate::grouping::loose::unlike;
use crate::operators::aggregate::grouping::shrinking::Shrinking;
use crate::operators::aggregate::grouping::{Grouping, KeyIndex};
use crate::vector::interner::Interner;
use crate::vector::key_encoding::SharedStrings;

/// Groups that were divided by their hashes.
#[derive(Debug)]
pub(crate) struct Divided {
    /// What is accumulated; the keys are in the partitions. What was loose is in its chunks, which are divided already.
    groups: Grouping,
    /// The partitions, `2^bits` of them, of what was not loose.
    parts: Vec<Partition>,
    bits: u32,
}

impl Divided {
    /// The number of groups of a partition.
    fn groups_of(&self, part: usize) -> usize {
        let chunks = self.groups.chunks.iter();
        let loose = chunks.map(|chunk| chunk.places(part, self.bits).len());
        self.parts[part].groups.len() + loose.sum::<usize>()
    }
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
    /// Whether its groups are found by the number of an interned string.
    pub fn is_interned(&self) -> bool {
        matches!(self.key_index, KeyIndex::Text { .. })
    }

    /// Divides its groups into `2^bits` partitions of their hashes, at most `2^MOST_BITS`; none if they are not found
    /// [by hash](Self::is_by_hash). Those of all workers are divided alike: by strings if `interned`, as they are
    /// [all](Self::is_interned) found by these, else by words.
    ///
    /// # Errors
    /// Those of [`Accumulator::hand_over`], for loose groups.
    pub fn divided(mut self, bits: u32, interned: bool) -> Result<Divided> {
        if !interned {
            self.words_of_texts();
        }
        if self.is_loose() {
            self.close()?;
            // The memory of the open chunk is not needed any more.
            for state in &mut self.states {
                *state = state.fresh()?;
            }
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
        Ok(Divided {
            groups: self,
            parts,
            bits,
        })
    }

    /// The groups of one partition of several workers.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::error::Error::Overflow); an internal error for groups that are not found [by hash](Self::is_by_hash).
    pub fn of_partition(sources: &[Divided], part: usize) -> Result<Grouping> {
        let sizes = sources.iter().map(|source| source.groups_of(part));
        Grouping::joined(sources, part, sizes.max().unwrap_or(0))
    }

    /// The same, with room for so many groups before it grows.
    pub(super) fn joined(sources: &[Divided], part: usize, room: usize) -> Result<Grouping> {
        let first = sources.first().ok_or_else(unlike)?;
        let mut all = first.groups.of_same_kind(room)?;
        for source in sources {
            all.take(source, part)?;
        }
        Ok(all)
    }

    /// An empty one of the same functions, with room for so many groups before it grows.
    pub(super) fn of_same_kind(&self, groups: usize) -> Result<Grouping> {
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

    /// Adds the groups of a partition of `other`, of which several may have the same key.
    fn take(&mut self, other: &Divided, part: usize) -> Result<()> {
        let parts = other.parts.len();
        match (&mut self.key_index, &other.groups.key_index) {
            (
                KeyIndex::Hash {
                    layout, interners, ..
                },
                KeyIndex::Hash {
                    interners: theirs, ..
                },
            ) => {
                let mut strings = layout.share(interners, theirs, parts);
                self.take_words(other, part, (&mut strings[..], theirs.as_slice()))?;
                self.take_chunks(other, part, (&mut strings[..], theirs.as_slice()))
            }
            (KeyIndex::Text { texts, .. }, KeyIndex::Text { texts: theirs, .. }) => {
                let first = texts.share(theirs, parts);
                self.take_texts(other, part, (&**theirs, first))
            }
            _ => Err(unlike()),
        }
    }

    /// The same of groups that are found by words and were not loose. `strings` are those of the words that `theirs` numbered.
    fn take_words(
        &mut self,
        other: &Divided,
        part: usize,
        (strings, theirs): (&mut [SharedStrings], &[Interner]),
    ) -> Result<()> {
        let some = &other.parts[part];
        for run in runs(0..some.groups.len(), algebra::VECTOR_ROWS) {
            let own = (&some.hashes[..], &some.keys[..]);
            self.number_words(own, run.clone(), (&mut *strings, theirs))?;
            self.merge_states(&other.groups.states, &some.groups[run])?;
        }
        Ok(())
    }

    /// The same of those that were loose, chunk by chunk.
    fn take_chunks(
        &mut self,
        other: &Divided,
        part: usize,
        (strings, theirs): (&mut [SharedStrings], &[Interner]),
    ) -> Result<()> {
        let mut from = Vec::new();
        for chunk in other.groups.chunks.iter() {
            for run in runs(chunk.places(part, other.bits), algebra::VECTOR_ROWS) {
                from.clear();
                from.extend(run.start as u32..run.end as u32);
                let own = (&chunk.hashes[..], &chunk.keys[..]);
                self.number_words(own, run, (&mut *strings, theirs))?;
                self.merge_states(&chunk.states, &from)?;
            }
        }
        Ok(())
    }

    /// Numbers a run of groups that have these hashes and keys, which are columns.
    fn number_words(
        &mut self,
        (hashes, keys): (&[u64], &[Vec<u64>]),
        run: Range<usize>,
        (strings, theirs): (&mut [SharedStrings], &[Interner]),
    ) -> Result<()> {
        let KeyIndex::Hash {
            groups, interners, ..
        } = &mut self.key_index
        else {
            return Err(unlike());
        };
        let mut keys: Vec<&[u64]> = keys.iter().map(|keys| &keys[run.clone()]).collect();
        for own in strings.iter_mut() {
            own.renumber(interners, theirs, &keys);
        }
        for own in strings.iter() {
            own.put(&mut keys);
        }
        groups.insert(&hashes[run], &keys, &mut self.numbers);
        Ok(())
    }

    /// As [`take`](Self::take) of groups that are found by the numbers of strings, in `theirs`, whose blocks are shared from `first`
    /// on.
    fn take_texts(
        &mut self,
        other: &Divided,
        part: usize,
        (theirs, first): (&Interner, u32),
    ) -> Result<()> {
        let some = &other.parts[part];
        for run in runs(0..some.groups.len(), algebra::VECTOR_ROWS) {
            let KeyIndex::Text { texts, .. } = &mut self.key_index else {
                return Err(unlike());
            };
            let own = (&some.groups[run.clone()], &some.hashes[run.clone()]);
            texts.adopt_some(theirs, first, own, &mut self.numbers);
            self.merge_states(&other.groups.states, &some.groups[run])?;
        }
        Ok(())
    }

    /// Adds what others have accumulated, in their groups `from`, to the groups of the same keys here, which were numbered last.
    fn merge_states(&mut self, others: &[Box<dyn Accumulator>], from: &[u32]) -> Result<()> {
        self.resize();
        for (state, other) in self.states.iter_mut().zip(others) {
            state.merge(other.as_ref(), from, &self.numbers)?;
        }
        Ok(())
    }
}
