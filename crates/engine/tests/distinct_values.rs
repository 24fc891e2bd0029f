//! Distinct values that become groups, as there are many, give what sets of values give, by every executor, spilled or not.

mod runtime;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use engine::{
    Compare, Execution, Executor, Expr, Fold, Function, Literal, Output, Prepared, Query, Rel,
    Runtime, Type, Var,
};

/// From so many on distinct values become groups, if it is not known how many there are.
const ROWS: i64 = 200_000;

/// What the distinct values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Int,
    Float,
    Text,
}

/// A number below 2^31 in no order.
fn drawn(row: i64, salt: u64) -> i64 {
    let mixed = (row as u64 ^ salt << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed >> 33) as i64
}

/// The number of a row's value, which other rows have too; `None` for NULL.
fn number(row: i64) -> Option<i64> {
    (drawn(row, 1) % 13 > 0).then(|| drawn(row, 2) % 90_000)
}

fn float(number: i64) -> f64 {
    match number % 1_000 {
        0 => f64::NAN,
        1 => 0.0,
        2 => -0.0,
        3 => f64::INFINITY,
        _ => number as f64 * 0.5,
    }
}

/// Short ones and long ones.
fn text(number: i64) -> String {
    match number % 2 {
        0 => format!("t{number}"),
        _ => format!("the text number {number}"),
    }
}

fn values(value: Value) -> ArrayRef {
    let numbers = (0..ROWS).map(number);
    match value {
        Value::Int => Arc::new(Int64Array::from_iter(numbers)),
        Value::Float => Arc::new(Float64Array::from_iter(numbers.map(|n| n.map(float)))),
        Value::Text => Arc::new(StringViewArray::from_iter(numbers.map(|n| n.map(text)))),
    }
}

/// The columns: the distinct values, those of another argument, two keys, and what other functions read.
fn columns(value: Value) -> [ArrayRef; 6] {
    let all = || 0..ROWS;
    let key = all().map(|row| (drawn(row, 3) % 17 > 0).then(|| drawn(row, 4) % 7));
    let word = all().map(|row| (drawn(row, 5) % 5 > 0).then(|| format!("w{}", drawn(row, 6) % 3)));
    let some = all().map(|row| (drawn(row, 7) % 11 > 0).then(|| drawn(row, 8) - (1 << 30)));
    let quarters = all().map(|row| (drawn(row, 9) % 4_000) as f64 * 0.25);
    [
        values(value),
        Arc::new(Int64Array::from_iter_values(all().map(|row| row % 1_000))),
        Arc::new(Int64Array::from_iter(key)),
        Arc::new(StringViewArray::from_iter(word)),
        Arc::new(Int64Array::from_iter(some)),
        Arc::new(Float64Array::from_iter_values(quarters)),
    ]
}

/// A relation of such columns; its vectors.
fn relation(query: &mut Query, columns: &[ArrayRef]) -> (Rel, Vec<Var>) {
    let add = |(at, array): (usize, &ArrayRef)| {
        let ty = Type::of(array.data_type(), array.null_count() > 0).unwrap();
        query.add(format!("c{at}"), ty)
    };
    let vars: Vec<Var> = columns.iter().enumerate().map(add).collect();
    let named = columns.iter().enumerate();
    let named = named.map(|(at, array)| (at.to_string(), Arc::clone(array), true));
    let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let own = vars.clone();
    (Rel::Values { vars: own, batch }, vars)
}

/// Functions with results of these types.
fn folds(query: &mut Query, all: &[(Function, Option<Var>, Type)]) -> Vec<Fold> {
    let fold = |(function, arg, ty): &(Function, Option<Var>, Type)| Fold {
        var: query.add(format!("{function:?}"), ty.clone()),
        function: *function,
        arg: *arg,
    };
    all.iter().map(fold).collect()
}

fn int() -> Type {
    Type::of(&DataType::Int64, true).unwrap()
}

fn double() -> Type {
    Type::of(&DataType::Float64, true).unwrap()
}

fn prepared(query: Query, root: Rel, vars: Vec<Var>) -> Arc<Prepared> {
    let field = |var: &Var| Field::new(format!("c{var}"), query.ty(*var).data.clone(), true);
    let schema = Arc::new(Schema::new(vars.iter().map(field).collect::<Vec<_>>()));
    Arc::new(engine::prepare(query, root, Output { vars, schema }).unwrap())
}

/// Groups by the columns `keys`. In the plain way distinct values of a second argument are counted, too, in the last column.
fn grouped(value: Value, keys: &[usize], plain: bool) -> Arc<Prepared> {
    use Function::{Avg, AvgDistinct, Count, CountDistinct, Max, Min, Sum, SumDistinct};
    let mut query = Query::default();
    let (input, vars) = relation(&mut query, &columns(value));
    let [x, other, _, _, some, quarters] = vars[..] else {
        panic!("{} columns", vars.len())
    };
    let count = int().nullable(false);
    let mut all = vec![
        (CountDistinct, Some(x), count.clone()),
        (Count, None, count.clone()),
        (Count, Some(some), count.clone()),
        (Sum, Some(some), int()),
        (Min, Some(some), int()),
        (Avg, Some(some), double()),
        (Max, Some(some), int()),
        (Avg, Some(quarters), double()),
        (Sum, Some(quarters), double()),
    ];
    if value == Value::Int {
        all.push((SumDistinct, Some(x), int()));
        all.push((AvgDistinct, Some(x), double()));
    }
    if plain {
        all.push((CountDistinct, Some(other), count));
    }
    let folds = folds(&mut query, &all);
    let keys: Vec<Var> = keys.iter().map(|key| vars[*key]).collect();
    let results = folds.iter().map(|fold| fold.var);
    let vars = keys.iter().copied().chain(results).collect();
    let root = Rel::Fold {
        input: Box::new(input),
        keys,
        folds,
    };
    prepared(query, root, vars)
}

