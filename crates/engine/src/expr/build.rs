//! Constructors of expressions: logic, comparisons, cases and calls. For arithmetic and casts see
//! [`arithmetic`](crate::expr::arithmetic).

use std::sync::{Arc, OnceLock};

use algebra::filter::Op as Compare;
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::arithmetic::{rescale, widen};
use crate::expr::expression::{Call, Expr, Literal, Node, PerLabel};
use crate::vector::value::{Kind, Type};

fn boolean(node: Node, nullable: bool) -> Expr {
    Expr {
        node,
        ty: Type {
            data: DataType::Boolean,
            kind: Kind::Bool,
            bounds: (0, 1),
            labels: None,
            nullable,
        },
    }
}

/// The conjunction of `parts`, flattened; true if there are none.
pub fn and(parts: Vec<Expr>) -> Expr {
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        match part.node {
            Node::And(inner) => all.extend(inner),
            _ => all.push(part),
        }
    }
    if all.len() == 1 {
        return all.remove(0);
    }
    let nullable = all.iter().any(|e| e.ty.nullable);
    boolean(Node::And(all), nullable)
}

/// The disjunction of `parts`, flattened; false if there are none.
pub fn or(parts: Vec<Expr>) -> Expr {
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        match part.node {
            Node::Or(inner) => all.extend(inner),
            _ => all.push(part),
        }
    }
    if all.len() == 1 {
        return all.remove(0);
    }
    let nullable = all.iter().any(|e| e.ty.nullable);
    boolean(Node::Or(all), nullable)
}

/// The negation of `e`.
pub fn not(e: Expr) -> Expr {
    let nullable = e.ty.nullable;
    boolean(Node::Not(Box::new(e)), nullable)
}

/// Whether `e` is NULL.
pub fn is_null(e: Expr) -> Expr {
    boolean(Node::IsNull(Box::new(e)), false)
}

/// The comparison `a op b`.
///
/// # Errors
/// [`Error::Unsupported`] for types without a kernel; make a [`call`] instead.
pub fn compare(op: Compare, a: Expr, b: Expr) -> Result<Expr> {
    let (a, b) = alike(a, b)?;
    if matches!(a.ty.kind, Kind::Text | Kind::Code) {
        return Err(Error::unsupported("this comparison of strings"));
    }
    let nullable = a.ty.nullable || b.ty.nullable;
    Ok(boolean(
        Node::Compare(op, Box::new(a), Box::new(b)),
        nullable,
    ))
}

/// Whether `a` and `b` are equal. Unlike [`compare`], also of strings: where they are constants, a [`call`] is faster.
///
/// # Errors
/// [`Error::Unsupported`] for operands of different kinds.
pub(crate) fn equal(a: Expr, b: Expr) -> Result<Expr> {
    let (a, b) = alike(a, b)?;
    let nullable = a.ty.nullable || b.ty.nullable;
    let node = Node::Compare(Compare::Eq, Box::new(a), Box::new(b));
    Ok(boolean(node, nullable))
}

/// Whether `e` is one of the whole numbers `set`.
///
/// # Errors
/// [`Error::Unsupported`] if `e` is not a 64-bit whole number.
pub fn in_set(e: Expr, mut set: Vec<i64>) -> Result<Expr> {
    if e.ty.kind != Kind::Int {
        return Err(Error::unsupported("a list of such values"));
    }
    set.sort_unstable();
    set.dedup();
    let nullable = e.ty.nullable;
    Ok(boolean(Node::In(Box::new(e), set.into()), nullable))
}

/// Brings both operands to a common scale and representation.
///
/// # Errors
/// [`Error::Unsupported`] if they have none.
pub fn alike(a: Expr, b: Expr) -> Result<(Expr, Expr)> {
    let scale = a.ty.scale().max(b.ty.scale());
    let (a, b) = (rescale(a, scale)?, rescale(b, scale)?);
    match (a.ty.kind, b.ty.kind) {
        _ if !a.ty.may_meet(&b.ty) => Err(Error::unsupported(format!(
            "values of types {} and {}",
            a.ty.data, b.ty.data
        ))),
        (x, y) if x == y => Ok((a, b)),
        (Kind::Text | Kind::Code, Kind::Text | Kind::Code) => Ok((a, b)),
        (Kind::Int, Kind::Wide) => Ok((widen(a), b)),
        (Kind::Wide, Kind::Int) => Ok((a, widen(b))),
        _ => Err(Error::unsupported("operands of different kinds")),
    }
}

