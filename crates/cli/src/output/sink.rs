//! Writes results: to standard output, through a pager, or into a file, in a format.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::output::file::AtomicFile;
use crate::output::format::{self, Format};
use crate::output::results::Results;
use crate::output::table::{self, Style};
use crate::output::{csv, json};
use crate::terminal::out;
use crate::terminal::pager::Paged;
use crate::units;

/// The rows of a row group of a Parquet file: two stored blocks. A writer holds one group in memory.
const ROW_GROUP: usize = 131_072;

/// Where results go, and in which form.
pub struct Sink {
    to: To,
    format: Format,
    json: bool,
    /// The layout of tables on standard output.
    pub style: Style,
    /// The command of the pager, which shows tables that do not fit on the screen.
    pub pager: Option<String>,
    /// The number of results written.
    results: usize,
    /// Whether a JSON object has begun and not ended.
    begun: bool,
}

/// Where results go.
enum To {
    Out(out::Out),
    File(AtomicFile),
}

impl Write for To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            To::Out(out) => out.write(bytes),
            To::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            To::Out(out) => out.flush(),
            To::File(file) => file.flush(),
        }
    }
}

impl Sink {
    /// Results to `path`, or to standard output; without `format` as the path's extension says, or else as tables.
    ///
    /// # Errors
    /// If the file cannot be created, or its format is not written.
    pub fn new(
        path: Option<&Path>,
        format: Option<Format>,
        json: bool,
        style: Style,
    ) -> anyhow::Result<Sink> {
        path.map_or(Ok(()), format::refuse_compressed)?;
        let named = match path {
            Some(path) if format.is_none() && !json => format::of(path)?,
            _ => None,
        };
        let to = match path {
            Some(path) if atoll::is_part(path) => bail!(
                "{} is a store or its log; write the results to another file",
                path.display()
            ),
            Some(path) => To::File(AtomicFile::create(path)?),
            None => To::Out(out::stdout()),
        };
        Ok(Sink {
            to,
            format: format.or(named).unwrap_or(Format::Table),
            json,
            style,
            pager: None,
            results: 0,
            begun: false,
        })
    }

    /// Redirects results: to `path`, in the format of its extension, or to standard output.
    ///
    /// # Errors
    /// Those of [`new`](Sink::new), and those of [`publish`](Sink::publish) for the file so far.
    pub fn redirect(&mut self, path: Option<&Path>) -> anyhow::Result<()> {
        self.publish()?;
        let sink = Sink::new(path, None, false, self.style)?;
        (self.to, self.format, self.json, self.results) = (sink.to, sink.format, sink.json, 0);
        Ok(())
    }

    /// Writes the result of one statement as it comes. If the statement fails, a file keeps nothing of it; what was
    /// written to standard output stays.
    ///
    /// # Errors
    /// If the output cannot be written, or its format has no form for a type, or the statement fails while its rows are
    /// written.
    pub fn write(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        if let To::File(file) = &mut self.to {
            file.mark()?;
        }
        let written = self
            .write_answer(results)
            .and_then(|()| Ok(self.to.flush()?));
        let Err(error) = written else {
            return Ok(());
        };
        if let To::File(file) = &mut self.to
            && !self.begun
        {
            // The first failure is the one to report.
            let _ = file.undo();
        }
        // A statement's own error is reported without the place of the output.
        Err(match &self.to {
            _ if error.is::<atoll::Error>() => error,
            To::File(file) => error.context(format!("cannot write {}", file.path().display())),
            To::Out(_) if error.is::<io::Error>() => {
                error.context("cannot write to standard output")
            }
            To::Out(_) => error,
        })
    }

    /// Completes the file and gives it its name; without this call it is removed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn publish(&mut self) -> anyhow::Result<()> {
        match &mut self.to {
            To::Out(_) => Ok(()),
            To::File(file) => {
                let published = file.publish();
                published.with_context(|| format!("cannot write {}", file.path().display()))
            }
        }
    }

    /// Whether each statement's result is a JSON object, failed ones included.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Writes the error of a statement if results are JSON; returns whether it did.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write_error(&mut self, message: &str) -> anyhow::Result<bool> {
        if self.json {
            if std::mem::take(&mut self.begun) {
                json::fail(&mut self.to, message)?
            } else {
                writeln!(self.to, "{}", serde_json::json!({ "error": message }))?
            }
            self.to.flush()?;
        }
        Ok(self.json)
    }

    fn write_answer(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        let rows = !results.schema().fields().is_empty();
        match (self.json, rows) {
            (true, _) => self.write_object(results),
            (false, true) => self.write_rows(results),
            (false, false) => self.write_change(results),
        }
    }

    /// Writes the answer as one object on one line.
    fn write_object(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        self.begun = true;
        json::object(&mut self.to, results)?;
        self.begun = false;
        Ok(())
    }

    /// Reports a statement without rows, in formats for people only.
    fn write_change(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        while results.next()?.is_some() {}
        if self.format == Format::Table {
            match results.changed() {
                Some(1) => writeln!(self.to, "1 row changed")?,
                Some(rows) => writeln!(self.to, "{} rows changed", units::count(rows))?,
                None => writeln!(self.to, "done")?,
            }
        }
        Ok(())
    }

    fn write_rows(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        let file = match &self.to {
            To::File(file) => Some(file.path()),
            To::Out(_) => None,
        };
        let single = match self.format {
            Format::Table => false,
            Format::Csv | Format::Json => file.is_some(),
            Format::Arrow | Format::Parquet => true,
        };
        if single && self.results > 0 {
            bail!("a file of this format holds one result; run one query at a time");
        }
        // The file format ends with an index of its batches, which readers of a stream do not expect.
        let stream = file.is_none_or(|path| path.extension().is_some_and(|end| end == "arrows"));
        match self.format {
            Format::Table => self.write_table(results)?,
            Format::Csv => csv::write(&mut self.to, results)?,
            Format::Json => json::array(&mut self.to, results)?,
            Format::Arrow if stream => {
                let mut writer = StreamWriter::try_new(&mut self.to, results.schema())?;
                while let Some(batch) = results.next()? {
                    writer.write(&batch)?;
                }
                writer.finish()?;
            }
            Format::Arrow => {
                let mut writer = FileWriter::try_new(&mut self.to, results.schema())?;
                while let Some(batch) = results.next()? {
                    writer.write(&batch)?;
                }
                writer.finish()?;
            }
            Format::Parquet => parquet(&mut self.to, results)?,
        }
        self.results += 1;
        Ok(())
    }

    /// Writes a table: complete in a file, and on the screen as the style says.
    fn write_table(&mut self, results: &mut dyn Results) -> anyhow::Result<()> {
        match (&mut self.to, &self.pager) {
            (To::File(file), _) => table::write(file, results, &Style::default()),
            (To::Out(out), None) => table::write(out, results, &self.style),
            (To::Out(out), Some(pager)) => {
                let mut paged = Paged::new(out, pager);
                let written = table::write(&mut paged, results, &self.style);
                match written {
                    // No failure, where there was a pager: nobody wanted the rest.
                    Err(_) if paged.left() => paged.end(),
                    written => written.and_then(|()| paged.end()),
                }
            }
        }
    }
}

fn parquet(out: &mut (dyn Write + Send), results: &mut dyn Results) -> anyhow::Result<()> {
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .build();
    let mut writer = ArrowWriter::try_new(out, results.schema().clone(), Some(properties))?;
    while let Some(batch) = results.next()? {
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(())
}
