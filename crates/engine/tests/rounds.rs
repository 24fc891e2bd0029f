//! Tests of recursive execution: stages that do not depend on the working table run once for all rounds, and no state of one round
//! changes the rows of the next.

mod runtime;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{
    Error, Execution, Executor, ExternalPart, ExternalParts, ExternalScan, ExternalSource, Opening,
    Output, Prepared, Query, Rel, Runtime, Type, Var, WorkingRows, WorkingTable,
};
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, StreamExt};

/// Edges from a number to the next one, and to the tenth behind each tenth. Counts how often it is read.
#[derive(Debug)]
struct Edges(Arc<AtomicUsize>);

const EDGES: i64 = 300;

fn batch(columns: &[Vec<i64>]) -> RecordBatch {
    let named = columns.iter().enumerate().map(|(place, column)| {
        let values: ArrayRef = Arc::new(Int64Array::from(column.clone()));
        (format!("c{place}"), values)
    });
    RecordBatch::try_from_iter(named).unwrap()
}

struct Once(std::sync::Mutex<Option<RecordBatch>>);

impl ExternalSource for Edges {
    fn name(&self) -> &str {
        "edges"
    }

    fn parts(&self) -> usize {
        1
    }

    fn open(&self, opening: &Opening<'_>) -> engine::Result<Arc<dyn ExternalParts>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let (mut from, mut to): (Vec<i64>, Vec<i64>) = (0..EDGES).map(|n| (n, n + 1)).unzip();
        from.extend((0..EDGES).step_by(10));
        to.extend((0..EDGES).step_by(10).map(|n| n + 10));
        let rows = (opening.share.0 == 0).then(|| batch(&[from, to]));
        Ok(Arc::new(Once(std::sync::Mutex::new(rows))))
    }
}

impl ExternalParts for Once {
    fn next(&self) -> BoxFuture<'_, engine::Result<Option<ExternalPart>>> {
        let rows = self.0.lock().unwrap().take();
        let part = rows.map(|rows| ExternalPart {
            number: 0,
            rows: stream::iter([Ok(rows)]).boxed(),
        });
        ready(Ok(part)).boxed()
    }
}

/// How the rows of a round are looked up among the edges.
#[derive(Clone, Copy, Debug)]
enum Term {
    /// Where edges lead from the numbers of the round before.
    Join,
    /// The first 20 edges that begin at none of these numbers, and where they lead.
    Without,
}

fn reading(
    query: &mut Query,
    source: Arc<dyn ExternalSource>,
    columns: usize,
    rows: f64,
) -> (Rel, Vec<Var>) {
    let int = Type::of(&DataType::Int64, true).unwrap();
    let vars: Vec<Var> = (0..columns)
        .map(|n| query.add(format!("v{n}"), int.clone()))
        .collect();
    let columns = vars
        .iter()
        .enumerate()
        .map(|(place, var)| (*var, place))
        .collect();
    (
        Rel::Read(ExternalScan {
            source,
            columns,
            rows,
        }),
        vars,
    )
}

fn prepared(term: Term, working: &WorkingTable, opened: &Arc<AtomicUsize>) -> Prepared {
    let mut query = Query::default();
    let (numbers, n) = reading(&mut query, Arc::new(working.clone()), 1, 1e7);
    let edges = Arc::new(Edges(Arc::clone(opened)));
    let (edges, e) = reading(&mut query, edges, 2, 100.0);
    let (root, vars) = match term {
        Term::Join => {
            let rel = Rel::Join {
                inputs: vec![numbers, edges],
                equal: vec![(n[0], e[0])],
                residual: vec![],
            };
            (rel, vec![e[1]])
        }
        Term::Without => {
            let least = Rel::Filter {
                predicate: engine::compare(
                    engine::Compare::Lt,
                    query.expr(e[1]),
                    engine::Expr::literal(engine::Literal::Int(21), &DataType::Int64).unwrap(),
                )
                .unwrap(),
                input: Box::new(edges),
            };
            let rel = Rel::Semi {
                input: Box::new(least),
                other: Box::new(numbers),
                equal: vec![(e[0], n[0])],
                residual: vec![],
                anti: true,
            };
            (rel, vec![e[1]])
        }
    };
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    engine::prepare(query, root, Output { vars, schema }).unwrap()
}

