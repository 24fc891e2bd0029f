//! Files into tables: Parquet, CSV, TPC-H `.tbl`, Arrow IPC.

mod assemble;
mod columns;
mod ipc;
mod parquet;
pub(crate) mod pipeline;
mod records;
mod sniff;
mod text;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use store::Transaction;
use table::{Definition, Loader};

pub(crate) use self::assemble::Block;
use self::ipc::IpcFile;
use self::parquet::ParquetFile;
use self::pipeline::{Pieces, Sink};
use self::text::Layout;
use crate::{Database, Error, Position, Progress, tpch};

/// The format of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFormat {
    /// By the file's extension, else by its first bytes.
    #[default]
    Auto,
    /// Apache Parquet.
    Parquet,
    /// Text with a delimiter between fields and quotes where they are needed.
    Csv,
    /// Text as the TPC-H generator writes it: `|` after each field, no quotes, no header.
    Tbl,
    /// Arrow IPC: the file format or the stream format.
    Arrow,
}

/// Whether the first line of a CSV file holds the columns' names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Header {
    /// If it looks like it.
    #[default]
    Auto,
    /// It does; columns are matched by name.
    Yes,
    /// It does not; columns are matched by place.
    No,
}

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
    /// The files' format.
    pub format: FileFormat,
    /// Between two fields of a text file; found out where absent.
    pub delimiter: Option<u8>,
    /// Whether a CSV file starts with names.
    pub header: Header,
    /// The text that stands for NULL; an empty field where absent.
    pub null: Option<String>,
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

/// Stores all rows of `files`, in order, in `table`: all or nothing, in one commit.
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
    let inputs = files
        .iter()
        .map(|path| Input::open(path, options))
        .collect::<Result<Vec<_>, _>>()?;
    let bytes = inputs.iter().map(|input| input.bytes).sum();
    let mut transaction = database.store().begin()?;
    let definition = Arc::new(prepare(
        database,
        &mut transaction,
        table,
        &inputs,
        options,
    )?);
    let mut position = Position::start(table);
    position.total_rows = inputs.iter().map(Input::rows).sum();
    position.total_bytes = Some(bytes);
    let mut pieces: Pieces = Box::new(std::iter::empty());
    for input in inputs {
        pieces = Box::new(pieces.chain(input.pieces(&definition, options)?));
    }
    let (transaction, rows) = load(database, transaction, table, pieces, position, progress)?;
    transaction.commit()?;
    database.index(table)?;
    Ok(ImportReport {
        rows,
        bytes,
        seconds: started.elapsed().as_secs_f64(),
    })
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

/// Makes the table ready for rows and returns its definition.
fn prepare(
    database: &Database,
    transaction: &mut Transaction,
    name: &str,
    inputs: &[Input],
    options: &ImportOptions,
) -> Result<Definition, Error> {
    let tables = database.tables_at(transaction.base())?;
    let existing = tables.get(name);
    let filled = existing.is_some_and(|table| table.rows() > 0);
    match (existing.map(|t| t.definition().clone()), options.existing) {
        (Some(_), Existing::Refuse) if filled => Err(Error::Import(format!(
            "table {name:?} holds rows in {}; append to it with --append, or put the rows in its place with --replace",
            database.path().display()
        ))),
        (Some(definition), Existing::Append | Existing::Refuse) => Ok(definition),
        (Some(_), Existing::Replace) => {
            let definition = define(database, name, inputs, options)?;
            table::drop(transaction, name)?;
            table::create(transaction, &definition)?;
            Ok(definition)
        }
        (None, _) => {
            let definition = define(database, name, inputs, options)?;
            table::create(transaction, &definition)?;
            Ok(definition)
        }
    }
}

