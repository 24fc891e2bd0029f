//! The model of window functions: it looks, for each row, at all rows of its partition.

use std::cmp::Ordering;

use engine::{FrameBounds, FrameEdge, Function, Literal, WindowFunction};

#[derive(Clone, Debug)]
pub enum Cell {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
}

impl Cell {
    /// The order of two values that are not NULL.
    pub fn compare(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Int(a), Cell::Int(b)) => a.cmp(b),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (Cell::Float(a), Cell::Float(b)) if a.is_nan() || b.is_nan() => {
                a.is_nan().cmp(&b.is_nan())
            }
            (Cell::Float(a), Cell::Float(b)) => a.partial_cmp(b).unwrap(),
            _ => panic!("{self:?} and {other:?}"),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Cell::Null)
    }

    pub fn same(&self, other: &Cell) -> bool {
        match (self.is_null(), other.is_null()) {
            (false, false) => self.compare(other).is_eq(),
            (a, b) => a == b,
        }
    }
}

/// The columns: `i` numbers the rows, `p` and `o` repeat, `f` has NaN, and `v` may be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    I,
    P,
    O,
    F,
    T,
    V,
}

pub const COLUMNS: [Column; 6] = [
    Column::I,
    Column::P,
    Column::O,
    Column::F,
    Column::T,
    Column::V,
];

pub type Row = [Cell; 6];

pub fn cell(row: &Row, column: Column) -> &Cell {
    &row[column as usize]
}

#[derive(Clone, Debug)]
pub struct Case {
    pub rows: Vec<Row>,
    pub partition: Vec<Column>,
    pub order: Vec<(Column, bool, bool)>,
    pub functions: Vec<(WindowFunction, Option<Column>)>,
}

