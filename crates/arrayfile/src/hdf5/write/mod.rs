//! Writing HDF5 files: a data set for each attribute, in chunks, and one for each dimension, which is tied to them as its
//! scale. NetCDF-4 is such a file.

mod message;
mod tree;

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use array::{Array, DataType, Dimension, MetadataValue, Region, Scalar};
use io::{Device, File};

use crate::aside::Aside;
use crate::axis;
use crate::cf;
use crate::copy::{boxes, copy_common};
use crate::error::{Error, Result};
use crate::hdf5::object::kind;
use crate::hdf5::packing::shuffle;
use crate::hdf5::write::message::Message;
use crate::hdf5::write::tree::{ChunkTree, Growing, Key};
use crate::options::Packing;
use crate::target::Target;

/// The most attributes of an array, so that the list of a scale's users fits into its header.
const MOST_ATTRIBUTES: usize = 2000;

/// What the libraries have as the name of a dimension that counts from 0; its length follows.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable.";

/// What an HDF5 file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// For programs of HDF5: a bool is one as h5py has it.
    Hdf5,
    /// For those of NetCDF, too, which has no bool: it is a byte, and an attribute says so.
    NetCdf,
}

/// An HDF5 file that is being written.
#[derive(Debug)]
pub(crate) struct HdfTarget {
    to: Growing,
    aside: Aside,
    /// Those of the dimensions, then those of the attributes.
    sets: Vec<Set>,
    rank: usize,
    /// What is said of the file.
    attributes: Vec<Message>,
}

/// A data set that is being written.
#[derive(Debug)]
struct Set {
    name: String,
    width: usize,
    /// The type of its values, as a message.
    of: Vec<u8>,
    shape: Vec<u64>,
    /// How long each dimension may become; the most that there is if it has no limit.
    most: Vec<u64>,
    chunk: Vec<u64>,
    /// The value of a cell that is not written.
    fill: Vec<u8>,
    level: Option<u32>,
    /// What is said of its values.
    attributes: Vec<Message>,
    tree: ChunkTree,
}

impl HdfTarget {
    /// Begins the file for attributes of an array, each with what stands for cells without a value, and writes the
    /// coordinates.
    ///
    /// # Errors
    /// [`Error::Export`] for a name that the file cannot have, too many attributes, a chunk of 4 GiB, or a coordinate
    /// that is no double; [`Error::Options`] for a packing that the libraries do not read; [`Error::Exists`],
    /// [`Error::Io`].
    pub fn create(
        path: &Path,
        array: &Array,
        attributes: &[(usize, Option<Scalar>)],
        flavour: Flavour,
        packing: Packing,
    ) -> Result<HdfTarget> {
        let level = match packing {
            Packing::Usual | Packing::None => None,
            Packing::Gzip(level) => Some(level.min(9)),
            Packing::Zstd(_) => {
                return Err(Error::Options {
                    what: "the libraries of HDF5 and NetCDF read gzip, but zstd only with a plug-in; take --pack gzip"
                        .to_owned(),
                });
            }
        };
        let schema = array.schema();
        let refused = |what: String| Error::Export {
            array: array.name().to_owned(),
            what,
        };
        let mut sets = Vec::new();
        let metadata = schema.metadata();
        let said = |of: &Dimension| metadata.of(Some(of.name()));
        for (number, dimension) in schema.dimensions().iter().enumerate() {
            let of = axis::value_type(dimension, said(dimension), true).map_err(refused)?;
            let mut set = Set::of_dimension(dimension, number, of, level);
            set.attributes.extend(entries(said(dimension), of));
            sets.push(set);
        }
        for &(number, missing) in attributes {
            let mut set = Set::of_attribute(array, number, missing, flavour, level);
            let of = &schema.attributes()[number];
            let of = (metadata.of(Some(of.name())), Some(of.data_type()));
            set.attributes.extend(entries(of.0, of.1));
            sets.push(set);
        }
        check(&sets, schema.dimensions().len()).map_err(refused)?;
        let mut aside = Aside::new(path)?;
        let file = File::create(aside.path())?;
        aside.made();
        let end = message::SUPERBLOCK_BYTES as u64;
        let mut target = HdfTarget {
            to: Growing { file, end },
            aside,
            sets,
            rank: schema.dimensions().len(),
            attributes: entries(metadata.of(None), None),
        };
        for (at, dimension) in schema.dimensions().iter().enumerate() {
            if let Some(of) = axis::value_type(dimension, said(dimension), true).map_err(refused)? {
                let set = &mut target.sets[at];
                for region in boxes(&set.shape.clone(), &set.chunk.clone()) {
                    let (start, end) = region.ranges()[0];
                    let values = axis::values(dimension, of, start..end);
                    set.write(&region, &values, &mut target.to)?;
                }
            }
        }
        Ok(target)
    }
}

