//! A regular expression that is ready to search: by the library, by our own automata, or by both.

use messages::Result;

use crate::regular::divided::{self, Places};
use crate::regular::library::{Library, Room};
use crate::regular::options::Options;
use crate::regular::parse::{self, Node};
use crate::regular::plain;
use crate::regular::structure::{self, Part};

/// A regular expression.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) groups: usize,
    /// Whether letters are alike in both cases.
    alike: bool,
    /// What tells whether there is a match, and where it begins.
    pub(super) plain: Option<Library>,
    /// What divides a match, unless `plain` does so.
    pub(super) part: Option<Part>,
    /// Whether there are back references in it.
    refers: bool,
}

impl Expression {
    pub(super) fn new(root: &Node, groups: usize, options: Options) -> Result<Expression> {
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
    pub(super) fn compiled(pattern: &str, options: &str) -> Result<(Expression, bool)> {
        let options = Options::of(options)?;
        let (root, groups, options) = parse::parse(pattern, options)?;
        Ok((Expression::new(&root, groups, options)?, options.all))
    }

    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        match (&self.plain, &self.part) {
            (Some(plain), _) => Ok(plain.is_match(text)),
            (None, Some(part)) if !self.refers => divided::exists(part, text),
            _ => Ok(self.divided(text, 0)?.is_some()),
        }
    }

    pub(super) fn divided(&self, text: &str, at: usize) -> Result<Option<Places>> {
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
    pub(super) fn find(
        &self,
        text: &str,
        at: usize,
        wanted: bool,
        room: &mut Room,
    ) -> Result<bool> {
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
pub(super) fn behind(text: &str, start: usize, end: usize) -> Option<usize> {
    if start < end {
        return Some(end);
    }
    let next = text[end..].chars().next()?;
    Some(end + next.len_utf8())
}
