//! What does not fit in memory is put in a file: with little room, or a small limit, the answers are those that much
//! memory gives, by every executor and plan.

mod levels;
mod runtime;
mod whole_partitions;

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use engine::{
    Compare, Error, Execution, Executor, Expr, Fold, FrameBounds, FrameEdge, FrameRow, FrameUnits,
    Function, Key, Literal, NumaPolicy, Output, Prepared, Query, Rel, Runtime, Type, Var,
    WindowFold, WindowFunction, compare,
};
use levels::levels;
use whole_partitions::whole_partitions;

const ENDS: [FrameEdge; 2] = [FrameEdge::Current, FrameEdge::Last];
const EXECUTORS: [Executor; 3] = [Executor::Fused, Executor::Stream, Executor::Staged];

fn int() -> Type {
    Type::of(&DataType::Int64, true).unwrap()
}

fn text() -> Type {
    Type::of(&DataType::Utf8View, true).unwrap()
}

/// Rows (k, v, t): k has as many values as there are rows, spread widely; some of v and t are NULL.
struct Rows {
    rel: Rel,
    k: Var,
    v: Var,
    t: Var,
}

fn rows(query: &mut Query, rows: i64, step: i64) -> Rows {
    let all = 0..rows;
    let k = all.clone().map(|i| (i * 7919 % rows) * step * 1_000_003);
    let v = all.clone().map(|i| (i % 11 > 0).then_some(i % 1_000));
    let t = all.map(|i| (i % 13 > 0).then(|| format!("the text number {}", i * 31 % 5_000)));
    let batch = RecordBatch::try_from_iter_with_nullable([
        (
            "k",
            Arc::new(Int64Array::from_iter_values(k)) as ArrayRef,
            true,
        ),
        ("v", Arc::new(Int64Array::from_iter(v)) as ArrayRef, true),
        (
            "t",
            Arc::new(StringViewArray::from_iter(t)) as ArrayRef,
            true,
        ),
    ])
    .unwrap();
    let (k, v, t) = (
        query.add("k", int()),
        query.add("v", int()),
        query.add("t", text()),
    );
    let vars = vec![k, v, t];
    let rel = Rel::Values { vars, batch };
    Rows { rel, k, v, t }
}

fn prepared(query: Query, root: Rel, vars: Vec<Var>) -> Arc<Prepared> {
    let field = |var: &Var| Field::new(format!("c{var}"), query.ty(*var).data.clone(), true);
    let schema = Arc::new(Schema::new(vars.iter().map(field).collect::<Vec<_>>()));
    Arc::new(engine::prepare(query, root, Output { vars, schema }).unwrap())
}

/// The rows of the answer as texts, in the order they come, and what is told of them.
fn run(
    prepared: &Arc<Prepared>,
    runtime: &Runtime,
    execution: &Execution,
) -> Result<(Vec<String>, Vec<String>), Error> {
    let (prepared, own, execution) = (prepared.clone(), runtime.clone(), execution.clone());
    let run = async move { prepared.run_by(&own, &execution).await };
    let (batches, told) = runtime.workers.block_on(run)?;
    let mut all = vec![];
    for batch in &batches {
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let columns: Vec<_> = columns.collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).to_string());
            all.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    Ok((all, told))
}

fn folds(query: &mut Query, v: Var, t: Var) -> Vec<Fold> {
    let fold = |query: &mut Query, function, arg: Option<Var>| {
        let ty = match arg {
            Some(arg) if arg == t && function != Function::CountDistinct => text(),
            _ => int(),
        };
        let var = query.add(format!("{function:?}"), ty);
        Fold { var, function, arg }
    };
    vec![
        fold(query, Function::Count, None),
        fold(query, Function::Count, Some(v)),
        fold(query, Function::Sum, Some(v)),
        fold(query, Function::Min, Some(v)),
        fold(query, Function::Max, Some(t)),
        fold(query, Function::Min, Some(t)),
        fold(query, Function::CountDistinct, Some(v)),
        fold(query, Function::SumDistinct, Some(v)),
        fold(query, Function::CountDistinct, Some(t)),
    ]
}

/// Groups by `k`, by the text, and of all rows.
fn grouped(keys: fn(&Rows) -> Vec<Var>, many: i64) -> Arc<Prepared> {
    let mut query = Query::default();
    let rows = rows(&mut query, many, 1);
    let keys = keys(&rows);
    let folds = folds(&mut query, rows.v, rows.t);
    let vars: Vec<Var> = keys
        .iter()
        .copied()
        .chain(folds.iter().map(|f| f.var))
        .collect();
    let root = Rel::Fold {
        input: Box::new(rows.rel),
        keys,
        folds,
    };
    prepared(query, root, vars)
}

