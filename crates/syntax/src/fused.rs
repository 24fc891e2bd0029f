//! Signs that stand beside each other without a space.
//!
//! PostgreSQL reads as many of them as it can as one operator, `%-` in `7%-2`, and leaves a `-` or `+` at the end to what
//! follows only where the operator would have none of the signs that are not of the SQL standard. The tokenizer takes them apart:
//! `7%-2` would have an answer here, where PostgreSQL knows no such operator.

use std::str::Chars;

use messages::{Error, Result};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// The signs that operators are made of.
const SIGNS: &str = "+-*/<>=~!@#%^&|`?";

/// Those after which a `-` or `+` is part of the operator.
const OWN: &str = "~!@#%^&|`?";

/// Refuses operators that nobody knows, in the tokens of `text`.
///
/// # Errors
/// For the first of them.
pub(crate) fn check(text: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let mut places = Places {
        rest: text.chars(),
        at: Location::new(1, 1),
    };
    let mut before = String::new();
    let mut parts = 0_usize;
    for token in tokens {
        let own = match token.token {
            // `!=` is the same token, and another operator beside a sign.
            Token::Neq if places.char_at(token.span.start) == Some('!') => Some("!=".to_string()),
            _ => signs(&token.token),
        };
        match own {
            Some(own) => {
                before.push_str(&own);
                parts += 1;
            }
            None if is_unknown(&before, parts) => break,
            None => {
                before.clear();
                parts = 0;
            }
        }
    }
    if !is_unknown(&before, parts) {
        return Ok(());
    }
    let message = format!(
        "operator does not exist: {before}: signs without a space between are one operator"
    );
    Err(Error::coded("42883", message))
}

/// A text that is walked through once.
struct Places<'t> {
    rest: Chars<'t>,
    /// Where the rest begins.
    at: Location,
}

impl Places<'_> {
    /// The character in a place that is not before those that were asked for.
    fn char_at(&mut self, wanted: Location) -> Option<char> {
        while (self.at.line, self.at.column) < (wanted.line, wanted.column) {
            match self.rest.next()? {
                '\n' => self.at = Location::new(self.at.line + 1, 1),
                _ => self.at.column += 1,
            }
        }
        self.rest.clone().next()
    }
}

/// Whether these signs, which are so many tokens, are one operator that there is not.
fn is_unknown(signs: &str, parts: usize) -> bool {
    let Some(last) = signs.chars().next_back().filter(|_| parts > 1) else {
        return false;
    };
    matches!(last, '-' | '+') && signs.chars().any(|sign| OWN.contains(sign))
}

/// The signs of a token that is nothing else. A `?` may be a parameter.
fn signs(token: &Token) -> Option<String> {
    match token {
        Token::EOF
        | Token::Word(_)
        | Token::Number(..)
        | Token::Whitespace(_)
        | Token::SingleQuotedString(_)
        | Token::Placeholder(_)
        | Token::Comma
        | Token::LParen
        | Token::RParen
        | Token::Period => None,
        token => {
            let text = token.to_string();
            let is_sign = |sign: char| SIGNS.contains(sign);
            (!text.is_empty() && text.chars().all(is_sign)).then_some(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    #[test]
    fn a_sign_belongs_to_the_operator_before_it() {
        let read = |text: &str| {
            let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
            check(text, &tokens.unwrap())
        };
        for fused in [
            "7%-2",
            "7%+2",
            "1 <> -1 and 'ä\n' !=\n-1 or 5 !=-1",
            "5 !=-1",
            "2^-1",
            "'a'||-1",
            "5&-1",
            "5|-1",
            "~-1",
            "@-5",
            "- 2|-1",
            "a-%-1",
        ] {
            let refused = read(fused).unwrap_err();
            assert!(
                refused.to_string().contains("operator does not exist"),
                "{fused}"
            );
        }
        for apart in [
            "7% -2",
            "7%(-2)",
            "1=-1",
            "1<>-1",
            "1>=-1",
            "2*-3",
            "2/-1",
            "1--1",
            "1+-1",
            "j->-1",
            "j->>-1",
            "j #- '{a}'",
            "j#-'{a}'",
            "x=?-1",
            "f(a=>-1)",
            "7%--2\n2",
            "7%/* - */2",
            "'%-'",
            "count(*)-1",
            "2 ^ -1",
        ] {
            assert!(read(apart).is_ok(), "{apart}");
        }
    }
}
