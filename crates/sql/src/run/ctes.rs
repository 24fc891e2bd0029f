//! Runs common table expressions that are [computed once](syntax::ctes), and [parts of large plans](shared_plans), before the statement that reads them,
//! and puts their rows in the places of their plans.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result as DataFusionResult;
use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_expr::{LogicalPlan, LogicalPlanBuilder, SubqueryAlias, Volatility};
use futures::TryStreamExt;
use syntax::ctes::ONCE;

use crate::error::{Error, Result};
use crate::functions::advisory;
use crate::resources::budget::{Held, footprint};
use crate::run::context::StatementContext;
use crate::run::{query, shared_plans};
use crate::scan::rows::RowTable;

impl StatementContext {
    /// `plan` with the rows of all common table expressions that are to be computed once, in memory.
    ///
    /// # Errors
    /// Those of computing them; if the memory limit leaves no room for their rows.
    pub(crate) async fn with_ctes<'p>(
        &mut self,
        plan: &'p LogicalPlan,
    ) -> Result<Cow<'p, LogicalPlan>> {
        let plan = match self.with_known(plan).await? {
            Cow::Borrowed(plan) => self.with_shared(plan).await?,
            Cow::Owned(plan) => Cow::Owned(self.with_shared(&plan).await?.into_owned()),
        };
        let marked = marked(&plan)?;
        if marked.is_empty() {
            return Ok(plan);
        }
        let mut tables = HashMap::new();
        for (name, subquery) in marked {
            let schema = Arc::clone(subquery.schema.inner());
            tables.insert(name, self.computed(&subquery.input, schema).await?);
        }
        Ok(Cow::Owned(in_place(plan.into_owned(), &tables)?))
    }

    /// `plan` with the rows of [parts that are copied too often](shared_plans), in memory.
    async fn with_shared<'p>(&mut self, plan: &'p LogicalPlan) -> Result<Cow<'p, LogicalPlan>> {
        let (parts, apart) = shared_plans::of(plan)?;
        if apart.is_empty() {
            return Ok(Cow::Borrowed(plan));
        }
        let mut tables = HashMap::new();
        for (number, part) in apart.into_iter().enumerate() {
            let schema = Arc::clone(part.plan.schema().inner());
            let plan = parts.in_place(part.plan, &tables)?;
            let rows = self.computed(&plan, schema).await?;
            tables.insert(part.id, shared_plans::scan(number, rows)?);
        }
        Ok(Cow::Owned(parts.in_place(plan.clone(), &tables)?))
    }

    /// Whether a function of that name may have another value each time that it is called.
    pub(super) fn is_volatile(&self, name: &str) -> bool {
        // These functions are those of a session.
        let asks = matches!(
            name,
            "nextval" | "setval" | "pg_cancel_backend" | "pg_terminate_backend"
        ) || advisory::is_name(name);
        let function = self.planner.functions.scalar(name);
        asks || function.is_some_and(|f| f.signature().volatility == Volatility::Volatile)
    }

    /// The rows of `plan`, with the columns of `schema`.
    async fn computed(&mut self, plan: &LogicalPlan, schema: SchemaRef) -> Result<Arc<RowTable>> {
        let mut held = Held::of(self.budget());
        let mut rows = Box::pin(query::rows(self, plan)).await?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.try_next().await? {
            held.more(footprint(&batch)).map_err(|e| Error::Memory {
                message: format!(
                    "the rows of `with` are kept in memory, as they are read more than once: {e}"
                ),
            })?;
            batches.push(as_planned(&batch, &schema)?);
        }
        Ok(Arc::new(RowTable::held(schema, batches, held)))
    }
}

/// The marked subqueries of `plan`, the outermost. Those that depend on rows outside are none: they are computed for each.
fn marked(plan: &LogicalPlan) -> Result<HashMap<String, SubqueryAlias>> {
    let mut found = HashMap::new();
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::SubqueryAlias(subquery) = node else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let name = subquery.alias.table();
        if !name.starts_with(ONCE) || depends(&subquery.input)? {
            return Ok(TreeNodeRecursion::Continue);
        }
        if let Entry::Vacant(place) = found.entry(name.to_owned()) {
            place.insert(subquery.clone());
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(found)
}

/// Whether `plan` reads columns of a query around it.
fn depends(plan: &LogicalPlan) -> DataFusionResult<bool> {
    let mut depends = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            depends |= expr.contains_outer();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(depends)
}

/// `plan` with `tables` in the places of the subqueries of their names.
fn in_place(plan: LogicalPlan, tables: &HashMap<String, Arc<RowTable>>) -> Result<LogicalPlan> {
    let replaced = plan.transform_down_with_subqueries(|node| {
        let LogicalPlan::SubqueryAlias(subquery) = &node else {
            return Ok(Transformed::no(node));
        };
        let Some(table) = tables.get(subquery.alias.table()) else {
            return Ok(Transformed::no(node));
        };
        let source = Arc::clone(table) as _;
        let scan = LogicalPlanBuilder::scan(subquery.alias.clone(), source, None)?.build()?;
        Ok(Transformed::new(scan, true, TreeNodeRecursion::Jump))
    });
    Ok(replaced?.data)
}

/// `batch` with the names and types of the plan: executors differ in some, such as texts with and without views.
fn as_planned(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
