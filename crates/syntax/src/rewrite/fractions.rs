//! `percentile_cont(array[0.25, 0.5]) within group (order by x)`: an array of the percentiles, each of its own fraction.

use functions::lists::names::MAKE;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Value,
};

use crate::call::{call, plain_call};
use crate::names::column_name;

/// What such a call, with these arguments if it has no others, stands for; none if it is another.
pub(super) fn spread(name: &str, function: &Function, args: Option<Vec<Expr>>) -> Option<Expr> {
    let is_one = matches!(name, "percentile_cont" | "percentile_disc");
    let ([key], true) = (&function.within_group[..], is_one) else {
        return None;
    };
    let args = args?;
    let [fractions] = &args[..] else {
        return None;
    };
    let each = items(fractions)?.into_iter().map(|fraction| {
        if fraction == Expr::value(Value::Null) {
            return fraction;
        }
        let mut own = function.clone();
        if let FunctionArguments::List(list) = &mut own.args {
            list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(fraction))];
        }
        Expr::Function(own)
    });
    let each = call(MAKE, each.collect());
    // Of no values there is no array.
    let mut values = plain_call("count", vec![key.expr.clone()]);
    if let Expr::Function(count) = &mut values {
        count.filter.clone_from(&function.filter);
    }
    let condition = Expr::BinaryOp {
        left: Box::new(values),
        op: BinaryOperator::Gt,
        right: Box::new(Expr::value(Value::Number("0".into(), false))),
    };
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition,
            result: each,
        }],
        else_result: None,
    })
}

/// The items of an array that is written out; none of another expression.
fn items(array: &Expr) -> Option<Vec<Expr>> {
    match array {
        Expr::Nested(inner) => items(inner),
        Expr::Array(array) => Some(array.elem.clone()),
        Expr::Function(made) => {
            let [part] = &made.name.0[..] else {
                return None;
            };
            let FunctionArguments::List(list) = &made.args else {
                return None;
            };
            if part.as_ident().map(column_name)? != MAKE {
                return None;
            }
            let items = list.args.iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(item)) => Some(item.clone()),
                _ => None,
            });
            items.collect()
        }
        Expr::Cast { expr, .. } => match expr.as_ref() {
            Expr::Value(text) => of_text(&text.value),
            other => items(other),
        },
        _ => None,
    }
}

/// The numbers of `{0.25,0.5}`.
fn of_text(value: &Value) -> Option<Vec<Expr>> {
    let Value::SingleQuotedString(text) = value else {
        return None;
    };
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let number = |item: &str| {
        let item = item.trim();
        if item.eq_ignore_ascii_case("null") {
            return Some(Expr::value(Value::Null));
        }
        let plain = !item.is_empty() && item.bytes().all(|c| c.is_ascii_digit() || c == b'.');
        plain.then(|| Expr::value(Value::Number(item.into(), false)))
    };
    inner.split(',').map(number).collect()
}
