//! Sessions: statements in, answers out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use catalog::rights::denied;
use catalog::settings::{Backend, OpenCursor, Setting};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use sqlparser::ast::Statement as Sql;
use syntax::depth;
use syntax::files;
use syntax::key_query::{KeyQuery, KeyValue};
use syntax::key_text;
use syntax::parameters::Readied;
use syntax::parse::{Parsed, Statement, parse};
use syntax::schemas;
use syntax::verb::verb;
use tokio::sync::{mpsc, oneshot};

use crate::bind::definition;
use crate::bind::row_insert::RowInsert;
use crate::bind::row_values::Given;
use crate::error::{Error, Result};
use crate::resources::stop;
use crate::run::answer::Answer;
use crate::run::clock::Clock;
use crate::run::context::StatementContext;
use crate::run::frames::Frames;
use crate::run::instance::Instance;
use crate::run::kept_plans::Slot;
use crate::run::native;
use crate::run::origins::Origins;
use crate::run::query::{self, Asked, Opened};
use crate::run::stream::{AbortOnDrop, AnswerStream};
use crate::statements::described::Described;
use crate::statements::entered::{Entered, Shared, within};
use crate::statements::prepare::Names;
use crate::statements::recent::Recent;
use crate::statements::shapes::Shapes;
use crate::statements::transaction::clock;
use crate::statements::{explain, locking, looked_up};

impl Instance {
    /// A new session.
    pub fn session(self: &Arc<Self>) -> Session {
        Session::new(Arc::clone(self))
    }

    /// The definition that `text` declares for a table `name`. `text` is a `create table` statement, whose own name
    /// does not matter, or only its list of columns and keys. Nothing is created.
    ///
    /// # Errors
    ///
    /// Those of `create table`, except that a table of that name may exist.
    pub fn definition(self: &Arc<Self>, name: &str, text: &str) -> Result<table::Definition> {
        let context = StatementContext::new(self, &self.store.snapshot(), Instant::now())?;
        definition::of_text(name, text, &context.types(), &context.tables)
    }
}

/// What a statement in another language than SQL becomes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Program {
    /// A program to run on Atoll's own engine.
    Run(engine::Prepared),
    /// A program to run, and lines to show before what it did: `explain analyze`.
    Analyze(engine::Prepared, Vec<String>),
    /// Lines to show; nothing runs.
    Show(Vec<String>),
}

/// Batches that wait for a slow reader of a stream.
const QUEUE: usize = 2;

/// Runs statements. Each is a transaction of its own, unless `begin` has started one of several statements: that lasts
/// until `commit` or `rollback`, or until the last clone of the session is dropped, which rolls it back.
///
/// Futures of this type may be awaited on any runtime: the workers of the instance do the work.
/// Dropping a future cancels its statement. They are boxed so that what runs statements is compiled here, once, and not
/// again in each crate and test that awaits one (90 seconds each for an unoptimised build).
#[derive(Clone, Debug)]
pub struct Session {
    instance: Arc<Instance>,
    open: Shared,
    prepared: Names,
    described: Arc<Described>,
    recent: Arc<Recent>,
    shapes: Arc<Shapes>,
    /// Whether its statements may name files.
    files: bool,
}

/// Whether a session has a transaction of several statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionStatus {
    /// None: each statement is a transaction of its own.
    Idle,
    /// One is in progress.
    Open,
    /// A statement of it has failed, so it can only be rolled back, as a whole or to a savepoint.
    Failed,
}

impl Session {
    pub(crate) fn new(instance: Arc<Instance>) -> Session {
        Session {
            open: Shared::new(&instance),
            instance,
            prepared: Names::default(),
            described: Arc::default(),
            recent: Arc::default(),
            shapes: Arc::default(),
            files: true,
        }
    }

    /// The session for somebody who may not read and write the files of this machine: statements that name some are
    /// refused. What views name is read.
    pub fn without_files(mut self) -> Session {
        self.files = false;
        self
    }

