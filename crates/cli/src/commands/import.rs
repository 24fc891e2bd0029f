//! `atoll import`

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use atoll::{Database, Existing, FileOptions, ImportOptions, ImportReport};
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::options::arrays::ArrayOptions;
use crate::options::resources::{self, Governing, Resources};
use crate::options::waiting::Waiting;
use crate::store::{current, files};
use crate::terminal::out;
use crate::terminal::progress::Display;
use crate::transfer::{self, Incoming};
use crate::units;

/// `atoll import`
#[derive(Args, Debug)]
pub struct Import {
    /// The store; created when absent
    pub store: PathBuf,
    /// The table, or the array
    pub table: String,
    /// Files, loaded in this order: paths, patterns such as 'data/*.csv.gz', folders of folders key=value, or - for
    /// standard input; compressed with gzip, zstd or bzip2 or not. An NPY, NPZ, HDF5 or NetCDF file or a Zarr folder makes an array
    #[arg(required = true)]
    pub file: Vec<PathBuf>,
    /// `create table ...` or its list of columns, or a file that holds it [default: inferred]
    #[arg(long, value_name = "DDL|FILE")]
    pub schema: Option<String>,
    /// Columns of the primary key
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub primary_key: Vec<String>,
    /// Keys are declared only, and nobody looks whether they are unique: for rows that are known to be
    #[arg(long)]
    pub declare_keys: bool,
    /// A foreign key, which is declared only, such as "l_orderkey=orders(o_orderkey)"; may be given several times
    #[arg(long, value_name = "COLUMNS=PARENT(COLUMNS)", value_parser = parse_reference)]
    pub foreign_key: Vec<atoll::Reference>,
    /// The files' format
    #[arg(long, value_enum, default_value_t = FileFormat::Auto)]
    pub format: FileFormat,
    /// CSV: what separates two fields, one character, or \t [default: found out]
    #[arg(long, value_name = "CHAR", value_parser = parse_character)]
    pub delimiter: Option<u8>,
    /// CSV: what encloses fields that hold delimiters or line ends; '' for nothing [default: "]
    #[arg(long, value_name = "CHAR", value_parser = parse_quote)]
    pub quote: Option<Quote>,
    /// CSV: within quotes, what follows this character is nothing but itself; a doubled quote always is
    #[arg(long, value_name = "CHAR", value_parser = parse_character)]
    pub escape: Option<u8>,
    /// CSV: whether files start with a line of column names
    #[arg(long, value_enum, default_value_t = Header::Auto)]
    pub header: Header,
    /// CSV: a text that stands for NULL; may be given several times [default: an empty field]
    #[arg(long, value_name = "TEXT")]
    pub null: Vec<String>,
    /// CSV: how dates are written, such as dd.mm.yyyy [default: yyyy-mm-dd]
    #[arg(long, value_name = "FORM")]
    pub date_format: Option<atoll::DateForm>,
    /// How the files are compressed
    #[arg(long, value_enum, default_value_t = Compression::Auto)]
    pub compression: Compression,
    /// Store pages as they are, not compressed: for a store that is read with --mapped
    #[arg(long)]
    pub uncompressed: bool,
    /// Whether folders key=value on the way to the files are columns
    #[arg(long, value_enum, default_value_t = Hive::Auto)]
    pub hive: Hive,
    /// Add the rows to the table if it exists
    #[arg(long, conflicts_with = "replace")]
    pub append: bool,
    /// Put the rows in the place of the table, or of the array, if it exists
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub array: ArrayOptions,
    #[command(flatten)]
    pub resources: Resources,
    #[command(flatten)]
    pub waiting: Waiting,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// The format of files to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// By the file's name, else by its first bytes
    Auto,
    /// Apache Parquet
    Parquet,
    /// Text with a delimiter
    Csv,
    /// TPC-H tbl
    Tbl,
    /// JSON: objects, one after the other or in one array
    Json,
    /// Arrow IPC file or stream
    Arrow,
}

/// What encloses fields of CSV files, if anything does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote(pub Option<u8>);

/// How files to import are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// By the file's first bytes
    Auto,
    /// Not at all
    None,
    /// gzip
    Gzip,
    /// Zstandard
    Zstd,
    /// bzip2
    Bzip2,
}

/// Whether folders are columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hive {
    /// If all files of a pattern or folder lie in folders of the same keys
    Auto,
    /// They are
    Yes,
    /// They are not
    No,
}