/// The definition of a new table: declared, or that of the TPC-H table of this name for a `.tbl`
/// file, or inferred from the first file.
fn define(
    database: &Database,
    name: &str,
    inputs: &[Input],
    options: &ImportOptions,
) -> Result<Definition, Error> {
    let mut definition = match (&options.schema, inputs.first()) {
        (Some(ddl), _) => database.engine().definition(name, ddl)?,
        (None, Some(first)) => match tpch::definition(name)
            .filter(|_| matches!(first.kind, Kind::Text { tbl: true }))
        {
            Some(known) => known,
            None => Definition::from_schema(name, &first.infer(options)?)?,
        },
        (None, None) => {
            return Err(Error::Import(
                "no file was given; name at least one".to_owned(),
            ));
        }
    };
    add_keys(&mut definition, options)?;
    Ok(definition)
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

/// A file that is there and whose format is known.
struct Input {
    path: PathBuf,
    bytes: u64,
    kind: Kind,
}

enum Kind {
    Parquet(ParquetFile),
    Arrow(IpcFile),
    Text { tbl: bool },
}

impl Input {
    fn open(path: &Path, options: &ImportOptions) -> Result<Input, Error> {
        let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if metadata.is_dir() {
            return Err(refused(path, "is a directory; name the files in it"));
        }
        let format = match options.format {
            FileFormat::Auto => detect(path)?,
            given => given,
        };
        let kind = match format {
            FileFormat::Parquet => Kind::Parquet(ParquetFile::open(path)?),
            FileFormat::Arrow => Kind::Arrow(IpcFile::open(path)?),
            FileFormat::Tbl => Kind::Text { tbl: true },
            FileFormat::Csv | FileFormat::Auto => Kind::Text { tbl: false },
        };
        Ok(Input {
            path: path.to_owned(),
            bytes: metadata.len(),
            kind,
        })
    }

    fn rows(&self) -> Option<u64> {
        match &self.kind {
            Kind::Parquet(file) => Some(file.rows()),
            _ => None,
        }
    }

    /// The schema that the file has or suggests.
    fn infer(&self, options: &ImportOptions) -> Result<arrow::datatypes::Schema, Error> {
        match &self.kind {
            Kind::Parquet(file) => Ok(file.schema().as_ref().clone()),
            Kind::Arrow(file) => Ok(file.schema().as_ref().clone()),
            Kind::Text { tbl } => Ok(sniff::sniff(&self.path, *tbl, options, None)?.schema),
        }
    }

    fn pieces(
        self,
        definition: &Arc<Definition>,
        options: &ImportOptions,
    ) -> Result<Pieces, Error> {
        match self.kind {
            Kind::Parquet(file) => Ok(Box::new(file.pieces(definition)?.map(Ok))),
            Kind::Arrow(file) => Ok(Box::new(file.pieces(definition)?)),
            Kind::Text { tbl } => {
                let layout = layout(&self.path, tbl, definition, options)?;
                match layout {
                    Some(layout) => Ok(Box::new(text::pieces(&self.path, layout, definition)?)),
                    None => Ok(Box::new(std::iter::empty())),
                }
            }
        }
    }
}

/// How a text file is laid out; none for an empty one, which has no rows.
fn layout(
    path: &Path,
    tbl: bool,
    definition: &Definition,
    options: &ImportOptions,
) -> Result<Option<Layout>, Error> {
    let names: Vec<&str> = definition
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    // A table whose columns were named by place has no header to be recognised by those names.
    let layout = match options.header {
        Header::Auto
            if names
                .iter()
                .enumerate()
                .all(|(at, name)| *name == format!("column_{}", at + 1)) =>
        {
            let known = ImportOptions {
                header: Header::No,
                ..options.clone()
            };
            sniff::sniff(path, tbl, &known, Some(&names))?.layout
        }
        _ => sniff::sniff(path, tbl, options, Some(&names))?.layout,
    };
    Ok((layout.fields > 0).then_some(layout))
}

fn detect(path: &Path) -> Result<FileFormat, Error> {
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "parquet" | "pq" => return Ok(FileFormat::Parquet),
        "csv" | "tsv" | "txt" => return Ok(FileFormat::Csv),
        "tbl" => return Ok(FileFormat::Tbl),
        "arrow" | "arrows" | "feather" | "ipc" => return Ok(FileFormat::Arrow),
        "gz" | "zst" | "bz2" | "xz" | "zip" => {
            return Err(refused(
                path,
                "is compressed as a whole, which is not read; decompress it first",
            ));
        }
        _ => {}
    }
    let mut start = [0; 6];
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut read = Vec::new();
    file.take(start.len() as u64)
        .read_to_end(&mut read)
        .map_err(|error| unreadable(path, &error))?;
    start[..read.len()].copy_from_slice(&read);
    Ok(match start {
        [b'P', b'A', b'R', b'1', ..] => FileFormat::Parquet,
        [b'A', b'R', b'R', b'O', b'W', b'1'] | [0xff, 0xff, 0xff, 0xff, ..] => FileFormat::Arrow,
        _ => FileFormat::Csv,
    })
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::Input {
        path: path.to_owned(),
        line: None,
        reason: reason.to_owned(),
    }
}

/// A file that the operating system does not let us read.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check its permissions",
        io::ErrorKind::InvalidData => "correct the file",
        _ => "check the file and its disk",
    };
    refused(path, &format!("cannot be read: {error}; {advice}"))
}
