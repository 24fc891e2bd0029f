//! `join ... using (a, b) as x`, which the parser does not know: the name `x` is put among the columns, with a mark.

use functions::lists::names::USING_ALIAS;
use sqlparser::ast::{JoinConstraint, JoinOperator, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The tokens with the names of shared columns among these.
pub(crate) fn using_alias(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    let mut found = Vec::new();
    for place in 0..whole.len() {
        let token = |place: usize| whole.get(place).map(|&at| &tokens[at].token);
        let is = |place: usize, keyword: Keyword| matches!(token(place), Some(Token::Word(word)) if word.keyword == keyword && word.quote_style.is_none());
        if !is(place, Keyword::USING) || token(place + 1) != Some(&Token::LParen) {
            continue;
        }
        let mut end = place + 2;
        while matches!(token(end), Some(Token::Word(_))) && token(end + 1) == Some(&Token::Comma) {
            end += 2;
        }
        let closed = matches!(token(end), Some(Token::Word(_)))
            && token(end + 1) == Some(&Token::RParen)
            && is(end + 2, Keyword::AS);
        if closed && let Some(Token::Word(_)) = token(end + 3) {
            found.push((whole[end + 1], whole[end + 2], whole[end + 3]));
        }
    }
    for (closing, word, name) in found {
        let Token::Word(called) = &tokens[name].token else {
            continue;
        };
        let mut called = called.clone();
        let folded = match called.quote_style {
            Some(_) => called.value.clone(),
            None => called.value.to_lowercase(),
        };
        called.value = format!("{USING_ALIAS}{folded}");
        called.quote_style = Some('"');
        called.keyword = Keyword::NoKeyword;
        tokens[closing].token = Token::Comma;
        tokens[word].token = Token::Word(called);
        tokens[name].token = Token::RParen;
    }
    tokens
}

/// What a join of two tables' columns is made by.
pub fn constraint(join: &JoinOperator) -> Option<&JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}

/// The name that a join gives the columns that its tables share.
pub fn alias_of(constraint: &JoinConstraint) -> Option<&str> {
    match constraint {
        JoinConstraint::Using(names) => names.iter().find_map(marked),
        _ => None,
    }
}

/// The name in such a mark.
pub fn marked(name: &ObjectName) -> Option<&str> {
    let [part] = &name.0[..] else {
        return None;
    };
    part.as_ident()?.value.strip_prefix(USING_ALIAS)
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn read(text: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
        let tokens = using_alias(tokens.unwrap());
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn a_name_of_shared_columns_is_marked() {
        assert_eq!(
            read("select * from a join b using (i, j) as X where x.i = 1"),
            "select * from a join b using (i, j, \"alias of using: x\" ) where x.i = 1"
        );
        for plain in [
            "select * from a join b using (i) join c as x using (j)",
            "delete from a using (select 1) as x",
            "create index i on t using btree (a)",
        ] {
            assert_eq!(read(plain), plain);
        }
    }
}
