//! A query in the place of a table.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_expr::{LogicalPlan, TableSource, TableType};

/// A view, or a part of a statement: the planner puts its plan where it is named.
#[derive(Debug)]
pub(crate) struct View {
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl View {
    pub(crate) fn new(plan: LogicalPlan) -> View {
        let schema = Arc::new(plan.schema().as_arrow().clone());
        View { plan, schema }
    }
}

impl TableSource for View {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}
