//! Columns of every type that tables store.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use table::*;

/// Columns of all types, each with a null in the middle.
pub(crate) fn every_type() -> Vec<(&'static str, ArrayRef)> {
    let strings = StringArray::from(vec![Some("a"), None, Some("c")]);
    let binary = BinaryArray::from(vec![Some(&b"\xff\x00"[..]), None, Some(b"")]);
    let mut columns = numeric_types();
    columns.extend(time_types());
    let numbers = [Some(vec![Some(1), None]), None, Some(vec![])];
    let numbers = ListArray::from_iter_primitive::<Int32Type, _, _>(numbers);
    let ids = [Some([7u8; 16]), None, Some([0; 16])].into_iter();
    let ids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids, 16).unwrap();
    let json = |data_type: DataType| -> ArrayRef {
        let DataType::Struct(fields) = data_type else {
            panic!("JSON is a struct");
        };
        let texts = StringViewArray::from(vec![Some("{}"), None, Some("[1, \"a longer text\"]")]);
        let nulls = texts.nulls().cloned();
        Arc::new(StructArray::new(fields, vec![Arc::new(texts)], nulls))
    };
    let parts: Vec<(&str, ArrayRef)> = vec![("a", Arc::new(strings.clone()))];
    let structs = StructArray::try_from(parts).unwrap();
    let wide = ["9".repeat(76), "-1".into()].map(|text| i256::from_string(&text));
    let wide = Decimal256Array::from_iter([wide[0], None, wide[1]]);
    let wide = wide.with_precision_and_scale(76, 5).unwrap();
    let names = MapFieldNames {
        entry: "entries".into(),
        key: "key".into(),
        value: "value".into(),
    };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), Int32Builder::new());
    maps.keys().append_value("a");
    maps.values().append_null();
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    maps.append(true).unwrap();
    let others: [(&str, ArrayRef); 10] = [
        ("wide", Arc::new(wide)),
        ("map", Arc::new(maps.finish())),
        ("struct", Arc::new(structs)),
        ("list", Arc::new(numbers)),
        ("uuid", Arc::new(ids)),
        ("json", json(json_type())),
        ("jsonb", json(jsonb_type())),
        ("utf8", Arc::new(strings)),
        ("binary", Arc::new(binary)),
        ("nothing", Arc::new(NullArray::new(3))),
    ];
    columns.extend(others);
    columns
}

fn numeric_types() -> Vec<(&'static str, ArrayRef)> {
    vec![
        (
            "boolean",
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        ),
        (
            "i8",
            Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)])),
        ),
        (
            "i16",
            Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(i16::MAX)])),
        ),
        (
            "i32",
            Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)])),
        ),
        (
            "i64",
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
        ),
        (
            "u8",
            Arc::new(UInt8Array::from(vec![Some(0), None, Some(u8::MAX)])),
        ),
        (
            "u16",
            Arc::new(UInt16Array::from(vec![Some(0), None, Some(u16::MAX)])),
        ),
        (
            "u32",
            Arc::new(UInt32Array::from(vec![Some(0), None, Some(u32::MAX)])),
        ),
        (
            "u64",
            Arc::new(UInt64Array::from(vec![Some(0), None, Some(u64::MAX)])),
        ),
        (
            "f32",
            Arc::new(Float32Array::from(vec![
                Some(-0.0),
                None,
                Some(f32::INFINITY),
            ])),
        ),
        (
            "f64",
            Arc::new(Float64Array::from(vec![Some(-0.0), None, Some(f64::MIN)])),
        ),
    ]
}

fn time_types() -> Vec<(&'static str, ArrayRef)> {
    vec![
        (
            "date",
            Arc::new(Date32Array::from(vec![Some(-1), None, Some(20_000)])),
        ),
        (
            "time_s",
            Arc::new(Time32SecondArray::from(vec![Some(1), None, Some(2)])),
        ),
        (
            "time_ms",
            Arc::new(Time32MillisecondArray::from(vec![Some(1), None, Some(2)])),
        ),
        (
            "time_us",
            Arc::new(Time64MicrosecondArray::from(vec![Some(1), None, Some(2)])),
        ),
        (
            "time_ns",
            Arc::new(Time64NanosecondArray::from(vec![Some(1), None, Some(2)])),
        ),
        (
            "stamp_s",
            Arc::new(TimestampSecondArray::from(vec![Some(1), None, Some(2)])),
        ),
        (
            "stamp_ms",
            Arc::new(TimestampMillisecondArray::from(vec![
                Some(1),
                None,
                Some(2),
            ])),
        ),
        (
            "stamp_us",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(1), None, Some(2)]).with_timezone("UTC"),
            ),
        ),
        (
            "stamp_ns",
            Arc::new(TimestampNanosecondArray::from(vec![Some(1), None, Some(2)])),
        ),
    ]
}
