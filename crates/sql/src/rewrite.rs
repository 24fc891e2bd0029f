//! What is changed in a statement before DataFusion sees it.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, Statement, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// `1e3` becomes `cast('1e3' as double)`: a number with an exponent is a double, one with a point a decimal.
pub(crate) fn exponents(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut changed = Vec::with_capacity(tokens.len());
    for token in tokens {
        match &token.token {
            Token::Number(text, false) if text.contains(['e', 'E']) => {
                let space =
                    Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
                let parts = [
                    Token::make_keyword("CAST"),
                    Token::LParen,
                    Token::SingleQuotedString(text.clone()),
                    space.clone(),
                    Token::make_keyword("AS"),
                    space,
                    Token::make_keyword("DOUBLE"),
                    Token::RParen,
                ];
                changed.extend(parts.map(|part| TokenWithSpan {
                    token: part,
                    span: token.span,
                }));
            }
            _ => changed.push(token.clone()),
        }
    }
    changed
}

/// Where tokens end: the position to report for what is missing after them.
pub(crate) fn end(tokens: &[TokenWithSpan]) -> Option<crate::Position> {
    let last = tokens
        .iter()
        .rev()
        .find(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF))?;
    (last.span.end.line > 0).then_some(crate::Position {
        line: last.span.end.line,
        column: last.span.end.column,
    })
}

/// Gives output columns that would share a name, as in `select a, a` or `select cast(a as int), cast(a as double)`,
/// names of their own: `a`, `a_1`. DataFusion refuses equal names.
pub(crate) fn name_columns(statement: &mut Statement) {
    let _ = statement.visit(&mut Namer);
}

struct Namer;

impl VisitorMut for Namer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        name_all(&mut query.body);
        ControlFlow::Continue(())
    }
}

/// Names the columns of a select, or of all that a set is made of. Queries in parentheses are visited by themselves.
fn name_all(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => name_items(&mut select.projection),
        SetExpr::SetOperation { left, right, .. } => {
            name_all(left);
            name_all(right);
        }
        _ => {}
    }
}

fn name_items(items: &mut [SelectItem]) {
    let mut taken: HashSet<String> = HashSet::new();
    let mut unnamed: Vec<usize> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                taken.insert(alias.value.to_lowercase());
            }
            SelectItem::UnnamedExpr(_) => unnamed.push(i),
            _ => {}
        }
    }
    for i in unnamed {
        let SelectItem::UnnamedExpr(expr) = &items[i] else {
            continue;
        };
        let name = output_name(expr);
        if taken.insert(name.clone()) {
            continue;
        }
        let short = name.rsplit('.').next().unwrap_or(&name);
        let free = (1usize..)
            .map(|n| format!("{short}_{n}"))
            .find(|free| !taken.contains(free));
        if let Some(free) = free {
            taken.insert(free.clone());
            items[i] = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: Ident::with_quote('"', free),
            };
        }
    }
}

/// What DataFusion calls the column: casts do not show.
fn output_name(expr: &Expr) -> String {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => output_name(expr),
        other => other.to_string().to_lowercase(),
    }
}
