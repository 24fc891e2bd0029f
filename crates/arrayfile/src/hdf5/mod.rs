//! HDF5, of which NetCDF-4 is: groups, data sets and attributes, read and written by the format's specification, version 3.0.

mod arrays;
mod attribute;
mod bytes;
mod chunks;
mod container;
mod dataset;
mod datatype;
mod file;
#[cfg(test)]
mod fuzzed;
mod grid;
mod group;
mod heap;
mod object;
mod packing;
mod tree2;
mod values;
mod walk;
mod write;

use std::path::Path;
use std::sync::Arc;

use io::{Access, Device, File};

use crate::error::Result;
use crate::hdf5::container::HdfContainer;
use crate::variables::model::Container;

pub(crate) use write::{Flavour, HdfTarget};

/// The variables of an HDF5 file.
///
/// # Errors
/// [`Error::Malformed`](crate::Error::Malformed), [`Error::Unsupported`](crate::Error::Unsupported),
/// [`Error::Io`](crate::Error::Io).
pub(crate) fn open(path: &Path) -> Result<Box<dyn Container>> {
    let device: Arc<dyn Device> = Arc::new(File::open(path, Access::Read)?);
    Ok(Box::new(HdfContainer::open(device)?))
}
