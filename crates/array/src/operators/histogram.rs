//! Histograms: how many values lie in each of some intervals of one width, as NumPy counts them.

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::model::dimension::Dimension;
use crate::model::schema::{Attribute, Schema};
use crate::model::types::{DataType, Element, with_type};
use crate::operators::quantile::check_number;
use crate::operators::source::{Crew, Input, Source};

/// The most intervals.
const MOST: u64 = 1 << 24;

/// What is asked for: an attribute, how many intervals, and from where to where; without, from the least value to the
/// greatest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub attribute: String,
    pub bins: u64,
    pub range: Option<(f64, f64)>,
}

/// The intervals as a list: from where, to where, and how many values each has. The last one has its end, too. Nulls, NaN
/// and values outside are in none.
pub(crate) struct Histogram {
    input: Input,
    attribute: usize,
    bins: usize,
    range: Option<(f64, f64)>,
    needed: Vec<bool>,
    schema: Schema,
    crew: Crew,
    made: futures::lock::Mutex<Option<Block>>,
}

impl Histogram {
    /// Looks names up.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`].
    pub fn new(input: Input, asked: &Asked, crew: Crew) -> Result<Histogram> {
        let schema = input.schema();
        let attribute = schema.attribute(&asked.attribute, "histogram")?;
        check_number("histogram", &schema.attributes()[attribute])?;
        if asked.bins == 0 || asked.bins > MOST {
            return wrong(&format!("give how many intervals, from 1 to {MOST}"));
        }
        if let Some(range) = asked.range {
            check_range(range)?;
        }
        let range = asked.range.map(|(a, b)| (a.min(b), a.max(b)));
        let bin = Dimension::integer("bin", 0, asked.bins).chunk(asked.bins);
        let attributes = vec![
            Attribute::new("low", DataType::F64),
            Attribute::new("high", DataType::F64),
            Attribute::new("count", DataType::U64),
        ];
        let mut needed = vec![false; schema.attributes().len()];
        needed[attribute] = true;
        Ok(Histogram {
            schema: Schema::derived(vec![bin], attributes)?,
            bins: asked.bins as usize,
            input,
            attribute,
            range,
            needed,
            crew,
            made: futures::lock::Mutex::new(None),
        })
    }

    /// What `of` gives for each chunk, put together by `with`.
    async fn fold<T: Send + 'static>(
        &self,
        first: T,
        of: impl Fn(&Block, usize) -> T + Clone + Send + Sync + 'static,
        with: impl Fn(T, T) -> T + Send + Sync,
    ) -> Result<T> {
        let (grid, input, needed) = (self.input.grid(), self.input.clone(), self.needed.clone());
        let chunks = grid.all();
        let attribute = self.attribute;
        let task = move |chunk: Vec<u64>| {
            let (input, needed, region) = (input.clone(), needed.clone(), grid.region(&chunk));
            let of = of.clone();
            async move { Ok(of(&input.block(&region, &needed).await?, attribute)) }
        };
        let mut found = self.crew.ordered(chunks, task);
        let mut all = first;
        while let Some(more) = found.next().await {
            all = with(all, more?);
        }
        Ok(all)
    }

    async fn compute(&self) -> Result<Block> {
        let (low, high) = match self.range {
            Some(range) => range,
            None => {
                let none = (f64::INFINITY, f64::NEG_INFINITY);
                let with = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
                let ends = self.fold(none, ends, with).await?;
                // As NumPy: from 0 to 1 without values.
                if ends == none { (0.0, 1.0) } else { ends }
            }
        };
        check_range((low, high))?;
        let edges = Edges::new(low, high, self.bins);
        let counting = edges.clone();
        let count = move |block: &Block, attribute| counting.count(block, attribute);
        let sum = |mut a: Vec<u64>, b: Vec<u64>| {
            a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
            a
        };
        let counts = self.fold(vec![0; self.bins], count, sum).await?;
        let lows: Vec<f64> = (0..self.bins).map(|at| edges.at(at)).collect();
        let highs: Vec<f64> = (1..=self.bins).map(|at| edges.at(at)).collect();
        let columns = vec![
            Some(Column::new(Buffer::of(DataType::F64, &lows))),
            Some(Column::new(Buffer::of(DataType::F64, &highs))),
            Some(Column::new(Buffer::of(DataType::U64, &counts))),
        ];
        Block::new(Region::of_shape(&[self.bins as u64]), columns)
    }
}

