//! Expressions that are compiled once, and the matches that they find.

use std::cell::RefCell;
use std::collections::HashMap;

use messages::Result;

use crate::regular::expression::{Expression, behind};
use crate::regular::library::Room;

/// How many expressions a thread keeps for its next batch.
const KEPT: usize = 4;

thread_local! {
    /// The expressions that this thread searched with last: to compile one takes as long as to search hundreds of texts, and the
    /// library builds its automata while it searches.
    static LAST: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// An expression, and what its last search has found.
#[derive(Debug)]
pub(crate) struct Known {
    pattern: String,
    options: String,
    pub(super) expression: Expression,
    all: bool,
    room: Room,
}

/// What a group has found, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupMatch<'t> {
    pub(crate) text: &'t str,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Known {
    /// The expression of `pattern` with PostgreSQL's options.
    ///
    /// # Errors
    /// For an option that there is not, and for what is no regular expression.
    pub(super) fn new(pattern: &str, options: &str) -> Result<Known> {
        let (expression, all) = Expression::compiled(pattern, options)?;
        Ok(Known {
            pattern: pattern.to_string(),
            options: options.to_string(),
            expression,
            all,
            room: Room::default(),
        })
    }

    fn is(&self, pattern: &str, options: &str) -> bool {
        self.pattern == pattern && self.options == options
    }

    /// Whether the options ask for all matches.
    pub(crate) fn all(&self) -> bool {
        self.all
    }

    /// How many groups it has.
    pub(crate) fn groups(&self) -> usize {
        self.expression.groups
    }

    /// Whether there is a match.
    ///
    /// # Errors
    /// If the expression is too complex, or the statement was cancelled.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool> {
        self.expression.is_match(text)
    }

    /// The matches from the byte `at` on, if there is such a place, with what their groups have found.
    pub(crate) fn matches<'k, 't>(
        &'k mut self,
        text: &'t str,
        at: Option<usize>,
    ) -> Matches<'k, 't> {
        Matches {
            known: self,
            text,
            at,
            grouped: true,
        }
    }

    /// The same without groups, which are found in less time.
    pub(crate) fn spans<'k, 't>(&'k mut self, text: &'t str, at: Option<usize>) -> Matches<'k, 't> {
        Matches {
            grouped: false,
            ..self.matches(text, at)
        }
    }
}

/// The matches in a text, one after the other, which do not overlap. A match of no letters counts right behind another.
#[derive(Debug)]
pub(crate) struct Matches<'k, 't> {
    known: &'k mut Known,
    text: &'t str,
    /// Where the search for the next one begins.
    at: Option<usize>,
    grouped: bool,
}

impl<'t> Matches<'_, 't> {
    /// Goes to the next match, or to the first; whether there is one.
    ///
    /// # Errors
    /// If the expression is too complex, or the statement was cancelled.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let Some(at) = self.at.take() else {
            return Ok(false);
        };
        let Known {
            expression, room, ..
        } = &mut *self.known;
        let found = expression.find(self.text, at, self.grouped, room)?;
        if found {
            let (start, end) = self.whole();
            self.at = behind(self.text, start, end);
        }
        Ok(found)
    }

    /// Goes on by so many matches; whether there are as many.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub(crate) fn advance_by(&mut self, count: usize) -> Result<bool> {
        for _ in 0..count {
            if !self.advance()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where the match begins and ends that was gone to.
    pub(crate) fn whole(&self) -> (usize, usize) {
        let first = self.known.room.places.first();
        first.copied().flatten().unwrap_or_default()
    }

    /// What the group of this number has found in it; that of number 0 is the match.
    pub(crate) fn group(&self, group: usize) -> Option<GroupMatch<'t>> {
        let (start, end) = self.known.room.places.get(group).copied().flatten()?;
        Some(GroupMatch {
            text: &self.text[start..end],
            start,
            end,
        })
    }

    /// What the groups have found, or the match where there are none.
    pub(crate) fn texts(&self) -> impl Iterator<Item = Option<&'t str>> {
        let count = self.known.groups();
        (count.min(1)..=count).map(move |group| self.group(group).map(|own| own.text))
    }
}

