//! Values that lie in text and binary pages although their type is another one: arrays, uuids, JSON.
//!
//! A uuid is its 16 bytes, a JSON value its text. An array is
//!
//! ```text
//! 1                the version of this layout
//! items            u32, then per item, as below
//! ```
//!
//! and its items are, all numbers little-endian:
//!
//! ```text
//! count            u32
//! nulls            u8: 1 if a bitmap follows, else 0
//! bitmap           one bit per item, least significant first, 1 = not NULL; in whole bytes
//! values           of the items that are not NULL, one behind the other
//! ```
//!
//! A boolean is a byte, a number, date or time its bytes, a uuid 16 bytes, a text, binary or JSON value its length as u32
//! and its bytes, an array its own items without a version. What type the items have is known of the column.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, FixedSizeBinaryArray,
    ListArray, StringViewArray, StructArray, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, FieldRef};

use crate::error::{Error, Result};

/// The version of the layout of arrays.
const VERSION: u8 = 1;

/// The type in which values of a stored type lie in pages, where that is another one.
pub(crate) fn storage(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::List(_) | DataType::FixedSizeBinary(_) => Some(DataType::BinaryView),
        DataType::Struct(_) => Some(DataType::Utf8View),
        _ => None,
    }
}

/// Values as they lie in pages.
///
/// # Errors
/// [`Error::TooLong`] for an array whose items are too many to be counted, [`Error::Kind`] for a type that is not stored.
pub(crate) fn to_storage(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Struct(_) => {
            let values = array.as_struct();
            let texts = values.column(0).as_string_view();
            let nulls = NullBuffer::union(values.nulls(), texts.nulls());
            let (views, buffers, _) = texts.clone().into_parts();
            Ok(Arc::new(StringViewArray::try_new(views, buffers, nulls)?))
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            Ok(Arc::new(BinaryViewArray::from_iter(values.iter())))
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let mut out = BinaryViewBuilder::with_capacity(lists.len());
            let mut bytes = Vec::new();
            for row in 0..lists.len() {
                if lists.is_null(row) {
                    out.append_null();
                    continue;
                }
                bytes.clear();
                bytes.push(VERSION);
                put_items(&lists.value(row), &mut bytes)?;
                out.append_value(&bytes);
            }
            Ok(Arc::new(out.finish()))
        }
        _ => Ok(array.clone()),
    }
}

fn put_length(length: usize, out: &mut Vec<u8>) -> Result<()> {
    let length = u32::try_from(length).map_err(|_| Error::TooLong {
        column: "of arrays".into(),
        bytes: length as u64,
        limit: u32::MAX.into(),
    })?;
    out.extend(length.to_le_bytes());
    Ok(())
}

/// Appends the items of an array.
fn put_items(items: &ArrayRef, out: &mut Vec<u8>) -> Result<()> {
    let count = items.len();
    put_length(count, out)?;
    let nulls = items.logical_nulls().filter(|n| n.null_count() > 0);
    out.push(nulls.is_some().into());
    if let Some(nulls) = &nulls {
        let start = out.len();
        out.resize(start + count.div_ceil(8), 0);
        for at in nulls.valid_indices() {
            out[start + at / 8] |= 1 << (at % 8);
        }
    }
    let valid = (0..count).filter(|at| nulls.as_ref().is_none_or(|n| n.is_valid(*at)));
    match items.data_type() {
        DataType::Boolean => {
            let values = items.as_boolean();
            out.extend(valid.map(|at| u8::from(values.value(at))));
        }
        DataType::Utf8View => {
            let values = items.as_string_view();
            for at in valid {
                put_bytes(values.value(at).as_bytes(), out)?;
            }
        }
        DataType::BinaryView => {
            let values = items.as_binary_view();
            for at in valid {
                put_bytes(values.value(at), out)?;
            }
        }
        DataType::Struct(_) => {
            let values = items.as_struct().column(0).as_string_view();
            for at in valid {
                put_bytes(values.value(at).as_bytes(), out)?;
            }
        }
        DataType::FixedSizeBinary(_) => {
            let values = items.as_fixed_size_binary();
            for at in valid {
                out.extend_from_slice(values.value(at));
            }
        }
        DataType::List(_) => {
            let values = items.as_list::<i32>();
            for at in valid {
                put_items(&values.value(at), out)?;
            }
        }
        fixed => {
            let Some(width) = fixed.primitive_width() else {
                return Err(Error::Kind(format!("an array of {fixed}")));
            };
            let data = items.to_data();
            let bytes = &data.buffers()[0].as_slice()[data.offset() * width..];
            for at in valid {
                out.extend_from_slice(&bytes[at * width..(at + 1) * width]);
            }
        }
    }
    Ok(())
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    put_length(bytes.len(), out)?;
    out.extend_from_slice(bytes);
    Ok(())
}

