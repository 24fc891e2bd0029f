//! Checkpoints on a thread of their own, so that no commit waits for one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::options::Access;
use crate::store::handle::Store;
use crate::store::running::Running;

impl Store {
    /// Begins the checkpoint that a commit has found due, unless one is under way.
    ///
    /// On simulated devices, which tests stop at each operation, it is done here and now; commits of
    /// other threads go on beside it as well. A handle that writes on demand has done it already.
    pub(crate) fn checkpoint_due(self: &Arc<Self>) {
        if self.writes_on_demand() {
            return;
        }
        let in_background = self.hold.access() == Access::Write && self.hold.is_of_files();
        if !in_background || !self.spawn_checkpoint() {
            self.checkpoint_if_free();
        }
    }

    /// Starts the thread; false if the system has none to give.
    fn spawn_checkpoint(self: &Arc<Self>) -> bool {
        if self.checkpointing.is_locked() || self.begun.swap(true, Ordering::AcqRel) {
            return true;
        }
        let (store, running) = (self.clone(), Running::new());
        let work = move || {
            store.checkpoint_if_free();
            store.begun.store(false, Ordering::Release);
            // In this order: who waits for the lock on the files asks whether a checkpoint runs.
            drop(store);
            drop(running);
        };
        let thread = std::thread::Builder::new().name("checkpoint".to_string());
        let spawned = thread.spawn(work).is_ok();
        if !spawned {
            self.begun.store(false, Ordering::Release);
        }
        spawned
    }
}
