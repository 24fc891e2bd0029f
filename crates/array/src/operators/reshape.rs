//! Operators that only change where cells are: parts, other orders of the dimensions, other chunks.

use futures::future::{BoxFuture, FutureExt};

use crate::data::assembly::Assembly;
use crate::data::block::Block;
use crate::data::grid::{Axis, Grid};
use crate::data::region::Region;
use crate::data::strided::{respread, row_major};
use crate::error::{Error, Result, listed};
use crate::model::decimal::Decimal;
use crate::model::dimension::{Bound, Coordinates, Dimension};
use crate::model::schema::Schema;
use crate::operators::source::{Input, Part, Source};
use crate::storage::record::Statistics;

/// How the result of `subarray` is cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chunking {
    /// In chunks of the input's lengths, from the first cell of the result on: as SciDB does.
    #[default]
    Regular,
    /// Where the input is cut: each chunk of the result is part of one chunk of the input, and at the edges they are
    /// smaller. As SAVIME does.
    Inherited,
}

/// A box of the input, whose positions begin at 0 again; dimensions in `dropped` have one position and are left out.
pub(crate) struct Subarray {
    input: Input,
    schema: Schema,
    grid: Grid,
    origin: Vec<u64>,
    /// The number in the input of each dimension that is left.
    kept: Vec<usize>,
}

impl Subarray {
    /// The box between pairs of bounds.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Operator`].
    pub fn new(input: Input, bounds: &[(Bound, Bound)], chunking: Chunking) -> Result<Subarray> {
        let ranges = input.schema().ranges(bounds, "subarray")?;
        let kept = (0..ranges.len()).collect();
        Subarray::of(input, ranges, kept, chunking, true)
    }

    /// The cells at single coordinates of some dimensions, without these dimensions.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::OutOfRange`], [`Error::Operator`].
    pub fn slice(input: Input, at: &[(String, Decimal)]) -> Result<Subarray> {
        let schema = input.schema();
        let mut ranges: Vec<_> = schema
            .shape()
            .into_iter()
            .map(|length| (0, length))
            .collect();
        let mut kept: Vec<usize> = (0..ranges.len()).collect();
        for (name, coordinate) in at {
            let number = schema.dimension(name, "slice")?;
            if !kept.contains(&number) {
                return Err(wrong("slice", format!("dimension '{name}' is given twice")));
            }
            kept.retain(|&of| of != number);
            let position = schema.dimensions()[number].position(*coordinate, "slice")?;
            ranges[number] = (position, position + 1);
        }
        if kept.is_empty() {
            return Err(wrong(
                "slice",
                "it must leave at least one dimension".to_owned(),
            ));
        }
        Subarray::of(input, ranges, kept, Chunking::Inherited, false)
    }

    fn of(
        input: Input,
        ranges: Vec<(u64, u64)>,
        kept: Vec<usize>,
        chunking: Chunking,
        rebased: bool,
    ) -> Result<Subarray> {
        let dimensions = input.schema().dimensions();
        let parts = kept
            .iter()
            .map(|&at| dimensions[at].part(ranges[at], rebased))
            .collect();
        let schema = Schema::derived(parts, input.schema().attributes().to_vec())?;
        // Of a dimension with other coordinates nothing is known.
        let same = kept.iter().map(|&at| &dimensions[at]).zip(&kept);
        let same = same.filter(|(of, at)| {
            !rebased || of.part(ranges[**at], true) == of.part(ranges[**at], false)
        });
        let schema = schema
            .with_parts_of(input.schema(), same.map(|(of, _)| (of.name(), of.name())))
            .with_attributes_of(input.schema())
            .said_as(input.schema());
        let grid = match chunking {
            Chunking::Regular => Grid::of(&schema),
            Chunking::Inherited => {
                let axes = input.grid();
                let part = |&at: &usize| axes.axes()[at].part(ranges[at].0, ranges[at].1);
                Grid::of_axes(kept.iter().map(part).collect())
            }
        };
        Ok(Subarray {
            input,
            schema,
            grid,
            origin: ranges.into_iter().map(|range| range.0).collect(),
            kept,
        })
    }

    /// A region of the result as one of the input.
    fn inner(&self, region: &Region) -> Region {
        let mut ranges: Vec<_> = self.origin.iter().map(|&at| (at, at + 1)).collect();
        for (&at, &(start, end)) in self.kept.iter().zip(region.ranges()) {
            ranges[at] = (self.origin[at] + start, self.origin[at] + end);
        }
        Region::new(ranges)
    }
}

fn wrong(operator: &'static str, what: String) -> Error {
    Error::Operator { operator, what }
}

