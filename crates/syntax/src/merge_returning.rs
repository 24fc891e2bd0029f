//! What a `merge` returns.

use std::ops::ControlFlow;

use messages::tags::shown;
use messages::{Error, Result};
use sqlparser::ast::{
    Expr, Ident, ObjectNamePart, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, VisitorMut,
    WildcardAdditionalOptions,
};

use crate::names::column_name;
use crate::returning::plain_query;
use crate::walk::WalkMut;
use crate::{distinct, grammar, rewrite};

/// What a `returning` asks for.
#[derive(Clone, Debug)]
pub enum Returned {
    /// The columns of the source, and those of the target.
    All,
    /// Those of one of them.
    AllOf(Ident),
    /// An expression, and what it is called.
    Item(Box<Expr>, String),
}

/// The column of a pair that says what was done with it, for `returning`.
pub const ACTION: &str = "__action";

/// What is asked for behind `returning`.
pub(super) fn returned(items: Vec<SelectItem>) -> Result<Vec<Returned>> {
    let mut all = Vec::new();
    for item in items {
        all.push(match item {
            SelectItem::Wildcard(options) if options == WildcardAdditionalOptions::default() => {
                Returned::All
            }
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) if options == WildcardAdditionalOptions::default() => match &name.0[..] {
                [ObjectNamePart::Identifier(ident)] => Returned::AllOf(ident.clone()),
                _ => {
                    return Err(Error::coded(
                        "42P01",
                        format!("there are no rows called {name}"),
                    ));
                }
            },
            item => named_item(item)?,
        });
    }
    Ok(all)
}

/// An expression as the planner reads it, and the name of its column.
fn named_item(item: SelectItem) -> Result<Returned> {
    let mut query = plain_query("select 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![item];
    }
    distinct::associate(&mut *query);
    rewrite::query(&mut query)?;
    grammar::check(&*query)?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::Defect {
            message: "what a `merge` returns does not parse".into(),
        });
    };
    let (mut expr, name) = match select.projection.pop() {
        Some(SelectItem::ExprWithAlias { expr, alias }) => {
            (expr, shown(&column_name(&alias)).to_owned())
        }
        Some(SelectItem::UnnamedExpr(expr)) => {
            let name = match &expr {
                Expr::Identifier(ident) => column_name(ident),
                Expr::CompoundIdentifier(parts) => {
                    parts.last().map(column_name).unwrap_or_default()
                }
                _ => "?column?".into(),
            };
            (expr, name)
        }
        _ => return Err(grammar::refused("this in `returning`")),
    };
    let _ = expr.walk_mut(&mut Actions);
    Ok(Returned::Item(Box::new(expr), name))
}

/// `merge_action()` is a column of the rows that `returning` sees.
struct Actions;

impl VisitorMut for Actions {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let [ObjectNamePart::Identifier(name)] = &function.name.0[..]
            && column_name(name) == "merge_action"
        {
            *expr = Expr::Identifier(Ident::with_quote('"', ACTION));
        }
        ControlFlow::Continue(())
    }
}
