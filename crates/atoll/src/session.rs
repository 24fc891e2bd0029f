//! Sessions: statements of blocking callers.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use futures::stream;
use governor::runtime::Runtime;
use sql::{Answer, AnswerStream, Statistics, TransactionStatus};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use crate::error::{Error, Result};

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
    session: sql::Session,
    handle: Handle,
    stop: Arc<Notify>,
    governing: Arc<Runtime>,
}

/// Interrupts the statement that a [`Session`] runs, from any thread.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<Notify>);

impl Interrupter {
    /// Stops the statement that the session runs at this moment, which then returns [`Error::Interrupted`]. If it runs
    /// none, nothing happens.
    pub fn interrupt(&self) {
        self.0.notify_waiters();
    }
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
            handle,
            stop: Arc::new(Notify::new()),
            governing,
        }
    }

    /// Runs the statements of `text`, which semicolons separate, and collects what they return.
    ///
    /// # Errors
    ///
    /// The first failure. After a syntax error nothing has run; after any other, the statements before the failed one
    /// have run, and of the failed one nothing is kept. A transaction of several statements has failed then, and can
    /// only be rolled back, as a whole or to a savepoint.
    pub fn sql(&self, text: &str) -> Result<Vec<Answer>> {
        self.wait(self.session.execute(text))
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
        self.wait(work)
    }

    /// Runs one statement and returns its rows as they come, so that results may be larger than memory.
    ///
    /// # Errors
    ///
    /// Those of [`sql`](Session::sql) that come before the first row; later ones come from the iterator.
    pub fn query(&self, text: &str) -> Result<Rows> {
        let stream = self.wait(self.session.stream(text))?;
        Ok(Rows {
            stream,
            session: self.clone(),
        })
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

    /// A handle that stops what this session runs.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::clone(&self.stop))
    }

    /// See [`Database::append`](crate::Database::append).
    pub(crate) fn append(
        &self,
        table: &str,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<u64> {
        not_in_a_task()?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        // The end is sent as a message: if the sender is dropped without one, the iterator has panicked.
        let rows = stream::unfold(receiver, |mut receiver| async move {
            match receiver.recv().await {
                Some(Some(batch)) => Some((Ok(batch), receiver)),
                Some(None) => None,
                None => Some((Err(sql::Error::Cancelled), receiver)),
            }
        });
        let (session, name) = (self.session.clone(), table.to_string());
        let task = self
            .handle
            .spawn(async move { session.append(&name, Box::pin(rows)).await });
        for batch in batches {
            if sender.blocking_send(Some(batch)).is_err() {
                break;
            }
        }
        let _ = sender.blocking_send(None);
        match self.wait(async { Ok::<_, Error>(task.await) })? {
            Ok(appended) => Ok(appended?),
            Err(_) => Err(Error::Interrupted),
        }
    }

    /// Waits for `work` or an interrupt, whichever comes first; an interrupt drops the work.
    fn wait<T, E: Into<Error>>(
        &self,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> Result<T> {
        not_in_a_task()?;
        // This comes first, so that no interrupt is missed from here on.
        let stopped = self.stop.notified();
        let _running = self.governing.begin();
        self.handle.block_on(async {
            tokio::select! {
                biased;
                () = stopped => Err(Error::Interrupted),
                done = work => done.map_err(Into::into),
            }
        })
    }
}

/// The rows of one statement, batch by batch. Dropping it cancels the statement.
#[derive(Debug)]
pub struct Rows {
    stream: AnswerStream,
    session: Session,
}

impl Rows {
    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        self.stream.schema()
    }

    /// Rows changed, for statements that write.
    pub fn changed(&self) -> Option<u64> {
        self.stream.changed()
    }

    /// The statistics of the statement so far; final after the last batch.
    pub fn statistics(&self) -> Statistics {
        self.stream.statistics()
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let next = self.stream.next_batch();
        match self.session.wait(async { Ok::<_, Error>(next.await) }) {
            Ok(None) => None,
            Ok(Some(batch)) => Some(batch.map_err(Error::from)),
            Err(e) => Some(Err(e)),
        }
    }
}

/// Fails within an asynchronous task: blocking there would block one of the threads that are to do the work.
fn not_in_a_task() -> Result<()> {
    match Handle::try_current() {
        Ok(_) => Err(Error::Blocking),
        Err(_) => Ok(()),
    }
}
