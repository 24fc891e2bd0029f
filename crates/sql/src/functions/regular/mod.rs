//! Regular expressions with PostgreSQL's options, compiled once for the rows of a batch.
//!
//! What the library `regex` has is left to it. Expressions with look-around, back references and the edges of words as PostgreSQL
//! writes them are [parsed](parse) and [judged](judge), and become a [program](program) that [searches](search) by trying one way
//! after the other.

mod judge;
mod parse;
mod program;
mod search;

use std::collections::HashMap;

use datafusion::common::Result;
use regex::{Regex, RegexBuilder};

use crate::error::Error;
pub(crate) use judge::Asked;
use program::{Program, program};
use search::Places;

/// Whether PostgreSQL's library takes such a pattern, and `regex` does not or has another meaning of it.
pub(crate) fn is_beyond(pattern: &str) -> bool {
    let has = |marks: &[&str]| marks.iter().any(|mark| pattern.contains(mark));
    if has(&["[[:<:]]", "[[:>:]]"]) {
        return true;
    }
    let mut letters = pattern.chars();
    let mut escapes = false;
    while let Some(letter) = letters.next() {
        escapes |= letter == '\\'
            && matches!(
                letters.next(),
                Some('1'..='9' | 'm' | 'M' | 'y' | 'Y' | 'Z')
            );
    }
    (escapes || has(&["(?=", "(?!", "(?<=", "(?<!"])) && Regex::new(pattern).is_err()
}

/// A regular expression.
#[derive(Debug)]
pub(crate) enum Expression {
    /// One that needs a time which grows with the text.
    Plain(Regex),
    /// One that tries one way after the other.
    Backtracking(Program),
}

/// What a match has found.
pub(crate) enum Found<'t> {
    Plain(regex::Captures<'t>),
    Backtracking(&'t str, Places),
}

/// What a group has found, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'t> {
    pub(crate) text: &'t str,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl<'t> Found<'t> {
    /// What the group of this number has found; that of number 0 is the match.
    pub(crate) fn get(&self, group: usize) -> Option<Part<'t>> {
        match self {
            Found::Plain(found) => found.get(group).map(|own| Part {
                text: own.as_str(),
                start: own.start(),
                end: own.end(),
            }),
            Found::Backtracking(text, places) => {
                let place = |at: usize| places.get(at).copied().flatten();
                let (start, end) = (place(2 * group)?, place(2 * group + 1)?);
                Some(Part {
                    text: &text[start..end],
                    start,
                    end,
                })
            }
        }
    }
}

impl Expression {
    /// How many groups it has.
    pub(crate) fn groups(&self) -> usize {
        match self {
            Expression::Plain(regex) => regex.captures_len() - 1,
            Expression::Backtracking(program) => program.groups,
        }
    }

    /// Whether there is a match.
    ///
    /// # Errors
    /// If too many ways are tried.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool> {
        match self {
            Expression::Plain(regex) => Ok(regex.is_match(text)),
            Expression::Backtracking(program) => Ok(program.search(text, 0)?.is_some()),
        }
    }

    /// The first match that begins at the byte `at` or behind it.
    ///
    /// # Errors
    /// If too many ways are tried.
    pub(crate) fn found<'t>(&self, text: &'t str, at: usize) -> Result<Option<Found<'t>>> {
        Ok(match self {
            Expression::Plain(regex) => regex.captures_at(text, at).map(Found::Plain),
            Expression::Backtracking(program) => {
                let places = program.search(text, at)?;
                places.map(|places| Found::Backtracking(text, places))
            }
        })
    }

    /// The same, without its groups.
    ///
    /// # Errors
    /// If too many ways are tried.
    pub(crate) fn span(&self, text: &str, at: usize) -> Result<Option<(usize, usize)>> {
        if let Expression::Plain(regex) = self {
            return Ok(regex.find_at(text, at).map(|own| (own.start(), own.end())));
        }
        let found = self.found(text, at)?;
        Ok(found.and_then(|found| found.get(0).map(|own| (own.start, own.end))))
    }

    /// The matches from the byte `at` on, which do not overlap. A match of no letters counts right behind another.
    pub(crate) fn matches<'t>(
        &self,
        text: &'t str,
        at: Option<usize>,
    ) -> impl Iterator<Item = Result<Found<'t>>> {
        let mut at = at;
        std::iter::from_fn(move || {
            let found = match self.found(text, at?) {
                Ok(found) => found?,
                Err(e) => {
                    at = None;
                    return Some(Err(e));
                }
            };
            let whole = found.get(0)?;
            at = behind(text, whole.start, whole.end);
            Some(Ok(found))
        })
    }
}