fn wrong<T>(what: &str) -> Result<T> {
    Err(Error::Operator {
        operator: "histogram",
        what: what.to_owned(),
    })
}

fn check_range((low, high): (f64, f64)) -> Result<()> {
    if (high - low).is_finite() {
        return Ok(());
    }
    wrong(&format!(
        "from {low} to {high} there are no intervals of one width; give other ends"
    ))
}

/// The ends of the intervals.
#[derive(Debug, Clone)]
struct Edges {
    low: f64,
    high: f64,
    step: f64,
    bins: usize,
}

impl Edges {
    fn new(low: f64, high: f64, bins: usize) -> Edges {
        // As NumPy: one value is in the middle of an interval of width 1.
        let (low, high) = if low == high {
            (low - 0.5, high + 0.5)
        } else {
            (low, high)
        };
        Edges {
            low,
            high,
            step: (high - low) / bins as f64,
            bins,
        }
    }

    fn at(&self, number: usize) -> f64 {
        if number == self.bins {
            self.high
        } else {
            number as f64 * self.step + self.low
        }
    }

    /// The interval of a value, if it is in one. What rounding has moved is put right by the ends themselves.
    fn find(&self, value: f64) -> Option<usize> {
        if !(self.low..=self.high).contains(&value) {
            return None;
        }
        let guess = (value - self.low) / (self.high - self.low) * self.bins as f64;
        let mut at = (guess as usize).min(self.bins - 1);
        while at > 0 && value < self.at(at) {
            at -= 1;
        }
        while at + 1 < self.bins && value >= self.at(at + 1) {
            at += 1;
        }
        Some(at)
    }

    fn count(&self, block: &Block, attribute: usize) -> Vec<u64> {
        let mut counts = vec![0; self.bins];
        each(block, attribute, |value| {
            if let Some(at) = self.find(value) {
                counts[at] += 1;
            }
        });
        counts
    }
}

/// The least and greatest value of a block that is a number.
fn ends(block: &Block, attribute: usize) -> (f64, f64) {
    let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
    // NaN is neither.
    each(block, attribute, |value| {
        ends = (ends.0.min(value), ends.1.max(value));
    });
    ends
}

/// Calls `with` for each value that exists and is not null.
fn each(block: &Block, attribute: usize, mut with: impl FnMut(f64)) {
    let Some(column) = block.column(attribute) else {
        return;
    };
    with_type!(column.values().data_type(), T => {
        for (cell, value) in column.values().values::<T>().iter().enumerate() {
            let null = column.valid().is_some_and(|valid| valid[cell] == 0);
            if block.exists(cell) && !null {
                with(value.to_f64());
            }
        }
    });
}

impl Source for Histogram {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let mut made = self.made.lock().await;
            let whole = match &*made {
                Some(whole) => whole.clone(),
                None => {
                    let whole = self.compute().await?;
                    *made = Some(whole.clone());
                    whole
                }
            };
            let mut part = crate::data::assembly::Assembly::new(&self.schema, region, wanted)?;
            part.put(&whole);
            part.finish()
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_interval_that_begins_with_them() {
        let edges = Edges::new(0.0, 1.0, 10);
        for at in 0..10 {
            assert_eq!(edges.find(edges.at(at)), Some(at));
        }
        assert_eq!(edges.find(1.0), Some(9), "the last has its end");
        assert_eq!(edges.find(1.0000001), None);
        assert_eq!(edges.find(-0.1), None);
        assert_eq!(edges.find(f64::NAN), None);
        assert_eq!(Edges::new(3.0, 3.0, 2).find(3.0), Some(1));
    }
}
