//! Window functions and their frames.

use std::collections::BTreeSet;
use std::fmt;

use arrow::datatypes::{DataType, TimeUnit};

use crate::expr::Literal;
use crate::logical::aggregate::{Function, Key};
use crate::vector::value::Var;

/// A window function and its argument.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFold {
    /// The result.
    pub var: Var,
    /// The function.
    pub function: WindowFunction,
    /// Its argument; `None` for functions of the rows alone.
    pub arg: Option<Var>,
}

/// Window functions over the same partitions and order, which are the first keys of a sort.
#[derive(Clone, Debug)]
pub(crate) struct WindowPart {
    /// How many of the first keys are those of partitions.
    pub partition: usize,
    /// How many keys behind those are the order.
    pub order: usize,
    pub functions: Vec<WindowFold>,
}

impl WindowPart {
    /// The vectors that the functions read of rows sorted by `keys`.
    pub fn reads(&self, keys: &[Key]) -> BTreeSet<Var> {
        let keys = keys.iter().take(self.partition + self.order);
        let args = self.functions.iter().filter_map(|fold| fold.arg);
        keys.map(|key| key.var).chain(args).collect()
    }
}

/// A window function. Rows of equal sort keys are peers.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunction {
    /// The number of the row in its partition, from 1.
    RowNumber,
    /// The number of the first of the row's peers.
    Rank,
    /// The number of the row's peers among all groups of peers, from 1.
    DenseRank,
    /// `(rank - 1) / (rows - 1)`, or 0 in a partition of one row.
    PercentRank,
    /// The share of rows up to the last of the row's peers.
    CumeDist,
    /// The bucket of the row, from 1, where the partition is cut into this many of about the same size.
    Ntile(u64),
    /// The value of the row so many rows before this one (`lag`), or behind it if the number is negative (`lead`).
    Shift {
        /// How many rows.
        rows: i64,
        /// The result where the partition has no such row.
        default: Literal,
        /// Whether rows whose value is NULL are not counted.
        ignore_nulls: bool,
    },
    /// The value of a row of the frame.
    Value {
        /// Of which row.
        row: FrameRow,
        /// The frame.
        frame: FrameBounds,
        /// Whether rows whose value is NULL are passed over.
        ignore_nulls: bool,
    },
    /// An aggregate of the frame: a count, a sum, an average, an extreme, a variance or a standard deviation, of all values.
    Aggregate(Function, FrameBounds),
}

/// A row of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRow {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// The one of this number, from 1.
    Nth(u64),
}

/// Which rows around a row are its frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameBounds {
    /// What its edges are counted in.
    pub units: FrameUnits,
    /// The first row.
    pub start: FrameEdge,
    /// The last row.
    pub end: FrameEdge,
    /// Which rows in between do not belong to it.
    pub exclude: FrameExclusion,
}

/// What the edges of a frame are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Values of the sort key. An edge at the row is at the first or at the last of its peers.
    Range,
    /// Groups of peers.
    Groups,
}

/// Where a frame begins or ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FrameEdge {
    /// At the first row of the partition.
    First,
    /// So many rows, or groups of peers, before the row.
    Preceding(u64),
    /// Before the row by so much of the sort key. The order has a single key, which is a number or a moment.
    PrecedingBy(Distance),
    /// At the row, or its peers.
    Current,
    /// So many rows, or groups of peers, behind the row.
    Following(u64),
    /// Behind the row by so much of the sort key.
    FollowingBy(Distance),
    /// At the last row of the partition.
    Last,
}

/// A distance between values of a sort key. It is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distance {
    /// Of whole numbers, decimals without their point, days of dates and units of timestamps.
    Whole(i128),
    /// Of floats.
    Float(f64),
    /// Of dates and timestamps without a time zone: a day of a month that does not have it becomes its last.
    Months {
        /// How many months.
        months: i32,
        /// How many days besides.
        days: i32,
        /// How many nanoseconds besides.
        nanoseconds: i64,
    },
}

/// Which rows a frame leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameExclusion {
    /// None.
    #[default]
    None,
    /// The row itself.
    Current,
    /// The row and its peers.
    Group,
    /// The peers of the row, but not the row itself.
    Ties,
}

