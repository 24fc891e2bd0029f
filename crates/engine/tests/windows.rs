//! Window functions against a model that looks, for each row, at all rows of its partition: over random rows with NULL,
//! NaN and repeated keys, with any frame, by every executor, in memory and spilled.

mod runtime;
mod window_model;

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringViewArray,
};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use engine::{
    Error, Execution, Executor, FrameBounds, FrameEdge, Function, Key, Literal, Output, Query, Rel,
    Runtime, Type, Var, WindowFold, WindowFunction,
};
use proptest::prelude::*;
use window_model::{COLUMNS, Case, Cell, Column, Row, cell, expected, ordered};

fn data(column: Column) -> DataType {
    match column {
        Column::F => DataType::Float64,
        Column::T => DataType::Utf8View,
        _ => DataType::Int64,
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let array = |column: Column| -> ArrayRef {
        let cells = rows.iter().map(|row| cell(row, column));
        match column {
            Column::F => Arc::new(Float64Array::from_iter(cells.map(|cell| match cell {
                Cell::Float(v) => Some(*v),
                _ => None,
            }))),
            Column::T => Arc::new(StringViewArray::from_iter(cells.map(|cell| match cell {
                Cell::Text(v) => Some(v.clone()),
                _ => None,
            }))),
            _ => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
                Cell::Int(v) => Some(*v),
                _ => None,
            }))),
        }
    };
    let columns = COLUMNS.map(|column| (format!("{column:?}"), array(column), true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The data type of a function's result.
fn result_of(function: &WindowFunction, arg: Option<Column>) -> DataType {
    match function {
        WindowFunction::PercentRank
        | WindowFunction::CumeDist
        | WindowFunction::Aggregate(Function::Avg, _) => DataType::Float64,
        WindowFunction::Aggregate(Function::Count, _) => DataType::Int64,
        _ => arg.map_or(DataType::Int64, data),
    }
}

fn ty(data: &DataType) -> Type {
    Type::of(data, true).unwrap()
}

fn prepared(case: &Case) -> engine::Result<engine::Prepared> {
    let mut query = Query::default();
    let vars: Vec<Var> = COLUMNS
        .iter()
        .map(|column| query.add(format!("{column:?}"), ty(&data(*column))))
        .collect();
    let var = |column: Column| vars[column as usize];
    let rows = Rel::Values {
        vars: vars.clone(),
        batch: batch(&case.rows),
    };
    let functions = case.functions.iter().map(|(function, arg)| WindowFold {
        var: query.add("result", ty(&result_of(function, *arg))),
        function: function.clone(),
        arg: arg.map(var),
    });
    let functions: Vec<WindowFold> = functions.collect();
    let mut out = vec![var(Column::I)];
    out.extend(functions.iter().map(|fold| fold.var));
    let order = case.order.iter();
    let order = order.map(|(column, descending, nulls_first)| Key {
        var: var(*column),
        descending: *descending,
        nulls_first: *nulls_first,
    });
    let root = Rel::Window {
        input: Box::new(rows),
        partition: case.partition.iter().map(|column| var(*column)).collect(),
        order: order.collect(),
        functions,
    };
    let fields = out.iter().map(|var| {
        let data = query.ty(*var).data.clone();
        Field::new(format!("c{var}"), data, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    engine::prepare(query, root, Output { vars: out, schema })
}

fn cells(array: &ArrayRef) -> Vec<Cell> {
    let cell = |row: usize| match array.data_type() {
        _ if array.is_null(row) => Cell::Null,
        DataType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row)),
        _ => Cell::Text(array.as_string_view().value(row).into()),
    };
    (0..array.len()).map(cell).collect()
}

/// The answer: the number of each row, and the results, in the order of the numbers.
fn answer(case: &Case, runtime: &Runtime, execution: &Execution) -> engine::Result<Vec<Answer>> {
    let prepared = prepared(case)?;
    let (own, execution) = (runtime.clone(), execution.clone());
    let run = async move { prepared.run_by(&own, &execution).await };
    let (batches, _) = runtime.workers.block_on(run)?;
    let mut all = Vec::new();
    for batch in &batches {
        let columns: Vec<Vec<Cell>> = batch.columns().iter().map(cells).collect();
        for row in 0..batch.num_rows() {
            let Cell::Int(number) = columns[0][row] else {
                panic!("a row without a number");
            };
            let results = columns[1..].iter().map(|column| column[row].clone());
            all.push((number, results.collect()));
        }
    }
    all.sort_by_key(|(number, _)| *number);
    Ok(all)
}

fn frames() -> impl Strategy<Value = FrameBounds> {
    let near = |first: FrameEdge| {
        prop_oneof![
            Just(first),
            (0u64..4).prop_map(FrameEdge::Preceding),
            Just(FrameEdge::Current),
            (0u64..4).prop_map(FrameEdge::Following),
            Just(FrameEdge::Preceding(u64::MAX)),
        ]
    };
    let of_peers = |first: FrameEdge| prop_oneof![Just(first), Just(FrameEdge::Current)];
    prop_oneof![
        (near(FrameEdge::First), near(FrameEdge::Last)).prop_map(|(start, end)| FrameBounds {
            peers: false,
            start,
            end
        }),
        (of_peers(FrameEdge::First), of_peers(FrameEdge::Last)).prop_map(|(start, end)| {
            FrameBounds {
                peers: true,
                start,
                end,
            }
        }),
    ]
}

fn functions() -> impl Strategy<Value = (WindowFunction, Option<Column>)> {
    let columns = || prop::sample::select(COLUMNS.to_vec());
    let aggregates = vec![
        Function::Count,
        Function::Sum,
        Function::Min,
        Function::Max,
        Function::Avg,
    ];
    prop_oneof![
        prop::sample::select(vec![
            (WindowFunction::RowNumber, None),
            (WindowFunction::Rank, None),
            (WindowFunction::DenseRank, None),
            (WindowFunction::PercentRank, None),
            (WindowFunction::CumeDist, None),
            (WindowFunction::Ntile(1), None),
            (WindowFunction::Ntile(3), None),
            (WindowFunction::Ntile(1_000), None),
        ]),
        (columns(), -3i64..4, any::<bool>()).prop_map(|(arg, rows, or_null)| {
            let default = match data(arg) {
                _ if or_null => Literal::Null,
                DataType::Float64 => Literal::Float(7.5),
                DataType::Utf8View => Literal::Text("a default longer than twelve".into()),
                _ => Literal::Int(-7),
            };
            (WindowFunction::Shift { rows, default }, Some(arg))
        }),
        (columns(), frames(), 0u64..5).prop_map(|(arg, frame, nth)| {
            let function = match nth {
                0 => WindowFunction::FirstValue(frame),
                1 => WindowFunction::LastValue(frame),
                nth => WindowFunction::NthValue(frame, nth - 1),
            };
            (function, Some(arg))
        }),
        (columns(), frames(), prop::sample::select(aggregates)).prop_map(
            |(arg, frame, function)| {
                let sums = matches!(function, Function::Sum | Function::Avg);
                let arg = if sums && arg == Column::T {
                    Column::V
                } else {
                    arg
                };
                (WindowFunction::Aggregate(function, frame), Some(arg))
            }
        ),
        frames().prop_map(|frame| (WindowFunction::Aggregate(Function::Count, frame), None)),
    ]
}

/// Whether a function gives the same for all peers of a row, in whatever order they are.
fn is_of_peers(function: &WindowFunction) -> bool {
    match function {
        WindowFunction::Rank
        | WindowFunction::DenseRank
        | WindowFunction::PercentRank
        | WindowFunction::CumeDist => true,
        WindowFunction::Aggregate(_, frame) => frame.peers,
        _ => false,
    }
}

prop_compose! {
    fn rows()(
        rows in prop::collection::vec((
            prop::option::of(0i64..4),
            prop::option::of(prop_oneof![Just(i64::MIN), Just(i64::MAX), -2i64..3]),
            prop::option::of(prop_oneof![Just(f64::NAN), (-4i64..5).prop_map(|v| v as f64 / 2.0 + 0.0)]),
            prop::option::of(prop::sample::select(vec!["", "a", "ab", "a text longer than twelve", "b"])),
            prop::option::of(-1_000_000_000_000i64..1_000_000_000_000),
        ), 0..50),
    ) -> Vec<Row> {
        let int = |v: Option<i64>| v.map_or(Cell::Null, Cell::Int);
        rows.into_iter().enumerate().map(|(i, (p, o, f, t, v))| [
            Cell::Int(i as i64),
            int(p),
            int(o),
            f.map_or(Cell::Null, Cell::Float),
            t.map_or(Cell::Null, |t| Cell::Text(t.into())),
            int(v),
        ]).collect()
    }
}

prop_compose! {
    fn cases()(
        rows in rows(),
        partition in prop::sample::subsequence(vec![Column::P, Column::F, Column::T], 0..3),
        order in prop::sample::subsequence(vec![Column::O, Column::F, Column::T, Column::P], 0..4),
        ways in prop::collection::vec((any::<bool>(), any::<bool>()), 4),
        unique: bool,
        functions in prop::collection::vec(functions(), 1..6),
    ) -> Case {
        let mut order: Vec<_> = order.into_iter().zip(ways).map(|(column, (a, b))| (column, a, b)).collect();
        if unique {
            order.push((Column::I, false, false));
        }
        let functions = functions.into_iter().filter(|(function, _)| unique || is_of_peers(function)).collect();
        Case { rows, partition, order, functions }
    }
}

fn check(case: &Case, runtime: &Runtime, execution: &Execution) {
    let floats = |(function, arg): &(WindowFunction, Option<Column>)| {
        let sums = matches!(
            function,
            WindowFunction::Aggregate(Function::Sum | Function::Avg, _)
        );
        sums && *arg == Some(Column::F)
    };
    // What fits 64 bits as a key may not as a sum.
    let large = |(function, arg): &(WindowFunction, Option<Column>)| {
        let sums = matches!(
            function,
            WindowFunction::Aggregate(Function::Sum | Function::Avg, _)
        );
        sums && *arg == Some(Column::O)
    };
    let mut case = case.clone();
    case.functions.retain(|one| !large(one));
    let found = match answer(&case, runtime, execution) {
        Ok(found) => found,
        // Digits would be lost: another engine has to do it.
        Err(Error::Unsupported(_)) if case.functions.iter().any(floats) => return,
        Err(e) => panic!("{e}: {case:?}"),
    };
    let wanted = expected(&case);
    assert_eq!(found.len(), wanted.len(), "{case:?}");
    for (row, ((number, found), wanted)) in found.iter().zip(&wanted).enumerate() {
        assert_eq!(*number, row as i64, "{case:?}");
        let pairs = found.iter().zip(wanted).zip(&case.functions);
        for ((found, wanted), function) in pairs {
            assert!(
                found.same(wanted),
                "row {row}, {function:?}: {found:?} instead of {wanted:?}: {case:?}"
            );
        }
        assert_eq!(found.len(), wanted.len());
    }
    assert_eq!(runtime.budget.used(), 0, "{case:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn functions_are_those_of_the_model(case in cases(), which in 0usize..3, room in prop::option::of(1usize..20)) {
        let executor = [Executor::Fused, Executor::Stream, Executor::Staged][which];
        let mut execution = Execution::by(executor);
        if let Some(room) = room {
            execution.spill = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).into());
            execution.max_rows_before_spill = Some(room);
        }
        check(&case, &runtime::on("live", 2), &execution);
    }
}

/// The number of a row, and what the functions gave for it.
type Answer = (i64, Vec<Cell>);

const MANY: i64 = 150_000;

/// So many rows that several workers sort them, and functions whose results are simple to tell.
fn many(partition: Vec<Column>, order: Vec<(Column, bool, bool)>) -> Case {
    let row = |i: i64| {
        [
            Cell::Int(i),
            Cell::Int(i % 97),
            Cell::Int(i * 7_919 % MANY),
            Cell::Float(i as f64),
            Cell::Text(format!("the text number {}", i % 1_000)),
            Cell::Int(i),
        ]
    };
    let lag = WindowFunction::Shift {
        rows: 1,
        default: Literal::Null,
    };
    let lead = WindowFunction::Shift {
        rows: -1,
        default: Literal::Text("none".into()),
    };
    let frame = FrameBounds {
        peers: false,
        start: FrameEdge::Preceding(1),
        end: FrameEdge::Current,
    };
    let sum = WindowFunction::Aggregate(Function::Sum, frame);
    Case {
        rows: (0..MANY).map(row).collect(),
        partition,
        order,
        functions: vec![
            (WindowFunction::RowNumber, None),
            (lag, Some(Column::V)),
            (lead, Some(Column::T)),
            (sum, Some(Column::V)),
        ],
    }
}

fn int(row: &Row, column: Column) -> i64 {
    match cell(row, column) {
        Cell::Int(v) => *v,
        other => panic!("{other:?}"),
    }
}

/// The results of the functions of [`many`].
fn wanted_of(case: &Case) -> Vec<Answer> {
    let partitions = |a: &Row, b: &Row| {
        let keys = case.partition.iter();
        keys.map(|key| cell(a, *key).compare(cell(b, *key)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    let mut sorted: Vec<&Row> = case.rows.iter().collect();
    sorted.sort_by(|a, b| partitions(a, b).then_with(|| ordered(case, a, b)));
    let mut wanted: Vec<Answer> = Vec::new();
    let mut number = 0;
    for (at, row) in sorted.iter().enumerate() {
        let near = |other: Option<&&Row>| -> Option<Row> {
            let other = other.filter(|other| partitions(other, row).is_eq())?;
            Some((*other).clone())
        };
        let before = near(at.checked_sub(1).and_then(|at| sorted.get(at)));
        let behind = near(sorted.get(at + 1));
        number = if before.is_some() { number + 1 } else { 1 };
        let last = before.map(|row| int(&row, Column::V));
        let text = behind.map(|row| cell(&row, Column::T).clone());
        let results = vec![
            Cell::Int(number),
            last.map_or(Cell::Null, Cell::Int),
            text.unwrap_or(Cell::Text("none".into())),
            Cell::Int(last.unwrap_or(0) + int(row, Column::V)),
        ];
        wanted.push((int(row, Column::I), results));
    }
    wanted.sort_by_key(|(number, _)| *number);
    wanted
}

#[test]
fn many_rows_are_those_of_one_worker() {
    let orders = [
        (vec![Column::P], vec![(Column::O, true, false)]),
        (vec![], vec![(Column::O, false, false)]),
        (
            vec![],
            vec![(Column::T, false, false), (Column::I, true, false)],
        ),
        (vec![Column::T], vec![(Column::F, false, true)]),
    ];
    for (partition, order) in orders {
        let case = many(partition, order);
        let wanted = wanted_of(&case);
        for threads in [1, 3] {
            let runtime = runtime::on("live", threads);
            let found = answer(&case, &runtime, &Execution::default()).unwrap();
            let is_same = |((a, x), (b, y)): &(&Answer, &Answer)| {
                a == b && x.iter().zip(y).all(|(x, y)| x.same(y))
            };
            let other = found.iter().zip(&wanted).find(|pair| !is_same(pair));
            assert!(other.is_none(), "{other:?}");
            assert_eq!(found.len(), wanted.len());
            assert_eq!(runtime.budget.used(), 0);
        }
    }
}

#[test]
fn sums_that_do_not_fit_are_errors() {
    let row = |i: i64| {
        let large = Cell::Int(i64::MAX - 1);
        [
            Cell::Int(i),
            Cell::Int(0),
            large.clone(),
            Cell::Null,
            Cell::Null,
            large,
        ]
    };
    let frame = |start| FrameBounds {
        peers: false,
        start,
        end: FrameEdge::Current,
    };
    let case = |start| Case {
        rows: (0..3).map(row).collect(),
        partition: vec![],
        order: vec![(Column::I, false, false)],
        functions: vec![(
            WindowFunction::Aggregate(Function::Sum, frame(start)),
            Some(Column::V),
        )],
    };
    let runtime = runtime::on("live", 2);
    let run = |start| answer(&case(start), &runtime, &Execution::default());
    let error = run(FrameEdge::First).unwrap_err();
    assert!(matches!(error, Error::Overflow { .. }), "{error}");
    // Each frame alone fits.
    let found = run(FrameEdge::Current).unwrap();
    assert!(
        found
            .iter()
            .all(|(_, row)| row[0].same(&Cell::Int(i64::MAX - 1)))
    );
}

#[test]
fn plans_show_windows() {
    let frame = FrameBounds {
        peers: false,
        start: FrameEdge::Preceding(2),
        end: FrameEdge::Current,
    };
    let case = Case {
        rows: vec![],
        partition: vec![Column::P],
        order: vec![(Column::O, false, false)],
        functions: vec![
            (WindowFunction::Rank, None),
            (
                WindowFunction::Aggregate(Function::Sum, frame),
                Some(Column::V),
            ),
            (WindowFunction::Aggregate(Function::Count, frame), None),
        ],
    };
    let lines = prepared(&case).unwrap().explain();
    assert_eq!(
        lines[0],
        "stage 0: window by krao(P) in order of (O): rank(), \
         sum(V) rows between 2 preceding and current row, \
         count(*) rows between 2 preceding and current row"
    );
}
