//! Expressions over the columns of rows that are in memory, compiled once: checks, and what `do update` assigns.
//!
//! They are planned as the query `select expression, ... from rows`, so that they mean what they mean in a query.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, TableReference};
use datafusion_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Volatility};
use datafusion_physical_expr::PhysicalExpr;
use sqlparser::ast::{self, Statement as Sql};
use syntax::names::base;
use syntax::returning::from_rows;
use syntax::rewrite::mark_condition;

use crate::error::{Error, Result};
use crate::functions::convert::cast_to;
use crate::optimize::rules;
use crate::run::context::StatementContext;
use crate::run::kept_values::{Asked, Compiled};
use crate::scan::rows;

/// What rows are called, and their columns.
pub(crate) type Rows<'r> = (&'r ast::Ident, &'r SchemaRef);

/// Expressions over rows.
#[derive(Clone, Debug)]
pub(crate) struct RowValues {
    compiled: Compiled,
    /// Whether they follow from the rows alone.
    fixed: bool,
}

impl RowValues {
    /// The values of `items`, the first of them cast to the types of `cast_to`. Columns are those of the table `name` and, if there is another, those of
    /// `other`.
    ///
    /// # Errors
    /// If an item is no expression of these columns, or has a subquery.
    pub(crate) async fn new(
        context: &mut StatementContext,
        (name, schema): Rows<'_>,
        other: Option<Rows<'_>>,
        items: Vec<ast::Expr>,
        cast_to: &[DataType],
    ) -> Result<RowValues> {
        // Its columns are called by its name, with or without the schema.
        let name = &ast::Ident::with_quote('"', base(&name.value));
        let asked = Asked {
            rows: (name.value.clone(), Arc::clone(schema)),
            other: other.map(|(name, schema)| (name.value.clone(), Arc::clone(schema))),
            items: items.clone(),
            types: cast_to.to_vec(),
            local: context.local(),
        };
        let asked = Some(asked).filter(Asked::is_plain);
        if let Some(asked) = &asked
            && let Some(kept) = context.instance.values.get(asked)
        {
            return Ok(RowValues {
                compiled: kept,
                fixed: true,
            });
        }
        let empty =
            |schema: &SchemaRef| Arc::new(rows::RowTable::in_memory(schema.clone(), vec![]));
        let query = Sql::Query(from_rows(items, name, other.map(|(name, _)| name))?);
        let (own, others) = (empty(schema), other.map(|(_, schema)| empty(schema)));
        let before = (context.written.take(), context.excluded.take());
        context.written = Some(own);
        context.excluded = others.map(|rows| rows as _);
        let plan = context.plan(query, None).await;
        (context.written, context.excluded) = before;
        let plan = cast(plan?, cast_to)?;
        let fixed = is_fixed(&plan)?;
        let plan = rules::logical(&context.planner, &plan)?;
        let named = |(name, schema): Rows<'_>| {
            let name = TableReference::bare(name.value.clone());
            DFSchema::try_from_qualified_schema(name, schema)
        };
        let mut all = named((name, schema))?;
        if let Some(other) = other {
            all = all.join(&named(other)?)?;
        }
        let types = plan.schema().fields().iter();
        let types = types.map(|field| field.data_type().clone()).collect();
        let mut stages = Vec::new();
        staged(context, &plan, &all, &mut stages)?;
        if stages.is_empty() {
            let columns = plan.schema().columns().into_iter().map(Expr::Column);
            stages.push(compiled(context, columns, &all)?);
        }
        let compiled = Compiled { stages, types };
        if let Some(asked) = asked.filter(|_| fixed) {
            context.instance.values.keep(asked, compiled.clone());
        }
        Ok(RowValues { compiled, fixed })
    }

    /// The values of conditions of `clause`, as `CHECK`, over such rows: booleans. A constant in quotes is read as one.
    ///
    /// # Errors
    /// As for [`RowValues::new`]; 42804 for a condition of another type.
    pub(crate) async fn conditions(
        context: &mut StatementContext,
        rows: Rows<'_>,
        other: Option<Rows<'_>>,
        mut items: Vec<ast::Expr>,
        clause: &str,
    ) -> Result<RowValues> {
        for item in &mut items {
            mark_condition(item, clause);
        }
        RowValues::new(context, rows, other, items, &[]).await
    }

    /// Whether items over rows mean the same wherever they stand, so that they are compiled once.
    pub(crate) fn are_plain(
        context: &StatementContext,
        (name, schema): Rows<'_>,
        items: &[ast::Expr],
    ) -> bool {
        let asked = Asked {
            rows: (base(&name.value).to_owned(), Arc::clone(schema)),
            other: None,
            items: items.to_vec(),
            types: Vec::new(),
            local: context.local(),
        };
        asked.is_plain()
    }

    /// Whether the values follow from the rows alone, and not from the time or the session.
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// The types of the values.
    pub(crate) fn types(&self) -> &[DataType] {
        &self.compiled.types
    }

    /// The values for rows, whose columns are those of the table, and then those of `excluded`.
    ///
    /// # Errors
    /// Those of the expressions: overflow, division by zero, ...
    pub(crate) fn evaluate(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut batch = rows.clone();
        for stage in &self.compiled.stages {
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

/// The plan with its first columns cast to these types.
fn cast(plan: LogicalPlan, types: &[DataType]) -> Result<LogicalPlan> {
    if types.is_empty() {
        return Ok(plan);
    }
    let mut columns = Vec::new();
    for (at, column) in plan.schema().columns().into_iter().enumerate() {
        let column = Expr::Column(column);
        columns.push(match types.get(at) {
            Some(own) => cast_to(column, own, plan.schema())?.alias(format!("__value{at}")),
            None => column,
        });
    }
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

/// Whether no function of a plan has another value at another time.
fn is_fixed(plan: &LogicalPlan) -> Result<bool> {
    let mut fixed = true;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::ScalarFunction(call) = part {
                    fixed &= call.func.signature().volatility == Volatility::Immutable;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(fixed)
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
        compiled.push(context.planner.create_physical_expr(expr, columns)?);
    }
    Ok(compiled)
}
