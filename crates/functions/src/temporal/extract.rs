//! `extract(field from value)` and `date_part('field', value)`, of all fields and types.
//!
//! Years, months, days, hours and their kin of dates and timestamps are DataFusion's own, which the engine and the optimiser
//! know. `extract` has PostgreSQL's decimals where there are fractions, `date_part` doubles.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, Int32Type, Int64Type, IntervalUnit,
};
use datafusion_common::{Result, ScalarValue, exec_err, plan_err};
use datafusion_expr::preimage::PreimageResult;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use messages::Error;
use table::{Infinities, Infinity, finite_part, timetz_type};

use crate::arguments::{MICROS, is_text, nanoseconds};
use crate::temporal::components::{Part, own, part_of};
use crate::temporal::instants::cast_across;
use crate::temporal::local::Local;

/// The name of both: the engine knows it.
const NAME: &str = "date_part";

/// `date_part`, beside DataFusion's own.
pub(crate) fn date_part() -> Arc<ScalarUDF> {
    function(false)
}

static EXTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(true));

/// `extract` with doubles, which may be infinite.
static ENDLESS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(false));

/// The call of `extract` with a field and a value. Of a constant that is infinite it has doubles, too.
pub fn extract(args: Vec<Expr>) -> Expr {
    let endless = matches!(&args[..], [_, Expr::Cast(cast)] if is_infinite(&cast.expr));
    let function = if endless { &ENDLESS } else { &EXTRACT };
    function.call(args)
}

/// Whether a constant in quotes says that it is infinite.
fn is_infinite(text: &Expr) -> bool {
    let Expr::Literal(value, _) = text else {
        return false;
    };
    let text = value.try_as_str().flatten().unwrap_or_default();
    let text = text.trim();
    let name = text.strip_prefix('-').unwrap_or(text);
    name.trim().eq_ignore_ascii_case("infinity")
}

fn function(exact: bool) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Extract {
        exact,
        inner: datafusion_functions::datetime::date_part(),
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extract {
    /// Whether fractions are decimals.
    exact: bool,
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

fn literal(value: Option<&ScalarValue>) -> Option<&str> {
    value.and_then(|value| value.try_as_str().flatten())
}

impl ScalarUDFImpl for Extract {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [field, of] = types else {
            return plan_err!("{NAME} takes a field and a date, a time or an interval");
        };
        let of = match of {
            DataType::Date64 => DataType::Date32,
            DataType::Interval(_) | DataType::Duration(_) => {
                DataType::Interval(IntervalUnit::MonthDayNano)
            }
            of if is_text(of) => MICROS,
            DataType::Date32
            | DataType::Timestamp(_, _)
            | DataType::Time32(_)
            | DataType::Time64(_) => of.clone(),
            of if *of == timetz_type() => of.clone(),
            _ => return plan_err!("{NAME} takes a field and a date, a time or an interval"),
        };
        if !is_text(field) {
            return plan_err!("{NAME} takes the name of a field, such as 'year'");
        }
        Ok(vec![DataType::Utf8, of])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        exec_err!("the type of {NAME} depends on the field")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let word = args.scalar_arguments.first().copied().flatten();
        let ty = args.arg_fields[1].data_type();
        let part = part_of(literal(word), ty)?;
        // An infinite date has no day.
        let ends = matches!(ty, DataType::Date32 | DataType::Timestamp(_, _));
        let nullable = args.arg_fields[1].is_nullable() || ends && !part.is_endless(ty);
        let found = part.result(ty, self.exact);
        Ok(Arc::new(Field::new(NAME, found, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(word), of] = &args.args[..] else {
            return exec_err!("the field is a constant, such as 'year'");
        };
        let ty = of.data_type();
        let part = part_of(literal(Some(word)), &ty)?;
        let constant = matches!(of, ColumnarValue::Scalar(_));
        let mut of = of.to_array(if constant { 1 } else { args.number_rows })?;
        let mut infinities = None;
        if let Some((finite, ends)) = finite_part(&of) {
            (of, infinities) = (finite, Some(ends));
        }
        let wanted = part.result(&ty, self.exact);
        let clocks = Local::of(&args.config_options);
        if let (DataType::Timestamp(unit, Some(_)), false) = (&ty, clocks.is_utc()) {
            let plain = DataType::Timestamp(*unit, None);
            if part.is_of_zone() {
                let east = clocks.within(|| zones_of(part, &of))?;
                return returned(east, constant);
            }
            if part != Part::Epoch
                && let Some(shown) = clocks.within(|| cast_across(&of, &plain))?
            {
                of = shown;
            }
        }
        let found = if part.is_inner(&ty) {
            self.inner(part, &of, args)?
        } else {
            own(part, &of, &wanted)?
        };
        let found = if *found.data_type() == wanted {
            found
        } else {
            cast(&found, &wanted)?
        };
        let found = match infinities {
            Some(infinities) if part.is_endless(&ty) => with_infinite(&found, &infinities)?,
            _ => found,
        };
        returned(found, constant)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        // Years before the year 1 are counted otherwise there.
        let year = match literal.as_literal() {
            Some(ScalarValue::Int32(Some(year))) => *year,
            // Of `date_part`.
            Some(ScalarValue::Float64(Some(year))) if f64::from(*year as i32) == *year => {
                *year as i32
            }
            _ => return Ok(PreimageResult::None),
        };
        if year > 0 && (Local::of(info.config_options()).is_utc() || !is_instant(args, info)) {
            return self.inner.preimage(args, &lit(year), info);
        }
        Ok(PreimageResult::None)
    }
}

/// Fields of finite values with infinite ones where these were.
///
/// # Errors
/// If numbers of their type are not infinite.
fn with_infinite(fields: &ArrayRef, infinities: &Infinities) -> Result<ArrayRef> {
    if *fields.data_type() == DataType::Float64 {
        let fields = fields.as_primitive::<Float64Type>().iter();
        let all = fields.zip(infinities.iter());
        let all = all.map(|(field, infinity)| infinity.map(Infinity::float).or(field));
        return Ok(Arc::new(all.collect::<Float64Array>()));
    }
    if !infinities.any() {
        return Ok(Arc::clone(fields));
    }
    Err(Error::coded(
        "22003",
        "a field of an infinite date or timestamp is infinite, which numbers of its type are not here: `date_part` has doubles, which are, and `isfinite` tells infinite values",
    )
    .into())
}

/// A constant as one.
fn returned(found: ArrayRef, constant: bool) -> Result<ColumnarValue> {
    if constant {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
            &found, 0,
        )?));
    }
    Ok(ColumnarValue::Array(found))
}

