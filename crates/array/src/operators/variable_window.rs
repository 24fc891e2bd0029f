//! Moving windows of a number of cells that exist, along one dimension.

use futures::future::{BoxFuture, FutureExt};

use crate::data::block::Block;
use crate::data::grid::{Axis, Grid};
use crate::data::region::Region;
use crate::data::strided::row_major;
use crate::error::Result;
use crate::model::schema::Schema;
use crate::operators::functions::{Aggregate, Bound};
use crate::operators::source::{Input, Source};
use crate::operators::states::{Row, States};

/// What is asked for: a dimension, and how many cells that exist, before and after each along it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub dimension: String,
    pub before: u64,
    pub after: u64,
    pub aggregates: Vec<Aggregate>,
}

/// For each cell that exists, aggregates over it and so many before and after it that exist, wherever they are along the
/// dimension.
pub(crate) struct VariableWindow {
    input: Input,
    bound: Bound,
    schema: Schema,
    grid: Grid,
    /// The number of the dimension.
    along: usize,
    before: usize,
    after: usize,
}

impl VariableWindow {
    /// Looks names up.
    ///
    /// # Errors
    /// [`Error::Unknown`](crate::Error::Unknown), [`Error::Operator`](crate::Error::Operator).
    pub fn new(input: Input, asked: &Asked) -> Result<VariableWindow> {
        let schema = input.schema();
        let bound = Bound::new("variable_window", schema, &asked.aggregates)?;
        let along = schema.dimension(&asked.dimension, "variable_window")?;
        // Who is near along the dimension is known only from all of a line.
        let mut axes = input.grid().axes().to_vec();
        axes[along] = match schema.shape()[along] {
            0 => Axis::Uneven(vec![0]),
            length => Axis::Uneven(vec![0, length]),
        };
        let most = |of: u64| usize::try_from(of.min(schema.shape()[along])).unwrap_or(usize::MAX);
        Ok(VariableWindow {
            schema: Schema::derived(schema.dimensions().to_vec(), bound.attributes.clone())?
                .with_dimensions_of(schema),
            grid: Grid::of_axes(axes),
            before: most(asked.before),
            after: most(asked.after),
            input,
            bound,
            along,
        })
    }

    async fn compute(&self, region: &Region) -> Result<Block> {
        let mut lines = region.ranges().to_vec();
        lines[self.along] = (0, self.schema.shape()[self.along]);
        let lines = Region::new(lines);
        let block = self.input.block(&lines, &self.bound.needed).await?;
        let count = region.cells("a part of a window")?;
        let mut states = States::new(&self.bound, count);
        let mut present = vec![0; count];
        let (of_block, of_result) = (row_major(&lines.shape()), row_major(&region.shape()));
        let (step, to_step) = (of_block[self.along], of_result[self.along]);
        let (start, end) = region.ranges()[self.along];
        let mut across: Vec<(u64, u64)> = region.shape().iter().map(|&of| (0, of)).collect();
        across[self.along] = (0, 1);
        let axes = across
            .iter()
            .map(|&(_, length)| Axis::Regular { length, chunk: 1 });
        for line in Grid::of_axes(axes.collect()).all() {
            let place = |steps: &[usize]| -> usize {
                let both = line.iter().zip(steps);
                both.map(|(&at, step)| at as usize * step).sum()
            };
            let (from, to) = (place(&of_block), place(&of_result));
            let cell = |position: u64| from + position as usize * step;
            let there: Vec<u64> = (0..lines.length(self.along))
                .filter(|&position| block.exists(cell(position)))
                .collect();
            for (number, &position) in there.iter().enumerate() {
                if !(start..end).contains(&position) {
                    continue;
                }
                let group = to + (position - start) as usize * to_step;
                present[group] = 1;
                let last = (number + self.after).min(there.len() - 1);
                for &near in &there[number.saturating_sub(self.before)..=last] {
                    let row = Row {
                        start: cell(near),
                        length: 1,
                        group,
                        step: 0,
                    };
                    states.add(&block, row);
                }
            }
        }
        let columns = states.finish()?.into_iter().map(Some).collect();
        let result = Block::new(region.clone(), columns)?;
        Ok(match block.present() {
            None => result,
            Some(_) => result.with_present(present),
        })
    }
}

impl Source for VariableWindow {
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