/// The values of `data_type` that lie in pages as `array`; `None` if they are not what [`to_storage`] writes.
pub(crate) fn from_storage(array: ArrayRef, data_type: &DataType) -> Option<ArrayRef> {
    match data_type {
        DataType::Struct(fields) => {
            let nulls = array.nulls().cloned();
            let values = StructArray::try_new(fields.clone(), vec![array], nulls);
            Some(Arc::new(values.ok()?))
        }
        DataType::FixedSizeBinary(width) => {
            let values = array.as_binary_view();
            let mut bytes = Vec::with_capacity(values.len() * *width as usize);
            for value in values {
                match value {
                    None => bytes.resize(bytes.len() + *width as usize, 0),
                    Some(value) if value.len() == *width as usize => {
                        bytes.extend_from_slice(value);
                    }
                    Some(_) => return None,
                }
            }
            let nulls = values.nulls().cloned();
            let values = FixedSizeBinaryArray::try_new(*width, bytes.into(), nulls);
            Some(Arc::new(values.ok()?))
        }
        DataType::List(item) => {
            let mut lists = Lists::new(item);
            for value in array.as_binary_view() {
                match value {
                    None => lists.push(None)?,
                    Some(bytes) => {
                        let (version, mut rest) = bytes.split_first()?;
                        if *version != VERSION {
                            return None;
                        }
                        lists.push(Some(&mut rest))?;
                        if !rest.is_empty() {
                            return None;
                        }
                    }
                }
            }
            lists.finish(array.nulls().cloned())
        }
        _ => Some(array),
    }
}

/// Arrays that are being read.
struct Lists {
    item: FieldRef,
    ends: Vec<i32>,
    items: Items,
    valid: Vec<bool>,
}

/// The items of all arrays so far.
enum Items {
    /// Of this width each.
    Fixed(usize, Vec<u8>),
    Booleans(Vec<bool>),
    /// Texts, bytes and JSON: where each ends in the bytes.
    Bytes(Vec<usize>, Vec<u8>),
    Lists(Box<Lists>, Vec<bool>),
}

impl Lists {
    fn new(item: &FieldRef) -> Lists {
        let items = match item.data_type() {
            DataType::Boolean => Items::Booleans(vec![]),
            DataType::Utf8View | DataType::BinaryView | DataType::Struct(_) => {
                Items::Bytes(vec![], vec![])
            }
            DataType::FixedSizeBinary(width) => Items::Fixed(*width as usize, vec![]),
            DataType::List(inner) => Items::Lists(Box::new(Lists::new(inner)), vec![]),
            other => Items::Fixed(other.primitive_width().unwrap_or(0), vec![]),
        };
        Lists {
            item: item.clone(),
            ends: vec![],
            items,
            valid: vec![],
        }
    }

