//! Finding the last committed state of a store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use io::Device;
use memory::Budget;

use crate::catalog::changes::Changes;
use crate::catalog::spaces::Catalog;
use crate::error::{Error, Region, Result};
use crate::format::structures::{CHUNK, Identity, Root};
use crate::log::Log;
use crate::log::report::Recovery;
use crate::options::Options;
use crate::recovery::creation::unfinished;
use crate::recovery::loader::Loader;
use crate::recovery::roots::{choose, identity, root};
use crate::space::images::Images;
use crate::space::map::PageMap;
use crate::space::pages::{Pages, mapping};
use crate::space::pending::Pending;
use crate::state::free::Free;
use crate::state::version::Version;
use crate::state::writer::Writer;

/// What an opened store starts with.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) identity: Identity,
    pub(crate) pages: Pages,
    pub(crate) free: Free,
    /// What is written begins at multiples of this many bytes.
    pub(crate) alignment: u64,
    pub(crate) writer: Writer,
    pub(crate) recovery: Recovery,
    /// Whether one root slot is invalid.
    pub(crate) sole_root: bool,
}

/// Finds the last committed state; writes nothing.
pub(crate) fn recover(
    data: Arc<dyn Device>,
    log: Arc<dyn Device>,
    options: &Options,
) -> Result<Recovered> {
    let identity = match identity(&*data) {
        Err(_) if unfinished(&*data, Some(&*log))? => {
            let path = data.path().to_path_buf();
            return Err(Error::Unfinished { path });
        }
        identity => identity?,
    };
    let roots = [
        root(&*data, 0, &identity.id)?,
        root(&*data, 1, &identity.id)?,
    ];
    let found = Log::open(log, identity.id)?;
    let (root, sole_root) = choose(&*data, &roots, &found)?;
    let file_bytes = data.len()?;
    // A root that is not the last may speak of a longer file; each structure and page is held
    // against the length in any case.
    if !sole_root && root.file_bytes > file_bytes {
        let path = data.path().to_path_buf();
        return Err(Error::Truncated {
            path,
            needed: root.file_bytes,
            found: file_bytes,
        });
    }
    let budget = options.pool.budget.clone();
    // Where the limit cannot be found out, there is none.
    let budget = budget.unwrap_or_else(|| Budget::new(memory::available().unwrap_or(u64::MAX)));
    let mapping = options.mapped.then(|| mapping(&*data)).transpose()?;
    let map = PageMap::new(
        data.clone(),
        identity.page_size,
        budget.clone(),
        options.map_bytes,
        options.mapped,
    );
    let images = Images::new(budget.clone(), options.dirty_limit());
    let queue = io::Queue::with(io::Settings {
        threads: options.pool.io_threads,
        ..options.pool.reads
    })?;
    let pages = Pages::new(map, images, data, queue, mapping);
    let loader = Loader {
        pages: &pages,
        page_size: identity.page_size,
        file_bytes,
        budget,
        taken: 0,
    };
    let (free, writer) = load(loader, root, found.log, options)?;
    let recovery = Recovery {
        replayed: writer.head.number - root.version,
        dropped: writer.log.dropped().cloned(),
    };
    Ok(Recovered {
        identity,
        pages,
        free,
        alignment: u64::from(writer.root.alignment),
        writer,
        recovery,
        sole_root,
    })
}

/// Loads what `root` points to but the page map, and applies the records of the log that follow it: that reads the
/// chunks of the map which they change.
fn load(
    mut loader: Loader<'_>,
    mut root: Root,
    mut log: Log,
    options: &Options,
) -> Result<(Free, Writer)> {
    let directory = loader.directory(&root.directory)?;
    loader.apart(&root, &directory)?;
    loader.map(&root, &directory)?;
    let mut state = State {
        catalog: loader.catalog(&directory)?,
        next_page: directory.next_page,
        version: root.version,
        places: 0,
        chunks: BTreeSet::new(),
        spaces: BTreeSet::new(),
    };
    replay(&mut log, &mut loader, &mut state, options)?;
    loader.place_images();
    loader.changed_apart(&root, &directory, &state.chunks)?;
    root.alignment = loader.alignment(&root, &directory, state.places) as u32;
    let head = Arc::new(Version {
        number: state.version,
        catalog: std::mem::take(&mut state.catalog),
    });
    let writer = Writer {
        log,
        head,
        open: false,
        aside: BTreeMap::new(),
        root,
        directory,
        chunks: std::mem::take(&mut state.chunks),
        spaces: std::mem::take(&mut state.spaces),
        pending: Pending::default(),
        limbo: Vec::new(),
        due: options.checkpoint_bytes,
        checkpoint_failure: None,
    };
    Ok((Free::unknown(state.next_page), writer))
}

/// The state that replaying changes.
struct State {
    catalog: Catalog,
    next_page: u64,
    version: u64,
    /// All bits that offsets of written pages have: they are multiples of what this is a multiple of.
    places: u64,
    chunks: BTreeSet<u32>,
    spaces: BTreeSet<u32>,
}

/// Applies the records after the root's version to map and catalog.
fn replay(
    log: &mut Log,
    loader: &mut Loader<'_>,
    state: &mut State,
    options: &Options,
) -> Result<()> {
    let path = log.device().path().to_path_buf();
    log.limit_records(loader.memory());
    log.replay(state.version, options.damage, |version, body, offset| {
        let region = Region::LogRecord(version);
        let damaged = |detail: String| Error::damaged(&path, region, offset, detail);
        let changes = Changes::decode(body, loader.page_size)
            .ok_or_else(|| damaged("its fields make no sense".to_string()))?;
        if let Some(page) = loader.free(&changes)? {
            return Err(damaged(format!("page {page} is freed and does not exist")));
        }
        for (page, entry) in &changes.written {
            if let Some(why) = loader.new_page(*page, state.next_page)? {
                return Err(damaged(why));
            }
            loader.enter(*page, entry, region, offset)?;
            state.places |= entry.offset;
            state.next_page = state.next_page.max(u64::from(*page) + 1);
        }
        for ((page, _), image) in changes.written.iter().zip(&changes.images) {
            loader.keep_image(*page, image)?;
        }
        state.include(changes, version);
        Ok(())
    })
}

impl State {
    fn include(&mut self, changes: Changes, version: u64) {
        let written = changes.written.iter().map(|(page, _)| page);
        let pages = written.chain(&changes.freed);
        self.chunks.extend(pages.map(|page| page / CHUNK));
        self.spaces.extend(changes.spaces());
        changes.apply(&mut self.catalog);
        self.version = version;
    }
}
