//! JSON from values: `to_json`, `json_build_object`, `json_agg`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StringArray};
use arrow::compute::{CastOptions, cast};
use arrow::datatypes::{DataType, Fields, TimeUnit, TimestampMicrosecondType};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_common::{Result, exec_err, plan_err};
use messages::types::type_name;
use table::{Infinity, JsonKind, cast_moments, infinity_at, json_kind, json_type, jsonb_type};

use crate::arguments::is_text;
use crate::items::to_texts;
use crate::json::normal;
use crate::json::value::{texts, values};
use crate::lists::types::{fields, is_list, is_map, is_struct, item, list_of, lists, plain, range};
use crate::own::Own;
use crate::temporal::local::Local;

type Returns = fn(&[DataType]) -> Result<DataType>;

pub(super) fn all() -> Vec<Own> {
    let json: Returns = |_| Ok(json_type());
    let jsonb: Returns = |_| Ok(jsonb_type());
    vec![
        Own::new("to_json", any, json, |args, rows| {
            one(args, rows, JsonKind::Text)
        }),
        Own::new("to_jsonb", any, jsonb, |args, rows| {
            one(args, rows, JsonKind::Normal)
        }),
        Own::new("row_to_json", row, json, rows_of),
        Own::new("array_to_json", array, json, |args, rows| {
            one(args, rows, JsonKind::Text)
        }),
        Own::new("json_build_array", all_types, json, |args, rows| {
            arrays(args, rows, JsonKind::Text)
        }),
        Own::new("jsonb_build_array", all_types, jsonb, |args, rows| {
            arrays(args, rows, JsonKind::Normal)
        }),
        Own::new("json_build_object", pairs, json, |args, rows| {
            objects(args, rows, JsonKind::Text)
        }),
        Own::new("jsonb_build_object", pairs, jsonb, |args, rows| {
            objects(args, rows, JsonKind::Normal)
        }),
        Own::new("json_object", of_texts, json, |args, rows| {
            from_texts(args, rows, JsonKind::Text)
        }),
        Own::new("jsonb_object", of_texts, jsonb, |args, rows| {
            from_texts(args, rows, JsonKind::Normal)
        }),
        Own::new("json_agg of", array, json, |args, rows| {
            aggregated(args, rows, JsonKind::Text)
        }),
        Own::new("jsonb_agg of", array, jsonb, |args, rows| {
            aggregated(args, rows, JsonKind::Normal)
        }),
        Own::new("json_object_agg of", two_arrays, json, |args, rows| {
            gathered(args, rows, JsonKind::Text)
        }),
        Own::new("jsonb_object_agg of", two_arrays, jsonb, |args, rows| {
            gathered(args, rows, JsonKind::Normal)
        }),
    ]
}

fn any(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] => Ok(vec![plain(ty)]),
        _ => plan_err!("to_json takes one argument"),
    }
}

/// A row, and whether its fields stand on lines of their own.
fn row(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if is_struct(ty) => Ok(vec![plain(ty)]),
        [ty, pretty] if is_struct(ty) && matches!(pretty, DataType::Boolean | DataType::Null) => {
            Ok(vec![plain(ty), DataType::Boolean])
        }
        [other, ..] => plan_err!(
            "function row_to_json takes a row, and not type {}",
            type_name(other)
        ),
        [] => plan_err!("function row_to_json takes a row"),
    }
}

fn array(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if is_list(ty) => Ok(vec![plain(ty)]),
        [DataType::Null] => Ok(vec![list_of(DataType::Utf8View)]),
        _ => plan_err!("function array_to_json takes an array"),
    }
}

fn all_types(types: &[DataType]) -> Result<Vec<DataType>> {
    Ok(types.iter().map(plain).collect())
}

fn pairs(types: &[DataType]) -> Result<Vec<DataType>> {
    if !types.len().is_multiple_of(2) {
        return plan_err!("argument list must have even number of elements: keys and values");
    }
    let keys = types.iter().step_by(2);
    if keys
        .clone()
        .any(|key| is_list(key) || is_map(key) || matches!(key, DataType::Struct(_)))
    {
        return plan_err!("key value must be scalar, not array, composite, or json");
    }
    all_types(types)
}

