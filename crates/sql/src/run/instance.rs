//! One instance per open store, shared by its sessions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::planner::Planner;
use catalog::activity::{Activity, Observer};
use catalog::limits;
use catalog::locks::Locks;
use engine::Execution;
use memory::Budget;
use parking_lot::Mutex;
use store::Store;
use workers::Workers;

use crate::error::Result;
use crate::resources::admission::Admission;
use crate::resources::allowance::{Allowance, Allowances, UserMemory};
use crate::resources::sequences::Sequences;
use crate::resources::turn::{Turn, Turns};
use crate::resources::work::Work;
use crate::run::environment;
use crate::run::kept_plans::KeptPlans;
use crate::run::kept_values::KeptValues;
use crate::run::options::{Executor, Options, PlanUse};

/// SQL over one open store: its tables, the workers that run statements, and the memory that they may use.
///
/// Sessions of one instance run their statements at the same time. Statements that write take turns; statements that
/// only read never wait for them.
#[derive(Debug)]
pub struct Instance {
    pub(crate) store: Arc<Store>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) catalog: table::Catalog,
    pub(crate) admission: Arc<Admission>,
    /// What users have whose roles have a memory limit.
    allowances: Allowances,
    /// Bytes that statements have read.
    pub(crate) work: Work,
    /// Who writes, and who waits to, without holding a worker.
    pub(crate) turns: Turns,
    /// Which locks sessions hold, and wait for.
    pub(crate) locks: Arc<Locks>,
    /// Where sequences are.
    pub(crate) sequences: Arc<Sequences>,
    /// The schemas of sessions that have made temporary tables.
    pub(crate) temporary: Mutex<BTreeSet<String>>,
    /// Whether the store may have other schemas than `public`.
    pub(crate) schemas: AtomicBool,
    /// Who knows the sessions of a server.
    pub(crate) observer: Observer,
    pub(crate) plan_use: PlanUse,
    pub(crate) execution: Execution,
    /// The planner that each statement gets a copy of.
    pub(crate) template: Planner,
    /// Plans that are used more than once.
    pub(crate) plans: Arc<KeptPlans>,
    /// Expressions over rows that statements have compiled.
    pub(super) values: KeptValues,
    /// `Some` until dropped.
    workers: Option<Arc<Workers>>,
}

impl Instance {
    /// An instance over `store` that computes on `workers` within `budget`.
    ///
    /// # Errors
    ///
    /// If an option of the execution is out of range.
    pub fn new(
        store: Arc<Store>,
        workers: Arc<Workers>,
        budget: Arc<Budget>,
        options: Options,
    ) -> Result<Arc<Instance>> {
        let mut execution = options.execution;
        execution.executor = match options.executor {
            Executor::Stream => engine::Executor::Stream,
            Executor::Staged => engine::Executor::Staged,
            Executor::Fused => engine::Executor::Fused,
        };
        execution.check()?;
        let directory = options.spill_directory.unwrap_or_else(std::env::temp_dir);
        execution.spill = Some(directory.as_path().into());
        let template = environment::template(&budget, workers.threads())?;
        let sequences = Sequences::of(&store);
        let schemas = table::has_schemas(&store.snapshot());
        Ok(Arc::new(Instance {
            store,
            budget,
            catalog: table::Catalog::new(),
            admission: Admission::new(workers.threads()),
            allowances: Allowances::default(),
            work: Work::new(workers.nodes()),
            turns: Turns::new(options.lock_timeout),
            locks: Arc::default(),
            sequences,
            temporary: Mutex::default(),
            schemas: AtomicBool::new(schemas),
            observer: Observer::default(),
            plan_use: options.plan_use,
            execution,
            template,
            plans: Arc::default(),
            values: KeptValues::default(),
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

    /// The memory of a user who may have `limit` bytes of the budget.
    pub(super) fn allowance(&self, user: &str, limit: u64) -> Arc<Allowance> {
        let whole = (&self.budget, self.template.runtime());
        self.allowances.of(user, limit, whole)
    }

    /// What users with a memory limit have, by their names: of those who have run statements since the store was opened.
    pub fn users_memory(&self) -> Vec<UserMemory> {
        let tables = self.catalog.tables(&self.store.snapshot()).ok();
        let limit = |user: &str| limits::memory(tables.as_ref()?.role(user)?);
        self.allowances.list(limit)
    }

    /// How often a statement ran by the plan that was made to describe it.
    pub fn plans_used_again(&self) -> u64 {
        self.plans.used()
    }

    /// Bytes that all statements have read so far, including those that still run: a row for each node that read, a
    /// column for each node that held the page. The numbers never fall.
    pub fn bytes(&self) -> Vec<Vec<u64>> {
        self.work.bytes()
    }

    /// The names of the functions that statements may call, in order, each once.
    pub fn function_names(&self) -> Vec<String> {
        let planner = &self.template;
        let all = planner.functions.scalar_names();
        let all = all.chain(planner.functions.aggregates().keys());
        let all = all.chain(planner.functions.windows().keys());
        let names: std::collections::BTreeSet<&String> = all.collect();
        names.into_iter().cloned().collect()
    }

    /// Adds the lines of `report` to the end of every `explain analyze` from now on. `report` gets the time at which
    /// the statement began. Only the first call has an effect.
    pub fn report_with(&self, report: impl Fn(Instant) -> Vec<String> + Send + Sync + 'static) {
        self.work.report_with(Box::new(report));
    }

    /// Has `pg_stat_activity` show what `sessions` tells. Only the first call has an effect.
    pub fn observe_with(&self, sessions: impl Fn() -> Vec<Activity> + Send + Sync + 'static) {
        self.observer.set(Box::new(sessions));
    }

    /// Waits until no session writes, and keeps it so as long as the turn is held: for programs that write to the
    /// store themselves. Statements that write wait meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`](crate::Error::Conflict) if a transaction of a session has been writing for
    /// [`Options::lock_timeout`](crate::Options::lock_timeout).
    pub async fn turn(&self) -> Result<Turn> {
        self.turns.wait(None).await
    }

    /// The workers that run the statements.
    pub fn workers(&self) -> &Arc<Workers> {
        match &self.workers {
            Some(workers) => workers,
            None => unreachable!("the workers are taken only when the instance is dropped"),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.sequences.give_back(&self.store);
        // The last reference may go with a cancelled statement's task, on a worker; a runtime must not be
        // shut down by one of its own threads.
        if let Some(workers) = self.workers.take()
            && workers::here().is_some()
        {
            std::thread::spawn(move || drop(workers));
        }
    }
}
