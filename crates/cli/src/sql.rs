//! `atoll sql`: statements from the command line, a file or standard input; the shell is next door.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

use anyhow::Context;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use atoll::{Access, Database, QueryStatistics as Statistics, Rows, Session, TableSummary};

use crate::args::{Cache, Results, Sql};
use crate::opened::Opened;
use crate::output::{self, Sink, Style};
use crate::statement::{self, Splitter, Statement, only_reads, split};
use crate::{Failure, excerpt, interrupt, one_line, out, pager, pages, shell, store, units};

/// Runs the command.
pub fn run(args: &Sql) -> Result<(), Failure> {
    let given = given(args)?;
    let terminal = std::io::stdin().is_terminal();
    let interactive =
        given.is_none() && terminal && std::io::stdout().is_terminal() && !args.results.json;
    let mut incoming = Incoming::default();
    let absent = store::absent(&args.store);
    // A store that is there is opened before anything is read.
    let first = match &given {
        Some(statements) => statements.first(),
        None if interactive || !absent => None,
        None => incoming.first()?,
    };
    let makes = absent && first.is_some_and(|first| statement::creates(&first.text));
    let reads = given
        .as_ref()
        .is_some_and(|all| all.iter().all(|one| only_reads(&one.text)));
    let (opened, made) = open(args, absent, reads, makes)?;
    let mut runner = Runner::new(opened, &args.results)?;
    runner.origin = args.file.as_ref().map(|path| path.display().to_string());
    runner.showing = match (args.explain, args.analyze) {
        (true, _) => Some("explain"),
        (_, true) => Some("explain analyze"),
        _ => None,
    };
    let ran = match &given {
        Some(statements) => runner.all(statements),
        None if interactive => {
            runner.sink.style.most = Some(args.rows).filter(|rows| *rows > 0);
            shell::run(&mut runner)
        }
        None => runner.standard_input(incoming),
    };
    let ran = ran.and_then(|()| runner.finish());
    // A store that came into being for a table that did not holds nothing.
    let empty = made && runner.tables().is_ok_and(|tables| tables.is_empty());
    let closed = runner.close();
    if empty {
        store::remove(&args.store);
    }
    ran.and(closed)
}

/// The statements on the command line or in the file; none where they come from standard input.
fn given(args: &Sql) -> anyhow::Result<Option<Vec<Statement>>> {
    match (&args.query, &args.file) {
        (Some(text), _) => Ok(Some(split(text))),
        (None, Some(path)) => Ok(Some(split(&crate::text_of(path)?))),
        (None, None) => Ok(None),
    }
}

/// Opens the store, and says whether it was made just for a first statement that makes a table. A store that is there is
/// only read, but for the statements that change it: whoever looks at a prompt keeps nobody from writing.
fn open(args: &Sql, absent: bool, reads: bool, makes: bool) -> Result<(Opened, bool), Failure> {
    let (resources, execution) = (&args.results.resources, &args.results.execution);
    let read_only = args.read_only || (reads && !absent);
    let mut options = store::executing(resources, execution, read_only)?;
    if !read_only {
        options.access = Access::OnDemand;
    }
    let opened = |database| {
        Opened::new(
            database,
            args.store.clone(),
            options.clone(),
            args.waiting.time(),
        )
    };
    if !absent || args.read_only {
        let database = store::open(&args.store, &options)?;
        pages::tell(&database.recovery().dropped);
        return Ok((opened(database), false));
    }
    if !args.create && !makes {
        let missing = store::missing(&args.store);
        return Err(anyhow::anyhow!("{missing} (--create makes a new one)").into());
    }
    let database = store::open_or_create(&args.store, &options)?;
    if std::io::stderr().is_terminal() {
        eprintln!("atoll: {} is a new store", args.store.display());
    }
    Ok((opened(database), !args.create))
}

/// Statements from standard input, as they arrive.
#[derive(Default)]
struct Incoming {
    splitter: Splitter,
    ready: VecDeque<Statement>,
    ended: bool,
}

impl Incoming {
    /// The first statement, which stays the next one.
    fn first(&mut self) -> anyhow::Result<Option<&Statement>> {
        self.read()?;
        Ok(self.ready.front())
    }

    /// The next statement; none at the end.
    fn next(&mut self) -> anyhow::Result<Option<Statement>> {
        self.read()?;
        Ok(self.ready.pop_front())
    }

    /// Reads on until a statement is complete.
    fn read(&mut self) -> anyhow::Result<()> {
        let (mut input, mut line) = (std::io::stdin().lock(), String::new());
        while self.ready.is_empty() && !self.ended {
            line.clear();
            let read = input
                .read_line(&mut line)
                .context("cannot read standard input; it must be UTF-8 text")?;
            self.ready.extend(self.splitter.push(&line));
            if read == 0 {
                self.ended = true;
                self.ready
                    .extend(std::mem::take(&mut self.splitter).finish());
            }
        }
        Ok(())
    }
}

