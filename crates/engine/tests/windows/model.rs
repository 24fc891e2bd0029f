//! The model of window functions: it looks, for each row, at all rows of its partition.

use std::cmp::Ordering;

use engine::{
    Distance, FrameBounds, FrameEdge, FrameExclusion, FrameRow, FrameUnits, Function, Literal,
    WindowFunction,
};

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

    /// Whether they are the same, but for the last digits of floats: those of variances depend on how they are computed.
    pub fn same(&self, other: &Cell) -> bool {
        if let (Cell::Float(a), Cell::Float(b)) = (self, other)
            && (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
        {
            return true;
        }
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

/// The places of the rows of a sorted partition that distances of the frame are counted in.
fn places(case: &Case, rows: &[&Row], units: FrameUnits) -> Vec<i128> {
    if units != FrameUnits::Groups {
        return (0..rows.len() as i128).collect();
    }
    let mut group = 0;
    let of_row = |row: usize| {
        group += i128::from(row > 0 && ordered(case, rows[row - 1], rows[row]).is_ne());
        group
    };
    (0..rows.len()).map(of_row).collect()
}

/// Whether row `other` of a sorted partition is in the frame of row `at`.
fn in_frame(
    case: &Case,
    rows: &[&Row],
    (frame, places): (FrameBounds, &[i128]),
    at: usize,
    other: usize,
) -> bool {
    let order = ordered(case, rows[other], rows[at]);
    let (own, theirs) = (places[at], places[other]);
    let by_key = |distance, after, end| within(case, rows[at], rows[other], distance, after, end);
    let begun = match frame.start {
        FrameEdge::First => true,
        FrameEdge::Preceding(rows) => theirs >= own - i128::from(rows),
        FrameEdge::PrecedingBy(distance) => by_key(distance, false, false),
        FrameEdge::Current if frame.units == FrameUnits::Rows => theirs >= own,
        FrameEdge::Current => order.is_ge(),
        FrameEdge::Following(rows) => theirs >= own + i128::from(rows),
        FrameEdge::FollowingBy(distance) => by_key(distance, true, false),
        FrameEdge::Last => false,
    };
    let open = match frame.end {
        FrameEdge::First => false,
        FrameEdge::Preceding(rows) => theirs <= own - i128::from(rows),
        FrameEdge::PrecedingBy(distance) => by_key(distance, false, true),
        FrameEdge::Current if frame.units == FrameUnits::Rows => theirs <= own,
        FrameEdge::Current => order.is_le(),
        FrameEdge::Following(rows) => theirs <= own + i128::from(rows),
        FrameEdge::FollowingBy(distance) => by_key(distance, true, true),
        FrameEdge::Last => true,
    };
    let stays = match frame.exclude {
        FrameExclusion::None => true,
        FrameExclusion::Current => other != at,
        FrameExclusion::Group => order.is_ne(),
        FrameExclusion::Ties => other == at || order.is_ne(),
    };
    begun && open && stays
}

/// Whether the key of a row is on the inner side of an edge at a distance from that of another row.
fn within(case: &Case, own: &Row, other: &Row, distance: Distance, after: bool, end: bool) -> bool {
    let [(column, descending, _)] = case.order[..] else {
        panic!("a distance from several keys");
    };
    let most = end != descending;
    let sign = if after != descending { 1 } else { -1 };
    match (cell(own, column), cell(other, column), distance) {
        (Cell::Null, Cell::Null, _) => true,
        (Cell::Null, _, _) | (_, Cell::Null, _) => {
            let order = ordered(case, other, own);
            if end { order.is_le() } else { order.is_ge() }
        }
        (Cell::Int(own), Cell::Int(other), Distance::Whole(by)) => {
            let edge = i128::from(*own) + sign * by;
            let other = i128::from(*other);
            if most { other <= edge } else { other >= edge }
        }
        (Cell::Float(own), Cell::Float(other), Distance::Float(by)) => {
            let edge = own + sign as f64 * by;
            match (other.is_nan(), own.is_nan()) {
                (true, true) => true,
                (true, false) => !most,
                (false, true) => most,
                (false, false) if most => *other <= edge,
                (false, false) => *other >= edge,
            }
        }
        other => panic!("{other:?}"),
    }
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
        other => variance(other, &there),
    }
}

fn variance(function: Function, there: &[&Cell]) -> Cell {
    let values = there.iter().map(|value| match value {
        Cell::Float(v) => *v,
        other => panic!("{other:?}"),
    });
    let (fewer, root) = match function {
        Function::VarPop => (0, false),
        Function::StddevPop => (0, true),
        Function::VarSamp => (1, false),
        Function::StddevSamp => (1, true),
        other => panic!("{other:?}"),
    };
    let mean = values.clone().sum::<f64>() / there.len() as f64;
    let squares: f64 = values.map(|value| (value - mean) * (value - mean)).sum();
    match there.len() - fewer {
        0 => Cell::Null,
        freedom if root => Cell::Float((squares / freedom as f64).sqrt()),
        freedom => Cell::Float(squares / freedom as f64),
    }
}

/// The value so many rows before row `at` of a partition, or behind it if the number is negative.
fn shifted(values: &[Cell], at: usize, by: i64, default: &Literal, ignore_nulls: bool) -> Cell {
    let counts = |row: &usize| !ignore_nulls || !values[*row].is_null();
    let nth = by.unsigned_abs() as usize;
    let other = match by {
        0 => Some(at),
        1.. => (0..at).rev().filter(counts).nth(nth - 1),
        _ => (at + 1..values.len()).filter(counts).nth(nth - 1),
    };
    if let Some(other) = other {
        return values[other].clone();
    }
    match default {
        Literal::Null => Cell::Null,
        Literal::Int(v) => Cell::Int(*v),
        Literal::Float(v) => Cell::Float(*v),
        Literal::Text(v) => Cell::Text(v.clone()),
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
        let places = places(case, rows, frame.units);
        let within = |other: &usize| in_frame(case, rows, (frame, &places), at, *other);
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
        WindowFunction::Shift {
            rows: by,
            default,
            ignore_nulls,
        } => {
            let values: Vec<Cell> = (0..all).map(value).collect();
            shifted(&values, at, *by, default, *ignore_nulls)
        }
        WindowFunction::Value {
            row,
            frame,
            ignore_nulls,
        } => {
            let mut values = framed(*frame);
            values.retain(|value| !ignore_nulls || !value.is_null());
            or_null(match row {
                FrameRow::First => values.first(),
                FrameRow::Last => values.last(),
                FrameRow::Nth(nth) => values.get(*nth as usize - 1),
            })
        }
        WindowFunction::Aggregate(function, frame) => aggregate(*function, &framed(*frame)),
    }
}

/// The results of all functions for row `at` of `rows`, which are a sorted partition.
pub fn expected_at(case: &Case, rows: &[&Row], at: usize) -> Vec<Cell> {
    let functions = case.functions.iter();
    functions
        .map(|(function, arg)| model(case, rows, at, function, *arg))
        .collect()
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
        expected_at(case, &rows, at)
    };
    case.rows.iter().map(result).collect()
}
