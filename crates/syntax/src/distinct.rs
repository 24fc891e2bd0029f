//! `is [not] distinct from`, which the parser reads wrongly.
//!
//! The parser lets its right operand reach as far as there are operators: it reads `a is distinct from b and c` as
//! `a is distinct from (b and c)`. Two steps correct that. [`mark`] finds where each operand really ends and puts it in
//! parentheses. [`associate`] takes out of the operand what the parser put behind the parentheses, and joins it with
//! what surrounds it by precedence: `is` binds closer than `not`, `not` closer than `and`, `and` closer than `or`.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, VisitMut, VisitorMut};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::depth;
use crate::walk::WalkMut;

/// Puts right operands of `is [not] distinct from` in parentheses.
pub(crate) fn mark(
    dialect: &dyn Dialect,
    tokens: Vec<TokenWithSpan>,
) -> Result<Vec<TokenWithSpan>, ParserError> {
    let starts = operands(&tokens);
    if starts.is_empty() {
        return Ok(tokens);
    }
    let mut parser = Parser::new(dialect)
        .with_tokens_with_locations(tokens.clone())
        .with_recursion_limit(depth::PARSER_RECURSION);
    let mut put = Vec::with_capacity(2 * starts.len());
    for start in starts {
        while parser.index() < start {
            parser.advance_token();
        }
        parser.parse_subexpr(dialect.prec_value(Precedence::Is))?;
        put.extend([(start, Token::LParen), (parser.index(), Token::RParen)]);
        // An operand may hold others.
        while parser.index() > start {
            parser.prev_token();
        }
    }
    put.sort_by_key(|(at, _)| *at);
    Ok(insert(tokens, put))
}

/// Where the right operands of `is [not] distinct from` begin.
fn operands(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut words = [Keyword::NoKeyword; 3];
    for (at, token) in tokens.iter().enumerate() {
        let keyword = match &token.token {
            Token::Whitespace(_) => continue,
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        let [_, before, last] = words;
        if keyword == Keyword::FROM
            && last == Keyword::DISTINCT
            && matches!(before, Keyword::IS | Keyword::NOT)
        {
            starts.push(at + 1);
        }
        words = [before, last, keyword];
    }
    starts
}

/// Inserts each token of `put` before the token at its place; places ascend.
fn insert(tokens: Vec<TokenWithSpan>, put: Vec<(usize, Token)>) -> Vec<TokenWithSpan> {
    let mut changed = Vec::with_capacity(tokens.len() + put.len());
    let mut put = put.into_iter().peekable();
    let end = tokens.len();
    let last = tokens.last().map(|token| token.span);
    for (at, token) in tokens.into_iter().enumerate() {
        while let Some((_, new)) = put.next_if(|(place, _)| *place == at) {
            changed.push(TokenWithSpan::new(new, token.span));
        }
        changed.push(token);
    }
    while let (Some((_, new)), Some(span)) = (put.next_if(|(place, _)| *place >= end), last) {
        changed.push(TokenWithSpan::new(new, span));
    }
    changed
}

/// Moves the operators behind marked operands to their places in the tree.
pub(crate) fn associate(tree: &mut impl VisitMut) {
    let _ = tree.walk_mut(&mut Associate);
}

struct Associate;

impl VisitorMut for Associate {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if reaches_too_far(expr) {
            let mut items = Vec::new();
            flatten(
                std::mem::replace(expr, Expr::Identifier(Ident::new(""))),
                &mut items,
            );
            let mut items = items.into_iter().peekable();
            *expr = disjunction(&mut items);
        }
        ControlFlow::Continue(())
    }
}

/// Whether the last operator outside parentheses is an `is distinct from` that has taken more than its operand.
fn reaches_too_far(mut expr: &Expr) -> bool {
    loop {
        expr = match expr {
            Expr::BinaryOp { op, right, .. } if is_connective(op) => right,
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => expr,
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => {
                return !matches!(**right, Expr::Nested(_));
            }
            _ => return false,
        }
    }
}

fn is_connective(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::And | BinaryOperator::Or)
}

/// A piece of an expression, in the order of the text.
enum Item {
    Not,
    Operand(Expr),
    Connective(BinaryOperator),
    /// `is null` and its kind.
    Is(fn(Box<Expr>) -> Expr),
    /// `is distinct from` an operand.
    From(fn(Box<Expr>, Box<Expr>) -> Expr, Expr),
}

fn flatten(expr: Expr, items: &mut Vec<Item>) {
    let mut is = |expr: Box<Expr>, kind: fn(Box<Expr>) -> Expr| {
        flatten(*expr, items);
        items.push(Item::Is(kind));
    };
    match expr {
        Expr::IsNull(expr) => is(expr, Expr::IsNull),
        Expr::IsNotNull(expr) => is(expr, Expr::IsNotNull),
        Expr::IsTrue(expr) => is(expr, Expr::IsTrue),
        Expr::IsNotTrue(expr) => is(expr, Expr::IsNotTrue),
        Expr::IsFalse(expr) => is(expr, Expr::IsFalse),
        Expr::IsNotFalse(expr) => is(expr, Expr::IsNotFalse),
        Expr::IsUnknown(expr) => is(expr, Expr::IsUnknown),
        Expr::IsNotUnknown(expr) => is(expr, Expr::IsNotUnknown),
        Expr::IsDistinctFrom(left, right) => from(Expr::IsDistinctFrom, *left, *right, items),
        Expr::IsNotDistinctFrom(left, right) => from(Expr::IsNotDistinctFrom, *left, *right, items),
        Expr::BinaryOp { left, op, right } if is_connective(&op) => {
            flatten(*left, items);
            items.push(Item::Connective(op));
            flatten(*right, items);
        }
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => {
            items.push(Item::Not);
            flatten(*expr, items);
        }
        other => items.push(Item::Operand(other)),
    }
}

