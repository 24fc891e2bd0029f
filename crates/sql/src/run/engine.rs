//! The engine: one per open store, shared by its sessions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use datafusion::execution::SessionState;
use engine::Execution;
use fiber::Workers;
use memory::Budget;
use store::Store;

use crate::error::Result;
use crate::resources::admission::Crowd;
use crate::resources::work::Work;
use crate::run::environment;

/// What an [`Engine`] can be told.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Directory for what sorts and aggregates spill; the system's temporary directory if absent.
    pub spill_directory: Option<PathBuf>,
    /// Which executor runs queries.
    pub executor: Executor,
    /// How those of our own engine do it; the executor that it names is not looked at.
    pub execution: Execution,
}

/// What runs queries. All give the same answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// DataFusion's operators over our scans.
    DataFusion,
    /// Our own engine: each worker takes rows through the whole pipeline (L4). What it cannot do, or has too little
    /// memory for, DataFusion does.
    #[default]
    Fused,
    /// The same engine, operators as concurrent tasks with blocks of rows going from one to the next (L5).
    Stream,
    /// The same engine, some tasks setting blocks of a ring up and others processing them (L6).
    Staged,
}

impl Executor {
    /// Whether it is our own engine.
    pub(crate) fn is_ours(self) -> bool {
        self != Executor::DataFusion
    }
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

/// SQL over one open store: the tables, the workers that run statements, and the memory they may use.
///
/// Cheap to share; statements of any number of sessions run at the same time. One of them writes at a
/// time, the others wait; those that only read never wait.
#[derive(Debug)]
pub struct Engine {
    pub(crate) store: Arc<Store>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) catalog: table::Catalog,
    /// Queries that run.
    pub(crate) crowd: Arc<Crowd>,
    /// What statements have done.
    pub(crate) work: Work,
    /// Statements that write queue here, without holding a worker.
    pub(crate) writing: tokio::sync::Mutex<()>,
    pub(crate) executor: Executor,
    pub(crate) execution: Execution,
    /// What each statement's state is cloned from.
    pub(crate) template: SessionState,
    /// `Some` until dropped.
    workers: Option<Arc<Workers>>,
}

impl Engine {
    /// An engine over `store` that computes on `workers` within `budget`.
    ///
    /// # Errors
    ///
    /// When DataFusion's runtime cannot be set up; when an option of the execution is out of range.
    pub fn new(
        store: Arc<Store>,
        workers: Arc<Workers>,
        budget: Arc<Budget>,
        options: Options,
    ) -> Result<Arc<Engine>> {
        let mut execution = options.execution;
        execution.executor = match options.executor {
            Executor::Stream => engine::Executor::Stream,
            Executor::Staged => engine::Executor::Staged,
            Executor::DataFusion | Executor::Fused => engine::Executor::Fused,
        };
        execution.check()?;
        let directory = options.spill_directory.unwrap_or_else(std::env::temp_dir);
        execution.spill = Some(directory.as_path().into());
        let template = environment::template(&budget, directory, workers.threads())?;
        Ok(Arc::new(Engine {
            store,
            budget,
            catalog: table::Catalog::new(),
            crowd: Crowd::new(workers.threads()),
            work: Work::new(workers.nodes()),
            writing: tokio::sync::Mutex::new(()),
            executor: options.executor,
            execution,
            template,
            workers: Some(workers),
        }))
    }

    /// The store that the statements read and write.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The memory that statements share with the buffer pool.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Bytes that all statements have read so far, those that run included, by node of the reader (row) and node
    /// of the page (column). Never falls.
    pub fn bytes(&self) -> Vec<Vec<u64>> {
        self.work.bytes()
    }

    /// From now on `explain analyze` ends with what `tell` says of the time since the statement began, in lines for
    /// people. Only the first call counts.
    pub fn tell_by(&self, tell: impl Fn(Instant) -> Vec<String> + Send + Sync + 'static) {
        self.work.tell_by(Box::new(tell));
    }

    /// The workers that run the statements.
    pub fn workers(&self) -> &Arc<Workers> {
        match &self.workers {
            Some(workers) => workers,
            None => unreachable!("the workers are taken only when the engine is dropped"),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The last reference may go with a cancelled statement's task, on a worker; a runtime must not be
        // shut down by one of its own threads.
        if let Some(workers) = self.workers.take()
            && fiber::here().is_some()
        {
            std::thread::spawn(move || drop(workers));
        }
    }
}
