//! The engine in this process: an open store, workers for each number of threads, runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use engine::{
    Allocation, Execution, Executor, NumaPolicy, Prepared, ProfileCollector, Runtime, TimeLine,
};
use memory::{Budget, Traffic};
use store::{PoolOptions, Store};
use topology::Machine;
use workers::{Layout, Workers};

use super::host;
use crate::error::{Error, Result};

/// A query that was planned.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What it is called.
    pub name: String,
    prepared: Arc<Prepared>,
}

/// How a query is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The executor.
    pub executor: Executor,
    /// The most rows of a block; `None`: the executor's default.
    pub block: Option<usize>,
    /// The number of workers.
    pub threads: usize,
    /// Whether blocks are reused.
    pub reuse: bool,
    /// How blocks are allocated.
    pub allocation: Allocation,
    /// Whether channels have no locks.
    pub lock_free: bool,
    /// Tasks of the source and of each other operator; `None`: as many as there are workers.
    pub tasks: Option<(usize, usize)>,
    /// Threads that process one block at the same time (staged).
    pub per_block: usize,
    /// The NUMA plan: which pieces a worker takes.
    pub plan: NumaPolicy,
}

impl Way {
    /// As an executor runs by itself, with so many threads.
    pub fn by(executor: Executor, threads: usize) -> Way {
        Way {
            executor,
            block: None,
            threads,
            reuse: true,
            allocation: Allocation::default(),
            lock_free: false,
            tasks: None,
            per_block: 1,
            plan: NumaPolicy::default(),
        }
    }
}

/// How one run went.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Time from the start to the last row, without planning.
    pub seconds: f64,
    /// Minor page faults.
    pub faults: u64,
    /// Bytes read from pages: by node of the reader, then by node of the page.
    pub bytes: Vec<Vec<u64>>,
    /// The rows as text, sorted.
    pub rows: Vec<String>,
    /// How each worker spent its time, if the system counts it.
    pub spent: Vec<host::Spent>,
}

/// Workers, and the system's numbers of their threads.
struct Crew {
    workers: Arc<Workers>,
    threads: Vec<u32>,
}

/// The engine, ready to run.
pub struct Bench {
    store: Arc<Store>,
    budget: Arc<Budget>,
    crews: BTreeMap<usize, Crew>,
    /// Ends the running query when raised.
    pub stop: engine::Stop,
    /// The machine that workers and pages are laid out for.
    pub machine: Machine,
    /// The machine that it runs on.
    pub live: Machine,
    /// Bytes of the buffer pool.
    pub pool: u64,
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Query {
        query: what.to_owned(),
        why: error.to_string(),
    }
}

impl Bench {
    /// Opens `path` for reading, with workers for each of these numbers of threads. With `affinity` they are bound to
    /// their cpus and pages to their home nodes; without, the system places both.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] with the store's message, [`Error::Machine`], [`Error::Memory`].
    pub fn open(
        path: &Path,
        machine: Option<&str>,
        pool: Option<u64>,
        affinity: bool,
        threads: impl FnOnce(usize) -> Result<Vec<usize>>,
    ) -> Result<Bench> {
        let unusable = |error: &dyn std::fmt::Display| Error::Store {
            why: error.to_string(),
        };
        let live = Machine::live()?;
        let machine = match machine {
            Some(spec) => Machine::parse(spec)?,
            None => live.clone(),
        };
        let available = memory::available()?;
        let pool = pool.unwrap_or(available / 4);
        if pool > available / 2 {
            return Err(Error::Given {
                why: format!(
                    "a pool of {} MiB is more than half of the {} MiB that this process may use; lower --pool",
                    pool >> 20,
                    available >> 20
                ),
            });
        }
        let budget = Budget::new(available / 4 * 3);
        let own = matches!(machine.source(), topology::Source::Live) && machine.nodes().len() > 1;
        let own = own && affinity;
        let homes = machine.nodes().iter();
        let options = store::Options {
            access: store::Access::Read,
            pool: PoolOptions {
                bytes: pool,
                nodes: homes.map(|node| own.then_some(node.os_index)).collect(),
                budget: Some(budget.clone()),
                ..PoolOptions::default()
            },
            ..store::Options::default()
        };
        let store = Store::open(path, &options).map_err(|error| unusable(&error))?;
        if store.is_raw() {
            let why = format!("{} holds raw pages, no tables", path.display());
            return Err(Error::Store { why });
        }
        let mut crews = BTreeMap::new();
        for count in threads(live.cpus())? {
            let before = host::threads();
            let workers = Workers::new(Layout::of(&machine, &live, count, affinity));
            let workers = workers.map_err(|error| unusable(&error))?;
            let threads = host::threads();
            let new = threads.difference(&before).copied();
            crews.insert(
                count,
                Crew {
                    workers,
                    threads: new.filter(|thread| host::computes(*thread)).collect(),
                },
            );
        }
        Ok(Bench {
            store,
            budget,
            crews,
            stop: engine::Stop::default(),
            machine,
            live,
            pool,
        })
    }

