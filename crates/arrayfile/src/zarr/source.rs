//! The cells of a Zarr array.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{Buffer, DataType, MetadataValue, Region, Scalar};
use serde_json::Value;

use crate::cf;
use crate::copy::{boxes, copy_common, swap, turned};
use crate::error::{Error, Result};
use crate::job::{Job, Reserved};
use crate::source::{Header, Source};
use crate::zarr::attributes::all;
use crate::zarr::codec::{most, unpack, unpack_some};
use crate::zarr::metadata::{Metadata, lengths, names};
use crate::zarr::{v2, v3};

/// The most bytes of metadata that are read.
const MOST_METADATA: u64 = 16 << 20;

/// A chunk in memory: packed, unpacked and in the order of the array.
const COPIES: u64 = 3;

type Chunk = (Vec<u64>, Option<Arc<Vec<u8>>>);

/// A Zarr array that is read.
#[derive(Debug)]
pub(super) struct ZarrSource {
    folder: PathBuf,
    metadata: Metadata,
    header: Header,
    /// The value of a cell whose chunk was never written.
    fill: Vec<u8>,
    /// The chunks that were written.
    stored: BTreeSet<Vec<u64>>,
    /// Chunks that were read lately, the last one last.
    kept: VecDeque<Chunk>,
    most_kept: usize,
    _reserved: Reserved,
}

impl ZarrSource {
    /// The array in a folder; `kept` bytes are for chunks that may be needed again.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Unsupported`], [`Error::System`], [`Error::Memory`].
    pub fn open(folder: &Path, job: &Job<'_>, kept: u64) -> Result<ZarrSource> {
        let (metadata, said) = metadata(folder)?;
        let bytes = metadata.chunk_bytes() as u64;
        let reserved = job.reserve("a chunk of the file", bytes.saturating_mul(COPIES) + kept)?;
        let fill = metadata.fill.unwrap_or(Scalar::Int(0));
        let fill = fill.cast(metadata.data_type).unwrap_or(Scalar::Null);
        let names = metadata.names.clone();
        let plain = Header::plain(metadata.data_type, metadata.fill, &metadata.shape, names);
        let header = described_by(plain, &all(&said, Some(metadata.data_type)));
        Ok(ZarrSource {
            folder: folder.to_owned(),
            header: Header {
                chunk: Some(metadata.chunk.clone()),
                ..header
            },
            fill: Buffer::filled(metadata.data_type, 1, fill).bytes().to_vec(),
            stored: stored(folder, &metadata)?,
            kept: VecDeque::new(),
            most_kept: usize::try_from(kept / bytes.max(1))
                .unwrap_or(usize::MAX)
                .clamp(1, 1 << 12),
            metadata,
            _reserved: reserved,
        })
    }

    /// Where the cells of a chunk lie; those of one at the edge may lie behind it.
    fn region(&self, chunk: &[u64]) -> Region {
        let lengths = chunk.iter().zip(&self.metadata.chunk);
        Region::new(lengths.map(|(at, by)| (at * by, at.saturating_add(1).saturating_mul(*by))))
    }

    /// The values of a chunk in row-major order, little-endian; `None` if it was never written.
    fn chunk(&mut self, chunk: &[u64]) -> Result<Option<Arc<Vec<u8>>>> {
        if let Some((_, values)) = self.kept.iter().find(|(at, _)| at == chunk) {
            return Ok(values.clone());
        }
        let values = self.load(chunk)?.map(Arc::new);
        if self.kept.len() >= self.most_kept {
            self.kept.pop_front();
        }
        self.kept.push_back((chunk.to_vec(), values.clone()));
        Ok(values)
    }

