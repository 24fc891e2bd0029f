//! Arrays from files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{
    Attribute, Block, Buffer, CHUNK_BYTES, Coordinates, DataType, Dimension, Grid, Metadata,
    Region, Schema, Time, Writer, chunk_lengths,
};
use store::Store;

use crate::cf;
use crate::error::{Error, Result};
use crate::job::{Job, Reserved};
use crate::options::{Format, ImportOptions};
use crate::source::{Axis, Field, Header, Source};
use crate::values::{COPIES, bytes_mut};
use crate::{classic, hdf5, npy, variables, zarr};

/// Bytes of a file's chunk that is kept as a chunk of the array.
const CHUNKS_KEPT: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 20;

/// Bytes of a chunk's region and place in the lists of those that were written.
const LISTED: u64 = 256;

/// The most coordinates that are looked at one by one.
const MOST_MOMENTS: u64 = 1 << 20;

/// The most bytes of a file's chunks that are kept.
const MOST_KEPT: u64 = 256 << 20;

/// What an import did.
#[derive(Debug, Clone)]
pub struct Imported {
    /// What the file was.
    pub format: Format,
    /// The array's dimensions and attributes.
    pub schema: Schema,
    /// What of the file is not in the array, and why.
    pub notes: Vec<String>,
    /// Chunks of the array that were written.
    pub chunks: u64,
    /// Bytes of the values of all cells, in memory.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
}