    /// Takes the items of an array off `bytes`; none of an array that is NULL.
    fn push(&mut self, bytes: Option<&mut &[u8]>) -> Option<()> {
        if let Some(bytes) = bytes {
            let count = length(bytes)?;
            let (nulls, rest) = bytes.split_first()?;
            *bytes = rest;
            let bitmap = match nulls {
                0 => None,
                1 => Some(take(bytes, count.div_ceil(8))?),
                _ => return None,
            };
            // An item takes at least a byte, or a bit if it is NULL: so no count is believed that the bytes are too few for.
            if bitmap.is_none() && count > bytes.len() {
                return None;
            }
            for at in 0..count {
                let valid = bitmap.is_none_or(|bits| bits[at / 8] >> (at % 8) & 1 == 1);
                self.valid.push(valid);
                self.items.push(valid.then_some(&mut *bytes))?;
            }
        }
        self.ends.push(i32::try_from(self.valid.len()).ok()?);
        Some(())
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Option<ArrayRef> {
        let Lists {
            item,
            ends,
            items,
            valid,
        } = self;
        let items = items.finish(item.data_type(), nulls_of(valid))?;
        let offsets: Vec<i32> = std::iter::once(0).chain(ends).collect();
        let offsets = OffsetBuffer::new(offsets.into());
        let lists = ListArray::try_new(item, offsets, items, nulls);
        Some(Arc::new(lists.ok()?))
    }
}

fn nulls_of(valid: Vec<bool>) -> Option<NullBuffer> {
    let nulls = NullBuffer::new(BooleanBuffer::from(valid));
    Some(nulls).filter(|n| n.null_count() > 0)
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn length(bytes: &mut &[u8]) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}

impl Items {
    /// Takes an item off `bytes`; none for one that is NULL.
    fn push(&mut self, bytes: Option<&mut &[u8]>) -> Option<()> {
        match self {
            Items::Fixed(width, values) => match bytes {
                Some(bytes) => values.extend_from_slice(take(bytes, *width)?),
                None => values.resize(values.len() + *width, 0),
            },
            Items::Booleans(values) => values.push(match bytes {
                Some(bytes) => match take(bytes, 1)? {
                    [0] => false,
                    [1] => true,
                    _ => return None,
                },
                None => false,
            }),
            Items::Bytes(ends, values) => {
                if let Some(bytes) = bytes {
                    let length = length(bytes)?;
                    values.extend_from_slice(take(bytes, length)?);
                }
                ends.push(values.len());
            }
            Items::Lists(lists, valid) => {
                valid.push(bytes.is_some());
                lists.push(bytes)?;
            }
        }
        Some(())
    }

