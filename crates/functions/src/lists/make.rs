//! Arrays from values, and from arrays: `array[...]`, `||`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ListArray, MutableArrayData, UInt32Array, make_array, new_empty_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;
use messages::types::type_name;

use crate::arguments::is_text;
use crate::lists::names::MAKE;
use crate::lists::types::{
    count, dimensions, is_list, item, list_and_item, list_argument, list_of, lists, plain,
    quoted_beside, range, together,
};
use crate::own::Own;
use crate::present;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            MAKE,
            |types| Ok(vec![together(types)?; types.len()]),
            |types| {
                Ok(list_of(
                    types.first().cloned().unwrap_or(DataType::Utf8View),
                ))
            },
            make,
        ),
        Own::new(
            "array_append",
            appended,
            |types| Ok(types[0].clone()),
            append,
        ),
        Own::new(
            "array_prepend",
            prepended,
            |types| Ok(types[1].clone()),
            prepend,
        ),
        Own::new("array_cat", both, |types| Ok(types[0].clone()), cat),
        Own::new(
            "array_fill",
            filled,
            |types| Ok(list_of(types[0].clone())),
            fill,
        ),
    ]
}

/// Lists of items that are taken from several arrays by (array, place).
pub(super) struct Taker<'a> {
    data: Vec<arrow::array::ArrayData>,
    sources: Vec<&'a ArrayRef>,
    picks: Vec<(usize, usize)>,
    ends: Vec<usize>,
    valid: Vec<bool>,
}

impl<'a> Taker<'a> {
    /// Takes items of these arrays, which are of one type.
    pub(super) fn new(sources: Vec<&'a ArrayRef>) -> Taker<'a> {
        Taker {
            data: sources.iter().map(|source| source.to_data()).collect(),
            sources,
            picks: vec![],
            ends: vec![],
            valid: vec![],
        }
    }

    pub(super) fn take(&mut self, source: usize, place: usize) {
        self.picks.push((source, place));
    }

    pub(super) fn take_all(&mut self, source: usize, places: std::ops::Range<usize>) {
        self.picks.extend(places.map(|place| (source, place)));
    }

    /// Ends a list.
    pub(super) fn end(&mut self, valid: bool) {
        self.ends.push(self.picks.len());
        self.valid.push(valid);
    }

    pub(super) fn finish(self) -> Result<ArrayRef> {
        let item = self.sources[0].data_type().clone();
        let items = if self.picks.is_empty() {
            new_empty_array(&item)
        } else {
            let mut out = MutableArrayData::new(self.data.iter().collect(), true, self.picks.len());
            for (source, place) in &self.picks {
                out.try_extend(*source, *place, place + 1)?;
            }
            make_array(out.freeze())
        };
        if i32::try_from(items.len()).is_err() {
            return exec_err!("array size exceeds the maximum allowed");
        }
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| *end as i32));
        let offsets = OffsetBuffer::new(starts.collect::<Vec<i32>>().into());
        let field = Arc::new(Field::new_list_field(item, true));
        let nulls = Some(NullBuffer::from(self.valid)).filter(|n| n.null_count() > 0);
        Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls)?))
    }
}

fn make(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let none = new_empty_array(&DataType::Utf8View);
    if args.is_empty() {
        let mut taker = Taker::new(vec![&none]);
        (0..rows).for_each(|_| taker.end(true));
        return taker.finish();
    }
    if dimensions(args[0].data_type()) > 0 {
        for row in 0..rows {
            let lengths = args.iter().map(|arg| shape(arg, row));
            let mut lengths = lengths.collect::<Result<Vec<_>>>()?.into_iter();
            let first = lengths.next();
            if lengths.any(|other| Some(other) != first) {
                return exec_err!(
                    "multidimensional arrays must have array expressions with matching dimensions"
                );
            }
        }
    }
    let mut taker = Taker::new(args.iter().collect());
    for row in 0..rows {
        (0..args.len()).for_each(|arg| taker.take(arg, row));
        taker.end(true);
    }
    taker.finish()
}

/// The lengths of the dimensions of an array that is to be an item of another.
fn shape(arrays: &ArrayRef, row: usize) -> Result<Vec<usize>> {
    let own = lists(arrays);
    if own.is_null(row) {
        return exec_err!(
            "not supported: NULL in the place of an array within an array of more dimensions"
        );
    }
    let mut items = range(own, row);
    let mut all = vec![items.len()];
    if dimensions(own.values().data_type()) > 0
        && let Some(first) = items.next()
    {
        all.extend(shape(own.values(), first)?);
    }
    Ok(all)
}

fn appended(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_append", types, 2..=2)?;
    let (list, item) = list_and_item("array_append", &types[0], &types[1])?;
    Ok(vec![list, item])
}

