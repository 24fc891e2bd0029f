//! A function computed over the frames of a partition.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array, new_empty_array};
use arrow::compute::{cast, filter, prep_null_mask_filter, take};
use arrow::datatypes::{DataType, FieldRef, Int64Type, Schema};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, PartitionEvaluator};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{Column, Literal};
use messages::Error;

use crate::present;
use crate::windows::bounds::{Partition, Pieces, frames};
use crate::windows::frame::{Frame, has_offset};
use crate::windows::layout::{Inner, Layout};

/// Computes a function over the frames of each partition.
#[derive(Debug)]
pub(super) struct Evaluator {
    inner: Inner,
    frame: Frame,
    layout: Layout,
    /// The function's own arguments: columns of [`Evaluator::schema`], and constants as they are.
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    schema: Schema,
}

impl Evaluator {
    pub(super) fn new(
        inner: Inner,
        frame: Frame,
        layout: Layout,
        exprs: &[Arc<dyn PhysicalExpr>],
        fields: &[FieldRef],
    ) -> Result<Evaluator> {
        if exprs.len() < layout.own || fields.len() < layout.own {
            return internal_err!("a frame lacks arguments");
        }
        let own = exprs[..layout.own].iter().enumerate().map(|(at, expr)| {
            let constant = expr.downcast_ref::<Literal>().is_some();
            if constant {
                Arc::clone(expr)
            } else {
                Arc::new(Column::new(fields[at].name(), at)) as Arc<dyn PhysicalExpr>
            }
        });
        let exprs = own.collect();
        let fields = fields[..layout.own].to_vec();
        let schema = Schema::new(fields.clone());
        Ok(Evaluator {
            inner,
            frame,
            layout,
            exprs,
            fields,
            schema,
        })
    }

    fn aggregate<'e>(&'e self, function: &'e Arc<AggregateUDF>) -> Result<Aggregate<'e>> {
        Ok(Aggregate {
            function,
            of: self,
            returns: function.return_field(&self.fields)?,
        })
    }
}

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let layout = &self.layout;
        let (own, rest) = values.split_at(layout.own);
        let (passing, rest) = rest.split_at(usize::from(layout.filtered));
        let (keys, offsets) = rest.split_at(layout.keys.len());
        let mut offsets = offsets.iter();
        let start = has_offset(self.frame.start)
            .then(|| offsets.next())
            .flatten();
        let end = has_offset(self.frame.end).then(|| offsets.next()).flatten();
        let pieces = frames(
            &self.frame,
            &Partition {
                rows,
                keys,
                options: &layout.keys,
                start,
                end,
            },
        )?;
        match (&self.inner, own) {
            (Inner::First, [value]) => {
                picked(value, pieces.iter().map(|own| Some(own.first()?.start)))
            }
            (Inner::Last, [value]) => {
                picked(value, pieces.iter().map(|own| Some(own.last()?.end - 1)))
            }
            (Inner::Nth, [value, number]) => nth(value, number, &pieces),
            (Inner::Aggregate(function), own) => {
                let (own, pieces) = passed(own, passing.first(), pieces)?;
                self.aggregate(function)?.over(&own, &pieces)
            }
            _ => internal_err!("a function over a frame lacks arguments"),
        }
    }
}

/// The values of these rows; NULL where there is none.
fn picked(value: &ArrayRef, rows: impl Iterator<Item = Option<usize>>) -> Result<ArrayRef> {
    let rows: UInt64Array = rows.map(|row| row.map(|row| row as u64)).collect();
    Ok(take(value, &rows, None)?)
}

fn nth(value: &ArrayRef, number: &ArrayRef, pieces: &[Pieces]) -> Result<ArrayRef> {
    let number = cast(number, &DataType::Int64)?;
    let number = number.as_primitive::<Int64Type>();
    let mut rows = Vec::with_capacity(pieces.len());
    for (row, pieces) in pieces.iter().enumerate() {
        if number.is_null(row) {
            rows.push(None);
            continue;
        }
        let Some(mut left) = number
            .value(row)
            .checked_sub(1)
            .and_then(|n| usize::try_from(n).ok())
        else {
            let message = "argument of nth_value must be greater than zero";
            return Err(Error::coded("22016", message).into());
        };
        let mut found = None;
        for piece in pieces {
            if left < piece.len() {
                found = Some(piece.start + left);
                break;
            }
            left -= piece.len();
        }
        rows.push(found);
    }
    picked(value, rows.into_iter())
}

