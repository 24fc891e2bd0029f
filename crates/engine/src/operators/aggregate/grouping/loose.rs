//! Groups by hash that hardly shrink: they are collected, chunk by chunk, without looking whether a key has come before.

use algebra::krao::Groups;

use crate::error::{Error, Result};
use crate::operators::aggregate::grouping::layout::Layout;
use crate::operators::aggregate::grouping::shrinking::{FIRST_LOOK, Shrinking, different};
use crate::operators::aggregate::grouping::{Grouping, KeyIndex};
use crate::physical::shared_aggregates::Accumulation;
use crate::vector::interner::Interner;

impl Grouping {
    /// Whether its groups can be merged partition by partition: they are found by hashes of what means the same for all
    /// workers, and what is accumulated has one cell for each group.
    pub fn is_by_hash(&self) -> bool {
        matches!(
            &self.key_index,
            KeyIndex::Hash { .. } | KeyIndex::Text { .. }
        ) && self.has_cells()
    }

    /// Whether what is accumulated has one cell for each group.
    pub(super) fn has_cells(&self) -> bool {
        let has_cells = |own: &Accumulation| {
            !own.is_of_rows()
                && !matches!(own, Accumulation::Distinct { .. } | Accumulation::Call(_))
        };
        self.accumulated.iter().all(|own| has_cells(&own.what))
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
    /// groups have the same key, they do not stay so. Closes the open chunk of loose groups if the rows do not fit.
    pub(super) fn look(&mut self, rows: usize) -> Result<()> {
        self.close_full(rows)?;
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
            let (different, all) = different(groups, &self.chunks);
            if 2 * different < all {
                return self.tighten();
            }
            interners.iter_mut().for_each(Interner::loosen_if_new);
        } else if !shrinks && self.is_by_hash() {
            self.loosen();
            return self.close_full(rows);
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
    pub(super) fn words_of_texts(&mut self) {
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
        let mut tight = Grouping::joined(&[loose.divided(0, false)?], 0, 0)?;
        tight.held = held;
        *self = tight;
        Ok(())
    }

    /// Closes the open chunk if it is full: with `rows` more groups it would have more than chunks have.
    pub(super) fn close_full(&mut self, rows: usize) -> Result<()> {
        if self.is_loose() && self.numbered() + rows > self.chunks.size {
            return self.close();
        }
        Ok(())
    }

    /// Closes the open chunk of loose groups.
    pub(super) fn close(&mut self) -> Result<()> {
        let KeyIndex::Hash { groups, .. } = &mut self.key_index else {
            return Err(unlike());
        };
        self.chunks.close(groups, &mut self.states)
    }

    /// Calls `act` with its groups; of loose groups chunk by chunk, in the order in which they came, each as if it was all. Loose
    /// groups are dropped, each chunk as soon as `act` is done with it.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn each_chunk(&mut self, mut act: impl FnMut(&Grouping) -> Result<()>) -> Result<()> {
        if !self.chunks.is_empty() {
            self.close()?;
            self.reopen();
        }
        loop {
            act(self)?;
            if !self.reopen() {
                return Ok(());
            }
        }
    }

    /// Puts the first closed chunk in the place of the open one, which is dropped; false if there is none.
    fn reopen(&mut self) -> bool {
        let KeyIndex::Hash { groups, .. } = &mut self.key_index else {
            return false;
        };
        let Some(chunk) = self.chunks.pop() else {
            return false;
        };
        groups.clear();
        groups.loosen();
        groups.insert(&chunk.hashes, &chunk.columns(), &mut self.numbers);
        self.states = chunk.states;
        true
    }
}

/// The error for groups that are not found by hash.
pub(super) fn unlike() -> Error {
    Error::internal("groups that are not found by hash")
}
