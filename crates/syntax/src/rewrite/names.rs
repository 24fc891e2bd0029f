//! Rewrites of tokens that are names: of columns that the parser takes for something else, and of the table of an `insert`.

use sqlparser::keywords::Keyword;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The places of the tokens that are no space.
fn whole(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let places = 0..tokens.len();
    places
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect()
}

/// The word at a place, in lower case unless it is quoted.
fn named(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_lowercase()),
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    }
}

fn is(token: &Token, keyword: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
}

/// Columns of a `create table` that are called `key` or `index`, in quotes: the parser takes these words for the beginning of a
/// key as MySQL declares it.
pub(crate) fn key_columns(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole = whole(&tokens);
    let word = |place: usize, wanted: &str| {
        let at = whole.get(place);
        at.is_some_and(|&at| is(&tokens[at].token, wanted))
    };
    if !word(0, "create") || !(1..4).any(|place| word(place, "table")) {
        return tokens;
    }
    let mut depth = 0;
    let mut found = Vec::new();
    for (place, &at) in whole.iter().enumerate() {
        let before = depth;
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Comma => {}
            _ => continue,
        }
        // In the list itself, of which no part is longer.
        if depth == 1 && before <= 1 && tokens[at].token != Token::RParen {
            let key = word(place + 1, "key") || word(place + 1, "index");
            let typed = whole
                .get(place + 2)
                .is_some_and(|&at| matches!(tokens[at].token, Token::Word(_)));
            if key && typed {
                found.push(whole[place + 1]);
            }
        }
    }
    for at in found {
        if let Token::Word(word) = &mut tokens[at].token {
            word.value = word.value.to_lowercase();
            word.quote_style = Some('"');
            word.keyword = Keyword::NoKeyword;
        }
    }
    tokens
}

/// `insert into t as a ...` without the alias: behind `on conflict` and `returning`, where alone it is seen, the name of the
/// table takes its place.
///
/// # Errors
/// If the table is called by its own name there, or the alias is given to something else, too.
pub(crate) fn insert_alias(
    mut tokens: Vec<TokenWithSpan>,
) -> std::result::Result<Vec<TokenWithSpan>, ParserError> {
    let whole = whole(&tokens);
    let token = |place: usize| whole.get(place).map(|&at| &tokens[at].token);
    let word = |place: usize, wanted: &str| token(place).is_some_and(|token| is(token, wanted));
    if !word(0, "insert") || !word(1, "into") {
        return Ok(tokens);
    }
    // The last part of the name of the table.
    let mut own = 2;
    while token(own + 1) == Some(&Token::Period) {
        own += 2;
    }
    let alias = token(own + 2).and_then(named);
    let (Some(table), Some(alias), true) = (token(own).and_then(named), alias, word(own + 1, "as"))
    else {
        return Ok(tokens);
    };
    let mut depth = 0;
    let mut seen_from = whole.len();
    for place in own + 3..whole.len() {
        match token(place) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth -= 1,
            _ => {}
        }
        let conflict = word(place, "on") && word(place + 1, "conflict");
        if depth == 0 && (conflict || word(place, "returning")) {
            seen_from = place;
            break;
        }
    }
    let wrong = |place: usize, what: &str| {
        let start = tokens[whole[place]].span.start;
        let (line, column) = (start.line, start.column);
        ParserError::ParserError(format!("{what} at Line: {line}, Column: {column}"))
    };
    let mut renamed = Vec::new();
    for (place, &at) in whole.iter().enumerate().skip(seen_from) {
        let Some(name) = token(place).and_then(named) else {
            continue;
        };
        let is_part = place > 0 && token(place - 1) == Some(&Token::Period);
        let has_part = token(place + 1) == Some(&Token::Period);
        if is_part {
            continue;
        }
        if has_part && name == alias {
            renamed.push(at);
        } else if has_part && name == table {
            let what = format!("invalid reference to FROM-clause entry for table \"{table}\"");
            return Err(wrong(place, &what));
        } else if name == alias && !has_part {
            let what = format!("not supported: \"{alias}\" beside the alias of the table");
            return Err(wrong(place, &what));
        }
    }
    if table == "excluded" && seen_from < whole.len() {
        let what = "not supported: an alias of a table that is called \"excluded\"";
        return Err(wrong(own, what));
    }
    for at in renamed {
        tokens[at].token = Token::Word(Word {
            value: table.clone(),
            quote_style: Some('"'),
            keyword: Keyword::NoKeyword,
        });
    }
    let gone = whole[own + 1]..=whole[own + 2];
    tokens.drain(gone);
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    fn tokens(text: &str) -> Vec<TokenWithSpan> {
        Tokenizer::new(&DIALECT, text)
            .tokenize_with_location()
            .unwrap()
    }

    fn text(tokens: &[TokenWithSpan]) -> String {
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn columns_may_be_called_key() {
        for (given, wanted) in [
            (
                "create table t (key int primary key, Index text)",
                "create table t (\"key\" int primary key, \"index\" text)",
            ),
            (
                "create temp table t(a numeric(5, 2), key varchar(3))",
                "create temp table t(a numeric(5, 2), \"key\" varchar(3))",
            ),
            (
                "create table t (a int, primary key (a))",
                "create table t (a int, primary key (a))",
            ),
            ("select f(key x)", "select f(key x)"),
        ] {
            assert_eq!(text(&key_columns(tokens(given))), wanted);
        }
    }

    #[test]
    fn the_table_of_an_insert_may_have_an_alias() {
        let read = |given: &str| insert_alias(tokens(given)).map(|tokens| text(&tokens));
        assert_eq!(
            read("insert into s.t as x (a) select x.a from u x on conflict (a) do update set b = x.b + 1 returning x.*").unwrap(),
            "insert into s.t  (a) select x.a from u x on conflict (a) do update set b = \"t\".b + 1 returning \"t\".*"
        );
        assert_eq!(
            read("insert into t as x values (1)").unwrap(),
            "insert into t  values (1)"
        );
        let plain = "insert into t select 1 as x returning t.a";
        assert_eq!(read(plain).unwrap(), plain);
        for wrong in [
            "insert into t as x values (1) returning t.a",
            "insert into t as x values (1) returning (select x.b from u x)",
            "insert into excluded as x values (1) on conflict (a) do update set a = x.a",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
