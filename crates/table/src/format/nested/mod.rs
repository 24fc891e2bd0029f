//! Values that lie in text and binary pages although their type is another one: arrays, structs, maps, uuids, times with a
//! zone, intervals, decimals of more than 38 digits, JSON; and in those of numbers, enums.
//!
//! A uuid is its 16 bytes, a time with a zone its 12, a JSON value its text, a value of an enum the number of its label, of 16
//! bits. An interval is its months and days, four bytes each, and its nanoseconds, eight bytes, all little-endian. A decimal of
//! more than 38 digits is the whole number without its point, 32 bytes, big-endian with the sign turned, so that bytes are in the
//! order of numbers. An array is
//!
//! ```text
//! 1                the version of this layout
//! items            as below
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
//! A struct is the version and its fields, which are
//!
//! ```text
//! bitmap           one bit per field, least significant first, 1 = not NULL; in whole bytes
//! values           of the fields that are not NULL, one behind the other
//! ```
//!
//! A map lies as the array of its entries does, of which each is a struct of a key and a value. No key comes twice.
//!
//! A boolean is a byte, a number, date or time its bytes, a uuid 16 bytes, a text, binary or JSON value its length as u32
//! and its bytes, an array its own items without a version, a struct its own fields and a map its entries without one. What type items and fields
//! have is known of the column.

mod read;
mod write;

