//! The errors of ADBC that errors of the database become: status, SQLSTATE, message.

use std::ffi::c_char;

use adbc_core::error::{Error, Result, Status};

/// The error of a call that is not as it must be.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    with(Status::InvalidArguments, "22023", message)
}

/// The error of a call that does not fit what was called before.
pub(crate) fn state(message: impl Into<String>) -> Error {
    with(Status::InvalidState, "55000", message)
}

/// The error of a call for what there is not.
pub(crate) fn missing(message: impl Into<String>) -> Error {
    with(Status::NotImplemented, "0A000", message)
}

/// The error of a name that nothing has.
pub(crate) fn unknown(message: impl Into<String>) -> Error {
    with(Status::NotFound, "42704", message)
}

/// The error of what was cancelled.
pub(crate) fn cancelled() -> Error {
    of(&atoll::Error::Interrupted)
}

/// An error with a code of SQL.
pub(crate) fn with(status: Status, sqlstate: &str, message: impl Into<String>) -> Error {
    let mut error = Error::with_message_and_status(plain(message.into()), status);
    for (to, from) in error.sqlstate.iter_mut().zip(sqlstate.bytes()) {
        *to = from as c_char;
    }
    error
}

/// A message as C can have it.
fn plain(message: String) -> String {
    if message.contains('\0') {
        message.replace('\0', " ")
    } else {
        message
    }
}

/// The error that an error of the database is.
pub(crate) fn of(error: &atoll::Error) -> Error {
    let code = error.sqlstate();
    with(status(error, code), code, error.to_string())
}

/// The result of the database as one of ADBC.
pub(crate) fn told<T>(result: std::result::Result<T, atoll::Error>) -> Result<T> {
    result.map_err(|error| of(&error))
}

/// The status of an error with this SQLSTATE.
fn status(error: &atoll::Error, code: &str) -> Status {
    match error {
        atoll::Error::Interrupted => return Status::Cancelled,
        atoll::Error::Blocking => return Status::InvalidState,
        atoll::Error::Options(_) | atoll::Error::Topology(_) => return Status::InvalidArguments,
        atoll::Error::Store(store::Error::ReadOnly { .. }) => return Status::Unauthorized,
        _ => {}
    }
    match code {
        "0A000" => Status::NotImplemented,
        "42P01" | "42703" | "42704" | "42883" | "26000" => Status::NotFound,
        "42P07" => Status::AlreadyExists,
        "42501" | "25006" => Status::Unauthorized,
        "57014" => Status::Cancelled,
        "55P03" => Status::Timeout,
        _ => match code.get(..2) {
            Some("22" | "21") => Status::InvalidData,
            Some("23") => Status::Integrity,
            Some("25" | "3B" | "40" | "55") => Status::InvalidState,
            Some("42" | "2B" | "54") => Status::InvalidArguments,
            Some("53" | "58") => Status::IO,
            _ => Status::Internal,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_status_code_and_message() {
        let error = of(&atoll::Error::Sql(sql::Error::UnknownTable {
            name: "reef".into(),
            candidates: vec![],
            position: None,
        }));
        assert_eq!(error.status, Status::NotFound);
        assert_eq!(error.sqlstate.map(|c| c as u8), *b"42P01");
        assert!(error.message.contains("reef"));
        for (error, wanted) in [
            (
                sql::Error::Constraint {
                    code: "23505",
                    message: "duplicate key".into(),
                },
                Status::Integrity,
            ),
            (
                sql::Error::Arithmetic {
                    code: "22012",
                    message: "division by zero".into(),
                },
                Status::InvalidData,
            ),
            (
                sql::Error::Unsupported {
                    message: "not here".into(),
                },
                Status::NotImplemented,
            ),
            (
                sql::Error::TableExists { name: "t".into() },
                Status::AlreadyExists,
            ),
            (
                sql::Error::Defect {
                    message: "a\0b".into(),
                },
                Status::Internal,
            ),
        ] {
            let error = of(&atoll::Error::Sql(error));
            assert_eq!(error.status, wanted);
            assert!(!error.message.contains('\0'));
        }
        assert_eq!(cancelled().status, Status::Cancelled);
    }
}
