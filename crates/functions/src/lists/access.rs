//! Items of arrays by their positions: `a[1]`, `a[1:2]`.

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;
use messages::numbers::is_vector;
use messages::types::type_name;
use table::{json_kind, jsonb_type, map_parts};

use crate::arguments::is_text;
use crate::json::get::subscripted;
use crate::lists::make::Taker;
use crate::lists::names::{SLICE, SUBSCRIPT};
use crate::lists::types::{base, dimensions, is_map, list_argument, lists, plain, range};
use crate::maps;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            SUBSCRIPT,
            places,
            |types| {
                if let Some((_, value)) = map_parts(&types[0]) {
                    return Ok(plain(value));
                }
                let json = json_kind(&types[0]).is_some();
                Ok(if json { &types[0] } else { base(&types[0]) }.clone())
            },
            subscript,
        ),
        Own::new(SLICE, bounds, |types| Ok(types[0].clone()), slice),
        Own::new("trim_array", trimmed, |types| Ok(types[0].clone()), trim),
    ]
}

/// An array, and a position in each of its dimensions.
fn places(types: &[DataType]) -> Result<Vec<DataType>> {
    if types.first().is_some_and(|ty| *ty == jsonb_type()) {
        return of_json(types);
    }
    of_dimensions(types, 1)
}

/// JSON, and keys or places, which are texts then.
fn of_json(types: &[DataType]) -> Result<Vec<DataType>> {
    let odd = types[1..]
        .iter()
        .find(|ty| !(is_text(ty) || ty.is_integer()));
    if let Some(odd) = odd {
        let message = format!("subscript type {} is not supported", type_name(odd));
        return Err(Error::coded("42804", message).into());
    }
    let mut wanted = vec![types[0].clone()];
    wanted.resize(types.len(), DataType::Utf8View);
    Ok(wanted)
}

fn of_dimensions(types: &[DataType], each: usize) -> Result<Vec<DataType>> {
    let list = match types.first() {
        Some(map) if is_map(map) && each == 1 => return maps::map_and_key("[]", types),
        Some(ty) if *ty == jsonb_type() => {
            return Err(Error::coded("0A000", "jsonb subscript does not support slices").into());
        }
        Some(ty) if dimensions(ty) == 0 => {
            return plan_err!(
                "cannot subscript type {} because it does not support subscripting",
                type_name(ty)
            );
        }
        Some(ty) if is_vector(ty) => ty.clone(),
        _ => list_argument("[]", types, 0)?,
    };
    let (own, given) = (dimensions(&list), (types.len() - 1) / each);
    if own != given {
        return plan_err!(
            "not supported: {given} subscripts for an array of {own} dimensions: write one for each"
        );
    }
    let mut wanted = vec![list];
    wanted.resize(types.len(), DataType::Int64);
    Ok(wanted)
}

fn subscript(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if is_map(args[0].data_type()) {
        return maps::value(args, rows);
    }
    if json_kind(args[0].data_type()).is_some() {
        return subscripted(args, rows);
    }
    let mut arrays = args[0].clone();
    let first = i64::from(!is_vector(arrays.data_type()));
    // The place of each row's item among all items of the level.
    let mut at: Vec<Option<usize>> = (0..rows).map(Some).collect();
    for places in &args[1..] {
        let own = lists(&arrays);
        let places = places.as_primitive::<Int64Type>();
        for (row, at) in at.iter_mut().enumerate() {
            let found = at.filter(|_| places.is_valid(row)).and_then(|list| {
                let items = range(own, list);
                let place = usize::try_from(places.value(row).checked_sub(first)?).ok()?;
                (place < items.len()).then(|| items.start + place)
            });
            *at = found;
        }
        let items = own.values().clone();
        arrays = items;
    }
    let at: UInt32Array = at.into_iter().map(|at| at.map(|at| at as u32)).collect();
    Ok(take(&arrays, &at, None)?)
}

/// An array, and two positions in each of its dimensions.
fn bounds(types: &[DataType]) -> Result<Vec<DataType>> {
    if types.len().is_multiple_of(2) {
        return plan_err!("a slice has two bounds");
    }
    of_dimensions(types, 2)
}

fn slice(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if args.len() > 3 {
        return plan_err!("not supported: a slice of an array with more than one dimension");
    }
    let own = lists(&args[0]);
    let bounds = [&args[1], &args[2]].map(|bound| bound.as_primitive::<Int64Type>());
    let mut taker = Taker::new(vec![own.values()]);
    for row in 0..rows {
        let valid = own.is_valid(row) && bounds.iter().all(|bound| bound.is_valid(row));
        if valid {
            let items = range(own, row);
            let count = items.len() as i64;
            let first = bounds[0].value(row).clamp(1, count + 1) - 1;
            let last = bounds[1].value(row).clamp(0, count);
            if first < last {
                let start = items.start;
                taker.take_all(0, start + first as usize..start + last as usize);
            }
        }
        taker.end(valid);
    }
    taker.finish()
}

fn trimmed(types: &[DataType]) -> Result<Vec<DataType>> {
    super::types::count("trim_array", types, 2..=2)?;
    Ok(vec![
        list_argument("trim_array", types, 0)?,
        DataType::Int64,
    ])
}

fn trim(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = lists(&args[0]);
    let counts = args[1].as_primitive::<Int64Type>();
    let mut taker = Taker::new(vec![own.values()]);
    for row in 0..rows {
        let valid = own.is_valid(row) && counts.is_valid(row);
        if valid {
            let items = range(own, row);
            let count = usize::try_from(counts.value(row)).ok();
            let Some(count) = count.filter(|count| *count <= items.len()) else {
                return datafusion_common::exec_err!(
                    "number of elements to trim must be between 0 and {}",
                    items.len()
                );
            };
            taker.take_all(0, items.start..items.end - count);
        }
        taker.end(valid);
    }
    taker.finish()
}
