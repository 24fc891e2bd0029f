//! SQLSTATE, the codes by which clients of every kind tell errors apart: each error carries its own.

use crate::error::Error;

impl Error {
    /// The code that PostgreSQL has for an error of this kind: five digits and letters, as of the SQL standard.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Error::Syntax { .. } => "42601",
            Error::UnknownTable { .. } => "42P01",
            Error::UnknownColumn { .. } => "42703",
            Error::Unsupported { .. } => "0A000",
            Error::Invalid { code, .. } => code.unwrap_or("42000"),
            Error::Denied { .. } => "42501",
            Error::TableExists { .. } => "42P07",
            Error::Duplicate { .. } => "23505",
            Error::Constraint { code, .. }
            | Error::Transaction { code, .. }
            | Error::Conflict { code, .. }
            | Error::Arithmetic { code, .. }
            | Error::Execution { code, .. } => code,
            Error::Memory { .. } => "53200",
            Error::File { .. } => "58030",
            Error::TooComplex { .. } => "54001",
            Error::Cancelled => "57014",
            Error::Defect { .. } => "XX000",
            Error::Store(error) => error.sqlstate(),
            Error::Table(error) => error.sqlstate(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_messages_make_no_codes() {
        let error = Error::coded("42P07", "relation \"division by zero\" already exists");
        assert_eq!(error.sqlstate(), "42P07");
        assert_eq!(Error::invalid("duplicate").sqlstate(), "42000");
        let about = Error::about(&error, "view \"v\": it".into());
        assert_eq!(about.sqlstate(), "42P07");
    }
}
