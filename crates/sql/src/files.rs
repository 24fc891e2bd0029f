//! Files as tables: `select ... from 'file.parquet'`, and the readers of `copy ... from`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::plan_err;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use futures::{TryStreamExt, stream};

use crate::cuts::{self, Dialect};
use crate::parse::FileOptions;
use crate::{Error, Result};

/// Extensions that make a quoted table name a file, and the format each stands for.
const EXTENSIONS: [(&str, &str); 11] = [
    ("parquet", "parquet"),
    ("csv", "csv"),
    ("tsv", "csv"),
    ("tbl", "csv"),
    ("json", "json"),
    ("ndjson", "json"),
    ("jsonl", "json"),
    ("arrow", "arrow"),
    ("ipc", "arrow"),
    ("feather", "arrow"),
    ("pq", "parquet"),
];
/// Rows of a CSV or JSON file that are looked at to find the types of its columns.
const INFERENCE_ROWS: usize = 100_000;

/// Whether a table name that no table has is meant as the path of a file.
pub(crate) fn looks_like_file(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || format_of(name).is_some()
}

/// The format that the extension of `path` stands for.
pub(crate) fn format_of(path: &str) -> Option<&'static str> {
    let extension = Path::new(path).extension()?.to_str()?.to_lowercase();
    EXTENSIONS
        .iter()
        .find(|(known, _)| *known == extension)
        .map(|(_, format)| *format)
}

/// The format that a statement asks for, or else the one of the file's extension.
pub(crate) fn format_for(path: &str, options: &FileOptions) -> Result<&'static str> {
    match &options.format {
        Some(wanted) => EXTENSIONS
            .iter()
            .find(|(known, _)| known == wanted)
            .map(|(_, format)| *format)
            .ok_or_else(|| unknown_format(wanted)),
        None => format_of(path).ok_or_else(|| Error::File {
            path: path.into(),
            message:
                "its extension does not tell the format; add `(format parquet|csv|json|arrow)`"
                    .into(),
        }),
    }
}

/// The error for a format that is none of ours.
pub(crate) fn unknown_format(name: &str) -> Error {
    Error::unsupported(format!(
        "no file format \"{name}\"; there are parquet, csv, json and arrow"
    ))
}

/// The file, or the files of the pattern, as a table whose columns are found in the files.
pub(crate) async fn open(state: &SessionState, path: &str) -> Result<Arc<dyn TableProvider>> {
    open_as(state, path, &FileOptions::default(), None).await
}

/// The same, laid out as `options` say, with the columns `schema` if given.
pub(crate) async fn open_as(
    state: &SessionState,
    path: &str,
    options: &FileOptions,
    schema: Option<SchemaRef>,
) -> Result<Arc<dyn TableProvider>> {
    let format = reader(path, options)?;
    let failed = |message: String| Error::File {
        path: path.into(),
        message,
    };
    check_there(path)?;
    let url = ListingTableUrl::parse(path).map_err(|e| failed(Error::from(e).to_string()))?;
    let listing = ListingOptions::new(format).with_file_extension("");
    let schema = match schema {
        Some(schema) => schema,
        None => {
            let text = format_for(path, options)? == "csv" && url.scheme() == "file";
            let inferred = match text {
                true => columns(state, path, &url, &csv(path, options)).await,
                false => listing.infer_schema(state, &url).await,
            };
            inferred
                .map_err(|e| failed(unreadable(path, options, e)))
                .map(plain)?
        }
    };
    if schema.fields().is_empty() {
        return Err(failed("has no columns".into()));
    }
    let config = ListingTableConfig::new(url)
        .with_listing_options(listing)
        .with_schema(schema);
    let table = ListingTable::try_new(config).map_err(|e| failed(Error::from(e).to_string()))?;
    Ok(Arc::new(table))
}

