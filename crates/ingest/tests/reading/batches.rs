//! Batches that are no file: cut, not copied; streams, read once.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow::datatypes::{DataType, Int64Type, Schema};
use arrow::error::ArrowError;
use ingest::{Dataset, Request, Result};

/// Rows of a batch that is decoded.
const BATCH: usize = 8192;

fn batch(rows: std::ops::Range<i64>) -> RecordBatch {
    let texts = rows.clone().map(|row| format!("the text of the row {row}"));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
    RecordBatch::try_from_iter([("a", numbers), ("b", texts)]).unwrap()
}

fn read(dataset: &Arc<Dataset>) -> Result<Vec<RecordBatch>> {
    let mut batches = vec![];
    for (number, piece) in dataset.pieces(&Request::all(dataset))?.enumerate() {
        let piece = piece?;
        assert_eq!(piece.number, number as u64);
        batches.extend((piece.read)()?.collect::<Result<Vec<_>>>()?);
    }
    Ok(batches)
}

#[test]
fn batches_are_cut_in_order_and_not_copied() {
    let given = vec![batch(0..150_000), batch(0..0), batch(150_000..150_007)];
    let frame = Dataset::of_batches("df", &given[0].schema(), given.clone()).unwrap();
    let frame = Arc::new(frame);
    assert_eq!((frame.rows(), frame.parts(1)), (Some(150_007), 4));
    assert!(frame.is_batches() && !frame.is_once() && !frame.is_slow());
    assert_eq!(frame.schema().field(1).data_type(), &DataType::Utf8View);
    for _ in 0..2 {
        let rows = read(&frame).unwrap();
        let numbers = rows.iter().flat_map(|batch| {
            let column = batch.column(0).as_primitive::<Int64Type>();
            column.values().to_vec()
        });
        assert!(numbers.eq(0..150_007));
        let own = given[0].column(0).as_primitive::<Int64Type>().values();
        let second = rows[1].column(0).as_primitive::<Int64Type>().values();
        assert_eq!(second.as_ptr(), own[BATCH..].as_ptr());
        let own = given[0].column(1).as_string::<i32>().values();
        let texts = rows[1].column(1).as_string_view();
        assert_eq!(texts.value(0), "the text of the row 8192");
        assert_eq!(texts.data_buffers()[0].as_ptr(), own.as_ptr());
    }
}

#[test]
fn streams_are_read_once_and_their_errors_are_named() {
    let schema = batch(0..1).schema();
    let failed = ArrowError::ComputeError("no more".into());
    let batches = [Ok(batch(0..5)), Err(failed)];
    let reader = RecordBatchIterator::new(batches, schema);
    let frame = Arc::new(Dataset::of_reader("df", Box::new(reader)).unwrap());
    assert!(frame.is_once() && frame.rows().is_none());
    let error = read(&frame).unwrap_err().to_string();
    assert_eq!(error, "df: Compute error: no more");
    let error = read(&frame).unwrap_err().to_string();
    assert!(error.starts_with("df: was read already"), "{error}");
}

#[test]
fn batches_without_columns_or_with_the_same_twice_are_refused() {
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let twice = RecordBatch::try_from_iter([("a", Arc::clone(&number)), ("a", number)]);
    let twice = twice.unwrap();
    let error = Dataset::of_batches("df", &twice.schema(), vec![]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "df: has two columns \"a\"; rename one of them"
    );
    let none = Arc::new(Schema::empty());
    assert!(Dataset::of_batches("df", &none, vec![]).is_err());
    assert!(Dataset::of_batches("df", &batch(0..1).schema(), vec![twice]).is_err());
}
