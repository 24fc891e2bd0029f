//! Arithmetic and casts, with bounds on their results.

use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::{Arithmetic, Expr, Literal, Node};
use crate::vector::value::{Kind, Type};

/// The same whole numbers, represented in 128 bits.
pub fn widen(e: Expr) -> Expr {
    if e.ty.kind == Kind::Wide {
        return e;
    }
    let ty = Type {
        kind: Kind::Wide,
        ..e.ty.clone()
    };
    match e.node {
        Node::Literal(Literal::Int(v)) => Expr {
            node: Node::Literal(Literal::Wide(v.into())),
            ty,
        },
        _ => Expr {
            node: Node::Widen(Box::new(e)),
            ty,
        },
    }
}

/// The same decimals with `scale` digits after the point, which must not be fewer than now.
pub(super) fn rescale(e: Expr, scale: i8) -> Result<Expr> {
    let up = scale - e.ty.scale();
    if up == 0 || !matches!(e.ty.kind, Kind::Int | Kind::Wide) {
        return Ok(e);
    }
    let overflow = || Error::unsupported("scales that differ so much");
    let factor = 10i128
        .checked_pow(u32::try_from(up).map_err(|_| overflow())?)
        .ok_or_else(overflow)?;
    let times = |v: i128| v.checked_mul(factor).ok_or_else(overflow);
    let bounds = (times(e.ty.bounds.0)?, times(e.ty.bounds.1)?);
    scaled(e, factor, bounds, scale)
}

fn scaled(e: Expr, factor: i128, bounds: (i128, i128), scale: i8) -> Result<Expr> {
    let data = DataType::Decimal128(38, scale);
    let wide = Type {
        data,
        kind: Kind::Wide,
        bounds: (i128::MIN, i128::MAX),
        labels: None,
        nullable: e.ty.nullable,
    };
    let ty = wide.within(bounds);
    if let Node::Literal(Literal::Int(_) | Literal::Wide(_)) = e.node {
        let literal = match ty.kind {
            Kind::Int => Literal::Int(bounds.0 as i64),
            _ => Literal::Wide(bounds.0),
        };
        return Ok(Expr {
            node: Node::Literal(literal),
            ty,
        });
    }
    let inner = if ty.kind == Kind::Wide { widen(e) } else { e };
    Ok(Expr {
        node: Node::Scale(Box::new(inner), factor),
        ty,
    })
}

/// The expression `a op b` of type `data`, the type that SQL's rules give it.
///
/// # Errors
/// [`Error::Unsupported`] for types without a kernel, and where integers might overflow.
pub fn arithmetic(op: Arithmetic, a: Expr, b: Expr, data: &DataType) -> Result<Expr> {
    let nullable = a.ty.nullable || b.ty.nullable;
    let whole = |k: Kind| matches!(k, Kind::Int | Kind::Wide);
    let ty = Type::of(data, nullable);
    let ty = ty.ok_or_else(|| Error::unsupported(format!("values of type {data}")))?;
    let floats = [&ty, &a.ty, &b.ty];
    // Results in 32 bits would have to be rounded.
    if floats.iter().all(|ty| ty.kind == Kind::Float) && ty.data != DataType::Float32 {
        let node = Node::Arithmetic(op, Box::new(a), Box::new(b));
        return Ok(Expr { node, ty });
    }
    let numeric = |data: &DataType| data.is_integer() || matches!(data, DataType::Decimal128(..));
    if !whole(a.ty.kind)
        || !whole(b.ty.kind)
        || !numeric(data)
        || !numeric(&a.ty.data)
        || !numeric(&b.ty.data)
    {
        return Err(Error::unsupported(format!(
            "arithmetic of {} and {}",
            a.ty.data, b.ty.data
        )));
    }
    if op == Arithmetic::Div {
        return Err(Error::unsupported("division of whole numbers"));
    }
    if op == Arithmetic::Mul {
        if a.ty.scale() + b.ty.scale() != ty.scale() {
            return Err(Error::unsupported("a product of another scale"));
        }
        let bounds = product(a.ty.bounds, b.ty.bounds);
        return combine(op, a, b, ty, bounds);
    }
    let scale = a.ty.scale().max(b.ty.scale());
    if scale != ty.scale() {
        return Err(Error::unsupported("a sum of another scale"));
    }
    let (a, b) = (rescale(a, scale)?, rescale(b, scale)?);
    let (x, y) = (a.ty.bounds, b.ty.bounds);
    let bounds = match op {
        Arithmetic::Add => x.0.checked_add(y.0).zip(x.1.checked_add(y.1)),
        _ => x.0.checked_sub(y.1).zip(x.1.checked_sub(y.0)),
    };
    combine(op, a, b, ty, bounds)
}

