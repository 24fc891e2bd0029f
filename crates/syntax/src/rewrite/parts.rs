//! A column of the rows that a function gives, in the select list: `(aclexplode(a)).grantee`, and all of them: `(f(a)).*`.

use std::ops::ControlFlow;

use messages::Error;
use sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArguments, Ident, ObjectNamePart, Select, SelectItem,
    VisitorMut,
};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::call::call;
use crate::names::{PG_CATALOG, column_name};
use crate::rewrite::sets;

/// Makes such columns rows of their own, which are called as the columns are.
pub(super) struct Parts;

impl VisitorMut for Parts {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some((expr, alias)) = part(expr)
            {
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        if let Some((part, _)) = part(expr) {
            *expr = part;
        }
        ControlFlow::Continue(())
    }
}

/// A call and the name of a column of the rows that it gives, `(f(a)).column`; none of other expressions.
pub(super) fn column_of_call(expr: &Expr) -> Option<(&Function, &Ident)> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else {
        return None;
    };
    let (Expr::Nested(inner), [AccessExpr::Dot(Expr::Identifier(column))]) =
        (&**root, &access_chain[..])
    else {
        return None;
    };
    match &**inner {
        Expr::Function(function) => Some((function, column)),
        _ => None,
    }
}

/// The rows of one column of a function, and what the column is called.
fn part(expr: &Expr) -> Option<(Expr, Ident)> {
    let (function, column) = column_of_call(expr)?;
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let parts = function.name.0.iter().filter_map(ObjectNamePart::as_ident);
    let parts: Vec<String> = parts.map(column_name).collect();
    let name = match &parts[..] {
        [name] => name,
        [schema, name] if schema == PG_CATALOG => name,
        _ => return None,
    };
    let wanted = column_name(column);
    let mut columns = sets::columns(name, &list.args).into_iter();
    let (values, _) = columns.find(|(_, own)| *own == wanted)?;
    Some((call("unnest", vec![values]), column.clone()))
}

/// Writes `(f(a)).*` of such a function as one column after the other, as the parser does not read it.
pub(crate) fn all_parts(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    let mut changed: Option<Vec<TokenWithSpan>> = None;
    while let Some(token) = tokens.get(at) {
        let found = (token.token == Token::LParen).then(|| starred(&tokens, at));
        if let Some((end, columns)) = found.flatten() {
            let made = changed.get_or_insert_with(|| tokens[..at].to_vec());
            let call = tokens[at..end].iter();
            let call = call.filter(|own| !matches!(own.token, Token::Whitespace(_)));
            let mut call: Vec<TokenWithSpan> = call.cloned().collect();
            // Without the point and the star.
            call.truncate(call.len().saturating_sub(2));
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    made.push(TokenWithSpan::new(Token::Comma, token.span));
                }
                made.extend(call.iter().cloned());
                let name = Token::make_word(column, None);
                made.extend([Token::Period, name].map(|own| TokenWithSpan::new(own, token.span)));
            }
            at = end;
            continue;
        }
        if let Some(made) = &mut changed {
            made.push(token.clone());
        }
        at += 1;
    }
    changed.unwrap_or(tokens)
}

/// Where `(f(...)).*` ends that begins at a place, and the columns of the function.
fn starred(tokens: &[TokenWithSpan], start: usize) -> Option<(usize, Vec<&'static str>)> {
    let rest = tokens.iter().enumerate().skip(start + 1);
    let mut rest = rest.filter(|(_, own)| !matches!(own.token, Token::Whitespace(_)));
    let mut name = None;
    for (_, token) in rest.by_ref() {
        match &token.token {
            Token::Word(word) => name = Some(word.value.to_lowercase()),
            Token::Period => {}
            Token::LParen => break,
            _ => return None,
        }
    }
    let columns = sets::names_of_columns(&name?)?;
    let mut depth = 1_usize;
    for (_, token) in rest.by_ref() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    let mut next = || rest.next();
    let closes = next()?.1.token == Token::RParen;
    let point = next()?.1.token == Token::Period;
    let (end, star) = next()?;
    (closes && point && star.token == Token::Mul).then_some((end + 1, columns))
}
