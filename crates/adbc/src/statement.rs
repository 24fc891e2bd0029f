//! Statements: queries, commands and bulk ingest.

use std::sync::Arc;

use adbc_core::error::{Error, Result, Status};
use adbc_core::options::{OptionStatement, OptionValue};
use adbc_core::{CancelHandle, Optionable, PartitionedResult};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use atoll::Session;

use crate::bound::{self, Bound, Prepared};
use crate::cancel::{Canceller, Execution};
use crate::error::{missing, state};
use crate::guard::caught;
use crate::ingest::Target;
use crate::numbered::{Numbered, numbered};
use crate::option::{as_double, as_int, not_set, truth};
use crate::parameter::declared;
use crate::rows::{Held, Reader, Source};
use crate::store::Store;
use crate::stream;
use crate::transaction::Transactions;

/// A statement of a connection.
pub struct Statement {
    session: Session,
    transactions: Arc<Transactions>,
    canceller: Canceller,
    query: Option<Query>,
    target: Target,
    bound: Option<Bound>,
    /// Dropped last: the store stays open.
    store: Arc<Store>,
}

/// The text of a statement, and what was made of it.
struct Query {
    /// As it was given.
    text: String,
    numbered: Numbered,
    prepared: Option<Prepared>,
}

/// What a statement has given.
enum Outcome {
    Rows(Reader, Option<u64>),
    /// No rows; how many were written, if that is known.
    Done(Option<u64>),
}

impl Statement {
    pub(crate) fn new(
        session: Session,
        transactions: Arc<Transactions>,
        store: Arc<Store>,
    ) -> Statement {
        Statement {
            canceller: Canceller::new(&session),
            session,
            transactions,
            query: None,
            target: Target::default(),
            bound: None,
            store,
        }
    }

    fn query(&self) -> Result<&Query> {
        self.query
            .as_ref()
            .ok_or_else(|| state("the statement has no query: set one first"))
    }

    /// Runs the statement until its first rows come.
    fn run(&mut self) -> Result<Outcome> {
        caught(|| {
            self.store.database()?;
            let execution = self.canceller.begin();
            let transactions = Arc::clone(&self.transactions);
            let _turn = transactions.turn();
            let outcome = self.run_in_turn(&execution);
            if !matches!(outcome, Ok(Outcome::Rows(..))) {
                execution.end();
            }
            outcome
        })
    }

    fn run_in_turn(&mut self, execution: &Arc<Execution>) -> Result<Outcome> {
        let bound = self.bound.take();
        if self.target.table.is_some() {
            self.transactions.enter()?;
            let ingest = || self.target.run(&self.session, execution, bound);
            return self.transactions.whole(ingest).map(Outcome::Done);
        }
        let several = sql::script::split(&self.query()?.text);
        if let Some(bound) = &bound {
            // Before the transaction begins: one that begins with a statement that writes has the newest snapshot, and one
            // that has read before it may come too late.
            self.prepare_for(declared(&bound.schema())?, execution)?;
        }
        self.transactions.enter()?;
        match bound {
            Some(bound) => self.run_bound(bound, execution),
            None if several.len() > 1 => self.run_script(&several, execution),
            None => self.run_one(execution),
        }
    }

    /// Runs one statement without parameters.
    fn run_one(&self, execution: &Arc<Execution>) -> Result<Outcome> {
        let query = self.query()?;
        let count = query.numbered.parameters;
        if count > 0 {
            return Err(state(format!(
                "the statement has {count} parameters: bind their values first"
            )));
        }
        if sql::script::split(&query.text).is_empty() {
            return Ok(Outcome::Done(None));
        }
        let rows = execution.run(|| {
            let rows = self.session.query(&query.numbered.text);
            rows.map_err(|error| query.numbered.placed(error))
        })?;
        self.outcome(rows, execution)
    }

    /// Runs several statements, each a transaction of its own unless one is in progress. What the last returns is returned.
    fn run_script(
        &self,
        statements: &[sql::script::Statement],
        execution: &Arc<Execution>,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::Done(None);
        for (at, statement) in statements.iter().enumerate() {
            let placed = |error| match error {
                atoll::Error::Sql(error) => atoll::Error::Sql(statement.place(error)),
                error => error,
            };
            let mut rows = execution.run(|| self.session.query(&statement.text).map_err(placed))?;
            if at + 1 == statements.len() {
                outcome = self.outcome(rows, execution)?;
                break;
            }
            while execution.run(|| rows.next().transpose())?.is_some() {}
        }
        Ok(outcome)
    }

