//! What there is in a database, as ADBC asks for it.

mod arrays;
mod model;
mod pattern;
mod read;
mod texts;

use adbc_core::error::Result;
use adbc_core::options::ObjectDepth;
use arrow::array::RecordBatch;
use atoll::Session;

pub(crate) use model::{CATALOG, Filter, SCHEMA, TABLE_TYPES, check_place, quoted};
pub(crate) use texts::texts;

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
