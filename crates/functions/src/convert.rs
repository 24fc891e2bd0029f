//! Casts from and to arrays, structs, uuids, enums, times with a zone and JSON; from texts to dates, times and intervals; and
//! of items of arrays and fields of structs.

use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, StringViewArray, StructArray, new_null_array,
};
use arrow::compute::{CastOptions, cast, cast_with_options, concat};
use arrow::datatypes::{DataType, Field, Fields, Float64Type, UInt16Type};
use datafusion_common::{ExprSchema, Result, ScalarValue, exec_err, plan_err};
use datafusion_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use messages::types::type_name;
use table::{JsonKind, cast_moments, enum_type, is_enum, json_kind, map_parts, timetz_type};

use crate::arguments::{is_text, strings};
use crate::decimals;
use crate::items;
use crate::json::cut::Kind;
use crate::json::read::read as read_json;
use crate::json::value::texts;
use crate::lists::read::read;
use crate::lists::types::{
    base, dimensions, fields, is_list, is_map, is_special, is_struct, is_unnamed, item, lists,
    plain,
};
use crate::lists::write::write;
use crate::maps;
use crate::structs::values as field_values;
use crate::temporal::local::Local;
use crate::temporal::read::{from_texts, reads};
use crate::temporal::{instants, shift};

/// The cast of `value`, of type `from`, to the type `to`, if one of both is special. A value that cannot be cast is an
/// error if `strict`, otherwise NULL.
///
/// # Errors
/// If there is no such cast.
pub fn conversion(
    value: Expr,
    from: &DataType,
    to: &DataType,
    strict: bool,
) -> Result<Option<Expr>> {
    if !(is_special(from) || is_special(to)) || from == to || *from == DataType::Null {
        return Ok(None);
    }
    let possible = match (from, to) {
        (from, to) if is_list(from) && is_list(to) => {
            dimensions(from) == dimensions(to) && fits(base(from), base(to))
        }
        (from, to) if is_struct(from) && is_struct(to) => fits(from, to),
        (from, to) if is_map(from) && is_map(to) => fits(from, to),
        (from, to) if is_text(from) || is_text(to) => true,
        (from, to) if *from == timetz_type() || *to == timetz_type() => shift::casts(from, to),
        (from, to) => match (json_kind(from), json_kind(to)) {
            (Some(_), Some(_)) => true,
            (Some(JsonKind::Normal), None) => to.is_numeric() || *to == DataType::Boolean,
            _ => false,
        },
    };
    if !possible {
        return plan_err!("cannot cast type {} to {}", type_name(from), type_name(to));
    }
    if strict
        && is_enum(to)
        && let Expr::Literal(constant, _) = &value
    {
        // Once and for all, so that the error of a wrong label comes before any row.
        let found = convert(&constant.to_array()?, to)?;
        let found = ScalarValue::try_from_array(&found, 0)?;
        return Ok(Some(Expr::Literal(found, None)));
    }
    Ok(Some(read_as(value, to, strict)))
}

/// The text of `value`, of any type, as PostgreSQL writes it; `to` is the type of the text.
pub fn written(value: Expr, to: &DataType) -> Expr {
    read_as(value, to, true)
}

/// The value of the type `to` that `value` stands for, such as a text; one that stands for none is an error if `strict`,
/// otherwise NULL.
pub fn read_as(value: Expr, to: &DataType, strict: bool) -> Expr {
    let function = ScalarUDF::from(Convert {
        to: to.clone(),
        strict,
        signature: Signature::any(1, Volatility::Immutable),
    });
    Arc::new(function).call(vec![value])
}

/// The type that `expr` reads a value as, if it is such a cast.
pub fn target(expr: &Expr) -> Option<&DataType> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let own = call.func.inner().downcast_ref::<Convert>()?;
    Some(&own.to)
}

/// Whether structs of one type may be ones of the other: each field of the other is one of theirs, and may become it. Other
/// types are looked at when there are values.
fn fits(from: &DataType, to: &DataType) -> bool {
    if let (Some((key, value)), Some((own_key, own_value))) = (map_parts(from), map_parts(to)) {
        return fits(key, own_key) && fits(value, own_value);
    }
    match (fields(from), fields(to)) {
        (Some(own), Some(wanted)) => pairs(own, wanted).is_some_and(|places| {
            let mut types = places.iter().zip(wanted);
            types.all(|(place, field)| fits(own[*place].data_type(), field.data_type()))
        }),
        (None, None) => {
            is_text(from)
                || is_text(to)
                || is_list(from) == is_list(to) && is_map(from) == is_map(to)
        }
        _ => is_text(from) || is_text(to) || *from == DataType::Null,
    }
}

