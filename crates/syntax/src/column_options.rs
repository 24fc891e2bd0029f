//! Options of columns that the parser has not: it keeps them as tokens, which their own grammars read later.

use sqlparser::ast::ColumnOption;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::words::is_word;

/// Reads `generated ... as identity` behind the name and the type of a column, if it is next.
///
/// # Errors
/// If parentheses do not end.
pub(super) fn own(
    parser: &mut Parser<'_>,
) -> std::result::Result<Option<ColumnOption>, ParserError> {
    let next = |at: usize| parser.peek_nth_token_ref(at).token.clone();
    let is = |words: &[&str]| (0..).zip(words).all(|(at, word)| is_word(&next(at), word));
    let count = if is(&["generated", "always", "as", "identity"]) {
        4
    } else if is(&["generated", "by", "default", "as", "identity"]) {
        5
    } else {
        return Ok(None);
    };
    let mut tokens: Vec<Token> = (0..count).map(|_| parser.next_token().token).collect();
    if parser.peek_token_ref().token == Token::LParen {
        loop {
            let token = parser.next_token();
            match token.token {
                Token::EOF => return parser.expected("`)` behind the options", token),
                Token::RParen => break,
                other => tokens.push(other),
            }
        }
        tokens.push(Token::RParen);
    }
    Ok(Some(ColumnOption::DialectSpecific(tokens)))
}
