//! Maps from keys and values: `map {'a': 1}`, `map(keys, values)`, `map_from_entries`.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_empty_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, interleave, take};
use arrow::datatypes::{DataType, Field};
use arrow::row::{RowConverter, SortField};
use datafusion_common::{Result, plan_err};
use messages::Error;
use messages::types::type_name;
use table::{is_map_key, map_type};

use crate::items::to_texts;
use crate::lists::compare::normal;
use crate::lists::names::MAP;
use crate::lists::types::{count, fields, item, lists, plain, range, together};
use crate::maps::layout;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(MAP, alternating, type_of_entries, of_entries),
        Own::new("map", two_lists, type_of_lists, of_lists),
        Own::new(
            "map_from_entries",
            entries,
            |types| match item(&types[0]).and_then(fields) {
                Some(parts) => Ok(map_type(
                    plain(parts[0].data_type()),
                    plain(parts[1].data_type()),
                )),
                None => entries(types).map(|own| own[0].clone()),
            },
            from_entries,
        ),
    ]
}

/// The type of keys, if there are such.
///
/// # Errors
/// For arrays, structs, maps, JSON and intervals.
fn key_type(key: DataType) -> Result<DataType> {
    if is_map_key(&key) {
        return Ok(key);
    }
    plan_err!(
        "not supported: maps with keys of type {}: keys are numbers, texts, bytes, dates, times, booleans or uuids",
        type_name(&key)
    )
}

/// Keys and values by turns.
fn alternating(types: &[DataType]) -> Result<Vec<DataType>> {
    let of = |from: usize| {
        let all: Vec<DataType> = types.iter().skip(from).step_by(2).cloned().collect();
        together(&all)
    };
    if types.is_empty() {
        return Ok(vec![]);
    }
    let (key, value) = (key_type(of(0)?)?, of(1)?);
    let pairs = (0..types.len()).map(|at| if at % 2 == 0 { &key } else { &value });
    Ok(pairs.cloned().collect())
}

fn type_of_entries(types: &[DataType]) -> Result<DataType> {
    let own = alternating(types)?;
    let part = |at: usize| own.get(at).cloned().unwrap_or(DataType::Utf8View);
    Ok(map_type(part(0), part(1)))
}

fn of_entries(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
    let to = type_of_entries(&types)?;
    let each = args.len() / 2;
    let part = |from: usize| -> Result<ArrayRef> {
        let own: Vec<&dyn Array> = args.iter().skip(from).step_by(2).map(|a| &**a).collect();
        if own.is_empty() {
            return Ok(new_empty_array(&DataType::Utf8View));
        }
        let places: Vec<(usize, usize)> = (0..rows)
            .flat_map(|row| (0..each).map(move |entry| (entry, row)))
            .collect();
        Ok(interleave(&own, &places)?)
    };
    let offsets = OffsetBuffer::from_repeated_length(each, rows);
    checked(&to, offsets, part(0)?, part(1)?, None)
}

/// An array of keys and one of values, or none of both.
fn two_lists(types: &[DataType]) -> Result<Vec<DataType>> {
    if types.is_empty() {
        return Ok(vec![]);
    }
    count("map", types, 2..=2)?;
    let wrong = |ty: &DataType| {
        plan_err!(
            "function map takes an array of keys and one of values, and not type {}: write map {{'key': value}}, or map(array[...], array[...])",
            type_name(ty)
        )
    };
    for ty in types {
        if item(ty).is_none() && *ty != DataType::Null {
            return wrong(ty);
        }
    }
    let of = |ty: &DataType| match item(ty) {
        Some(_) => plain(ty),
        None => plain(&DataType::new_list(DataType::Utf8View, true)),
    };
    let own: Vec<DataType> = types.iter().map(of).collect();
    if let Some(key) = item(&own[0]) {
        key_type(key.clone())?;
    }
    Ok(own)
}

