//! The operators of AFL in a query: `select ... from regrid(t, 2, 2, avg(v))`, and any query of it as `afl('...')`.
//!
//! What AFL writes between the parentheses of an operator SQL often cannot read: `avg(v) as a`, `<v>[x=0:3]`. So a call is
//! found among the tokens, before anything is parsed, and becomes `afl('...')` with its text.

use std::collections::HashMap;
use std::ops::ControlFlow;

use afl::OPERATORS;
use messages::{Error, Result};
use sqlparser::ast::{
    FunctionArg, FunctionArgExpr, Ident, ObjectName, Statement, TableAlias, TableFactor, VisitorMut,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::readers::text;
use crate::walk::WalkMut;

/// The function that takes a query of AFL as a text.
const AFL: &str = "afl";

/// Makes `afl('...')` of each call of an operator where a table may stand.
pub(crate) fn mark(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut marked = Vec::with_capacity(tokens.len());
    // For each open parenthesis, whether what stands in it is a list of tables.
    let mut lists = vec![false];
    let mut expected = false;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if let (true, Some(length)) = (expected, call(&tokens[at..])) {
            let text = source(&tokens[at..at + length]);
            let parts = [
                Token::make_word(AFL, None),
                Token::LParen,
                Token::SingleQuotedString(text),
                Token::RParen,
            ];
            marked.extend(parts.map(|part| TokenWithSpan::new(part, token.span)));
            (at, expected) = (at + length, false);
            continue;
        }
        match &token.token {
            Token::Whitespace(_) => {}
            Token::LParen => {
                lists.push(false);
                expected = false;
            }
            Token::RParen => {
                lists.pop();
                expected = false;
            }
            Token::Comma => expected = lists.last() == Some(&true),
            Token::Word(word) => {
                let (list, table) = after(word);
                if let (Some(list), Some(last)) = (list, lists.last_mut()) {
                    *last = list;
                }
                // These stand between the word before and the table.
                let between = matches!(word.keyword, Keyword::LATERAL | Keyword::ONLY);
                expected = table || (expected && between);
            }
            _ => expected = false,
        }
        marked.push(token.clone());
        at += 1;
    }
    marked
}

/// Whether a list of tables begins or ends with a word, if it does either, and whether a table may follow it.
fn after(word: &Word) -> (Option<bool>, bool) {
    if word.quote_style.is_some() {
        return (None, false);
    }
    match word.keyword {
        Keyword::FROM => (Some(true), true),
        Keyword::JOIN | Keyword::USING => (None, true),
        Keyword::WHERE
        | Keyword::GROUP
        | Keyword::HAVING
        | Keyword::ORDER
        | Keyword::LIMIT
        | Keyword::OFFSET
        | Keyword::FETCH
        | Keyword::UNION
        | Keyword::EXCEPT
        | Keyword::INTERSECT
        | Keyword::WINDOW
        | Keyword::RETURNING
        | Keyword::SELECT
        | Keyword::SET => (Some(false), false),
        _ => (None, false),
    }
}

/// How many tokens a call of an operator has that begins here.
fn call(tokens: &[TokenWithSpan]) -> Option<usize> {
    let Token::Word(word) = &tokens.first()?.token else {
        return None;
    };
    let name = word.value.to_lowercase();
    if word.quote_style.is_some() || !OPERATORS.contains(&name.as_str()) {
        return None;
    }
    let mut open = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::LParen => open += 1,
            Token::RParen => open = open.checked_sub(1)?,
            _ if open == 0 => return None,
            _ => {}
        }
        if open == 0 && token.token == Token::RParen {
            return Some(at + 1);
        }
    }
    None
}

/// The text of a call. A string that stands first between parentheses is the name of an array, as it is for graphs.
fn source(tokens: &[TokenWithSpan]) -> String {
    let mut opened = false;
    let mut source = String::new();
    for token in tokens {
        match &token.token {
            Token::SingleQuotedString(name) if opened && !name.contains('"') => {
                source.push_str(&format!("\"{name}\""));
            }
            token => source.push_str(&token.to_string()),
        }
        opened = match &token.token {
            Token::Whitespace(_) => opened,
            token => *token == Token::LParen,
        };
    }
    source
}

/// Whether `name` is the function that takes a query of AFL.
pub(crate) fn reads(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case(AFL)
}

/// Replaces each call of `afl('...')` in `statement` by a table named after the text of the call, and returns the query
/// behind each of these names.
///
/// # Errors
/// If something else than a text is given.
pub fn take(statement: &mut Statement) -> Result<HashMap<String, String>> {
    let mut taking = Taking::default();
    match statement.walk_mut(&mut taking) {
        ControlFlow::Continue(()) => Ok(taking.queries),
        ControlFlow::Break(error) => Err(error),
    }
}

#[derive(Default)]
struct Taking {
    queries: HashMap<String, String>,
}

impl VisitorMut for Taking {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table {
            name,
            args: given,
            alias,
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let Some(args) = given.as_ref().filter(|_| reads(name)) else {
            return ControlFlow::Continue(());
        };
        let query = match args.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => text(expr),
            _ => None,
        };
        let Some(query) = query else {
            let usage = "afl takes a query of AFL as a text: afl('aggregate(t, avg(v), x)')";
            return ControlFlow::Break(Error::coded("42883", usage));
        };
        let table = format!("afl('{query}')");
        *name = ObjectName::from(vec![Ident::with_quote('"', table.clone())]);
        *given = None;
        // As in PostgreSQL the function's name is that of the table, for `regrid.v`.
        if alias.is_none() {
            *alias = Some(TableAlias {
                explicit: false,
                name: Ident::new(called(&query)),
                columns: Vec::new(),
                at: None,
            });
        }
        self.queries.insert(table, query);
        ControlFlow::Continue(())
    }
}

/// The operator that a query begins with, or the name of the function.
fn called(query: &str) -> &str {
    let front = query.split('(').next().unwrap_or("").trim();
    let known = OPERATORS.iter().find(|of| front.eq_ignore_ascii_case(of));
    known.copied().unwrap_or(AFL)
}
