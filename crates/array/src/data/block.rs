//! Cells of a region, in memory.

use std::sync::Arc;

use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::model::types::{DataType, Scalar};

/// The values of one attribute, and which of them are no nulls.
#[derive(Debug, Clone)]
pub struct Column {
    values: Arc<Buffer>,
    /// A byte for each value, 0 or 1; without it no value is null.
    valid: Option<Arc<Vec<u8>>>,
}

impl Column {
    /// Values of which none is null.
    pub fn new(values: Buffer) -> Column {
        Column {
            values: Arc::new(values),
            valid: None,
        }
    }

    /// Values, and a byte for each that is 0 where it is null.
    ///
    /// # Panics
    /// If there are not as many bytes as values.
    pub fn nullable(values: Buffer, valid: Vec<u8>) -> Column {
        assert_eq!(values.len(), valid.len(), "a byte for each value");
        let all = valid.iter().all(|&valid| valid != 0);
        Column {
            values: Arc::new(values),
            valid: (!all).then(|| Arc::new(valid)),
        }
    }

    /// These values as those of a type; nulls are null.
    ///
    /// # Errors
    /// [`Error::Arithmetic`] if the type has not one of them.
    pub fn of_scalars(data_type: DataType, values: &[Scalar]) -> Result<Column> {
        let mut buffer = Buffer::zeros(data_type, values.len());
        let mut valid = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            valid.push(u8::from(!value.is_null()));
            let fitting = value.cast(data_type).ok_or_else(|| Error::Arithmetic {
                what: format!("{value} is no {data_type}"),
            })?;
            buffer.set(at, fitting);
        }
        Ok(Column::nullable(buffer, valid))
    }

    /// The values; what stands in place of a null means nothing.
    pub fn values(&self) -> &Buffer {
        &self.values
    }

    /// A byte for each value, 0 where it is null; `None` where none is.
    pub fn valid(&self) -> Option<&[u8]> {
        self.valid.as_deref().map(Vec::as_slice)
    }

    /// A value.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, at: usize) -> Scalar {
        match &self.valid {
            Some(valid) if valid[at] == 0 => Scalar::Null,
            _ => self.values.get(at),
        }
    }

    /// Both parts, to be changed.
    pub(crate) fn into_parts(self) -> (Buffer, Option<Vec<u8>>) {
        let values = Arc::unwrap_or_clone(self.values);
        (values, self.valid.map(Arc::unwrap_or_clone))
    }
}

/// The cells of a region in row-major order: a column for each attribute that was asked for. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Block {
    region: Region,
    cells: usize,
    columns: Vec<Option<Column>>,
    /// A byte for each cell, 0 where it does not exist; without it all do.
    present: Option<Arc<Vec<u8>>>,
}

impl Block {
    /// The cells of `region`, all of which exist; `None` for an attribute that is not there.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge).
    ///
    /// # Panics
    /// If a column has not as many values as the region has cells.
    pub fn new(region: Region, columns: Vec<Option<Column>>) -> Result<Block> {
        let cells = region.cells("a block")?;
        for column in columns.iter().flatten() {
            assert_eq!(column.values().len(), cells, "a value for each cell");
        }
        Ok(Block {
            region,
            cells,
            columns,
            present: None,
        })
    }

    /// The same, of which only those cells exist whose byte is not 0.
    ///
    /// # Panics
    /// If there are not as many bytes as cells.
    pub fn with_present(mut self, present: Vec<u8>) -> Block {
        assert_eq!(present.len(), self.cells, "a byte for each cell");
        let all = present.iter().all(|&present| present != 0);
        self.present = (!all).then(|| Arc::new(present));
        self
    }

    /// Where the cells are.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// How many cells the region has, existing or not.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// The values of an attribute; `None` where it was not asked for.
    pub fn column(&self, attribute: usize) -> Option<&Column> {
        self.columns.get(attribute)?.as_ref()
    }

    /// All columns, by attribute.
    pub fn columns(&self) -> &[Option<Column>] {
        &self.columns
    }

    /// A byte for each cell, 0 where it does not exist; `None` where all do.
    pub fn present(&self) -> Option<&[u8]> {
        self.present.as_deref().map(Vec::as_slice)
    }

    /// How many cells exist.
    pub fn existing(&self) -> u64 {
        match self.present() {
            None => self.cells as u64,
            Some(present) => present.iter().map(|&of| u64::from(of != 0)).sum(),
        }
    }

    /// Whether a cell exists.
    pub fn exists(&self, cell: usize) -> bool {
        self.present
            .as_ref()
            .is_none_or(|present| present[cell] != 0)
    }

    /// The same cells elsewhere, in an array of perhaps other dimensions.
    ///
    /// # Panics
    /// If `region` has another number of cells.
    pub(crate) fn at(mut self, region: Region) -> Block {
        let cells: u64 = region.shape().iter().product();
        assert_eq!(cells, self.cells as u64, "as many cells as before");
        self.region = region;
        self
    }

    /// The same cells with other columns.
    pub(crate) fn with_columns(self, columns: Vec<Option<Column>>) -> Block {
        Block { columns, ..self }
    }

    /// The same cells, of which only those exist that did before and whose byte is not 0.
    pub(crate) fn restricted(self, also: Vec<u8>) -> Block {
        let present = match self.present() {
            None => also,
            Some(before) => before.iter().zip(&also).map(|(a, b)| a & b).collect(),
        };
        self.with_present(present)
    }

    pub(crate) fn shared_present(&self) -> Option<&Arc<Vec<u8>>> {
        self.present.as_ref()
    }

    pub(crate) fn with_shared_present(mut self, present: Option<Arc<Vec<u8>>>) -> Block {
        self.present = present;
        self
    }
}
