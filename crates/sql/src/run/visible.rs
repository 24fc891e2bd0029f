//! Values of types that Arrow has no own type for, as they leave for people and programs: JSON, enums and times with a zone as
//! texts, which the column's metadata tells from other texts.

use std::collections::HashMap;
use std::sync::Arc;

use crate::resources::stream::RowStream;
use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion_execution::SendableRecordBatchStream;
use futures::StreamExt;
use table::{has_infinite, is_enum, json_kind, timetz_type, uuid_type};

use crate::error::Result;
use crate::functions::convert::to_texts;
use crate::functions::json::value::texts;
use crate::functions::lists::types::is_special;
use crate::functions::lists::types::lists;
use crate::functions::temporal::local::Local;
use crate::functions::temporal::moments::plain_texts;
use crate::messages::types::{JSON_TYPE, marks, standard_name};

/// Where Arrow has the name of an extension type.
const EXTENSION: &str = "ARROW:extension:name";

/// The field of the entries of a map, with its parts made others.
fn entries_of(entries: &FieldRef, part: impl Fn(&FieldRef) -> FieldRef) -> FieldRef {
    match entries.data_type() {
        DataType::Struct(parts) => {
            let parts = DataType::Struct(parts.iter().map(part).collect());
            Arc::new(entries.as_ref().clone().with_data_type(parts))
        }
        _ => Arc::clone(entries),
    }
}

/// A column as it is seen outside.
fn field(own: &FieldRef) -> FieldRef {
    let data_type = own.data_type();
    let marked = |data_type: DataType, marks: &[(&str, &str)]| {
        let mut metadata: HashMap<String, String> = own.metadata().clone();
        let marks = marks
            .iter()
            .map(|(key, mark)| (key.to_string(), mark.to_string()));
        metadata.extend(marks);
        let field = own.as_ref().clone().with_data_type(data_type);
        Arc::new(field.with_metadata(metadata))
    };
    match data_type {
        own if is_enum(own) => {
            let marks = marks(own);
            let marks = marks.iter().map(|(key, mark)| (*key, mark.as_str()));
            marked(DataType::Utf8View, &marks.collect::<Vec<_>>())
        }
        DataType::Struct(fields) => match json_kind(data_type) {
            Some(kind) => marked(
                DataType::Utf8View,
                &[(JSON_TYPE, kind.name()), (EXTENSION, "arrow.json")],
            ),
            None => {
                let fields = DataType::Struct(fields.iter().map(field).collect());
                Arc::new(own.as_ref().clone().with_data_type(fields))
            }
        },
        DataType::List(item) => {
            let item = field(item);
            Arc::new(own.as_ref().clone().with_data_type(DataType::List(item)))
        }
        DataType::Map(entries, sorted) => {
            let entries = entries_of(entries, field);
            let maps = DataType::Map(entries, *sorted);
            Arc::new(own.as_ref().clone().with_data_type(maps))
        }
        ty if *ty == timetz_type() => {
            let name = standard_name(ty);
            marked(DataType::Utf8View, &[(JSON_TYPE, &name)])
        }
        ty if *ty == uuid_type() => marked(ty.clone(), &[(EXTENSION, "arrow.uuid")]),
        _ => Arc::clone(own),
    }
}

fn values(own: &ArrayRef, to: &FieldRef) -> Result<ArrayRef> {
    Ok(match (own.data_type(), to.data_type()) {
        (from, DataType::Utf8View) if is_enum(from) => to_texts(own)?,
        (DataType::Struct(_), DataType::Utf8View) => Arc::new(texts(own)),
        (from, DataType::Utf8View) if *from == timetz_type() => to_texts(own)?,
        (DataType::List(_), DataType::List(item)) => {
            let all = lists(own);
            let items = values(all.values(), item)?;
            let (offsets, nulls) = (all.offsets().clone(), all.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, nulls)?)
        }
        (DataType::Map(..), DataType::Map(entries, sorted)) => {
            let all = own.as_map();
            let DataType::Struct(parts) = entries.data_type() else {
                return Ok(Arc::clone(own));
            };
            let columns = all.entries().columns().iter().zip(parts);
            let columns = columns.map(|(column, field)| values(column, field));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let made = StructArray::try_new(parts.clone(), columns, None)?;
            let (offsets, nulls) = (all.offsets().clone(), all.nulls().cloned());
            let entries = Arc::clone(entries);
            Arc::new(MapArray::try_new(entries, offsets, made, nulls, *sorted)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let all = own.as_struct();
            let columns = all.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| values(column, field));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let nulls = all.nulls().cloned();
            Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?)
        }
        _ => Arc::clone(own),
    })
}

/// The columns of an answer as they are seen outside.
pub(crate) fn schema(own: &SchemaRef) -> SchemaRef {
    if !own
        .fields()
        .iter()
        .any(|field| is_special(field.data_type()))
    {
        return Arc::clone(own);
    }
    let fields: Vec<FieldRef> = own.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()))
}

/// The rows of an answer as they are seen outside; `schema` is [that](schema) of their own.
pub(crate) fn batch(own: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = own.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| values(column, field));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(own.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

/// The same for a stream of them.
pub(crate) fn rows(own: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let seen = schema(&own.schema());
    if seen == own.schema() {
        return own;
    }
    let of = Arc::clone(&seen);
    let rows = own.map(move |rows| Ok(batch(&rows?, &of)?));
    Box::pin(RowStream::new(seen, rows))
}

/// `rows` with arrays, structs and uuids as PostgreSQL writes them: `{1,2,NULL}`, `(1,x)`; maps as JSON: `{"a":1}`; and as texts
/// columns of dates and timestamps of which some are infinite, and decimals of which some are [no numbers](table::NotFinite),
/// which Arrow does not write.
///
/// # Errors
/// Those of writing a value.
pub fn as_texts(rows: &RecordBatch) -> Result<RecordBatch> {
    let own = rows.schema();
    let is_odd = |column: &ArrayRef| {
        is_special(column.data_type()) || table::not_finite(column.as_ref()).is_some()
    };
    let mut all = rows.columns().iter();
    if !all.any(|column| is_odd(column) || has_infinite(column)) {
        return Ok(rows.clone());
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in own.fields().iter().zip(rows.columns()) {
        if is_odd(column) {
            let text = field.as_ref().clone().with_data_type(DataType::Utf8View);
            fields.push(Arc::new(text));
            columns.push(to_texts(column)?);
        } else if has_infinite(column) {
            let text = field.as_ref().clone().with_data_type(DataType::Utf8View);
            fields.push(Arc::new(text));
            columns.push(plain_texts(column)?);
        } else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// The same, with dates and times as a session writes them.
///
/// # Errors
/// Those of writing a value.
pub fn as_texts_of(rows: &RecordBatch, local: Local) -> Result<RecordBatch> {
    local.within(|| as_texts(rows))
}

/// Refuses rows that leave in Arrow's form where decimals among them are NaN or infinite, which no decimal of Arrow is.
///
/// # Errors
/// With the name of the column.
pub fn refuse_not_finite(rows: &RecordBatch) -> Result<()> {
    Ok(table::refuse_not_finite(rows)?)
}

/// A uuid of 16 bytes as PostgreSQL writes it.
pub fn uuid_text(id: &[u8]) -> String {
    crate::functions::uuid::write(id)
}
