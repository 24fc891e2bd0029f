//! Transactions within a transaction, and snapshots of one that is under way: what a language makes savepoints of, and
//! statements that are undone alone.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::transaction::snapshot::Snapshot;
use crate::transaction::write::{Transaction, Written};

impl Transaction {
    /// The state that the transaction has reached, for readers. Later changes do not show in it. It is of no use to
    /// others than whoever writes: the transaction may yet be undone. The pages that it shows stay readable for as long
    /// as it is held, also when the transaction is undone meanwhile.
    pub fn view(&self) -> Snapshot {
        self.base.of_open(self.catalog.clone(), &self.views)
    }

    /// A transaction within this one: it begins with what this one has changed, and either this one
    /// [adopts](Transaction::adopt) it, or its changes are undone when it is dropped, and those of this one stay.
    ///
    /// Meanwhile this one must not be changed. It takes its turn with it: the next writer gets in when both are gone.
    /// The cost grows with the number of keys that this one has changed, not with the bytes.
    pub fn nested(&self) -> Transaction {
        let bytes = self.written.lock().bytes;
        Transaction {
            base: self.base.clone(),
            catalog: self.catalog.clone(),
            changes: self.changes.clone(),
            freed: self.freed.clone(),
            written: Mutex::new(Written {
                bytes,
                ..Written::default()
            }),
            durability: self.durability,
            views: self.views.clone(),
            nested: true,
            gate: self.gate.clone(),
        }
    }

    /// Takes over the changes of `inner`, which was [nested](Transaction::nested) in this one.
    ///
    /// # Panics
    /// If it was nested in a transaction of another turn.
    pub fn adopt(&mut self, mut inner: Transaction) {
        assert!(
            inner.nested && Arc::ptr_eq(&self.gate, &inner.gate),
            "a transaction adopts those that were nested in it"
        );
        let more = std::mem::take(inner.written.get_mut());
        let small = more.bytes <= self.store().small_commit;
        let written = self.written.get_mut();
        written.pages.extend(more.pages);
        written.dirty.extend(more.dirty);
        written.bytes = more.bytes;
        if small {
            written.images.extend(more.images);
        } else {
            written.images = Vec::new();
        }
        self.catalog = std::mem::take(&mut inner.catalog);
        self.changes = std::mem::take(&mut inner.changes);
        self.freed = std::mem::take(&mut inner.freed);
        self.durability = inner.durability;
    }
}
