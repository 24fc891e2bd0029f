//! What can go wrong with a statement, in words for the person who typed it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::near::is_near;

/// Result of what fails with the error of a statement.
pub type Result<T> = std::result::Result<T, Error>;

/// Most levels of parentheses, calls, subqueries and `case`s in a statement, which who parses it counts.
/// Defined here because the message of [`Error::too_deep`] names it.
pub const MAX_NESTING: usize = 128;

/// A place in the text of a statement, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line in the text handed over.
    pub line: u64,
    /// Character in that line.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a statement failed. Each displays as one line that says what is wrong, where, and what to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is not SQL.
    Syntax {
        /// What was expected and what stands there instead.
        message: String,
        /// Where, if the parser knew.
        position: Option<Position>,
    },
    /// A statement names a table that the store does not have.
    UnknownTable {
        /// The name as looked up (folded to lower case unless it was quoted).
        name: String,
        /// Names that come close, nearest first.
        candidates: Vec<String>,
        /// Where the name stands.
        position: Option<Position>,
    },
    /// A statement names a column that none of its tables has.
    UnknownColumn {
        /// The name as looked up.
        name: String,
        /// Names that come close, nearest first; if none does, the first few that there are.
        candidates: Vec<String>,
        /// The one table that was to have it, if the statement names one for it.
        relation: Option<String>,
        /// Where the name stands.
        position: Option<Position>,
    },
    /// The statement is understood but not supported.
    Unsupported {
        /// What is not supported, and what to do instead.
        message: String,
    },
    /// The statement is SQL but makes no sense: wrong types, an unknown function, an ambiguous column.
    Invalid {
        /// PostgreSQL's code for what is wrong; none if there is none for it alone.
        code: Option<&'static str>,
        /// What is wrong.
        message: String,
        /// Where, if known.
        position: Option<Position>,
    },
    /// Whose statement it is may not do that.
    Denied {
        /// What may not be done.
        message: String,
    },
    /// A table of that name exists already.
    TableExists {
        /// The name.
        name: String,
    },
    /// A declared property of a table would be violated: NOT NULL, a reference to another table.
    Constraint {
        /// PostgreSQL's code for it.
        code: &'static str,
        /// Which one, and how.
        message: String,
    },
    /// A row has a key that another row has.
    Duplicate {
        /// The table, as the catalog names it.
        table: String,
        /// The name of the key.
        key: String,
        /// Which values.
        message: String,
    },
    /// The statement does not go with the transaction of its session: there is none, or it has failed, or reads only.
    Transaction {
        /// PostgreSQL's code for it.
        code: &'static str,
        /// What is the matter, and what ends it.
        message: String,
    },
    /// Another transaction stands in the way. The same may succeed when it is tried again, from `begin` on.
    Conflict {
        /// PostgreSQL's code for it.
        code: &'static str,
        /// Which one, and for how long it was waited.
        message: String,
    },
    /// Overflow, division by zero, a value that does not fit its new type.
    Arithmetic {
        /// PostgreSQL's code for it.
        code: &'static str,
        /// What could not be computed.
        message: String,
    },
    /// The memory limit is too low for the statement.
    Memory {
        /// Which operator asked for how much, what the limit is, and which option raises it.
        message: String,
    },
    /// A file that the statement names cannot be read or written.
    File {
        /// The file as named in the statement.
        path: PathBuf,
        /// What happened to it.
        message: String,
    },
    /// The statement is nested so deeply, or so long, that planning it is refused.
    TooComplex {
        /// What was counted and what the bound is.
        message: String,
    },
    /// The statement was interrupted.
    Cancelled,
    /// A defect in Atoll or DataFusion: the statement failed, the database is unharmed.
    Defect {
        /// The message of the panic or the internal error.
        message: String,
    },
    /// A failure during execution that none of the above describes.
    Execution {
        /// PostgreSQL's code for it.
        code: &'static str,
        /// What happened.
        message: String,
    },
    /// The store failed: a damaged page, a full disk, a second writer.
    Store(Arc<store::Error>),
    /// The table layer refused.
    Table(Arc<table::Error>),
}

