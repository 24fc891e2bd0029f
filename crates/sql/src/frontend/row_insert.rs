//! Inserts of one row of constants and parameters, `insert into t (a, b) values ($1, 'x')`: what they bring. In a transaction
//! such rows are [gathered](crate::statements::gathered) without a plan.
//!
//! Any other insert, and any that says more, is none of these.

use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    Expr, Insert, ObjectName, Query, SetExpr, Statement as Sql, TableObject, UnaryOperator, Value,
};
use table::{Column, Definition};

use crate::frontend::constant::Constant;
use crate::frontend::expression::expression;
use crate::frontend::key_query::{KeyValue, date};
use crate::frontend::parse::{Statement, parse};
use crate::names::{column_name, written};

/// Most digits of a number of which a float has each.
const FLOAT_DIGITS: usize = 15;

/// The greatest whole number up to which each is a float, too.
const EXACT: u64 = 1 << 53;

/// What an insert of one row brings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowInsert {
    /// The table, as it is [written](crate::names::written).
    pub table: Arc<str>,
    /// The columns that it names, each once; none for those of the table, from the first on.
    columns: Vec<String>,
    values: Vec<RowValue>,
}

/// A value of the row as the statement says it.
#[derive(Clone, Debug, PartialEq)]
enum RowValue {
    Null,
    Boolean(bool),
    Whole(i64),
    Text(String),
    /// A number as it is written, with a sign or without, and with a point or without.
    Digits(String),
    /// The parameter in this place, from 0 on.
    Parameter(usize),
}

/// Parameters, as texts of these types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub types: &'a [DataType],
    pub texts: &'a [Option<&'a str>],
}

impl Given<'_> {
    pub(crate) const NONE: Given<'static> = Given {
        types: &[],
        texts: &[],
    };
}

/// A value of the row as its column has it.
#[derive(Clone, Debug)]
pub(crate) enum Cell<'a> {
    Null,
    Boolean(bool),
    /// For a column of whole numbers, in its range.
    Whole(i64),
    Float(f64),
    Text(&'a str),
    /// A decimal without its point, with as many digits behind it as the column has.
    Scaled(i128),
    /// A day, by its number from the beginning of 1970 on.
    Day(i32),
    /// An array of one, of the type of the column.
    One(ArrayRef),
}

impl RowInsert {
    /// What a statement brings, if it is such an insert.
    pub(crate) fn of_statement(statement: &Statement) -> Option<RowInsert> {
        match statement {
            Statement::Sql(sql) => RowInsert::of_sql(sql),
            _ => None,
        }
    }

    /// The same of a syntax tree that has been rewritten.
    pub(crate) fn of_sql(sql: &Sql) -> Option<RowInsert> {
        let Sql::Insert(insert) = sql else {
            return None;
        };
        let (Some(source), TableObject::TableName(table)) = (&insert.source, &insert.table) else {
            return None;
        };
        let SetExpr::Values(rows) = source.body.as_ref() else {
            return None;
        };
        let [row] = rows.rows.as_slice() else {
            return None;
        };
        let values = row.content.iter().map(RowValue::of);
        let values = values.collect::<Option<Vec<_>>>()?;
        let columns = insert.columns.iter().map(column);
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let twice = |at: usize| columns[..at].contains(&columns[at]);
        let as_many = columns.is_empty() || columns.len() == values.len();
        if !as_many || (0..columns.len()).any(twice) || Some(&bare(insert)?) != PLAIN.as_ref() {
            return None;
        }
        Some(RowInsert {
            table: written(table).ok()?.into(),
            columns,
            values,
        })
    }

    /// The types of the columns that parameters are for, with the place of each parameter.
    pub(crate) fn types(&self, definition: &Definition) -> Vec<(usize, DataType)> {
        let column = |at: usize| match self.columns.get(at) {
            Some(name) => definition.columns.iter().find(|own| own.name == *name),
            None if self.columns.is_empty() => definition.columns.get(at),
            None => None,
        };
        let values = self.values.iter().enumerate();
        let parameters = values.filter_map(|(at, value)| match value {
            RowValue::Parameter(parameter) => Some((*parameter, column(at)?.data_type.clone())),
            _ => None,
        });
        parameters.collect()
    }

