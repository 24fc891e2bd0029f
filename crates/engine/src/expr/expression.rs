//! Expressions: trees of typed nodes.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use algebra::filter::Op as Compare;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::kernel::Kernel;
use crate::vector::value::{Kind, Type, Var, Vector};

/// An expression and its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The root node.
    pub node: Node,
    /// The type of its values.
    pub ty: Type,
}

/// An arithmetic operation. Both operands are of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a / b; floats only
    Div,
}

/// Which of two numbers is wanted. What is no number is greater than all numbers, and 0.0 greater than -0.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The lesser one.
    Least,
    /// The greater one.
    Greatest,
}

impl fmt::Display for Extreme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Extreme::Least => "least",
            Extreme::Greatest => "greatest",
        })
    }
}

/// A node of an expression.
#[derive(Clone, Debug)]
pub enum Node {
    /// A vector.
    Var(Var),
    /// A constant.
    Literal(Literal),
    /// The value of a scalar subquery: an index into [`Query::parameters`](crate::Query::parameters).
    Parameter(usize),
    /// Both operands have the kind of the result and, except for products, its scale.
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// Both operands have the type of the result.
    Extreme(Extreme, Box<Expr>, Box<Expr>),
    /// Both operands have the same kind and, for decimals, the same scale.
    Compare(Compare, Box<Expr>, Box<Expr>),
    /// True if all are true.
    And(Vec<Expr>),
    /// True if any is true.
    Or(Vec<Expr>),
    /// The negation.
    Not(Box<Expr>),
    /// Whether the value is NULL.
    IsNull(Box<Expr>),
    /// The value of the first branch whose condition is true, otherwise of the last expression.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    /// Whether the value is one of these whole numbers, which ascend.
    In(Box<Expr>, Arc<[i64]>),
    /// The same numbers represented in 128 bits.
    Widen(Box<Expr>),
    /// Multiplied by a power of ten.
    Scale(Box<Expr>, i128),
    /// As a float, divided by a power of ten.
    Float(Box<Expr>, f64),
    /// The year of a date, given as days since 1970.
    Year(Box<Expr>),
    /// A function of one number that has a kernel for those within a range.
    Ranged(Box<Ranged>),
    /// A function of one dictionary-coded string, evaluated once per label.
    Labels(Box<Expr>, Arc<PerLabel>),
    /// A call of a function over Arrow arrays.
    Call(Vec<Expr>, Arc<dyn Call>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// NULL, of any kind.
    Null,
    /// Of [`Kind::Int`].
    Int(i64),
    /// Of [`Kind::Wide`].
    Wide(i128),
    /// Of [`Kind::Float`].
    Float(f64),
    /// Of [`Kind::Bool`].
    Bool(bool),
    /// Of [`Kind::Text`].
    Text(String),
}

/// A row-by-row function over Arrow arrays, for what the engine has no kernel for.
pub trait Call: Any + Send + Sync + fmt::Debug {
    /// Computes one value per row. Each of `args` has `rows` values.
    ///
    /// # Errors
    /// Whatever evaluating the values gives: overflow, division by zero and so on.
    fn call(
        &self,
        args: &[ArrayRef],
        rows: usize,
    ) -> std::result::Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>>;

    /// Its name in `explain`.
    fn name(&self) -> String;

    /// What computes all of `calls`, of which this may be one, at once from the same arguments; `None` if each is computed by itself.
    /// Calls that may be computed together have names that say what they compute, give NULL for NULL, and do not fail: they are made
    /// also for rows whose values nobody reads.
    fn together(&self, _calls: &[Arc<dyn Call>]) -> Option<Arc<dyn Calls>> {
        None
    }

    /// Which part of a document it depends on, if it takes one document, depends on nothing else of it, and does not fail: a scan may
    /// have the part without the document.
    fn part(&self) -> Option<CalledPart<'_>> {
        None
    }

    /// What it gives of documents of which a scan has the [part](Call::part): a text per row, NULL where there is none.
    ///
    /// # Errors
    /// If it does not take a part.
    fn of_parts(
        &self,
        _parts: &ArrayRef,
    ) -> std::result::Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
        Err("parts of documents for a function of something else".into())
    }

    /// Whether it may do something, or give something else, each time it is called: then it is called for rows of the answer only.
    fn is_volatile(&self) -> bool {
        false
    }
}

