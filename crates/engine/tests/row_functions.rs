//! Functions that make rows of rows: each row of every executor comes as often as they say, in joins and spilled, and a function whose
//! values differ each time is called once for each row; and functions of pairs, spilled or not.

mod runtime;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use engine::{
    Execution, Executor, Fold, Function, Made, MadeRows, Output, PairFunction, Prepared, Query,
    Rel, RowFunction, RowPieces, Runtime, Type, Var,
};

const ROWS: i64 = 5_000;

const EXECUTORS: [Executor; 3] = [Executor::Fused, Executor::Stream, Executor::Staged];

/// Makes the numbers below its argument of each row.
#[derive(Debug)]
struct Below;

impl RowFunction for Below {
    fn call(&self, args: &[ArrayRef], rows: usize, most: usize) -> Made<RowPieces> {
        let ends = args[0].as_primitive::<Int64Type>().clone();
        assert_eq!(ends.len(), rows);
        let (mut row, mut next) = (0, 0);
        Ok(Box::new(std::iter::from_fn(move || {
            let (mut of, mut numbers) = (vec![], vec![]);
            while row < rows && of.len() < most {
                if next == ends.value(row) {
                    (row, next) = (row + 1, 0);
                    continue;
                }
                of.push(row as u32);
                numbers.push(next);
                next += 1;
            }
            let columns = vec![Arc::new(Int64Array::from(numbers)) as ArrayRef];
            (!of.is_empty()).then_some(Ok(MadeRows { of, columns }))
        })))
    }

    fn is_volatile(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        "below".into()
    }
}

/// Numbers the rows in the order of its calls.
#[derive(Debug, Default)]
struct Counter(Arc<AtomicUsize>);

impl RowFunction for Counter {
    fn call(&self, _: &[ArrayRef], rows: usize, _: usize) -> Made<RowPieces> {
        let first = self.0.fetch_add(rows, Ordering::Relaxed) as i64;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + rows as i64));
        let of = (0..rows as u32).collect();
        let made = MadeRows {
            of,
            columns: vec![numbers],
        };
        Ok(Box::new(std::iter::once(Ok(made))))
    }

    fn is_volatile(&self) -> bool {
        true
    }

    fn name(&self) -> String {
        "counter".into()
    }
}

/// Gives a row more than it has.
#[derive(Debug)]
struct Wrong;

impl RowFunction for Wrong {
    fn call(&self, _: &[ArrayRef], rows: usize, _: usize) -> Made<RowPieces> {
        let made = MadeRows {
            of: vec![rows as u32],
            columns: vec![Arc::new(Int64Array::from(vec![1]))],
        };
        Ok(Box::new(std::iter::once(Ok(made))))
    }

    fn is_volatile(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        "wrong".into()
    }
}

fn int() -> Type {
    let ty = Type::of(&DataType::Int64, false).unwrap();
    ty.within((0, 1 << 40))
}

/// Rows (i, i % modulus).
fn rows(query: &mut Query, many: i64, modulus: i64) -> (Rel, Var, Var) {
    let array = |number: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..many).map(number)))
    };
    let columns = [("i", array(&|i| i)), ("k", array(&|i| i % modulus))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let vars = vec![query.add("i", int()), query.add("k", int())];
    let (i, k) = (vars[0], vars[1]);
    (Rel::Values { vars, batch }, i, k)
}

fn expanded(query: &mut Query, input: Rel, function: Arc<dyn RowFunction>, of: Var) -> (Rel, Var) {
    let made = query.add("made", int());
    let rel = Rel::Expand {
        input: Box::new(input),
        args: vec![query.expr(of)],
        function,
        vars: vec![made],
    };
    (rel, made)
}

fn prepared(query: Query, root: Rel, vars: Vec<Var>) -> Arc<Prepared> {
    let field = |var: &Var| Field::new(format!("c{var}"), query.ty(*var).data.clone(), true);
    let schema = Arc::new(Schema::new(vars.iter().map(field).collect::<Vec<_>>()));
    Arc::new(engine::prepare(query, root, Output { vars, schema }).unwrap())
}

fn run(
    prepared: &Arc<Prepared>,
    runtime: &Runtime,
    execution: &Execution,
) -> engine::Result<Vec<RecordBatch>> {
    let (prepared, own, execution) = (prepared.clone(), runtime.clone(), execution.clone());
    let run = async move { prepared.run_by(&own, &execution).await };
    Ok(runtime.workers.block_on(run)?.0)
}

/// The whole numbers of the answer, sorted.
fn numbers(batches: &[RecordBatch]) -> Vec<Vec<i64>> {
    let mut all = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let columns = batch.columns().iter();
            all.push(
                columns
                    .map(|column| column.as_primitive::<Int64Type>().value(row))
                    .collect(),
            );
        }
    }
    all.sort();
    all
}

/// All executors, and each with so little room that rows are spilled and joins take several passes.
fn executions() -> Vec<Execution> {
    let with = |executor, room: Option<usize>| {
        let mut execution = Execution::by(executor);
        execution.spill = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).into());
        execution.max_rows_before_spill = room;
        execution
    };
    let all = EXECUTORS.into_iter();
    all.flat_map(|own| [with(own, None), with(own, Some(60))])
        .collect()
}

#[test]
fn each_row_makes_its_rows() {
    let runtime = runtime::on("2x1", 2);
    let mut query = Query::default();
    let (rel, i, k) = rows(&mut query, ROWS, 7);
    let (rel, made) = expanded(&mut query, rel, Arc::new(Below), k);
    let prepared = prepared(query, rel, vec![i, made]);
    let wanted = (0..ROWS).flat_map(|i| (0..i % 7).map(move |made| vec![i, made]));
    let wanted: Vec<Vec<i64>> = wanted.collect();
    for execution in executions() {
        let found = numbers(&run(&prepared, &runtime, &execution).unwrap());
        assert!(found == wanted, "{execution:?}");
        assert_eq!(runtime.budget.used(), 0);
    }
}