    /// The session with `frames`, which its statements read as tables; a clone of it does not get or lose any by that. No
    /// statement writes to one, and views do not see them.
    ///
    /// Statements fail if a frame has the name of a table, a view or an array.
    pub fn with_frames(mut self, frames: Frames) -> Session {
        self.open = self.open.with_frames(frames);
        self
    }

    /// The session of a user of this name, which `current_user`, `session_user` and `current_role` return.
    pub fn of_user(mut self, name: &str) -> Session {
        self.open = self.open.of_user(name.into());
        self
    }

    /// What the settings of the session are that whoever serves it keeps: `pg_settings` and `current_setting` tell them.
    pub fn show_settings(&self, settings: Vec<Setting>) {
        self.open.settings().set(settings);
    }

    /// Which cursors there are of the session, that whoever serves it keeps: `pg_cursors` tells them.
    pub fn show_cursors(&self, cursors: Vec<OpenCursor>) {
        self.open.settings().set_cursors(cursors);
    }

    /// An account in the memory that statements of the session reserve from, for rows that whoever serves it keeps.
    ///
    /// # Errors
    ///
    /// Those of reading the catalog.
    pub fn account(&self) -> Result<memory::Account> {
        let snapshot = self.instance.store.snapshot();
        let context = StatementContext::new(&self.instance, &snapshot, Instant::now())?;
        let context = context.within_limits(self.open.user());
        Ok(memory::Account::new(Arc::clone(context.budget())))
    }

    /// The session that has this number among those of a server: `pg_backend_pid` returns it, and `pg_cancel_backend` and
    /// `pg_terminate_backend` stop others.
    pub fn of_backend(self, backend: Backend) -> Session {
        self.open.settings().set_backend(backend);
        self
    }

    /// The session that looks names up in these schemas, a list as `set search_path` takes it, until it is told otherwise;
    /// `reset search_path` comes back to them.
    ///
    /// # Errors
    ///
    /// If `path` is no list of names.
    pub fn with_search_path(self, path: &str) -> Result<Session> {
        self.open.path().begin(schemas::setting(path)?);
        Ok(self)
    }

    /// Refuses a statement that names files, if this session may not read and write them.
    pub(super) fn check_files(&self, statement: &Statement) -> Result<()> {
        if self.files {
            return Ok(());
        }
        files::refuse(statement)
    }

    /// Whether a transaction of several statements is in progress. While one of its statements runs it is open.
    pub fn transaction(&self) -> TransactionStatus {
        match self.open.try_lock() {
            None => TransactionStatus::Open,
            Some(open) => match &*open {
                None => TransactionStatus::Idle,
                Some(open) if open.is_failed() => TransactionStatus::Failed,
                Some(_) => TransactionStatus::Open,
            },
        }
    }

    /// What the transaction in progress is, or the next one is that is asked for nothing else, as settings that `show` shows:
    /// `transaction_isolation`, `transaction_read_only` and `transaction_deferrable`, each with its value. While a
    /// statement of it runs it is that of the next.
    pub fn transaction_modes(&self) -> [(&'static str, &'static str); 3] {
        let open = self.open.try_lock();
        let open = open.as_ref().and_then(|open| open.as_ref());
        let modes = open.map_or_else(|| self.open.settings().modes(), |open| open.modes());
        let switch = |on: bool| if on { "on" } else { "off" };
        [
            ("transaction_isolation", modes.isolation.name()),
            ("transaction_read_only", switch(modes.read_only)),
            ("transaction_deferrable", switch(modes.deferrable)),
        ]
    }

    /// The statements of `text`. One that cannot be read fails the transaction in progress, as any other that fails.
    pub(super) async fn parsed(&self, text: &str) -> Result<Vec<Parsed>> {
        let statements = parse(text).and_then(|statements| {
            let mut all = statements.iter();
            all.try_for_each(|parsed| self.check_files(&parsed.statement))?;
            Ok(statements)
        });
        if statements.is_err()
            && let Some(open) = self.open.lock().await.as_mut()
        {
            open.fail();
        }
        statements
    }

