//! Expressions with the types of their values.

use crate::error::{Error, Result, listed};
use crate::expr::syntax::{BinaryOp, Expr, UnaryOp};
use crate::model::dimension::Dimension;
use crate::model::schema::{Attribute, Schema};
use crate::model::types::{DataType, Scalar};

/// The deepest nesting of an expression.
const DEEPEST: usize = 256;

/// An expression whose names are resolved and whose operands have the types that their operators take.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub node: Node,
    pub of: DataType,
    pub nullable: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Attribute(usize),
    /// The coordinate along a dimension: a whole number, or a double where coordinates are mapped.
    Dimension(usize),
    Value(Scalar),
    Unary(UnaryOp, Box<Typed>),
    Binary(BinaryOp, Box<Typed>, Box<Typed>),
    Cast(Box<Typed>),
    If(Box<Typed>, Box<Typed>, Box<Typed>),
}

impl Typed {
    /// Gives types to an expression over the cells of a schema; `what` is the operator that it is for.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Type`].
    pub fn new(expr: &Expr, schema: &Schema, what: &'static str) -> Result<Typed> {
        if expr.depth() > DEEPEST {
            return Err(Error::Operator {
                operator: what,
                what: format!("the expression has more than {DEEPEST} levels in one another"),
            });
        }
        bind(expr, schema, what)
    }

    /// As [`new`](Typed::new), of a condition.
    ///
    /// # Errors
    /// As [`new`](Typed::new).
    pub fn condition(expr: &Expr, schema: &Schema, what: &'static str) -> Result<Typed> {
        let typed = Typed::new(expr, schema, what)?;
        if typed.of != DataType::Bool {
            return Err(mismatch(
                expr,
                &format!("{what} needs a bool, this is {}", typed.of),
            ));
        }
        Ok(typed)
    }

    /// Sets a flag for each attribute that is looked at.
    pub fn attributes(&self, wanted: &mut [bool]) {
        match &self.node {
            Node::Attribute(number) => wanted[*number] = true,
            Node::Dimension(_) | Node::Value(_) => {}
            Node::Unary(_, a) | Node::Cast(a) => a.attributes(wanted),
            Node::Binary(_, a, b) => {
                a.attributes(wanted);
                b.attributes(wanted);
            }
            Node::If(a, b, c) => [a, b, c].into_iter().for_each(|of| of.attributes(wanted)),
        }
    }

    fn cast(self, of: DataType) -> Typed {
        if self.of == of {
            return self;
        }
        Typed {
            nullable: self.nullable,
            of,
            node: Node::Cast(Box::new(self)),
        }
    }
}

fn mismatch(expr: &Expr, what: &str) -> Error {
    Error::Type {
        what: format!("{expr}: {what}"),
    }
}

fn bind(expr: &Expr, schema: &Schema, what: &'static str) -> Result<Typed> {
    match expr {
        Expr::Name(name) => bind_name(name, schema, what),
        Expr::Value(value) => {
            let of = match value {
                Scalar::Bool(_) => DataType::Bool,
                // Beside something else it becomes that; alone, a null is a double.
                Scalar::Null | Scalar::Float(_) => DataType::F64,
                Scalar::Int(value) if i64::try_from(*value).is_ok() => DataType::I64,
                Scalar::Int(value) if u64::try_from(*value).is_ok() => DataType::U64,
                Scalar::Int(_) => return Err(mismatch(expr, "no type has such large numbers")),
            };
            Ok(Typed {
                node: Node::Value(*value),
                of,
                nullable: value.is_null(),
            })
        }
        Expr::Unary(op, of) => bind_unary(expr, *op, bind(of, schema, what)?),
        Expr::Binary(op, a, b) => {
            bind_binary(expr, *op, bind(a, schema, what)?, bind(b, schema, what)?)
        }
        Expr::Cast(of, to) => Ok(bind(of, schema, what)?.cast(*to)),
        Expr::If(condition, a, b) => {
            let condition = bind(condition, schema, what)?;
            if condition.of != DataType::Bool {
                return Err(mismatch(
                    expr,
                    &format!("the first must be a bool, not {}", condition.of),
                ));
            }
            let (a, b) = common(expr, bind(a, schema, what)?, bind(b, schema, what)?)?;
            Ok(Typed {
                of: a.of,
                nullable: a.nullable || b.nullable,
                node: Node::If(Box::new(condition), Box::new(a), Box::new(b)),
            })
        }
    }
}

fn bind_name(name: &str, schema: &Schema, what: &str) -> Result<Typed> {
    let attributes = schema.attributes();
    if let Some(number) = attributes.iter().position(|of| of.name() == name) {
        return Ok(Typed {
            node: Node::Attribute(number),
            of: attributes[number].data_type(),
            nullable: attributes[number].is_nullable(),
        });
    }
    let dimensions = schema.dimensions();
    match dimensions.iter().position(|of| of.name() == name) {
        Some(number) => Ok(Typed {
            node: Node::Dimension(number),
            of: if dimensions[number].is_integer() {
                DataType::I64
            } else {
                DataType::F64
            },
            nullable: false,
        }),
        None => Err(Error::Unknown {
            what: what.to_owned(),
            kind: "attribute or dimension",
            name: name.to_owned(),
            known: listed(
                attributes
                    .iter()
                    .map(Attribute::name)
                    .chain(dimensions.iter().map(Dimension::name)),
            ),
        }),
    }
}

