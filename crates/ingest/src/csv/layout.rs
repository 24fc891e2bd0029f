//! The layout of a text file: dialect, header and columns.

use std::sync::Arc;

use crate::csv::infer::Kinds;
use crate::dates::DateForm;

/// How a text file separates its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Between two fields.
    pub delimiter: u8,
    /// Around a field that contains delimiters or line ends.
    pub quote: Option<u8>,
    /// Within quotes, the character that follows it is taken literally.
    pub escape: Option<u8>,
    /// A record may end with a delimiter, as in `.tbl` files.
    pub trailing: bool,
    /// Records have one field, and an empty line is a record whose field is empty.
    pub single: bool,
    /// Whether a backslash and what follows stand for one character, as PostgreSQL's `copy` writes text; then there are no
    /// quotes.
    pub backslash: Option<Backslash>,
}

/// What stands for NULL where backslashes escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backslash {
    /// `\N` alone.
    Null,
    /// Another text.
    Other,
}

/// How a text file is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub dialect: Dialect,
    /// Whether the first record holds names.
    pub header: bool,
    /// The columns' names, each only once in any case.
    pub names: Vec<String>,
    /// Whether the names are those of the file, or of the options, and not `column_1`, ...
    pub named: bool,
    /// The kinds of the values of the sample; narrower than all values of a file that goes on after it.
    pub kinds: Vec<Kinds>,
    /// How dates are written, where that was given.
    pub dates: Option<DateForm>,
    /// The texts that stand for NULL.
    pub nulls: Arc<[String]>,
    /// Records of the sample.
    pub sampled: usize,
}
