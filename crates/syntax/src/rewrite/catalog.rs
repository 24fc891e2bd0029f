//! What clients of PostgreSQL write in statements about its catalog: names of functions, types and operators in the schema
//! `pg_catalog`, and types that are numbers here.

use std::ops::ControlFlow;

use functions::catalog::READ_PLACE;
use functions::lists::names::PLACES;
use messages::Error;
use sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, CaseWhen, CastKind, DataType, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Subscript,
    Value, VisitorMut,
};

use crate::call::{call, plain_call};
use crate::names::{INFORMATION_SCHEMA, PG_CATALOG, column_name};
use crate::rewrite::objects;
use crate::rewrite::operators::type_called;
use crate::rewrite::parts::column_of_call;

/// The function that gives the items of an array with their places.
const EXPAND: &str = "_pg_expandarray";

/// Takes the schema away, and the types that there are not.
pub(super) struct Catalog;

impl VisitorMut for Catalog {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        if let Expr::Function(function) = expr {
            plain_sequence(function);
            expanded(&mut function.name);
        }
        if let Expr::Case { conditions, .. } = expr {
            conditions.iter_mut().for_each(user_of_path);
        }
        if let Some(other) = part_of_expanded(expr).or_else(|| first_letter(expr)) {
            *expr = other;
        }
        // What `psql` asks about each column of a table, by queries within its query.
        let Expr::Subquery(query) = expr else {
            return ControlFlow::Continue(());
        };
        let text = query.to_string().to_lowercase();
        if text.contains("from pg_catalog.pg_attrdef") && text.contains("pg_get_expr") {
            let number = Expr::value(Value::Number("0".into(), false));
            let default = Expr::Identifier(Ident::new("attdefault"));
            let pretty = Expr::value(Value::Boolean(text.contains("adrelid, true)")));
            *expr = plain_call("pg_get_expr", vec![default, number, pretty]);
        } else if text.contains("from pg_catalog.pg_collation") {
            *expr = Expr::Value(Value::Null.with_empty_span());
        } else if text.contains("from pg_catalog.pg_sequence")
            && text.contains("json_build_object")
            && text.contains("attidentity")
        {
            // What SQLAlchemy asks about each column.
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Identifier(Ident::new("attidentityoptions"))),
                data_type: DataType::JSON,
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        match expr {
            Expr::Function(function) => without_schema(&mut function.name),
            Expr::BinaryOp { op, .. } => plain_operator(op),
            Expr::Collate {
                expr: inner,
                collation,
            } if is_of_bytes(collation) => {
                let inner = std::mem::replace(&mut **inner, Expr::Identifier(Ident::new("")));
                *expr = inner;
            }
            Expr::Cast {
                data_type,
                expr: inner,
                ..
            } => {
                if is_place(data_type) {
                    let inner = std::mem::replace(&mut **inner, Expr::Identifier(Ident::new("")));
                    *expr = call(READ_PLACE, vec![inner]);
                } else {
                    plain_type(data_type);
                }
            }
            _ => {}
        }
        objects::rewrite(expr);
        ControlFlow::Continue(())
    }
}

/// Whether a type is that of places of rows.
fn is_place(data_type: &DataType) -> bool {
    let DataType::Custom(name, _) = data_type else {
        return false;
    };
    let last = name.0.last().and_then(ObjectNamePart::as_ident);
    last.is_some_and(|last| column_name(last) == "tid")
}

/// Takes the schema away from a type, and gives those that are numbers or texts here another.
fn plain_type(data_type: &mut DataType) {
    if let DataType::Array(
        ArrayElemTypeDef::AngleBracket(item)
        | ArrayElemTypeDef::SquareBracket(item, _)
        | ArrayElemTypeDef::Parenthesis(item),
    ) = data_type
    {
        return plain_type(item);
    }
    let DataType::Custom(name, _) = data_type else {
        return;
    };
    without_schema(name);
    match name.to_string().to_lowercase().as_str() {
        "oid" | "xid" => *data_type = DataType::BigInt(None),
        "name" | "\"char\"" | "text" | "tid" => *data_type = DataType::Text,
        name => {
            if let Some(known) = type_called(name) {
                *data_type = known;
            }
        }
    }
}

/// `nextval('s'::regclass)` is `nextval('s')`: a sequence has no number that clients may use.
fn plain_sequence(function: &mut Function) {
    let name = function.name.0.last().and_then(ObjectNamePart::as_ident);
    let asks = name.is_some_and(|name| {
        let name = name.value.to_lowercase();
        matches!(name.as_str(), "nextval" | "currval" | "setval")
    });
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    if asks
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut()
        && let Expr::Cast {
            expr: inner,
            data_type: DataType::Regclass,
            ..
        } = first
        && is_text(inner)
    {
        *first = std::mem::replace(&mut **inner, Expr::Identifier(Ident::new("")));
    }
}

