//! Statements that are prepared once and run with parameters, `copy` through a connection, and what else a server needs
//! of a session.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::DataFusionError;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt};
use sqlparser::ast::Statement as Sql;
use syntax::key_query::KeyQuery;
use syntax::key_text;
use syntax::missing;
use syntax::names::written;
use syntax::parameters::{Readied, readied};
use syntax::parse::{Parsed, Statement};
use syntax::transfer::{Transfer, What};
use syntax::verb::verb;
use table::Privileges;

use crate::bind::row_insert::RowInsert;
use crate::bind::row_values::Given;
use crate::error::{Error, Result};
use crate::run::generic_plans::{GenericPlan, GenericRun};
use crate::run::instance::Instance;
use crate::run::origins::Origins;
use crate::run::query::{self, Asked};
use crate::run::shared_plans;
use crate::run::stream::AnswerStream;
use crate::scan::rows::RowTable;
use crate::statements::described::{Described, Description, PreparedStatement, Reading};
use crate::statements::entered::{Entered, Shared};
use crate::statements::locking::is_locking;
use crate::statements::session::Session;
use crate::statements::{copy, describe, looked_up, references};

impl Session {
    /// Reads the one statement of `text`, whose parameters are `$1`, `$2`, ... Their types are those that are declared,
    /// or else what they are compared with or cast to, or else text. None if there is no statement.
    ///
    /// # Errors
    ///
    /// If `text` is several statements; those of planning the statement.
    pub fn prepare<'a>(
        &'a self,
        text: &'a str,
        declared: &'a [Option<DataType>],
    ) -> BoxFuture<'a, Result<Option<PreparedStatement>>> {
        async move {
            if let Some(asked) = key_text::of_text(text)
                && let Some(known) = self.described(text, asked, declared).await?
            {
                return Ok(Some(known));
            }
            let Some(readied) = readied(text)? else {
                return Ok(None);
            };
            let shape = readied.shape(&[])?;
            self.check_files(&shape)?;
            let verb = verb(&shape);
            let is_query = matches!(&shape, Statement::Sql(sql) if matches!(**sql, Sql::Query(_)));
            if readied.parameters() == 0 && !describe::returns(&shape) {
                let inserted = readied.known(RowInsert::of_sql);
                return Ok(Some(PreparedStatement {
                    readied: Reading::Done(Arc::new(readied)),
                    parameters: Vec::new(),
                    columns: None,
                    origins: Origins::default(),
                    verb,
                    is_query,
                    asked: None,
                    inserted,
                    kept: None,
                    generic: Arc::default(),
                }));
            }
            let (instance, open) = (Arc::clone(self.instance()), self.shared());
            let declared = declared.to_vec();
            let room = self.room_of(&readied);
            let described = Arc::clone(self.described_before());
            let said = Said {
                text: text.to_owned(),
                declared,
                verb,
                is_query,
            };
            let work = looked_at((instance, open), described, readied, said);
            self.with_room(room, work).await.map(Some)
        }
        .boxed()
    }

    /// A query for the row of one key as a prepared statement; none if it is to be planned to know its columns.
    async fn described(
        &self,
        text: &str,
        asked: KeyQuery,
        declared: &[Option<DataType>],
    ) -> Result<Option<PreparedStatement>> {
        let described = looked_up::described(self.instance(), self.shared(), &asked, declared);
        Ok(described
            .await?
            .map(|(parameters, columns, origins)| PreparedStatement {
                readied: Reading::Waits(text.into()),
                parameters,
                columns: Some(columns),
                origins,
                verb: "SELECT",
                is_query: true,
                asked: Some(asked),
                inserted: None,
                kept: None,
                generic: Arc::default(),
            }))
    }

    /// The names that the one statement of `text` reads rows by and that no table, view or array has: where data frames
    /// may stand. None of a text that is not one statement. They may be those of files and of functions, too.
    ///
    /// # Errors
    ///
    /// If the transaction in progress has failed; those of reading the catalog.
    pub fn missing<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Vec<String>>> {
        async move {
            let Ok(Some(readied)) = readied(text) else {
                return Ok(Vec::new());
            };
            let Ok(shape) = readied.shape(&[]) else {
                return Ok(Vec::new());
            };
            let (instance, open) = (Arc::clone(self.instance()), self.shared());
            let work = async move {
                let mut names = missing::names(&shape);
                if names.is_empty() {
                    return Ok(names);
                }
                let mut entered = Entered::new(instance, open).await?;
                let context = entered.scope().peek(Instant::now())?;
                let mut there = Vec::with_capacity(names.len());
                for name in &names {
                    there.push(context.has(name)?);
                }
                entered.succeed();
                let mut there = there.into_iter();
                names.retain(|_| there.next() == Some(false));
                Ok(names)
            };
            self.with_room(self.room_of(&readied), work).await
        }
        .boxed()
    }

    /// Runs a prepared statement with these texts for its parameters, and hands over its rows as they come.
    ///
    /// # Errors
    ///
    /// If a text is not of its parameter's type; those of [`stream`](Session::stream).
    pub fn run<'a>(
        &'a self,
        statement: &'a PreparedStatement,
        values: &'a [Option<&'a str>],
    ) -> BoxFuture<'a, Result<AnswerStream>> {
        async move {
            let started = Instant::now();
            if let Some((asked, values)) = statement.asked(values)
                && let Some(answer) = self.looked_up(asked, &values, started).await?
            {
                return Ok(self.finished(answer));
            }
            let types = &statement.parameters;
            if let Some(inserted) = &statement.inserted
                && values.len() == types.len()
                && let given = (Given {
                    types,
                    texts: values,
                    ..Given::NONE
                })
                && let Some(answer) = self.gathered(inserted, given, started).await?
            {
                return Ok(answer);
            }
            if !self.shared().always_plans()
                && let Some(run) = statement.by_generic_plan(values)
            {
                return self.stream_generic(run, started).await;
            }
            let bound = match &statement.readied {
                Reading::Done(readied) => readied.bind(types, values)?,
                Reading::Waits(text) => match readied(text)? {
                    Some(readied) => readied.bind(types, values)?,
                    None => return Err(Error::coded("42601", "expected a statement")),
                },
            };
            let rows = self.stream_parsed(bound, statement.kept.clone(), started);
            let rows = rows.await?;
            statement.generic.ran(started.elapsed());
            Ok(rows)
        }
        .boxed()
    }

    /// Runs a prepared query by its plan for any values, if it has one.
    async fn stream_generic(&self, run: GenericRun, started: Instant) -> Result<AnswerStream> {
        let depth = self.room_of(&run.readied);
        let asked = Asked::Prepared(Box::new(run));
        let mut answer = self.stream_query(asked, depth, started).await?;
        answer.verb = "SELECT";
        Ok(answer)
    }

    /// The transaction in progress has failed, if there is one: for whoever could not do something else in it. Waits
    /// for the statement that it runs.
    pub async fn fail(&self) {
        if let Some(open) = self.shared().lock().await.as_mut() {
            open.fail();
        }
    }

    /// The rows of a `copy ... to stdout`.
    ///
    /// # Errors
    ///
    /// Those of its query; if rows come from the client.
    pub fn copy_out<'a>(&'a self, transfer: &'a Transfer) -> BoxFuture<'a, Result<AnswerStream>> {
        async move {
            let What::Out {
                statement,
                rows,
                depth,
            } = &transfer.what
            else {
                return Err(no_direction());
            };
            let mut statement = statement.clone();
            if let Some(name) = rows.whole() {
                let mut entered = Entered::new(Arc::clone(self.instance()), self.shared()).await?;
                let context = entered.scope().peek(Instant::now())?;
                if let Some(brought) = copy::brought_of(&context, name)? {
                    *statement = Statement::Sql(Box::new(Sql::Query(brought)));
                }
                entered.succeed();
            }
            self.check_files(&statement)?;
            if transfer.names_written() {
                // Before anything is changed.
                let mut entered = Entered::new(Arc::clone(self.instance()), self.shared()).await?;
                let mut context = entered.scope().peek(Instant::now())?;
                let columns = describe::columns(&mut context, (*statement).clone()).await?;
                let fields = columns.iter().flat_map(|columns| columns.fields().iter());
                let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
                transfer.check_written(&names)?;
                entered.succeed();
            }
            let parsed = Parsed {
                statement: *statement,
                depth: *depth,
            };
            self.stream_parsed(parsed, None, Instant::now()).await
        }
        .boxed()
    }

    /// The columns that a `copy ... from stdin` fills.
    ///
    /// # Errors
    ///
    /// If there is no such table or column; if rows go to the client.
    pub async fn copy_columns(&self, transfer: &Transfer) -> Result<SchemaRef> {
        let What::In { table, columns } = transfer.what.clone() else {
            return Err(no_direction());
        };
        let named_none = columns.is_empty();
        let mut entered = Entered::new(Arc::clone(self.instance()), self.shared()).await?;
        let mut scope = entered.scope();
        let name = scope.own(&written(&table)?)?;
        let context = scope.peek(Instant::now())?;
        let table = context.table(&name)?;
        context.may(&name, Privileges::INSERT)?;
        let wanted = copy::wanted(table.definition(), &columns)?;
        let columns = Arc::new(table.definition().schema().project(&wanted)?);
        let read = columns.fields().iter();
        let read: Vec<&str> = read.map(|field| field.name().as_str()).collect();
        transfer.check_read(&read, (&name, named_none))?;
        entered.succeed();
        Ok(columns)
    }

    /// Appends `rows`, whose columns are in the order of the table's, to `table` in one transaction, or in that which
    /// is in progress. Returns how many there were.
    ///
    /// # Errors
    ///
    /// If there is no such table or a batch does not fit it, and the first error of `rows`. Nothing is appended then.
    pub async fn append(
        &self,
        table: &str,
        rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin + 'static,
    ) -> Result<u64> {
        let (instance, open) = (Arc::clone(self.instance()), self.shared());
        let (name, rows) = (table.to_string(), rows.boxed());
        self.with_room(0, append(instance, open, name, rows)).await
    }

    /// Appends the rows of a `copy ... from stdin`: batches of texts, a column for each that the statement fills. They
    /// are cast to the types of the table. Returns how many there were.
    ///
    /// # Errors
    ///
    /// Those of the statement, and the first error of `rows`. Nothing is appended then.
    pub fn copy_in<'a>(
        &'a self,
        transfer: &'a Transfer,
        rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin + 'static,
    ) -> BoxFuture<'a, Result<u64>> {
        let (instance, open) = (Arc::clone(self.instance()), self.shared());
        let work = copied(instance, open, transfer.clone(), rows.boxed());
        self.with_room(0, work).boxed()
    }
}

