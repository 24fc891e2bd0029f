//! Aggregates over all cells, or for each coordinate of some dimensions; and over boxes of a grid.

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};

use crate::data::block::Block;
use crate::data::grid::{Axis, Grid};
use crate::data::region::Region;
use crate::data::runs::each_run;
use crate::error::{Error, Result};
use crate::model::dimension::Dimension;
use crate::model::schema::Schema;
use crate::operators::functions::{Aggregate, Bound};
use crate::operators::source::{Crew, Input, Source};
use crate::operators::states::{Row, States};

/// Aggregates of groups: cells whose positions along some dimensions, each divided by a number, are the same.
pub(crate) struct Grouped {
    input: Input,
    bound: Bound,
    schema: Schema,
    grid: Grid,
    /// For each dimension of the result, that of the input and the cells that become one; none where all become one.
    kept: Vec<(usize, u64)>,
    crew: Crew,
}

impl Grouped {
    /// Aggregates for each coordinate of these dimensions; over all cells if there are none.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`], [`Error::Schema`].
    pub fn by(input: Input, all: &[Aggregate], names: &[String], crew: Crew) -> Result<Grouped> {
        let schema = input.schema();
        let bound = Bound::new("aggregate", schema, all)?;
        let mut kept = Vec::new();
        let (mut dimensions, mut axes) = (Vec::new(), Vec::new());
        let grid = input.grid();
        for name in names {
            let number = schema.dimension(name, "aggregate")?;
            if kept.contains(&(number, 1)) {
                let what = format!("dimension '{name}' is given twice");
                return Err(Error::Operator {
                    operator: "aggregate",
                    what,
                });
            }
            kept.push((number, 1));
            dimensions.push(schema.dimensions()[number].clone());
            axes.push(grid.axes()[number].clone());
        }
        if dimensions.is_empty() {
            dimensions.push(Dimension::integer("i", 0, 1).chunk(1));
            axes.push(Axis::Regular {
                length: 1,
                chunk: 1,
            });
        }
        Ok(Grouped {
            schema: Schema::derived(dimensions, bound.attributes.clone())?,
            grid: Grid::of_axes(axes),
            input,
            bound,
            kept,
            crew,
        })
    }

    /// Aggregates over boxes of so many cells along each dimension, which become one cell each.
    ///
    /// # Errors
    /// As [`by`](Grouped::by).
    pub fn regrid(input: Input, blocks: &[u64], all: &[Aggregate], crew: Crew) -> Result<Grouped> {
        let schema = input.schema();
        let bound = Bound::new("regrid", schema, all)?;
        let wrong = |what: String| Error::Operator {
            operator: "regrid",
            what,
        };
        if blocks.len() != schema.dimensions().len() || blocks.contains(&0) {
            let count = schema.dimensions().len();
            return Err(wrong(format!(
                "give a length of at least 1 for each of the {count} dimensions"
            )));
        }
        let both = schema.dimensions().iter().zip(blocks);
        let dimensions = both.map(|(of, &block)| {
            let length = of.length().div_ceil(block);
            Dimension::integer(of.name(), 0, length).chunk(of.chunk_length().div_ceil(block))
        });
        let schema = Schema::derived(dimensions.collect(), bound.attributes.clone())?;
        Ok(Grouped {
            grid: Grid::of(&schema),
            schema,
            kept: blocks.iter().copied().enumerate().collect(),
            input,
            bound,
            crew,
        })
    }

    /// The cells of the input that a region of the result is made of.
    fn inner(&self, region: &Region) -> Region {
        let shape = self.input.schema().shape();
        let mut ranges: Vec<_> = shape.iter().map(|&length| (0, length)).collect();
        for (&(at, cells), &(start, end)) in self.kept.iter().zip(region.ranges()) {
            ranges[at] = (start * cells, shape[at].min(end.saturating_mul(cells)));
        }
        Region::new(ranges)
    }

    /// The groups that a region of the input has cells of.
    fn groups(&self, inner: &Region) -> Region {
        if self.kept.is_empty() {
            return Region::new([(0, 1)]);
        }
        Region::new(self.kept.iter().map(|&(at, cells)| {
            let (start, end) = inner.ranges()[at];
            (start / cells, end.div_ceil(cells))
        }))
    }

