//! Values of Arrow arrays as objects of Python.

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::compute::CastOptions;
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, TimeUnit,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList};
use table::{cast_moments, infinity_at};

use crate::error::{DataError, InternalError, NotSupportedError};

/// What makes objects of Python's own modules.
struct Makers<'py> {
    decimal: Bound<'py, PyAny>,
    date: Bound<'py, PyAny>,
    delta: Bound<'py, PyAny>,
    epoch: Bound<'py, PyAny>,
    epoch_utc: Bound<'py, PyAny>,
    uuid: Bound<'py, PyAny>,
}

impl<'py> Makers<'py> {
    fn new(py: Python<'py>) -> PyResult<Makers<'py>> {
        let datetime = py.import("datetime")?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        let class = datetime.getattr("datetime")?;
        Ok(Makers {
            decimal: py.import("decimal")?.getattr("Decimal")?,
            date: datetime.getattr("date")?.getattr("fromordinal")?,
            delta: datetime.getattr("timedelta")?,
            epoch: class.call1((1970, 1, 1))?,
            epoch_utc: class.call1((1970, 1, 1, 0, 0, 0, 0, utc))?,
            uuid: py.import("uuid")?.getattr("UUID")?,
        })
    }

    fn micros(&self, micros: i64) -> PyResult<Bound<'py, PyAny>> {
        self.delta.call1((0, 0, micros))
    }
}

/// The ordinal of 1970-01-01 as Python counts days.
const EPOCH_DAY: i64 = 719_163;

/// The values of a column: `None` for NULL, `decimal.Decimal` for decimals, `datetime` for days and times, `uuid.UUID`
/// for uuids, lists for arrays, dictionaries for structs.
///
/// # Errors
/// [`NotSupportedError`] for types that have no such object.
pub(crate) fn objects(py: Python<'_>, array: &ArrayRef) -> PyResult<Vec<Py<PyAny>>> {
    let makers = Makers::new(py)?;
    let plain = plain(array)?;
    (0..plain.len())
        .map(|row| {
            if plain.is_null(row) {
                return Ok(py.None());
            }
            if infinity_at(&plain, row).is_some() {
                return Err(DataError::new_err(
                    "an infinite date or timestamp, of which Python has none: use .arrow(), or cast it to text",
                ));
            }
            object(py, &makers, &plain, row)
        })
        .collect()
}

/// The array as one of few types: the widest of its kind.
fn plain(array: &ArrayRef) -> PyResult<ArrayRef> {
    use DataType::*;
    let wide = match array.data_type() {
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 => Int64,
        UInt64 | Decimal32(..) | Decimal64(..) => match array.data_type() {
            Decimal32(p, s) | Decimal64(p, s) => Decimal128(*p, *s),
            _ => Decimal128(20, 0),
        },
        Float16 | Float32 | Float64 => Float64,
        Utf8 | LargeUtf8 | Utf8View => Utf8View,
        kept @ (FixedSizeBinary(16) | List(_) | Struct(_) | Map(..)) => kept.clone(),
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => BinaryView,
        Date32 | Date64 => Date32,
        Time32(_) | Time64(_) => Time64(TimeUnit::Microsecond),
        Timestamp(_, zone) => Timestamp(TimeUnit::Microsecond, zone.clone()),
        Dictionary(_, value) => value.as_ref().clone(),
        kept @ (Null | Boolean | Decimal128(..) | Decimal256(..)) => kept.clone(),
        other => {
            let text = format!(
                "values of type {} have no object here: use .arrow(), or cast them to text",
                sql::type_name(other)
            );
            return Err(NotSupportedError::new_err(text));
        }
    };
    cast_moments(array, &wide, &CastOptions::default())
        .map_err(|error| InternalError::new_err(error.to_string()))
}

/// A decimal of more than 38 digits.
fn wide<'p>(
    py: Python<'p>,
    makers: &Makers<'p>,
    array: &ArrayRef,
    row: usize,
    scale: i8,
) -> PyResult<Bound<'p, PyAny>> {
    let own = array.as_primitive::<Decimal256Type>();
    let value = own.value(row);
    let text = sql::decimal_text(value, own.precision(), scale);
    if scale == 0 && sql::NotFinite::of(value).is_none() {
        return py.get_type::<PyInt>().call1((text,));
    }
    makers.decimal.call1((text,))
}

/// The dictionary of the entries of a map.
fn entries<'p>(py: Python<'p>, entries: &StructArray) -> PyResult<Bound<'p, PyDict>> {
    let keys = objects(py, entries.column(0))?;
    let values = objects(py, entries.column(1))?;
    let made = PyDict::new(py);
    for (key, value) in keys.into_iter().zip(values) {
        made.set_item(key, value)?;
    }
    Ok(made)
}