/// Whether there is a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Header {
    /// There is one
    Yes,
    /// There is none
    No,
    /// If the first line looks like one
    Auto,
}

/// Runs the command.
pub fn run(args: &Import) -> Result<(), Failure> {
    if let Some(file) = array_file(args)? {
        return import_array(args, file);
    }
    let options = options(args)?;
    let existed = args.store.exists();
    let mut resources = resources::options(&args.resources, false);
    resources.compress = !args.uncompressed;
    let database = current::waiting(args.waiting.time(), || {
        Database::open_or_create(&args.store, &resources)
    })?;
    files::tell_dropped(&database.recovery().dropped);
    let display = Display::new();
    let report = atoll::import(&database, &args.table, &args.file, &options, &display);
    display.finish();
    let closed = database.close();
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            // A store that was made for a failed import is empty.
            if !existed {
                files::remove(&args.store);
            }
            return Err(error.into());
        }
    };
    closed?;
    tell(args, &report)
}

/// The file that makes an array; none if the files make a table. What they are decides, not the options.
///
/// # Errors
/// If there are other files beside it, or an option is given that is for the other kind.
fn array_file(args: &Import) -> anyhow::Result<Option<&Path>> {
    let is_array = |file: &&PathBuf| arrayfile::Format::holds_arrays(file);
    let Some(file) = args.file.iter().find(is_array) else {
        if let Some(option) = args.array.given() {
            bail!(
                "{option} is for arrays, of NPY, NPZ, Zarr, HDF5 and NetCDF; {} makes a table",
                args.file[0].display()
            );
        }
        return Ok(None);
    };
    if args.file.len() > 1 {
        bail!(
            "{} holds an array, and an array is made of one file: import it by itself",
            file.display()
        );
    }
    if let Some(option) = option_of_tables(args) {
        bail!("{option} is for tables; {} makes an array", file.display());
    }
    Ok(Some(file))
}

/// The first option that was given and is for tables only.
fn option_of_tables(args: &Import) -> Option<&'static str> {
    let all = [
        (args.schema.is_some(), "--schema"),
        (!args.primary_key.is_empty(), "--primary-key"),
        (!args.foreign_key.is_empty(), "--foreign-key"),
        (args.format != FileFormat::Auto, "--format"),
        (args.delimiter.is_some(), "--delimiter"),
        (args.quote.is_some(), "--quote"),
        (args.escape.is_some(), "--escape"),
        (args.header != Header::Auto, "--header"),
        (!args.null.is_empty(), "--null"),
        (args.date_format.is_some(), "--date-format"),
        (args.compression != Compression::Auto, "--compression"),
        (args.uncompressed, "--uncompressed"),
        (args.hive != Hive::Auto, "--hive"),
        (args.append, "--append"),
        (args.waiting.wait.is_some(), "--wait"),
        (args.resources.govern != Governing::Auto, "--govern"),
    ];
    all.into_iter()
        .find(|(given, _)| *given)
        .map(|(_, name)| name)
}

fn import_array(args: &Import, file: &Path) -> Result<(), Failure> {
    let of = &args.array;
    let compression = of.compress.map_or(array::Compression::None, Into::into);
    transfer::import(&Incoming {
        store: &args.store,
        name: &args.table,
        file,
        options: arrayfile::ImportOptions {
            member: of.member.clone(),
            attribute: of.attribute.clone(),
            dimensions: of.dims.clone(),
            chunk: of.chunk.clone().map(|of| of.0),
            compression,
            replace: args.replace,
            times: of.times.map_or_else(Default::default, Into::into),
        },
        page_size: None,
        compute: &args.resources.compute,
        json: args.json,
    })
}

fn tell(args: &Import, report: &ImportReport) -> Result<(), Failure> {
    let mut out = out::stdout();
    if args.json {
        let object = serde_json::json!({
            "store": args.store.display().to_string(),
            "table": args.table,
            "rows": report.rows,
            "bytes": report.bytes,
            "seconds": report.seconds,
        });
        writeln!(out, "{object}")?;
    } else {
        let (rows, size) = (units::count(report.rows), units::bytes(report.bytes));
        let took = units::seconds(report.seconds);
        writeln!(out, "{}: {rows} rows from {size} in {took}", args.table)?;
    }
    Ok(out.flush()?)
}

