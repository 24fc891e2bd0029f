//! Files into tables.
//!
//! Files are read by crate `ingest`, as in queries over files; here their pieces are turned into the blocks of a
//! table ([`pipeline`]).

mod assemble;
mod columns;
mod definition;
pub(crate) mod load;
pub(crate) mod options;
pub(crate) mod pipeline;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow::array::RecordBatch;
use ingest::{Dataset, Request};
use table::Definition;

use crate::database::Database;
use crate::error::Error;
use crate::import::definition::prepare;
use crate::import::load::load;
use crate::import::options::{Existing, ImportOptions};
use crate::import::pipeline::{Batches, Piece, Pieces};
use crate::progress::{Position, Progress};

/// Pieces of a pipe or of a compressed file that are read before a worker asks for them.
const AHEAD: usize = 4;

/// The result of an import.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Rows stored.
    pub rows: u64,
    /// Size of the files.
    pub bytes: u64,
    /// Time from the first look at a file to the commit.
    pub seconds: f64,
}

/// Stores all rows of `files`, in order, in `table`: all or nothing, in one commit. A file is named by its path, `-` for
/// standard input, or with others by a pattern such as `data/*.csv.gz`.
///
/// Reading, decoding and encoding use all workers; memory stays bounded whatever the files' size.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("reef.atoll");
/// let file = folder.path().join("fish.csv");
/// std::fs::write(&file, "name,length\nblenny,0.1\nwrasse,0.4\n")?;
/// let database = atoll::Database::create(&path, &atoll::Options::default())?;
/// let report = atoll::import(&database, "fish", &[file], &atoll::ImportOptions::default(), &())?;
/// assert_eq!(report.rows, 2);
/// assert_eq!(database.session().sql("select * from fish where length > 0.2")?[0].rows(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Input`] names the file, and the line where there is one, that cannot be read or does
/// not fit the table; [`Error::Interrupted`] when `progress` said so. The store is then as before.
pub fn import(
    database: &Database,
    table: &str,
    files: &[PathBuf],
    options: &ImportOptions,
    progress: &dyn Progress,
) -> Result<ImportReport, Error> {
    let started = Instant::now();
    let dataset = Arc::new(open(database, table, files, options)?);
    let bytes = dataset.bytes();
    let mut transaction = database.store().begin()?;
    let (definition, declared) = prepare(database, &mut transaction, table, &dataset, options)?;
    let mut position = Position::start(table);
    position.total_rows = dataset.rows();
    position.total_bytes = bytes.filter(|_| !dataset.is_slow());
    let request = Request {
        columns: columns::wanted(&dataset, &definition, declared)?,
        ..Request::of(&dataset, [])
    };
    let stop = Arc::new(AtomicBool::new(false));
    let mut pieces = dataset.pieces(&request)?;
    if dataset.is_slow() {
        pieces = ingest::ahead(pieces, AHEAD, &stop);
    }
    let watched = Stopping {
        progress,
        stop: &stop,
    };
    let pieces = stored(pieces, &Arc::new(definition));
    let (transaction, rows) = load(database, transaction, table, pieces, position, &watched)?;
    transaction.commit()?;
    Ok(ImportReport {
        rows,
        bytes: bytes.unwrap_or_default(),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Looks at the files. A table that exists tells what their header would be.
fn open(
    database: &Database,
    table: &str,
    files: &[PathBuf],
    options: &ImportOptions,
) -> Result<Dataset, Error> {
    let mut reading = options.files.clone();
    let known = match (&options.schema, options.existing) {
        (Some(ddl), _) => Some(database.instance().definition(table, ddl)?),
        (None, Existing::Replace) => None,
        (None, _) => {
            let tables = database.tables_at(&database.store().snapshot())?;
            tables.get(table).map(|table| table.definition().clone())
        }
    };
    if let Some(definition) = known {
        let names = definition.columns.into_iter().map(|column| column.name);
        reading.expected = names.collect();
        // A table whose columns were named by place has no header to be recognised by those names.
        let placed = |(at, name): (usize, &String)| *name == format!("column_{}", at + 1);
        if reading.header.is_none() && reading.expected.iter().enumerate().all(placed) {
            reading.header = Some(false);
        }
    }
    Ok(Dataset::open(files, &reading)?)
}

/// The pieces as the table stores them.
fn stored(pieces: ingest::Pieces, definition: &Arc<Definition>) -> Pieces {
    let definition = Arc::clone(definition);
    Box::new(pieces.map(move |piece| {
        let (piece, definition) = (piece?, Arc::clone(&definition));
        let read = move || {
            let batches = (piece.read)()?;
            let stored = move |batch: ingest::Result<RecordBatch>| {
                Ok(table::normalise(&batch?, &definition)?)
            };
            Ok(Box::new(batches.map(stored)) as Batches)
        };
        Ok(Piece {
            rows: piece.rows,
            bytes: piece.bytes,
            read: Box::new(read),
        })
    }))
}

/// Also ends the waiting for a pipe when the caller wants to stop.
struct Stopping<'a> {
    progress: &'a dyn Progress,
    stop: &'a AtomicBool,
}

impl Progress for Stopping<'_> {
    fn update(&self, position: &Position) -> std::ops::ControlFlow<()> {
        let wish = self.progress.update(position);
        if wish.is_break() {
            self.stop.store(true, Ordering::Release);
        }
        wish
    }
}
