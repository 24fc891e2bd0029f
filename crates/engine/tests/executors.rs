//! The executors against each other: the same answers however blocks are cut and whoever runs them; failures and
//! early ends leave nobody asleep.

mod queries;
mod runtime;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use engine::time_line::Noted;
use engine::{
    Allocation, Arithmetic, Call, Compare, Error, Execution, Executor, Fold, Function, NumaPolicy,
    Prepared, Query, Rel, Runtime, TimeLine,
};
use proptest::prelude::*;
use queries::{Join, counted, int, joined, long, number, prepared, rows};

/// The answer's rows, sorted.
fn answer(
    prepared: &Arc<Prepared>,
    runtime: &Runtime,
    execution: &Execution,
) -> Result<Vec<Vec<Option<i64>>>, Error> {
    let (prepared, runtime, execution) = (prepared.clone(), runtime.clone(), execution.clone());
    let workers = runtime.workers.clone();
    let (batches, _) =
        workers.block_on(async move { prepared.run_by(&runtime, &execution).await })?;
    let mut all = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let value = |c: &ArrayRef| {
                let c = c.as_primitive::<Int64Type>();
                (!arrow::array::Array::is_null(c, row)).then(|| c.value(row))
            };
            all.push(batch.columns().iter().map(value).collect());
        }
    }
    all.sort();
    Ok(all)
}

/// What a query does: how many rows its relations have, and what becomes of them.
#[derive(Clone, Debug)]
struct Case {
    left: usize,
    right: usize,
    modulus: i64,
    below: i64,
    fold: bool,
    both: bool,
    join: Join,
    limit: Option<usize>,
}

/// `select k, count(*), sum(i + 1) from (l [union all l]) join r on l.k = r.k where l.k < below group by k`, or
/// what is left of it, with any kind of join.
fn query(case: &Case) -> Prepared {
    let mut query = Query::default();
    let (left, i, k) = rows(&mut query, "l", case.left, case.modulus);
    let (right, _, key) = rows(&mut query, "r", case.right, case.modulus);
    let predicate = engine::compare(Compare::Lt, query.expr(k), number(case.below)).unwrap();
    let mut rel = Rel::Filter {
        input: Box::new(left),
        predicate,
    };
    let (mut i, mut k) = (i, k);
    if case.both {
        let (other, oi, ok) = rows(&mut query, "o", case.left / 2, case.modulus);
        let all = vec![query.add("i", int()), query.add("k", int())];
        rel = Rel::Union {
            inputs: vec![(rel, vec![i, k]), (other, vec![oi, ok])],
            vars: all.clone(),
        };
        (i, k) = (all[0], all[1]);
    }
    let (rel, i, k) = joined(&mut query, case.join, rel, right, (i, k, key));
    let more = query.add("more", long());
    let sum =
        engine::arithmetic(Arithmetic::Add, query.expr(i), number(1), &DataType::Int64).unwrap();
    let rel = Rel::Map {
        input: Box::new(rel),
        exprs: vec![(more, sum)],
    };
    if !case.fold {
        let vars = vec![k, more];
        let rel = match case.limit {
            None => rel,
            fetch => Rel::Sort {
                input: Box::new(rel),
                keys: vec![],
                skip: 0,
                fetch,
            },
        };
        return prepared(query, rel, vars);
    }
    counted(query, rel, k, more)
}

prop_compose! {
    fn cases()(
        many in 0usize..30_000,
        few in 0usize..6_000,
        swapped: bool,
        modulus in 500i64..5_000,
        below in 0i64..5_000,
        fold: bool,
        both: bool,
        join in prop::sample::select(vec![Join::Inner, Join::Semi, Join::Anti, Join::Left, Join::Full]),
        limit in proptest::option::of(0usize..3_000),
    ) -> Case {
        let (left, right) = if swapped { (few, many) } else { (many, few) };
        Case { left, right, modulus, below, fold, both, join, limit }
    }
}

prop_compose! {
    fn executions(executor: Executor)(
        rows in 1_024usize..20_000,
        per_block in 1usize..4,
        allocation in prop::sample::select(vec![Allocation::Each, Allocation::Set(3), Allocation::Fraction(2), Allocation::Whole]),
        timed: bool,
        queue in 1usize..4,
        lock_free: bool,
        tasks in proptest::collection::vec(1usize..4, 0..4),
        ring in 1usize..5,
        reuse: bool,
    ) -> Execution {
        let mut execution = Execution::by(executor);
        execution.block_rows = Some(rows);
        execution.queue = queue;
        execution.lock_free = lock_free;
        execution.tasks = tasks;
        execution.ring = Some(ring);
        execution.reuse = reuse;
        execution.per_block = per_block;
        execution.allocation = allocation;
        execution.time_line = timed.then(Arc::default);
        execution
    }
}