/// Compares two rows by the order of a case.
pub fn ordered(case: &Case, a: &Row, b: &Row) -> Ordering {
    for (column, descending, nulls_first) in &case.order {
        let (x, y) = (cell(a, *column), cell(b, *column));
        let order = match (x.is_null(), y.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if *nulls_first => Ordering::Less,
            (false, true) if !*nulls_first => Ordering::Less,
            (true, false) | (false, true) => Ordering::Greater,
            (false, false) if *descending => y.compare(x),
            (false, false) => x.compare(y),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Whether row `other` of a sorted partition is in the frame of row `row`.
fn in_frame(frame: FrameBounds, row: usize, other: usize, order: Ordering) -> bool {
    let (row, other) = (row as i128, other as i128);
    // `order` is that of the other row and this one.
    let not_before = if frame.peers {
        order.is_ge()
    } else {
        other >= row
    };
    let not_behind = if frame.peers {
        order.is_le()
    } else {
        other <= row
    };
    let begun = match frame.start {
        FrameEdge::First => true,
        FrameEdge::Preceding(rows) => other >= row - i128::from(rows),
        FrameEdge::Current => not_before,
        FrameEdge::Following(rows) => other >= row + i128::from(rows),
        FrameEdge::Last => false,
    };
    let open = match frame.end {
        FrameEdge::First => false,
        FrameEdge::Preceding(rows) => other <= row - i128::from(rows),
        FrameEdge::Current => not_behind,
        FrameEdge::Following(rows) => other <= row + i128::from(rows),
        FrameEdge::Last => true,
    };
    begun && open
}

fn aggregate(function: Function, values: &[Cell]) -> Cell {
    let there: Vec<&Cell> = values.iter().filter(|value| !value.is_null()).collect();
    let ints = || {
        let int = |value: &&Cell| match value {
            Cell::Int(v) => *v,
            other => panic!("{other:?}"),
        };
        there.iter().map(int).sum::<i64>()
    };
    let floats = || {
        let float = |value: &&Cell| match value {
            Cell::Float(v) => *v,
            other => panic!("{other:?}"),
        };
        there.iter().map(float).fold(0.0, |sum, v| sum + v)
    };
    let whole = matches!(there.first(), Some(Cell::Int(_)));
    match function {
        Function::Count => Cell::Int(there.len() as i64),
        _ if there.is_empty() => Cell::Null,
        Function::Min => (*there.iter().min_by(|a, b| a.compare(b)).unwrap()).clone(),
        Function::Max => (*there.iter().max_by(|a, b| a.compare(b)).unwrap()).clone(),
        Function::Sum if whole => Cell::Int(ints()),
        Function::Sum => Cell::Float(floats()),
        Function::Avg if whole => Cell::Float(ints() as f64 / there.len() as f64),
        Function::Avg => Cell::Float(floats() / there.len() as f64),
        other => panic!("{other:?}"),
    }
}

/// The result of a function for row `at` of a sorted partition.
fn model(
    case: &Case,
    rows: &[&Row],
    at: usize,
    function: &WindowFunction,
    arg: Option<Column>,
) -> Cell {
    let all = rows.len();
    let before = |row: &&&Row| ordered(case, row, rows[at]).is_lt();
    let smaller = rows.iter().filter(before).count();
    let until = rows
        .iter()
        .filter(|row| ordered(case, row, rows[at]).is_le())
        .count();
    let groups = (1..=at).filter(|row| ordered(case, rows[row - 1], rows[*row]).is_ne());
    let value = |row: usize| match arg {
        Some(arg) => cell(rows[row], arg).clone(),
        None => Cell::Int(1),
    };
    let framed = |frame: FrameBounds| -> Vec<Cell> {
        let within =
            |other: &usize| in_frame(frame, at, *other, ordered(case, rows[*other], rows[at]));
        (0..all).filter(within).map(value).collect()
    };
    let or_null = |value: Option<&Cell>| value.cloned().unwrap_or(Cell::Null);
    match function {
        WindowFunction::RowNumber => Cell::Int(at as i64 + 1),
        WindowFunction::Rank => Cell::Int(smaller as i64 + 1),
        WindowFunction::DenseRank => Cell::Int(groups.count() as i64 + 1),
        WindowFunction::PercentRank if all == 1 => Cell::Float(0.0),
        WindowFunction::PercentRank => Cell::Float(smaller as f64 / (all - 1) as f64),
        WindowFunction::CumeDist => Cell::Float(until as f64 / all as f64),
        WindowFunction::Ntile(buckets) => {
            let buckets = *buckets as usize;
            let mut end = 0;
            let bucket = (1..).find(|bucket| {
                end += all / buckets + usize::from(*bucket <= all % buckets);
                at < end
            });
            Cell::Int(bucket.unwrap() as i64)
        }
        WindowFunction::Shift { rows: by, default } => {
            let other = at as i128 - i128::from(*by);
            if (0..all as i128).contains(&other) {
                return value(other as usize);
            }
            match default {
                Literal::Null => Cell::Null,
                Literal::Int(v) => Cell::Int(*v),
                Literal::Float(v) => Cell::Float(*v),
                Literal::Text(v) => Cell::Text(v.clone()),
                other => panic!("{other:?}"),
            }
        }
        WindowFunction::FirstValue(frame) => or_null(framed(*frame).first()),
        WindowFunction::LastValue(frame) => or_null(framed(*frame).last()),
        WindowFunction::NthValue(frame, nth) => or_null(framed(*frame).get(*nth as usize - 1)),
        WindowFunction::Aggregate(function, frame) => aggregate(*function, &framed(*frame)),
    }
}

/// The results of all functions for each row of the case, in the order of `i`.
pub fn expected(case: &Case) -> Vec<Vec<Cell>> {
    let result = |row: &Row| {
        let same = |other: &&Row| {
            let mut keys = case.partition.iter();
            keys.all(|key| cell(other, *key).same(cell(row, *key)))
        };
        let mut rows: Vec<&Row> = case.rows.iter().filter(same).collect();
        rows.sort_by(|a, b| ordered(case, a, b));
        let own = |other: &&Row| cell(other, Column::I).same(cell(row, Column::I));
        let at = rows.iter().position(own).unwrap();
        let functions = case.functions.iter();
        functions
            .map(|(function, arg)| model(case, &rows, at, function, *arg))
            .collect()
    };
    case.rows.iter().map(result).collect()
}
