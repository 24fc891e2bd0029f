//! What of a regular expression can be left to the library `regex`, which is faster.
//!
//! *Whether* there is a match, and where the first begins, depends on no preference: the library tells it of every expression
//! without look-around, back references and edges of words. *What* a match has found is the same where [`agrees`] says so. The
//! library takes the first match in the order of its attempts, PostgreSQL divides the longest (see
//! [`structure`](super::structure)).

use crate::regular::letters::Test;
use crate::regular::parse::{Edge, Node, Prefers};

/// An expression in the syntax of the library.
#[derive(Debug)]
pub(super) struct Source {
    /// What tells whether there is a match, and where it begins; and where it ends, unless it goes [to the end](Self::to_end).
    pub(super) whole: String,
    /// Two expressions of which the first that matches finds what `whole` finds.
    pub(super) split: Option<[String; 2]>,
    /// Whether each match goes to the end of the text.
    pub(super) to_end: bool,
}

/// The expression in the syntax of the library; none if it has parts that the library has not.
pub(super) fn source(root: &Node) -> Option<Source> {
    let items = items(root);
    let kept = without_tail(items);
    Some(Source {
        whole: written(kept)?,
        split: split(kept),
        to_end: kept.len() < items.len(),
    })
}

/// The parts that follow one another.
fn items(root: &Node) -> &[Node] {
    match root {
        Node::Sequence(items) => items,
        other => std::slice::from_ref(other),
    }
}

/// Parts that follow one another in the syntax of the library; none if it has not all of them.
pub(super) fn written<'n>(items: impl IntoIterator<Item = &'n Node>) -> Option<String> {
    let mut out = String::new();
    for item in items {
        write(item, &mut out)?;
    }
    Some(out)
}

/// The parts without `.*`, or `.*$`, at their end, where a point takes any character.
///
/// Whatever the parts before have matched, the first attempt of the library at such a tail takes the rest of the text, and fails
/// nowhere: the match, and what its groups found, is that of the parts before, but that it ends with the text.
fn without_tail(items: &[Node]) -> &[Node] {
    let rest = match items {
        [rest @ .., Node::Place(Edge::End | Edge::LineEnd)] => rest,
        all => all,
    };
    match rest {
        [before @ .., tail] if takes_all(tail) => before,
        _ => items,
    }
}

/// Whether a part is `.*` of any characters.
fn takes_all(node: &Node) -> bool {
    match node {
        Node::Repeat {
            inner,
            least: 0,
            most: None,
            prefers: Prefers::Longer,
        } => matches!(&**inner, Node::Take(test) if matches!(**test, Test::Any)),
        _ => false,
    }
}

/// The expression with its first optional part, and the one without.
///
/// The library finds groups in one pass where the next character tells which way goes on. An optional part that may begin like what
/// is behind it is in the way of that, as in `^https?://(?:www\.)?([^/]+)/`, and each of the two is free of it. The first that
/// matches finds what the whole does if there is one way to match what stands before: all matches begin with the text (`^`), and the
/// library tries those with the part before those without it. There may be no groups in the part, as they would lack.
fn split(items: &[Node]) -> Option<[String; 2]> {
    let (Node::Place(Edge::Start), rest) = items.split_first()? else {
        return None;
    };
    let at = 1 + (0..rest.len()).find(|at| !has_one_way(&rest[*at], rest.get(at + 1)))?;
    let Node::Repeat {
        inner,
        least: 0,
        most: Some(1),
        prefers: Prefers::Longer,
    } = &items[at]
    else {
        return None;
    };
    if has_groups(inner) || !items.iter().any(has_groups) {
        return None;
    }
    let (before, behind) = (&items[..at], &items[at + 1..]);
    let with = before.iter().chain([&**inner]).chain(behind);
    Some([written(with)?, written(before.iter().chain(behind))?])
}

