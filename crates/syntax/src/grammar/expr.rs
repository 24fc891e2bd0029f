//! Expressions: operators, literals, calls.

use functions::lists::names::{CONDITION, DISTINCT, NOT_DISTINCT, WHOLE, WHOLE_OUTER};
use messages::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, CeilFloorKind, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Interval, UnaryOperator,
    Value, WindowType,
};

use crate::grammar::query::{sort_key, wildcard, window};
use crate::grammar::refuse::{none_of, refused, refused_for};

/// Checks one expression, but not those inside it.
#[expect(
    clippy::too_many_lines,
    reason = "each kind of expression and each of its parts stands here by name"
)]
pub(super) fn check(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(_, _)
        | Expr::IsNotDistinctFrom(_, _)
        | Expr::InList {
            expr: _,
            list: _,
            negated: _,
        }
        | Expr::InSubquery {
            expr: _,
            subquery: _,
            negated: _,
        }
        | Expr::Between {
            expr: _,
            negated: _,
            low: _,
            high: _,
        }
        | Expr::SimilarTo {
            negated: _,
            expr: _,
            pattern: _,
            escape_char: _,
        }
        | Expr::AtTimeZone {
            timestamp: _,
            time_zone: _,
        }
        | Expr::Extract {
            field: _,
            syntax: _,
            expr: _,
        }
        | Expr::Position { expr: _, r#in: _ }
        | Expr::Substring {
            expr: _,
            substring_from: _,
            substring_for: _,
            special: _,
            shorthand: _,
        }
        | Expr::Trim {
            trim_where: _,
            trim_what: _,
            expr: _,
            trim_characters: _,
        }
        | Expr::Overlay {
            expr: _,
            overlay_what: _,
            overlay_from: _,
            overlay_for: _,
        }
        | Expr::Nested(_)
        | Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Case {
            case_token: _,
            end_token: _,
            operand: _,
            conditions: _,
            else_result: _,
        }
        | Expr::Exists {
            subquery: _,
            negated: _,
        }
        | Expr::Subquery(_)
        | Expr::GroupingSets(_)
        | Expr::Cube(_)
        | Expr::Rollup(_)
        // In the keys of grouping sets, and for the planner to refuse elsewhere.
        | Expr::Tuple(_) => Ok(()),
        Expr::BinaryOp {
            left: _,
            op,
            right: _,
        } => binary(op),
        Expr::AnyOp {
            left: _,
            compare_op,
            right,
            is_some: _,
        } => compared(compare_op, right, "any"),
        Expr::AllOp {
            left: _,
            compare_op,
            right,
        } => compared(compare_op, right, "all"),
        Expr::UnaryOp { op, expr: _ } => unary(op),
        Expr::Like {
            negated: _,
            any,
            expr: _,
            pattern: _,
            escape_char: _,
        }
        | Expr::ILike {
            negated: _,
            any,
            expr: _,
            pattern: _,
            escape_char: _,
        } => none_of(&[(*any, "like any")]),
        Expr::Cast {
            kind: _,
            expr: _,
            data_type: _,
            array,
            format,
        } => none_of(&[
            (*array, "cast to an array"),
            (format.is_some(), "cast with format"),
        ]),
        Expr::Ceil { expr: _, field } => rounded(field, "ceil"),
        Expr::Floor { expr: _, field } => rounded(field, "floor"),
        Expr::Function(function) => call(function),
        Expr::Interval(interval) => check_interval(interval),
        Expr::CompoundFieldAccess { .. } | Expr::JsonAccess { .. } => Err(refused(&expr.to_string())),
        Expr::IsNormalized { .. } => Err(refused("is normalized")),
        Expr::InUnnest { .. } => Err(refused("in unnest")),
        Expr::RLike { .. } => Err(refused_for("rlike", "use `~`")),
        Expr::Convert { .. } => Err(refused_for("convert", "use `cast`")),
        Expr::Collate { .. } => Err(refused_for("collate", "texts are ordered by their bytes")),
        Expr::Prefixed { prefix, value: _ } => Err(refused(&format!("{prefix} before a string"))),
        Expr::Struct { .. } => Err(refused_for(
            "struct(...)",
            "use `row(...)`, or `struct_pack(a := ...)`, which has names",
        )),
        Expr::Named { .. } => Err(refused("as in a struct")),
        Expr::Dictionary(_) => Err(Error::invalid("a struct has fields")),
        Expr::Map(_) => Err(Error::unsupported("a map cannot stand here")),
        Expr::Array(_) => Err(Error::unsupported("arrays are not supported")),
        Expr::MatchAgainst { .. } => Err(refused("match against")),
        Expr::Wildcard(_) | Expr::QualifiedWildcard(_, _) => {
            Err(Error::coded("42601", "`*` stands where a value is expected"))
        }
        Expr::OuterJoin(_) => Err(refused_for("(+)", "use `left join`")),
        Expr::Prior(_) => Err(refused("prior")),
        Expr::Lambda(_) => Err(Error::unsupported("lambdas are not supported")),
        Expr::MemberOf(_) => Err(refused("member of")),
    }
}

