//! The values of data sets.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{Buffer, DataType, Region, Scalar};
use io::Device;

use crate::copy::{boxes, copy_common, read_box};
use crate::error::{Error, Result};
use crate::hdf5::bytes::{Fault, Parsed};
use crate::hdf5::chunks::chunks;
use crate::hdf5::dataset::{DataSet, Layout};
use crate::hdf5::file::Hdf;
use crate::hdf5::grid::{Chunk, ChunkGrid};
use crate::hdf5::packing::{most, unpack};
use crate::hdf5::values::to_native;
use crate::hdf5::walk::variables;
use crate::job::{Job, Reserved};
use crate::variables::model::{Container, Value, Variable};

/// A chunk in memory: packed, unpacked, and between two filters.
const COPIES: u64 = 3;

/// Bytes of a chunk's entry in the list, which is sorted.
const ENTRY: u64 = 2 * size_of::<Chunk>() as u64;

/// An HDF5 file whose data sets are read.
pub(super) struct HdfContainer {
    path: PathBuf,
    hdf: Hdf,
    sets: Vec<Option<DataSet>>,
    variables: Vec<Variable>,
    aliases: Vec<(String, String)>,
    attributes: Vec<(String, Value)>,
    prepared: BTreeMap<usize, Prepared>,
}

/// A data set of which is known where its values lie.
struct Prepared {
    of: DataType,
    big_endian: bool,
    /// The value of a cell that was never written.
    fill: Vec<u8>,
    place: Place,
    _reserved: Vec<Reserved>,
}

enum Place {
    /// In memory.
    Here(Vec<u8>),
    /// One after the other in the file.
    File(u64),
    /// Nowhere: all cells have the fill value.
    Nowhere,
    Chunks(Stored),
}

/// Chunks in the file, and those that were read lately, the last one last.
struct Stored {
    grid: ChunkGrid,
    chunks: Vec<Chunk>,
    /// Whether chunks at the edge are not packed.
    plain_edges: bool,
    kept: VecDeque<(u64, Arc<Vec<u8>>)>,
    most_kept: usize,
}

impl HdfContainer {
    /// Finds the data sets of a file.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Unsupported`], [`Error::Io`].
    pub fn open(device: Arc<dyn Device>) -> Result<HdfContainer> {
        let path = device.path().to_owned();
        let opened = Hdf::open(device).and_then(|hdf| {
            let listed = variables(&hdf)?;
            Ok((hdf, listed))
        });
        let (hdf, listed) = opened.map_err(|fault| error(&path, "", fault))?;
        Ok(HdfContainer {
            path,
            hdf,
            sets: listed.sets,
            variables: listed.variables,
            aliases: listed.aliases,
            attributes: listed.attributes,
            prepared: BTreeMap::new(),
        })
    }
}

/// A fault of a file, or of one of its data sets, as an error.
fn error(path: &Path, name: &str, fault: Fault) -> Error {
    let of = |what: String| match name {
        "" => what,
        name => format!("'{name}': {what}"),
    };
    match fault {
        Fault::Damaged(what) => Error::malformed(path, of(what)),
        Fault::Unread(what) => Error::unsupported(path, of(what)),
        Fault::Failed(error) => error,
    }
}

impl Container for HdfContainer {
    fn path(&self) -> &Path {
        &self.path
    }

    fn variables(&self) -> &[Variable] {
        &self.variables
    }

    fn attributes(&self) -> &[(String, Value)] {
        &self.attributes
    }

    fn aliases(&self) -> &[(String, String)] {
        &self.aliases
    }

