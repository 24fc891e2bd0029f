//! Statements from a blocking caller.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use futures::stream;
use governor::runtime::Runtime;
use sql::{Answer, AnswerStream, Statistics};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use crate::error::{Error, Result};

/// Batches that wait between a caller's iterator and the workers.
const QUEUE: usize = 4;

/// Runs statements, each a transaction of its own.
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

/// Interrupts the statement that a [`Session`] runs, from any thread or a signal handler's.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<Notify>);

impl Interrupter {
    /// Stops what the session runs at this moment, which then returns [`Error::Interrupted`]; if it runs
    /// nothing, nothing happens.
    pub fn interrupt(&self) {
        self.0.notify_waiters();
    }
}

/// What to do with a program.
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
    /// The first failure. After a syntax error nothing has run; after any other, the statements before it are
    /// done and the failed one, as a whole, is not.
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
    /// [`Error::Laq`] for a text that is no program, matrices that do not fit each other, and what cannot be computed.
    pub fn laq(&self, text: &str) -> Result<Answer> {
        self.program(text, Mode::Run)
    }

    /// What [`laq`](Session::laq) would run: one column, `plan`, with a line for each matrix (its type, its shape and
    /// its operator) and for each stage, pipeline and step.
    ///
    /// # Errors
    ///
    /// As `laq` before anything has run.
    pub fn explain_laq(&self, text: &str) -> Result<Answer> {
        self.program(text, Mode::Explain)
    }

    /// Runs it and shows, after what [`explain_laq`](Session::explain_laq) does, how it went: each stage with its
    /// time and its blocks, how long tasks were asleep and what for, rows, seconds, bytes by node.
    ///
    /// # Errors
    ///
    /// As [`laq`](Session::laq).
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

    /// Runs one statement and hands its rows over as they come, so that results may be larger than memory.
    ///
    /// # Errors
    ///
    /// As [`sql`](Session::sql) for what fails before the first row; later failures come from the iterator.
    pub fn query(&self, text: &str) -> Result<Rows> {
        let stream = self.wait(self.session.stream(text))?;
        Ok(Rows {
            stream,
            session: self.clone(),
        })
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
        // The end is sent as a message: a sender that is dropped without one belongs to an iterator that panicked.
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
        // Before anything else: no interrupt is missed from here on.
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

    /// What the statement cost so far; final after the last batch.
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

/// Blocking in a task would block one of the threads that are to do the work.
fn not_in_a_task() -> Result<()> {
    match Handle::try_current() {
        Ok(_) => Err(Error::Blocking),
        Err(_) => Ok(()),
    }
}