fn binary(op: &BinaryOperator) -> Result<()> {
    use BinaryOperator::{
        And, Arrow, ArrowAt, AtArrow, AtAt, AtQuestion, BitwiseAnd, BitwiseOr, BitwiseXor, Divide,
        DuckIntegerDivide, Eq, Gt, GtEq, HashArrow, HashLongArrow, HashMinus, LongArrow, Lt, LtEq,
        Minus, Modulo, Multiply, MyIntegerDivide, NotEq, Or, PGBitwiseShiftLeft,
        PGBitwiseShiftRight, PGBitwiseXor, PGExp, PGILikeMatch, PGLikeMatch, PGNotILikeMatch,
        PGNotLikeMatch, PGOverlap, PGRegexIMatch, PGRegexMatch, PGRegexNotIMatch, PGRegexNotMatch,
        Plus, Question, QuestionAnd, QuestionPipe, Spaceship, StringConcat,
    };
    match op {
        Plus | Minus | Multiply | Divide | Modulo | StringConcat | Gt | Lt | GtEq | LtEq
        | Spaceship | Eq | NotEq | And | Or | BitwiseOr | BitwiseAnd | PGBitwiseShiftLeft
        | PGBitwiseShiftRight | PGBitwiseXor | DuckIntegerDivide | MyIntegerDivide
        | PGRegexMatch | PGRegexIMatch | PGRegexNotMatch | PGRegexNotIMatch | PGLikeMatch
        | PGILikeMatch | PGNotLikeMatch | PGNotILikeMatch => Ok(()),
        Arrow | LongArrow | HashArrow | HashLongArrow | HashMinus | AtArrow | ArrowAt | AtAt
        | AtQuestion | PGOverlap | Question | QuestionAnd | QuestionPipe => Ok(()),
        // The row of a table, which no statement writes so.
        BinaryOperator::Custom(name) if name == WHOLE || name == WHOLE_OUTER => Ok(()),
        // What `is distinct from` has become.
        BinaryOperator::Custom(name) if name == DISTINCT || name == NOT_DISTINCT => Ok(()),
        // The mark of a condition, which no statement writes either.
        BinaryOperator::Custom(name) if name.starts_with(CONDITION) => Ok(()),
        // The generic grammar's name of `^`.
        BitwiseXor | PGExp => Ok(()),
        other => Err(Error::unsupported(format!(
            "the operator `{}` is not supported",
            other.to_string().to_lowercase()
        ))),
    }
}

/// `a = any(...)`, `a < all(...)`.
fn compared(op: &BinaryOperator, right: &Expr, quantifier: &str) -> Result<()> {
    binary(op)?;
    match right {
        Expr::Subquery(_) | Expr::Nested(_) => Ok(()),
        _ => Err(Error::unsupported(format!(
            "`{quantifier}` takes a subquery; use `in (...)` for a list"
        ))),
    }
}

fn unary(op: &UnaryOperator) -> Result<()> {
    match op {
        UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not => Ok(()),
        UnaryOperator::BangNot => Err(refused_for("!", "use `not`")),
        other => Err(Error::unsupported(format!(
            "the operator `{other}` is not supported"
        ))),
    }
}

fn rounded(field: &CeilFloorKind, function: &str) -> Result<()> {
    match field {
        CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => Ok(()),
        CeilFloorKind::DateTimeField(_) => Err(refused_for(
            &format!("{function} ... to"),
            "use `date_trunc`",
        )),
        CeilFloorKind::Scale(_) => Err(refused(&format!("{function} with a scale"))),
    }
}

fn check_interval(interval: &Interval) -> Result<()> {
    let Interval {
        value,
        leading_field: _,
        leading_precision,
        last_field,
        fractional_seconds_precision,
    } = interval;
    let quoted = matches!(
        value.as_ref(),
        Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_))
    );
    // What these fields are `interval` itself knows.
    if quoted {
        return Ok(());
    }
    if let Some(last) = last_field {
        let first = interval
            .leading_field
            .as_ref()
            .map_or(String::new(), ToString::to_string);
        return Err(refused_for(
            &format!("interval ... {first} to {last}").to_lowercase(),
            "write the parts with their units: interval '1 year 2 months'",
        ));
    }
    none_of(&[(
        leading_precision.is_some() || fractional_seconds_precision.is_some(),
        "a precision of an interval",
    )])?;
    if is_constant(value) {
        Ok(())
    } else {
        Err(refused_for(
            "interval of a value that is computed",
            "multiply: x * interval '1 day'",
        ))
    }
}

