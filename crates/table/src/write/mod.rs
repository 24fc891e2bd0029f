//! Changing tables. Everything happens in a transaction of the store, so it is all there after a
//! commit and not at all before.

mod alter;
mod chunker;
mod co_partition;
mod comments;
mod delete;
mod domains;
mod encode;
mod insert;
mod loader;
mod placed;
mod rights;
mod schemas;
mod sequences;
mod tables;
mod types;
mod views;

pub use alter::{add_column, add_key, drop_column, drop_key, redefine, rename, rename_column};
pub use chunker::Chunker;
pub use comments::comment;
pub use delete::delete;
pub use domains::{change_domain, create_domain, drop_domain};
pub use encode::LONGEST_TEXT;
pub use insert::insert;
pub use loader::{Loader, OpenBlock};
pub use placed::last_rows;
pub use rights::{acl, drop_role, forget_acl, put_acl, put_role};
pub use schemas::{create_schema, drop_schema, rename_schema, rename_sequence, rename_view};
pub use sequences::{
    change_sequence, create_sequence, drop_sequence, has_sequence_position, keep_sequence_position,
    new_sequence_number, sequence_position,
};
pub use tables::{create, drop, take_over, truncate};
pub use types::{change_type, create_type, drop_type};
pub use views::{change_view, create_view, drop_view, set_materialized};
