//! Batches that leave the database for other libraries.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;

/// The columns as which rows leave: texts and bytes in arrays of their own, in place of views and dictionaries. Texts of a
/// table borrow the pages of the buffer pool, which other libraries would keep for as long as they like, and not all of them
/// know views. A name ends at a zero byte, as it does in C.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
/// use arrow::datatypes::DataType;
///
/// let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["north"]));
/// let batch = RecordBatch::try_from_iter([("name", texts)])?;
/// let schema = atoll::owned_schema(&batch.schema());
/// assert_eq!(*schema.field(0).data_type(), DataType::Utf8);
/// assert_eq!(atoll::owned_batch(&batch, &schema)?.schema(), schema);
/// # Ok::<(), arrow::error::ArrowError>(())
/// ```
pub fn owned_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    Arc::new(Schema::new(fields.map(owned_field).collect::<Vec<_>>()))
}

/// A batch with the columns of `schema`, which is that of [`owned_schema`]: texts and bytes are copied.
///
/// # Errors
///
/// If a batch has other columns, or decimals of more than 38 digits that are NaN or infinite: to other libraries every decimal
/// is a number.
pub fn owned_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    sql::refuse_not_finite(batch).map_err(|e| ArrowError::ComputeError(e.to_string()))?;
    let column = |(array, field): (&ArrayRef, &FieldRef)| cast(array, field.data_type());
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(column).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// The type as which a column leaves.
fn owned(data_type: &DataType) -> DataType {
    let item = |field: &FieldRef| Arc::new(owned_field(field));
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, value) => owned(value),
        DataType::List(field) => DataType::List(item(field)),
        DataType::LargeList(field) => DataType::LargeList(item(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(item(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(item).collect()),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(parts) => {
                let parts = parts
                    .iter()
                    .map(|part| Arc::new(owned_field(part).with_nullable(part.is_nullable())));
                let parts = DataType::Struct(parts.collect());
                let entries = entries.as_ref().clone().with_data_type(parts);
                DataType::Map(Arc::new(entries), *sorted)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}

fn owned_field(field: &FieldRef) -> Field {
    let name = field.name().split('\0').next().unwrap_or_default();
    Field::new(name, owned(field.data_type()), field.is_nullable())
}
