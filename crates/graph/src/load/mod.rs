//! Loading edge lists as the Stanford collection (SNAP) has them (row B9).
//!
//! The file is read once. Its edges are kept as they are, in memory or a temporary file, until all
//! ids are known; then they are sorted under the numbers of their vertices and written, list after
//! list, in one transaction that begins only then. In memory at one time are the set of ids (from a
//! bit to 25 bytes for each) and what [`LoadOptions::memory`] allows, however long the file is.

pub(crate) mod ids;
pub(crate) mod input;
pub(crate) mod lists;
pub(crate) mod parse;
pub(crate) mod raw;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Store, Transaction};

use crate::error::{Error, Result};
use crate::format::array::ArrayWriter;
use crate::format::meta::{DIRECTORY, Meta, Order, Sort, key};
use crate::job::{Job, Phase};
use crate::load::ids::{Ids, Numbering};
use crate::load::input::{BLOCK, BLOCKS, Input};
use crate::load::lists::Shape;
use crate::load::parse::Parser;
use crate::load::raw::Raw;
use crate::read::graph::{publish, remove};
use crate::run::room::Room;
use crate::sort::radix::Record;
use crate::sort::sorter::{Sorted, Sorter};
use crate::sort::spool::Spill;

/// How a file is understood, and with what it is loaded.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Whether edges lead from the first vertex of a line to the second; otherwise each also leads
    /// back.
    pub directed: bool,
    /// Whether the third column is the weight of the edge, a finite number; otherwise it is not
    /// looked at.
    pub weighted: bool,
    /// Whether edges from a vertex to itself stay. The vertex does in any case.
    pub loops: bool,
    /// Whether edges that come again stay. Otherwise the first of each does, with its weight; of an
    /// undirected graph the edge back is the same.
    pub repeats: bool,
    /// Whether a graph of this name is replaced; otherwise it is an error that there is one.
    pub replace: bool,
    /// Most bytes for sorting, beside the ids; no more than half of what the budget has left is
    /// taken, and at least 256 KiB.
    pub memory: u64,
    /// Where edges go that do not fit into it.
    pub spill: Spill,
}

impl Default for LoadOptions {
    /// Directed, without weights, loops and repeated edges; 256 MiB.
    fn default() -> LoadOptions {
        LoadOptions {
            directed: true,
            weighted: false,
            loops: false,
            repeats: false,
            replace: false,
            memory: 256 << 20,
            spill: Spill::default(),
        }
    }
}

/// What a load has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Lines of the file, also empty ones and comments.
    pub lines: u64,
    /// Lines that are edges.
    pub read: u64,
    /// Edges that were left out because they lead from a vertex to itself.
    pub loops_dropped: u64,
    /// Edges that were left out because they came before.
    pub repeats_dropped: u64,
    /// Vertices of the graph.
    pub vertices: u64,
    /// Edges of the graph; an undirected one counts once.
    pub edges: u64,
    /// Pages of the graph, with those that say where the others are.
    pub pages: u64,
    /// How long it took.
    pub time: Duration,
}

/// Loads an edge list, plain or gzip, as graph `name`, in one transaction: in the store is all of it
/// or nothing.
///
/// A line has two vertex ids, whole numbers of 64 bits with or without a sign, in any order and with any gaps, and perhaps a
/// third column, separated by blanks, tabs or commas. Lines that begin with `#` or `%` are
/// comments. Vertices are numbered by rising id, those below 0 after all others. The calling thread does the work, and waits for
/// the disk; one more thread reads the file.
///
/// # Errors
/// [`Error::Name`]; [`Error::Exists`]; [`Error::File`], also for gzip that is cut short;
/// [`Error::Line`]; [`Error::NoEdges`]; [`Error::TooManyVertices`]; [`Error::Memory`] where the ids
/// do not fit; [`Error::Spill`], [`Error::SpillDamaged`] of the temporary files;
/// [`Error::Store`], [`Error::Buffer`] of the store; [`Error::Interrupted`].
pub async fn load(
    store: &Arc<Store>,
    name: &str,
    path: &Path,
    options: &LoadOptions,
    mut job: Job<'_>,
) -> Result<Loaded> {
    let begun = Instant::now();
    check_name(name)?;
    if !options.replace && store.snapshot().get(DIRECTORY, &key(name)).is_some() {
        return Err(exists(name));
    }
    let memory = sort_memory(&job, options.memory, path)?;
    let file = read(path, options, memory.bytes(), &mut job)?;
    if file.raw.len() == 0 && file.loops == 0 {
        return Err(Error::NoEdges {
            path: path.to_owned(),
        });
    }
    let (lines, loops_dropped) = (file.lines, file.loops);
    let read = file.raw.len() + loops_dropped;
    let (repeats_dropped, edges, meta) = if options.weighted {
        build::<[u64; 2]>(store, name, file, options, memory.bytes(), &mut job).await?
    } else {
        build::<u64>(store, name, file, options, memory.bytes(), &mut job).await?
    };
    Ok(Loaded {
        lines,
        read,
        loops_dropped,
        repeats_dropped,
        vertices: meta.vertices,
        edges,
        pages: pages(&meta, store.page_size()),
        time: begun.elapsed(),
    })
}

/// Takes memory for sorting: at most `most` bytes, and half of what is left.
pub(crate) fn sort_memory(job: &Job<'_>, most: u64, path: &Path) -> Result<Room> {
    let budget = job.budget();
    let half = budget.limit().saturating_sub(budget.used()) / 2;
    Room::most(budget, most.min(half), 256 << 10, || {
        format!("sorting {}", path.display())
    })
}

