//! A page store with its pool, on the machine's nodes.

use std::path::Path;

use store::{Direct, PageStore, PoolOptions};
use topology::Machine;
use workers::Layout;

use crate::error::Result;
use crate::options::{MAX_PARTITIONS, Options, within};

/// A page store that was opened with a pool of a given shape.
#[derive(Debug)]
pub struct PageFile {
    store: PageStore,
    /// The machine that the pool and the threads are laid out for.
    machine: Machine,
    live: Machine,
    numa: bool,
}

impl PageFile {
    /// Creates a store with room for `pages` pages of `page_size` bytes, a power of two from 4 KiB
    /// to 1 MiB: the data file `path` and the log `path.log`, neither of which may exist. None is
    /// allocated yet (row B1).
    ///
    /// # Errors
    /// Those of [`PageStore::create`] and [`PageStore::reserve`]; those of
    /// [`open`](PageFile::open).
    pub fn create(
        path: impl AsRef<Path>,
        page_size: u32,
        pages: u64,
        options: &Options,
    ) -> Result<PageFile> {
        let file = PageFile::made(options, |mut settings| {
            settings.page_size = page_size;
            PageStore::create(path, &settings)
        })?;
        if pages > 0 {
            file.store.reserve(pages)?;
        }
        Ok(file)
    }

    /// Opens a store.
    ///
    /// # Errors
    /// Those of [`PageStore::open`]; [`Error::Setting`](crate::Error::Setting) if `partitions` is
    /// out of range; [`Error::Machine`](crate::Error::Machine) if the machine is not known.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<PageFile> {
        PageFile::made(options, |settings| PageStore::open(path, &settings))
    }

    fn made(
        options: &Options,
        make: impl FnOnce(store::Options) -> store::Result<PageStore>,
    ) -> Result<PageFile> {
        within("partitions", options.partitions, 1, MAX_PARTITIONS)?;
        let live = Machine::live()?;
        let machine = match &options.machine {
            Some(description) => Machine::parse(description)?,
            None => live.clone(),
        };
        let nodes: Vec<Option<u32>> = if options.numa {
            // Only of the machine at hand are the nodes those of the system.
            let own = machine == live;
            let nodes = machine.nodes().iter();
            nodes.map(|node| own.then_some(node.os_index)).collect()
        } else {
            vec![None]
        };
        let pool = PoolOptions {
            bytes: options.pool_bytes,
            partitions_per_node: options.partitions.div_ceil(nodes.len().max(1)),
            nodes,
            placement: options.placement,
            prefetch: options.prefetcher,
            direct: if options.direct {
                Direct::IfPossible
            } else {
                Direct::Never
            },
            ..PoolOptions::default()
        };
        let settings = store::Options {
            pool,
            access: options.access,
            mapped: options.mapped,
            // Random bytes cannot be compressed, and pages that are not can be mapped.
            compress: false,
            ..store::Options::default()
        };
        Ok(PageFile {
            store: make(settings)?,
            machine,
            live,
            numa: options.numa,
        })
    }

    /// The store.
    pub fn store(&self) -> &PageStore {
        &self.store
    }

    /// The counters of the pool (row B2).
    pub fn pool(&self) -> buffer::Statistics {
        self.store.pool().statistics()
    }

    /// Empties the pool: the next reads are cold, but for what the system itself keeps of the file.
    pub fn cool(&self) {
        self.store.pool().clear();
    }

    /// Where that many threads run.
    pub(crate) fn layout(&self, threads: usize) -> Layout {
        Layout::of(&self.machine, &self.live, threads, self.numa)
    }

    /// Folds the log into the data file, and closes it.
    ///
    /// # Errors
    /// As [`PageStore::close`].
    pub fn close(self) -> Result<()> {
        Ok(self.store.close()?)
    }
}
