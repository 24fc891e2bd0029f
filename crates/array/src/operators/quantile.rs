//! Quantiles: exact, between two values by the straight line, as NumPy's default.

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::grid::{Axis, Grid};
use crate::data::region::Region;
use crate::data::runs::each_run;
use crate::error::{Error, Result};
use crate::model::decimal::Decimal;
use crate::model::dimension::Dimension;
use crate::model::schema::{Attribute, Schema};
use crate::model::types::{DataType, Element, with_type};
use crate::operators::source::{Crew, Input, Source};

/// What is asked for: an attribute, the shares of values that lie below, and the dimensions that are kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub attribute: String,
    pub points: Vec<Decimal>,
    pub by: Vec<String>,
}

/// Quantiles of an attribute for each coordinate of some dimensions, or over all cells; along a last dimension, whose
/// coordinates are those that were asked for.
pub(crate) struct Quantile {
    input: Input,
    attribute: usize,
    points: Vec<f64>,
    /// The numbers of the dimensions that are kept.
    kept: Vec<usize>,
    needed: Vec<bool>,
    schema: Schema,
    grid: Grid,
    crew: Crew,
}

impl Quantile {
    /// Looks names up.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`], [`Error::Schema`].
    pub fn new(input: Input, asked: &Asked, crew: Crew) -> Result<Quantile> {
        let schema = input.schema();
        let attribute = schema.attribute(&asked.attribute, "quantile")?;
        check_number("quantile", &schema.attributes()[attribute])?;
        let points: Vec<f64> = asked.points.iter().map(|of| of.to_f64()).collect();
        if points.is_empty() || points.iter().any(|of| !(0.0..=1.0).contains(of)) {
            return wrong("give at least one number from 0 to 1, such as 0.5 for the median");
        }
        let grid = input.grid();
        let (mut kept, mut dimensions, mut axes) = (Vec::new(), Vec::new(), Vec::new());
        for name in &asked.by {
            let number = schema.dimension(name, "quantile")?;
            if kept.contains(&number) {
                return wrong(&format!("dimension '{name}' is given twice"));
            }
            kept.push(number);
            dimensions.push(schema.dimensions()[number].clone());
            axes.push(grid.axes()[number].clone());
        }
        let mut names: Vec<String> = asked.by.clone();
        let fresh = |of: &str, names: &mut Vec<String>| {
            let mut name = of.to_owned();
            while names.contains(&name) {
                name.push_str("_2");
            }
            names.push(name.clone());
            name
        };
        let (name, result) = (
            fresh("quantile", &mut names),
            fresh(&format!("quantile_{}", asked.attribute), &mut names),
        );
        let count = points.len() as u64;
        dimensions.push(Dimension::listed(&name, asked.points.clone()).chunk(count));
        axes.push(Axis::Regular {
            length: count,
            chunk: count,
        });
        let attributes = vec![Attribute::new(&result, DataType::F64).nullable()];
        let mut needed = vec![false; schema.attributes().len()];
        needed[attribute] = true;
        let kept_names = asked.by.iter().map(|name| (name.as_str(), name.as_str()));
        Ok(Quantile {
            schema: Schema::derived(dimensions, attributes)?.with_parts_of(schema, kept_names),
            grid: Grid::of_axes(axes),
            input,
            attribute,
            points,
            kept,
            needed,
            crew,
        })
    }

    async fn compute(&self, region: &Region) -> Result<Block> {
        let shape = self.input.schema().shape();
        let mut inner: Vec<_> = shape.iter().map(|&length| (0, length)).collect();
        for (&at, &range) in self.kept.iter().zip(region.ranges()) {
            inner[at] = range;
        }
        let inner = Region::new(inner);
        let groups = self.groups(&Region::new(inner.ranges().iter().copied()));
        let mut seen = vec![Seen::default(); groups.cells("the groups of quantile")?];
        let grid = self.input.grid();
        let parts = grid.overlapping(&inner);
        let parts = parts.map(move |chunk| grid.region(&chunk).intersection(&inner));
        let (input, needed) = (self.input.clone(), self.needed.clone());
        let (attribute, kept) = (self.attribute, self.kept.clone());
        let task = move |part: Region| {
            let (input, needed, kept) = (input.clone(), needed.clone(), kept.clone());
            async move {
                let block = input.block(&part, &needed).await?;
                Ok((part, seen_of(&block, attribute, &kept)))
            }
        };
        let mut all = self.crew.ordered(parts, task);
        while let Some(next) = all.next().await {
            let (part, mut more) = next?;
            let of_part = self.groups(&part);
            each_run(&of_part, &of_part, &groups, |from, to, length| {
                for at in 0..length {
                    seen[to + at].merge(&mut more[from + at]);
                }
            });
        }
        self.finish(region, seen)
    }

    /// The groups that a region of the input has cells of; one if no dimension is kept.
    fn groups(&self, inner: &Region) -> Region {
        if self.kept.is_empty() {
            return Region::new([(0, 1)]);
        }
        Region::new(self.kept.iter().map(|&at| inner.ranges()[at]))
    }

