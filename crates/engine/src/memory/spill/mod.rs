//! The spill file of a query: private to it, and removed with it.

mod read;
mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use io::{Device, File};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::options::SpillTo;
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Values, Var, Vector};

/// Rows of the spill file that are written and read as a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    at: u64,
    bytes: usize,
    /// Checked when the extent is read, as for a page.
    checksum: u32,
    pub rows: usize,
    /// Approximate bytes of the rows in memory.
    pub memory: usize,
}

/// Rows in an extent of a sorted run. A merge holds one extent of each run in memory.
pub(crate) const RUN_ROWS: usize = 1_024;

/// Most rows in any other extent.
pub(crate) const EXTENT_ROWS: usize = 32_768;

/// Lists of extents. Sorted rows have a list for each run, partitioned rows one for each partition, other rows a
/// single one.
pub(crate) type Lists = Vec<Vec<Extent>>;

/// Rows of a stage that were spilled.
#[derive(Debug)]
pub(crate) struct Spilled {
    pub spill: Arc<Spill>,
    pub extents: Vec<Extent>,
    /// The vectors, ascending.
    pub vars: Vec<(Var, Kind)>,
    pub rows: usize,
}

impl Spilled {
    /// Reads the rows of one extent.
    pub fn read(&self, extent: &Extent) -> Result<Materialized> {
        self.spill.read(extent, &self.vars)
    }
}

/// The spill file of a query. It is created when rows are first spilled.
#[derive(Debug)]
pub(crate) struct Spill {
    /// `None` if the query may not spill.
    to: Option<SpillTo>,
    device: Mutex<Option<Arc<dyn Device>>>,
    /// The offset of the next extent.
    end: AtomicU64,
}

impl Spill {
    /// A file at `to`. If that is a directory in which no file can be created, the system's temporary directory is
    /// used.
    pub fn new(to: Option<SpillTo>) -> Arc<Spill> {
        Arc::new(Spill {
            to,
            device: Mutex::new(None),
            end: AtomicU64::new(0),
        })
    }

    /// Whether the query may spill.
    pub fn is_allowed(&self) -> bool {
        self.to.is_some()
    }

    /// Bytes spilled so far.
    pub fn bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    fn device(&self) -> Result<Arc<dyn Device>> {
        let mut device = self.device.lock();
        if let Some(device) = &*device {
            return Ok(Arc::clone(device));
        }
        let made: Arc<dyn Device> = match &self.to {
            Some(SpillTo::Device(device)) => device.clone(),
            Some(SpillTo::Directory(directory)) => {
                let file =
                    File::temporary(directory).or_else(|_| File::temporary(std::env::temp_dir()));
                Arc::new(file.map_err(|e| self.failed(e))?)
            }
            None => return Err(Error::internal("a file that is not allowed")),
        };
        *device = Some(Arc::clone(&made));
        Ok(made)
    }

    /// The path, for error messages.
    fn place(&self) -> PathBuf {
        match &self.to {
            Some(SpillTo::Directory(directory)) => directory.to_path_buf(),
            Some(SpillTo::Device(device)) => device.path().to_owned(),
            None => PathBuf::new(),
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        let place = self.place();
        Error::Spill { place, source }
    }

    /// Writes the rows of `columns`, each of which has `rows` rows.
    ///
    /// # Errors
    /// [`Error::Spill`] if they cannot be written.
    pub fn write<'v>(
        &self,
        columns: impl Iterator<Item = &'v Vector>,
        rows: usize,
    ) -> Result<Extent> {
        let (mut bytes, mut memory) = (Vec::new(), 0);
        for column in columns {
            let before = bytes.len();
            write::vector(column, rows, &mut bytes)?;
            let views = matches!(column.values, Values::Text(_)).then_some(16 * rows);
            memory += bytes.len() - before + views.unwrap_or(0);
        }
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let written = self.device()?.write_at(at, &bytes);
        written.map_err(|e| self.failed(e))?;
        Ok(Extent {
            at,
            bytes: bytes.len(),
            checksum: crc32c::crc32c(&bytes),
            rows,
            memory,
        })
    }

    /// Reads the rows of `extent`, which was written with columns of these vectors (ascending) and kinds.
    ///
    /// # Errors
    /// [`Error::Spill`] if they cannot be read; [`Error::SpillDamaged`] if the bytes have changed.
    pub fn read(&self, extent: &Extent, vars: &[(Var, Kind)]) -> Result<Materialized> {
        let mut bytes = vec![0; extent.bytes];
        let read = self.device()?.read_at(extent.at, &mut bytes);
        read.map_err(|e| self.failed(e))?;
        let damaged = || Error::SpillDamaged {
            place: self.place(),
        };
        if crc32c::crc32c(&bytes) != extent.checksum {
            return Err(damaged());
        }
        let mut rest = &bytes[..];
        let mut columns = std::collections::BTreeMap::new();
        for (var, kind) in vars {
            let vector = read::vector(*kind, extent.rows, &mut rest);
            let vector = vector.ok_or_else(damaged)?;
            columns.insert(*var, vector);
        }
        Ok(Materialized {
            columns,
            rows: extent.rows,
        })
    }
}