/// The value of the first branch whose condition is true, otherwise `last`.
///
/// # Errors
/// [`Error::Unsupported`] for branches of different kinds. For strings, only a single branch with NULL as `last` is
/// supported.
pub fn case(branches: Vec<(Expr, Expr)>, last: Expr, data: &DataType) -> Result<Expr> {
    let nullable = last.ty.nullable || branches.iter().any(|(_, then)| then.ty.nullable);
    let ty = Type::of(data, nullable);
    let ty = ty.ok_or_else(|| Error::unsupported(format!("values of type {data}")))?;
    if ty.kind == Kind::Text {
        let masks = last.constant() == Some(&Literal::Null) && branches.len() == 1;
        let then = branches.first().map(|(_, then)| then.ty.clone());
        let fits = |then: &Type| matches!(then.kind, Kind::Text | Kind::Code) && then.may_meet(&ty);
        return match then.filter(|then| masks && fits(then)) {
            Some(ty) => Ok(Expr {
                node: Node::Case(branches, Box::new(last)),
                ty: ty.nullable(true),
            }),
            None => Err(Error::unsupported("CASE with strings")),
        };
    }
    let mut values: Vec<&Expr> = branches.iter().map(|(_, then)| then).collect();
    values.push(&last);
    let ty = match ty.kind {
        Kind::Int | Kind::Wide => {
            if values.iter().any(|e| e.ty.scale() != ty.scale()) {
                return Err(Error::unsupported("branches of different scales"));
            }
            let low = values.iter().map(|e| e.ty.bounds.0).min().unwrap_or(0);
            let high = values.iter().map(|e| e.ty.bounds.1).max().unwrap_or(0);
            let ty = ty.within((low, high));
            // What is kept in 128 bits stays so, however small it is.
            let is_wide = values.iter().any(|e| e.ty.kind == Kind::Wide);
            let kind = if is_wide { Kind::Wide } else { ty.kind };
            Type { kind, ..ty }
        }
        _ => ty,
    };
    let fit = |e: Expr| match ty.kind {
        Kind::Wide => widen(e),
        _ => e,
    };
    let branches: Vec<(Expr, Expr)> = branches
        .into_iter()
        .map(|(when, then)| (when, fit(then)))
        .collect();
    let last = fit(last);
    let same = |e: &Expr| e.ty.kind == ty.kind || e.constant() == Some(&Literal::Null);
    if !same(&last) || !branches.iter().all(|(_, then)| same(then)) {
        return Err(Error::unsupported("branches of different kinds"));
    }
    Ok(Expr {
        node: Node::Case(branches, Box::new(last)),
        ty,
    })
}

/// A call of a function over Arrow arrays that gives values of type `data`. With a single dictionary-coded
/// argument, it is called once per label rather than once per row.
///
/// # Errors
/// [`Error::Unsupported`] if the engine has no such type.
pub fn call(args: Vec<Expr>, call: Arc<dyn Call>, data: &DataType) -> Result<Expr> {
    let ty = Type::of(data, true);
    let ty = ty.ok_or_else(|| Error::unsupported(format!("values of type {data}")))?;
    if let [arg] = &args[..]
        && arg.ty.kind == Kind::Code
    {
        let per_label = PerLabel {
            call,
            values: OnceLock::new(),
        };
        let node = Node::Labels(
            Box::new(args.into_iter().next().unwrap_or_else(|| unreachable!())),
            Arc::new(per_label),
        );
        return Ok(Expr { node, ty });
    }
    Ok(Expr {
        node: Node::Call(args, call),
        ty,
    })
}
