//! Loading files into tables.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll::{Compression, Existing, FileFormat, FileOptions, ImportOptions, Position, Progress};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error::InterfaceError;
use crate::wait::watched;

/// The options of a load, by name; those of `atoll import`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LoadOptions {
    schema: Option<String>,
    primary_key: Vec<String>,
    declare_keys: bool,
    /// Columns, the table that they refer to, its columns.
    foreign_keys: Vec<(Vec<String>, String, Vec<String>)>,
    format: Option<String>,
    delimiter: Option<String>,
    /// An empty text if there are no quotes.
    quote: Option<String>,
    escape: Option<String>,
    header: Option<bool>,
    null: Vec<String>,
    compression: Option<String>,
    hive: Option<bool>,
    append: bool,
    replace: bool,
}

impl LoadOptions {
    fn options(self) -> PyResult<ImportOptions> {
        let wrong = InterfaceError::new_err::<String>;
        let character = |name: &str, text: Option<String>| match text.as_deref().map(str::as_bytes)
        {
            None => Ok(None),
            Some([byte]) => Ok(Some(*byte)),
            Some(_) => Err(wrong(format!("{name}: give one ASCII character"))),
        };
        let format = match &self.format {
            None => None,
            Some(name) => {
                let known = FileFormat::named(name);
                Some(known.ok_or_else(|| {
                    wrong(format!(
                        "no format {name:?}: there are parquet, csv, tbl, json and arrow"
                    ))
                })?)
            }
        };
        let compression = match &self.compression {
            None => None,
            Some(name) => Some(Compression::named(name).map_err(|e| wrong(e.to_string()))?),
        };
        let quote = match self.quote.as_deref() {
            Some("") => Some(None),
            _ => character("quote", self.quote)?.map(Some),
        };
        let mut options = ImportOptions::default();
        options.schema = self.schema;
        options.primary_key = self.primary_key;
        options.declare_keys = self.declare_keys;
        let references = self.foreign_keys.into_iter();
        options.foreign_keys = references
            .map(|(columns, parent, parent_columns)| atoll::Reference {
                columns,
                parent,
                parent_columns,
            })
            .collect();
        options.files = FileOptions {
            format,
            compression,
            delimiter: character("delimiter", self.delimiter)?,
            quote,
            escape: character("escape", self.escape)?,
            header: self.header,
            nulls: self.null,
            hive: self.hive,
            ..FileOptions::default()
        };
        options.files.check().map_err(|e| wrong(e.to_string()))?;
        options.existing = match (self.append, self.replace) {
            (true, true) => return Err(wrong("append and replace exclude each other".into())),
            (true, _) => Existing::Append,
            (_, true) => Existing::Replace,
            _ => Existing::Refuse,
        };
        Ok(options)
    }
}

/// Tells Python how far a load has come, and stops it.
struct Watch<'a> {
    stop: &'a AtomicBool,
    tell: Option<&'a Py<PyAny>>,
    /// What the one who is told has raised.
    raised: Mutex<Option<PyErr>>,
}

impl Progress for Watch<'_> {
    fn update(&self, position: &Position) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let Some(tell) = self.tell else {
            return ControlFlow::Continue(());
        };
        let told = Python::attach(|py| tell.call1(py, (position.rows, position.fraction())));
        match told {
            Ok(_) => ControlFlow::Continue(()),
            Err(raised) => {
                *self.raised.lock() = Some(raised);
                ControlFlow::Break(())
            }
        }
    }
}

/// Loads files into a table: rows, bytes of the files, and seconds. `tell` is called with the rows so far and the share
/// that is done, if that is known.
///
/// # Errors
/// Those of the import, of which nothing is kept then; what `tell` raises.
pub(crate) fn load(
    py: Python<'_>,
    database: &atoll::Database,
    table: &str,
    files: &[PathBuf],
    options: LoadOptions,
    tell: Option<&Py<PyAny>>,
) -> PyResult<(u64, u64, f64)> {
    let options = options.options()?;
    let stop = AtomicBool::new(false);
    let watch = Watch {
        stop: &stop,
        tell,
        raised: Mutex::new(None),
    };
    let loaded = watched(
        py,
        || stop.store(true, Ordering::Relaxed),
        || atoll::import(database, table, files, &options, &watch),
    );
    match watch.raised.into_inner() {
        Some(raised) => Err(raised),
        None => loaded.map(|report| (report.rows, report.bytes, report.seconds)),
    }
}
