//! Moving windows: for each cell that exists, aggregates over the box around it.

use futures::future::{BoxFuture, FutureExt};

use crate::data::assembly::Assembly;
use crate::data::block::Block;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::data::runs::each_run;
use crate::error::{Error, Result};
use crate::model::schema::Schema;
use crate::operators::functions::{Aggregate, Bound};
use crate::operators::source::{Input, Source};
use crate::operators::states::{Row, States};

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
            schema: Schema::derived(schema.dimensions().to_vec(), bound.attributes.clone())?,
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
        let count = region.cells("a part of a window")?;
        let mut states = States::new(&self.bound, count);
        // The cells at one place of all boxes after the other: then what lies side by side is added side by side, and in
        // each box cells come in their order.
        let places = self
            .around
            .iter()
            .map(|&(before, after)| crate::data::grid::Axis::Regular {
                length: before + after + 1,
                chunk: 1,
            });
        for place in Grid::of_axes(places.collect()).all() {
            let ranges = region
                .ranges()
                .iter()
                .zip(&place)
                .zip(&self.around)
                .zip(wide.ranges());
            // Cells of the result whose box has this place within the array.
            let (mut targets, mut sources) = (Vec::new(), Vec::new());
            for (((&(start, end), &at), &(before, _)), &(first, last)) in ranges {
                let from = start.max((first + before).saturating_sub(at));
                let to = end.min((last + before).saturating_sub(at));
                targets.push((from, to));
                sources.push((from + at).saturating_sub(before));
            }
            let targets = Region::new(targets);
            if targets.is_empty() {
                continue;
            }
            let moved = Region::new(
                targets
                    .shape()
                    .iter()
                    .zip(&sources)
                    .map(|(n, &at)| (at, at + n)),
            );
            let target_block = targets.relative_to(&region.origin());
            add_moved(&mut states, &block, &moved, &target_block, region);
        }
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

/// Sees the cells of `moved` in a block, each for the group at the same place of `targets` in a box of `region`'s shape.
fn add_moved(
    states: &mut States,
    block: &Block,
    moved: &Region,
    targets: &Region,
    region: &Region,
) {
    let mut starts = Vec::new();
    each_run(moved, block.region(), moved, |from, number, length| {
        starts.push((from, number, length))
    });
    let whole = Region::of_shape(&region.shape());
    let mut groups = Vec::new();
    each_run(targets, targets, &whole, |number, to, length| {
        groups.push((number, to, length))
    });
    // Both go through the same cells in order, in runs of their own lengths.
    let (mut sources, mut targets) = (starts.into_iter(), groups.into_iter());
    let (mut source, mut target) = (sources.next(), targets.next());
    while let (Some((from, number, length)), Some((other, group, room))) = (source, target) {
        debug_assert_eq!(number, other);
        let count = length.min(room);
        states.add(
            block,
            Row {
                start: from,
                length: count,
                group,
                step: 1,
            },
        );
        source = if count == length {
            sources.next()
        } else {
            Some((from + count, number + count, length - count))
        };
        target = if count == room {
            targets.next()
        } else {
            Some((other + count, group + count, room - count))
        };
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