/// An array of keys and values, or one of keys and one of values.
fn of_texts(types: &[DataType]) -> Result<Vec<DataType>> {
    let fits = |ty: &DataType| match ty {
        ty if is_text(ty) => true,
        ty => item(ty).is_some_and(is_text),
    };
    match types.len() {
        1 | 2 if types.iter().all(fits) => Ok(vec![list_of(DataType::Utf8View); types.len()]),
        _ => plan_err!("json_object takes one or two arrays of texts"),
    }
}

fn two_arrays(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [keys, values] if is_list(keys) && is_list(values) => Ok(vec![plain(keys), plain(values)]),
        _ => plan_err!("json_object_agg takes keys and values"),
    }
}

/// The JSON of values, `null` for NULL.
///
/// # Errors
/// Those of writing them.
pub(crate) fn json_of(values: &ArrayRef) -> Result<Vec<String>> {
    let quoted = |text: &str| {
        let mut out = String::new();
        normal::quote(text, &mut out);
        out
    };
    let null = || "null".to_string();
    let data_type = values.data_type();
    if *data_type == DataType::Null {
        return Ok(vec![null(); values.len()]);
    }
    if json_kind(data_type).is_some() {
        let own = texts(values);
        return Ok(own
            .iter()
            .map(|text| text.map_or_else(null, str::to_string))
            .collect());
    }
    if is_list(data_type) {
        let values = cast(values, &plain(data_type))?;
        let own = lists(&values);
        let items = json_of(own.values())?;
        let of = |row: usize| {
            if own.is_valid(row) {
                format!("[{}]", items[range(own, row)].join(","))
            } else {
                null()
            }
        };
        return Ok((0..own.len()).map(of).collect());
    }
    if is_map(data_type) {
        return entries(values.as_map());
    }
    if let Some(fields) = fields(data_type) {
        return members(values, fields, &vec![false; values.len()]);
    }
    let is_plain = data_type.is_numeric();
    let found = match data_type {
        DataType::Boolean => {
            let own = values.as_boolean();
            return Ok(own
                .iter()
                .map(|v| v.map_or_else(null, |v| v.to_string()))
                .collect());
        }
        DataType::Timestamp(_, zone) => moments(values, zone.is_some())?,
        // As ISO 8601 has them, whatever the style of the session.
        DataType::Date32 => Local::PLAIN.within(|| to_texts(values))?,
        _ => to_texts(values)?,
    };
    let found: StringArray = cast(&found, &DataType::Utf8)?.as_string::<i32>().clone();
    let of = |text: Option<&str>| match text {
        None => null(),
        Some(text) if is_plain && text.ends_with(|c: char| c.is_ascii_digit()) => text.to_string(),
        Some(text) => quoted(text),
    };
    Ok(found.iter().map(of).collect())
}

/// Maps as objects, whose members are called as keys are written.
fn entries(maps: &MapArray) -> Result<Vec<String>> {
    let keys = keys_of(maps.keys(), "a key of a map")?;
    let values = json_of(maps.values())?;
    let offsets = maps.value_offsets();
    let of = |row: usize| {
        if maps.is_null(row) {
            return "null".to_string();
        }
        let mut out = "{".to_string();
        for (place, at) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
            out.push_str(if place > 0 { "," } else { "" });
            normal::quote(keys.value(at), &mut out);
            out.push(':');
            out.push_str(&values[at]);
        }
        out.push('}');
        out
    };
    Ok((0..maps.len()).map(of).collect())
}

/// Moments as ISO 8601 has them.
fn moments(values: &ArrayRef, zone: bool) -> Result<ArrayRef> {
    let clocks = Local::now();
    if zone && !clocks.is_utc() {
        return instants(values, clocks);
    }
    let options = FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.f"));
    let format = ArrayFormatter::try_new(values.as_ref(), &options)?;
    let of = |row: usize| {
        values.is_valid(row).then(|| {
            if let Some(infinity) = infinity_at(values, row) {
                return infinity.text().to_string();
            }
            let text = format.value(row).to_string();
            let text = if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.')
            } else {
                &text
            };
            format!("{text}{}", if zone { "+00:00" } else { "" })
        })
    };
    Ok(Arc::new((0..values.len()).map(of).collect::<StringArray>()))
}

