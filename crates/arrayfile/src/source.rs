//! Where the cells of an import come from.

use array::{DataType, Region, Scalar};

use crate::error::Result;

/// What a file says of its array.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    /// The type of its values.
    pub data_type: DataType,
    /// The cells along each dimension, the outermost first.
    pub shape: Vec<u64>,
    /// The cells of its chunks along each dimension, if it has chunks.
    pub chunk: Option<Vec<u64>>,
    /// The names of its dimensions that it gives.
    pub names: Vec<Option<String>>,
    /// What cells have that were never written.
    pub fill: Option<Scalar>,
}

/// An array in a file, read region by region.
pub(crate) trait Source {
    /// What the file says of it.
    fn header(&self) -> &Header;

    /// The regions that were written; `None` where all is. Regions may overlap the edge of the array.
    ///
    /// # Errors
    /// What the operating system reports.
    fn stored(&self) -> Result<Option<Vec<Region>>>;

    /// Reads the values of a region in row-major order, little-endian, into bytes that are just as long.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged there.
    fn read(&mut self, region: &Region, into: &mut [u8]) -> Result<()>;
}