    /// How deep the tree of a statement may become that has this depth itself: views come to it, or what it executes.
    pub(super) fn room(&self, depth: usize, executes: bool) -> usize {
        let views = || table::has_views(&self.instance.store.snapshot());
        if views() || executes || self.transaction() != TransactionStatus::Idle {
            depth.max(depth::ROOMY)
        } else {
            depth
        }
    }

    /// Runs the statements of `text`, which semicolons separate, one after the other.
    ///
    /// # Errors
    ///
    /// The first failure. After a syntax error anywhere in the text nothing has run. After any other error the
    /// statements before the failed one are done, and the failed one is undone as a whole. Within a transaction of
    /// several statements, an error of either kind leaves only `rollback` to do.
    pub fn execute<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Vec<Answer>>> {
        async move {
            let mut started = Instant::now();
            if let Some(asked) = key_text::of_text(text)
                && let Some(answer) = self.looked_up(&asked, &[], started).await?
            {
                return Ok(vec![answer]);
            }
            let mut answers = Vec::new();
            for Parsed { statement, depth } in self.parsed(text).await? {
                if let Some(asked) = KeyQuery::of_statement(&statement)
                    && let Some(answer) = self.looked_up(&asked, &[], started).await?
                {
                    answers.push(answer);
                    started = Instant::now();
                    continue;
                }
                let (open, names) = (self.open.clone(), self.prepared.clone());
                let room = self.room(depth, is_execute(&statement));
                let work = within(Arc::clone(&self.instance), open, names, statement, started);
                answers.push(self.on_workers(depth::polled_with_room(room, work)).await?);
                started = Instant::now();
            }
            Ok(answers)
        }
        .boxed()
    }

    /// Runs the one statement of `text` and hands over its rows as they come.
    ///
    /// # Errors
    ///
    /// Those of [`execute`](Session::execute) before the first row, and if `text` is not exactly one statement. Later
    /// failures come through the stream.
    pub fn stream<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<AnswerStream>> {
        self.stream_one(text).boxed()
    }

    async fn stream_one(&self, text: &str) -> Result<AnswerStream> {
        let started = Instant::now();
        if let Some(asked) = key_text::of_text(text)
            && let Some(answer) = self.looked_up(&asked, &[], started).await?
        {
            return Ok(self.finished(answer));
        }
        // A session that may not name files shares its texts with one that may.
        if self.files
            && let Some(again) = self.recent.find(text)
        {
            return self.stream_again(again, started).await;
        }
        if self.files
            && let Some(answer) = self.stream_shape(text, started).await?
        {
            return Ok(answer);
        }
        let mut statements = self.parsed(text).await?;
        match (statements.pop(), statements.is_empty()) {
            (Some(parsed), true) => match self.recent.runs(text, &parsed) {
                Some(again) => self.stream_again(again, started).await,
                None => self.stream_parsed(parsed, None, started).await,
            },
            _ => Err(Error::coded("42601", "expected exactly one statement")),
        }
    }

    /// Runs one statement that was read, by the plan that was kept of it if there is one.
    pub(super) async fn stream_parsed(
        &self,
        Parsed { statement, depth }: Parsed,
        kept: Option<Arc<Slot>>,
        started: Instant,
    ) -> Result<AnswerStream> {
        let verb = verb(&statement);
        let executes = is_execute(&statement);
        let statement = self.prepared.query_of(statement);
        if let Some(asked) = KeyQuery::of_statement(&statement)
            && let Some(answer) = self.looked_up(&asked, &[], started).await?
        {
            return Ok(self.finished(answer));
        }
        if let Some(inserted) = RowInsert::of_statement(&statement)
            && let Some(answer) = self.gathered(&inserted, Given::NONE, started).await?
        {
            return Ok(answer);
        }
        let mut answer = match statement {
            Statement::Sql(sql) if matches!(*sql, Sql::Query(_)) => {
                let depth = self.room(depth, executes);
                let asked = Asked::Written(Arc::from(sql), kept);
                self.stream_query(asked, depth, started).await?
            }
            other => {
                let (open, names) = (self.open.clone(), self.prepared.clone());
                let room = self.room(depth, is_execute(&other));
                let work = within(Arc::clone(&self.instance), open, names, other, started);
                let answer = self.on_workers(depth::polled_with_room(room, work)).await?;
                self.finished(answer)
            }
        };
        answer.verb = verb;
        Ok(answer)
    }

