//! The names in a statement, resolved for DataFusion's planner.

use std::collections::HashMap;
use std::sync::Arc;

use crate::planner::Planner;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use catalog::information;
use catalog::pg_catalog::{self, Seen, ViewColumns};
use catalog::rights::{MONITOR, Rights};
use catalog::search_path::SearchPath;
use catalog::settings::StatementSettings;
use datafusion_common::Result as DataFusionResult;
use datafusion_common::TableReference;
use datafusion_common::config::ConfigOptions;
use datafusion_common::file_options::file_type::FileType;
use datafusion_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion_sql::parser::Statement as Extended;
use syntax::names::{
    CATALOG, INFORMATION_SCHEMA, PG_CATALOG, SCHEMA, base, known, looks_like_file, schema_of,
};
use syntax::readers;
use syntax::returning::{EXCLUDED, TARGET, WRITTEN};
use table::{Privileges, Tables};

use crate::bind::domain_casts::DomainCasts;
use crate::bind::planners::Types;
use crate::bind::symbols::Operators;
use crate::bind::text_operators::TextOperators;
use crate::error::{Error, Result, WITHIN};
use crate::functions::descriptions::{self, Descriptions};
use crate::functions::objects;
use crate::functions::privileges::{self, Privileged};
use crate::functions::sequences::{self, Numbers};
use crate::functions::{advisory, clock, settings};
use crate::messages::nearest::unknown_table;
use crate::optimize::working_table::WorkTable;
use crate::run::arrays::{Arrays, INTO, array_of};
use crate::run::frames::{Frames, Given};
use crate::run::instance::Instance;
use crate::run::values::Defaults;
use crate::scan::arrays::said;
use crate::scan::files::table::FileTable;
use crate::scan::provider::Provider;
use crate::scan::rows::RowTable;
use crate::scan::series::Series;

/// The calls behind names such as `read_csv(...)` and `bfs(...)` in a statement.
pub(crate) struct Calls {
    pub files: HashMap<String, readers::Call>,
    pub tables: HashMap<String, Arc<dyn TableSource>>,
    /// The rows that the statement has written, for `returning`.
    pub written: Option<Arc<dyn TableSource>>,
    /// The rows that an `on conflict` has kept from being inserted.
    pub excluded: Option<Arc<dyn TableSource>>,
    /// The table that a `merge` changes.
    pub target: Option<Arc<dyn TableSource>>,
    /// What the functions over sequences ask.
    pub numbers: Option<Arc<dyn Numbers>>,
    /// What people have said about tables.
    pub descriptions: Arc<dyn Descriptions>,
    /// Of the session.
    pub settings: StatementSettings,
    /// Who may do what.
    pub privileges: Arc<dyn Privileged>,
    /// The views that the statement names, planned.
    pub views: HashMap<String, Arc<dyn TableSource>>,
    /// The columns of all views, if the statement asks for them.
    pub view_columns: ViewColumns,
    /// Of the table that the statement inserts into.
    pub defaults: Defaults,
    /// Rows of the caller.
    pub frames: Frames,
    /// Rows that parts of the statement have given.
    pub given: Given,
    /// Where names are looked up.
    pub path: SearchPath,
    /// By whose rights.
    pub rights: Rights,
    /// The table of which no column is read, but rows are written to.
    pub only_written: Option<String>,
    /// What casts to domains call.
    pub domains: DomainCasts,
    /// Whether tables are read with the numbers of their rows.
    pub row_ids: bool,
    /// Whether files are read with their names and the numbers of their rows.
    pub file_places: bool,
    /// Who runs the statement.
    pub instance: Arc<Instance>,
}

/// Resolves the names of one statement for DataFusion's planner.
pub(crate) struct Resolver<'a> {
    planner: &'a Planner,
    tables: &'a Tables,
    /// The tables that the statement names, looked up beforehand as files are read to know their columns.
    sources: HashMap<TableReference, Arc<dyn TableSource>>,
    /// Ours before DataFusion's.
    planners: Vec<Arc<dyn ExprPlanner>>,
    types: Arc<Types>,
    numbers: Option<Arc<dyn Numbers>>,
    descriptions: Option<Arc<dyn Descriptions>>,
    privileges: Option<Arc<dyn Privileged>>,
    settings: StatementSettings,
    domains: DomainCasts,
}

