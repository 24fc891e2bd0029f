//! Casts to `regclass` and its kin, and from them, as calls of [functions](functions::objects): values of these types are
//! numbers, and names where somebody reads them.
//!
//! They are read in the columns that a query returns to whoever asked it, in casts to text, in `||` and by functions that make
//! texts of anything. Everywhere else, in comparisons and in tables of `from`, they are numbers.

use std::ops::ControlFlow;

use functions::object_kinds::Kind;
use messages::Error;
use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectNamePart, Query, Select, SelectItem, SetExpr, Value,
    VisitorMut,
};

use crate::call::{call, plain_call};
use crate::names::{PG_CATALOG, column_name};

/// Columns of `pg_catalog` that are functions.
const ROUTINES: [&str; 14] = [
    "aggfnoid",
    "amhandler",
    "aggfinalfn",
    "aggtransfn",
    "oprcode",
    "oprjoin",
    "oprrest",
    "typanalyze",
    "typinput",
    "typmodin",
    "typmodout",
    "typoutput",
    "typreceive",
    "typsend",
];

/// Functions that make texts of whatever they are given.
const WRITERS: [&str; 8] = [
    "array_to_string",
    "concat",
    "concat_ws",
    "format",
    "json_build_object",
    "jsonb_build_object",
    "quote_ident",
    "to_json",
];

/// The kind whose numbers a type has, or the items of its arrays.
fn kind_of(data_type: &DataType) -> Option<Kind> {
    match data_type {
        DataType::Regclass => Some(Kind::Relation),
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => kind_of(item),
        DataType::Custom(name, arguments) if arguments.is_empty() => {
            let parts = name.0.iter().map(|part| part.as_ident().map(column_name));
            let parts: Vec<String> = parts.collect::<Option<_>>()?;
            match &parts[..] {
                [name] => Kind::of_type(name),
                [schema, name] if schema == PG_CATALOG => Kind::of_type(name),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Text
        | DataType::Varchar(_)
        | DataType::CharacterVarying(_)
        | DataType::Character(_)
        | DataType::Char(_) => true,
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => is_text(item),
        DataType::Custom(name, _) => {
            let last = name.0.last().and_then(ObjectNamePart::as_ident);
            let last = last.map(column_name).unwrap_or_default();
            matches!(last.as_str(), "text" | "name" | "varchar" | "bpchar")
        }
        _ => false,
    }
}

/// The last part of the name of a column.
fn column(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

/// The kind whose numbers an expression gives that has been rewritten: a cast or a call.
fn computed(expr: &Expr) -> Option<Kind> {
    match expr {
        Expr::Nested(inner) => computed(inner),
        Expr::Function(function) if called(expr).as_deref() == Some("coalesce") => {
            let FunctionArguments::List(list) = &function.args else {
                return None;
            };
            list.args.iter().find_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => computed(arg),
                _ => None,
            })
        }
        Expr::Function(function) => Kind::of_function(&called(expr).filter(
            |_| matches!(&function.args, FunctionArguments::List(list) if list.args.len() == 1),
        )?),
        _ => None,
    }
}

/// The same of a column, too.
fn numbers(expr: &Expr) -> Option<Kind> {
    computed(expr).or_else(|| {
        let name = column(expr).map(column_name)?;
        ROUTINES.contains(&name.as_str()).then_some(Kind::Routine)
    })
}

/// The name of the function that is called.
fn called(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let last = function.name.0.last().and_then(ObjectNamePart::as_ident);
    last.map(column_name)
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Identifier(Ident::new("")))
}

/// A text in quotes that is an array of texts.
fn texts(literal: Expr) -> Expr {
    let item = Box::new(DataType::Text);
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(literal),
        data_type: DataType::Array(ArrayElemTypeDef::SquareBracket(item, None)),
        array: false,
        format: None,
    }
}

/// Writes numbers as names.
fn write(expr: &mut Expr, kind: Kind) {
    *expr = call(kind.text(), vec![take(expr)]);
}

/// Reads a name as a number.
fn read(expr: &mut Expr, kind: Kind) {
    *expr = plain_call(kind.cast(), vec![take(expr)]);
}

/// Whether an expression is a text in quotes.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_literal(inner),
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        _ => false,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}