/// The arguments of the rows that pass the filter, and the pieces of frames among them.
fn passed(
    own: &[ArrayRef],
    passing: Option<&ArrayRef>,
    pieces: Vec<Pieces>,
) -> Result<(Vec<ArrayRef>, Vec<Pieces>)> {
    let Some(passing) = passing else {
        return Ok((own.to_vec(), pieces));
    };
    let passing = match passing.as_boolean() {
        own if own.null_count() > 0 => prep_null_mask_filter(own),
        own => own.clone(),
    };
    let mut before = Vec::with_capacity(passing.len() + 1);
    let mut count = 0;
    for row in 0..passing.len() {
        before.push(count);
        count += usize::from(passing.is_valid(row) && passing.value(row));
    }
    before.push(count);
    let among = |piece: Range<usize>| before[piece.start]..before[piece.end];
    let pieces = pieces.into_iter().map(|own| {
        let own = own.into_iter().map(among);
        own.filter(|piece| piece.start < piece.end).collect()
    });
    let own: Vec<ArrayRef> = own
        .iter()
        .map(|array| filter(array, &passing))
        .collect::<std::result::Result<_, _>>()?;
    Ok((own, pieces.collect()))
}

/// Functions whose value does not depend on the order of rows, and can be computed from the last row backwards.
const BACKWARDS: [&str; 16] = [
    "avg",
    "bit_and",
    "bit_or",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "max",
    "min",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

/// Functions from whose state values can be taken away exactly, if they are no floats.
const SLIDING: [&str; 3] = ["avg", "count", "sum"];

/// From how many rows on sums of floats are computed backwards where that is cheaper.
const LONG: usize = 10_000;

struct Aggregate<'e> {
    function: &'e Arc<AggregateUDF>,
    of: &'e Evaluator,
    returns: FieldRef,
}

