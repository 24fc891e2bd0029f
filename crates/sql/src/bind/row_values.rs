//! The values of [a row that is inserted](crate::bind::row_insert): as the statement says them, and as the columns have
//! them.

use arrow::datatypes::DataType;
use sqlparser::ast::{
    CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName,
    TypedString, UnaryOperator, Value,
};
use syntax::key_query::{KeyValue, date};
use table::Column;

pub(crate) use crate::bind::cells::{Cell, RowValue, scaled, whole};
use crate::bind::cells::{float, is_digits, is_within, of_digits, real};
use crate::bind::planners::built_in;
use crate::bind::read_values::{is_same, of_bytes, of_items, of_text};
use crate::functions::lists::names::MAKE;
use crate::functions::temporal::local::Local;

/// Parameters, as texts of these types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub types: &'a [DataType],
    pub texts: &'a [Option<&'a str>],
    /// How dates and times are read.
    pub local: Local,
}

impl Given<'_> {
    pub(crate) const NONE: Given<'static> = Given {
        types: &[],
        texts: &[],
        local: Local::PLAIN,
    };
}

impl RowValue {
    /// The value that an expression is, if it is one that says its value, or a parameter.
    pub(crate) fn of(expr: &Expr) -> Option<RowValue> {
        if let Some(plain) = KeyValue::of(expr) {
            return Some(match plain {
                KeyValue::Null => RowValue::Null,
                KeyValue::Boolean(value) => RowValue::Boolean(value),
                KeyValue::Whole(number) => RowValue::Whole(number),
                KeyValue::Text(text) => RowValue::Text(text),
                KeyValue::Parameter(at) => RowValue::Parameter(at),
                KeyValue::Day(_) => return None,
            });
        }
        match expr {
            Expr::Nested(inner) => RowValue::of(inner),
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match RowValue::of(expr)? {
                RowValue::Digits(text) if !text.starts_with('-') => {
                    Some(RowValue::Digits(format!("-{text}")))
                }
                _ => None,
            },
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => {
                let value = Box::new(RowValue::of(expr)?);
                Some(RowValue::Typed(value, built_in(data_type)?))
            }
            Expr::TypedString(TypedString {
                data_type,
                value,
                uses_odbc_syntax: false,
            }) => match &value.value {
                Value::SingleQuotedString(text) => {
                    let value = Box::new(RowValue::Text(text.clone()));
                    Some(RowValue::Typed(value, built_in(data_type)?))
                }
                _ => None,
            },
            Expr::Function(function) => {
                let items = items(function)?.map(|item| RowValue::of(item?));
                items.collect::<Option<Vec<_>>>().map(RowValue::Array)
            }
            Expr::Value(value) => match &value.value {
                Value::Number(text, false) => Some(RowValue::Digits(text.clone())),
                Value::HexStringLiteral(digits) => bytes(digits).map(RowValue::Bytes),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value as a new row has it in a column; none if it would have to be converted.
    pub(super) fn cell<'a>(&'a self, given: Given<'a>, column: &Column) -> Option<Cell<'a>> {
        // Such a column takes none, but from rows that insist.
        let refuses = column.identity().is_some_and(|(_, always)| always);
        if refuses {
            return None;
        }
        self.value(given, &column.data_type)
    }

    /// The value as a column of type `own` has it; none if it would have to be converted.
    pub(crate) fn value<'a>(&'a self, given: Given<'a>, own: &DataType) -> Option<Cell<'a>> {
        match self {
            RowValue::Null => Some(Cell::Null),
            RowValue::Boolean(value) => boolean(*value, own),
            RowValue::Whole(number) => whole(*number, own),
            RowValue::Text(text) => of_text(text, own, given.local),
            RowValue::Digits(text) => of_digits(text, own),
            RowValue::Bytes(bytes) => of_bytes(bytes, own),
            RowValue::Array(items) => of_items(items, own, given.local),
            RowValue::Typed(value, of) => typed((value, of), given, own),
            RowValue::Parameter(at) => {
                let text = *given.texts.get(*at)?;
                parameter(given.types.get(*at)?, text, own, given.local)
            }
        }
    }

    /// The whole number that it is, of its type if it has one.
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            RowValue::Whole(number) => Some(*number),
            RowValue::Typed(value, of) if of.is_integer() => {
                value.number().filter(|number| is_within(*number, of))
            }
            _ => None,
        }
    }
}

/// The items of `array[...]`; none of another function, and of items that are none by themselves.
fn items(function: &Function) -> Option<impl Iterator<Item = Option<&Expr>>> {
    let Function {
        name: ObjectName(name),
        args: FunctionArguments::List(list),
        filter: None,
        over: None,
        ..
    } = function
    else {
        return None;
    };
    let [part] = name.as_slice() else {
        return None;
    };
    (part.as_ident()?.value == MAKE).then(|| {
        list.args.iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(item)) => Some(item),
            _ => None,
        })
    })
}

/// The bytes of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let [high, low] = pair else {
            return None;
        };
        let digit = |digit: u8| char::from(digit).to_digit(16);
        u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
    };
    pairs.map(byte).collect()
}

