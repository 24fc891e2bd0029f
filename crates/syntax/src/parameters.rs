//! Statements whose parameters come later, as texts: what clients of a server prepare and bind.

use std::collections::HashMap;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion_sql::parser::Statement as Extended;
use functions::decimals::DIGITS;
use messages::types::{exact_name, type_name};
use messages::{Error, Result};
use sqlparser::ast::{
    CastKind, DataType as SqlType, Expr, LimitClause, Query, Statement as Sql, UnaryOperator,
    Value, Visitor,
};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use table::{NotFinite, is_enum, timetz_type, uuid_type};

use crate::depth;
use crate::dialect::DIALECT;
use crate::key_query::KeyQuery;
use crate::parse::{Parsed, Statement, bound, parse, syntax};
use crate::prepared::{Prepared, number};
use crate::rewritten::rewritten;
use crate::walk::Walk;
use crate::{distinct, rewrite};

/// A statement that has been read.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are few at a time, and each is moved once"
)]
pub enum Readied {
    /// One without parameters.
    Whole(Parsed),
    /// One that waits for its parameters, and how deep its tree may be.
    Waiting(Prepared, usize),
}

/// The one statement of `text`, whose parameters come later; none if there is none.
///
/// # Errors
/// If there are several; those of [`parse`].
pub fn readied(text: &str) -> Result<Option<Readied>> {
    depth::check_length(text)?;
    let tokens = Tokenizer::new(&DIALECT, text)
        .tokenize_with_location()
        .map_err(|e| Error::from(ParserError::from(e)))?;
    let parameters = tokens
        .iter()
        .any(|token| matches!(token.token, Token::Placeholder(_)));
    if !parameters {
        let mut statements = parse(text)?;
        return match (statements.pop(), statements.is_empty()) {
            (parsed, true) => Ok(parsed.map(Readied::Whole)),
            _ => Err(Error::Syntax {
                message: "a prepared statement is one statement".into(),
                position: None,
            }),
        };
    }
    let filled = |tokens: &&[TokenWithSpan]| {
        let mut tokens = tokens.iter();
        tokens.any(|t| !matches!(t.token, Token::Whitespace(_)))
    };
    let mut statements = tokens.split(|token| token.token == Token::SemiColon);
    let mut statements = statements.by_ref().filter(filled);
    let (Some(tokens), None) = (statements.next(), statements.next()) else {
        return Err(Error::Syntax {
            message: "a prepared statement is one statement".into(),
            position: None,
        });
    };
    let depth = depth::check(tokens)?;
    let parsed = depth::with_room(depth, || {
        match rewritten(tokens).map_err(Error::from).and_then(syntax)? {
            Extended::Statement(mut sql) => {
                distinct::associate(&mut *sql);
                let prepared = Prepared::new(sql, Vec::new())?;
                bound(prepared.with_nulls()?)?;
                Ok(Readied::Waiting(prepared, depth))
            }
            _ => Err(Error::unsupported(
                "only a query, insert, update or delete takes parameters",
            )),
        }
    });
    parsed
        .map(Some)
        .map_err(|e: Error| e.at(rewrite::end(tokens)))
}

/// What a statement itself says about the type of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// `$1::type`.
    Cast(SqlType),
    /// `limit $1`.
    Count,
}

impl Readied {
    /// How many parameters it has.
    pub fn parameters(&self) -> usize {
        match self {
            Readied::Whole(_) => 0,
            Readied::Waiting(prepared, _) => prepared.parameters(),
        }
    }

    /// What the statement asks for, if it is a query for the row of one key.
    pub fn key_query(&self) -> Option<KeyQuery> {
        self.known(KeyQuery::of_sql)
    }

    /// What the statement is `of` its syntax tree.
    pub fn known<T>(&self, of: impl FnOnce(&Sql) -> Option<T>) -> Option<T> {
        match self {
            Readied::Whole(Parsed {
                statement: Statement::Sql(sql),
                ..
            }) => of(sql),
            Readied::Whole(_) => None,
            Readied::Waiting(prepared, _) => {
                let mut statement = prepared.statement().clone();
                rewrite::statement(&mut statement).ok()?;
                of(&statement)
            }
        }
    }

    /// What the statement says about the types of its parameters, by their places from 0 on.
    pub fn hints(&self) -> HashMap<usize, Hint> {
        let mut hints = Hints::default();
        if let Readied::Waiting(prepared, _) = self {
            let _ = prepared.statement().walk(&mut hints);
        }
        hints.0
    }

