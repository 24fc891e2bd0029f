//! Rows that are cells: where they are in their array, and how they come to lie there.

use std::collections::BTreeSet;
use std::sync::Arc;

use array::{
    Attribute, Block, Column, DataType, Decimal, Dimension, Grid, Layout, Region, Scalar, Schema,
    Time, Writer,
};
use arrow::array::{Array as _, ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};

use crate::error::{Error, Result};
use crate::scan::arrays::definition::ArrayTable;
use crate::statements::arrays::moments::{self, Coordinates};

/// Rows with a column for each dimension and one for each attribute, in the order of the array.
pub(super) struct Cells {
    array: String,
    schema: Schema,
    rows: RecordBatch,
}

/// A cell: its chunk and its place in it, both as numbers in row-major order, and its row.
type Place = (u64, u64, u32);

impl Cells {
    pub(super) fn new(table: &ArrayTable, batches: Vec<RecordBatch>) -> Result<Cells> {
        let fields = table.schema.fields().len();
        let rows = match batches.first() {
            Some(first) => concat_batches(&first.schema(), &batches)?,
            None => RecordBatch::new_empty(Arc::clone(&table.schema)),
        };
        let most = u32::MAX as usize;
        if rows.num_columns() != fields || rows.num_rows() > most {
            return Err(Error::Defect {
                message: format!(
                    "{} rows of {} columns for an array of {fields}",
                    rows.num_rows(),
                    rows.num_columns()
                ),
            });
        }
        Ok(Cells {
            array: table.array.name().to_owned(),
            schema: table.array.schema().clone(),
            rows,
        })
    }

    /// The coordinates of all cells along a dimension.
    fn coordinates(&self, at: usize) -> Result<Vec<Decimal>> {
        let (column, of) = (self.rows.column(at), &self.schema.dimensions()[at]);
        if column.null_count() > 0 {
            return Err(Error::Constraint {
                code: "23502",
                message: format!(
                    "NULL is no coordinate: dimension '{}' of array '{}'",
                    of.name(),
                    self.array
                ),
            });
        }
        let far = || {
            Error::coded(
                "22003",
                format!(
                    "a coordinate along dimension '{}' has too many digits",
                    of.name()
                ),
            )
        };
        match column.data_type() {
            ArrowType::Int64 => {
                let values = column.as_primitive::<Int64Type>().values();
                Ok(values.iter().map(|&of| Decimal::from(of)).collect())
            }
            ArrowType::Timestamp(TimeUnit::Microsecond, None) => {
                let time = self.schema.metadata().time(of.name());
                let known = Coordinates::new(of, time.ok_or_else(|| no_times(of.name()))?);
                let values = column.as_primitive::<TimestampMicrosecondType>().values();
                values.iter().map(|&moment| known.of(moment)).collect()
            }
            ArrowType::Decimal128(_, scale) => {
                let scale = u8::try_from(*scale).map_err(|_| far())?;
                let decimal = |&digits: &i128| decimal(digits, scale);
                let values = column.as_primitive::<Decimal128Type>().values();
                let all: Option<Vec<_>> = values.iter().map(decimal).collect();
                all.ok_or_else(far)
            }
            other => Err(Error::Defect {
                message: format!("coordinates of type {other}"),
            }),
        }
    }

    /// Makes the array as long as its new cells need it, along dimensions that grow. A dense array has each cell up to its
    /// end, so that along such a dimension none may be left out.
    ///
    /// # Errors
    /// If one would be; those of growing.
    pub(super) fn grow(&mut self, writer: &mut Writer) -> Result<()> {
        for at in 0..self.schema.dimensions().len() {
            let of = &self.schema.dimensions()[at];
            if !of.is_growing() {
                continue;
            }
            let coordinates: BTreeSet<Decimal> = self.coordinates(at)?.into_iter().collect();
            let (more, listed) = match of.coordinates() {
                array::Coordinates::Listed(list) => {
                    let new = coordinates.into_iter().filter(|of| !list.contains(of));
                    let mut new: Vec<Decimal> = new.collect();
                    if list.first() > list.last() {
                        new.reverse();
                    }
                    (new.len() as u64, new)
                }
                _ => (self.longer(of, &coordinates)?, Vec::new()),
            };
            if more > 0 {
                writer.grow(&self.array, of.name(), more, &listed)?;
            }
        }
        self.schema = writer.schema(&self.array)?;
        Ok(())
    }