/// Whether what a field is taken of may be an instant, whose fields depend on the zone of the session.
fn is_instant(args: &[Expr], info: &SimplifyContext) -> bool {
    let of = args.get(1).map(|of| info.get_data_type(of));
    !matches!(
        of,
        Some(Ok(DataType::Timestamp(_, None) | DataType::Date32))
    )
}

/// How far clocks of the session are from UTC at instants, whole or a part of it.
fn zones_of(part: Part, of: &ArrayRef) -> Result<ArrayRef> {
    let zone = Local::now().zone;
    let DataType::Timestamp(unit, _) = of.data_type() else {
        return exec_err!("instants have a zone");
    };
    let second = 1_000_000_000 / nanoseconds(*unit);
    let counts = cast(of, &DataType::Int64)?;
    let found: Int32Array = counts.as_primitive::<Int64Type>().unary(|count| {
        let east = zone.at_instant(count.div_euclid(second)).unwrap_or(0);
        (match part {
            Part::ZoneHour => east / 3_600,
            Part::ZoneMinute => east / 60 % 60,
            _ => east,
        }) as i32
    });
    Ok(Arc::new(found))
}

impl Extract {
    /// What DataFusion's own makes of it.
    fn inner(&self, part: Part, of: &ArrayRef, args: ScalarFunctionArgs) -> Result<ArrayRef> {
        let word = ScalarValue::Utf8(Some(part.word().to_string()));
        let found = self.inner.invoke_with_args(ScalarFunctionArgs {
            args: vec![
                ColumnarValue::Scalar(word),
                ColumnarValue::Array(Arc::clone(of)),
            ],
            number_rows: of.len(),
            return_field: Arc::new(Field::new(NAME, DataType::Int32, true)),
            ..args
        })?;
        let found = found.to_array(of.len())?;
        if part != Part::Year {
            return Ok(found);
        }
        let years = found.as_primitive::<Int32Type>();
        if years.iter().flatten().all(|year| year > 0) {
            return Ok(found);
        }
        let years: Int32Array = years.unary(|year| if year > 0 { year } else { year - 1 });
        Ok(Arc::new(years))
    }
}
