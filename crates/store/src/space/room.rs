//! The memory of the page map: how much there may be, and which of it may be dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use memory::{Account, Budget};
use parking_lot::Mutex;

use crate::space::leaf::LEAF_BYTES;

/// Leaves that may be in memory whatever the bound and the budget are, so that every read finds room for
/// the few that it needs.
const LEAST: usize = 4;

/// The memory of the page map.
#[derive(Debug)]
pub(crate) struct Room {
    account: Account,
    /// The most bytes of leaves, as long as enough of them may be dropped.
    bound: u64,
    /// Chunks whose leaf was clean when it was added, oldest first; each at most once.
    clean: Mutex<VecDeque<u32>>,
}

impl Room {
    pub(super) fn new(budget: Arc<Budget>, bound: u64) -> Room {
        Room {
            account: Account::new(budget),
            bound,
            clean: Mutex::default(),
        }
    }

    /// Room for one more leaf, for which `drop_one` drops others; it says whether it did. There always is
    /// some: what the budget refuses is owed.
    pub(super) fn admit(&self, mut drop_one: impl FnMut() -> bool) {
        loop {
            let fits = self.account.bytes() + LEAF_BYTES <= self.bound;
            if fits && self.account.take(LEAF_BYTES).is_ok() {
                return;
            }
            let spare = self.clean.lock().len() >= LEAST;
            if !(spare && drop_one()) {
                self.account.must(LEAF_BYTES);
                return;
            }
        }
    }

    /// The same while a store is opened, when a file says how much is needed: fails where the budget has less, with
    /// what is needed and what it has.
    pub(super) fn reserve(&self) -> Result<(), (u64, u64)> {
        let budget = self.account.budget();
        let left = || budget.limit() - budget.used();
        self.account
            .take(LEAF_BYTES)
            .map_err(|_| (LEAF_BYTES, left()))
    }

    /// Whether there are more leaves than there should be, and enough of them may be dropped.
    pub(super) fn has_too_much(&self) -> bool {
        let over = self.account.bytes() > self.bound || self.account.owed() > 0;
        over && self.queued() > LEAST
    }

    /// A leaf is gone.
    pub(super) fn give(&self) {
        self.account.give(LEAF_BYTES);
    }

    /// Memory of the tree above the leaves.
    pub(super) fn have(&self, bytes: u64) {
        self.account.must(bytes);
    }

    pub(super) fn bound_leaves(&self) -> usize {
        usize::try_from(self.bound / LEAF_BYTES).unwrap_or(usize::MAX)
    }

    pub(super) fn budget(&self) -> &Arc<Budget> {
        self.account.budget()
    }

    /// Bytes of memory that the map takes.
    pub(super) fn bytes(&self) -> u64 {
        self.account.bytes()
    }

    /// How many leaves could perhaps be dropped.
    pub(super) fn queued(&self) -> usize {
        self.clean.lock().len()
    }

    pub(super) fn push(&self, chunk: u32) {
        self.clean.lock().push_back(chunk);
    }

    pub(super) fn pop(&self) -> Option<u32> {
        self.clean.lock().pop_front()
    }
}
