//! Values of types that the engine has no kernels for: lists, structs, maps, intervals, bytes, very wide numbers.
//!
//! Each is kept as a text that sorts as the values do, so that it is compared, grouped, joined by, sorted and spilled as
//! texts are; functions and answers get Arrow's values back. The text has bytes as characters below 256, which is always
//! sound UTF-8 and sorts as these bytes do: of bytes themselves, of other values those of Arrow's row format. Within lists
//! and structs NULLs are the greatest values. A text in a struct of its own, such as JSON, stands for itself.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, FixedSizeBinaryBuilder, StringViewArray,
    StringViewBuilder, StructArray, UInt32Array, new_empty_array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, cast, take};
use arrow::datatypes::{DataType, Fields};
use arrow::row::{RowConverter, SortField};

use crate::error::{Error, Result};

/// Whether values of type `data` are kept as texts that stand for them.
pub(crate) fn is_opaque(data: &DataType) -> bool {
    use DataType::*;
    match data {
        Float16 | Decimal256(..) | Interval(_) | Duration(_) => true,
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => true,
        List(field) | LargeList(field) | FixedSizeList(field, _) => is_part(field.data_type()),
        // Maps are equal if they have the same entries in the same order.
        Map(entries, _) => is_opaque(entries.data_type()),
        Struct(fields) => {
            !fields.is_empty() && fields.iter().all(|field| is_part(field.data_type()))
        }
        _ => false,
    }
}

