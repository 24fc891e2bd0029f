//! Parts of columns that statements assign: `insert into t (a[1], c.f)`, `update t set a[1].f = 1`.
//!
//! The parser knows only names there. A column and the way into it become one name in quotes, with a [mark](WAY) between
//! them; [what it means](crate::statements) is found where the types of the columns are known.

use messages::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use crate::dialect::DIALECT;

/// What stands between a column and the way into it; no name has it.
pub const WAY: char = '\u{2}';

/// A step of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `.name`
    Field(String),
    /// `[1]`, `[1:2]` and others one behind the other: how each is written, and the subscripts.
    Items {
        /// A letter each: `i` for an item, `b`, `l`, `u` and `a` for a slice with both bounds, a lower, an upper one, or none.
        kinds: String,
        /// The subscripts, as they are written.
        subscripts: Vec<String>,
    },
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The first token from `at` on that is no space.
fn next(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let found = tokens.get(at..)?.iter().position(|own| !is_blank(own));
    found.map(|found| at + found)
}

/// How deep behind a token things are nested.
fn nested(depth: usize, token: &Token) -> usize {
    match token {
        Token::LParen | Token::LBracket | Token::LBrace => depth + 1,
        Token::RParen | Token::RBracket | Token::RBrace => depth.saturating_sub(1),
        _ => depth,
    }
}

/// Where the bracket that opens at `at` is closed.
fn closing(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut depth = 0;
    let length = tokens[at..].iter().position(|own| {
        depth = nested(depth, &own.token);
        depth == 0
    })?;
    Some(at + length)
}

/// The name that a word is: in lower case unless it is quoted.
fn named(word: &Word) -> String {
    match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_lowercase(),
    }
}

/// What is assigned: a column, and the way into it.
pub(crate) struct Target<'t> {
    column: String,
    at: &'t TokenWithSpan,
    way: &'t [TokenWithSpan],
    /// The tokens behind it.
    pub rest: &'t [TokenWithSpan],
}