    fn finish(&self, region: &Region, seen: Vec<Seen>) -> Result<Block> {
        let range = region.ranges()[self.kept.len()];
        let points = &self.points[range.0 as usize..range.1 as usize];
        let count = region.cells("the result of quantile")?;
        let (mut values, mut valid) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut present = Vec::with_capacity(count);
        for mut group in seen {
            for &point in points {
                let found = group.quantile(point);
                values.push(found.unwrap_or(0.0));
                valid.push(u8::from(found.is_some()));
                present.push(u8::from(group.cells > 0));
            }
        }
        let column = Column::nullable(Buffer::of(DataType::F64, &values), valid);
        let block = Block::new(region.clone(), vec![Some(column)])?;
        // As with aggregates: a group without cells is none, but the one of all cells is there.
        if self.kept.is_empty() {
            return Ok(block);
        }
        Ok(block.with_present(present))
    }
}

fn wrong<T>(what: &str) -> Result<T> {
    Err(Error::Operator {
        operator: "quantile",
        what: what.to_owned(),
    })
}

/// That an attribute has numbers.
///
/// # Errors
/// [`Error::Operator`].
pub(crate) fn check_number(operator: &'static str, attribute: &Attribute) -> Result<()> {
    if attribute.data_type() == DataType::Bool {
        return Err(Error::Operator {
            operator,
            what: "a bool is no number; cast it, as in int8(...)".to_owned(),
        });
    }
    Ok(())
}

/// What was seen of a group.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Cells that exist.
    cells: u64,
    nan: bool,
    /// Those that are neither null nor NaN.
    values: Vec<f64>,
}

impl Seen {
    fn merge(&mut self, other: &mut Seen) {
        self.cells += other.cells;
        self.nan |= other.nan;
        if self.values.is_empty() {
            std::mem::swap(&mut self.values, &mut other.values);
        } else {
            self.values.append(&mut other.values);
        }
    }

    /// The value below which a share of the values lies; none of no values.
    fn quantile(&mut self, point: f64) -> Option<f64> {
        if self.nan {
            return Some(f64::NAN);
        }
        let last = self.values.len().checked_sub(1)?;
        let place = last as f64 * point;
        let below = (place.floor() as usize).min(last);
        let (_, &mut low, above) = self.values.select_nth_unstable_by(below, f64::total_cmp);
        let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
        Some(between(low, high, place - below as f64))
    }
}

/// The point at a share of the way from one value to another, computed as NumPy does it. At the ends it is the value
/// itself, also where the other is infinite.
fn between(low: f64, high: f64, share: f64) -> f64 {
    if share <= 0.0 || low == high {
        return low;
    }
    let way = high - low;
    if share >= 0.5 {
        high - way * (1.0 - share)
    } else {
        low + way * share
    }
}

/// What is seen of a block, for the groups that it has cells of, in row-major order of the kept dimensions.
fn seen_of(block: &Block, attribute: usize, kept: &[usize]) -> Vec<Seen> {
    let region = block.region();
    let mut steps = vec![0; region.rank()];
    let mut groups = 1;
    for &at in kept.iter().rev() {
        steps[at] = groups;
        groups *= region.length(at) as usize;
    }
    let mut seen = vec![Seen::default(); groups];
    let Some(column) = block.column(attribute) else {
        return seen;
    };
    with_type!(column.values().data_type(), T => {
        let values = column.values().values::<T>();
        let (mut group, mut at) = (0, vec![0; region.rank()]);
        for (cell, value) in values.iter().enumerate() {
            if block.exists(cell) {
                let null = column.valid().is_some_and(|valid| valid[cell] == 0);
                see(&mut seen[group], (!null).then(|| value.to_f64()));
            }
            for dimension in (0..at.len()).rev() {
                at[dimension] += 1;
                group += steps[dimension];
                if at[dimension] < region.length(dimension) as usize {
                    break;
                }
                group -= steps[dimension] * at[dimension];
                at[dimension] = 0;
            }
        }
    });
    seen
}

fn see(seen: &mut Seen, value: Option<f64>) {
    seen.cells += 1;
    match value {
        Some(value) if value.is_nan() => seen.nan = true,
        Some(value) => seen.values.push(value),
        None => {}
    }
}

impl Source for Quantile {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_two_lie_on_the_line() {
        let quantile = |values: &[f64], point| {
            let mut seen = Seen {
                cells: values.len() as u64,
                nan: false,
                values: values.to_vec(),
            };
            seen.quantile(point)
        };
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 10.0], 0.5), Some(2.5));
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 10.0], 1.0), Some(10.0));
        assert_eq!(quantile(&[7.0], 0.3), Some(7.0));
        assert_eq!(quantile(&[], 0.3), None);
        let infinite = [f64::NEG_INFINITY, 0.0, f64::INFINITY];
        assert_eq!(quantile(&infinite, 0.5), Some(0.0));
        assert_eq!(quantile(&infinite, 0.0), Some(f64::NEG_INFINITY));
    }
}