/// What is said of a statement that is prepared.
struct Said {
    text: String,
    declared: Vec<Option<DataType>>,
    verb: &'static str,
    is_query: bool,
}

/// Looks at a statement that has been read, to know its parameters and columns; not if it was looked at before and nothing
/// has changed since.
async fn looked_at(
    (instance, open): (Arc<Instance>, Shared),
    described: Arc<Described>,
    readied: Readied,
    said: Said,
) -> Result<PreparedStatement> {
    let mut entered = Entered::new(Arc::clone(&instance), open).await?;
    let mut context = entered.scope().peek(Instant::now())?;
    let key = context.plan_key();
    let known = key.as_ref();
    let known = known.and_then(|key| described.find(&said.text, &said.declared, key));
    if let Some(known) = known {
        entered.succeed();
        return Ok(known);
    }
    let parameters = describe::parameters(&context, &readied, &said.declared).await?;
    let mut origins = Origins::default();
    // A plan for any values would be run without the locks.
    let mut generic = GenericPlan::default();
    let (columns, kept) = match readied.shape(&parameters)? {
        Statement::Sql(query) if said.is_query => {
            if is_locking(&query) {
                generic = GenericPlan::never();
            }
            let (columns, planned) = describe::planned_query(&context, *query).await?;
            origins = context.origins(&planned.plan);
            // Values are constants of the text: with others it has another plan.
            let kept = if parameters.is_empty() && !shared_plans::has_parts(&planned.plan)? {
                instance
                    .plans
                    .keep(context.plan_key(), (planned, false), instance.workers())?
            } else {
                None
            };
            (Some(columns), kept)
        }
        shape => (describe::columns(&mut context, shape).await?, None),
    };
    entered.succeed();
    let prepared = PreparedStatement {
        asked: readied.key_query(),
        inserted: readied.known(RowInsert::of_sql),
        readied: Reading::Done(Arc::new(readied)),
        parameters,
        columns,
        origins,
        verb: said.verb,
        is_query: said.is_query,
        kept,
        generic: Arc::new(generic),
    };
    if let Some(key) = key {
        described.keep(Description {
            text: said.text,
            declared: said.declared,
            key,
            prepared: prepared.clone(),
        });
    }
    Ok(prepared)
}

