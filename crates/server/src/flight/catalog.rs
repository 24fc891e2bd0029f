//! Commands about the catalog: what their columns are, and their rows.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, RecordBatch, StringArray,
    UInt8Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use atoll::{KeySummary, TableSummary};

use crate::errors;
use crate::flight::call;
use crate::flight::caller::Caller;
use crate::flight::data;
use crate::flight::messages::{
    Any, CrossReference, GetSchemas, GetSqlInfo, GetTables, GetTypes, TableName,
};
use crate::flight::shelf::Shelf;
use crate::flight::status::{Ended, Status};
use crate::flight::{capabilities, types};
use crate::seen::Seen;
use crate::wire::backend::Report;

/// The one catalog.
const CATALOG: &str = "atoll";

/// The schema of tables whose keys are known.
const PUBLIC: &str = "public";

/// Tables are called tables, as Flight SQL's drivers expect, not base tables.
const KIND: &str = "case table_type when 'BASE TABLE' then 'TABLE' else table_type end";

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int32, false)
}

/// The columns of the rows that a command asks for, as Flight SQL fixes them.
///
/// # Errors
/// If there is no such command.
pub(crate) fn schema(command: &Any) -> Result<SchemaRef, Ended> {
    let fields = match command.name() {
        Some("CommandGetCatalogs") => vec![text("catalog_name", false)],
        Some("CommandGetDbSchemas") => {
            vec![text("catalog_name", true), text("db_schema_name", false)]
        }
        Some("CommandGetTableTypes") => vec![text("table_type", false)],
        Some("CommandGetTables") => {
            let asked: GetTables = call::decoded(command.value.clone())?;
            let mut fields = vec![
                text("catalog_name", true),
                text("db_schema_name", true),
                text("table_name", false),
                text("table_type", false),
            ];
            if asked.with_columns {
                fields.push(Field::new("table_schema", DataType::Binary, false));
            }
            fields
        }
        Some("CommandGetPrimaryKeys") => vec![
            text("catalog_name", true),
            text("db_schema_name", true),
            text("table_name", false),
            text("column_name", false),
            text("key_name", true),
            number("key_sequence"),
        ],
        Some("CommandGetImportedKeys" | "CommandGetExportedKeys" | "CommandGetCrossReference") => {
            vec![
                text("pk_catalog_name", true),
                text("pk_db_schema_name", true),
                text("pk_table_name", false),
                text("pk_column_name", false),
                text("fk_catalog_name", true),
                text("fk_db_schema_name", true),
                text("fk_table_name", false),
                text("fk_column_name", false),
                number("key_sequence"),
                text("fk_key_name", true),
                text("pk_key_name", true),
                Field::new("update_rule", DataType::UInt8, false),
                Field::new("delete_rule", DataType::UInt8, false),
            ]
        }
        Some("CommandGetSqlInfo") => return Ok(capabilities::schema()),
        Some("CommandGetXdbcTypeInfo") => return Ok(types::schema()),
        name => {
            let name = name.unwrap_or(&command.type_url);
            let message = format!("there is no command {name:?}: Substrait plans are not taken");
            return Err(Status::unsupported(message).into());
        }
    };
    Ok(Arc::new(Schema::new(fields)))
}

/// The rows that a command asks for.
///
/// # Errors
/// If there is no such command; those of reading the catalog.
pub(crate) fn rows(shelf: &Shelf, caller: &Caller, command: &Any) -> Result<RecordBatch, Ended> {
    let schema = schema(command)?;
    let value = command.value.clone();
    let columns = match command.name() {
        Some("CommandGetCatalogs") => vec![texts([Some(CATALOG.to_string())])],
        Some("CommandGetDbSchemas") => schemas(shelf, caller, &call::decoded(value)?)?,
        Some("CommandGetTableTypes") => {
            let text = "select k from (values ('LOCAL TEMPORARY'), ('TABLE'), ('VIEW')) kinds(k) order by 1";
            query(shelf, caller, text, 1)?
        }
        Some("CommandGetTables") => tables(shelf, caller, &call::decoded(value)?)?,
        Some("CommandGetPrimaryKeys") => primary_keys(shelf, caller, &call::decoded(value)?)?,
        Some("CommandGetImportedKeys") => {
            let TableName { schema, table, .. } = call::decoded(value)?;
            keys((shelf, caller), (None, None), (schema, Some(table)))?
        }
        Some("CommandGetExportedKeys") => {
            let TableName { schema, table, .. } = call::decoded(value)?;
            keys((shelf, caller), (schema, Some(table)), (None, None))?
        }
        Some("CommandGetCrossReference") => {
            let asked: CrossReference = call::decoded(value)?;
            let parent = (asked.parent_schema, Some(asked.parent));
            keys(
                (shelf, caller),
                parent,
                (asked.child_schema, Some(asked.child)),
            )?
        }
        Some("CommandGetSqlInfo") => {
            let asked: GetSqlInfo = call::decoded(value)?;
            return Ok(capabilities::rows(&asked.info, &shelf.shared.options)?);
        }
        _ => {
            let asked: GetTypes = call::decoded(value)?;
            return Ok(types::rows(asked.data_type)?);
        }
    };
    RecordBatch::try_new(schema, columns).map_err(|e| unread(e.to_string()).into())
}