fn product(a: (i128, i128), b: (i128, i128)) -> Option<(i128, i128)> {
    let ends = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
    let mut bounds: Option<(i128, i128)> = None;
    for (x, y) in ends {
        let v = x.checked_mul(y)?;
        bounds = Some(bounds.map_or((v, v), |(l, h)| (l.min(v), h.max(v))));
    }
    bounds
}

/// The operation in 64 bits if its bounds prove that the result fits the type, otherwise in 128 bits with checks.
fn combine(
    op: Arithmetic,
    a: Expr,
    b: Expr,
    ty: Type,
    bounds: Option<(i128, i128)>,
) -> Result<Expr> {
    let fits = bounds.is_some_and(|(low, high)| ty.bounds.0 <= low && high <= ty.bounds.1);
    if !fits && !matches!(ty.data, DataType::Decimal128(..)) {
        // Integers that may overflow their type are left to the caller's checked function, which reports it as SQL
        // does.
        return Err(Error::unsupported("integers that may overflow"));
    }
    let ty = match bounds {
        Some(bounds) if fits => ty.within(bounds),
        _ => Type {
            kind: Kind::Wide,
            ..ty
        },
    };
    let (a, b) = match ty.kind {
        Kind::Int => (a, b),
        _ => (widen(a), widen(b)),
    };
    if a.ty.kind != ty.kind || b.ty.kind != ty.kind {
        return Err(Error::unsupported("wide operands of a narrow result"));
    }
    Ok(Expr {
        node: Node::Arithmetic(op, Box::new(a), Box::new(b)),
        ty,
    })
}

/// Converts to type `data`, if that cannot fail.
///
/// # Errors
/// [`Error::Unsupported`] if the conversion would need a check, or is not known.
pub fn cast(e: Expr, data: &DataType) -> Result<Expr> {
    if e.ty.data == *data {
        return Ok(e);
    }
    let refused = || Error::unsupported(format!("a cast from {} to {data}", e.ty.data));
    let ty = Type::of(data, e.ty.nullable).ok_or_else(refused)?;
    let whole = |d: &DataType| d.is_integer() || matches!(d, DataType::Decimal128(..));
    match (e.ty.kind, ty.kind) {
        (Kind::Text | Kind::Code, Kind::Text) if e.ty.may_meet(&ty) => {
            let mut e = e;
            e.ty.data = data.clone();
            Ok(e)
        }
        (Kind::Int | Kind::Wide, Kind::Int | Kind::Wide) if whole(&e.ty.data) && whole(data) => {
            let up = ty.scale() - e.ty.scale();
            if up < 0 {
                return Err(refused());
            }
            let factor = 10i128.checked_pow(up as u32).ok_or_else(refused)?;
            let low = e.ty.bounds.0.checked_mul(factor).ok_or_else(refused)?;
            let high = e.ty.bounds.1.checked_mul(factor).ok_or_else(refused)?;
            if low < ty.bounds.0 || high > ty.bounds.1 {
                return Err(refused());
            }
            let scale = ty.scale();
            let mut e = match up {
                0 => e,
                _ => scaled(e, factor, (low, high), scale)?,
            };
            e.ty.data = data.clone();
            Ok(e)
        }
        // All floats of 32 bits are some of 64.
        (Kind::Float, Kind::Float) if *data == DataType::Float64 => {
            let mut e = e;
            e.ty.data = data.clone();
            Ok(e)
        }
        (Kind::Int | Kind::Wide, Kind::Float)
            if whole(&e.ty.data) && *data == DataType::Float64 =>
        {
            let divisor = 10f64.powi(e.ty.scale().into());
            let node = Node::Float(Box::new(e), divisor);
            Ok(Expr { node, ty })
        }
        _ => Err(refused()),
    }
}

/// Years as people count them: before the year 1 comes the year -1.
pub(crate) fn without_zero(years: &mut [i64]) {
    for year in years {
        if *year <= 0 {
            *year -= 1;
        }
    }
}

/// The year of a date, as type `data`. Evaluating it fails for infinite dates.
///
/// # Errors
/// [`Error::Unsupported`] if `e` is not a date.
pub fn year(e: Expr, data: &DataType) -> Result<Expr> {
    let ty = Type::of(data, e.ty.nullable);
    match (ty, &e.ty.data) {
        (Some(ty), DataType::Date32) if ty.kind == Kind::Int => {
            let mut years = Vec::new();
            algebra::lift::year_of_day(&[e.ty.bounds.0 as i64, e.ty.bounds.1 as i64], &mut years);
            without_zero(&mut years);
            let ty = ty.within((years[0].into(), years[1].into()));
            Ok(Expr {
                node: Node::Year(Box::new(e)),
                ty,
            })
        }
        _ => Err(Error::unsupported("the year of such a value")),
    }
}