    /// The row, a value for each column of the table; none if one would have to be converted or made.
    pub(crate) fn cells<'a>(
        &'a self,
        definition: &Definition,
        defaults: &'a Defaults,
        given: Given<'a>,
    ) -> Option<Vec<Cell<'a>>> {
        let own = &definition.columns;
        if self.columns.is_empty() {
            if self.values.len() > own.len() {
                return None;
            }
            let cell = |(at, column): (usize, &Column)| match self.values.get(at) {
                Some(value) => value.cell(given, column),
                None => defaults.cell(at, column),
            };
            return own.iter().enumerate().map(cell).collect();
        }
        let mut brought = 0;
        let cell = |(at, column): (usize, &Column)| match self
            .columns
            .iter()
            .position(|name| *name == column.name)
        {
            Some(given_at) => {
                brought += 1;
                self.values[given_at].cell(given, column)
            }
            None => defaults.cell(at, column),
        };
        let cells = own.iter().enumerate().map(cell);
        let cells = cells.collect::<Option<Vec<_>>>()?;
        // The table may have no such column.
        (brought == self.columns.len()).then_some(cells)
    }
}

/// What the columns of a table have that a row says nothing of, for each that has a constant.
#[derive(Debug)]
pub(crate) struct Defaults(Vec<Option<RowValue>>);

impl Defaults {
    pub(crate) fn of(definition: &Definition) -> Defaults {
        let default = |column: &Column| match &column.default {
            None => Some(RowValue::Null),
            Some(text) => RowValue::of(&expression(text).ok()?),
        };
        Defaults(definition.columns.iter().map(default).collect())
    }

    /// What the column in this place has; none if that is to be made.
    fn cell(&self, at: usize, column: &Column) -> Option<Cell<'_>> {
        self.0.get(at)?.as_ref()?.cell(Given::NONE, column)
    }
}

impl RowValue {
    /// The value that an expression is, if it is one that says its value, or a parameter.
    fn of(expr: &Expr) -> Option<RowValue> {
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
            Expr::Value(value) => match &value.value {
                Value::Number(text, false) if is_digits(text) => {
                    Some(RowValue::Digits(text.clone()))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The value as a column has it; none if it would have to be converted.
    fn cell<'a>(&'a self, given: Given<'a>, column: &Column) -> Option<Cell<'a>> {
        let own = &column.data_type;
        match self {
            RowValue::Null => Some(Cell::Null),
            RowValue::Boolean(value) => boolean(*value, own),
            RowValue::Whole(number) => whole(*number, own),
            RowValue::Text(text) => of_text(text, own),
            RowValue::Digits(text) => of_digits(text, own),
            RowValue::Parameter(at) => {
                parameter(given.types.get(*at)?, *given.texts.get(*at)?, own)
            }
        }
    }
}

/// A parameter of this type that has come as a text, for a column of type `own`; none if it is not plainly of its type.
fn parameter<'a>(given: &DataType, text: Option<&'a str>, own: &DataType) -> Option<Cell<'a>> {
    let Some(text) = text else {
        let fits = given == own || given.is_integer() && own.is_integer();
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
        DataType::Float64 => {
            let number = float(text)?;
            (*own == DataType::Float64).then_some(Cell::Float(number))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => of_text(text, own),
        DataType::Boolean => match text {
            "t" | "true" => boolean(true, own),
            "f" | "false" => boolean(false, own),
            _ => None,
        },
        DataType::Date32 => {
            let day = date(text)?;
            (*own == DataType::Date32).then_some(Cell::Day(day))
        }
        given if given.is_decimal() && is_digits(text) => of_digits(text, own),
        _ => None,
    }
}

fn boolean<'a>(value: bool, own: &DataType) -> Option<Cell<'a>> {
    (*own == DataType::Boolean).then_some(Cell::Boolean(value))
}

fn whole<'a>(number: i64, own: &DataType) -> Option<Cell<'a>> {
    match own {
        DataType::Float64 if number.unsigned_abs() <= EXACT => Some(Cell::Float(number as f64)),
        DataType::Decimal128(precision, scale) => {
            let ten = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            scaled(ten.checked_mul(number.into())?, *precision)
        }
        own => is_within(number, own).then_some(Cell::Whole(number)),
    }
}

/// Whether a column of whole numbers of this type has the number.
fn is_within(number: i64, own: &DataType) -> bool {
    match own {
        DataType::Int8 => i8::try_from(number).is_ok(),
        DataType::Int16 => i16::try_from(number).is_ok(),
        DataType::Int32 => i32::try_from(number).is_ok(),
        DataType::Int64 => true,
        _ => false,
    }
}

fn of_text<'a>(text: &'a str, own: &DataType) -> Option<Cell<'a>> {
    match own {
        DataType::Utf8View => Some(Cell::Text(text)),
        DataType::Date32 => date(text).map(Cell::Day),
        own => Constant::column(&[Constant::Text(text)], own).map(Cell::One),
    }
}

