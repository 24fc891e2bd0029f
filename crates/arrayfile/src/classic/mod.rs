//! NetCDF before HDF5: versions 1 (classic), 2 (64-bit offsets) and 5 (64-bit data).

mod header;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::Region;
use io::{Access, Device, File};

use crate::classic::header::ClassicHeader;
use crate::copy::{read_box, swap};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::variables::model::{Container, Value, Variable};

pub(crate) use write::{ClassicTarget, usual_fill};

/// A file whose variables are read.
struct Classic {
    path: PathBuf,
    device: Arc<dyn Device>,
    header: ClassicHeader,
}

/// The variables of a file.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Unsupported`], [`Error::Io`].
pub(crate) fn open(path: &Path) -> Result<Box<dyn Container>> {
    let device: Arc<dyn Device> = Arc::new(File::open(path, Access::Read)?);
    let header = header::read(&*device)?;
    Ok(Box::new(Classic {
        path: path.to_owned(),
        device,
        header,
    }))
}

impl Container for Classic {
    fn path(&self) -> &Path {
        &self.path
    }

    fn variables(&self) -> &[Variable] {
        &self.header.variables
    }

    fn attributes(&self) -> &[(String, Value)] {
        &self.header.attributes
    }

    fn prepare(&mut self, _variable: usize, _job: &Job<'_>, _kept: u64) -> Result<()> {
        Ok(())
    }

    fn stored(&self, _variable: usize) -> Option<Vec<Region>> {
        None
    }

    fn read(&mut self, variable: usize, region: &Region, into: &mut [u8]) -> Result<()> {
        let (of, place) = (
            &self.header.variables[variable],
            self.header.places[variable],
        );
        let refused =
            |what: &String| Error::unsupported(&self.path, format!("'{}' {what}", of.name));
        let width = of.data_type.as_ref().map_err(refused)?.width();
        let shape = of.shape();
        if region.is_empty() {
            return Ok(());
        }
        if place.records {
            // One record after the other.
            let (start, end) = region.ranges()[0];
            let inner = Region::new(region.ranges()[1..].iter().copied());
            let bytes = into.len() / (end - start) as usize;
            for (record, into) in (start..end).zip(into.chunks_exact_mut(bytes.max(1))) {
                let from = place.at + record * self.header.record_bytes;
                self.values(from, (&shape[1..], &inner), width, into)?;
            }
        } else {
            self.values(place.at, (&shape, region), width, into)?;
        }
        swap(width, into);
        Ok(())
    }
}

impl Classic {
    /// Reads a region of values that lie one after the other.
    fn values(
        &self,
        from: u64,
        (shape, region): (&[u64], &Region),
        width: usize,
        into: &mut [u8],
    ) -> Result<()> {
        let mut fetch = |offset, bytes: &mut [u8]| self.device.read_at(from + offset, bytes);
        Ok(read_box(shape, region, width, into, &mut fetch)?)
    }
}
