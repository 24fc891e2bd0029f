//! The `.slt` files in `tests/slt`, each on a store of its own.
//!
//! Every file runs on this machine's topology, on a synthetic machine of four nodes, and with the store closed and
//! opened again after each statement that leaves no transaction in progress; by each executor of Atoll's own engine,
//! which in one of the runs is asked for each query several times, so that the last ones go by the plan that was kept.
//! Each `connection` of a file is a session. `UPDATE_SLT=1 cargo test -p sql --test
//! slt fused_on_four_nodes` rewrites the expected results from what the engine answers: read the difference before committing it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use sqllogictest::{DBOutput, DefaultColumnType, Runner};

/// A store that statements run on, opened again on request.
struct Database {
    directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instance: Option<Arc<sql::Instance>>,
    /// The session of each connection, for as long as the store stays open.
    sessions: Vec<Option<sql::Session>>,
    /// Which of them have taken a role: it would be lost with the session.
    roles: Vec<bool>,
    /// Whether to close and open the store after each statement.
    reopen: bool,
    executor: sql::Executor,
    /// Whether each query runs again.
    repeats: bool,
    /// Rows of an operator that keeps more spills, if that is set.
    room: Option<usize>,
}

/// What a test file may expect of a failure: its message.
#[derive(Debug)]
struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl Database {
    fn new(machine: &str, reopen: bool, executor: sql::Executor) -> Database {
        let live = topology::Machine::live().unwrap();
        let machine = topology::Machine::parse(machine).unwrap();
        let layout = workers::Layout::of(&machine, &live, machine.cpus().clamp(2, 4), false);
        let mut database = Database {
            directory: tempfile::tempdir().unwrap(),
            workers: workers::Workers::new(layout).unwrap(),
            instance: None,
            sessions: Vec::new(),
            roles: Vec::new(),
            reopen,
            executor,
            repeats: false,
            room: None,
        };
        database.open();
        database
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("test.atoll")
    }

    fn open(&mut self) {
        let budget = memory::Budget::new(512 << 20);
        let mut options = store::Options::default();
        options.pool.nodes = vec![None; self.workers.nodes()];
        options.pool.budget = Some(Arc::clone(&budget));
        let path = self.path();
        let open = || {
            if path.exists() {
                store::Store::open(&path, &options)
            } else {
                store::Store::create(&path, &options)
            }
        };
        // Tasks of the last statement hold its snapshot, and so the file's lock, until they have ended too.
        let waiting = std::time::Instant::now();
        let mut store = open();
        while matches!(store, Err(store::Error::Busy { .. })) && waiting.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            store = open();
        }
        let mut spill = sql::Options::spilling_to(self.directory.path());
        spill.executor = self.executor;
        spill.execution.max_rows_before_spill = self.room;
        spill.lock_timeout = Some(Duration::from_millis(50));
        self.instance = Some(
            sql::Instance::new(store.unwrap(), Arc::clone(&self.workers), budget, spill).unwrap(),
        );
    }

    fn close(&mut self) {
        self.sessions.fill(None);
        let instance = self.instance.take().unwrap();
        let store = Arc::clone(instance.store());
        drop(instance);
        let left = Arc::downgrade(&store);
        store.close().unwrap();
        // A cancelled part of the last statement may hold its snapshot, and so the file's lock, for a moment.
        let waiting = std::time::Instant::now();
        while left.strong_count() > 0 {
            assert!(
                waiting.elapsed().as_secs() < 5,
                "somebody keeps the store open"
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn run_one(
        &mut self,
        connection: usize,
        sql: &str,
    ) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let instance = self.instance.as_ref().unwrap();
        let session = self.sessions[connection].get_or_insert_with(|| instance.session());
        let session = session.clone();
        let answers = self
            .workers
            .handle()
            .block_on(session.execute(sql))
            .map_err(|e| Failure(e.to_string()))?;
        let Some(answer) = answers.last() else {
            return Ok(DBOutput::StatementComplete(0));
        };
        if answer.schema.fields().is_empty() {
            return Ok(DBOutput::StatementComplete(answer.changed.unwrap_or(0)));
        }
        let rows = rows(&answer.schema, &answer.batches);
        if self.repeats && is_repeatable(sql) {
            self.repeat(&session, sql, &rows)?;
        }
        Ok(DBOutput::Rows {
            types: types(answer),
            rows,
        })
    }

    /// Runs a query three times more, of which the last goes by the plan that the one before kept, and then with more spaces, of
    /// which the last goes by the plan of its shape.
    fn repeat(
        &self,
        session: &sql::Session,
        sql: &str,
        expected: &[Vec<String>],
    ) -> Result<(), Failure> {
        let sorted = |mut rows: Vec<Vec<String>>| {
            rows.sort();
            rows
        };
        let expected = sorted(expected.to_vec());
        for spaces in [0, 0, 0, 1, 2, 3] {
            let text = format!("{sql}{}", " ".repeat(spaces));
            let asked = async {
                let stream = session.stream(&text).await?;
                let schema = Arc::clone(stream.schema());
                let batches: Vec<RecordBatch> = stream.try_collect().await?;
                sql::Result::Ok((schema, batches))
            };
            let asked = self.workers.handle().block_on(asked);
            let (schema, batches) = asked.map_err(|e| Failure(format!("again, {spaces}: {e}")))?;
            let found = sorted(rows(&schema, &batches));
            if found != expected {
                return Err(Failure(format!("again, {spaces}: {found:?}")));
            }
        }
        Ok(())
    }
}

/// Whether a statement is a query that changes nothing and says the same each time.
fn is_repeatable(text: &str) -> bool {
    const OTHERS: [&str; 17] = [
        "nextval",
        "setval",
        "advisory",
        "random",
        "uuid",
        "now()",
        "clock_timestamp",
        "current_",
        "timeofday",
        "txid",
        "set_config",
        "insert ",
        "update ",
        "delete ",
        "merge ",
        "for ",
        ";",
    ];
    let text = text.to_lowercase();
    let starts = ["select", "with", "values", "table", "("];
    starts.iter().any(|word| text.starts_with(word))
        && !OTHERS.iter().any(|word| text.contains(word))
}

fn types(answer: &sql::Answer) -> Vec<DefaultColumnType> {
    let of = |data_type: &DataType| match data_type {
        t if t.is_integer() => DefaultColumnType::Integer,
        t if t.is_floating()
            || matches!(t, DataType::Decimal128(..) | DataType::Decimal256(..)) =>
        {
            DefaultColumnType::FloatingPoint
        }
        _ => DefaultColumnType::Text,
    };
    answer
        .schema
        .fields()
        .iter()
        .map(|field| of(field.data_type()))
        .collect()
}

fn rows(schema: &Schema, batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        assert_eq!(batch.schema().fields().len(), schema.fields().len());
        let batch = sql::as_texts(batch).unwrap();
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let text = |column: &ArrayFormatter<'_>| match column.value(row).to_string() {
                empty if empty.is_empty() => "(empty)".to_string(),
                text => text,
            };
            rows.push(columns.iter().map(text).collect());
        }
    }
    rows
}