/// Which fields of structs become those that are wanted: the ones of the same names, or of the same places where the names
/// are only numbers. `None` if they are others.
fn pairs(own: &Fields, wanted: &Fields) -> Option<Vec<usize>> {
    if own.len() != wanted.len() {
        return None;
    }
    if is_unnamed(own) || is_unnamed(wanted) {
        return Some((0..own.len()).collect());
    }
    let place = |field: &Arc<Field>| own.iter().position(|other| other.name() == field.name());
    wanted.iter().map(place).collect()
}

/// `expr` cast to the type `to`, where the planner does not know that there is such a cast, too.
///
/// # Errors
/// If there is none.
pub fn cast_to(expr: Expr, to: &DataType, schema: &dyn ExprSchema) -> Result<Expr> {
    let from = expr.get_type(schema)?;
    if from != *to && (is_special(&from) || is_special(to)) {
        return Ok(Expr::Cast(Cast::new(Box::new(expr), to.clone())));
    }
    expr.cast_to(to, schema)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Convert {
    to: DataType,
    strict: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Convert {
    fn name(&self) -> &str {
        "convert"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [arg] = &args.args[..] else {
            return plan_err!("a cast takes one value");
        };
        let constant = matches!(arg, ColumnarValue::Scalar(_));
        let values = arg.to_array(if constant { 1 } else { args.number_rows })?;
        let found = Local::of(&args.config_options).within(|| {
            if self.strict {
                self.all(&values)
            } else {
                self.each(&values)
            }
        })?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &found, 0,
            )?));
        }
        Ok(ColumnarValue::Array(found))
    }
}

impl Convert {
    fn all(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if is_text(values.data_type()) && *values.data_type() != DataType::Null && reads(&self.to) {
            return from_texts(&strings(values)?, &self.to, Local::now());
        }
        convert(values, &self.to)
    }

    /// The values, NULL where one cannot be cast: one by one if there is such.
    fn each(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if let Ok(all) = self.all(values) {
            return Ok(all);
        }
        let one = |row| {
            self.all(&values.slice(row, 1))
                .unwrap_or_else(|_| new_null_array(&self.to, 1))
        };
        let all: Vec<ArrayRef> = (0..values.len()).map(one).collect();
        if all.is_empty() {
            return Ok(new_null_array(&self.to, 0));
        }
        let all: Vec<&dyn Array> = all.iter().map(|array| array.as_ref()).collect();
        Ok(concat(&all)?)
    }
}

/// Values of an enum whose labels are at the places that `value` gives, whole numbers of 16 bits.
pub fn at_places(value: Expr, to: &DataType) -> Expr {
    written(value, to)
}

/// Values as values of another type, with PostgreSQL's meaning.
///
/// # Errors
/// For a value that is none of the other type.
pub fn convert(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let found = converted(values, to)?;
    if found.data_type() == to {
        Ok(found)
    } else {
        Ok(cast(&found, to)?)
    }
}

