//! Arguments with names: `f(b => 2, a => 1)` is `f(1, 2)`.

use messages::{Error, Result};
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use crate::names::column_name;

/// What an argument is that is left out.
#[derive(Clone, Copy, Debug)]
enum Default {
    /// It has to be there.
    None,
    Number(&'static str),
    Text(&'static str),
    Boolean(bool),
}

type Names = &'static [(&'static str, Default)];

const PATH: Names = &[
    ("target", Default::None),
    ("path", Default::None),
    ("vars", Default::Text("{}")),
    ("silent", Default::Boolean(false)),
];

const DATE: Names = &[
    ("year", Default::None),
    ("month", Default::None),
    ("day", Default::None),
];

const TIME: Names = &[
    ("hour", Default::None),
    ("min", Default::None),
    ("sec", Default::None),
];

const STAMP: Names = &[
    ("year", Default::None),
    ("month", Default::None),
    ("mday", Default::None),
    ("hour", Default::None),
    ("min", Default::None),
    ("sec", Default::None),
];

/// The functions whose arguments have names, as PostgreSQL calls them.
const FUNCTIONS: [(&str, Names); 17] = [
    ("jsonb_path_exists", PATH),
    ("jsonb_path_exists_tz", PATH),
    ("jsonb_path_match", PATH),
    ("jsonb_path_match_tz", PATH),
    ("jsonb_path_query", PATH),
    ("jsonb_path_query_array", PATH),
    ("jsonb_path_query_array_tz", PATH),
    ("jsonb_path_query_first", PATH),
    ("jsonb_path_query_first_tz", PATH),
    ("jsonb_path_query_tz", PATH),
    (
        "jsonb_set",
        &[
            ("jsonb_in", Default::None),
            ("path", Default::None),
            ("replacement", Default::None),
            ("create_if_missing", Default::Boolean(true)),
        ],
    ),
    (
        "jsonb_insert",
        &[
            ("jsonb_in", Default::None),
            ("path", Default::None),
            ("replacement", Default::None),
            ("insert_after", Default::Boolean(false)),
        ],
    ),
    ("make_date", DATE),
    (
        "make_interval",
        &[
            ("years", Default::Number("0")),
            ("months", Default::Number("0")),
            ("weeks", Default::Number("0")),
            ("days", Default::Number("0")),
            ("hours", Default::Number("0")),
            ("mins", Default::Number("0")),
            ("secs", Default::Number("0")),
        ],
    ),
    ("make_time", TIME),
    ("make_timestamp", STAMP),
    (
        "parse_ident",
        &[("str", Default::None), ("strict", Default::Boolean(true))],
    ),
];

fn names_of(function: &str) -> Option<Names> {
    let found = FUNCTIONS.iter().find(|(name, _)| *name == function);
    found.map(|(_, names)| *names)
}

/// The arguments of a function that gives rows, in their places; none for others than expressions.
pub(super) fn placed(function: &str, args: &[FunctionArg]) -> Option<Vec<Expr>> {
    let own = match names_of(function) {
        Some(names) if args.iter().any(is_named) => in_order(function, names, args).ok()?,
        _ => args.to_vec(),
    };
    own.into_iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect()
}

fn is_named(arg: &FunctionArg) -> bool {
    !matches!(arg, FunctionArg::Unnamed(_))
}

/// Puts the arguments of a call in their places; whether there is nothing else to be done with it.
///
/// # Errors
/// For names that the function does not have.
pub(super) fn in_places(name: &str, function: &mut Function) -> Result<bool> {
    let FunctionArguments::List(list) = &mut function.args else {
        return Ok(false);
    };
    let Some(names) = names_of(name) else {
        return Ok(false);
    };
    // All parts of an interval are given.
    if name != "make_interval" && !list.args.iter().any(is_named) {
        return Ok(false);
    }
    list.args = in_order(name, names, &list.args)?;
    Ok(true)
}

fn in_order(function: &str, names: Names, args: &[FunctionArg]) -> Result<Vec<FunctionArg>> {
    let unknown = || {
        Error::coded(
            "42883",
            format!("function {function} does not take arguments of these names"),
        )
    };
    let mut places: Vec<Option<FunctionArgExpr>> = vec![None; names.len()];
    for (at, arg) in args.iter().enumerate() {
        let (place, value) = match arg {
            FunctionArg::Unnamed(value) => (Some(at), value),
            FunctionArg::Named { name, arg, .. } => {
                let name = column_name(name);
                (names.iter().position(|(own, _)| *own == name), arg)
            }
            FunctionArg::ExprNamed { .. } => return Err(unknown()),
        };
        match place.and_then(|place| places.get_mut(place)) {
            Some(free @ None) => *free = Some(value.clone()),
            _ => return Err(unknown()),
        }
    }
    let filled = places.into_iter().zip(names).map(|(value, (_, default))| {
        let value = match (value, default) {
            (Some(value), _) => return Ok(FunctionArg::Unnamed(value)),
            (None, Default::None) => return Err(unknown()),
            (None, Default::Number(number)) => Value::Number((*number).into(), false),
            (None, Default::Text(text)) => Value::SingleQuotedString((*text).into()),
            (None, Default::Boolean(own)) => Value::Boolean(*own),
        };
        Ok(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(
            value,
        ))))
    });
    filled.collect()
}