    /// Plans a query.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] with the position in its text.
    pub fn plan(&self, name: String, text: &str) -> Result<Subject> {
        let tables = table::Catalog::new().tables(&self.store.snapshot());
        let tables = tables.map_err(|error| Error::Store {
            why: error.to_string(),
        })?;
        let (text, tables) = (text.to_owned(), tables);
        // Dictionaries are read, which workers do.
        let planning = async move { laq::compile(&text, &tables).await };
        let compiled = self.workers(self.most()).block_on(planning);
        let compiled = compiled.map_err(|error| failed(&name, &error))?;
        Ok(Subject {
            prepared: Arc::new(compiled.prepared),
            name,
        })
    }

    /// The workers with this many threads, a number it was opened with.
    pub fn workers(&self, threads: usize) -> &Arc<Workers> {
        &self.crews[&threads].workers
    }

    /// The largest number of threads.
    pub fn most(&self) -> usize {
        self.crews.keys().next_back().copied().unwrap_or(1)
    }

    /// The addresses of the pool's frames: one range for each node.
    pub fn frames(&self) -> impl Iterator<Item = std::ops::Range<*const u8>> {
        self.store.pool().memory()
    }

    /// Pages that were read from the file so far.
    pub fn loads(&self) -> u64 {
        self.store.pool().statistics().loads
    }

    /// Runs a query.
    ///
    /// # Errors
    ///
    /// [`Error::Query`]; [`Error::Interrupted`] if it was ended.
    pub fn run(
        &self,
        subject: &Subject,
        way: &Way,
        profile: Option<Arc<ProfileCollector>>,
    ) -> Result<Ran> {
        self.noted(subject, way, profile, None)
    }

    /// Runs a query, whose workers are noted on `line` if there is one.
    ///
    /// # Errors
    ///
    /// Those of [`Bench::run`].
    pub fn noted(
        &self,
        subject: &Subject,
        way: &Way,
        profile: Option<Arc<ProfileCollector>>,
        line: Option<Arc<TimeLine>>,
    ) -> Result<Ran> {
        let crew = &self.crews[&way.threads];
        let workers = &crew.workers;
        let traffic = Arc::new(Traffic::new(workers.nodes()));
        let runtime = Runtime {
            workers: workers.clone(),
            budget: self.budget.clone(),
            traffic: traffic.clone(),
            nearness: workers.layout().nearness().clone(),
            stop: self.stop.clone(),
        };
        let mut execution = Execution::by(way.executor);
        execution.block_rows = way.block;
        // The figures are about operators that pass blocks on.
        execution.hand_over = true;
        execution.reuse = way.reuse;
        execution.allocation = way.allocation;
        execution.lock_free = way.lock_free;
        execution.tasks = way
            .tasks
            .map_or(vec![], |(source, others)| vec![source, others]);
        execution.per_block = way.per_block;
        execution.time_line = line;
        execution.numa_policy = way.plan;
        execution.profile = profile;
        let prepared = subject.prepared.clone();
        let schedule = || -> Option<Vec<(u64, u64)>> {
            crew.threads
                .iter()
                .map(|thread| host::schedule(*thread))
                .collect()
        };
        let (before, faults) = (schedule(), host::faults());
        let (seconds, done) = workers.block_on(async move {
            let begun = Instant::now();
            let done = prepared.run_by(&runtime, &execution).await;
            (begun.elapsed().as_secs_f64(), done)
        });
        let (after, faults) = (schedule(), host::faults() - faults);
        let batches = match done {
            Ok((batches, _)) => batches,
            Err(engine::Error::Cancelled) => return Err(Error::Interrupted),
            Err(error) => return Err(failed(&subject.name, &error)),
        };
        let both = before
            .unwrap_or_default()
            .into_iter()
            .zip(after.unwrap_or_default());
        Ok(Ran {
            seconds,
            faults,
            bytes: traffic.matrix(),
            rows: text(&batches).map_err(|error| failed(&subject.name, &error))?,
            spent: both
                .map(|(before, after)| host::Spent::between(before, after, seconds))
                .collect(),
        })
    }
}

/// The rows as text, sorted, because without ORDER BY executors return them in any order.
fn text(
    batches: &[arrow::array::RecordBatch],
) -> std::result::Result<Vec<String>, arrow::error::ArrowError> {
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    let options = FormatOptions::default();
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            rows.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    rows.sort_unstable();
    Ok(rows)
}
