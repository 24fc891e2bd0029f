//! What files of named variables have in common, HDF5 and NetCDF: variables, what is said of them, and reading them.

use std::path::Path;

pub(crate) use array::MetadataValue as Value;
use array::{DataType, Region, Scalar};

use crate::error::Result;
use crate::job::Job;

/// What a variable is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Its values are of interest.
    Data,
    /// It has the coordinates of a dimension.
    Coordinates,
    /// It only says that there is a dimension.
    Dimension,
    /// It is in another file.
    Elsewhere,
}

/// A dimension of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent {
    pub length: u64,
    /// Whether the file could have more along it.
    pub unlimited: bool,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Which variable has its coordinates, if one has.
    pub coordinates: Option<usize>,
}

/// A variable of a file.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// Its name, with its groups before it: `surface/temperature`.
    pub name: String,
    pub role: Role,
    /// The type of its values; or why it is not read, in words.
    pub data_type: std::result::Result<DataType, String>,
    /// Whether its values are the bits of floats of 16 bits.
    pub half: bool,
    /// Its dimensions; empty for a single value.
    pub extents: Vec<Extent>,
    /// Cells of its chunks, if it has chunks.
    pub chunk: Option<Vec<u64>>,
    /// What cells have that were never written; zero if it is not said.
    pub fill: Option<Scalar>,
    /// What is said of its values.
    pub attributes: Vec<(String, Value)>,
}

impl Variable {
    /// The last part of its name.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// The cells along each dimension.
    pub fn shape(&self) -> Vec<u64> {
        self.extents.iter().map(|of| of.length).collect()
    }

    /// The numbers of an attribute.
    pub fn numbers(&self, attribute: &str) -> &[Scalar] {
        match self.attribute(attribute) {
            Some(Value::Numbers(numbers)) => numbers,
            _ => &[],
        }
    }

    /// The first text of an attribute.
    pub fn text(&self, attribute: &str) -> Option<&str> {
        match self.attribute(attribute) {
            Some(Value::Texts(texts)) => texts.first().map(String::as_str),
            _ => None,
        }
    }

    fn attribute(&self, name: &str) -> Option<&Value> {
        let found = self.attributes.iter().find(|(of, _)| of == name);
        found.map(|(_, value)| value)
    }
}

/// A file of variables that is open.
pub(crate) trait Container {
    /// The file.
    fn path(&self) -> &Path;

    /// Its variables.
    fn variables(&self) -> &[Variable];

    /// What is said of the file.
    fn attributes(&self) -> &[(String, Value)] {
        &[]
    }

    /// Further names of variables and groups, and the names that they stand for.
    fn aliases(&self) -> &[(String, String)] {
        &[]
    }

    /// Makes a variable ready to be read: finds where its chunks lie. `kept` bytes are for chunks that may be needed again.
    ///
    /// # Errors
    /// [`Error::Malformed`](crate::Error::Malformed), [`Error::Memory`](crate::Error::Memory).
    fn prepare(&mut self, variable: usize, job: &Job<'_>, kept: u64) -> Result<()>;

    /// The regions of a prepared variable that were written; `None` where all is. They may overlap its edge.
    fn stored(&self, variable: usize) -> Option<Vec<Region>>;

    /// Reads the values of a region of a prepared variable in row-major order, little-endian, into bytes that are just as
    /// long.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged there.
    fn read(&mut self, variable: usize, region: &Region, into: &mut [u8]) -> Result<()>;
}
