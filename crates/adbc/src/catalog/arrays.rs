//! Catalogs, schemas, tables, columns and keys as the nested lists of `get_objects`, from the inside out.

use std::sync::Arc;

use adbc_core::error::Result;
use adbc_core::options::ObjectDepth;
use adbc_core::schemas::{
    COLUMN_SCHEMA, CONSTRAINT_SCHEMA, GET_OBJECTS_SCHEMA, OBJECTS_DB_SCHEMA_SCHEMA, TABLE_SCHEMA,
    USAGE_SCHEMA,
};
use arrow::array::{
    ArrayRef, BooleanArray, Int16Array, Int32Array, ListArray, RecordBatch, StringArray,
    StructArray, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};

use crate::catalog::model::{CATALOG, Column, Constraint, Filter, Relation, SCHEMA};
use crate::error::state;

/// JDBC's numbers for columns that may not, and may, hold NULL.
const NULLABLE: [i16; 2] = [0, 1];

/// The answer to `get_objects`.
///
/// # Errors
/// None but a defect.
pub(super) fn objects(
    relations: &[Relation],
    depth: ObjectDepth,
    filter: &Filter<'_>,
) -> Result<RecordBatch> {
    let level = match depth {
        ObjectDepth::Catalogs => 1,
        ObjectDepth::Schemas => 2,
        ObjectDepth::Tables => 3,
        ObjectDepth::All | ObjectDepth::Columns => 4,
    };
    let catalogs = usize::from(filter.has_catalog());
    let schemas = usize::from(catalogs == 1 && level >= 2 && filter.has_schema());
    let tables = tables(relations, level >= 4)?;
    let of_schema = (level >= 3).then_some(relations.len());
    let schema = structure(
        &OBJECTS_DB_SCHEMA_SCHEMA,
        vec![
            Arc::new(StringArray::from(vec![SCHEMA; schemas])),
            list(&TABLE_SCHEMA, tables, &vec![of_schema; schemas])?,
        ],
    )?;
    let of_catalog = (level >= 2).then_some(schemas);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![CATALOG; catalogs])),
        list(
            &OBJECTS_DB_SCHEMA_SCHEMA,
            schema,
            &vec![of_catalog; catalogs],
        )?,
    ];
    Ok(RecordBatch::try_new(
        Arc::clone(&GET_OBJECTS_SCHEMA),
        columns,
    )?)
}

fn tables(relations: &[Relation], with_columns: bool) -> Result<ArrayRef> {
    let lengths = |of: fn(&Relation) -> usize| -> Vec<Option<usize>> {
        let lengths = relations.iter();
        lengths.map(|it| with_columns.then(|| of(it))).collect()
    };
    let all_columns: Vec<&Column> = relations.iter().flat_map(|it| &it.columns).collect();
    let all_keys: Vec<&Constraint> = relations.iter().flat_map(|it| &it.constraints).collect();
    structure(
        &TABLE_SCHEMA,
        vec![
            texts(relations.iter().map(|it| Some(it.name.as_str()))),
            texts(relations.iter().map(|it| Some(it.kind))),
            list(
                &COLUMN_SCHEMA,
                columns(&all_columns)?,
                &lengths(|it| it.columns.len()),
            )?,
            list(
                &CONSTRAINT_SCHEMA,
                constraints(&all_keys)?,
                &lengths(|it| it.constraints.len()),
            )?,
        ],
    )
}

fn columns(all: &[&Column]) -> Result<ArrayRef> {
    let text = |of: fn(&Column) -> Option<&str>| texts(all.iter().map(|it| of(it)));
    let small = |of: fn(&Column) -> Option<i16>| -> ArrayRef {
        Arc::new(all.iter().map(|it| of(it)).collect::<Int16Array>())
    };
    let number = |of: fn(&Column) -> Option<i32>| -> ArrayRef {
        Arc::new(all.iter().map(|it| of(it)).collect::<Int32Array>())
    };
    let truth = |of: fn(&Column) -> Option<bool>| -> ArrayRef {
        Arc::new(all.iter().map(|it| of(it)).collect::<BooleanArray>())
    };
    let yes = |truth: bool| if truth { "YES" } else { "NO" };
    let is_nullable = texts(all.iter().map(|it| it.nullable.map(yes)));
    structure(
        &COLUMN_SCHEMA,
        vec![
            text(|it| Some(&it.name)),
            number(|it| Some(it.position)),
            text(|it| it.remarks.as_deref()),
            // The number that JDBC has for the type.
            small(|_| None),
            text(|it| it.type_name.as_deref()),
            number(|it| it.size),
            small(|it| it.digits),
            small(|it| it.radix),
            small(|it| it.nullable.map(|nullable| NULLABLE[usize::from(nullable)])),
            text(|it| it.default.as_deref()),
            // Numbers of ODBC, and what columns of references have.
            small(|_| None),
            small(|_| None),
            number(|_| None),
            is_nullable,
            text(|_| None),
            text(|_| None),
            text(|_| None),
            truth(|it| it.identity),
            truth(|it| it.generated),
        ],
    )
}

fn constraints(all: &[&Constraint]) -> Result<ArrayRef> {
    let names = all.iter().flat_map(|it| &it.columns);
    let names = texts(names.map(|name| Some(name.as_str())));
    let lengths: Vec<_> = all.iter().map(|it| Some(it.columns.len())).collect();
    let parents: Vec<(&str, &str)> = all
        .iter()
        .filter_map(|it| it.parent.as_ref())
        .flat_map(|(table, columns)| {
            columns
                .iter()
                .map(|column| (table.as_str(), column.as_str()))
        })
        .collect();
    let usages = structure(
        &USAGE_SCHEMA,
        vec![
            texts(parents.iter().map(|_| Some(CATALOG))),
            texts(parents.iter().map(|_| Some(SCHEMA))),
            texts(parents.iter().map(|(table, _)| Some(*table))),
            texts(parents.iter().map(|(_, column)| Some(*column))),
        ],
    )?;
    let used = all
        .iter()
        .map(|it| it.parent.as_ref().map(|(_, columns)| columns.len()));
    let used: Vec<_> = used.collect();
    structure(
        &CONSTRAINT_SCHEMA,
        vec![
            texts(all.iter().map(|it| Some(it.name.as_str()))),
            texts(all.iter().map(|it| Some(it.kind))),
            list(&DataType::Utf8, names, &lengths)?,
            list(&USAGE_SCHEMA, usages, &used)?,
        ],
    )
}

fn texts<'t>(values: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn structure(of: &DataType, columns: Vec<ArrayRef>) -> Result<ArrayRef> {
    let DataType::Struct(fields) = of else {
        return Err(state("the schema of objects has no fields"));
    };
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        None,
    )?))
}

/// `items` cut into lists of these lengths; no list where there is no length.
fn list(of: &DataType, items: ArrayRef, lengths: &[Option<usize>]) -> Result<ArrayRef> {
    let field = Arc::new(Field::new("item", of.clone(), true));
    let there: NullBuffer = lengths
        .iter()
        .map(Option::is_some)
        .collect::<Vec<_>>()
        .into();
    let items = match lengths.iter().flatten().sum::<usize>() {
        // Nothing of what there is was asked for.
        0 => new_null_array(of, 0),
        _ => items,
    };
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)));
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        items,
        Some(there),
    )?))
}
