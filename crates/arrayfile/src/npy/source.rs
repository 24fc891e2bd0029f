//! The cells of an NPY file, or of a member of an NPZ.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{DataType, Region};
use io::Device;

use crate::copy::{gather, read_box, swap};
use crate::error::{Error, Result};
use crate::job::Reserved;
use crate::npy::header::{NpyHeader, extent};
use crate::source::{Header, Source};

/// The bytes of an NPY file.
#[derive(Debug)]
pub(super) struct Values {
    path: PathBuf,
    place: Place,
    length: u64,
}

#[derive(Debug)]
enum Place {
    /// From there on in a file.
    Part(Arc<dyn Device>, u64),
    /// In memory, which was set aside for it.
    Here(
        Vec<u8>,
        #[allow(dead_code, reason = "given back when it is dropped")] Reserved,
    ),
}

impl Values {
    /// The `length` bytes from `start` on.
    pub fn part(device: Arc<dyn Device>, start: u64, length: u64) -> Values {
        Values {
            path: device.path().to_owned(),
            place: Place::Part(device, start),
            length,
        }
    }

    /// Bytes in memory that was set aside for them; `path` is the file that they come from.
    pub fn unpacked(path: &Path, bytes: Vec<u8>, reserved: Reserved) -> Values {
        Values {
            path: path.to_owned(),
            length: bytes.len() as u64,
            place: Place::Here(bytes, reserved),
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        match &self.place {
            Place::Part(device, start) => Ok(device.read_at(start + offset, into)?),
            Place::Here(bytes, _) => {
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
                match rest.and_then(|rest| rest.get(..into.len())) {
                    Some(bytes) => {
                        into.copy_from_slice(bytes);
                        Ok(())
                    }
                    None => Err(Error::malformed(&self.path, "ends too early")),
                }
            }
        }
    }
}

/// An NPY file that is read, or the part of another file that is one.
#[derive(Debug)]
pub(super) struct NpySource {
    values: Values,
    /// Where the values begin.
    offset: u64,
    npy: NpyHeader,
    header: Header,
}

impl NpySource {
    /// The file that has these bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Unsupported`]; [`Error::Io`].
    pub fn open(values: Values) -> Result<NpySource> {
        let (path, length) = (values.path.clone(), values.length);
        let cut = || {
            Error::malformed(
                &path,
                "ends within its header; it was not written to its end",
            )
        };
        if length < 12 {
            return Err(cut());
        }
        let mut first = [0; 12];
        values.read_at(0, &mut first)?;
        let (at, text) = extent(&first).map_err(|what| Error::malformed(&path, what))?;
        if length < (at + text) as u64 {
            return Err(cut());
        }
        let mut bytes = vec![0; text];
        values.read_at(at as u64, &mut bytes)?;
        let npy = NpyHeader::parse(&bytes).map_err(|what| Error::unsupported(&path, what))?;
        if npy.shape.is_empty() {
            let what = "has a single value and no dimensions; write it with .reshape(1)";
            return Err(Error::unsupported(&path, what));
        }
        let has = length - (at + text) as u64;
        check_length(&path, &npy, has)?;
        let names = vec![None; npy.shape.len()];
        let header = Header::plain(npy.data_type, None, &npy.shape, names);
        Ok(NpySource {
            values,
            offset: (at + text) as u64,
            npy,
            header,
        })
    }
}

/// Whether the values of a header are `has` bytes.
fn check_length(path: &Path, npy: &NpyHeader, has: u64) -> Result<()> {
    let width = npy.data_type.width() as u64;
    let empty = npy.shape.contains(&0);
    let needed = npy
        .shape
        .iter()
        .try_fold(width, |all, &length| all.checked_mul(length));
    match needed {
        _ if empty => Ok(()),
        Some(needed) if needed == has => Ok(()),
        _ => {
            let shape: Vec<String> = npy.shape.iter().map(u64::to_string).collect();
            let what = format!(
                "has {has} bytes of values, not the {} of its {} cells of {width} bytes; it was not written to its end",
                needed.map_or_else(|| "more than 2^64".to_owned(), |needed| needed.to_string()),
                shape.join(" x "),
            );
            Err(Error::malformed(path, what))
        }
    }
}

impl Source for NpySource {
    fn header(&self) -> &Header {
        &self.header
    }

    fn stored(&self, _field: usize) -> Result<Option<Vec<Region>>> {
        Ok(None)
    }

    fn read(&mut self, _field: usize, region: &Region, into: &mut [u8]) -> Result<()> {
        let width = self.npy.data_type.width();
        let mut fetch = |offset, bytes: &mut [u8]| self.values.read_at(self.offset + offset, bytes);
        if self.npy.fortran {
            // The file is the array with its dimensions the other way around.
            let shape: Vec<u64> = self.npy.shape.iter().rev().copied().collect();
            let turned = Region::new(region.ranges().iter().rev().copied());
            let mut bytes = vec![0; into.len()];
            read_box(&shape, &turned, width, &mut bytes, &mut fetch)?;
            let lengths: Vec<usize> = region.shape().iter().map(|&of| of as usize).collect();
            let mut strides = vec![1; lengths.len()];
            for at in 1..lengths.len() {
                strides[at] = strides[at - 1] * lengths[at - 1];
            }
            gather(width, &lengths, &strides, &bytes, into);
        } else {
            read_box(&self.npy.shape, region, width, into, &mut fetch)?;
        }
        if self.npy.big_endian {
            swap(width, into);
        }
        if self.npy.data_type == DataType::Bool {
            into.iter_mut().for_each(|of| *of = u8::from(*of != 0));
        }
        Ok(())
    }
}
