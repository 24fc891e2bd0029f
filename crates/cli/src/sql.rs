//! `atoll sql`: statements from the command line, a file or standard input; the shell is next door.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Context;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use atoll::{Access, Database, Options, QueryStatistics as Statistics, Rows, Session};

use crate::args::{
    Affinity, Cache, Channel, Executor, Govern, Plan, Resources, Results, Reuse, Sql,
};
use crate::output::{self, Sink};
use crate::statement::{Splitter, Statement, only_reads, split};
use crate::{Failure, heap, interrupt, one_line, shell, units};

/// The options of the library for those of the command line.
pub fn options(resources: &Resources, read_only: bool) -> Options {
    let mut options = Options::default();
    options.threads = resources.threads.map(|threads| threads as usize);
    options.pool_bytes = resources.pool;
    options.memory_limit = resources.memory_limit;
    options.reclaim = Some(heap::give_back);
    options.machine = resources.machine.clone();
    options.affinity = resources.affinity == Affinity::On;
    options.govern = match resources.govern {
        Govern::Auto => atoll::Govern::Auto,
        Govern::On => atoll::Govern::On,
        Govern::Throughput => atoll::Govern::Throughput,
        Govern::Off => atoll::Govern::Off,
    };
    options.executor = match resources.executor {
        Executor::Datafusion => atoll::Executor::DataFusion,
        Executor::Fused => atoll::Executor::Fused,
        Executor::Stream => atoll::Executor::Stream,
        Executor::Staged => atoll::Executor::Staged,
    };
    options.plan = resources.plan.map(|plan| match plan {
        Plan::Obliv => atoll::Plan::Obliv,
        Plan::Shard => atoll::Plan::Shard,
        Plan::Distr => atoll::Plan::Distr,
    });
    let execution = &mut options.execution;
    execution.block_rows = resources.block;
    execution.ring = resources.ring.map(usize::from);
    execution.tasks = resources.tasks.iter().copied().map(usize::from).collect();
    // Absent where somebody made the options without the command line.
    execution.queue = usize::from(resources.queue.max(1));
    execution.lock_free = resources.channel == Channel::LockFree;
    execution.reuse = resources.reuse == Reuse::On;
    options.access = if read_only {
        Access::Read
    } else {
        Access::Write
    };
    options
}

/// The log beside a store.
fn log_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".log");
    name.into()
}

/// Bytes of a store's files.
pub fn store_bytes(store: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    size(store) + size(&log_of(store))
}

/// Removes a store's files; what cannot be removed stays.
pub fn remove(store: &Path) {
    let _ = std::fs::remove_file(store);
    let _ = std::fs::remove_file(log_of(store));
}

/// Runs the command.
pub fn run(args: &Sql) -> Result<(), Failure> {
    let statements = given(args)?;
    let reads = statements
        .as_ref()
        .is_some_and(|all| all.iter().all(|one| only_reads(&one.text)));
    let interactive = statements.is_none() && std::io::stdin().is_terminal() && !args.results.json;
    let database = open(args, reads)?;
    let most = interactive.then_some(shell::MOST_ROWS);
    let mut runner = Runner::new(&database, &args.results, most)?;
    runner.showing = match (args.explain, args.analyze) {
        (true, _) => Some("explain"),
        (_, true) => Some("explain analyze"),
        _ => None,
    };
    let ran = match statements {
        Some(statements) => runner.all(&statements),
        None if interactive => shell::run(&database, &mut runner),
        None => runner.standard_input(),
    };
    let failed = runner.failed;
    drop(runner);
    let closed = database.close();
    ran?;
    closed?;
    if failed { Err(Failure::Told) } else { Ok(()) }
}

/// The statements on the command line or in the file; none where they come from standard input.
fn given(args: &Sql) -> anyhow::Result<Option<Vec<Statement>>> {
    match (&args.query, &args.file) {
        (Some(text), _) => Ok(Some(split(text))),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}; check the path", path.display()))?;
            Ok(Some(split(&text)))
        }
        (None, None) => Ok(None),
    }
}

/// Opens the store: for reading where that is asked for or suffices, else for writing.
fn open(args: &Sql, reads: bool) -> Result<Database, Failure> {
    let exists = args.store.exists();
    if args.read_only || (reads && exists) {
        return Ok(Database::open(
            &args.store,
            &options(&args.results.resources, true),
        )?);
    }
    Ok(Database::open_or_create(
        &args.store,
        &options(&args.results.resources, false),
    )?)
}

/// Empties caches before a statement.
struct Emptying {
    database: Database,
    system: bool,
}

impl Emptying {
    fn of(database: &Database, cache: Cache) -> Option<Emptying> {
        (cache != Cache::Warm).then(|| Emptying {
            database: database.clone(),
            system: cache == Cache::ColdSystem,
        })
    }

    fn empty(&self) -> Result<(), Failure> {
        self.database.forget()?;
        if self.system {
            atoll::drop_system_caches()?;
        }
        Ok(())
    }
}

