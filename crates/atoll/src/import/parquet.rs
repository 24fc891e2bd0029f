//! Parquet files: each row group is a piece.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use table::Definition;

use super::columns::{self, Mapping};
use super::pipeline::{Batches, Piece};
use crate::Error;

/// Rows decoded at a time: what is decoded stays in the cache until it is encoded.
const BATCH_ROWS: usize = 8192;

/// An open file that many threads read at once; a `File`'s own position would be shared by them.
#[derive(Clone, Debug)]
struct Positioned {
    file: Arc<File>,
    length: u64,
}

/// Reads on from an offset.
struct From(Positioned, u64);

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.file.read_at(into, self.1)?;
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

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(io::BufReader::new(From(self.clone(), start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > self.length)
        {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at offset {start} lie past the end"
            )));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A Parquet file whose footer has been read.
pub(crate) struct ParquetFile {
    path: PathBuf,
    source: Positioned,
    metadata: ArrowReaderMetadata,
}

impl ParquetFile {
    /// Opens `path` and reads its footer.
    pub fn open(path: &Path) -> Result<ParquetFile, Error> {
        let file = File::open(path).map_err(|error| super::unreadable(path, &error))?;
        let length = file
            .metadata()
            .map_err(|error| super::unreadable(path, &error))?
            .len();
        let source = Positioned {
            file: Arc::new(file),
            length,
        };
        let metadata = ArrowReaderMetadata::load(&source, ArrowReaderOptions::new())
            .map_err(|error| damaged(path, &error))?;
        Ok(ParquetFile {
            path: path.to_owned(),
            source,
            metadata,
        })
    }

    /// The file's columns.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Rows in all row groups.
    pub fn rows(&self) -> u64 {
        self.metadata
            .metadata()
            .row_groups()
            .iter()
            .map(|group| group.num_rows().max(0) as u64)
            .sum()
    }

    /// The row groups, to be stored in a table of this definition.
    pub fn pieces(
        self,
        definition: &Arc<Definition>,
    ) -> Result<impl Iterator<Item = Piece> + Send + use<>, Error> {
        let names = self
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().as_str());
        let mapping = columns::by_name(&self.path, definition, names)?;
        let options =
            ArrowReaderOptions::new().with_schema(wanted(self.schema(), &mapping, definition));
        // A type that cannot be read as the table wants it is read as it is, and cast.
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(self.metadata.metadata()), options)
            .unwrap_or_else(|_| self.metadata.clone());
        let opened = Arc::new(Opened {
            path: self.path,
            source: self.source,
            metadata,
            mapping,
            definition: Arc::clone(definition),
        });
        let groups = opened.metadata.metadata().num_row_groups();
        Ok((0..groups).map(move |group| {
            let of = opened.metadata.metadata().row_group(group);
            let (rows, bytes) = (
                of.num_rows().max(0) as u64,
                of.compressed_size().max(0) as u64,
            );
            let opened = Arc::clone(&opened);
            Piece {
                rows: Some(rows),
                bytes,
                read: Box::new(move || read(&opened, group)),
            }
        }))
    }
}

/// What the pieces of a file share.
struct Opened {
    path: PathBuf,
    source: Positioned,
    metadata: ArrowReaderMetadata,
    mapping: Mapping,
    definition: Arc<Definition>,
}

fn read(opened: &Arc<Opened>, group: usize) -> Result<Batches, Error> {
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
        opened.source.clone(),
        opened.metadata.clone(),
    );
    let reader = builder
        .with_row_groups(vec![group])
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|error| damaged(&opened.path, &error))?;
    let opened = Arc::clone(opened);
    Ok(Box::new(reader.map(move |batch| {
        let batch = batch.map_err(|error| Error::Input {
            path: opened.path.clone(),
            line: None,
            reason: format!("row group {group} cannot be read ({error}); write the file again"),
        })?;
        columns::conform(&batch, &opened.mapping, &opened.definition)
    })))
}

/// The file's schema, with text and bytes as views where the table stores views: they are then
/// decoded without another copy.
fn wanted(file: &Schema, mapping: &Mapping, definition: &Definition) -> SchemaRef {
    let mut fields: Vec<_> = file
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .collect();
    for (at, column) in mapping.iter().zip(&definition.columns) {
        if matches!(column.data_type, DataType::Utf8View | DataType::BinaryView) {
            let text = matches!(
                fields[*at].data_type(),
                DataType::Utf8
                    | DataType::LargeUtf8
                    | DataType::Binary
                    | DataType::LargeBinary
                    | DataType::Dictionary(..)
            );
            if text {
                fields[*at].set_data_type(column.data_type.clone());
            }
        }
    }
    Arc::new(Schema::new_with_metadata(fields, file.metadata().clone()))
}

fn damaged(path: &Path, error: &ParquetError) -> Error {
    Error::Input {
        path: path.to_owned(),
        line: None,
        reason: format!(
            "is no readable Parquet file ({error}); check the path or write the file again"
        ),
    }
}