fn ordered(many: i64, skip: usize, fetch: Option<usize>) -> Arc<Prepared> {
    let mut query = Query::default();
    let rows = rows(&mut query, many, 1);
    let key = |var, descending| Key {
        var,
        descending,
        nulls_first: descending,
    };
    let root = Rel::Sort {
        keys: vec![key(rows.v, true), key(rows.t, false), key(rows.k, true)],
        input: Box::new(rows.rel),
        skip,
        fetch,
    };
    prepared(query, root, vec![rows.v, rows.t, rows.k])
}

/// Functions over partitions by `v`, all of whose rows are needed at once, or a few at a time.
fn windows(many: i64, at_once: bool) -> Arc<Prepared> {
    let mut query = Query::default();
    let rows = rows(&mut query, many, 1);
    let frame = |units, start| FrameBounds::new(units, start, FrameEdge::Current);
    let mut function = |function, arg, ty| WindowFold {
        var: query.add("window", ty),
        function,
        arg,
    };
    let near = frame(FrameUnits::Rows, FrameEdge::Preceding(3));
    let before = frame(FrameUnits::Range, FrameEdge::First);
    let lag = WindowFunction::Shift {
        rows: 2,
        default: Literal::Text("none".into()),
        ignore_nulls: false,
    };
    let mut functions = vec![
        function(WindowFunction::RowNumber, None, int()),
        function(
            WindowFunction::Aggregate(Function::Sum, before),
            Some(rows.v),
            int(),
        ),
        function(
            WindowFunction::Aggregate(Function::Min, near),
            Some(rows.t),
            text(),
        ),
        function(lag, Some(rows.t), text()),
    ];
    if at_once {
        let second = WindowFunction::Value {
            row: FrameRow::Nth(2),
            frame: before,
            ignore_nulls: true,
        };
        functions.push(function(second, Some(rows.t), text()));
    }
    let mut vars = vec![rows.k, rows.v];
    vars.extend(functions.iter().map(|fold| fold.var));
    let root = Rel::Window {
        input: Box::new(rows.rel),
        partition: vec![rows.v],
        order: vec![Key {
            var: rows.k,
            descending: true,
            nulls_first: true,
        }],
        functions,
    };
    prepared(query, root, vars)
}

/// Functions over one partition, of which a few rows are needed at a time; with peers those whose values are the same for all of them.
fn one_partition(many: i64, peers: bool) -> Arc<Prepared> {
    let mut query = Query::default();
    let rows = rows(&mut query, many, 1);
    let mut functions = vec![];
    let mut function = |function, arg, ty| {
        let var = query.add("window", ty);
        functions.push(WindowFold { var, function, arg });
    };
    let until = |units| FrameBounds::new(units, FrameEdge::First, FrameEdge::Current);
    let units: &[FrameUnits] = if peers {
        function(WindowFunction::Rank, None, int());
        function(WindowFunction::DenseRank, None, int());
        let float = Type::of(&DataType::Float64, true).unwrap();
        function(WindowFunction::PercentRank, None, float.clone());
        function(WindowFunction::CumeDist, None, float);
        &[FrameUnits::Range, FrameUnits::Groups]
    } else {
        function(WindowFunction::RowNumber, None, int());
        for by in [-3, 70] {
            let shift = WindowFunction::Shift {
                rows: by,
                default: Literal::Text("none".into()),
                ignore_nulls: false,
            };
            function(shift, Some(rows.t), text());
        }
        let (from, to) = (FrameEdge::Preceding(5), FrameEdge::Following(2));
        let near = FrameBounds::new(FrameUnits::Rows, from, to);
        let max = WindowFunction::Aggregate(Function::Max, near);
        function(max, Some(rows.t), text());
        for row in [FrameRow::First, FrameRow::Last] {
            let frame = until(FrameUnits::Rows);
            let ignore_nulls = false;
            let value = WindowFunction::Value {
                row,
                frame,
                ignore_nulls,
            };
            function(value, Some(rows.t), text());
        }
        &[FrameUnits::Rows]
    };
    for units in units {
        for of in [Function::Count, Function::Sum, Function::Min, Function::Max] {
            let of = WindowFunction::Aggregate(of, until(*units));
            function(of, Some(rows.v), int());
        }
    }
    let mut vars = vec![rows.k, rows.v];
    vars.extend(functions.iter().map(|fold| fold.var));
    let order: &[Var] = if peers {
        &[rows.v]
    } else {
        &[rows.t, rows.v, rows.k]
    };
    let order = order.iter().map(|var| Key {
        var: *var,
        descending: false,
        nulls_first: true,
    });
    let root = Rel::Window {
        input: Box::new(rows.rel),
        partition: vec![],
        order: order.collect(),
        functions,
    };
    prepared(query, root, vars)
}

#[derive(Clone, Copy, Debug)]
enum Join {
    Inner,
    Semi,
    Anti,
    Left,
    Full,
    Text,
}

