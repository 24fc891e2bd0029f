//! Writing a Zarr array.

use std::fs;
use std::io::Write;
use std::path::Path;

use array::{Buffer, DataType, Region, Scalar, Schema};
use serde_json::Value;

use crate::aside::{Aside, sync_folder};
use crate::copy::copy_common;
use crate::error::{Error, Result};
use crate::options::Packing;
use crate::target::Target;
use crate::zarr::codec::pack;
use crate::zarr::metadata::Keys;
use crate::zarr::{v2, v3};

/// The versions of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V2,
    V3,
}

/// A Zarr array that is being written: its regions are its chunks.
#[derive(Debug)]
pub(crate) struct ZarrTarget {
    aside: Aside,
    data_type: DataType,
    chunk: Vec<u64>,
    fill: Vec<u8>,
    packing: Packing,
    keys: Keys,
    written: u64,
}

impl ZarrTarget {
    /// Begins the array of an attribute, with `fill` for cells that are not written.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::System`].
    pub fn create(
        path: &Path,
        schema: &Schema,
        data_type: DataType,
        fill: Scalar,
        packing: Packing,
        version: Version,
    ) -> Result<ZarrTarget> {
        let aside = Aside::new(path)?;
        fs::create_dir(aside.path()).map_err(Error::system(path, "make the folder"))?;
        let chunk: Vec<u64> = schema
            .dimensions()
            .iter()
            .map(|of| of.chunk_length())
            .collect();
        let names: Vec<&str> = schema.dimensions().iter().map(|of| of.name()).collect();
        let shape = schema.shape();
        let (prefix, separator) = match version {
            Version::V2 => (None, '.'),
            Version::V3 => (Some("c"), '/'),
        };
        let mut target = ZarrTarget {
            aside,
            data_type,
            fill: Buffer::filled(data_type, 1, fill).bytes().to_vec(),
            packing,
            keys: Keys { prefix, separator },
            written: 0,
            chunk: chunk.clone(),
        };
        let lengths = (&shape[..], &chunk[..]);
        match version {
            Version::V2 => {
                let (array, attributes) = v2::encode(data_type, lengths, fill, packing, &names);
                target.json(".zarray", &array)?;
                target.json(".zattrs", &attributes)?;
            }
            Version::V3 => {
                let array = v3::encode(data_type, lengths, fill, packing, &names);
                target.json("zarr.json", &array)?;
            }
        }
        Ok(target)
    }

    fn json(&mut self, name: &str, value: &Value) -> Result<()> {
        self.file(name, format!("{value:#}\n").as_bytes())
    }

    /// Writes a file, and the folders that it lies in.
    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.aside.path().join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::system(folder, "make the folder"))?;
        }
        let written = fs::File::create_new(&path).and_then(|mut file| file.write_all(bytes));
        written.map_err(Error::system(&path, "write"))?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

impl Target for ZarrTarget {
    fn write(&mut self, _field: usize, region: &Region, values: &[u8]) -> Result<()> {
        let width = self.data_type.width();
        if values.chunks_exact(width).all(|value| value == self.fill) {
            return Ok(());
        }
        let at: Vec<u64> = region
            .ranges()
            .iter()
            .zip(&self.chunk)
            .map(|(of, by)| of.0 / by)
            .collect();
        let whole = Region::new(
            at.iter()
                .zip(&self.chunk)
                .map(|(at, by)| (at * by, (at + 1) * by)),
        );
        let name = self.keys.name(&at);
        // A chunk at the edge has all its cells, too.
        let padded;
        let bytes = if whole == *region {
            values
        } else {
            let cells = whole.cells("a chunk")?;
            let mut all = self.fill.repeat(cells);
            copy_common(width, (region, values), (&whole, &mut all));
            padded = all;
            &padded
        };
        let packed = pack(bytes, self.packing);
        let packed = packed.map_err(Error::system(self.aside.path(), "compress a chunk of"))?;
        self.file(&name, &packed)
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        sync_all(self.aside.path())?;
        let written = self.written;
        self.aside.publish()?;
        Ok(written)
    }
}

/// Makes a folder and all in it survive a loss of power. At the end rather than file by file: the system has begun to write
/// them meanwhile.
fn sync_all(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Error::system(folder, "read"))? {
        let path = entry.map_err(Error::system(folder, "read"))?.path();
        if path.is_dir() {
            sync_all(&path)?;
        } else {
            let synced = fs::File::open(&path).and_then(|file| file.sync_all());
            synced.map_err(Error::system(&path, "sync"))?;
        }
    }
    sync_folder(folder)
}