/// One row may make more than fit in a batch.
#[test]
fn a_row_makes_many_rows() {
    let runtime = runtime::on("2x1", 2);
    let mut query = Query::default();
    let (rel, _, k) = rows(&mut query, 1, 1);
    let mut many = query.expr(k);
    many = engine::arithmetic(
        engine::Arithmetic::Add,
        many,
        engine::Expr::literal(engine::Literal::Int(100_000), &DataType::Int64).unwrap(),
        &DataType::Int64,
    )
    .unwrap();
    let end = query.add("end", int());
    let rel = Rel::Map {
        input: Box::new(rel),
        exprs: vec![(end, many)],
    };
    let (rel, made) = expanded(&mut query, rel, Arc::new(Below), end);
    let prepared = prepared(query, rel, vec![made]);
    for execution in executions() {
        let found = numbers(&run(&prepared, &runtime, &execution).unwrap());
        let wanted = (0..100_000).map(|made| vec![made]);
        assert!(found.into_iter().eq(wanted), "{execution:?}");
    }
}

#[test]
fn what_differs_each_time_is_computed_once_for_each_row() {
    let runtime = runtime::on("2x1", 2);
    for is_joined in [false, true] {
        for execution in executions() {
            let calls = Arc::new(AtomicUsize::new(0));
            let mut query = Query::default();
            let (rel, i, k) = rows(&mut query, ROWS, 500);
            let function = Arc::new(Counter(calls.clone()));
            let (mut rel, made) = expanded(&mut query, rel, function, i);
            if is_joined {
                let (other, _, key) = rows(&mut query, 1_000, 500);
                rel = Rel::Join {
                    inputs: vec![rel, other],
                    equal: vec![(k, key)],
                    residual: vec![],
                };
            }
            let prepared = prepared(query, rel, vec![i, made]);
            let found = numbers(&run(&prepared, &runtime, &execution).unwrap());
            let name = format!("{is_joined}, {execution:?}");
            assert_eq!(calls.load(Ordering::Relaxed), ROWS as usize, "{name}");
            let copies = if is_joined { 2 } else { 1 };
            assert_eq!(found.len(), copies * ROWS as usize, "{name}");
            // All copies of a row have its number, and no two rows have the same.
            let mut own: Vec<&Vec<i64>> = found.iter().collect();
            own.dedup();
            assert_eq!(own.len(), ROWS as usize, "{name}");
            let mut all: Vec<i64> = own.iter().map(|row| row[1]).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..ROWS), "{name}");
        }
    }
}

#[test]
fn rows_that_are_not_there_are_an_error() {
    let runtime = runtime::on("2x1", 2);
    let mut query = Query::default();
    let (rel, i, k) = rows(&mut query, 10, 7);
    let (rel, made) = expanded(&mut query, rel, Arc::new(Wrong), k);
    let prepared = prepared(query, rel, vec![i, made]);
    assert!(run(&prepared, &runtime, &Execution::default()).is_err());
}

#[test]
fn functions_of_pairs_are_the_same_spilled() {
    let runtime = runtime::on("2x1", 2);
    let float = Type::of(&DataType::Float64, true).unwrap();
    let mut query = Query::default();
    let key = query.add("key", int());
    let vars: Vec<Var> = ["x", "y"].map(|name| query.add(name, float.clone())).into();
    let keys = Int64Array::from_iter_values((0..ROWS).map(|i| i % 200));
    let x = Float64Array::from_iter_values((0..ROWS).map(|i| (i / 200) as f64));
    let y = (0..ROWS).map(|i| (i % 9 > 0).then_some((i / 200 * 2 + 1) as f64));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("key", Arc::new(keys)),
        ("x", Arc::new(x)),
        ("y", Arc::new(Float64Array::from_iter(y))),
    ];
    let rel = Rel::Values {
        batch: RecordBatch::try_from_iter(columns).unwrap(),
        vars: vec![key, vars[0], vars[1]],
    };
    let wanted = [
        PairFunction::Count,
        PairFunction::Slope,
        PairFunction::Intercept,
        PairFunction::Correlation,
    ];
    let folds = wanted.map(|function| Fold {
        var: query.add(
            format!("{function:?}"),
            if function == PairFunction::Count {
                int()
            } else {
                float.clone()
            },
        ),
        function: Function::OfPairs {
            function,
            x: vars[0],
        },
        arg: Some(vars[1]),
    });
    let mut output = vec![key];
    output.extend(folds.iter().map(|fold| fold.var));
    let rel = Rel::Fold {
        input: Box::new(rel),
        keys: vec![key],
        folds: folds.into(),
    };
    let prepared = prepared(query, rel, output);
    for execution in executions() {
        let mut groups = 0;
        for batch in run(&prepared, &runtime, &execution).unwrap() {
            groups += batch.num_rows();
            for row in 0..batch.num_rows() {
                let key = batch.column(0).as_primitive::<Int64Type>().value(row);
                let own = (0..ROWS / 200).filter(|of| (of * 200 + key) % 9 > 0);
                let counts = batch.column(1).as_primitive::<Int64Type>();
                assert_eq!(counts.value(row), own.count() as i64, "{execution:?}");
                for (column, wanted) in [(2, 2.0), (3, 1.0), (4, 1.0)] {
                    let column = batch.column(column).as_primitive::<Float64Type>();
                    let near = (column.value(row) - wanted).abs() < 1e-9;
                    assert!(near && column.is_valid(row), "{execution:?}: {column:?}");
                }
            }
        }
        assert_eq!(groups, 200, "{execution:?}");
    }
}
