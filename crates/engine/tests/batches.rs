//! Rows that others decode: each comes once, by each executor; failures of reading are told, and who drops a query
//! stops its reading.

mod runtime;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{
    Error, Execution, Executor, ExternalPart, ExternalParts, ExternalScan, ExternalSource, Fold,
    Function, NumaPolicy, Opening, Output, Prepared, Query, Rel, Runtime, Type,
};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};

/// What becomes of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    Well,
    Failing,
    /// It waits for a device that does not answer.
    Never,
}

/// Parts of some batches of some rows, which count through all numbers.
#[derive(Debug)]
struct Numbers {
    parts: usize,
    batches: usize,
    rows: usize,
    last: Ends,
    /// Streams that are open.
    open: Arc<AtomicUsize>,
}

struct Handing(Arc<Numbers>, AtomicUsize, usize);

#[derive(Debug)]
struct Source(Arc<Numbers>);

impl ExternalSource for Source {
    fn name(&self) -> &str {
        "numbers"
    }

    fn parts(&self) -> usize {
        self.0.parts
    }

    fn open(&self, opening: &Opening<'_>) -> engine::Result<Arc<dyn ExternalParts>> {
        let (first, step) = opening.share;
        Ok(Arc::new(Handing(
            self.0.clone(),
            AtomicUsize::new(first),
            step,
        )))
    }
}

/// Counts one open stream.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ExternalParts for Handing {
    fn next(&self) -> BoxFuture<'_, engine::Result<Option<ExternalPart>>> {
        let number = self.1.fetch_add(self.2, Ordering::SeqCst);
        let all = self.0.clone();
        async move {
            tokio::task::yield_now().await;
            if number >= all.parts {
                return Ok(None);
            }
            all.open.fetch_add(1, Ordering::SeqCst);
            let open = Open(all.open.clone());
            let last = if number + 1 == all.parts {
                all.last
            } else {
                Ends::Well
            };
            let first = number * all.batches * all.rows;
            let batch = move |batch: usize| {
                let start = (first + batch * all.rows) as i64;
                let rows = start..start + all.rows as i64;
                let rows = Arc::new(Int64Array::from_iter_values(rows)) as _;
                Ok(RecordBatch::try_from_iter([("n", rows)])?)
            };
            let rows = stream::iter(0..self.0.batches).then(move |number| {
                let batch = batch(number);
                async move {
                    tokio::time::sleep(Duration::from_micros(200)).await;
                    batch
                }
            });
            let end = async move {
                let _open = open;
                match last {
                    Ends::Well => None,
                    Ends::Failing => Some(Err(Error::Source {
                        name: "numbers".into(),
                        message: "worn out".into(),
                    })),
                    Ends::Never => std::future::pending().await,
                }
            };
            let end = stream::once(end).filter_map(futures::future::ready);
            Ok(Some(ExternalPart {
                number: number as u64,
                rows: rows.chain(end).boxed(),
            }))
        }
        .boxed()
    }
}

/// `select count(*), sum(n), max(n)`, of numbers that are said to lie within `bounds`.
fn totals(numbers: &Arc<Numbers>, bounds: (i128, i128)) -> Prepared {
    let int = Type::of(&DataType::Int64, false).unwrap();
    let mut query = Query::default();
    let n = query.add("n", int.clone().within(bounds));
    let mut fold = |function, arg| Fold {
        var: query.add("x", int.clone().nullable(true)),
        function,
        arg,
    };
    let folds = vec![
        fold(Function::Count, None),
        fold(Function::Sum, Some(n)),
        fold(Function::Max, Some(n)),
    ];
    let vars: Vec<_> = folds.iter().map(|fold| fold.var).collect();
    let reading = ExternalScan {
        source: Arc::new(Source(numbers.clone())),
        columns: vec![(n, 0)],
        rows: 100.0,
    };
    let root = Rel::Fold {
        input: Box::new(Rel::Read(reading)),
        keys: vec![],
        folds,
    };
    let fields: Vec<_> = (0..3)
        .map(|i| Field::new(format!("c{i}"), DataType::Int64, true))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    engine::prepare(query, root, Output { vars, schema }).unwrap()
}

