//! Parquet files: each row group is a piece.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, Result, panicked};
use crate::piece::{BATCH_ROWS, Batches, Column, Piece, Pieces, cast_to, schema_of};
use crate::stream::{Source, Stream};

/// An open file that many threads read at once; a `File`'s own position would be shared by them.
#[derive(Clone, Debug)]
pub(crate) struct Positioned {
    file: Arc<File>,
    length: u64,
    /// What was read beforehand, by offset.
    fetched: Arc<[(u64, Bytes)]>,
}

impl Positioned {
    fn new(file: File) -> io::Result<Positioned> {
        let length = file.metadata()?.len();
        Ok(Positioned {
            file: Arc::new(file),
            length,
            fetched: Arc::from([]),
        })
    }

    /// The same file with these ranges of it in memory.
    fn fetch(&self, ranges: &[(u64, u64)]) -> io::Result<Positioned> {
        let read = |(start, length): &(u64, u64)| {
            let length = (*length).min(self.length.saturating_sub(*start));
            let mut bytes = vec![0; length as usize];
            self.file.read_exact_at(&mut bytes, *start)?;
            Ok((*start, Bytes::from(bytes)))
        };
        Ok(Positioned {
            file: Arc::clone(&self.file),
            length: self.length,
            fetched: ranges.iter().map(read).collect::<io::Result<_>>()?,
        })
    }

    /// The bytes from `start` on that are in memory.
    fn known(&self, start: u64) -> Option<Bytes> {
        self.fetched.iter().find_map(|(first, bytes)| {
            let skip = start.checked_sub(*first)? as usize;
            (skip < bytes.len()).then(|| bytes.slice(skip..))
        })
    }
}

/// Reads on from an offset.
pub(crate) struct From(Positioned, u64);

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match self.0.known(self.1) {
            Some(bytes) => {
                let count = bytes.len().min(into.len());
                into[..count].copy_from_slice(&bytes[..count]);
                count
            }
            None => self.0.file.read_at(into, self.1)?,
        };
        self.1 += read as u64;
        Ok(read)
    }
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Positioned {
    type T = io::BufReader<From>;

    fn get_read(&self, start: u64) -> std::result::Result<Self::T, ParquetError> {
        Ok(io::BufReader::new(From(self.clone(), start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> std::result::Result<Bytes, ParquetError> {
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > self.length)
        {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at offset {start} lie past the end"
            )));
        }
        if let Some(bytes) = self.known(start).filter(|bytes| bytes.len() >= length) {
            return Ok(bytes.slice(..length));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A Parquet file whose footer has been read.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    metadata: ArrowReaderMetadata,
    /// The contents of a pipe; files are opened when they are read.
    spooled: Option<Positioned>,
}

/// The statistics of a column in a file's footer, one entry for each row group.
#[derive(Clone, Debug)]
pub struct RowGroups {
    /// The least value, or a lower bound of it; NULL if it is unknown.
    pub mins: ArrayRef,
    /// The greatest value, or an upper bound of it; NULL if it is unknown.
    pub maxes: ArrayRef,
    /// How many values are NULL; NULL if it is unknown.
    pub nulls: UInt64Array,
    /// How many rows there are.
    pub rows: UInt64Array,
}

impl ParquetFile {
    /// Reads the footer.
    pub fn open(source: &Source, stream: Stream) -> Result<ParquetFile> {
        let failed = |error: io::Error| Error::io(source.path(), &error);
        let file = Positioned::new(source.random(Some(stream))?).map_err(failed)?;
        let metadata = guarded(source.path(), || {
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())
        })?;
        Ok(ParquetFile {
            metadata,
            spooled: source.is_once().then_some(file),
        })
    }

    /// The file's columns.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.metadata().row_groups()
    }

    /// Rows in all row groups.
    pub fn rows(&self) -> u64 {
        self.group_rows().sum()
    }

    /// Rows of each row group.
    pub fn group_rows(&self) -> impl Iterator<Item = u64> {
        self.groups()
            .iter()
            .map(|group| group.num_rows().max(0) as u64)
    }

    /// How many row groups there are.
    pub fn count(&self) -> usize {
        self.groups().len()
    }

    /// What the footer tells of a column. Of columns with parts it tells nothing, and nothing of floating-point
    /// ones: NaN counts in no least or greatest value, so that these say nothing of all values.
    pub fn statistics(&self, column: usize) -> Option<RowGroups> {
        let field = self.schema().field(column);
        if field.data_type().is_nested() || field.data_type().is_floating() {
            return None;
        }
        let converter = StatisticsConverter::try_new(
            field.name(),
            self.schema(),
            self.metadata.parquet_schema(),
        );
        let converter = converter.ok()?.with_missing_null_counts_as_zero(false);
        let groups = self.groups();
        // Old writers ordered all values as signed bytes; only numbers with a sign survived that.
        let index = converter.parquet_column_index()?;
        let old = |group: &RowGroupMetaData| {
            let statistics = group.column(index).statistics();
            statistics.is_some_and(|statistics| statistics.is_min_max_deprecated())
        };
        if groups.iter().any(old) && !field.data_type().is_signed_integer() {
            return None;
        }
        Some(RowGroups {
            mins: converter.row_group_mins(groups).ok()?,
            maxes: converter.row_group_maxes(groups).ok()?,
            nulls: converter.row_group_null_counts(groups).ok()?,
            rows: self.group_rows().map(Some).collect(),
        })
    }

    /// The row groups for which `keep` is true, numbered on from `base`, those of them whose number is `share.0`
    /// modulo `share.1`. With `ahead`, what is decoded of one is read when its piece is drawn.
    pub fn pieces(
        &self,
        source: &Arc<Source>,
        columns: &Arc<[Column]>,
        keep: Option<&[bool]>,
        (base, share): (u64, (usize, usize)),
        ahead: bool,
    ) -> Result<Pieces> {
        let file = match &self.spooled {
            Some(file) => file.clone(),
            None => Positioned::new(source.random(None)?)
                .map_err(|error| Error::io(source.path(), &error))?,
        };
        let options = ArrowReaderOptions::new().with_schema(wanted(self.schema(), columns));
        // A type that cannot be read as it is wanted is read as it is, and cast.
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(self.metadata.metadata()), options)
            .unwrap_or_else(|_| self.metadata.clone());
        let mask = ProjectionMask::roots(
            metadata.parquet_schema(),
            columns.iter().map(|column| column.source),
        );
        let opened = Arc::new(Opened {
            source: Arc::clone(source),
            metadata,
            mask,
            columns: Arc::clone(columns),
            schema: schema_of(columns),
        });
        let kept =
            |group: &usize| keep.is_none_or(|keep| keep.get(*group).copied().unwrap_or(true));
        let numbered = (base..).zip((0..self.count()).filter(kept));
        let own = numbered.filter(|(number, _)| *number as usize % share.1 == share.0);
        let groups: Vec<(u64, usize)> = own.collect();
        Ok(Box::new(groups.into_iter().map(move |(number, group)| {
            let of = opened.metadata.metadata().row_group(group);
            let (rows, bytes) = (
                of.num_rows().max(0) as u64,
                of.compressed_size().max(0) as u64,
            );
            let file = if ahead {
                file.fetch(&opened.ranges(of))
                    .map_err(|error| opened.broken(group, &error.to_string()))?
            } else {
                file.clone()
            };
            let opened = Arc::clone(&opened);
            Ok(Piece {
                number,
                rows: Some(rows),
                bytes,
                read: Box::new(move || opened.read(file, group)),
            })
        })))
    }
}

