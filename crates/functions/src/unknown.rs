//! Constants in quotes, whose type is unknown until it is known what they stand beside, as in PostgreSQL: beside a date
//! they are dates, beside a number they are numbers.
//!
//! What stands beside an array, a struct, a uuid, an enum or JSON is looked after with those.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion_common::{DFSchema, Result};
use datafusion_expr::binary::type_union_resolution;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use table::NotFinite;

use crate::arguments::{accepted, is_bytea, is_text};
use crate::{decimals, number_types};

/// The text of a constant in quotes.
pub fn quoted(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// The types of values that stand together, with those of constants in quotes that the others give them; a value is its
/// type, and its text if it is such a constant. `None` if there is none whose type is unknown.
fn settled(values: &[(DataType, Option<&str>)]) -> Option<Vec<DataType>> {
    let known = values.iter().filter(|(ty, text)| {
        let unknown = text.is_some() && is_text(ty);
        !unknown && *ty != DataType::Null
    });
    let known: Vec<&DataType> = known.map(|(ty, _)| ty).collect();
    if known.len() == values.len() {
        return None;
    }
    let beside = together(&known)?;
    let types = values.iter().map(|(ty, text)| match text {
        Some(text) if is_text(ty) => of_text(text, &beside),
        _ => ty.clone(),
    });
    let types: Vec<DataType> = types.collect();
    let changed = types.iter().zip(values).any(|(own, (ty, _))| own != ty);
    changed.then_some(types)
}

/// The type that constants in quotes take beside values of these types.
fn together(known: &[&DataType]) -> Option<DataType> {
    let first = *known.first()?;
    if !known.iter().all(|ty| is_plain(ty)) {
        return None;
    }
    if known.iter().all(|ty| *ty == first) {
        return Some(first.clone());
    }
    if known.iter().all(|ty| ty.is_numeric()) {
        let known: Vec<DataType> = known.iter().map(|ty| (*ty).clone()).collect();
        return number_types::united(&known).or_else(|| type_union_resolution(&known));
    }
    // A date is its midnight beside a timestamp, and a timestamp without a zone an instant beside one with a zone.
    let stamps = known
        .iter()
        .filter(|ty| matches!(ty, DataType::Timestamp(..)));
    let zoned = |ty: &&&DataType| matches!(ty, DataType::Timestamp(_, Some(_)));
    let moments = known
        .iter()
        .all(|ty| matches!(ty, DataType::Date32 | DataType::Timestamp(..)));
    let found = stamps.clone().find(zoned).or(stamps.clone().next());
    found.filter(|_| moments).map(|ty| (*ty).clone())
}

/// Whether constants in quotes beside values of this type are read as such.
fn is_plain(ty: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Interval, Time32, Time64, Timestamp};
    ty.is_numeric()
        || is_bytea(ty)
        || matches!(
            ty,
            Boolean | Date32 | Date64 | Interval(_) | Time32(_) | Time64(_) | Timestamp(..)
        )
}

/// The type of the constant `text` beside values of a type.
fn of_text(text: &str, beside: &DataType) -> DataType {
    match beside {
        // The digits of one decimal say nothing of those of another.
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            if NotFinite::read(text).is_some() {
                let (precision, least) = decimals::DIGITS;
                return DataType::Decimal256(precision, (*scale).max(least));
            }
            match digits(text) {
                Some((precision @ ..=38, scale)) => DataType::Decimal128(precision, scale),
                Some((precision @ ..=76, scale)) => DataType::Decimal256(precision, scale),
                _ => DataType::Decimal128(38, (*scale).max(10)),
            }
        }
        // Whole seconds are those of a column, and not of what stands beside it.
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        beside => beside.clone(),
    }
}

/// How many digits a number has that is written without an exponent, all and behind the point.
fn digits(text: &str) -> Option<(u8, i8)> {
    let plain = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, behind) = plain.split_once('.').unwrap_or((plain, ""));
    let all = whole.len() + behind.len();
    let only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if all == 0 || !only(whole) || !only(behind) {
        return None;
    }
    // A number below one has a digit before the point in some places.
    let precision = u8::try_from(all.max(behind.len() + 1)).ok()?;
    Some((precision, i8::try_from(behind.len()).ok()?))
}

/// `expr` as one of type `to`, if it is a constant in quotes.
fn read(expr: Expr, to: &DataType) -> Expr {
    let Some(text) = quoted(&expr) else {
        return expr;
    };
    match (NotFinite::read(text), to) {
        (Some(own), DataType::Decimal256(_, scale)) => decimals::constant(own, *scale),
        _ => Expr::Cast(Cast::new(Box::new(expr), to.clone())),
    }
}

/// A constant in quotes in a column with values of a type. Beside others than numbers, dates and their kin it stays a text.
pub fn read_beside(text: Expr, beside: &DataType) -> Expr {
    let to = quoted(&text).map(|own| of_text(own, beside));
    match to {
        Some(to) if is_plain(beside) => read(text, &to),
        _ => text,
    }
}