impl<'t> Target<'t> {
    /// That with which tokens begin.
    pub(crate) fn read(tokens: &'t [TokenWithSpan]) -> Option<Target<'t>> {
        let start = next(tokens, 0)?;
        let Token::Word(word) = &tokens[start].token else {
            return None;
        };
        let mut end = start + 1;
        while let Some(at) = next(tokens, end) {
            end = match &tokens[at].token {
                Token::LBracket => closing(tokens, at)? + 1,
                Token::Period => {
                    let name = next(tokens, at + 1)?;
                    let Token::Word(_) = &tokens[name].token else {
                        return None;
                    };
                    name + 1
                }
                _ => break,
            };
        }
        Some(Target {
            column: named(word),
            at: &tokens[start],
            way: &tokens[start + 1..end],
            rest: &tokens[end..],
        })
    }

    fn has(&self, token: &Token) -> bool {
        self.way.iter().any(|own| own.token == *token)
    }

    /// Whether there is a way into the column.
    fn is_part(&self) -> bool {
        !self.way.is_empty()
    }

    /// Whether something is assigned to an item.
    pub(crate) fn has_items(&self) -> bool {
        let behind = self.rest.iter().find(|own| !is_blank(own));
        behind.is_some_and(|own| own.token == Token::Eq) && self.has(&Token::LBracket)
    }

    /// Whether it is assigned by a way of items and fields.
    pub(crate) fn is_mixed(&self) -> bool {
        self.has_items() && self.has(&Token::Period)
    }

    /// It as one name.
    pub(crate) fn marked(&self) -> TokenWithSpan {
        let name = format!("{}{WAY}{}", self.column, text(self.way));
        TokenWithSpan::new(Token::make_word(&name, Some('"')), self.at.span)
    }
}

/// Tokens as a statement has them.
fn text(tokens: &[TokenWithSpan]) -> String {
    let written = |own: &TokenWithSpan| match &own.token {
        Token::SingleQuotedString(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    };
    tokens.iter().map(written).collect()
}

/// The parts of a list between commas.
fn parts(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let mut depth = 0;
    let parts = tokens.split(|own| {
        depth = nested(depth, &own.token);
        depth == 0 && own.token == Token::Comma
    });
    parts.collect()
}

/// A list of columns with marks in it; none if there are no ways into any, or it is another list.
pub(crate) fn list(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let targets: Option<Vec<Target<'_>>> = parts(tokens).into_iter().map(Target::read).collect();
    let targets = targets?;
    let ends = |own: &Target<'_>| own.rest.iter().all(is_blank);
    if !targets.iter().all(ends) || !targets.iter().any(Target::is_part) {
        return None;
    }
    let mut made = Vec::new();
    for (at, target) in targets.iter().enumerate() {
        if at > 0 {
            made.push(TokenWithSpan::new(Token::Comma, target.at.span));
        }
        made.push(if target.is_part() {
            target.marked()
        } else {
            target.at.clone()
        });
    }
    Some(made)
}

/// Marks the columns that are named behind `insert into t`.
pub(crate) fn inserts(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    while at < tokens.len() {
        if let Some((open, close)) = columns(&tokens, at)
            && let Some(marked) = list(&tokens[open + 1..close])
        {
            tokens.splice(open + 1..close, marked);
            at = open;
        }
        at += 1;
    }
    tokens
}

/// The brackets around the columns of an `insert` that begins at `at`.
fn columns(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, usize)> {
    let keyword = |at: usize| match &tokens[at].token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    if keyword(at) != Keyword::INSERT {
        return None;
    }
    let into = next(tokens, at + 1)?;
    if keyword(into) != Keyword::INTO {
        return None;
    }
    let mut at = next(tokens, next(tokens, into + 1)? + 1)?;
    while tokens[at].token == Token::Period {
        at = next(tokens, next(tokens, at + 1)? + 1)?;
    }
    if keyword(at) == Keyword::AS {
        at = next(tokens, next(tokens, at + 1)? + 1)?;
    }
    let open = tokens[at].token == Token::LParen;
    open.then(|| closing(tokens, at).map(|close| (at, close)))?
}

/// How what stands in a pair of brackets is written, and the subscripts.
pub(crate) fn bounds(bracket: &[TokenWithSpan]) -> (char, Vec<&[TokenWithSpan]>) {
    let mut depth = 0;
    let colon = bracket.iter().position(|own| {
        depth = nested(depth, &own.token);
        depth == 0 && own.token == Token::Colon
    });
    let Some(colon) = colon else {
        return ('i', vec![bracket]);
    };
    let there = |tokens: &[TokenWithSpan]| !tokens.iter().all(is_blank);
    let (low, high) = (&bracket[..colon], &bracket[colon + 1..]);
    let kind = match (there(low), there(high)) {
        (true, true) => 'b',
        (true, false) => 'l',
        (false, true) => 'u',
        (false, false) => 'a',
    };
    let sides = [low, high].into_iter().filter(|side| there(side));
    (kind, sides.collect())
}

/// The steps of a way that a name was marked with.
///
/// # Errors
/// If it is none: a defect.
pub fn steps(way: &str) -> Result<Vec<Step>> {
    let wrong = || Error::Defect {
        message: format!("{way}: expected a way into a column"),
    };
    let tokens = Tokenizer::new(&DIALECT, way).tokenize_with_location();
    let tokens = tokens.map_err(|_| wrong())?;
    let mut steps: Vec<Step> = Vec::new();
    let mut at = 0;
    while let Some(found) = next(&tokens, at) {
        match &tokens[found].token {
            Token::Period => {
                let name = next(&tokens, found + 1).ok_or_else(wrong)?;
                let Token::Word(word) = &tokens[name].token else {
                    return Err(wrong());
                };
                steps.push(Step::Field(named(word)));
                at = name + 1;
            }
            Token::LBracket => {
                let close = closing(&tokens, found).ok_or_else(wrong)?;
                let (kind, given) = bounds(&tokens[found + 1..close]);
                let given = given.into_iter().map(text);
                match steps.last_mut() {
                    Some(Step::Items { kinds, subscripts }) => {
                        kinds.push(kind);
                        subscripts.extend(given);
                    }
                    _ => steps.push(Step::Items {
                        kinds: kind.to_string(),
                        subscripts: given.collect(),
                    }),
                }
                at = close + 1;
            }
            _ => return Err(wrong()),
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str) -> String {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        let tokens = inserts(tokens.unwrap());
        tokens.iter().map(|own| own.token.to_string()).collect()
    }

    #[test]
    fn columns_of_an_insert_are_marked() {
        for (text, wanted) in [
            (
                "insert into t (a[1], B.f, c) values (1, 2, 3)",
                "insert into t (\"a\u{2}[1]\",\"b\u{2}.f\",c) values (1, 2, 3)",
            ),
            (
                "with x as (insert into s.t as i (\"A\" [1:2].f['k']) select 1) select 1",
                "with x as (insert into s.t as i (\"A\u{2} [1:2].f['k']\") select 1) select 1",
            ),
        ] {
            assert_eq!(changed(text), wanted);
        }
        for text in [
            "insert into t (a, b) values (c[1], (d).e)",
            "insert into t (select a.b, c[1] from a)",
            "insert into t (values (1))",
            "insert into t select a[1] from b",
            "insert into t",
        ] {
            assert_eq!(changed(text), text);
        }
    }

    #[test]
    fn ways_have_steps() {
        let items = |kinds: &str, subscripts: &[&str]| Step::Items {
            kinds: kinds.into(),
            subscripts: subscripts.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(
            steps("[1].F[2][a + 1:]").unwrap(),
            [
                items("i", &["1"]),
                Step::Field("f".into()),
                items("il", &["2", "a + 1"]),
            ]
        );
        assert_eq!(steps(".\"A b\"").unwrap(), [Step::Field("A b".into())]);
        assert!(steps("a").is_err());
        assert!(steps(".").is_err());
    }
}