/// The sorted rows of the answer as texts, and what is told of them.
fn run(
    prepared: &Arc<Prepared>,
    runtime: &Runtime,
    execution: &Execution,
) -> (Vec<String>, Vec<String>) {
    let (prepared, own, execution) = (prepared.clone(), runtime.clone(), execution.clone());
    let run = async move { prepared.run_by(&own, &execution).await };
    let (batches, told) = runtime.workers.block_on(run).unwrap();
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
    all.sort();
    (all, told)
}

/// Whether a program keeps sets of distinct values.
fn has_sets(prepared: &Prepared) -> bool {
    let lines = prepared.explain();
    lines.iter().any(|line| line.contains("countdistinct("))
}

#[test]
fn groups_of_distinct_values_give_what_sets_of_them_give() {
    let runtime = runtime::on("2x1", 2);
    let cases: [(Value, &[usize]); 6] = [
        (Value::Int, &[]),
        (Value::Int, &[2]),
        (Value::Float, &[]),
        (Value::Float, &[2, 3]),
        (Value::Text, &[]),
        (Value::Text, &[3, 2]),
    ];
    for (value, keys) in cases {
        let plain = grouped(value, keys, true);
        let groups = grouped(value, keys, false);
        assert!(has_sets(&plain) && !has_sets(&groups), "{value:?} {keys:?}");
        let (wanted, _) = run(&plain, &runtime, &Execution::default());
        let without_last = |line: &String| line.rsplit_once('|').unwrap().0.to_string();
        let mut wanted: Vec<String> = wanted.iter().map(without_last).collect();
        wanted.sort();
        for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
            for room in [None, Some(20_000)] {
                let mut execution = Execution::by(executor);
                execution.spill = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).into());
                execution.max_rows_before_spill = room;
                let (found, told) = run(&groups, &runtime, &execution);
                let name = format!("{value:?} {keys:?} {executor:?} {room:?}");
                let different = wanted.iter().zip(&found).find(|(a, b)| a != b);
                assert_eq!(different, None, "{name}");
                assert_eq!(wanted.len(), found.len(), "{name}");
                let is_spilled = told.iter().any(|line| line.contains("KiB spilled so far"));
                assert_eq!(is_spilled, room.is_some(), "{name}: {told:?}");
                assert_eq!(runtime.budget.used(), 0, "{name}");
            }
        }
    }
}

/// Both zeros are one value, and so are all NaNs.
#[test]
fn floats_are_distinct_as_keys_are() {
    let runtime = runtime::on("2x1", 2);
    let numbers = (0..ROWS).filter_map(number);
    let bits = numbers.map(|number| match float(number) {
        v if v.is_nan() => f64::NAN.to_bits(),
        v => (v + 0.0).to_bits(),
    });
    let count = bits.collect::<BTreeSet<u64>>().len();
    for plain in [false, true] {
        let prepared = grouped(Value::Float, &[], plain);
        let (found, _) = run(&prepared, &runtime, &Execution::default());
        let first = found[0].split('|').next();
        assert_eq!(first, Some(count.to_string().as_str()), "{plain}");
    }
}

/// No row is left by a filter that is taken to leave many: without keys there is one group all the same.
#[test]
fn no_rows_have_no_distinct_values() {
    use Function::{Avg, AvgDistinct, Count, CountDistinct, Max, Sum, SumDistinct};
    let many = 6 * ROWS;
    let runtime = runtime::on("2x1", 2);
    for has_key in [false, true] {
        let mut query = Query::default();
        let numbers = || Arc::new(Int64Array::from_iter_values(0..many)) as ArrayRef;
        let (input, vars) = relation(&mut query, &[numbers(), numbers()]);
        let below = Expr::literal(Literal::Int(0), &DataType::Int64).unwrap();
        let predicate = engine::compare(Compare::Lt, query.expr(vars[1]), below).unwrap();
        let input = Rel::Filter {
            input: Box::new(input),
            predicate,
        };
        let x = Some(vars[0]);
        let all = [
            (CountDistinct, x, int().nullable(false)),
            (SumDistinct, x, int()),
            (AvgDistinct, x, double()),
            (Count, None, int().nullable(false)),
            (Sum, Some(vars[1]), int()),
            (Avg, Some(vars[1]), double()),
            (Max, Some(vars[1]), int()),
        ];
        let folds = folds(&mut query, &all);
        let results = folds.iter().map(|fold| fold.var).collect();
        let root = Rel::Fold {
            input: Box::new(input),
            keys: if has_key { vec![vars[1]] } else { vec![] },
            folds,
        };
        let prepared = prepared(query, root, results);
        assert!(!has_sets(&prepared));
        for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
            let (found, _) = run(&prepared, &runtime, &Execution::by(executor));
            let wanted: &[&str] = if has_key { &[] } else { &["0|||0|||"] };
            assert_eq!(found, wanted, "{executor:?}");
        }
    }
}
