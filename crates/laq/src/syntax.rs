//! The syntax tree of a program, and writing it as text.

use std::fmt;

use crate::error::Span;

/// A program: single assignments, then what it returns.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) result: Return,
}

#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub name: Name,
    pub value: Operand,
}

#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

/// An expression whose value is a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub what: What,
    pub span: Span,
    /// Levels of operands and elements in it.
    pub depth: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An earlier one.
    Name(Name),
    /// A column of a table.
    Attribute(Name, Name),
    Call(Operator, Vec<Operand>),
    /// A `dot` with what stands where the first operand has nothing.
    Outer(Box<Operand>, Box<Operand>, Element),
    Each(Each, Element),
}

/// Operators on whole matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Dot,
    Krao,
    Hadamard,
    Tr,
    Relabel,
    Sum,
    Count,
    Distinct,
    Avg,
    Min,
    Max,
}

/// Operators on each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Each {
    Filter,
    Lift,
    Bitmap,
}

/// An expression over elements.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub what: Of,
    pub span: Span,
    pub depth: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Of {
    /// The elements of a matrix.
    Operand(Box<Operand>),
    Number(String),
    Text(String),
    Truth(bool),
    Apply(Function, Vec<Element>),
    Match(Box<Element>, String, Span),
    Not(Box<Element>),
    Negative(Box<Element>),
    Flip(Box<Element>),
    Binary(Sign, Box<Element>, Box<Element>),
    Case(Vec<(Element, Element)>, Option<Box<Element>>),
    /// The flag: not.
    In(Box<Element>, bool, Vec<Element>),
    Between(Box<Element>, bool, Box<Element>, Box<Element>),
    Null(Box<Element>, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    Power,
    Exp,
    Sqrt,
    Year,
    Substring,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sign {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitOr,
    BitXor,
    BitAnd,
    Left,
    Right,
    Add,
    Sub,
    Mul,
    Div,
}

#[derive(Clone, Debug)]
pub(crate) struct Return {
    pub items: Vec<Item>,
    pub order: Vec<OrderKey>,
    pub limit: Option<usize>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub value: Operand,
    pub alias: Option<Name>,
}

#[derive(Clone, Debug)]
pub(crate) struct OrderKey {
    pub by: Operand,
    pub descending: bool,
}

/// Names that must stand in backquotes to be names.
pub(crate) const KEYWORDS: [&str; 41] = [
    "and",
    "as",
    "asc",
    "avg",
    "between",
    "bitmap",
    "by",
    "case",
    "count",
    "desc",
    "distinct",
    "dot",
    "else",
    "end",
    "exp",
    "false",
    "filter",
    "hadamard",
    "in",
    "is",
    "krao",
    "lift",
    "limit",
    "map",
    "match",
    "max",
    "min",
    "not",
    "null",
    "or",
    "order",
    "power",
    "relabel",
    "return",
    "sqrt",
    "substring",
    "sum",
    "then",
    "tr",
    "true",
    "when",
];

impl Operator {
    pub const ALL: [Operator; 11] = [
        Operator::Dot,
        Operator::Krao,
        Operator::Hadamard,
        Operator::Tr,
        Operator::Relabel,
        Operator::Sum,
        Operator::Count,
        Operator::Distinct,
        Operator::Avg,
        Operator::Min,
        Operator::Max,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Operator::Dot => "dot",
            Operator::Krao => "krao",
            Operator::Hadamard => "hadamard",
            Operator::Tr => "tr",
            Operator::Relabel => "relabel",
            Operator::Sum => "sum",
            Operator::Count => "count",
            Operator::Distinct => "distinct",
            Operator::Avg => "avg",
            Operator::Min => "min",
            Operator::Max => "max",
        }
    }

    /// How many operands it takes: at least, at most.
    pub fn takes(self) -> (usize, usize) {
        match self {
            Operator::Dot | Operator::Relabel | Operator::Distinct => (2, 2),
            Operator::Krao | Operator::Hadamard => (2, usize::MAX),
            _ => (1, 1),
        }
    }
}

impl Function {
    pub const ALL: [Function; 5] = [
        Function::Power,
        Function::Exp,
        Function::Sqrt,
        Function::Year,
        Function::Substring,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Function::Power => "power",
            Function::Exp => "exp",
            Function::Sqrt => "sqrt",
            Function::Year => "year",
            Function::Substring => "substring",
        }
    }

    pub fn takes(self) -> usize {
        match self {
            Function::Power => 2,
            Function::Substring => 3,
            _ => 1,
        }
    }
}

