//! Files into tables.
//!
//! What a file holds is the business of the crate `ingest`, which queries over files read with, too; here its pieces
//! are turned into the blocks of a table ([`pipeline`]).

mod assemble;
mod columns;
pub(crate) mod pipeline;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
pub use ingest::{Compression, Format as FileFormat, Options as FileOptions};
use ingest::{Dataset, Request};
use store::Transaction;
use table::{Definition, Loader};

pub(crate) use self::assemble::Block;
use self::pipeline::{Batches, Piece, Pieces, Sink};
use crate::{Database, Error, Position, Progress, tpch};

/// Pieces of a pipe, or of what is decompressed, that are read before a worker asks for them.
const AHEAD: usize = 4;

/// What to do with a table that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Fail if it holds rows: the table must be new, or empty as `create table` leaves it.
    #[default]
    Refuse,
    /// Add the rows to it. A table that does not exist is created.
    Append,
    /// Put the rows in its place.
    Replace,
}

/// A foreign key by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Columns of the table that is loaded.
    pub columns: Vec<String>,
    /// The table referred to.
    pub parent: String,
    /// Its columns, as many.
    pub parent_columns: Vec<String>,
}

/// How to import. The default finds everything out by itself and refuses a table that exists.
///
/// ```
/// let mut options = atoll::ImportOptions::default();
/// options.primary_key = vec!["id".to_owned()];
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// `create table ...`, or its list of columns and keys; inferred from the file where absent.
    pub schema: Option<String>,
    /// Names of the primary key's columns; they become NOT NULL.
    pub primary_key: Vec<String>,
    /// Foreign keys.
    pub foreign_keys: Vec<Reference>,
    /// How the files are laid out: format, delimiter, header, types, what stands for NULL, ...
    pub files: FileOptions,
    /// What to do with a table that exists.
    pub existing: Existing,
}

/// What an import did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Rows stored.
    pub rows: u64,
    /// Size of the files.
    pub bytes: u64,
    /// From the first look at a file to the commit.
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
        (Some(ddl), _) => Some(database.engine().definition(table, ddl)?),
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

impl Sink for Loader {
    fn block(&self, block: &Block) -> Result<(), Error> {
        Ok(Loader::block(self, block.ordinal, &block.batches)?)
    }
}

/// Loads pieces into an existing table within `transaction`; returns it with the number of rows.
pub(crate) fn load(
    database: &Database,
    transaction: Transaction,
    table: &str,
    pieces: Pieces,
    mut position: Position,
    progress: &dyn Progress,
) -> Result<(Transaction, u64), Error> {
    let workers = database.workers();
    let name = table.to_owned();
    let loader = workers.block_on(async move { Loader::new(transaction, &name).await })?;
    // Named before its first rows: their time counts.
    if progress.update(&position).is_break() {
        return Err(Error::Interrupted);
    }
    let mut watch = |rows, bytes| {
        (position.rows, position.bytes) = (rows, bytes);
        progress.update(&position)
    };
    let (loader, _) = pipeline::run(
        workers.handle(),
        workers.width(),
        pieces,
        loader,
        &mut watch,
    )?;
    Ok(loader.finish()?)
}

/// Makes the table ready for rows. Returns its definition, and whether its types are declared, not inferred.
fn prepare(
    database: &Database,
    transaction: &mut Transaction,
    name: &str,
    dataset: &Dataset,
    options: &ImportOptions,
) -> Result<(Definition, bool), Error> {
    let tables = database.tables_at(transaction.base())?;
    let existing = tables.get(name);
    let filled = existing.is_some_and(|table| table.rows() > 0);
    match (existing.map(|t| t.definition().clone()), options.existing) {
        (Some(_), Existing::Refuse) if filled => Err(Error::Import(format!(
            "table {name:?} holds rows in {}; append to it with --append, or put the rows in its place with --replace",
            database.path().display()
        ))),
        (Some(definition), Existing::Append | Existing::Refuse) => Ok((definition, true)),
        (existing, _) => {
            let (definition, declared) = define(database, name, dataset, options)?;
            if existing.is_some() {
                table::drop(transaction, name)?;
            }
            table::create(transaction, &definition)?;
            Ok((definition, declared))
        }
    }
}

/// The definition of a new table: declared, or that of the TPC-H table of this name for `.tbl` files, or inferred;
/// and whether it is one of the first two.
fn define(
    database: &Database,
    name: &str,
    dataset: &Dataset,
    options: &ImportOptions,
) -> Result<(Definition, bool), Error> {
    let known = || tpch::definition(name).filter(|_| dataset.is_tbl());
    let (mut definition, declared) = match &options.schema {
        Some(ddl) => (database.engine().definition(name, ddl)?, true),
        None => match known() {
            Some(known) => (known, true),
            None => (Definition::from_schema(name, &inferred(dataset))?, false),
        },
    };
    add_keys(&mut definition, options)?;
    Ok((definition, declared))
}

/// The columns of the files; NOT NULL where all files say so.
fn inferred(dataset: &Dataset) -> Schema {
    let fields = dataset.schema().fields().iter().enumerate();
    let fields = fields.map(|(column, field)| {
        let nullable = !dataset.is_required(column);
        field.as_ref().clone().with_nullable(nullable)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn add_keys(definition: &mut Definition, options: &ImportOptions) -> Result<(), Error> {
    let place = |definition: &Definition, name: &String| {
        let found = definition
            .columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<_> = definition
                .columns
                .iter()
                .map(|column| column.name.as_str())
                .collect();
            Error::Import(format!(
                "the key names column {name:?}, but table {:?} has only: {}",
                definition.name,
                names.join(", ")
            ))
        })
    };
    if !options.primary_key.is_empty() {
        let key = options
            .primary_key
            .iter()
            .map(|name| place(definition, name));
        definition.primary_key = key.collect::<Result<_, _>>()?;
        for at in definition.primary_key.clone() {
            definition.columns[at].nullable = false;
        }
    }
    for reference in &options.foreign_keys {
        let columns = reference
            .columns
            .iter()
            .map(|name| place(definition, name))
            .collect::<Result<Vec<_>, _>>()?;
        if columns.len() != reference.parent_columns.len() {
            return Err(Error::Import(format!(
                "a foreign key has {} columns but refers to {} of table {:?}; name as many",
                columns.len(),
                reference.parent_columns.len(),
                reference.parent
            )));
        }
        definition.foreign_keys.push(table::ForeignKey {
            columns,
            parent: reference.parent.clone(),
            parent_columns: reference.parent_columns.clone(),
        });
    }
    Ok(())
}