/// A session of the store of a test file.
struct Connection {
    database: Arc<Mutex<Database>>,
    number: usize,
}

impl Connection {
    fn new(database: &Arc<Mutex<Database>>) -> Connection {
        let mut locked = database.lock().unwrap();
        locked.sessions.push(None);
        locked.roles.push(false);
        Connection {
            database: Arc::clone(database),
            number: locked.sessions.len() - 1,
        }
    }
}

impl sqllogictest::DB for Connection {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let mut database: MutexGuard<'_, Database> = self.database.lock().unwrap();
        let output = database.run_one(self.number, sql);
        match sql.trim() {
            "reset role" => database.roles[self.number] = false,
            text if text.starts_with("set role ") => database.roles[self.number] = true,
            text if is_of_session(text) => database.reopen = false,
            _ => {}
        }
        let idle = |session: &sql::Session| session.transaction() == sql::TransactionStatus::Idle;
        let begun = !database.sessions.iter().flatten().all(idle);
        if database.reopen && !begun && !database.roles.contains(&true) {
            database.close();
            database.open();
        }
        output
    }

    fn engine_name(&self) -> &str {
        "atoll"
    }
}

/// Whether a statement makes what ends with its session: temporary tables and views, prepared statements, settings. A file that
/// has come to one is not reopened any more.
fn is_of_session(text: &str) -> bool {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let temporary = words
        .iter()
        .any(|word| matches!(*word, "temp" | "temporary"));
    match words.as_slice() {
        ["prepare", ..] => true,
        ["set", "local" | "transaction" | "constraints", ..] => false,
        ["set", ..] => true,
        ["create" | "select", ..] => temporary,
        _ => false,
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "slt"));
    files.sort();
    assert!(
        files.len() >= 10,
        "the test files are not where they should be"
    );
    files
}

fn run(machine: &str, reopen: bool, executor: sql::Executor) {
    run_on(|| Database::new(machine, reopen, executor));
}

fn run_on(new: impl Fn() -> Database) {
    let mut failures = Vec::new();
    for file in files() {
        let database = Arc::new(Mutex::new(new()));
        let mut runner = Runner::new(|| {
            let connection = Connection::new(&database);
            async { Ok(connection) }
        });
        runner.with_column_validator(sqllogictest::strict_column_validator);
        if std::env::var_os("UPDATE_SLT").is_some() {
            let update = runner.update_test_file(
                &file,
                " ",
                sqllogictest::default_validator,
                sqllogictest::default_normalizer,
                sqllogictest::strict_column_validator,
            );
            futures::executor::block_on(update).unwrap();
        } else if let Err(e) = runner.run_file(&file) {
            failures.push(format!("{e}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn reopened_after_each_statement() {
    run("live", true, sql::Executor::Fused);
}

#[test]
fn fused_and_repeated() {
    run_on(|| Database {
        repeats: true,
        ..Database::new("live", false, sql::Executor::Fused)
    });
}

#[test]
fn stream_that_spills() {
    run_on(|| {
        let mut database = Database::new("live", false, sql::Executor::Stream);
        database.close();
        database.room = Some(50);
        database.open();
        database
    });
}

#[test]
fn staged_on_four_nodes() {
    run("4x1", false, sql::Executor::Staged);
}

#[test]
fn fused_on_four_nodes() {
    run("4x1", false, sql::Executor::Fused);
}
