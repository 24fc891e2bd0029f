//! Runs statements on a store and writes their results.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::anyhow;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use atoll::{
    Database, QueryStatistics as Statistics, Rows, Session, TableSummary, TransactionStatus,
};

use crate::failure::{Failure, one_line};
use crate::options::results::{Cache, ResultOptions};
use crate::output::results::{self, Results};
use crate::output::sink::Sink;
use crate::output::table::Style;
use crate::statement::excerpt;
use crate::statement::place::place;
#[cfg(feature = "lab")]
use crate::statement::time_line;
use crate::store::current::CurrentStore;
use crate::terminal::{elapsed, interrupt, out, pager};
use crate::units;
use atoll::script::Statement;

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
    opened: CurrentStore,
    /// What is emptied before each.
    cache: Cache,
    /// Where results go.
    pub sink: Sink,
    /// Whether times are printed.
    pub timing: bool,
    /// What stands before a statement to show how it runs, if that is asked for.
    pub showing: Option<&'static str>,
    /// Whether the store goes when the command ends.
    pub temporary: bool,
    /// The file that statements come from.
    pub origin: Option<String>,
    /// The place in the text of the last failure.
    excerpt: Option<String>,
    /// Whether any statement failed.
    failed: bool,
    /// The page about what threads do, if it is asked for.
    #[cfg(feature = "lab")]
    time_line: Option<time_line::Page>,
}

impl Runner {
    /// Results as `results` says.
    pub fn new(opened: CurrentStore, results: &ResultOptions) -> anyhow::Result<Runner> {
        let (path, format) = (results.output.as_deref(), results.format);
        let style = Style {
            width: pager::screen().map(|(width, _)| width),
            ..Style::default()
        };
        #[cfg(feature = "lab")]
        let time_line = {
            let line = opened.options().execution.time_line.as_ref();
            let asked = results.time_line.as_ref().zip(line);
            asked.map(|(path, line)| time_line::Page::new(path, line))
        };
        Ok(Runner {
            #[cfg(feature = "lab")]
            time_line,
            opened,
            cache: results.cache,
            sink: Sink::new(path, format, results.json, style)?,
            timing: results.timing,
            showing: None,
            temporary: false,
            origin: None,
            excerpt: None,
            failed: false,
        })
    }

    /// Statements that were given at once: the first failure ends them, except in JSON, where
    /// each has its line.
    pub fn all(&mut self, statements: &[Statement]) -> Result<(), Failure> {
        for statement in statements {
            if let Err(failure) = self.one(statement) {
                self.tell(failure)?;
            }
        }
        Ok(())
    }

    /// The results are complete: a file of them takes its name. In JSON failures are part of them.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if !self.failed || self.sink.is_json() {
            self.sink.publish()?;
        }
        if self.failed {
            return Err(Failure::Told);
        }
        Ok(())
    }

    /// Forgets failures so far: the user has seen them.
    pub fn forgive(&mut self) {
        self.failed = false;
    }

    /// Runs one statement and writes its result. Ctrl-C ends only the statement.
    pub fn one(&mut self, statement: &Statement) -> Result<(), Failure> {
        let shown = self.showing.map(|how| statement.shown(how));
        let statement = shown.as_ref().unwrap_or(statement);
        let ran = self.perform(|session| {
            let rows = session.query(&statement.text);
            let rows = rows.map_err(|error| place(statement, error))?;
            if !rows.notices().is_empty() {
                elapsed::hide();
            }
            for notice in rows.notices() {
                eprintln!("NOTICE: {notice}");
            }
            Ok(Box::new(Streamed {
                rows,
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
        mut work: impl FnMut(&Session) -> atoll::Result<Box<dyn Results>>,
    ) -> Result<(), Failure> {
        let (cache, sink, timing) = (self.cache, &mut self.sink, self.timing);
        #[cfg(feature = "lab")]
        let page = &mut self.time_line;
        self.opened.run(|database, session| {
            empty(database, cache)?;
            #[cfg(feature = "lab")]
            if let Some(page) = page {
                page.on(database.workers().threads());
            }
            let interrupter = session.interrupter();
            let _guard = interrupt::during(move || interrupter.interrupt());
            if interrupt::asked() {
                return Err(Failure::Interrupted);
            }
            let _shown = elapsed::show(bytes_read_by(database));
            let mut results = work(session)?;
            sink.write(&mut *results)?;
            elapsed::hide();
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

    /// The tables, with an error that the caller prints.
    pub fn known(&mut self) -> anyhow::Result<Vec<TableSummary>> {
        self.tables().map_err(told)
    }

    /// The rows of a query of the shell itself, as texts; NULL is an empty one.
    ///
    /// # Errors
    /// If it fails.
    pub fn texts(&mut self, query: &str) -> anyhow::Result<Vec<Vec<String>>> {
        let answers = self.opened.run(|_, session| Ok(session.sql(query)?));
        let mut rows = Vec::new();
        let batches = answers.map_err(told)?;
        for batch in batches.iter().flat_map(|answer| &answer.batches) {
            rows.extend(results::texts(batch)?);
        }
        Ok(rows)
    }

    /// The names of all functions.
    ///
    /// # Errors
    /// If the store cannot be opened again.
    pub fn function_names(&mut self) -> anyhow::Result<Vec<String>> {
        Ok(self.opened.fresh().map_err(told)?.function_names())
    }

    /// Leaves the store for another one.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    pub fn change_to(&mut self, path: &Path) -> anyhow::Result<()> {
        self.opened.change_to(path).map_err(told)?;
        self.temporary = false;
        Ok(())
    }

    /// Whether a transaction of several statements is in progress.
    pub fn transaction(&self) -> TransactionStatus {
        self.opened.transaction()
    }

    /// The data file.
    pub fn path(&self) -> &Path {
        self.opened.path()
    }

    /// Closes the store, and writes the page about what threads did if it was asked for.
    pub fn close(self) -> Result<(), Failure> {
        let closed = self.opened.close();
        #[cfg(feature = "lab")]
        if let Some(page) = &self.time_line {
            page.write()?;
        }
        closed
    }

    /// Writes an error into the results if these are JSON; else prints it and fails.
    pub fn tell(&mut self, failure: Failure) -> Result<(), Failure> {
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

    /// Writes the error of a failed statement into the results or prints it. Fails only if it cannot be written.
    pub fn tell_and_go_on(&mut self, failure: Failure) -> Result<(), Failure> {
        match self.tell(failure) {
            Err(Failure::Told) => Ok(()),
            other => other,
        }
    }
}

/// Tells how many bytes were read from now on.
fn bytes_read_by(database: &Database) -> impl Fn() -> u64 + Send + 'static {
    let database = database.clone();
    let all = move || -> u64 { database.bytes_read().iter().flatten().sum() };
    let before = all();
    move || all().saturating_sub(before)
}

/// The error of a failure, for a caller that prints it.
fn told(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Error(error) => error,
        _ => anyhow!("interrupted"),
    }
}

/// The rows of a statement, from the workers.
struct Streamed {
    rows: Rows,
    statement: Statement,
}

impl Results for Streamed {
    fn schema(&self) -> &SchemaRef {
        self.rows.schema()
    }

    fn next(&mut self) -> atoll::Result<Option<RecordBatch>> {
        // A statement that waits for its reader notices Ctrl-C here; what it has written by now is told.
        if interrupt::asked() && !self.rows.is_over() {
            return Err(atoll::Error::Interrupted);
        }
        let next = self.rows.next().transpose();
        next.map_err(|error| place(&self.statement, error))
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
