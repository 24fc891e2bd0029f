//! PostgreSQL's regular expressions with its options, each [compiled once](known) for the rows of a batch.
//!
//! A pattern is [parsed](parse). What the library `regex` finds as PostgreSQL does is [left to it](plain), which
//! [searches](library) for it. The rest is [divided](structure) into parts, whose matches [automata](automaton) tell, and
//! [searched](divided) for.

mod automaton;
mod brackets;
mod collating;
mod divided;
mod known;
mod letters;
mod library;
mod options;
mod parse;
mod plain;
mod reader;
mod similar;
mod structure;
mod template;
mod work;

use regex::Regex;

use divided::Places;
pub(crate) use known::{Compiled, Known, Matches};
use library::{Library, Room};
use options::Options;
use parse::Node;
pub(crate) use similar::between;
use structure::Part;
pub(crate) use template::Template;

/// A regular expression.
#[derive(Debug)]
struct Expression {
    groups: usize,
    /// Whether letters are alike in both cases.
    alike: bool,
    /// What tells whether there is a match, and where it begins.
    plain: Option<Library>,
    /// What divides a match, unless `plain` does so.
    part: Option<Part>,
    /// Whether there are back references in it.
    refers: bool,
}

/// A pattern in the syntax of the library `regex`, if that tells whether there is a match.
///
/// # Errors
/// For what is no regular expression.
pub(crate) fn plain_source(pattern: &str, alike: bool) -> crate::error::Result<Option<String>> {
    let options = Options::of(if alike { "i" } else { "" })?;
    let (root, ..) = parse::parse(pattern, options)?;
    let source = plain::source(&root).map(|source| source.whole);
    Ok(source.filter(|source| Regex::new(source).is_ok()))
}

impl Expression {
    fn new(root: &Node, groups: usize, options: Options) -> crate::error::Result<Expression> {
        // Its own limit may refuse it.
        let plain = plain::source(root).and_then(Library::new);
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

    /// The expression of `pattern`, and whether PostgreSQL's options ask for all matches.
    ///
    /// # Errors
    /// For an option that there is not, and for what is no regular expression.
    fn compiled(pattern: &str, options: &str) -> crate::error::Result<(Expression, bool)> {
        let options = Options::of(options)?;
        let (root, groups, options) = parse::parse(pattern, options)?;
        Ok((Expression::new(&root, groups, options)?, options.all))
    }

    fn is_match(&self, text: &str) -> crate::error::Result<bool> {
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
            Some(plain) => match plain.span(text, at) {
                Some((start, _)) => start,
                None => return Ok(None),
            },
            None => at,
        };
        divided::search(part, text, at, (self.groups, self.alike))
    }

    /// Whether there is a match that begins at the byte `at` or behind it. The first of them is left in `room`, with its groups if
    /// they are `wanted`.
    fn find(
        &self,
        text: &str,
        at: usize,
        wanted: bool,
        room: &mut Room,
    ) -> crate::error::Result<bool> {
        let (Some(plain), None) = (&self.plain, &self.part) else {
            let places = self.divided(text, at)?;
            let found = places.is_some();
            room.places = places.unwrap_or_default();
            return Ok(found);
        };
        if wanted && self.groups > 0 {
            return Ok(plain.groups(text, at, room));
        }
        let span = plain.span(text, at);
        room.places.clear();
        room.places.extend(span.map(Some));
        Ok(span.is_some())
    }
}

/// Where the search for the next match begins: behind a match, and behind a character more if that has none.
fn behind(text: &str, start: usize, end: usize) -> Option<usize> {
    if start < end {
        return Some(end);
    }
    let next = text[end..].chars().next()?;
    Some(end + next.len_utf8())
}

#[cfg(test)]
mod tests;