/// Empties the caches that a statement is to find empty.
fn empty(database: &Database, cache: Cache) -> Result<(), Failure> {
    if cache != Cache::Warm {
        database.forget()?;
    }
    if cache == Cache::ColdSystem {
        atoll::drop_system_caches()?;
    }
    Ok(())
}

/// Runs statements and writes their results.
pub struct Runner {
    /// Where they run.
    opened: Opened,
    /// What is emptied before each.
    cache: Cache,
    /// Where results go.
    pub sink: Sink,
    /// Whether times are told.
    pub timing: bool,
    /// What stands before a statement to show how it runs, if that is asked for.
    pub showing: Option<&'static str>,
    /// The file that statements come from.
    pub origin: Option<String>,
    /// The place in the text of the last failure.
    excerpt: Option<String>,
    /// Whether any statement failed.
    failed: bool,
}

impl Runner {
    /// Results as `results` says.
    pub fn new(opened: Opened, results: &Results) -> anyhow::Result<Runner> {
        let (path, format) = (results.output.as_deref(), results.format);
        let style = Style {
            width: pager::screen().map(|(width, _)| width),
            ..Style::default()
        };
        Ok(Runner {
            opened,
            cache: results.cache,
            sink: Sink::new(path, format, results.json, style)?,
            timing: results.timing,
            showing: None,
            origin: None,
            excerpt: None,
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
    fn standard_input(&mut self, mut incoming: Incoming) -> Result<(), Failure> {
        while let Some(statement) = incoming.next()? {
            if let Err(failure) = self.one(&statement) {
                self.tell_and_go_on(failure)?;
            }
        }
        Ok(())
    }

    /// The results are complete: a file of them takes its name. In JSON failures are part of them.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if !self.failed || self.sink.is_json() {
            self.sink.publish()?;
        }
        match self.failed {
            true => Err(Failure::Told),
            false => Ok(()),
        }
    }

    /// Failures so far are forgotten: those who saw them know.
    pub fn forgive(&mut self) {
        self.failed = false;
    }

    /// Runs one statement and writes its result. Ctrl-C ends only the statement.
    pub fn one(&mut self, statement: &Statement) -> Result<(), Failure> {
        let shown = self.showing.map(|how| statement.shown(how));
        let statement = shown.as_ref().unwrap_or(statement);
        let ran = self.perform(|session| {
            let rows = session.query(&statement.text);
            Ok(Box::new(Streamed {
                rows: rows.map_err(|error| statement.place(error))?,
                statement: statement.clone(),
            }))
        });
        if let Err(Failure::Error(error)) = &ran {
            self.excerpt = excerpt::of(error, statement);
        }
        ran
    }

    /// Runs `work` and writes its results as they come. Ctrl-C ends only that.
    pub fn perform(
        &mut self,
        mut work: impl FnMut(&Session) -> atoll::Result<Box<dyn output::Results>>,
    ) -> Result<(), Failure> {
        let (cache, sink, timing) = (self.cache, &mut self.sink, self.timing);
        self.opened.run(|database| {
            empty(database, cache)?;
            let session = database.session();
            let interrupter = session.interrupter();
            let _guard = interrupt::during(move || interrupter.interrupt());
            if interrupt::asked() {
                return Err(Failure::Interrupted);
            }
            let mut results = work(&session)?;
            sink.write(&mut *results)?;
            if timing {
                eprintln!("{}", time_line(&results.statistics()));
            }
            Ok(())
        })
    }

    /// The tables of the store, as the last commit left them.
    pub fn tables(&mut self) -> Result<Vec<TableSummary>, Failure> {
        Ok(self.opened.fresh()?.tables()?)
    }

    /// The tables, for those whose failures are told by others.
    pub fn known(&mut self) -> anyhow::Result<Vec<TableSummary>> {
        self.tables().map_err(|failure| match failure {
            Failure::Error(error) => error,
            _ => anyhow::anyhow!("interrupted"),
        })
    }

    /// The data file.
    pub fn path(&self) -> &Path {
        self.opened.path()
    }

    /// Closes the store.
    pub fn close(self) -> Result<(), Failure> {
        self.opened.close()
    }

    /// Tells of a failure in JSON, where that is what is written; else on standard error, and then it is one.
    fn tell(&mut self, failure: Failure) -> Result<(), Failure> {
        let Failure::Error(error) = failure else {
            return Err(failure);
        };
        self.failed = true;
        if out::closed() {
            return Err(Failure::Error(error));
        }
        let mut line = one_line(&error);
        if let Some(origin) = &self.origin {
            line = format!("{origin}: {line}");
        }
        if self.sink.write_error(&line)? {
            return Ok(());
        }
        eprintln!("atoll: {line}");
        if let Some(excerpt) = self.excerpt.take()
            && std::io::stderr().is_terminal()
        {
            eprintln!("{excerpt}");
        }
        Err(Failure::Told)
    }

    /// Tells of a failed statement, in JSON or on standard error. Only a failure to write is one.
    pub fn tell_and_go_on(&mut self, failure: Failure) -> Result<(), Failure> {
        match self.tell(failure) {
            Err(Failure::Told) => Ok(()),
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
