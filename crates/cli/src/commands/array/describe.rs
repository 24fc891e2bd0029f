//! `atoll array list` and `describe`.

use std::io::Write;

use anyhow::anyhow;
use array::{Compression, Coordinates, Dimension, Layout, MetadataValue, Scalar, Schema, Summary};
use serde_json::{Value, json};
use store::Snapshot;

use crate::commands::array::options::Array;
use crate::failure::Failure;
use crate::terminal::out;
use crate::units;

/// Lists the arrays of a snapshot.
pub fn list(args: &Array, snapshot: &Snapshot) -> Result<(), Failure> {
    let arrays = array::list(snapshot)?;
    let mut out = out::stdout();
    if args.json {
        let arrays: Vec<_> = arrays.iter().map(object).collect();
        writeln!(out, "{}", json!({ "arrays": arrays }))?;
        return Ok(out.flush()?);
    }
    if arrays.is_empty() {
        let store = args.store.display();
        writeln!(
            out,
            "{store} has no arrays; `atoll array {store} import FILE` makes one"
        )?;
        return Ok(out.flush()?);
    }
    writeln!(
        out,
        "{:<24} {:<24} {:<20} {:>12} {:>10}  versions",
        "array", "shape", "attributes", "chunks", "bytes"
    )?;
    for array in arrays {
        let attributes = array.schema.attributes().iter();
        let attributes: Vec<_> = attributes
            .map(|of| format!("{} {}", of.name(), of.data_type()))
            .collect();
        writeln!(
            out,
            "{:<24} {:<24} {:<20} {:>12} {:>10}  {}",
            array.name,
            shape(&array),
            attributes.join(", "),
            units::count(array.written),
            units::bytes(array.bytes),
            versions(&array),
        )?;
    }
    Ok(out.flush()?)
}

/// The versions of an array, and the pages that are kept for them only; nothing if it has none.
fn versions(array: &Summary) -> String {
    if array.versions.is_empty() {
        return String::new();
    }
    let pages = units::count(array.kept);
    format!("{}: {pages} pages kept", array.versions.join(", "))
}

/// Describes an array of a snapshot.
pub fn describe(args: &Array, snapshot: &Snapshot) -> Result<(), Failure> {
    let array = chosen(args, snapshot)?;
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", object(&array))?;
        return Ok(out.flush()?);
    }
    let layout = match array.schema.layout() {
        Layout::Dense => "dense",
        Layout::Sparse => "sparse",
    };
    writeln!(out, "{}: {}, {layout}", array.name, shape(&array))?;
    for of in array.schema.dimensions() {
        let span = match of.length() {
            0 => "no coordinates".to_owned(),
            _ => of.span(),
        };
        let growing = if of.is_growing() { ", grows" } else { "" };
        let chunk = units::count(of.chunk_length());
        writeln!(
            out,
            "  dimension {:<16} {span}, in chunks of {chunk}{growing}",
            of.name()
        )?;
    }
    for of in array.schema.attributes() {
        let null = if of.is_nullable() { ", nullable" } else { "" };
        let fill = of.fill_value();
        let stored = compression(of.compression());
        writeln!(
            out,
            "  attribute {:<16} {}{null}, {fill} where nothing was written, compression {stored}",
            of.name(),
            of.data_type()
        )?;
    }
    writeln!(
        out,
        "  {} of {} chunks written: {} in {} pages, {} stored",
        units::count(array.written),
        units::count(array.chunks),
        units::bytes(array.bytes),
        units::count(array.pages),
        units::bytes(array.stored)
    )?;
    if !array.versions.is_empty() {
        writeln!(out, "  versions {}", versions(&array))?;
    }
    for part in parts(&array.schema) {
        for (name, value) in array.schema.metadata().of(part) {
            let of = part.map_or_else(|| name.clone(), |part| format!("{part}:{name}"));
            // A text of several lines is one here.
            let value = value.to_string().replace(char::is_control, " ");
            writeln!(out, "  {of} = {value}")?;
        }
    }
    Ok(out.flush()?)
}

/// The array that is meant; without a name the only one.
///
/// # Errors
/// If there is none of that name; without a name also if there are several.
pub fn chosen(args: &Array, snapshot: &Snapshot) -> Result<Summary, Failure> {
    if let Some(name) = &args.name {
        return Ok(array::Array::open(snapshot, name)?.summary()?);
    }
    let mut arrays = array::list(snapshot)?;
    let store = args.store.display();
    match (arrays.pop(), arrays.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(anyhow!(
            "{store} has no arrays; `atoll array {store} import FILE` makes one"
        )
        .into()),
        (Some(last), _) => {
            arrays.push(last);
            let names: Vec<_> = arrays.iter().map(|array| array.name.as_str()).collect();
            let names = names.join(", ");
            Err(anyhow!("{store} has several arrays: choose one of {names} with --name").into())
        }
    }
}

