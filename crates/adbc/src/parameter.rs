//! Values of Arrow as the parameters of statements, which are texts of declared types.

use std::sync::Arc;

use adbc_core::error::Result;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};

use crate::error::{missing, of, with};

/// Rows that become texts at a time.
const ROWS: usize = 1024;

/// One row of parameters.
pub(crate) type Row = Vec<Option<String>>;

/// The types that parameters of these columns are declared with; none for those of which nothing is known.
///
/// # Errors
/// For types that have no such values.
pub(crate) fn declared(schema: &SchemaRef) -> Result<Vec<Option<DataType>>> {
    let fields = schema.fields().iter();
    fields.map(|field| of_type(field.data_type())).collect()
}

fn of_type(data_type: &DataType) -> Result<Option<DataType>> {
    use DataType::*;
    Ok(Some(match data_type {
        Null => return Ok(None),
        Boolean
        | Int8
        | Int16
        | Int32
        | Int64
        | UInt8
        | UInt16
        | UInt32
        | UInt64
        | Float32
        | Float64
        | Decimal128(..)
        | Timestamp(_, None) => data_type.clone(),
        Float16 => Float32,
        Utf8 | LargeUtf8 | Utf8View => Utf8View,
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Binary,
        Date32 | Date64 => Date32,
        Time32(_) | Time64(_) => Time64(TimeUnit::Microsecond),
        Timestamp(unit, Some(_)) => Timestamp(*unit, Some("+00:00".into())),
        Decimal32(p, s) | Decimal64(p, s) => Decimal128(*p, *s),
        Decimal256(p, s) if *p <= 38 => Decimal128(*p, *s),
        Interval(_) | Duration(_) => Interval(arrow::datatypes::IntervalUnit::MonthDayNano),
        Dictionary(_, value) => return of_type(value),
        other => {
            return Err(missing(format!(
                "parameters of type {} are not supported: bind numbers, texts, bytes, days, times and truths",
                sql::type_name(other)
            )));
        }
    }))
}

/// A column as what its values are written by.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    use DataType::*;
    let wanted = match array.data_type() {
        Dictionary(_, value) => value.as_ref().clone(),
        Date64 => Date32,
        // The moment itself, whatever the zone is called.
        Timestamp(unit, Some(_)) => Timestamp(*unit, Some("+00:00".into())),
        _ => return Ok(Arc::clone(array)),
    };
    let array = cast(array, &wanted)?;
    match array.data_type() {
        Dictionary(..) | Date64 => plain(&array),
        Timestamp(_, Some(zone)) if &**zone != "+00:00" => plain(&array),
        _ => Ok(array),
    }
}

/// Rows of parameters, one after the other.
pub(crate) struct Rows {
    reader: Box<dyn RecordBatchReader + Send>,
    /// The batch that is being read, and how many rows of it are done.
    batch: Option<(RecordBatch, usize)>,
    ready: std::vec::IntoIter<Row>,
}

impl Rows {
    pub(crate) fn new(reader: Box<dyn RecordBatchReader + Send>) -> Rows {
        Rows {
            reader,
            batch: None,
            ready: Vec::new().into_iter(),
        }
    }

    /// The next row.
    ///
    /// # Errors
    /// If whoever makes the rows fails.
    pub(crate) fn take(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Ok(Some(row));
            }
            let (batch, at) = match self.batch.take() {
                Some(rest) => rest,
                None => match self.reader.next() {
                    Some(batch) => (batch.map_err(unread)?, 0),
                    None => return Ok(None),
                },
            };
            let end = batch.num_rows().min(at + ROWS);
            self.ready = texts(&batch.slice(at, end - at))?.into_iter();
            if end < batch.num_rows() {
                self.batch = Some((batch, end));
            }
        }
    }
}

/// The error that rows which were bound have ended with.
fn unread(error: arrow::error::ArrowError) -> adbc_core::error::Error {
    let message = format!("the rows that were bound cannot be read: {error}");
    with(adbc_core::error::Status::IO, "58030", message)
}

