//! Calls and operators that stand for others.

use std::ops::ControlFlow;

use functions::json::path;
use functions::temporal::make::OVERLAPS;
use messages::Error;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, DateTimeField, Expr, ExtractSyntax, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    Query, TimezoneInfo, UnaryOperator, Value, VisitorMut,
};

use crate::call::{self, plain_call};
use crate::constant::Constant;
use crate::names::column_name;
use crate::rewrite::comparisons::{Rewritten, among, compared, distinct, null, unwrapped};
use crate::rewrite::{
    escapes, exact, fractions, hypothetical, introspection, named, not_finite, operators,
    precision, sets, similar, special,
};

/// Other names of functions.
const SYNONYMS: [(&str, &str); 17] = [
    ("any_value", "min"),
    ("approx_count_distinct", "approx_distinct"),
    ("ceiling", "ceil"),
    ("datediff", "date_diff"),
    ("datepart", "date_part"),
    ("datetrunc", "date_trunc"),
    ("every", "bool_and"),
    ("group_concat", "string_agg"),
    ("lcase", "lower"),
    ("len", "length"),
    ("listagg", "string_agg"),
    ("max_by", "arg_max"),
    ("min_by", "arg_min"),
    ("quantile", "quantile_disc"),
    ("sign", "signum"),
    ("ucase", "upper"),
    ("variance", "var_samp"),
];

/// Functions that extract a part of a date.
const PARTS: [(&str, DateTimeField); 14] = [
    ("century", DateTimeField::Century),
    ("day", DateTimeField::Day),
    ("dayofmonth", DateTimeField::Day),
    ("dayofweek", DateTimeField::Dow),
    ("dayofyear", DateTimeField::Doy),
    ("decade", DateTimeField::Decade),
    ("epoch", DateTimeField::Epoch),
    ("hour", DateTimeField::Hour),
    ("isodow", DateTimeField::Isodow),
    ("minute", DateTimeField::Minute),
    ("month", DateTimeField::Month),
    ("quarter", DateTimeField::Quarter),
    ("second", DateTimeField::Second),
    ("year", DateTimeField::Year),
];

/// Functions that are called without parentheses.
const VALUES: [&str; 7] = [
    "current_catalog",
    "current_role",
    "current_schema",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
];

/// The functions that calls here stand for others by, beside those that the parser has words for.
pub fn names() -> Vec<&'static str> {
    let others = [
        "count_if",
        "countif",
        "date",
        "if",
        "iff",
        "mod",
        "week",
        "weekofyear",
    ];
    let synonyms = SYNONYMS.iter().map(|(name, _)| *name);
    let parts = PARTS.iter().map(|(name, _)| *name);
    let own = special::NAMES.into_iter();
    synonyms
        .chain(parts)
        .chain(VALUES)
        .chain(others)
        .chain(operators::NAMES)
        .chain(own)
        .collect()
}

/// Rewrites calls and operators.
pub(super) struct Calls;

impl VisitorMut for Calls {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        signed_power(expr);
        similar::like_any(expr);
        introspection::membership(expr);
        special::of_query(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        not_finite::listed(&mut query.body);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        escapes::with_backslashes(expr);
        escapes::plain(expr);
        not_finite::typed(expr);
        if let Some(rounded) = precision::expr(expr) {
            *expr = rounded;
            return ControlFlow::Continue(());
        }
        let of_type = exact::typed(expr).and_then(|()| special::expr(expr));
        put(expr, of_type)?;
        let rewritten = match expr {
            Expr::Identifier(ident) if ident.quote_style.is_none() => value(ident),
            Expr::Function(function) => call(function),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Overlaps,
                right,
            } => Ok(overlapping(left, right)),
            Expr::BinaryOp { left, op, right } => compared(left, op, right),
            Expr::IsDistinctFrom(left, right) => distinct(left, right, false),
            Expr::IsNotDistinctFrom(left, right) => distinct(left, right, true),
            Expr::InList {
                expr,
                list,
                negated,
            } => among(expr, list, *negated),
            Expr::Substring {
                expr,
                substring_from: Some(from),
                substring_for,
                // `substr` takes numbers only.
                shorthand: false,
                ..
            } => Ok(operators::by_pattern(expr, from, substring_for.as_deref())),
            Expr::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            } => similar::matched(
                expr,
                pattern,
                escape_char.as_ref().map(|e| &e.value),
                *negated,
            )
            .map(Some),
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr: inner,
                data_type: DataType::Custom(name, modifiers),
                array: false,
                format: None,
            } if modifiers.is_empty() && name.to_string().eq_ignore_ascii_case("jsonpath") => {
                Ok(Some(call::call(path::OF, vec![(**inner).clone()])))
            }
            Expr::AtTimeZone {
                timestamp,
                time_zone,
            } => Ok(Some(plain_call(
                "timezone",
                vec![(**time_zone).clone(), (**timestamp).clone()],
            ))),
            _ => Ok(None),
        };
        put(expr, rewritten)
    }
}

