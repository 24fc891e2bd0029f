//! Functions of numbers that float by kernels, their casts to whole numbers, and the least and greatest of numbers.

use arrow::datatypes::DataType;
use datafusion_expr::Expr as Sql;
use engine::{Expr, Extreme, FloatFunction, Kind, Result, Type};

use crate::functions::casts::HALF_EVEN;
use crate::lower::expr::Scope;
use crate::lower::lowering::{Lowering, unsupported};

/// The kernel of a function of that name with results of type `data`, if they are doubles.
pub(super) fn float_function(name: &str, data: &DataType) -> Option<FloatFunction> {
    if *data != DataType::Float64 {
        return None;
    }
    Some(match name {
        "floor" => FloatFunction::Floor,
        "ceil" => FloatFunction::Ceil,
        "trunc" => FloatFunction::Trunc,
        "round" => FloatFunction::Round,
        "abs" => FloatFunction::Abs,
        "sqrt" => FloatFunction::Sqrt,
        _ => return None,
    })
}

/// The number that floats of which `e` is the rounded one, where that becomes a whole number of type `data`.
pub(super) fn rounded<'e>(e: &'e Sql, data: &DataType) -> Option<&'e Sql> {
    let Sql::ScalarFunction(call) = e else {
        return None;
    };
    match (call.func.name(), &call.args[..]) {
        (HALF_EVEN, [of]) if data.is_signed_integer() => Some(of),
        _ => None,
    }
}

impl Lowering<'_> {
    /// The call `e` of a function of a double.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] if it is one of other values.
    pub(super) fn of_float(
        &mut self,
        name: &str,
        of: &Sql,
        e: &Sql,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Option<Expr>> {
        let Some(function) = float_function(name, data) else {
            return Ok(None);
        };
        let of = self.expr(of, scope)?;
        engine::of_float(function, of, data, || self.call(e, scope)).map(Some)
    }

    /// The cast `e` of `of`, a number that floats, to the whole numbers `data`.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] if it is one of other values.
    pub(super) fn whole(
        &mut self,
        of: &Sql,
        e: &Sql,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Expr> {
        let bounds = Type::of(data, false).map(|ty| ty.bounds);
        let ends = bounds.and_then(|(low, high)| {
            let (low, high) = (i64::try_from(low).ok()?, i64::try_from(high).ok()?);
            Some(FloatFunction::Whole { low, high })
        });
        let Some(function) = ends else {
            return unsupported("a cast to such numbers");
        };
        let of = self.expr(of, scope)?;
        engine::of_float(function, of, data, || self.call(e, scope))
    }

    /// The least or the greatest of numbers, and of moments, which are all of type `data`.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] for other values.
    pub(super) fn extreme(
        &mut self,
        name: &str,
        all: &[Sql],
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Option<Expr>> {
        let which = match name {
            "least" => Extreme::Least,
            _ => Extreme::Greatest,
        };
        let kind = Type::of(data, false).map(|ty| ty.kind);
        let ([first, others @ ..], Some(Kind::Int | Kind::Float)) = (all, kind) else {
            return Ok(None);
        };
        let mut found = self.expr(first, scope)?;
        for other in others {
            let other = self.expr(other, scope)?;
            found = engine::extreme(which, found, other, data)?;
        }
        Ok(Some(found))
    }
}
