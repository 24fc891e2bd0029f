//! The Parquet and Arrow files that `copy` writes.
//!
//! Row groups of Parquet are encoded side by side, each as soon as its rows are there, and written in their order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::record_batch::RecordBatch;
use datafusion_common::DataFusionError;
use datafusion_execution::SendableRecordBatchStream;
use futures::TryStreamExt;
use memory::Budget;
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::error::{Error, Result};
use crate::resources::budget::{Held, footprint};
use crate::resources::whole_file::failed;

/// Rows of a row group: as many as two stored blocks, so that readers of such a file can read parts of it at the same time.
const GROUP_ROWS: usize = table::BLOCK_ROWS * 2;

/// A format of files with columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Columnar {
    Arrow,
    Parquet(Compression),
}

impl Columnar {
    /// The format of that name, with this compression of what is in it; none of another format.
    ///
    /// # Errors
    /// If nothing is compressed so.
    pub(super) fn of(format: &str, compression: Option<&str>) -> Result<Option<Columnar>> {
        match (format, compression) {
            ("arrow", None) => Ok(Some(Columnar::Arrow)),
            ("arrow", Some(_)) => Err(Error::unsupported(
                "arrow files are compressed with lz4, which cannot be chosen: leave `compression` out",
            )),
            ("parquet", None) => {
                // Small enough, and about as fast to read as what is larger.
                let level = ZstdLevel::try_new(3).map_err(of_parquet)?;
                Ok(Some(Columnar::Parquet(Compression::ZSTD(level))))
            }
            ("parquet", Some(name)) => Ok(Some(Columnar::Parquet(compression_of(name)?))),
            _ => Ok(None),
        }
    }
}

/// The compression of Parquet that is written as `name` or `name(level)`.
fn compression_of(written: &str) -> Result<Compression> {
    let unknown = || {
        Error::coded(
            "22023",
            format!(
                "compression \"{written}\" is not supported: use uncompressed, snappy, gzip, lz4, lz4_raw, zstd, or gzip and zstd with a level, such as zstd(3)"
            ),
        )
    };
    let lower = written.trim().to_lowercase();
    let (name, level) = match lower.strip_suffix(')').and_then(|own| own.split_once('(')) {
        Some((name, level)) => {
            let level: u32 = level.trim().parse().map_err(|_| unknown())?;
            (name.trim(), Some(level))
        }
        None => (lower.as_str(), None),
    };
    let found = match (name, level) {
        ("uncompressed" | "none", None) => Compression::UNCOMPRESSED,
        ("snappy", None) => Compression::SNAPPY,
        ("lz4", None) => Compression::LZ4,
        ("lz4_raw", None) => Compression::LZ4_RAW,
        ("gzip", None) => Compression::GZIP(GzipLevel::default()),
        ("gzip", Some(level)) => {
            Compression::GZIP(GzipLevel::try_new(level).map_err(|_| unknown())?)
        }
        ("zstd", level) => {
            let level = i32::try_from(level.unwrap_or(3)).map_err(|_| unknown())?;
            Compression::ZSTD(ZstdLevel::try_new(level).map_err(|_| unknown())?)
        }
        _ => return Err(unknown()),
    };
    Ok(found)
}

fn of_parquet(e: ParquetError) -> Error {
    DataFusionError::External(Box::new(e)).into()
}

/// Writes rows to a file that was begun; the number of rows. `path` is what messages call it, and `budget` that from which
/// rows are taken that wait to be written; so many row groups are encoded side by side.
///
/// # Errors
/// Those of the rows, and of writing.
pub(super) async fn write(
    rows: SendableRecordBatchStream,
    file: Arc<File>,
    format: Columnar,
    path: &Path,
    (budget, width): (&Arc<Budget>, usize),
) -> Result<u64> {
    let recorded = Recorded {
        file,
        failure: Arc::default(),
    };
    let failure = Arc::clone(&recorded.failure);
    let written = match format {
        Columnar::Arrow => arrow(rows, recorded).await,
        Columnar::Parquet(compression) => {
            parquet(rows, recorded, compression, (budget, width)).await
        }
    };
    // The libraries say less of why.
    written.map_err(|e| match failure.lock().take() {
        Some(own) => failed(path, &own),
        None => e,
    })
}

/// A file that remembers why it could not be written.
struct Recorded {
    file: Arc<File>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Recorded {
    fn noted<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|e| {
            let told = io::Error::new(e.kind(), e.to_string());
            self.failure.lock().get_or_insert(e);
            told
        })
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = (&*self.file).write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = (&*self.file).flush();
        self.noted(done)
    }
}

async fn arrow(mut rows: SendableRecordBatchStream, file: Recorded) -> Result<u64> {
    let options = IpcWriteOptions::default();
    let options = options.try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let schema = rows.schema();
    let mut writer = FileWriter::try_new_with_options(BufWriter::new(file), &schema, options)?;
    let mut written = 0;
    while let Some(batch) = rows.try_next().await? {
        written += batch.num_rows() as u64;
        let work = move || {
            writer.write(&batch)?;
            Ok::<_, Error>(writer)
        };
        writer = spawn_blocking(work).await.map_err(Error::of_task)??;
    }
    let work = move || {
        writer.finish()?;
        let flushed = writer.get_mut().flush();
        flushed.map_err(|e| DataFusionError::from(e).into())
    };
    let done: Result<()> = spawn_blocking(work).await.map_err(Error::of_task)?;
    done.map(|()| written)
}