    /// The statement with `values`, texts of these types, in the places of its parameters.
    ///
    /// # Errors
    /// If there are more of them or fewer, or one is not of its type.
    pub fn bind(&self, types: &[DataType], values: &[Option<&str>]) -> Result<Parsed> {
        let (prepared, depth) = match self {
            Readied::Whole(parsed) if values.is_empty() => return Ok(parsed.clone()),
            Readied::Whole(_) => {
                return Err(Error::coded(
                    "08P01",
                    format!(
                        "{} parameters were given for a statement that has none",
                        values.len()
                    ),
                ));
            }
            Readied::Waiting(prepared, depth) => (prepared, *depth),
        };
        let text = DataType::Utf8View;
        let typed = values.iter().enumerate();
        let arguments = typed
            .map(|(at, value)| argument(types.get(at).unwrap_or(&text), *value))
            .collect::<Result<Vec<Expr>>>()?;
        Ok(Parsed {
            statement: bound(prepared.bind("", &arguments)?)?,
            depth,
        })
    }

    /// A query with its parameters in their places, each cast to its type.
    ///
    /// # Errors
    /// If it has none, or a type has no name.
    pub fn with_parameters(&self, types: &[DataType]) -> Result<Box<Sql>> {
        let Readied::Waiting(prepared, _) = self else {
            return Err(Error::coded("08P01", "a statement without parameters"));
        };
        let typed = |(at, data_type): (usize, &DataType)| {
            let own = Value::Placeholder(format!("${}", at + 1));
            cast(Expr::Value(own.with_empty_span()), data_type)
        };
        let arguments = types.iter().enumerate().map(typed);
        let mut query = prepared.with_types(arguments.collect::<Result<_>>()?)?;
        // What it is without values was checked when it was read.
        rewrite::statement(&mut query)?;
        Ok(query)
    }

    /// What it is, whatever its parameters are.
    pub fn shape(&self, types: &[DataType]) -> Result<Statement> {
        Ok(self.bind(types, &vec![None; self.parameters()])?.statement)
    }
}

#[derive(Default)]
struct Hints(HashMap<usize, Hint>);

impl Hints {
    fn put(&mut self, expr: &Expr, hint: Hint) {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
            && let Some(number) = number(name)
        {
            self.0.entry(number - 1).or_insert(hint);
        }
    }
}

impl Visitor for Hints {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Cast {
            expr, data_type, ..
        } = expr
        {
            // A table is named by a text, or told by its number.
            let of_relation = matches!(data_type, SqlType::Regclass)
                || data_type.to_string().to_lowercase() == "pg_catalog.regclass";
            let hint = if of_relation {
                SqlType::Text
            } else {
                data_type.clone()
            };
            self.put(expr, Hint::Cast(hint));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                let offset = offset.as_ref().map(|offset| &offset.value);
                for expr in limit.iter().chain(offset) {
                    self.put(expr, Hint::Count);
                }
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.put(offset, Hint::Count);
                self.put(limit, Hint::Count);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }
}

/// The constant that a text of a type stands for.
fn argument(data_type: &DataType, value: Option<&str>) -> Result<Expr> {
    let wrong = |text: &str| {
        Error::coded(
            "22P02",
            format!(
                "invalid input syntax for type {}: \"{text}\"",
                type_name(data_type)
            ),
        )
    };
    let literal = |value: Value| Expr::Value(value.with_empty_span());
    let Some(text) = value else {
        return match data_type {
            DataType::Null => Ok(literal(Value::Null)),
            // It takes the type of what it stands beside, whose name may mean another type where it is read.
            own if is_enum(own) => Ok(literal(Value::Null)),
            _ => cast(literal(Value::Null), data_type),
        };
    };
    if data_type.is_integer() {
        let number: i128 = text.trim().parse().map_err(|_| wrong(text))?;
        let number = signed(number < 0, number.unsigned_abs().to_string());
        return match data_type {
            DataType::Int64 => Ok(number),
            _ => cast(number, data_type),
        };
    }
    match data_type {
        // In Arrow they are bytes.
        ty if *ty == uuid_type() || *ty == timetz_type() => {
            cast(literal(Value::SingleQuotedString(text.into())), ty)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
            Ok(literal(Value::SingleQuotedString(text.into())))
        }
        own if is_enum(own) => Ok(literal(Value::SingleQuotedString(text.into()))),
        DataType::Boolean => match text.trim().to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Ok(literal(Value::Boolean(true))),
            "f" | "false" | "n" | "no" | "off" | "0" => Ok(literal(Value::Boolean(false))),
            _ => Err(wrong(text)),
        },
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..)
            if NotFinite::read(text).is_some() =>
        {
            let (precision, scale) = DIGITS;
            let wide = DataType::Decimal256(precision, scale);
            cast(literal(Value::SingleQuotedString(text.into())), &wide)
        }
        ty if ty.is_decimal() => decimal(text.trim()).ok_or_else(|| wrong(text)),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => {
            let hex = hex_of(text).ok_or_else(|| wrong(text))?;
            Ok(literal(Value::HexStringLiteral(hex)))
        }
        _ => cast(literal(Value::SingleQuotedString(text.into())), data_type),
    }
}

