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

/// Columns of numbers that are made as they are read; which are read is noted.
#[derive(Debug)]
struct Made {
    rows: usize,
    waits: bool,
    read: std::sync::Mutex<Vec<(usize, std::ops::Range<usize>)>>,
}

impl ingest::Columns for Made {
    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> u64 {
        16 * self.rows as u64
    }

    fn waits(&self, column: usize) -> bool {
        self.waits && column == 1
    }

    fn may_be_null(&self, column: usize) -> bool {
        column == 1
    }

    fn read(
        &self,
        column: usize,
        rows: std::ops::Range<usize>,
    ) -> std::result::Result<ArrayRef, ArrowError> {
        self.read.lock().unwrap().push((column, rows.clone()));
        let value = |row: usize| (column as i64 + 1) * row as i64;
        Ok(Arc::new(Int64Array::from_iter_values(rows.map(value))))
    }
}

#[test]
fn columns_are_made_as_they_are_read_and_only_those_that_are_asked_for() {
    let field = |name: &str| arrow::datatypes::Field::new(name, DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![field("a"), field("b")]));
    for waits in [false, true] {
        let made = Arc::new(Made {
            rows: 150_007,
            waits,
            read: std::sync::Mutex::default(),
        });
        let frame = Dataset::of_columns("df", &schema, Arc::clone(&made) as _).unwrap();
        let frame = Arc::new(frame);
        assert_eq!((frame.rows(), frame.parts(1)), (Some(150_007), 3));
        assert!(frame.is_batches() && !frame.is_once());
        assert!(frame.has_no_nulls(0) && !frame.has_no_nulls(1));
        assert_eq!(frame.is_at_hand(&Request::all(&frame)), !waits);
        assert!(frame.is_at_hand(&Request::of(&frame, [0])));

        let pieces: Vec<_> = frame.pieces(&Request::of(&frame, [1])).unwrap().collect();
        let ahead = made.read.lock().unwrap().len();
        assert_eq!(
            ahead,
            if waits { 3 } else { 0 },
            "ahead only where reading waits"
        );
        let mut next = 0;
        for (number, piece) in pieces.into_iter().enumerate() {
            let piece = piece.unwrap();
            assert_eq!(piece.number, number as u64);
            for batch in (piece.read)().unwrap() {
                for value in batch
                    .unwrap()
                    .column(0)
                    .as_primitive::<Int64Type>()
                    .values()
                {
                    assert_eq!(*value, 2 * next);
                    next += 1;
                }
            }
        }
        assert_eq!(next, 150_007);
        assert!(
            made.read
                .lock()
                .unwrap()
                .iter()
                .all(|(column, _)| *column == 1)
        );

        // Each of several readers makes its own pieces, and no others.
        made.read.lock().unwrap().clear();
        let mut rows = 0;
        for share in 0..2 {
            let request = Request {
                share: (share, 2),
                ..Request::of(&frame, [1])
            };
            for piece in frame.pieces(&request).unwrap() {
                let piece = piece.unwrap();
                assert_eq!(piece.number as usize % 2, share);
                rows += (piece.read)()
                    .unwrap()
                    .map(|batch| batch.unwrap().num_rows())
                    .sum::<usize>();
            }
        }
        assert_eq!(rows, 150_007);
        let read = made.read.lock().unwrap();
        assert_eq!(
            read.iter().map(|(_, rows)| rows.len()).sum::<usize>(),
            150_007
        );
    }
}

#[test]
fn bounds_of_what_is_in_memory() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(-3)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    let none: ArrayRef = Arc::new(Int64Array::from(vec![None; 3]));
    let batch = RecordBatch::try_from_iter([("a", numbers), ("t", texts), ("n", none)]).unwrap();
    let schema = batch.schema();
    let frame = Dataset::of_batches("df", &schema, vec![batch.clone(), batch]).unwrap();
    let frame = Arc::new(frame);
    assert_eq!(frame.bounds(0, 100), Some((-3, 5)));
    assert_eq!(frame.bounds(0, 7), None, "further apart");
    assert_eq!((frame.bounds(1, 100), frame.bounds(2, 100)), (None, None));
    assert!(!frame.has_no_nulls(0) && frame.has_no_nulls(1));
    let ends: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX]));
    let batch = RecordBatch::try_from_iter([("a", ends)]).unwrap();
    let frame = Dataset::of_batches("df", &batch.schema(), vec![batch]).unwrap();
    assert_eq!(
        Arc::new(frame).bounds(0, u64::MAX),
        Some((i64::MIN, i64::MAX))
    );
}
