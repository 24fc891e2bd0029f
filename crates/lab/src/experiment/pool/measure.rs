//! Measuring: variants take turns, round by round.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use pages::{Access, Fill, Operator, Options, PageFile, Sweep, Timed};
use tempfile::TempDir;

use super::profile::Setup;
use crate::desk::Desk;
use crate::error::{Error, Result};

/// The threshold of the scan: half of random integers are above.
const THRESHOLD: i32 = 0;

/// Threads that fill the pages.
const FILLERS: usize = 2;

/// A variant: data with pages of a size, a pool, and what is measured with them.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// Bytes of a page.
    pub page_size: u32,
    /// The pool as a part of the data: 1 holds all of it, 4 a quarter.
    pub pool_part: u64,
    /// What is measured; of its rounds one at a time.
    pub sweep: Sweep,
}

/// How it is measured.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// Rounds.
    pub runs: usize,
    /// Whether the system's caches are emptied before cold runs.
    pub drop_caches: bool,
    /// The machine of the NUMA mode; `None` for the one at hand.
    pub machine: Option<String>,
}

/// The data, and how it is measured.
pub(super) struct Bench {
    manner: Manner,
    setup: Setup,
    folder: TempDir,
}

impl Bench {
    /// Without data yet.
    pub(super) fn new(manner: Manner, setup: Setup) -> Result<Bench> {
        let folder = tempfile::Builder::new().prefix("atoll-lab-pool-").tempdir();
        let folder = folder.map_err(|source| Error::Write {
            path: std::env::temp_dir(),
            source,
        })?;
        Ok(Bench {
            manner,
            setup,
            folder,
        })
    }

    /// What is measured.
    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Measures variants; for each the times of its combinations, in the order of its sweep.
    pub(super) fn turns(
        &self,
        variants: &[Variant],
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Vec<Timed>>> {
        let paths = variants
            .iter()
            .map(|variant| self.data(variant.page_size, desk));
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let mut all: Vec<Vec<Timed>> = vec![vec![]; variants.len()];
        for _ in 0..self.manner.runs {
            for ((variant, path), times) in variants.iter().zip(&paths).zip(&mut all) {
                if variant.sweep.cold && self.manner.drop_caches {
                    memory::drop_system_caches().map_err(|error| Error::Given {
                        why: format!("{error}; leave --drop-caches out"),
                    })?;
                }
                let data = self.setup.bytes / variant.pool_part;
                let options = Options {
                    // The pool also holds the pages of the allocation table.
                    pool_bytes: data + data / 8 + (2 << 20),
                    machine: self.manner.machine.clone(),
                    access: Access::Read,
                    ..Options::default()
                };
                let once = Sweep {
                    rounds: 1,
                    ..variant.sweep.clone()
                };
                let stop = || desk.stop.load(Ordering::Relaxed);
                let swept = pages::sweep(path, &options, Operator::Scan(THRESHOLD), &once, &stop);
                let swept = swept.map_err(failure)?;
                if times.is_empty() {
                    *times = swept.times;
                    continue;
                }
                for (timed, new) in times.iter_mut().zip(swept.times) {
                    timed.seconds.extend(new.seconds);
                }
            }
        }
        Ok(all)
    }

    /// The store with pages of this size, made at the first call.
    fn data(&self, page_size: u32, desk: &mut Desk<'_>) -> Result<PathBuf> {
        let path = self.folder.path().join(format!("{page_size}.pages"));
        if path.exists() {
            return Ok(path);
        }
        desk.progress(&format!("fills pages of {} KiB", page_size >> 10));
        let pages = self.setup.bytes / u64::from(page_size);
        let fill = Fill {
            pages: Some(pages),
            seed: 0,
        };
        let stop = || desk.stop.load(Ordering::Relaxed);
        let made = PageFile::create(&path, page_size, pages, &Options::default())
            .and_then(|file| pages::alloc(&file, FILLERS, &fill, &stop).map(|_| file))
            .and_then(PageFile::close);
        made.map_err(failure)?;
        Ok(path)
    }
}

fn failure(error: pages::Error) -> Error {
    match error {
        pages::Error::Interrupted => Error::Interrupted,
        error => Error::Pages(error),
    }
}