fn object(
    py: Python<'_>,
    makers: &Makers<'_>,
    array: &ArrayRef,
    row: usize,
) -> PyResult<Py<PyAny>> {
    use arrow::datatypes::{Date32Type, Time64MicrosecondType, TimestampMicrosecondType};
    let made = match array.data_type() {
        DataType::Boolean => array
            .as_boolean()
            .value(row)
            .into_pyobject(py)?
            .to_owned()
            .into_any(),
        DataType::Int64 => {
            let number = array.as_primitive::<Int64Type>().value(row);
            number.into_pyobject(py)?.into_any()
        }
        DataType::Float64 => {
            let number = array.as_primitive::<Float64Type>().value(row);
            number.into_pyobject(py)?.into_any()
        }
        DataType::Utf8View => array
            .as_string_view()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::FixedSizeBinary(_) => {
            let id = PyBytes::new(py, array.as_fixed_size_binary().value(row));
            makers.uuid.call1((py.None(), id))?
        }
        DataType::List(_) => {
            let items = objects(py, &array.as_list::<i32>().value(row))?;
            PyList::new(py, items)?.into_any()
        }
        DataType::Struct(fields) => {
            let made = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                let value = objects(py, &column.slice(row, 1))?;
                made.set_item(field.name(), value.first())?;
            }
            made.into_any()
        }
        DataType::Map(..) => entries(py, &array.as_map().value(row))?.into_any(),
        DataType::BinaryView => PyBytes::new(py, array.as_binary_view().value(row)).into_any(),
        DataType::Decimal256(_, scale) => wide(py, makers, array, row, *scale)?,
        DataType::Decimal128(_, 0) => {
            let number = array.as_primitive::<Decimal128Type>().value(row);
            number.into_pyobject(py)?.into_any()
        }
        DataType::Decimal128(_, _) => {
            let text = array.as_primitive::<Decimal128Type>().value_as_string(row);
            makers.decimal.call1((text,))?
        }
        DataType::Date32 => {
            let days = i64::from(array.as_primitive::<Date32Type>().value(row));
            makers.date.call1((days + EPOCH_DAY,))?
        }
        DataType::Time64(_) => {
            let micros = array.as_primitive::<Time64MicrosecondType>().value(row);
            let moment = makers.epoch.add(makers.micros(micros)?)?;
            moment.call_method0(intern!(py, "time"))?
        }
        DataType::Timestamp(_, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            let epoch = if zone.is_some() {
                &makers.epoch_utc
            } else {
                &makers.epoch
            };
            epoch.add(makers.micros(micros)?)?
        }
        other => return Err(InternalError::new_err(format!("a value of type {other}"))),
    };
    Ok(made.unbind())
}

/// A parameter of a statement: its type, and its value as text.
pub(crate) type Parameter = (Option<DataType>, Option<String>);

/// The parameter that an object is.
///
/// # Errors
/// [`NotSupportedError`] for objects that are none.
pub(crate) fn parameter(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    if value.is_none() {
        return Ok((None, None));
    }
    let class = value.get_type().name()?.to_string();
    let text = || value.str().map(|text| text.to_string());
    let zoned = || value.getattr("tzinfo").is_ok_and(|zone| !zone.is_none());
    let micros = TimeUnit::Microsecond;
    let (data_type, text) = match class.as_str() {
        "bool" => (DataType::Boolean, text()?.to_lowercase()),
        "int" if value.extract::<i64>().is_ok() => (DataType::Int64, text()?),
        "int" => (DataType::Decimal128(38, 0), text()?),
        "float" => (DataType::Float64, text()?),
        "str" => (DataType::Utf8View, text()?),
        "Decimal" => {
            let digits = value.call_method1("__format__", ("f",))?.str()?.to_string();
            let places = digits.split_once('.').map_or(0, |(_, after)| after.len());
            let Some(scale) = i8::try_from(places).ok().filter(|places| *places <= 38) else {
                return Err(NotSupportedError::new_err(format!(
                    "a parameter with {places} decimal places: a decimal has 38 at most"
                )));
            };
            (DataType::Decimal128(38, scale), digits)
        }
        "bytes" => {
            let hex = value.call_method0("hex")?.str()?.to_string();
            (DataType::Binary, format!("\\x{hex}"))
        }
        // Texts without a type, which take that of what they stand beside.
        "UUID" => (DataType::Utf8View, text()?),
        "list" | "tuple" => (DataType::Utf8View, array(value)?),
        "date" => (DataType::Date32, text()?),
        "time" => (DataType::Time64(micros), text()?),
        "datetime" if zoned() => (DataType::Timestamp(micros, Some("+00:00".into())), text()?),
        "datetime" => (DataType::Timestamp(micros, None), text()?),
        _ => {
            return Err(NotSupportedError::new_err(format!(
                "a parameter of the type {class}: give None, bool, int, float, str, bytes, Decimal, date, time, datetime, UUID or a list"
            )));
        }
    };
    Ok((Some(data_type), Some(text)))
}

/// A list as the text of an array: `{1,2,NULL}`.
///
/// # Errors
/// For items that are no parameters.
fn array(list: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut text = String::from("{");
    for (at, item) in list.try_iter()?.enumerate() {
        let item = item?;
        if at > 0 {
            text.push(',');
        }
        let nested = matches!(item.get_type().name()?.to_str()?, "list" | "tuple");
        match parameter(&item)? {
            (_, None) => text.push_str("NULL"),
            (_, Some(value)) if nested => text.push_str(&value),
            (_, Some(value)) => {
                text.push('"');
                for c in value.chars() {
                    if matches!(c, '"' | '\\') {
                        text.push('\\');
                    }
                    text.push(c);
                }
                text.push('"');
            }
        }
    }
    text.push('}');
    Ok(text)
}
