//! PostgreSQL's regular expressions as a tree, of which can be told how an engine that backtracks would answer.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// Most levels of parentheses.
const MAX_DEPTH: usize = 50;
/// The greatest number of repetitions that may be written.
const MAX_COUNT: u32 = 255;

/// How many characters something takes, at least and at most; none is any number.
pub(super) type Width = (u32, Option<u32>);

/// A place in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Edge {
    Start,
    End,
    WordStart,
    WordEnd,
    /// Either of the two.
    Word,
    /// Neither.
    NoWord,
}

/// Part of a regular expression.
#[derive(Debug)]
pub(super) enum Node {
    /// A character.
    Letter(char),
    /// One of some characters, in the syntax of the library `regex`.
    Class(String),
    /// A place in the text.
    Place(Edge),
    /// Any character.
    Any,
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
    Back { group: usize, width: Width },
    /// A part with a quantifier.
    Repeat {
        inner: Box<Node>,
        least: u32,
        most: Option<u32>,
        greedy: bool,
    },
}

impl Node {
    /// How many characters it takes.
    pub(super) fn width(&self) -> Width {
        match self {
            Node::Letter(_) | Node::Class(_) | Node::Any => (1, Some(1)),
            Node::Place(_) | Node::Look { .. } => (0, Some(0)),
            Node::Back { width, .. } => *width,
            Node::Group(inner, _) => inner.width(),
            Node::Sequence(items) => items.iter().fold((0, Some(0)), |(least, most), item| {
                let own = item.width();
                let most = most
                    .zip(own.1)
                    .map(|(most, own): (u32, u32)| most.saturating_add(own));
                (own.0.saturating_add(least), most)
            }),
            Node::Either(all) => {
                let widths = || all.iter().map(Node::width);
                let most = widths().map(|own| own.1).collect::<Option<Vec<u32>>>();
                (
                    widths().map(|own| own.0).min().unwrap_or(0),
                    most.and_then(|all| all.into_iter().max()),
                )
            }
            Node::Repeat {
                inner, least, most, ..
            } => {
                let own = inner.width();
                let upper = match (own.1, most) {
                    (Some(0), _) => Some(0),
                    (Some(width), Some(most)) => Some(width.saturating_mul(*most)),
                    _ => None,
                };
                (own.0.saturating_mul(*least), upper)
            }
        }
    }

    /// How many characters it takes, if it is always so many.
    pub(super) fn fixed(&self) -> Option<u32> {
        let (least, most) = self.width();
        most.filter(|most| *most == least)
    }

