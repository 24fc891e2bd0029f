//! Which worker and node the calling code is on.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::assignment::Assignment;

/// The worker and node that the calling code is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    /// The worker, below the number of threads.
    pub worker: usize,
    /// The worker's node.
    pub node: usize,
}

thread_local! {
    static HERE: OnceCell<(usize, Arc<Assignment>)> = const { OnceCell::new() };
}

/// The worker and node that the calling code is on; `None` on threads that are not workers. Cheap. A task may
/// continue on another worker after each `await`, and a worker may move to another node by
/// [`Workers::place`](crate::Workers::place).
pub fn here() -> Option<Here> {
    let here = HERE.try_with(|here| {
        let (worker, assignment) = here.get()?;
        Some(Here {
            worker: *worker,
            node: assignment.node(*worker),
        })
    });
    here.ok().flatten()
}

/// Says that the calling thread is `worker`, from now until it ends. A second call on a thread changes nothing.
pub(crate) fn enter(worker: usize, assignment: Arc<Assignment>) {
    // Refused only by a thread that has entered already.
    let _ = HERE.with(|here| here.set((worker, assignment)));
}