    /// The answer of a query for the row of one key, with these parameters; none if it is to be planned. It is found
    /// where this is awaited, and not on a worker: that costs less than to hand it over.
    pub(super) async fn looked_up(
        &self,
        asked: &KeyQuery,
        parameters: &[KeyValue],
        started: Instant,
    ) -> Result<Option<Answer>> {
        let open = self.open.clone();
        looked_up::within(&self.instance, open, (asked, parameters), started).await
    }

    /// A handle of this session whose queries are all planned, those for the row of one key, too: for tests that compare the
    /// two.
    #[doc(hidden)]
    pub fn always_planning(mut self) -> Session {
        self.open = self.open.planning();
        self
    }

    pub(super) fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// The statements that it has prepared last.
    pub(super) fn described_before(&self) -> &Arc<Described> {
        &self.described
    }

    /// The shapes that it ran last.
    pub(super) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// The transaction of this session.
    pub(super) fn shared(&self) -> Shared {
        self.open.clone()
    }

    /// How deep the tree of a statement may become.
    pub(super) fn room_of(&self, readied: &Readied) -> usize {
        match readied {
            Readied::Whole(parsed) => self.room(parsed.depth, is_execute(&parsed.statement)),
            Readied::Waiting(_, depth) => self.room(*depth, false),
        }
    }

    /// Runs `work` on the workers, with room for a tree so deep.
    pub(super) async fn with_room<T: Send + 'static>(
        &self,
        room: usize,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.on_workers(depth::polled_with_room(room, work)).await
    }

    /// Runs the program that `plan` makes over the tables of one snapshot, on Atoll's own engine, whichever executor
    /// the options name. Lines to show come as an answer with one column, `plan`.
    ///
    /// # Errors
    ///
    /// Those of `plan` and of running, the memory limit among them.
    pub async fn program<E, F>(
        &self,
        plan: impl FnOnce(Arc<table::Tables>) -> F + Send + 'static,
    ) -> std::result::Result<Answer, E>
    where
        E: From<Error> + Send + 'static,
        F: Future<Output = std::result::Result<Program, E>> + Send + 'static,
    {
        let started = Instant::now();
        let (instance, open) = (Arc::clone(&self.instance), self.open.clone());
        let work = self.on_workers(async move {
            let mut entered = Entered::new(instance, open).await?;
            let mut context = entered.scope().read(started).await?;
            if !context.rights.is_all() {
                let message =
                    "permission denied: only superusers run programs of other languages than SQL";
                return Ok(Err(E::from(denied(message))));
            }
            let program = match plan(Arc::clone(&context.tables)).await {
                Ok(program) => program,
                Err(e) => return Ok(Err(e)),
            };
            context.clock.planned();
            context.clock.ran_on = "algebra";
            let answer = perform(context, program).await?;
            entered.succeed();
            Ok(Ok(answer))
        });
        work.await?
    }

    pub(super) async fn stream_query(
        &self,
        asked: Asked,
        depth: usize,
        started: Instant,
    ) -> Result<AnswerStream> {
        let (opened, open) = oneshot::channel();
        let (sender, mut rows) = mpsc::channel(QUEUE);
        let (instance, open_transaction) = (Arc::clone(&self.instance), self.open.clone());
        let above = stop::present();
        // A statement before this one has committed.
        above.unseal();
        above.check()?;
        let stop = above.below();
        let task = stop::over(stop.clone(), async move {
            let failed = sender.clone();
            let work = deliver(instance, open_transaction, asked, (started, opened), sender);
            let work = AssertUnwindSafe(depth::polled_with_room(depth, work));
            if let Err(panic) = work.catch_unwind().await {
                let _ = failed.send(Err(Error::of_panic(panic.as_ref()))).await;
            }
        });
        let task = self.instance.workers().handle().spawn(task).abort_handle();
        let task = AbortOnDrop { task, stop };
        match open.await {
            Ok(Ok((schema, clock, origins))) => {
                let mut stream = AnswerStream::new(schema, rows, clock, Some(task));
                stream.origins = origins;
                Ok(stream)
            }
            Ok(Err(e)) => Err(e),
            // The task ended before it could say anything: a panic is in the queue, an abort is not.
            Err(_) => match rows.recv().await {
                Some(Err(e)) => Err(e),
                _ => Err(Error::Cancelled),
            },
        }
    }

    /// A complete answer as a stream.
    pub(super) fn finished(&self, answer: Answer) -> AnswerStream {
        let (sender, rows) = mpsc::channel(answer.batches.len().max(1));
        for batch in answer.batches {
            let _ = sender.try_send(Ok(batch));
        }
        let clock = clock(&self.instance, Instant::now());
        let mut stream = AnswerStream::new(answer.schema, rows, clock, None);
        stream.changed = answer.changed;
        stream.notices = answer.notices;
        stream.origins = answer.origins;
        stream.finished = Some(answer.statistics);
        stream.held = answer.held;
        stream
    }

    /// Runs `work` on the workers; a panic in it is an error, and dropping this future aborts it.
    async fn on_workers<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.instance.on_workers(work).await
    }
}

