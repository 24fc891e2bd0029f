//! The functions that statements may call, by their names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion_common::{Result, internal_datafusion_err};
use datafusion_expr::planner::ExprPlanner;
use datafusion_expr::registry::FunctionRegistry;
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};

/// All functions, each also by its aliases. Copies share them; one may have a few of its own beside them.
///
/// ```
/// let registry = functions::Registry::all();
/// assert!(registry.scalar("upper").is_some());
/// assert!(registry.aggregates().contains_key("string_agg"));
/// assert!(registry.windows().contains_key("lag"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// In the places of others, the last first.
    own: Vec<Arc<ScalarUDF>>,
    scalars: Arc<HashMap<String, Arc<ScalarUDF>>>,
    aggregates: Arc<HashMap<String, Arc<AggregateUDF>>>,
    windows: Arc<HashMap<String, Arc<WindowUDF>>>,
}

impl Registry {
    /// The function of a row of that name.
    pub fn scalar(&self, name: &str) -> Option<&Arc<ScalarUDF>> {
        let is_named = |own: &&Arc<ScalarUDF>| {
            own.name() == name || own.aliases().iter().any(|alias| alias == name)
        };
        let own = self.own.iter().rev().find(is_named);
        own.or_else(|| self.scalars.get(name))
    }

    /// The names of all functions of a row.
    pub fn scalar_names(&self) -> impl Iterator<Item = &String> {
        self.scalars.keys()
    }

    /// Functions of the rows of a group.
    pub fn aggregates(&self) -> &HashMap<String, Arc<AggregateUDF>> {
        &self.aggregates
    }

    /// Functions of the rows of a window that are no aggregates.
    pub fn windows(&self) -> &HashMap<String, Arc<WindowUDF>> {
        &self.windows
    }

    /// Has this copy call a function of its own in the place of one that all have.
    pub fn put(&mut self, own: Arc<ScalarUDF>) {
        self.own.push(own);
    }

    /// Adds a function of a row, in the place of what has its names.
    pub(crate) fn add(&mut self, function: Arc<ScalarUDF>) {
        let all = Arc::make_mut(&mut self.scalars);
        let names = [function.name().to_owned()].into_iter();
        for name in names.chain(function.aliases().iter().cloned()) {
            all.insert(name, Arc::clone(&function));
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        Arc::make_mut(&mut self.scalars).remove(name);
    }

    pub(crate) fn add_aggregate(&mut self, function: Arc<AggregateUDF>) {
        let all = Arc::make_mut(&mut self.aggregates);
        let names = [function.name().to_owned()].into_iter();
        for name in names.chain(function.aliases().iter().cloned()) {
            all.insert(name, Arc::clone(&function));
        }
    }

    pub(crate) fn add_window(&mut self, function: Arc<WindowUDF>) {
        let all = Arc::make_mut(&mut self.windows);
        let names = [function.name().to_owned()].into_iter();
        for name in names.chain(function.aliases().iter().cloned()) {
            all.insert(name, Arc::clone(&function));
        }
    }
}

/// Where DataFusion's rules look for functions.
impl FunctionRegistry for Registry {
    fn udfs(&self) -> HashSet<String> {
        self.scalars.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn udafs(&self) -> HashSet<String> {
        self.aggregates.keys().cloned().collect()
    }

    fn udwfs(&self) -> HashSet<String> {
        self.windows.keys().cloned().collect()
    }

    fn udf(&self, name: &str) -> Result<Arc<ScalarUDF>> {
        self.scalar(name)
            .cloned()
            .ok_or_else(|| internal_datafusion_err!("there is no function {name}"))
    }

    fn higher_order_function(&self, name: &str) -> Result<Arc<HigherOrderUDF>> {
        Err(internal_datafusion_err!("there is no function {name}"))
    }

    fn udaf(&self, name: &str) -> Result<Arc<AggregateUDF>> {
        self.aggregates
            .get(name)
            .cloned()
            .ok_or_else(|| internal_datafusion_err!("there is no aggregate {name}"))
    }

    fn udwf(&self, name: &str) -> Result<Arc<WindowUDF>> {
        self.windows
            .get(name)
            .cloned()
            .ok_or_else(|| internal_datafusion_err!("there is no function of windows {name}"))
    }

    fn expr_planners(&self) -> Vec<Arc<dyn ExprPlanner>> {
        Vec::new()
    }
}