/// The columns of files of CSV. DataFusion's own search for them cuts files where line breaks are in values, too.
async fn columns(
    state: &SessionState,
    given: &str,
    url: &ListingTableUrl,
    format: &CsvFormat,
) -> datafusion::error::Result<SchemaRef> {
    let paths = match is_pattern(given) {
        true => {
            let store = state.runtime_env().object_store(url)?;
            let found = url.list_all_files(state, store.as_ref(), "").await?;
            let found: Vec<_> = found.try_collect().await?;
            if found.is_empty() {
                return plan_err!("no file is there");
            }
            let full = found.iter().filter(|file| file.size > 0);
            let absolute = full.map(|file| Path::new("/").join(file.location.as_ref()));
            absolute.collect()
        }
        false => vec![PathBuf::from(given)],
    };
    let dialect = Dialect {
        delimiter: format.delimiter(),
        quote: format.quote(),
        escape: format.options().escape,
    };
    let (mut schemas, mut left) = (vec![], INFERENCE_ROWS);
    for path in paths {
        let named = |e| match is_pattern(given) {
            true => DataFusionError::Context(path.display().to_string(), Box::new(e)),
            false => e,
        };
        let records = cuts::records(&path, dialect).map_err(|e| named(e.into()))?;
        let records = stream::iter(records.map(|some| Ok(some?)));
        let found = format.infer_schema_from_stream(state, left, records);
        let (schema, rows) = found.await.map_err(named)?;
        schemas.push(schema);
        left -= rows.min(left);
        if left == 0 {
            break;
        }
    }
    Ok(Arc::new(Schema::try_merge(schemas)?))
}

/// The columns with texts as views, however the file has them: by code of a dictionary, or with wide offsets.
fn plain(schema: SchemaRef) -> SchemaRef {
    fn plain_type(data: &DataType) -> DataType {
        match data {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Dictionary(_, values) => plain_type(values),
            other => other.clone(),
        }
    }
    let plain_field = |field: &FieldRef| {
        let data = plain_type(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data))
    };
    let fields: Fields = schema.fields().iter().map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Why the columns of a file could not be read.
fn unreadable(path: &str, options: &FileOptions, e: datafusion::error::DataFusionError) -> String {
    let format = format_for(path, options).unwrap_or("data");
    match Error::from(e) {
        Error::File { message, .. } => message,
        other => format!("cannot be read as {format}: {other}"),
    }
}

/// Whether `path` stands for several files, or for one that is not here.
fn is_pattern(path: &str) -> bool {
    path.contains("://") || path.contains(['*', '?', '['])
}

/// Refuses paths at which there is nothing to read. Patterns are left to the listing.
fn check_there(path: &str) -> Result<()> {
    if is_pattern(path) {
        return Ok(());
    }
    let message = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            "is a directory; name a file, or a pattern such as 'directory/*.parquet'".into()
        }
        Ok(_) => return Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => "no such file".into(),
        Err(e) => e.to_string(),
    };
    Err(Error::File {
        path: path.into(),
        message,
    })
}

fn reader(path: &str, options: &FileOptions) -> Result<Arc<dyn FileFormat>> {
    Ok(match format_for(path, options)? {
        "parquet" => Arc::new(ParquetFormat::default()),
        "arrow" => Arc::new(ArrowFormat),
        "json" => Arc::new(JsonFormat::default().with_schema_infer_max_rec(INFERENCE_ROWS)),
        _ => Arc::new(csv(path, options)),
    })
}

fn csv(path: &str, options: &FileOptions) -> CsvFormat {
    let extension = Path::new(path)
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    let (delimiter, header) = match extension {
        "tsv" => (b'\t', true),
        "tbl" => (b'|', false),
        _ => (b',', true),
    };
    let mut format = CsvFormat::default()
        .with_has_header(options.header.unwrap_or(header))
        .with_delimiter(options.delimiter.unwrap_or(delimiter))
        .with_escape(options.escape)
        // Values may hold line breaks: a file is not cut where one stands.
        .with_newlines_in_values(true)
        .with_schema_infer_max_rec(INFERENCE_ROWS);
    if let Some(quote) = options.quote {
        format = format.with_quote(quote);
    }
    if let Some(null) = &options.null {
        format = format.with_null_regex(Some(format!("^{}$", escape_regex(null))));
    }
    format
}

/// `text` as a regular expression that matches it and nothing else.
fn escape_regex(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        if !c.is_alphanumeric() && c.is_ascii() {
            escaped.push('\\');
        }
        escaped.push(c);
        escaped
    })
}
