//! What a table is called, its columns with their types, and its declared keys.

mod definition;
mod normalise;
mod types;

pub use definition::{Check, Column, Definition, ForeignKey, MAX_COLUMNS};
pub use normalise::normalise;
pub use types::stored_type;
