//! Which column of a file fills which column of a table.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use table::Definition;

use crate::Error;

/// The file's column for each column of the table.
pub(crate) type Mapping = Vec<usize>;

/// Maps columns by name, whatever their case and order. Each side must have all of the other's.
pub(crate) fn by_name<'n>(
    path: &Path,
    definition: &Definition,
    file: impl Iterator<Item = &'n str>,
) -> Result<Mapping, Error> {
    let names: Vec<String> = file.map(str::to_lowercase).collect();
    let missing = |message: String| Error::Input {
        path: path.to_owned(),
        line: None,
        reason: message,
    };
    let mut mapping = Vec::with_capacity(definition.columns.len());
    for column in &definition.columns {
        let wanted = column.name.to_lowercase();
        let at = names
            .iter()
            .position(|name| *name == wanted)
            .ok_or_else(|| {
                missing(format!(
                    "has no column {:?}, which table {:?} needs; it has: {}",
                    column.name,
                    definition.name,
                    names.join(", ")
                ))
            })?;
        mapping.push(at);
    }
    if let Some(extra) = (0..names.len()).find(|at| !mapping.contains(at)) {
        return Err(missing(format!(
            "has a column {:?} that table {:?} lacks; name another table or give --schema",
            names[extra], definition.name
        )));
    }
    Ok(mapping)
}

/// Maps columns by place. The file must have as many as the table.
pub(crate) fn by_place(
    path: &Path,
    definition: &Definition,
    fields: usize,
) -> Result<Mapping, Error> {
    let wanted = definition.columns.len();
    if fields == wanted {
        return Ok((0..wanted).collect());
    }
    Err(Error::Input {
        path: path.to_owned(),
        line: Some(1),
        reason: format!(
            "has {fields} fields, but table {:?} has {wanted} columns; check --delimiter and --schema",
            definition.name
        ),
    })
}

/// A batch of the file's columns, in the order and with the types of the table.
pub(crate) fn conform(
    batch: &RecordBatch,
    mapping: &Mapping,
    definition: &Definition,
) -> Result<RecordBatch, Error> {
    let in_order = mapping.iter().copied().eq(0..batch.num_columns());
    let named = in_order
        && batch
            .schema_ref()
            .fields()
            .iter()
            .zip(&definition.columns)
            .all(|(field, column)| {
                *field.name() == column.name && field.data_type() == &column.data_type
            });
    if named {
        return Ok(table::normalise(batch, definition)?);
    }
    let projected = batch.project(mapping)?;
    let fields = projected
        .schema_ref()
        .fields()
        .iter()
        .zip(&definition.columns);
    let fields: Vec<_> = fields
        .map(|(field, column)| field.as_ref().clone().with_name(&column.name))
        .collect();
    let renamed =
        RecordBatch::try_new(Arc::new(Schema::new(fields)), projected.columns().to_vec())?;
    Ok(table::normalise(&renamed, definition)?)
}

/// Text that is absent, as text that is empty.
pub(crate) fn empty_for_null(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View if array.null_count() > 0 => {
            let filled = array
                .as_string_view()
                .iter()
                .map(|value| value.unwrap_or_default());
            Arc::new(StringViewArray::from_iter_values(filled))
        }
        _ => Arc::clone(array),
    }
}
