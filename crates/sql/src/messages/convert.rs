//! Errors of the crates below as errors of statements.

use std::sync::Arc;

use crate::error::Error;
use crate::messages::translate::external;

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
                message: e.to_string(),
            },
            engine::Error::Memory { .. } => Error::Memory {
                message: e.to_string(),
            },
            engine::Error::Cancelled => Error::Cancelled,
            engine::Error::Unsupported(_) => Error::Unsupported {
                message: e.to_string(),
            },
            engine::Error::Internal(_) => Error::Defect {
                message: e.to_string(),
            },
            other => Error::Execution {
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
            table::Error::Null { .. }
            | table::Error::Key { .. }
            | table::Error::Duplicate { .. } => Error::Constraint {
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
            graph::Error::NoGraph { .. } | graph::Error::NoVertex { .. } => {
                Error::invalid(e.to_string())
            }
            other => Error::Execution {
                message: other.to_string(),
            },
        }
    }
}

impl From<array::Error> for Error {
    fn from(e: array::Error) -> Error {
        match e {
            array::Error::Store(e) => Error::from(store::Error::clone(&e)),
            array::Error::Arithmetic { what } => Error::Arithmetic { message: what },
            array::Error::Write { .. } => Error::Constraint {
                message: e.to_string(),
            },
            array::Error::Exists { .. }
            | array::Error::Taken { .. }
            | array::Error::Name { .. }
            | array::Error::NoArray { .. }
            | array::Error::NoVersion { .. }
            | array::Error::OutOfRange { .. }
            | array::Error::Schema { .. } => Error::invalid(e.to_string()),
            other => Error::Execution {
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
            other => Error::invalid(other.to_string()),
        }
    }
}
