//! `update t set a[2] = 1, b[1:2] = '{3,4}', j['k'] = '5'`: a value of the column with other items.

use arrow::array::{Array, ArrayRef, AsArray, StringArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;
use messages::types::type_name;
use table::{JsonKind, jsonb_type};

use crate::arguments::{is_text, strings};
use crate::json::assign::{Key, assigned};
use crate::json::value::{texts, values};
use crate::lists::make::Taker;
use crate::lists::names::{ASSIGN, ASSIGN_SLICE};
use crate::lists::types::{dimensions, item, list_argument, lists, range};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            ASSIGN,
            |types| takes(types, false),
            |types| Ok(types[0].clone()),
            assign,
        ),
        Own::new(
            ASSIGN_SLICE,
            |types| takes(types, true),
            |types| Ok(types[0].clone()),
            assign,
        ),
    ]
}

/// A value, what is assigned, how its subscripts are written, and the subscripts.
fn takes(types: &[DataType], slice: bool) -> Result<Vec<DataType>> {
    let [own, new, _, subscripts @ ..] = types else {
        return plan_err!("an assignment to an item has a subscript");
    };
    if *own == jsonb_type() {
        return json_takes(new, subscripts);
    }
    if dimensions(own) == 0 {
        return plan_err!(
            "cannot subscript type {} because it does not support subscripting",
            type_name(own)
        );
    }
    let list = list_argument("[]", types, 0)?;
    if dimensions(&list) > 1 {
        return plan_err!(
            "not supported: assignments to items of arrays with more than one dimension"
        );
    }
    let value = match item(&list) {
        Some(item) if !slice => item.clone(),
        _ => list.clone(),
    };
    let mut wanted = vec![list, value, DataType::Utf8];
    wanted.resize(types.len(), DataType::Int64);
    Ok(wanted)
}

fn json_takes(new: &DataType, subscripts: &[DataType]) -> Result<Vec<DataType>> {
    if *new != jsonb_type() && !is_text(new) {
        return Err(Error::coded(
            "42804",
            format!(
                "subscripted assignment requires type jsonb but expression is of type {}",
                type_name(new)
            ),
        )
        .into());
    }
    let mut wanted = vec![jsonb_type(), jsonb_type(), DataType::Utf8];
    for ty in subscripts {
        wanted.push(match ty {
            ty if ty.is_integer() => DataType::Int64,
            ty if is_text(ty) => DataType::Utf8,
            other => {
                return Err(Error::coded(
                    "42804",
                    format!("subscript type {} is not supported", type_name(other)),
                )
                .into());
            }
        });
    }
    Ok(wanted)
}

fn assign(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if *args[0].data_type() == jsonb_type() {
        return in_json(args, rows);
    }
    let kinds = strings(&args[2])?;
    let kinds = if rows > 0 { kinds.value(0) } else { "i" };
    if kinds.len() != 1 {
        return plan_err!("not supported: two subscripts for an array of one dimension");
    }
    let own = lists(&args[0]);
    let none = new_null_array(own.values().data_type(), 1);
    let given = args[3..].iter().map(|arg| cast(arg, &DataType::Int64));
    let given: Vec<ArrayRef> = given.collect::<std::result::Result<_, _>>()?;
    let bound = |at: usize, row: usize| -> Result<i64> {
        let places = given[at].as_primitive::<Int64Type>();
        if places.is_null(row) {
            let message = "array subscript in assignment must not be null";
            return Err(Error::coded("22004", message).into());
        }
        Ok(places.value(row))
    };
    let slice = kinds != "i";
    let new = if slice { Some(lists(&args[1])) } else { None };
    let source = new.map_or(&args[1], |new| new.values());
    let mut taker = Taker::new(vec![own.values(), source, &none]);
    for row in 0..rows {
        let items = if own.is_valid(row) {
            range(own, row)
        } else {
            0..0
        };
        let length = items.len() as i64;
        let (first, last) = match kinds {
            "i" => (bound(0, row)?, bound(0, row)?),
            "b" => (bound(0, row)?, bound(1, row)?),
            "l" => (bound(0, row)?, length),
            "u" => (1, bound(0, row)?),
            _ => (1, length),
        };
        // Nothing is assigned to a slice by NULL.
        if slice && args[1].is_null(row) {
            taker.take_all(0, items);
            taker.end(own.is_valid(row));
            continue;
        }
        check((first, last), length, kinds)?;
        let values = match new {
            Some(new) => {
                let values = range(new, row);
                if (values.len() as i64) < last - first + 1 {
                    return Err(Error::coded("2202E", "source array too small").into());
                }
                values
            }
            None => row..row + 1,
        };
        let before = items.start..items.start + (first - 1).min(length) as usize;
        taker.take_all(0, before);
        (length..first - 1).for_each(|_| taker.take(2, 0));
        let count = (last - first + 1) as usize;
        taker.take_all(1, values.start..values.start + count);
        if last < length {
            taker.take_all(0, items.start + last as usize..items.end);
        }
        taker.end(true);
    }
    taker.finish()
}

/// That items from `first` to `last` can be assigned to an array of so many.
fn check((first, last): (i64, i64), length: i64, kinds: &str) -> Result<()> {
    if matches!(kinds, "l" | "u" | "a") && length == 0 {
        return Err(Error::coded(
                "2202E",
                "array slice subscript must provide both boundaries: When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
            )
            .into());
    }
    if first < 1 || length == 0 && first > 1 {
        return Err(Error::unsupported(format!(
            "an array begins with item 1: item {first} cannot be assigned"
        ))
        .into());
    }
    if last < first && kinds != "i" {
        let message = "upper bound cannot be less than lower bound";
        return Err(Error::coded("2202E", message).into());
    }
    if last > MOST {
        return Err(Error::coded(
            "54000",
            format!("array size exceeds the maximum allowed ({MOST})"),
        )
        .into());
    }
    Ok(())
}

/// The most items that an array gets so.
const MOST: i64 = 134_217_727;

fn in_json(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let kinds = strings(&args[2])?;
    if rows > 0 && !kinds.value(0).chars().all(|kind| kind == 'i') {
        return Err(Error::coded("0A000", "jsonb subscript does not support slices").into());
    }
    let (own, new) = (texts(&args[0]), texts(&args[1]));
    let written: Vec<(StringArray, bool)> = args[3..]
        .iter()
        .map(|arg| Ok((strings(arg)?, arg.data_type().is_integer())))
        .collect::<Result<_>>()?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut way = Vec::with_capacity(written.len());
        for (texts, is_place) in &written {
            if texts.is_null(row) {
                let message = "jsonb subscript in assignment must not be null";
                return Err(Error::coded("22004", message).into());
            }
            way.push(Key {
                text: texts.value(row).to_string(),
                is_place: *is_place,
            });
        }
        let before = own.is_valid(row).then(|| own.value(row));
        let value = if new.is_valid(row) {
            new.value(row)
        } else {
            "null"
        };
        found.push(Some(assigned(before, &way, value)?));
    }
    values(JsonKind::Normal, found)
}
