//! PostgreSQL's regular expressions as a tree.

use std::collections::HashSet;
use std::sync::Arc;

use messages::{Error, Result};

use crate::regular::brackets;
use crate::regular::letters::{Class, Test};
use crate::regular::options::{Options, invalid};
use crate::regular::reader::Parser;

/// Most levels of parentheses.
const MAX_DEPTH: usize = 100;
/// The greatest number of repetitions that may be written.
const MAX_COUNT: u32 = 255;

/// A place in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Edge {
    Start,
    End,
    /// The beginning of the text or of a line.
    LineStart,
    /// The end of the text or of a line.
    LineEnd,
    WordStart,
    WordEnd,
    /// Either of the two.
    Word,
    /// Neither.
    NoWord,
}

/// Which of several matches a part prefers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Prefers {
    Longer,
    Shorter,
    /// What the part that is repeated prefers.
    Same,
}

/// Part of a regular expression.
#[derive(Debug)]
pub(super) enum Node {
    /// A character that passes.
    Take(Arc<Test>),
    /// A place in the text.
    Place(Edge),
    /// Parts that follow one another.
    Sequence(Vec<Node>),
    /// Alternatives.
    Either(Vec<Node>),
    /// Parentheses; those whose text is kept have a number.
    Group(Box<Node>, Option<usize>),
    /// A condition on what comes, or on what was before.
    Look {
        behind: bool,
        negated: bool,
        inner: Box<Node>,
    },
    /// The text that a group has found.
    Back(usize),
    /// A part with a quantifier.
    Repeat {
        inner: Box<Node>,
        least: u32,
        most: Option<u32>,
        prefers: Prefers,
    },
}

impl Node {
    /// The parts that it consists of.
    pub(super) fn parts(&self) -> &[Node] {
        match self {
            Node::Take(_) | Node::Place(_) | Node::Back(_) => &[],
            Node::Sequence(all) | Node::Either(all) => all,
            Node::Group(inner, _) | Node::Look { inner, .. } | Node::Repeat { inner, .. } => {
                std::slice::from_ref(inner.as_ref())
            }
        }
    }

    /// Whether `is` holds for it or for a part of it.
    pub(super) fn has(&self, is: fn(&Node) -> bool) -> bool {
        is(self) || self.parts().iter().any(|part| part.has(is))
    }
}

/// The tree of a pattern, how many groups it has, and its options.
///
/// # Errors
/// For what is no regular expression of PostgreSQL, with its words.
pub(super) fn parse(pattern: &str, options: Options) -> Result<(Node, usize, Options)> {
    let (options, rest) = options.within(pattern)?;
    if options.literal {
        let letters = rest.chars().map(|c| Test::letter(c, options.alike));
        let letters = letters.map(Node::Take).collect();
        return Ok((Node::Sequence(letters), 0, options));
    }
    let mut parser = Parser {
        rest,
        options,
        groups: 0,
        closed: HashSet::new(),
        looks: false,
        depth: 0,
    };
    let root = parser.alternatives()?;
    if !parser.rest.is_empty() {
        return Err(invalid("parentheses () not balanced"));
    }
    Ok((root, parser.groups, options))
}