/// Whether values of type `data` may be within such a value.
fn is_part(data: &DataType) -> bool {
    let plain = matches!(
        data,
        DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    plain || data.is_primitive() || is_opaque(data)
}

/// The field of a struct that marks a text as of another type, as its name says; such a text is NULL only as a whole.
fn marked(data: &DataType) -> Option<&Fields> {
    let DataType::Struct(fields) = data else {
        return None;
    };
    let is_mark = match &fields[..] {
        [field] => field.name().starts_with('\u{1}') && *field.data_type() == DataType::Utf8View,
        _ => false,
    };
    is_mark.then_some(fields)
}

fn converter(data: &DataType) -> Result<RowConverter> {
    let options = SortOptions {
        descending: false,
        nulls_first: false,
    };
    let field = SortField::new_with_options(data.clone(), options);
    Ok(RowConverter::new(vec![field])?)
}

/// The texts that stand for the values of `array`, as values of type `data`.
///
/// # Errors
/// Those of Arrow, if the values are not of that type and cannot be converted to it.
pub(super) fn encode(array: &ArrayRef, data: &DataType) -> Result<ArrayRef> {
    let array = if array.data_type().equals_datatype(data) {
        Arc::clone(array)
    } else {
        cast(array, data)?
    };
    let nulls = array.logical_nulls();
    if marked(data).is_some() {
        let texts = array.as_struct().column(0);
        if nulls.is_none() {
            return Ok(Arc::clone(texts));
        }
        let nulls = NullBuffer::union(nulls.as_ref(), texts.nulls());
        let (views, buffers, _) = texts.as_string_view().clone().into_parts();
        // SAFETY: views and buffers are those of a sound array; only the validity mask differs.
        let texts = unsafe { StringViewArray::new_unchecked(views, buffers, nulls) };
        return Ok(Arc::new(texts));
    }
    let nulls = nulls.as_ref();
    if let Some(bytes) = array.as_fixed_size_binary_opt() {
        return as_characters((0..bytes.len()).map(|row| bytes.value(row)), nulls);
    }
    if is_bytes(data) {
        let bytes = cast(&array, &DataType::BinaryView)?;
        let bytes = bytes.as_binary_view();
        return as_characters((0..bytes.len()).map(|row| bytes.value(row)), nulls);
    }
    let rows = converter(data)?.convert_columns(&[array])?;
    as_characters(rows.iter(), nulls)
}

/// Whether values of type `data` are bytes.
fn is_bytes(data: &DataType) -> bool {
    matches!(
        data,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

/// A text with a character for each byte of each row, NULL where `nulls` say so.
fn as_characters(
    rows: impl ExactSizeIterator<Item = impl AsRef<[u8]>>,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let mut texts = StringViewBuilder::with_capacity(rows.len());
    let mut text = String::new();
    for (number, row) in rows.enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(number)) {
            texts.append_null();
            continue;
        }
        text.clear();
        text.extend(row.as_ref().iter().map(|byte| char::from(*byte)));
        texts.try_append_value(&text)?;
    }
    Ok(Arc::new(texts.finish()))
}

/// Appends the bytes whose characters `text` has.
///
/// # Errors
/// An internal error for another text.
fn append_bytes(text: &str, bytes: &mut Vec<u8>) -> Result<()> {
    for character in text.chars() {
        let byte = u8::try_from(u32::from(character));
        bytes.push(byte.map_err(|_| Error::internal("a text that stands for no value"))?);
    }
    Ok(())
}

/// The bytes that texts stand for, as values of type `data`.
fn decode_bytes(texts: &StringViewArray, data: &DataType) -> Result<ArrayRef> {
    let mut bytes = Vec::new();
    if let DataType::FixedSizeBinary(width) = data {
        let mut values = FixedSizeBinaryBuilder::with_capacity(texts.len(), *width);
        for text in texts {
            match text {
                Some(text) => {
                    bytes.clear();
                    append_bytes(text, &mut bytes)?;
                    values.append_value(&bytes)?;
                }
                None => values.append_null(),
            }
        }
        return Ok(Arc::new(values.finish()));
    }
    let mut values = BinaryViewBuilder::with_capacity(texts.len());
    for text in texts {
        match text {
            Some(text) => {
                bytes.clear();
                append_bytes(text, &mut bytes)?;
                values.try_append_value(&bytes)?;
            }
            None => values.append_null(),
        }
    }
    let values: ArrayRef = Arc::new(values.finish());
    match data {
        DataType::BinaryView => Ok(values),
        other => Ok(cast(&values, other)?),
    }
}

/// The values of type `data` that `texts`, string views, stand for.
///
/// # Errors
/// Those of Arrow; an internal error for texts that stand for nothing.
pub(super) fn decode(texts: &ArrayRef, data: &DataType) -> Result<ArrayRef> {
    if let Some(fields) = marked(data) {
        let (fields, nulls) = (fields.clone(), texts.nulls().cloned());
        let values = StructArray::try_new(fields, vec![Arc::clone(texts)], nulls)?;
        return Ok(Arc::new(values));
    }
    let texts = texts.as_string_view();
    if texts.is_empty() {
        return Ok(new_empty_array(data));
    }
    if is_bytes(data) || matches!(data, DataType::FixedSizeBinary(_)) {
        return decode_bytes(texts, data);
    }
    let converter = converter(data)?;
    let null = converter.convert_columns(&[new_null_array(data, 1)])?;
    // A text that rows behind each other share, such as that of their partition, is decoded once.
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut of: Vec<u32> = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        let is_null = texts.is_null(row);
        let is_same = |before: usize| {
            texts.views()[before] == texts.views()[row] && texts.is_null(before) == is_null
        };
        if row == 0 || !is_same(row - 1) {
            if is_null {
                bytes.extend_from_slice(null.row(0).as_ref());
            } else {
                append_bytes(texts.value(row), &mut bytes)?;
            }
            ends.push(bytes.len());
        }
        of.push(ends.len() as u32 - 1);
    }
    let parser = converter.parser();
    let mut start = 0;
    let rows = ends.iter().map(|end| {
        let row = parser.parse(&bytes[start..*end]);
        start = *end;
        row
    });
    let column = converter.convert_rows(rows)?.pop();
    let column = column.ok_or_else(|| Error::internal("rows without a column"))?;
    if column.len() == texts.len() {
        return Ok(column);
    }
    Ok(take(&column, &UInt32Array::from(of), None)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BinaryArray, BinaryViewArray, FixedSizeBinaryArray, Float32Array, Int64Array,
        IntervalMonthDayNanoArray, ListArray, MapArray, StringArray,
    };
    use arrow::datatypes::{Field, Int64Type, IntervalMonthDayNano};

    use crate::vector::value::{Kind, Type, Vector};
    use table::{json_type, jsonb_type};

    fn all() -> Vec<ArrayRef> {
        let numbers = vec![
            Some(vec![Some(-1), None]),
            None,
            Some(vec![]),
            Some(vec![Some(200), Some(3)]),
        ];
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(numbers);
        let fields = vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Utf8View, true),
        ];
        let structs = StructArray::new(
            fields.into(),
            vec![
                Arc::new(Int64Array::from(vec![Some(1), None, Some(-3), Some(4)])) as _,
                Arc::new(StringViewArray::from(vec![
                    Some("ä"),
                    Some("x"),
                    None,
                    Some(""),
                ])) as _,
            ],
            Some(NullBuffer::from(vec![true, true, false, true])),
        );
        let bytes: Vec<Option<&[u8]>> = vec![Some(b"\xFF\x00"), Some(b""), None, Some(b"\x7F")];
        let ids = [Some([0, 255]), None, Some([7, 8]), Some([128, 1])].into_iter();
        let json: ArrayRef = Arc::new(StringViewArray::from(vec![
            Some("{}"),
            None,
            Some("\u{1}"),
            Some("[1, 2, 3, 4, 5, 6]"),
        ]));
        let mark = vec![Field::new("\u{1}json", DataType::Utf8View, true)];
        let nulls = json.nulls().cloned();
        let spans = [(1, 0, 0), (0, -2, 5), (0, 0, 0), (i32::MIN, 7, i64::MAX)];
        let spans =
            spans.map(|(months, days, nanos)| Some(IntervalMonthDayNano::new(months, days, nanos)));
        let maps = vec![
            Some(vec![("a", Some(1)), ("b", None)]),
            None,
            Some(vec![]),
            Some(vec![("c", Some(3))]),
        ];
        let maps = MapArray::from_vec_of_maps::<StringArray, Int64Array, _, _>(maps, false);
        vec![
            Arc::new(maps),
            Arc::new(StructArray::new(mark.into(), vec![json], nulls)),
            Arc::new(lists),
            Arc::new(structs),
            Arc::new(BinaryArray::from(bytes.clone())),
            Arc::new(BinaryViewArray::from(bytes)),
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids, 2).unwrap()),
            Arc::new(IntervalMonthDayNanoArray::from_iter(spans)),
        ]
    }

    #[test]
    fn values_come_back_as_they_were() {
        for array in all() {
            let ty = Type::of(array.data_type(), true).unwrap();
            assert_eq!(ty.kind, Kind::Text);
            let vector = Vector::from_arrow(&array, &ty).unwrap();
            assert_eq!(&vector.decoded(&ty).unwrap(), &array);
            let some = vector.at(&[3, 1]).unwrap().decoded(&ty).unwrap();
            assert_eq!(some.slice(0, 1).to_data(), array.slice(3, 1).to_data());
            assert_eq!(some.is_null(1), array.is_null(1));
            // Where a join found no row there is any text, or none.
            let nulls = Vector::nulls(Kind::Text, 2).decoded(&ty).unwrap();
            assert_eq!(nulls.null_count(), 2);
            // Rows that share a value.
            let again = [0, 0, 1, 1, 3, 3, 0];
            let rows = UInt32Array::from(again.to_vec());
            let wanted = take(&array, &rows, None).unwrap();
            let found = vector.at(&again).unwrap().decoded(&ty).unwrap();
            assert_eq!(&found, &wanted);
            let none = vector.at(&[]).unwrap().decoded(&ty).unwrap();
            assert_eq!((none.len(), none.data_type()), (0, array.data_type()));
        }
    }

    #[test]
    fn texts_sort_as_the_values_do() {
        let values: ArrayRef = Arc::new(Float32Array::from(vec![
            f32::NEG_INFINITY,
            -2.0,
            0.0,
            1.0,
            200.0,
            f32::INFINITY,
            f32::NAN,
        ]));
        let texts = encode(&values, &DataType::Float32).unwrap();
        let texts: Vec<&str> = texts.as_string_view().iter().flatten().collect();
        assert!(texts.is_sorted_by(|a, b| a < b), "{texts:?}");
    }

    #[test]
    fn json_is_texts_and_stays_what_it_was() {
        for data in [json_type(), jsonb_type()] {
            let DataType::Struct(fields) = &data else {
                panic!("{data}");
            };
            let texts = StringViewArray::from(vec![Some("{}"), None, Some("[\"a longer text\"]")]);
            let nulls = texts.nulls().cloned();
            let values = StructArray::new(fields.clone(), vec![Arc::new(texts)], nulls);
            let values: ArrayRef = Arc::new(values);
            let ty = Type::of(&data, true).unwrap();
            assert_eq!(ty.kind, Kind::Text);
            let vector = Vector::from_arrow(&values, &ty).unwrap();
            assert_eq!(vector.valid.as_deref(), Some(&[true, false, true][..]));
            assert_eq!(&vector.decoded(&ty).unwrap(), &values);
            let picked = vector.at(&[2, 1]).unwrap().decoded(&ty).unwrap();
            assert_eq!(picked.data_type(), &data);
            assert_eq!((picked.len(), picked.is_null(1)), (2, true));
        }
    }
}
