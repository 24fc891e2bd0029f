//! Groups by hash that hardly shrink: they are collected without looking whether a key has come before, and merged partition by
//! partition, in tables that are small.

use algebra::krao::Groups;

use crate::error::{Error, Result};
use crate::operators::aggregate::grouping::shrinking::{FIRST_LOOK, Shrinking, different};
use crate::operators::aggregate::grouping::{Grouping, KeyIndex};
use crate::physical::shared_aggregates::Accumulation;
use crate::vector::key_encoding::KeyEncoding;

impl KeyIndex {
    /// For keys of this encoding, with room for so many groups before it grows.
    pub(super) fn hash(layout: KeyEncoding, groups: usize) -> KeyIndex {
        KeyIndex::Hash {
            groups: Groups::with_capacity(layout.words(), groups),
            layout,
            interners: vec![],
            shrinking: Shrinking::default(),
        }
    }
}

impl Grouping {
    /// Whether its groups can be merged partition by partition: they are found by hashes of words that mean the same for all
    /// workers, and what is accumulated has one cell for each group.
    pub fn is_by_hash(&self) -> bool {
        let has_cells = |own: &Accumulation| {
            !own.is_of_rows()
                && !matches!(own, Accumulation::Distinct { .. } | Accumulation::Call(_))
        };
        matches!(&self.key_index, KeyIndex::Hash { interners, .. } if interners.is_empty())
            && self.accumulated.iter().all(|own| has_cells(&own.what))
    }

    /// Whether several of its groups may have the same key, which [`tighten`](Self::tighten) and
    /// [`of_partition`](Self::of_partition) mend.
    pub fn is_loose(&self) -> bool {
        matches!(&self.key_index, KeyIndex::Hash { groups, .. } if groups.is_loose())
    }

    /// To be called before `rows` rows are numbered. Groups that are nearly as many as their rows become loose; where many of loose
    /// groups have the same key, they do not stay so.
    pub(super) fn look(&mut self, rows: usize) -> Result<()> {
        let KeyIndex::Hash {
            groups, shrinking, ..
        } = &mut self.key_index
        else {
            return Ok(());
        };
        let (before, now) = (shrinking.groups, groups.len());
        if now < shrinking.next {
            shrinking.rows += rows;
            return Ok(());
        }
        let shrinks = shrinking.rows * 7 > (now - before) * 8;
        *shrinking = Shrinking {
            rows,
            groups: now,
            next: 2 * now,
        };
        if groups.is_loose() {
            let (different, all) = different(groups);
            if 2 * different < all {
                return self.tighten();
            }
        } else if !shrinks && self.is_by_hash() {
            self.loosen();
        }
        Ok(())
    }

    fn loosen(&mut self) {
        if let KeyIndex::Hash { groups, .. } = &mut self.key_index {
            groups.loosen();
        }
    }

    /// Makes those of its groups one that have the same key.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn tighten(&mut self) -> Result<()> {
        if !self.is_loose() {
            return Ok(());
        }
        let mut tight = self.of_same_kind(0)?;
        let all: Vec<u32> = (0..self.group_count() as u32).collect();
        tight.take(self, &all)?;
        tight.held = std::mem::take(&mut self.held);
        if let KeyIndex::Hash {
            groups, shrinking, ..
        } = &mut tight.key_index
        {
            shrinking.groups = groups.len();
            shrinking.next = (2 * groups.len()).max(FIRST_LOOK);
        }
        *self = tight;
        Ok(())
    }

    /// Its groups by partitions of their hashes, of which there are `2^bits`. None if they are not found [by
    /// hash](Self::is_by_hash).
    pub fn partitions(&self, bits: u32) -> Vec<Vec<u32>> {
        match &self.key_index {
            KeyIndex::Hash { groups, .. } => groups.partitions(bits),
            _ => vec![],
        }
    }

    /// The groups of one partition of several workers, each with its [partitions](Self::partitions).
    ///
    /// # Errors
    /// [`Error::Overflow`]; an internal error for groups that are not found [by hash](Self::is_by_hash).
    pub fn of_partition(sources: &[(Grouping, Vec<Vec<u32>>)], part: usize) -> Result<Grouping> {
        let most = sources.iter().map(|(_, parts)| parts[part].len()).max();
        let (first, _) = sources.first().ok_or_else(unlike)?;
        let mut all = first.of_same_kind(most.unwrap_or(0))?;
        for (source, parts) in sources {
            all.take(source, &parts[part])?;
        }
        Ok(all)
    }

    /// An empty one of the same functions, with room for so many groups before it grows.
    fn of_same_kind(&self, groups: usize) -> Result<Grouping> {
        let KeyIndex::Hash { layout, .. } = &self.key_index else {
            return Err(unlike());
        };
        self.like(KeyIndex::hash(layout.clone(), groups))
    }

    /// Adds the groups `some` of `other`, of which several may have the same key.
    fn take(&mut self, other: &Grouping, some: &[u32]) -> Result<()> {
        let KeyIndex::Hash { groups: theirs, .. } = &other.key_index else {
            return Err(unlike());
        };
        let (mut hashes, mut words) = (Vec::new(), vec![Vec::new(); theirs.words()]);
        for from in some.chunks(algebra::VECTOR_ROWS) {
            hashes.clear();
            hashes.extend(from.iter().map(|group| theirs.hashes()[*group as usize]));
            for (word, column) in words.iter_mut().enumerate() {
                theirs.column(word, from, column);
            }
            let KeyIndex::Hash { groups, .. } = &mut self.key_index else {
                return Err(unlike());
            };
            let columns: Vec<&[u64]> = words.iter().map(Vec::as_slice).collect();
            groups.insert(&hashes, &columns, &mut self.numbers);
            self.resize();
            for (state, other) in self.states.iter_mut().zip(&other.states) {
                state.merge(other.as_ref(), from, &self.numbers)?;
            }
        }
        Ok(())
    }
}

fn unlike() -> Error {
    Error::internal("groups that are not found by hash")
}