impl Source for Subarray {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.grid.clone()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let block = self.input.block(&self.inner(region), wanted).await?;
            Ok(block.at(region.clone()))
        }
        .boxed()
    }

    fn statistics(&self, region: &Region, attribute: usize) -> Result<Option<Statistics>> {
        self.input.statistics(&self.inner(region), attribute)
    }

    fn home(&self, region: &Region) -> usize {
        self.input.home(&self.inner(region))
    }

    fn stored(&self, region: &Region) -> Option<Part> {
        self.input.stored(&self.inner(region))
    }
}

/// The input, of which only cells in a box exist; coordinates stay.
pub(crate) struct Between {
    input: Input,
    within: Region,
}

impl Between {
    /// The box between pairs of bounds.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Operator`].
    pub fn new(input: Input, bounds: &[(Bound, Bound)]) -> Result<Between> {
        let within = Region::new(input.schema().ranges(bounds, "between")?);
        Ok(Between { input, within })
    }
}

impl Source for Between {
    fn schema(&self) -> &Schema {
        self.input.schema()
    }

    fn grid(&self) -> Grid {
        self.input.grid()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let common = region.intersection(&self.within);
            if common == *region {
                return self.input.block(region, wanted).await;
            }
            let mut assembly = Assembly::new(self.schema(), region, wanted)?;
            if !common.is_empty() {
                assembly.put(&self.input.block(&common, wanted).await?);
            }
            assembly.finish()
        }
        .boxed()
    }
}

/// The input with its dimensions in another order.
pub(crate) struct Transpose {
    input: Input,
    schema: Schema,
    grid: Grid,
    /// The number in the input of each dimension.
    order: Vec<usize>,
}

impl Transpose {
    /// The order of these dimensions; the reverse one if there are none.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`].
    pub fn new(input: Input, names: &[String]) -> Result<Transpose> {
        let schema = input.schema();
        let rank = schema.dimensions().len();
        let numbers = names.iter().map(|name| schema.dimension(name, "transpose"));
        let mut order = numbers.collect::<Result<Vec<_>>>()?;
        if order.is_empty() {
            order = (0..rank).rev().collect();
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank) {
            let all = listed(schema.dimensions().iter().map(Dimension::name));
            return Err(wrong(
                "transpose",
                format!("name each dimension once: {all}"),
            ));
        }
        let dimensions = order
            .iter()
            .map(|&at| schema.dimensions()[at].clone())
            .collect();
        let axes = input.grid();
        Ok(Transpose {
            schema: Schema::derived(dimensions, schema.attributes().to_vec())?.with_all_of(schema),
            grid: Grid::of_axes(order.iter().map(|&at| axes.axes()[at].clone()).collect()),
            input,
            order,
        })
    }
}

impl Source for Transpose {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.grid.clone()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let mut ranges = vec![(0, 0); self.order.len()];
            for (&at, &range) in self.order.iter().zip(region.ranges()) {
                ranges[at] = range;
            }
            let inner = Region::new(ranges);
            let block = self.input.block(&inner, wanted).await?;
            let steps = row_major(&inner.shape());
            let steps: Vec<usize> = self.order.iter().map(|&at| steps[at]).collect();
            respread(&block, region, &steps)
        }
        .boxed()
    }
}

/// The input in other chunks.
pub(crate) struct Rechunk {
    input: Input,
    schema: Schema,
}

impl Rechunk {
    /// Chunks of these lengths, one for each dimension.
    ///
    /// # Errors
    /// [`Error::Operator`], [`Error::Schema`].
    pub fn new(input: Input, chunks: &[u64]) -> Result<Rechunk> {
        let dimensions = input.schema().dimensions();
        if chunks.len() != dimensions.len() {
            let what = format!(
                "{} lengths are given for {} dimensions",
                chunks.len(),
                dimensions.len()
            );
            return Err(wrong("rechunk", what));
        }
        let with = dimensions
            .iter()
            .zip(chunks)
            .map(|(of, &chunk)| of.clone().chunk(chunk));
        let schema = Schema::derived(with.collect(), input.schema().attributes().to_vec())?
            .with_all_of(input.schema());
        Ok(Rechunk { input, schema })
    }
}

impl Source for Rechunk {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        self.input.block(region, wanted)
    }

    fn statistics(&self, region: &Region, attribute: usize) -> Result<Option<Statistics>> {
        self.input.statistics(region, attribute)
    }

    fn home(&self, region: &Region) -> usize {
        self.input.home(region)
    }

    fn stored(&self, region: &Region) -> Option<Part> {
        self.input.stored(region)
    }
}

