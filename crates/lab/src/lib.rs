//! The laboratory: experiments that say where the accesses of a database go, and their reports.
//!
//! The database under test is always another program: nothing here depends on Atoll's engine.

mod error;
pub mod record;
pub mod report;

pub use error::{Error, Result};