/// Where the search for the next match begins: behind a match, and behind a character more if that has none.
pub(crate) fn behind(text: &str, start: usize, end: usize) -> Option<usize> {
    if start < end {
        return Some(end);
    }
    let next = text[end..].chars().next()?;
    Some(end + next.len_utf8())
}

/// Regular expressions, each compiled once, and whether all of their matches are wanted.
#[derive(Default)]
pub(crate) struct Compiled {
    asked: Asked,
    all: HashMap<(String, String), (Expression, bool)>,
}

impl Compiled {
    /// Expressions of which is asked only whether there is a match.
    pub(crate) fn for_truth() -> Compiled {
        Compiled {
            asked: Asked::Truth,
            ..Compiled::default()
        }
    }

    /// The expression of `pattern` with PostgreSQL's options.
    ///
    /// # Errors
    /// For an option that there is not, and for what is no regular expression.
    pub(crate) fn of(&mut self, pattern: &str, options: &str) -> Result<&(Expression, bool)> {
        let key = (pattern.to_string(), options.to_string());
        if !self.all.contains_key(&key) {
            let compiled = compiled(pattern, options, self.asked)?;
            self.all.insert(key.clone(), compiled);
        }
        Ok(&self.all[&key])
    }
}

fn compiled(pattern: &str, options: &str, asked: Asked) -> Result<(Expression, bool)> {
    if !options.contains('q') && is_beyond(pattern) {
        return Ok(backtracking(pattern, options, asked)?);
    }
    let (regex, all) = plain(pattern, options)?;
    Ok((Expression::Plain(regex), all))
}

fn backtracking(
    pattern: &str,
    options: &str,
    asked: Asked,
) -> crate::error::Result<(Expression, bool)> {
    let (mut all, mut alike) = (false, false);
    for option in options.chars() {
        match option {
            'g' => all = true,
            'i' => alike = true,
            'c' => alike = false,
            's' | 't' => {}
            'b' | 'e' | 'm' | 'n' | 'p' | 'w' | 'x' => {
                return Err(Error::unsupported(format!(
                    "the regular expression option \"{option}\" is not supported with look-around or back references"
                )));
            }
            other => return Err(unknown_option(other)),
        }
    }
    let root = parse::parse(pattern)?;
    judge::judge(&root, asked)?;
    Ok((Expression::Backtracking(program(&root, alike)?), all))
}

fn unknown_option(option: char) -> Error {
    Error::coded(
        "22023",
        format!("invalid regular expression option: \"{option}\""),
    )
}

fn plain(pattern: &str, options: &str) -> Result<(Regex, bool)> {
    let mut all = false;
    // A point takes a line's end, too, as in PostgreSQL.
    let quoted = options.contains('q');
    let source = if quoted {
        regex::escape(pattern)
    } else {
        pattern.to_string()
    };
    let mut builder = RegexBuilder::new(&source);
    builder.dot_matches_new_line(true);
    for option in options.chars() {
        match option {
            'g' => all = true,
            'i' => _ = builder.case_insensitive(true),
            'c' => _ = builder.case_insensitive(false),
            'x' => _ = builder.ignore_whitespace(true),
            's' => _ = builder.dot_matches_new_line(true).multi_line(false),
            'q' | 't' => {}
            // What is none of some letters is no end of a line there, where a point is none.
            'm' | 'n' | 'p' if pattern.contains("[^") && !quoted => {
                return Err(Error::unsupported(format!(
                    "the regular expression option \"{option}\" is not supported with [^...]"
                ))
                .into());
            }
            'm' | 'n' => _ = builder.dot_matches_new_line(false).multi_line(true),
            'p' => _ = builder.dot_matches_new_line(false).multi_line(false),
            'w' => _ = builder.dot_matches_new_line(true).multi_line(true),
            'b' | 'e' => {
                return Err(Error::unsupported(format!(
                    "the regular expression option \"{option}\" is not supported: there are c, g, i, m, n, p, q, s, w and x"
                ))
                .into());
            }
            other => return Err(unknown_option(other).into()),
        }
    }
    match builder.build() {
        Ok(regex) => Ok((regex, all)),
        Err(e) => {
            let text = e.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ");
            Err(Error::coded(
                "2201B",
                format!("invalid regular expression '{pattern}': {reason}"),
            )
            .into())
        }
    }
}

#[cfg(test)]
mod tests;
