//! Errors of the crates below as errors of statements.

use std::sync::Arc;

use crate::codes;
use crate::error::Error;
use crate::translate::external;

impl From<store::Error> for Error {
    fn from(e: store::Error) -> Error {
        Error::Store(Arc::new(e))
    }
}

impl From<engine::Error> for Error {
    fn from(e: engine::Error) -> Error {
        match e {
            engine::Error::Table(e) => e.into(),
            engine::Error::Arrow(e) => e.into(),
            engine::Error::Source { name, message } => Error::File {
                path: name.into(),
                message,
            },
            engine::Error::Call(e) => external(e.as_ref()),
            engine::Error::Overflow { .. } => Error::Arithmetic {
                code: "22003",
                message: e.to_string(),
            },
            engine::Error::Memory { .. } => Error::Memory {
                message: e.to_string(),
            },
            engine::Error::Cancelled => Error::Cancelled,
            engine::Error::ManyRows { .. } => Error::coded("21000", e.to_string()),
            engine::Error::Unsupported(_) => Error::Unsupported {
                message: e.to_string(),
            },
            engine::Error::Internal(_) => Error::Defect {
                message: e.to_string(),
            },
            other => Error::Execution {
                code: codes::VALUE,
                message: other.to_string(),
            },
        }
    }
}

impl From<table::Error> for Error {
    fn from(e: table::Error) -> Error {
        match e {
            table::Error::Store(e) => e.into(),
            table::Error::Arrow(e) => e.into(),
            table::Error::NoTable { name } => Error::UnknownTable {
                name,
                candidates: Vec::new(),
                position: None,
            },
            table::Error::Exists { name } => Error::TableExists { name },
            table::Error::Unsupported { .. } => Error::Unsupported {
                message: e.to_string(),
            },
            table::Error::Null { .. } | table::Error::Key { .. } => Error::Constraint {
                code: e.sqlstate(),
                message: e.to_string(),
            },
            table::Error::Duplicate {
                ref table, ref key, ..
            } => Error::Duplicate {
                table: table.clone(),
                key: key.clone(),
                message: e.to_string(),
            },
            table::Error::Test(e) => external(e.as_ref()),
            other => Error::Table(Arc::new(other)),
        }
    }
}

impl From<graph::Error> for Error {
    fn from(e: graph::Error) -> Error {
        match e {
            graph::Error::Store(e) => e.into(),
            graph::Error::Interrupted => Error::Cancelled,
            graph::Error::Memory { .. } => Error::Memory {
                message: e.to_string(),
            },
            graph::Error::NoGraph { .. } => Error::coded("42P01", e.to_string()),
            graph::Error::NoVertex { .. } => Error::coded("22023", e.to_string()),
            other => Error::Execution {
                code: codes::VALUE,
                message: other.to_string(),
            },
        }
    }
}

impl From<array::Error> for Error {
    fn from(e: array::Error) -> Error {
        match e {
            array::Error::Store(e) => Error::from(store::Error::clone(&e)),
            array::Error::Arithmetic { what } => Error::Arithmetic {
                code: codes::of_value(&what),
                message: what,
            },
            array::Error::Write { .. } => Error::Constraint {
                code: "23000",
                message: e.to_string(),
            },
            array::Error::Exists { .. } | array::Error::Taken { .. } => {
                Error::coded("42P07", e.to_string())
            }
            array::Error::Name { .. } => Error::coded("42602", e.to_string()),
            array::Error::NoArray { .. } | array::Error::NoVersion { .. } => {
                Error::coded("42P01", e.to_string())
            }
            array::Error::OutOfRange { .. } => Error::coded("22003", e.to_string()),
            array::Error::Schema { .. } => Error::coded("42P17", e.to_string()),
            other => Error::Execution {
                code: codes::VALUE,
                message: other.to_string(),
            },
        }
    }
}

impl From<ingest::Error> for Error {
    fn from(e: ingest::Error) -> Error {
        match e {
            ingest::Error::File { path, line, reason } => Error::File {
                path,
                message: match line {
                    Some(line) => format!("line {line}: {reason}"),
                    None => reason,
                },
            },
            ingest::Error::Stopped => Error::Cancelled,
            other => Error::coded("22023", other.to_string()),
        }
    }
}
