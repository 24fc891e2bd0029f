//! Imports files into tables.
//!
//! The crate `ingest`, which queries over files use as well, reads files as pieces; here these are made into the blocks
//! of a table ([`pipeline`]).

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
use sql::Checks;
use table::Definition;

use crate::database::Database;
use crate::error::Error;
use crate::import::definition::prepare;
use crate::import::load::load;
use crate::import::options::{Existing, ImportOptions};
use crate::import::pipeline::{Batches, Piece, Pieces};
use crate::progress::{Position, Progress};

/// The number of pieces of a pipe or a compressed file that are read ahead of the workers.
const AHEAD: usize = 4;

/// The result of an import.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Rows stored.
    pub rows: u64,
    /// Size of the files in bytes.
    pub bytes: u64,
    /// Seconds from opening the first file to the commit.
    pub seconds: f64,
}

/// Stores all rows of `files`, in order, in `table`: all or nothing, in one commit. A file is named by its path, `-` for
/// standard input, or with others by a pattern such as `data/*.csv.gz`. `s.t` is the table `t` in the schema `s`.
///
/// Reading, decoding and encoding use all workers; memory is bounded whatever the files' size.
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
/// [`Error::Input`] if a file cannot be read or does not fit the table, with the file and, if known, the line;
/// [`Error::Interrupted`] if `progress` stopped the import. The store is then as before.
pub fn import(
    database: &Database,
    table: &str,
    files: &[PathBuf],
    options: &ImportOptions,
    progress: &dyn Progress,
) -> Result<ImportReport, Error> {
    let started = Instant::now();
    let table = &database.called(table)?;
    let dataset = Arc::new(open(database, table, files, options)?);
    let bytes = dataset.bytes();
    let _turn = database.turn()?;
    let mut transaction = database.store().begin()?;
    let (definition, declared) = prepare(database, &mut transaction, table, &dataset, options)?;
    let mut position = Position::start(&table::titled(table));
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
    let checks = database.workers().block_on({
        let (instance, definition) = (Arc::clone(database.instance()), definition.clone());
        async move { instance.checks(&definition).await }
    })?;
    let pieces = stored(pieces, &Arc::new((definition, checks)));
    let (transaction, rows) = load(database, transaction, table, pieces, position, &watched)?;
    database.workers().block_on({
        let instance = Arc::clone(database.instance());
        let (view, table) = (transaction.view(), table.to_owned());
        async move { instance.check_references(&view, &table).await }
    })?;
    transaction.commit()?;
    Ok(ImportReport {
        rows,
        bytes: bytes.unwrap_or_default(),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Opens the files. The columns of an existing table help to recognise a header.
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
        // If the table's columns were named by position, a header cannot be recognised by these names.
        let placed = |(at, name): (usize, &String)| *name == format!("column_{}", at + 1);
        if reading.header.is_none() && reading.expected.iter().enumerate().all(placed) {
            reading.header = Some(false);
        }
    }
    Ok(Dataset::open(files, &reading)?)
}

/// Converts the pieces to the types of the table, and tests its checks.
fn stored(pieces: ingest::Pieces, table: &Arc<(Definition, Checks)>) -> Pieces {
    let table = Arc::clone(table);
    Box::new(pieces.map(move |piece| {
        let (piece, table) = (piece?, Arc::clone(&table));
        let read = move || {
            let batches = (piece.read)()?;
            let stored = move |batch: ingest::Result<RecordBatch>| {
                Ok(table.1.test(table::normalise(&batch?, &table.0)?)?)
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

/// Watches the progress, and also ends waiting for a pipe when the caller stops the import.
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