/// What the pieces of a file share.
struct Opened {
    source: Arc<Source>,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    columns: Arc<[Column]>,
    schema: SchemaRef,
}

impl Opened {
    /// Where the columns of a row group are that are decoded.
    fn ranges(&self, group: &RowGroupMetaData) -> Vec<(u64, u64)> {
        let columns = group.columns().iter().enumerate();
        let wanted = columns.filter(|(leaf, _)| self.mask.leaf_included(*leaf));
        wanted.map(|(_, column)| column.byte_range()).collect()
    }

    fn read(self: Arc<Self>, file: Positioned, group: usize) -> Result<Batches> {
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let mut reader = guarded(self.source.path(), || {
            builder
                .with_row_groups(vec![group])
                .with_projection(self.mask.clone())
                .with_batch_size(BATCH_ROWS)
                .build()
        })?;
        Ok(Box::new(std::iter::from_fn(move || {
            // Decoders of damaged data have been seen to panic.
            let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.next()));
            match next {
                Ok(None) => None,
                Ok(Some(Ok(batch))) => Some(self.conform(group, &batch)),
                Ok(Some(Err(error))) => Some(Err(self.broken(group, &error.to_string()))),
                Err(panic) => Some(Err(self.broken(group, &panicked(panic.as_ref())))),
            }
        })))
    }

    /// The columns in the order and of the types that are wanted.
    fn conform(&self, group: usize, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut sources: Vec<usize> = self.columns.iter().map(|column| column.source).collect();
        sources.sort_unstable();
        sources.dedup();
        let array = |column: &Column| {
            let place = sources.partition_point(|source| *source < column.source);
            let array = cast_to(batch.column(place), column.field.data_type())
                .map_err(|error| self.broken(group, &error.to_string()))?;
            if column.field.is_nullable() || array.logical_null_count() == 0 {
                Ok(array)
            } else {
                Err(Error::file(
                    self.source.path(),
                    format!(
                        "column {:?} must not be null, but has no value in row group {group}; fill it in",
                        column.field.name()
                    ),
                ))
            }
        };
        let arrays = self.columns.iter().map(array).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| self.broken(group, &error.to_string()))
    }

    fn broken(&self, group: usize, error: &str) -> Error {
        if let Err(changed) = self.source.check() {
            return changed;
        }
        Error::file(
            self.source.path(),
            format!("row group {group} cannot be read ({error}); write the file again"),
        )
    }
}

/// The file's schema, with text and bytes as views where views are wanted: they are then decoded without another copy.
fn wanted(file: &Schema, columns: &[Column]) -> SchemaRef {
    let mut fields: Vec<Field> = file
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .collect();
    for column in columns {
        let wanted = column.field.data_type();
        let text = matches!(
            fields[column.source].data_type(),
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::Dictionary(..)
        );
        if text && matches!(wanted, DataType::Utf8View | DataType::BinaryView) {
            fields[column.source].set_data_type(wanted.clone());
        }
    }
    Arc::new(Schema::new_with_metadata(fields, file.metadata().clone()))
}

/// Runs `read`, which reads metadata, and turns a panic into an error: damaged metadata can cause one.
fn guarded<T>(
    path: &Path,
    read: impl FnOnce() -> std::result::Result<T, ParquetError>,
) -> Result<T> {
    let damaged = |error: String| {
        Error::file(
            path,
            format!(
                "is no readable Parquet file ({error}); check the path or write the file again"
            ),
        )
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| damaged(error.to_string())),
        Err(panic) => Err(damaged(panicked(panic.as_ref()))),
    }
}