/// What is said of the file, or of a data set whose values have a type, as messages; without what is too long for one.
fn entries(all: &[(String, MetadataValue)], of: Option<DataType>) -> Vec<Message> {
    let one = |(name, value): &(String, MetadataValue)| match value {
        MetadataValue::Numbers(numbers) => {
            let (of, bytes) = cf::numbers((name, numbers), of, true)?;
            Some(message::some(name, of, &bytes))
        }
        MetadataValue::Texts(texts) => match &texts[..] {
            [one] => Some(message::text(name, one)),
            several => Some(message::texts(name, several)),
        },
    };
    let messages = all.iter().filter_map(one);
    messages
        .filter(|(_, bytes)| bytes.len() <= usize::from(u16::MAX))
        .collect()
}

/// Whether all of it can be in a file.
///
/// # Errors
/// What cannot, in words.
fn check(sets: &[Set], rank: usize) -> std::result::Result<(), String> {
    if sets.len() - rank > MOST_ATTRIBUTES {
        return Err(format!(
            "has more than {MOST_ATTRIBUTES} attributes; choose one with --attribute"
        ));
    }
    for set in sets {
        let name = &set.name;
        // No limit of HDF5, but the longest that NetCDF has.
        if name.contains('/') || name.ends_with(' ') || name == "." || name.len() > 255 {
            return Err(format!("HDF5 and NetCDF have no name '{name}'"));
        }
        let bytes = set.chunk.iter().product::<u64>() as u128 * set.width as u128;
        if bytes > u128::from(u32::MAX) {
            return Err(
                "has chunks of more than 4 GiB, which HDF5 has not; export it as NPY".to_owned(),
            );
        }
    }
    Ok(())
}

/// How long a dimension may become: one that grows has no limit, and one without cells could not be otherwise.
fn most(dimension: &Dimension) -> u64 {
    if dimension.is_growing() || dimension.length() == 0 {
        u64::MAX
    } else {
        dimension.length()
    }
}

impl Set {
    /// The scale of a dimension, with coordinates of this type or none.
    fn of_dimension(
        dimension: &Dimension,
        number: usize,
        of: Option<DataType>,
        level: Option<u32>,
    ) -> Set {
        let (length, most) = (dimension.length(), most(dimension));
        let chunk = vec![length.clamp(1, axis::AT_A_TIME)];
        let name = match of {
            Some(_) => dimension.name().to_owned(),
            None => format!("{NO_VARIABLE}{length:10}"),
        };
        let data_type = of.unwrap_or(DataType::F32);
        let width = data_type.width();
        Set {
            name: dimension.name().to_owned(),
            width,
            of: message::number_type(data_type),
            shape: vec![length],
            most: vec![most],
            fill: vec![0; width],
            level: level.filter(|_| of.is_some()),
            attributes: vec![
                message::text("CLASS", "DIMENSION_SCALE"),
                message::text("NAME", &name),
                message::number("_Netcdf4Dimid", number as i32),
            ],
            tree: ChunkTree::new(&chunk, width),
            chunk,
        }
    }

    fn of_attribute(
        array: &Array,
        number: usize,
        missing: Option<Scalar>,
        flavour: Flavour,
        level: Option<u32>,
    ) -> Set {
        let schema = array.schema();
        let attribute = &schema.attributes()[number];
        let data_type = attribute.data_type();
        let stored = match data_type {
            // With nulls it has three values.
            DataType::Bool if missing.is_some() || flavour == Flavour::NetCdf => DataType::I8,
            of => of,
        };
        let of = match stored {
            DataType::Bool => message::bool_type(),
            of => message::number_type(of),
        };
        let fill = match missing {
            Some(missing) => missing,
            None if attribute.fill_value().is_null() => Scalar::Int(0),
            None => attribute.fill_value(),
        };
        let fill = fill.cast(stored).unwrap_or(Scalar::Int(0));
        let fill = array::Buffer::filled(stored, 1, fill).bytes().to_vec();
        let mut attributes = Vec::new();
        if missing.is_some() {
            attributes.push(message::some("_FillValue", stored, &fill));
        } else if data_type != stored {
            attributes.push(message::text("dtype", "bool"));
        }
        let most: Vec<u64> = schema.dimensions().iter().map(most).collect();
        let chunks = schema.dimensions().iter().map(Dimension::chunk_length);
        let chunk: Vec<u64> = chunks.zip(&most).map(|(of, &most)| of.min(most)).collect();
        let width = stored.width();
        Set {
            name: attribute.name().to_owned(),
            width,
            of,
            shape: schema.shape(),
            most,
            fill,
            level,
            attributes,
            tree: ChunkTree::new(&chunk, width),
            chunk,
        }
    }

