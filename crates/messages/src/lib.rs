//! TODO

pub mod about;
mod calls;
mod codes;
mod convert;
pub mod error;
pub mod hidden;
pub mod keywords;
pub mod names;
pub mod near;
pub mod nearest;
pub mod numbers;
mod overflow;
pub mod plain;
mod planner_words;
mod sqlstate;
pub mod tags;
pub mod told;
pub mod translate;
pub mod types;

pub use error::{Error, Position, Result};
