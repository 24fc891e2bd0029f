//! Which cells of an array a query need not read.
//!
//! First each dimension by itself: which of its positions may pass the filters, whatever the other columns are. The box
//! around those is what is read. Then the chunks in it, by the statistics of their attributes.

use std::sync::Arc;

use array::{Dimension, Region, Scalar, Statistics, Time};
use arrow::array::{ArrayRef, Decimal128Array, Int64Array, TimestampMicrosecondArray, UInt64Array};
use arrow::datatypes::DataType;
use datafusion_common::Result as DataFusionResult;
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;

use crate::error::Error;
use crate::scan::arrays::definition::{ArrayTable, moment, moment_of, scale_of, units};
use crate::scan::prune::{ZoneBounds, Zones, kept};

/// Most ranges of positions that are looked at one by one along a dimension; of a longer one a range is several positions.
const MOST_RANGES: u64 = 1 << 16;

/// The cells that a scan reads.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// What is wanted of each chunk that is read: not empty.
    pub chunks: Vec<Region>,
    /// How many chunks the array has.
    pub of: u64,
}

/// The cells of the array that may pass all `filters`.
pub(super) fn wanted(table: &ArrayTable, filters: &[Expr]) -> DataFusionResult<Wanted> {
    let grid = table.array.grid();
    let mut region = table.array.region();
    if !filters.is_empty() {
        let dimensions = table.array.schema().dimensions().iter();
        let time = |of: &Dimension| table.array.schema().metadata().time(of.name());
        region = Region::new(dimensions.map(|of| along((filters, table), of, time(of))));
    }
    let mut chunks: Vec<Region> = grid
        .overlapping(&region)
        .map(|chunk| grid.region(&chunk).intersection(&region))
        .collect();
    if !filters.is_empty() && !chunks.is_empty() {
        let known = known_of_chunks(table, &chunks)?;
        if let Some(kept) = kept(filters, &table.schema, &known) {
            let mut kept = kept.into_iter();
            chunks.retain(|_| kept.next().unwrap_or(true));
        }
    }
    Ok(Wanted {
        chunks,
        of: grid.chunks(),
    })
}

/// From which position of a dimension on, and below which, cells may pass.
fn along(
    (filters, table): (&[Expr], &ArrayTable),
    dimension: &Dimension,
    time: Option<Time>,
) -> (u64, u64) {
    let length = dimension.length();
    if length == 0 {
        return (0, 0);
    }
    let step = length.div_ceil(MOST_RANGES);
    let ranges: Vec<(u64, u64)> = (0..length.div_ceil(step))
        .map(|range| (range * step, ((range + 1) * step).min(length)))
        .collect();
    let statistics = Known {
        count: ranges.len(),
        columns: vec![ends(dimension, time, &ranges)],
    };
    let Some(kept) = kept(filters, &table.schema, &statistics) else {
        return (0, length);
    };
    let first = kept.iter().position(|kept| *kept);
    let last = kept.iter().rposition(|kept| *kept);
    match (first, last) {
        (Some(first), Some(last)) => (ranges[first].0, ranges[last].1),
        _ => (0, 0),
    }
}

/// What the array's statistics say of parts of its chunks.
fn known_of_chunks(table: &ArrayTable, parts: &[Region]) -> DataFusionResult<Known> {
    let of = table.array.schema();
    let mut columns: Vec<KnownColumn> = (of.dimensions().iter().enumerate())
        .map(|(at, dimension)| {
            let ranges: Vec<(u64, u64)> = parts.iter().map(|part| part.ranges()[at]).collect();
            ends(dimension, of.metadata().time(dimension.name()), &ranges)
        })
        .collect();
    for (at, attribute) in of.attributes().iter().enumerate() {
        let found: Result<Vec<Option<Statistics>>, array::Error> = parts
            .iter()
            .map(|part| table.array.statistics(part, at))
            .collect();
        let found = found.map_err(Error::from)?;
        let typed = table.schema.field(table.rank() + at).data_type();
        let time = of.metadata().time(attribute.name());
        columns.push(of_attribute((attribute.name(), time), typed, &found)?);
    }
    Ok(Known {
        count: parts.len(),
        columns,
    })
}

/// What is known of some containers: for each column its least and greatest values and its NULLs.
struct Known {
    count: usize,
    columns: Vec<KnownColumn>,
}