impl Aggregate<'_> {
    fn arguments(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: Arc::clone(&self.returns),
            schema: &self.of.schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: self.function.name(),
            is_distinct: false,
            exprs: &self.of.exprs,
            expr_fields: &self.of.fields,
        }
    }

    fn new_state(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(self.arguments())
    }

    /// A state from which values can be taken away, if that is exact.
    fn sliding_state(&self) -> Result<Option<Box<dyn Accumulator>>> {
        let floats = self
            .of
            .fields
            .iter()
            .any(|field| field.data_type().is_floating());
        if floats || !SLIDING.contains(&self.function.name()) {
            return Ok(None);
        }
        let state = self.function.create_sliding_accumulator(self.arguments())?;
        Ok(state.supports_retract_batch().then_some(state))
    }

    /// The values over these pieces of rows.
    fn over(&self, own: &[ArrayRef], pieces: &[Pieces]) -> Result<ArrayRef> {
        let ty = self.returns.data_type();
        if pieces.is_empty() {
            return Ok(new_empty_array(ty));
        }
        let single: Option<Vec<Range<usize>>> = pieces
            .iter()
            .map(|own| match &own[..] {
                [] => Some(0..0),
                [one] => Some(one.clone()),
                _ => None,
            })
            .collect();
        let found = match single {
            Some(ranges) => self.over_ranges(own, &ranges)?,
            None => self.one_by_one(own, pieces)?,
        };
        let found = ScalarValue::iter_to_array(found)?;
        if found.data_type() == ty {
            Ok(found)
        } else {
            Ok(cast(&found, ty)?)
        }
    }

    fn one_by_one(&self, own: &[ArrayRef], pieces: &[Pieces]) -> Result<Vec<ScalarValue>> {
        let mut found: Vec<ScalarValue> = Vec::with_capacity(pieces.len());
        let mut made = Made::default();
        for (row, ranges) in pieces.iter().enumerate() {
            let before = row.checked_sub(1).filter(|at| pieces[*at] == *ranges);
            let value = match before {
                Some(before) => found[before].clone(),
                None => {
                    let mut state = self.new_state()?;
                    for range in ranges {
                        state.update_batch(&sliced(own, range))?;
                    }
                    state.evaluate()?
                }
            };
            made.add(&value, before.is_none())?;
            found.push(value);
        }
        Ok(found)
    }

    /// The same where each frame is one range, by the cheapest way: forwards from one start, backwards to one end, by a state
    /// that slides, or each for itself.
    fn over_ranges(&self, own: &[ArrayRef], ranges: &[Range<usize>]) -> Result<Vec<ScalarValue>> {
        let there = || ranges.iter().filter(|range| !range.is_empty());
        let start = there().map(|range| range.start).min().unwrap_or(0);
        let end = there().map(|range| range.end).max().unwrap_or(0);
        let name = self.function.name();
        // Sums of floats are those of PostgreSQL to the last digit only in its order, which costs too much for long frames.
        let mut fields = self.of.fields.iter();
        let floats = fields.any(|field| field.data_type().is_floating());
        let backwards = BACKWARDS.contains(&name) && (!floats || ranges.len() > LONG);
        // Others may give their state away with their value.
        let again = BACKWARDS.contains(&name) || matches!(name, "array_agg" | "string_agg");
        if again
            && there().all(|range| range.start == start)
            && there().is_sorted_by_key(|range| range.end)
        {
            return self.grown(own, ranges.iter(), false);
        }
        if backwards
            && there().all(|range| range.end == end)
            && there().is_sorted_by_key(|range| range.start)
        {
            let mut found = self.grown(own, ranges.iter().rev(), true)?;
            found.reverse();
            return Ok(found);
        }
        let ascending = there().is_sorted_by_key(|range| range.start)
            && there().is_sorted_by_key(|range| range.end);
        match self.sliding_state()? {
            Some(state) if ascending => self.slid(own, ranges, state),
            _ => {
                let pieces: Vec<Pieces> = ranges.iter().map(|range| vec![range.clone()]).collect();
                self.one_by_one(own, &pieces)
            }
        }
    }

    /// Over ranges of which each holds the one before; they grow at their end, or `backwards` at their start.
    fn grown<'r>(
        &self,
        own: &[ArrayRef],
        ranges: impl Iterator<Item = &'r Range<usize>>,
        backwards: bool,
    ) -> Result<Vec<ScalarValue>> {
        let none = self.new_state()?.evaluate()?;
        let mut state = self.new_state()?;
        let mut last: Option<(Range<usize>, ScalarValue)> = None;
        let (mut found, mut made) = (Vec::new(), Made::default());
        for range in ranges {
            if range.is_empty() {
                found.push(none.clone());
                continue;
            }
            let more = match &last {
                None => range.clone(),
                Some((before, _)) if backwards => range.start..before.start,
                Some((before, _)) => before.end..range.end,
            };
            let (value, other) = match last {
                Some((_, value)) if more.is_empty() => (value, false),
                _ => {
                    state.update_batch(&sliced(own, &more))?;
                    (state.evaluate()?, true)
                }
            };
            made.add(&value, other)?;
            found.push(value.clone());
            last = Some((range.clone(), value));
        }
        Ok(found)
    }

    fn slid(
        &self,
        own: &[ArrayRef],
        ranges: &[Range<usize>],
        mut state: Box<dyn Accumulator>,
    ) -> Result<Vec<ScalarValue>> {
        let none = self.new_state()?.evaluate()?;
        // What the state is of.
        let mut held = 0..0;
        let mut found = Vec::with_capacity(ranges.len());
        for range in ranges {
            if range.is_empty() {
                found.push(none.clone());
                continue;
            }
            if held.end <= range.start {
                if !held.is_empty() {
                    state.retract_batch(&sliced(own, &held))?;
                }
                held = range.start..range.start;
            }
            if held.start < range.start {
                state.retract_batch(&sliced(own, &(held.start..range.start)))?;
            }
            if held.end < range.end {
                state.update_batch(&sliced(own, &(held.end..range.end)))?;
            }
            held = range.clone();
            found.push(state.evaluate()?);
        }
        Ok(found)
    }
}

/// What the values over frames take: arrays and texts of many rows, one for each row, are more than there is memory for. Rows
/// whose frames are the same share one while they are computed, but each has its own in the column that is made of them.
#[derive(Default)]
struct Made {
    /// Bytes of the values that are no others' until the column is made.
    apart: usize,
    /// Items of arrays.
    items: usize,
}

impl Made {
    /// Allows the value of one more row, which may be `other` than that of the row before.
    fn add(&mut self, value: &ScalarValue, other: bool) -> Result<()> {
        let bytes = match value {
            ScalarValue::List(array) => {
                self.items = self.items.saturating_add(array.values().len());
                array.get_array_memory_size()
            }
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)) => text.len(),
            _ => return Ok(()),
        };
        if other {
            self.apart = self.apart.saturating_add(bytes);
        }
        present::check()?;
        if i32::try_from(self.items).is_err() {
            let message =
                "arrays over the frames of a window have more than 2147483647 items in all";
            return Err(Error::coded("53200", message).into());
        }
        present::keeps(bytes, self.apart)
    }
}

fn sliced(own: &[ArrayRef], range: &Range<usize>) -> Vec<ArrayRef> {
    own.iter()
        .map(|array| array.slice(range.start, range.len()))
        .collect()
}