    /// Writes a chunk, but for one that has only cells that are not written.
    fn write(&mut self, region: &Region, values: &[u8], to: &mut Growing) -> Result<()> {
        let width = self.width;
        if values.chunks_exact(width).all(|value| value == self.fill) {
            return Ok(());
        }
        let first = region.ranges().iter().map(|of| of.0);
        let first: Vec<u64> = first.collect();
        let ends = first.iter().zip(&self.chunk);
        let whole = Region::new(ends.map(|(&at, by)| (at, at + by)));
        // A chunk at the edge has all its cells, too.
        let bytes: Cow<'_, [u8]> = if whole == *region {
            values.into()
        } else {
            let mut all = self.fill.repeat(whole.cells("a chunk")?);
            copy_common(width, (region, values), (&whole, &mut all));
            all.into()
        };
        let bytes = match self.level {
            None => bytes,
            Some(level) => deflate(&shuffle(&bytes, width), level)
                .map_err(Error::system(to.file.path(), "compress a chunk of"))?
                .into(),
        };
        let length = u32::try_from(bytes.len()).map_err(|_| Error::Options {
            what: "a chunk that is packed has more than 4 GiB; leave --pack out".to_owned(),
        })?;
        let at = to.append(&bytes)?;
        let key = Key {
            bytes: length,
            first,
        };
        self.tree.push(key, at, to)
    }

    /// The messages of its header, whose index lies at `index`; `links` tie it to scales, or to what it is the scale of.
    fn messages(&self, index: u64, links: Message) -> Vec<Message> {
        let mut messages = vec![
            message::space(&self.shape, &self.most),
            (kind::DATATYPE, self.of.clone()),
            message::fill(&self.fill),
            message::layout(&self.chunk, self.width, index),
        ];
        messages.extend(self.level.map(|level| message::filters(self.width, level)));
        messages.extend(self.attributes.iter().cloned());
        messages.push(links);
        messages
    }
}

fn deflate(bytes: &[u8], level: u32) -> std::io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    flate2::read::ZlibEncoder::new(bytes, flate2::Compression::new(level))
        .read_to_end(&mut packed)?;
    Ok(packed)
}

impl Target for HdfTarget {
    fn write(&mut self, field: usize, region: &Region, values: &[u8]) -> Result<()> {
        self.sets[self.rank + field].write(region, values, &mut self.to)
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        let mut indexes = Vec::new();
        for set in &mut self.sets {
            let tree = std::mem::replace(&mut set.tree, ChunkTree::new(&[], 1));
            let index = tree.finish(&mut self.to)?;
            indexes.push(index.unwrap_or(message::NOWHERE));
        }
        self.metadata(&indexes)?;
        self.to.file.sync()?;
        self.aside.publish()?;
        Ok(self.to.end)
    }
}

impl HdfTarget {
    /// Writes what refers to each other, behind the chunks: the heap, the headers and the group; and the superblock.
    fn metadata(&mut self, indexes: &[u64]) -> Result<()> {
        let (rank, count) = (self.rank, self.sets.len());
        let headers = |heap: u64, addresses: &[u64]| -> Vec<Vec<u8>> {
            let one = |at: usize| {
                let links = if at < rank {
                    message::users(&addresses[rank..], at)
                } else {
                    message::scales(rank, heap, 1 + (at - rank) * rank)
                };
                message::header(&self.sets[at].messages(indexes[at], links))
            };
            (0..count).map(one).collect()
        };
        let heap = self.to.end;
        let heap_length = message::heap(&vec![0; rank * (count - rank)]).len();
        let mut next = heap + heap_length as u64;
        let mut addresses = Vec::new();
        // How long the headers are does not depend on where they lie.
        for header in headers(0, &vec![0; count]) {
            addresses.push(next);
            next += header.len() as u64;
        }
        let entries = addresses[..rank].repeat(count - rank);
        let names = self.sets.iter().map(|of| of.name.as_str());
        let members: Vec<_> = names.zip(addresses.iter().copied()).collect();
        let mut group = message::group(&members);
        group.extend(self.attributes.iter().cloned());
        let root = message::header(&group);
        let all = headers(heap, &addresses).concat();
        self.to
            .append(&[message::heap(&entries), all, root].concat())?;
        let superblock = message::superblock(self.to.end, next);
        Ok(self.to.file.write_at(0, &superblock)?)
    }
}
