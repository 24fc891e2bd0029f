//! What a path is made of.

/// A path, and whether it is `strict`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    pub strict: bool,
    pub chain: Chain,
}

/// A value, and the steps from it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chain {
    pub base: Base,
    pub steps: Vec<Step>,
}

/// What a chain begins with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Base {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    Null,
    Boolean(bool),
    /// A number as it is written.
    Number(String),
    Text(String),
    /// `$name`
    Variable(String),
    /// `+` or `-`, and what stands behind.
    Signed(char, Box<Chain>),
    Binary(char, Box<Chain>, Box<Chain>),
    Predicate(Box<Predicate>),
}

/// A step from a value to others.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// `.key`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyItem,
    /// `[1, 2 to 3]`
    Items(Vec<(Chain, Option<Chain>)>),
    /// `.**{1 to 2}`; none stands for `last`.
    Any(Option<u32>, Option<u32>),
    /// `.name()`
    Method(Method),
    /// `? (...)`
    Filter(Predicate),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Abs,
    Ceiling,
    Double,
    Floor,
    KeyValue,
    Size,
    Type,
}

pub(super) const METHODS: [(&str, Method); 7] = [
    ("abs", Method::Abs),
    ("ceiling", Method::Ceiling),
    ("double", Method::Double),
    ("floor", Method::Floor),
    ("keyvalue", Method::KeyValue),
    ("size", Method::Size),
    ("type", Method::Type),
];

impl Method {
    pub(super) fn name(self) -> &'static str {
        let found = METHODS.iter().find(|(_, own)| *own == self);
        found.map_or("", |(name, _)| *name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What is true, false or unknown.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Predicate {
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Not(Box<Predicate>),
    IsUnknown(Box<Predicate>),
    Compare(Comparison, Chain, Chain),
    StartsWith(Chain, Chain),
    /// A value, a pattern, and flags.
    Like(Chain, String, String),
    Exists(Chain),
}
