//! PostgreSQL's regular expressions with its options, each compiled once (`known`) for the rows of a batch.
//!
//! A pattern is parsed (`parse`). What the library `regex` finds as PostgreSQL does is left to it (`plain`), which
//! searches for it (`library`). The rest is divided into parts (`structure`), whose matches automata tell (`automaton`), and
//! searched for (`divided`).

mod automaton;
mod brackets;
mod collating;
mod divided;
mod expression;
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

pub(crate) use known::{Compiled, Known, Matches};
use options::Options;
pub(crate) use similar::between;
pub(crate) use template::Template;

/// A pattern in the syntax of the library `regex`, if that tells whether there is a match.
///
/// # Errors
/// For what is no regular expression.
pub fn plain_source(pattern: &str, alike: bool) -> messages::Result<Option<String>> {
    let options = Options::of(if alike { "i" } else { "" })?;
    let (root, ..) = parse::parse(pattern, options)?;
    let source = plain::source(&root).map(|source| source.whole);
    Ok(source.filter(|source| Regex::new(source).is_ok()))
}

#[cfg(test)]
mod tests;
