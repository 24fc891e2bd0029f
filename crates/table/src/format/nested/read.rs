//! Values from the bytes in which they lie in pages.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Decimal256Array,
    FixedSizeBinaryArray, IntervalMonthDayNanoArray, ListArray, MapArray, StructArray, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, i256};

use crate::format::nested::write::{SIGN, VERSION, storage};
use crate::schema::{enum_type, is_enum, json_kind};

/// The values of `data_type` that lie in pages as `array`; `None` if they are not what
/// [`to_storage`](super::write::to_storage) writes.
pub(crate) fn from_storage(array: ArrayRef, data_type: &DataType) -> Option<ArrayRef> {
    match data_type {
        own if is_enum(own) => enum_type(own)?.of_numbers(&array),
        DataType::Struct(fields) if json_kind(data_type).is_some() => {
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
        DataType::Decimal256(precision, scale) => {
            let values = array.as_binary_view().iter();
            let values = values.map(|value| match value {
                None => Some(None),
                Some(bytes) => wide(bytes).map(Some),
            });
            let values = values.collect::<Option<Vec<_>>>()?;
            let values = Decimal256Array::from(values);
            let values = values.with_precision_and_scale(*precision, *scale);
            Some(Arc::new(values.ok()?))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_binary_view().iter();
            let values = values.map(|value| match value {
                None => Some(None),
                Some(bytes) => interval(bytes).map(Some),
            });
            let values = values.collect::<Option<Vec<_>>>()?;
            Some(Arc::new(IntervalMonthDayNanoArray::from(values)))
        }
        DataType::List(_) | DataType::Struct(_) | DataType::Map(..) => {
            let mut values = Values::new(data_type);
            for value in array.as_binary_view() {
                let Some(bytes) = value else {
                    values.push(None)?;
                    continue;
                };
                let (version, mut rest) = bytes.split_first()?;
                if *version != VERSION {
                    return None;
                }
                values.push(Some(&mut rest))?;
                if !rest.is_empty() {
                    return None;
                }
            }
            values.finish()
        }
        _ => Some(array),
    }
}

/// The wide decimal of its 32 bytes; none of others.
fn wide(bytes: &[u8]) -> Option<i256> {
    let mut bytes: [u8; 32] = bytes.try_into().ok()?;
    bytes[0] ^= SIGN;
    Some(i256::from_be_bytes(bytes))
}

/// The interval of its 16 bytes; none of others.
fn interval(bytes: &[u8]) -> Option<IntervalMonthDayNano> {
    let (months, rest) = bytes.split_first_chunk::<4>()?;
    let (days, rest) = rest.split_first_chunk::<4>()?;
    let nanoseconds: [u8; 8] = rest.try_into().ok()?;
    Some(IntervalMonthDayNano::new(
        i32::from_le_bytes(*months),
        i32::from_le_bytes(*days),
        i64::from_le_bytes(nanoseconds),
    ))
}

/// Values that are being read.
struct Values {
    data_type: DataType,
    kind: Kind,
    valid: Vec<bool>,
}

/// The values so far, by how they lie.
enum Kind {
    /// Of this width each.
    Fixed(usize, Vec<u8>),
    Booleans(Vec<bool>),
    /// Texts, bytes and JSON: where each ends in the bytes.
    Bytes(Vec<usize>, Vec<u8>),
    /// Arrays: where each ends among the items.
    Lists(Vec<i32>, Box<Values>),
    /// Structs: their fields.
    Structs(Vec<Values>),
}

impl Values {
    fn new(data_type: &DataType) -> Values {
        let kind = match data_type {
            DataType::Boolean => Kind::Booleans(vec![]),
            DataType::Utf8View | DataType::BinaryView => Kind::Bytes(vec![], vec![]),
            DataType::Struct(_) if json_kind(data_type).is_some() => Kind::Bytes(vec![], vec![]),
            own if is_enum(own) => Kind::Fixed(2, vec![]),
            DataType::Struct(fields) => {
                let fields = fields.iter().map(|field| Values::new(field.data_type()));
                Kind::Structs(fields.collect())
            }
            DataType::FixedSizeBinary(width) => Kind::Fixed(*width as usize, vec![]),
            DataType::Map(entries, _) => {
                Kind::Lists(vec![], Box::new(Values::new(entries.data_type())))
            }
            DataType::List(item) => Kind::Lists(vec![], Box::new(Values::new(item.data_type()))),
            other => Kind::Fixed(other.primitive_width().unwrap_or(0), vec![]),
        };
        Values {
            data_type: data_type.clone(),
            kind,
            valid: vec![],
        }
    }

    /// Takes a value off `bytes`; none for one that is NULL.
    fn push(&mut self, bytes: Option<&mut &[u8]>) -> Option<()> {
        self.valid.push(bytes.is_some());
        match &mut self.kind {
            Kind::Fixed(width, values) => match bytes {
                Some(bytes) => values.extend_from_slice(take(bytes, *width)?),
                None => values.resize(values.len() + *width, 0),
            },
            Kind::Booleans(values) => values.push(match bytes {
                Some(bytes) => match take(bytes, 1)? {
                    [0] => false,
                    [1] => true,
                    _ => return None,
                },
                None => false,
            }),
            Kind::Bytes(ends, values) => {
                if let Some(bytes) = bytes {
                    let length = length(bytes)?;
                    values.extend_from_slice(take(bytes, length)?);
                }
                ends.push(values.len());
            }
            Kind::Lists(ends, items) => {
                if let Some(bytes) = bytes {
                    push_items(items, bytes)?;
                }
                ends.push(i32::try_from(items.valid.len()).ok()?);
            }
            Kind::Structs(fields) => match bytes {
                Some(bytes) => {
                    let bitmap = take(bytes, fields.len().div_ceil(8))?;
                    for (at, field) in fields.iter_mut().enumerate() {
                        field.push(is_set(bitmap, at).then_some(&mut *bytes))?;
                    }
                }
                None => {
                    for field in fields {
                        field.push(None)?;
                    }
                }
            },
        }
        Some(())
    }

    fn finish(self) -> Option<ArrayRef> {
        let Values {
            data_type,
            kind,
            valid,
        } = self;
        let count = valid.len();
        let nulls = NullBuffer::new(BooleanBuffer::from(valid));
        let nulls = Some(nulls).filter(|n| n.null_count() > 0);
        match kind {
            Kind::Fixed(width, bytes) => {
                if let DataType::FixedSizeBinary(width) = data_type {
                    let values = FixedSizeBinaryArray::try_new(width, bytes.into(), nulls);
                    return Some(Arc::new(values.ok()?));
                }
                fixed(&data_type, width, bytes, count, nulls)
            }
            Kind::Booleans(values) => {
                let values = BooleanBuffer::from(values);
                Some(Arc::new(BooleanArray::new(values, nulls)))
            }
            Kind::Bytes(ends, bytes) => {
                let valid = |at| nulls.as_ref().is_none_or(|n| n.is_valid(at));
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let values = starts.zip(&ends).map(|(start, end)| &bytes[start..*end]);
                let values = values
                    .enumerate()
                    .map(|(at, value)| valid(at).then_some(value));
                let values = BinaryViewArray::from_iter(values);
                if data_type == DataType::BinaryView {
                    return Some(Arc::new(values));
                }
                let texts: ArrayRef = Arc::new(values.to_string_view().ok()?);
                from_storage(texts, &data_type)
            }
            Kind::Lists(ends, items) => {
                let offsets: Vec<i32> = std::iter::once(0).chain(ends).collect();
                lists(data_type, offsets, items.finish()?, nulls)
            }
            Kind::Structs(fields) => {
                let DataType::Struct(own) = data_type else {
                    return None;
                };
                let columns = fields.into_iter().map(Values::finish);
                let columns = columns.collect::<Option<Vec<_>>>()?;
                let values = StructArray::try_new(own, columns, nulls);
                Some(Arc::new(values.ok()?))
            }
        }
    }
}

/// Values of `width` bytes each; none of a type without a width.
fn fixed(
    data_type: &DataType,
    width: usize,
    bytes: Vec<u8>,
    count: usize,
    nulls: Option<NullBuffer>,
) -> Option<ArrayRef> {
    (width > 0).then_some(())?;
    let made = |data_type: DataType| {
        let data = ArrayData::builder(data_type)
            .len(count)
            .add_buffer(Buffer::from_vec(bytes))
            .nulls(nulls)
            .align_buffers(true)
            .build();
        data.ok().map(make_array)
    };
    if is_enum(data_type) {
        // Labels lie as their numbers.
        return from_storage(made(storage(data_type)?)?, data_type);
    }
    made(data_type.clone())
}

/// Arrays or maps of their items or entries.
fn lists(
    data_type: DataType,
    offsets: Vec<i32>,
    items: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Option<ArrayRef> {
    let offsets = OffsetBuffer::new(offsets.into());
    match data_type {
        DataType::List(item) => {
            let lists = ListArray::try_new(item, offsets, items, nulls);
            Some(Arc::new(lists.ok()?))
        }
        DataType::Map(entries, sorted) => {
            let items = items.as_struct_opt()?.clone();
            let maps = MapArray::try_new(entries, offsets, items, nulls, sorted);
            Some(Arc::new(maps.ok()?))
        }
        _ => None,
    }
}

/// Takes the items of an array off `bytes`.
fn push_items(items: &mut Values, bytes: &mut &[u8]) -> Option<()> {
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
        let valid = bitmap.is_none_or(|bits| is_set(bits, at));
        items.push(valid.then_some(&mut *bytes))?;
    }
    Some(())
}

fn is_set(bitmap: &[u8], at: usize) -> bool {
    bitmap[at / 8] >> (at % 8) & 1 == 1
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