/// What is compared of both sides beside keys: of the build side nobody else reads it.
fn conditions(query: &Query, join: Join, (left, right): (Var, Var)) -> Vec<Expr> {
    match join {
        Join::Semi | Join::Left => {
            let (right, left) = (query.expr(right), query.expr(left));
            vec![compare(Compare::Lt, right, left).unwrap()]
        }
        _ => vec![],
    }
}

/// Rows of two relations, and the groups of what becomes of them: every row counts, whatever the order.
fn joined(join: Join, many: i64) -> Arc<Prepared> {
    let mut query = Query::default();
    let left = rows(&mut query, many, 1);
    let right = rows(&mut query, many / 2, 3);
    let vars = vec![left.k, left.v, right.k, right.t];
    let equal = vec![(left.k, right.k)];
    let residual = conditions(&query, join, (left.v, right.v));
    let other = match join {
        // Some rows have many partners, most have none.
        Join::Text => vec![(left.t, right.t), (left.v, right.v)],
        _ => equal,
    };
    let (l, r) = (Box::new(left.rel), Box::new(right.rel));
    let mut outer = |vars: &[Var]| -> Vec<(Var, Var)> {
        let mut one = |var: &Var| (*var, query.add("or NULL", query.ty(*var).clone()));
        vars.iter().map(&mut one).collect()
    };
    let (root, vars) = match join {
        Join::Inner | Join::Text => {
            let inputs = vec![*l, *r];
            let equal = other;
            let join = Rel::Join {
                inputs,
                equal,
                residual,
            };
            (join, vars)
        }
        Join::Semi | Join::Anti => {
            let anti = matches!(join, Join::Anti);
            let (input, other, equal) = (l, r, other);
            let join = Rel::Semi {
                input,
                other,
                equal,
                residual,
                anti,
            };
            (join, vec![left.k, left.v, left.t])
        }
        Join::Left => {
            let outer = outer(&[right.k, right.t]);
            let vars = vec![left.k, left.v, outer[0].1, outer[1].1];
            let (left, right, equal) = (l, r, other);
            let join = Rel::Left {
                left,
                right,
                equal,
                residual,
                outer,
            };
            (join, vars)
        }
        Join::Full => {
            let outer = outer(&vars);
            let vars = outer.iter().map(|(_, var)| *var).collect();
            let (left, right, equal) = (l, r, other);
            let join = Rel::Full {
                left,
                right,
                equal,
                residual,
                outer,
            };
            (join, vars)
        }
    };
    prepared(query, root, vars)
}

fn all(many: i64) -> Vec<(String, Arc<Prepared>, bool)> {
    let mut all = vec![
        (
            "groups of numbers".into(),
            grouped(|rows| vec![rows.k], many),
            false,
        ),
        (
            "groups of texts".into(),
            grouped(|rows| vec![rows.t, rows.v], many),
            false,
        ),
        ("one group".into(), grouped(|_| vec![], many), false),
        ("an order".into(), ordered(many, 0, None), true),
        (
            "the first of an order".into(),
            ordered(many, 90, Some(2_500)),
            true,
        ),
        (
            "none of an order".into(),
            ordered(many, many as usize, Some(5)),
            true,
        ),
    ];
    for join in [
        Join::Inner,
        Join::Semi,
        Join::Anti,
        Join::Left,
        Join::Full,
        Join::Text,
    ] {
        all.push((format!("{join:?}"), joined(join, many), false));
    }
    all.push(("windows".into(), windows(many, false), false));
    all.push(("windows at once".into(), windows(many, true), false));
    all.push(("one partition".into(), one_partition(many, false), false));
    all.push(("peers".into(), one_partition(many, true), false));
    for (end, one) in [true, false]
        .iter()
        .flat_map(|one| ENDS.map(|end| (end, *one)))
    {
        let name = format!("a look at the whole, {one}, {end}");
        all.push((name, whole_partitions(many, one, end), false));
    }
    all.push(("groups of groups".into(), levels(many), false));
    all
}

fn check(name: &str, is_ordered: bool, wanted: &[String], found: Vec<String>) {
    let (mut wanted, mut found) = (wanted.to_vec(), found);
    if !is_ordered {
        wanted.sort();
        found.sort();
    }
    let place = wanted.iter().zip(&found).position(|(a, b)| a != b);
    if let Some(place) = place {
        panic!(
            "{name}, row {place}: {} instead of {}",
            found[place], wanted[place]
        );
    }
    assert_eq!(wanted.len(), found.len(), "{name}");
}

fn spilling(executor: Executor) -> Execution {
    let mut execution = Execution::by(executor);
    execution.spill = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).into());
    execution
}