fn numbers(parts: usize, batches: usize, rows: usize, last: Ends) -> Arc<Numbers> {
    Arc::new(Numbers {
        parts,
        batches,
        rows,
        last,
        open: Arc::default(),
    })
}

fn executions() -> Vec<Execution> {
    let mut small = Execution::by(Executor::Stream);
    (small.block_rows, small.queue) = (Some(2_048), 1);
    let staged = Execution::by(Executor::Staged);
    let mut preloaded = Execution::default();
    preloaded.preload = true;
    vec![
        Execution::default(),
        preloaded,
        Execution::by(Executor::Stream),
        small,
        staged,
    ]
}

fn run(prepared: Prepared, runtime: &Runtime, execution: &Execution) -> Result<Vec<i64>, Error> {
    let (runtime, execution) = (runtime.clone(), execution.clone());
    let workers = runtime.workers.clone();
    let (batches, _) =
        workers.block_on(async move { prepared.run_by(&runtime, &execution).await })?;
    let columns = batches[0].columns();
    Ok(columns
        .iter()
        .map(|c| c.as_primitive::<Int64Type>().value(0))
        .collect())
}

const ANY: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);

#[test]
fn each_row_comes_once() {
    for threads in [1, 2, 3] {
        let runtime = runtime::on("live", threads);
        for execution in executions() {
            for (parts, batches, rows) in [(1, 1, 1), (1, 9, 2_049), (7, 3, 1_000), (40, 1, 5)] {
                let numbers = numbers(parts, batches, rows, Ends::Well);
                let all = (parts * batches * rows) as i64;
                let found = run(totals(&numbers, ANY), &runtime, &execution).unwrap();
                assert_eq!(found, [all, all * (all - 1) / 2, all - 1], "{execution:?}");
                assert_eq!(numbers.open.load(Ordering::SeqCst), 0);
            }
        }
    }
}

/// Instances share the parts: each row is read by one of them.
#[test]
fn instances_read_each_row_once() {
    let runtime = runtime::on("4x1", 3);
    for mut execution in executions() {
        execution.numa_policy = NumaPolicy::Distr;
        let numbers = numbers(11, 2, 100, Ends::Well);
        let found = run(totals(&numbers, ANY), &runtime, &execution).unwrap();
        assert_eq!(found, [2_200, 2_200 * 2_199 / 2, 2_199], "{execution:?}");
    }
}

#[test]
fn failures_are_told() {
    let runtime = runtime::on("live", 2);
    for execution in executions() {
        let failing = numbers(5, 2, 100, Ends::Failing);
        let found = run(totals(&failing, ANY), &runtime, &execution).unwrap_err();
        assert_eq!(found.to_string(), "numbers: worn out");
        let lying = numbers(2, 2, 100, Ends::Well);
        let found = run(totals(&lying, (0, 398)), &runtime, &execution).unwrap_err();
        assert!(matches!(found, Error::Source { .. }), "{found}");
        assert!(run(totals(&lying, (0, 399)), &runtime, &execution).is_ok());
    }
}

#[test]
fn who_drops_a_query_stops_its_reading() {
    let runtime = runtime::on("live", 2);
    for execution in executions() {
        let endless = numbers(3, 1, 10, Ends::Never);
        let prepared = totals(&endless, ANY);
        let (again, watched) = (runtime.clone(), endless.open.clone());
        let handle = runtime
            .workers
            .spawn(async move { prepared.run_by(&again, &execution).await });
        while watched.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(handle.abort_on_drop());
        for _ in 0..10_000 {
            if watched.load(Ordering::SeqCst) == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(
            watched.load(Ordering::SeqCst),
            0,
            "a stream that nobody reads is open"
        );
    }
}
