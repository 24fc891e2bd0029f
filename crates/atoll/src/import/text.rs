//! CSV and TPC-H `.tbl` files: stretches of whole records are pieces.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::Array;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Decoder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use table::Definition;

use super::columns::{self, Mapping};
use super::pipeline::{Batches, Piece};
use super::records::{Chunk, Chunks, Dialect, records};
use crate::Error;

/// Rows parsed at a time.
const BATCH_ROWS: usize = 8192;

/// How to read a text file, with everything that was to be found out found out.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// How values are separated.
    pub dialect: Dialect,
    /// The names in the first line, if it holds names.
    pub header: Option<Vec<String>>,
    /// Fields of the first record, the empty one after a trailing delimiter left out.
    pub fields: usize,
    /// The text that stands for NULL; an empty field where there is none.
    pub null: Option<String>,
}

/// What the pieces of a file share.
struct Opened {
    path: PathBuf,
    layout: Layout,
    /// The file's columns, all nullable.
    schema: SchemaRef,
    /// The file's columns without the empty one at the end.
    kept: Vec<usize>,
    mapping: Mapping,
    definition: Arc<Definition>,
    /// Compiled from [`Layout::null`].
    null: Option<regex::Regex>,
}

/// The records of the file at `path`, to be stored in a table of this definition.
pub(crate) fn pieces(
    path: &Path,
    layout: Layout,
    definition: &Arc<Definition>,
) -> Result<impl Iterator<Item = Result<Piece, Error>> + Send + use<>, Error> {
    let file = File::open(path).map_err(|error| super::unreadable(path, &error))?;
    let chunks = Chunks::new(file, layout.dialect);
    let opened = Arc::new(open(path, layout, definition)?);
    let mut first = opened.layout.header.is_some();
    Ok(chunks.map(move |chunk| {
        let chunk = chunk.map_err(|error| super::unreadable(&opened.path, &error))?;
        let (opened, header) = (Arc::clone(&opened), std::mem::take(&mut first));
        let bytes = chunk.text.len() as u64;
        let read = move || Ok(Box::new(Parsing::new(opened, chunk, header)) as Batches);
        Ok(Piece {
            rows: None,
            bytes,
            read: Box::new(read),
        })
    }))
}

fn open(path: &Path, layout: Layout, definition: &Arc<Definition>) -> Result<Opened, Error> {
    let mapping = match &layout.header {
        Some(names) => columns::by_name(path, definition, names.iter().map(String::as_str))?,
        None => columns::by_place(path, definition, layout.fields)?,
    };
    let mut fields = vec![Field::new("", DataType::Null, true); layout.fields];
    for (at, column) in mapping.iter().zip(&definition.columns) {
        fields[*at] = Field::new(&column.name, parsed_as(&column.data_type), true);
    }
    let kept = (0..fields.len()).collect();
    if layout.dialect.trailing {
        fields.push(Field::new(
            "after the last delimiter",
            DataType::Utf8View,
            true,
        ));
    }
    let null = layout
        .null
        .as_ref()
        .map(|text| regex::Regex::new(&format!("^{}$", regex::escape(text))));
    let null = null.transpose().map_err(|error| Error::Input {
        path: path.to_owned(),
        line: None,
        reason: format!("the text for NULL is too long ({error}); give a shorter one"),
    })?;
    let (schema, definition) = (Arc::new(Schema::new(fields)), Arc::clone(definition));
    Ok(Opened {
        path: path.to_owned(),
        layout,
        schema,
        kept,
        mapping,
        definition,
        null,
    })
}

/// The type a column is parsed as; what the parser does not know is read as text and cast.
fn parsed_as(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Boolean
        | DataType::Date32
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => data_type.clone(),
        number if number.is_integer() || number.is_floating() => number.clone(),
        _ => DataType::Utf8View,
    }
}

/// A chunk that is being parsed.
struct Parsing {
    opened: Arc<Opened>,
    decoder: Decoder,
    chunk: Chunk,
    header: bool,
    /// Bytes of the chunk consumed.
    at: usize,
    /// Records returned.
    records: usize,
    failed: bool,
}

