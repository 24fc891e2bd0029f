//! The module `atoll._atoll`: what the Python package needs of the database, and nothing for people. What they see, with
//! its documentation, is in `crates/python/atoll`.
//!
//! While a statement runs, the interpreter is released and signals are looked at every 50 ms ([`wait`]).

mod database;
mod error;
mod export;
mod value;
mod wait;

/// The module.
#[pyo3::pymodule]
mod _atoll {
    #[pymodule_export]
    use crate::database::{Database, Rows, Session};
    #[pymodule_export]
    use crate::error::{
        DataError, DatabaseError, Error, IntegrityError, InterfaceError, InternalError,
        NotSupportedError, OperationalError, ProgrammingError,
    };
}
