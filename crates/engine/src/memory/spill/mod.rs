//! What does not fit in memory: rows in a file that nobody else sees, and that is gone when its query is.

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

/// Rows of the file that are written, and read, together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    at: u64,
    bytes: usize,
    /// Of the bytes: what comes back from the disk is checked like a page.
    checksum: u32,
    pub rows: usize,
    /// Bytes that they take in memory, about.
    pub memory: usize,
}

/// Rows of an extent that is merged with others: one of each is in memory at the same time.
pub(crate) const RUN_ROWS: usize = 1_024;

/// Most rows of any other extent.
pub(crate) const EXTENT_ROWS: usize = 32_768;

/// Extents, in lists: of rows in order, a list for each run of them; of rows in no order, one; of what has keys, one
/// for each part of them.
pub(crate) type Lists = Vec<Vec<Extent>>;

/// Rows that a stage gave and that did not fit in memory.
#[derive(Debug)]
pub(crate) struct Spilled {
    pub spill: Arc<Spill>,
    pub extents: Vec<Extent>,
    /// Ascending.
    pub vars: Vec<(Var, Kind)>,
    pub rows: usize,
}

impl Spilled {
    /// The rows of one extent.
    pub fn get(&self, extent: &Extent) -> Result<Materialized> {
        self.spill.get(extent, &self.vars)
    }
}

/// The file of a query, which is made when the first rows are put there.
#[derive(Debug)]
pub(crate) struct Spill {
    /// `None` if nothing may be written.
    to: Option<SpillTo>,
    device: Mutex<Option<Arc<dyn Device>>>,
    /// Where the next extent begins.
    end: AtomicU64,
}

impl Spill {
    /// Where `to` says; where that is a directory that cannot be written, in the system's directory for such files.
    pub fn new(to: Option<SpillTo>) -> Arc<Spill> {
        Arc::new(Spill {
            to,
            device: Mutex::new(None),
            end: AtomicU64::new(0),
        })
    }

    /// Whether rows may be put there at all.
    pub fn is_allowed(&self) -> bool {
        self.to.is_some()
    }

    /// Bytes that were put there.
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

    /// Where it is, for messages.
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

    /// Puts all rows of `columns` there; each column has `rows` of them.
    ///
    /// # Errors
    /// [`Error::Spill`].
    pub fn put<'v>(
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

    /// The rows of `extent`, whose columns are `vars`, ascending, of these kinds.
    ///
    /// # Errors
    /// [`Error::Spill`].
    pub fn get(&self, extent: &Extent, vars: &[(Var, Kind)]) -> Result<Materialized> {
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

/// All rows of `blocks`.
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

/// Numbered from 0, as the columns of extents that are not of numbered vectors.
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
            spill.put(columns[..1].iter(), rows.len())?;
            let extent = spill.put(columns.iter(), rows.len())?;
            let back = spill.get(&extent, &vars)?;
            prop_assert_eq!(back.rows, rows.len());
            for (var, column) in columns.iter().enumerate() {
                prop_assert_eq!(shown(&back.columns[&var]), shown(column));
            }
        }
    }

    fn spilled(disk: &io::fault::Disk) -> (Arc<Spill>, Result<Extent>) {
        let spill = Spill::new(Some(SpillTo::Device(disk.device("spill"))));
        let extent = spill.put([Vector::new(Values::Int(vec![1, 2]))].iter(), 2);
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
        let error = spill.get(&extent.unwrap(), &[(0, Kind::Int)]).unwrap_err();
        assert!(matches!(error, Error::Spill { .. }), "{error}");
    }

    #[test]
    fn each_flipped_bit_is_found() {
        let disk = io::fault::Disk::new(1);
        let (spill, extent) = spilled(&disk);
        let extent = extent.unwrap();
        for bit in 0..8 * extent.bytes as u64 {
            assert!(disk.flip("spill", bit));
            let error = spill.get(&extent, &[(0, Kind::Int)]).unwrap_err();
            assert!(matches!(error, Error::SpillDamaged { .. }), "{error}");
            assert!(disk.flip("spill", bit));
        }
        assert_eq!(spill.get(&extent, &[(0, Kind::Int)]).unwrap().rows, 2);
    }
}
