//! Tables made of queries in ways that the parser does not know: with names for the columns, without rows, and by
//! `select ... into`.

use messages::{Error, Result};
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{ColumnDef, DataType, Ident, Query, SetExpr, Statement as Sql};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::words::{self, is_word};

/// Takes the names of columns out of `create table name (a, b) ... as query`, and `with [no] data` from its end; none if it
/// has neither, or is another statement.
pub(super) fn strip(tokens: &[TokenWithSpan]) -> Option<(Vec<TokenWithSpan>, Vec<Ident>)> {
    let whole = whole(tokens);
    let token = |nth: usize| whole.get(nth).map(|at| &tokens[*at].token);
    let is = |nth: usize, word: &str| token(nth).is_some_and(|token| is_word(token, word));
    let (open, close, columns) = list(tokens, &whole)?;
    // Options come before the query.
    let mut depth = 0;
    let query = (close..whole.len()).find(|nth| {
        match token(*nth) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth -= 1,
            _ => {}
        }
        depth == 0 && is(*nth, "as")
    })?;
    let last = whole.len();
    let data = last > query + 3 && is(last - 1, "data");
    let without = data && is(last - 2, "no") && is(last - 3, "with");
    let with = data && is(last - 2, "with");
    if columns.is_empty() && !with && !without {
        return None;
    }
    let ends = last
        - if without {
            3
        } else if with {
            2
        } else {
            0
        };
    let mut rest = Vec::with_capacity(2 * tokens.len());
    let place = whole[query];
    let mut push = |token: Token, at: usize| {
        for part in [token, Token::Whitespace(Whitespace::Space)] {
            rest.push(TokenWithSpan::new(part, tokens[at].span));
        }
    };
    for at in whole[..open].iter().chain(&whole[close..=query]) {
        push(tokens[*at].token.clone(), *at);
    }
    if without {
        push(Token::make_keyword("SELECT"), place);
        push(Token::Mul, place);
        push(Token::make_keyword("FROM"), place);
        push(Token::LParen, place);
    }
    for at in &whole[query + 1..ends] {
        push(tokens[*at].token.clone(), *at);
    }
    if without {
        push(Token::RParen, place);
        push(Token::make_keyword("AS"), place);
        push(Token::make_word("__rows", None), place);
        push(Token::make_keyword("LIMIT"), place);
        push(Token::Number("0".to_owned(), false), place);
    }
    Some((rest, columns))
}

/// `create unlogged table` as `create table`: such a table is kept like any other, which is more than it asks for.
pub(super) fn logged(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let leading: Vec<String> = words::leading(&tokens).take(3).collect();
    if leading == ["create", "unlogged", "table"] {
        let at = tokens
            .iter()
            .position(|own| is_word(&own.token, "unlogged"));
        if let Some(at) = at {
            tokens.remove(at);
        }
    }
    tokens
}

/// The places of the tokens that are no space.
fn whole(tokens: &[TokenWithSpan]) -> Vec<usize> {
    (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF))
        .collect()
}

/// Where the list of columns behind the name of a `create table` begins and ends, of the `whole` tokens, and its names; an
/// empty one if something else comes there. `None` of other statements, and of a list of more than names.
fn list(tokens: &[TokenWithSpan], whole: &[usize]) -> Option<(usize, usize, Vec<Ident>)> {
    let token = |nth: usize| whole.get(nth).map(|at| &tokens[*at].token);
    let is = |nth: usize, word: &str| token(nth).is_some_and(|token| is_word(token, word));
    if !is(0, "create") {
        return None;
    }
    let mut nth = 1;
    while ["global", "local", "temporary", "temp", "unlogged"]
        .iter()
        .any(|word| is(nth, word))
    {
        nth += 1;
    }
    is(nth, "table").then_some(())?;
    nth += 1;
    if is(nth, "if") && is(nth + 1, "not") && is(nth + 2, "exists") {
        nth += 3;
    }
    matches!(token(nth), Some(Token::Word(_))).then_some(())?;
    nth += 1;
    while matches!(token(nth), Some(Token::Period)) {
        nth += 2;
    }
    let open = nth;
    let mut columns = Vec::new();
    if matches!(token(open), Some(Token::LParen)) {
        loop {
            let Some(Token::Word(word)) = token(nth + 1) else {
                return None;
            };
            columns.push(word.clone().into_ident(tokens[whole[nth + 1]].span));
            nth += 2;
            match token(nth) {
                Some(Token::Comma) => {}
                Some(Token::RParen) => break,
                _ => return None,
            }
        }
        nth += 1;
    }
    Some((open, nth, columns))
}

/// Gives the columns of a `create table ... as` these names.
///
/// # Errors
/// If the statement is another.
pub(super) fn with_columns(mut sql: Box<Sql>, columns: Vec<Ident>) -> Result<Box<Sql>> {
    match &mut *sql {
        Sql::CreateTable(create) if create.query.is_some() && create.columns.is_empty() => {
            let columns = columns.into_iter().map(|name| ColumnDef {
                name,
                data_type: DataType::Unspecified,
                options: vec![],
            });
            create.columns = columns.collect();
            Ok(sql)
        }
        _ => Err(no_query()),
    }
}

fn no_query() -> Error {
    Error::Syntax {
        message: "`create table ... as` needs a query behind it".to_owned(),
        position: None,
    }
}

/// `select ... into table` as the `create table ... as` that it means; any other query as it is.
pub(super) fn of_into(mut query: Box<Query>) -> Sql {
    let into = match first(&mut query.body) {
        SetExpr::Select(select) => select.into.take(),
        _ => None,
    };
    match into {
        None => Sql::Query(query),
        Some(into) => {
            let create = CreateTableBuilder::new(into.name)
                .temporary(into.temporary)
                .query(Some(query));
            Sql::CreateTable(create.build())
        }
    }
}

/// The first `select` of a union.
fn first(body: &mut SetExpr) -> &mut SetExpr {
    match body {
        SetExpr::SetOperation { left, .. } => first(left),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::{Statement, parse};

    fn read(text: &str) -> String {
        match parse(text).unwrap().remove(0).statement {
            Statement::Sql(sql) => sql.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tables_are_made_of_queries() {
        assert_eq!(
            read("select a, b into temp table t from u where a > 1"),
            "CREATE TEMPORARY TABLE t AS SELECT a, b FROM u WHERE a > 1"
        );
        assert!(read("create table t (a, \"B\") as select 1, 2").contains("(a, \"B\")"));
        assert_eq!(
            read("create temp table if not exists s.t as select 1 as a with data"),
            "CREATE TEMPORARY TABLE IF NOT EXISTS s.t AS SELECT 1 AS a"
        );
        assert!(read("create table t (x) as (select 1) with no data").ends_with("LIMIT 0"));
        assert_eq!(
            read("create unlogged table t (a int)"),
            "CREATE TABLE t (a INT)"
        );
        assert!(parse("create table t (a, b)").is_err());
        assert!(read("create table t (a int, b int)").contains("a INT"));
    }
}