fn converted(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = values.data_type();
    if from == to {
        return Ok(values.clone());
    }
    if *from == DataType::Null {
        return Ok(new_null_array(to, values.len()));
    }
    if *from == DataType::UInt16
        && let Some(own) = enum_type(to)
    {
        return Ok(own.values(values.as_primitive::<UInt16Type>().clone()));
    }
    if is_text(from) {
        return of_texts(values, to);
    }
    if is_text(to) {
        return to_texts(values);
    }
    if let Some(found) = shift::cast_zones(values, to)? {
        return Ok(found);
    }
    if let Some(found) = instants::cast_across(values, to)? {
        return Ok(found);
    }
    if let (Some(_), Some(wanted)) = (item(from), item(to)) {
        let values = cast(values, &plain(from))?;
        let own = lists(&values);
        let items = convert(own.values(), &plain(wanted))?;
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        return Ok(Arc::new(ListArray::try_new(
            field,
            own.offsets().clone(),
            items,
            own.nulls().cloned(),
        )?));
    }
    if let (Some(_), Some((key, value))) = (map_parts(from), map_parts(to)) {
        let own = values.as_map();
        let (keys, all) = (convert(own.keys(), key)?, convert(own.values(), value)?);
        let (offsets, nulls) = (own.offsets().clone(), own.nulls().cloned());
        return maps::of(to, offsets, keys, all, nulls);
    }
    if let (Some(own), Some(wanted)) = (fields(from), fields(to)) {
        let Some(places) = pairs(own, wanted) else {
            return exec_err!("cannot cast type {} to {}", type_name(from), type_name(to));
        };
        let columns = places.into_iter().zip(wanted);
        let columns =
            columns.map(|(at, field)| convert(&field_values(values, at)?, field.data_type()));
        return Ok(Arc::new(StructArray::try_new(
            wanted.clone(),
            columns.collect::<Result<_>>()?,
            values.nulls().cloned(),
        )?));
    }
    if decimals::casts::concerns(from, to) {
        return decimals::casts::converted(values, to, true);
    }
    match (json_kind(from), json_kind(to)) {
        (Some(_), Some(kind)) => return read_json(&texts(values), kind),
        (Some(_), None) => return from_json(values, to),
        _ => {}
    }
    let exact = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let rounded = rounded(values, to, &exact)?;
    Ok(cast_moments(&rounded, to, &exact)?)
}

/// Values of any type from texts.
fn of_texts(texts: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if is_list(to) || is_struct(to) {
        return read(&strings(texts)?, &plain(to));
    }
    if is_map(to) {
        return maps::read(&strings(texts)?, to);
    }
    items::from_texts(texts, to)
}

/// Numbers that become whole ones, rounded as PostgreSQL does; others as they are.
fn rounded(values: &ArrayRef, to: &DataType, exact: &CastOptions<'_>) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Float32 | DataType::Float64 if to.is_integer() => {
            let doubles = cast(values, &DataType::Float64)?;
            let doubles = doubles.as_primitive::<Float64Type>();
            let rounded: arrow::array::Float64Array = doubles.unary(f64::round_ties_even);
            Arc::new(rounded)
        }
        from if to.is_integer() => match whole(from) {
            Some(whole) => cast_with_options(values, &whole, exact)?,
            None => values.clone(),
        },
        _ => values.clone(),
    })
}

/// The type of whole numbers to which decimals of type `from` are rounded; `None` of types without places behind the point.
pub fn whole(from: &DataType) -> Option<DataType> {
    // One more digit: 9.5 becomes 10.
    let digits = |precision: &u8, scale: &i8, most: u8| {
        (i16::from(*precision) - i16::from(*scale) + 1).clamp(1, most.into()) as u8
    };
    match from {
        DataType::Decimal128(precision, scale) if *scale > 0 => {
            Some(DataType::Decimal128(digits(precision, scale, 38), 0))
        }
        DataType::Decimal256(precision, scale) if *scale > 0 => {
            Some(DataType::Decimal256(digits(precision, scale, 76), 0))
        }
        _ => None,
    }
}

/// Values as texts, as PostgreSQL writes them.
///
/// # Errors
/// Those of writing them.
pub fn to_texts(values: &ArrayRef) -> Result<ArrayRef> {
    let from = values.data_type();
    if is_list(from) || is_struct(from) || is_map(from) {
        return write(values);
    }
    if is_text(from) {
        return Ok(cast(values, &DataType::Utf8View)?);
    }
    items::to_texts(values)
}

/// Numbers and booleans from JSON.
fn from_json(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let texts = texts(values);
    let mut found = Vec::with_capacity(texts.len());
    for text in &texts {
        found.push(match text {
            None => None,
            Some(text) => {
                let kind = Kind::of(text);
                let fits = match to {
                    DataType::Boolean => matches!(kind, Kind::Boolean),
                    _ => matches!(kind, Kind::Number),
                };
                if !fits {
                    return exec_err!(
                        "cannot cast jsonb {} to type {}",
                        kind.name(),
                        type_name(to)
                    );
                }
                Some(text)
            }
        });
    }
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter(found));
    if to.is_integer() {
        // By a decimal, which rounds.
        let decimals = decimals::casts::converted(&texts, &DataType::Decimal128(38, 10), true)?;
        return convert(&decimals, to);
    }
    items::from_texts(&texts, to)
}
