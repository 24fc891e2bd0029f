//! Sessions: statements in, answers out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{ObjectType, Statement as Sql};
use engine::Stop;
use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::{mpsc, oneshot};

use crate::error::{Error, Result, panicked};
use crate::frontend::names::table_name;
use crate::frontend::parse::{Parsed, Statement, parse};
use crate::resources::{guard, stop};
use crate::run::answer::{AbortOnDrop, Answer, AnswerStream, Clock, task_error};
use crate::run::context::Scope;
use crate::run::engine::Engine;
use crate::run::{fused, information, query};
use crate::statements::write::Writing;
use crate::statements::{copy, ddl, dml, explain};

/// What another language makes of a statement.
#[derive(Debug)]
#[non_exhaustive]
pub enum Program {
    /// To be run on our own engine.
    Run(engine::Prepared),
    /// To be run on our own engine, and what it did to be shown after these lines: `explain analyze`.
    Analyze(engine::Prepared, Vec<String>),
    /// Not to be run, but to be shown, a line each.
    Show(Vec<String>),
}

/// Batches that wait for a slow reader of a stream.
const QUEUE: usize = 2;

/// Runs statements. Each is a transaction of its own.
///
/// Futures of this type may be awaited on any runtime: the work is done by the engine's workers.
/// Dropping a future cancels its statement.
#[derive(Clone, Debug)]
pub struct Session {
    engine: Arc<Engine>,
}

