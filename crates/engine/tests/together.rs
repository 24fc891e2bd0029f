//! Calls that may be computed together are: once for all operators that read their values, with the same answers.

mod runtime;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{
    Call, Calls, Compare, Execution, Executor, Expr, Key, Literal, Output, Prepared, Query, Rel,
    Type, Var,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A number times a factor.
#[derive(Debug)]
struct Times {
    by: i64,
    /// How often numbers were computed alone, and how many were computed together.
    alone: Arc<AtomicUsize>,
    together: Arc<AtomicUsize>,
}

/// A number times several factors.
#[derive(Debug)]
struct All(Vec<i64>, Arc<AtomicUsize>);

fn times(of: &ArrayRef, by: i64) -> ArrayRef {
    let of = of.as_primitive::<Int64Type>();
    Arc::new(
        of.iter()
            .map(|own| own.map(|own| own * by))
            .collect::<Int64Array>(),
    )
}

impl Call for Times {
    fn call(&self, args: &[ArrayRef], _: usize) -> Result<ArrayRef, Failure> {
        self.alone.fetch_add(1, Ordering::Relaxed);
        Ok(times(&args[0], self.by))
    }

    fn name(&self) -> String {
        format!("times {}", self.by)
    }

    fn together(&self, calls: &[Arc<dyn Call>]) -> Option<Arc<dyn Calls>> {
        let factor = |call: &Arc<dyn Call>| {
            let call: &dyn Any = &**call;
            call.downcast_ref::<Times>().map(|own| own.by)
        };
        let all = calls.iter().map(factor).collect::<Option<Vec<i64>>>()?;
        Some(Arc::new(All(all, self.together.clone())))
    }
}

impl Calls for All {
    fn call(&self, arg: &ArrayRef) -> Result<Vec<ArrayRef>, Failure> {
        self.1.fetch_add(self.0.len(), Ordering::Relaxed);
        Ok(self.0.iter().map(|by| times(arg, *by)).collect())
    }
}

fn long() -> Type {
    Type::of(&DataType::Int64, true).unwrap()
}

/// The counters, and `select i * 2, i * 3, i * 2 from (values ...) t(i), other where i * 3 > 30 and i * 5 < 5_000 [and a match]`.
fn query(joins: bool) -> (Prepared, [Arc<AtomicUsize>; 2]) {
    let counters = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let mut query = Query::default();
    let numbers = |rows: i64| {
        let own = (0..rows).map(|row| (row % 7 != 6).then_some(row));
        let own: ArrayRef = Arc::new(own.collect::<Int64Array>());
        RecordBatch::try_from_iter_with_nullable([("i", own, true)]).unwrap()
    };
    let i = query.add("i", long());
    let by = |query: &Query, by: i64| {
        let [alone, together] = counters.clone();
        let call = Times {
            by,
            alone,
            together,
        };
        engine::call(vec![query.expr(i)], Arc::new(call), &DataType::Int64).unwrap()
    };
    let constant = |value| Expr::literal(Literal::Int(value), &DataType::Int64).unwrap();
    let mut rel = Rel::Values {
        vars: vec![i],
        batch: numbers(2_000),
    };
    for (op, factor, bound) in [(Compare::Gt, 3, 30), (Compare::Lt, 5, 5_000)] {
        let predicate = engine::compare(op, by(&query, factor), constant(bound)).unwrap();
        rel = Rel::Filter {
            input: Box::new(rel),
            predicate,
        };
    }
    if joins {
        let other = query.add("other", long());
        let inner = Rel::Values {
            vars: vec![other],
            batch: numbers(500),
        };
        rel = Rel::Join {
            inputs: vec![rel, inner],
            equal: vec![(i, other)],
            residual: vec![],
        };
    }
    let mut exprs = vec![];
    for factor in [2, 3, 2] {
        exprs.push((query.add("out", long()), by(&query, factor)));
    }
    let vars: Vec<Var> = exprs.iter().map(|(var, _)| *var).collect();
    let rel = Rel::Map {
        input: Box::new(rel),
        exprs,
    };
    let rel = Rel::Sort {
        input: Box::new(rel),
        keys: vec![Key {
            var: vars[0],
            descending: false,
            nulls_first: false,
        }],
        skip: 0,
        fetch: None,
    };
    let fields = ["a", "b", "c"].map(|name| Field::new(name, DataType::Int64, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    (
        engine::prepare(query, rel, Output { vars, schema }).unwrap(),
        counters,
    )
}

#[test]
fn calls_of_one_vector_are_computed_together() {
    let runtime = runtime::on("live", 2);
    for joins in [false, true] {
        for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
            let (prepared, [alone, together]) = query(joins);
            let (own, workers) = (runtime.clone(), runtime.workers.clone());
            let execution = Execution::by(executor);
            let (batches, _) = workers
                .block_on(async move { prepared.run_by(&own, &execution).await })
                .unwrap();
            let rows = batches.iter().flat_map(|batch| {
                let column = |at: usize| batch.column(at).as_primitive::<Int64Type>();
                (0..batch.num_rows()).map(move |row| {
                    assert!(column(0).is_valid(row));
                    [0, 1, 2].map(|at| column(at).value(row))
                })
            });
            let most = if joins { 500 } else { 1_000 };
            let wanted = (11..most)
                .filter(|i| i % 7 != 6)
                .map(|i| [i * 2, i * 3, i * 2]);
            assert_eq!(rows.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
            assert_eq!(
                alone.load(Ordering::Relaxed),
                0,
                "{executor:?}, joins: {joins}"
            );
            assert_ne!(together.load(Ordering::Relaxed), 0);
        }
    }
}
