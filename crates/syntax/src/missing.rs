//! The names that a statement reads rows by: data frames may stand behind those that no table has.

use datafusion_common::TableReference;
use datafusion_sql::parser::Statement as Extended;
use datafusion_sql::resolve::resolve_table_references;
use sqlparser::ast::Statement as Sql;

use crate::parse::Statement;

/// The names without a schema that `statement` reads rows by, in lower case unless quoted; those that it defines itself
/// in `with` are none of them. None of a statement that reads no rows, or that is kept: a view reads no frames.
pub fn names(statement: &Statement) -> Vec<String> {
    match statement {
        Statement::Sql(sql) => reading(sql).map_or_else(Vec::new, named),
        Statement::Returning { statement, .. } => reading(statement).map_or_else(Vec::new, named),
        Statement::Explain { statement, .. } => names(statement),
        Statement::Columns(asked) => named(Sql::Query(asked.query.clone())),
        Statement::CopyTo(copy) => named(Sql::Query(copy.query.clone())),
        _ => Vec::new(),
    }
}

/// The part of a statement that reads rows.
fn reading(statement: &Sql) -> Option<Sql> {
    match statement {
        Sql::Insert(insert) => insert.source.clone().map(Sql::Query),
        Sql::CreateTable(create) => create.query.clone().map(Sql::Query),
        Sql::Query(_) | Sql::Update(_) | Sql::Delete(_) => Some(statement.clone()),
        _ => None,
    }
}

fn named(statement: Sql) -> Vec<String> {
    let statement = Extended::Statement(Box::new(statement));
    let Ok((references, _)) = resolve_table_references(&statement, true) else {
        return Vec::new();
    };
    let bare = references
        .into_iter()
        .filter_map(|reference| match reference {
            TableReference::Bare { table } => Some(table.to_string()),
            _ => None,
        });
    bare.collect()
}