impl Parser<'_> {
    /// Passes comments, and white space where that means nothing.
    fn skip(&mut self) {
        loop {
            if let Some(comment) = self.rest.strip_prefix("(?#") {
                self.rest = comment.split_once(')').map_or("", |(_, rest)| rest);
                continue;
            }
            if !self.options.expanded {
                return;
            }
            let rest = self.rest.trim_start();
            if let Some(comment) = rest.strip_prefix('#') {
                self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            } else if rest.len() < self.rest.len() {
                self.rest = rest;
            } else {
                return;
            }
        }
    }

    fn alternatives(&mut self) -> Result<Node> {
        let first = self.branch()?;
        if !self.rest.starts_with('|') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.eat("|") {
            all.push(self.branch()?);
        }
        Ok(Node::Either(all))
    }

    fn branch(&mut self) -> Result<Node> {
        let mut items = Vec::new();
        loop {
            self.skip();
            if self.rest.is_empty() || self.rest.starts_with(['|', ')']) {
                return Ok(Node::Sequence(items));
            }
            let atom = self.atom()?;
            self.skip();
            items.push(self.quantified(atom)?);
        }
    }

    fn quantified(&mut self, atom: Node) -> Result<Node> {
        let is_condition = matches!(atom, Node::Place(_) | Node::Look { .. });
        let Some((least, most, prefers)) = self.bounds()? else {
            return Ok(atom);
        };
        if is_condition {
            return Err(invalid("quantifier operand invalid"));
        }
        Ok(Node::Repeat {
            inner: Box::new(atom),
            least,
            most,
            prefers,
        })
    }

    /// Whether a brace begins bounds: others are characters.
    fn is_brace(&self) -> bool {
        let inside = self.rest.strip_prefix('{');
        inside.is_some_and(|inside| inside.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// How often what stands before is repeated.
    fn bounds(&mut self) -> Result<Option<(u32, Option<u32>, Prefers)>> {
        for (mark, least, most) in [("*", 0, None), ("+", 1, None), ("?", 0, Some(1))] {
            if self.eat(mark) {
                return Ok(Some((least, most, self.preference())));
            }
        }
        if !self.is_brace() {
            return Ok(None);
        }
        let Some((inside, rest)) = self.rest[1..].split_once('}') else {
            return Err(invalid("braces {} not balanced"));
        };
        self.rest = rest;
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u32>().ok().filter(|_| digits);
            number
                .filter(|number| *number <= MAX_COUNT)
                .ok_or_else(|| invalid("invalid repetition count(s)"))
        };
        let prefers = self.preference();
        let (least, most, prefers) = match inside.split_once(',') {
            None => (number(inside)?, Some(number(inside)?), Prefers::Same),
            Some((least, "")) => (number(least)?, None, prefers),
            Some((least, most)) => (number(least)?, Some(number(most)?), prefers),
        };
        if most.is_some_and(|most| most < least) {
            return Err(invalid("invalid repetition count(s)"));
        }
        Ok(Some((least, most, prefers)))
    }

    fn preference(&mut self) -> Prefers {
        if self.eat("?") {
            Prefers::Shorter
        } else {
            Prefers::Longer
        }
    }

    fn atom(&mut self) -> Result<Node> {
        if self.is_brace() {
            return Err(invalid("quantifier operand invalid"));
        }
        let (start, end) = if self.options.lines {
            (Edge::LineStart, Edge::LineEnd)
        } else {
            (Edge::Start, Edge::End)
        };
        for (mark, place) in [
            ("[[:<:]]", Edge::WordStart),
            ("[[:>:]]", Edge::WordEnd),
            ("^", start),
            ("$", end),
        ] {
            if self.eat(mark) {
                return Ok(Node::Place(place));
            }
        }
        if self.rest.starts_with('(') {
            return self.group();
        }
        if self.eat("[") {
            return Ok(Node::Take(Arc::new(Test::Class(brackets::class(self)?))));
        }
        match self.next() {
            Some('\\') => self.escape(),
            Some('.') if self.options.stops => Ok(Node::Take(Arc::new(Test::InLine))),
            Some('.') => Ok(Node::Take(Arc::new(Test::Any))),
            Some('*' | '+' | '?') | None => Err(invalid("quantifier operand invalid")),
            Some(letter) => Ok(self.letter(letter)),
        }
    }

    fn letter(&self, letter: char) -> Node {
        Node::Take(Test::letter(letter, self.options.alike))
    }

    fn group(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "a regular expression with more than {MAX_DEPTH} levels of parentheses is not supported"
            )));
        }
        let node = self.parentheses()?;
        self.depth -= 1;
        Ok(node)
    }

    fn parentheses(&mut self) -> Result<Node> {
        for (mark, behind, negated) in [
            ("(?=", false, false),
            ("(?!", false, true),
            ("(?<=", true, false),
            ("(?<!", true, true),
        ] {
            if self.eat(mark) {
                let before = std::mem::replace(&mut self.looks, true);
                let inner = Box::new(self.closed()?);
                self.looks = before;
                return Ok(Node::Look {
                    behind,
                    negated,
                    inner,
                });
            }
        }
        if self.eat("(?:") {
            return Ok(Node::Group(Box::new(self.closed()?), None));
        }
        self.eat("(");
        if self.rest.starts_with('?') {
            return Err(invalid("quantifier operand invalid"));
        }
        // What is found in a condition is not kept.
        if self.looks {
            return Ok(Node::Group(Box::new(self.closed()?), None));
        }
        self.groups += 1;
        let number = self.groups;
        let inner = self.closed()?;
        self.closed.insert(number);
        Ok(Node::Group(Box::new(inner), Some(number)))
    }

    /// What stands before the closing parenthesis.
    fn closed(&mut self) -> Result<Node> {
        let inner = self.alternatives()?;
        if self.eat(")") {
            Ok(inner)
        } else {
            Err(invalid("parentheses () not balanced"))
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Result<Node> {
        let place = |edge| Ok(Node::Place(edge));
        let behind = self.rest.chars().next();
        let edge = match behind {
            Some('A') => Some(Edge::Start),
            Some('Z') => Some(Edge::End),
            Some('m') => Some(Edge::WordStart),
            Some('M') => Some(Edge::WordEnd),
            Some('y') => Some(Edge::Word),
            Some('Y') => Some(Edge::NoWord),
            _ => None,
        };
        if let Some(edge) = edge {
            self.next();
            return place(edge);
        }
        if let Some(class) = behind.and_then(|letter| self.shorthand(letter)) {
            self.next();
            let class = Class::new(format!("[{class}]"))?;
            return Ok(Node::Take(Arc::new(Test::Class(class))));
        }
        if let Some(group) = self.back()? {
            return Ok(Node::Back(group));
        }
        let letter = self.written()?;
        Ok(self.letter(letter))
    }

    /// The group that a back reference names, if one comes next.
    fn back(&mut self) -> Result<Option<usize>> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let text = &self.rest[..digits];
        if digits == 0 || text.starts_with('0') {
            return Ok(None);
        }
        let number = text.parse::<usize>().unwrap_or(usize::MAX);
        // Others are characters by their numbers.
        if digits > 1 && number > self.groups {
            return Ok(None);
        }
        self.rest = &self.rest[digits..];
        if self.looks || !self.closed.contains(&number) {
            return Err(invalid("invalid backreference number"));
        }
        Ok(Some(number))
    }
}
