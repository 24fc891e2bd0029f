//! Files as users have them: what is read of them, and what is told of those that cannot be read.

mod batches;
mod formats;
mod text;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use ingest::{Dataset, Options, Request};

struct Folder(tempfile::TempDir);

/// Columns with their types, and rows.
type Read = (String, Vec<String>);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// What is read of a file or a pattern, or the message of the failure without the folder's name.
    fn read(&self, name: &str, options: &Options) -> Result<Read, String> {
        read(&[self.path(name)], options)
            .map_err(|e| e.replace(&format!("{}/", self.0.path().display()), ""))
    }
}

fn read(paths: &[PathBuf], options: &Options) -> Result<Read, String> {
    let dataset = Dataset::open(paths, options).map_err(|e| e.to_string())?;
    let columns = dataset
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{} {}", field.name(), field.data_type()));
    let columns = columns.collect::<Vec<_>>().join(", ");
    // Small pieces: files are cut wherever they can be.
    let dataset = Arc::new(dataset);
    let request = Request {
        piece_bytes: 7,
        ..Request::all(&dataset)
    };
    Ok((columns, rows(&dataset, &request)?))
}

fn rows(dataset: &Arc<Dataset>, request: &Request) -> Result<Vec<String>, String> {
    let format = FormatOptions::default().with_null("NULL");
    let mut rows = vec![];
    for piece in dataset.pieces(request).map_err(|e| e.to_string())? {
        for batch in (piece.map_err(|e| e.to_string())?.read)().map_err(|e| e.to_string())? {
            let batch = batch.map_err(|e| e.to_string())?;
            let columns = batch
                .columns()
                .iter()
                .map(|column| ArrayFormatter::try_new(column, &format).unwrap());
            let columns: Vec<_> = columns.collect();
            rows.extend((0..batch.num_rows()).map(|row| {
                columns
                    .iter()
                    .map(|column| column.value(row).to_string())
                    .collect::<Vec<_>>()
                    .join("|")
            }));
        }
    }
    Ok(rows)
}

/// The rows of all files with their names and numbers, read by so many readers.
fn numbered(paths: &[PathBuf], readers: usize, keep: Option<Vec<Vec<bool>>>) -> Vec<String> {
    let dataset = Arc::new(Dataset::open(paths, &Options::default()).unwrap());
    let mut all = Vec::new();
    for reader in 0..readers {
        let mut request = Request {
            piece_bytes: 7,
            share: (reader, readers),
            keep: keep.clone(),
            ..Request::of(&dataset, [0])
        };
        request.columns.extend(dataset.places());
        all.extend(rows(&dataset, &request).unwrap());
    }
    all.sort_unstable();
    all
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn all_rows(dataset: &Arc<Dataset>, request: &Request) -> Vec<String> {
    rows(dataset, request).unwrap()
}
