//! `values` with subqueries among them, which the planner would compute before they have run: their rows are queries of one row
//! each, in the order of the rows.

use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    Expr, Ident, Parens, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor,
    Value, Visitor, VisitorMut,
};

use crate::depth::MAX_CHAIN;
use crate::flow::flow;
use crate::rewrite::composed;
use crate::walk::Walk;

/// Makes queries of such rows.
pub(super) struct Queried;

impl VisitorMut for Queried {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        flow(body(&mut query.body))
    }
}

fn body(body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            self::body(left)?;
            self::body(right)
        }
        SetExpr::Values(values)
            if values.rows.iter().any(has_query) && !values.rows.iter().any(has_default) =>
        {
            *body = queries(std::mem::take(&mut values.rows))?;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn has_query(row: &Parens<Vec<Expr>>) -> bool {
    struct Within;
    impl Visitor for Within {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    row.content
        .iter()
        .any(|value| value.walk(&mut Within).is_break())
}

/// Whether a row leaves a value to the default of its column, as those of an `insert` may, which are planned as such.
fn has_default(row: &Parens<Vec<Expr>>) -> bool {
    let is_default = |value: &Expr| matches!(value, Expr::Identifier(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"));
    row.content.iter().any(is_default)
}

/// The name of the column with the numbers of the rows.
const NUMBER: &str = "number of the row";

fn queries(rows: Vec<Parens<Vec<Expr>>>) -> Result<SetExpr> {
    let columns = rows.first().map_or(0, |row| row.content.len());
    if rows.len() > MAX_CHAIN {
        return Err(Error::TooComplex {
            message: format!(
                "more than {MAX_CHAIN} rows of values with subqueries among them: use several statements"
            ),
        });
    }
    if rows.iter().any(|row| row.content.len() != columns) {
        return Err(Error::coded(
            "42601",
            "VALUES lists must all be the same length",
        ));
    }
    let names: Vec<String> = (1..=columns).map(|at| format!("column{at}")).collect();
    let text = format!(
        "select {} from (select 1 as \"{NUMBER}\" order by \"{NUMBER}\") as \"values\"",
        names.join(", ")
    );
    let mut whole = composed::query(&text)?;
    let mut all = None;
    for (number, row) in rows.into_iter().enumerate() {
        let one = Box::new(query(row.content, &names, number)?);
        all = Some(match all {
            None => one,
            Some(before) => Box::new(SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                left: before,
                right: one,
            }),
        });
    }
    if let SetExpr::Select(select) = whole.body.as_mut()
        && let Some(from) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
        && let Some(all) = all
    {
        subquery.body = all;
        return Ok(*whole.body);
    }
    Err(Error::Defect {
        message: format!("{text}: expected a query of rows"),
    })
}

/// The query of one row.
fn query(values: Vec<Expr>, names: &[String], number: usize) -> Result<SetExpr> {
    let mut query = composed::query("select 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        let named = values.into_iter().zip(names);
        let named = named.map(|(expr, name)| SelectItem::ExprWithAlias {
            expr,
            alias: Ident::new(name),
        });
        let number = SelectItem::ExprWithAlias {
            expr: Expr::value(Value::Number(number.to_string(), false)),
            alias: Ident::with_quote('"', NUMBER),
        };
        select.projection = named.chain([number]).collect();
    }
    Ok(*query.body)
}
