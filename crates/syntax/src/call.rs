//! Calls of functions, as the parser would have read them.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName,
};

/// A call of the function of this very name, which statements need not be able to write.
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(Ident::with_quote('"', name), args))
}

/// A call of a function as a statement writes it, `coalesce(a, b)`.
pub fn plain_call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(Ident::new(name), args))
}

fn function(name: Ident, args: Vec<Expr>) -> Function {
    let args = args.into_iter();
    let args = args.map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    }
}