    fn load(&self, chunk: &[u64]) -> Result<Option<Vec<u8>>> {
        let path = self.folder.join(self.metadata.keys.name(chunk));
        let wrong = |what: String| Error::Chunk {
            path: path.clone(),
            chunk: format!("{chunk:?}"),
            what,
        };
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::system(&path, "read")(error)),
        };
        let expected = self.metadata.chunk_bytes();
        let index = self.metadata.shards.as_ref();
        let index = index.map_or(0, |of| of.index_bytes(&self.metadata.chunk));
        let limit = most(expected).saturating_add(index) as u64;
        let length = file.metadata().map_or(0, |of| of.len().min(limit));
        let mut bytes = Vec::with_capacity(length as usize + 1);
        let read = file.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(Error::system(&path, "read"))?;
        if bytes.len() as u64 > limit {
            return Err(wrong(format!(
                "is longer than the {expected} bytes of its values need"
            )));
        }
        let mut values = match &self.metadata.shards {
            None => unpack(bytes, &self.metadata.codecs, expected),
            Some(shards) => {
                // Cells that were not written, in the order of bytes of the others.
                let mut fill = self.fill.clone();
                if self.metadata.big_endian {
                    fill.reverse();
                }
                let plain = unpack_some(bytes, &self.metadata.codecs, limit as usize);
                plain.and_then(|bytes| shards.values(&bytes, &self.metadata.chunk, &fill))
            }
        }
        .map_err(wrong)?;
        let width = self.metadata.data_type.width();
        if self.metadata.big_endian {
            swap(width, &mut values);
        }
        if self.metadata.data_type == DataType::Bool {
            values.iter_mut().for_each(|of| *of = u8::from(*of != 0));
        }
        let Metadata { chunk, order, .. } = &self.metadata;
        Ok(Some(turned(values, chunk, order, width)))
    }

    /// The chunks of a box of chunks that were written: the shorter of the two lists is walked.
    fn stored_within(&self, chunks: &Region) -> Vec<Vec<u64>> {
        let cell = |at: &[u64]| Region::new(at.iter().map(|&at| (at, at.saturating_add(1))));
        let product = chunks
            .shape()
            .iter()
            .try_fold(1u64, |all, &of| all.checked_mul(of));
        if product.is_none_or(|count| count > self.stored.len() as u64) {
            let within = self.stored.iter().filter(|at| chunks.contains(&cell(at)));
            return within.cloned().collect();
        }
        let one = vec![1; chunks.rank()];
        let counts: Vec<u64> = chunks.shape();
        let all = boxes(&counts, &one).map(|of| {
            let numbers = of.ranges().iter().zip(chunks.ranges());
            numbers.map(|(at, range)| at.0 + range.0).collect()
        });
        all.filter(|at| self.stored.contains(at)).collect()
    }
}

impl Source for ZarrSource {
    fn header(&self) -> &Header {
        &self.header
    }

    fn stored(&self, _field: usize) -> Result<Option<Vec<Region>>> {
        let found = self.stored.iter().map(|chunk| self.region(chunk)).collect();
        Ok(Some(found))
    }

    fn read(&mut self, _field: usize, region: &Region, into: &mut [u8]) -> Result<()> {
        let width = self.metadata.data_type.width();
        if self.fill.iter().all(|&byte| byte == 0) {
            into.fill(0);
        } else {
            into.chunks_exact_mut(width)
                .for_each(|cell| cell.copy_from_slice(&self.fill));
        }
        if region.is_empty() {
            return Ok(());
        }
        let ranges = region.ranges().iter().zip(&self.metadata.chunk);
        let chunks = Region::new(ranges.map(|((start, end), by)| (start / by, (end - 1) / by + 1)));
        let whole = Region::of_shape(&self.metadata.shape);
        for at in self.stored_within(&chunks) {
            let of_chunk = self.region(&at);
            // What lies in the region as a whole is not asked for again.
            let values = if region.contains(&of_chunk.intersection(&whole)) {
                self.load(&at)?.map(Arc::new)
            } else {
                self.chunk(&at)?
            };
            if let Some(values) = values {
                copy_common(width, (&of_chunk, &values), (region, into));
            }
        }
        Ok(())
    }
}

/// The chunks of an array whose files are there.
fn stored(folder: &Path, metadata: &Metadata) -> Result<BTreeSet<Vec<u64>>> {
    let mut found = BTreeSet::new();
    walk(metadata, folder, "", 0, &mut found)?;
    Ok(found)
}

/// Adds the chunks whose files lie in a folder, or below; `name` is the way there from the array's.
fn walk(
    metadata: &Metadata,
    folder: &Path,
    name: &str,
    depth: usize,
    found: &mut BTreeSet<Vec<u64>>,
) -> Result<()> {
    let rank = metadata.shape.len();
    for entry in fs::read_dir(folder).map_err(Error::system(folder, "read"))? {
        let entry = entry.map_err(Error::system(folder, "read"))?;
        let file = entry.file_name();
        let Some(file) = file.to_str() else { continue };
        let name = match name {
            "" => file.to_owned(),
            name => format!("{name}/{file}"),
        };
        if let Some(chunk) = metadata.keys.parse(&name, rank) {
            let mut lengths = metadata.shape.iter().zip(&metadata.chunk).zip(&chunk);
            if lengths.all(|((length, by), &at)| at < length.div_ceil(*by)) {
                found.insert(chunk);
            }
        } else if depth < rank && may_hold(metadata, file) && is_folder(&entry) {
            walk(metadata, &entry.path(), &name, depth + 1, found)?;
        }
    }
    Ok(())
}

/// Whether a folder of that name may have chunks in it.
fn may_hold(metadata: &Metadata, name: &str) -> bool {
    let number = name.bytes().all(|byte| byte.is_ascii_digit());
    metadata.keys.separator == '/' && (number || metadata.keys.prefix == Some(name))
}

