//! PostgreSQL's expressions that the parser does not know: `a ^@ b`, `a # b`, `a isnull`, `a between symmetric b and c`,
//! `trim(from a)`, `|/ a`, `||/ a`, `@ a`, `~ a`.

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, TrimWhereField, UnaryOperator, Value,
};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::call::plain_call;

/// The word that comes as the `place`-th from here, in lower case, if it is one without quotes.
fn word(parser: &Parser<'_>, place: usize) -> String {
    match &parser.peek_nth_token_ref(place).token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// An operator that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Infix {
    StartsWith,
    Xor,
    IsNull,
    NotNull,
    /// Whether `not` stands before it, and `symmetric` behind it.
    Between {
        not: bool,
        symmetric: bool,
    },
}

/// The operator that comes next, if it is one of these.
pub(super) fn infix(parser: &Parser<'_>) -> Option<Infix> {
    match parser.peek_token_ref().token {
        Token::CaretAt => return Some(Infix::StartsWith),
        Token::Sharp => return Some(Infix::Xor),
        _ => {}
    }
    let not = word(parser, 0) == "not";
    let at = usize::from(not);
    Some(match (&word(parser, at)[..], &word(parser, at + 1)[..]) {
        ("between", "symmetric") => Infix::Between {
            not,
            symmetric: true,
        },
        ("between", "asymmetric") => Infix::Between {
            not,
            symmetric: false,
        },
        ("isnull", _) if !not => Infix::IsNull,
        ("notnull", _) if !not => Infix::NotNull,
        _ => return None,
    })
}

/// The expression that `infix`, which comes next, makes of `left`; what stands on its right binds closer than `precedence`.
///
/// # Errors
/// If nothing does.
pub(super) fn parsed(
    parser: &mut Parser<'_>,
    left: &Expr,
    infix: Infix,
    precedence: u8,
) -> Result<Expr, ParserError> {
    let left = left.clone();
    parser.advance_token();
    Ok(match infix {
        Infix::StartsWith => {
            let right = parser.parse_subexpr(precedence)?;
            plain_call("starts_with", vec![left, right])
        }
        Infix::Xor => Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::PGBitwiseXor,
            right: Box::new(parser.parse_subexpr(precedence)?),
        },
        Infix::IsNull => Expr::IsNull(Box::new(left)),
        Infix::NotNull => Expr::IsNotNull(Box::new(left)),
        Infix::Between { not, symmetric } => {
            for _ in 0..=usize::from(not) {
                parser.advance_token();
            }
            let from = parser.parse_subexpr(precedence)?;
            if word(parser, 0) != "and" {
                return parser.expected("AND", parser.peek_token());
            }
            parser.advance_token();
            let to = parser.parse_subexpr(precedence)?;
            between(left, (from, to), not, symmetric)
        }
    })
}

fn between(expr: Expr, (low, high): (Expr, Expr), not: bool, symmetric: bool) -> Expr {
    let one = |low: &Expr, high: &Expr, negated| Expr::Between {
        expr: Box::new(expr.clone()),
        negated,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    if !symmetric {
        return one(&low, &high, not);
    }
    let either = Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(one(&low, &high, false)),
        op: BinaryOperator::Or,
        right: Box::new(one(&high, &low, false)),
    }));
    if not {
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(either),
        }
    } else {
        either
    }
}

/// `trim(from a)` and `trim(leading from a)`, if that comes next.
pub(super) fn trim(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if word(parser, 0) != "trim" || parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    let place = match &word(parser, 2)[..] {
        "leading" => Some(TrimWhereField::Leading),
        "trailing" => Some(TrimWhereField::Trailing),
        "both" => Some(TrimWhereField::Both),
        _ => None,
    };
    let before = 2 + usize::from(place.is_some());
    if word(parser, before) != "from" {
        return None;
    }
    for _ in 0..=before {
        parser.advance_token();
    }
    let expr = parser.parse_expr().and_then(|expr| {
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::Trim {
            expr: Box::new(expr),
            trim_where: place,
            trim_what: None,
            trim_characters: None,
        })
    });
    Some(expr)
}

/// The operators that stand before their operand, if one comes next: roots, the absolute value, and all bits turned.
/// What stands behind it binds closer than `precedence`.
pub(super) fn before(parser: &mut Parser<'_>, precedence: u8) -> Option<Result<Expr, ParserError>> {
    let made: fn(Expr) -> Expr = match parser.peek_token_ref().token {
        Token::PGSquareRoot => |operand| named("sqrt", cast(operand, double())),
        Token::PGCubeRoot => |operand| named("cbrt", cast(operand, double())),
        Token::AtSign => |operand| named("abs", operand),
        Token::Tilde => turned,
        _ => return None,
    };
    parser.advance_token();
    Some(parser.parse_subexpr(precedence).map(made))
}

fn double() -> DataType {
    DataType::Double(ExactNumberInfo::None)
}

fn cast(operand: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(operand),
        data_type,
        array: false,
        format: None,
    }
}

/// What a function gives, without its name: the column of an operator has none.
fn named(function: &str, operand: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Plus,
        expr: Box::new(plain_call(function, vec![operand])),
    }
}

/// All bits of a whole number turned. A number of the smallest type has them all, so that the operand's type stays.
fn turned(operand: Expr) -> Expr {
    let ones = Expr::UnaryOp {
        op: UnaryOperator::Minus,
        expr: Box::new(Expr::value(Value::Number("1".into(), false))),
    };
    let ones = cast(Expr::Nested(Box::new(ones)), DataType::SmallInt(None));
    Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(operand),
        op: BinaryOperator::PGBitwiseXor,
        right: Box::new(ones),
    }))
}