/// Runs statements and writes their results.
pub struct Runner {
    /// Where they run.
    pub session: Session,
    /// What is emptied before each.
    cache: Option<Emptying>,
    /// Where results go.
    pub sink: Sink,
    /// Whether times are told.
    pub timing: bool,
    /// What stands before a statement to show how it runs, if that is asked for.
    pub showing: Option<&'static str>,
    /// Whether any statement failed.
    pub failed: bool,
}

impl Runner {
    /// Results as `results` says, of each at most `most` rows.
    pub fn new(
        database: &Database,
        results: &Results,
        most: Option<usize>,
    ) -> anyhow::Result<Runner> {
        let (path, format) = (results.output.as_deref(), results.format);
        Ok(Runner {
            session: database.session(),
            cache: Emptying::of(database, results.cache),
            sink: Sink::new(path, format, results.json, most)?,
            timing: results.timing,
            showing: None,
            failed: false,
        })
    }

    /// Statements that were given at once: the first failure ends them, except in JSON, where
    /// each has its line.
    fn all(&mut self, statements: &[Statement]) -> Result<(), Failure> {
        for statement in statements {
            if let Err(failure) = self.one(statement) {
                self.tell(failure)?;
            }
        }
        Ok(())
    }

    /// Statements as they arrive. A failure is told and the next one runs.
    fn standard_input(&mut self) -> Result<(), Failure> {
        let (mut splitter, mut line) = (Splitter::default(), String::new());
        let mut input = std::io::stdin().lock();
        loop {
            line.clear();
            let read = input
                .read_line(&mut line)
                .context("cannot read standard input; it must be UTF-8 text")?;
            let mut statements = splitter.push(&line);
            if read == 0 {
                statements.extend(std::mem::take(&mut splitter).finish());
            }
            for statement in &statements {
                if let Err(failure) = self.one(statement) {
                    self.tell_and_go_on(failure)?;
                }
            }
            if read == 0 {
                return Ok(());
            }
        }
    }

    /// Runs one statement and writes its result. Ctrl-C ends only the statement.
    pub fn one(&mut self, statement: &Statement) -> Result<(), Failure> {
        let shown = self.showing.map(|how| statement.shown(how));
        let statement = shown.as_ref().unwrap_or(statement);
        self.perform(|session| {
            let rows = session.query(&statement.text);
            Ok(Box::new(Streamed {
                rows: rows.map_err(|error| statement.place(error))?,
                statement: statement.clone(),
            }))
        })
    }

    /// Runs `work` and writes its results as they come. Ctrl-C ends only that.
    pub fn perform(
        &mut self,
        work: impl FnOnce(&Session) -> atoll::Result<Box<dyn output::Results>>,
    ) -> Result<(), Failure> {
        if let Some(cache) = &self.cache {
            cache.empty()?;
        }
        let interrupter = self.session.interrupter();
        let _guard = interrupt::during(move || interrupter.interrupt());
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        let mut results = work(&self.session)?;
        self.sink.write(&mut *results)?;
        if self.timing {
            eprintln!("{}", time_line(&results.statistics()));
        }
        Ok(())
    }

    /// Tells of a failure in JSON, where that is what is written; else gives it back.
    fn tell(&mut self, failure: Failure) -> Result<(), Failure> {
        match failure {
            Failure::Error(error) if self.sink.write_error(&one_line(&error))? => {
                self.failed = true;
                Ok(())
            }
            other => Err(other),
        }
    }

    /// Tells of a failed statement, in JSON or on standard error. Only a failure to write is one.
    pub fn tell_and_go_on(&mut self, failure: Failure) -> Result<(), Failure> {
        match self.tell(failure) {
            Err(Failure::Error(error)) if !crate::out::closed() => {
                self.failed = true;
                eprintln!("atoll: {}", one_line(&error));
                Ok(())
            }
            other => other,
        }
    }
}

/// The rows of a statement, from the workers.
struct Streamed {
    rows: Rows,
    statement: Statement,
}

impl output::Results for Streamed {
    fn schema(&self) -> &SchemaRef {
        self.rows.schema()
    }

    fn next(&mut self) -> atoll::Result<Option<RecordBatch>> {
        // Who waits for its reader hears of Ctrl-C here.
        if interrupt::asked() {
            return Err(atoll::Error::Interrupted);
        }
        let next = self.rows.next().transpose();
        next.map_err(|error| self.statement.place(error))
    }

    fn changed(&self) -> Option<u64> {
        self.rows.changed()
    }

    fn statistics(&self) -> Statistics {
        self.rows.statistics()
    }
}

/// `0.123 s (planning 4.5 ms), 12.3 MiB read, 98.0 % of it on the home node`
fn time_line(statistics: &Statistics) -> String {
    let (total, local) = (statistics.total_bytes(), statistics.local_bytes());
    let mut line = format!(
        "{} (planning {})",
        units::seconds(statistics.seconds),
        units::seconds(statistics.planning_seconds)
    );
    if total > 0 {
        let share = units::share(local, total);
        line += &format!(", {} read, {share} on the home node", units::bytes(total));
    }
    line
}