    fn prepare(&mut self, variable: usize, job: &Job<'_>, kept: u64) -> Result<()> {
        if self.prepared.contains_key(&variable) {
            return Ok(());
        }
        let name = &self.variables[variable].name;
        let refused = |what: &str| Error::unsupported(&self.path, format!("'{name}': {what}"));
        let set = self.sets[variable].as_ref();
        let set = set.ok_or_else(|| refused("is not read"))?;
        let number = set.datatype.number();
        let (of, big_endian) = number.ok_or_else(|| refused("has no numbers"))?;
        let fill = self.variables[variable].fill.unwrap_or(Scalar::Int(0));
        let fill = fill.cast(of).unwrap_or(Scalar::Int(0));
        let mut reserved = Vec::new();
        let place = match &set.layout {
            Layout::Compact(bytes) => Place::Here(bytes.clone()),
            Layout::Contiguous(Some(at)) => Place::File(*at),
            Layout::Contiguous(None) => Place::Nowhere,
            Layout::Chunked(chunked) => {
                let fault = |fault| error(&self.path, name, fault);
                let grid = ChunkGrid::of(set, chunked).map_err(fault)?;
                let most = (job.free() / 4 / ENTRY).min(1 << 32) as usize;
                let packed = !set.filters.is_empty();
                let found = chunks(&self.hdf, (chunked, &grid), packed, most).map_err(fault)?;
                let list = found.len() as u64 * ENTRY;
                reserved.push(job.reserve("the list of the file's chunks", list)?);
                let kept = kept.max(grid.bytes);
                let bytes = grid.bytes.saturating_mul(COPIES).saturating_add(kept);
                reserved.push(job.reserve("a chunk of the file", bytes)?);
                Place::Chunks(Stored {
                    most_kept: (kept / grid.bytes.max(1)).clamp(1, 1 << 12) as usize,
                    grid,
                    chunks: found,
                    plain_edges: chunked.plain_edges,
                    kept: VecDeque::new(),
                })
            }
        };
        let prepared = Prepared {
            of,
            big_endian,
            fill: Buffer::filled(of, 1, fill).bytes().to_vec(),
            place,
            _reserved: reserved,
        };
        self.prepared.insert(variable, prepared);
        Ok(())
    }

    fn stored(&self, variable: usize) -> Option<Vec<Region>> {
        match &self.prepared.get(&variable)?.place {
            Place::Here(_) | Place::File(_) => None,
            Place::Nowhere => Some(Vec::new()),
            Place::Chunks(stored) => {
                let regions = stored.chunks.iter().map(|of| stored.region(of.number));
                Some(regions.collect())
            }
        }
    }

    fn read(&mut self, variable: usize, region: &Region, into: &mut [u8]) -> Result<()> {
        let HdfContainer {
            path,
            hdf,
            sets,
            variables,
            prepared,
            ..
        } = self;
        let name = &variables[variable].name;
        let (Some(prepared), Some(set)) = (prepared.get_mut(&variable), &sets[variable]) else {
            return Err(Error::unsupported(path, format!("'{name}': is not read")));
        };
        let fault = |fault| error(path, name, fault);
        let width = prepared.of.width();
        let shape = variables[variable].shape();
        match &mut prepared.place {
            Place::Here(bytes) => {
                let mut fetch = |offset: u64, into: &mut [u8]| {
                    let from = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
                    match from.and_then(|from| from.get(..into.len())) {
                        Some(from) => {
                            into.copy_from_slice(from);
                            Ok(())
                        }
                        None => Err(Fault::Damaged("its header lacks some values".to_owned())),
                    }
                };
                read_box(&shape, region, width, into, &mut fetch).map_err(fault)?;
            }
            Place::File(at) => {
                let mut fetch =
                    |offset: u64, into: &mut [u8]| hdf.values(at.saturating_add(offset), into);
                read_box(&shape, region, width, into, &mut fetch).map_err(fault)?;
            }
            Place::Nowhere => {
                filled(into, &prepared.fill);
                return Ok(());
            }
            Place::Chunks(stored) => {
                filled(into, &prepared.fill);
                let from = Reading {
                    hdf,
                    set,
                    shape: &shape,
                    of: prepared.of,
                    big_endian: prepared.big_endian,
                };
                return stored.read(&from, region, into).map_err(|bad| {
                    let place = stored.grid.place(bad.number);
                    let name = format!("{name}, chunk {place:?}");
                    error(path, &name, bad.fault)
                });
            }
        }
        to_native(prepared.of, prepared.big_endian, into);
        Ok(())
    }
}

fn filled(into: &mut [u8], fill: &[u8]) {
    if fill.iter().all(|&byte| byte == 0) {
        into.fill(0);
    } else {
        let cells = into.chunks_exact_mut(fill.len());
        cells.for_each(|cell| cell.copy_from_slice(fill));
    }
}

/// A data set that chunks are read of.
struct Reading<'a> {
    hdf: &'a Hdf,
    set: &'a DataSet,
    shape: &'a [u64],
    of: DataType,
    big_endian: bool,
}

