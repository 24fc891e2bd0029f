//! Cells, schemas and lists of arrays as text, CSV and JSON.

use std::io::Write;

use array::{Block, Dimension, Layout, Plan, Run, Scalar, Schema, Summary};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::commands::afl::stop::Stop;
use crate::failure::Failure;
use crate::units;

/// Cells that a table shows.
const SHOWN: u64 = 1000;

/// How cells are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns, of the first 1,000 cells
    Table,
    /// Comma-separated values with a header
    Csv,
    /// One object: dimensions, attributes, cells
    Json,
}

/// Computes a query and writes its cells: coordinates first, then attributes, chunk by chunk and in row-major order within
/// each.
///
/// A table is written once all is computed, and others from the first chunk on: what fails before leaves no half of one.
pub fn write(
    plan: &Plan,
    run: &Run,
    format: Format,
    stop: &Stop,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if format == Format::Table {
        let mut whole = Vec::new();
        write_as_computed(plan, run, format, stop, &mut whole)?;
        return Ok(out.write_all(&whole)?);
    }
    write_as_computed(plan, run, format, stop, out)
}

fn write_as_computed(
    plan: &Plan,
    run: &Run,
    format: Format,
    stop: &Stop,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut chunks = stop.wait(plan.chunks(run))??;
    let schema = chunks.schema().clone();
    let mut next = stop.wait(chunks.next())?.transpose()?;
    let mut writer = Writer {
        out,
        format,
        dimensions: schema.dimensions(),
        written: 0,
        left: 0,
    };
    writer.begin(&schema)?;
    while let Some(block) = next {
        writer.block(&block)?;
        next = stop.wait(chunks.next())?.transpose()?;
    }
    writer.end()
}

struct Writer<'a, W> {
    out: &'a mut W,
    format: Format,
    dimensions: &'a [Dimension],
    written: u64,
    /// Cells that a table does not show.
    left: u64,
}

impl<W: Write> Writer<'_, W> {
    fn begin(&mut self, schema: &Schema) -> Result<(), Failure> {
        let names = schema.dimensions().iter().map(Dimension::name);
        let names: Vec<&str> = names
            .chain(schema.attributes().iter().map(array::Attribute::name))
            .collect();
        match self.format {
            Format::Table => {
                for name in names {
                    write!(self.out, "{name:>14} ")?;
                }
                writeln!(self.out)?;
            }
            Format::Csv => {
                let quoted: Vec<String> = names.into_iter().map(quoted).collect();
                writeln!(self.out, "{}", quoted.join(","))?;
            }
            Format::Json => {
                write!(self.out, "{{")?;
                write_schema(schema, self.out)?;
                write!(self.out, ",\"cells\":[")?;
            }
        }
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Result<(), Failure> {
        let ranges = block.region().ranges().to_vec();
        let mut at: Vec<u64> = ranges.iter().map(|range| range.0).collect();
        for cell in 0..block.cells() {
            if block.exists(cell) {
                self.cell(block, cell, &at)?;
            }
            for dimension in (0..at.len()).rev() {
                at[dimension] += 1;
                if at[dimension] < ranges[dimension].1 {
                    break;
                }
                at[dimension] = ranges[dimension].0;
            }
        }
        Ok(())
    }

    fn cell(&mut self, block: &Block, cell: usize, at: &[u64]) -> Result<(), Failure> {
        if self.format == Format::Table && self.written >= SHOWN {
            self.left += 1;
            return Ok(());
        }
        let coordinates = self.dimensions.iter().zip(at);
        let coordinates = coordinates.map(|(of, &at)| of.coordinate(at).unwrap_or(0.into()));
        let values = block.columns().iter().flatten().map(|of| of.get(cell));
        match self.format {
            Format::Table => {
                for coordinate in coordinates {
                    write!(self.out, "{:>14} ", coordinate.to_string())?;
                }
                for value in values {
                    write!(self.out, "{:>14} ", value.to_string())?;
                }
                writeln!(self.out)?;
            }
            Format::Csv => {
                let mut first = true;
                let texts = coordinates.map(|of| of.to_string());
                let texts = texts.chain(values.map(|value| match value {
                    Scalar::Null => String::new(),
                    value => value.to_string(),
                }));
                for text in texts {
                    let comma = if std::mem::take(&mut first) { "" } else { "," };
                    write!(self.out, "{comma}{text}")?;
                }
                writeln!(self.out)?;
            }
            Format::Json => {
                let texts = coordinates.map(|of| of.to_string());
                let texts: Vec<String> = texts
                    .chain(values.map(|of| number(of).to_string()))
                    .collect();
                let comma = if self.written == 0 { "" } else { "," };
                write!(self.out, "{comma}[{}]", texts.join(","))?;
            }
        }
        self.written += 1;
        Ok(())
    }

    fn end(self) -> Result<(), Failure> {
        match self.format {
            Format::Table if self.left > 0 => {
                let left = units::count(self.left);
                writeln!(
                    self.out,
                    "... and {left} more cells: --format csv writes all"
                )?;
            }
            Format::Json => writeln!(self.out, "]}}")?,
            _ => {}
        }
        Ok(())
    }
}

