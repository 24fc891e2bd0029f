//! Words of grammars that the parser has not: how statements begin, what comes next, and what is wrong if it does not.

use messages::{Error, Result};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The words that tokens begin with, in lower case, up to the first that is none.
pub(super) fn leading(tokens: &[TokenWithSpan]) -> impl Iterator<Item = String> + '_ {
    tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)))
        .map_while(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_lowercase()),
            _ => None,
        })
}

/// Whether this word comes next, which need be no keyword of the parser.
pub(super) fn is_next(parser: &Parser<'_>, wanted: &str) -> bool {
    is_word(&parser.peek_token_ref().token, wanted)
}

/// Whether a token is this word.
pub(super) fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(
        token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted)
    )
}

/// Whether this word is next; it is taken.
pub(super) fn word(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let found = is_next(parser, wanted);
    if found {
        parser.next_token();
    }
    found
}

/// Takes this word.
///
/// # Errors
/// If it is not next.
pub(super) fn need(parser: &mut Parser<'_>, wanted: &str) -> Result<()> {
    if word(parser, wanted) {
        return Ok(());
    }
    let found = parser.peek_token();
    Err(unexpected(parser, &wanted.to_uppercase(), found))
}

/// The error for a token that is not what was expected.
pub(super) fn unexpected(parser: &Parser<'_>, what: &str, found: TokenWithSpan) -> Error {
    match parser.expected::<()>(what, found) {
        Err(error) => Error::from(error),
        Ok(()) => Error::Syntax {
            message: format!("expected {what}"),
            position: None,
        },
    }
}

/// That the statement ends here.
///
/// # Errors
/// If it goes on.
pub(super) fn end(parser: &mut Parser<'_>) -> Result<()> {
    let rest = parser.next_token();
    match rest.token {
        Token::EOF => Ok(()),
        _ => Err(unexpected(parser, "the end of the statement", rest)),
    }
}

/// Sets an option that was not set before.
///
/// # Errors
/// If it was.
pub(super) fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
    if place.replace(value).is_some() {
        return Err(Error::Syntax {
            message: "conflicting or redundant options".into(),
            position: None,
        });
    }
    Ok(())
}
