//! Rows as JSON: an array for each. Whole numbers beyond 2^53 and decimals are texts, as are dates, times and what floats
//! have beside numbers: readers that know nothing but doubles lose nothing.

use std::io::Write as _;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, SchemaRef, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use serde_json::{Value, json};

use crate::values::row::Rows;

/// The largest whole number that every reader of JSON keeps.
const LARGEST: i128 = 1 << 53;

/// The columns as clients get them.
pub(crate) fn columns(schema: &SchemaRef) -> Value {
    let fields = schema.fields().iter();
    fields
        .map(|field| json!({ "name": field.name(), "type": atoll::type_name(field.data_type()) }))
        .collect()
}

/// Appends a text in quotes.
pub(crate) fn text(text: &str, out: &mut Vec<u8>) {
    // Nothing can go wrong: it is a text, and memory takes what is written.
    let _ = serde_json::to_writer(out, text);
}

/// Appends the value of a row.
type Write<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// Writes rows of a batch.
pub(crate) struct Batch<'a> {
    columns: Vec<Write<'a>>,
}

/// The columns of a batch, as texts where they are no numbers.
pub(crate) struct Prepared {
    columns: Vec<ArrayRef>,
    texts: Vec<Option<Rows>>,
}

impl Prepared {
    /// What [`Batch`] writes.
    ///
    /// # Errors
    /// If a column cannot be converted.
    pub(crate) fn new(columns: &[ArrayRef]) -> Result<Prepared, ArrowError> {
        let texts = columns.iter().map(|column| {
            if is_plain(column.data_type()) {
                return Ok(None);
            }
            let one = RecordBatch::try_from_iter_with_nullable([("", column.clone(), true)])?;
            Rows::new(&one, vec![false]).map(Some)
        });
        Ok(Prepared {
            texts: texts.collect::<Result<_, _>>()?,
            columns: columns.to_vec(),
        })
    }
}

/// Whether values have a form of their own in JSON.
fn is_plain(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Null
                | DataType::Boolean
                | DataType::Float32
                | DataType::Float64
                | DataType::List(_)
                | DataType::Struct(_)
        )
}

impl<'a> Batch<'a> {
    /// # Errors
    /// If a column cannot be written.
    pub(crate) fn new(prepared: &'a Prepared) -> Result<Batch<'a>, ArrowError> {
        let all = prepared.columns.iter().zip(&prepared.texts);
        let columns = all.map(|(column, texts)| match texts {
            Some(rows) => quoted(rows),
            None => plain(column),
        });
        Ok(Batch {
            columns: columns.collect::<Result<_, _>>()?,
        })
    }

    /// Appends a row.
    pub(crate) fn row(&self, at: usize, out: &mut Vec<u8>) {
        out.push(b'[');
        for (number, write) in self.columns.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            write(at, out);
        }
        out.push(b']');
    }
}

/// Values as the text that PostgreSQL's clients get.
fn quoted(rows: &Rows) -> Result<Write<'_>, ArrowError> {
    let writers = rows.writers()?;
    Ok(Box::new(move |at, out| {
        let mut value = Vec::new();
        if writers.value(0, at, &mut value) {
            text(&String::from_utf8_lossy(&value), out);
        } else {
            out.extend(b"null");
        }
    }))
}

/// Writes a column of numbers by `write`.
fn each<'a, T: ArrowPrimitiveType>(
    column: &'a ArrayRef,
    write: impl Fn(T::Native, &mut Vec<u8>) + 'a,
) -> Write<'a> {
    let values: &PrimitiveArray<T> = column.as_primitive();
    Box::new(move |at, out| {
        if values.is_null(at) {
            out.extend(b"null");
        } else {
            write(values.value(at), out);
        }
    })
}

fn whole<'a, T: ArrowPrimitiveType>(column: &'a ArrayRef) -> Write<'a>
where
    T::Native: Into<i128>,
{
    each::<T>(column, |value, out| {
        let value: i128 = value.into();
        let quote = if value.abs() > LARGEST { "\"" } else { "" };
        let _ = write!(out, "{quote}{value}{quote}");
    })
}

/// A float by the fewest digits that give it back.
fn float(shortest: &str, value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        out.extend(shortest.bytes());
    } else if value.is_nan() {
        out.extend(b"\"NaN\"");
    } else if value > 0.0 {
        out.extend(b"\"Infinity\"");
    } else {
        out.extend(b"\"-Infinity\"");
    }
}