/// Takes the schema away from `information_schema._pg_expandarray`; whether it is that function.
fn expanded(name: &mut ObjectName) -> bool {
    let word = |at: usize| {
        let part = name.0.get(at).and_then(ObjectNamePart::as_ident);
        part.map(column_name).unwrap_or_default()
    };
    let (first, second) = (word(0), word(1));
    if name.0.len() == 2 && first == INFORMATION_SCHEMA && second == EXPAND {
        name.0.remove(0);
        return true;
    }
    name.0.len() == 1 && first == EXPAND
}

/// `when s = '"$user"' then user`, as Grafana reads the search path: a column may be called `user` here, but not there.
fn user_of_path(when: &mut CaseWhen) {
    if !when.condition.to_string().contains("'\"$user\"'") {
        return;
    }
    // The parser takes it for a function without parentheses.
    match &mut when.result {
        Expr::Identifier(ident)
            if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("user") =>
        {
            ident.value = "current_user".into();
        }
        Expr::Function(function) if function.to_string().eq_ignore_ascii_case("user") => {
            function.name = ObjectName::from(vec![Ident::new("current_user")]);
        }
        _ => {}
    }
}

/// `(information_schema._pg_expandarray(a)).n` and `.x`: the places of the items of an array, and the items.
fn part_of_expanded(expr: &Expr) -> Option<Expr> {
    let (function, column) = column_of_call(expr)?;
    let mut function = function.clone();
    let name = match column_name(column).as_str() {
        "n" => PLACES,
        "x" => "unnest",
        _ => return None,
    };
    expanded(&mut function.name).then(|| {
        function.name = ObjectName::from(vec![Ident::with_quote('"', name)]);
        Expr::Function(function)
    })
}

/// `typname[0]`, by which `pg_dump` knows arrays: a name has letters as items, from 0 on.
fn first_letter(expr: &Expr) -> Option<Expr> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else {
        return None;
    };
    let (AccessExpr::Subscript(Subscript::Index { index }), before) = access_chain.split_last()?
    else {
        return None;
    };
    let mut parts = match &**root {
        Expr::Identifier(name) => vec![name.clone()],
        Expr::CompoundIdentifier(parts) => parts.clone(),
        _ => return None,
    };
    for part in before {
        match part {
            AccessExpr::Dot(Expr::Identifier(name)) => parts.push(name.clone()),
            _ => return None,
        }
    }
    let first = Expr::value(Value::Number("0".into(), false));
    let is_name = parts
        .last()
        .is_some_and(|name| column_name(name) == "typname");
    (is_name && *index == first).then(|| {
        let one = Expr::value(Value::Number("1".into(), false));
        let name = match &parts[..] {
            [name] => Expr::Identifier(name.clone()),
            _ => Expr::CompoundIdentifier(parts),
        };
        call("left", vec![name, one])
    })
}

fn without_schema(name: &mut ObjectName) {
    if let [
        ObjectNamePart::Identifier(schema),
        ObjectNamePart::Identifier(_),
    ] = &name.0[..]
        && schema.value.eq_ignore_ascii_case(PG_CATALOG)
    {
        name.0.remove(0);
    }
}

/// Whether a collation orders texts by their bytes, which is how they are ordered.
pub(crate) fn is_of_bytes(collation: &ObjectName) -> bool {
    let last = collation.0.last().and_then(ObjectNamePart::as_ident);
    let own = ["default", "C", "POSIX", "ucs_basic"];
    last.is_some_and(|name| own.contains(&name.value.as_str()))
}

fn is_text(expr: &Expr) -> bool {
    match expr {
        // What a parameter becomes.
        Expr::Nested(inner) => is_text(inner),
        Expr::Value(value) => value.value.clone().into_string().is_some(),
        Expr::BinaryOp { op, .. } => *op == BinaryOperator::StringConcat,
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Text | DataType::Varchar(_))
        }
        // Names are put together by them.
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            matches!(
                name.as_str(),
                "format" | "concat" | "concat_ws" | "quote_ident"
            )
        }
        _ => false,
    }
}

/// `operator(pg_catalog.~)` is `~`.
fn plain_operator(op: &mut BinaryOperator) {
    let BinaryOperator::PGCustomBinaryOperator(names) = op else {
        return;
    };
    let plain = match names.last().map(String::as_str) {
        Some("~") => BinaryOperator::PGRegexMatch,
        Some("~*") => BinaryOperator::PGRegexIMatch,
        Some("!~") => BinaryOperator::PGRegexNotMatch,
        Some("!~*") => BinaryOperator::PGRegexNotIMatch,
        Some("=") => BinaryOperator::Eq,
        Some("<>") => BinaryOperator::NotEq,
        _ => return,
    };
    *op = plain;
}
