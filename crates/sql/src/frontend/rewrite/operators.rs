//! Functions that are called as types or stand for operators of JSON; and those of regular expressions that have several
//! forms.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, UnaryOperator, Value,
};

use crate::frontend::call;
use crate::frontend::rewrite::special;
use crate::functions::lists::names;
use crate::functions::regexps;
use crate::functions::regular::is_beyond;

/// The functions that are rewritten here by their names.
pub(super) const NAMES: [&str; 12] = [
    "bool",
    "float4",
    "float8",
    "int2",
    "int4",
    "int8",
    "jsonb_contained",
    "jsonb_contains",
    "jsonb_delete",
    "jsonb_exists",
    "jsonb_exists_all",
    "jsonb_exists_any",
];

/// Whether a call is one of those that are rewritten here.
pub(super) fn is_one(name: &str, args: &[Expr]) -> bool {
    if beyond(name).is_some() && args.get(1).is_some_and(is_pattern_beyond) {
        return true;
    }
    match args.len() {
        1 => type_called(name).is_some(),
        2 => of_json(name).is_some(),
        4 => name == "regexp_replace" && (is_number(&args[3]) || odd_options(&args[3]).is_some()),
        5 | 6 => name == "regexp_replace",
        _ => false,
    }
}

/// What such a call stands for.
pub(super) fn call(name: &str, mut args: Vec<Expr>) -> Option<Expr> {
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    if name == "regexp_replace" {
        let number = |number: &str| Expr::value(Value::Number(number.into(), false));
        let options = match &args[..] {
            [_, _, _] => Some(String::new()),
            [_, _, _, options] if !is_number(options) => written(options),
            _ => None,
        };
        if let Some(options) = options {
            let nth = if options.contains('g') { "0" } else { "1" };
            let others = special::text(&options.replace('g', ""));
            args.truncate(3);
            args.extend([number("1"), number(nth), others]);
        }
        return Some(call::call(regexps::REPLACE, args));
    }
    if let Some(own) = beyond(name) {
        return Some(call::call(own, args));
    }
    if let Some(data_type) = type_called(name) {
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

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

/// A text that is written out.
fn written(text: &Expr) -> Option<String> {
    let Expr::Value(value) = text else {
        return None;
    };
    match &value.value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text.clone()),
        Value::DollarQuotedString(text) => Some(text.value.clone()),
        _ => None,
    }
}

/// Options of a regular expression, written out, of which the planner's function does not have all.
fn odd_options(options: &Expr) -> Option<String> {
    written(options).filter(|text| text.chars().any(|option| !"gi".contains(option)))
}

/// Whether a pattern, written out, is one that the planner's functions do not take.
fn is_pattern_beyond(pattern: &Expr) -> bool {
    written(pattern).is_some_and(|pattern| is_beyond(&pattern))
}

/// The function that one becomes with such a pattern.
fn beyond(name: &str) -> Option<&'static str> {
    Some(match name {
        "regexp_like" => regexps::IS_MATCH,
        "regexp_count" => regexps::COUNT,
        "regexp_match" => names::FIRST_MATCH,
        "regexp_replace" => regexps::REPLACE,
        _ => return None,
    })
}

/// `text ~ 'pattern'` and its kin, with such a pattern.
pub(super) fn matched(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    let (alike, negated) = match op {
        BinaryOperator::PGRegexMatch => (false, false),
        BinaryOperator::PGRegexIMatch => (true, false),
        BinaryOperator::PGRegexNotMatch => (false, true),
        BinaryOperator::PGRegexNotIMatch => (true, true),
        _ => return None,
    };
    if !is_pattern_beyond(right) {
        return None;
    }
    let options = special::text(if alike { "i" } else { "" });
    let found = call::call(
        regexps::IS_MATCH,
        vec![left.clone(), right.clone(), options],
    );
    Some(if negated {
        Expr::Nested(Box::new(Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(found),
        }))
    } else {
        found
    })
}

/// The type that a function casts to which is called as it.
fn type_called(name: &str) -> Option<DataType> {
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