impl FrameBounds {
    /// A frame that leaves out no rows.
    pub fn new(units: FrameUnits, start: FrameEdge, end: FrameEdge) -> FrameBounds {
        FrameBounds {
            units,
            start,
            end,
            exclude: FrameExclusion::None,
        }
    }

    /// Whether it depends on which rows are peers.
    pub(crate) fn needs_peers(&self) -> bool {
        let at_row = [self.start, self.end].contains(&FrameEdge::Current);
        let of_edges = match self.units {
            FrameUnits::Rows => false,
            FrameUnits::Range => at_row,
            FrameUnits::Groups => true,
        };
        let is_left_out = matches!(self.exclude, FrameExclusion::Group | FrameExclusion::Ties);
        of_edges || is_left_out
    }
}

impl WindowFunction {
    /// The frame that it is computed of, if it depends on one.
    pub(crate) fn frame(&self) -> Option<FrameBounds> {
        match self {
            WindowFunction::Value { frame, .. } | WindowFunction::Aggregate(_, frame) => {
                Some(*frame)
            }
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumeDist
            | WindowFunction::Ntile(_)
            | WindowFunction::Shift { .. } => None,
        }
    }

    /// Whether it depends on which rows are peers.
    pub(crate) fn needs_peers(&self) -> bool {
        match self {
            WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumeDist => true,
            WindowFunction::RowNumber | WindowFunction::Ntile(_) | WindowFunction::Shift { .. } => {
                false
            }
            WindowFunction::Value { frame, .. } | WindowFunction::Aggregate(_, frame) => {
                frame.needs_peers()
            }
        }
    }

    /// Its name in `explain`.
    pub(crate) fn name(&self) -> String {
        match self {
            WindowFunction::RowNumber => "row_number".into(),
            WindowFunction::Rank => "rank".into(),
            WindowFunction::DenseRank => "dense_rank".into(),
            WindowFunction::PercentRank => "percent_rank".into(),
            WindowFunction::CumeDist => "cume_dist".into(),
            WindowFunction::Ntile(_) => "ntile".into(),
            WindowFunction::Shift { rows, .. } if *rows < 0 => "lead".into(),
            WindowFunction::Shift { .. } => "lag".into(),
            WindowFunction::Value { row, .. } => match row {
                FrameRow::First => "first_value".into(),
                FrameRow::Last => "last_value".into(),
                FrameRow::Nth(_) => "nth_value".into(),
            },
            WindowFunction::Aggregate(function, _) => format!("{function:?}").to_lowercase(),
        }
    }
}

impl fmt::Display for FrameBounds {
    /// As SQL writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = match self.units {
            FrameUnits::Rows => "rows",
            FrameUnits::Range => "range",
            FrameUnits::Groups => "groups",
        };
        write!(f, "{units} between {} and {}", self.start, self.end)?;
        match self.exclude {
            FrameExclusion::None => Ok(()),
            FrameExclusion::Current => write!(f, " exclude current row"),
            FrameExclusion::Group => write!(f, " exclude group"),
            FrameExclusion::Ties => write!(f, " exclude ties"),
        }
    }
}

impl fmt::Display for FrameEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameEdge::First => write!(f, "unbounded preceding"),
            FrameEdge::Preceding(rows) => write!(f, "{rows} preceding"),
            FrameEdge::PrecedingBy(distance) => write!(f, "{distance} preceding"),
            FrameEdge::Current => write!(f, "current row"),
            FrameEdge::Following(rows) => write!(f, "{rows} following"),
            FrameEdge::FollowingBy(distance) => write!(f, "{distance} following"),
            FrameEdge::Last => write!(f, "unbounded following"),
        }
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distance::Whole(distance) => write!(f, "{distance}"),
            Distance::Float(distance) => write!(f, "{distance}"),
            Distance::Months {
                months,
                days,
                nanoseconds,
            } => write!(f, "{months} months {days} days {nanoseconds} nanoseconds"),
        }
    }
}

/// Nanoseconds of a day.
pub(crate) const DAY: i128 = 86_400_000_000_000;

/// Nanoseconds of one unit of a moment; `None` for other types.
pub(crate) fn tick(data: &DataType) -> Option<i128> {
    Some(match data {
        DataType::Date32 => DAY,
        DataType::Timestamp(unit, None) => match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        },
        _ => return None,
    })
}
