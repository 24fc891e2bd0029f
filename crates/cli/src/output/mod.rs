//! Results as text or files: [`sink`] writes [`results`] to where they go, in a [`format`](self::format).

mod csv;
mod file;
mod folding;
pub mod format;
mod json;
pub mod results;
pub mod sink;
pub mod table;