/// The rows of a row group that come to be there.
struct Group {
    batches: Vec<RecordBatch>,
    rows: usize,
    held: Held,
}

impl Group {
    fn of(budget: &Arc<Budget>) -> Group {
        Group {
            batches: Vec::new(),
            rows: 0,
            held: Held::of(budget),
        }
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = footprint(&batch);
        self.held.more(bytes).map_err(|e| Error::Memory {
            message: format!("rows wait in memory for their row group: {e}"),
        })?;
        self.rows += batch.num_rows();
        self.batches.push(batch);
        Ok(())
    }
}

/// A Parquet file that is being written.
struct Parquet {
    file: SerializedFileWriter<BufWriter<Recorded>>,
    factory: Arc<ArrowRowGroupWriterFactory>,
    /// Row groups that are being encoded, in their order.
    encoding: VecDeque<JoinHandle<Result<Vec<ArrowColumnChunk>>>>,
    /// How many were begun.
    groups: usize,
}

async fn parquet(
    mut rows: SendableRecordBatchStream,
    file: Recorded,
    compression: Compression,
    (budget, width): (&Arc<Budget>, usize),
) -> Result<u64> {
    let properties = WriterProperties::builder().set_compression(compression);
    let properties = properties
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let file = BufWriter::new(file);
    let writer = ArrowWriter::try_new(file, rows.schema(), Some(properties));
    let (file, factory) = writer
        .and_then(ArrowWriter::into_serialized_writer)
        .map_err(of_parquet)?;
    let mut parquet = Parquet {
        file,
        factory: Arc::new(factory),
        encoding: VecDeque::new(),
        groups: 0,
    };
    let (mut group, mut written) = (Group::of(budget), 0);
    while let Some(mut batch) = rows.try_next().await? {
        written += batch.num_rows() as u64;
        while group.rows + batch.num_rows() >= GROUP_ROWS {
            let room = GROUP_ROWS - group.rows;
            group.push(batch.slice(0, room))?;
            batch = batch.slice(room, batch.num_rows() - room);
            let whole = std::mem::replace(&mut group, Group::of(budget));
            parquet = parquet.encode(whole, width).await?;
        }
        if batch.num_rows() > 0 {
            group.push(batch)?;
        }
    }
    if group.rows > 0 {
        parquet = parquet.encode(group, width).await?;
    }
    while !parquet.encoding.is_empty() {
        parquet = parquet.append().await?;
    }
    let work = move || {
        parquet.file.finish().map_err(of_parquet)?;
        let flushed = parquet.file.inner_mut().flush();
        flushed.map_err(|e| DataFusionError::from(e).into())
    };
    let done: Result<()> = spawn_blocking(work).await.map_err(Error::of_task)?;
    done.map(|()| written)
}

impl Parquet {
    /// Begins to encode a row group, once fewer than `width` others are.
    async fn encode(mut self, group: Group, width: usize) -> Result<Parquet> {
        if self.encoding.len() >= width.max(1) {
            self = self.append().await?;
        }
        let (factory, number) = (Arc::clone(&self.factory), self.groups);
        self.groups += 1;
        let work = move || encoded(&factory, number, &group).map_err(of_parquet);
        self.encoding.push_back(spawn_blocking(work));
        Ok(self)
    }

    /// Writes the first of the row groups that are being encoded.
    async fn append(mut self) -> Result<Parquet> {
        let Some(first) = self.encoding.pop_front() else {
            return Ok(self);
        };
        let columns = first.await.map_err(Error::of_task)??;
        let work = move || {
            let mut group = self.file.next_row_group()?;
            for column in columns {
                column.append_to_row_group(&mut group)?;
            }
            group.close()?;
            Ok(self)
        };
        let done = spawn_blocking(work).await.map_err(Error::of_task)?;
        done.map_err(of_parquet)
    }
}

/// The columns of a row group as they are in a file.
fn encoded(
    factory: &ArrowRowGroupWriterFactory,
    number: usize,
    group: &Group,
) -> std::result::Result<Vec<ArrowColumnChunk>, ParquetError> {
    let mut columns = factory.create_column_writers(number)?;
    for batch in &group.batches {
        let mut leaves = columns.iter_mut();
        let schema = batch.schema();
        for (field, values) in schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, values)? {
                match leaves.next() {
                    Some(column) => column.write(&leaf)?,
                    None => return Err(ParquetError::General("more columns than planned".into())),
                }
            }
        }
    }
    columns.into_iter().map(|column| column.close()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressions_have_the_names_that_people_know() {
        let of = |name: &str| compression_of(name).ok();
        assert_eq!(of("Snappy"), Some(Compression::SNAPPY));
        assert_eq!(of("none"), Some(Compression::UNCOMPRESSED));
        let level = ZstdLevel::try_new(7).unwrap();
        assert_eq!(of(" zstd( 7 )"), Some(Compression::ZSTD(level)));
        assert_eq!(of("gzip"), Some(Compression::GZIP(GzipLevel::default())));
        for bad in [
            "",
            "zstd(99)",
            "snappy(3)",
            "zstd(",
            "zstd(x)",
            "brotli(3)",
            "lzo",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
