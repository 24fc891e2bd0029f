//! Random windows over random rows.

use arrow::datatypes::DataType;
use engine::{
    Distance, FrameBounds, FrameEdge, FrameExclusion, FrameRow, FrameUnits, Function, Literal,
    WindowFunction,
};
use proptest::prelude::*;

use crate::model::{COLUMNS, Case, Cell, Column, Row};
use crate::run::data;

/// Frames. Distances between keys are still to be [fitted](fitted) to the key.
fn frames() -> impl Strategy<Value = FrameBounds> {
    let near = |far: FrameEdge| {
        prop_oneof![
            Just(far),
            (0u64..4).prop_map(FrameEdge::Preceding),
            Just(FrameEdge::Current),
            (0u64..4).prop_map(FrameEdge::Following),
            Just(FrameEdge::Preceding(u64::MAX)),
        ]
    };
    let by_key = |far: FrameEdge| {
        let by = || (0i128..4).prop_map(Distance::Whole);
        prop_oneof![
            Just(far),
            Just(FrameEdge::Current),
            by().prop_map(FrameEdge::PrecedingBy),
            by().prop_map(FrameEdge::FollowingBy),
        ]
    };
    let units = prop::sample::select(vec![FrameUnits::Rows, FrameUnits::Groups]);
    let exclude = prop::sample::select(vec![
        FrameExclusion::None,
        FrameExclusion::None,
        FrameExclusion::None,
        FrameExclusion::Current,
        FrameExclusion::Group,
        FrameExclusion::Ties,
    ]);
    let bounds = prop_oneof![
        (units, near(FrameEdge::First), near(FrameEdge::Last)),
        (
            Just(FrameUnits::Range),
            by_key(FrameEdge::First),
            by_key(FrameEdge::Last)
        ),
    ];
    (bounds, exclude).prop_map(|((units, start, end), exclude)| FrameBounds {
        units,
        start,
        end,
        exclude,
    })
}

/// The function with distances of the single key that the order has; without such a key, edges are at the row.
fn fitted(function: WindowFunction, order: &[(Column, bool, bool)]) -> WindowFunction {
    let distance = |distance: Distance| match (order, distance) {
        ([(Column::F, ..)], Distance::Whole(by)) => Some(Distance::Float(by as f64 / 2.0)),
        ([(Column::T, ..)], _) => None,
        ([_], by) => Some(by),
        _ => None,
    };
    let edge = |edge| match edge {
        FrameEdge::PrecedingBy(by) => {
            distance(by).map_or(FrameEdge::Current, FrameEdge::PrecedingBy)
        }
        FrameEdge::FollowingBy(by) => {
            distance(by).map_or(FrameEdge::Current, FrameEdge::FollowingBy)
        }
        edge => edge,
    };
    let fit = |frame: FrameBounds| FrameBounds {
        start: edge(frame.start),
        end: edge(frame.end),
        ..frame
    };
    match function {
        WindowFunction::Value {
            row,
            frame,
            ignore_nulls,
        } => WindowFunction::Value {
            row,
            frame: fit(frame),
            ignore_nulls,
        },
        WindowFunction::Aggregate(function, frame) => {
            WindowFunction::Aggregate(function, fit(frame))
        }
        other => other,
    }
}

type Called = (WindowFunction, Option<Column>);

fn columns() -> impl Strategy<Value = Column> {
    prop::sample::select(COLUMNS.to_vec())
}

/// Functions that depend on no frame.
fn unframed() -> impl Strategy<Value = Called> {
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
        (columns(), -3i64..4, any::<bool>(), any::<bool>()).prop_map(
            |(arg, rows, or_null, ignore)| {
                let default = match data(arg) {
                    _ if or_null => Literal::Null,
                    DataType::Float64 => Literal::Float(7.5),
                    DataType::Utf8View => Literal::Text("a default longer than twelve".into()),
                    _ => Literal::Int(-7),
                };
                let function = WindowFunction::Shift {
                    rows,
                    default,
                    ignore_nulls: ignore && rows != 0,
                };
                (function, Some(arg))
            }
        ),
    ]
}

/// An aggregate of values that it can have.
fn aggregate(arg: Column, frame: FrameBounds, function: Function) -> Called {
    let arg = match function {
        Function::Sum | Function::Avg if arg == Column::T => Column::V,
        Function::Count | Function::Min | Function::Max | Function::Sum | Function::Avg => arg,
        _ => Column::F,
    };
    (WindowFunction::Aggregate(function, frame), Some(arg))
}

fn functions() -> impl Strategy<Value = Called> {
    let aggregates = vec![
        Function::Count,
        Function::Sum,
        Function::Min,
        Function::Max,
        Function::Avg,
        Function::VarSamp,
        Function::VarPop,
        Function::StddevSamp,
        Function::StddevPop,
    ];
    prop_oneof![
        2 => unframed(),
        1 => (columns(), frames(), 0u64..5, any::<bool>()).prop_map(
            |(arg, frame, nth, ignore_nulls)| {
                let row = match nth {
                    0 => FrameRow::First,
                    1 => FrameRow::Last,
                    nth => FrameRow::Nth(nth - 1),
                };
                let function = WindowFunction::Value {
                    row,
                    frame,
                    ignore_nulls,
                };
                (function, Some(arg))
            }
        ),
        2 => (columns(), frames(), prop::sample::select(aggregates))
            .prop_map(|(arg, frame, function)| aggregate(arg, frame, function)),
        1 => frames().prop_map(|frame| (WindowFunction::Aggregate(Function::Count, frame), None)),
    ]
}

/// Whether a function gives the same for all peers of a row, in whatever order they are.
fn is_of_peers(function: &WindowFunction) -> bool {
    match function {
        WindowFunction::Rank
        | WindowFunction::DenseRank
        | WindowFunction::PercentRank
        | WindowFunction::CumeDist => true,
        WindowFunction::Aggregate(_, frame) => frame.units != FrameUnits::Rows,
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
    pub fn cases()(
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
        let functions = functions.into_iter().map(|(function, arg)| (fitted(function, &order), arg));
        let functions = functions.filter(|(function, _)| unique || is_of_peers(function)).collect();
        Case { rows, partition, order, functions }
    }
}