/// The rows of a batch as texts.
fn texts(batch: &RecordBatch) -> Result<Vec<Row>> {
    let columns = batch.columns().iter().map(plain);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = FormatOptions::new().with_duration_format(DurationFormat::Pretty);
    let formatters = columns
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let bytes = |column: &ArrayRef| {
        matches!(
            column.data_type(),
            DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_)
        )
    };
    let value = |at: usize, row: usize| -> Result<Option<String>> {
        let column = &columns[at];
        if column.is_null(row) || column.data_type() == &DataType::Null {
            return Ok(None);
        }
        let text = formatters[at].value(row).try_to_string();
        let text = text.map_err(|error| of(&atoll::Error::Arrow(error)))?;
        Ok(Some(if bytes(column) {
            format!("\\x{text}")
        } else {
            text
        }))
    };
    (0..batch.num_rows())
        .map(|row| (0..columns.len()).map(|at| value(at, row)).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::*;
    use arrow::datatypes::Int8Type;

    use super::*;
    use crate::rows::Held;

    fn of_column(array: ArrayRef) -> (Option<DataType>, Vec<Option<String>>) {
        let batch = RecordBatch::try_from_iter_with_nullable([("a", array, true)]).unwrap();
        let types = declared(&batch.schema()).unwrap();
        let mut rows = Rows::new(Box::new(Held::one(batch)));
        let mut values = Vec::new();
        while let Some(mut row) = rows.take().unwrap() {
            values.push(row.remove(0));
        }
        (types[0].clone(), values)
    }

    fn told(array: impl Array + 'static) -> (Option<DataType>, String) {
        let (data_type, values) = of_column(Arc::new(array));
        (data_type, values[0].clone().unwrap_or("none".into()))
    }

    #[test]
    fn values_become_texts_of_declared_types() {
        use DataType::*;
        let micros = |zone: Option<&str>| {
            TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone_opt(zone)
        };
        let cases = [
            (told(Int64Array::from(vec![-5])), Int64, "-5"),
            (
                told(UInt64Array::from(vec![u64::MAX])),
                UInt64,
                "18446744073709551615",
            ),
            (told(BooleanArray::from(vec![true])), Boolean, "true"),
            (told(StringArray::from(vec!["it's"])), Utf8View, "it's"),
            (told(LargeStringArray::from(vec![""])), Utf8View, ""),
            (
                told(BinaryArray::from(vec![&b"\x00\xff"[..]])),
                Binary,
                "\\x00ff",
            ),
            (
                told(Date64Array::from(vec![86_400_000])),
                Date32,
                "1970-01-02",
            ),
            (
                told(Time32SecondArray::from(vec![3661])),
                Time64(TimeUnit::Microsecond),
                "01:01:01",
            ),
            (
                told(micros(None)),
                Timestamp(TimeUnit::Microsecond, None),
                "1970-01-01T00:00:01.500",
            ),
            (
                told(micros(Some("+02:00"))),
                Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
                "1970-01-01T00:00:01.500Z",
            ),
            (
                told(
                    Decimal128Array::from(vec![-1250])
                        .with_precision_and_scale(10, 2)
                        .unwrap(),
                ),
                Decimal128(10, 2),
                "-12.50",
            ),
        ];
        for ((data_type, text), wanted, shown) in cases {
            assert_eq!((data_type, text.as_str()), (Some(wanted), shown));
        }
        let dictionary: DictionaryArray<Int8Type> = ["b", "a"].into_iter().collect();
        assert_eq!(told(dictionary), (Some(Utf8View), "b".into()));
        assert_eq!(told(NullArray::new(1)), (None, "none".into()));
    }

    #[test]
    fn all_rows_come_in_order_and_nulls_are_none() {
        let numbers: Int64Array = (0..3000).map(|n| (n % 7 != 3).then_some(n)).collect();
        let (_, values) = of_column(Arc::new(numbers));
        assert_eq!(values.len(), 3000);
        for (at, value) in values.iter().enumerate() {
            let wanted = (at % 7 != 3).then(|| at.to_string());
            assert_eq!(*value, wanted);
        }
    }

    #[test]
    fn what_has_no_text_is_refused() {
        let list =
            ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>([Some([Some(1)])]);
        let batch = RecordBatch::try_from_iter([("a", Arc::new(list) as ArrayRef)]).unwrap();
        let error = declared(&batch.schema()).unwrap_err();
        assert_eq!(error.status, adbc_core::error::Status::NotImplemented);
    }
}
