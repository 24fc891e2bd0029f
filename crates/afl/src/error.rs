//! What is wrong with a statement, and where.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a statement cannot be run. Displays as one line; those of the text begin with line and column.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no statement.
    #[error("{0}")]
    Syntax(Fault),
    /// The statement does not fit the arrays.
    #[error("{0}")]
    Statement(Fault),
    /// Computing or storing failed.
    #[error("{0}")]
    Array(#[from] array::Error),
}

impl Error {
    /// The place in the text, if it is a place in the text that is wrong.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Error::Syntax(fault) | Error::Statement(fault) => Some(fault),
            Error::Array(_) => None,
        }
    }
}

/// A place in a statement and what is wrong there. Displays as `line 1, column 8: ...`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Fault {
    /// What is wrong and what to do.
    pub message: String,
    /// Counted from 1.
    pub line: usize,
    /// Characters from the line's start, counted from 1.
    pub column: usize,
    /// The whole line.
    pub text: String,
    /// Characters that are meant, at least 1; no more than the line has.
    pub length: usize,
}

impl Fault {
    /// The line, and below it marks under what is meant.
    pub fn excerpt(&self) -> String {
        let number = self.line.to_string();
        let before = self.text.chars().take(self.column - 1);
        let before: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!(
            "{number} | {}\n{} | {before}{}",
            self.text,
            " ".repeat(number.len()),
            "^".repeat(self.length)
        )
    }
}

/// Bytes of a text, from the first to before the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

/// What is wrong with a piece of a text, without the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub span: Span,
    pub message: String,
}

/// A result whose error wants the text.
pub(crate) type Checked<T> = std::result::Result<T, Wrong>;

pub(crate) fn wrong<T>(span: Span, message: impl Into<String>) -> Checked<T> {
    Err(Wrong {
        span,
        message: message.into(),
    })
}

impl Wrong {
    /// The place of the piece in `text`, which it was found in.
    pub fn in_text(self, text: &str) -> Fault {
        let start = text.floor_char_boundary(self.span.start);
        let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let to = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[from..to].trim_end_matches('\r');
        let before = text[from..start].chars().count();
        let left = line.chars().count().saturating_sub(before);
        let meant = text.get(start..self.span.end.min(text.len()));
        Fault {
            message: self.message,
            line: text[..start].matches('\n').count() + 1,
            column: before + 1,
            text: line.to_string(),
            length: meant
                .map_or(1, |meant| meant.chars().count())
                .min(left)
                .max(1),
        }
    }
}
