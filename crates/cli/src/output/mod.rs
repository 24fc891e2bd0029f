//! Results as text or files.

mod json;
mod table;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use arrow::array::Array;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll::Answer;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::args::Format;
use crate::{out, units};

/// How values look as text: NULL as nothing, an error of a value in its place.
pub(crate) static TEXT: FormatOptions<'static> =
    FormatOptions::new().with_null("").with_display_error(true);

/// Where results go and how they look.
pub struct Sink {
    out: Box<dyn Write + Send>,
    format: Format,
    json: bool,
    /// Most rows of a table that are shown; the others are counted.
    most: Option<usize>,
    results: usize,
}

impl Sink {
    /// Results to `path`, or to standard output.
    ///
    /// # Errors
    /// Where the file cannot be created.
    pub fn new(
        path: Option<&Path>,
        format: Format,
        json: bool,
        most: Option<usize>,
    ) -> anyhow::Result<Sink> {
        let out: Box<dyn Write + Send> = match path {
            Some(path) => {
                let file = File::create(path).with_context(|| {
                    format!(
                        "cannot write {}; check the folder and its permissions",
                        path.display()
                    )
                })?;
                Box::new(BufWriter::with_capacity(64 << 10, file))
            }
            None => Box::new(out::stdout()),
        };
        Ok(Sink {
            out,
            format,
            json,
            most,
            results: 0,
        })
    }

    /// Writes the answer to one statement.
    ///
    /// # Errors
    /// Where the output cannot be written or does not know a type.
    pub fn write(&mut self, answer: &Answer) -> anyhow::Result<()> {
        let rows = !answer.schema.fields().is_empty();
        match (self.json, rows) {
            (true, _) => json::object(&mut self.out, answer)?,
            (false, true) => self.write_rows(answer)?,
            (false, false) => self.write_change(answer)?,
        }
        Ok(self.out.flush()?)
    }

    /// Writes the failure of one statement, where results are JSON; says whether it did.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn write_error(&mut self, message: &str) -> anyhow::Result<bool> {
        if self.json {
            writeln!(self.out, "{}", serde_json::json!({ "error": message }))?;
            self.out.flush()?;
        }
        Ok(self.json)
    }

    /// A statement without a result: only people want to hear of it.
    fn write_change(&mut self, answer: &Answer) -> anyhow::Result<()> {
        if self.format == Format::Table {
            match answer.changed {
                Some(1) => writeln!(self.out, "1 row changed")?,
                Some(rows) => writeln!(self.out, "{} rows changed", units::count(rows))?,
                None => writeln!(self.out, "done")?,
            }
        }
        Ok(())
    }

    fn write_rows(&mut self, answer: &Answer) -> anyhow::Result<()> {
        let single = matches!(self.format, Format::Arrow | Format::Parquet);
        if single && self.results > 0 {
            anyhow::bail!("a file of this format holds one result; run one query at a time");
        }
        self.results += 1;
        match self.format {
            Format::Table => table::write(&mut self.out, answer, self.most),
            Format::Csv => csv(&mut self.out, &answer.schema, answer),
            Format::Json => json::array(&mut self.out, answer),
            Format::Arrow => {
                let mut writer = StreamWriter::try_new(&mut self.out, &answer.schema)?;
                answer
                    .batches
                    .iter()
                    .try_for_each(|batch| writer.write(batch))?;
                Ok(writer.finish()?)
            }
            Format::Parquet => {
                let compression = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder()
                    .set_compression(compression)
                    .build();
                let mut writer =
                    ArrowWriter::try_new(&mut self.out, answer.schema.clone(), Some(properties))?;
                answer
                    .batches
                    .iter()
                    .try_for_each(|batch| writer.write(batch))?;
                writer.close()?;
                Ok(())
            }
        }
    }
}

/// Comma-separated values: a header, then a line per row; NULL is an empty field, empty text `""`.
fn csv(out: &mut dyn Write, schema: &SchemaRef, answer: &Answer) -> anyhow::Result<()> {
    let names: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| quoted(field.name()))
        .collect();
    writeln!(out, "{}", names.join(","))?;
    for batch in &answer.batches {
        let columns = batch
            .columns()
            .iter()
            .map(|array| ArrayFormatter::try_new(array, &TEXT));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    out.write_all(b",")?;
                }
                if batch.column(at).is_valid(row) {
                    out.write_all(quoted(&column.value(row).try_to_string()?).as_bytes())?;
                }
            }
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// A field of a CSV file, in quotes where it needs them.
fn quoted(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}