    /// By how many cells a dimension becomes longer that goes on by itself.
    fn longer(&self, of: &Dimension, coordinates: &BTreeSet<Decimal>) -> Result<u64> {
        let beyond = coordinates.iter().filter_map(|&coordinate| {
            let position = of.position_beyond(coordinate)?;
            (position >= of.length()).then_some(position)
        });
        let beyond: Vec<u64> = beyond.collect();
        let more = beyond.iter().max().map_or(0, |last| last + 1 - of.length());
        if self.schema.layout() == Layout::Dense && more > beyond.len() as u64 {
            return Err(Error::Constraint {
                code: "23000",
                message: format!(
                    "array '{}' is dense: cells along '{}' are appended one after the other, and {} between would have none; append them in order, or make a sparse array",
                    self.array,
                    of.name(),
                    more - beyond.len() as u64
                ),
            });
        }
        Ok(more)
    }

    /// Where the cells are, chunk by chunk.
    ///
    /// # Errors
    /// If a coordinate is none of the array's, or two rows are one cell.
    fn places(&self) -> Result<Vec<Place>> {
        let grid = Grid::of(&self.schema);
        let rows = self.rows.num_rows();
        let mut places: Vec<Place> = (0..rows as u32).map(|row| (0, 0, row)).collect();
        for (at, (of, count)) in self
            .schema
            .dimensions()
            .iter()
            .zip(grid.counts())
            .enumerate()
        {
            let (chunk, what) = (of.chunk_length(), format!("array '{}'", self.array));
            for (place, coordinate) in places.iter_mut().zip(self.coordinates(at)?) {
                let position = of.position(coordinate, &what)?;
                place.0 = place.0 * count + position / chunk;
                place.1 = place.1 * chunk + position % chunk;
            }
        }
        places.sort_unstable();
        let same = |two: &&[Place]| (two[0].0, two[0].1) == (two[1].0, two[1].1);
        if let Some(two) = places.windows(2).find(same) {
            let coordinates = (0..self.schema.dimensions().len()).map(|at| {
                let all = self.coordinates(at)?;
                let name = self.schema.dimensions()[at].name();
                Ok(format!("{name} = {}", all[two[0].2 as usize]))
            });
            let coordinates = coordinates.collect::<Result<Vec<_>>>()?;
            return Err(Error::Constraint {
                code: "21000",
                message: format!(
                    "the cell {} of array '{}' comes twice; a statement writes each cell once",
                    coordinates.join(", "),
                    self.array
                ),
            });
        }
        Ok(places)
    }

    /// Writes these attributes of the cells, and says how many cells there are.
    ///
    /// # Errors
    /// Those of [`places`](Cells::places); of values that do not fit; of the store.
    pub(super) async fn write(&self, writer: &mut Writer, attributes: &[usize]) -> Result<u64> {
        let places = self.places()?;
        for cells in places.chunk_by(|a, b| a.0 == b.0) {
            let block = self.block(cells, attributes)?;
            writer.write(&self.array, &block).await?;
        }
        Ok(places.len() as u64)
    }

    /// Makes the cells absent, and says how many were there.
    ///
    /// # Errors
    /// As [`write`](Cells::write).
    pub(super) async fn erase(&self, writer: &mut Writer) -> Result<u64> {
        let mut gone = 0;
        for cells in self.places()?.chunk_by(|a, b| a.0 == b.0) {
            let block = self.block(cells, &[])?;
            gone += writer.erase(&self.array, &block).await?;
        }
        Ok(gone)
    }

