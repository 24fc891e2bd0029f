//! Databases, sessions and rows. The package around them gives each thread a session of its own.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use atoll::{Interrupter, TransactionStatus};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::array::Array;
use crate::frame::{Frame, frames};
use crate::load::{LoadOptions, load};
use crate::many;
use crate::owned::Owned;
use crate::value::{Parameter, objects, parameter};
use crate::wait::{watched, watched_and_told};
use crate::{array, error, stream};

/// An open database.
#[pyclass(frozen, module = "atoll._atoll")]
pub(crate) struct Database(Owned<atoll::Database>);

#[pymethods]
impl Database {
    /// Opens the store `path`, or creates it.
    #[new]
    #[pyo3(signature = (path, read_only, threads, memory_limit))]
    fn open(
        py: Python<'_>,
        path: std::path::PathBuf,
        read_only: bool,
        threads: Option<usize>,
        memory_limit: Option<u64>,
    ) -> PyResult<Database> {
        let mut options = if read_only {
            atoll::Options::read_only()
        } else {
            atoll::Options::default()
        };
        options.threads = threads;
        options.memory_limit = memory_limit;
        let opened = watched(
            py,
            || (),
            || atoll::Database::open_or_create(&path, &options),
        )?;
        Ok(Database(Owned::new("the database", opened)))
    }

    /// A new session.
    fn session(&self) -> PyResult<Session> {
        Ok(Session(Owned::new("the session", self.0.get()?.session())))
    }

    /// Each table's name, rows, and columns with their types.
    fn tables(&self) -> PyResult<Vec<(String, u64)>> {
        let tables = self.0.get()?.tables().map_err(|e| error::of(&e))?;
        Ok(tables.into_iter().map(|t| (t.name, t.rows)).collect())
    }

    /// The names of the arrays.
    fn arrays(&self) -> PyResult<Vec<String>> {
        array::names(&self.0.get()?)
    }

    /// The array of that name, or a version of one.
    fn array(&self, name: &str) -> PyResult<Array> {
        array::open(&self.0.get()?, name)
    }

    /// Loads files into a table: rows, bytes, seconds.
    fn load(
        &self,
        py: Python<'_>,
        table: &str,
        files: Vec<std::path::PathBuf>,
        options: LoadOptions,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<(u64, u64, f64)> {
        let database = self.0.get()?;
        load(py, &database, table, &files, options, tell.as_ref())
    }

    /// Folds the log into the file. Sessions and rows that are left keep the file open.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.check()?;
        match self.0.take() {
            Some(database) => watched(py, || (), || database.close()),
            None => Ok(()),
        }
    }
}

/// A session.
#[pyclass(frozen, module = "atoll._atoll")]
pub(crate) struct Session(Owned<atoll::Session>);

#[pymethods]
impl Session {
    /// The names by which the statement reads rows and which nothing in the database has.
    fn missing(&self, py: Python<'_>, text: &str) -> PyResult<Vec<String>> {
        let session = self.0.get()?;
        let stop = session.interrupter();
        watched(py, || stop.interrupt(), || session.missing(text))
    }