impl Each {
    pub fn name(self) -> &'static str {
        match self {
            Each::Filter => "filter",
            Each::Lift => "lift",
            Each::Bitmap => "bitmap",
        }
    }
}

impl Sign {
    pub fn text(self) -> &'static str {
        match self {
            Sign::Or => "or",
            Sign::And => "and",
            Sign::Eq => "=",
            Sign::Ne => "<>",
            Sign::Lt => "<",
            Sign::Le => "<=",
            Sign::Gt => ">",
            Sign::Ge => ">=",
            Sign::BitOr => "|",
            Sign::BitXor => "^",
            Sign::BitAnd => "&",
            Sign::Left => "<<",
            Sign::Right => ">>",
            Sign::Add => "+",
            Sign::Sub => "-",
            Sign::Mul => "*",
            Sign::Div => "/",
        }
    }

    /// Its precedence: greater if it binds tighter.
    pub fn level(self) -> u8 {
        match self {
            Sign::Or => 0,
            Sign::And => 1,
            // 2 is `not`.
            Sign::Eq | Sign::Ne | Sign::Lt | Sign::Le | Sign::Gt | Sign::Ge => COMPARISON,
            Sign::BitOr => 4,
            Sign::BitXor => 5,
            Sign::BitAnd => 6,
            Sign::Left | Sign::Right => 7,
            Sign::Add | Sign::Sub => 8,
            Sign::Mul | Sign::Div => 9,
        }
    }
}

pub(crate) const NOT: u8 = 2;
pub(crate) const COMPARISON: u8 = 3;
pub(crate) const UNARY: u8 = 10;

impl Element {
    fn level(&self) -> u8 {
        match &self.what {
            Of::Binary(sign, ..) => sign.level(),
            Of::Not(_) => NOT,
            Of::In(..) | Of::Between(..) | Of::Null(..) => COMPARISON,
            Of::Negative(_) | Of::Flip(_) => UNARY,
            _ => u8::MAX,
        }
    }
}

/// Writes `e`, in parentheses if it binds less than `level`.
struct At<'e>(&'e Element, u8);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.level() < self.1 {
            write!(f, "({})", self.0)
        } else {
            self.0.fmt(f)
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, all: &[T]) -> fmt::Result {
    for (i, one) in all.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        one.fmt(f)?;
    }
    Ok(())
}

fn text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "\"{}\"", text.replace('"', "\"\""))
}

