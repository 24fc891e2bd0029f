//! What a table is called, its columns with their types, and its declared keys.

mod definition;
mod normalise;
mod types;

pub use definition::{
    Action, Check, Column, Definition, ForeignKey, Key, MAX_COLUMNS, Rule, referred_key,
};
pub use normalise::normalise;
pub use types::stored_type;