impl Error {
    /// The refusal of what is SQL but not supported: the message says what, and what to do instead.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::Unsupported {
            message: message.into(),
        }
    }

    /// The refusal of a statement that makes no sense, without a code of its own: 42000.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid {
            code: None,
            message: message.into(),
            position: None,
        }
    }

    /// The refusal of a statement that makes no sense, with PostgreSQL's code for it.
    pub fn coded(code: &'static str, message: impl Into<String>) -> Error {
        Error::Invalid {
            code: Some(code),
            message: message.into(),
            position: None,
        }
    }

    /// The refusal of something because of another error, which `message` tells with what it is about: its code is that of the
    /// other.
    pub fn about(other: &Error, message: String) -> Error {
        Error::coded(other.sqlstate(), message)
    }

    /// The refusal of a statement that nests more than [`MAX_NESTING`] levels deep.
    pub fn too_deep() -> Error {
        Error::TooComplex {
            message: format!(
                "the statement nests more than {MAX_NESTING} levels deep; break it up with `with` clauses"
            ),
        }
    }

    /// The refusal of two output columns of one name, where names must differ.
    pub fn duplicate_column(name: &str) -> Error {
        Error::coded(
            "42701",
            format!("column \"{name}\" appears twice; rename one with `as`"),
        )
    }

    /// The refusal of a file format that this database does not know.
    pub fn unknown_format(name: &str) -> Error {
        Error::unsupported(format!(
            "no file format \"{name}\"; there are parquet, csv, text, json and arrow"
        ))
    }

    /// The failure of a statement that panicked with the payload `panic`.
    pub fn of_panic(panic: &(dyn std::any::Any + Send)) -> Error {
        let text = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic without a message".to_string());
        Error::Defect {
            message: text.replace('\n', " "),
        }
    }

    /// The failure of a task that ended without a result: it panicked, or was cancelled.
    pub fn of_task(e: tokio::task::JoinError) -> Error {
        match e.try_into_panic() {
            Ok(panic) => Error::of_panic(panic.as_ref()),
            Err(_) => Error::Cancelled,
        }
    }

    /// The place in the text of the statement, for errors that have one.
    pub fn position(&self) -> Option<Position> {
        match self {
            Error::Syntax { position, .. }
            | Error::UnknownTable { position, .. }
            | Error::UnknownColumn { position, .. }
            | Error::Invalid { position, .. } => *position,
            _ => None,
        }
    }

    /// The same error with its position in a longer text. The statement starts there on the line `lines` + 1, after
    /// `columns` characters; `columns` is negative if the statement begins with words that the text does not have.
    pub fn within(mut self, lines: u64, columns: i64) -> Error {
        if let Error::Syntax { position, .. }
        | Error::UnknownTable { position, .. }
        | Error::UnknownColumn { position, .. }
        | Error::Invalid { position, .. } = &mut self
            && let Some(position) = position
        {
            if position.line == 1 {
                position.column = position.column.saturating_add_signed(columns).max(1);
            }
            position.line += lines;
        }
        self
    }

    /// The same error at `place`, unless it already has a position or cannot have one.
    pub fn at(mut self, place: Option<Position>) -> Error {
        if let Error::Syntax { position, .. }
        | Error::UnknownTable { position, .. }
        | Error::UnknownColumn { position, .. }
        | Error::Invalid { position, .. } = &mut self
            && position.is_none()
        {
            *position = place;
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Whole(self).to_string();
        if text.contains(WITHIN) {
            f.write_str(&readable(&text))
        } else {
            f.write_str(&text)
        }
    }
}

/// What stands in the catalog between a schema and a name in it. No other name has it.
pub const WITHIN: char = table::WITHIN;

/// `text` with names as people see them: temporary tables as their session calls them, others with their schemas.
pub(crate) fn readable(text: &str) -> String {
    let mut parts: Vec<&str> = text.split(WITHIN).collect();
    let last = parts.pop().unwrap_or_default();
    let mut all = String::new();
    for part in parts {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let before = part.trim_end_matches(word);
        let schema = &part[before.len()..];
        let own = schema.starts_with("pg_temp_") || schema == "public";
        all.push_str(if own { before } else { part });
        // What was found in no schema has an empty one.
        if !own && !part.is_empty() && !part.ends_with(['"', '\'', ' ', '(']) {
            all.push('.');
        }
    }
    all + last
}

