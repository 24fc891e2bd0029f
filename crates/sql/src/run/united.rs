//! Queries within a statement that unite rows, where the first side selects a constant in quotes or a NULL and another a value:
//! that says of which type the column is, and the planner would compute with it as with a text. So such a query is planned by
//! itself and [typed](unions::typed), and the statement reads its rows by a name that nobody can write.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion_common::TableReference;
use datafusion_sql::parser::Statement as Extended;
use datafusion_sql::planner::{ParserOptions, SqlToRel};
use sqlparser::ast::{
    Expr, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement as Sql, Value,
    Visitor, VisitorMut,
};
use syntax::expression::written;
use syntax::flow::{flow, outcome};
use syntax::names::{UNITED_ROWS, column_name};
use syntax::walk::{Walk, WalkMut};

use crate::error::{Error, Result};
use crate::optimize::{floats, unions};
use crate::run::resolver::Resolver;
use crate::scan::view::View;

/// Puts the plans of such queries into `names`, and their names into the statement. Of a view its own query may be one; that of
/// another statement is typed as a whole.
///
/// # Errors
/// If the sides of one do not go together.
pub(super) fn apart(
    statement: &mut Sql,
    names: &mut Resolver<'_>,
    options: &dyn Fn() -> ParserOptions,
    of_view: bool,
) -> Result<()> {
    let mut given = Given(HashSet::new());
    // Nothing stops it.
    let _ = statement.walk(&mut given);
    outcome(statement.walk_mut(&mut United {
        names,
        options,
        given: given.0,
        around: 0,
        outermost: usize::from(!of_view),
        found: 0,
    }))
}

/// Collects the names that `with` gives.
struct Given(HashSet<String>);

impl Visitor for Given {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(with.map(|cte| column_name(&cte.alias.name)));
        ControlFlow::Continue(())
    }
}

struct United<'n, 'r> {
    names: &'n mut Resolver<'r>,
    options: &'n dyn Fn() -> ParserOptions,
    /// What is called so may be none of the tables in `names`.
    given: HashSet<String>,
    /// How many queries there are around what is visited, and around those at least that are planned.
    around: usize,
    outermost: usize,
    /// How many were planned.
    found: usize,
}

impl VisitorMut for United<'_, '_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        let done = flow(self.visited(query));
        self.around += 1;
        done
    }

    /// Once more: what it computes with may be of a union within.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        self.around -= 1;
        flow(self.visited(query))
    }
}

impl United<'_, '_> {
    fn visited(&mut self, query: &mut Query) -> Result<()> {
        if self.around < self.outermost || !is_open(&query.body) || self.reads_given(query) {
            return Ok(());
        }
        self.replace(query)
    }

    /// Whether a query names what a `with` gives.
    fn reads_given(&self, query: &Query) -> bool {
        struct Named<'g>(&'g HashSet<String>);

        impl Visitor for Named<'_> {
            type Break = ();

            fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
                let only = match &name.0[..] {
                    [ObjectNamePart::Identifier(only)] => column_name(only),
                    _ => return ControlFlow::Continue(()),
                };
                if self.0.contains(&only) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            }
        }

        query.walk(&mut Named(&self.given)).is_break()
    }

    /// Plans a query, unless it reads what is around it.
    fn replace(&mut self, query: &mut Query) -> Result<()> {
        let own = Extended::Statement(Box::new(Sql::Query(Box::new(query.clone()))));
        let planner = SqlToRel::new_with_options(&*self.names, (self.options)());
        // What is wrong with it is found again where the whole statement is planned.
        let Ok(plan) = planner.statement_to_plan(own) else {
            return Ok(());
        };
        let plan = unions::typed(floats::settled(plan)?)?;
        let mut seen = HashSet::new();
        let mut fields = plan.schema().fields().iter();
        if !fields.all(|field| seen.insert(field.name().clone())) {
            return Ok(());
        }
        let name = format!("{UNITED_ROWS} {}", self.found);
        self.found += 1;
        *query = *written(&format!("select * from \"{name}\""))?;
        let rows = Arc::new(View::new(plan));
        self.names.put(TableReference::bare(name), rows);
        Ok(())
    }
}

/// Whether rows are united that have in a column a constant in quotes, or NULL, of the first side, and something else of another.
fn is_open(body: &SetExpr) -> bool {
    if !matches!(body, SetExpr::SetOperation { .. }) {
        return false;
    }
    let sides = sides(body).unwrap_or_default();
    let Some((first, others)) = sides.split_first() else {
        return false;
    };
    (0..first.projection.len()).any(|at| {
        let differs = |other: &&Select| is_constant(other, at) == Some(false);
        is_constant(first, at) == Some(true) && others.iter().any(differs)
    })
}

/// The sides of a union from the left; none if one is no `select`.
fn sides(body: &SetExpr) -> Option<Vec<&Select>> {
    let (mut open, mut found) = (vec![body], Vec::new());
    while let Some(side) = open.pop() {
        match side {
            SetExpr::Select(select) => found.push(select.as_ref()),
            SetExpr::SetOperation { left, right, .. } => {
                open.push(right);
                open.push(left);
            }
            SetExpr::Query(query) => open.push(&query.body),
            _ => return None,
        }
    }
    Some(found)
}

/// Whether the item of a `select` at a place is such a constant; none if there is no item that is one value.
fn is_constant(select: &Select, at: usize) -> Option<bool> {
    let mut expr = match select.projection.get(at)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
        _ => return None,
    };
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    Some(match expr {
        Expr::Value(value) => {
            matches!(value.value, Value::SingleQuotedString(_) | Value::Null)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syntax::returning::plain_query;

    #[test]
    fn only_constants_beside_values_are_open() {
        for (text, open) in [
            ("select '1' union select 2", true),
            (
                "select a, null union select a, b union select 1, null",
                true,
            ),
            ("select 'a' union (select 'b' union all select c)", true),
            ("select 'a', b union select 'c', d", false),
            ("select a union select '1'", false),
            ("select '1'", false),
            ("values ('1') union select 2", false),
            ("select '1'::int union select 2", false),
        ] {
            let query = plain_query(text).unwrap();
            assert_eq!(is_open(&query.body), open, "{text}");
        }
    }
}