impl Parsing {
    fn new(opened: Arc<Opened>, chunk: Chunk, header: bool) -> Parsing {
        let dialect = opened.layout.dialect;
        let mut builder = ReaderBuilder::new(Arc::clone(&opened.schema))
            .with_header(header)
            .with_delimiter(dialect.delimiter)
            // No text file has this byte, so nothing is taken for a quote.
            .with_quote(dialect.quote.unwrap_or(0))
            .with_projection(opened.kept.clone())
            .with_batch_size(BATCH_ROWS);
        if let Some(null) = &opened.null {
            builder = builder.with_null_regex(null.clone());
        }
        let decoder = builder.build_decoder();
        Parsing {
            opened,
            decoder,
            chunk,
            header,
            at: 0,
            records: 0,
            failed: false,
        }
    }

    fn parse(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            let used = self
                .decoder
                .decode(&self.chunk.text[self.at..])
                .map_err(|error| self.explain(&error))?;
            self.at += used;
            if used == 0 {
                break;
            }
        }
        let Some(batch) = self.decoder.flush().map_err(|error| self.explain(&error))? else {
            return Ok(None);
        };
        let rows = batch.num_rows();
        let filled = self.fill(batch)?;
        self.records += rows;
        columns::conform(&filled, &self.opened.mapping, &self.opened.definition)
            .map(Some)
            .map_err(|error| {
                let line = self.line_of(self.records - rows);
                let reason =
                    format!("a value in the {rows} rows from this line on does not fit: {error}");
                self.failure(line, reason)
            })
    }

    /// Empty text is text where a column must not be null; anything else missing there is an error.
    fn fill(&self, batch: RecordBatch) -> Result<RecordBatch, Error> {
        let opened = &self.opened;
        let mut arrays = batch.columns().to_vec();
        for (at, column) in opened.mapping.iter().zip(&opened.definition.columns) {
            if column.nullable || arrays[*at].null_count() == 0 {
                continue;
            }
            if opened.null.is_none() {
                arrays[*at] = columns::empty_for_null(&arrays[*at]);
            }
            if let Some(row) = (0..arrays[*at].len()).find(|row| arrays[*at].is_null(*row)) {
                let line = self.line_of(self.records + row);
                let reason = format!(
                    "column {:?} must not be null, but has no value here; fill it in",
                    column.name
                );
                return Err(self.failure(line, reason));
            }
        }
        Ok(RecordBatch::try_new(batch.schema(), arrays)?)
    }

    /// The line, in the file, of the chunk's given record; a header is none.
    fn line_of(&self, record: usize) -> u64 {
        let skipped = record + usize::from(self.header);
        let found = records(&self.chunk.text, self.opened.layout.dialect).nth(skipped);
        self.chunk.line + found.map_or(0, |record| record.line)
    }

    fn failure(&self, line: u64, reason: String) -> Error {
        Error::Input {
            path: self.opened.path.clone(),
            line: Some(line),
            reason,
        }
    }

    /// Says of a parser's error where in the file it is. A wrong number of fields is the usual
    /// cause and is looked for first.
    fn explain(&self, error: &ArrowError) -> Error {
        let (dialect, wanted) = (
            self.opened.layout.dialect,
            self.opened.schema.fields().len(),
        );
        let text = error.to_string();
        if text.contains("incorrect number of fields") {
            let wrong = records(&self.chunk.text, dialect).find(|record| record.fields != wanted);
            if let Some(record) = wrong {
                let trailing = usize::from(dialect.trailing);
                let (got, wanted) = (record.fields.saturating_sub(trailing), wanted - trailing);
                let few = if got < wanted { "too few" } else { "too many" };
                let reason = format!(
                    "{few} fields: {got} instead of {wanted}; correct the line or check --delimiter"
                );
                return self.failure(self.chunk.line + record.line, reason);
            }
        }
        // "Error while parsing value 'x' as type 'Int64' for column 2 at line 7. Row data: ..."
        let parsed = text.split_once(" at line ").and_then(|(what, rest)| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            Some((what, digits.parse::<usize>().ok()?))
        });
        match parsed {
            Some((what, record)) => {
                let what = what
                    .trim_start_matches("Parser error: ")
                    .replace("Error while parsing", "cannot read");
                let line = self.line_of(record - usize::from(self.header).min(record));
                self.failure(
                    line,
                    format!("{what}; correct it, or declare the column's type with --schema"),
                )
            }
            None => {
                let line = self.line_of(self.records);
                self.failure(
                    line,
                    format!("at or after this line: {text}; correct the file"),
                )
            }
        }
    }
}

impl Iterator for Parsing {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let parsed = self.parse();
        self.failed = parsed.is_err();
        parsed.transpose()
    }
}