/// The part of a document that a function depends on.
#[derive(Clone, Copy, Debug)]
pub struct CalledPart<'c> {
    /// The keys that lead to it, through objects.
    pub keys: &'c [String],
    /// Whether it depends on the text of the part, as `->>` gives it, or on the part as it is written.
    pub as_text: bool,
}

/// Several functions of one argument that are computed at once.
pub trait Calls: Send + Sync + fmt::Debug {
    /// Computes the values of each function: one per row of the argument. Texts may lie in the buffers of the argument.
    ///
    /// # Errors
    /// Those of defects: the functions do not fail.
    fn call(
        &self,
        arg: &ArrayRef,
    ) -> std::result::Result<Vec<ArrayRef>, Box<dyn std::error::Error + Send + Sync>>;
}

/// A function of a dictionary-coded string. Its values per label are computed on first use.
#[derive(Debug)]
pub struct PerLabel {
    /// The function.
    pub call: Arc<dyn Call>,
    /// The value of each code, and last that of NULL.
    pub values: OnceLock<Vector>,
}

/// A function of one number by a kernel that is right for the numbers within a range.
#[derive(Clone, Debug)]
pub struct Ranged {
    /// The number.
    pub(crate) of: Expr,
    pub(crate) kernel: Kernel,
    /// What gives the same for all numbers, if there may be some that the kernel is not right for.
    pub(crate) otherwise: Option<Expr>,
}

impl Ranged {
    /// The vector and the number of which it is the sum, if it is one that does not overflow. Timestamps that are infinite, which
    /// are the least and the greatest numbers, stay so.
    pub(crate) fn sum(&self) -> Option<(Var, i64)> {
        let is_stamp = matches!(self.of.ty.data, DataType::Timestamp(..));
        let is_known = self.otherwise.is_none() || is_stamp;
        self.of
            .as_var()
            .zip(self.kernel.plus().filter(|_| is_known))
    }
}

impl Expr {
    /// A vector.
    pub fn var(var: Var, ty: Type) -> Expr {
        Expr {
            node: Node::Var(var),
            ty,
        }
    }

    /// A constant of type `data`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the engine has no such type.
    pub fn literal(literal: Literal, data: &DataType) -> Result<Expr> {
        let ty = Type::of(data, literal == Literal::Null);
        let ty = ty.ok_or_else(|| Error::unsupported(format!("values of type {data}")))?;
        let ty = match literal {
            Literal::Int(v) => ty.within((v.into(), v.into())),
            Literal::Wide(v) => ty.within((v, v)),
            Literal::Null => ty.within((0, 0)),
            _ => ty,
        };
        let literal = match literal {
            Literal::Wide(v) if ty.kind == Kind::Int => Literal::Int(v as i64),
            Literal::Int(v) if ty.kind == Kind::Wide => Literal::Wide(v.into()),
            other => other,
        };
        Ok(Expr {
            node: Node::Literal(literal),
            ty,
        })
    }