impl Engine {
    /// A new session.
    pub fn session(self: &Arc<Self>) -> Session {
        Session::new(Arc::clone(self))
    }
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>) -> Session {
        Session { engine }
    }

    /// Runs the statements of `text`, which semicolons separate, one after the other.
    ///
    /// # Errors
    ///
    /// The first failure. A syntax error anywhere means that nothing has run; any other leaves the
    /// statements before it done and the failed one, as a whole, undone.
    pub async fn execute(&self, text: &str) -> Result<Vec<Answer>> {
        let mut started = Instant::now();
        let mut answers = Vec::new();
        for Parsed { statement, depth } in parse(text)? {
            let work = run(Arc::clone(&self.engine), statement, started);
            answers.push(
                self.on_workers(guard::polled_with_room(depth, work))
                    .await?,
            );
            started = Instant::now();
        }
        Ok(answers)
    }

    /// Runs the one statement of `text` and hands over its rows as they come.
    ///
    /// # Errors
    ///
    /// As [`execute`](Session::execute) for what fails before the first row, and for texts of more or
    /// fewer than one statement; later failures come through the stream.
    pub async fn stream(&self, text: &str) -> Result<AnswerStream> {
        let started = Instant::now();
        let mut statements = parse(text)?;
        let (statement, depth) = match (statements.pop(), statements.is_empty()) {
            (Some(Parsed { statement, depth }), true) => (statement, depth),
            _ => return Err(Error::invalid("expected exactly one statement")),
        };
        match statement {
            Statement::Sql(sql) if matches!(*sql, Sql::Query(_)) => {
                self.stream_query(*sql, depth, started).await
            }
            other => {
                let work = run(Arc::clone(&self.engine), other, started);
                let answer = self
                    .on_workers(guard::polled_with_room(depth, work))
                    .await?;
                Ok(finished(answer, &self.engine))
            }
        }
    }

    /// Runs what `plan` makes over the tables of one snapshot, in whatever language: on our own engine, since
    /// nothing else knows programs. What is shown comes as an answer with one column, `plan`.
    ///
    /// # Errors
    ///
    /// Those of `plan`; those of running, the memory limit among them.
    pub async fn program<E, F>(
        &self,
        plan: impl FnOnce(Arc<table::Tables>) -> F + Send + 'static,
    ) -> std::result::Result<Answer, E>
    where
        E: From<Error> + Send + 'static,
        F: Future<Output = std::result::Result<Program, E>> + Send + 'static,
    {
        let started = Instant::now();
        let engine = Arc::clone(&self.engine);
        let work = self.on_workers(async move {
            let mut scope = scope(&engine, started)?;
            let program = match plan(Arc::clone(&scope.tables)).await {
                Ok(program) => program,
                Err(e) => return Ok(Err(e)),
            };
            scope.clock.planned();
            scope.clock.ran_on = "algebra";
            match program {
                Program::Show(lines) => Ok(Ok(explain::shown(&scope, lines)?)),
                Program::Analyze(prepared, lines) => {
                    Ok(Ok(explain::program(&scope, &prepared, lines).await?))
                }
                Program::Run(prepared) => {
                    let (batches, _) = fused::batches(&scope, &prepared).await?;
                    let schema = Arc::clone(prepared.schema());
                    Ok(Ok(Answer::rows_of(schema, batches, &scope.clock)))
                }
            }
        });
        work.await?
    }

    /// Appends `rows`, whose columns stand in the table's order, to `table` in one transaction, and says how
    /// many there were.
    ///
    /// # Errors
    ///
    /// If there is no such table or a batch does not fit it, and the first error of `rows`; nothing is
    /// appended then.
    pub async fn append(
        &self,
        table: &str,
        rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin + 'static,
    ) -> Result<u64> {
        let (engine, name) = (Arc::clone(&self.engine), table.to_string());
        self.on_workers(async move {
            let writing = Writing::begin(&engine).await?;
            let scope = Scope::new(&engine, writing.tx.base(), Instant::now())?;
            let table = scope.table(&name)?;
            let (writing, count) = writing
                .append(&name, table.definition(), rows, engine.workers().width())
                .await?;
            writing.commit().await?;
            Ok(count)
        })
        .await
    }

    async fn stream_query(
        &self,
        query: Sql,
        depth: usize,
        started: Instant,
    ) -> Result<AnswerStream> {
        let (opened, open) = oneshot::channel();
        let (sender, mut rows) = mpsc::channel(QUEUE);
        let engine = Arc::clone(&self.engine);
        let stop = Stop::default();
        let task = stop::over(stop.clone(), async move {
            let failed = sender.clone();
            let work = deliver(engine, query, started, opened, sender);
            let work = AssertUnwindSafe(guard::polled_with_room(depth, work));
            if let Err(panic) = work.catch_unwind().await {
                let _ = failed.send(Err(panicked(panic.as_ref()))).await;
            }
        });
        let task = self.engine.workers().handle().spawn(task).abort_handle();
        let task = AbortOnDrop { task, stop };
        match open.await {
            Ok(Ok((schema, clock))) => Ok(AnswerStream::new(schema, rows, clock, Some(task))),
            Ok(Err(e)) => Err(e),
            // The task ended before it could say anything: a panic is in the queue, an abort is not.
            Err(_) => match rows.recv().await {
                Some(Err(e)) => Err(e),
                _ => Err(Error::Cancelled),
            },
        }
    }

    /// Runs `work` on the workers; a panic in it is an error, and dropping this future aborts it.
    async fn on_workers<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let stop = Stop::default();
        let task = stop::over(stop.clone(), work);
        let task = self.engine.workers().handle().spawn(task);
        let _abort = AbortOnDrop {
            task: task.abort_handle(),
            stop,
        };
        task.await.map_err(task_error)?
    }
}

/// Plans `query`, says through `opened` what its columns are, and sends its rows to `sender`.
async fn deliver(
    engine: Arc<Engine>,
    query: Sql,
    started: Instant,
    opened: oneshot::Sender<Result<(SchemaRef, Clock)>>,
    sender: mpsc::Sender<Result<RecordBatch>>,
) {
    let mut stream = match query::open(&engine, query, started).await {
        Ok((stream, clock)) => match opened.send(Ok((stream.schema(), clock))) {
            Ok(()) => stream,
            Err(_) => return,
        },
        Err(e) => {
            let _ = opened.send(Err(e));
            return;
        }
    };
    while let Some(batch) = stream.next().await {
        let failed = batch.is_err();
        if sender.send(batch.map_err(Error::from)).await.is_err() || failed {
            return;
        }
    }
}