    /// The block of cells of one chunk.
    fn block(&self, cells: &[Place], attributes: &[usize]) -> Result<Block> {
        let dimensions = self.schema.dimensions();
        let counts = Grid::of(&self.schema).counts();
        let mut positions: Vec<Vec<u64>> = Vec::with_capacity(cells.len());
        for &(chunk, place, _) in cells {
            let (mut chunk, mut place) = (chunk, place);
            let mut position = vec![0; dimensions.len()];
            for at in (0..dimensions.len()).rev() {
                let (count, length) = (counts[at], dimensions[at].chunk_length());
                position[at] = chunk % count * length + place % length;
                (chunk, place) = (chunk / count, place / length);
            }
            positions.push(position);
        }
        let ranges = (0..dimensions.len()).map(|at| {
            let along = positions.iter().map(|position| position[at]);
            let (first, last) = (along.clone().min(), along.max());
            (first.unwrap_or(0), last.map_or(0, |last| last + 1))
        });
        let region = Region::new(ranges);
        let count = region.cells("a chunk").map_err(Error::from)?;
        let number = |position: &Vec<u64>| {
            (0..dimensions.len()).fold(0, |sum, at| {
                sum * region.length(at) as usize + (position[at] - region.start(at)) as usize
            })
        };
        let numbers: Vec<usize> = positions.iter().map(number).collect();
        let mut columns = vec![None; self.schema.attributes().len()];
        for &attribute in attributes {
            let of = &self.schema.attributes()[attribute];
            let values = self.rows.column(dimensions.len() + attribute);
            // Cells between that are not written are absent, and what they have does not matter.
            let time = self.schema.metadata().time(of.name());
            let mut all = vec![zero(of.data_type()); count];
            for (&number, &(_, _, row)) in numbers.iter().zip(cells) {
                all[number] = scalar((values, row as usize), of, time)?;
            }
            let column = Column::of_scalars(of.data_type(), &all).map_err(|e| {
                Error::coded(
                    "22003",
                    format!("attribute '{}' of array '{}': {e}", of.name(), self.array),
                )
            })?;
            columns[attribute] = Some(column);
        }
        let mut present = vec![0; count];
        numbers.iter().for_each(|&number| present[number] = 1);
        let whole = cells.len() == count;
        let block = Block::new(region, columns).map_err(Error::from)?;
        Ok(if whole {
            block
        } else {
            block.with_present(present)
        })
    }
}

/// A number of so many digits after the point, without zeros at its end.
fn decimal(mut digits: i128, mut scale: u8) -> Option<Decimal> {
    while scale > 0 && digits % 10 == 0 {
        (digits, scale) = (digits / 10, scale - 1);
    }
    Decimal::new(i64::try_from(digits).ok()?, scale)
}

fn zero(of: DataType) -> Scalar {
    match of {
        DataType::Bool => Scalar::Bool(false),
        _ => Scalar::Int(0),
    }
}

/// That a column has times, and what it is for has none.
fn no_times(name: &str) -> Error {
    Error::Defect {
        message: format!("times for '{name}', which has numbers"),
    }
}

/// A value of a column of an attribute.
fn scalar((column, row): (&ArrayRef, usize), of: &Attribute, time: Option<Time>) -> Result<Scalar> {
    if column.is_null(row) {
        // Of times, NULL is also NaN, where there is nothing else.
        let nan = time.is_some() && of.data_type().is_float() && !of.is_nullable();
        return Ok(if nan {
            Scalar::Float(f64::NAN)
        } else {
            Scalar::Null
        });
    }
    Ok(match column.data_type() {
        ArrowType::Timestamp(TimeUnit::Microsecond, None) => {
            let moment = column.as_primitive::<TimestampMicrosecondType>().value(row);
            moments::value(of, time.ok_or_else(|| no_times(of.name()))?, moment)?
        }
        ArrowType::Boolean => Scalar::Bool(column.as_boolean().value(row)),
        ArrowType::Int16 => Scalar::Int(column.as_primitive::<Int16Type>().value(row).into()),
        ArrowType::Int32 => Scalar::Int(column.as_primitive::<Int32Type>().value(row).into()),
        ArrowType::Int64 => Scalar::Int(column.as_primitive::<Int64Type>().value(row).into()),
        ArrowType::Decimal128(_, 0) => {
            Scalar::Int(column.as_primitive::<Decimal128Type>().value(row))
        }
        ArrowType::Float32 => Scalar::Float(column.as_primitive::<Float32Type>().value(row).into()),
        ArrowType::Float64 => Scalar::Float(column.as_primitive::<Float64Type>().value(row)),
        other => {
            return Err(Error::Defect {
                message: format!("values of type {other} for an array"),
            });
        }
    })
}
