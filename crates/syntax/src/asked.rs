//! Which sequences an expression asks.

use std::ops::ControlFlow;

use functions::sequences::relation;
use messages::Result;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, Visitor,
};

use crate::expression;
use crate::names::{column_name, known};
use crate::walk::Walk;

/// The sequences that an expression asks by constant names.
///
/// # Errors
/// If it is none.
pub fn asked(text: &str) -> Result<Vec<String>> {
    struct Asked(Vec<String>);

    impl Visitor for Asked {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expr
                && let Some(name) = constant(function)
                && let Ok(name) = relation(name)
            {
                self.0.push(known(&name));
            }
            ControlFlow::Continue(())
        }
    }

    let mut found = Asked(Vec::new());
    let _ = expression::expression(text)?.walk(&mut found);
    Ok(found.0)
}

/// The constant that names the sequence in a call of `nextval` and the like.
fn constant(function: &Function) -> Option<&str> {
    let [part] = &function.name.0[..] else {
        return None;
    };
    let name = column_name(part.as_ident()?);
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))) = list.args.first()
    else {
        return None;
    };
    match &value.value {
        Value::SingleQuotedString(text)
            if matches!(name.as_str(), "nextval" | "currval" | "setval") =>
        {
            Some(text)
        }
        _ => None,
    }
}
