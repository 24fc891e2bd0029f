//! Writing an NPY file.

use std::path::Path;

use array::{DataType, Region};
use io::{Device, File};

use crate::aside::Aside;
use crate::copy::each_run;
use crate::error::Result;
use crate::npy::header::NpyHeader;
use crate::target::Target;

/// An NPY file that is being written, in row-major order.
#[derive(Debug)]
pub(crate) struct NpyTarget {
    file: File,
    aside: Aside,
    offset: u64,
    shape: Vec<u64>,
    width: usize,
}

impl NpyTarget {
    /// Begins the file, in its full length.
    ///
    /// # Errors
    /// [`Error::Exists`](crate::Error::Exists), [`Error::Io`](crate::Error::Io): a full disk, for one.
    pub fn create(path: &Path, data_type: DataType, shape: &[u64]) -> Result<NpyTarget> {
        let mut aside = Aside::new(path)?;
        let file = File::create(aside.path())?;
        aside.made();
        let header = NpyHeader::encode(data_type, shape);
        file.write_at(0, &header)?;
        let width = data_type.width();
        let values = shape.iter().product::<u64>() * width as u64;
        file.allocate(header.len() as u64, values)?;
        Ok(NpyTarget {
            file,
            aside,
            offset: header.len() as u64,
            shape: shape.to_vec(),
            width,
        })
    }
}

impl Target for NpyTarget {
    fn write(&mut self, _field: usize, region: &Region, values: &[u8]) -> Result<()> {
        let mut rest = values;
        each_run(&self.shape, region, &mut |first, cells| {
            let (run, after) = rest.split_at(cells as usize * self.width);
            rest = after;
            let at = self.offset + first * self.width as u64;
            Ok(self.file.write_at(at, run)?)
        })
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.file.sync()?;
        let bytes = self.file.len()?;
        self.aside.publish()?;
        Ok(bytes)
    }
}