fn not(flag: bool) -> &'static str {
    if flag { "not " } else { "" }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.as_str();
        let plain = text.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '$')
            && text.to_lowercase() == text
            && !KEYWORDS.contains(&text);
        if plain {
            f.write_str(text)
        } else {
            write!(f, "`{}`", text.replace('`', "``"))
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Name(name) => name.fmt(f),
            What::Attribute(table, column) => write!(f, "{table}.{column}"),
            What::Call(operator, args) => {
                write!(f, "{}(", operator.name())?;
                list(f, args)?;
                f.write_str(")")
            }
            What::Outer(a, b, default) => write!(f, "dot({a}, {b}, {default})"),
            What::Each(each, e) => write!(f, "{}({e})", each.name()),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tight = COMPARISON + 1;
        match &self.what {
            Of::Operand(operand) => operand.fmt(f),
            Of::Number(number) => f.write_str(number),
            Of::Text(t) => text(f, t),
            Of::Truth(truth) => truth.fmt(f),
            Of::Apply(function, args) => {
                write!(f, "{}(", function.name())?;
                list(f, args)?;
                f.write_str(")")
            }
            Of::Match(e, pattern, _) => {
                write!(f, "match({e}, ")?;
                text(f, pattern)?;
                f.write_str(")")
            }
            Of::Not(e) => write!(f, "not {}", At(e, NOT)),
            Of::Negative(e) => write!(f, "-{}", At(e, UNARY)),
            Of::Flip(e) => write!(f, "~{}", At(e, UNARY)),
            Of::Binary(sign, a, b) => {
                let level = sign.level();
                // Comparisons do not chain.
                let left = level + u8::from(level == COMPARISON);
                write!(f, "{} {} {}", At(a, left), sign.text(), At(b, level + 1))
            }
            Of::Case(branches, last) => {
                f.write_str("case")?;
                for (when, then) in branches {
                    write!(f, " when {when} then {then}")?;
                }
                if let Some(last) = last {
                    write!(f, " else {last}")?;
                }
                f.write_str(" end")
            }
            Of::In(e, flag, among) => {
                write!(f, "{} {}in (", At(e, tight), not(*flag))?;
                list(f, among)?;
                f.write_str(")")
            }
            Of::Between(e, flag, low, high) => write!(
                f,
                "{} {}between {} and {}",
                At(e, tight),
                not(*flag),
                At(low, tight),
                At(high, tight)
            ),
            Of::Null(e, flag) => write!(f, "{} is {}null", At(e, tight), not(*flag)),
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)?;
        match &self.alias {
            Some(alias) => write!(f, " as {alias}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            self.by,
            if self.descending { " desc" } else { "" }
        )
    }
}

impl fmt::Display for Return {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("return(")?;
        list(f, &self.items)?;
        f.write_str(")")?;
        if !self.order.is_empty() {
            f.write_str(" order by ")?;
            list(f, &self.order)?;
        }
        match self.limit {
            Some(limit) => write!(f, " limit {limit}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Assignment { name, value } in &self.assignments {
            writeln!(f, "{name} = {value}")?;
        }
        writeln!(f, "{}", self.result)
    }
}

impl Program {
    /// The attributes that it names, tables first.
    pub(crate) fn attributes(&self) -> Vec<(&str, &str)> {
        let mut all = Vec::new();
        for assignment in &self.assignments {
            assignment.value.attributes(&mut all);
        }
        for item in &self.result.items {
            item.value.attributes(&mut all);
        }
        all
    }
}

impl Operand {
    fn attributes<'p>(&'p self, into: &mut Vec<(&'p str, &'p str)>) {
        match &self.what {
            What::Name(_) => {}
            What::Attribute(table, column) => into.push((&table.text, &column.text)),
            What::Call(_, args) => args.iter().for_each(|arg| arg.attributes(into)),
            What::Outer(a, b, default) => {
                a.attributes(into);
                b.attributes(into);
                default.attributes(into);
            }
            What::Each(_, e) => e.attributes(into),
        }
    }
}

impl Element {
    fn attributes<'p>(&'p self, into: &mut Vec<(&'p str, &'p str)>) {
        match &self.what {
            Of::Operand(operand) => operand.attributes(into),
            Of::Number(_) | Of::Text(_) | Of::Truth(_) => {}
            Of::Apply(_, all) => all.iter().for_each(|e| e.attributes(into)),
            Of::Match(e, ..) | Of::Not(e) | Of::Negative(e) | Of::Flip(e) | Of::Null(e, _) => {
                e.attributes(into);
            }
            Of::Binary(_, a, b) => {
                a.attributes(into);
                b.attributes(into);
            }
            Of::Case(branches, last) => {
                for (when, then) in branches {
                    when.attributes(into);
                    then.attributes(into);
                }
                if let Some(last) = last {
                    last.attributes(into);
                }
            }
            Of::In(e, _, among) => {
                e.attributes(into);
                among.iter().for_each(|e| e.attributes(into));
            }
            Of::Between(e, _, low, high) => {
                e.attributes(into);
                low.attributes(into);
                high.attributes(into);
            }
        }
    }
}