/// A constant in quotes that is compared with values of a type, where the planner would take it for another: a decimal with more
/// digits than they have is not rounded.
pub fn compared(text: Expr, beside: &DataType) -> Expr {
    let more = |scale: i8| {
        let own = quoted(&text).and_then(digits);
        own.is_some_and(|(_, own)| own > scale)
    };
    let to = match beside {
        DataType::Boolean => Some(DataType::Boolean),
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) if more(*scale) => {
            quoted(&text).map(|own| of_text(own, beside))
        }
        _ => None,
    };
    match to {
        Some(to) => read(text, &to),
        None => text,
    }
}

/// Values that stand together, of which constants in quotes are read as what stands beside them. `None` if there are none to
/// be read.
pub fn typed(values: &[&Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    if !values.iter().any(|value| quoted(value).is_some()) {
        return None;
    }
    let types = values.iter().map(|value| {
        let ty = value.get_type(schema).ok()?;
        Some((ty, quoted(value)))
    });
    let types: Option<Vec<(DataType, Option<&str>)>> = types.collect();
    let wanted = settled(&types?)?;
    let typed = values.iter().zip(&wanted);
    Some(
        typed
            .map(|(value, to)| read((*value).clone(), to))
            .collect(),
    )
}

/// The function `inner`, whose arguments have one type, for constants in quotes among them.
pub(crate) fn beside(inner: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Beside {
        inner,
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

/// The arguments of a call as such a function takes them; `None` if they are so already, or it is another function.
///
/// # Errors
/// If they have no type together.
pub fn arguments(
    function: &ScalarUDF,
    args: &[Expr],
    schema: &DFSchema,
) -> Result<Option<Vec<Expr>>> {
    let Some(own) = function.inner().downcast_ref::<Beside>() else {
        return Ok(None);
    };
    let types = |args: &[Expr]| -> Option<Vec<DataType>> {
        args.iter().map(|arg| arg.get_type(schema).ok()).collect()
    };
    if !types(args).is_some_and(|types| is_mixed(&types)) {
        return Ok(None);
    }
    let values: Vec<&Expr> = args.iter().collect();
    let args = typed(&values, schema).unwrap_or_else(|| args.to_vec());
    let Some(given) = types(&args).filter(|types| is_mixed(types)) else {
        return Ok(Some(args));
    };
    let wanted = accepted(&own.inner, &given)?;
    let cast = args.into_iter().zip(given.iter().zip(wanted));
    let cast = cast.map(|(arg, (from, to))| {
        if *from == to {
            arg
        } else {
            Expr::Cast(Cast::new(Box::new(arg), to))
        }
    });
    Ok(Some(cast.collect()))
}

/// Whether texts stand among values of types beside which a constant in quotes is no text.
fn is_mixed(types: &[DataType]) -> bool {
    let text = |ty: &DataType| is_text(ty) && *ty != DataType::Null;
    types.iter().any(text) && types.iter().any(is_plain)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Beside {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Beside {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        // Which texts are constants is looked at where there are expressions, and not only types.
        if is_mixed(types) {
            return Ok(types.to_vec());
        }
        accepted(&self.inner, types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args
            .arg_fields
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        if !is_mixed(&types) {
            return self.inner.return_field_from_args(args);
        }
        let texts = args
            .scalar_arguments
            .iter()
            .map(|value| value.and_then(|value| value.try_as_str().flatten()));
        let values: Vec<_> = types.iter().cloned().zip(texts).collect();
        let types = settled(&values).unwrap_or(types);
        let types = accepted(&self.inner, &types)?;
        let fields = args.arg_fields.iter().zip(types);
        let fields: Vec<FieldRef> = fields
            .map(|(field, ty)| Arc::new(Field::new(field.name(), ty, field.is_nullable())))
            .collect();
        self.inner.return_field_from_args(ReturnFieldArgs {
            arg_fields: &fields,
            scalar_arguments: args.scalar_arguments,
        })
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_take_the_type_of_what_stands_beside_them() {
        let text = |text| (DataType::Utf8, Some(text));
        let of = |ty: DataType| (ty, None);
        let day = DataType::Date32;
        let stamp = DataType::Timestamp(TimeUnit::Second, None);
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let price = DataType::Decimal128(10, 2);
        for (values, wanted) in [
            (vec![of(day.clone()), text("x")], Some(day.clone())),
            (
                vec![of(DataType::Null), of(day.clone()), text("x")],
                Some(day.clone()),
            ),
            (vec![of(day.clone()), of(stamp), text("x")], Some(micros)),
            (
                vec![of(price.clone()), text("1.255")],
                Some(DataType::Decimal128(4, 3)),
            ),
            (
                vec![of(price.clone()), text(".5")],
                Some(DataType::Decimal128(2, 1)),
            ),
            (
                vec![of(price.clone()), text("nan")],
                Some(DataType::Decimal256(76, 10)),
            ),
            (
                vec![of(price), text("1e2")],
                Some(DataType::Decimal128(38, 10)),
            ),
            (
                vec![of(DataType::Int32), of(DataType::Int64), text("1")],
                Some(DataType::Int64),
            ),
            (vec![of(day.clone()), of(DataType::Int32), text("1")], None),
            (vec![of(DataType::Utf8), of(day.clone()), text("1")], None),
            (vec![text("a"), of(DataType::Null)], None),
            (vec![of(day.clone()), of(day)], None),
        ] {
            let found = settled(&values).and_then(|mut types| types.pop());
            assert_eq!(found, wanted, "{values:?}");
        }
    }
}