fn of_digits<'a>(text: &str, own: &DataType) -> Option<Cell<'a>> {
    match own {
        DataType::Float64 if text.len() <= FLOAT_DIGITS => text.parse().ok().map(Cell::Float),
        DataType::Decimal128(precision, scale) => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            // One with more digits is rounded.
            let more = usize::try_from(*scale).ok()?.checked_sub(fraction.len())?;
            let digits = format!("{whole}{fraction}{}", "0".repeat(more));
            scaled(digits.parse().ok()?, *precision)
        }
        _ => None,
    }
}

fn scaled<'a>(number: i128, precision: u8) -> Option<Cell<'a>> {
    let least_beyond = 10_u128.checked_pow(precision.into())?;
    (number.unsigned_abs() < least_beyond).then_some(Cell::Scaled(number))
}

/// Whether a number is written with digits alone, a point between some, and a minus before them.
fn is_digits(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    plain(whole) && plain(fraction)
}

/// A finite float that is written in digits, a point, an exponent and signs.
pub(crate) fn float(text: &str) -> Option<f64> {
    let plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    if !text.bytes().all(plain) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    // What is too large for a float, or too small, is an error.
    let is_zero = matches!(text, "0" | "0.0" | "-0" | "-0.0");
    (number.is_finite() && (number != 0.0 || is_zero)).then_some(number)
}

/// A column by its name alone.
fn column(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(column_name),
        _ => None,
    }
}

/// `insert into t (a) values (1)` without what differs.
static PLAIN: LazyLock<Option<Insert>> = LazyLock::new(|| {
    let parsed = parse("insert into t (a) values (1)").ok()?.pop()?;
    let Statement::Sql(statement) = parsed.statement else {
        return None;
    };
    let Sql::Insert(insert) = *statement else {
        return None;
    };
    bare(&insert)
});

/// An insert without its table, its columns and its rows.
fn bare(insert: &Insert) -> Option<Insert> {
    let mut insert = insert.clone();
    insert.table = TableObject::TableName(ObjectName(Vec::new()));
    insert.columns.clear();
    let Query { body, .. } = insert.source.as_deref_mut()?;
    match body.as_mut() {
        SetExpr::Values(values) => values.rows.clear(),
        _ => return None,
    }
    Some(insert)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<RowInsert> {
        let parsed = parse(text).unwrap().pop().unwrap();
        RowInsert::of_statement(&parsed.statement)
    }

    #[test]
    fn inserts_that_say_more_are_others() {
        let plain = of("insert into s.t (a, \"B\") values (-1, 'x')").unwrap();
        assert_eq!(plain.columns, ["a", "B"]);
        let values = [RowValue::Whole(-1), RowValue::Text("x".into())];
        assert_eq!(plain.values, values);
        assert!(of("insert into t values (null, true, 1.50, (-2.5), 'x')").is_some());
        for other in [
            "insert into t values (1), (2)",
            "insert into t values (1 + 1)",
            "insert into t values (default)",
            "insert into t default values",
            "insert into t select 1",
            "insert into t (a, a) values (1, 2)",
            "insert into t (a, b) values (1)",
            "insert into t (a) overriding system value values (1)",
            "insert into t values (1) returning *",
            "insert into t values (1) on conflict do nothing",
            "insert into t values (1) limit 1",
            "with w as (select 1) insert into t values (1)",
            "insert into t values (1e3)",
            "insert into t values (date '2020-01-01')",
            "update t set a = 1",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

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
            parameter(&given, text, &own).is_some()
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
        assert!(!is(Int64, Some("5"), Utf8View) && !is(Utf8View, Some("5"), Int64));
        assert!(is(Boolean, Some("t"), Boolean) && !is(Boolean, Some("yes"), Boolean));
        assert!(is(Utf8View, Some("2020-02-29"), Date32));
        assert!(!is(Date32, Some("2021-02-29"), Date32));
    }
}
