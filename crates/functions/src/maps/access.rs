//! What is in maps: `m['a']`, `map_keys`, `map_values`, `map_entries`, `map_extract`, `map_contains`, and whether they are
//! equal.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::{Result, plan_err};
use messages::types::type_name;
use table::{map_parts, map_type};

use crate::arguments::is_text;
use crate::lists::compare::comparator;
use crate::lists::names::MAPS_EQUAL;
use crate::lists::types::{count, is_map, list_of, plain, together};
use crate::maps::layout::range;
use crate::maps::make::item_field;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "map_keys",
            |types| one("map_keys", types),
            |types| Ok(list_of(parts(&types[0]).0)),
            |args, _| Ok(parts_of(&args[0], |maps| Arc::clone(maps.keys()))),
        ),
        Own::new(
            "map_values",
            |types| one("map_values", types),
            |types| Ok(list_of(parts(&types[0]).1)),
            |args, _| Ok(parts_of(&args[0], |maps| Arc::clone(maps.values()))),
        ),
        Own::new(
            "map_entries",
            |types| one("map_entries", types),
            |types| Ok(list_of(DataType::Struct(entry(&types[0])))),
            entries,
        ),
        Own::new(
            "map_extract",
            |types| map_and_key("map_extract", types),
            |types| Ok(list_of(parts(&types[0]).1)),
            extract,
        )
        .or("element_at"),
        Own::new(
            "map_extract_value",
            |types| map_and_key("map_extract_value", types),
            |types| Ok(parts(&types[0]).1),
            value,
        ),
        Own::new(
            "map_contains",
            |types| map_and_key("map_contains", types),
            |_| Ok(DataType::Boolean),
            contains,
        ),
        Own::new(MAPS_EQUAL, two, |_| Ok(DataType::Boolean), equal),
    ]
}

/// The types of keys and values.
fn parts(map: &DataType) -> (DataType, DataType) {
    match map_parts(map) {
        Some((key, value)) => (plain(key), plain(value)),
        None => (DataType::Utf8View, DataType::Utf8View),
    }
}

/// The fields of an entry.
fn entry(map: &DataType) -> Fields {
    let (key, value) = parts(map);
    Fields::from(vec![
        Field::new("key", key, true),
        Field::new("value", value, true),
    ])
}

fn map(name: &str, ty: &DataType) -> Result<DataType> {
    match ty {
        DataType::Null => Ok(map_type(DataType::Utf8View, DataType::Utf8View)),
        ty if is_map(ty) => Ok(plain(ty)),
        ty => plan_err!(
            "function {name} takes a map, and not type {}",
            type_name(ty)
        ),
    }
}

fn one(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    count(name, types, 1..=1)?;
    Ok(vec![map(name, &types[0])?])
}

fn two(types: &[DataType]) -> Result<Vec<DataType>> {
    let all: Vec<DataType> = types.iter().filter(|ty| is_map(ty)).cloned().collect();
    let both = together(&all)?;
    if !is_map(&both) {
        return plan_err!("maps are compared with maps");
    }
    Ok(vec![both; types.len()])
}

/// The types in which a key is looked for in a map.
///
/// # Errors
/// If there is no map, or no such key in it.
pub(crate) fn map_and_key(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    if types.len() != 2 {
        return plan_err!("function {name} takes a map and a key");
    }
    let map = map(name, &types[0])?;
    let (key, value) = parts(&map);
    let given = plain(&types[1]);
    // A constant is read as a key; a whole number is looked for as it is.
    if given == key || given == DataType::Null || is_text(&given) && !is_text(&key) {
        return Ok(vec![map, key]);
    }
    if given.is_integer() && key.is_integer() {
        return Ok(vec![map, given]);
    }
    let both = together(&[key, given])?;
    Ok(vec![map_type(both.clone(), value), both])
}

/// The lists of a part of maps.
fn parts_of(maps: &ArrayRef, part: impl Fn(&MapArray) -> ArrayRef) -> ArrayRef {
    let own = maps.as_map();
    let items = part(own);
    let field = item_field(items.data_type().clone());
    let (offsets, nulls) = (own.offsets().clone(), own.nulls().cloned());
    Arc::new(ListArray::new(field, offsets, items, nulls))
}

fn entries(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let own = args[0].as_map();
    let columns = vec![Arc::clone(own.keys()), Arc::clone(own.values())];
    let made = StructArray::try_new(entry(args[0].data_type()), columns, None)?;
    let made: ArrayRef = Arc::new(made);
    Ok(parts_of(&args[0], |_| Arc::clone(&made)))
}

/// Where among the entries of all rows the key of each is.
fn found(args: &[ArrayRef], rows: usize) -> Result<Vec<Option<u32>>> {
    let own = args[0].as_map();
    let (keys, wanted) = (own.keys(), &args[1]);
    // What does not fit the type of the keys is none of them.
    let safe = CastOptions::default();
    let wanted = if wanted.data_type() == keys.data_type() {
        Arc::clone(wanted)
    } else {
        cast_with_options(wanted, keys.data_type(), &safe)?
    };
    let compare = comparator(keys, &wanted)?;
    let of = |row: usize| {
        let mut places = range(own, row).filter(|_| wanted.is_valid(row));
        let place = places.find(|at| compare(*at, row) == Ordering::Equal);
        place.map(|at| at as u32)
    };
    Ok((0..rows).map(of).collect())
}

/// The values under keys; NULL where there is no such key.
///
/// # Errors
/// If keys cannot be compared.
pub(crate) fn value(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let places = UInt32Array::from(found(args, rows)?);
    Ok(take(args[0].as_map().values(), &places, None)?)
}

/// The same as lists, which have no item where there is no such key.
fn extract(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = args[0].as_map();
    let places = found(args, rows)?;
    let offsets =
        OffsetBuffer::from_lengths(places.iter().map(|place| usize::from(place.is_some())));
    let places: UInt32Array = places.into_iter().flatten().map(Some).collect();
    let items = take(own.values(), &places, None)?;
    let field = item_field(items.data_type().clone());
    let nulls = NullBuffer::union(own.nulls(), args[1].logical_nulls().as_ref());
    Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls)?))
}

fn contains(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = args[0].as_map();
    let places = found(args, rows)?;
    let of = |(row, place): (usize, Option<u32>)| {
        (own.is_valid(row) && args[1].is_valid(row)).then_some(place.is_some())
    };
    let found: BooleanArray = places.into_iter().enumerate().map(of).collect();
    Ok(Arc::new(found))
}

/// Whether maps have equal values under the same keys, where NULL equals NULL; NULL where one of both is.
///
/// # Errors
/// For values that are not compared.
pub(crate) fn equal(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (left, right) = (args[0].as_map(), args[1].as_map());
    let keys = comparator(left.keys(), right.keys())?;
    let values = comparator(left.values(), right.values())?;
    let of = |row: usize| {
        if left.is_null(row) || right.is_null(row) {
            return None;
        }
        let (own, others) = (range(left, row), range(right, row));
        let same = |at: usize| {
            let mut places = others.clone();
            let other = places.find(|other| keys(at, *other) == Ordering::Equal);
            other.is_some_and(|other| values(at, other) == Ordering::Equal)
        };
        Some(own.len() == others.len() && own.into_iter().all(same))
    };
    let found: BooleanArray = (0..rows).map(of).collect();
    Ok(Arc::new(found))
}