/// Whether another statement comes in the place of this one.
fn is_execute(statement: &Statement) -> bool {
    matches!(statement, Statement::Execute { .. })
}

/// Runs a program of another language.
fn perform(context: StatementContext, program: Program) -> BoxFuture<'static, Result<Answer>> {
    async move {
        match program {
            Program::Show(lines) => explain::shown(&context, lines),
            Program::Analyze(prepared, lines) => explain::program(&context, &prepared, lines).await,
            Program::Run(prepared) => {
                let (batches, _) = native::batches(&context, &prepared).await?;
                let schema = Arc::clone(prepared.schema());
                Ok(Answer::rows_of(schema, batches, &context.clock))
            }
        }
    }
    .boxed()
}

/// What is known of a query once it has begun: its columns, its clock, and which columns are columns of a table.
type Begun = (SchemaRef, Clock, Origins);

/// Plans a query, sends what is known of it through `opened`, and then its rows to `sender`.
async fn deliver(
    instance: Arc<Instance>,
    open: Shared,
    asked: Asked,
    (started, opened): (Instant, oneshot::Sender<Result<Begun>>),
    sender: mpsc::Sender<Result<RecordBatch>>,
) {
    let begun = begin(Arc::clone(&instance), open.clone(), asked, started).await;
    let (mut stream, number) = match begun {
        Ok((query, number)) => {
            let known = (query.rows.schema(), query.clock, query.origins);
            match opened.send(Ok(known)) {
                Ok(()) => (query.rows, number),
                Err(_) => return,
            }
        }
        Err(e) => {
            let _ = opened.send(Err(e));
            return;
        }
    };
    while let Some(batch) = stream.next().await {
        let failed = batch.is_err();
        if failed
            && let Some(open) = open.lock().await.as_mut()
            && Some(open.number()) == number
        {
            open.fail();
        }
        if sender.send(batch.map_err(Error::from)).await.is_err() || failed {
            return;
        }
    }
}

/// Runs a query until its first rows come: it, and the number of the transaction that it belongs to.
async fn begin(
    instance: Arc<Instance>,
    open: Shared,
    mut asked: Asked,
    started: Instant,
) -> Result<(Opened, Option<u64>)> {
    let mut entered = Entered::new(instance, open).await?;
    let context = locking::asked(&mut entered.scope(), &mut asked, started).await?;
    let opened = query::open(context, asked).await?;
    let number = entered.succeed();
    Ok((opened, number))
}
