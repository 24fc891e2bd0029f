//! Queries about the catalog by recursions over outer columns, which are answered in another way. Of them is that by which pgAdmin
//! looks whether a role is a member of another, and the one by which asyncpg looks at types that it has not met, such as arrays. It walks from each type to those that it is made
//! of by a recursion with another within it, over outer columns; here a table of the catalog has the answer.

use std::ops::ControlFlow;

use messages::Result;
use sqlparser::ast::{BinaryOperator, Expr, Ident, Query, SetExpr, Value, Visitor};

use crate::call::plain_call;
use crate::names::column_name;
use crate::returning::plain_query;
use crate::rewrite::special::query_of_array;
use crate::walk::Walk;

/// What the query calls the types.
const TREE: &str = "typeinfo_tree";

/// The same columns in the same order, nearest last.
const ANSWER: &str = "select oid, ns, name, kind, basetype, elemtype, elemdelim, range_subtype, attrtypoids, attrnames, depth, basetype_name, elemtype_name, range_subtype_name from pg_catalog.pg_type_trees order by depth desc";

/// Finds the array of the numbers of the types: `ti.oid = any($1::oid[])`.
#[derive(Default)]
struct Asked(Option<Expr>);

impl Visitor for Asked {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::AnyOp {
                compare_op: BinaryOperator::Eq,
                right,
                ..
            } => {
                self.0 = Some(right.as_ref().clone());
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Rewrites `'a' = any(array(with recursive ...))` where the recursion goes from a role to those that it is a member of.
pub(super) fn membership(expr: &mut Expr) {
    let Expr::AnyOp {
        left,
        compare_op: BinaryOperator::Eq,
        right,
        ..
    } = &*expr
    else {
        return;
    };
    let role = query_of_array(right).and_then(member);
    if let Some(role) = role {
        let kind = Expr::value(Value::SingleQuotedString("member".into()));
        *expr = plain_call("pg_has_role", vec![role, (**left).clone(), kind]);
    }
}

/// The role that such a recursion begins with.
fn member(query: &Query) -> Option<Expr> {
    let with = query.with.as_ref().filter(|with| with.recursive)?;
    let [tree] = &with.cte_tables[..] else {
        return None;
    };
    let SetExpr::SetOperation { left, right, .. } = tree.query.body.as_ref() else {
        return None;
    };
    let SetExpr::Select(first) = left.as_ref() else {
        return None;
    };
    let next = right.to_string().to_lowercase();
    let Some(Expr::BinaryOp {
        op: BinaryOperator::Eq,
        right: role,
        ..
    }) = &first.selection
    else {
        return None;
    };
    let is_column = matches!(role.as_ref(), Expr::CompoundIdentifier(_));
    (is_column && next.contains("pg_auth_members")).then(|| (**role).clone())
}

/// Rewrites the query, if it is that one.
///
/// # Errors
/// None: what stands in its place is a query.
pub(super) fn types(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_ref().filter(|with| with.recursive) else {
        return Ok(());
    };
    let [tree] = &with.cte_tables[..] else {
        return Ok(());
    };
    if column_name(&tree.alias.name) != TREE {
        return Ok(());
    }
    let mut asked = Asked::default();
    let _ = tree.query.walk(&mut asked);
    let Some(numbers) = asked.0 else {
        return Ok(());
    };
    let mut answer = *plain_query(ANSWER)?;
    if let SetExpr::Select(select) = answer.body.as_mut() {
        select.selection = Some(Expr::AnyOp {
            left: Box::new(Expr::Identifier(Ident::new("root"))),
            compare_op: BinaryOperator::Eq,
            right: Box::new(numbers),
            is_some: false,
        });
    }
    *query = answer;
    Ok(())
}
