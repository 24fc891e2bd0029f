//! Transactions of several statements: sessions at once against a model, sessions that go away, power that is lost.

#[path = "../fixture/mod.rs"]
mod fixture;
mod histories;
mod locks;
mod lost;
mod rights;
mod schemas;
mod sessions;
mod temporary;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use sql::{Error, Instance, Session};
use workers::Workers;

/// Sessions over a new store.
struct Sessions {
    _directory: tempfile::TempDir,
    workers: Arc<Workers>,
    instance: Arc<Instance>,
}

impl Sessions {
    /// Statements wait for `patience` while another session's transaction writes.
    fn new(patience: Duration) -> Sessions {
        let directory = tempfile::tempdir().unwrap();
        let workers = fixture::workers();
        let mut options = sql::Options::spilling_to(directory.path());
        options.lock_timeout = Some(patience);
        let path = directory.path().join("test.atoll");
        let store = store::Options::default();
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        Sessions {
            _directory: directory,
            workers,
            instance,
        }
    }

    fn session(&self) -> Session {
        self.instance.session()
    }

    fn try_run(&self, session: &Session, text: &str) -> Result<Vec<sql::Answer>, Error> {
        self.workers.handle().block_on(session.execute(text))
    }

    fn run(&self, session: &Session, text: &str) -> Vec<sql::Answer> {
        self.try_run(session, text)
            .unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// The one number that a query returns.
    fn number(&self, session: &Session, query: &str) -> i64 {
        let answers = self.run(session, query);
        numbers(answers.last().unwrap())[0][0]
    }
}

/// The rows of an answer whose columns are of type `bigint`.
fn numbers(answer: &sql::Answer) -> Vec<Vec<i64>> {
    let mut rows = Vec::new();
    for batch in &answer.batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns.map(|c| c.as_primitive::<Int64Type>()).collect();
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row)).collect()),
        );
    }
    rows
}
