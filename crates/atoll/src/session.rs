//! Sessions: statements of blocking callers.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use futures::stream;
use futures::stream::{BoxStream, StreamExt};
use governor::runtime::Runtime;
use sql::{Answer, Canceller, Frames, PreparedStatement, TransactionStatus, Transfer};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::waiting::{Interrupter, Waiting, not_in_a_task};

/// The most batches that wait between the workers and the caller's iterator.
const QUEUE: usize = 4;

/// Runs statements, each a transaction of its own, unless `begin` has started one of several. That ends with `commit` or
/// `rollback`; it is rolled back when the session and its clones are dropped.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("fish.atoll");
/// let database = atoll::Database::create(&path, &atoll::Options::default())?;
/// let session = database.session();
/// session.sql("create table fish (name varchar, length double)")?;
/// session.sql("insert into fish values ('blenny', 0.1), ('wrasse', 0.4)")?;
///
/// let answers = session.sql("select name from fish where length > 0.2")?;
/// assert_eq!(answers[0].rows(), 1);
/// println!("{} s, bytes by node {:?}", answers[0].statistics.seconds, answers[0].statistics.bytes);
///
/// let error = session.sql("select nam from fish").unwrap_err();
/// assert_eq!(error.to_string(), "no column \"nam\" at line 1, column 8; did you mean name?");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) session: sql::Session,
    waiting: Waiting,
}

/// What to do with a LAQ program.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Run,
    Explain,
    Analyze,
}

impl Session {
    pub(crate) fn new(session: sql::Session, handle: Handle, governing: Arc<Runtime>) -> Session {
        Session {
            session,
            waiting: Waiting::new(handle, governing),
        }
    }

    /// The session for somebody who may not read and write the files of this machine: statements that name some are
    /// refused. What views name is read.
    #[must_use]
    pub fn without_files(mut self) -> Session {
        self.session = self.session.without_files();
        self
    }