/// Flattens `left is distinct from right`; the operand is the first piece of the right side.
fn from(kind: fn(Box<Expr>, Box<Expr>) -> Expr, left: Expr, right: Expr, items: &mut Vec<Item>) {
    flatten(left, items);
    let at = items.len();
    flatten(right, items);
    if let Item::Operand(operand) = std::mem::replace(&mut items[at], Item::Not) {
        items[at] = Item::From(kind, operand);
    }
}

type Items = std::iter::Peekable<std::vec::IntoIter<Item>>;

fn disjunction(items: &mut Items) -> Expr {
    chain(BinaryOperator::Or, items, conjunction)
}

fn conjunction(items: &mut Items) -> Expr {
    chain(BinaryOperator::And, items, predicate)
}

fn chain(op: BinaryOperator, items: &mut Items, operand: fn(&mut Items) -> Expr) -> Expr {
    let mut expr = operand(items);
    while items
        .next_if(|item| matches!(item, Item::Connective(found) if *found == op))
        .is_some()
    {
        expr = Expr::BinaryOp {
            left: Box::new(expr),
            op: op.clone(),
            right: Box::new(operand(items)),
        };
    }
    expr
}

fn predicate(items: &mut Items) -> Expr {
    let mut expr = match items.next() {
        Some(Item::Operand(operand)) => operand,
        _ => {
            return Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: Box::new(predicate(items)),
            };
        }
    };
    while let Some(item) = items.next_if(|item| matches!(item, Item::Is(_) | Item::From(..))) {
        expr = match item {
            Item::Is(kind) => kind(Box::new(expr)),
            Item::From(kind, operand) => kind(Box::new(expr), Box::new(operand)),
            _ => expr,
        };
    }
    expr
}

#[cfg(test)]
mod tests {
    use crate::parse::{Statement, parse};

    /// What the statement means, with every operand in parentheses.
    fn read(condition: &str) -> String {
        let parsed = parse(&format!("select {condition}"))
            .unwrap()
            .pop()
            .unwrap();
        let Statement::Sql(sql) = parsed.statement else {
            panic!("{condition}");
        };
        sql.to_string().trim_start_matches("SELECT ").to_string()
    }

    /// The shape of the tree: its text has no parentheses of its own.
    fn shape(condition: &str) -> String {
        fn of(expr: &super::Expr) -> String {
            use super::Expr::*;
            use crate::rewrite::clause;
            match expr {
                BinaryOp { left, op, .. } if clause(op).is_some() => of(left),
                BinaryOp { left, op, right } => {
                    let op = op.to_string();
                    let op = match op.as_str() {
                        "IS DISTINCT FROM" => "!=",
                        "IS NOT DISTINCT FROM" => "==",
                        other => other,
                    };
                    format!("[{} {op} {}]", of(left), of(right))
                }
                UnaryOp { op, expr } => format!("[{op} {}]", of(expr)),
                IsNull(expr) => format!("[{} null?]", of(expr)),
                Nested(expr) => of(expr),
                other => other.to_string(),
            }
        }
        let parsed = parse(&format!("select {condition}"))
            .unwrap()
            .pop()
            .unwrap();
        let Statement::Sql(sql) = parsed.statement else {
            panic!("{condition}");
        };
        let sqlparser::ast::Statement::Query(query) = *sql else {
            panic!("{condition}");
        };
        let select = query.body.as_select().unwrap();
        match &select.projection[0] {
            // Its name comes from elsewhere.
            sqlparser::ast::SelectItem::ExprWithAlias { expr, .. } => of(expr),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn operators_after_an_operand_are_not_its_own() {
        for (text, wanted) in [
            ("a is distinct from b and c", "[[a != b] AND c]"),
            (
                "x and a is not distinct from b + 1 or c",
                "[[x AND [a == [b + 1]]] OR c]",
            ),
            (
                "x or a is distinct from b and c or d",
                "[[x OR [[a != b] AND c]] OR d]",
            ),
            (
                "not a is distinct from -b and c",
                "[[NOT [a != [- b]]] AND c]",
            ),
            (
                "a is distinct from b is distinct from c and d is null",
                "[[[a != b] != c] AND [d null?]]",
            ),
            (
                "a is distinct from b is null or c",
                "[[[a != b] null?] OR c]",
            ),
            (
                "a is distinct from (b is distinct from c and d) and e",
                "[[a != [[b != c] AND d]] AND e]",
            ),
            (
                "a is distinct from b and c is distinct from d and not e is distinct from f or g",
                "[[[[a != b] AND [c != d]] AND [NOT [e != f]]] OR g]",
            ),
            (
                "a between 1 and 2 is distinct from b or c",
                "[[a BETWEEN 1 AND 2 != b] OR c]",
            ),
            ("a is distinct from not b", "[a != [NOT b]]"),
        ] {
            assert_eq!(shape(text), wanted, "{text}");
        }
    }

    #[test]
    fn operands_inside_others_are_found() {
        assert_eq!(
            read("f(a is distinct from case when b is distinct from c and d then 1 end and e, 2)"),
            "f(a IS DISTINCT FROM (CASE WHEN b IS DISTINCT FROM (c) AND d condition of AND NULL THEN 1 END) AND e condition of AND NULL, 2) AS \"f\""
        );
    }

    #[test]
    fn what_is_no_operand_stays() {
        assert!(parse("select a is distinct from").is_err());
        let whole = "count(DISTINCT a) AS \"count\" FROM t";
        assert_eq!(read("count(DISTINCT a) FROM t"), whole);
    }
}
