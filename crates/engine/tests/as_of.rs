//! As-of joins, and bands beside keys, against plain loops: repeated keys, NULL, infinities and NaN, no rows at all, whole numbers and
//! floats, keys of numbers and of texts, little room.

mod runtime;

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringViewArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{
    AsOf, Compare, Execution, Executor, Key, NumaPolicy, Output, Prepared, Query, Rel, Runtime,
    Type, Var, compare,
};
use proptest::prelude::*;

/// A row: key, number, and which of several it is.
type Row = (Option<i64>, Option<i64>, i64);

/// How keys and numbers are kept.
#[derive(Clone, Copy, Debug)]
struct Shape {
    keyed: bool,
    text_keys: bool,
    wide_keys: bool,
    floats: bool,
}

/// Floats for numbers, in their order.
const FLOATS: [f64; 8] = [
    f64::NEG_INFINITY,
    -3.5,
    -1.0,
    0.0,
    0.25,
    7.0,
    f64::INFINITY,
    f64::NAN,
];

struct Side {
    rel: Rel,
    key: Var,
    number: Var,
    id: Var,
}

fn side(query: &mut Query, name: &str, rows: &[Row], shape: Shape) -> Side {
    let keys: ArrayRef = match shape {
        Shape { text_keys, .. } if text_keys => {
            let texts = rows
                .iter()
                .map(|row| row.0.map(|key| format!("the key number {key}")));
            Arc::new(StringViewArray::from_iter(texts))
        }
        Shape { wide_keys, .. } => {
            let spread = if wide_keys { 1 << 40 } else { 1 };
            let all = rows.iter().map(|row| row.0.map(|key| key * spread));
            Arc::new(Int64Array::from_iter(all))
        }
    };
    let numbers: ArrayRef = if shape.floats {
        // Every other zero is a negative one.
        let float = |row: &Row| {
            let value = FLOATS[(row.1? % 8) as usize];
            Some(if value == 0.0 && row.2 % 2 == 0 {
                -value
            } else {
                value
            })
        };
        Arc::new(Float64Array::from_iter(rows.iter().map(float)))
    } else {
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1)))
    };
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2)));
    let mut add = |what: &str, array: &ArrayRef| {
        let ty = Type::of(array.data_type(), true).unwrap();
        query.add(format!("{name}.{what}"), ty)
    };
    let (key, number, id) = (add("key", &keys), add("number", &numbers), add("id", &ids));
    let columns = [
        ("key", keys, true),
        ("number", numbers, true),
        ("id", ids, true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let rel = Rel::Values {
        vars: vec![key, number, id],
        batch,
    };
    Side {
        rel,
        key,
        number,
        id,
    }
}

fn prepared(query: Query, root: Rel, vars: Vec<Var>) -> Arc<Prepared> {
    let field = |var: &Var| Field::new(format!("c{var}"), DataType::Int64, true);
    let schema = Arc::new(Schema::new(vars.iter().map(field).collect::<Vec<_>>()));
    Arc::new(engine::prepare(query, root, Output { vars, schema }).unwrap())
}

/// The pairs of ids that a query gives, in their order.
fn run(
    prepared: &Arc<Prepared>,
    runtime: &Runtime,
    execution: &Execution,
) -> Vec<(Option<i64>, Option<i64>)> {
    let (prepared, own, execution) = (prepared.clone(), runtime.clone(), execution.clone());
    let run = async move { prepared.run_by(&own, &execution).await };
    let (batches, _) = runtime.workers.block_on(run).unwrap();
    let mut all = vec![];
    for batch in &batches {
        let column = |place: usize| batch.column(place).as_primitive::<Int64Type>();
        let value = |place: usize, row: usize| {
            let column = column(place);
            column.is_valid(row).then(|| column.value(row))
        };
        all.extend((0..batch.num_rows()).map(|row| (value(0, row), value(1, row))));
    }
    all.sort_unstable();
    all
}

fn executions() -> Vec<Execution> {
    let mut all = vec![];
    for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
        all.push(Execution::by(executor));
        let mut small = Execution::by(executor);
        small.max_rows_before_spill = Some(16);
        small.spill = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).into());
        all.push(small);
    }
    let mut each_node = Execution::by(Executor::Fused);
    each_node.numa_policy = NumaPolicy::Distr;
    all.push(each_node);
    all
}

fn number(row: &Row, shape: Shape) -> Option<i64> {
    if shape.floats {
        Some(row.1? % 8)
    } else {
        row.1
    }
}