fn bind_unary(expr: &Expr, op: UnaryOp, a: Typed) -> Result<Typed> {
    let bool = a.of == DataType::Bool;
    let of = match op {
        UnaryOp::IsNull => DataType::Bool,
        UnaryOp::Not if bool => DataType::Bool,
        UnaryOp::Not => {
            return Err(mismatch(
                expr,
                &format!("not needs a bool, this is {}", a.of),
            ));
        }
        _ if bool => {
            return Err(mismatch(
                expr,
                "a bool is no number; cast it, as in int8(...)",
            ));
        }
        UnaryOp::Negate if a.of.is_integer() && !a.of.is_signed() => {
            let what = format!(
                "{} has no negative numbers; cast it, as in int64(...)",
                a.of
            );
            return Err(mismatch(expr, &what));
        }
        UnaryOp::Negate | UnaryOp::Abs | UnaryOp::Floor | UnaryOp::Ceil => a.of,
        UnaryOp::Sqrt | UnaryOp::Exp | UnaryOp::Log => float(a.of),
    };
    let a = match op {
        UnaryOp::Sqrt | UnaryOp::Exp | UnaryOp::Log => a.cast(of),
        _ => a,
    };
    Ok(Typed {
        of,
        nullable: a.nullable && op != UnaryOp::IsNull,
        node: Node::Unary(op, Box::new(a)),
    })
}

/// The float that functions of a type give: a float of 32 bits stays one.
fn float(of: DataType) -> DataType {
    if of == DataType::F32 {
        of
    } else {
        DataType::F64
    }
}

fn bind_binary(expr: &Expr, op: BinaryOp, a: Typed, b: Typed) -> Result<Typed> {
    let nullable = a.nullable || b.nullable;
    let both_bool = is_bool(&a) && is_bool(&b);
    let (a, b, of) = match op {
        BinaryOp::And | BinaryOp::Or if both_bool => (a, b, DataType::Bool),
        BinaryOp::And | BinaryOp::Or => {
            let what = format!(
                "{} needs two bools, these are {} and {}",
                op.sign(),
                a.of,
                b.of
            );
            return Err(mismatch(expr, &what));
        }
        _ if op.is_comparison() => {
            let (a, b) = compared(expr, a, b)?;
            (a, b, DataType::Bool)
        }
        _ if a.of == DataType::Bool || b.of == DataType::Bool => {
            return Err(mismatch(
                expr,
                "a bool is no number; cast it, as in int8(...)",
            ));
        }
        BinaryOp::Divide | BinaryOp::Power => {
            let of = float(weak(&a, &b).unwrap_or_else(|| a.of.promoted(b.of)));
            (a.cast(of), b.cast(of), of)
        }
        _ => {
            let (a, b) = common(expr, a, b)?;
            let of = a.of;
            (a, b, of)
        }
    };
    Ok(Typed {
        of,
        nullable,
        node: Node::Binary(op, Box::new(a), Box::new(b)),
    })
}

/// Whether it can stand for a bool: null can.
fn is_bool(of: &Typed) -> bool {
    of.of == DataType::Bool || matches!(of.node, Node::Value(Scalar::Null))
}

/// The type that a literal takes on from what stands beside it, as NumPy's rules for Python numbers have it: a whole number
/// becomes any number, a float a float of 32 bits; a null becomes anything.
fn weak(a: &Typed, b: &Typed) -> Option<DataType> {
    let from = |literal: &Typed, other: &Typed| match (&literal.node, &other.node) {
        (Node::Value(_), Node::Value(_)) => None,
        (Node::Value(Scalar::Null), _) => Some(other.of),
        (Node::Value(Scalar::Int(_)), _) if other.of != DataType::Bool => Some(other.of),
        (Node::Value(Scalar::Float(_)), _) if other.of.is_float() => Some(other.of),
        _ => None,
    };
    from(a, b).or_else(|| from(b, a))
}

/// Both with one type.
fn common(expr: &Expr, a: Typed, b: Typed) -> Result<(Typed, Typed)> {
    let Some(of) = weak(&a, &b) else {
        let of = match (&a.node, &b.node) {
            (Node::Value(Scalar::Null), _) => b.of,
            (_, Node::Value(Scalar::Null)) => a.of,
            _ => a.of.promoted(b.of),
        };
        return Ok((a.cast(of), b.cast(of)));
    };
    for literal in [&a, &b] {
        if let Node::Value(value) = literal.node
            && value.cast(of).is_none()
        {
            return Err(mismatch(
                expr,
                &format!("{value} is no {of}; cast the other, as in int64(...)"),
            ));
        }
    }
    Ok((a.cast(of), b.cast(of)))
}

/// Both as they are compared: with one type where that holds both exactly; otherwise as they are, and the values are
/// compared exactly.
fn compared(expr: &Expr, a: Typed, b: Typed) -> Result<(Typed, Typed)> {
    let nulls = [&a, &b].map(|of| matches!(of.node, Node::Value(Scalar::Null)));
    if (a.of == DataType::Bool) != (b.of == DataType::Bool) && nulls == [false, false] {
        let what = format!("{} cannot be compared with {}", a.of, b.of);
        return Err(mismatch(expr, &what));
    }
    let exact = |literal: &Typed, of: DataType| match literal.node {
        Node::Value(value) => value.cast(of).is_some_and(|cast| {
            value.is_null() || cast.order(value).is_some_and(|order| order.is_eq())
        }),
        _ => false,
    };
    let of = if a.of == b.of || exact(&b, a.of) {
        a.of
    } else if exact(&a, b.of) {
        b.of
    } else {
        let wide = a.of.promoted(b.of);
        let lossless = |of: DataType| !of.is_integer() || of.width() < 8;
        if wide == DataType::F64 && !(lossless(a.of) && lossless(b.of)) {
            return Ok((a, b));
        }
        wide
    };
    Ok((a.cast(of), b.cast(of)))
}
