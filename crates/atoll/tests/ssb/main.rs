//! The 13 queries of the Star Schema Benchmark: our algebra runs them whole, and DataFusion gives the same answers.

mod generate;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll::{Database, Executor, Options};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use generate::{Sizes, Table, tables};

const QUERIES: [(&str, &str); 13] = [
    ("1.1", include_str!("queries/q1.1.sql")),
    ("1.2", include_str!("queries/q1.2.sql")),
    ("1.3", include_str!("queries/q1.3.sql")),
    ("2.1", include_str!("queries/q2.1.sql")),
    ("2.2", include_str!("queries/q2.2.sql")),
    ("2.3", include_str!("queries/q2.3.sql")),
    ("3.1", include_str!("queries/q3.1.sql")),
    ("3.2", include_str!("queries/q3.2.sql")),
    ("3.3", include_str!("queries/q3.3.sql")),
    ("3.4", include_str!("queries/q3.4.sql")),
    ("4.1", include_str!("queries/q4.1.sql")),
    ("4.2", include_str!("queries/q4.2.sql")),
    ("4.3", include_str!("queries/q4.3.sql")),
];

/// So many rows that every query but the narrowest finds some.
const SIZES: Sizes = Sizes {
    lineorder: 140_000,
    customer: 900,
    supplier: 200,
    part: 3_000,
};

fn load(path: &std::path::Path, machine: Option<&str>, tables: &[Table]) -> Database {
    let mut options = Options::default();
    options.machine = machine.map(str::to_owned);
    options.threads = machine.map(|_| 4);
    options.pool_bytes = Some(64 << 20);
    options.executor = Executor::Fused;
    let database = Database::create(path, &options).unwrap();
    for table in tables {
        database.session().sql(table.create).unwrap();
        database.append(table.name, [table.rows.clone()]).unwrap();
    }
    database
}

fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut all = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| column.value(row).to_string())
                .collect();
            all.push(cells.join("|"));
        }
    }
    // Equal revenues of a year stand in any order.
    all.sort();
    all
}

#[test]
fn the_algebra_answers_all_thirteen_as_datafusion_does() {
    let tables = tables(&SIZES);
    let context = SessionContext::new();
    for table in &tables {
        let memory =
            MemTable::try_new(table.rows.schema(), vec![vec![table.rows.clone()]]).unwrap();
        context
            .register_table(table.name, Arc::new(memory))
            .unwrap();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for machine in [None, Some("4x1")] {
        let folder = tempfile::tempdir().unwrap();
        let database = load(&folder.path().join("ssb.atoll"), machine, &tables);
        let session = database.session();
        let mut found = 0;
        for (name, text) in QUERIES {
            let answer = session.sql(text).unwrap().pop().unwrap();
            let ours = rows(&answer.batches);
            let theirs = runtime
                .block_on(async { context.sql(text).await.unwrap().collect().await.unwrap() });
            assert_eq!(ours, rows(&theirs), "query {name}");
            assert_eq!(answer.statistics.ran_on, "algebra", "query {name}");
            assert!(
                answer.statistics.total_bytes() > 0,
                "query {name} read nothing"
            );
            found += usize::from(!ours.is_empty());
        }
        assert!(found >= 11, "only {found} queries find rows");
    }
}
