//! A table of a snapshot as the planner sees it: its columns, and which filters its scan tests.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::DFSchema;
use datafusion_common::Result as DataFusionResult;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use table::{Filter, Form, Scan, Table, Zone};

use crate::error::Result;
use crate::planner::Planner;
use crate::scan::point;
use crate::scan::predicate::{compile, unqualified};

/// A table, optionally with the hidden column of row ids that `delete` and `update` read.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    table: Arc<Table>,
    /// The table's columns, and the row ids as the last one if there are any.
    schema: SchemaRef,
    row_ids: bool,
    /// What an `insert` puts into columns that it does not name.
    defaults: HashMap<String, Expr>,
}

impl Provider {
    /// With `row_ids` the last column, [`table::ROW_COLUMN`], is the number of each row in the table.
    pub(crate) fn new(table: Arc<Table>, row_ids: bool) -> Provider {
        let all = (0..table.schema().fields().len()).collect();
        let schema = Scan::new(table.clone(), all, row_ids).schema().clone();
        Provider {
            table,
            schema,
            row_ids,
            defaults: HashMap::new(),
        }
    }

    /// The same with these defaults of its columns.
    pub(crate) fn with_defaults(self, defaults: HashMap<String, Expr>) -> Provider {
        Provider { defaults, ..self }
    }

    /// The same without the hidden column of row ids.
    pub(crate) fn without_row_ids(&self) -> Provider {
        Provider::new(Arc::clone(&self.table), false).with_defaults(self.defaults.clone())
    }

    /// The same table; if `filters`, a conjunction, name rows by a key, of these rows alone.
    ///
    /// # Errors
    /// Those of reading the key's index.
    pub(crate) async fn by_key(&self, filters: &[Expr]) -> Result<Provider> {
        let mut provider = self.clone();
        if let Some(chosen) = point::chosen(&self.table, filters).await? {
            provider.table = Arc::new(chosen);
        }
        Ok(provider)
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether it has the hidden column of row ids.
    pub(crate) fn has_row_ids(&self) -> bool {
        self.row_ids
    }

    /// Whether the column at `position` is that of the row ids.
    pub(crate) fn is_row_ids(&self, position: usize) -> bool {
        self.row_ids && position == self.table.schema().fields().len()
    }

    /// Number of columns, including row ids.
    pub(crate) fn columns(&self) -> usize {
        self.schema.fields().len()
    }

    /// `filters` as filters of the table's scan, cheapest first.
    pub(crate) fn compile(
        &self,
        planner: &Planner,
        filters: &[Expr],
    ) -> DataFusionResult<Vec<Filter>> {
        let schema = self.table.schema();
        let named = DFSchema::try_from(schema.as_ref().clone())?;
        let mut compiled = Vec::new();
        for filter in filters {
            let expr = planner.create_physical_expr(unqualified(filter)?, &named)?;
            compiled.extend(compile(&expr, &schema)?);
        }
        order(&mut compiled);
        Ok(compiled)
    }

    /// Estimated number of rows that pass `filters`.
    pub(crate) async fn expected(&self, filters: &[Filter]) -> Result<f64> {
        let mut rows = self.table.rows() as f64;
        for filter in filters {
            rows *= self.share(filter).await?;
        }
        if let Some((_, chosen)) = self.table.chosen() {
            rows = rows.min(chosen as f64);
        }
        Ok(rows)
    }

    /// Estimated share of rows that pass `filter`.
    async fn share(&self, filter: &Filter) -> Result<f64> {
        let column = *filter.columns.first().unwrap_or(&0);
        match &filter.form {
            Form::Ranges(ranges) => {
                let statistics = self.table.statistics(column);
                let Some(Zone::Int { min, max }) = statistics.zone else {
                    return Ok(DEFAULT_SHARE);
                };
                let width = |low: i128, high: i128| (high - low) as f64 + 1.0;
                let inside = ranges
                    .iter()
                    .map(|(low, high)| (*low.max(&min), *high.min(&max)));
                let inside: f64 = inside
                    .filter(|(low, high)| low <= high)
                    .map(|(l, h)| width(l, h))
                    .sum();
                Ok(inside / width(min, max))
            }
            Form::Labels(hits) => match self.table.dictionary(column).await? {
                Some(dictionary) => Ok(hits.share(filter, &dictionary)?),
                None => Ok(DEFAULT_SHARE),
            },
            _ => Ok(DEFAULT_SHARE),
        }
    }
}

/// The share of rows that is assumed to pass a filter of which nothing is known.
const DEFAULT_SHARE: f64 = 0.2;

impl TableSource for Provider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        let columns = self.table.schema().fields().len();
        let stored = |expr: &&Expr| {
            let own = expr.column_refs().iter().all(|c| {
                self.schema
                    .index_of(&c.name)
                    .is_ok_and(|position| position < columns)
            });
            if own && !expr.column_refs().is_empty() && !expr.is_volatile() {
                TableProviderFilterPushDown::Exact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
        };
        Ok(filters.iter().map(stored).collect())
    }
}

/// Orders filters from cheap to costly, so that costly ones see fewer rows.
fn order(filters: &mut [Filter]) {
    filters.sort_by_key(|filter| match filter.form {
        Form::Ranges(_) => 0,
        Form::Labels(_) => 1,
        _ => 2,
    });
}
