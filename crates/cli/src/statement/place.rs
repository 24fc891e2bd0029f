//! Where in a script a statement fails.

use atoll::script::Statement;

/// The error of `statement` with its position in the whole script.
pub fn place(statement: &Statement, error: atoll::Error) -> atoll::Error {
    match error {
        atoll::Error::Sql(error) => atoll::Error::Sql(statement.place(error)),
        other => other,
    }
}
