//! Statistics of tables: how many rows they have, which is always exact.

use std::sync::Arc;

use adbc_core::constants::ADBC_STATISTIC_ROW_COUNT_KEY;
use adbc_core::error::Result;
use adbc_core::schemas::{
    GET_STATISTICS_SCHEMA, STATISTIC_VALUE_SCHEMA, STATISTICS_DB_SCHEMA_SCHEMA, STATISTICS_SCHEMA,
};
use arrow::array::{
    Array, ArrayRef, BooleanArray, Int16Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, UnionArray, new_empty_array, new_null_array,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Fields};
use atoll::Session;

use crate::catalog::{CATALOG, Filter, SCHEMA, texts};
use crate::error::state;

/// Each table and its rows, as the session sees them.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) fn counted(session: &Session) -> std::result::Result<Vec<(String, i64)>, atoll::Error> {
    let rows = texts(session, "show tables")?;
    let row = |row: Vec<Option<String>>| {
        let mut row = row.into_iter().flatten();
        Some((row.next()?, row.next()?.parse().ok()?))
    };
    Ok(rows.into_iter().filter_map(row).collect())
}

/// The statistics of the tables that are asked for.
///
/// # Errors
/// None but a defect.
pub(crate) fn batch(counted: &[(String, i64)], filter: &Filter<'_>) -> Result<RecordBatch> {
    let catalog = filter.has_catalog();
    let schema = catalog && filter.has_schema();
    let tables = counted
        .iter()
        .filter(|(name, _)| schema && filter.has_table(name));
    let (names, rows): (Vec<&str>, Vec<i64>) =
        tables.map(|(name, rows)| (name.as_str(), *rows)).unzip();
    let count = names.len();
    let statistics = structure(
        &STATISTICS_SCHEMA,
        vec![
            Arc::new(StringArray::from(names)),
            new_null_array(&DataType::Utf8, count),
            Arc::new(Int16Array::from(vec![ADBC_STATISTIC_ROW_COUNT_KEY; count])),
            values(rows)?,
            Arc::new(BooleanArray::from(vec![false; count])),
        ],
    )?;
    let schemas = structure(
        &STATISTICS_DB_SCHEMA_SCHEMA,
        vec![
            Arc::new(StringArray::from(vec![SCHEMA; usize::from(schema)])),
            list(&STATISTICS_SCHEMA, statistics, usize::from(schema))?,
        ],
    )?;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![CATALOG; usize::from(catalog)])),
        list(&STATISTICS_DB_SCHEMA_SCHEMA, schemas, usize::from(catalog))?,
    ];
    Ok(RecordBatch::try_new(
        Arc::clone(&GET_STATISTICS_SCHEMA),
        columns,
    )?)
}

/// Numbers of rows as the union that statistics are.
fn values(rows: Vec<i64>) -> Result<ArrayRef> {
    let DataType::Union(fields, _) = &*STATISTIC_VALUE_SCHEMA else {
        return Err(state("the schema of statistics has no values"));
    };
    let count = rows.len();
    let numbers: ArrayRef = Arc::new(Int64Array::from(rows));
    let children = fields.iter().map(|(kind, field)| match kind {
        0 => Arc::clone(&numbers),
        _ => new_empty_array(field.data_type()),
    });
    let values = UnionArray::try_new(
        fields.clone(),
        ScalarBuffer::from(vec![0_i8; count]),
        Some((0..count as i32).collect()),
        children.collect(),
    )?;
    Ok(Arc::new(values))
}

fn structure(of: &DataType, columns: Vec<ArrayRef>) -> Result<StructArray> {
    let DataType::Struct(fields) = of else {
        return Err(state("the schema of statistics has no fields"));
    };
    Ok(StructArray::try_new(Fields::clone(fields), columns, None)?)
}

/// All items as one list, or no list of no items.
fn list(of: &DataType, items: StructArray, lists: usize) -> Result<ArrayRef> {
    let field = Arc::new(Field::new("item", of.clone(), true));
    let lengths = vec![items.len(); lists];
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        Arc::new(items),
        None,
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_of_the_tables_that_are_asked_for() {
        let counted = [("fish".to_owned(), 3), ("reef".to_owned(), 5)];
        let shown = |filter: &Filter<'_>| {
            let batch = batch(&counted, filter).unwrap();
            arrow::util::pretty::pretty_format_batches(&[batch])
                .unwrap()
                .to_string()
        };
        let all = shown(&Filter::default());
        assert!(
            all.contains("fish") && all.contains("reef") && all.contains("int64=5"),
            "{all}"
        );
        let some = shown(&Filter {
            table: Some("f%"),
            ..Filter::default()
        });
        assert!(some.contains("fish") && !some.contains("reef"), "{some}");
        let none = shown(&Filter {
            schema: Some("other"),
            ..Filter::default()
        });
        assert!(none.contains("atoll") && !none.contains("fish"), "{none}");
        let none = shown(&Filter {
            catalog: Some(""),
            ..Filter::default()
        });
        assert!(!none.contains("atoll"), "{none}");
    }
}