    /// Runs one statement, which reads these frames as tables, until its first rows come. Calls `tell` with the seconds
    /// that it takes.
    fn query(
        &self,
        py: Python<'_>,
        text: &str,
        parameters: Option<Vec<Bound<'_, PyAny>>>,
        tables: Vec<(String, PyRef<'_, Frame>)>,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Rows> {
        let session = self.0.get()?.with_frames(frames(&tables)?);
        let stop = session.interrupter();
        let found = parameters.unwrap_or_default();
        let found = found.iter().map(parameter).collect::<PyResult<Vec<_>>>()?;
        let (types, values): (Vec<Option<DataType>>, Vec<Option<String>>) =
            found.into_iter().unzip();
        let work = || {
            if types.is_empty() {
                return session.query(text);
            }
            let statement = session.prepare(text, &types)?;
            let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
            match statement {
                Some(statement) => session.run(&statement, &values),
                None => session.query(text),
            }
        };
        let rows = watched_and_told(py, || stop.interrupt(), tell.as_ref(), work)?;
        Ok(Rows::new(rows, stop.clone()))
    }

    /// Runs a program in LAQ; or explains it; or runs it and explains how that went.
    fn laq(
        &self,
        py: Python<'_>,
        text: &str,
        explain: bool,
        analyze: bool,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Rows> {
        let session = self.0.get()?;
        let stop = session.interrupter();
        let work = || match (explain, analyze) {
            (_, true) => session.analyze_laq(text),
            (true, _) => session.explain_laq(text),
            _ => session.laq(text),
        };
        let answer = watched_and_told(py, || stop.interrupt(), tell.as_ref(), work)?;
        Ok(Rows::all(answer, stop.clone()))
    }

    /// Runs a statement for each row of parameters; see [`many::each`].
    fn each(&self, py: Python<'_>, text: &str, rows: Vec<Vec<Bound<'_, PyAny>>>) -> PyResult<u64> {
        let session = self.0.get()?;
        let (stop, rows) = (session.interrupter(), parameters(rows)?);
        watched(
            py,
            || stop.interrupt(),
            || many::each(&session, text, &rows),
        )
    }

    /// Runs a statement that reads rows of parameters from a table of this name; see [`many::at_once`].
    fn at_once(
        &self,
        py: Python<'_>,
        text: &str,
        name: &str,
        rows: Vec<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<Option<u64>> {
        let session = self.0.get()?;
        let (stop, rows) = (session.interrupter(), parameters(rows)?);
        let work = || many::at_once(&session, text, name, &rows);
        watched(py, || stop.interrupt(), work)
    }

    /// Whether a transaction of several statements is in progress, failed or not.
    #[getter]
    fn in_transaction(&self) -> PyResult<bool> {
        Ok(self.0.get()?.transaction() != TransactionStatus::Idle)
    }

    /// Runs all statements of a text and forgets what they return.
    fn script(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let session = self.0.get()?;
        let stop = session.interrupter();
        watched(py, || stop.interrupt(), || session.sql(text).map(|_| ()))
    }

    /// Stops what the session runs.
    fn interrupt(&self) -> PyResult<()> {
        self.0.get()?.interrupter().interrupt();
        Ok(())
    }

    /// Ends the session; a transaction in progress is rolled back.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.check()?;
        let session = self.0.take();
        py.detach(|| drop(session));
        Ok(())
    }
}

fn parameters(rows: Vec<Vec<Bound<'_, PyAny>>>) -> PyResult<Vec<Vec<Parameter>>> {
    let row = |row: &Vec<Bound<'_, PyAny>>| row.iter().map(parameter).collect();
    rows.iter().map(row).collect()
}

/// What is there of an answer.
struct Answer {
    /// What has come.
    held: Vec<RecordBatch>,
    /// What is to come.
    rest: Option<atoll::Rows>,
}

impl Answer {
    fn rows(&self) -> usize {
        self.held.iter().map(RecordBatch::num_rows).sum()
    }

    /// Takes batches until so many rows are there, or all.
    fn fill(&mut self, rows: usize) -> Result<(), atoll::Error> {
        while self.rows() < rows {
            match self.rest.as_mut().and_then(Iterator::next) {
                Some(batch) => self.held.push(batch?),
                None => {
                    self.rest = None;
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The rows of a statement.
#[pyclass(frozen, module = "atoll._atoll")]
pub(crate) struct Rows {
    schema: SchemaRef,
    changed: Option<u64>,
    answer: Owned<Arc<Mutex<Answer>>>,
    stop: Interrupter,
}

impl Rows {
    fn new(rows: atoll::Rows, stop: Interrupter) -> Rows {
        let (schema, changed) = (Arc::clone(rows.schema()), rows.changed());
        Rows::of(schema, changed, Vec::new(), Some(rows), stop)
    }

    /// Rows all of which are there.
    fn all(answer: atoll::Answer, stop: Interrupter) -> Rows {
        Rows::of(answer.schema, answer.changed, answer.batches, None, stop)
    }

    fn of(
        schema: SchemaRef,
        changed: Option<u64>,
        held: Vec<RecordBatch>,
        rest: Option<atoll::Rows>,
        stop: Interrupter,
    ) -> Rows {
        let answer = Answer { held, rest };
        Rows {
            schema,
            changed,
            answer: Owned::new("the answer", Arc::new(Mutex::new(answer))),
            stop,
        }
    }
}

#[pymethods]
impl Rows {
    /// Names and SQL types of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let fields = self.schema.fields().iter();
        fields
            .map(|field| (field.name().clone(), sql::type_name(field.data_type())))
            .collect()
    }

    /// Rows that a statement has written.
    #[getter]
    fn changed(&self) -> Option<u64> {
        self.changed
    }

    /// Waits until so many rows are there, or all. Returns how many there are, and whether that is all. Calls `tell` with
    /// the seconds that it takes.
    #[pyo3(signature = (rows, tell=None))]
    fn fill(
        &self,
        py: Python<'_>,
        rows: usize,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<(usize, bool)> {
        let answer = self.answer.get()?;
        // A row that has come already is not worth a thread.
        if let Some(answer) = answer.try_lock() {
            let there = answer.rows();
            if there >= rows || answer.rest.is_none() {
                return Ok((there, answer.rest.is_none()));
            }
        }
        let work = || {
            let mut answer = answer.lock();
            answer.fill(rows)?;
            Ok((answer.rows(), answer.rest.is_none()))
        };
        watched_and_told(py, || self.stop.interrupt(), tell.as_ref(), work)
    }

    /// Rows `start` to `end` of those that are there, as tuples.
    fn tuples<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        end: usize,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let answer = self.answer.get()?;
        let held = py.detach(|| answer.lock().held.clone());
        let mut rows = Vec::with_capacity(end.saturating_sub(start));
        let mut before = 0;
        for batch in &held {
            let first = start.max(before).min(before + batch.num_rows());
            let last = end.max(first).min(before + batch.num_rows());
            let part = batch.slice(first - before, last - first);
            before += batch.num_rows();
            if part.num_rows() == 0 {
                continue;
            }
            let columns = part.columns().iter().map(|column| objects(py, column));
            let columns = columns.collect::<PyResult<Vec<_>>>()?;
            for row in 0..part.num_rows() {
                let values = columns.iter().map(|column| column[row].clone_ref(py));
                rows.push(PyTuple::new(py, values.collect::<Vec<_>>())?);
            }
        }
        Ok(rows)
    }

    /// A capsule with the Arrow C stream of all rows. Those that are still to come are handed over as they come, and are
    /// not there any more afterwards.
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let answer = self.answer.get()?;
        let (held, mut rest) = py.detach(|| {
            let mut answer = answer.lock();
            (answer.held.clone(), answer.rest.take())
        });
        if rest.is_some() {
            drop(self.answer.take());
        }
        let coming = std::iter::from_fn(move || {
            let rows = rest.as_mut()?;
            // The caller may hold the interpreter or not; what is waited for may need it.
            let next = Python::try_attach(|py| py.detach(|| rows.next()));
            next.flatten().map(|batch| batch.map_err(|e| e.to_string()))
        });
        let batches = held.into_iter().map(Ok).chain(coming);
        stream::capsule(py, &self.schema, Box::new(batches))
    }

    /// Gives up the rows; a statement that runs is stopped.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.answer.check()?;
        let answer = self.answer.take();
        py.detach(|| drop(answer));
        Ok(())
    }
}