/// Puts what an expression was rewritten to in its place, if it was.
fn put(expr: &mut Expr, rewritten: Result<Option<Expr>, Error>) -> ControlFlow<Box<Error>> {
    match rewritten {
        Ok(Some(new)) => *expr = new,
        Ok(None) => {}
        Err(e) => return ControlFlow::Break(Box::new(e)),
    }
    ControlFlow::Continue(())
}

fn is_power(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::BinaryOp {
            op: BinaryOperator::BitwiseXor | BinaryOperator::PGExp,
            ..
        }
    )
}

/// `-2 ^ 2` is the square of -2: a sign binds closer than the power, which the parser has the other way round.
fn signed_power(expr: &mut Expr) {
    let Expr::UnaryOp {
        op: op @ (UnaryOperator::Minus | UnaryOperator::Plus),
        expr: inner,
    } = expr
    else {
        return;
    };
    if !is_power(inner) {
        return;
    }
    let op = *op;
    let mut power = std::mem::replace(&mut **inner, null());
    let mut base = &mut power;
    while let Expr::BinaryOp {
        left,
        op: BinaryOperator::BitwiseXor | BinaryOperator::PGExp,
        ..
    } = base
    {
        base = left;
    }
    let signed = std::mem::replace(base, null());
    *base = Expr::UnaryOp {
        op,
        expr: Box::new(signed),
    };
    *expr = power;
}

/// `current_schema` and its kind are calls.
fn value(ident: &Ident) -> Rewritten {
    let name = column_name(ident);
    if !VALUES.contains(&name.as_str()) {
        return Ok(None);
    }
    if let Some(shown) = of_clock(&name, None) {
        return Ok(Some(shown));
    }
    Ok(Some(plain_call(&name, vec![])))
}

/// What clocks of the session show at the beginning of the statement, with so many digits behind the second: `current_date`
/// and its kind.
fn of_clock(name: &str, digits: Option<u64>) -> Option<Expr> {
    let data_type = match name {
        "current_date" | "today" if digits.is_none() => DataType::Date,
        "current_time" => DataType::Time(digits, TimezoneInfo::WithTimeZone),
        "localtime" => DataType::Time(digits, TimezoneInfo::None),
        "localtimestamp" => DataType::Timestamp(digits, TimezoneInfo::None),
        "current_timestamp" if digits.is_some() => {
            DataType::Timestamp(digits, TimezoneInfo::WithTimeZone)
        }
        _ => return None,
    };
    Some(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(plain_call("now", vec![])),
        data_type,
        array: false,
        format: None,
    })
}

/// The call of such a function.
fn clock_called(function: &Function, name: &str) -> Option<Expr> {
    if is_clause_there(function) {
        return None;
    }
    if let FunctionArguments::None = function.args {
        return of_clock(name, None);
    }
    match &plain_arguments(function)?[..] {
        [] => of_clock(name, None),
        [digits] => match Constant::of(digits)? {
            Constant::Whole(digits) => of_clock(name, Some(u64::try_from(digits).ok()?)),
            _ => None,
        },
        _ => None,
    }
}

/// The arguments of a call without names, clauses or `*`.
pub(super) fn plain_arguments(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args,
        clauses,
    }) = &function.args
    else {
        return None;
    };
    if !clauses.is_empty() {
        return None;
    }
    args.iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        })
        .collect()
}

fn call(function: &mut Function) -> Rewritten {
    if let Some(rewritten) = sets::function(function)? {
        return Ok(Some(rewritten));
    }
    if let Some(rewritten) = special::function(function)? {
        return Ok(Some(rewritten));
    }
    let [part] = &function.name.0[..] else {
        return Ok(None);
    };
    let Some(name) = part.as_ident().map(column_name) else {
        return Ok(None);
    };
    let span = part.as_ident().map_or(Ident::new("").span, |i| i.span);
    if let Some(shown) = clock_called(function, &name) {
        return Ok(Some(shown));
    }
    if let Some(placed) = hypothetical::placed(&name, function, plain_arguments(function))? {
        return Ok(Some(placed));
    }
    if let Some(spread) = fractions::spread(&name, function, plain_arguments(function)) {
        return Ok(Some(spread));
    }
    if let FunctionArguments::None = function.args
        && VALUES.contains(&name.as_str())
    {
        return value(&Ident::new(name));
    }
    if ["var_pop", "stddev_pop"].contains(&name.as_str()) {
        return Ok(spread(function));
    }
    if name == "count_if" || name == "countif" {
        return Ok(counted(function));
    }
    if ["bool_and", "bool_or", "every"].contains(&name.as_str()) {
        read_as_boolean(function);
    }
    if let Some((_, own)) = SYNONYMS.iter().find(|(other, _)| *other == name) {
        let old = function.name.clone();
        function.name = ObjectName::from(vec![Ident {
            span,
            ..Ident::new(*own)
        }]);
        if *own == "string_agg" && !separated(function) {
            return Err(Error::coded(
                "42883",
                format!("{old}: give the separator as the second argument"),
            ));
        }
        return Ok(None);
    }
    if named::in_places(&name, function)? {
        return Ok(None);
    }
    if is_clause_there(function) {
        return Ok(None);
    }
    let Some(args) = plain_arguments(function) else {
        return Ok(None);
    };
    Ok(scalar(&name, args))
}

