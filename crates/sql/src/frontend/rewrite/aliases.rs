//! `insert into t as a ... on conflict do update set n = a.n + 1`: the parser knows no alias there, so `t` stands in its place.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::names::column_name;

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Takes the alias out of an `insert`, and puts the name of the table where the alias names a column.
///
/// # Errors
/// If something else in the statement has the alias for a name, which could then be either.
pub(crate) fn aliases(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, ParserError> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let token = |place: usize| whole.get(place).map(|at| &tokens[*at].token);
    let is = |place: usize, wanted: Keyword| token(place).is_some_and(|own| keyword(own) == wanted);
    if !is(0, Keyword::INSERT) || !is(1, Keyword::INTO) {
        return Ok(tokens);
    }
    let mut place = 2;
    while matches!(token(place + 1), Some(Token::Period)) {
        place += 2;
    }
    let (Some(Token::Word(name)), Some(Token::Word(alias))) = (token(place), token(place + 2))
    else {
        return Ok(tokens);
    };
    if !is(place + 1, Keyword::AS) {
        return Ok(tokens);
    }
    let ident = |word: &datafusion::sql::sqlparser::tokenizer::Word| {
        column_name(&word.to_ident(tokens[0].span))
    };
    let called = ident(alias);
    let name = Token::Word(name.clone());
    let (mut changed, mut alone) = (Vec::new(), None);
    for (at, real) in whole.iter().copied().enumerate().skip(place + 3) {
        let Some(Token::Word(word)) = token(at) else {
            continue;
        };
        let behind_point = matches!(token(at - 1), Some(Token::Period));
        if ident(word) != called || behind_point {
            continue;
        }
        if matches!(token(at + 1), Some(Token::Period)) {
            changed.push(real);
        } else {
            alone = Some(real);
        }
    }
    // Another table may have it for a name.
    if let (Some(alone), false) = (alone, changed.is_empty()) {
        let start = tokens[alone].span.start;
        return Err(ParserError::ParserError(format!(
            "the alias {called} of an insert is also the name of something else in it: give it another at Line: {}, Column: {}",
            start.line, start.column
        )));
    }
    let gone = whole[place + 1]..=whole[place + 2];
    let kept = tokens.into_iter().enumerate();
    let kept = kept.filter(|(at, _)| !gone.contains(at));
    Ok(kept
        .map(|(at, mut token)| {
            if changed.contains(&at) {
                token.token = name.clone();
            }
            token
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::frontend::dialect::DIALECT;

    #[test]
    fn the_table_stands_in_the_place_of_its_alias() {
        let changed = |text: &str| {
            let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
            let tokens = aliases(tokens.unwrap())?;
            let texts = tokens.iter().map(|token| token.token.to_string());
            Ok::<String, ParserError>(texts.collect())
        };
        assert_eq!(
            changed("insert into s.t as a (k) values (1) on conflict (k) do update set n = a.n + excluded.n returning a.*").unwrap(),
            "insert into s.t  (k) values (1) on conflict (k) do update set n = t.n + excluded.n returning t.*"
        );
        assert_eq!(
            changed("insert into t (a) values (1)").unwrap(),
            "insert into t (a) values (1)"
        );
        assert!(changed("insert into t as a select a.x from u a").is_err());
    }
}