fn holds(op: Compare, of: i64, at: i64) -> bool {
    let order = of.cmp(&at);
    match op {
        Compare::Lt => order == Ordering::Less,
        Compare::Le => order != Ordering::Greater,
        Compare::Gt => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
struct Ask {
    shape: Shape,
    op: Compare,
    keeps: bool,
    /// Whether the other end of the range is that number of the left side, too.
    bounded: bool,
    descending: bool,
}

/// The nearest row of `right` to each of `left`, by a plain loop. Ids are unique, and decide between rows that are as near.
fn nearest(left: &[Row], right: &[Row], ask: Ask) -> Vec<(Option<i64>, Option<i64>)> {
    let mut all = vec![];
    for row in left {
        let at = number(row, ask.shape);
        let is_match = |other: &&Row| {
            let same = !ask.shape.keyed || row.0.is_some() && row.0 == other.0;
            let both = number(other, ask.shape).zip(at);
            let passes = |(of, at): (i64, i64)| {
                holds(ask.op, of, at)
                    && (!ask.bounded || !holds(opposite(ask.op), at, of) || of == at)
            };
            same && both.is_some_and(passes)
        };
        let upwards = matches!(ask.op, Compare::Gt | Compare::Ge);
        let distance = |other: &&Row| {
            let of = number(other, ask.shape).unwrap();
            let id = if ask.descending { -other.2 } else { other.2 };
            (
                if upwards {
                    i128::from(of)
                } else {
                    -i128::from(of)
                },
                id,
            )
        };
        let found = right.iter().filter(is_match).min_by_key(distance);
        if found.is_some() || ask.keeps {
            all.push((Some(row.2), found.map(|row| row.2)));
        }
    }
    all.sort_unstable();
    all
}

/// The comparison on the other side that only equal numbers pass beside `op`.
fn opposite(op: Compare) -> Compare {
    match op {
        Compare::Lt | Compare::Le => Compare::Gt,
        _ => Compare::Lt,
    }
}

fn as_of(left: &[Row], right: &[Row], ask: Ask) -> Arc<Prepared> {
    let mut query = Query::default();
    let own = side(&mut query, "l", left, ask.shape);
    let other = side(&mut query, "r", right, ask.shape);
    let found = query.add("found", Type::of(&DataType::Int64, true).unwrap());
    let equal = if ask.shape.keyed {
        vec![(own.key, other.key)]
    } else {
        vec![]
    };
    let bound = match ask.op {
        Compare::Lt | Compare::Le => Compare::Ge,
        _ => Compare::Le,
    };
    let root = Rel::AsOf(AsOf {
        left: Box::new(own.rel),
        right: Box::new(other.rel),
        equal,
        of: other.number,
        op: ask.op,
        at: own.number,
        bounds: if ask.bounded {
            vec![(bound, own.number)]
        } else {
            vec![]
        },
        ties: vec![Key {
            var: other.id,
            descending: ask.descending,
            nulls_first: false,
        }],
        keeps: ask.keeps,
        outer: vec![(other.id, found)],
    });
    prepared(query, root, vec![own.id, found])
}

/// The pairs of rows with the same key, of which the number of the right one lies within 2 below that of the left one.
fn band(left: &[Row], right: &[Row], shape: Shape) -> Arc<Prepared> {
    let mut query = Query::default();
    let own = side(&mut query, "l", left, shape);
    let other = side(&mut query, "r", right, shape);
    let (l, r) = (query.expr(own.number), query.expr(other.number));
    let residual = vec![compare(Compare::Le, r, l).unwrap()];
    let root = Rel::Join {
        inputs: vec![own.rel, other.rel],
        equal: vec![(own.key, other.key)],
        residual,
    };
    prepared(query, root, vec![own.id, other.id])
}

/// The pairs of rows of which the number of the left one lies between the number and the id of the right one, with the same key if
/// `shape` says so.
fn ranges(left: &[Row], right: &[Row], shape: Shape) -> Arc<Prepared> {
    let mut query = Query::default();
    let own = side(&mut query, "l", left, shape);
    let other = side(&mut query, "r", right, shape);
    let (from, to) = (query.expr(other.number), query.expr(other.id));
    let at = query.expr(own.number);
    let residual = vec![
        compare(Compare::Le, from, at.clone()).unwrap(),
        compare(Compare::Le, at, to).unwrap(),
    ];
    let root = Rel::Join {
        inputs: vec![own.rel, other.rel],
        equal: if shape.keyed {
            vec![(own.key, other.key)]
        } else {
            vec![]
        },
        residual,
    };
    prepared(query, root, vec![own.id, other.id])
}

fn side_rows() -> impl Strategy<Value = Vec<Row>> {
    let infinite = prop_oneof![Just(i64::MIN), Just(i64::MAX)];
    let number =
        prop_oneof![1 => Just(None), 8 => (0i64..24).prop_map(Some), 1 => infinite.prop_map(Some)];
    let key = prop_oneof![1 => Just(None), 9 => (0i64..4).prop_map(Some)];
    let rows = prop::collection::vec((key, number), 0..60);
    rows.prop_map(|rows| {
        let rows = rows.into_iter().zip(0i64..);
        rows.map(|((key, number), id)| (key, number, id)).collect()
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(keyed, text_keys, wide_keys, floats)| Shape {
            keyed,
            text_keys,
            wide_keys,
            floats,
        },
    )
}

fn fit(mut rows: Vec<Row>, shape: Shape) -> Vec<Row> {
    if shape.floats {
        rows.iter_mut()
            .for_each(|row| row.1 = row.1.map(|n| n.rem_euclid(8)));
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_nearest_row_is_that_of_a_plain_loop(
        left in side_rows(),
        right in side_rows(),
        shape in shape(),
        op in prop::sample::select(vec![Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge]),
        (keeps, bounded, descending) in (any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let (left, right) = (fit(left, shape), fit(right, shape));
        let ask = Ask { shape, op, keeps, bounded, descending };
        let runtime = runtime::on("2x2", 4);
        let wanted = nearest(&left, &right, ask);
        let query = as_of(&left, &right, ask);
        for execution in executions() {
            let found = run(&query, &runtime, &execution);
            prop_assert_eq!(&found, &wanted, "{:?} {:?}", ask, execution.executor);
        }
    }

    #[test]
    fn bands_beside_keys_leave_out_no_pair(left in side_rows(), right in side_rows(), mut shape in shape()) {
        shape.keyed = true;
        shape.floats = false;
        let runtime = runtime::on("2x2", 4);
        let mut wanted = vec![];
        for l in &left {
            for r in &right {
                let within = l.1.zip(r.1).is_some_and(|(l, r)| r <= l);
                if l.0.is_some() && l.0 == r.0 && within {
                    wanted.push((Some(l.2), Some(r.2)));
                }
            }
        }
        wanted.sort_unstable();
        let query = band(&left, &right, shape);
        for execution in executions() {
            prop_assert_eq!(&run(&query, &runtime, &execution), &wanted, "{:?}", execution.executor);
        }
    }

    #[test]
    fn ranges_of_the_build_side_leave_out_no_pair(left in side_rows(), right in side_rows(), mut shape in shape()) {
        shape.floats = false;
        let runtime = runtime::on("2x2", 4);
        let mut wanted = vec![];
        for l in &left {
            for r in &right {
                let within = l.1.zip(r.1).is_some_and(|(at, from)| from <= at && at <= r.2);
                let same = !shape.keyed || l.0.is_some() && l.0 == r.0;
                if same && within {
                    wanted.push((Some(l.2), Some(r.2)));
                }
            }
        }
        wanted.sort_unstable();
        let query = ranges(&left, &right, shape);
        for execution in executions() {
            prop_assert_eq!(&run(&query, &runtime, &execution), &wanted, "{:?}", execution.executor);
        }
    }
}

/// A large build side of one key is put in order once, and each probe finds its row by halving: pairs would be ten billion.
#[test]
fn many_rows_of_one_key_take_no_pairs() {
    let rows = |count: i64, step: i64| -> Vec<Row> {
        let row = |id: i64| (Some(7), Some(id * 7919 % count * step), id);
        (0..count).map(row).collect()
    };
    let (left, right) = (rows(100_000, 1), rows(100_000, 1));
    let shape = Shape {
        keyed: true,
        text_keys: false,
        wide_keys: false,
        floats: false,
    };
    let ask = Ask {
        shape,
        op: Compare::Le,
        keeps: true,
        bounded: false,
        descending: false,
    };
    let runtime = runtime::on("live", 2);
    let query = as_of(&left, &right, ask);
    let found = run(&query, &runtime, &Execution::by(Executor::Fused));
    assert_eq!(found.len(), 100_000);
    assert!(found.iter().all(|(own, other)| own == other));
}

/// A build side of many keys that are found by hash: all workers index it, and its rows are put in order key by key.
#[test]
fn the_nearest_of_many_hashed_keys_are_found() {
    let many = 270_000;
    let right = |id: i64| (Some(id * 7_919 % 90_001), Some(id / 90_001 * 300), id);
    let right: Vec<Row> = (0..many).map(right).collect();
    let left = |id: i64| (Some(id * 450), Some(id * 5), id);
    let left: Vec<Row> = (0..210).map(left).collect();
    let runtime = runtime::on("live", 2);
    for text_keys in [false, true] {
        let shape = Shape {
            keyed: true,
            text_keys,
            wide_keys: true,
            floats: false,
        };
        let ask = Ask {
            shape,
            op: Compare::Le,
            keeps: true,
            bounded: false,
            descending: false,
        };
        let found = run(
            &as_of(&left, &right, ask),
            &runtime,
            &Execution::by(Executor::Fused),
        );
        assert_eq!(found, nearest(&left, &right, ask));
    }
}
