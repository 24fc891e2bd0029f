//! The temporary file of one stage.

use std::path::PathBuf;
use std::sync::Arc;

use io::{Device, File};

use crate::error::{Error, Result};

type Make = dyn Fn() -> io::Result<Arc<dyn Device>> + Send + Sync;

/// Where what does not fit into memory goes meanwhile.
#[derive(Clone)]
pub struct Spill(To);

#[derive(Clone)]
enum To {
    Directory(PathBuf),
    Devices(Arc<Make>),
}

impl Spill {
    /// Files without names in `directory`, gone with the run. On the disk of the store rather than in a temporary
    /// folder, which is often small or in memory.
    pub fn directory(directory: impl Into<PathBuf>) -> Spill {
        Spill(To::Directory(directory.into()))
    }

    /// Devices that `make` makes, an empty one at each call: for tests with disks that fail.
    pub fn devices(
        make: impl Fn() -> io::Result<Arc<dyn Device>> + Send + Sync + 'static,
    ) -> Spill {
        Spill(To::Devices(Arc::new(make)))
    }

    fn device(&self) -> Result<Arc<dyn Device>> {
        Ok(match &self.0 {
            To::Directory(directory) => Arc::new(File::temporary(directory)?),
            To::Devices(make) => make()?,
        })
    }
}

impl Default for Spill {
    /// The system's temporary folder.
    fn default() -> Spill {
        Spill::directory(std::env::temp_dir())
    }
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            To::Directory(directory) => f.debug_tuple("Spill").field(directory).finish(),
            To::Devices(_) => f.write_str("Spill(devices)"),
        }
    }
}

/// Bytes of a spool that are read as they were written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    at: u64,
    pub bytes: usize,
    /// Checked when the bytes are read, as for a page.
    checksum: u32,
}

/// A file that is only appended to, created with the first bytes.
#[derive(Debug)]
pub(crate) struct Spool {
    spill: Spill,
    device: Option<Arc<dyn Device>>,
    end: u64,
}

impl Spool {
    pub fn new(spill: &Spill) -> Spool {
        Spool {
            spill: spill.clone(),
            device: None,
            end: 0,
        }
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Extent> {
        let device = match &self.device {
            Some(device) => device,
            None => self.device.insert(self.spill.device()?),
        };
        device.write_at(self.end, bytes)?;
        let at = self.end;
        self.end += bytes.len() as u64;
        Ok(Extent {
            at,
            bytes: bytes.len(),
            checksum: crc32c::crc32c(bytes),
        })
    }

    /// Fills `into`, which is as long as the extent.
    pub fn read(&self, extent: &Extent, into: &mut [u8]) -> Result<()> {
        // What was written has a device.
        let Some(device) = &self.device else {
            return Ok(());
        };
        device.read_at(extent.at, into)?;
        if crc32c::crc32c(into) == extent.checksum {
            Ok(())
        } else {
            Err(Error::SpillDamaged {
                place: device.path().to_owned(),
            })
        }
    }
}