/// Whether it is a folder itself: links are not followed, as they may lead back.
fn is_folder(entry: &fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|of| of.is_dir())
}

/// What says how the values of an array are coded. They stay so where the array is read alone, and this is kept with them.
const CODES: [&str; 4] = ["scale_factor", "add_offset", "missing_value", "_Unsigned"];

/// The header of an array of which this is said.
fn described_by(mut header: Header, attributes: &[(String, MetadataValue)]) -> Header {
    let mut entries = cf::kept(attributes, ("the array", false), &mut header.notes);
    let codes = attributes
        .iter()
        .filter(|(of, _)| CODES.contains(&of.as_str()));
    let codes: Vec<_> = codes.cloned().collect();
    if let [field] = &mut header.fields[..] {
        field.coded = !codes.is_empty() || attributes.iter().any(|(of, _)| of == "_FillValue");
        entries.extend(codes);
        field.metadata = entries;
    }
    header
}

/// The metadata of an array in a folder, of either version, and its attributes.
fn metadata(folder: &Path) -> Result<(Metadata, Value)> {
    match node(folder)? {
        Some(Node::Array(array)) => match array.metadata {
            Ok(metadata) => Ok((metadata, array.attributes)),
            Err(what) => Err(Error::unsupported(&array.path, what)),
        },
        _ => Err(Error::unsupported(folder, "has no array")),
    }
}

/// What a folder is.
pub(super) enum Node {
    Array(Box<Described>),
    /// A group, and its attributes.
    Group(Value),
}

/// What is said of an array.
pub(super) struct Described {
    /// The file that says it.
    pub path: PathBuf,
    pub shape: Vec<u64>,
    /// The names of its dimensions.
    pub names: Vec<Option<String>>,
    /// All that is needed to read it; or why it is not read, in words.
    pub metadata: std::result::Result<Metadata, String>,
    pub attributes: Value,
    /// Whether its fill value stands for values that are missing: so xarray has it in version 2.
    pub fill_is_missing: bool,
}

/// What a folder is by its metadata, of either version; `None` if it has none.
///
/// # Errors
/// [`Error::Malformed`], [`Error::System`].
pub(super) fn node(folder: &Path) -> Result<Option<Node>> {
    let path = folder.join("zarr.json");
    if path.is_file() {
        let array = json(&path)?;
        if array.get("node_type").and_then(Value::as_str) == Some("group") {
            let attributes = array.get("attributes").cloned();
            return Ok(Some(Node::Group(attributes.unwrap_or(Value::Null))));
        }
        let attributes = array.get("attributes").cloned().unwrap_or(Value::Null);
        let given = array.get("dimension_names").filter(|of| !of.is_null());
        let given = given.or(attributes.get("_ARRAY_DIMENSIONS")).cloned();
        let metadata = v3::parse(&array);
        let found = described(path, &array, (given, attributes), metadata);
        return Ok(Some(Node::Array(Box::new(found))));
    }
    let path = folder.join(".zarray");
    let is_group = !path.is_file() && folder.join(".zgroup").is_file();
    if !path.is_file() && !is_group {
        return Ok(None);
    }
    let attributes = folder.join(".zattrs");
    let attributes = if attributes.is_file() {
        json(&attributes)?
    } else {
        Value::Null
    };
    if is_group {
        return Ok(Some(Node::Group(attributes)));
    }
    let array = json(&path)?;
    let given = attributes.get("_ARRAY_DIMENSIONS").cloned();
    let fill_is_missing = given.is_some();
    let metadata = v2::parse(&array, &attributes);
    let found = described(path, &array, (given, attributes), metadata);
    Ok(Some(Node::Array(Box::new(Described {
        fill_is_missing,
        ..found
    }))))
}

fn described(
    path: PathBuf,
    array: &Value,
    (given, attributes): (Option<Value>, Value),
    metadata: std::result::Result<Metadata, String>,
) -> Described {
    let shape = array.get("shape").map(|of| lengths(of, "shape"));
    let shape = shape.and_then(std::result::Result::ok).unwrap_or_default();
    Described {
        names: names(given.as_ref(), shape.len()),
        metadata: metadata.and_then(|of| of.check().map(|()| of)),
        path,
        shape,
        attributes,
        fill_is_missing: false,
    }
}

fn json(path: &Path) -> Result<Value> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(Error::system(path, "read"))?;
    let read = file.take(MOST_METADATA + 1).read_to_end(&mut bytes);
    read.map_err(Error::system(path, "read"))?;
    if bytes.len() as u64 > MOST_METADATA {
        return Err(Error::malformed(
            path,
            format!("has more than the {MOST_METADATA} bytes that are read"),
        ));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::malformed(path, format!("is no JSON ({error})")))
}