fn type_of_lists(types: &[DataType]) -> Result<DataType> {
    let own = two_lists(types)?;
    let part = |at: usize| {
        let part = own.get(at).and_then(item).cloned();
        part.unwrap_or(DataType::Utf8View)
    };
    Ok(map_type(part(0), part(1)))
}

fn of_lists(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
    let to = type_of_lists(&types)?;
    let [keys, values] = args else {
        return of_entries(args, rows);
    };
    let (keys, values) = (lists(keys), lists(values));
    let (mut key_places, mut value_places) = (Vec::new(), Vec::new());
    let (mut lengths, mut valid) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let is = keys.is_valid(row) && values.is_valid(row);
        let (own, others) = (range(keys, row), range(values, row));
        if is && own.len() != others.len() {
            return Err(Error::coded(
                "22023",
                format!(
                    "a map of {} keys and {} values: it takes as many of both",
                    own.len(),
                    others.len()
                ),
            )
            .into());
        }
        valid.push(is);
        lengths.push(if is { own.len() } else { 0 });
        if is {
            key_places.extend(own.map(|at| at as u32));
            value_places.extend(others.map(|at| at as u32));
        }
    }
    let picked = |from: &ArrayRef, places: Vec<u32>| take(from, &UInt32Array::from(places), None);
    let nulls = Some(NullBuffer::from(valid)).filter(|n| n.null_count() > 0);
    checked(
        &to,
        OffsetBuffer::from_lengths(lengths),
        picked(keys.values(), key_places)?,
        picked(values.values(), value_places)?,
        nulls,
    )
}

/// An array of structs of two fields each.
fn entries(types: &[DataType]) -> Result<Vec<DataType>> {
    count("map_from_entries", types, 1..=1)?;
    match item(&types[0]).and_then(fields) {
        Some(parts) if parts.len() == 2 => {
            key_type(plain(parts[0].data_type()))?;
            Ok(vec![plain(&types[0])])
        }
        _ => plan_err!(
            "function map_from_entries takes an array of structs of a key and a value, and not type {}",
            type_name(&types[0])
        ),
    }
}

fn from_entries(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = lists(&args[0]);
    let mut places = Vec::new();
    let mut lengths = Vec::with_capacity(rows);
    for row in 0..rows {
        lengths.push(range(own, row).len());
        places.extend(range(own, row).map(|at| at as u32));
    }
    let parts = take(own.values(), &UInt32Array::from(places), None)?;
    let parts = parts.as_struct();
    if parts.null_count() > 0 {
        return Err(Error::coded("22004", "an entry of a map is NULL").into());
    }
    let to = map_type(
        parts.column(0).data_type().clone(),
        parts.column(1).data_type().clone(),
    );
    checked(
        &to,
        OffsetBuffer::from_lengths(lengths),
        Arc::clone(parts.column(0)),
        Arc::clone(parts.column(1)),
        own.nulls().cloned(),
    )
}

/// Maps of their parts, of which each has a key once.
///
/// # Errors
/// For a key that is NULL, or there twice.
pub(super) fn checked(
    to: &DataType,
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    if keys.logical_null_count() > 0 {
        return Err(Error::coded("22004", "a key of a map is NULL: no key of a map may be").into());
    }
    let compared = normal(&keys)?;
    let converter = RowConverter::new(vec![SortField::new(compared.data_type().clone())])?;
    let rows = converter.convert_columns(&[compared])?;
    for ends in offsets.windows(2) {
        let mut seen = HashSet::new();
        let mut own = ends[0] as usize..ends[1] as usize;
        if let Some(at) = own.find(|at| !seen.insert(rows.row(*at))) {
            let key = to_texts(&keys.slice(at, 1))?;
            let key = cast(&key, &DataType::Utf8)?;
            return Err(Error::coded(
                "22023",
                format!(
                    "the key {} is there twice: a map has each key once",
                    key.as_string::<i32>().value(0)
                ),
            )
            .into());
        }
    }
    layout::of(to, offsets, keys, values, nulls)
}

/// The field of the items of an array of this type.
pub(super) fn item_field(item: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(item, true))
}
