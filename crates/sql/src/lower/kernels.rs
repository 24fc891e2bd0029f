//! Lowering of functions that kernels compute for nearly all values: of moments, quotients by constants, and rounding.
//!
//! What a kernel takes is lowered once, whether there is a kernel for its values or not: expressions may be deep.

use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion_common::ScalarValue;
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{BinaryExpr, Expr as Sql, Operator};
use engine::{Arithmetic, Error, Expr, FloatFunction, Kind, Result, WholeFunction};

use crate::functions::convert::target;
use crate::functions::decimals::operators::QUOTIENT;
use crate::functions::temporal::kernels;
use crate::functions::temporal::local::Local;
use crate::functions::temporal::sums::DIFFERENCE;
use crate::functions::temporal::zones;
use crate::lower::call::failed;
use crate::lower::expr::Scope;
use crate::lower::floats::{float_function, rounded};
use crate::lower::lowering::{Lowering, unsupported};
use crate::optimize::checked::type_of;

/// All whole numbers that have an opposite.
const ALL: (i64, i64) = (-i64::MAX, i64::MAX);

impl Lowering<'_> {
    fn clocks(&self) -> Local {
        Local::of(self.planner.config_options())
    }

    /// The call `e` of a function, whose values are of type `data`, by a kernel; `None` if the function has none.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is none for its arguments.
    pub(super) fn kernel(
        &mut self,
        function: &ScalarFunction,
        e: &Sql,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Option<Expr>> {
        let clocks = self.clocks();
        let ty = |of: &Sql| type_of(of, scope.schema).map_err(failed);
        let (kernel, of) = match (function.func.name(), &function.args[..]) {
            ("date_trunc", [Sql::Literal(part, _), of]) => {
                (kernels::truncated(text(part), &ty(of)?, clocks), of)
            }
            ("date_bin", [Sql::Literal(length, _), of, origin @ ..]) => {
                (binned(length, origin), of)
            }
            ("date_part", [Sql::Literal(word, _), Sql::ScalarFunction(inner)])
                if inner.func.name() == DIFFERENCE && kernels::is_epoch(text(word)) =>
            {
                return self.seconds_between(&inner.args, data, scope).map(Some);
            }
            ("date_part", [Sql::Literal(word, _), of]) => {
                (kernels::field(text(word), &ty(of)?, data, clocks), of)
            }
            ("-", [late, early]) if *data == DataType::Int64 => {
                return self.days_between(late, early, scope).map(Some);
            }
            (name @ ("+" | "-"), [of, Sql::Literal(by, _)]) => {
                let kernel =
                    interval(by).and_then(|by| kernels::moved(by, name == "+", data, clocks));
                (kernel.filter(|_| ty(of).is_ok_and(|own| own == *data)), of)
            }
            ("+", [Sql::Literal(by, _), of]) => {
                let kernel = interval(by).and_then(|by| kernels::moved(by, true, data, clocks));
                (kernel.filter(|_| ty(of).is_ok_and(|own| own == *data)), of)
            }
            ("timezone", [Sql::Literal(zone, _), of]) => {
                let is_utc = zones::of_text(text(zone)).is_some_and(zones::Zone::is_utc);
                (Some(WholeFunction::Plus(0)).filter(|_| is_utc), of)
            }
            (_, [of]) if target(e).is_some() => (kernels::cast(&ty(of)?, data, clocks), of),
            (name, [of]) if float_function(name, data).is_some() => {
                return self.of_float(name, of, e, data, scope);
            }
            ("floor" | "trunc" | "round", [of]) => {
                return self.rounding(function.func.name(), of, data, scope);
            }
            (name @ ("least" | "greatest"), all) => {
                return self.extreme(name, all, data, scope);
            }
            ("width_bucket", [of, Sql::Literal(low, _), Sql::Literal(high, _), count]) => {
                let Some(bucket) = bucket(low, high, count) else {
                    return Ok(None);
                };
                let of = self.expr(of, scope)?;
                return engine::of_float(bucket, of, data, || self.call(e, scope)).map(Some);
            }
            _ => return Ok(None),
        };
        let (Some(kernel), Some(range)) = (kernel, kernels::range(&ty(of)?)) else {
            return Ok(None);
        };
        let of = self.expr(of, scope)?;
        engine::ranged(kernel, of, range, data, || self.call(e, scope)).map(Some)
    }

    /// The cast `e` of `of`, which is of type `from`, by a kernel; `None` if there is none for such types.
    pub(super) fn cast_by_kernel(
        &mut self,
        (of, from): (&Sql, &DataType),
        e: &Sql,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Option<Expr>> {
        if let Some(of) = rounded(of, data) {
            return self.whole(of, e, data, scope).map(Some);
        }
        let (kernel, range) = match (from, data) {
            (DataType::Decimal128(_, from), DataType::Decimal128(_, to)) if to < from => {
                let factor = i8::checked_sub(*from, *to).and_then(power);
                (factor.map(WholeFunction::Rounded), Some(ALL))
            }
            _ => (
                kernels::cast(from, data, self.clocks()),
                kernels::range(from),
            ),
        };
        let (Some(kernel), Some(range)) = (kernel, range) else {
            return Ok(None);
        };
        let of = self.expr(of, scope)?;
        engine::ranged(kernel, of, range, data, || self.call(e, scope)).map(Some)
    }

    /// The quotient or the rest `e` of a whole number that is divided by a constant; `None` of others.
    pub(super) fn divided(
        &mut self,
        binary: &BinaryExpr,
        e: &Sql,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Option<Expr>> {
        let Sql::Literal(by, _) = &*binary.right else {
            return Ok(None);
        };
        let kernel = match (binary.op, whole(by)) {
            (Operator::Divide, Some(by)) if by > 0 => WholeFunction::Quotient(by),
            (Operator::Modulo, Some(by)) if by > 0 => WholeFunction::Rest(by),
            _ => return Ok(None),
        };
        let of = type_of(&binary.left, scope.schema).map_err(failed)?;
        if !data.is_signed_integer() || of != *data {
            return Ok(None);
        }
        let of = self.expr(&binary.left, scope)?;
        engine::ranged(kernel, of, ALL, data, || self.call(e, scope)).map(Some)
    }

    /// A decimal without what is behind its point.
    fn rounding(
        &mut self,
        name: &str,
        of: &Sql,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Option<Expr>> {
        let none = || unsupported("other numbers to round");
        match (name, data) {
            ("floor" | "trunc" | "round", DataType::Decimal128(_, 0)) => {
                // Of a quotient that is found at once: the digits behind its point are not needed.
                let quotient = quotient(of, scope).filter(|_| name != "round");
                let (of, most) = match &quotient {
                    Some((of, by, places)) => (*of, Some((*by, *places))),
                    None => (of, None),
                };
                let of = self.expr(of, scope)?;
                let own = power(of.ty.scale());
                let by = match most {
                    Some((by, places)) => own
                        .and_then(|own| own.checked_mul(by))
                        .filter(|by| is_exact(&of, *by, places)),
                    None => own,
                };
                let Some(by) = by else {
                    return none().map(Some);
                };
                let kernel = match name {
                    "floor" => WholeFunction::Floor(by),
                    "trunc" => WholeFunction::Quotient(by),
                    _ => WholeFunction::Rounded(by),
                };
                engine::ranged(kernel, of, ALL, data, none).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The days from one date to another.
    fn days_between(&mut self, late: &Sql, early: &Sql, scope: Scope<'_>) -> Result<Expr> {
        let data = DataType::Int64;
        let late = self.counted(late, &DataType::Date32, &data, scope)?;
        let early = self.counted(early, &DataType::Date32, &data, scope)?;
        engine::arithmetic(Arithmetic::Sub, late, early, &data)
    }

    /// The seconds from one timestamp to another.
    fn seconds_between(&mut self, args: &[Sql], data: &DataType, scope: Scope<'_>) -> Result<Expr> {
        let [late, early] = args else {
            return unsupported("a difference of others than two");
        };
        let of = type_of(late, scope.schema).map_err(failed)?;
        let exact = DataType::Decimal128(22, 6);
        if !matches!(of, DataType::Timestamp(TimeUnit::Microsecond, _)) {
            return unsupported("timestamps of such a unit");
        }
        let late = self.counted(late, &of, &exact, scope)?;
        let early = self.counted(early, &of, &exact, scope)?;
        let seconds = engine::arithmetic(Arithmetic::Sub, late, early, &exact)?;
        engine::cast(seconds, data)
    }

    /// What dates or timestamps of the years 1 to 9999, all of type `from`, count, as type `data`.
    fn counted(
        &mut self,
        e: &Sql,
        from: &DataType,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Expr> {
        let own = type_of(e, scope.schema).map_err(failed)?;
        let mut e = self.expr(e, scope)?;
        let is_fit = kernels::range(from).is_some_and(|(low, high)| {
            let (least, most) = e.ty.bounds;
            e.ty.kind == Kind::Int && least >= low.into() && most <= high.into()
        });
        if own != *from || !is_fit {
            return Err(Error::Unsupported("moments that may be infinite".into()));
        }
        e.ty.data = data.clone();
        Ok(e)
    }
}

/// The dividend of a quotient of decimals by a positive whole number, that number, and the digits behind the point of the quotient.
fn quotient<'e>(e: &'e Sql, scope: Scope<'_>) -> Option<(&'e Sql, i64, i8)> {
    let Sql::ScalarFunction(call) = e else {
        return None;
    };
    let (QUOTIENT, [of, Sql::Literal(by, _)]) = (call.func.name(), &call.args[..]) else {
        return None;
    };
    let by = match by {
        ScalarValue::Decimal128(Some(by), _, 0) => i64::try_from(*by).ok()?,
        _ => return None,
    };
    match type_of(e, scope.schema).ok()? {
        DataType::Decimal128(_, places) | DataType::Decimal256(_, places) => {
            (by > 0).then_some((of, by, places))
        }
        _ => None,
    }
}

/// Whether the quotients of decimals without their points by `by`, which are rounded to so many places before, have the same whole
/// part: what is no whole number is further from one than half of the last place, and none has too many digits.
fn is_exact(of: &Expr, by: i64, places: i8) -> bool {
    /// Digits that each decimal has room for.
    const DIGITS: u32 = 37;
    let Ok(places) = u32::try_from(places) else {
        return false;
    };
    let Some(last) = 10i128.checked_pow(places) else {
        return false;
    };
    let most = of
        .ty
        .bounds
        .0
        .unsigned_abs()
        .max(of.ty.bounds.1.unsigned_abs());
    let whole = most / by.unsigned_abs() as u128 + 1;
    let room = 10u128.checked_pow(DIGITS.saturating_sub(places));
    last >= by.into() && room.is_some_and(|room| whole < room)
}

fn text(value: &ScalarValue) -> &str {
    value.try_as_str().flatten().unwrap_or_default()
}

fn interval(value: &ScalarValue) -> Option<IntervalMonthDayNano> {
    match value {
        ScalarValue::IntervalMonthDayNano(by) => *by,
        _ => None,
    }
}

fn whole(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int64(value) => *value,
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::Int16(value) => value.map(i64::from),
        _ => None,
    }
}

/// Ten to the power of so many digits.
fn power(digits: i8) -> Option<i64> {
    10i64.checked_pow(u32::try_from(digits).ok()?)
}

fn binned(length: &ScalarValue, origin: &[Sql]) -> Option<WholeFunction> {
    let origin = match origin {
        [] => 0,
        [Sql::Literal(ScalarValue::TimestampMicrosecond(Some(origin), _), _)] => *origin,
        _ => return None,
    };
    kernels::binned(interval(length)?, origin)
}

fn bucket(low: &ScalarValue, high: &ScalarValue, count: &Sql) -> Option<FloatFunction> {
    match (low, high, count) {
        (
            ScalarValue::Float64(Some(low)),
            ScalarValue::Float64(Some(high)),
            Sql::Literal(ScalarValue::Int32(Some(count)), _),
        ) => Some(FloatFunction::Bucket {
            low: *low,
            high: *high,
            count: *count,
        }),
        _ => None,
    }
}