fn shape(array: &Summary) -> String {
    let lengths = array.schema.shape();
    let lengths: Vec<_> = lengths.iter().map(u64::to_string).collect();
    lengths.join(" x ")
}

fn compression(of: Compression) -> String {
    match of {
        Compression::None => "none".to_owned(),
        Compression::Lz4 => "lz4".to_owned(),
        Compression::Zstd(level) => format!("zstd {level}"),
    }
}

/// What metadata may be said of: the array, its dimensions and its attributes.
fn parts(schema: &Schema) -> impl Iterator<Item = Option<&str>> {
    let dimensions = schema.dimensions().iter().map(Dimension::name);
    let attributes = schema.attributes().iter().map(array::Attribute::name);
    [None]
        .into_iter()
        .chain(dimensions.chain(attributes).map(Some))
}

/// What is said of an array or a part of it, as JSON.
fn said(schema: &Schema, part: Option<&str>) -> Value {
    let entries = schema.metadata().of(part).iter();
    let entries = entries.map(|(name, value)| {
        let mut values: Vec<Value> = match value {
            MetadataValue::Numbers(numbers) => numbers.iter().map(|&of| scalar(of)).collect(),
            MetadataValue::Texts(texts) => texts.iter().map(|of| of.as_str().into()).collect(),
        };
        let value = match values.len() {
            1 => values.remove(0),
            _ => values.into(),
        };
        (name.clone(), value)
    });
    Value::Object(entries.collect())
}

/// An array as JSON.
pub fn object(array: &Summary) -> Value {
    let schema = &array.schema;
    let attribute = |of: &array::Attribute| {
        json!({
            "name": of.name(),
            "type": of.data_type().name(),
            "nullable": of.is_nullable(),
            "fill": scalar(of.fill_value()),
            "compression": compression(of.compression()),
            "times": schema.metadata().time(of.name()).is_some(),
            "metadata": said(schema, Some(of.name())),
        })
    };
    let dimension = |of: &Dimension| {
        let mut object = dimension(of);
        object["times"] = schema.metadata().time(of.name()).is_some().into();
        object["metadata"] = said(schema, Some(of.name()));
        object
    };
    json!({
        "name": array.name,
        "shape": schema.shape().into_iter().map(whole).collect::<Vec<_>>(),
        "dimensions": schema.dimensions().iter().map(dimension).collect::<Vec<_>>(),
        "attributes": schema.attributes().iter().map(attribute).collect::<Vec<_>>(),
        "sparse": schema.layout() == Layout::Sparse,
        "chunks": whole(array.chunks),
        "written": array.written,
        "pages": array.pages,
        "bytes": array.bytes,
        "stored_bytes": array.stored,
        "versions": array.versions,
        "kept_pages": array.kept,
        "metadata": said(schema, None),
    })
}

fn dimension(of: &Dimension) -> Value {
    let kind = match of.coordinates() {
        Coordinates::Integer { .. } => "integer",
        Coordinates::Regular { .. } => "regular",
        Coordinates::Listed(_) => "listed",
    };
    let coordinate = |at: Option<u64>| at.and_then(|at| of.coordinate(at)).map(|of| of.to_string());
    json!({
        "name": of.name(),
        "length": whole(of.length()),
        "chunk": of.chunk_length(),
        "grows": of.is_growing(),
        "coordinates": kind,
        "first": coordinate((of.length() > 0).then_some(0)),
        "last": coordinate(of.length().checked_sub(1)),
    })
}

/// A whole number as JSON: a string beyond what every reader of JSON takes exactly.
fn whole(number: u64) -> Value {
    match number {
        0..=0x20_0000_0000_0000 => number.into(),
        _ => number.to_string().into(),
    }
}

/// A value as JSON; what JSON has no number for is a string.
fn scalar(value: Scalar) -> Value {
    match value {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => value.into(),
        Scalar::Float(value) if value.is_finite() => value.into(),
        Scalar::Float(value) if value.is_nan() => "NaN".into(),
        Scalar::Float(value) if value < 0.0 => "-Infinity".into(),
        Scalar::Float(_) => "Infinity".into(),
        Scalar::Int(whole) => match i64::try_from(whole) {
            Ok(whole) if whole.unsigned_abs() <= 1 << 53 => whole.into(),
            _ => value.to_string().into(),
        },
    }
}
