//! Tasks that start once there is something for them to do.
//!
//! In memory the workers take most rows to the end of the pipeline themselves, and most stages are short: tasks of operators
//! that get no block are not worth being spawned and woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use workers::Workers;

use crate::error::{Error, Result};
use crate::execute::sink::SinkState;
use crate::execute::stream::flow::{Tasks, join};

/// The tasks of a stage's operators and of its sink.
pub(crate) struct Later {
    workers: Arc<Workers>,
    is_started: AtomicBool,
    waiting: Mutex<Vec<BoxFuture<'static, Result<Option<SinkState>>>>>,
    started: Mutex<Tasks>,
}

impl Later {
    pub fn new(workers: &Arc<Workers>) -> Later {
        Later {
            workers: workers.clone(),
            is_started: AtomicBool::new(false),
            waiting: Mutex::default(),
            started: Mutex::default(),
        }
    }

    /// Adds a task; before any of the sources runs.
    pub fn add(&self, task: BoxFuture<'static, Result<Option<SinkState>>>) {
        self.waiting.lock().push(task);
    }

    /// Starts all tasks, if that has not been done yet. Called before a block is sent.
    pub fn start(&self) {
        if self.is_started.load(Ordering::Relaxed) || self.is_started.swap(true, Ordering::AcqRel) {
            return;
        }
        let waiting = std::mem::take(&mut *self.waiting.lock());
        let tasks = waiting.into_iter().map(|task| self.workers.spawn(task));
        self.started.lock().extend(tasks);
    }

    /// Awaits the sources and then the tasks that were started, and collects their sinks. What was not started is dropped.
    ///
    /// # Errors
    /// The first error that is not a mere cancellation.
    pub async fn join(&self, sources: Tasks, sinks: &mut Vec<SinkState>) -> Result<()> {
        let read = join(sources, sinks).await;
        self.waiting.lock().clear();
        // The channels are closed now, or the stage is stopped: the tasks end by themselves.
        let started = std::mem::take(&mut *self.started.lock());
        let done = join(started, sinks).await;
        match read {
            Ok(()) | Err(Error::Cancelled) if done.is_err() => done,
            read => read,
        }
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.started.lock().iter().for_each(|task| task.abort());
    }
}
