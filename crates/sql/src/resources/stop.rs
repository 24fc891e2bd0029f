//! Stopping what a statement runs.
//!
//! Dropping a statement's future aborts its task, which takes effect where the task next yields. What computes for longer
//! looks at the statement's switch: the engine does from block to block, functions over many values do too.
//!
//! Once a statement has begun to commit it is cancelled no more: its switch is sealed, and whoever wanted to cancel it is
//! told what has become of it.

use std::convert::Infallible;
use std::time::Duration;

use engine::Stop;
use tokio::sync::mpsc;

tokio::task_local! {
    /// The statement that this task runs.
    static STATEMENT: Running;
}

/// What runs, and can be cancelled.
#[derive(Clone, Debug, Default)]
struct Running {
    stop: Stop,
    /// Held by each task that runs for it, so that whoever cancels it can wait until the last has ended.
    _alive: Option<mpsc::Sender<Infallible>>,
}

/// Runs `work` with `stop` as the switch of its statement, as a part of what is cancelled together with the present task.
pub(crate) fn over<F: Future>(stop: Stop, work: F) -> impl Future<Output = F::Output> {
    let alive = STATEMENT.try_with(|running| running._alive.clone());
    let running = Running {
        stop: stop.clone(),
        _alive: alive.ok().flatten(),
    };
    STATEMENT.scope(running, stop.over(work))
}

/// The switch of the statement that this task runs; if it runs none, one that never stops anything.
pub(crate) fn present() -> Stop {
    Stop::present()
}

/// Whether the statement that this task runs was cancelled.
pub(crate) fn is_stopped() -> bool {
    Stop::present().stopped()
}

/// How long whoever cancels something waits for its tasks to end. All look at the switch within a tenth of a second; this
/// is for those of libraries that do not.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Cancels what runs [over](Canceller::over) it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let canceller = sql::Canceller::default();
/// let work = canceller.over(async { 42 });
/// assert_eq!(runtime.block_on(work), 42);
/// assert!(canceller.cancel(), "nothing was committing");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Canceller {
    running: Running,
    ended: mpsc::Receiver<Infallible>,
}

impl Default for Canceller {
    fn default() -> Canceller {
        let (alive, ended) = mpsc::channel(1);
        let running = Running {
            stop: Stop::default(),
            _alive: Some(alive),
        };
        Canceller { running, ended }
    }
}

impl Canceller {
    /// Runs `work`, statements of a session, so that it can be cancelled.
    pub fn over<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let running = self.running.clone();
        let stop = running.stop.clone();
        STATEMENT.scope(running, stop.over(work))
    }

    /// Cancels the work, which is to be dropped then. False if it has begun to commit: then it is to be awaited, as its
    /// outcome is what counts; statements that come after the commit are not run.
    pub fn cancel(&self) -> bool {
        self.running.stop.stop()
    }

    /// Waits until all tasks of work that was cancelled and dropped have ended, for some seconds at most.
    pub async fn ended(self) {
        let Canceller { running, mut ended } = self;
        drop(running);
        let _ = tokio::time::timeout(GRACE, ended.recv()).await;
    }
}
