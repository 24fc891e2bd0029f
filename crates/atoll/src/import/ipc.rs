//! Arrow IPC files and streams: each record batch is a piece.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::record_batch::RecordBatch;
use table::Definition;

use super::columns;
use super::pipeline::{Batches, Piece};
use crate::Error;

type Read1 = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// An Arrow file or stream whose schema has been read.
pub(crate) struct IpcFile {
    path: PathBuf,
    schema: SchemaRef,
    batches: Read1,
}

impl IpcFile {
    /// Opens `path`: the file format where it starts with that format's magic, else a stream.
    pub fn open(path: &Path) -> Result<IpcFile, Error> {
        let unreadable = |error| super::unreadable(path, &error);
        let mut file = File::open(path).map_err(unreadable)?;
        let mut magic = [0; 6];
        let starts = file.read(&mut magic).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let reader = BufReader::with_capacity(1 << 20, file);
        let (schema, batches): (SchemaRef, Read1) = if &magic[..starts] == b"ARROW1" {
            let reader =
                FileReader::try_new(reader, None).map_err(|error| damaged(path, &error))?;
            (reader.schema(), Box::new(reader))
        } else {
            let reader =
                StreamReader::try_new(reader, None).map_err(|error| damaged(path, &error))?;
            (reader.schema(), Box::new(reader))
        };
        Ok(IpcFile {
            path: path.to_owned(),
            schema,
            batches,
        })
    }

    /// The file's columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The record batches. Reading one is a copy, so they are read in turn and only cast and
    /// encoded in parallel.
    pub fn pieces(
        self,
        definition: &Arc<Definition>,
    ) -> Result<impl Iterator<Item = Result<Piece, Error>> + Send + use<>, Error> {
        let names = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str());
        let mapping = Arc::new(columns::by_name(&self.path, definition, names)?);
        let definition = Arc::clone(definition);
        Ok(self.batches.map(move |batch| {
            let batch = batch.map_err(|error| damaged(&self.path, &error))?;
            let (mapping, definition) = (Arc::clone(&mapping), Arc::clone(&definition));
            let (rows, bytes) = (
                batch.num_rows() as u64,
                batch.get_array_memory_size() as u64,
            );
            let read = move || {
                let conformed = columns::conform(&batch, &mapping, &definition)?;
                Ok(Box::new(std::iter::once(Ok(conformed))) as Batches)
            };
            Ok(Piece {
                rows: Some(rows),
                bytes,
                read: Box::new(read),
            })
        }))
    }
}

fn damaged(path: &Path, error: &ArrowError) -> Error {
    Error::Input {
        path: path.to_owned(),
        line: None,
        reason: format!(
            "is no readable Arrow IPC file ({error}); check the path or write the file again"
        ),
    }
}
