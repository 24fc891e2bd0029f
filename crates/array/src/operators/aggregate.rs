//! Aggregates over all cells, or for each coordinate of some dimensions; and over boxes of a grid.

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};

use crate::data::block::Block;
use crate::data::buffer::Buffer;
use crate::data::grid::{Axis, Grid};
use crate::data::region::Region;
use crate::data::runs::each_run;
use crate::error::{Error, Result};
use crate::model::dimension::Dimension;
use crate::model::schema::{Compression, Layout, Schema};
use crate::operators::folder::Folder;
use crate::operators::functions::{Aggregate, Bound};
use crate::operators::source::{Crew, Input, Source};
use crate::operators::states::States;

/// Bytes of an attribute that are read in one go before they are folded: half of a second-level cache.
const SLAB: u64 = 256 << 10;

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
        let kept_names = names.iter().map(|name| (name.as_str(), name.as_str()));
        Ok(Grouped {
            schema: Schema::derived(dimensions, bound.attributes.clone())?
                .with_parts_of(schema, kept_names),
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
                let states = states_of(&input, &part, &bound, &kept).await?;
                Ok((states, part))
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

/// What is seen of a part of the input, for the groups that it has cells of.
async fn states_of(
    input: &Input,
    part: &Region,
    bound: &Bound,
    kept: &[(usize, u64)],
) -> Result<States> {
    let mut folder = Folder::new(bound, part, kept);
    if !folder.in_pieces() || !see_stored(input, part, bound, &mut folder).await? {
        folder.block(&input.block(part, &bound.needed).await?);
    }
    Ok(folder.finish())
}

/// Sees what is nothing but a part of a stored array where it lies: from the pages if it is a whole chunk, in slabs that stay
/// in the caches between being read and being folded otherwise. False where that cannot be done.
async fn see_stored(
    input: &Input,
    part: &Region,
    bound: &Bound,
    folder: &mut Folder<'_>,
) -> Result<bool> {
    let Some(stored) = input.stored(part) else {
        return Ok(false);
    };
    let schema = stored.array.schema();
    let needed = |(at, _): &(usize, &usize)| bound.needed[*at];
    let attributes = stored.attributes.iter().enumerate().filter(needed);
    let attributes: Vec<_> = attributes
        .map(|(at, &number)| (at, number, &schema.attributes()[number]))
        .collect();
    if schema.layout() == Layout::Sparse || attributes.iter().any(|of| of.2.is_nullable()) {
        return Ok(false);
    }
    if !attributes.is_empty() {
        stored.array.count_read(&stored.region);
    }
    for (at, number, attribute) in attributes {
        let of = attribute.data_type();
        let mut each = |bytes: &[u8]| folder.piece(at, of, bytes);
        if stored
            .array
            .visit(&stored.region, number, &mut each)
            .await?
        {
            continue;
        }
        // What is compressed is decompressed once.
        let length = match attribute.compression() {
            Compression::None => SLAB,
            _ => u64::MAX,
        };
        let row: u64 = stored.region.shape()[1..].iter().product();
        let rows = (length / (row * of.width() as u64).max(1)).max(1);
        let (start, end) = stored.region.ranges()[0];
        let mut from = start;
        while from < end {
            let mut ranges = stored.region.ranges().to_vec();
            ranges[0] = (from, end.min(from.saturating_add(rows)));
            let slab = Region::new(ranges);
            let mut values = Buffer::zeros(of, slab.cells("a slab of an array")?);
            let read = stored.array.read_into(&slab, number, values.bytes_mut());
            read.await?;
            folder.piece(at, of, values.bytes());
            from = slab.ranges()[0].1;
        }
    }
    Ok(true)
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
