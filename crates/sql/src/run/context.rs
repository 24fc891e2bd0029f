//! What one statement sees: a snapshot's tables, the functions, and its own counters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::TableReference;
use datafusion::common::file_options::file_type::FileType;
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::format_as_file_type;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::{
    AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as Extended;
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use datafusion::sql::sqlparser::ast::Statement as Sql;
use memory::Traffic;
use store::Snapshot;
use table::{Table, Tables};

use crate::error::{Error, Result};
use crate::frontend::{file_names, grammar};
use crate::optimize::meaning::{Operators, Types};
use crate::run::answer::Clock;
use crate::run::engine::Engine;
use crate::run::{file_calls, information, translate};
use crate::scan::files;
use crate::scan::files::FileTable;
use crate::scan::provider::Provider;
use crate::scan::query::Query;
use crate::types::{CATALOG, SCHEMA};

/// One statement's view of the database.
pub(crate) struct Scope {
    pub engine: Arc<Engine>,
    pub state: SessionState,
    pub tables: Arc<Tables>,
    pub clock: Clock,
}

impl Scope {
    /// The view of `snapshot` for a statement that began at `started`.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        snapshot: &Snapshot,
        started: Instant,
    ) -> Result<Scope> {
        let tables = engine.catalog.tables(snapshot)?;
        let workers = engine.workers();
        let traffic = Arc::new(Traffic::new(workers.nodes()));
        engine.work.begin(&traffic);
        let mut state = engine.template.clone();
        // The width may rise while it runs.
        let width = workers.threads();
        let config = state.config_mut();
        if config.target_partitions() != width {
            config.options_mut().execution.target_partitions = width;
        }
        config.set_extension(Arc::new(Query {
            traffic: Arc::clone(&traffic),
            nearness: workers.layout().nearness().clone(),
        }));
        state.mark_start_execution();
        Ok(Scope {
            engine: Arc::clone(engine),
            state,
            tables,
            clock: Clock::new(started, traffic),
        })
    }

    /// The table of that name.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTable`] with the nearest names.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.tables
            .get(name)
            .cloned()
            .ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Error {
        let names = self.tables.names().into_iter().map(str::to_string);
        Error::UnknownTable {
            name: name.to_string(),
            candidates: translate::nearest(name, names),
            position: None,
        }
    }

    /// The logical plan of `statement`; `target` is the table that it deletes from or updates, which is
    /// scanned with its row ids.
    pub(crate) async fn plan(
        &self,
        mut statement: Sql,
        target: Option<&str>,
    ) -> Result<LogicalPlan> {
        let calls = file_calls::take(&self.engine, &mut statement)?;
        grammar::check_calls(&statement, &self.state)?;
        let statement = Extended::Statement(Box::new(statement));
        let names = Names::resolve(self, &statement, target, &calls).await?;
        let planned = SqlToRel::new_with_options(&names, self.parser_options(false))
            .statement_to_plan(statement.clone());
        planned.map_err(|e| {
            // Planning again, slower, with positions: only where there is somebody to tell.
            let again = SqlToRel::new_with_options(&names, self.parser_options(true))
                .statement_to_plan(statement);
            Error::from(again.err().unwrap_or(e))
        })
    }

    /// The optimised physical plan of `plan`.
    pub(crate) async fn physical(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = crate::optimize::rules::physical(&self.state, plan).await?;
        Ok(crate::resources::stop::watched(plan)?)
    }

    /// What operators get to know when they run. The functions stay away: they are in the plan.
    pub(crate) fn task(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::new(
            None,
            self.state.session_id().to_string(),
            self.state.config().clone(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            Arc::clone(self.state.runtime_env()),
        ))
    }

    fn parser_options(&self, positions: bool) -> ParserOptions {
        ParserOptions {
            collect_spans: positions,
            ..ParserOptions::from(&self.state.config_options().sql_parser)
        }
    }

    /// A source for the schema's types only: `create table` needs the planner, but no tables.
    pub(crate) fn names(&self) -> Names<'_> {
        Names::new(self, HashMap::new())
    }
}

/// Resolves the names of one statement for DataFusion's planner.
pub(crate) struct Names<'a> {
    scope: &'a Scope,
    /// The tables that the statement names, looked up beforehand as files are read to know their columns.
    sources: HashMap<TableReference, Arc<dyn TableSource>>,
    /// Ours before DataFusion's.
    planners: Vec<Arc<dyn ExprPlanner>>,
}

