//! The module `atoll._atoll`: what the Python package needs of the database, and nothing for people. What they see, with
//! its documentation, is in `crates/python/atoll`.
//!
//! While a statement runs, the interpreter is released and signals are looked at every 50 ms ([`wait`]).

mod array;
mod columns;
mod command;
mod database;
mod error;
mod frame;
mod govern;
mod load;
mod machine;
mod many;
mod memory;
mod owned;
mod place;
mod stream;
mod texts;
mod value;
mod wait;

// Its entry points are in the library of the module: Python's ADBC driver manager loads it, too.
extern crate adbc as _;

/// The module.
// All that threads share is behind locks of its own: an interpreter without a global one need not make one.
#[pyo3::pymodule(gil_used = false)]
mod _atoll {
    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::columns::FrameBuilder;
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::database::{Database, Rows, Session};
    #[pymodule_export]
    use crate::error::{
        DataError, DatabaseError, Error, IntegrityError, InterfaceError, InternalError,
        NotSupportedError, OperationalError, ProgrammingError,
    };
    #[pymodule_export]
    use crate::frame::Frame;
    #[pymodule_export]
    use crate::govern::Governor;
    #[pymodule_export]
    use crate::machine::topology;
    #[pymodule_export]
    use crate::place::{Pinned, locate};

    /// The version of the package is that of the program.
    #[pymodule_init]
    fn version(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        pyo3::types::PyModuleMethods::add(module, "__version__", env!("CARGO_PKG_VERSION"))
    }
}
