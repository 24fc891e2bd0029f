//! `table t` as the planner knows it.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// `table t` as the planner knows it, wherever a query may stand: `select * from t`.
pub(crate) fn tables(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let keyword = |token: Option<&TokenWithSpan>| match token.map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    let create = keyword(whole.first().map(|&at| &tokens[at])) == Keyword::CREATE;
    let is_query = |place: usize| {
        let near = |by: usize| Some(&tokens[whole[place.checked_sub(by)?]]);
        let set = |by| {
            matches!(
                keyword(near(by)),
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS
            )
        };
        let begins = match near(1).map(|before| &before.token) {
            None => true,
            // In the parentheses of a `create table` it would be a column.
            Some(Token::LParen) => !create,
            Some(Token::RParen) => closes_part(&tokens, whole.get(..place).unwrap_or_default()),
            Some(Token::Word(word)) => match word.keyword {
                Keyword::AS => create,
                Keyword::ALL | Keyword::DISTINCT => set(2),
                _ => set(1),
            },
            _ => false,
        };
        let next = whole.get(place + 1).map(|&at| &tokens[at].token);
        begins && matches!(next, Some(Token::Word(_)))
    };
    let mut changed = Vec::with_capacity(tokens.len());
    let mut places = whole.iter().enumerate().peekable();
    for (at, token) in tokens.iter().enumerate() {
        let place = places.next_if(|(_, whole)| **whole == at);
        let of_table = keyword(Some(token)) == Keyword::TABLE;
        match place {
            Some((place, _)) if of_table && is_query(place) => {
                let parts = [
                    Token::make_keyword("SELECT"),
                    Token::Mul,
                    Token::make_keyword("FROM"),
                ];
                changed.extend(parts.map(|part| TokenWithSpan::new(part, token.span)));
            }
            _ => changed.push(token.clone()),
        }
    }
    changed
}

/// Whether the last of these tokens, a parenthesis, closes a part of `with`: `with r as (...)`.
fn closes_part(tokens: &[TokenWithSpan], places: &[usize]) -> bool {
    let mut depth = 0usize;
    let mut before = places.iter().rev().map(|&at| &tokens[at].token);
    for token in before.by_ref() {
        match token {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    matches!(before.next(), Some(Token::Word(word)) if word.quote_style.is_none()
        && matches!(word.keyword, Keyword::AS | Keyword::MATERIALIZED))
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    #[test]
    fn tables_are_queries_where_a_query_may_stand() {
        for (text, wanted) in [
            ("table t", "SELECT*FROM t"),
            (
                "with r as (select (1)), s as materialized (table r) table s",
                "with r as (select (1)), s as materialized (SELECT*FROM r) SELECT*FROM s",
            ),
            (
                "with recursive r(n) as not materialized (values (1)) table r",
                "with recursive r(n) as not materialized (values (1)) SELECT*FROM r",
            ),
            ("select (1) table", "select (1) table"),
            (
                "select a from t where b in (1) table c",
                "select a from t where b in (1) table c",
            ),
        ] {
            let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
            let tokens = tables(tokens.unwrap());
            let found: String = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(found.replace(' ', ""), wanted.replace(' ', ""));
        }
    }
}
