//! `show tables` and `describe`.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray, UInt64Array};
use catalog::pg_catalog::Seen;
use catalog::rights::Rights;
use syntax::names::permanent;
use table::{Definition, titled};

use crate::error::Result;
use crate::messages::types;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::depth::Depth;

/// `show tables`: name, rows, columns, of what one may do something with.
pub(crate) fn show_tables(context: &StatementContext) -> Result<Answer> {
    let seen = Seen {
        tables: &context.tables,
        rights: &context.rights,
        temporary: None,
        path: None,
    };
    let mut names = permanent(context.tables.names());
    names.retain(|name| seen.has(name));
    names.sort_unstable();
    let tables: Vec<_> = names
        .iter()
        .filter_map(|name| context.tables.get(name))
        .collect();
    let rows = tables.iter().map(|t| t.rows());
    let columns = tables.iter().map(|t| t.definition().columns.len() as u64);
    Answer::of_columns(
        vec![
            (
                "name",
                Arc::new(StringArray::from_iter_values(
                    names.iter().map(|name| titled(name)),
                )) as ArrayRef,
            ),
            ("rows", Arc::new(UInt64Array::from_iter_values(rows))),
            ("columns", Arc::new(UInt64Array::from_iter_values(columns))),
        ],
        &context.clock,
    )
}

/// `describe table`: column, type, whether it may be null, which key it belongs to. Of a view, too.
pub(crate) async fn describe(context: &StatementContext, name: &str) -> Result<Answer> {
    let table;
    let of_view;
    let definition = match context.tables.view(name) {
        Some(text) => {
            let rights = Rights::of_owner(&context.tables, name)?;
            let depth = Depth::default();
            let plan = context.view(name, text, depth, &rights).await?;
            of_view = Definition::from_schema(name, plan.schema().as_arrow())?;
            &of_view
        }
        None => match context.array(name)? {
            Some(array) => {
                of_view = Definition::from_schema(name, &array.schema)?;
                &of_view
            }
            None => {
                table = match context.tables.get(name) {
                    Some(table) => Arc::clone(table),
                    None => context.table(name)?,
                };
                table.definition()
            }
        },
    };
    let columns = &definition.columns;
    let nullable = |nullable: bool| if nullable { "yes" } else { "no" };
    Answer::of_columns(
        vec![
            (
                "column",
                Arc::new(StringArray::from_iter_values(
                    columns.iter().map(|c| &c.name),
                )) as ArrayRef,
            ),
            (
                "type",
                Arc::new(StringArray::from_iter_values(
                    columns.iter().map(|c| types::type_name(&c.data_type)),
                )),
            ),
            (
                "nullable",
                Arc::new(StringArray::from_iter_values(
                    columns.iter().map(|c| nullable(c.nullable)),
                )),
            ),
            (
                "key",
                Arc::new(StringArray::from_iter_values(
                    (0..columns.len()).map(|i| keys(definition, i)),
                )),
            ),
        ],
        &context.clock,
    )
}

/// `primary key`, `references region (r_regionkey)`, or both.
fn keys(definition: &Definition, column: usize) -> String {
    let mut keys = Vec::new();
    if definition.primary_key.contains(&column) {
        keys.push("primary key".to_string());
    }
    for key in &definition.foreign_keys {
        if let Some(at) = key.columns.iter().position(|c| *c == column) {
            let parent = key.parent_columns.get(at).map_or("", String::as_str);
            keys.push(format!("references {} ({parent})", titled(&key.parent)));
        }
    }
    keys.join(", ")
}
