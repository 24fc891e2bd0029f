//! Tables over the pages of a store.
//!
//! A table is a set of matrices over blocks of 65,536 rows (L1): dictionary codes, distances
//! from the least value in the narrowest width, floats, texts. A page is one buffer of one
//! column of one block, a bare array; the record of a block says what its pages hold and in
//! which range. Committed pages never change: rows are added in new blocks (small inserts wait
//! in a logged tail), deleted by marks.
//!
//! | folder | holds |
//! |---|---|
//! | `schema` | definitions, and which types are stored |
//! | `format` | the bytes: keys and records of the catalog, row ids, pages |
//! | `dictionary` | the labels of text columns, built while loading and kept in memory |
//! | `catalog` | the tables of a snapshot, decoded; statistics; settings |
//! | `index` | keys that hold: which row has one, and that no other has it |
//! | `write` | create, load, insert, delete; where blocks are placed |
//! | `scan` | filters on encoded values, and decoding what they leave |
//!
//! A file imports from its own folder and from those above it in this list only, where `scan` stands above `index`;
//! `write` and `scan` do not know each other.
//!
//! ```
//! use std::sync::Arc;
//! use arrow::array::{Int64Array, RecordBatch, StringViewArray};
//! use table::{Catalog, Definition, create, insert};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let store = store::Store::create(folder.path().join("a.atoll"), &store::Options::default())?;
//! let batch = RecordBatch::try_from_iter([
//!     ("id", Arc::new(Int64Array::from(vec![1, 2, 3])) as _),
//!     ("name", Arc::new(StringViewArray::from(vec!["ant", "bee", "cat"])) as _),
//! ])?;
//! let mut tx = store.begin()?;
//! create(&mut tx, &Definition::from_schema("animals", &batch.schema())?)?;
//! let (tx, rows) = futures::executor::block_on(insert(tx, "animals", &[batch]))?;
//! tx.commit()?;
//!
//! let tables = Catalog::new().tables(&store.snapshot())?;
//! assert_eq!((rows, tables.get("animals").unwrap().rows()), (3, 3));
//! # Ok(())
//! # }
//! ```

mod catalog;
mod dictionary;
mod error;
mod format;
mod index;
mod scan;
mod schema;
mod write;

pub use catalog::extremes::Extremes;
pub use catalog::parts::Part;
pub use catalog::rights::ROLES;
pub use catalog::sample::{COMPLETE_ROWS, SAMPLE_ROWS, SampledColumn, distinct_values};
pub use catalog::setting::{set, setting};
pub use catalog::space::definition;
pub use catalog::statistics::ColumnStatistics;
pub use catalog::table::Table;
pub use catalog::tables::{Catalog, Materialized, Tables, has_roles, has_schemas, has_views};
pub use dictionary::{Dictionary, MOST_LABELS};
pub use error::{Error, Result};
pub use format::block::{BLOCK_ROWS, Block, Encoding, Matrix, Page, Shred, ShredForm, Zone};
pub use format::row_id::ROW_COLUMN;
pub use index::{KeyMap, KeySet, Keys};
pub use scan::{
    BATCH_ROWS, Cursor, DocumentPart, Filter, Form, Gauge, LabelHits, Mask, Morsel, PartValues,
    Rows, Scan, Test, ints_of, wides_of,
};
pub use schema::{
    Acl, Action, Check, Column, Comments, DOMAIN, Deferral, Definition, Domain, EnumType,
    ForeignKey, Generated, Grant, Index, IndexColumn, Infinities, Infinity, JsonKind, Key, Label,
    MAX_COLUMNS, NotFinite, OnCommit, Position, Privileges, Role, Rule, SECOND_DIGITS, Sequence,
    WITHIN, base_of, cast_moments, decimal_text, enum_name, enum_type, enum_within, finite_part,
    has_infinite, infinity_at, is_enum, is_map_key, is_wide, json_kind, json_type, jsonb_type,
    map_parts, map_type, may_refer, normalise, not_finite, only_numbers, places, referred_key,
    refuse_not_finite, rescaled, schema_of, stored_type, timetz_type, titled, to_second_digits,
    uuid_type, with_not_finite, within,
};
pub use write::{
    Chunker, LONGEST_TEXT, Loader, OpenBlock, acl, add_column, add_key, change_domain,
    change_sequence, change_type, change_view, comment, create, create_domain, create_schema,
    create_sequence, create_type, create_view, delete, drop, drop_column, drop_domain, drop_key,
    drop_role, drop_schema, drop_sequence, drop_type, drop_view, forget_acl, has_sequence_position,
    insert, keep_sequence_position, last_rows, new_sequence_number, put_acl, put_role, redefine,
    rename, rename_column, rename_schema, rename_sequence, rename_view, sequence_position,
    set_materialized, take_over, truncate,
};
