//! What an expression is: a node over other expressions, with its type.

use std::fmt;
use std::sync::{Arc, OnceLock};

use algebra::filter::Op as Compare;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::vector::value::{Kind, Type, Var, Vector};

/// An expression and its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub node: Node,
    /// The type of its values.
    pub ty: Type,
}

/// Arithmetic of two operands of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a / b; of floats only
    Div,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum Node {
    /// A vector.
    Var(Var),
    /// One value for all rows.
    Literal(Literal),
    /// The value of a subquery, known when the query runs.
    Parameter(usize),
    /// Both operands are held in the expression's kind, decimals with its scale (products apart).
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// Both operands are of one kind; decimals of one scale.
    Compare(Compare, Box<Expr>, Box<Expr>),
    /// All are true.
    And(Vec<Expr>),
    /// Any is true.
    Or(Vec<Expr>),
    /// Is false.
    Not(Box<Expr>),
    /// Is NULL.
    IsNull(Box<Expr>),
    /// The value of the first branch whose condition is true, otherwise of the last.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    /// Is one of these whole numbers, which ascend.
    In(Box<Expr>, Arc<[i64]>),
    /// The same numbers in 128 bits.
    Widen(Box<Expr>),
    /// Times a power of ten.
    Scale(Box<Expr>, i128),
    /// As a float: divided by a power of ten.
    Float(Box<Expr>, f64),
    /// The year of days since 1970.
    Year(Box<Expr>),
    /// A function of one coded text: found once per label.
    Labels(Box<Expr>, Arc<PerLabel>),
    /// A function that Arrow arrays are given to.
    Call(Vec<Expr>, Arc<dyn Call>),
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Of no kind.
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

/// A function over Arrow arrays, row by row: what the engine has no kernel for.
pub trait Call: Send + Sync + fmt::Debug {
    /// One value per row. `args` are `rows` long.
    ///
    /// # Errors
    /// Whatever evaluating the values gives (overflow, division by zero, ...).
    fn call(
        &self,
        args: &[ArrayRef],
        rows: usize,
    ) -> std::result::Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>>;

    /// How it is shown.
    fn name(&self) -> String;
}

/// A function of a text with its values per label of a dictionary, found on first use.
#[derive(Debug)]
pub struct PerLabel {
    /// The function.
    pub call: Arc<dyn Call>,
    /// Values per code, and for NULL after the last one.
    pub values: OnceLock<Vector>,
}

impl Expr {
    /// A vector.
    pub fn var(var: Var, ty: Type) -> Expr {
        Expr {
            node: Node::Var(var),
            ty,
        }
    }

    /// One value, of type `data`.
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

    /// The constant it is, if it is one.
    pub fn constant(&self) -> Option<&Literal> {
        match &self.node {
            Node::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// The vector it is, if it is one.
    pub fn as_var(&self) -> Option<Var> {
        match self.node {
            Node::Var(var) => Some(var),
            _ => None,
        }
    }

    /// Calls `f` with each vector it reads.
    pub fn each_var(&self, f: &mut dyn FnMut(Var)) {
        match &self.node {
            Node::Var(var) => f(*var),
            Node::Literal(_) | Node::Parameter(_) => {}
            Node::Arithmetic(_, a, b) | Node::Compare(_, a, b) => {
                a.each_var(f);
                b.each_var(f);
            }
            Node::And(all) | Node::Or(all) | Node::Call(all, _) => {
                all.iter().for_each(|e| e.each_var(f));
            }
            Node::Not(e) | Node::IsNull(e) | Node::In(e, _) | Node::Widen(e) => e.each_var(f),
            Node::Scale(e, _) | Node::Float(e, _) | Node::Year(e) | Node::Labels(e, _) => {
                e.each_var(f)
            }
            Node::Case(branches, last) => {
                for (when, then) in branches {
                    when.each_var(f);
                    then.each_var(f);
                }
                last.each_var(f);
            }
        }
    }

    /// The vectors it reads, each once, ascending.
    pub fn vars(&self) -> Vec<Var> {
        let mut vars = Vec::new();
        self.each_var(&mut |var| vars.push(var));
        vars.sort_unstable();
        vars.dedup();
        vars
    }
}

/// Whether evaluating it may fail for a row, so that a choice must not evaluate it for the rows it is not meant for.
pub fn is_fallible(e: &Expr) -> bool {
    match &e.node {
        Node::Var(_) | Node::Literal(_) | Node::Parameter(_) | Node::Labels(..) => false,
        Node::Call(..) => true,
        Node::Arithmetic(_, a, b) => e.ty.kind == Kind::Wide || is_fallible(a) || is_fallible(b),
        Node::Compare(_, a, b) => is_fallible(a) || is_fallible(b),
        Node::And(all) | Node::Or(all) => all.iter().any(is_fallible),
        Node::Not(e)
        | Node::IsNull(e)
        | Node::In(e, _)
        | Node::Widen(e)
        | Node::Float(e, _)
        | Node::Year(e) => is_fallible(e),
        Node::Scale(inner, _) => e.ty.kind == Kind::Wide || is_fallible(inner),
        Node::Case(branches, last) => {
            is_fallible(last)
                || branches
                    .iter()
                    .any(|(when, then)| is_fallible(when) || is_fallible(then))
        }
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
            Node::Literal(literal) => match literal {
                Literal::Null => write!(f, "null"),
                Literal::Int(v) => write!(f, "{v}"),
                Literal::Wide(v) => write!(f, "{v}"),
                Literal::Float(v) => write!(f, "{v:?}"),
                Literal::Bool(v) => write!(f, "{v}"),
                Literal::Text(v) => write!(f, "{v:?}"),
            },
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
                let sign = match op {
                    Compare::Eq => "=",
                    Compare::Ne => "<>",
                    Compare::Lt => "<",
                    Compare::Le => "<=",
                    Compare::Gt => ">",
                    Compare::Ge => ">=",
                };
                write!(f, "{a} {sign} {b}")
            }
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
            Node::Labels(e, per) => write!(f, "labels({e}: {})", per.call.name()),
            Node::Call(args, call) => {
                write!(f, "{}(", call.name())?;
                list(f, args, ", ")?;
                f.write_str(")")
            }
        }
    }
}
