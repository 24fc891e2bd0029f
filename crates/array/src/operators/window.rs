//! Moving windows: for each cell that exists, aggregates over the box around it.

use futures::future::{BoxFuture, FutureExt};

use crate::data::assembly::Assembly;
use crate::data::block::Block;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::model::schema::Schema;
use crate::model::types::{DataType, Element, with_type};
use crate::operators::folder::{furthest, furthest_float, halves, joined, kind, mask_of};
use crate::operators::functions::{Aggregate, Bound, Call, Function};
use crate::operators::slide::Sliding;
use crate::operators::source::{Input, Source};
use crate::operators::states::{Known, Moments, State, States, extreme, ordered};

/// Aggregates over the cells around each cell, so many before and after it along each dimension. At the edges of the
/// array the box is smaller.
pub(crate) struct Window {
    input: Input,
    bound: Bound,
    schema: Schema,
    around: Vec<(u64, u64)>,
}

impl Window {
    /// Boxes of so many cells before and after along each dimension.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`].
    pub fn new(input: Input, around: &[(u64, u64)], all: &[Aggregate]) -> Result<Window> {
        let schema = input.schema();
        let bound = Bound::new("window", schema, all)?;
        if around.len() != schema.dimensions().len() {
            let count = schema.dimensions().len();
            let what =
                format!("give how many cells before and after for each of the {count} dimensions");
            return Err(Error::Operator {
                operator: "window",
                what,
            });
        }
        // No box is longer than the array.
        let shape = schema.shape();
        let around = around.iter().zip(&shape);
        let around = around
            .map(|(&(a, b), &length)| (a.min(length), b.min(length)))
            .collect();
        Ok(Window {
            schema: Schema::derived(schema.dimensions().to_vec(), bound.attributes.clone())?
                .with_dimensions_of(schema),
            input,
            bound,
            around,
        })
    }

    async fn compute(&self, region: &Region) -> Result<Block> {
        let shape = self.schema.shape();
        let wide = region.ranges().iter().zip(&self.around).zip(&shape);
        let wide = Region::new(wide.map(|((&(start, end), &(before, after)), &length)| {
            (
                start.saturating_sub(before),
                end.saturating_add(after).min(length),
            )
        }));
        let block = self.input.block(&wide, &self.bound.needed).await?;
        region.cells("a part of a window")?;
        let sliding = Sliding::new(region, &wide, &self.around);
        let states = states_of(&block, &self.bound, &sliding);
        let columns = states.finish()?.into_iter().map(Some).collect();
        let result = Block::new(region.clone(), columns)?;
        if block.present().is_none() {
            return Ok(result);
        }
        // Cells exist where those of the input do.
        let none = vec![false; self.input.schema().attributes().len()];
        let mut centre = Assembly::new(self.input.schema(), region, &none)?;
        centre.put(&block);
        Ok(result.with_shared_present(centre.finish()?.shared_present().cloned()))
    }
}

/// What the aggregates of each window have seen.
fn states_of(block: &Block, bound: &Bound, sliding: &Sliding) -> States {
    let mut states: Vec<State> = Vec::with_capacity(bound.calls.len());
    for (at, call) in bound.calls.iter().enumerate() {
        let before = bound.calls[..at].iter();
        let same = before.into_iter().position(|of| kind(of) == kind(call));
        states.push(match same {
            Some(at) => states[at].clone(),
            None => state_of(block, call, sliding),
        });
    }
    let cells = counts_of(sliding, block.present());
    States::of(bound, cells, states)
}

fn counts_of(sliding: &Sliding, mask: Option<&[u8]>) -> Vec<u64> {
    match mask {
        None => sliding.counts(),
        Some(mask) => {
            let counts = mask.iter().map(|&counts| u64::from(counts)).collect();
            sliding.join(counts, 0, |a, b| a + b)
        }
    }
}

fn state_of(block: &Block, call: &Call, sliding: &Sliding) -> State {
    let column = call.of.and_then(|of| block.column(of.0));
    let mask = mask_of(block, column);
    let counts = counts_of(sliding, mask.as_deref());
    let known = match column {
        None => Known::Count,
        Some(column) => {
            let of = column.values().data_type();
            with_type!(of, T => {
                let values = (column.values().values::<T>(), mask.as_deref());
                known_of(values, &counts, (call.function, of), sliding)
            })
        }
    };
    State { counts, known }
}

/// What is known of the values of each window, of which only those count that the mask has.
fn known_of<T: Element>(
    values: (&[T], Option<&[u8]>),
    counts: &[u64],
    (function, of): (Function, DataType),
    sliding: &Sliding,
) -> Known {
    let least = function == Function::Min;
    match function {
        Function::Count => Known::Count,
        Function::Sum | Function::Avg if of.is_float() => {
            let values = lifted(values, 0.0, T::to_f64);
            Known::Float(sliding.join(values, 0.0, |a, b| a + b))
        }
        Function::Sum | Function::Avg if of.width() == 8 => {
            let high = lifted(values, 0, |of| halves(of).0);
            let high = sliding.join(high, 0, |a, b| a + b);
            let low = lifted(values, 0, |of| halves(of).1);
            let low = sliding.join(low, 0, |a, b| a + b);
            let all = high.into_iter().zip(low).zip(counts);
            let sum = |((high, low), &count)| joined(high, low, count, of.is_signed());
            Known::Whole(all.map(sum).collect())
        }
        Function::Sum | Function::Avg => {
            let values = lifted(values, 0, |of| of.to_i128() as i64);
            let sums = sliding.join(values, 0, |a, b| a + b);
            Known::Whole(sums.into_iter().map(i128::from).collect())
        }
        Function::Min | Function::Max if of.is_float() => {
            let identity = furthest_float(least);
            let values = lifted(values, identity, T::to_f64);
            Known::ExtremeFloat(if least {
                sliding.join(values, identity, |a, b| extreme(a, b, true))
            } else {
                sliding.join(values, identity, |a, b| extreme(a, b, false))
            })
        }
        Function::Min | Function::Max => {
            let identity = furthest(least);
            let values = lifted(values, identity, ordered);
            Known::ExtremeWhole(if least {
                sliding.join(values, identity, |a, b| extreme(a, b, true))
            } else {
                sliding.join(values, identity, |a, b| extreme(a, b, false))
            })
        }
        Function::Var | Function::Stdev => {
            let one = |of: T| {
                let mean = of.to_f64();
                // Of an infinity there are no differences.
                let squares = if mean.is_finite() { 0.0 } else { f64::NAN };
                (1, Moments { mean, squares })
            };
            let none = (0, Moments::default());
            let all = sliding.join(lifted(values, none, one), none, |a, b| {
                (a.0 + b.0, a.1.merged(a.0, b.1, b.0))
            });
            Known::Moments(all.into_iter().map(|of| of.1).collect())
        }
    }
}

/// Values as they are joined; those that do not count become what changes nothing.
fn lifted<T: Copy, A: Copy>(
    (values, mask): (&[T], Option<&[u8]>),
    identity: A,
    lift: impl Fn(T) -> A,
) -> Vec<A> {
    match mask {
        None => values.iter().map(|&value| lift(value)).collect(),
        Some(mask) => {
            let both = values.iter().zip(mask);
            both.map(|(&value, &counts)| if counts != 0 { lift(value) } else { identity })
                .collect()
        }
    }
}

impl Source for Window {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.input.grid()
    }

    fn block<'a>(&'a self, region: &'a Region, _: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        self.compute(region).boxed()
    }
}
