//! Attributes that become dimensions, and dimensions that become attributes.

use futures::StreamExt;

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::expr::bind::Typed;
use crate::expr::evaluate::Over;
use crate::expr::syntax;
use crate::model::decimal::Decimal;
use crate::model::dimension::Dimension;
use crate::model::schema::{Attribute, Schema};
use crate::model::types::Scalar;
use crate::operators::functions::{Aggregate, Bound};
use crate::operators::memory::ArrayData;
use crate::operators::source::{Crew, Input};
use crate::operators::states::{Row, States};
use crate::storage::sparse::copy_value;

/// What a redimension makes: dimensions, whose names are attributes or dimensions of the input, and attributes, which are
/// attributes or dimensions of the input, or aggregates of the cells that come to one place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub dimensions: Vec<Dimension>,
    pub attributes: Vec<String>,
    pub aggregates: Vec<Aggregate>,
}

/// What is looked up for each cell.
pub(crate) struct Redimension {
    places: Vec<Typed>,
    values: Vec<Typed>,
    bound: Option<Bound>,
    pub schema: Schema,
}

impl Redimension {
    /// Looks names up.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`], [`Error::Schema`].
    pub fn new(input: &Schema, target: &Target) -> Result<Redimension> {
        let typed = |name: &str| Typed::new(&syntax::name(name), input, "redimension");
        let places = target.dimensions.iter().map(|of| typed(of.name()));
        let places = places.collect::<Result<Vec<_>>>()?;
        let values = target
            .attributes
            .iter()
            .map(|name| typed(name))
            .collect::<Result<Vec<_>>>()?;
        let named = target.attributes.iter().zip(&values).map(|(name, of)| {
            let attribute = Attribute::new(name, of.of);
            if of.nullable {
                attribute.nullable()
            } else {
                attribute
            }
        });
        let mut attributes: Vec<Attribute> = named.collect();
        let bound = if target.aggregates.is_empty() {
            None
        } else {
            Some(Bound::new("redimension", input, &target.aggregates)?)
        };
        attributes.extend(bound.iter().flat_map(|bound| bound.attributes.clone()));
        if bound.is_some() && !values.is_empty() {
            let what = "give attributes or aggregates, not both".to_owned();
            return Err(Error::Operator {
                operator: "redimension",
                what,
            });
        }
        // Values become coordinates, and coordinates values, as they are.
        let named = target.attributes.iter().map(String::as_str);
        let kept = target.dimensions.iter().map(Dimension::name).chain(named);
        let mut schema = Schema::new(target.dimensions.clone(), attributes)?
            .with_parts_of(input, kept.map(|name| (name, name)));
        if bound.is_none() {
            schema = schema.said_as(input);
        }
        Ok(Redimension {
            places,
            values,
            bound,
            schema,
        })
    }

    /// Puts every cell of the input where it belongs. One with a null or NaN as a coordinate has no place and is left out.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] of a coordinate; [`Error::Operator`] where two cells come to one place without aggregates.
    pub async fn run(self, input: &Input, crew: &Crew) -> Result<ArrayData> {
        let region = Region::of_shape(&self.schema.shape());
        let count = region.cells("the result of redimension")?;
        let mut needed = vec![false; input.schema().attributes().len()];
        self.places
            .iter()
            .chain(&self.values)
            .for_each(|of| of.attributes(&mut needed));
        if let Some(bound) = &self.bound {
            needed
                .iter_mut()
                .zip(&bound.needed)
                .for_each(|(of, more)| *of |= more);
        }
        let mut filled = Filled::new(&self, count);
        let (grid, source) = (input.grid(), input.clone());
        let chunks = grid.all();
        let task = move |chunk: Vec<u64>| {
            let (source, needed, region) = (source.clone(), needed.clone(), grid.region(&chunk));
            async move { source.block(&region, &needed).await }
        };
        let mut blocks = crew.ordered(chunks, task);
        while let Some(block) = blocks.next().await {
            let block = block?;
            let over = Over {
                schema: input.schema(),
                block: &block,
            };
            let places = self.places.iter().map(|of| over.evaluate(of));
            let places = places.collect::<Result<Vec<_>>>()?;
            let values = self.values.iter().map(|of| over.evaluate(of));
            let values = values.collect::<Result<Vec<_>>>()?;
            for cell in (0..block.cells()).filter(|&cell| block.exists(cell)) {
                if let Some(place) = self.place(&places, cell, &region)?
                    && !filled.put(&block, cell, &values, place)
                {
                    return Err(collision(&places, cell));
                }
            }
        }
        let (columns, present) = filled.finish()?;
        let block = Block::new(region, columns)?.with_present(present);
        Ok(ArrayData::of_block(self.schema, block))
    }

    /// The row-major number of the place where a cell belongs.
    fn place(&self, places: &[Column], cell: usize, region: &Region) -> Result<Option<usize>> {
        let mut number = 0;
        for (at, (column, dimension)) in places.iter().zip(self.schema.dimensions()).enumerate() {
            let coordinate = match column.get(cell) {
                Scalar::Null => return Ok(None),
                Scalar::Float(value) if !value.is_finite() => return Ok(None),
                // As it is written in the fewest digits: 0.1 is 0.1.
                Scalar::Float(value) => value.to_string().parse::<Decimal>()?,
                Scalar::Bool(value) => i64::from(value).into(),
                Scalar::Int(value) => value.to_string().parse::<Decimal>()?,
            };
            let position = dimension.position(coordinate, "redimension")?;
            number = number * region.length(at) as usize + position as usize;
        }
        Ok(Some(number))
    }
}

/// The cells that have come to their places so far.
struct Filled {
    states: Option<States>,
    columns: Vec<(Buffer, Vec<u8>)>,
    present: Vec<u8>,
}

impl Filled {
    fn new(of: &Redimension, count: usize) -> Filled {
        let states = of.bound.as_ref().map(|bound| States::new(bound, count));
        let attributes = of.schema.attributes().iter();
        let column = |of: &Attribute| (Buffer::zeros(of.data_type(), count), vec![1u8; count]);
        Filled {
            columns: if states.is_some() {
                Vec::new()
            } else {
                attributes.map(column).collect()
            },
            states,
            present: vec![0; count],
        }
    }

    /// Puts a cell to its place; false if that is taken, and cells are not aggregated.
    fn put(&mut self, block: &Block, cell: usize, values: &[Column], place: usize) -> bool {
        let taken = std::mem::replace(&mut self.present[place], 1) != 0;
        if let Some(states) = &mut self.states {
            let row = Row {
                start: cell,
                length: 1,
                group: place,
                step: 0,
            };
            states.add(block, row);
            return true;
        }
        for ((column, valid), from) in self.columns.iter_mut().zip(values) {
            copy_value(from.values(), cell, column, place);
            valid[place] = from.valid().map_or(1, |valid| valid[cell]);
        }
        !taken
    }

    fn finish(self) -> Result<(Vec<Option<Column>>, Vec<u8>)> {
        let columns = match self.states {
            Some(states) => states.finish()?,
            None => {
                let columns = self.columns.into_iter();
                columns
                    .map(|(values, valid)| Column::nullable(values, valid))
                    .collect()
            }
        };
        Ok((columns.into_iter().map(Some).collect(), self.present))
    }
}

fn collision(places: &[Column], cell: usize) -> Error {
    let coordinates: Vec<_> = places.iter().map(|of| of.get(cell).to_string()).collect();
    Error::Operator {
        operator: "redimension",
        what: format!(
            "two cells come to ({}); aggregate them",
            coordinates.join(", ")
        ),
    }
}