/// Makes the array `name` of the array in a file or folder, in one transaction. In memory is a chunk at a time (of a
/// Zarr or HDF5 whose chunks are not those of the array: some).
///
/// # Errors
/// [`Error::Unsupported`], [`Error::Malformed`], [`Error::Chunk`] about the file; [`Error::Array`] if there is an array of
/// that name, or no array can be of this shape; [`Error::Options`], [`Error::Memory`], [`Error::Interrupted`]. The store
/// is then as it was.
pub async fn import(
    store: &Arc<Store>,
    name: &str,
    path: &Path,
    options: &ImportOptions,
    mut job: Job<'_>,
) -> Result<Imported> {
    let begun = Instant::now();
    let format = Format::of_content(path)?;
    let member = options.member.as_deref();
    if member.is_some() && !format.has_members() {
        return Err(Error::Options {
            what: format!(
                "{}: only NPZ, HDF5, NetCDF and groups of Zarr have members, and this is {format}",
                path.display()
            ),
        });
    }
    // Chunks that are decoded again and again because they are not those of the array are kept, within this.
    let kept = (job.free() / 8).min(MOST_KEPT);
    let mut source = match format {
        Format::Npy => npy::open(path)?,
        Format::Npz => npy::open_member(path, member, &job)?,
        Format::Zarr2 | Format::Zarr3 => zarr::open(path, member, (&job, kept))?,
        Format::Hdf5 | Format::NetCdf4 => variables::open(hdf5::open(path)?, member, (&job, kept))?,
        Format::NetCdf3 => variables::open(classic::open(path)?, member, (&job, kept))?,
    };
    let schema = schema(source.header(), options)?;
    let (metadata, unused) = metadata(source.header(), &schema, options);
    let schema = schema.with_metadata(metadata);
    let mut writer = Writer::begin(store)?.threads(job.most_threads());
    if options.replace {
        match writer.delete(name) {
            Ok(()) | Err(array::Error::NoArray { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    writer.create(name, &schema)?;
    let chunks = copy(&mut *source, &mut writer, name, &schema, &mut job).await?;
    writer.commit()?;
    Ok(Imported {
        format,
        chunks,
        bytes: bytes(&schema),
        notes: source
            .header()
            .notes
            .iter()
            .cloned()
            .chain(unused)
            .collect(),
        schema,
        time: begun.elapsed(),
    })
}

fn bytes(schema: &Schema) -> u64 {
    let widths = schema
        .attributes()
        .iter()
        .map(|of| of.data_type().width() as u64);
    schema.cells().saturating_mul(widths.sum())
}

/// Copies all that was written, attribute by attribute and chunk by chunk of the array; how many chunks were.
async fn copy(
    source: &mut dyn Source,
    writer: &mut Writer,
    name: &str,
    schema: &Schema,
    job: &mut Job<'_>,
) -> Result<u64> {
    let fields = source.header().fields.clone();
    let grid = Grid::of(schema);
    let cells = schema.dimensions().iter().map(Dimension::chunk_length);
    let widest = fields.iter().map(|of| of.value_type().width() as u64).max();
    let chunk = cells.product::<u64>().saturating_mul(widest.unwrap_or(1));
    let _reserved = job.reserve("a chunk of the array", chunk.saturating_mul(COPIES))?;
    let (mut done, mut chunks) = (0, 0);
    for (number, field) in fields.iter().enumerate() {
        let (found, _listed) = written(source, number, (schema, &grid), (done, job))?;
        for at in found {
            job.at(done, bytes(schema))?;
            let region = grid.region(&at);
            let mut values = Buffer::zeros(field.data_type, region.cells("a chunk")?);
            source.read(number, &region, bytes_mut(&mut values))?;
            done += (values.len() * field.value_type().width()) as u64;
            let mut columns = vec![None; fields.len()];
            columns[number] = Some(field.column(values));
            writer.write(name, &Block::new(region, columns)?).await?;
            chunks += 1;
        }
    }
    // A flag that was set while the last chunk was written counts, too.
    job.at(bytes(schema), bytes(schema))?;
    Ok(chunks)
}

/// Chunks of an array, by their places in its grid.
type Found = Box<dyn Iterator<Item = Vec<u64>>>;

/// The chunks of the array that have something that was written of a field.
fn written(
    source: &dyn Source,
    field: usize,
    (schema, grid): (&Schema, &Grid),
    (done, job): (u64, &mut Job<'_>),
) -> Result<(Found, Option<Reserved>)> {
    let whole = Region::of_shape(&schema.shape());
    let Some(regions) = source.stored(field)? else {
        return Ok((Box::new(grid.all()), None));
    };
    let bytes_of_list = regions.len() as u64 * LISTED;
    let reserved = job.reserve("the list of the file's chunks", bytes_of_list)?;
    let mut found = BTreeSet::new();
    for region in regions {
        job.at(done, bytes(schema))?;
        found.extend(grid.overlapping(&region.intersection(&whole)));
    }
    Ok((Box::new(found.into_iter()), Some(reserved)))
}

/// The schema of the array that is made of what a header says.
fn schema(header: &Header, options: &ImportOptions) -> Result<Schema> {
    let rank = header.axes.len();
    let wrong = |what: String| Error::Options { what };
    let given = options.dimensions.as_ref();
    if let Some(names) = given.filter(|names| names.len() != rank) {
        let count = names.len();
        return Err(wrong(format!(
            "the file has {rank} dimensions, but {count} names are given for them"
        )));
    }
    if let Some(lengths) = options.chunk.as_ref().filter(|of| of.len() != rank) {
        let count = lengths.len();
        return Err(wrong(format!(
            "the file has {rank} dimensions, but {count} lengths of a chunk are given"
        )));
    }
    let chunk = chunk(header, options)?;
    let distinct = distinct(&header.axes);
    let name = |at: usize| match (given, &header.axes[at].name) {
        (Some(names), _) => names[at].clone(),
        (None, Some(name)) if distinct => name.clone(),
        _ => format!("dim_{at}"),
    };
    let dimensions = header.axes.iter().enumerate();
    let dimensions = dimensions.map(|(at, axis)| dimension(axis, &name(at)).chunk(chunk[at]));
    Ok(Schema::new(
        dimensions.collect(),
        attributes(&header.fields, options)?,
    )?)
}

/// What is said of an array with this schema, and which values are times; and in words which could be none.
fn metadata(header: &Header, schema: &Schema, options: &ImportOptions) -> (Metadata, Vec<String>) {
    let (mut metadata, mut notes) = (Metadata::default(), Vec::new());
    metadata.describe(None, header.metadata.clone());
    for (axis, dimension) in header.axes.iter().zip(schema.dimensions()) {
        let name = dimension.name();
        metadata.describe(Some(name), axis.metadata.clone());
        match cf::time(&axis.metadata, options.times) {
            Some(time) if are_moments(dimension, time) => metadata.set_time(name, time),
            Some(_) => notes.push(format!(
                "'{name}' has coordinates that are no times of SQL, or not to the microsecond: they stay numbers"
            )),
            None => {}
        }
    }
    for (field, attribute) in header.fields.iter().zip(schema.attributes()) {
        let name = attribute.name();
        metadata.describe(Some(name), field.metadata.clone());
        let time = cf::time(&field.metadata, options.times);
        let are_numbers = attribute.data_type() != DataType::Bool && !field.coded;
        if let Some(time) = time.filter(|_| are_numbers) {
            metadata.set_time(name, time);
        }
    }
    (metadata, notes)
}

/// Whether the coordinates of a dimension are times, each another one.
fn are_moments(dimension: &Dimension, time: Time) -> bool {
    let moment = |at: u64| time.of_decimal(dimension.coordinate(at)?);
    let length = dimension.length();
    if length > MOST_MOMENTS {
        return false;
    }
    let moments: Option<Vec<i64>> = (0..length).map(moment).collect();
    moments.is_some_and(|of| {
        of.windows(2).all(|two| two[0] < two[1]) || of.windows(2).all(|two| two[0] > two[1])
    })
}

/// A dimension, with the coordinates that it has in the file. It grows if it does there and its coordinates go on by
/// themselves.
fn dimension(axis: &Axis, name: &str) -> Dimension {
    let (dimension, regular) = match &axis.coordinates {
        None => (Dimension::integer(name, 0, axis.length), true),
        Some(Coordinates::Integer { start }) => {
            (Dimension::integer(name, *start, axis.length), true)
        }
        Some(Coordinates::Regular { start, step }) => {
            (Dimension::regular(name, *start, *step, axis.length), true)
        }
        Some(Coordinates::Listed(list)) => (Dimension::listed(name, list.clone()), false),
    };
    if axis.unlimited && regular {
        dimension.growing()
    } else {
        dimension
    }
}

/// The attributes that fields become.
///
/// # Errors
/// If a name is given and there are several.
fn attributes(fields: &[Field], options: &ImportOptions) -> Result<Vec<Attribute>> {
    let given = options.attribute.as_deref();
    if given.is_some() && fields.len() > 1 {
        let count = fields.len();
        return Err(Error::Options {
            what: format!(
                "a name is given for one attribute, and the file has {count}; choose one with --member"
            ),
        });
    }
    let attribute = |field: &Field| {
        let name = given.or(field.name.as_deref()).unwrap_or("value");
        field.attribute(name, options.compression)
    };
    Ok(fields.iter().map(attribute).collect())
}

fn distinct(axes: &[Axis]) -> bool {
    let given = axes.iter().filter_map(|of| of.name.as_deref());
    let given: BTreeSet<&str> = given.filter(|name| !name.is_empty()).collect();
    given.len() == axes.len()
}

/// The cells of a chunk of the array along each dimension.
fn chunk(header: &Header, options: &ImportOptions) -> Result<Vec<u64>> {
    if let Some(given) = &options.chunk {
        if given.contains(&0) {
            return Err(Error::Options {
                what: "a chunk has at least one cell along each dimension".to_owned(),
            });
        }
        return Ok(given.clone());
    }
    let width = header.fields.iter().map(|of| of.value_type().width()).max();
    let (width, file_shape) = (width.unwrap_or(1), header.shape());
    if let Some(of_file) = &header.chunk {
        let lengths = of_file.iter().zip(&file_shape);
        let lengths: Vec<u64> = lengths
            .map(|(&chunk, &length)| chunk.min(length.max(1)))
            .collect();
        let bytes = lengths
            .iter()
            .try_fold(width as u64, |all, &of| all.checked_mul(of));
        let one = lengths
            .iter()
            .zip(&file_shape)
            .all(|(chunk, length)| chunk >= length);
        if bytes.is_some_and(|bytes| CHUNKS_KEPT.contains(&bytes) || (one && bytes <= CHUNK_BYTES))
        {
            return Ok(lengths);
        }
    }
    let shape: Vec<_> = file_shape
        .iter()
        .map(|&length| (length, 0, false))
        .collect();
    Ok(chunk_lengths(&shape, width, CHUNK_BYTES))
}