/// A value that is cast to a type `of` its own, for a column of type `own`.
fn typed<'a>(
    (value, of): (&'a RowValue, &DataType),
    given: Given<'a>,
    own: &DataType,
) -> Option<Cell<'a>> {
    if is_same(of, own) {
        return value.value(given, own);
    }
    match value {
        RowValue::Null => (of.is_integer() && own.is_integer()).then_some(Cell::Null),
        RowValue::Whole(number) if of.is_integer() && is_within(*number, of) => whole(*number, own),
        RowValue::Text(text) if *of == DataType::Float64 && *own == DataType::Float32 => {
            real(float(text)?)
        }
        _ => None,
    }
}

/// A parameter of this type that has come as a text, for a column of type `own`; none if it is not plainly of its type.
fn parameter<'a>(
    given: &DataType,
    text: Option<&'a str>,
    own: &DataType,
    local: Local,
) -> Option<Cell<'a>> {
    let Some(text) = text else {
        let fits = is_same(given, own) || given.is_integer() && own.is_integer();
        return fits.then_some(Cell::Null);
    };
    match given {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            let number: i64 = text.parse().ok()?;
            // One that is not of its type is an error, whatever it is for.
            is_within(number, given)
                .then(|| whole(number, own))
                .flatten()
        }
        DataType::Float64 if *own != DataType::Float64 => {
            let number = float(text).filter(|_| *own == DataType::Float32);
            real(number?)
        }
        DataType::Float64 => match float(text) {
            Some(number) => Some(Cell::Float(number)),
            None => of_text(text, own, local),
        },
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => of_text(text, own, local),
        DataType::Boolean => match text {
            "t" | "true" => boolean(true, own),
            "f" | "false" => boolean(false, own),
            _ => None,
        },
        DataType::Date32 if *own == DataType::Date32 => match date(text) {
            Some(day) => Some(Cell::Day(day)),
            None => of_text(text, own, local),
        },
        given if given.is_decimal() => of_digits(text, own).filter(|_| is_digits(text)),
        // Such a one is read in another way than its text: as digits or as octal numbers.
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            of_bytes(&bytes(text.strip_prefix("\\x")?)?, own)
        }
        given if is_same(given, own) => of_text(text, own, local),
        _ => None,
    }
}

fn boolean<'a>(value: bool, own: &DataType) -> Option<Cell<'a>> {
    (*own == DataType::Boolean).then_some(Cell::Boolean(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_they_say() {
        for (text, wanted) in [
            ("1.5", Some(1.5)),
            ("-0.0", Some(-0.0)),
            ("1e+20", Some(1e20)),
            ("1e400", None),
            ("1e-400", None),
            ("NaN", None),
            ("inf", None),
            (" 1", None),
            ("", None),
        ] {
            assert_eq!(float(text), wanted, "{text}");
        }
        let cell = |text: &str| match of_digits(text, &DataType::Decimal128(4, 2)) {
            Some(Cell::Scaled(number)) => Some(number),
            _ => None,
        };
        assert_eq!(cell("1.5"), Some(150));
        assert_eq!(cell("-99.99"), Some(-9999));
        assert_eq!(cell("7"), Some(700));
        assert_eq!(cell("-0.05"), Some(-5));
        assert_eq!(cell("100"), None);
        assert_eq!(cell("0.125"), None);
        for other in ["1.", ".5", "+5", "--5", "", "-", "1e3", "NaN", "1_0"] {
            assert!(!is_digits(other), "{other}");
        }
        assert!(is_digits("-1.50") && is_digits("007"));
    }

    #[test]
    fn parameters_are_of_their_types() {
        let is = |given: DataType, text: Option<&str>, own: DataType| {
            parameter(&given, text, &own, Local::PLAIN).is_some()
        };
        use DataType::{Boolean, Date32, Float64, Int16, Int64, Utf8View};
        assert!(is(Int16, Some("5"), Int64));
        assert!(is(Int64, Some("5"), Int16));
        assert!(!is(Int64, Some("40000"), Int16));
        assert!(!is(Int16, Some("40000"), Int64));
        assert!(!is(Int64, Some(" 5"), Int64));
        assert!(is(Int64, None, Int16) && !is(Utf8View, None, Int16));
        assert!(is(Int64, Some("5"), Float64) && !is(Float64, Some("5"), Int64));
        assert!(!is(Int64, Some("9007199254740993"), Float64));
        assert!(!is(Int64, Some("5"), Utf8View) && is(Utf8View, Some("5"), Int64));
        assert!(is(Boolean, Some("t"), Boolean) && !is(Boolean, Some("yes"), Boolean));
        assert!(is(Utf8View, Some("2020-02-29"), Date32));
        assert!(!is(Date32, Some("2021-02-29"), Date32));
        use DataType::{BinaryView, Float32};
        assert!(is(Float64, Some("0.1"), Float32) && !is(Float64, Some("1e300"), Float32));
        assert!(is(BinaryView, Some("\\x00ff"), BinaryView));
        assert!(
            !is(BinaryView, Some("\\x00f"), BinaryView) && !is(BinaryView, Some("a"), BinaryView)
        );
    }
}
