//! Expressions over the columns of rows that are in memory, compiled once: checks, and what `do update` assigns.
//!
//! They are planned as the query `select expression, ... from rows`, so that they mean what they mean in a query.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, TableReference};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{self, Statement as Sql};

use crate::error::{Error, Result};
use crate::frontend::returning::from_rows;
use crate::optimize::rules;
use crate::run::context::StatementContext;

/// Expressions over rows.
#[derive(Clone, Debug)]
pub(crate) struct RowValues {
    /// Each over the columns of the one before; the first over those of the rows.
    stages: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// The type of each.
    types: Vec<DataType>,
}

impl RowValues {
    /// The values of `items`. Columns are those of the table `name` and, if there are rows that exclude others, those of
    /// `excluded`, which has the same columns.
    ///
    /// # Errors
    /// If an item is no expression of these columns, or has a subquery.
    pub(crate) async fn new(
        context: &mut StatementContext,
        (name, schema): (&ast::Ident, &SchemaRef),
        excluded: bool,
        items: Vec<ast::Expr>,
    ) -> Result<RowValues> {
        let rows =
            || -> Result<_> { Ok(Arc::new(MemTable::try_new(schema.clone(), vec![vec![]])?)) };
        let query = Sql::Query(from_rows(items, name, excluded)?);
        let before = (context.written.take(), context.excluded.take());
        context.written = Some(rows()?);
        context.excluded = if excluded { Some(rows()?) } else { None };
        let plan = context.plan(query, None).await;
        (context.written, context.excluded) = before;
        let plan = rules::logical(&context.state, &plan?)?;
        let named = |name: &str| {
            DFSchema::try_from_qualified_schema(TableReference::bare(name.to_owned()), schema)
        };
        let mut all = named(&name.value)?;
        if excluded {
            all = all.join(&named("excluded")?)?;
        }
        let types = plan.schema().fields().iter();
        let types = types.map(|field| field.data_type().clone()).collect();
        let mut stages = Vec::new();
        staged(context, &plan, &all, &mut stages)?;
        if stages.is_empty() {
            let columns = plan.schema().columns().into_iter().map(Expr::Column);
            stages.push(compiled(context, columns, &all)?);
        }
        Ok(RowValues { stages, types })
    }

    /// The types of the values.
    pub(crate) fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The values for rows, whose columns are those of the table, and then those of `excluded`.
    ///
    /// # Errors
    /// Those of the expressions: overflow, division by zero, ...
    pub(crate) fn evaluate(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut batch = rows.clone();
        for stage in &self.stages {
            let values = stage.iter().map(|expr| {
                let value = expr.evaluate(&batch)?;
                value.into_array(batch.num_rows())
            });
            let values = values.collect::<std::result::Result<Vec<_>, _>>()?;
            let fields = values.iter().enumerate();
            let fields =
                fields.map(|(at, v)| Field::new(at.to_string(), v.data_type().clone(), true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            batch = RecordBatch::try_new_with_options(schema, values, &options)?;
        }
        Ok(batch.columns().to_vec())
    }
}

/// Compiles the projections of a plan, the innermost first.
fn staged(
    context: &StatementContext,
    plan: &LogicalPlan,
    rows: &DFSchema,
    stages: &mut Vec<Vec<Arc<dyn PhysicalExpr>>>,
) -> Result<()> {
    match plan {
        LogicalPlan::Projection(projection) => {
            staged(context, &projection.input, rows, stages)?;
            let own = projection.input.schema();
            let columns = if stages.is_empty() {
                rows
            } else {
                own.as_ref()
            };
            let stage = compiled(context, projection.expr.iter().cloned(), columns)?;
            stages.push(stage);
            Ok(())
        }
        LogicalPlan::SubqueryAlias(alias) => staged(context, &alias.input, rows, stages),
        LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner && join.on.is_empty() && join.filter.is_none() =>
        {
            let mut none = Vec::new();
            staged(context, &join.left, rows, &mut none)?;
            staged(context, &join.right, rows, &mut none)?;
            if none.is_empty() {
                Ok(())
            } else {
                Err(subquery())
            }
        }
        LogicalPlan::TableScan(_) => Ok(()),
        _ => Err(subquery()),
    }
}

fn subquery() -> Error {
    Error::unsupported("subqueries, aggregates and window functions are not supported here")
}

fn compiled(
    context: &StatementContext,
    exprs: impl Iterator<Item = Expr>,
    columns: &DFSchema,
) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    let mut compiled = Vec::new();
    for expr in exprs {
        let nested = expr.exists(|part| {
            Ok(matches!(
                part,
                Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)
            ))
        });
        if nested? {
            return Err(subquery());
        }
        compiled.push(context.state.create_physical_expr(expr, columns)?);
    }
    Ok(compiled)
}