/// A chunk that cannot be read.
struct Bad {
    number: u64,
    fault: Fault,
}

impl Stored {
    /// Where the cells of a chunk lie; those of one at the edge may lie behind it.
    fn region(&self, number: u64) -> Region {
        let place = self.grid.place(number);
        let lengths = place.iter().zip(&self.grid.chunk);
        Region::new(lengths.map(|(at, by)| (at * by, at.saturating_add(1).saturating_mul(*by))))
    }

    /// Copies what chunks have of a region.
    fn read(
        &mut self,
        from: &Reading<'_>,
        region: &Region,
        into: &mut [u8],
    ) -> std::result::Result<(), Bad> {
        let whole = Region::of_shape(from.shape);
        for at in self.within(region) {
            let chunk = self.chunks[at];
            let of_chunk = self.region(chunk.number);
            let known = self.kept.iter().find(|(number, _)| *number == chunk.number);
            let values = match known {
                Some((_, values)) => Arc::clone(values),
                None => {
                    let loaded = self.load(from, chunk, &of_chunk, &whole);
                    let number = chunk.number;
                    Arc::new(loaded.map_err(|fault| Bad { number, fault })?)
                }
            };
            copy_common(from.of.width(), (&of_chunk, &values), (region, &mut *into));
            // What lies in the region as a whole is not asked for again.
            if region.contains(&of_chunk.intersection(&whole)) {
                continue;
            }
            if !self.kept.iter().any(|(number, _)| *number == chunk.number) {
                if self.kept.len() >= self.most_kept {
                    self.kept.pop_front();
                }
                self.kept.push_back((chunk.number, values));
            }
        }
        Ok(())
    }

    /// The chunks that overlap a region, by their places in the list: the shorter of list and region is walked.
    fn within(&self, region: &Region) -> Vec<usize> {
        if region.is_empty() {
            return Vec::new();
        }
        let ranges = region.ranges().iter().zip(&self.grid.chunk);
        let range: Vec<(u64, u64)> = ranges
            .map(|((start, end), by)| (start / by, (end - 1) / by + 1))
            .collect();
        let chunks = Region::new(range.iter().copied());
        let lengths = chunks.shape();
        let count = lengths
            .iter()
            .try_fold(1u64, |all, &of| all.checked_mul(of));
        if count.is_none_or(|count| count > self.chunks.len() as u64) {
            let inside = |chunk: &Chunk| {
                let place = self.grid.place(chunk.number);
                place
                    .iter()
                    .zip(&range)
                    .all(|(at, (start, end))| (start..end).contains(&at))
            };
            let all = self.chunks.iter().enumerate();
            return all.filter(|(_, of)| inside(of)).map(|(at, _)| at).collect();
        }
        let one = vec![1; lengths.len()];
        let places = boxes(&lengths, &one).filter_map(|of| {
            let place: Vec<u64> = of
                .ranges()
                .iter()
                .zip(&range)
                .map(|(at, range)| at.0 + range.0)
                .collect();
            let number = self.grid.number(&place)?;
            self.chunks
                .binary_search_by_key(&number, |of| of.number)
                .ok()
        });
        places.collect()
    }

    /// Reads a chunk and unpacks it.
    fn load(
        &self,
        from: &Reading<'_>,
        chunk: Chunk,
        region: &Region,
        whole: &Region,
    ) -> Parsed<Vec<u8>> {
        let expected = self.grid.bytes as usize;
        if chunk.bytes > most(expected) as u64 {
            let bytes = chunk.bytes;
            return Err(Fault::Damaged(format!(
                "has {bytes} bytes, more than the {expected} of its values need"
            )));
        }
        let mut bytes = vec![0; chunk.bytes as usize];
        from.hdf.values(chunk.at, &mut bytes)?;
        let edge = !whole.contains(region);
        let skipped = if edge && self.plain_edges {
            u32::MAX
        } else {
            chunk.skipped
        };
        let filters = (&from.set.filters[..], skipped);
        let unpacked = unpack(bytes, filters, from.of.width(), expected);
        let mut values = unpacked.map_err(Fault::Damaged)?;
        to_native(from.of, from.big_endian, &mut values);
        Ok(values)
    }
}