#[test]
fn little_room_changes_no_answer() {
    for (machine, plan) in [("2x1", NumaPolicy::Shard), ("2x1", NumaPolicy::Distr)] {
        let runtime = runtime::on(machine, 2);
        for (name, prepared, is_ordered) in all(6_000) {
            let (wanted, _) = run(&prepared, &runtime, &Execution::default()).unwrap();
            // The rows of a probe side are spilled, or made anew in each pass.
            for (executor, room) in EXECUTORS.into_iter().flat_map(|own| [(own, 40), (own, 41)]) {
                let mut execution = spilling(executor);
                execution.numa_policy = plan;
                execution.max_rows_before_spill = Some(room);
                let (found, told) = run(&prepared, &runtime, &execution).unwrap();
                let name = format!("{name}, {executor:?}, {plan:?}, {room}");
                check(&name, is_ordered, &wanted, found);
                let put = told.iter().any(|line| line.contains("KiB spilled so far"));
                assert!(put || name.contains("one group"), "{name}: {told:?}");
                assert_eq!(runtime.budget.used(), 0, "{name}");
            }
        }
    }
}

#[test]
fn a_small_limit_changes_no_answer() {
    let much = runtime::on("2x1", 2);
    let mut little = much.clone();
    little.budget = memory::Budget::new(8 << 20);
    // Each worker may gather half a MiB though the limit leaves nothing: what such a little more is enough for need not
    // be put away.
    let mut more = much.clone();
    more.budget = memory::Budget::new(9 << 20);
    for (name, prepared, is_ordered) in all(120_000) {
        let (wanted, _) = run(&prepared, &much, &Execution::default()).unwrap();
        let refused = run(&prepared, &more, &Execution::default());
        let short = matches!(refused, Err(Error::Memory { .. }));
        for executor in EXECUTORS {
            let (found, told) = match run(&prepared, &little, &spilling(executor)) {
                Ok(found) => found,
                Err(e) => panic!("{name}, {executor:?}: {e}"),
            };
            check(&format!("{name}, {executor:?}"), is_ordered, &wanted, found);
            let put = told.iter().any(|line| line.contains("KiB spilled so far"));
            assert!(put || !short, "{name}, {executor:?}: {told:?}");
        }
        assert_eq!(little.budget.used(), 0, "{name}");
        assert!(little.budget.peak() <= 8 << 20);
    }
}

/// Whatever fails while rows are spilled or read again, the query says so, or gives the right answer.
#[test]
fn faults_of_the_disk_are_errors_and_never_wrong_answers() {
    use io::fault::{Disk, Faults};
    let runtime = runtime::on("2x1", 2);
    let faults = [
        (
            "short reads",
            Faults {
                short_reads: 100,
                ..Faults::default()
            },
        ),
        (
            "reads that fail",
            Faults {
                read_errors: 100,
                ..Faults::default()
            },
        ),
        (
            "flipped bits",
            Faults {
                flipped_reads: 100,
                ..Faults::default()
            },
        ),
        (
            "short writes",
            Faults {
                short_writes: 100,
                ..Faults::default()
            },
        ),
        (
            "writes that fail",
            Faults {
                write_errors: 100,
                ..Faults::default()
            },
        ),
    ];
    let mut failed = 0;
    for (name, prepared, is_ordered) in all(3_000) {
        let (wanted, _) = run(&prepared, &runtime, &Execution::default()).unwrap();
        for (fault, faults) in faults {
            let disk = Disk::new(7);
            let mut execution = Execution::by(Executor::Fused);
            execution.spill = Some(engine::SpillTo::Device(disk.device("spill")));
            execution.max_rows_before_spill = Some(40);
            disk.set_faults(faults);
            match run(&prepared, &runtime, &execution) {
                Ok((found, _)) => check(&format!("{name}, {fault}"), is_ordered, &wanted, found),
                Err(Error::Spill { .. } | Error::SpillDamaged { .. }) => failed += 1,
                Err(e) => panic!("{name}, {fault}: {e}"),
            }
            assert_eq!(runtime.budget.used(), 0, "{name}, {fault}");
        }
    }
    assert!(failed > 40, "only {failed} queries met a fault");
}

#[test]
fn a_full_disk_ends_the_query_with_one_error() {
    let runtime = runtime::on("2x1", 2);
    for (name, prepared, _) in all(3_000).into_iter().take(5) {
        let disk = io::fault::Disk::new(7);
        disk.set_capacity(10_000);
        let mut execution = Execution::by(Executor::Fused);
        execution.spill = Some(engine::SpillTo::Device(disk.device("spill")));
        execution.max_rows_before_spill = Some(40);
        match run(&prepared, &runtime, &execution) {
            Err(Error::Spill { .. }) => {}
            other => assert!(name == "one group", "{name}: {other:?}"),
        }
        assert_eq!(runtime.budget.used(), 0, "{name}");
    }
}
