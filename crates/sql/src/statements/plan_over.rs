//! Plans over tables of others, for tests that ask another engine for a second opinion.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, Result as DataFusionResult};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan, TableSource};
use futures::{TryStreamExt, stream};
use sqlparser::ast::Statement as Sql;
use syntax::parse::Statement;

use crate::error::{Error, Result};
use crate::optimize::rules;
use crate::resources::stream::RowStream;
use crate::run::{output, query, visible};
use crate::statements::entered::Entered;
use crate::statements::session::Session;

/// A table that stands for one that a query names, which has these columns.
pub type Substitute<'t> = dyn Fn(&str, SchemaRef) -> Arc<dyn TableSource> + Send + Sync + 't;

impl Session {
    /// The plan of a query, as the rules leave it, over what `table` gives for the names of its tables; filters of its scans
    /// stand above them.
    ///
    /// # Errors
    /// Those of planning; if `text` is no query.
    #[doc(hidden)]
    pub async fn plan_over(&self, text: &str, table: &Substitute<'_>) -> Result<LogicalPlan> {
        let query = self.query(text).await?;
        let mut entered = Entered::new(Arc::clone(self.instance()), self.shared()).await?;
        let context = entered.scope().read(Instant::now()).await?;
        let plan = context.plan(query, None).await?;
        let plan = rules::logical(&context.planner, &plan)?;
        entered.succeed();
        let over = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::TableScan(scan) => Ok(Transformed::yes(scanned(scan, table)?)),
            other => Ok(Transformed::no(other)),
        });
        Ok(over?.data)
    }

    /// The rows of a query as plans have them: with types that nobody sees outside.
    ///
    /// # Errors
    /// Those of the query.
    #[doc(hidden)]
    pub async fn rows_within(&self, text: &str) -> Result<Vec<RecordBatch>> {
        let query = self.query(text).await?;
        let mut entered = Entered::new(Arc::clone(self.instance()), self.shared()).await?;
        let mut context = entered.scope().read(Instant::now()).await?;
        let plan = context.plan(query, None).await?;
        let rows = query::rows(&mut context, &plan).await?;
        let rows = rows.try_collect().await?;
        entered.succeed();
        Ok(rows)
    }

    /// Rows as plans have them, as whoever asks sees them.
    ///
    /// # Errors
    /// None that is expected.
    #[doc(hidden)]
    pub async fn told(
        schema: SchemaRef,
        rows: Vec<RecordBatch>,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let rows = stream::iter(rows.into_iter().map(Ok));
        let rows = visible::rows(output::named(Box::pin(RowStream::new(schema, rows))));
        let schema = rows.schema();
        Ok((schema, rows.try_collect().await?))
    }

    async fn query(&self, text: &str) -> Result<Sql> {
        let mut parsed = self.parsed(text).await?;
        match parsed.pop().map(|one| one.statement) {
            Some(Statement::Sql(query)) => Ok(*query),
            _ => Err(Error::unsupported("only queries are planned for others")),
        }
    }
}

/// What a scan delivers, of the table that stands for its own.
fn scanned(scan: TableScan, table: &Substitute<'_>) -> DataFusionResult<LogicalPlan> {
    let schema = scan.source.schema();
    let source = table(scan.table_name.table(), SchemaRef::clone(&schema));
    let mut plan = LogicalPlanBuilder::scan(scan.table_name.clone(), source, None)?;
    if let Some(filter) = conjunction(scan.filters) {
        plan = plan.filter(filter)?;
    }
    if let Some(columns) = scan.projection {
        let columns = columns.into_iter().map(|at| {
            let name = schema.field(at).name();
            Expr::Column(Column::new(Some(scan.table_name.clone()), name))
        });
        plan = plan.project(columns)?;
    }
    plan.build()
}