/// Whether this may be the name of a graph.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if (1..=255).contains(&name.len()) && !name.contains(char::is_control) {
        Ok(())
    } else {
        Err(Error::Name {
            name: name.to_owned(),
        })
    }
}

pub(crate) fn exists(name: &str) -> Error {
    Error::Exists {
        name: name.to_owned(),
    }
}

/// Pages of a graph, index pages and metadata page included.
pub(crate) fn pages(meta: &Meta, page_size: usize) -> u64 {
    let pages =
        |array: &crate::format::meta::Array| array.pages(page_size) + array.index.len() as u64;
    1 + meta.arrays.iter().map(pages).sum::<u64>()
}

/// A file that has been read.
struct FileRead {
    raw: Raw,
    ids: Ids,
    lines: u64,
    loops: u64,
}

/// Reads the file.
fn read(path: &Path, options: &LoadOptions, memory: u64, job: &mut Job<'_>) -> Result<FileRead> {
    let budget = job.budget().clone();
    let _blocks = Room::take(&budget, (BLOCK * BLOCKS) as u64, || {
        format!("reading {}", path.display())
    })?;
    let bitmaps = budget.limit().saturating_sub(budget.used()) / 4;
    let mut file = FileRead {
        raw: Raw::new(&options.spill, memory / 4, options.weighted),
        ids: Ids::new(
            format!("numbering the vertices of {}", path.display()),
            &budget,
            bitmaps,
        )?,
        lines: 0,
        loops: 0,
    };
    let mut parser = Parser::new(options.weighted);
    std::thread::scope(|scope| -> Result<()> {
        let mut input = Input::open(path, scope)?;
        loop {
            job.at(Phase::Read, input.read(), input.total)?;
            let block = input.next().map_err(|source| Error::File {
                path: path.to_owned(),
                source,
            })?;
            let Some(block) = block else {
                return Ok(());
            };
            let mut failed = Ok(());
            let parsed = parser.parse(&block, |edge| {
                if failed.is_ok() {
                    failed = file.take(edge, options.loops);
                }
            });
            failed?;
            parsed.map_err(|wrong| Error::Line {
                path: path.to_owned(),
                line: wrong.line,
                what: wrong.what,
            })?;
            input.done(block);
        }
    })?;
    file.lines = parser.lines;
    Ok(file)
}

impl FileRead {
    #[inline]
    fn take(&mut self, edge: parse::Edge, loops: bool) -> Result<()> {
        self.ids.insert(edge.from)?;
        if edge.from == edge.to && !loops {
            self.loops += 1;
            return Ok(());
        }
        self.ids.insert(edge.to)?;
        self.raw.push(edge)
    }
}

/// Numbers, sorts and writes what was read: the edges left out, those written, and the graph.
async fn build<R: Record>(
    store: &Arc<Store>,
    name: &str,
    file: FileRead,
    options: &LoadOptions,
    memory: u64,
    job: &mut Job<'_>,
) -> Result<(u64, u64, Meta)> {
    job.at(Phase::Number, 0, 0)?;
    let numbering = file.ids.number()?;
    job.at(Phase::Number, numbering.len(), numbering.len())?;
    let mut shape = Shape {
        vertices: numbering.len(),
        directed: options.directed,
        weighted: options.weighted,
        repeats: options.repeats,
        entries: 0,
        // A quarter each for what was read and the in-edges, half for the out-edges.
        memory: memory / 4,
        spill: options.spill.clone(),
    };
    let (sorted, entries) = sort::<R>(file.raw, &numbering, options, memory / 2, job)?;
    shape.entries = entries;
    let mut transaction = store.begin()?;
    if remove(&mut transaction, name).await? && !options.replace {
        return Err(exists(name));
    }
    let ids = write_ids(&transaction, &numbering)?;
    drop(numbering);
    let made = lists::write(&transaction, sorted, &shape, job, |_, _| ())?;
    let (dropped, edges) = (made.dropped, made.edges);
    let meta = made.meta(shape.vertices, Order::Ids, vec![ids]);
    publish(&mut transaction, name, &meta)?;
    job.go_on()?;
    transaction.commit()?;
    Ok((dropped, edges, meta))
}

/// The edges under the numbers of their vertices, and how many entries that is.
fn sort<R: Record>(
    raw: Raw,
    numbering: &Numbering,
    options: &LoadOptions,
    memory: u64,
    job: &mut Job<'_>,
) -> Result<(Sorted<R>, u64)> {
    let mut sorter = Sorter::<R>::new(&options.spill, memory);
    let both = 2 - u64::from(options.directed);
    let (total, mut entries) = (raw.len() * both, 0);
    let sink = |from, to, weight| {
        let (from, to) = (numbering.number(from), numbering.number(to));
        sorter.push(R::new(lists::key(from, to), weight))?;
        entries += 1;
        if !options.directed && from != to {
            sorter.push(R::new(lists::key(to, from), weight))?;
            entries += 1;
        }
        Ok(())
    };
    raw.drain(sink, |done| job.at(Phase::Sort, done * both, total))?;
    Ok((sorter.finish()?, entries))
}

/// Writes the array of the ids.
fn write_ids(
    transaction: &Transaction,
    numbering: &Numbering,
) -> Result<crate::format::meta::Array> {
    let mut writer = ArrayWriter::new(transaction, Sort::Ids);
    numbering.each(|id| writer.push(id))?;
    writer.finish()
}

#[cfg(test)]
mod fuzzed;
#[cfg(test)]
pub(crate) mod naive;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
