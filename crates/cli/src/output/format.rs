//! The formats that results are written in.

use std::path::Path;

use anyhow::bail;
use atoll::Compression;
use clap::ValueEnum;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects
    Json,
    /// Arrow IPC: a stream; to a file, the file format unless its extension is .arrows
    Arrow,
    /// A Parquet file
    Parquet,
}

/// Refuses the name of a compressed file: results are written as they are.
///
/// # Errors
/// If the name ends in a compression.
pub fn refuse_compressed(path: &Path) -> anyhow::Result<()> {
    let compressed = match Compression::to_write(&path.to_string_lossy()) {
        Ok(compression) => compression != Compression::None,
        Err(_) => true,
    };
    if compressed {
        bail!(
            "cannot write {}: results are not compressed; leave the compression out of the name, or use `copy (query) to '{}'`",
            path.display(),
            path.with_extension("gz").display()
        );
    }
    Ok(())
}

/// The format that a file's extension stands for; `None` if it stands for none.
///
/// # Errors
/// If the extension stands for a format that is not written.
pub fn of(path: &Path) -> anyhow::Result<Option<Format>> {
    let end = path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    Ok(match end.as_str() {
        "csv" => Some(Format::Csv),
        "json" => Some(Format::Json),
        "arrow" | "arrows" | "ipc" | "feather" => Some(Format::Arrow),
        "parquet" | "pq" => Some(Format::Parquet),
        "tsv" | "jsonl" | "ndjson" | "orc" | "avro" | "xlsx" => {
            let formats: Vec<_> = Format::value_variants()
                .iter()
                .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
                .collect();
            bail!(
                "cannot write {}: .{end} is no format of results; name the file .csv, .json, .arrow or .parquet, or choose with --format {}",
                path.display(),
                formats.join("|")
            )
        }
        _ => None,
    })
}
