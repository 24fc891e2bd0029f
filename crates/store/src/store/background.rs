//! Checkpoints and writing back on a thread of their own, so that no commit waits for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::options::Access;
use crate::store::handle::Store;
use crate::store::running::Running;

impl Store {
    /// Begins what a commit has found due, a checkpoint or writing pages back, unless that is under way.
    ///
    /// On simulated devices, which tests stop at each operation, it is done here and now; commits of
    /// other threads go on beside it as well. A handle that writes on demand has done its checkpoint
    /// already.
    pub(crate) fn begin_due(self: &Arc<Self>) {
        if self.writes_on_demand() {
            return;
        }
        let in_background = self.hold.access() == Access::Write && self.hold.is_of_files();
        if !in_background || !self.spawn() {
            self.work_if_free();
        }
    }

    /// Does what is due. Whatever becomes of it, the commits are in the log.
    fn work_if_free(self: &Arc<Self>) {
        if let Some(turn) = self.checkpointing.try_lock() {
            // A page that is not written stays where it is.
            let _ = self.write_back(&turn);
            let due = {
                let writer = self.writer.lock();
                writer.log.bytes() > writer.due || self.has_many_chunks(&writer)
            };
            if due {
                let _ = self.checkpoint_in(&turn);
            }
        }
    }

    /// Starts the thread; false if the system has none to give.
    fn spawn(self: &Arc<Self>) -> bool {
        if self.checkpointing.is_locked() || self.begun.swap(true, Ordering::AcqRel) {
            return true;
        }
        let (store, running) = (self.clone(), Running::new());
        let work = move || {
            store.work_if_free();
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