    /// Runs the statement with each row of its parameters.
    fn run_bound(&self, bound: Bound, execution: &Arc<Execution>) -> Result<Outcome> {
        let query = self.query()?;
        let Some(statement) = query.prepared.as_ref().and_then(|it| it.statement.as_ref()) else {
            return Ok(Outcome::Done(None));
        };
        bound::check_width(statement, bound.schema().fields().len())?;
        let (session, text) = (&self.session, &query.numbered);
        if statement.columns().is_some() {
            let opened = bound::queried(session, execution, statement, text, bound)?;
            let Some((schema, source)) = opened else {
                let none: Source = Box::new(|| Ok(None));
                let columns = statement.columns().map(Arc::clone);
                let schema = columns.unwrap_or_else(|| Arc::new(Schema::empty()));
                return self.reader(&schema, none, execution, None);
            };
            return self.reader(&schema, source, execution, None);
        }
        let work = || match bound::at_once(session, execution, text, bound)? {
            Ok(changed) => Ok(changed),
            Err(bound) => bound::each(session, execution, statement, text, bound),
        };
        self.transactions.whole(work).map(Outcome::Done)
    }

    fn outcome(&self, mut rows: atoll::Rows, execution: &Arc<Execution>) -> Result<Outcome> {
        let (schema, changed) = (Arc::clone(rows.schema()), rows.changed());
        if schema.fields().is_empty() {
            return Ok(Outcome::Done(changed));
        }
        let here = Arc::clone(execution);
        let source: Source = Box::new(move || here.run(|| rows.next().transpose()));
        self.reader(&schema, source, execution, changed)
    }

    fn reader(
        &self,
        schema: &SchemaRef,
        source: Source,
        execution: &Arc<Execution>,
        changed: Option<u64>,
    ) -> Result<Outcome> {
        let (execution, store) = (Arc::clone(execution), Arc::clone(&self.store));
        let reader = Reader::new(schema, source, execution, store)?;
        Ok(Outcome::Rows(reader, changed))
    }

    /// Prepares the statement for parameters of these types, unless it is.
    fn prepare_for(&mut self, types: Vec<Option<DataType>>, execution: &Execution) -> Result<()> {
        let session = self.session.clone();
        let query = self
            .query
            .as_mut()
            .ok_or_else(|| state("the statement has no query: set one first"))?;
        if query.prepared.as_ref().is_some_and(|it| it.types == types) {
            return Ok(());
        }
        let statement = execution.run(|| {
            let prepared = session.prepare(&query.numbered.text, &types);
            prepared.map_err(|error| query.numbered.placed(error))
        })?;
        query.prepared = Some(Prepared { types, statement });
        Ok(())
    }

    /// The columns that the statement returns with what is bound; none if it returns no rows.
    fn columns(&mut self) -> Result<Option<SchemaRef>> {
        let types = match &self.bound {
            Some(bound) => declared(&bound.schema())?,
            None => Vec::new(),
        };
        self.store.database()?;
        let transactions = Arc::clone(&self.transactions);
        let _turn = transactions.turn();
        let execution = self.canceller.begin();
        let prepared = self.prepare_for(types, &execution);
        execution.end();
        prepared?;
        let prepared = self.query()?.prepared.as_ref();
        let statement = prepared.and_then(|it| it.statement.as_ref());
        Ok(statement.and_then(|it| it.columns()).cloned())
    }

    /// The types of the statement's parameters, as far as it says what they are.
    fn parameters(&self) -> Result<Vec<DataType>> {
        let query = self.query()?;
        let count = query.numbered.parameters;
        if count == 0 {
            return Ok(Vec::new());
        }
        self.store.database()?;
        let _turn = self.transactions.turn();
        let execution = self.canceller.begin();
        let text = &query.numbered.text;
        let asked = self
            .transactions
            .tried(|| execution.run(|| self.session.prepare(text, &[])));
        execution.end();
        match asked {
            Ok(statement) => Ok(statement.map_or(Vec::new(), |it| it.parameters().to_vec())),
            // What a parameter is taken for does not do; which type does, is not known before a value is there.
            Err(error) if is_of_types(&error) => Ok(vec![DataType::Null; count]),
            Err(error) => Err(error),
        }
    }

    fn option(&self, key: &OptionStatement) -> Result<String> {
        match key {
            OptionStatement::Incremental => Ok("false".to_owned()),
            key => self
                .target
                .get(key)
                .ok_or_else(|| not_set("statements", key.as_ref())),
        }
    }
}

/// Whether an error is about the types of values, and not about the text.
fn is_of_types(error: &Error) -> bool {
    let code = |code: &[u8; 5]| code.map(|byte| byte as std::ffi::c_char);
    // No function or operator of these types; or whatever else of arguments is no mistake of the text.
    error.sqlstate == code(b"42883")
        || error.status == Status::InvalidArguments && error.sqlstate != code(b"42601")
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.query.as_ref().map(|query| &query.text);
        f.debug_struct("Statement").field("query", &text).finish()
    }
}

