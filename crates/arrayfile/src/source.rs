//! Where the cells of an import come from.

use array::{Coordinates, DataType, Entries, Region, Scalar};

use crate::error::Result;

/// What a file says of its array.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    /// Its dimensions, the outermost first.
    pub axes: Vec<Axis>,
    /// The cells of its chunks along each dimension, if it has chunks.
    pub chunk: Option<Vec<u64>>,
    /// Its values: one kind, or several of each cell.
    pub fields: Vec<Field>,
    /// What of the file is not in the array, and why, in words.
    pub notes: Vec<String>,
    /// What is said of the file.
    pub metadata: Entries,
}

/// A dimension.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// Its name, if the file gives one.
    pub name: Option<String>,
    /// Its cells.
    pub length: u64,
    /// Its coordinates, if the file gives some.
    pub coordinates: Option<Coordinates>,
    /// Whether the file could have more along it.
    pub unlimited: bool,
    /// What is said of its coordinates.
    pub metadata: Entries,
}

/// The values of the cells that become an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Its name, if the file gives one.
    pub name: Option<String>,
    /// The type of the values in the file.
    pub data_type: DataType,
    /// Whether these are the bits of floats of 16 bits.
    pub half: bool,
    /// What cells have in the file that were never written.
    pub fill: Option<Scalar>,
    /// Values of the file that say that there is none.
    pub missing: Vec<Scalar>,
    /// What values of the file are multiplied with, and what is added then.
    pub scale: Option<(f64, f64)>,
    /// What is said of its values.
    pub metadata: Entries,
    /// Whether its values stay as the file codes them, so that their units are not those of what they stand for.
    pub coded: bool,
}

impl Header {
    /// One kind of values, whose dimensions have these lengths and perhaps names.
    pub fn plain(
        data_type: DataType,
        fill: Option<Scalar>,
        shape: &[u64],
        names: Vec<Option<String>>,
    ) -> Header {
        let axis = |(&length, name)| Axis {
            name,
            length,
            coordinates: None,
            unlimited: false,
            metadata: Entries::new(),
        };
        Header {
            axes: shape.iter().zip(names).map(axis).collect(),
            chunk: None,
            fields: vec![Field {
                name: None,
                data_type,
                half: false,
                fill,
                missing: Vec::new(),
                scale: None,
                metadata: Entries::new(),
                coded: false,
            }],
            notes: Vec::new(),
            metadata: Entries::new(),
        }
    }

    /// The cells along each dimension.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|of| of.length).collect()
    }
}

/// An array in a file, read region by region.
pub(crate) trait Source {
    /// What the file says of it.
    fn header(&self) -> &Header;

    /// The regions of a field that were written; `None` where all is. Regions may overlap the edge of the array.
    ///
    /// # Errors
    /// What the operating system reports.
    fn stored(&self, field: usize) -> Result<Option<Vec<Region>>>;

    /// Reads the values of a field in a region in row-major order, little-endian, into bytes that are just as long.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged there.
    fn read(&mut self, field: usize, region: &Region, into: &mut [u8]) -> Result<()>;
}
