//! Which column of the files fills which column of a table.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use ingest::{Dataset, NullRule, Wanted};
use table::{Definition, is_enum};

use crate::error::Error;

/// The files' columns for a table, in the table's order: by name if the files have names, else by position.
///
/// With `declared`, the user has declared the table's types; otherwise they were inferred from the files, and
/// conversions that would lose something are refused.
pub(crate) fn wanted(
    dataset: &Dataset,
    definition: &Definition,
    declared: bool,
) -> Result<Vec<Wanted>, Error> {
    let places = if dataset.is_named() {
        by_name(dataset, definition)?
    } else {
        by_place(dataset, definition)?
    };
    let columns = places.into_iter().zip(&definition.columns);
    let wanted = columns.map(|(place, column)| Wanted {
        column: place,
        field: Arc::new(Field::new(
            &column.name,
            read_as(&column.data_type),
            column.nullable,
        )),
        declared: declared || !dataset.is_guess(place),
        nulls: NullRule::default(),
    });
    Ok(wanted.collect())
}

/// The type in which values for a column are read: the table makes values of an enum of texts.
fn read_as(data_type: &DataType) -> DataType {
    if is_enum(data_type) {
        DataType::Utf8View
    } else {
        data_type.clone()
    }
}

fn failure(dataset: &Dataset, line: Option<u64>, reason: String) -> Error {
    Error::Input {
        path: dataset.path().to_owned(),
        line,
        reason,
    }
}

/// Matches columns by name, ignoring case if no name matches exactly. Files and table must have the same columns.
fn by_name(dataset: &Dataset, definition: &Definition) -> Result<Vec<usize>, Error> {
    let fields = dataset.schema().fields();
    let mut places = Vec::with_capacity(definition.columns.len());
    for column in &definition.columns {
        let exact = fields.iter().position(|field| *field.name() == column.name);
        let alike = || {
            let wanted = column.name.to_lowercase();
            fields
                .iter()
                .position(|field| field.name().to_lowercase() == wanted)
        };
        let place = exact.or_else(alike).ok_or_else(|| {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            let reason = format!(
                "has no column {:?}, which table {:?} needs; it has: {}",
                column.name,
                definition.name,
                names.join(", ")
            );
            failure(dataset, None, reason)
        })?;
        places.push(place);
    }
    match (0..fields.len()).find(|place| !places.contains(place)) {
        None => Ok(places),
        Some(extra) => Err(failure(
            dataset,
            None,
            format!(
                "has a column {:?} that table {:?} lacks; name another table or give --schema",
                fields[extra].name(),
                definition.name
            ),
        )),
    }
}

/// Matches columns by position. The files must have as many as the table.
fn by_place(dataset: &Dataset, definition: &Definition) -> Result<Vec<usize>, Error> {
    let (fields, wanted) = (dataset.schema().fields().len(), definition.columns.len());
    if fields == wanted {
        return Ok((0..wanted).collect());
    }
    Err(failure(
        dataset,
        Some(1),
        format!(
            "has {fields} fields, but table {:?} has {wanted} columns; check --delimiter and --schema",
            definition.name
        ),
    ))
}