/// The rows of each round that goes on from these numbers, sorted.
fn rounds(
    prepared: Prepared,
    working: &WorkingTable,
    (runtime, execution): (&Runtime, Execution),
    numbers: Vec<Vec<i64>>,
) -> Result<Vec<Vec<i64>>, Error> {
    let (runtime, number) = (runtime.clone(), working.number());
    let workers = runtime.workers.clone();
    workers.block_on(async move {
        let opening = Opening {
            share: (0, 1),
            runtime: &runtime,
            execution: &execution,
            working: &WorkingRows::default(),
        };
        let mut rounds = prepared.rounds(number, &opening)?;
        let mut all = Vec::new();
        for numbers in numbers {
            let (sender, mut found) = tokio::sync::mpsc::channel::<RecordBatch>(1);
            let taking = async {
                let mut own = Vec::new();
                while let Some(rows) = found.recv().await {
                    own.extend_from_slice(rows.column(0).as_primitive::<Int64Type>().values());
                }
                own
            };
            let rows = vec![batch(&[numbers])].into();
            let (done, mut own) = tokio::join!(rounds.run(rows, sender), taking);
            done?;
            own.sort_unstable();
            all.push(own);
        }
        Ok(all)
    })
}

fn executions() -> Vec<Execution> {
    [Executor::Fused, Executor::Stream, Executor::Staged]
        .map(Execution::by)
        .into()
}

#[test]
fn what_stays_the_same_is_read_once() {
    for threads in [1, 2, 3] {
        let runtime = runtime::on("live", threads);
        for execution in executions() {
            let (working, opened) = (WorkingTable::new("r"), Arc::default());
            let prepared = prepared(Term::Join, &working, &opened);
            assert!(prepared.reads_working_table(working.number()));
            let many: Vec<i64> = (0..20_000).map(|n| n % 7).collect();
            let numbers = vec![vec![0], vec![], vec![5, 20, 20, 1_000], many.clone()];
            let found = rounds(prepared, &working, (&runtime, execution), numbers).unwrap();
            assert_eq!(found[0], [1, 10]);
            assert!(found[1].is_empty());
            assert_eq!(found[2], [6, 21, 21, 30, 30]);
            let zeros = many.iter().filter(|n| **n == 0).count();
            assert_eq!(found[3].len(), many.len() + zeros);
            assert_eq!(opened.load(Ordering::SeqCst), 1);
        }
    }
}

#[test]
fn nothing_is_left_of_the_round_before() {
    for threads in [1, 3] {
        let runtime = runtime::on("live", threads);
        for execution in executions() {
            let (working, opened) = (WorkingTable::new("r"), Arc::default());
            let prepared = prepared(Term::Without, &working, &opened);
            let all: Vec<i64> = (0..21).collect();
            let numbers = vec![all.clone(), vec![], vec![3, 10], all];
            let found = rounds(prepared, &working, (&runtime, execution), numbers).unwrap();
            let mut every: Vec<i64> = (1..21).chain([10, 20]).collect();
            every.sort_unstable();
            assert!(found[0].is_empty(), "{:?}", found[0]);
            assert_eq!(found[1], every);
            every.retain(|n| *n != 4 && *n != 11);
            // Two edges begin at 10, and one of two that lead to 20.
            every.pop();
            assert_eq!(found[2], every);
            assert!(found[3].is_empty(), "{:?}", found[3]);
        }
    }
}

#[test]
fn a_cancelled_query_ends_its_rounds() {
    let runtime = runtime::on("live", 2);
    let (working, opened) = (WorkingTable::new("r"), Arc::default());
    let prepared = prepared(Term::Join, &working, &opened);
    runtime.stop.stop();
    let many = vec![(0..100_000).collect::<Vec<i64>>()];
    let done = rounds(prepared, &working, (&runtime, Execution::default()), many);
    assert!(matches!(done, Err(Error::Cancelled)), "{done:?}");
}

#[test]
fn working_tables_are_read_in_rounds_alone() {
    let runtime = runtime::on("live", 1);
    let (working, opened) = (WorkingTable::new("r"), Arc::default());
    let prepared = prepared(Term::Join, &working, &opened);
    let workers = runtime.workers.clone();
    let done = workers.block_on(async move { prepared.run(&runtime).await });
    let told = done.unwrap_err().to_string();
    assert!(
        told.contains("a working table is read outside of rounds"),
        "{told}"
    );
}