/// A number as it is written: its digits decide on its type.
fn decimal(text: &str) -> Option<Expr> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let numeric = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !numeric(whole) || !numeric(fraction) {
        return None;
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    // A point makes it a decimal, also where it has no fraction.
    let digits = format!(
        "{whole}.{}",
        if fraction.is_empty() { "0" } else { fraction }
    );
    Some(signed(text.starts_with('-'), digits))
}

fn signed(negative: bool, digits: String) -> Expr {
    let number = Expr::Value(Value::Number(digits, false).with_empty_span());
    if negative {
        Expr::Nested(Box::new(Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: Box::new(number),
        }))
    } else {
        number
    }
}

/// The digits of a `bytea` as PostgreSQL writes them: `\x0aff`, or text with `\\` and `\012`.
fn hex_of(text: &str) -> Option<String> {
    if let Some(digits) = text.strip_prefix("\\x") {
        let whole = digits.len().is_multiple_of(2);
        return (whole && digits.bytes().all(|b| b.is_ascii_hexdigit())).then(|| digits.into());
    }
    let mut bytes = text.bytes();
    let mut hex = String::new();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                first => {
                    let digits = [first, bytes.next()?, bytes.next()?];
                    let digits = std::str::from_utf8(&digits).ok()?;
                    u8::from_str_radix(digits, 8).ok()?
                }
            },
            byte => byte,
        };
        hex.push_str(&format!("{byte:02x}"));
    }
    Some(hex)
}

fn cast(expr: Expr, data_type: &DataType) -> Result<Expr> {
    let name = exact_name(data_type);
    let data_type = Parser::new(&DIALECT)
        .try_with_sql(&name)
        .and_then(|mut parser| parser.parse_data_type())
        .map_err(|_| Error::unsupported(format!("parameters of type {name} are not supported")))?;
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_say_what_types_their_parameters_have() {
        let read = readied("select $1::regclass, $2::pg_catalog.regclass").unwrap();
        let hints = read.unwrap().hints();
        assert_eq!(hints[&0], Hint::Cast(SqlType::Text));
        assert_eq!(hints[&1], Hint::Cast(SqlType::Text));
        let read = readied("select $2::date, $1 from t where a = $3 limit $1 offset $4").unwrap();
        let read = read.unwrap();
        assert_eq!(read.parameters(), 4);
        let hints = read.hints();
        assert_eq!(hints[&0], Hint::Count);
        assert_eq!(hints[&1], Hint::Cast(SqlType::Date));
        assert_eq!(hints[&3], Hint::Count);
        assert!(!hints.contains_key(&2));
    }

    #[test]
    fn texts_become_constants_of_their_types() {
        let shown = |data_type: DataType, text: &str| {
            argument(&data_type, Some(text)).map(|expr| expr.to_string())
        };
        let cases = [
            (DataType::Int64, "-5", "(-5)"),
            (DataType::Int16, "5", "CAST(5 AS SMALLINT)"),
            (DataType::Decimal128(38, 10), "-.50", "(-0.50)"),
            (DataType::Decimal128(38, 10), "7", "7.0"),
            (
                DataType::Decimal128(38, 10),
                "NaN",
                "CAST('NaN' AS DECIMAL(76,10))",
            ),
            (DataType::Utf8View, "it's", "'it''s'"),
            (DataType::Boolean, "t", "true"),
            (DataType::Date32, "2020-02-29", "CAST('2020-02-29' AS DATE)"),
            (DataType::Binary, "\\x0aFF", "X'0aFF'"),
            (DataType::Binary, "a\\\\\\001", "X'615c01'"),
            (uuid_type(), "a0ee", "CAST('a0ee' AS UUID)"),
            (
                timetz_type(),
                "10:00+01",
                "CAST('10:00+01' AS TIME WITH TIME ZONE)",
            ),
        ];
        for (data_type, text, wanted) in cases {
            assert_eq!(shown(data_type, text).unwrap(), wanted);
        }
        for (data_type, text) in [
            (DataType::Int64, "5 or 1=1"),
            (DataType::Decimal128(38, 10), "1.2.3"),
            (DataType::Decimal128(38, 10), "NaNs"),
            (DataType::Boolean, "maybe"),
            (DataType::Binary, "\\x0"),
        ] {
            assert!(shown(data_type, text).is_err(), "{text}");
        }
        assert_eq!(
            argument(&DataType::Date32, None).unwrap().to_string(),
            "CAST(NULL AS DATE)"
        );
    }

    #[test]
    fn as_many_values_as_parameters() {
        let read = readied("select $1 + 1").unwrap().unwrap();
        let types = [DataType::Int64];
        assert!(read.bind(&types, &[Some("1")]).is_ok());
        assert!(read.bind(&types, &[]).is_err());
        assert!(read.bind(&types, &[Some("1"), None]).is_err());
        let whole = readied("select 1").unwrap().unwrap();
        assert!(whole.bind(&[], &[None]).is_err());
        assert!(readied(" -- nothing").unwrap().is_none());
        assert!(readied("select 1; select 2").is_err());
        assert!(readied("explain select $1").is_err());
    }
}