impl Optionable for Statement {
    type Option = OptionStatement;

    fn set_option(&mut self, key: OptionStatement, value: OptionValue) -> Result<()> {
        match &key {
            OptionStatement::Incremental if truth(key.as_ref(), &value)? => Err(missing(
                "a result is one stream, not partitions that come one after the other",
            )),
            OptionStatement::Incremental => Ok(()),
            OptionStatement::TargetTable => {
                self.target.set(&key, &value)?;
                // A statement is a query or an ingest.
                self.query = None;
                Ok(())
            }
            key => self.target.set(key, &value),
        }
    }

    fn get_option_string(&self, key: OptionStatement) -> Result<String> {
        caught(|| self.option(&key))
    }

    fn get_option_bytes(&self, key: OptionStatement) -> Result<Vec<u8>> {
        Ok(self.get_option_string(key)?.into_bytes())
    }

    fn get_option_int(&self, key: OptionStatement) -> Result<i64> {
        let name = key.as_ref().to_owned();
        as_int(&name, &self.get_option_string(key)?)
    }

    fn get_option_double(&self, key: OptionStatement) -> Result<f64> {
        let name = key.as_ref().to_owned();
        if matches!(
            key,
            OptionStatement::Progress | OptionStatement::MaxProgress
        ) {
            return Err(missing(format!(
                "{name}: the progress of a statement is not known"
            )));
        }
        as_double(&name, &self.get_option_string(key)?)
    }
}

impl adbc_core::Statement for Statement {
    fn bind(&mut self, batch: RecordBatch) -> Result<()> {
        self.bind_stream(Box::new(Held::one(batch)))
    }

    fn bind_stream(&mut self, reader: Box<dyn RecordBatchReader + Send>) -> Result<()> {
        self.bound = Some(reader);
        Ok(())
    }

    fn execute(&mut self) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        Ok(match self.run()? {
            Outcome::Rows(reader, changed) => {
                stream::announce(changed, Some(reader.failure()));
                Box::new(reader)
            }
            Outcome::Done(changed) => {
                stream::announce(changed, None);
                Box::new(Held::nothing())
            }
        })
    }

    fn execute_update(&mut self) -> Result<Option<i64>> {
        let changed = match self.run()? {
            Outcome::Rows(mut reader, changed) => {
                for batch in reader.by_ref() {
                    if batch.is_err() {
                        let failure = reader.failure().lock().take();
                        let unknown = || state("the statement has failed");
                        return Err(failure.unwrap_or_else(unknown));
                    }
                }
                changed
            }
            Outcome::Done(changed) => changed,
        };
        Ok(changed.and_then(|rows| i64::try_from(rows).ok()))
    }

    fn execute_schema(&mut self) -> Result<Schema> {
        caught(|| {
            if self.target.table.is_some() {
                return Err(state("an ingest returns no rows"));
            }
            Ok(match self.columns()? {
                Some(columns) => atoll::owned_schema(&columns).as_ref().clone(),
                None => Schema::empty(),
            })
        })
    }

    fn execute_partitions(&mut self) -> Result<PartitionedResult> {
        Err(missing(
            "a result is one stream, not partitions: execute the query",
        ))
    }

    fn get_parameter_schema(&self) -> Result<Schema> {
        caught(|| {
            let types = self.parameters()?;
            let fields = types.into_iter().enumerate();
            let fields =
                fields.map(|(at, data_type)| Field::new(format!("${}", at + 1), data_type, true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            Ok(atoll::owned_schema(&schema).as_ref().clone())
        })
    }

    /// Checks that there is a query. It is read when it is asked for its columns or parameters, or runs: the types of its
    /// parameters are those of the values that are bound, and it is planned with each of them anyway.
    fn prepare(&mut self) -> Result<()> {
        if self.target.table.is_some() {
            return Ok(());
        }
        self.query().map(drop)
    }

    fn set_sql_query(&mut self, query: impl AsRef<str>) -> Result<()> {
        let text = query.as_ref().to_owned();
        let numbered = numbered(&text)?;
        self.target.table = None;
        self.query = Some(Query {
            text,
            numbered,
            prepared: None,
        });
        Ok(())
    }

    fn set_substrait_plan(&mut self, _plan: impl AsRef<[u8]>) -> Result<()> {
        Err(missing(
            "plans of Substrait are not read: set a query in SQL",
        ))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(self.canceller.clone())
    }
}
