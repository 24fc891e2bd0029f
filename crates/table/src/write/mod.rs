//! Changing tables. Everything happens in a transaction of the store, so it is all there after a
//! commit and not at all before.

mod chunker;
mod co_partition;
mod delete;
mod encode;
mod insert;
mod loader;
mod tables;

pub use chunker::Chunker;
pub use delete::delete;
pub use encode::LONGEST_TEXT;
pub use insert::insert;
pub use loader::Loader;
pub use tables::{create, drop, truncate};