fn prepended(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_prepend", types, 2..=2)?;
    let (list, item) = list_and_item("array_prepend", &types[1], &types[0])?;
    Ok(vec![item, list])
}

fn append(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    joined(&args[0], &args[1], rows, false)
}

fn prepend(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    joined(&args[1], &args[0], rows, true)
}

/// Items and one more; an array that is NULL is one without items.
fn joined(arrays: &ArrayRef, items: &ArrayRef, rows: usize, before: bool) -> Result<ArrayRef> {
    if dimensions(arrays.data_type()) > 1 {
        return exec_err!(
            "not supported: array_append and array_prepend of arrays with dimensions: use `||` or array_cat"
        );
    }
    let own = lists(arrays);
    let mut taker = Taker::new(vec![own.values(), items]);
    for row in 0..rows {
        if before {
            taker.take(1, row);
        }
        taker.take_all(0, range(own, row));
        if !before {
            taker.take(1, row);
        }
        taker.end(true);
    }
    taker.finish()
}

/// Two arrays of the same items; one may have a dimension less, and is then an item of the other.
fn both(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_cat", types, 2..=2)?;
    let of = |at| list_argument("array_cat", types, at);
    let (left, right) = match types {
        // Constants in quotes are read as arrays.
        [left, right] if is_text(left) && is_text(right) => {
            let texts = list_of(DataType::Utf8View);
            (texts.clone(), texts)
        }
        [text, list] if is_list(list) && *text != DataType::Null && is_text(text) => {
            (quoted_beside(&plain(list)), plain(list))
        }
        [list, text] if is_list(list) && *text != DataType::Null && is_text(text) => {
            (plain(list), quoted_beside(&plain(list)))
        }
        [DataType::Null, _] => (of(1)?, of(1)?),
        [_, DataType::Null] => (of(0)?, of(0)?),
        _ => (of(0)?, of(1)?),
    };
    match (dimensions(&left), dimensions(&right)) {
        (a, b) if a == b => {
            let both = together(&[left, right])?;
            Ok(vec![both.clone(), both])
        }
        (a, b) if a == b + 1 || b == a + 1 => plan_err!(
            "not supported: {} || {}: make the second one an array of as many dimensions, array[...]",
            type_name(&left),
            type_name(&right)
        ),
        _ => plan_err!(
            "cannot concatenate incompatible arrays: {} and {}",
            type_name(&left),
            type_name(&right)
        ),
    }
}

fn cat(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (left, right) = (lists(&args[0]), lists(&args[1]));
    let nested = item(left.data_type()).is_some_and(|item| dimensions(item) > 0);
    let mut taker = Taker::new(vec![left.values(), right.values()]);
    for row in 0..rows {
        let (one, other) = (range(left, row), range(right, row));
        if nested && !one.is_empty() && !other.is_empty() {
            let (a, b) = (
                shape(left.values(), one.start)?,
                shape(right.values(), other.start)?,
            );
            if a != b {
                return exec_err!("cannot concatenate incompatible arrays");
            }
        }
        taker.take_all(0, one);
        taker.take_all(1, other);
        taker.end(left.is_valid(row) || right.is_valid(row));
    }
    taker.finish()
}

fn filled(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_fill", types, 2..=2)?;
    let value = together(&types[..1])?;
    if dimensions(&value) > 0 {
        return plan_err!("array_fill takes a value that is no array");
    }
    Ok(vec![value, list_of(DataType::Int64)])
}

/// The most items of an array that is made in one go.
const MOST: usize = 1 << 26;

fn fill(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    let lengths = lists(&args[1]);
    // What an item takes, and its place among the values.
    let bytes = args[0].to_data().get_slice_memory_size()?;
    let width = 4 + bytes / rows.max(1);
    let (mut places, mut ends) = (Vec::new(), vec![0]);
    for row in 0..rows {
        let own = range(lengths, row);
        let values = lengths.values().as_primitive::<Int64Type>();
        let length = match own.len() {
            0 if lengths.is_valid(row) => 0,
            1 if values.is_valid(own.start) => values.value(own.start),
            0 | 1 => return exec_err!("dimension array or low bound array cannot be null"),
            _ => return exec_err!("not supported: array_fill of more than one dimension"),
        };
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= MOST);
        let Some(length) = length else {
            let message = format!("array size exceeds the maximum allowed ({MOST})");
            return Err(Error::coded("54000", message).into());
        };
        let all = places.len() + length;
        let end = i32::try_from(all)
            .map_err(|_| Error::coded("54000", "array size exceeds the maximum allowed"))?;
        present::has_room(all.saturating_mul(width))?;
        present::check()?;
        places.resize(all, row as u32);
        ends.push(end);
    }
    let items = take(&args[0], &UInt32Array::from(places), None)?;
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::new(ends.into());
    Ok(Arc::new(ListArray::try_new(field, offsets, items, None)?))
}