/// Concatenates the rows of `blocks`.
pub(crate) fn joined(blocks: &[Materialized], vars: &[(Var, Kind)]) -> Result<Materialized> {
    let runs: Vec<_> = blocks
        .iter()
        .map(|block| 0..block.rows)
        .enumerate()
        .collect();
    let mut columns = std::collections::BTreeMap::new();
    for (var, kind) in vars {
        let parts: Vec<&Vector> = blocks.iter().map(|block| &block.columns[var]).collect();
        columns.insert(*var, Vector::runs(*kind, &parts, &runs)?);
    }
    Ok(Materialized {
        columns,
        rows: blocks.iter().map(|block| block.rows).sum(),
    })
}

/// Numbers columns from 0, for extents whose columns are not vectors of the query.
pub(crate) fn numbered(kinds: impl Iterator<Item = Kind>) -> Vec<(Var, Kind)> {
    kinds.enumerate().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::strings::Strings;
    use arrow::array::{AsArray, StringViewArray};
    use proptest::prelude::*;

    fn texts(texts: &[String]) -> Values {
        Values::Text(Strings::new(Arc::new(StringViewArray::from_iter_values(
            texts,
        ))))
    }

    fn shown(vector: &Vector) -> Vec<String> {
        let list = |row: usize| match &vector.values {
            Values::Int(v) => format!("{}", v[row]),
            Values::Wide(v) => format!("{}", v[row]),
            Values::Float(v) => format!("{:x}", v[row].to_bits()),
            Values::Bool(v) => format!("{}", v[row]),
            Values::Code(v) => format!("{}", v[row]),
            Values::Text(v) => v.array().unwrap().as_string_view().value(row).into(),
        };
        let there = |row: usize| vector.valid.as_ref().is_none_or(|valid| valid[row]);
        let some = |row| if there(row) { list(row) } else { "NULL".into() };
        (0..vector.len()).map(some).collect()
    }

    proptest! {
        #[test]
        fn what_is_put_there_comes_back(
            rows in prop::collection::vec((any::<i64>(), any::<i128>(), any::<u64>(), any::<bool>(), any::<u32>(), "[a-zé]{0,30}"), 0..40),
            valid in prop::option::of(prop::collection::vec(any::<bool>(), 40)),
        ) {
            let valid = valid.map(|valid| valid[..rows.len()].to_vec());
            let values = [
                Values::Int(rows.iter().map(|row| row.0).collect()),
                Values::Wide(rows.iter().map(|row| row.1).collect()),
                Values::Float(rows.iter().map(|row| f64::from_bits(row.2)).collect()),
                Values::Bool(rows.iter().map(|row| row.3).collect()),
                Values::Code(rows.iter().map(|row| row.4).collect()),
                texts(&rows.iter().map(|row| row.5.clone()).collect::<Vec<_>>()),
            ];
            let columns: Vec<Vector> = values.into_iter().map(|values| Vector { values, valid: valid.clone() }).collect();
            let spill = Spill::new(Some(SpillTo::from(&*std::env::temp_dir())));
            let kinds = [Kind::Int, Kind::Wide, Kind::Float, Kind::Bool, Kind::Code, Kind::Text];
            let vars: Vec<(Var, Kind)> = kinds.into_iter().enumerate().collect();
            spill.write(columns[..1].iter(), rows.len())?;
            let extent = spill.write(columns.iter(), rows.len())?;
            let back = spill.read(&extent, &vars)?;
            prop_assert_eq!(back.rows, rows.len());
            for (var, column) in columns.iter().enumerate() {
                prop_assert_eq!(shown(&back.columns[&var]), shown(column));
            }
        }
    }

    fn spilled(disk: &io::fault::Disk) -> (Arc<Spill>, Result<Extent>) {
        let spill = Spill::new(Some(SpillTo::Device(disk.device("spill"))));
        let extent = spill.write([Vector::new(Values::Int(vec![1, 2]))].iter(), 2);
        (spill, extent)
    }

    #[test]
    fn a_full_disk_is_told() {
        let disk = io::fault::Disk::new(1);
        disk.set_capacity(3);
        let error = spilled(&disk).1.unwrap_err().to_string();
        assert!(error.contains("spill"), "{error}");
        assert!(
            error.contains("make room there or raise the memory limit"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_shorter_than_it_was_is_an_error() {
        let disk = io::fault::Disk::new(1);
        let (spill, extent) = spilled(&disk);
        disk.device("spill").set_len(3).unwrap();
        let error = spill.read(&extent.unwrap(), &[(0, Kind::Int)]).unwrap_err();
        assert!(matches!(error, Error::Spill { .. }), "{error}");
    }

    #[test]
    fn each_flipped_bit_is_found() {
        let disk = io::fault::Disk::new(1);
        let (spill, extent) = spilled(&disk);
        let extent = extent.unwrap();
        for bit in 0..8 * extent.bytes as u64 {
            assert!(disk.flip("spill", bit));
            let error = spill.read(&extent, &[(0, Kind::Int)]).unwrap_err();
            assert!(matches!(error, Error::SpillDamaged { .. }), "{error}");
            assert!(disk.flip("spill", bit));
        }
        assert_eq!(spill.read(&extent, &[(0, Kind::Int)]).unwrap().rows, 2);
    }
}
