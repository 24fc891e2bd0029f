//! Functions that are called as types or stand for operators of JSON; and those of regular expressions that have several
//! forms.

use functions::lists::names;
use functions::regexps;
use sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr, TimezoneInfo, Value};

use crate::call;

/// The functions that are rewritten here by their names.
pub(super) const NAMES: [&str; 18] = [
    "bool",
    "bpchar",
    "float4",
    "float8",
    "int2",
    "int4",
    "int8",
    "json",
    "jsonb",
    "jsonb_contained",
    "jsonb_contains",
    "jsonb_delete",
    "jsonb_exists",
    "jsonb_exists_all",
    "jsonb_exists_any",
    "oid",
    "text",
    "timestamptz",
];

/// Whether a call is one of those that are rewritten here.
pub(super) fn is_one(name: &str, args: &[Expr]) -> bool {
    if of_pattern(name).is_some() {
        return true;
    }
    match args.len() {
        1 => type_called(name).or_else(|| parsed_type(name)).is_some(),
        2 => of_json(name).is_some(),
        _ => false,
    }
}

/// What such a call stands for.
pub(super) fn call(name: &str, mut args: Vec<Expr>) -> Option<Expr> {
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    if let Some(own) = of_pattern(name) {
        return Some(call::call(own, args));
    }
    if let Some(data_type) = type_called(name).or_else(|| parsed_type(name)) {
        return Some(cast(args.pop()?, data_type));
    }
    let op = of_json(name)?;
    let (right, left) = (args.pop()?, args.pop()?);
    let right = match op {
        BinaryOperator::AtArrow | BinaryOperator::ArrowAt => cast(right, DataType::JSONB),
        _ => right,
    };
    Some(Expr::Nested(Box::new(Expr::BinaryOp {
        left: nested(cast(left, DataType::JSONB)),
        op,
        right: nested(right),
    })))
}

/// `substring(text from 'pattern')`, and `substring(text from 'pattern' for 'c')`, which is that of `similar`.
pub(super) fn by_pattern(text: &Expr, from: &Expr, end: Option<&Expr>) -> Option<Expr> {
    let kind = |expr: &Expr| match expr {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(_)
            | Value::EscapedStringLiteral(_)
            | Value::DollarQuotedString(_) => Some(true),
            Value::Null => Some(false),
            _ => None,
        },
        _ => None,
    };
    let args = |rest: &[&Expr]| {
        let all = std::iter::once(text).chain(rest.iter().copied());
        all.cloned().collect::<Vec<Expr>>()
    };
    match (kind(from)?, end) {
        (true, None) => Some(call::call(regexps::BY_PATTERN, args(&[from]))),
        (is_pattern, Some(end)) => {
            let escape = kind(end)?;
            (is_pattern || escape).then(|| call::call(regexps::SIMILAR, args(&[from, end])))
        }
        _ => None,
    }
}

/// `cast(expr as data_type)`.
pub(super) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// The function of PostgreSQL's regular expressions that one of the planner's stands for.
fn of_pattern(name: &str) -> Option<&'static str> {
    Some(match name {
        "regexp_like" => regexps::IS_MATCH,
        "regexp_count" => regexps::COUNT,
        "regexp_match" => names::FIRST_MATCH,
        "regexp_replace" => regexps::REPLACE,
        _ => return None,
    })
}

/// The type that a function casts to which is called as it.
pub(super) fn type_called(name: &str) -> Option<DataType> {
    Some(match name {
        "int2" => DataType::SmallInt(None),
        "int4" => DataType::Integer(None),
        "int8" => DataType::BigInt(None),
        "float4" => DataType::Real,
        "float8" => DataType::DoublePrecision,
        "bool" => DataType::Boolean,
        _ => return None,
    })
}

/// The same of types that the parser knows by these names.
fn parsed_type(name: &str) -> Option<DataType> {
    Some(match name {
        "bpchar" | "text" => DataType::Text,
        "json" => DataType::JSON,
        "jsonb" => DataType::JSONB,
        "oid" => DataType::BigInt(None),
        "timestamptz" => DataType::Timestamp(None, TimezoneInfo::Tz),
        _ => return None,
    })
}

/// The operator of JSON that a function stands for.
fn of_json(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "jsonb_contains" => BinaryOperator::AtArrow,
        "jsonb_contained" => BinaryOperator::ArrowAt,
        "jsonb_exists" => BinaryOperator::Question,
        "jsonb_exists_any" => BinaryOperator::QuestionPipe,
        "jsonb_exists_all" => BinaryOperator::QuestionAnd,
        "jsonb_delete" => BinaryOperator::Minus,
        _ => return None,
    })
}