/// Runs one statement.
async fn run(engine: Arc<Engine>, statement: Statement, started: Instant) -> Result<Answer> {
    match statement {
        Statement::Sql(sql) => run_sql(&engine, *sql, started).await,
        Statement::Explain {
            analyze,
            verbose,
            statement,
        } => explain::explain(&engine, *statement, analyze, verbose, started).await,
        Statement::CopyTo(copy) => copy::to(&engine, copy, started).await,
        Statement::CopyFrom(copy) => copy::from(&engine, copy, started).await,
    }
}

async fn run_sql(engine: &Arc<Engine>, statement: Sql, started: Instant) -> Result<Answer> {
    match statement {
        Sql::Query(_) => query::run(engine, statement, started).await,
        Sql::Insert(insert) => dml::insert(engine, insert, started).await,
        Sql::Delete(delete) => dml::delete(engine, delete, started).await,
        Sql::Update(update) => dml::update(engine, update, started).await,
        Sql::CreateTable(create) => ddl::create(engine, create, started).await,
        Sql::Truncate(truncate) => {
            let names = truncate
                .table_names
                .into_iter()
                .map(|target| target.name)
                .collect();
            ddl::truncate(engine, names, started).await
        }
        Sql::Drop {
            object_type: ObjectType::Table,
            if_exists,
            names,
            cascade: false,
            temporary: false,
            ..
        } => ddl::drop(engine, names, if_exists, started).await,
        Sql::ShowTables { .. } => information::show_tables(&scope(engine, started)?),
        Sql::ExplainTable {
            table_name: name, ..
        } => information::describe(&scope(engine, started)?, &table_name(&name)?),
        other => Err(Error::unsupported(refusal(&other))),
    }
}

fn scope(engine: &Arc<Engine>, started: Instant) -> Result<Scope> {
    Scope::new(engine, &engine.store.snapshot(), started)
}

/// Why a statement is not supported, and what to do instead.
fn refusal(statement: &Sql) -> String {
    match statement {
        Sql::StartTransaction { .. } | Sql::Commit { .. } | Sql::Rollback { .. } | Sql::Savepoint { .. } => {
            "transactions of several statements are not supported: each statement is a transaction of its own, done or undone as a whole".into()
        }
        Sql::CreateView { .. } => "views are not supported: use a `with` clause, or `create table ... as`".into(),
        Sql::CreateIndex(_) => "indexes are not supported, and not needed: scans skip what statistics rule out".into(),
        Sql::AlterTable(_) => "`alter table` is not supported: use `create table new as select ...` and drop the old one".into(),
        Sql::Merge(_) => "`merge` is not supported: use `update`, `delete` and `insert`".into(),
        Sql::Set(_) | Sql::ShowVariable { .. } => {
            "settings are not supported: options are given when the database is opened".into()
        }
        Sql::Drop { object_type: ObjectType::Table, .. } => "`drop table` takes no `cascade`: drop the tables that refer to it first".into(),
        Sql::Drop { object_type, .. } => format!("there is no {} to drop: only tables exist", object_type.to_string().to_lowercase()),
        Sql::ShowColumns { .. } => "`show columns` is not supported: use `describe table`".into(),
        other => {
            let text = other.to_string();
            let start: Vec<&str> = text.split_whitespace().take(2).collect();
            format!("`{}` is not supported", start.join(" ").to_lowercase())
        }
    }
}

/// An answer that is there already, as a stream.
fn finished(answer: Answer, clock_of: &Engine) -> AnswerStream {
    let (sender, rows) = mpsc::channel(answer.batches.len().max(1));
    for batch in answer.batches {
        let _ = sender.try_send(Ok(batch));
    }
    let clock = Clock::new(
        Instant::now(),
        Arc::new(memory::Traffic::new(clock_of.workers().nodes())),
    );
    let mut stream = AnswerStream::new(answer.schema, rows, clock, None);
    stream.changed = answer.changed;
    stream.finished = Some(answer.statistics);
    stream
}
