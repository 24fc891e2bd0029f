//! Window functions against a model that looks, for each row, at all rows of its partition: over random rows with NULL,
//! NaN and repeated keys, with any frame, by every executor, in memory and spilled.

mod cases;
mod frames;
mod model;
mod run;
#[path = "../runtime/mod.rs"]
mod runtime;

use std::cmp::Ordering;
use std::path::Path;

use cases::cases;
use engine::{
    Error, Execution, Executor, FrameBounds, FrameEdge, FrameUnits, Function, Literal, Runtime,
    WindowFunction,
};
use model::{Case, Cell, Column, Row, cell, expected, ordered};
use proptest::prelude::*;
use run::{Answer, answer, prepared};

fn check(case: &Case, runtime: &Runtime, execution: &Execution) {
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
    let found = answer(&case, runtime, execution);
    let found = found.unwrap_or_else(|e| panic!("{e}: {case:?}"));
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
        ignore_nulls: false,
    };
    let lead = WindowFunction::Shift {
        rows: -1,
        default: Literal::Text("none".into()),
        ignore_nulls: false,
    };
    let start = FrameEdge::Preceding(1);
    let frame = FrameBounds::new(FrameUnits::Rows, start, FrameEdge::Current);
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
    let frame = |start| FrameBounds::new(FrameUnits::Rows, start, FrameEdge::Current);
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
    let start = FrameEdge::Preceding(2);
    let frame = FrameBounds::new(FrameUnits::Rows, start, FrameEdge::Current);
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
