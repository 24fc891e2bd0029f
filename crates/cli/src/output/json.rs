//! Results as JSON. Decimals, dates and integers beyond 2^53 are strings, as are NaN and the
//! infinities: readers that know only doubles then lose nothing.

use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Decimal256Type, Fields, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::ArrayFormatter;
use serde_json::{Value, json};

use crate::output::results::{Results, TEXT};

/// The largest integer that every reader of JSON keeps.
const LARGEST: i128 = 1 << 53;

/// Writes the answer as one object on one line. After an error, [`fail`] ends the object.
pub fn object(out: &mut dyn Write, results: &mut dyn Results) -> anyhow::Result<()> {
    let fields = results.schema().fields().iter();
    let columns: Vec<_> = fields
        .map(|field| json!({ "name": field.name(), "type": atoll::column_type_name(field) }))
        .collect();
    write!(out, "{{\"columns\":{},\"rows\":[", Value::Array(columns))?;
    let mut first = true;
    each_row(results, |values| {
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        Ok(write!(out, "{comma}{}", Value::Array(values))?)
    })?;
    let statistics = results.statistics();
    write!(
        out,
        "],\"seconds\":{},\"planning_seconds\":{}",
        json!(statistics.seconds),
        json!(statistics.planning_seconds)
    )?;
    if let Some(changed) = results.changed() {
        write!(out, ",\"changed\":{changed}")?;
    }
    writeln!(
        out,
        ",\"bytes\":{},\"ran_on\":{}}}",
        json!(statistics.bytes),
        json!(statistics.ran_on)
    )?;
    Ok(())
}

/// Ends the object of a statement that failed after rows of it were written.
pub fn fail(out: &mut dyn Write, message: &str) -> anyhow::Result<()> {
    Ok(writeln!(out, "],\"error\":{}}}", json!(message))?)
}

/// Writes the rows as an array of objects, one a line.
pub fn array(out: &mut dyn Write, results: &mut dyn Results) -> anyhow::Result<()> {
    let names: Vec<_> = results
        .schema()
        .fields()
        .iter()
        .map(|field| json!(field.name()).to_string())
        .collect();
    let mut first = true;
    write!(out, "[")?;
    each_row(results, |values| {
        write!(
            out,
            "{}{{",
            if std::mem::take(&mut first) {
                ""
            } else {
                ",\n "
            }
        )?;
        for (at, (name, value)) in names.iter().zip(values).enumerate() {
            write!(out, "{}{name}:{value}", if at > 0 { "," } else { "" })?;
        }
        Ok(write!(out, "}}")?)
    })?;
    Ok(writeln!(out, "]")?)
}

fn each_row(
    results: &mut dyn Results,
    mut with: impl FnMut(Vec<Value>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    while let Some(batch) = results.next()? {
        let columns = batch
            .columns()
            .iter()
            .map(Column::new)
            .collect::<anyhow::Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            with(
                columns
                    .iter()
                    .map(|column| column.value(row))
                    .collect::<anyhow::Result<_>>()?,
            )?;
        }
    }
    Ok(())
}

fn integer(value: i128) -> Value {
    if value.abs() <= LARGEST {
        json!(value as i64)
    } else {
        Value::String(value.to_string())
    }
}

fn float(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else if value.is_nan() {
        json!("NaN")
    } else {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    }
}

/// Turns a value of one array, by its row, into JSON.
type Convert<'a> = Box<dyn Fn(usize) -> anyhow::Result<Value> + 'a>;

/// The values of structs.
fn members<'a>(fields: &'a Fields, structs: &'a StructArray) -> anyhow::Result<Convert<'a>> {
    let columns = structs.columns().iter().map(Column::new);
    let columns = columns.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Box::new(move |row| {
        let members = fields.iter().zip(&columns);
        let members = members.map(|(field, column)| Ok((field.name().clone(), column.value(row)?)));
        Ok(Value::Object(members.collect::<anyhow::Result<_>>()?))
    }))
}

