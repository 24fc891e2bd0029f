//! Long frames, and windows that share a sort.

use std::path::Path;

use engine::{
    Distance, Execution, FrameBounds, FrameEdge, FrameExclusion, FrameUnits, Function,
    WindowFunction,
};

use crate::model::{Case, Cell, Column, Row, expected, expected_at};
use crate::run::{answer, answer_of, prepared_all};
use crate::runtime;

const ROWS: i64 = 3_000;

/// A row of one partition, with values whose sums have no digits to lose.
fn long_row(i: i64) -> Row {
    let float = if i % 7 == 0 {
        Cell::Null
    } else {
        Cell::Float((i * 37 % 101) as f64)
    };
    [
        Cell::Int(i),
        Cell::Int(0),
        Cell::Int(i / 3),
        float,
        Cell::Text(format!("{}", i * 31 % 997)),
        Cell::Int(i * 37 % 101),
    ]
}

/// Frames of hundreds of rows.
fn long_bounds() -> [(FrameUnits, FrameEdge, FrameEdge); 5] {
    [
        (
            FrameUnits::Rows,
            FrameEdge::Preceding(700),
            FrameEdge::Current,
        ),
        (FrameUnits::Rows, FrameEdge::Current, FrameEdge::Last),
        (
            FrameUnits::Rows,
            FrameEdge::Preceding(900),
            FrameEdge::Preceding(300),
        ),
        (
            FrameUnits::Groups,
            FrameEdge::Preceding(200),
            FrameEdge::Following(100),
        ),
        (
            FrameUnits::Range,
            FrameEdge::PrecedingBy(Distance::Whole(300)),
            FrameEdge::FollowingBy(Distance::Whole(1)),
        ),
    ]
}

/// One partition of so many rows that frames are put together from parts.
#[test]
fn long_frames_are_put_together_from_parts() {
    let exclusions = [
        FrameExclusion::None,
        FrameExclusion::Current,
        FrameExclusion::Group,
        FrameExclusion::Ties,
    ];
    let runtime = runtime::on("live", 2);
    for (units, start, end) in long_bounds() {
        // Without peers each row has its place.
        let key = match units {
            FrameUnits::Rows => Column::I,
            _ => Column::O,
        };
        for exclude in exclusions {
            let frame = FrameBounds {
                units,
                start,
                end,
                exclude,
            };
            let aggregate = |function| WindowFunction::Aggregate(function, frame);
            let case = Case {
                rows: (0..ROWS).map(long_row).collect(),
                partition: vec![Column::P],
                order: vec![(key, false, false)],
                functions: vec![
                    (aggregate(Function::Sum), Some(Column::F)),
                    (aggregate(Function::Sum), Some(Column::V)),
                    (aggregate(Function::Count), Some(Column::F)),
                    (aggregate(Function::Min), Some(Column::V)),
                    (aggregate(Function::Max), Some(Column::F)),
                    (aggregate(Function::StddevPop), Some(Column::F)),
                ],
            };
            let found = answer(&case, &runtime, &Execution::default()).unwrap();
            // Rows are in the order of their numbers, so that frames are told by places.
            let sorted: Vec<&Row> = case.rows.iter().collect();
            for at in (0..ROWS as usize).step_by(97) {
                let wanted = expected_at(&case, &sorted, at);
                let (number, found) = &found[at];
                assert_eq!(*number, at as i64);
                for (found, wanted) in found.iter().zip(&wanted) {
                    assert!(found.same(wanted), "{frame:?}, {at}: {found:?}, {wanted:?}");
                }
            }
        }
    }
}

#[test]
fn windows_whose_keys_begin_alike_share_a_sort() {
    let functions = || {
        let frame = FrameBounds::new(FrameUnits::Range, FrameEdge::First, FrameEdge::Current);
        vec![
            (WindowFunction::Rank, None),
            (
                WindowFunction::Aggregate(Function::Sum, frame),
                Some(Column::V),
            ),
        ]
    };
    let row = |i: i64| {
        let small = |v: i64| if v == 0 { Cell::Null } else { Cell::Int(v) };
        [
            Cell::Int(i),
            small(i % 5),
            small(i * 7 % 11),
            Cell::Float((i % 3) as f64),
            Cell::Text(format!("{}", i % 4)),
            Cell::Int(i),
        ]
    };
    let case = |partition: &[Column], order: &[(Column, bool, bool)]| Case {
        rows: (0..200).map(row).collect(),
        partition: partition.to_vec(),
        order: order.to_vec(),
        functions: functions(),
    };
    let (up, down) = (false, true);
    let cases = [
        case(&[Column::P, Column::T], &[(Column::O, down, true)]),
        case(&[Column::P], &[]),
        case(&[Column::F], &[(Column::O, up, false)]),
        case(
            &[Column::T, Column::P],
            &[(Column::O, down, true), (Column::F, up, false)],
        ),
        case(&[], &[(Column::P, up, false)]),
        case(&[Column::P], &[(Column::T, up, false)]),
    ];
    let all: Vec<&Case> = cases.iter().collect();
    let lines = prepared_all(&all).unwrap().explain();
    let stages = lines.iter().filter(|line| line.contains(": window"));
    assert_eq!(stages.count(), 2, "{lines:?}");
    for room in [None, Some(30)] {
        let mut execution = Execution::default();
        if let Some(room) = room {
            execution.spill = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).into());
            execution.max_rows_before_spill = Some(room);
        }
        let runtime = runtime::on("live", 2);
        let found = answer_of(prepared_all(&all).unwrap(), &runtime, &execution).unwrap();
        let wanted: Vec<Vec<Vec<Cell>>> = cases.iter().map(expected).collect();
        assert_eq!(found.len(), 200);
        for (row, (number, found)) in found.iter().enumerate() {
            assert_eq!(*number, row as i64);
            let wanted = wanted.iter().flat_map(|own| &own[row]);
            assert!(found.iter().zip(wanted).all(|(a, b)| a.same(b)), "{row}");
        }
        assert_eq!(runtime.budget.used(), 0);
    }
}
