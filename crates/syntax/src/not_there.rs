//! Statements of PostgreSQL that the parser does not know and Atoll does not do: each is refused in one line, by the state of
//! what is not supported.

use messages::Error;
use sqlparser::tokenizer::TokenWithSpan;

use crate::words;

/// First words of such statements, and why they are refused.
const STATEMENTS: [(&str, &str); 4] = [
    (
        "listen",
        "`listen` is not supported: sessions send each other no notifications; ask the table again",
    ),
    (
        "notify",
        "`notify` is not supported: sessions send each other no notifications; write to a table",
    ),
    (
        "do",
        "`do` is not supported: there are no languages of procedures; send the statements",
    ),
    (
        "security",
        "`security label` is not supported: there are no providers of labels",
    ),
];

/// The error of such a statement; `None` of others.
pub(super) fn refusal(tokens: &[TokenWithSpan]) -> Option<Error> {
    let first = words::leading(tokens).next()?;
    let known = STATEMENTS.iter().find(|(word, _)| *word == first)?;
    Some(Error::unsupported(known.1))
}
