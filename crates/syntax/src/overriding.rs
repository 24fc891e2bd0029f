//! `insert into t (...) overriding {system | user} value ...`, which the parser does not know.

use sqlparser::ast::{Expr, Insert};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::words::is_word;

/// What an `insert` says with `overriding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// Values that rows bring are taken, whatever the column says.
    System,
    /// Values that rows bring for identity columns are left out.
    User,
}

/// The words that stand in the place of `overriding ... value`, where the parser reads partitions.
const MARKS: [(&str, &str, Overriding); 2] = [
    ("system", "__overriding_system", Overriding::System),
    ("user", "__overriding_user", Overriding::User),
];

/// Puts a mark in the place of `overriding {system | user} value` of an `insert`, which the parser does not know.
pub(super) fn mark(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let is = |at: usize, word: &str| is_word(&tokens[at].token, word);
    // `merge` reads the words itself.
    let merges = whole.first().is_some_and(|at| is(*at, "merge"));
    if merges || !whole.iter().any(|at| is(*at, "insert")) {
        return tokens;
    }
    let found = whole.windows(3).find_map(|places| {
        let [first, second, third] = places else {
            return None;
        };
        let mark = MARKS.iter().find(|(kind, _, _)| is(*second, kind))?;
        (is(*first, "overriding") && is(*third, "value")).then_some((*first, *third, mark.1))
    });
    if let Some((first, third, mark)) = found {
        let span = tokens[first].span;
        let parts = [
            Token::make_keyword("PARTITION"),
            Token::LParen,
            Token::make_word(mark, None),
            Token::RParen,
        ];
        let parts = parts.map(|part| TokenWithSpan::new(part, span));
        tokens.splice(first..=third, parts);
    }
    tokens
}

/// What a marked `insert` says. Others are none of these partitions.
pub fn overriding(statement: &Insert) -> Option<Overriding> {
    let [Expr::Identifier(mark)] = statement.partitioned.as_deref()? else {
        return None;
    };
    let mut marks = MARKS.iter();
    let found = marks.find(|(_, word, _)| *word == mark.value)?;
    Some(found.2)
}