    async fn compute(&self, region: &Region) -> Result<Block> {
        let count = region.cells("the result of an aggregate")?;
        let mut states = States::new(&self.bound, count);
        let (grid, inner) = (self.input.grid(), self.inner(region));
        let parts = grid.overlapping(&inner);
        let parts = parts.map(move |chunk| grid.region(&chunk).intersection(&inner));
        let (input, bound, kept) = (self.input.clone(), self.bound.clone(), self.kept.clone());
        let task = move |part: Region| {
            let (input, bound, kept) = (input.clone(), bound.clone(), kept.clone());
            async move {
                let block = input.block(&part, &bound.needed).await?;
                Ok((states_of(&block, &bound, &kept), part))
            }
        };
        let mut seen = self.crew.ordered(parts, task);
        // In the order of the chunks, whoever was first: sums of floats are the same each time.
        while let Some(next) = seen.next().await {
            let (more, part) = next?;
            let groups = self.groups(&part);
            each_run(
                &groups.intersection(region),
                &groups,
                region,
                |from, to, length| {
                    states.merge(&more, from, to, length);
                },
            );
        }
        let columns = states.finish()?.into_iter().map(Some).collect();
        let block = Block::new(region.clone(), columns)?;
        // A group without cells is none; but the one of all cells is there, with a count of 0.
        if self.kept.is_empty() {
            return Ok(block);
        }
        Ok(block.with_present(
            states
                .cells
                .iter()
                .map(|&cells| u8::from(cells > 0))
                .collect(),
        ))
    }
}

/// What is seen of a block, for the groups that it has cells of.
fn states_of(block: &Block, bound: &Bound, kept: &[(usize, u64)]) -> States {
    let region = block.region();
    let shape = |at: usize, cells: u64| {
        let (start, end) = region.ranges()[at];
        (
            start / cells,
            (end.div_ceil(cells) - start / cells) as usize,
        )
    };
    // The groups from one to the next along each dimension of the input, 0 where all are one.
    let mut steps = vec![(0, 1, 0); region.rank()];
    let mut groups = 1;
    for &(at, cells) in kept.iter().rev() {
        let (first, count) = shape(at, cells);
        steps[at] = (groups, cells, first);
        groups *= count;
    }
    let mut states = States::new(bound, groups);
    if region.is_empty() {
        return states;
    }
    let group = |at: usize, position: u64| {
        let (step, cells, first) = steps[at];
        (position / cells - first) as usize * step
    };
    let last = region.rank() - 1;
    let (step, cells, _) = steps[last];
    let length = region.length(last) as usize;
    let mut position = region.origin();
    for start in (0..block.cells()).step_by(length) {
        let outer: usize = (0..last).map(|at| group(at, position[at])).sum();
        add_row(
            &mut states,
            block,
            (start, region.ranges()[last]),
            cells,
            |position| (outer + group(last, position), step),
        );
        for at in (0..last).rev() {
            position[at] += 1;
            if position[at] < region.ranges()[at].1 {
                break;
            }
            position[at] = region.start(at);
        }
    }
    states
}

/// Sees a row along the last dimension, whose cells become one by so many.
fn add_row(
    states: &mut States,
    block: &Block,
    (start, (from, to)): (usize, (u64, u64)),
    cells: u64,
    group: impl Fn(u64) -> (usize, usize),
) {
    let (first, step) = group(from);
    if cells == 1 || step == 0 {
        let length = (to - from) as usize;
        states.add(
            block,
            Row {
                start,
                length,
                group: first,
                step,
            },
        );
        return;
    }
    let mut at = from;
    while at < to {
        let end = to.min((at / cells + 1) * cells);
        let row = Row {
            start: start + (at - from) as usize,
            length: (end - at) as usize,
            group: group(at).0,
            step: 0,
        };
        states.add(block, row);
        at = end;
    }
}

impl Source for Grouped {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.grid.clone()
    }

    fn block<'a>(&'a self, region: &'a Region, _: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        self.compute(region).boxed()
    }
}