/// Whether the planner takes `value` as the value of an interval.
fn is_constant(value: &Expr) -> bool {
    match value {
        Expr::Value(_) => true,
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_constant(expr),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Plus | BinaryOperator::Minus,
            right,
        } => is_constant(left) && is_constant(right),
        _ => false,
    }
}

fn call(function: &Function) -> Result<()> {
    let Function {
        name,
        // `{fn f(a)}` is `f(a)`.
        uses_odbc_syntax: _,
        parameters,
        args,
        filter: _,
        null_treatment: _,
        over,
        within_group,
    } = function;
    match parameters {
        FunctionArguments::None => {}
        FunctionArguments::List(_) | FunctionArguments::Subquery(_) => {
            return Err(refused_for(
                &format!("{name}{parameters}(...)"),
                "all arguments stand in one list",
            ));
        }
    }
    within_group.iter().try_for_each(sort_key)?;
    match over {
        Some(WindowType::WindowSpec(spec)) => {
            if let Some(name) = &spec.window_name {
                return Err(Error::coded("42704", format!("there is no window {name}")));
            }
            window(spec)?;
        }
        Some(WindowType::NamedWindow(name)) => {
            return Err(Error::coded("42704", format!("there is no window {name}")));
        }
        None => {}
    }
    match args {
        FunctionArguments::None => Ok(()),
        FunctionArguments::Subquery(_) => Err(refused(&format!("{name}(select ...)"))),
        FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: _,
            args,
            clauses,
        }) => {
            args.iter().try_for_each(argument)?;
            clauses
                .iter()
                .try_for_each(|clause| argument_clause(clause, &name.to_string()))
        }
    }
}

fn argument(argument: &FunctionArg) -> Result<()> {
    let (FunctionArg::Named {
        name: _,
        arg,
        operator: _,
    }
    | FunctionArg::ExprNamed {
        name: _,
        arg,
        operator: _,
    }
    | FunctionArg::Unnamed(arg)) = argument;
    match arg {
        FunctionArgExpr::Expr(_)
        | FunctionArgExpr::QualifiedWildcard(_)
        | FunctionArgExpr::Wildcard => Ok(()),
        FunctionArgExpr::WildcardWithOptions(options) => {
            wildcard(options)?;
            Err(refused("`*` with options as an argument"))
        }
    }
}

fn argument_clause(clause: &FunctionArgumentClause, function: &str) -> Result<()> {
    let what = match clause {
        FunctionArgumentClause::IgnoreOrRespectNulls(_) => return Ok(()),
        FunctionArgumentClause::OrderBy(keys) => return keys.iter().try_for_each(sort_key),
        FunctionArgumentClause::Limit(_) => "limit",
        FunctionArgumentClause::OnOverflow(_) => "on overflow",
        FunctionArgumentClause::Having(_) => "having",
        FunctionArgumentClause::Separator(_) => "separator",
        FunctionArgumentClause::JsonNullClause(_) => "null on null",
        FunctionArgumentClause::JsonReturningClause(_) => "returning",
    };
    Err(refused(&format!("{what} in {function}(...)")))
}

/// A literal.
pub(super) fn value(value: &Value) -> Result<()> {
    let prefix = match value {
        Value::Number(_, _)
        | Value::SingleQuotedString(_)
        | Value::DollarQuotedString(_)
        | Value::EscapedStringLiteral(_)
        | Value::UnicodeStringLiteral(_)
        | Value::HexStringLiteral(_)
        | Value::DoubleQuotedString(_)
        | Value::Boolean(_)
        | Value::Null => return Ok(()),
        Value::Placeholder(name) => {
            return Err(refused_for(name, "statements take no parameters"));
        }
        Value::NationalStringLiteral(_) => "N",
        Value::SingleQuotedByteStringLiteral(_)
        | Value::DoubleQuotedByteStringLiteral(_)
        | Value::TripleSingleQuotedByteStringLiteral(_)
        | Value::TripleDoubleQuotedByteStringLiteral(_) => "B",
        Value::SingleQuotedRawStringLiteral(_)
        | Value::DoubleQuotedRawStringLiteral(_)
        | Value::TripleSingleQuotedRawStringLiteral(_)
        | Value::TripleDoubleQuotedRawStringLiteral(_) => "R",
        Value::QuoteDelimitedStringLiteral(_) => "Q",
        Value::NationalQuoteDelimitedStringLiteral(_) => "NQ",
        Value::TripleSingleQuotedString(_) | Value::TripleDoubleQuotedString(_) => "''",
    };
    Err(refused_for(
        &format!("{prefix}'...'"),
        "write a plain string",
    ))
}
