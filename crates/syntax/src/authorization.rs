//! The grammar of whom a session is of.
//!
//! ```text
//! set [session | local] session authorization {name | default}
//! set [session | local] session_authorization {to | =} {name | default}
//! reset {session authorization | session_authorization}
//! ```

use messages::Result;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::names::column_name;
use crate::words::{leading, need, word};

/// The setting that says it.
pub const AUTHORIZATION: &str = "session_authorization";

/// Whom a session is to be of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorize {
    /// None for the user who has connected.
    pub role: Option<String>,
    /// Whether that ends with the transaction.
    pub local: bool,
    /// Whether it is written as `reset`.
    pub resets: bool,
}

/// Whether a `set` or a `reset` is such a statement.
pub(super) fn begins(tokens: &[TokenWithSpan]) -> bool {
    let words: Vec<String> = leading(tokens).take(4).collect();
    let mut settings = words.iter().skip(1).take(2);
    let mut pairs = words.windows(2).skip(1);
    settings.any(|word| word == AUTHORIZATION)
        || pairs.any(|pair| pair == ["session", "authorization"])
}

/// Reads it.
///
/// # Errors
/// [`Syntax`](messages::Error::Syntax) with a place.
pub(super) fn statement(parser: &mut Parser<'_>) -> Result<Authorize> {
    let resets = word(parser, "reset");
    if !resets {
        need(parser, "set")?;
    }
    let local = !resets && word(parser, "local");
    let session = !local && word(parser, "session");
    if word(parser, AUTHORIZATION) {
        if !resets && !parser.consume_token(&Token::Eq) {
            need(parser, "to")?;
        }
    } else {
        // Of two such words the first is where it holds.
        if !word(parser, "session") && !session {
            need(parser, "session")?;
        }
        need(parser, "authorization")?;
    }
    if resets {
        return Ok(Authorize {
            role: None,
            local: false,
            resets,
        });
    }
    let found = parser.peek_token();
    let role = match found.token {
        Token::SingleQuotedString(name) => {
            parser.next_token();
            Some(name)
        }
        _ if word(parser, "default") => None,
        _ => Some(column_name(&parser.parse_identifier()?)),
    };
    Ok(Authorize {
        role,
        local,
        resets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};
    use crate::roles::RoleStatement;

    fn read(text: &str) -> Authorize {
        match parse(text).unwrap().pop().unwrap().statement {
            Statement::Role(RoleStatement::Authorize(found)) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sessions_are_of_somebody_else() {
        let of = |role: Option<&str>, local, resets| Authorize {
            role: role.map(Into::into),
            local,
            resets,
        };
        for (text, wanted) in [
            (
                "set session authorization Ann",
                of(Some("ann"), false, false),
            ),
            (
                "set session authorization 'Ann'",
                of(Some("Ann"), false, false),
            ),
            (
                "set session session authorization ann",
                of(Some("ann"), false, false),
            ),
            (
                "set local session authorization \"Ann\"",
                of(Some("Ann"), true, false),
            ),
            ("set session authorization default", of(None, false, false)),
            (
                "set session_authorization to ann",
                of(Some("ann"), false, false),
            ),
            (
                "set local session_authorization = default",
                of(None, true, false),
            ),
            ("reset session authorization", of(None, false, true)),
            ("reset session_authorization", of(None, false, true)),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        for text in [
            "set session authorization",
            "set session authorization ann bob",
            "set session_authorization ann",
            "reset session authorization ann",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