    /// The parts that it consists of.
    pub(super) fn parts(&self) -> &[Node] {
        match self {
            Node::Letter(_) | Node::Class(_) | Node::Any | Node::Place(_) | Node::Back { .. } => {
                &[]
            }
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

/// The tree of a pattern.
///
/// # Errors
/// For what is no regular expression of PostgreSQL, with its words, and for what is refused here.
pub(super) fn parse(pattern: &str) -> Result<Node> {
    let options = pattern.starts_with("(?")
        && !["(?:", "(?=", "(?!", "(?<"]
            .iter()
            .any(|own| pattern.starts_with(own));
    if options || pattern.starts_with("***") {
        return Err(Error::unsupported(
            "options within a regular expression are not supported beside look-around, back references and \\m, \\M, \\y, \\Y and \\Z: give them as an argument of a function",
        ));
    }
    let mut parser = Parser {
        rest: pattern,
        groups: 0,
        closed: HashMap::new(),
        looks: false,
        depth: 0,
    };
    let root = parser.alternatives()?;
    if parser.rest.is_empty() {
        Ok(root)
    } else {
        Err(invalid("parentheses () not balanced"))
    }
}

fn invalid(reason: &str) -> Error {
    Error::coded("2201B", format!("invalid regular expression: {reason}"))
}

struct Parser<'a> {
    rest: &'a str,
    groups: usize,
    /// The groups that are complete, and how many characters they take.
    closed: HashMap<usize, Width>,
    /// Whether it reads a condition on what is around.
    looks: bool,
    depth: usize,
}

impl Parser<'_> {
    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let next = letters.next();
        self.rest = letters.as_str();
        next
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
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let atom = self.atom()?;
            items.push(self.quantified(atom)?);
        }
        Ok(Node::Sequence(items))
    }

    fn quantified(&mut self, atom: Node) -> Result<Node> {
        let Some((least, most)) = self.bounds()? else {
            return Ok(atom);
        };
        if matches!(atom, Node::Place(_) | Node::Look { .. }) {
            return Err(invalid("quantifier operand invalid"));
        }
        let greedy = !self.eat("?");
        if self.bounds()?.is_some() {
            return Err(invalid("quantifier operand invalid"));
        }
        Ok(Node::Repeat {
            inner: Box::new(atom),
            least,
            most,
            greedy,
        })
    }

    /// Whether a brace begins bounds: others are characters.
    fn is_brace(&self) -> bool {
        let inside = self.rest.strip_prefix('{');
        inside.is_some_and(|inside| inside.starts_with(|c: char| c.is_ascii_digit()))
    }

    fn bounds(&mut self) -> Result<Option<Width>> {
        for (mark, bounds) in [("*", (0, None)), ("+", (1, None)), ("?", (0, Some(1)))] {
            if self.eat(mark) {
                return Ok(Some(bounds));
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
        let (least, most) = match inside.split_once(',') {
            None => (number(inside)?, Some(number(inside)?)),
            Some((least, "")) => (number(least)?, None),
            Some((least, most)) => (number(least)?, Some(number(most)?)),
        };
        if most.is_some_and(|most| most < least) {
            return Err(invalid("invalid repetition count(s)"));
        }
        Ok(Some((least, most)))
    }

    fn atom(&mut self) -> Result<Node> {
        if self.is_brace() {
            return Err(invalid("quantifier operand invalid"));
        }
        for (mark, place) in [
            ("[[:<:]]", Edge::WordStart),
            ("[[:>:]]", Edge::WordEnd),
            ("^", Edge::Start),
            ("$", Edge::End),
        ] {
            if self.eat(mark) {
                return Ok(Node::Place(place));
            }
        }
        if self.rest.starts_with('(') {
            return self.group();
        }
        if self.eat("[") {
            return self.class();
        }
        match self.next() {
            Some('\\') => self.escape(),
            Some('.') => Ok(Node::Any),
            Some('*' | '+' | '?') | None => Err(invalid("quantifier operand invalid")),
            Some(letter) => Ok(Node::Letter(letter)),
        }
    }

    fn group(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "a regular expression with more than {MAX_DEPTH} levels of parentheses beside look-around or back references is not supported"
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
            return Err(invalid("invalid embedded option"));
        }
        // What is found in a condition is not kept.
        if self.looks {
            return Ok(Node::Group(Box::new(self.closed()?), None));
        }
        self.groups += 1;
        let number = self.groups;
        let inner = self.closed()?;
        self.closed.insert(number, inner.width());
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

    fn escape(&mut self) -> Result<Node> {
        let Some(letter) = self.next() else {
            return Err(invalid("invalid escape \\ sequence"));
        };
        let class = |text: &str| Ok(Node::Class(text.to_string()));
        match letter {
            'd' => class("[0-9]"),
            'D' => class("[^0-9]"),
            'w' => class(r"\w"),
            'W' => class(r"\W"),
            's' => class(r"\s"),
            'S' => class(r"\S"),
            'A' => Ok(Node::Place(Edge::Start)),
            'Z' => Ok(Node::Place(Edge::End)),
            'm' => Ok(Node::Place(Edge::WordStart)),
            'M' => Ok(Node::Place(Edge::WordEnd)),
            'y' => Ok(Node::Place(Edge::Word)),
            'Y' => Ok(Node::Place(Edge::NoWord)),
            '1'..='9' => self.back(letter as usize - '0' as usize),
            letter => written(letter).map(Node::Letter),
        }
    }

    fn back(&self, group: usize) -> Result<Node> {
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Error::unsupported(
                "back references of two digits are not supported in a regular expression",
            ));
        }
        match self.closed.get(&group) {
            Some(width) if !self.looks => Ok(Node::Back {
                group,
                width: *width,
            }),
            _ => Err(invalid("invalid backreference number")),
        }
    }

    /// The rest of `[abc]`.
    fn class(&mut self) -> Result<Node> {
        let mut text = String::from("[");
        if self.eat("^") {
            text.push('^');
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            if self.eat("[:") {
                text.push_str(self.named()?);
                continue;
            }
            let from = match self.letter(&mut text)? {
                Some(letter) => letter,
                None => continue,
            };
            let to = if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.eat("-");
                self.letter(&mut String::new())?
                    .filter(|to| *to >= from)
                    .ok_or_else(|| invalid("invalid character range"))?
            } else {
                from
            };
            text.push_str(&escaped(from));
            if to != from {
                text.push('-');
                text.push_str(&escaped(to));
            }
        }
        self.eat("]");
        text.push(']');
        Ok(Node::Class(text))
    }

    /// The next character within brackets; none for a class, which is appended to `text`.
    fn letter(&mut self, text: &mut String) -> Result<Option<char>> {
        if ["[=", "[.", "[:"]
            .iter()
            .any(|mark| self.rest.starts_with(mark))
        {
            return Err(Error::unsupported(
                "[. .], [= =] and a range to a class are not supported beside look-around or back references",
            ));
        }
        match self.next() {
            None => Err(invalid("brackets [] not balanced")),
            Some('\\') => {
                let Some(letter) = self.next() else {
                    return Err(invalid("brackets [] not balanced"));
                };
                match letter {
                    'd' => text.push_str("0-9"),
                    'w' => text.push_str(r"\w"),
                    's' => text.push_str(r"\s"),
                    letter => return written(letter).map(Some),
                }
                Ok(None)
            }
            letter => Ok(letter),
        }
    }

    /// The rest of `[:alpha:]`.
    fn named(&mut self) -> Result<&'static str> {
        let Some((name, rest)) = self.rest.split_once(":]") else {
            return Err(invalid("brackets [] not balanced"));
        };
        self.rest = rest;
        Ok(match name {
            "alpha" => r"\p{L}",
            "alnum" => r"\p{L}\p{Nd}",
            "lower" => r"\p{Ll}",
            "upper" => r"\p{Lu}",
            "word" => r"\w",
            "space" => r"\s",
            "blank" => r"\x{20}\x{9}",
            "digit" => "0-9",
            "xdigit" => "0-9a-fA-F",
            "punct" => "[:punct:]",
            "ascii" | "cntrl" | "graph" | "print" => {
                return Err(Error::unsupported(format!(
                    "[:{name}:] is not supported beside look-around or back references"
                )));
            }
            _ => return Err(invalid("invalid character class")),
        })
    }
}

/// The character that a letter behind a backslash is.
fn written(letter: char) -> Result<char> {
    Ok(match letter {
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'a' => '\u{7}',
        'e' => '\u{1b}',
        'b' => {
            return Err(Error::unsupported(
                "\\b is a backspace in PostgreSQL's regular expressions: write \\y for the edge of a word",
            ));
        }
        c if c.is_alphanumeric() => {
            return Err(Error::unsupported(format!(
                "\\{c} is not supported in a regular expression beside look-around or back references"
            )));
        }
        c => c,
    })
}

/// A character of a class in the syntax of the library, whatever it means there.
fn escaped(letter: char) -> String {
    if letter.is_ascii_alphanumeric() {
        letter.to_string()
    } else {
        format!("\\x{{{:x}}}", letter as u32)
    }
}
