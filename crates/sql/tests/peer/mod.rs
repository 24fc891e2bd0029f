//! DataFusion's operators as a second opinion: they run the plan of a query, as our rules leave it, over copies of its tables.
//!
//! What planning makes of a query is the same for both engines; DuckDB and PostgreSQL, asked elsewhere, see the text.

mod grouping_sets;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::TableSource;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionConfig;
use grouping_sets::GroupingSets;
use sql::{Result, Session};

/// DataFusion over copies of the tables of a database, which do not change.
pub struct Peer {
    state: SessionState,
    copies: Mutex<HashMap<String, Arc<MemTable>>>,
}

impl Peer {
    pub fn new() -> Peer {
        let mut config = SessionConfig::new().with_target_partitions(2);
        let options = config.options_mut();
        // `x is true` is never NULL, which the operator that it becomes does not know.
        options.execution.skip_physical_aggregate_schema_check = true;
        options.execution.time_zone = Some("+00:00".to_string());
        let mut rules = PhysicalOptimizer::new().rules;
        // It knows columns by their names alone: it moved `y.b between x.b and false` above a join to one side.
        rules.retain(|rule| rule.name() != "FilterPushdown");
        rules.insert(0, Arc::new(GroupingSets));
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config)
            .with_physical_optimizer_rules(rules)
            .build();
        Peer {
            state,
            copies: Mutex::default(),
        }
    }

    /// The rows of a query over the tables that `session` sees.
    pub async fn answer(
        &self,
        session: &Session,
        text: &str,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let named = Mutex::new(Vec::new());
        let empty = |name: &str, schema: SchemaRef| {
            named
                .lock()
                .unwrap()
                .push((name.to_owned(), schema.clone()));
            let empty = MemTable::try_new(schema, vec![vec![]]).unwrap();
            provider_as_source(Arc::new(empty))
        };
        session.plan_over(text, &empty).await?;
        for (name, schema) in named.into_inner().unwrap() {
            if !self.copies.lock().unwrap().contains_key(&name) {
                let copy = copied(session, &name, schema).await?;
                self.copies.lock().unwrap().insert(name, Arc::new(copy));
            }
        }
        let copy = |name: &str, _: SchemaRef| -> Arc<dyn TableSource> {
            provider_as_source(Arc::clone(&self.copies.lock().unwrap()[name]) as _)
        };
        let plan = session.plan_over(text, &copy).await?;
        let planner = self.state.query_planner();
        let physical = planner.create_physical_plan(&plan, &self.state).await?;
        let rows = collect(physical, self.state.task_ctx()).await?;
        Session::told(Arc::clone(plan.schema().inner()), rows).await
    }
}

/// All rows of a table, as our engine reads them.
async fn copied(session: &Session, name: &str, schema: SchemaRef) -> Result<MemTable> {
    let text = format!("select * from \"{name}\"");
    let read = session.rows_within(&text).await?;
    let batches = read.iter().map(|batch| {
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type()).unwrap());
        RecordBatch::try_new(schema.clone(), columns.collect()).unwrap()
    });
    Ok(MemTable::try_new(schema.clone(), vec![batches.collect()])?)
}
