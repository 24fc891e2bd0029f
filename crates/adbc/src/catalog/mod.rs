//! What there is in a database, as ADBC asks for it.

mod arrays;
mod pattern;
mod read;

use adbc_core::error::Result;
use adbc_core::options::ObjectDepth;
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll::Session;

use crate::error::{missing, unknown};

/// The one catalog.
pub(crate) const CATALOG: &str = "atoll";

/// The one schema of it that has tables.
pub(crate) const SCHEMA: &str = "public";

/// The kinds of tables.
pub(crate) const TABLE_TYPES: [&str; 3] = ["TABLE", "VIEW", "MATERIALIZED VIEW"];

/// A name within double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Checks that a catalog and a schema are those that there are.
///
/// # Errors
/// If they are not.
pub(crate) fn check_place(catalog: Option<&str>, schema: Option<&str>) -> Result<()> {
    let is =
        |given: Option<&str>, own: &str| given.is_none_or(|given| given == own || given.is_empty());
    if !is(catalog, CATALOG) {
        let catalog = catalog.unwrap_or_default();
        return Err(unknown(format!(
            "there is no catalog {catalog:?}: there is one, {CATALOG}"
        )));
    }
    if !is(schema, SCHEMA) {
        let schema = schema.unwrap_or_default();
        return Err(missing(format!(
            "there is no schema {schema:?} of tables: there is one, {SCHEMA}"
        )));
    }
    Ok(())
}

/// What is asked for: patterns of `like`, each of which may be left away.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filter<'f> {
    pub(crate) catalog: Option<&'f str>,
    pub(crate) schema: Option<&'f str>,
    pub(crate) table: Option<&'f str>,
    /// Kinds of tables.
    pub(crate) types: Option<&'f [&'f str]>,
    pub(crate) column: Option<&'f str>,
}

impl Filter<'_> {
    pub(crate) fn has_catalog(&self) -> bool {
        matches(self.catalog, CATALOG)
    }

    pub(crate) fn has_schema(&self) -> bool {
        matches(self.schema, SCHEMA)
    }

    pub(crate) fn has_table(&self, name: &str) -> bool {
        matches(self.table, name)
    }

    fn has_type(&self, kind: &str) -> bool {
        self.types
            .is_none_or(|types| types.iter().any(|of| of.eq_ignore_ascii_case(kind)))
    }

    fn has_column(&self, name: &str) -> bool {
        matches(self.column, name)
    }
}

fn matches(pattern: Option<&str>, name: &str) -> bool {
    pattern.is_none_or(|pattern| pattern::matches(pattern, name))
}

/// A table, a view or a materialized view.
#[derive(Debug, Default)]
pub(crate) struct Relation {
    name: String,
    kind: &'static str,
    columns: Vec<Column>,
    constraints: Vec<Constraint>,
}

/// A column.
#[derive(Debug, Default)]
pub(crate) struct Column {
    name: String,
    /// Counted from 1.
    position: i32,
    remarks: Option<String>,
    type_name: Option<String>,
    size: Option<i32>,
    digits: Option<i16>,
    radix: Option<i16>,
    nullable: Option<bool>,
    default: Option<String>,
    identity: Option<bool>,
    generated: Option<bool>,
}

/// A key.
#[derive(Debug, Default)]
pub(crate) struct Constraint {
    name: String,
    kind: &'static str,
    columns: Vec<String>,
    /// The table that a foreign key refers to, and its columns.
    parent: Option<(String, Vec<String>)>,
}

/// The catalogs, schemas, tables and columns that are asked for, as ADBC wants them.
///
/// # Errors
/// Those of reading the catalog; in the result, those of making the batch.
pub(crate) fn objects(
    session: &Session,
    depth: ObjectDepth,
    filter: &Filter<'_>,
) -> std::result::Result<Result<RecordBatch>, atoll::Error> {
    let (tables, columns) = match depth {
        ObjectDepth::Catalogs | ObjectDepth::Schemas => (false, false),
        ObjectDepth::Tables => (true, false),
        ObjectDepth::All | ObjectDepth::Columns => (true, true),
    };
    let there = filter.has_catalog() && filter.has_schema();
    let relations = if tables && there {
        read::relations(session, filter, columns)?
    } else {
        Vec::new()
    };
    Ok(arrays::objects(&relations, depth, filter))
}

/// The rows of a query, all values as texts.
///
/// # Errors
/// Those of the query.
pub(crate) fn texts(
    session: &Session,
    text: &str,
) -> std::result::Result<Vec<Vec<Option<String>>>, atoll::Error> {
    let mut rows = Vec::new();
    for batch in session.query(text)? {
        let batch = batch?;
        let options = FormatOptions::new();
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let value = |(at, column): (usize, &ArrayFormatter<'_>)| {
                let there = batch.column(at).is_valid(row);
                there.then(|| column.value(row).to_string())
            };
            rows.push(columns.iter().enumerate().map(value).collect());
        }
    }
    Ok(rows)
}