fn unread(message: String) -> Report {
    Report::error(errors::INTERNAL, message)
}

fn texts(values: impl IntoIterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

/// The columns of a query over the catalog, as texts.
fn query(
    shelf: &Shelf,
    caller: &Caller,
    text: &str,
    columns: usize,
) -> Result<Vec<ArrayRef>, Ended> {
    let limits = caller.limits(&shelf.shared)?;
    let session = caller.session(&shelf.shared, &limits)?;
    let answers = session.sql(text);
    let answers = answers.map_err(|e| errors::report(&e, text))?;
    let batches: Vec<&RecordBatch> = answers.iter().flat_map(|a| &a.batches).collect();
    let column = |at: usize| {
        let parts = batches.iter().map(|batch| {
            let column = batch.column(at);
            arrow::compute::cast(column, &DataType::Utf8)
        });
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        match &parts[..] {
            [] => Ok(texts([])),
            parts => arrow::compute::concat(parts),
        }
    };
    let all = (0..columns).map(column).collect::<Result<_, _>>();
    all.map_err(|e| unread(e.to_string()).into())
}

/// A text as a constant of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether a catalog of this name may be meant.
fn is_catalog(name: Option<&str>) -> bool {
    name.is_none_or(|name| name == CATALOG)
}

/// A condition for a pattern in which `%` stands for any characters and `_` for one.
fn like(column: &str, pattern: Option<&str>) -> String {
    pattern.map_or_else(String::new, |pattern| {
        format!(" and {column} like {}", quoted(pattern))
    })
}

fn schemas(shelf: &Shelf, caller: &Caller, asked: &GetSchemas) -> Result<Vec<ArrayRef>, Ended> {
    let text = format!(
        "select catalog_name, schema_name from information_schema.schemata where {}{} order by 1, 2",
        is_catalog(asked.catalog.as_deref()),
        like("schema_name", asked.pattern.as_deref()),
    );
    query(shelf, caller, &text, 2)
}

fn tables(shelf: &Shelf, caller: &Caller, asked: &GetTables) -> Result<Vec<ArrayRef>, Ended> {
    let kinds: Vec<String> = asked.kinds.iter().map(|kind| quoted(kind)).collect();
    let kinds = match &kinds[..] {
        [] => String::new(),
        kinds => format!(" and {KIND} in ({})", kinds.join(", ")),
    };
    let text = format!(
        "select table_catalog, table_schema, table_name, {KIND} from information_schema.tables where {}{}{}{kinds} order by 1, 2, 3, 4",
        is_catalog(asked.catalog.as_deref()),
        like("table_schema", asked.schemas.as_deref()),
        like("table_name", asked.tables.as_deref()),
    );
    let mut columns = query(shelf, caller, &text, 4)?;
    let seen = seen(shelf, caller)?;
    let (schemas, names) = (columns[1].as_string::<i32>(), columns[2].as_string::<i32>());
    let shown = schemas.iter().zip(names).map(|(schema, name)| {
        let (schema, name) = (schema.unwrap_or_default(), name.unwrap_or_default());
        let given = matches!(schema, "information_schema" | "pg_catalog");
        Some(given || seen.has_in(schema, name))
    });
    let shown: BooleanArray = shown.collect();
    let kept = columns
        .iter()
        .map(|column| arrow::compute::filter(column, &shown));
    columns = kept
        .collect::<Result<_, _>>()
        .map_err(|e| unread(e.to_string()))?;
    if asked.with_columns {
        let (schemas, names) = (columns[1].as_string::<i32>(), columns[2].as_string::<i32>());
        let limits = caller.limits(&shelf.shared)?;
        let session = caller.session(&shelf.shared, &limits)?;
        let of = |(schema, name): (Option<&str>, Option<&str>)| {
            let named = |text: Option<&str>| text.unwrap_or_default().replace('"', "\"\"");
            let text = format!("select * from \"{}\".\"{}\"", named(schema), named(name));
            // A view whose tables have gone has no columns.
            let prepared = session.prepare(&text, &[]).ok().flatten();
            let columns = prepared.and_then(|prepared| prepared.columns().cloned());
            let columns = columns.unwrap_or_else(|| Arc::new(Schema::empty()));
            Some(data::framed(&data::told(&columns)))
        };
        let all: BinaryArray = schemas.iter().zip(names).map(of).collect();
        columns.push(Arc::new(all));
    }
    Ok(columns)
}

/// What the caller may know of.
fn seen(shelf: &Shelf, caller: &Caller) -> Result<Seen, Ended> {
    let limits = caller.limits(&shelf.shared)?;
    let session = caller.session(&shelf.shared, &limits)?;
    Ok(Seen::of(&session)?)
}

fn all_tables(shelf: &Shelf, caller: &Caller) -> Result<Vec<TableSummary>, Ended> {
    let seen = seen(shelf, caller)?;
    let all = shelf.shared.database.tables();
    let mut all = all.map_err(|e| errors::report(&e, ""))?;
    all.retain(|table| seen.has(&table.name));
    Ok(all)
}

/// Whether a schema of this name may be that of tables whose keys are known.
fn is_public(name: Option<&str>) -> bool {
    name.is_none_or(|name| name == PUBLIC)
}

fn primary_keys(shelf: &Shelf, caller: &Caller, asked: &TableName) -> Result<Vec<ArrayRef>, Ended> {
    let known = is_catalog(asked.catalog.as_deref()) && is_public(asked.schema.as_deref());
    let found = all_tables(shelf, caller)?.into_iter();
    let found = found.filter(|table| known && table.name == asked.table);
    let columns: Vec<String> = found.flat_map(|table| table.primary_key).collect();
    let same = |text: &str| texts(columns.iter().map(|_| Some(text.to_string())));
    Ok(vec![
        same(CATALOG),
        same(PUBLIC),
        same(&asked.table),
        texts(columns.iter().cloned().map(Some)),
        texts(columns.iter().map(|_| None)),
        Arc::new(Int32Array::from_iter_values(1..=columns.len() as i32)),
    ])
}

/// The name of a table, and of its schema, where they are given.
type Named = (Option<String>, Option<String>);

/// Foreign keys between tables of these names.
fn keys(
    (shelf, caller): (&Shelf, &Caller),
    parent: Named,
    child: Named,
) -> Result<Vec<ArrayRef>, Ended> {
    let known = is_public(parent.0.as_deref()) && is_public(child.0.as_deref());
    let all = all_tables(shelf, caller)?;
    let mut found: Vec<(&TableSummary, &KeySummary)> = Vec::new();
    for table in &all {
        let is = |name: &Option<String>, text: &str| name.as_ref().is_none_or(|n| n == text);
        let keys = table.foreign_keys.iter();
        let keys =
            keys.filter(|key| known && is(&parent.1, &key.parent) && is(&child.1, &table.name));
        found.extend(keys.map(|key| (table, key)));
    }
    if parent.1.is_none() {
        found.sort_by(|a, b| (&a.1.parent, &a.1.name).cmp(&(&b.1.parent, &b.1.name)));
    }
    let rule = |action: &str| match action {
        "cascade" => 0,
        "set null" => 2,
        _ => 3,
    };
    type Row<'k> = (&'k TableSummary, &'k KeySummary, usize);
    let pairs = found.iter().flat_map(|(table, key)| {
        let pairs = key.columns.len().min(key.parent_columns.len());
        (0..pairs).map(move |at| (*table, *key, at))
    });
    let rows: Vec<Row<'_>> = pairs.collect();
    let column = |of: &dyn Fn(&Row<'_>) -> Option<String>| texts(rows.iter().map(of));
    let rules = |of: &dyn Fn(&Row<'_>) -> u8| -> ArrayRef {
        Arc::new(UInt8Array::from_iter_values(rows.iter().map(of)))
    };
    let same = |text: &'static str| column(&move |_| Some(text.to_string()));
    let sequence = rows.iter().map(|(_, _, at)| *at as i32 + 1);
    Ok(vec![
        same(CATALOG),
        same(PUBLIC),
        column(&|(_, key, _)| Some(key.parent.clone())),
        column(&|(_, key, at)| key.parent_columns.get(*at).cloned()),
        same(CATALOG),
        same(PUBLIC),
        column(&|(table, _, _)| Some(table.name.clone())),
        column(&|(_, key, at)| key.columns.get(*at).cloned()),
        Arc::new(Int32Array::from_iter_values(sequence)),
        column(&|(_, key, _)| key.name.clone()),
        column(&|_| None),
        rules(&|(_, key, _)| rule(key.on_update)),
        rules(&|(_, key, _)| rule(key.on_delete)),
    ])
}