/// The message with the names that tables have in the catalog.
struct Whole<'e>(&'e Error);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::Syntax { message, position } => {
                write!(f, "syntax error{}: {message}", At(*position))
            }
            Error::UnknownTable {
                name,
                candidates,
                position,
            } => {
                write!(f, "relation \"{name}\" does not exist{}", At(*position))?;
                match candidates.as_slice() {
                    [] => write!(f, "; `show tables` lists what there is"),
                    near => write!(f, "; did you mean {}?", Or(near)),
                }
            }
            Error::UnknownColumn {
                name,
                candidates,
                position,
                ..
            } => {
                write!(f, "no column \"{name}\"{}", At(*position))?;
                match candidates.as_slice() {
                    [] => Ok(()),
                    near if is_near(name, near) => write!(f, "; did you mean {}?", Or(near)),
                    [only] => write!(f, "; there is {only}"),
                    all => write!(f, "; there are {}", And(all)),
                }
            }
            Error::Invalid {
                message, position, ..
            } => write!(f, "{message}{}", At(*position)),
            Error::TableExists { name } => write!(
                f,
                "table \"{name}\" exists already; use `create or replace table`, `create table if not exists`, or drop it first"
            ),
            Error::File { path, message } => write!(f, "{}: {message}", path.display()),
            Error::Cancelled => write!(f, "interrupted"),
            Error::Defect { message } => write!(
                f,
                "a defect in this program made the statement fail; nothing was changed; please report it: {message}"
            ),
            Error::Unsupported { message }
            | Error::Denied { message }
            | Error::Constraint { message, .. }
            | Error::Duplicate { message, .. }
            | Error::Transaction { message, .. }
            | Error::Conflict { message, .. }
            | Error::Arithmetic { message, .. }
            | Error::Memory { message }
            | Error::TooComplex { message }
            | Error::Execution { message, .. } => f.write_str(message),
            Error::Store(e) => e.fmt(f),
            Error::Table(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Store(e) => Some(e.as_ref()),
            Error::Table(e) => Some(e.as_ref()),
            _ => None,
        }
    }
}

/// " at line 1, column 8", or nothing.
struct At(Option<Position>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(place) => write!(f, " at {place}"),
            None => Ok(()),
        }
    }
}

/// "a, b or c".
pub(crate) struct Or<'a>(pub(crate) &'a [String]);

impl fmt::Display for Or<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        listed(f, self.0, " or ")
    }
}

/// "a, b and c".
struct And<'a>(&'a [String]);

impl fmt::Display for And<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        listed(f, self.0, " and ")
    }
}

/// Names with commas between them, and `last` before the last one.
fn listed(f: &mut fmt::Formatter<'_>, names: &[String], last: &str) -> fmt::Result {
    for (i, name) in names.iter().enumerate() {
        match i {
            0 => {}
            i if i + 1 == names.len() => f.write_str(last)?,
            _ => f.write_str(", ")?,
        }
        f.write_str(name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_tables_are_called_as_the_session_calls_them() {
        let error = Error::invalid("table \"pg_temp_12\u{1}t\" refers to pg_temp_12\u{1}u");
        assert_eq!(error.to_string(), "table \"t\" refers to u");
        let error = Error::invalid("\"s\u{1}t\", public\u{1}u, \"\u{1}v\"");
        assert_eq!(error.to_string(), "\"s.t\", u, \"v\"");
    }

    #[test]
    fn a_statement_may_be_part_of_a_text() {
        let at = |line, column| {
            let error = Error::invalid("x").at(Some(Position { line, column }));
            let place = error.within(3, 5).position().unwrap();
            (place.line, place.column)
        };
        assert_eq!(at(1, 2), (4, 7));
        assert_eq!(at(2, 2), (5, 2));
        assert_eq!(Error::Cancelled.within(3, 5).position(), None);
    }
}
