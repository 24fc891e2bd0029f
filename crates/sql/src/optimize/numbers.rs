//! Sequences are asked row by row, and within a row from left to right, as in PostgreSQL.
//!
//! The cells of `values` are computed while a statement is planned. So those that ask sequences are taken out and computed
//! above them; where a projection asks more than once, the engine computes its rows one by one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::{Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Values, lit};
use datafusion_optimizer::AnalyzerRule;

use crate::functions::sequences::calls;

/// The column of `values` that says which row it is.
const ROW: &str = "__row_of_values";

/// The analyzer rule for `values`. It must come after type coercion, since it adds conditions.
#[derive(Debug)]
pub(crate) struct NumbersOfValues;

impl AnalyzerRule for NumbersOfValues {
    fn name(&self) -> &str {
        "numbers_of_values"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let apart = |node: LogicalPlan| match node {
            LogicalPlan::Values(values) => match asking(&values)? {
                columns if columns.contains(&true) => {
                    Ok(Transformed::yes(computed_above(&values, &columns)?))
                }
                _ => Ok(Transformed::no(LogicalPlan::Values(values))),
            },
            other => Ok(Transformed::no(other)),
        };
        Ok(plan.transform_up_with_subqueries(apart)?.data)
    }
}

/// Which columns have cells that ask sequences.
fn asking(values: &Values) -> Result<Vec<bool>> {
    let mut columns = vec![false; values.schema.fields().len()];
    for row in &values.values {
        for (column, cell) in columns.iter_mut().zip(row) {
            *column |= calls(cell)? > 0;
        }
    }
    Ok(columns)
}

/// `values` without the cells that ask sequences, and above it a projection that computes them.
fn computed_above(values: &Values, asking: &[bool]) -> Result<LogicalPlan> {
    let columns = values.schema.fields().iter().zip(asking);
    let mut fields: Vec<Field> = columns
        .map(|(field, asks)| {
            let field = field.as_ref().clone();
            let nullable = field.is_nullable() || *asks;
            field.with_nullable(nullable)
        })
        .collect();
    fields.push(Field::new(ROW, DataType::Int64, false));
    let mut rows = Vec::with_capacity(values.values.len());
    for (number, row) in (0i64..).zip(&values.values) {
        let mut plain = Vec::with_capacity(row.len() + 1);
        for (cell, field) in row.iter().zip(&fields) {
            plain.push(if calls(cell)? > 0 {
                Expr::Literal(ScalarValue::try_from(field.data_type())?, None)
            } else {
                cell.clone()
            });
        }
        plain.push(lit(number));
        rows.push(plain);
    }
    let schema = Arc::new(DFSchema::from_unqualified_fields(
        fields.into(),
        HashMap::new(),
    )?);
    let mut exprs = Vec::with_capacity(asking.len());
    for (at, field) in values.schema.fields().iter().enumerate() {
        let own = Expr::Column(Column::new_unqualified(field.name()));
        let value = if asking[at] {
            let cells: Vec<&Expr> = values.values.iter().filter_map(|row| row.get(at)).collect();
            chosen(&cells, own)?.cast_to(field.data_type(), &schema)?
        } else {
            own
        };
        exprs.push(value.alias(field.name()));
    }
    let below = LogicalPlan::Values(Values {
        schema,
        values: rows,
    });
    LogicalPlanBuilder::from(below).project(exprs)?.build()
}

/// Of each row its own cell: those that ask sequences by an expression, the others from `own`.
fn chosen(cells: &[&Expr], own: Expr) -> Result<Expr> {
    if let [first, others @ ..] = cells
        && others.iter().all(|cell| cell == first)
    {
        return Ok((*first).clone());
    }
    let mut branches = Vec::new();
    for (number, cell) in (0i64..).zip(cells) {
        if calls(cell)? > 0 {
            let row = Expr::Column(Column::new_unqualified(ROW)).eq(lit(number));
            branches.push((Box::new(row), Box::new((*cell).clone())));
        }
    }
    Ok(Expr::Case(Case::new(None, branches, Some(Box::new(own)))))
}