/// A value as JSON: what a reader would not take exactly is a string, as everywhere.
fn number(value: Scalar) -> Value {
    match value {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => value.into(),
        Scalar::Int(value) => match i64::try_from(value) {
            Ok(small) if small.unsigned_abs() <= 1 << 53 => small.into(),
            _ => value.to_string().into(),
        },
        Scalar::Float(value) => match serde_json::Number::from_f64(value) {
            Some(number) => Value::Number(number),
            None => value.to_string().into(),
        },
    }
}

fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

/// `"dimensions": ..., "attributes": ...`, without the braces around.
fn write_schema(schema: &Schema, out: &mut impl Write) -> Result<(), Failure> {
    let dimensions: Vec<Value> = schema.dimensions().iter().map(dimension).collect();
    let attributes = schema.attributes().iter().map(|attribute| {
        json!({
            "name": attribute.name(),
            "type": attribute.data_type().name(),
            "nullable": attribute.is_nullable(),
        })
    });
    let attributes: Vec<Value> = attributes.collect();
    write!(
        out,
        "\"dimensions\":{},\"attributes\":{}",
        Value::from(dimensions),
        Value::from(attributes)
    )?;
    Ok(())
}

fn dimension(of: &Dimension) -> Value {
    let end = |at: u64| of.coordinate(at).map(|coordinate| coordinate.to_string());
    json!({
        "name": of.name(),
        "length": of.length(),
        "chunk": of.chunk_length(),
        "growing": of.is_growing(),
        "first": end(0),
        "last": of.length().checked_sub(1).and_then(end),
    })
}

/// Writes the dimensions and attributes of an array.
pub fn schema(schema: &Schema, format: Format, out: &mut impl Write) -> Result<(), Failure> {
    if format == Format::Json {
        write!(out, "{{")?;
        write_schema(schema, out)?;
        return Ok(writeln!(out, "}}")?);
    }
    for of in schema.dimensions() {
        writeln!(
            out,
            "dimension {:<20} {:>12} cells, {:>10} a chunk: {}",
            of.name(),
            units::count(of.length()),
            units::count(of.chunk_length()),
            of.span(),
        )?;
    }
    for of in schema.attributes() {
        let nullable = if of.is_nullable() { " or null" } else { "" };
        writeln!(
            out,
            "attribute {:<20} {}{nullable}",
            of.name(),
            of.data_type()
        )?;
    }
    Ok(())
}

/// Writes the arrays of a store.
pub fn list(all: &[Summary], format: Format, out: &mut impl Write) -> Result<(), Failure> {
    if format == Format::Json {
        let arrays: Vec<Value> = all
            .iter()
            .map(|of| {
                json!({
                    "name": of.name,
                    "shape": of.schema.shape(),
                    "sparse": of.schema.layout() == Layout::Sparse,
                    "chunks": of.chunks,
                    "written": of.written,
                    "pages": of.pages,
                    "bytes": of.bytes,
                    "stored_bytes": of.stored,
                    "versions": of.versions,
                    "kept_pages": of.kept,
                })
            })
            .collect();
        return Ok(writeln!(out, "{}", json!({ "arrays": arrays }))?);
    }
    writeln!(
        out,
        "{:<24} {:<24} {:>10} {:>10} {:>10} {:>12}  versions",
        "array", "shape", "chunks", "written", "pages", "bytes"
    )?;
    for of in all {
        let shape: Vec<String> = of.schema.shape().iter().map(u64::to_string).collect();
        writeln!(
            out,
            "{:<24} {:<24} {:>10} {:>10} {:>10} {:>12}  {}",
            of.name,
            shape.join("x"),
            units::count(of.chunks),
            units::count(of.written),
            units::count(of.pages),
            units::bytes(of.stored),
            kept(of),
        )?;
    }
    Ok(())
}

/// The versions of an array, and how many pages are kept for them only; of a version, how many for it.
fn kept(of: &Summary) -> String {
    let pages = units::count(of.kept);
    match (of.versions.is_empty(), of.kept) {
        (true, 0) => String::new(),
        (true, _) => format!("{pages} pages kept"),
        _ => format!("{}: {pages} pages kept", of.versions.join(", ")),
    }
}