/// Instants as ISO 8601 has them, as clocks of the session show them.
fn instants(values: &ArrayRef, clocks: Local) -> Result<ArrayRef> {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let micros = cast_moments(values, &micros, &CastOptions::default())?;
    let micros = micros.as_primitive::<TimestampMicrosecondType>();
    let of = |at: i64| {
        if let Some(infinity) = Infinity::of_count(at) {
            return infinity.text().to_string();
        }
        let (seconds, rest) = (at.div_euclid(1_000_000), at.rem_euclid(1_000_000));
        let east = clocks.zone.at_instant(seconds).unwrap_or(0);
        let mut text = String::new();
        let plain = Local::PLAIN;
        plain.timestamp(seconds + east, rest * 1_000, false, &mut text);
        let (text, before) = match text.strip_suffix(" BC") {
            Some(text) => (text.replacen(' ', "T", 1), " BC"),
            None => (text.replacen(' ', "T", 1), ""),
        };
        let sign = if east < 0 { '-' } else { '+' };
        let east = east.abs();
        let offset = format!("{sign}{:02}:{:02}", east / 3_600, east / 60 % 60);
        format!("{text}{offset}{before}")
    };
    let found = micros.iter().map(|at| at.map(of));
    Ok(Arc::new(found.collect::<StringArray>()))
}

/// Structs as objects; each with its members on lines of their own where `pretty` says so.
fn members(values: &ArrayRef, fields: &Fields, pretty: &[bool]) -> Result<Vec<String>> {
    let own = values.as_struct();
    let columns = own.columns().iter().map(json_of);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let of = |row: usize| {
        if own.is_null(row) {
            return "null".to_string();
        }
        let mut out = "{".to_string();
        for (at, (field, column)) in fields.iter().zip(&columns).enumerate() {
            out.push_str(match (at, pretty[row]) {
                (0, _) => "",
                (_, false) => ",",
                (_, true) => ",\n ",
            });
            normal::quote(field.name(), &mut out);
            out.push(':');
            out.push_str(&column[row]);
        }
        out.push('}');
        out
    };
    Ok((0..own.len()).map(of).collect())
}

/// The objects of rows; NULL where a row is, or whether it is to be pretty.
fn rows_of(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (own, flags) = (&args[0], args.get(1).map(|flags| flags.as_boolean()));
    let pretty = |row: usize| flags.is_some_and(|flags| flags.is_valid(row) && flags.value(row));
    let pretty: Vec<bool> = (0..rows).map(pretty).collect();
    let Some(fields) = fields(own.data_type()) else {
        return exec_err!("a row is no struct");
    };
    let mut found = members(own, fields, &pretty)?.into_iter();
    let valid = |row: usize| own.is_valid(row) && flags.is_none_or(|flags| flags.is_valid(row));
    let texts = (0..rows).map(|row| found.next().filter(|_| valid(row)));
    made(JsonKind::Text, texts)
}

/// JSON that was put together, in the form of its kind.
fn made(kind: JsonKind, texts: impl Iterator<Item = Option<String>>) -> Result<ArrayRef> {
    match kind {
        JsonKind::Text => values(kind, texts),
        JsonKind::Normal => {
            let normal = texts.map(|text| text.map(|text| normal::of(&text)).transpose());
            values(kind, normal.collect::<Result<Vec<_>>>()?)
        }
    }
}

fn one(args: &[ArrayRef], rows: usize, kind: JsonKind) -> Result<ArrayRef> {
    let mut found = json_of(&args[0])?.into_iter();
    let null = |row| args[0].is_null(row) || *args[0].data_type() == DataType::Null;
    made(
        kind,
        (0..rows).map(|row| found.next().filter(|_| !null(row))),
    )
}

fn arrays(args: &[ArrayRef], rows: usize, kind: JsonKind) -> Result<ArrayRef> {
    let columns = args.iter().map(json_of).collect::<Result<Vec<_>>>()?;
    let of = |row: usize| {
        let items: Vec<&str> = columns.iter().map(|column| &column[row][..]).collect();
        Some(format!("[{}]", items.join(", ")))
    };
    made(kind, (0..rows).map(of))
}

