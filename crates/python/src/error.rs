//! The exceptions of PEP 249, and which of them an error of the database becomes.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::{PyErr, create_exception};

create_exception!(atoll, Error, PyException, "The base of all errors.");
create_exception!(
    atoll,
    InterfaceError,
    Error,
    "The package is used wrongly: closed, forked."
);
create_exception!(
    atoll,
    DatabaseError,
    Error,
    "The base of errors of the database."
);
create_exception!(
    atoll,
    DataError,
    DatabaseError,
    "A value that does not fit its type."
);
create_exception!(
    atoll,
    OperationalError,
    DatabaseError,
    "Files, disk, memory, other writers."
);
create_exception!(
    atoll,
    IntegrityError,
    DatabaseError,
    "A constraint would be violated."
);
create_exception!(
    atoll,
    InternalError,
    DatabaseError,
    "A defect of the database."
);
create_exception!(
    atoll,
    ProgrammingError,
    DatabaseError,
    "Wrong SQL: syntax, names, types."
);
create_exception!(
    atoll,
    NotSupportedError,
    DatabaseError,
    "Understood, and not supported."
);

/// The exception that an error is in Python. Its text is that of the error.
pub(crate) fn of(error: &atoll::Error) -> PyErr {
    let text = error.to_string();
    match error {
        atoll::Error::Sql(error) => of_sql(error, text),
        atoll::Error::Laq(_) => ProgrammingError::new_err(text),
        atoll::Error::Table(error) => of_table(error, text),
        atoll::Error::Options(_) | atoll::Error::Topology(_) | atoll::Error::Blocking => {
            InterfaceError::new_err(text)
        }
        atoll::Error::Input { .. } | atoll::Error::Import(_) => DataError::new_err(text),
        atoll::Error::Interrupted => PyKeyboardInterrupt::new_err(text),
        atoll::Error::Arrow(_) => InternalError::new_err(text),
        _ => OperationalError::new_err(text),
    }
}

fn of_sql(error: &sql::Error, text: String) -> PyErr {
    use sql::Error;
    match error {
        Error::Syntax { .. }
        | Error::UnknownTable { .. }
        | Error::UnknownColumn { .. }
        | Error::Invalid { .. }
        | Error::Denied { .. }
        | Error::TableExists { .. }
        | Error::TooComplex { .. }
        | Error::Transaction { .. } => ProgrammingError::new_err(text),
        Error::Unsupported { .. } => NotSupportedError::new_err(text),
        Error::Constraint { .. } | Error::Duplicate { .. } => IntegrityError::new_err(text),
        Error::Arithmetic { .. } | Error::Execution { .. } => DataError::new_err(text),
        Error::Cancelled => PyKeyboardInterrupt::new_err(text),
        Error::Defect { .. } => InternalError::new_err(text),
        Error::Table(error) => of_table(error, text),
        _ => OperationalError::new_err(text),
    }
}

fn of_table(error: &table::Error, text: String) -> PyErr {
    match error {
        table::Error::NoTable { .. }
        | table::Error::Exists { .. }
        | table::Error::NoColumn { .. } => ProgrammingError::new_err(text),
        table::Error::Null { .. } => IntegrityError::new_err(text),
        table::Error::TooLong { .. } | table::Error::Mismatch { .. } | table::Error::MapKey(_) => {
            DataError::new_err(text)
        }
        table::Error::Unsupported { .. } => NotSupportedError::new_err(text),
        _ => OperationalError::new_err(text),
    }
}