struct Column<'a> {
    /// Which values are NULL, also of columns that are nothing but that.
    nulls: Option<NullBuffer>,
    convert: Convert<'a>,
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef) -> anyhow::Result<Column<'a>> {
        macro_rules! primitive {
            ($kind:ty, $value:ident => $json:expr) => {{
                let values = array.as_primitive::<$kind>().values();
                Box::new(move |row: usize| {
                    let $value = values[row];
                    Ok($json)
                }) as Convert<'a>
            }};
        }
        let convert: Convert<'a> = match array.data_type() {
            DataType::Boolean => {
                let values = array.as_boolean();
                Box::new(move |row| Ok(json!(values.value(row))))
            }
            DataType::Int8 => primitive!(Int8Type, v => json!(v)),
            DataType::Int16 => primitive!(Int16Type, v => json!(v)),
            DataType::Int32 => primitive!(Int32Type, v => json!(v)),
            DataType::Int64 => primitive!(Int64Type, v => integer(i128::from(v))),
            DataType::UInt8 => primitive!(UInt8Type, v => json!(v)),
            DataType::UInt16 => primitive!(UInt16Type, v => json!(v)),
            DataType::UInt32 => primitive!(UInt32Type, v => json!(v)),
            DataType::UInt64 => primitive!(UInt64Type, v => integer(i128::from(v))),
            DataType::Float16 => primitive!(Float16Type, v => float(v.to_f64())),
            // Through the shortest text of the value: 0.1 stays 0.1.
            DataType::Float32 => {
                primitive!(Float32Type, v => float(v.to_string().parse().unwrap_or(f64::from(v))))
            }
            DataType::Float64 => primitive!(Float64Type, v => float(v)),
            DataType::FixedSizeBinary(16) => {
                let ids = array.as_fixed_size_binary();
                Box::new(move |row| Ok(json!(atoll::uuid_text(ids.value(row)))))
            }
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                Box::new(move |row| elements(&lists.value(row)))
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                Box::new(move |row| elements(&lists.value(row)))
            }
            DataType::Struct(fields) => members(fields, array.as_struct())?,
            DataType::Map(..) => entries(array.as_map())?,
            DataType::Null => Box::new(|_| Ok(Value::Null)),
            DataType::Decimal256(precision, scale) => {
                let values = array.as_primitive::<Decimal256Type>();
                let (precision, scale) = (*precision, *scale);
                Box::new(move |row| {
                    let text = atoll::decimal_text(values.value(row), precision, scale);
                    Ok(Value::String(text))
                })
            }
            _ => {
                let formatter = ArrayFormatter::try_new(array, &TEXT)?;
                Box::new(move |row| {
                    Ok(Value::String(match atoll::infinity_at(array, row) {
                        Some(infinity) => infinity.text().to_string(),
                        None => formatter.value(row).try_to_string()?,
                    }))
                })
            }
        };
        Ok(Column {
            nulls: array.logical_nulls(),
            convert,
        })
    }

    fn value(&self, row: usize) -> anyhow::Result<Value> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            Ok(Value::Null)
        } else {
            (self.convert)(row)
        }
    }
}

/// Maps: objects, whose members are called as the keys are written.
fn entries(maps: &MapArray) -> anyhow::Result<Convert<'_>> {
    let keys = ArrayFormatter::try_new(maps.keys(), &TEXT)?;
    let values = Column::new(maps.values())?;
    Ok(Box::new(move |row| {
        let ends = maps.value_offsets();
        let places = ends[row] as usize..ends[row + 1] as usize;
        let members = places.map(|at| Ok((keys.value(at).try_to_string()?, values.value(at)?)));
        Ok(Value::Object(members.collect::<anyhow::Result<_>>()?))
    }))
}

fn elements(array: &ArrayRef) -> anyhow::Result<Value> {
    let column = Column::new(array)?;
    Ok(Value::Array(
        (0..array.len())
            .map(|row| column.value(row))
            .collect::<anyhow::Result<_>>()?,
    ))
}