impl<'a> Names<'a> {
    async fn resolve(
        scope: &'a Scope,
        statement: &Extended,
        target: Option<&str>,
        calls: &HashMap<String, file_calls::Call>,
    ) -> Result<Names<'a>> {
        let mut sources = HashMap::new();
        for reference in scope.state.resolve_table_references(statement)? {
            if let Some(provider) = find(scope, &reference, target, calls).await? {
                sources.insert(reference, provider_as_source(provider));
            }
        }
        Ok(Names::new(scope, sources))
    }

    fn new(scope: &'a Scope, sources: HashMap<TableReference, Arc<dyn TableSource>>) -> Names<'a> {
        let mut planners: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(Operators)];
        planners.extend(scope.state.expr_planners().iter().cloned());
        Names {
            scope,
            sources,
            planners,
        }
    }
}

/// The table, file, call that reads files, or view of the information schema that `reference` names.
async fn find(
    scope: &Scope,
    reference: &TableReference,
    target: Option<&str>,
    calls: &HashMap<String, file_calls::Call>,
) -> Result<Option<Arc<dyn TableProvider>>> {
    if reference
        .catalog()
        .is_some_and(|catalog| catalog != CATALOG)
    {
        return Ok(None);
    }
    match reference.schema() {
        None | Some(SCHEMA) => {}
        Some(INFORMATION_SCHEMA) => {
            return Ok(information::view(&scope.tables, reference.table()).await?);
        }
        Some(_) => return Ok(None),
    }
    if let Some(table) = scope.tables.get(reference.table()) {
        let row_ids = target == Some(reference.table());
        return Ok(Some(Arc::new(Provider::new(Arc::clone(table), row_ids))));
    }
    let name = reference.table();
    let files = match calls.get(name) {
        Some(call) => FileTable::open_with(name, call.paths.clone(), call.options.clone()).await?,
        None if file_names::looks_like_file(name) => FileTable::open(name).await?,
        None => return Ok(None),
    };
    Ok(Some(Arc::new(files)))
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> DataFusionResult<Arc<dyn TableSource>> {
        match self.sources.get(&name) {
            Some(source) => Ok(Arc::clone(source)),
            None => Err(self.scope.unknown(&name.to_string()).into()),
        }
    }

    fn get_file_type(&self, extension: &str) -> DataFusionResult<Arc<dyn FileType>> {
        match self.scope.state.get_file_format_factory(extension) {
            Some(format) => Ok(format_as_file_type(format)),
            None => Err(files::unknown_format(extension).into()),
        }
    }

    fn get_table_function_source(
        &self,
        name: &str,
        args: Vec<datafusion::logical_expr::Expr>,
    ) -> DataFusionResult<Arc<dyn TableSource>> {
        let Some(function) = self.scope.state.table_functions().get(name) else {
            return Err(Error::invalid(format!("no table function \"{name}\"")).into());
        };
        let args: Vec<_> = args
            .into_iter()
            .map(|arg| {
                use datafusion::common::DFSchema;
                use datafusion::logical_expr::simplify::SimplifyContext;
                use datafusion::optimizer::simplify_expressions::ExprSimplifier;
                let context = SimplifyContext::builder()
                    .with_config_options(Arc::clone(self.scope.state.config_options()))
                    .build();
                let simplifier = ExprSimplifier::new(context);
                simplifier
                    .coerce(arg, &DFSchema::empty())
                    .and_then(|e| simplifier.simplify(e))
            })
            .collect::<DataFusionResult<_>>()?;
        let arguments = datafusion::catalog::TableFunctionArgs::new(&args, &self.scope.state);
        Ok(provider_as_source(
            function.create_table_provider_with_args(arguments)?,
        ))
    }

    fn create_cte_work_table(
        &self,
        name: &str,
        schema: SchemaRef,
    ) -> DataFusionResult<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(
            name, schema,
        ))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.scope.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.scope.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.scope.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.scope.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.scope.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.scope
            .state
            .scalar_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.scope
            .state
            .higher_order_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.scope
            .state
            .aggregate_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.scope
            .state
            .window_functions()
            .keys()
            .cloned()
            .collect()
    }
}
