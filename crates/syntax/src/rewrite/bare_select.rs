//! `select` without a select list and without `from`, as in `exists (select where a > 1)`: the parser reads an empty list before
//! `from` alone, and so it stands before that of one row.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::words::is_word;

/// Words of a query behind its `from`.
const AFTER: [&str; 6] = ["where", "union", "except", "intersect", "limit", "offset"];

/// What stands for it: a row.
const ROW: &str = "__row";

/// `select` where nothing is selected, with a `from`.
pub(crate) fn bare_select(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let is_one = |at: usize| {
        let mut rest = tokens.iter().skip(at);
        let is_select = rest.next().is_some_and(|own| is_word(&own.token, "select"));
        let mut others = tokens.iter().skip(at + 1);
        is_select
            && match others.find(|own| !is_space(own)).map(|own| &own.token) {
                None | Some(Token::EOF | Token::RParen | Token::SemiColon) => true,
                Some(next) => AFTER.iter().any(|word| is_word(next, word)),
            }
    };
    // A column or a type may be called so in other places: a query begins a statement, or stands in parentheses.
    let begins = |at: usize| {
        let mut before = tokens.iter().take(at).rev();
        match before.find(|own| !is_space(own)).map(|own| &own.token) {
            None | Some(Token::LParen) => true,
            Some(before) => ["union", "except", "intersect", "all", "as"]
                .iter()
                .any(|word| is_word(before, word)),
        }
    };
    let found: Vec<usize> = (0..tokens.len())
        .filter(|at| is_one(*at) && begins(*at))
        .collect();
    if found.is_empty() {
        return tokens;
    }
    let mut all = Vec::with_capacity(tokens.len() + 20 * found.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        all.push(token);
        if found.binary_search(&at).is_ok() {
            let name = || Token::make_word(ROW, Some('"'));
            let space = || Token::Whitespace(Whitespace::Space);
            let row = [
                space(),
                Token::make_keyword("FROM"),
                Token::LParen,
                Token::make_keyword("VALUES"),
                Token::LParen,
                Token::Number("1".into(), false),
                Token::RParen,
                Token::RParen,
                space(),
                Token::make_keyword("AS"),
                space(),
                name(),
                Token::LParen,
                name(),
                Token::RParen,
                space(),
            ];
            all.extend(row.map(|token| TokenWithSpan::new(token, span)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    #[test]
    fn a_select_of_nothing_is_of_a_row() {
        for (text, wanted) in [
            (
                "select exists (select where a > 1)",
                "select exists (select FROM(VALUES(1)) AS \"__row\"(\"__row\")  where a > 1)",
            ),
            (
                "select exists (select)",
                "select exists (select FROM(VALUES(1)) AS \"__row\"(\"__row\") )",
            ),
            (
                "select exists (select from t)",
                "select exists (select from t)",
            ),
            ("select \"select\" from t", "select \"select\" from t"),
        ] {
            let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
            let found = bare_select(tokens.unwrap()).into_iter();
            let found: String = found.map(|token| token.token.to_string()).collect();
            assert_eq!(found, wanted);
        }
    }
}