/// Regular expressions, each compiled once.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    all: Vec<Known>,
    /// Which of them has a pattern and options.
    places: HashMap<String, HashMap<String, usize>>,
    /// The one that was asked for last.
    last: usize,
}

impl Compiled {
    /// The expression that was asked for last.
    pub(crate) fn last(&mut self) -> Option<&mut Known> {
        self.all.get_mut(self.last)
    }

    /// The expression of `pattern` with PostgreSQL's options.
    ///
    /// # Errors
    /// For an option that there is not, and for what is no regular expression.
    pub(crate) fn of(&mut self, pattern: &str, options: &str) -> Result<&mut Known> {
        let last = self.all.get(self.last);
        if !last.is_some_and(|last| last.is(pattern, options)) {
            self.last = self.place(pattern, options)?;
        }
        Ok(&mut self.all[self.last])
    }

    fn place(&mut self, pattern: &str, options: &str) -> Result<usize> {
        let known = self.places.get(pattern);
        if let Some(place) = known.and_then(|known| known.get(options)) {
            return Ok(*place);
        }
        let known = match kept(pattern, options) {
            Some(known) => known,
            None => Known::new(pattern, options)?,
        };
        let place = self.all.len();
        self.all.push(known);
        let known = self.places.entry(pattern.to_string()).or_default();
        known.insert(options.to_string(), place);
        Ok(place)
    }
}

/// An expression that the thread has kept, and no longer keeps.
fn kept(pattern: &str, options: &str) -> Option<Known> {
    let found = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        let at = last.iter().position(|known| known.is(pattern, options))?;
        Some(last.remove(at))
    });
    // A thread that ends has none.
    found.ok().flatten()
}

impl Drop for Compiled {
    /// Keeps the expressions for the next batch of the thread: but for those with automata of our own, which may be large, and
    /// where each row has another.
    fn drop(&mut self) {
        if self.all.len() > KEPT {
            return;
        }
        let own = std::mem::take(&mut self.all).into_iter();
        let own = own.filter(|known| known.expression.part.is_none());
        // A thread that ends keeps nothing.
        let _ = LAST.try_with(|last| {
            let mut last = last.borrow_mut();
            let mut all: Vec<Known> = own.collect();
            all.append(&mut last);
            all.truncate(KEPT);
            *last = all;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_what_it_searched_with_last() {
        let search = |patterns: &[&str]| {
            let mut compiled = Compiled::default();
            for pattern in patterns {
                assert!(!compiled.of(pattern, "g").unwrap().is_match("z").unwrap());
            }
        };
        search(&["a(b)", "c", "a(b)"]);
        assert!(kept("a(b)", "").is_none());
        assert!(kept("a(b)", "g").is_some());
        assert!(kept("a(b)", "g").is_none());
        // Automata of our own may be large.
        search(&[r"(a)\1"]);
        assert!(kept(r"(a)\1", "g").is_none());
        search(&["a", "b", "d", "e"]);
        assert!(kept("c", "g").is_none());
        assert!(kept("e", "g").is_some());
        search(&["1", "2", "3", "4", "5"]);
        assert!(kept("5", "g").is_none());
    }

    #[test]
    fn expressions_are_told_apart_by_pattern_and_options() {
        let mut compiled = Compiled::default();
        for (pattern, options, wanted) in [
            ("a", "", false),
            ("a", "i", true),
            ("a", "", false),
            ("A", "", true),
            ("a", "i", true),
        ] {
            let regex = compiled.of(pattern, options).unwrap();
            assert_eq!(regex.is_match("A").unwrap(), wanted, "{pattern} {options}");
        }
        assert_eq!(compiled.all.len(), 3);
        assert!(compiled.of("(", "").is_err());
        assert!(compiled.of("a", "i").unwrap().is_match("A").unwrap());
    }
}
