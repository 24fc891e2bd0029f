//! A table of a snapshot as DataFusion sees it: its columns, filters and statistics.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DFSchema, ScalarValue, Statistics};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use table::{Filter, Form, Scan, Table, Zone};

use crate::error::Result;
use crate::scan::exec::{ScanExec, order};
use crate::scan::numbers::scalar;
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
        state: &dyn Session,
        filters: &[Expr],
    ) -> DataFusionResult<Vec<Filter>> {
        let schema = self.table.schema();
        let named = DFSchema::try_from(schema.as_ref().clone())?;
        let mut compiled = Vec::new();
        for filter in filters {
            let expr = state.create_physical_expr(unqualified(filter)?, &named)?;
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

    /// The scan of the columns at `projection`, which may contain the row ids.
    fn plan(&self, projection: Option<&Vec<usize>>) -> (Scan, Option<Vec<usize>>) {
        let count = self.table.schema().fields().len();
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = projection.unwrap_or(&all);
        let columns: Vec<usize> = wanted.iter().copied().filter(|c| *c < count).collect();
        let row_ids = self.row_ids && wanted.contains(&count);
        // A scan delivers row ids last; if they are wanted elsewhere, the plan reorders.
        let ordered = !row_ids || wanted.last() == Some(&count);
        let order = (!ordered).then(|| {
            let place = |c: &usize| columns.iter().position(|d| d == c).unwrap_or(columns.len());
            wanted.iter().map(place).collect()
        });
        (Scan::new(self.table.clone(), columns, row_ids), order)
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

    async fn estimate(&self, filters: &[Filter]) -> Result<Statistics> {
        let mut share = 1.0;
        for filter in filters {
            share *= self.share(filter).await?;
        }
        let exact = filters.is_empty();
        let rows = (self.table.rows() as f64 * share).ceil() as usize;
        let rows = self
            .table
            .chosen()
            .map_or(rows, |(_, chosen)| rows.min(chosen));
        let precise = |n| {
            if exact {
                Precision::Exact(n)
            } else {
                Precision::Inexact(n)
            }
        };
        let fields = self.schema.fields().iter().enumerate();
        let columns = fields.map(|(position, field)| {
            let known = position < self.table.schema().fields().len();
            let mut column = if known {
                self.column(position, field.data_type())
            } else {
                ColumnStatistics::new_unknown()
            };
            if !exact {
                column = column.to_inexact();
                if let Precision::Inexact(distinct) = column.distinct_count {
                    column.distinct_count = Precision::Inexact(distinct.min(rows));
                }
            }
            column
        });
        let columns: Vec<_> = columns.collect();
        let width: usize = self
            .schema
            .fields()
            .iter()
            .map(|f| row_width(f.data_type()))
            .sum();
        Ok(Statistics {
            num_rows: precise(rows),
            total_byte_size: Precision::Inexact(rows.saturating_mul(width)),
            column_statistics: columns,
        })
    }

    fn column(&self, position: usize, data_type: &DataType) -> ColumnStatistics {
        let known = self.table.statistics(position);
        let unchanged = self.table.deleted_rows() == 0 && self.table.tail_rows() == 0;
        let wrap = |value: Option<ScalarValue>| match value {
            Some(value) if unchanged => Precision::Exact(value),
            Some(value) => Precision::Inexact(value),
            None => Precision::Absent,
        };
        let (min, max) = match known.zone {
            Some(Zone::Int { min, max }) => (scalar(min, data_type), scalar(max, data_type)),
            _ => (None, None),
        };
        ColumnStatistics {
            null_count: if unchanged {
                Precision::Exact(known.nulls as usize)
            } else {
                Precision::Absent
            },
            min_value: wrap(min),
            max_value: wrap(max),
            distinct_count: match known.distinct {
                Some(distinct) => Precision::Inexact(distinct as usize),
                None => Precision::Absent,
            },
            ..ColumnStatistics::new_unknown()
        }
    }
}

/// The share of rows that DataFusion assumes to pass a filter of which nothing is known.
const DEFAULT_SHARE: f64 = 0.2;

/// Bytes of a value in a batch; a guess for strings.
fn row_width(data_type: &DataType) -> usize {
    data_type.primitive_width().unwrap_or(32)
}

#[async_trait]
impl TableProvider for Provider {
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

    fn statistics(&self) -> Option<Statistics> {
        None
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let schema = self.table.schema();
        let named = DFSchema::try_from(schema.as_ref().clone())?;
        let mut compiled = Vec::new();
        let mut shown = Vec::new();
        for filter in filters {
            let expr = state.create_physical_expr(filter.clone(), &named)?;
            compiled.extend(compile(&expr, &schema)?);
            shown.push(expr);
        }
        order(&mut compiled);
        let own = self.by_key(filters).await?;
        let statistics = own.estimate(&compiled).await?;
        let (scan, order) = own.plan(projection);
        let partitions = state.config().target_partitions();
        let exec = ScanExec::new(scan, compiled, shown, statistics, limit, partitions)?;
        match order {
            None => Ok(Arc::new(exec)),
            Some(order) => exec.reordered(&order),
        }
    }
}
