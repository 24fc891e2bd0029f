//! Keys that rows refer to: what is found of them, and what is said of those that are not there.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array, UInt64Array};
use arrow::compute::{cast, take};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use memory::Traffic;
use table::{BATCH_ROWS, Definition, ForeignKey, Key, KeyMap, Rule, Scan, Table, Tables, is_wide};

use crate::error::{Error, Result};
use crate::functions::lists::types::is_special;
use crate::run::checks;

/// The table that a foreign key refers to, and its key.
///
/// # Errors
/// If the key is no more.
pub(super) fn parent<'t>(
    tables: &'t Tables,
    foreign: &ForeignKey,
    rule: &Rule,
) -> Result<(&'t Arc<Table>, &'t Key)> {
    let parent = tables.get(&foreign.parent).ok_or_else(|| lost(rule))?;
    let key = table::referred_key(parent.definition(), foreign);
    Ok((parent, key.ok_or_else(|| lost(rule))?))
}

/// The error of rows of `child` that refer to a key that is not there, the one in `row` of `columns`.
pub(super) fn missing(child: &Definition, rule: &Rule, columns: &[ArrayRef], row: usize) -> Error {
    let foreign = &child.foreign_keys[rule.foreign_key];
    Error::Constraint {
        code: "23503",
        message: format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\": Key ({})=({}) is not present in table \"{}\".",
            child.name,
            rule.name,
            names(child, &foreign.columns),
            shown(columns, row),
            foreign.parent
        ),
    }
}

/// The error of a row of `child` that has a part of a key that is to be there whole or not at all.
pub(super) fn mixed(child: &Definition, rule: &Rule) -> Error {
    Error::Constraint {
        code: "23503",
        message: format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\": MATCH FULL does not allow mixing of null and nonnull key values.",
            child.name, rule.name
        ),
    }
}

/// The error of a foreign key whose key is no more.
pub(super) fn lost(rule: &Rule) -> Error {
    Error::Constraint {
        code: "42830",
        message: format!(
            "foreign key constraint \"{}\" refers to a key that holds no more: drop the constraint",
            rule.name
        ),
    }
}

/// `columns`, which stand in the order of the foreign key, in that of the key and with its types. A value that these have not
/// becomes NULL, which no row has.
///
/// # Errors
/// If the types are not of a foreign key.
pub(super) fn in_order(
    parent: &Definition,
    key: &Key,
    foreign: &ForeignKey,
    columns: &[ArrayRef],
) -> Result<Vec<ArrayRef>> {
    let mut found = Vec::with_capacity(columns.len());
    for column in &key.columns {
        let own = &parent.columns[*column];
        let mut names = foreign.parent_columns.iter();
        if let Some(place) = names.position(|other| *other == own.name) {
            found.push(cast(&columns[place], &own.data_type)?);
        }
    }
    Ok(found)
}

fn names(definition: &Definition, columns: &[usize]) -> String {
    let names: Vec<&str> = columns
        .iter()
        .map(|c| &definition.columns[*c].name[..])
        .collect();
    names.join(", ")
}

fn shown(columns: &[ArrayRef], row: usize) -> String {
    let options = FormatOptions::new();
    let value = |column: &ArrayRef| {
        if (is_special(column.data_type()) || is_wide(column.data_type()))
            && let Some(text) = checks::special(column, row)
        {
            return text;
        }
        let format = ArrayFormatter::try_new(column, &options);
        let text = format.and_then(|format| format.value(row).try_to_string());
        text.unwrap_or_else(|_| "?".to_owned())
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    values.join(", ")
}

/// The rows at `places` of columns.
pub(super) fn picked(columns: &[ArrayRef], places: &UInt32Array) -> Result<Vec<ArrayRef>> {
    let columns = columns.iter().map(|column| take(column, places, None));
    Ok(columns.collect::<std::result::Result<_, _>>()?)
}

/// The error of rows of `child` that refer to a key that is gone, the one in `row` of `columns`.
pub(super) fn referenced(
    parent: &str,
    rule: &Rule,
    child: &Definition,
    columns: &[ArrayRef],
    row: usize,
) -> Error {
    let foreign = &child.foreign_keys[rule.foreign_key];
    Error::Constraint {
        code: "23503",
        message: format!(
            "update or delete on table \"{parent}\" violates foreign key constraint \"{}\" on table \"{}\": Key ({})=({}) is still referenced from table \"{}\".",
            rule.name,
            child.name,
            foreign.parent_columns.join(", "),
            shown(columns, row),
            child.name
        ),
    }
}

/// The ids of the rows of `child` that refer to one of the keys `values`, and the row of each among these. Only the first of
/// equal ones is one.
///
/// # Errors
/// Those of reading; if the types are not of a foreign key.
pub(super) async fn referring(
    child: &Arc<Table>,
    foreign: &ForeignKey,
    values: &[ArrayRef],
) -> Result<(Vec<u64>, Vec<u32>)> {
    let keys = KeyMap::of(values)?;
    if keys.rows().is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let scan = Scan::new(Arc::clone(child), foreign.columns.clone(), true);
    let pool = child.snapshot().pool().clone();
    let traffic = Traffic::new(pool.nodes());
    let (mut ids, mut of) = (Vec::new(), Vec::new());
    for (_, morsel) in scan.morsels() {
        let opened = scan.open(&pool, morsel, &[], &traffic, || 0).await?;
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(BATCH_ROWS)? {
            let (columns, last) = batch.columns().split_at(foreign.columns.len());
            let Some(rows) = last
                .first()
                .and_then(|ids| ids.as_any().downcast_ref::<UInt64Array>())
            else {
                continue;
            };
            let columns = columns.iter().zip(values);
            let columns = columns.map(|(column, value)| cast(column, value.data_type()));
            let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
            for (row, found) in keys.get(&columns)?.into_iter().enumerate() {
                if let Some(found) = found {
                    ids.push(rows.value(row));
                    of.push(found);
                }
            }
        }
    }
    Ok((ids, of))
}