fn same(case: &Case, execution: &Execution, runtime: &Runtime) {
    let prepared = Arc::new(query(case));
    let fused = answer(&prepared, runtime, &Execution::default()).unwrap();
    let other = answer(&prepared, runtime, execution).unwrap();
    match case.limit.filter(|_| !case.fold) {
        // Any of the rows will do.
        Some(_) => assert_eq!(other.len(), fused.len()),
        None => assert!(
            other == fused,
            "{} rows, {} fused",
            other.len(),
            fused.len()
        ),
    }
    assert_eq!(runtime.budget.used(), 0, "all memory is given back");
    if let Some(line) = &execution.time_line {
        is_sound(&line.take());
    }
}

/// Each span is of an operator, ends after it begins, and leaves its worker before the next one.
fn is_sound(noted: &Noted) {
    assert!(!noted.spans.is_empty());
    let named = |name: &String| !name.is_empty() && !name.contains('#');
    assert!(
        noted.operators.iter().all(|one| named(&one.name)),
        "{:?}",
        noted.operators
    );
    for span in &noted.spans {
        assert!(span.from <= span.to, "{span:?}");
        assert!(span.operator < noted.operators.len() && span.worker < noted.workers.len());
    }
    for two in noted.spans.windows(2) {
        assert!(
            two[0].worker != two[1].worker || two[0].to <= two[1].from,
            "{two:?}"
        );
    }
}