impl<'a> Resolver<'a> {
    /// A resolver of the tables, arrays, files, graphs and views that `statement` names. `target` is the table that is scanned
    /// with its row ids, if there is one.
    ///
    /// # Errors
    ///
    /// Those of opening files and arrays.
    pub(crate) async fn resolve(
        planner: &'a Planner,
        tables: &'a Arc<Tables>,
        arrays: &Arrays,
        statement: &Extended,
        target: Option<&str>,
        calls: &Calls,
    ) -> Result<Resolver<'a>> {
        let mut sources = HashMap::new();
        for reference in planner.resolve_table_references(statement)? {
            if let Some(provider) = find(tables, arrays, &reference, target, calls).await? {
                sources.insert(reference, provider);
            }
        }
        let resolver = Resolver::new(planner, tables, &calls.path, sources);
        Ok(Resolver {
            numbers: calls.numbers.clone(),
            descriptions: Some(Arc::clone(&calls.descriptions)),
            privileges: Some(Arc::clone(&calls.privileges)),
            settings: calls.settings.clone(),
            domains: calls.domains.clone(),
            ..resolver
        })
    }

    /// Adds rows that the statement names.
    pub(super) fn put(&mut self, name: TableReference, rows: Arc<dyn TableSource>) {
        self.sources.insert(name, rows);
    }

    pub(crate) fn new(
        planner: &'a Planner,
        tables: &'a Tables,
        path: &SearchPath,
        sources: HashMap<TableReference, Arc<dyn TableSource>>,
    ) -> Resolver<'a> {
        let mut planners: Vec<Arc<dyn ExprPlanner>> =
            vec![Arc::new(Operators), Arc::new(TextOperators)];
        planners.extend(planner.expr_planners().iter().cloned());
        Resolver {
            planner,
            tables,
            sources,
            planners,
            types: Arc::new(Types::of(tables, path)),
            numbers: None,
            descriptions: None,
            privileges: None,
            settings: StatementSettings::default(),
            domains: DomainCasts::new(),
        }
    }
}

/// The rows of the statement itself that `reference` names.
fn of_statement(reference: &TableReference, calls: &Calls) -> Option<Arc<dyn TableSource>> {
    let own = [
        (WRITTEN, &calls.written),
        (EXCLUDED, &calls.excluded),
        (TARGET, &calls.target),
    ];
    let mut own = own.into_iter();
    match own.find(|(name, _)| *name == reference.table()) {
        Some((_, Some(rows))) => Some(Arc::clone(rows)),
        _ => None,
    }
}

/// The name in the catalog of the table or view that `reference` names.
pub(super) fn name_of(reference: &TableReference, tables: &Tables, path: &SearchPath) -> String {
    match reference.schema() {
        Some(schema) => path.named(schema, reference.table()),
        None => path.resolve(tables, reference.table()),
    }
}

