//! `atoll import`

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use atoll::{Database, Existing, FileOptions, ImportOptions, ImportReport};

use crate::args::{Compression, FileFormat, Header, Hive, Import};
use crate::progress::Display;
use crate::{Failure, opened, out, store, units};

/// Runs the command.
pub fn run(args: &Import) -> Result<(), Failure> {
    let options = options(args)?;
    let existed = args.store.exists();
    let resources = store::options(&args.resources, false);
    let database = opened::waiting(args.waiting.time(), || {
        Database::open_or_create(&args.store, &resources)
    })?;
    crate::pages::tell(&database.recovery().dropped);
    let display = Display::new();
    let report = atoll::import(&database, &args.table, &args.file, &options, &display);
    display.finish();
    let closed = database.close();
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            // A store that was made for a failed import holds nothing.
            if !existed {
                store::remove(&args.store);
            }
            return Err(error.into());
        }
    };
    closed?;
    tell(args, &report)
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
    options.foreign_keys = args.foreign_key.clone();
    options.files = files(args);
    options.files.check().map_err(atoll::Error::from)?;
    options.existing = match (args.append, args.replace) {
        (true, _) => Existing::Append,
        (_, true) => Existing::Replace,
        _ => Existing::Refuse,
    };
    Ok(options)
}

/// How the files are laid out, as far as the command says.
fn files(args: &Import) -> FileOptions {
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
        hive: match args.hive {
            Hive::Auto => None,
            Hive::Yes => Some(true),
            Hive::No => Some(false),
        },
        ..FileOptions::default()
    }
}

/// DDL, or the contents of the file that is named: DDL has white space or parentheses, and a file
/// of that name would exist.
fn schema(text: &str) -> anyhow::Result<String> {
    let ddl = text.contains(['(', ' ', '\n']);
    if ddl && !Path::new(text).is_file() {
        return Ok(text.to_owned());
    }
    std::fs::read_to_string(text).with_context(|| {
        format!("--schema {text:?} is neither a list of columns nor a file that can be read; write --schema \"a int, b text\"")
    })
}
