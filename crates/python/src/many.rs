//! One statement for many rows of parameters.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use atoll::Frames;

use crate::value::Parameter;

/// Runs `text` with each of `rows` for its parameters, and returns how many rows were written.
///
/// # Errors
/// The first failure; what came before it is done.
pub(crate) fn each(
    session: &atoll::Session,
    text: &str,
    rows: &[Vec<Parameter>],
) -> Result<u64, atoll::Error> {
    let mut prepared = HashMap::new();
    let mut changed = 0;
    for row in rows {
        let types: Vec<Option<DataType>> = row.iter().map(|(of, _)| of.clone()).collect();
        let values: Vec<Option<&str>> = row.iter().map(|(_, value)| value.as_deref()).collect();
        let statement = match prepared.entry(types) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let statement = session.prepare(text, new.key())?;
                new.insert(statement)
            }
        };
        if let Some(statement) = statement {
            let mut answer = session.run(statement, &values)?;
            if let Some(Err(error)) = answer.next() {
                return Err(error);
            }
            changed += answer.changed().unwrap_or(0);
        }
    }
    Ok(changed)
}

/// Runs `text`, which reads the rows from a table of this name with columns `1`, `2` and so on; none if that does not
/// do, as the values of a column are of several types.
///
/// # Errors
/// Those of the statement.
pub(crate) fn at_once(
    session: &atoll::Session,
    text: &str,
    name: &str,
    rows: &[Vec<Parameter>],
) -> Result<Option<u64>, atoll::Error> {
    let Some(batch) = batch(rows) else {
        return Ok(None);
    };
    let mut frames = Frames::default();
    frames.add_batches(name, &batch.schema(), vec![batch])?;
    let answer = session.with_frames(frames).query(text)?;
    Ok(answer.changed())
}

/// The rows as a batch, if all values of a column are of one type and all rows have as many.
fn batch(rows: &[Vec<Parameter>]) -> Option<RecordBatch> {
    let width = rows.first()?.len();
    if width == 0 || rows.iter().any(|row| row.len() != width) {
        return None;
    }
    let columns = (0..width).map(|at| {
        let values = column(rows, at)?;
        Some(((at + 1).to_string(), values))
    });
    let columns = columns.collect::<Option<Vec<_>>>()?;
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, values)| (name, values, true)),
    )
    .ok()
}

fn column(rows: &[Vec<Parameter>], at: usize) -> Option<ArrayRef> {
    let mut data_type = None;
    for (of, _) in rows.iter().map(|row| &row[at]) {
        data_type = match (data_type, of) {
            (known, None) => known,
            (None, Some(of)) => Some(of.clone()),
            (Some(known), Some(of)) => Some(common(known, of)?),
        };
    }
    let texts = rows.iter().map(|row| row[at].1.as_deref());
    Some(match data_type.unwrap_or(DataType::Utf8View) {
        DataType::Int64 => {
            Arc::new(all(texts, |text| text.parse::<i64>().ok())?.collect::<Int64Array>())
        }
        DataType::Float64 => {
            Arc::new(all(texts, |text| text.parse::<f64>().ok())?.collect::<Float64Array>())
        }
        DataType::Boolean => {
            Arc::new(all(texts, |text| text.parse::<bool>().ok())?.collect::<BooleanArray>())
        }
        DataType::Binary => Arc::new(BinaryArray::from_iter(all(texts, bytes)?)),
        DataType::Utf8View => Arc::new(texts.collect::<StringViewArray>()),
        other => {
            let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
            let strict = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            cast_with_options(&texts, &other, &strict).ok()?
        }
    })
}

/// All values, or none if one cannot be read.
fn all<'t, T>(
    texts: impl Iterator<Item = Option<&'t str>>,
    read: impl Fn(&str) -> Option<T>,
) -> Option<impl Iterator<Item = Option<T>>> {
    let values = texts.map(|text| match text {
        None => Some(None),
        Some(text) => read(text).map(Some),
    });
    Some(values.collect::<Option<Vec<_>>>()?.into_iter())
}

/// The type that has the values of both.
fn common(one: DataType, other: &DataType) -> Option<DataType> {
    if one == *other {
        return Some(one);
    }
    match (&one, other) {
        (DataType::Decimal128(_, a), DataType::Decimal128(_, b)) => {
            Some(DataType::Decimal128(38, *a.max(b)))
        }
        _ => None,
    }
}

/// The bytes of `\x0aff`.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
        .collect()
}
