//! What experiments have done, and count or time: a compute [`kernel`] of known steps, or statements that a [`database`]
//! under test answers, [driven](drive) through its standard input.

pub(crate) mod database;
pub mod drive;
pub mod kernel;

pub use database::{Databases, Engine};
