//! The query of an `insert` that has `values` within it. The planner gives all of these the types of the table's columns, and
//! not only those whose rows are inserted: so such a query is planned by itself. So is one that is read with the numbers of rows:
//! the table that rows are inserted into has no such column.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion_common::TableReference;
use datafusion_expr::planner::ContextProvider;
use datafusion_expr::{Expr, LogicalPlanBuilder, TableSource};
use datafusion_sql::parser::Statement as Extended;
use datafusion_sql::planner::{ParserOptions, SqlToRel, object_name_to_table_reference};
use sqlparser::ast::{
    Expr as Item, Parens, Query, SetExpr, Statement as Sql, TableObject, Values, Visitor,
};
use syntax::expression::written;
use syntax::names::INSERTED_ROWS;
use syntax::walk::Walk;

use crate::error::Result;
use crate::optimize::floats;
use crate::run::resolver::Resolver;
use crate::scan::provider::Provider;
use crate::scan::view::View;

/// Puts the plan of the query into `names`, and its name into the statement.
///
/// # Errors
/// Those of planning the query.
pub(super) fn apart(
    mut statement: Extended,
    names: &mut Resolver<'_>,
    options: ParserOptions,
) -> Result<Extended> {
    let Extended::Statement(sql) = &mut statement else {
        return Ok(statement);
    };
    let Sql::Insert(insert) = sql.as_mut() else {
        return Ok(statement);
    };
    let plain = without_numbers(names, &insert.table);
    let is_apart = |source: &mut Box<Query>| plain.is_some() || has_values(source);
    let Some(source) = insert.source.take_if(is_apart) else {
        return Ok(statement);
    };
    let source = match source.body.as_ref() {
        SetExpr::Values(own) => written(&selects(own))?,
        _ => source,
    };
    let query = Extended::Statement(Box::new(Sql::Query(source)));
    let plan = SqlToRel::new_with_options(&*names, options).statement_to_plan(query)?;
    let plan = floats::settled(plan)?;
    let columns = plan.schema().columns().into_iter().enumerate();
    let columns = columns.map(|(at, column)| Expr::Column(column).alias(format!("c{at}")));
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
    let rows = Arc::new(View::new(plan));
    names.put(TableReference::bare(INSERTED_ROWS), rows);
    if let Some((name, table)) = plain {
        names.put(name, table);
    }
    insert.source = Some(written(&format!("select * from \"{INSERTED_ROWS}\""))?);
    Ok(statement)
}

/// The table that rows are inserted into without the numbers of its rows, and its name; none if it is not read with these.
fn without_numbers(
    names: &Resolver<'_>,
    table: &TableObject,
) -> Option<(TableReference, Arc<dyn TableSource>)> {
    let TableObject::TableName(name) = table else {
        return None;
    };
    let name = object_name_to_table_reference(name.clone(), true).ok()?;
    let source = names.get_table_source(name.clone()).ok()?;
    let own = source.downcast_ref::<Provider>()?;
    let plain = own.has_row_ids().then(|| own.without_row_ids())?;
    Some((name, Arc::new(plain)))
}

/// Rows as queries of one row each: in `values` the planner computes subqueries before they have run.
fn selects(own: &Values) -> String {
    let row = |row: &Parens<Vec<Item>>| {
        let items: Vec<String> = row.content.iter().map(ToString::to_string).collect();
        format!("select {}", items.join(", "))
    };
    let rows: Vec<String> = own.rows.iter().map(row).collect();
    rows.join(" union all ")
}

/// Whether a query has `values` in it that are not its own rows.
fn has_values(source: &Query) -> bool {
    struct Within;

    impl Visitor for Within {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            if is_of_values(&query.body) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }

    match source.body.as_ref() {
        SetExpr::Values(own) => own.walk(&mut Within).is_break(),
        _ => source.walk(&mut Within).is_break(),
    }
}

fn is_of_values(body: &SetExpr) -> bool {
    match body {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { left, right, .. } => is_of_values(left) || is_of_values(right),
        _ => false,
    }
}