/// The table, array, frame, file, call that reads files or a graph, or view of the information schema that `reference`
/// names.
async fn find(
    tables: &Arc<Tables>,
    arrays: &Arrays,
    reference: &TableReference,
    target: Option<&str>,
    calls: &Calls,
) -> Result<Option<Arc<dyn TableSource>>> {
    if reference
        .catalog()
        .is_some_and(|catalog| catalog != CATALOG)
    {
        return Ok(None);
    }
    match reference.schema() {
        Some(INFORMATION_SCHEMA) => {
            if reference.table() == said::VIEW {
                let readable = arrays.readable(tables, &calls.rights)?;
                return Ok(Some(made(said::view(&readable)?)));
            }
            return of_standard(tables, reference.table(), calls);
        }
        Some(PG_CATALOG) => {
            return Ok(of_catalog(tables, reference.table(), calls)?);
        }
        _ => {}
    }
    if reference.schema().is_none()
        && let Some(given) = calls.given.get(reference.table())
    {
        return Ok(Some(Arc::clone(given)));
    }
    if let Some(own) = of_statement(reference, calls) {
        return Ok(Some(own));
    }
    let name = name_of(reference, tables, &calls.path);
    if schema_of(&name) == PG_CATALOG {
        return Ok(of_catalog(tables, base(&name), calls)?);
    }
    if calls.only_written.as_ref() != Some(&name)
        && (tables.get(&name).is_some() || tables.view(&name).is_some())
    {
        calls.rights.check(tables, &name, Privileges::SELECT)?;
    }
    if let Some(table) = tables.get(&name) {
        if tables
            .materialized(&name)
            .is_some_and(|query| !query.populated)
        {
            return Err(Error::coded(
                "55000",
                format!(
                    "materialized view \"{name}\" has not been populated: Use the REFRESH MATERIALIZED VIEW command."
                ),
            ));
        }
        let row_ids = target == Some(name.as_str()) || calls.row_ids;
        let mut provider = Provider::new(Arc::clone(table), row_ids);
        if calls.defaults.table == name {
            provider = provider.with_defaults(calls.defaults.columns.clone());
        }
        return Ok(Some(Arc::new(provider)));
    }
    if let Some(view) = calls.views.get(&name) {
        return Ok(Some(Arc::clone(view)));
    }
    if let Some(sequence) = tables.sequence(&name) {
        calls.rights.check(tables, &name, Privileges::SELECT)?;
        let instance = &calls.instance;
        let at = instance.sequences.at(&instance.store, &name, sequence)?;
        return Ok(Some(made(pg_catalog::sequence_state(at)?)));
    }
    if reference.schema().is_some_and(|schema| schema != SCHEMA) {
        return Ok(None);
    }
    of_no_table(tables, arrays, reference, calls).await
}

/// What is no table or view of the catalog, by the name that `reference` has: an array of `public`, or what is in no
/// schema.
async fn of_no_table(
    tables: &Arc<Tables>,
    arrays: &Arrays,
    reference: &TableReference,
    calls: &Calls,
) -> Result<Option<Arc<dyn TableSource>>> {
    let named = known(reference.table());
    let name = named.as_str();
    let in_public = reference.schema().is_some()
        || reference.table().contains(WITHIN)
        || calls.path.has(SCHEMA);
    if in_public && let Some(array) = arrays.find(name)? {
        if !name.ends_with(INTO) && calls.only_written.as_deref() != Some(name) {
            calls
                .rights
                .check(tables, array_of(name), Privileges::SELECT)?;
        }
        return Ok(Some(Arc::new(array)));
    }
    if reference.schema().is_none()
        && let Some(frame) = calls.frames.get(name)
    {
        return Ok(Some(Arc::new(FileTable::of(name, Arc::clone(frame)))));
    }
    if let Some(table) = calls.tables.get(name) {
        return Ok(Some(Arc::clone(table)));
    }
    let files = match calls.files.get(name) {
        Some(call) => {
            let files: Vec<String> = call
                .paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            calls.rights.check_files(&files.join(", "), false)?;
            FileTable::open_with(name, call.paths.clone(), call.options.clone()).await?
        }
        None if looks_like_file(name) => {
            calls.rights.check_files(name, false)?;
            FileTable::open(name).await?
        }
        None if name.starts_with("pg_") => return Ok(of_catalog(tables, name, calls)?),
        None if reference.schema().is_none() && calls.path.has(INFORMATION_SCHEMA) => {
            return of_standard(tables, name, calls);
        }
        None => return Ok(None),
    };
    Ok(Some(Arc::new(if calls.file_places {
        files.with_places()
    } else {
        files
    })))
}

/// Rows of the catalog as a table.
fn made(rows: RecordBatch) -> Arc<dyn TableSource> {
    Arc::new(RowTable::in_memory(rows.schema(), vec![rows]))
}

/// The view of `information_schema` of that name, as whose rights the statement has sees it.
fn of_standard(tables: &Tables, name: &str, calls: &Calls) -> Result<Option<Arc<dyn TableSource>>> {
    let seen = Seen {
        tables,
        rights: &calls.rights,
        temporary: calls.path.temporary(),
        path: Some(&calls.path),
    };
    Ok(information::view(&seen, name, &calls.view_columns)?.map(made))
}

