//! Where operators put what does not fit in memory.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::spill_file::{SpillFile, TempFileFactory};
use parking_lot::Mutex;

/// Makes the spill directory when the first file is wanted, and removes it when the engine goes.
///
/// Beside the store rather than in the system's temporary directory, which may lie in memory; where the
/// directory of the store cannot be written, the system's is taken after all.
pub(crate) struct SpillFiles {
    directory: PathBuf,
    files: Mutex<Option<Arc<DiskManager>>>,
}

impl SpillFiles {
    pub(crate) fn new(directory: PathBuf) -> SpillFiles {
        SpillFiles {
            directory,
            files: Mutex::new(None),
        }
    }

    fn manager(&self) -> Result<Arc<DiskManager>> {
        let mut files = self.files.lock();
        if let Some(manager) = files.as_ref() {
            return Ok(Arc::clone(manager));
        }
        let beside = DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![self.directory.clone()]))
            .build();
        let manager = Arc::new(match beside {
            Ok(manager) => manager,
            Err(_) => DiskManagerBuilder::default().build()?,
        });
        *files = Some(Arc::clone(&manager));
        Ok(manager)
    }
}

impl TempFileFactory for SpillFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        self.manager()?.create_tmp_file(description)
    }
}
