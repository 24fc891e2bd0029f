//! PostgreSQL's regular expressions with its options, compiled once for the rows of a batch.
//!
//! A pattern is [parsed](parse). What the library `regex` finds as PostgreSQL does is [left to it](plain). The rest is
//! [divided](structure) into parts, whose matches [automata](automaton) tell, and [searched](divided) for.

mod automaton;
mod brackets;
mod collating;
mod divided;
mod letters;
mod options;
mod parse;
mod plain;
mod reader;
mod structure;
mod work;

use std::collections::HashMap;

use datafusion::common::Result;
use regex::Regex;

use divided::Places;
use options::Options;
use parse::Node;
use structure::Part;

/// A regular expression.
#[derive(Debug)]
pub(crate) struct Expression {
    groups: usize,
    /// Whether letters are alike in both cases.
    alike: bool,
    /// What tells whether there is a match, and where it begins.
    plain: Option<Regex>,
    /// What divides a match, unless `plain` does so.
    part: Option<Part>,
    /// Whether there are back references in it.
    refers: bool,
}

/// What a match has found.
pub(crate) enum Found<'t> {
    Plain(regex::Captures<'t>),
    Divided(&'t str, Places),
}

/// What a group has found, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupMatch<'t> {
    pub(crate) text: &'t str,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl<'t> Found<'t> {
    /// What the group of this number has found; that of number 0 is the match.
    pub(crate) fn get(&self, group: usize) -> Option<GroupMatch<'t>> {
        match self {
            Found::Plain(found) => found.get(group).map(|own| GroupMatch {
                text: own.as_str(),
                start: own.start(),
                end: own.end(),
            }),
            Found::Divided(text, places) => {
                let (start, end) = places.get(group).copied().flatten()?;
                Some(GroupMatch {
                    text: &text[start..end],
                    start,
                    end,
                })
            }
        }
    }
}

/// A pattern in the syntax of the library `regex`, if that tells whether there is a match.
///
/// # Errors
/// For what is no regular expression.
pub(crate) fn plain_source(pattern: &str, alike: bool) -> crate::error::Result<Option<String>> {
    let options = Options::of(if alike { "i" } else { "" })?;
    let (root, ..) = parse::parse(pattern, options)?;
    let source = plain::source(&root);
    Ok(source.filter(|source| Regex::new(source).is_ok()))
}

impl Expression {
    fn new(root: &Node, groups: usize, options: Options) -> crate::error::Result<Expression> {
        // Its own limit may refuse it.
        let plain = plain::source(root).and_then(|source| Regex::new(&source).ok());
        let part = if plain.is_some() && plain::agrees(root) {
            None
        } else {
            Some(structure::structure(root)?)
        };
        Ok(Expression {
            groups,
            alike: options.alike,
            plain,
            part,
            refers: root.has(|node| matches!(node, Node::Back(_))),
        })
    }

    /// How many groups it has.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// Whether there is a match.
    ///
    /// # Errors
    /// If the expression is too complex, or the statement was cancelled.
    pub(crate) fn is_match(&self, text: &str) -> crate::error::Result<bool> {
        match (&self.plain, &self.part) {
            (Some(plain), _) => Ok(plain.is_match(text)),
            (None, Some(part)) if !self.refers => divided::exists(part, text),
            _ => Ok(self.divided(text, 0)?.is_some()),
        }
    }

    fn divided(&self, text: &str, at: usize) -> crate::error::Result<Option<Places>> {
        let Some(part) = &self.part else {
            return Ok(None);
        };
        let at = match &self.plain {
            Some(plain) => match plain.find_at(text, at) {
                Some(found) => found.start(),
                None => return Ok(None),
            },
            None => at,
        };
        divided::search(part, text, at, (self.groups, self.alike))
    }

    /// The first match that begins at the byte `at` or behind it.
    ///
    /// # Errors
    /// If the expression is too complex, or the statement was cancelled.
    pub(crate) fn found<'t>(
        &self,
        text: &'t str,
        at: usize,
    ) -> crate::error::Result<Option<Found<'t>>> {
        if let (Some(plain), None) = (&self.plain, &self.part) {
            return Ok(plain.captures_at(text, at).map(Found::Plain));
        }
        let places = self.divided(text, at)?;
        Ok(places.map(|places| Found::Divided(text, places)))
    }

    /// The same, without its groups.
    ///
    /// # Errors
    /// If the expression is too complex, or the statement was cancelled.
    pub(crate) fn span(
        &self,
        text: &str,
        at: usize,
    ) -> crate::error::Result<Option<(usize, usize)>> {
        if let (Some(plain), None) = (&self.plain, &self.part) {
            let found = plain.find_at(text, at);
            return Ok(found.map(|own| (own.start(), own.end())));
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
                    return Some(Err(e.into()));
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
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    all: HashMap<(String, String), (Expression, bool)>,
}

impl Compiled {
    /// The expression of `pattern` with PostgreSQL's options.
    ///
    /// # Errors
    /// For an option that there is not, and for what is no regular expression.
    pub(crate) fn of(
        &mut self,
        pattern: &str,
        options: &str,
    ) -> crate::error::Result<&(Expression, bool)> {
        let key = (pattern.to_string(), options.to_string());
        if !self.all.contains_key(&key) {
            let compiled = compiled(pattern, options)?;
            self.all.insert(key.clone(), compiled);
        }
        Ok(&self.all[&key])
    }
}

fn compiled(pattern: &str, options: &str) -> crate::error::Result<(Expression, bool)> {
    let options = Options::of(options)?;
    let (root, groups, options) = parse::parse(pattern, options)?;
    Ok((Expression::new(&root, groups, options)?, options.all))
}

#[cfg(test)]
mod tests;