fn options(args: &Import) -> Result<ImportOptions, Failure> {
    let mut options = ImportOptions::default();
    options.schema = args.schema.as_deref().map(schema).transpose()?;
    options.primary_key = args.primary_key.clone();
    options.declare_keys = args.declare_keys;
    options.foreign_keys = args.foreign_key.clone();
    options.files = file_options(args);
    options.files.check().map_err(atoll::Error::from)?;
    options.existing = match (args.append, args.replace) {
        (true, _) => Existing::Append,
        (_, true) => Existing::Replace,
        _ => Existing::Refuse,
    };
    Ok(options)
}

/// The layout of the files, as far as the command line gives it.
fn file_options(args: &Import) -> FileOptions {
    FileOptions {
        format: match args.format {
            FileFormat::Auto => None,
            FileFormat::Parquet => Some(atoll::FileFormat::Parquet),
            FileFormat::Csv => Some(atoll::FileFormat::Csv),
            FileFormat::Tbl => Some(atoll::FileFormat::Tbl),
            FileFormat::Json => Some(atoll::FileFormat::Json),
            FileFormat::Arrow => Some(atoll::FileFormat::Arrow),
        },
        compression: match args.compression {
            Compression::Auto => None,
            Compression::None => Some(atoll::Compression::None),
            Compression::Gzip => Some(atoll::Compression::Gzip),
            Compression::Zstd => Some(atoll::Compression::Zstd),
            Compression::Bzip2 => Some(atoll::Compression::Bzip2),
        },
        delimiter: args.delimiter,
        quote: args.quote.map(|quote| quote.0),
        escape: args.escape,
        header: match args.header {
            Header::Auto => None,
            Header::Yes => Some(true),
            Header::No => Some(false),
        },
        nulls: args.null.clone(),
        dates: args.date_format.clone(),
        hive: match args.hive {
            Hive::Auto => None,
            Hive::Yes => Some(true),
            Hive::No => Some(false),
        },
        ..FileOptions::default()
    }
}

/// The DDL of `--schema`: the text itself if it has white space or parentheses and no file has that name, else the
/// contents of the file.
fn schema(text: &str) -> anyhow::Result<String> {
    let ddl = text.contains(['(', ' ', '\n']);
    if ddl && !Path::new(text).is_file() {
        return Ok(text.to_owned());
    }
    std::fs::read_to_string(text).with_context(|| {
        format!("--schema {text:?} is neither a list of columns nor a file that can be read; write --schema \"a int, b text\"")
    })
}

fn parse_character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err("take one ASCII character, or \\t".to_owned()),
    }
}

fn parse_quote(text: &str) -> Result<Quote, String> {
    match text {
        "" => Ok(Quote(None)),
        text => parse_character(text).map(|byte| Quote(Some(byte))),
    }
}

/// `a,b=parent(x,y)`
fn parse_reference(text: &str) -> Result<atoll::Reference, String> {
    let wrong = || "write it as column[,column]=parent(column[,column])".to_owned();
    let names = |list: &str| -> Result<Vec<String>, String> {
        let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            Err(wrong())
        } else {
            Ok(names)
        }
    };
    let (columns, parent) = text.split_once('=').ok_or_else(wrong)?;
    let (parent, of) = parent.split_once('(').ok_or_else(wrong)?;
    let of = of.trim_end().strip_suffix(')').ok_or_else(wrong)?;
    if parent.trim().is_empty() {
        return Err(wrong());
    }
    Ok(atoll::Reference {
        columns: names(columns)?,
        parent: parent.trim().to_owned(),
        parent_columns: names(of)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read() {
        let read = parse_reference("l_partkey, l_suppkey=partsupp(ps_partkey,ps_suppkey)").unwrap();
        assert_eq!(read.columns, ["l_partkey", "l_suppkey"]);
        assert_eq!(
            (read.parent.as_str(), read.parent_columns.len()),
            ("partsupp", 2)
        );
        for wrong in ["", "a", "a=b", "a=b(", "=b(c)", "a=(c)", "a,=b(c)"] {
            assert!(parse_reference(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn delimiters_are_read() {
        assert_eq!(parse_character("\\t"), Ok(b'\t'));
        assert_eq!(parse_character("|"), Ok(b'|'));
        assert!(parse_character("||").is_err() && parse_character("\u{e4}").is_err());
        assert_eq!(
            (parse_quote(""), parse_quote("'")),
            (Ok(Quote(None)), Ok(Quote(Some(b'\''))))
        );
    }
}