/// Whether there is at most one way to match a part from a place on if `next` follows.
fn has_one_way(node: &Node, next: Option<&Node>) -> bool {
    match node {
        Node::Take(_) | Node::Place(_) => true,
        Node::Repeat {
            inner, least, most, ..
        } => matches!(**inner, Node::Take(_)) && (Some(*least) == *most || is_forced(inner, next)),
        _ => false,
    }
}

fn write(node: &Node, out: &mut String) -> Option<()> {
    match node {
        Node::Take(test) => test.source(out),
        Node::Place(edge) => out.push_str(match edge {
            Edge::Start => "^",
            Edge::End => "$",
            Edge::LineStart => "(?m:^)",
            Edge::LineEnd => "(?m:$)",
            _ => return None,
        }),
        Node::Sequence(items) => items.iter().try_for_each(|item| write(item, out))?,
        Node::Either(all) => {
            for (at, branch) in all.iter().enumerate() {
                out.push_str(if at > 0 { "|" } else { "" });
                write(branch, out)?;
            }
        }
        Node::Group(inner, number) => {
            out.push_str(if number.is_some() { "(" } else { "(?:" });
            write(inner, out)?;
            out.push(')');
        }
        Node::Repeat {
            inner,
            least,
            most,
            prefers,
        } => {
            let is_repeated = matches!(**inner, Node::Repeat { .. });
            out.push_str(if is_repeated { "(?:" } else { "" });
            write(inner, out)?;
            out.push_str(if is_repeated { ")" } else { "" });
            match (least, most) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (least, None) => out.push_str(&format!("{{{least},}}")),
                (least, Some(most)) => out.push_str(&format!("{{{least},{most}}}")),
            }
            if *prefers == Prefers::Shorter {
                out.push('?');
            }
        }
        Node::Look { .. } | Node::Back(_) => return None,
    }
    Some(())
}

/// How many characters a part takes, at least and at most; none is any number.
fn width(node: &Node) -> (u32, Option<u32>) {
    match node {
        Node::Take(_) => (1, Some(1)),
        Node::Place(_) | Node::Look { .. } => (0, Some(0)),
        Node::Back(_) => (0, None),
        Node::Group(inner, _) => width(inner),
        Node::Sequence(items) => items.iter().fold((0, Some(0)), |(least, most), item| {
            let own = width(item);
            let most = most
                .zip(own.1)
                .map(|(most, own): (u32, u32)| most.saturating_add(own));
            (own.0.saturating_add(least), most)
        }),
        Node::Either(all) => {
            let widths = || all.iter().map(width);
            let most = widths().map(|own| own.1).collect::<Option<Vec<u32>>>();
            (
                widths().map(|own| own.0).min().unwrap_or(0),
                most.and_then(|all| all.into_iter().max()),
            )
        }
        Node::Repeat {
            inner, least, most, ..
        } => {
            let own = width(inner);
            let upper = match (own.1, most) {
                (Some(0), _) => Some(0),
                (Some(width), Some(most)) => Some(width.saturating_mul(*most)),
                _ => None,
            };
            (own.0.saturating_mul(*least), upper)
        }
    }
}

/// How many characters a part takes, if it is always so many.
fn fixed(node: &Node) -> Option<u32> {
    let (least, most) = width(node);
    most.filter(|most| *most == least)
}

fn has_groups(node: &Node) -> bool {
    node.has(|part| matches!(part, Node::Group(_, Some(_))))
}

/// Whether the library finds what PostgreSQL finds, groups and all.
///
/// That is so where all quantifiers prefer the same, and
/// * all of them repeat single characters: to take one more then never leads to a shorter match, since the way that took it
///   and the one that did not meet again; or
/// * of those whose repetitions vary there is one; or
/// * they prefer more, the expression ends with the text (`$`), so that the end of a match is known, and the runs between groups,
///   and the groups, are each of one of these kinds.
///
/// A quantifier of a character before another that it does not take, such as `[^/]*/`, has one way only, and does not count.
pub(super) fn agrees(root: &Node) -> bool {
    let items = items(root);
    let mut all = Quantifiers::default();
    if !all.run(items, false) || all.longer > 0 && all.shorter > 0 {
        return false;
    }
    if all.shorter > 0 && all.alternatives {
        return false;
    }
    if all.wide == 0 || all.open <= 1 {
        return true;
    }
    all.shorter == 0
        && matches!(items.last(), Some(Node::Place(Edge::End)))
        && runs_are_ordered(items)
}