fn plain(column: &ArrayRef) -> Result<Write<'_>, ArrowError> {
    Ok(match column.data_type() {
        DataType::Boolean => {
            let values = column.as_boolean();
            Box::new(move |at, out| {
                let word: &[u8] = match (values.is_null(at), values.value(at)) {
                    (true, _) => b"null",
                    (_, true) => b"true",
                    _ => b"false",
                };
                out.extend(word);
            })
        }
        DataType::Int8 => whole::<Int8Type>(column),
        DataType::Int16 => whole::<Int16Type>(column),
        DataType::Int32 => whole::<Int32Type>(column),
        DataType::Int64 => whole::<Int64Type>(column),
        DataType::UInt8 => whole::<UInt8Type>(column),
        DataType::UInt16 => whole::<UInt16Type>(column),
        DataType::UInt32 => whole::<UInt32Type>(column),
        DataType::UInt64 => whole::<UInt64Type>(column),
        DataType::Float32 => each::<Float32Type>(column, |value, out| {
            float(&format!("{value:?}"), value.into(), out);
        }),
        DataType::Float64 => each::<Float64Type>(column, |value, out| {
            float(&format!("{value:?}"), value, out);
        }),
        DataType::List(_) => items(column)?,
        DataType::Struct(_) => members(column)?,
        _ => Box::new(|_, out| out.extend(b"null")),
    })
}

/// Lists: arrays of their items.
fn items(column: &ArrayRef) -> Result<Write<'_>, ArrowError> {
    let lists = column.as_list::<i32>();
    // Whether items can be written is found now, not among the rows.
    Batch::new(&Prepared::new(&[lists.values().slice(0, 0)])?)?;
    Ok(Box::new(move |at, out| {
        let items = (!lists.is_null(at)).then(|| lists.value(at));
        let prepared = items.and_then(|items| Prepared::new(&[items]).ok());
        let Some(prepared) = prepared else {
            out.extend(b"null");
            return;
        };
        out.push(b'[');
        if let Ok(batch) = Batch::new(&prepared)
            && let Some(write) = batch.columns.first()
        {
            for item in 0..prepared.columns[0].len() {
                if item > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
        }
        out.push(b']');
    }))
}

/// Structures: objects of their members.
fn members(column: &ArrayRef) -> Result<Write<'_>, ArrowError> {
    let all = column.as_struct();
    let names = all.column_names();
    let names: Vec<String> = names.iter().map(|name| json!(name).to_string()).collect();
    let none: Vec<ArrayRef> = all.columns().iter().map(|one| one.slice(0, 0)).collect();
    Batch::new(&Prepared::new(&none)?)?;
    Ok(Box::new(move |at, out| {
        let of_row = all.columns().iter().map(|one| one.slice(at, 1));
        let prepared = Prepared::new(&of_row.collect::<Vec<_>>());
        let Some(prepared) = prepared.ok().filter(|_| !all.is_null(at)) else {
            out.extend(b"null");
            return;
        };
        out.push(b'{');
        let columns = Batch::new(&prepared).map(|batch| batch.columns);
        let columns = columns.unwrap_or_default();
        for (number, (name, write)) in names.iter().zip(&columns).enumerate() {
            if number > 0 {
                out.push(b',');
            }
            out.extend(name.bytes());
            out.push(b':');
            write(0, out);
        }
        out.push(b'}');
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Decimal128Array, Float64Array, Int64Array, ListArray, NullArray, StringArray,
        StructArray,
    };
    use arrow::datatypes::Int32Type;

    use super::*;

    fn written(column: ArrayRef) -> String {
        let prepared = Prepared::new(std::slice::from_ref(&column)).unwrap();
        let batch = Batch::new(&prepared).unwrap();
        let mut out = Vec::new();
        for at in 0..column.len() {
            batch.row(at, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_lose_nothing() {
        let whole = Int64Array::from(vec![Some(1), None, Some(1 << 53), Some(i64::MIN)]);
        assert_eq!(
            written(Arc::new(whole)),
            "[1][null][9007199254740992][\"-9223372036854775808\"]"
        );
        let floats = Float64Array::from(vec![0.1, 1e300, f64::NAN, f64::NEG_INFINITY, -0.0]);
        assert_eq!(
            written(Arc::new(floats)),
            "[0.1][1e300][\"NaN\"][\"-Infinity\"][-0.0]"
        );
        let decimals = Decimal128Array::from(vec![Some(-5), None]);
        let decimals = decimals.with_precision_and_scale(10, 2).unwrap();
        assert_eq!(written(Arc::new(decimals)), "[\"-0.05\"][null]");
        let texts = StringArray::from(vec!["a\"\\\n\u{1}é"]);
        assert_eq!(written(Arc::new(texts)), "[\"a\\\"\\\\\\n\\u0001é\"]");
        let truths = BooleanArray::from(vec![Some(true), None]);
        assert_eq!(written(Arc::new(truths)), "[true][null]");
        assert_eq!(written(Arc::new(NullArray::new(1))), "[null]");
    }

    #[test]
    fn lists_and_structures_are_arrays_and_objects() {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
        ]);
        assert_eq!(written(Arc::new(lists)), "[[1,null]][null][[]]");
        let number: ArrayRef = Arc::new(Int64Array::from(vec![7]));
        let name: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        let members = StructArray::try_from(vec![("a", number), ("b\"", name)]).unwrap();
        assert_eq!(written(Arc::new(members)), "[{\"a\":7,\"b\\\"\":\"x\"}]");
    }

    #[test]
    fn what_is_written_is_json() {
        let mut out = Vec::new();
        text("\u{2028}</script>", &mut out);
        let back: String = serde_json::from_slice(&out).unwrap();
        assert_eq!(back, "\u{2028}</script>");
    }
}
