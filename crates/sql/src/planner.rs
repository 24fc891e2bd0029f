//! What statements are planned with: functions, rules and settings. Each statement gets a copy of the instance's, and may
//! change its settings.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion_common::alias::AliasGenerator;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, Result, TableReference};
use datafusion_execution::config::SessionConfig;
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_expr::Expr;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::planner::ExprPlanner;
use datafusion_expr::registry::FunctionRegistry;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_optimizer::analyzer::Analyzer;
use datafusion_optimizer::simplify_expressions::ExprSimplifier;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion_sql::parser::Statement;
use datafusion_sql::resolve::resolve_table_references;

use crate::functions::Registry;

/// The planner of a statement.
#[derive(Clone)]
pub(crate) struct Planner {
    /// What can be called.
    pub functions: Registry,
    config: SessionConfig,
    props: ExecutionProps,
    /// The memory in which functions compute.
    runtime: Arc<RuntimeEnv>,
    rules: Arc<Rules>,
}

/// What is the same for all statements.
struct Rules {
    analyzer: Analyzer,
    optimizer: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
    /// Which make expressions of what is written.
    expressions: Vec<Arc<dyn ExprPlanner>>,
}

impl Planner {
    /// A planner with these functions, settings and rules, which computes within `runtime`.
    pub(crate) fn new(
        functions: Registry,
        config: SessionConfig,
        runtime: Arc<RuntimeEnv>,
        analyzer: Analyzer,
        optimizer: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
    ) -> Planner {
        let expressions: Vec<Arc<dyn ExprPlanner>> = vec![
            Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner::default()),
            Arc::new(datafusion_functions::datetime::planner::DatetimeFunctionPlanner),
            Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
            Arc::new(datafusion_functions_aggregate::planner::AggregateFunctionPlanner),
            Arc::new(datafusion_functions_window::planner::WindowFunctionPlanner),
        ];
        Planner {
            functions,
            config,
            props: ExecutionProps::new(),
            runtime,
            rules: Arc::new(Rules {
                analyzer,
                optimizer,
                expressions,
            }),
        }
    }

    /// One without rules, and with DataFusion's own settings.
    #[cfg(test)]
    pub(crate) fn plain() -> Planner {
        let functions = Registry::all();
        let analyzer = Analyzer::with_rules(Vec::new());
        Planner::new(
            functions,
            SessionConfig::new(),
            Arc::default(),
            analyzer,
            Vec::new(),
        )
    }

    pub(crate) fn config(&self) -> &SessionConfig {
        &self.config
    }

    pub(crate) fn config_mut(&mut self) -> &mut SessionConfig {
        &mut self.config
    }

    pub(crate) fn config_options(&self) -> &Arc<ConfigOptions> {
        self.config.options()
    }

    /// What is known of the statement when it runs: its time, and its settings.
    pub(crate) fn execution_props(&self) -> &ExecutionProps {
        &self.props
    }

    pub(crate) fn execution_props_mut(&mut self) -> &mut ExecutionProps {
        &mut self.props
    }

    /// Begins a statement, with the settings as they are.
    pub(crate) fn mark_start_execution(&mut self) {
        let options = Arc::clone(self.config.options());
        self.props.mark_start_execution(options);
    }

    pub(crate) fn runtime(&self) -> &Arc<RuntimeEnv> {
        &self.runtime
    }

    pub(crate) fn analyzer(&self) -> &Analyzer {
        &self.rules.analyzer
    }

    /// The rules for logical plans, in their order.
    pub(crate) fn rules(&self) -> &[Arc<dyn OptimizerRule + Send + Sync>] {
        &self.rules.optimizer
    }

    pub(crate) fn expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.rules.expressions
    }

    /// The tables that a statement names.
    pub(crate) fn resolve_table_references(
        &self,
        statement: &Statement,
    ) -> Result<Vec<TableReference>> {
        let normalised = self.config.options().sql_parser.enable_ident_normalization;
        Ok(resolve_table_references(statement, normalised)?.0)
    }

    /// `expr` as it is evaluated over batches with the columns of `schema`; types that do not agree are cast.
    pub(crate) fn create_physical_expr(
        &self,
        expr: Expr,
        schema: &DFSchema,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let context = SimplifyContext::builder()
            .with_schema(Arc::new(schema.clone()))
            .with_config_options(Arc::clone(self.config_options()))
            .with_query_execution_start_time(self.props.query_execution_start_time)
            .build();
        let expr = ExprSimplifier::new(context).coerce(expr, schema)?;
        let context = PhysicalPlanningContext::default();
        create_physical_expr(&expr, schema, &self.props, &context)
    }
}

impl std::fmt::Debug for Planner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Planner").finish_non_exhaustive()
    }
}

impl OptimizerConfig for Planner {
    fn query_execution_start_time(&self) -> Option<DateTime<Utc>> {
        self.props.query_execution_start_time
    }

    fn alias_generator(&self) -> &Arc<AliasGenerator> {
        &self.props.alias_generator
    }

    fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(self.config.options())
    }

    fn function_registry(&self) -> Option<&dyn FunctionRegistry> {
        Some(&self.functions)
    }
}