/// Two inputs, one behind the other along a dimension.
pub(crate) struct Concat {
    inputs: [Input; 2],
    schema: Schema,
    along: usize,
    grid: Grid,
}

impl Concat {
    /// `second` behind `first` along a dimension of the first.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`] if they differ in anything else.
    pub fn new(first: Input, second: Input, dimension: &str) -> Result<Concat> {
        let (a, b) = (first.schema(), second.schema());
        let along = a.dimension(dimension, "concat")?;
        let types = |of: &Schema| {
            of.attributes()
                .iter()
                .map(|of| of.data_type())
                .collect::<Vec<_>>()
        };
        let others = |of: &Schema| {
            let mut shape = of.shape();
            if along < shape.len() {
                shape.remove(along);
            }
            shape
        };
        if a.dimensions().len() != b.dimensions().len()
            || types(a) != types(b)
            || others(a) != others(b)
        {
            let what =
                "both must have the same attributes, and the same lengths but for that dimension";
            return Err(wrong("concat", what.to_owned()));
        }
        let mut dimensions = a.dimensions().to_vec();
        dimensions[along] = joined(&a.dimensions()[along], &b.dimensions()[along]);
        let attributes = a.attributes().iter().zip(b.attributes()).map(|(a, b)| {
            if b.is_nullable() {
                a.clone().nullable()
            } else {
                a.clone()
            }
        });
        let has_coordinates = dimensions[along].is_integer() == a.dimensions()[along].is_integer();
        let schema = Schema::derived(dimensions, attributes.collect())?;
        // What is said of one alone is not said of both.
        let pairs = a.dimensions().iter().zip(b.dimensions()).enumerate();
        let pairs = pairs.filter(|(at, _)| *at != along || has_coordinates);
        let pairs = pairs.map(|(_, (a, b))| (a.name(), b.name()));
        let attributes = a.attributes().iter().zip(b.attributes());
        let pairs = pairs.chain(attributes.map(|(a, b)| (a.name(), b.name())));
        let kept = pairs.filter(|(of_a, of_b)| a.metadata().agrees(of_a, b.metadata(), of_b));
        let schema = schema.with_parts_of(a, kept.map(|(name, _)| (name, name)));
        let mut axes = first.grid().axes().to_vec();
        axes[along] = behind(
            &first.grid().axes()[along],
            &second.grid().axes()[along],
            a.shape()[along],
        );
        Ok(Concat {
            grid: Grid::of_axes(axes),
            inputs: [first, second],
            schema,
            along,
        })
    }
}

/// A dimension that goes on as another: with its coordinates where they go on in order, else with whole numbers from 0.
fn joined(first: &Dimension, second: &Dimension) -> Dimension {
    let length = first.length() + second.length();
    let mut joined = match first.coordinates() {
        Coordinates::Integer { start } => Dimension::integer(first.name(), *start, length),
        _ => {
            let ends = [first, second]
                .into_iter()
                .flat_map(|of| (0..of.length()).map(|at| of.coordinate(at)));
            let all: Option<Vec<Decimal>> = ends.collect();
            let listed =
                all.map(|all| Dimension::listed(first.name(), all).chunk(first.chunk_length()));
            listed
                .filter(|of| of.check().is_ok())
                .unwrap_or_else(|| Dimension::integer(first.name(), 0, length))
        }
    };
    joined.chunk = first.chunk_length();
    joined
}

/// The cuts of one dimension, and those of another that begins at `start`.
fn behind(first: &Axis, second: &Axis, start: u64) -> Axis {
    let mut cuts = vec![0];
    let ends = |of: &Axis, from: u64| {
        let single = Grid::of_axes(vec![of.clone()]);
        let each = single
            .all()
            .map(|at| single.region(&at).ranges()[0].1 + from);
        each.collect::<Vec<_>>()
    };
    cuts.extend(ends(first, 0));
    cuts.extend(ends(second, start));
    Axis::Uneven(cuts)
}

impl Source for Concat {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.grid.clone()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let border = self.inputs[0].schema().shape()[self.along];
            let mut assembly = Assembly::new(&self.schema, region, wanted)?;
            let mut by = vec![0; region.rank()];
            let (start, end) = region.ranges()[self.along];
            for (input, (from, to)) in self.inputs.iter().zip([(0, border), (border, u64::MAX)]) {
                let mut ranges = region.ranges().to_vec();
                ranges[self.along] = (start.max(from), end.min(to));
                let part = Region::new(ranges);
                if !part.is_empty() {
                    let block = input.block(&part.relative_to(&by), wanted).await?;
                    assembly.put(&block.at(part));
                }
                by[self.along] = border;
            }
            assembly.finish()
        }
        .boxed()
    }
}
