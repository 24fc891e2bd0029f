//! `GET /catalog`: tables, views and their columns, and the functions that there are.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use atoll::Session;
use serde_json::{Map, Value, json};

use crate::errors;
use crate::http::json::{Batch, Prepared};
use crate::http::refusal::Refusal;
use crate::security::identity::Identity;
use crate::seen::Seen;
use crate::shared::Shared;
use crate::wire::backend::Report;

const TABLES: &str = "select table_schema, table_name, table_type from information_schema.tables where table_schema not in ('information_schema', 'pg_catalog') order by 1, 2";

const COLUMNS: &str = "select table_schema, table_name, column_name, data_type, is_nullable from information_schema.columns where table_schema not in ('information_schema', 'pg_catalog') order by 1, 2, ordinal_position";

/// What there is for somebody.
///
/// # Errors
/// If the catalog cannot be read.
pub(crate) fn told(shared: &Shared, who: &Identity) -> Result<Value, Refusal> {
    let session = shared.database.session().of_role(&who.user, who.role);
    let seen = Seen::of(&session)?;
    let counted = shared.database.tables();
    let counted = counted.map_err(|e| errors::report(&e, ""))?;
    let counted: BTreeMap<String, atoll::TableSummary> = counted
        .into_iter()
        .map(|table| (table.name.clone(), table))
        .collect();
    let mut columns: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    for [schema, table, name, kind, nullable] in rows::<5>(&session, COLUMNS)? {
        let column = json!({ "name": name, "type": kind, "nullable": nullable == "YES" });
        columns.entry((schema, table)).or_default().push(column);
    }
    let mut tables = Vec::new();
    for [schema, name, kind] in rows::<3>(&session, TABLES)? {
        if !seen.has_in(&schema, &name) {
            continue;
        }
        let mut table = Map::new();
        let known = counted.get(&name).filter(|_| schema == "public");
        if let Some(known) = known {
            table.insert("rows".into(), known.rows.into());
            table.insert("primary_key".into(), json!(known.primary_key));
        }
        let columns = columns.remove(&(schema.clone(), name.clone()));
        table.insert("schema".into(), schema.into());
        table.insert("name".into(), name.into());
        table.insert("kind".into(), kind.to_lowercase().into());
        table.insert("columns".into(), columns.unwrap_or_default().into());
        tables.push(Value::Object(table));
    }
    Ok(json!({
        "store": shared.database.path().display().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "tables": tables,
        "functions": shared.database.function_names(),
    }))
}

/// The rows of a query whose columns are all texts.
fn rows<const N: usize>(session: &Session, text: &str) -> Result<Vec<[String; N]>, Refusal> {
    let answers = session.sql(text);
    let answers = answers.map_err(|e| errors::report(&e, text))?;
    let mut all = Vec::new();
    for batch in answers.iter().flat_map(|answer| &answer.batches) {
        all.extend(texts::<N>(batch)?);
    }
    Ok(all)
}

fn texts<const N: usize>(batch: &RecordBatch) -> Result<Vec<[String; N]>, Report> {
    let unread = |message: String| Report::error(errors::INTERNAL, message);
    let prepared = Prepared::new(batch.columns()).map_err(|e| unread(e.to_string()))?;
    let writers = Batch::new(&prepared).map_err(|e| unread(e.to_string()))?;
    let row = |at| {
        let mut text = Vec::new();
        writers.row(at, &mut text);
        let values: Vec<Option<String>> =
            serde_json::from_slice(&text).map_err(|e| unread(e.to_string()))?;
        let values: Vec<String> = values.into_iter().map(Option::unwrap_or_default).collect();
        <[String; N]>::try_from(values).map_err(|_| unread("another number of columns".into()))
    };
    (0..batch.num_rows()).map(row).collect()
}
