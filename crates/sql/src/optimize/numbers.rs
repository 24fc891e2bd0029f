//! Sequences are asked row by row, and within a row from left to right, as in PostgreSQL.
//!
//! DataFusion computes a column of a batch after the other, and the cells of `values` while it plans. So the cells of
//! `values` that ask sequences are taken out and computed above them ([`NumbersOfValues`]), and where a projection asks
//! more than once its rows come one by one ([`RowsOneByOne`]).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Values, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};

use crate::functions::sequences::{calls, is_one};

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

/// The rule for physical plans that has rows come one by one where a projection asks sequences more than once.
#[derive(Debug)]
pub(crate) struct RowsOneByOne;

impl PhysicalOptimizerRule for RowsOneByOne {
    fn name(&self) -> &str {
        "RowsOneByOne"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let one_by_one = |node: Arc<dyn ExecutionPlan>| {
            let Some(projection) = node.downcast_ref::<ProjectionExec>() else {
                return Ok(Transformed::no(node));
            };
            let mut count = 0;
            for part in projection.expr() {
                count += asked(&part.expr)?;
            }
            if count < 2 {
                return Ok(Transformed::no(node));
            }
            let rows = OneByOne {
                input: Arc::clone(projection.input()),
            };
            let exprs = projection.expr().to_vec();
            let projection = ProjectionExec::try_new(exprs, Arc::new(rows))?;
            Ok(Transformed::yes(Arc::new(projection) as _))
        };
        Ok(plan.transform_up(one_by_one)?.data)
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// How often an expression asks sequences.
fn asked(expr: &Arc<dyn PhysicalExpr>) -> Result<usize> {
    let mut count = 0;
    expr.apply(|part| {
        let call = part.downcast_ref::<ScalarFunctionExpr>();
        count += usize::from(call.is_some_and(|call| is_one(call.fun())));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(count)
}

/// The rows of its input in batches of one.
#[derive(Debug)]
struct OneByOne {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for OneByOne {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneByOne")
    }
}

impl ExecutionPlan for OneByOne {
    fn name(&self) -> &str {
        "OneByOne"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(OneByOne { input })),
            None => Ok(self),
        }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let rows = rows.flat_map(|batch| {
            let rows: Vec<Result<RecordBatch>> = match batch {
                Ok(batch) => (0..batch.num_rows())
                    .map(|row| Ok(batch.slice(row, 1)))
                    .collect(),
                Err(e) => vec![Err(e)],
            };
            stream::iter(rows)
        });
        let schema = self.input.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