pub(crate) use self::read::from_storage;
pub(crate) use self::write::{storage, to_storage, zone};

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
    use std::sync::Arc;

    use arrow::array::{
        Array, ArrayRef, AsArray, BinaryViewArray, Decimal256Array, FixedSizeBinaryArray,
        Int32Array, Int32Builder, Int64Array, ListArray, ListBuilder, MapArray, StringViewArray,
        StringViewBuilder, StructArray,
    };
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::datatypes::{DataType, Decimal128Type, Field, Int64Type, i256};

    use super::*;
    use crate::format::block::Zone;
    use crate::schema::{json_type, jsonb_type, map_type, uuid_type};

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

    fn maps(keys: Vec<&str>, lengths: [usize; 3]) -> ArrayRef {
        let values = Int64Array::from_iter((0..keys.len() as i64).map(|n| (n != 1).then_some(n)));
        let DataType::Map(entries, sorted) = map_type(DataType::Utf8View, DataType::Int64) else {
            panic!("it is a map");
        };
        let DataType::Struct(fields) = entries.data_type().clone() else {
            panic!("entries are structs");
        };
        let keys: ArrayRef = Arc::new(StringViewArray::from(keys));
        let parts = StructArray::new(fields, vec![keys, Arc::new(values)], None);
        let nulls = NullBuffer::from(lengths.map(|length| length != 1).to_vec());
        let offsets = OffsetBuffer::from_lengths(lengths.map(|length| length - length % 2));
        Arc::new(MapArray::new(entries, offsets, parts, Some(nulls), sorted))
    }

    #[test]
    fn maps_come_back_and_have_each_key_once() {
        round(maps(vec!["a", "b", "", "a"], [2, 1, 2]));
        round(maps(vec!["a", "b"], [0, 1, 2]));
        let error = to_storage(&maps(vec!["a", "a"], [0, 1, 2])).unwrap_err();
        assert!(
            error.to_string().contains("the key a is there twice"),
            "{error}"
        );
    }

    #[test]
    fn wide_decimals_are_bytes_in_the_order_of_the_numbers() {
        let most = i256::from_string(&"9".repeat(76)).unwrap();
        let small = i256::from_i128(i128::MAX);
        let numbers = [
            most.wrapping_neg(),
            small.wrapping_neg(),
            i256::MINUS_ONE,
            i256::ZERO,
            i256::ONE,
            small,
            most,
        ];
        let array = Decimal256Array::from_iter_values(numbers);
        let array: ArrayRef = Arc::new(array.with_precision_and_scale(76, 10).unwrap());
        round(array.clone());
        let bytes = to_storage(&array).unwrap();
        let bytes: Vec<&[u8]> = bytes.as_binary_view().iter().flatten().collect();
        assert!(bytes.windows(2).all(|pair| pair[0] < pair[1]) && bytes[0].len() == 32);
        let all = Some(Zone::Int {
            min: i128::MIN,
            max: i128::MAX,
        });
        assert_eq!(zone(&array), all);
        assert_eq!(
            zone(&array.slice(2, 3)),
            Some(Zone::Int { min: -1, max: 1 })
        );
        let stored: ArrayRef = Arc::new(BinaryViewArray::from(vec![&b"short"[..]]));
        assert!(from_storage(stored, array.data_type()).is_none());
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
            for data_type in [numbers().data_type(), &nested, structs().data_type()] {
                if let Some(found) = from_storage(array.clone(), data_type) {
                    assert_eq!(found.len(), 1);
                }
            }
            let cut = bytes.get(1..).is_none_or(|rest| rest.len() != 16);
            assert!(!cut || from_storage(array, &uuid_type()).is_none() || bytes.len() == 16);
        }
    }

    /// Structs with a NULL among them, and a field that is itself nested.
    fn structs() -> StructArray {
        let numbers = Int32Array::from(vec![Some(1), None, Some(3), None, Some(5)]);
        let texts = StringViewArray::from(vec![
            Some("a"),
            Some("a text of more than twelve bytes"),
            None,
            None,
            Some(""),
        ]);
        let field =
            |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
        let inner: Vec<ArrayRef> = vec![Arc::new(numbers.clone())];
        let valid = NullBuffer::from(vec![true, true, false, true, true]);
        let inner = StructArray::new(vec![field("x", &inner[0])].into(), inner, Some(valid));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(numbers),
            Arc::new(texts),
            Arc::new(self::numbers()),
            Arc::new(inner),
        ];
        let names = ["n", "t", "l", "s"].iter().zip(&columns);
        let fields: Vec<Field> = names.map(|(name, array)| field(name, array)).collect();
        let valid = NullBuffer::from(vec![true, true, true, false, true]);
        StructArray::new(fields.into(), columns, Some(valid))
    }

    #[test]
    fn structs_come_back() {
        // What stands below a NULL does not matter, and does not come back.
        let same = |array: &ArrayRef| {
            let stored = to_storage(array).unwrap();
            assert_eq!(stored.data_type(), &DataType::BinaryView);
            let back = from_storage(stored, array.data_type()).unwrap();
            assert_eq!(back.len(), array.len());
            for row in 0..array.len() {
                assert_eq!(back.is_null(row), array.is_null(row));
                assert!(array.is_null(row) || back.slice(row, 1) == array.slice(row, 1));
            }
        };
        let own: ArrayRef = Arc::new(structs());
        same(&own);
        same(&own.slice(1, 3));
        let field = Arc::new(Field::new_list_field(own.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([2, 0, 3]);
        let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, own, None));
        let stored = to_storage(&lists).unwrap();
        let back = from_storage(stored, lists.data_type()).unwrap();
        same(&back);
        assert_eq!(back.as_list::<i32>().value_offsets(), [0, 2, 2, 5]);
        assert_eq!(back.as_list::<i32>().values().null_count(), 1);
    }

    /// The bytes lie in stores.
    #[test]
    fn the_layout_of_structs_stays_as_it_is() {
        let stored = to_storage(&(Arc::new(structs()) as ArrayRef)).unwrap();
        let mut wanted = vec![1, 0b1110];
        wanted.extend(32u32.to_le_bytes());
        wanted.extend(b"a text of more than twelve bytes");
        // The array is NULL in this row.
        wanted[1] = 0b1010;
        wanted.push(0);
        assert_eq!(stored.as_binary_view().value(1), wanted);
    }

    #[test]
    fn uuids_are_written_in_groups() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(uuid_text(&bytes), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