struct KnownColumn {
    name: String,
    bounds: ZoneBounds,
}

/// The coordinates at the ends of ranges of positions, none of which is empty.
fn ends(dimension: &Dimension, time: Option<Time>, ranges: &[(u64, u64)]) -> KnownColumn {
    if let Some(time) = time {
        return ends_of_times(dimension, time, ranges);
    }
    let scale = scale_of(dimension);
    let pairs: Vec<(i128, i128)> = ranges
        .iter()
        .map(|&(start, end)| {
            let (one, other) = (
                units(dimension, start, scale),
                units(dimension, end - 1, scale),
            );
            (one.min(other), one.max(other))
        })
        .collect();
    let column = |of: &dyn Fn(&(i128, i128)) -> i128| -> ArrayRef {
        let values = pairs.iter().map(of);
        if dimension.is_integer() {
            // Coordinates of such a dimension are whole numbers of 64 bits.
            Arc::new(Int64Array::from_iter_values(values.map(|of| of as i64)))
        } else {
            let values = Decimal128Array::from_iter_values(values);
            let typed = DataType::Decimal128(38, scale as i8);
            Arc::new(values.with_data_type(typed))
        }
    };
    KnownColumn {
        name: dimension.name().to_owned(),
        bounds: ZoneBounds {
            min: column(&|pair| pair.0),
            max: column(&|pair| pair.1),
            nulls: UInt64Array::from(vec![0; pairs.len()]),
        },
    }
}

/// The same of a dimension whose coordinates are times. Of one that is none nothing is known.
fn ends_of_times(dimension: &Dimension, time: Time, ranges: &[(u64, u64)]) -> KnownColumn {
    let end = |least: bool| -> ArrayRef {
        let ends = ranges.iter().map(|&(start, end)| {
            let one = moment_of(dimension, start, time).ok()?;
            let other = moment_of(dimension, end.saturating_sub(1), time).ok()?;
            Some(if least {
                one.min(other)
            } else {
                one.max(other)
            })
        });
        Arc::new(TimestampMicrosecondArray::from_iter(ends))
    };
    KnownColumn {
        name: dimension.name().to_owned(),
        bounds: ZoneBounds {
            min: end(true),
            max: end(false),
            nulls: UInt64Array::from(vec![0; ranges.len()]),
        },
    }
}

/// The statistics of an attribute. A greatest value beside NaN says nothing, as NaN is greater than all others.
fn of_attribute(
    (name, time): (&str, Option<Time>),
    of: &DataType,
    found: &[Option<Statistics>],
) -> DataFusionResult<KnownColumn> {
    let column = |end: &dyn Fn(&Statistics) -> Scalar| -> DataFusionResult<ArrayRef> {
        let values = found.iter().map(|known| {
            let value = known.as_ref().map_or(Scalar::Null, end);
            match time {
                Some(time) => match time.of_scalar(value) {
                    Some(micros) => Ok(moment(micros)),
                    None => ScalarValue::try_from(of),
                },
                None => scalar(value).cast_to(of),
            }
        });
        let values: DataFusionResult<Vec<ScalarValue>> = values.collect();
        ScalarValue::iter_to_array(values?)
    };
    Ok(KnownColumn {
        name: name.to_owned(),
        bounds: ZoneBounds {
            min: column(&|known| known.min)?,
            max: column(&|known| {
                if known.nans == 0 {
                    known.max
                } else {
                    Scalar::Null
                }
            })?,
            // NaN is no time, and NULL.
            nulls: UInt64Array::from_iter(found.iter().map(|known| {
                let known = known.as_ref()?;
                let nans = if time.is_some() { known.nans } else { 0 };
                known.nulls.checked_add(nans)
            })),
        },
    })
}

fn scalar(value: Scalar) -> ScalarValue {
    match value {
        Scalar::Null => ScalarValue::Null,
        Scalar::Bool(value) => ScalarValue::Boolean(Some(value)),
        Scalar::Int(value) => ScalarValue::Decimal128(Some(value), 38, 0),
        Scalar::Float(value) => ScalarValue::Float64(Some(value)),
    }
}

impl Zones for Known {
    fn count(&self) -> usize {
        self.count
    }

    fn bounds(&self, column: &str) -> Option<ZoneBounds> {
        let known = self.columns.iter().find(|known| known.name == column)?;
        Some(known.bounds.clone())
    }
}
