//! How statements run: what is asked of an instance when it is made.

use std::path::PathBuf;
use std::time::Duration;

use engine::Execution;

/// Options of an [`Instance`](crate::Instance).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Directory for spilled data; the system's temporary directory if absent.
    pub spill_directory: Option<PathBuf>,
    /// How long a statement that writes waits for a transaction of several statements of another session; 10 seconds
    /// if absent. It waits for single statements as long as they take.
    pub lock_timeout: Option<Duration>,
    /// Which executor runs queries.
    pub executor: Executor,
    /// How long the plan of a query is used.
    pub plan_use: PlanUse,
    /// How the executors of Atoll's own engine work. Its own choice of an executor is ignored: `executor` decides.
    pub execution: Execution,
}

impl Options {
    /// Options that spill to `directory`.
    pub fn spilling_to(directory: impl Into<PathBuf>) -> Options {
        Options {
            spill_directory: Some(directory.into()),
            ..Options::default()
        }
    }
}

/// How long the plan of a query is used. Answers are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanUse {
    /// A query that was prepared, or that its session runs again word for word, goes by its last plan as long as planning
    /// would come to the same: until something is written to the store, or a setting is changed, or for seconds.
    #[default]
    Repeatedly,
    /// Each query is planned each time.
    Once,
}

/// Which executor runs queries. All give the same answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// Atoll's own engine with fused pipelines: each worker takes rows through a whole pipeline.
    #[default]
    Fused,
    /// The same engine with streaming operators: concurrent tasks that pass blocks of rows to each other.
    Stream,
    /// The same engine with staged operators: some tasks prepare the blocks of a ring, others process them.
    Staged,
}