#[test]
fn all_executors_tell_what_their_workers_do() {
    let case = Case {
        left: 30_000,
        right: 3_000,
        modulus: 1_000,
        below: 900,
        fold: true,
        both: false,
        join: Join::Inner,
        limit: None,
    };
    for (executor, names) in [
        (
            Executor::Fused,
            &["dot stage", "krao and fold", "finish: groups"][..],
        ),
        (
            Executor::Stream,
            &["values", "operators: ", "sink", "finish: join table"],
        ),
        (Executor::Staged, &["setup, values", "processing"]),
    ] {
        let (line, mut execution) = (Arc::new(TimeLine::default()), Execution::by(executor));
        execution.hand_over = true;
        execution.time_line = Some(line.clone());
        let runtime = runtime::on("live", 2);
        answer(&Arc::new(query(&case)), &runtime, &execution).unwrap();
        let noted = line.take();
        is_sound(&noted);
        let at = |name: &&str| {
            let mut spans = noted.spans.iter();
            spans.any(|span| noted.operators[span.operator].name.starts_with(name))
        };
        assert!(names.iter().all(at), "{names:?} in {:?}", noted.operators);
        assert!(noted.workers.iter().all(|worker| worker.number.is_some()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn stream_answers_as_fused_does(
        case in cases(),
        execution in executions(Executor::Stream),
        threads in prop::sample::select(vec![1usize, 2, 5]),
    ) {
        same(&case, &execution, &runtime::on("live", threads));
    }

    #[test]
    fn staged_answers_as_fused_does(
        case in cases(),
        execution in executions(Executor::Staged),
        threads in prop::sample::select(vec![1usize, 2, 5]),
    ) {
        same(&case, &execution, &runtime::on("live", threads));
    }

    /// One instance for each node that has workers; on the second machine three of four have.
    #[test]
    fn instances_answer_as_one_does(
        case in cases(),
        execution in prop_oneof![
            executions(Executor::Fused),
            executions(Executor::Stream),
            executions(Executor::Staged),
        ],
        machine in prop::sample::select(vec![("2x1", 2), ("4x1", 3), ("4x2", 8)]),
    ) {
        let mut execution = execution;
        execution.numa_policy = NumaPolicy::Distr;
        same(&case, &execution, &runtime::on(machine.0, machine.1));
    }
}

/// Fails at one value.
#[derive(Debug)]
struct Refusing(i64);

impl Call for Refusing {
    fn call(
        &self,
        args: &[ArrayRef],
        _: usize,
    ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
        let values = args[0].as_primitive::<Int64Type>().values();
        if values.contains(&self.0) {
            return Err(format!("{} is refused", self.0).into());
        }
        Ok(args[0].clone())
    }

    fn name(&self) -> String {
        "refusing".into()
    }
}

/// A function that fails at row `at`, with a join before it so that the failure is in the middle.
fn refusing(number_of_rows: usize, at: i64) -> Prepared {
    let mut query = Query::default();
    let (left, i, k) = rows(&mut query, "l", number_of_rows, 1_000);
    let (right, _, key) = rows(&mut query, "r", 1_000, 1_000);
    let rel = Rel::Join {
        inputs: vec![left, right],
        equal: vec![(k, key)],
        residual: vec![],
    };
    let call = engine::call(
        vec![query.expr(i)],
        Arc::new(Refusing(at)),
        &DataType::Int64,
    );
    let var = query.add("same", int());
    let rel = Rel::Map {
        input: Box::new(rel),
        exprs: vec![(var, call.unwrap())],
    };
    prepared(query, rel, vec![var])
}

fn failures(executor: Executor) {
    let machines = [("live", 1), ("live", 2), ("live", 5), ("2x1", 3)];
    for (machine, threads) in machines {
        let runtime = runtime::on(machine, threads);
        for at in [0, 29_999, 14_000] {
            let prepared = Arc::new(refusing(30_000, at));
            let fused = answer(&prepared, &runtime, &Execution::default()).unwrap_err();
            let mut execution = Execution::by(executor);
            execution.block_rows = Some(2_048);
            execution.queue = 1;
            execution.ring = Some(1);
            // Where there is one node it is as any other plan.
            execution.numa_policy = NumaPolicy::Distr;
            let other = answer(&prepared, &runtime, &execution).unwrap_err();
            assert_eq!(fused.to_string(), other.to_string());
        }
        assert_eq!(runtime.budget.used(), 0);
    }
}

#[test]
fn stream_fails_as_fused_does() {
    failures(Executor::Stream);
}

#[test]
fn staged_fails_as_fused_does() {
    failures(Executor::Staged);
}

/// Dropped while it runs, a query that would take hours lets the workers go.
fn given_up(executor: Executor, numa_policy: NumaPolicy) {
    let runtime = runtime::on("2x1", 2);
    let mut first = Query::default();
    // Each row has 20,000 partners.
    let (left, i, k) = rows(&mut first, "l", 1_000_000, 1);
    let (right, j, key) = rows(&mut first, "r", 20_000, 1);
    let rel = Rel::Join {
        inputs: vec![left, right],
        equal: vec![(k, key)],
        residual: vec![],
    };
    let sum = first.add("sum", long());
    let product = first.add("product", long());
    let data = DataType::Int64;
    let times = engine::arithmetic(Arithmetic::Mul, first.expr(i), first.expr(j), &data);
    let rel = Rel::Map {
        input: Box::new(rel),
        exprs: vec![(product, times.unwrap())],
    };
    let folds = vec![Fold {
        var: sum,
        function: Function::Max,
        arg: Some(product),
    }];
    let rel = Rel::Fold {
        input: Box::new(rel),
        keys: vec![],
        folds,
    };
    let long = prepared(first, rel, vec![sum]);
    let mut execution = Execution::by(executor);
    execution.block_rows = Some(2_048);
    execution.numa_policy = numa_policy;
    let (runs, how) = (runtime.clone(), execution.clone());
    let task = runtime
        .workers
        .spawn(async move { long.run_by(&runs, &how).await.map(|_| ()) });
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!task.is_finished(), "it was to take longer");
    task.abort();
    let case = Case {
        left: 20_000,
        right: 1_000,
        modulus: 1_000,
        below: 500,
        fold: true,
        both: false,
        join: Join::Inner,
        limit: None,
    };
    let after = answer(&Arc::new(query(&case)), &runtime, &execution).unwrap();
    assert_eq!(after.len(), 500);
    let ended = runtime.workers.clone().block_on(task);
    assert!(matches!(ended, Err(workers::Error::Cancelled)), "{ended:?}");
    // Tasks of the first query may be about to end; what does not end in a minute never does.
    let begun = std::time::Instant::now();
    while runtime.budget.used() > 0 && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(runtime.budget.used(), 0);
}

#[test]
fn stream_lets_go_when_given_up() {
    given_up(Executor::Stream, NumaPolicy::Shard);
}

#[test]
fn staged_lets_go_when_given_up() {
    given_up(Executor::Staged, NumaPolicy::Shard);
}

#[test]
fn instances_let_go_when_given_up() {
    for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
        given_up(executor, NumaPolicy::Distr);
    }
}

#[test]
fn instances_fail_as_one_does() {
    failures(Executor::Fused);
}

/// Of two filters the second drops nearly all rows: it is moved to the front, and the report says so.
#[test]
fn filters_are_reordered_by_what_they_drop() {
    let mut query = Query::default();
    let (rel, i, k) = rows(&mut query, "t", 100_000, 1_000);
    let filter = |input: Rel, op, var, value, query: &Query| Rel::Filter {
        input: Box::new(input),
        predicate: engine::compare(op, query.expr(var), number(value)).unwrap(),
    };
    let rel = filter(rel, Compare::Ge, i, 10, &query);
    let rel = filter(rel, Compare::Lt, k, 3, &query);
    let prepared = prepared(query, rel, vec![i]);
    let runtime = runtime::on("live", 2);
    let workers = runtime.workers.clone();
    let (rows, told) = workers.block_on(async move {
        let mut execution = Execution::by(Executor::Staged);
        execution.block_rows = Some(2_048);
        execution.ring = Some(3);
        let (batches, told) = prepared.run_by(&runtime, &execution).await.unwrap();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        (rows, told.join("\n"))
    });
    assert_eq!(rows, 299);
    assert!(
        told.contains("a ring of 3 blocks of 2048 rows: 49 processed"),
        "{told}"
    );
    assert!(!told.contains("changed 0 times: operator"), "{told}");
    let order = told
        .lines()
        .find(|line| line.contains("order of filters"))
        .unwrap();
    let (first, second) = (
        order.find("operator 1 (0.3 %").unwrap(),
        order.find("operator 0 (").unwrap(),
    );
    assert!(first < second, "{order}");
}

#[test]
fn blocks_shrink_to_the_memory_limit() {
    for executor in [Executor::Stream, Executor::Staged] {
        let mut runtime = runtime::on("live", 2);
        let case = Case {
            left: 30_000,
            right: 100,
            modulus: 100,
            below: 90,
            fold: true,
            both: false,
            join: Join::Inner,
            limit: None,
        };
        let expected = answer(&Arc::new(query(&case)), &runtime, &Execution::default()).unwrap();
        runtime.budget = memory::Budget::new(8 << 20);
        let mut execution = Execution::by(executor);
        execution.block_rows = Some(2 << 20);
        let prepared = Arc::new(query(&case));
        let fitted = answer(&prepared, &runtime, &execution).unwrap();
        assert_eq!(fitted, expected);
        assert!(runtime.budget.peak() <= 8 << 20);
        runtime.budget = memory::Budget::new(64 << 10);
        let error = answer(&prepared, &runtime, &execution).unwrap_err();
        assert!(matches!(error, Error::Memory { .. }), "{error}");
        assert_eq!(runtime.budget.used(), 0);
    }
}

#[test]
fn what_is_out_of_range_is_refused() {
    let prepared = Arc::new(refusing(10, 11));
    let runtime = runtime::on("live", 1);
    for rows in [0, 1_023, (2 << 20) + 1] {
        let mut execution = Execution::by(Executor::Stream);
        execution.block_rows = Some(rows);
        let error = answer(&prepared, &runtime, &execution).unwrap_err();
        assert!(error.to_string().contains("1024 to 2097152"), "{error}");
    }
    let mut nobody = Execution::by(Executor::Staged);
    nobody.per_block = 0;
    let mut none = Execution::by(Executor::Staged);
    none.allocation = Allocation::Fraction(0);
    for (execution, part) in [(nobody, "nothing processes"), (none, "no block")] {
        let error = answer(&prepared, &runtime, &execution).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// Rows of which each has very many partners: an answer of 40 million rows.
fn wide() -> Prepared {
    let mut query = Query::default();
    let (left, i, k) = rows(&mut query, "l", 200_000, 10);
    let (right, other, key) = rows(&mut query, "r", 2_000, 10);
    let root = Rel::Join {
        inputs: vec![left, right],
        equal: vec![(k, key)],
        residual: vec![],
    };
    prepared(query, root, vec![i, other])
}

#[test]
fn answers_leave_while_they_are_computed() {
    let mut runtime = runtime::on("live", 2);
    // 640 MB of rows do not fit; what is on its way does.
    runtime.budget = memory::Budget::new(192 << 20);
    let execution = Execution::default();
    let (workers, budget) = (runtime.workers.clone(), runtime.budget.clone());
    let rows = workers.block_on(async move {
        let (sender, mut batches) = tokio::sync::mpsc::channel::<RecordBatch>(1);
        let prepared = wide();
        let taking = async {
            let mut rows = 0;
            while let Some(batch) = batches.recv().await {
                rows += batch.num_rows();
            }
            rows
        };
        let (told, rows) = tokio::join!(prepared.send(&runtime, &execution, sender), taking);
        told.map(|_| rows)
    });
    assert_eq!(rows.unwrap(), 40_000_000);
    assert_eq!(budget.used(), 0);
}

#[test]
fn an_answer_that_nobody_takes_ends() {
    for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
        let runtime = runtime::on("live", 2);
        let mut execution = Execution::default();
        execution.executor = executor;
        let (workers, budget) = (runtime.workers.clone(), runtime.budget.clone());
        let done = workers.block_on(async move {
            let (sender, mut batches) = tokio::sync::mpsc::channel::<RecordBatch>(1);
            let prepared = wide();
            let taking = async {
                let first = batches.recv().await;
                drop(batches);
                first.is_some()
            };
            tokio::join!(prepared.send(&runtime, &execution, sender), taking)
        });
        assert!(matches!(done, (Err(Error::Cancelled), true)), "{done:?}");
        assert_eq!(budget.used(), 0, "{executor:?}");
    }
}