    /// The session of a user of this name, which `current_user` and its kin return. Without one they return the name of
    /// who runs the program.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let database = atoll::Database::create(directory.path().join("a.atoll"), &atoll::Options::default())?;
    /// let session = database.session().of_user("ann");
    /// assert_eq!(session.sql("select 1 where current_user = 'ann'")?[0].rows(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn of_user(mut self, name: &str) -> Session {
        self.session = self.session.of_user(name);
        self
    }

    /// Has `pg_settings` and `current_setting` tell these settings: for servers, which keep them.
    pub fn show_settings(&self, settings: Vec<sql::Setting>) {
        self.session.show_settings(settings);
    }

    /// Has `pg_cursors` tell these cursors: for servers, which keep them.
    pub fn show_cursors(&self, cursors: Vec<sql::OpenCursor>) {
        self.session.show_cursors(cursors);
    }

    /// An account in the memory that statements of the session reserve from: for servers, which keep rows of cursors.
    ///
    /// # Errors
    ///
    /// Those of reading the catalog.
    pub fn account(&self) -> Result<memory::Account> {
        Ok(self.session.account()?)
    }

    /// The session that has this number among those of a server: `pg_backend_pid` returns it, and `pg_cancel_backend` and
    /// `pg_terminate_backend` stop others.
    #[must_use]
    pub fn of_backend(mut self, backend: sql::Backend) -> Session {
        self.session = self.session.of_backend(backend);
        self
    }

    /// The session that looks names of tables up in these schemas, a list as `set search_path` takes it; `reset search_path`
    /// comes back to them.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let database = atoll::Database::create(directory.path().join("a.atoll"), &atoll::Options::default())?;
    /// let session = database.session().with_search_path("sea, public")?;
    /// session.sql("create schema sea; create table fish (name varchar)")?;
    /// assert_eq!(database.session().sql("from sea.fish")?[0].rows(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If `path` is no list of names.
    pub fn with_search_path(mut self, path: &str) -> Result<Session> {
        self.session = self.session.with_search_path(path)?;
        Ok(self)
    }

    /// A handle of this session whose statements read `frames` as tables. Their transaction is that of this session; no
    /// statement writes to a frame, and views do not see them. Statements fail if a frame has the name of a table, a
    /// view or an array.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("numbers.atoll");
    /// use std::sync::Arc;
    /// use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    ///
    /// let database = atoll::Database::create(&path, &atoll::Options::default())?;
    /// let session = database.session();
    /// let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    /// let batch = RecordBatch::try_from_iter([("n", numbers)])?;
    ///
    /// assert_eq!(session.missing("select n from frame")?, ["frame"]);
    /// let mut frames = atoll::Frames::default();
    /// frames.add_batches("frame", &batch.schema(), vec![batch])?;
    /// let answers = session.with_frames(frames).sql("select n from frame where n > 1")?;
    /// assert_eq!(answers[0].rows(), 2);
    /// assert!(session.sql("select n from frame").is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_frames(&self, frames: Frames) -> Session {
        Session {
            session: self.session.clone().with_frames(frames),
            ..self.clone()
        }
    }

    /// The names that the one statement of `text` reads rows by and that no table, view or array has: where
    /// [frames](Session::with_frames) may stand. None of a text that is not one statement. They may be those of files and
    /// of functions, too.
    ///
    /// # Errors
    ///
    /// If the transaction in progress has failed; those of reading the catalog.
    pub fn missing(&self, text: &str) -> Result<Vec<String>> {
        self.waiting.wait(self.session.missing(text))
    }

    /// Runs the statements of `text`, which semicolons separate, and collects what they return.
    ///
    /// # Errors
    ///
    /// The first failure. After a syntax error nothing has run; after any other, the statements before the failed one
    /// have run, and of the failed one nothing is kept. A transaction of several statements has failed then, and can
    /// only be rolled back, as a whole or to a savepoint.
    pub fn sql(&self, text: &str) -> Result<Vec<Answer>> {
        self.waiting.wait(self.session.execute(text))
    }

    /// Runs a program in LAQ, the language of linear algebra (`docs/reference/laq.md`), on Atoll's own engine.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("reef.atoll");
    /// let database = atoll::Database::create(&path, &atoll::Options::default())?;
    /// let session = database.session();
    /// session.sql("create table fish (name varchar, length double)")?;
    /// session.sql("insert into fish values ('blenny', 0.1), ('wrasse', 0.4), ('wrasse', 0.3)")?;
    ///
    /// let answer = session.laq("
    ///     large = filter(fish.length > 0.2)
    ///     seen  = count(krao(large, fish.name))
    ///     return(fish.name, seen)
    /// ")?;
    /// assert_eq!(answer.rows(), 1);
    ///
    /// let error = session.laq("return(sum(fish.lenght))").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "line 1, column 17: `fish` has no attribute `lenght`; did you mean length?"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Laq`] if the text is no program, matrices do not fit each other, or something cannot be computed.
    pub fn laq(&self, text: &str) -> Result<Answer> {
        self.program(text, Mode::Run)
    }

    /// Explains what [`laq`](Session::laq) would run: one column, `plan`, with a line for each matrix (its type, its
    /// shape and its operator) and for each stage, pipeline and operator.
    ///
    /// # Errors
    ///
    /// Those of [`laq`](Session::laq) that come before anything runs.
    pub fn explain_laq(&self, text: &str) -> Result<Answer> {
        self.program(text, Mode::Explain)
    }

    /// Runs a program and shows, after what [`explain_laq`](Session::explain_laq) shows, its profile: each stage with
    /// its time and its blocks, how long tasks slept and what for, rows, seconds, bytes by node.
    ///
    /// # Errors
    ///
    /// Those of [`laq`](Session::laq).
    pub fn analyze_laq(&self, text: &str) -> Result<Answer> {
        self.program(text, Mode::Analyze)
    }

    fn program(&self, text: &str, mode: Mode) -> Result<Answer> {
        let text = text.to_string();
        let work = self.session.program(move |tables| async move {
            let compiled = laq::compile(&text, &tables).await?;
            Ok::<_, Error>(match mode {
                Mode::Explain => sql::Program::Show(compiled.explain()),
                Mode::Analyze => {
                    let lines = compiled.explain();
                    sql::Program::Analyze(compiled.prepared, lines)
                }
                Mode::Run => sql::Program::Run(compiled.prepared),
            })
        });
        self.waiting.wait(work)
    }

    /// Runs one statement and returns its rows as they come, so that results may be larger than memory.
    ///
    /// # Errors
    ///
    /// Those of [`sql`](Session::sql) that come before the first row; later ones come from the iterator.
    pub fn query(&self, text: &str) -> Result<Rows> {
        let stream = self.waiting.wait(self.session.stream(text))?;
        Ok(Rows::new(stream, self.waiting.clone()))
    }

    /// Reads one statement, whose parameters are `$1`, `$2`, ..., to [run](Session::run) it any number of times. The types
    /// of parameters that are not declared are those of what they are compared with or cast to, or else text. None if
    /// there is no statement in `text`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("fish.atoll");
    /// # let database = atoll::Database::create(&path, &atoll::Options::default())?;
    /// let session = database.session();
    /// session.sql("create table fish (name varchar, legs int)")?;
    /// let insert = session.prepare("insert into fish values ($1, $2)", &[])?.unwrap();
    /// for (name, legs) in [("blenny", "0"), ("crab", "10")] {
    ///     assert_eq!(session.run(&insert, &[Some(name), Some(legs)])?.changed(), Some(1));
    /// }
    /// let select = session.prepare("select name from fish where legs > $1", &[])?.unwrap();
    /// assert_eq!(select.parameters(), [arrow::datatypes::DataType::Int32]);
    /// let rows: usize = session.run(&select, &[Some("4")])?.map(|batch| batch.unwrap().num_rows()).sum();
    /// assert_eq!(rows, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If `text` is several statements; those of planning the statement.
    pub fn prepare(
        &self,
        text: &str,
        declared: &[Option<DataType>],
    ) -> Result<Option<PreparedStatement>> {
        self.waiting.wait(self.session.prepare(text, declared))
    }

    /// Runs a prepared statement with these texts for its parameters; NULL for those that are none.
    ///
    /// # Errors
    ///
    /// If a text is not of its parameter's type; those of [`query`](Session::query).
    pub fn run(&self, statement: &PreparedStatement, values: &[Option<&str>]) -> Result<Rows> {
        let stream = self.waiting.wait(self.session.run(statement, values))?;
        Ok(Rows::new(stream, self.waiting.clone()))
    }

    /// The transaction in progress has failed, if there is one: for whoever could not do something else in it.
    pub fn fail(&self) {
        // Whatever an interrupt is for, the mark is set.
        self.waiting.handle.block_on(self.session.fail());
    }

    /// The rows of a `copy ... to stdout`.
    ///
    /// # Errors
    ///
    /// Those of its query; if rows come from the client.
    pub fn copy_out(&self, transfer: &Transfer) -> Result<Rows> {
        let stream = self.waiting.wait(self.session.copy_out(transfer))?;
        Ok(Rows::new(stream, self.waiting.clone()))
    }

    /// The columns that a `copy ... from stdin` fills.
    ///
    /// # Errors
    ///
    /// If there is no such table or column; if rows go to the client.
    pub fn copy_columns(&self, transfer: &Transfer) -> Result<SchemaRef> {
        self.waiting.wait(self.session.copy_columns(transfer))
    }

    /// Appends the rows of a `copy ... from stdin`: batches of texts, a column for each that the statement fills. The
    /// iterator runs on the calling thread. Returns how many rows there were.
    ///
    /// # Errors
    ///
    /// Those of the statement, and the first error of `batches`. Nothing is appended then.
    pub fn copy_in(
        &self,
        transfer: &Transfer,
        batches: impl IntoIterator<Item = std::result::Result<RecordBatch, sql::Error>>,
    ) -> Result<u64> {
        not_in_a_task()?;
        let (sender, rows) = incoming();
        let (session, transfer) = (self.session.clone(), transfer.clone());
        let canceller = Canceller::default();
        let work = canceller.over(async move { session.copy_in(&transfer, rows).await });
        let task = Task(self.waiting.handle.spawn(work));
        for batch in batches {
            let failed = batch.is_err();
            if sender.blocking_send(Some(batch)).is_err() || failed {
                break;
            }
        }
        let _ = sender.blocking_send(None);
        self.waiting.wait_for(canceller, task.end())
    }

    /// Whether a transaction of several statements is in progress.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("fish.atoll");
    /// use atoll::TransactionStatus;
    ///
    /// let database = atoll::Database::create(&path, &atoll::Options::default())?;
    /// let session = database.session();
    /// session.sql("create table fish (name varchar)")?;
    /// session.sql("begin; insert into fish values ('blenny')")?;
    /// assert_eq!(session.transaction(), TransactionStatus::Open);
    /// assert_eq!(session.sql("from fish")?[0].rows(), 1);
    /// assert_eq!(database.session().sql("from fish")?[0].rows(), 0);
    ///
    /// assert!(session.sql("select nam from fish").is_err());
    /// assert_eq!(session.transaction(), TransactionStatus::Failed);
    /// session.sql("rollback")?;
    /// assert_eq!(session.sql("from fish")?[0].rows(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction(&self) -> TransactionStatus {
        self.session.transaction()
    }

    /// What the transaction in progress is, or the next one is that is asked for nothing else: `transaction_isolation`,
    /// `transaction_read_only` and `transaction_deferrable`, each with its value.
    pub fn transaction_modes(&self) -> [(&'static str, &'static str); 3] {
        self.session.transaction_modes()
    }

    /// A handle that stops what this session runs.
    pub fn interrupter(&self) -> Interrupter {
        self.waiting.interrupter()
    }

    /// A handle of this session that only its own [`interrupter`](Session::interrupter) stops, and whose interrupter stops
    /// nothing else: for several statements at a time. Their transaction is that of this session.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let database = atoll::Database::create(directory.path().join("a.atoll"), &atoll::Options::default())?;
    /// let session = database.session();
    /// let other = session.with_own_interrupter();
    /// session.sql("begin; create table fish (name varchar)")?;
    /// assert_eq!(other.sql("from fish")?[0].rows(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_own_interrupter(&self) -> Session {
        Session {
            waiting: self.waiting.apart(),
            ..self.clone()
        }
    }

    /// See [`Database::append`](crate::Database::append).
    pub(crate) fn append(
        &self,
        table: &str,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<u64> {
        not_in_a_task()?;
        let (sender, rows) = incoming();
        let (session, name) = (self.session.clone(), table.to_string());
        let canceller = Canceller::default();
        let work = canceller.over(async move { session.append(&name, rows).await });
        let task = Task(self.waiting.handle.spawn(work));
        for batch in batches {
            if sender.blocking_send(Some(Ok(batch))).is_err() {
                break;
            }
        }
        let _ = sender.blocking_send(None);
        self.waiting.wait_for(canceller, task.end())
    }
}

/// A task that is aborted when this is dropped.
struct Task<T>(JoinHandle<std::result::Result<T, sql::Error>>);

impl<T> Task<T> {
    /// What it returns.
    async fn end(mut self) -> Result<T> {
        match (&mut self.0).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(Error::Interrupted),
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Batch = std::result::Result<RecordBatch, sql::Error>;

/// A queue of batches, and its other end as a stream. The end is sent as a message: if the sender is dropped without
/// one, whoever made the batches has panicked.
fn incoming() -> (mpsc::Sender<Option<Batch>>, BoxStream<'static, Batch>) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let rows = stream::unfold(receiver, |mut receiver: mpsc::Receiver<_>| async move {
        match receiver.recv().await {
            Some(Some(batch)) => Some((batch, receiver)),
            Some(None) => None,
            None => Some((Err(sql::Error::Cancelled), receiver)),
        }
    });
    (sender, rows.boxed())
}
