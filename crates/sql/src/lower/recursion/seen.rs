//! The rows of `union`, none of which comes again.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, PrimitiveArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use arrow::row::{RowConverter, SortField};
use engine::{Error, Result};
use hashbrown::HashSet;

/// Memory of an entry of a set, about.
const ENTRY: u64 = 40;

/// Bytes of the longest row that is kept in its entry; its length is in the last byte.
const SHORT: usize = size_of::<u128>() - 1;

/// The rows that came before, as bytes that are equal if the rows are.
pub(super) struct Seen {
    converter: RowConverter,
    short: HashSet<u128>,
    long: HashSet<Box<[u8]>>,
    /// Bytes of all of them.
    bytes: u64,
}

impl Seen {
    /// None yet.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is a column whose values cannot be compared.
    pub(super) fn new(schema: &SchemaRef) -> Result<Seen> {
        let fields = schema.fields().iter();
        let fields = fields.map(|field| SortField::new(field.data_type().clone()));
        let converter = RowConverter::new(fields.collect());
        Ok(Seen {
            converter: converter.map_err(|e| Error::Unsupported(e.to_string()))?,
            short: HashSet::default(),
            long: HashSet::default(),
            bytes: 0,
        })
    }

    /// Those of these rows that did not come before.
    pub(super) fn others(&mut self, rows: RecordBatch) -> Result<RecordBatch> {
        if rows.num_columns() == 0 {
            // All rows of no columns are equal.
            let count = usize::from(rows.num_rows() > 0 && self.is_new(&[]));
            return Ok(rows.slice(0, count));
        }
        let columns: Vec<ArrayRef> = rows.columns().iter().map(one_zero).collect();
        let encoded = self.converter.convert_columns(&columns)?;
        let new = encoded.iter().map(|row| self.is_new(row.as_ref()));
        let new: Vec<bool> = new.collect();
        if new.iter().all(|new| *new) {
            return Ok(rows);
        }
        Ok(filter_record_batch(&rows, &BooleanArray::from(new))?)
    }

    /// Adds a row; whether it did not come before.
    fn is_new(&mut self, row: &[u8]) -> bool {
        let new = if row.len() <= SHORT {
            let mut bytes = [0; size_of::<u128>()];
            bytes[..row.len()].copy_from_slice(row);
            bytes[SHORT] = row.len() as u8;
            self.short.insert(u128::from_le_bytes(bytes))
        } else {
            let new = !self.long.contains(row);
            if new {
                self.long.insert(row.into());
                self.bytes += row.len() as u64;
            }
            new
        };
        self.bytes += if new { ENTRY } else { 0 };
        new
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Floats with one zero and one NaN, which are equal whatever their signs.
fn one_zero(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float64 => {
            let own = column.as_primitive::<Float64Type>();
            let one: PrimitiveArray<Float64Type> =
                own.unary(|v| if v.is_nan() { f64::NAN } else { v + 0.0 });
            Arc::new(one)
        }
        DataType::Float32 => {
            let own = column.as_primitive::<Float32Type>();
            let one: PrimitiveArray<Float32Type> =
                own.unary(|v| if v.is_nan() { f32::NAN } else { v + 0.0 });
            Arc::new(one)
        }
        _ => Arc::clone(column),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, StringViewArray};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn rows_that_are_equal_come_once() {
        let schema = Schema::new(vec![
            Field::new("f", DataType::Float64, true),
            Field::new("s", DataType::Utf8View, true),
        ]);
        let schema = Arc::new(schema);
        let mut seen = Seen::new(&schema).unwrap();
        let mut count = |rows: &[(Option<f64>, Option<&str>)]| {
            let floats: Float64Array = rows.iter().map(|(f, _)| *f).collect();
            let texts: StringViewArray = rows.iter().map(|(_, s)| *s).collect();
            let columns: Vec<ArrayRef> = vec![Arc::new(floats), Arc::new(texts)];
            let rows = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
            seen.others(rows).unwrap().num_rows()
        };
        assert_eq!(count(&[(Some(0.0), None), (Some(-0.0), None)]), 1);
        let nans = [(Some(f64::NAN), Some("a")), (Some(-f64::NAN), Some("a"))];
        assert_eq!(count(&nans), 1);
        assert_eq!(
            count(&[(None, Some("a")), (None, None), (None, Some(""))]),
            3
        );
        assert_eq!(count(&[(None, None), (Some(1.0), None)]), 1);
        assert!(seen.bytes() > 0);
    }

    #[test]
    fn rows_of_any_length_are_told_apart() {
        let schema = Schema::new(vec![Field::new("s", DataType::Utf8View, false)]);
        let schema = Arc::new(schema);
        let mut seen = Seen::new(&schema).unwrap();
        let texts: Vec<String> = (0..4_000)
            .map(|n| "\u{0}".repeat(n % 40) + &n.to_string())
            .collect();
        for round in 0..2 {
            let column: ArrayRef = Arc::new(StringViewArray::from_iter_values(&texts));
            let rows = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
            let found = seen.others(rows).unwrap().num_rows();
            assert_eq!(found, if round == 0 { texts.len() } else { 0 });
        }
    }

    #[test]
    fn rows_without_columns_are_equal() {
        let mut seen = Seen::new(&Arc::new(Schema::empty())).unwrap();
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(3));
        let rows = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options);
        let rows = rows.unwrap();
        assert_eq!(seen.others(rows.clone()).unwrap().num_rows(), 1);
        assert_eq!(seen.others(rows).unwrap().num_rows(), 0);
    }
}
