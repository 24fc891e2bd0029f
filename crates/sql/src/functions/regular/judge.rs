//! Whether an engine that tries one way after the other finds what PostgreSQL finds.
//!
//! PostgreSQL takes the longest match that begins first (the shortest, if its first quantifier is not greedy); the engine that
//! backtracks takes the first in the order of its attempts. *Whether* there is a match does not depend on this order, but
//! for back references: PostgreSQL looks at one way only to divide the text of a part among the parts of that part. So a group that
//! is referred to must stand by itself, and the whole must take a character, as PostgreSQL misses some that take none. *What* a match has found is the same where all quantifiers are of one
//! greediness and repeat single characters: to take one more character never leads to a shorter match then, since the way
//! that took it and the one that did not meet again.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::functions::regular::parse::Node;

/// What is asked of a match.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Asked {
    /// Whether there is one.
    Truth,
    /// Where it is, and what its groups have found.
    #[default]
    Parts,
}

/// # Errors
/// If the answer may be another than PostgreSQL's.
pub(super) fn judge(root: &Node, asked: Asked) -> Result<()> {
    loops(root)?;
    let mut wanted = HashSet::new();
    referred(root, &mut wanted);
    if !wanted.is_empty() && root.width().0 == 0 {
        return Err(refused("a back reference in what may match an empty text"));
    }
    for group in wanted {
        let Some((before, own)) = standing(root, group) else {
            return Err(refused(
                "a back reference to a group within alternatives, a repetition or another group",
            ));
        };
        let is_fixed = || {
            before
                .iter()
                .chain([own])
                .all(|item| item.fixed().is_some())
        };
        if asked == Asked::Parts && !is_fixed() {
            return Err(refused(
                "a back reference to a group whose place or length varies, but to ask whether there is a match,",
            ));
        }
    }
    match asked {
        Asked::Truth => Ok(()),
        Asked::Parts => order(root),
    }
}

fn refused(what: &str) -> Error {
    Error::unsupported(format!(
        "{what} is not supported in a regular expression beside look-around or back references"
    ))
}

/// The group among the items of a pattern, and the items before it.
fn standing(root: &Node, group: usize) -> Option<(&[Node], &Node)> {
    let Node::Sequence(items) = root else {
        return None;
    };
    let is_own = |item: &Node| matches!(item, Node::Group(_, Some(number)) if *number == group);
    let at = items.iter().position(is_own)?;
    Some((&items[..at], &items[at]))
}

/// The groups that are referred to.
fn referred(node: &Node, found: &mut HashSet<usize>) {
    if let Node::Back { group, .. } = node {
        found.insert(*group);
    }
    for part in node.parts() {
        referred(part, found);
    }
}

/// Refuses repetitions of what may be empty, for which engines have rules of their own.
fn loops(node: &Node) -> Result<()> {
    if let Node::Repeat { inner, most, .. } = node
        && *most != Some(1)
        && inner.width().0 == 0
        && inner.width().1 != Some(0)
    {
        return Err(refused("a repetition of what may be empty"));
    }
    node.parts().iter().try_for_each(loops)
}

/// The quantifiers of a pattern, by what is repeated.
#[derive(Default)]
struct Quantifiers {
    greedy: usize,
    lazy: usize,
    /// Those of more than one character.
    wide: usize,
    alternatives: bool,
}

/// Refuses what may find another match than the one that PostgreSQL finds.
fn order(root: &Node) -> Result<()> {
    let mut found = Quantifiers::default();
    count(root, false, &mut found)?;
    let all = found.greedy + found.lazy;
    if found.greedy > 0 && found.lazy > 0 {
        return Err(refused("to mix greedy and other quantifiers"));
    }
    if found.lazy > 0 && found.alternatives {
        return Err(refused(
            "a quantifier that is not greedy beside alternatives",
        ));
    }
    if found.wide > 0 && all > 1 {
        return Err(refused(
            "a repetition of more than one character beside another repetition",
        ));
    }
    Ok(())
}

fn count(node: &Node, repeated: bool, found: &mut Quantifiers) -> Result<()> {
    let keeps = |node: &Node| node.has(|part| matches!(part, Node::Group(_, Some(_))));
    match node {
        Node::Look { .. } => return Ok(()),
        Node::Either(all) => {
            let width = all[0].fixed();
            let differs = all.iter().any(|own| own.fixed() != width);
            if width.is_none() || differs || keeps(node) {
                return Err(refused(
                    "to find parts by alternatives of several lengths or with groups",
                ));
            }
            if node.has(|part| matches!(part, Node::Back { .. })) {
                return Err(refused("a back reference within alternatives"));
            }
            found.alternatives = true;
        }
        Node::Repeat {
            inner,
            least,
            most,
            greedy,
        } => {
            let is_fixed = Some(*least) == *most;
            // What takes no character says as others do whether the match is long or short.
            let is_plain = |width: u32| match width {
                0 => *least > 0 || !keeps(inner),
                _ => !repeated,
            };
            match inner.fixed() {
                _ if is_fixed => {}
                Some(width) if is_plain(width) => {
                    found.wide += usize::from(width > 1);
                    found.greedy += usize::from(*greedy);
                    found.lazy += usize::from(!*greedy);
                }
                _ => return Err(refused("a repetition of what is repeated or empty")),
            }
            let again = repeated || *most != Some(1);
            return count(inner, again, found);
        }
        _ => {}
    }
    node.parts()
        .iter()
        .try_for_each(|part| count(part, repeated, found))
}