/// The keys of objects.
///
/// # Errors
/// For a key that is NULL.
fn keys_of(values: &ArrayRef, what: &str) -> Result<StringArray> {
    let found: ArrayRef = if *values.data_type() == DataType::Null || values.null_count() > 0 {
        return exec_err!("{what} must not be null");
    } else if *values.data_type() == DataType::Boolean {
        let own = values.as_boolean();
        Arc::new(
            own.iter()
                .map(|v| v.map(|v| v.to_string()))
                .collect::<StringArray>(),
        )
    } else if is_map(values.data_type()) {
        Arc::new(StringArray::from(json_of(values)?))
    } else {
        to_texts(values)?
    };
    Ok(cast(&found, &DataType::Utf8)?.as_string::<i32>().clone())
}

fn objects(args: &[ArrayRef], rows: usize, kind: JsonKind) -> Result<ArrayRef> {
    let mut columns = Vec::with_capacity(args.len() / 2);
    for pair in args.chunks(2) {
        columns.push((keys_of(&pair[0], "argument of a key")?, json_of(&pair[1])?));
    }
    let of = |row: usize| {
        let mut out = "{".to_string();
        for (at, (keys, values)) in columns.iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            normal::quote(keys.value(row), &mut out);
            out.push_str(" : ");
            out.push_str(&values[row]);
        }
        out.push('}');
        Some(out)
    };
    made(kind, (0..rows).map(of))
}

fn from_texts(args: &[ArrayRef], rows: usize, kind: JsonKind) -> Result<ArrayRef> {
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if args.iter().any(|arg| arg.is_null(row)) {
            found.push(None);
            continue;
        }
        let texts = |at: usize| -> Vec<Option<String>> {
            let own = lists(&args[at]);
            let texts = own.values().as_string_view();
            let value = |at: usize| texts.is_valid(at).then(|| texts.value(at).to_string());
            range(own, row).map(value).collect()
        };
        let first = texts(0);
        let pairs: Vec<(Option<String>, Option<String>)> = match args.len() {
            1 if !first.len().is_multiple_of(2) => {
                return exec_err!("array must have even number of elements");
            }
            1 => first
                .chunks(2)
                .map(|pair| (pair[0].clone(), pair[1].clone()))
                .collect(),
            _ => {
                let second = texts(1);
                if first.len() != second.len() {
                    return exec_err!("mismatched array dimensions");
                }
                first.into_iter().zip(second).collect()
            }
        };
        let mut out = "{".to_string();
        for (at, (key, value)) in pairs.into_iter().enumerate() {
            let Some(key) = key else {
                return exec_err!("null value not allowed for object key");
            };
            out.push_str(if at > 0 { ", " } else { "" });
            normal::quote(&key, &mut out);
            out.push_str(" : ");
            match value {
                Some(value) => normal::quote(&value, &mut out),
                None => out.push_str("null"),
            }
        }
        out.push('}');
        found.push(Some(out));
    }
    made(kind, found.into_iter())
}

/// The items of arrays, which an aggregate has made, with PostgreSQL's spaces.
fn aggregated(args: &[ArrayRef], rows: usize, kind: JsonKind) -> Result<ArrayRef> {
    let own = lists(&args[0]);
    let items = json_of(own.values())?;
    // PostgreSQL begins a line for each array or row but the first.
    let parts = is_list(own.values().data_type()) || is_struct(own.values().data_type());
    let of = |row: usize| {
        let mut text = "[".to_string();
        for (place, at) in range(own, row).enumerate() {
            text.push_str(if place > 0 { ", " } else { "" });
            if place > 0 && parts && own.values().is_valid(at) {
                text.push_str("\n ");
            }
            text.push_str(&items[at]);
        }
        text.push(']');
        own.is_valid(row).then_some(text)
    };
    made(kind, (0..rows).map(of))
}

fn gathered(args: &[ArrayRef], rows: usize, kind: JsonKind) -> Result<ArrayRef> {
    let (keys, own) = (lists(&args[0]), lists(&args[1]));
    let values = json_of(own.values())?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if keys.is_null(row) {
            found.push(None);
            continue;
        }
        let names = keys_of(&keys.value(row), "field name")?;
        let mut out = "{ ".to_string();
        for (at, value) in values[range(own, row)].iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            normal::quote(names.value(at), &mut out);
            out.push_str(" : ");
            out.push_str(value);
        }
        out.push_str(" }");
        found.push(Some(out));
    }
    made(kind, found.into_iter())
}