    fn finish(self, data_type: &DataType, nulls: Option<NullBuffer>) -> Option<ArrayRef> {
        match self {
            Items::Fixed(width, bytes) => {
                if let DataType::FixedSizeBinary(width) = data_type {
                    let values = FixedSizeBinaryArray::try_new(*width, bytes.into(), nulls);
                    return Some(Arc::new(values.ok()?));
                }
                let count = bytes.len().checked_div(width)?;
                let data = ArrayData::builder(data_type.clone())
                    .len(count)
                    .add_buffer(Buffer::from_vec(bytes))
                    .nulls(nulls)
                    .align_buffers(true)
                    .build();
                Some(make_array(data.ok()?))
            }
            Items::Booleans(values) => {
                let values = BooleanBuffer::from(values);
                Some(Arc::new(arrow::array::BooleanArray::new(values, nulls)))
            }
            Items::Bytes(ends, bytes) => {
                let valid = |at| nulls.as_ref().is_none_or(|n| n.is_valid(at));
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let values = starts.zip(&ends).map(|(start, end)| &bytes[start..*end]);
                let values = values
                    .enumerate()
                    .map(|(at, value)| valid(at).then_some(value));
                let values = BinaryViewArray::from_iter(values);
                if *data_type == DataType::BinaryView {
                    return Some(Arc::new(values));
                }
                let texts: ArrayRef = Arc::new(values.to_string_view().ok()?);
                from_storage(texts, data_type)
            }
            Items::Lists(lists, valid) => {
                debug_assert_eq!(lists.ends.len(), valid.len(), "an end for each array");
                lists.finish(nulls)
            }
        }
    }
}

/// A uuid as people write it.
pub(crate) fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Builder, ListBuilder, StringViewBuilder};
    use arrow::datatypes::{Decimal128Type, Field, Int64Type};

    use super::*;
    use crate::schema::{json_type, jsonb_type, uuid_type};

    fn round(array: ArrayRef) {
        let stored = to_storage(&array).unwrap();
        assert_eq!(Some(stored.data_type().clone()), storage(array.data_type()));
        let back = from_storage(stored, array.data_type()).unwrap();
        assert_eq!(&back, &array);
        // Also of a part, whose buffers begin elsewhere.
        if array.len() > 2 {
            let part = array.slice(1, array.len() - 1);
            let back = from_storage(to_storage(&part).unwrap(), part.data_type()).unwrap();
            assert_eq!(&back, &part);
        }
    }

    fn numbers() -> ListArray {
        ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![Some(1), None, Some(-3)]),
            None,
            Some(vec![]),
            Some(vec![None; 9]),
            Some((0..20).map(Some).collect()),
        ])
    }

    #[test]
    fn arrays_come_back() {
        round(Arc::new(numbers()));
        let mut texts = ListBuilder::new(StringViewBuilder::new());
        for row in [
            vec![Some("a"), None, Some("")],
            vec![Some("a text of more than twelve bytes")],
        ] {
            row.into_iter()
                .for_each(|text| texts.values().append_option(text));
            texts.append(true);
        }
        texts.append(false);
        round(Arc::new(texts.finish()));
        let decimals = arrow::array::Decimal128Array::from(vec![Some(12), None, Some(-5)]);
        let decimals = decimals.with_precision_and_scale(9, 2).unwrap();
        let field = Arc::new(Field::new_list_field(decimals.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([2, 0, 1]);
        round(Arc::new(ListArray::new(
            field,
            offsets,
            Arc::new(decimals),
            None,
        )));
        assert_eq!(Decimal128Type::DEFAULT_TYPE.primitive_width(), Some(16));
    }

    use arrow::datatypes::DecimalType as _;

    #[test]
    fn arrays_of_arrays_and_of_all_else_come_back() {
        let mut outer = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
        outer.append_value([Some([Some(1), None]), Some([Some(3), Some(4)])]);
        outer.append(true);
        outer.append(false);
        round(Arc::new(outer.finish()));
        let ids =
            FixedSizeBinaryArray::try_from_iter([[1u8; 16], [2; 16], [0; 16]].iter()).unwrap();
        let texts = StringViewArray::from(vec![Some("{}"), None, Some("[1, 2]")]);
        let json = from_storage(Arc::new(texts.clone()), &json_type()).unwrap();
        let jsonb = from_storage(Arc::new(texts), &jsonb_type()).unwrap();
        let flags = arrow::array::BooleanArray::from(vec![Some(true), None, Some(false)]);
        for items in [Arc::new(ids) as ArrayRef, json, jsonb, Arc::new(flags)] {
            if storage(items.data_type()).is_some() {
                round(items.clone());
            }
            let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths([1, 2, 0]);
            round(Arc::new(ListArray::new(field, offsets, items, None)));
        }
        assert_eq!(uuid_type(), DataType::FixedSizeBinary(16));
    }

    /// The bytes lie in stores.
    #[test]
    fn the_layout_stays_as_it_is() {
        let stored = to_storage(&(Arc::new(numbers()) as ArrayRef)).unwrap();
        let first = stored.as_binary_view().value(0);
        let mut wanted = vec![1, 3, 0, 0, 0, 1, 0b101];
        wanted.extend(1i64.to_le_bytes());
        wanted.extend((-3i64).to_le_bytes());
        assert_eq!(first, wanted);
        assert_eq!(stored.as_binary_view().value(2), [1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn other_bytes_are_refused_fuzzed() {
        let mut random = fastrand::Rng::with_seed(7);
        let stored = to_storage(&(Arc::new(numbers()) as ArrayRef)).unwrap();
        let nested = DataType::List(Arc::new(Field::new_list_field(
            numbers().data_type().clone(),
            true,
        )));
        for _ in 0..20_000 {
            let row = [0, 2, 3, 4][random.usize(..4)];
            let mut bytes = stored.as_binary_view().value(row).to_vec();
            match random.u8(..3) {
                0 => bytes.truncate(random.usize(..bytes.len())),
                1 => bytes.push(random.u8(..)),
                _ => {
                    let at = random.usize(..bytes.len());
                    bytes[at] = random.u8(..);
                }
            }
            let array: ArrayRef = Arc::new(BinaryViewArray::from(vec![&bytes[..]]));
            for data_type in [numbers().data_type(), &nested] {
                if let Some(found) = from_storage(array.clone(), data_type) {
                    assert_eq!(found.len(), 1);
                }
            }
            let cut = bytes.get(1..).is_none_or(|rest| rest.len() != 16);
            assert!(!cut || from_storage(array, &uuid_type()).is_none() || bytes.len() == 16);
        }
    }

    #[test]
    fn uuids_are_written_in_groups() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(uuid_text(&bytes), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
