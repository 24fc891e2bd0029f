//! Results as text or files.

mod json;
mod table;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll::{Answer, QueryStatistics as Statistics};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::args::Format;
use crate::{out, units};

/// How values look as text: NULL as nothing, an error of a value in its place.
pub(crate) static TEXT: FormatOptions<'static> =
    FormatOptions::new().with_null("").with_display_error(true);

/// Rows of a group of a Parquet file: as many as two stored blocks have. A writer holds one group.
const ROW_GROUP: usize = 131_072;

/// What one statement gives, batch by batch: what is written is not kept.
pub trait Results {
    /// The columns; none of a statement that gives no rows.
    fn schema(&self) -> &SchemaRef;

    /// The next rows; none after the last.
    ///
    /// # Errors
    /// Where the statement fails.
    fn next(&mut self) -> atoll::Result<Option<RecordBatch>>;

    /// Rows that it changed, if that is what it does.
    fn changed(&self) -> Option<u64>;

    /// What it cost; final after the last rows.
    fn statistics(&self) -> Statistics;
}

/// An answer that is there as a whole.
pub struct Whole {
    answer: Answer,
    batches: std::vec::IntoIter<RecordBatch>,
}

impl Whole {
    /// The rows of `answer`.
    pub fn new(mut answer: Answer) -> Whole {
        let batches = std::mem::take(&mut answer.batches).into_iter();
        Whole { answer, batches }
    }
}

impl Results for Whole {
    fn schema(&self) -> &SchemaRef {
        &self.answer.schema
    }

    fn next(&mut self) -> atoll::Result<Option<RecordBatch>> {
        Ok(self.batches.next())
    }

    fn changed(&self) -> Option<u64> {
        self.answer.changed
    }

    fn statistics(&self) -> Statistics {
        self.answer.statistics.clone()
    }
}

/// Where results go and how they look.
pub struct Sink {
    out: Box<dyn Write + Send>,
    format: Format,
    json: bool,
    /// Most rows of a table that are shown; the others are counted.
    most: Option<usize>,
    results: usize,
    /// Whether an object of JSON has begun and not ended.
    begun: bool,
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
            begun: false,
        })
    }

    /// Writes the answer to one statement as it comes.
    ///
    /// # Errors
    /// Where the output cannot be written or does not know a type, and where the statement fails while its rows are
    /// written: those before stay.
    pub fn write(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        let rows = !results.schema().fields().is_empty();
        match (self.json, rows) {
            (true, _) => self.write_object(results)?,
            (false, true) => self.write_rows(results)?,
            (false, false) => self.write_change(results)?,
        }
        Ok(self.out.flush()?)
    }

    /// Writes the failure of one statement, where results are JSON; says whether it did.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn write_error(&mut self, message: &str) -> anyhow::Result<bool> {
        if self.json {
            match std::mem::take(&mut self.begun) {
                true => json::fail(&mut self.out, message)?,
                false => writeln!(self.out, "{}", serde_json::json!({ "error": message }))?,
            }
            self.out.flush()?;
        }
        Ok(self.json)
    }

    /// The answer as one object on one line.
    fn write_object(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        self.begun = true;
        json::object(&mut self.out, results)?;
        self.begun = false;
        Ok(())
    }

    /// A statement without a result: only people want to hear of it.
    fn write_change(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        while results.next()?.is_some() {}
        if self.format == Format::Table {
            match results.changed() {
                Some(1) => writeln!(self.out, "1 row changed")?,
                Some(rows) => writeln!(self.out, "{} rows changed", units::count(rows))?,
                None => writeln!(self.out, "done")?,
            }
        }
        Ok(())
    }

    fn write_rows(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        let single = matches!(self.format, Format::Arrow | Format::Parquet);
        if single && self.results > 0 {
            anyhow::bail!("a file of this format holds one result; run one query at a time");
        }
        self.results += 1;
        match self.format {
            Format::Table => table::write(&mut self.out, results, self.most),
            Format::Csv => csv(&mut self.out, results),
            Format::Json => json::array(&mut self.out, results),
            Format::Arrow => {
                let mut writer = StreamWriter::try_new(&mut self.out, results.schema())?;
                while let Some(batch) = results.next()? {
                    writer.write(&batch)?;
                }
                Ok(writer.finish()?)
            }
            Format::Parquet => {
                let compression = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder()
                    .set_compression(compression)
                    .set_max_row_group_row_count(Some(ROW_GROUP))
                    .build();
                let schema = results.schema().clone();
                let mut writer = ArrowWriter::try_new(&mut self.out, schema, Some(properties))?;
                while let Some(batch) = results.next()? {
                    writer.write(&batch)?;
                }
                writer.close()?;
                Ok(())
            }
        }
    }
}

/// Comma-separated values: a header, then a line per row; NULL is an empty field, empty text `""`.
fn csv(out: &mut dyn Write, results: &mut dyn Results) -> anyhow::Result<()> {
    let fields = results.schema().fields().iter();
    let names: Vec<_> = fields.map(|field| quoted(field.name())).collect();
    writeln!(out, "{}", names.join(","))?;
    while let Some(batch) = results.next()? {
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