    /// The constant, if the expression is one.
    pub fn constant(&self) -> Option<&Literal> {
        match &self.node {
            Node::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// The vector, if the expression is nothing but a vector.
    pub fn as_var(&self) -> Option<Var> {
        match self.node {
            Node::Var(var) => Some(var),
            _ => None,
        }
    }

    /// Calls `f` with each vector that the expression reads.
    pub fn each_var(&self, f: &mut dyn FnMut(Var)) {
        match &self.node {
            Node::Var(var) => f(*var),
            _ => self.each_operand(&mut |e| e.each_var(f)),
        }
    }

    /// Calls `f` with each expression that this one is directly computed from.
    fn each_operand(&self, f: &mut dyn FnMut(&Expr)) {
        match &self.node {
            Node::Var(_) | Node::Literal(_) | Node::Parameter(_) => {}
            Node::Arithmetic(_, a, b) | Node::Compare(_, a, b) | Node::Extreme(_, a, b) => {
                f(a);
                f(b);
            }
            Node::And(all) | Node::Or(all) | Node::Call(all, _) => all.iter().for_each(f),
            Node::Not(e) | Node::IsNull(e) | Node::In(e, _) | Node::Widen(e) => f(e),
            Node::Scale(e, _) | Node::Float(e, _) | Node::Year(e) | Node::Labels(e, _) => f(e),
            Node::Ranged(ranged) => {
                f(&ranged.of);
                ranged.otherwise.iter().for_each(f);
            }
            Node::Case(branches, last) => {
                for (when, then) in branches {
                    f(when);
                    f(then);
                }
                f(last);
            }
        }
    }

    /// Whether it calls a function that may do something, or give something else, each time it is called.
    pub(crate) fn is_volatile(&self) -> bool {
        let mut found = match &self.node {
            Node::Call(_, call) => call.is_volatile(),
            Node::Labels(_, per) => per.call.is_volatile(),
            _ => false,
        };
        self.each_operand(&mut |e| found |= e.is_volatile());
        found
    }

    /// The same expression, of vectors with the numbers that `to` gives for those that it reads.
    #[must_use]
    pub fn renamed(&self, to: &dyn Fn(Var) -> Var) -> Expr {
        let one = |e: &Expr| Box::new(e.renamed(to));
        let each = |all: &[Expr]| all.iter().map(|e| e.renamed(to)).collect();
        let node = match &self.node {
            Node::Var(var) => Node::Var(to(*var)),
            Node::Literal(_) | Node::Parameter(_) => self.node.clone(),
            Node::Arithmetic(op, a, b) => Node::Arithmetic(*op, one(a), one(b)),
            Node::Compare(op, a, b) => Node::Compare(*op, one(a), one(b)),
            Node::Extreme(which, a, b) => Node::Extreme(*which, one(a), one(b)),
            Node::And(all) => Node::And(each(all)),
            Node::Or(all) => Node::Or(each(all)),
            Node::Not(e) => Node::Not(one(e)),
            Node::IsNull(e) => Node::IsNull(one(e)),
            Node::Case(branches, last) => {
                let branches = branches.iter();
                let branches = branches.map(|(when, then)| (when.renamed(to), then.renamed(to)));
                Node::Case(branches.collect(), one(last))
            }
            Node::In(e, set) => Node::In(one(e), Arc::clone(set)),
            Node::Widen(e) => Node::Widen(one(e)),
            Node::Scale(e, factor) => Node::Scale(one(e), *factor),
            Node::Float(e, divisor) => Node::Float(one(e), *divisor),
            Node::Year(e) => Node::Year(one(e)),
            Node::Labels(e, per) => Node::Labels(one(e), Arc::clone(per)),
            Node::Call(args, call) => Node::Call(each(args), Arc::clone(call)),
            Node::Ranged(ranged) => Node::Ranged(Box::new(Ranged {
                of: ranged.of.renamed(to),
                kernel: ranged.kernel,
                otherwise: ranged.otherwise.as_ref().map(|e| e.renamed(to)),
            })),
        };
        Expr {
            node,
            ty: self.ty.clone(),
        }
    }

    /// Calls `f` with this expression and those within, the outermost first. What `f` puts in the place of one is looked at, too.
    pub(crate) fn each_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        f(self);
        match &mut self.node {
            Node::Var(_) | Node::Literal(_) | Node::Parameter(_) => {}
            Node::Arithmetic(_, a, b) | Node::Compare(_, a, b) | Node::Extreme(_, a, b) => {
                a.each_mut(f);
                b.each_mut(f);
            }
            Node::And(all) | Node::Or(all) | Node::Call(all, _) => {
                all.iter_mut().for_each(|e| e.each_mut(f));
            }
            Node::Not(e) | Node::IsNull(e) | Node::In(e, _) | Node::Widen(e) => e.each_mut(f),
            Node::Scale(e, _) | Node::Float(e, _) | Node::Year(e) | Node::Labels(e, _) => {
                e.each_mut(f);
            }
            Node::Ranged(ranged) => {
                ranged.of.each_mut(f);
                ranged.otherwise.iter_mut().for_each(|e| e.each_mut(f));
            }
            Node::Case(branches, last) => {
                for (when, then) in branches {
                    when.each_mut(f);
                    then.each_mut(f);
                }
                last.each_mut(f);
            }
        }
    }

    /// The vectors that the expression reads, each once, ascending.
    pub fn vars(&self) -> Vec<Var> {
        let mut vars = Vec::new();
        self.each_var(&mut |var| vars.push(var));
        vars.sort_unstable();
        vars.dedup();
        vars
    }
}

/// The counts of days that are infinite dates: from the first on, and up to the second.
pub(crate) const INFINITE: [i64; 2] = [i32::MAX as i64, -(i32::MAX as i64)];

/// Whether a date may be infinite, by its bounds.
pub(crate) fn may_be_infinite(date: &Expr) -> bool {
    let (low, high) = date.ty.bounds;
    low <= i128::from(INFINITE[1]) || high >= i128::from(INFINITE[0])
}

/// Whether evaluation may fail for some row. Such an expression must not be evaluated for rows that a CASE
/// excludes.
pub fn is_fallible(e: &Expr) -> bool {
    match &e.node {
        Node::Var(_) | Node::Literal(_) | Node::Parameter(_) | Node::Labels(..) => false,
        Node::Call(..) => true,
        Node::Arithmetic(_, a, b) => e.ty.kind == Kind::Wide || is_fallible(a) || is_fallible(b),
        Node::Compare(_, a, b) | Node::Extreme(_, a, b) => is_fallible(a) || is_fallible(b),
        Node::And(all) | Node::Or(all) => all.iter().any(is_fallible),
        Node::Not(e) | Node::IsNull(e) | Node::In(e, _) | Node::Widen(e) | Node::Float(e, _) => {
            is_fallible(e)
        }
        Node::Year(e) => may_be_infinite(e) || is_fallible(e),
        Node::Ranged(ranged) => ranged.otherwise.is_some() || is_fallible(&ranged.of),
        Node::Scale(inner, _) => e.ty.kind == Kind::Wide || is_fallible(inner),
        Node::Case(branches, last) => {
            is_fallible(last)
                || branches
                    .iter()
                    .any(|(when, then)| is_fallible(when) || is_fallible(then))
        }
    }
}

fn write_literal(literal: &Literal, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match literal {
        Literal::Null => write!(f, "null"),
        Literal::Int(v) => write!(f, "{v}"),
        Literal::Wide(v) => write!(f, "{v}"),
        Literal::Float(v) => write!(f, "{v:?}"),
        Literal::Bool(v) => write!(f, "{v}"),
        Literal::Text(v) => write!(f, "{v:?}"),
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, all: &[Expr], between: &str| {
            for (i, e) in all.iter().enumerate() {
                if i > 0 {
                    f.write_str(between)?;
                }
                write!(f, "{e}")?;
            }
            Ok(())
        };
        match &self.node {
            Node::Var(var) => write!(f, "#{var}"),
            Node::Literal(literal) => write_literal(literal, f),
            Node::Parameter(number) => write!(f, "?{number}"),
            Node::Arithmetic(op, a, b) => {
                let sign = match op {
                    Arithmetic::Add => "+",
                    Arithmetic::Sub => "-",
                    Arithmetic::Mul => "*",
                    Arithmetic::Div => "/",
                };
                write!(f, "({a} {sign} {b})")
            }
            Node::Compare(op, a, b) => {
                write!(f, "{a} {} {b}", op.sign())
            }
            Node::Extreme(which, a, b) => write!(f, "{which}({a}, {b})"),
            Node::And(all) => {
                f.write_str("(")?;
                list(f, all, " and ")?;
                f.write_str(")")
            }
            Node::Or(all) => {
                f.write_str("(")?;
                list(f, all, " or ")?;
                f.write_str(")")
            }
            Node::Not(e) => write!(f, "not {e}"),
            Node::IsNull(e) => write!(f, "{e} is null"),
            Node::Case(branches, last) => {
                f.write_str("case")?;
                for (when, then) in branches {
                    write!(f, " when {when} then {then}")?;
                }
                write!(f, " else {last} end")
            }
            Node::In(e, set) => write!(f, "{e} in {set:?}"),
            Node::Widen(e) => write!(f, "{e}"),
            Node::Scale(e, factor) => write!(f, "{e} * {factor}"),
            Node::Float(e, _) => write!(f, "float({e})"),
            Node::Year(e) => write!(f, "year({e})"),
            Node::Ranged(ranged) => {
                let shown = ranged.kernel.to_string();
                f.write_str(&shown.replacen('_', &ranged.of.to_string(), 1))
            }
            Node::Labels(e, per) => write!(f, "labels({e}: {})", per.call.name()),
            Node::Call(args, call) => {
                write!(f, "{}(", call.name())?;
                list(f, args, ", ")?;
                f.write_str(")")
            }
        }
    }
}