fn no_direction() -> Error {
    Error::Defect {
        message: "a `copy` goes the other way".into(),
    }
}

/// Appends `rows` to the table `name` in one transaction and returns how many there were.
fn append(
    instance: Arc<Instance>,
    open: Shared,
    name: String,
    rows: BoxStream<'static, Result<RecordBatch>>,
) -> BoxFuture<'static, Result<u64>> {
    async move {
        let width = instance.workers().width();
        let mut entered = Entered::new(instance, open).await?;
        let mut scope = entered.scope();
        let name = scope.called(&name)?;
        let (writing, mut context) = scope.write("INSERT", &[&name], Instant::now()).await?;
        let table = context.table(&name)?;
        let appended = references::append(&mut context, writing, &table, rows, width);
        let (writing, count) = appended.await?;
        scope.keep(writing).await?;
        entered.succeed();
        Ok(count)
    }
    .boxed()
}

/// Appends `rows` as the statement says.
fn copied(
    instance: Arc<Instance>,
    open: Shared,
    transfer: Transfer,
    rows: BoxStream<'static, Result<RecordBatch>>,
) -> BoxFuture<'static, Result<u64>> {
    async move {
        let What::In { table, columns } = &transfer.what else {
            return Err(no_direction());
        };
        let width = instance.workers().width();
        let mut entered = Entered::new(instance, open).await?;
        let mut scope = entered.scope();
        let name = scope.own(&written(table)?)?;
        let (writing, mut context) = scope.write("COPY FROM", &[&name], Instant::now()).await?;
        let table = context.table(&name)?;
        let definition = table.definition();
        let columns = copy::wanted(definition, columns)?;
        let defaults = context.defaults_of(definition).await?;
        let names = columns.iter().map(|at| &definition.columns[*at].name);
        let fields = names.map(|name| Field::new(name, DataType::Utf8View, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let rows = RowTable::once(schema, rows.map_err(DataFusionError::from).boxed());
        let plan = copy::projection(definition, &columns, &defaults, Arc::new(rows))?;
        let rows = query::rows(&mut context, &plan).await?;
        let rows = rows.map_err(Error::from);
        let (writing, count) =
            references::append(&mut context, writing, &table, rows, width).await?;
        scope.keep(writing).await?;
        entered.succeed();
        Ok(count)
    }
    .boxed()
}