/// Reads a constant in quotes as a truth value, where it is the only argument.
fn read_as_boolean(function: &mut Function) {
    if let FunctionArguments::List(list) = &mut function.args
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] = &mut list.args[..]
        && is_quoted(arg)
    {
        *arg = operators::cast(arg.clone(), DataType::Boolean);
    }
}

/// Adds the separator `,` if there is none; false if there are other than two arguments then.
fn separated(function: &mut Function) -> bool {
    let FunctionArguments::List(list) = &mut function.args else {
        return false;
    };
    if list.args.len() == 1 {
        let comma = Expr::value(Value::SingleQuotedString(",".into()));
        list.args
            .push(FunctionArg::Unnamed(FunctionArgExpr::Expr(comma)));
    }
    list.args.len() == 2
}

fn is_clause_there(function: &Function) -> bool {
    function.filter.is_some()
        || function.over.is_some()
        || function.null_treatment.is_some()
        || !function.within_group.is_empty()
        || function.parameters != FunctionArguments::None
}

/// `var_pop(x)` is `var_pop(x) + max(x - x)`: that is zero, but where a value is infinite, of which the planner's functions take
/// one alone for a number that does not vary.
fn spread(function: &Function) -> Option<Expr> {
    let [value] = &plain_arguments(function)?[..] else {
        return None;
    };
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    let minus = |left: Expr, op: BinaryOperator, right: Expr| Expr::BinaryOp {
        left: nested(left),
        op,
        right: nested(right),
    };
    let mut most = function.clone();
    most.name = ObjectName::from(vec![Ident::new("max")]);
    if let FunctionArguments::List(list) = &mut most.args {
        let none = minus(value.clone(), BinaryOperator::Minus, value.clone());
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(none))];
    }
    let own = Expr::Function(function.clone());
    let all = minus(own, BinaryOperator::Plus, Expr::Function(most));
    Some(Expr::Nested(Box::new(all)))
}

/// `count_if(c)` is `count(*) filter (where c)`.
fn counted(function: &Function) -> Option<Expr> {
    let [condition] = &plain_arguments(function)?[..] else {
        return None;
    };
    let condition = Expr::Nested(Box::new(condition.clone()));
    let filter = match &function.filter {
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(filter.clone())),
            op: BinaryOperator::And,
            right: Box::new(condition),
        },
        None => condition,
    };
    let mut count = function.clone();
    count.name = ObjectName::from(vec![Ident::new("count")]);
    count.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)],
        clauses: vec![],
    });
    count.filter = Some(Box::new(filter));
    Some(Expr::Function(count))
}

/// Whether an expression is a constant in quotes.
fn is_quoted(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_quoted(inner),
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        _ => false,
    }
}

fn scalar(name: &str, mut args: Vec<Expr>) -> Option<Expr> {
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    match (name, args.len()) {
        (name, _) if operators::is_one(name, &args) => operators::call(name, args),
        ("mod", 2) => {
            let (right, left) = (args.pop()?, args.pop()?);
            Some(Expr::Nested(Box::new(Expr::BinaryOp {
                left: nested(left),
                op: BinaryOperator::Modulo,
                right: nested(right),
            })))
        }
        ("if" | "iff", 3) => {
            let (last, result, condition) = (args.pop()?, args.pop()?, args.pop()?);
            Some(Expr::Case {
                case_token: AttachedToken::empty(),
                end_token: AttachedToken::empty(),
                operand: None,
                conditions: vec![CaseWhen { condition, result }],
                else_result: Some(Box::new(last)),
            })
        }
        ("date", 1) => Some(Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(args.pop()?),
            data_type: DataType::Date,
            array: false,
            format: None,
        }),
        // A constant in quotes has no type until something gives it one, as NULL has none.
        ("pg_typeof", 1) if is_quoted(&args[0]) => {
            let null = Expr::Value(Value::Null.with_empty_span());
            Some(plain_call("pg_typeof", vec![null]))
        }
        ("week" | "weekofyear", 1) => Some(part(DateTimeField::Week(None), args.pop()?)),
        (_, 1) => {
            let (_, field) = PARTS.iter().find(|(known, _)| *known == name)?;
            Some(part(field.clone(), args.pop()?))
        }
        _ => None,
    }
}

fn part(field: DateTimeField, expr: Expr) -> Expr {
    Expr::Extract {
        field,
        syntax: ExtractSyntax::From,
        expr: Box::new(expr),
    }
}

/// `(a, b) overlaps (c, d)`.
fn overlapping(left: &Expr, right: &Expr) -> Option<Expr> {
    let (Expr::Tuple(left), Expr::Tuple(right)) = (unwrapped(left), unwrapped(right)) else {
        return None;
    };
    let all = left.iter().chain(right).cloned().collect();
    Some(call::call(OVERLAPS, all))
}