/// Rewrites an expression whose parts have been rewritten.
pub(super) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Cast {
            expr: inner,
            data_type,
            ..
        } => {
            if let Some(kind) = kind_of(data_type) {
                let mut inner = take(inner);
                if matches!(data_type, DataType::Array(_))
                    && (is_literal(&inner) || is_null(&inner))
                {
                    inner = texts(inner);
                }
                read(&mut inner, kind);
                *expr = inner;
            } else if is_text(data_type)
                && let Some(kind) = numbers(inner)
            {
                write(inner, kind);
            }
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq | BinaryOperator::NotEq,
            right,
        } => {
            compared(left, right);
            compared(right, left);
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::StringConcat,
            right,
        } => {
            for side in [left, right] {
                if let Some(kind) = computed(side) {
                    write(side, kind);
                }
            }
        }
        Expr::InList { expr, list, .. } => {
            if let Some(kind) = computed(expr) {
                let literals = list.iter_mut().filter(|item| is_literal(item));
                literals.for_each(|item| read(item, kind));
            }
        }
        Expr::Function(_) if called(expr).is_some_and(|name| WRITERS.contains(&&*name)) => {
            let Expr::Function(function) = expr else {
                return;
            };
            let FunctionArguments::List(list) = &mut function.args else {
                return;
            };
            for arg in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg
                    && let Some(kind) = computed(arg)
                {
                    write(arg, kind);
                }
            }
        }
        _ => {}
    }
}

/// `x::regclass = 'reef'` compares numbers, and `typinput = 'array_in'` names.
fn compared(numbered: &mut Expr, other: &mut Expr) {
    match computed(numbered) {
        Some(kind) if is_literal(other) => read(other, kind),
        // It is a text.
        Some(Kind::Type) if called(other).as_deref() == Some("pg_typeof") => {
            read(other, Kind::Type);
        }
        Some(_) => {}
        None => {
            if let Some(kind) = numbers(numbered).filter(|_| is_literal(other)) {
                write(numbered, kind);
            }
        }
    }
}

/// Gives the columns of all queries the names that PostgreSQL gives them, before their expressions become calls.
pub(super) struct Named;

impl VisitorMut for Named {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(alias) = name(expr)
            {
                *item = SelectItem::ExprWithAlias {
                    expr: take(expr),
                    alias,
                };
            }
        }
        ControlFlow::Continue(())
    }
}

/// The name of the column of a cast to such a type, or of casts of such a cast: that of the column or function that is cast, or
/// else of the type.
fn name(expr: &Expr) -> Option<Ident> {
    let Expr::Cast { data_type, .. } = expr else {
        return None;
    };
    let (outer, mut any) = (kind_of(data_type), false);
    let mut inner = expr;
    loop {
        inner = match inner {
            Expr::Cast {
                expr, data_type, ..
            } => {
                any |= kind_of(data_type).is_some();
                expr.as_ref()
            }
            Expr::Nested(expr) => expr.as_ref(),
            _ => break,
        };
    }
    if !any {
        return None;
    }
    let own = column(inner).cloned();
    let own = own.or_else(|| called(inner).map(|name| Ident::with_quote('"', name)));
    own.or_else(|| outer.map(|kind| Ident::with_quote('"', kind.cast())))
}

/// Has a query that somebody asks return names.
pub(super) fn shown(query: &mut Query) {
    shown_of(&mut query.body);
}

fn shown_of(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => select.projection.iter_mut().for_each(show),
        SetExpr::Query(query) => shown(query),
        SetExpr::SetOperation { left, right, .. } => {
            shown_of(left);
            shown_of(right);
        }
        _ => {}
    }
}

fn show(item: &mut SelectItem) {
    let (expr, name) = match item {
        SelectItem::UnnamedExpr(expr) => {
            let natural = column(expr).cloned();
            let natural = natural.or_else(|| called(expr).map(|name| Ident::with_quote('"', name)));
            let alias = name(expr).or(natural);
            (expr, alias)
        }
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.clone())),
        _ => return,
    };
    let is_number = match &*expr {
        Expr::Cast { data_type, .. } => kind_of(data_type).is_some(),
        expr => numbers(expr).is_some(),
    };
    if let (true, Some(alias)) = (is_number, name) {
        let text = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(take(expr)),
            data_type: DataType::Text,
            array: false,
            format: None,
        };
        *item = SelectItem::ExprWithAlias { expr: text, alias };
    }
}
