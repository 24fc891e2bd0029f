//! Arrays from files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{
    Attribute, Block, Buffer, CHUNK_BYTES, Column, Dimension, Grid, Region, Schema, Writer,
    chunk_lengths,
};
use store::Store;

use crate::error::{Error, Result};
use crate::job::Job;
use crate::options::{Format, ImportOptions};
use crate::source::{Header, Source};
use crate::values::{COPIES, bytes_mut};
use crate::{npy, zarr};

/// Bytes of a file's chunk that is kept as a chunk of the array.
const CHUNKS_KEPT: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 20;

/// The most bytes of a file's chunks that are kept.
const MOST_KEPT: u64 = 256 << 20;

/// What an import did.
#[derive(Debug, Clone)]
pub struct Imported {
    /// What the file was.
    pub format: Format,
    /// The array's dimensions and attribute.
    pub schema: Schema,
    /// Chunks of the array that were written.
    pub chunks: u64,
    /// Bytes of the values of all cells, in memory.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
}

/// Makes the array `name` of the array in a file or folder, in one transaction. In memory is a chunk at a time (with a
/// Zarr whose chunks are not those of the array: some).
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
    if options.member.is_some() && format != Format::Npz {
        return Err(Error::Options {
            what: format!(
                "{}: only an NPZ has members, and this is {format}",
                path.display()
            ),
        });
    }
    // Chunks that are decoded again and again because they are not those of the array are kept, within this.
    let kept = (job.free() / 8).min(MOST_KEPT);
    let mut source = match format {
        Format::Npy => npy::open(path)?,
        Format::Npz => npy::open_member(path, options.member.as_deref())?,
        Format::Zarr2 | Format::Zarr3 => zarr::open(path, &job, kept)?,
    };
    let schema = schema(source.header(), options)?;
    let mut writer = Writer::begin(store)?;
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
        schema,
        time: begun.elapsed(),
    })
}

fn bytes(schema: &Schema) -> u64 {
    schema.cells() * schema.attributes()[0].data_type().width() as u64
}

/// Copies all that was written, chunk by chunk of the array; how many were.
async fn copy(
    source: &mut dyn Source,
    writer: &mut Writer,
    name: &str,
    schema: &Schema,
    job: &mut Job<'_>,
) -> Result<u64> {
    let data_type = schema.attributes()[0].data_type();
    let grid = Grid::of(schema);
    let chunk: u64 = schema
        .dimensions()
        .iter()
        .map(Dimension::chunk_length)
        .product();
    let chunk = chunk * data_type.width() as u64;
    let _reserved = job.reserve("a chunk of the array", chunk.saturating_mul(COPIES))?;
    let whole = Region::of_shape(&schema.shape());
    let found: Box<dyn Iterator<Item = Vec<u64>>> = match source.stored()? {
        None => Box::new(grid.all()),
        Some(regions) => {
            let mut found = BTreeSet::new();
            for region in regions {
                job.at(0, bytes(schema))?;
                found.extend(grid.overlapping(&region.intersection(&whole)));
            }
            Box::new(found.into_iter())
        }
    };
    let (mut done, mut chunks) = (0, 0);
    for at in found {
        job.at(done, bytes(schema))?;
        let region = grid.region(&at);
        let mut values = Buffer::zeros(data_type, region.cells("a chunk")?);
        done += values.bytes().len() as u64;
        source.read(&region, bytes_mut(&mut values))?;
        let block = Block::new(region, vec![Some(Column::new(values))])?;
        writer.write(name, &block).await?;
        chunks += 1;
    }
    // A flag that was set while the last chunk was written counts, too.
    job.at(bytes(schema), bytes(schema))?;
    Ok(chunks)
}

/// The schema of the array that is made of what a header says.
fn schema(header: &Header, options: &ImportOptions) -> Result<Schema> {
    let rank = header.shape.len();
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
    let name = |at: usize| match (given, header.names.get(at)) {
        (Some(names), _) => names[at].clone(),
        (None, Some(Some(name))) if distinct(&header.names) => name.clone(),
        _ => format!("dim_{at}"),
    };
    let dimension = |at: usize| Dimension::integer(&name(at), 0, header.shape[at]).chunk(chunk[at]);
    let attribute = options.attribute.as_deref().unwrap_or("value");
    let mut attribute = Attribute::new(attribute, header.data_type).compressed(options.compression);
    if let Some(fill) = header.fill {
        attribute = attribute.fill(fill);
    }
    Ok(Schema::new(
        (0..rank).map(dimension).collect(),
        vec![attribute],
    )?)
}

fn distinct(names: &[Option<String>]) -> bool {
    let given: Vec<_> = names
        .iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .collect();
    given.iter().collect::<BTreeSet<_>>().len() == names.len()
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
    let width = header.data_type.width();
    if let Some(of_file) = &header.chunk {
        let lengths = of_file.iter().zip(&header.shape);
        let lengths: Vec<u64> = lengths
            .map(|(&chunk, &length)| chunk.min(length.max(1)))
            .collect();
        let bytes = lengths
            .iter()
            .try_fold(width as u64, |all, &of| all.checked_mul(of));
        let one = lengths
            .iter()
            .zip(&header.shape)
            .all(|(chunk, length)| chunk >= length);
        if bytes.is_some_and(|bytes| CHUNKS_KEPT.contains(&bytes) || (one && bytes <= CHUNK_BYTES))
        {
            return Ok(lengths);
        }
    }
    let shape: Vec<_> = header
        .shape
        .iter()
        .map(|&length| (length, 0, false))
        .collect();
    Ok(chunk_lengths(&shape, width, CHUNK_BYTES))
}
