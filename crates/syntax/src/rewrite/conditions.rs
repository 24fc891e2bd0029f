//! Conditions, which are true, false or NULL: each gets a mark with the clause that it is an argument of. What
//! [plans operators](crate::conditions) takes the mark away, and refuses conditions of other types by that name.
//!
//! A condition that is one by the way it is written, such as a comparison, needs no mark and gets none.

use std::ops::ControlFlow;

use functions::lists::names::{CONDITION, DISTINCT, NOT_DISTINCT};
use messages::Error;
use sqlparser::ast::{
    BinaryOperator, DoUpdate, Expr, Insert, JoinConstraint, JoinOperator, OnConflict,
    OnConflictAction, OnInsert, Select, Statement, TableFactor, TableWithJoins, UnaryOperator,
    Value, VisitorMut,
};

use crate::rewrite::comparisons::null;

/// Marks conditions. Marked ones stay as they are.
pub(super) struct Conditions;

impl VisitorMut for Conditions {
    type Break = Box<Error>;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Box<Error>> {
        let condition = match statement {
            Statement::Update(update) => update.selection.as_mut(),
            Statement::Delete(delete) => delete.selection.as_mut(),
            Statement::Insert(insert) => of_conflict(insert),
            _ => None,
        };
        if let Some(condition) = condition {
            mark(condition, "WHERE");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        let clauses = [
            (&mut select.selection, "WHERE"),
            (&mut select.having, "HAVING"),
            (&mut select.qualify, "QUALIFY"),
        ];
        for (condition, clause) in clauses {
            if let Some(condition) = condition {
                mark(condition, clause);
            }
        }
        select.from.iter_mut().for_each(joined);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Box<Error>> {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = factor
        {
            joined(table_with_joins);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        within(expr);
        ControlFlow::Continue(())
    }
}

/// The condition of an `on conflict do update`.
fn of_conflict(insert: &mut Insert) -> Option<&mut Expr> {
    match &mut insert.on {
        Some(OnInsert::OnConflict(OnConflict {
            action: OnConflictAction::DoUpdate(DoUpdate { selection, .. }),
            ..
        })) => selection.as_mut(),
        _ => None,
    }
}

fn joined(table: &mut TableWithJoins) {
    for join in &mut table.joins {
        let constraint = match &mut join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) => constraint,
            _ => continue,
        };
        if let JoinConstraint::On(condition) = constraint {
            mark(condition, "JOIN/ON");
        }
    }
}

/// Marks the conditions that are parts of an expression.
fn within(expr: &mut Expr) {
    match expr {
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => mark(expr, "NOT"),
        Expr::BinaryOp {
            left,
            op: op @ (BinaryOperator::And | BinaryOperator::Or),
            right,
        } => {
            let clause = if *op == BinaryOperator::And {
                "AND"
            } else {
                "OR"
            };
            mark(left, clause);
            mark(right, clause);
        }
        Expr::Case {
            operand: None,
            conditions,
            ..
        } => {
            for when in conditions {
                mark(&mut when.condition, "CASE/WHEN");
            }
        }
        Expr::Function(function) => {
            if let Some(filter) = &mut function.filter {
                mark(filter, "FILTER");
            }
        }
        Expr::IsTrue(inner) => mark(inner, "IS TRUE"),
        Expr::IsNotTrue(inner) => mark(inner, "IS NOT TRUE"),
        Expr::IsFalse(inner) => mark(inner, "IS FALSE"),
        Expr::IsNotFalse(inner) => mark(inner, "IS NOT FALSE"),
        Expr::IsUnknown(inner) => mark(inner, "IS UNKNOWN"),
        Expr::IsNotUnknown(inner) => mark(inner, "IS NOT UNKNOWN"),
        _ => {}
    }
}

/// Marks the condition of a clause, as `WHERE`, unless it is one by the way it is written.
pub fn mark(condition: &mut Expr, clause: &str) {
    if is_evident(condition) {
        return;
    }
    let inner = std::mem::replace(condition, null());
    *condition = Expr::BinaryOp {
        left: Box::new(inner),
        op: BinaryOperator::Custom(format!("{CONDITION}{clause}")),
        right: Box::new(null()),
    };
}

/// Whether an expression is of type boolean, or can become it, by the way it is written.
fn is_evident(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_evident(inner),
        Expr::UnaryOp { op, .. } => *op == UnaryOperator::Not,
        Expr::BinaryOp { op, .. } => gives_booleans(op),
        Expr::Value(value) => matches!(
            value.value,
            Value::Boolean(_) | Value::Null | Value::Placeholder(_)
        ),
        Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. }
        | Expr::Exists { .. } => true,
        _ => false,
    }
}

fn gives_booleans(op: &BinaryOperator) -> bool {
    use BinaryOperator::{And, Custom, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    match op {
        And | Or | Eq | NotEq | Gt | GtEq | Lt | LtEq => true,
        Custom(name) => name == DISTINCT || name == NOT_DISTINCT || name.starts_with(CONDITION),
        _ => false,
    }
}

/// The clause in the mark, if an operator is one.
pub fn clause(op: &BinaryOperator) -> Option<&str> {
    match op {
        BinaryOperator::Custom(name) => name.strip_prefix(CONDITION),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::returning::plain_query;
    use crate::walk::WalkMut;

    #[test]
    fn conditions_of_open_types_are_marked_once() {
        let text = "select case when a then 1 end, a and b = 1, count(*) filter (where (b)) from t join u on c where true and a is true";
        let marked = "SELECT CASE WHEN a condition of CASE/WHEN NULL THEN 1 END, a condition of AND NULL AND b = 1, count(*) FILTER (WHERE (b) condition of FILTER NULL) FROM t JOIN u ON c condition of JOIN/ON NULL WHERE true AND a condition of IS TRUE NULL IS TRUE";
        let mut query = plain_query(text).unwrap();
        for _ in 0..2 {
            assert!(query.walk_mut(&mut Conditions).is_continue());
            assert_eq!(query.to_string(), marked);
        }
    }
}
