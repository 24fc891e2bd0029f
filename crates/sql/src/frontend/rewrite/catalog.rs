//! What clients of PostgreSQL write in statements about its catalog: names of functions, types and operators in the schema
//! `pg_catalog`, and types that are numbers here.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, Value, VisitorMut,
};

use crate::error::Error;
use crate::names::PG_CATALOG;

/// Takes the schema away, and the types that there are not.
pub(super) struct Catalog;

impl VisitorMut for Catalog {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        if let Expr::Function(function) = expr {
            plain_sequence(function);
        }
        // What `psql` asks about each column of a table, by queries within its query.
        let Expr::Subquery(query) = expr else {
            return ControlFlow::Continue(());
        };
        let text = query.to_string().to_lowercase();
        if text.contains("from pg_catalog.pg_attrdef") && text.contains("pg_get_expr") {
            *expr = Expr::Identifier(Ident::new("attdefault"));
        } else if text.contains("from pg_catalog.pg_collation") {
            *expr = Expr::Value(Value::Null.with_empty_span());
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
            } if is_default(collation) => {
                let inner = std::mem::replace(&mut **inner, Expr::Identifier(Ident::new("")));
                *expr = inner;
            }
            Expr::Cast {
                expr: inner,
                data_type,
                ..
            } => {
                let name = match data_type {
                    DataType::Custom(name, _) => {
                        without_schema(name);
                        name.to_string().to_lowercase()
                    }
                    DataType::Regclass => "regclass".to_string(),
                    _ => return ControlFlow::Continue(()),
                };
                match name.as_str() {
                    "regclass" if is_text(inner) => {
                        let inner =
                            std::mem::replace(&mut **inner, Expr::Identifier(Ident::new("")));
                        *expr = called("regclass", inner);
                    }
                    "oid" | "regclass" | "xid" => *data_type = DataType::BigInt(None),
                    "name" | "\"char\"" | "regtype" | "regproc" | "regnamespace" | "regrole"
                    | "text" => *data_type = DataType::Text,
                    "int4" => *data_type = DataType::Int(None),
                    _ => {}
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
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

fn is_default(collation: &ObjectName) -> bool {
    let last = collation.0.last().and_then(ObjectNamePart::as_ident);
    last.is_some_and(|name| name.value == "default")
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value.clone().into_string().is_some())
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

fn called(name: &str, argument: Expr) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))],
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}