/// The table of `pg_catalog` of that name. What the sessions of others run is shown to those alone who may see it.
fn of_catalog(
    tables: &Tables,
    name: &str,
    calls: &Calls,
) -> DataFusionResult<Option<Arc<dyn TableSource>>> {
    let activity = || {
        let mut all = calls.instance.observer.look();
        for session in &mut all {
            if !calls.rights.is_member(MONITOR) && !calls.rights.includes(Some(&session.user)) {
                session.query = "<insufficient privilege>".into();
                session.application = String::new();
                session.address = String::new();
                session.port = None;
            }
        }
        all
    };
    if name == "pg_locks" {
        let locks = calls.instance.locks.list();
        return pg_catalog::locks(tables, &locks, &calls.settings).map(|rows| Some(made(rows)));
    }
    let rows = pg_catalog::view(
        (tables, &calls.view_columns, &calls.path),
        name,
        activity,
        &calls.settings,
    )?;
    Ok(rows.map(made))
}

impl ContextProvider for Resolver<'_> {
    fn get_table_source(&self, name: TableReference) -> DataFusionResult<Arc<dyn TableSource>> {
        match self.sources.get(&name) {
            Some(source) => Ok(Arc::clone(source)),
            None => Err(unknown_table(&name.to_string(), self.tables).into()),
        }
    }

    fn get_file_type(&self, extension: &str) -> DataFusionResult<Arc<dyn FileType>> {
        // What files hold is known by the crate `ingest`; the planner of queries asks for none.
        Err(Error::unknown_format(extension).into())
    }

    fn get_table_function_source(
        &self,
        name: &str,
        args: Vec<datafusion_expr::Expr>,
    ) -> DataFusionResult<Arc<dyn TableSource>> {
        let args: Vec<_> = args
            .into_iter()
            .map(|arg| {
                use datafusion_common::DFSchema;
                use datafusion_expr::simplify::SimplifyContext;
                use datafusion_optimizer::simplify_expressions::ExprSimplifier;
                let context = SimplifyContext::builder()
                    .with_config_options(Arc::clone(self.planner.config_options()))
                    .build();
                let simplifier = ExprSimplifier::new(context);
                simplifier
                    .coerce(arg, &DFSchema::empty())
                    .and_then(|e| simplifier.simplify(e))
            })
            .collect::<DataFusionResult<_>>()?;
        Ok(Arc::new(Series::of(name, &args)?))
    }

    fn create_cte_work_table(
        &self,
        name: &str,
        schema: SchemaRef,
    ) -> DataFusionResult<Arc<dyn TableSource>> {
        Ok(Arc::new(WorkTable::new(name, schema)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::clone(&self.types) as Arc<dyn TypePlanner>)
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let of_domain = self.domains.get(name).cloned();
        let known = of_domain.or_else(|| self.planner.functions.scalar(name).cloned());
        let own = || sequences::named(self.numbers.as_ref()?, name).map(Arc::new);
        let said = || {
            let known = self.descriptions.as_ref()?;
            let object = || objects::named(known, name);
            descriptions::named(known, name)
                .or_else(object)
                .map(Arc::new)
        };
        let held = || privileges::named(self.privileges.as_ref()?, name).map(Arc::new);
        let set = || {
            let lock = || advisory::named(self.settings.locks(), name);
            settings::named(&self.settings, name)
                .or_else(lock)
                .map(Arc::new)
        };
        let began = || clock::named(self.settings.began()?, name).map(Arc::new);
        // Some know more of the statement's tables than what stands for them where there are none.
        let of_session = || own().or_else(set).or_else(began);
        said().or_else(held).or_else(of_session).or(known)
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.planner.functions.aggregates().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.planner.functions.windows().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.planner.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.planner.functions.scalar_names().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.planner
            .functions
            .aggregates()
            .keys()
            .cloned()
            .collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.planner.functions.windows().keys().cloned().collect()
    }
}