/// Whether the runs between groups, and the groups, each repeat single characters, or vary in one place.
fn runs_are_ordered(items: &[Node]) -> bool {
    let ordered = |items: &[Node]| {
        let mut own = Quantifiers::default();
        own.run(items, false) && (own.wide == 0 || own.open <= 1)
    };
    let mut start = 0;
    for (at, item) in items.iter().enumerate() {
        let inner = match item {
            Node::Group(inner, Some(_)) => inner,
            item if has_groups(item) => return false,
            _ => continue,
        };
        let inner = std::slice::from_ref(&**inner);
        if !ordered(&items[start..at]) || !ordered(inner) || inner.iter().any(has_groups) {
            return false;
        }
        start = at + 1;
    }
    ordered(&items[start..])
}

/// The quantifiers of an expression, by what they prefer.
#[derive(Default)]
struct Quantifiers {
    longer: usize,
    shorter: usize,
    /// Those whose repetitions vary, and which have more than one way.
    open: usize,
    /// Those of them that repeat more than one character.
    wide: usize,
    alternatives: bool,
}

impl Quantifiers {
    /// Counts those of parts that follow one another; whether they are of kinds that are looked at.
    fn run(&mut self, items: &[Node], repeated: bool) -> bool {
        let mut parts = items.iter().peekable();
        while let Some(item) = parts.next() {
            if !self.item(item, parts.peek().copied(), repeated) {
                return false;
            }
        }
        true
    }

    fn item(&mut self, item: &Node, next: Option<&Node>, repeated: bool) -> bool {
        match item {
            Node::Take(_) | Node::Place(_) => true,
            Node::Sequence(items) => self.run(items, repeated),
            Node::Group(inner, _) => self.item(inner, None, repeated),
            Node::Either(all) => {
                let width = all.first().and_then(fixed);
                let same = all.iter().all(|branch| fixed(branch) == width);
                if width.is_none() || !same || has_groups(item) {
                    return false;
                }
                self.alternatives = true;
                all.iter().all(|branch| self.item(branch, None, repeated))
            }
            Node::Repeat {
                inner,
                least,
                most,
                prefers,
            } => {
                let varies = Some(*least) != *most;
                match prefers {
                    Prefers::Longer => self.longer += 1,
                    Prefers::Shorter => self.shorter += 1,
                    Prefers::Same => {}
                }
                if varies {
                    // What is repeated or empty has ways that are not told apart here.
                    let Some(width @ 1..) = fixed(inner) else {
                        return false;
                    };
                    if repeated {
                        return false;
                    }
                    if !is_forced(inner, next) {
                        self.open += 1;
                        self.wide += usize::from(width > 1);
                    }
                }
                let again = repeated || *most != Some(1);
                // Each repetition forgets what groups found in the one before, and the library does not.
                if again && !is_kept(inner) {
                    return false;
                }
                self.item(inner, None, again)
            }
            Node::Look { .. } | Node::Back(_) => false,
        }
    }
}

/// Whether all groups in a part take part in each of its matches.
fn is_kept(node: &Node) -> bool {
    match node {
        Node::Either(_) => !has_groups(node),
        Node::Repeat { least, .. } if *least == 0 => !has_groups(node),
        node => node.parts().iter().all(is_kept),
    }
}

/// Whether a character that is repeated stands before another that it does not take.
fn is_forced(inner: &Node, next: Option<&Node>) -> bool {
    match (inner, next) {
        (Node::Take(own), Some(Node::Take(next))) => match &**next {
            Test::Letters(all) => !all.iter().any(|letter| own.passes(*letter)),
            _ => false,
        },
        _ => false,
    }
}
