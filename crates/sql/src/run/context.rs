//! What one statement sees: the tables of a snapshot, the functions, and its own counters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::planner::Planner;
use catalog::limits;
use catalog::pg_catalog::ViewColumns;
use catalog::rights::Rights;
use catalog::search_path::SearchPath;
use catalog::settings::StatementSettings;
use datafusion_execution::TaskContext;
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_expr::LogicalPlan;
use datafusion_expr::TableSource;
use datafusion_sql::parser::Statement as Extended;
use datafusion_sql::planner::{ParserOptions, SqlToRel};
use memory::{Budget, Traffic};
use sqlparser::ast::Statement as Sql;
use store::Snapshot;
use syntax::names::CATALOG;
use syntax::{
    casts_apart, ctes, graphs, limit_columns, operators, outer_names, readers, sort_names,
};
use table::{Privileges, Table, Tables};

use crate::bind::domain_casts::DomainCasts;
use crate::bind::{calls, definition, domain_casts, records, typed_values};
use crate::error::{Error, Result};
use crate::functions::present::Memory;
use crate::functions::sequences::Numbers;
use crate::messages::nearest::unknown_table;
use crate::optimize::floats;
use crate::resources::allowance::Allowance;
use crate::run::arrays::{Arrays, Watched};
use crate::run::clock::Clock;
use crate::run::deferrals::Deferrals;
use crate::run::depth::Depth;
use crate::run::descriptions::Said;
use crate::run::frames::{Frames, Given};
use crate::run::inserted;
use crate::run::instance::Instance;
use crate::run::kept_plans::PlanKey;
use crate::run::merged;
use crate::run::options::PlanUse;
use crate::run::privileges::Known;
use crate::run::reads::only_written;
use crate::run::resolver::{Calls, Resolver};
use crate::run::shared_plans;
use crate::run::united;
use crate::run::values::Defaults;
use crate::run::watch::Watch;
use crate::run::{file_columns, system_columns};
use crate::scan;
use crate::scan::arrays::definition::ArrayTable;

/// One statement's view of the database.
pub(crate) struct StatementContext {
    pub instance: Arc<Instance>,
    /// The memory of the user, if it has a limit of its own.
    allowance: Option<Arc<Allowance>>,
    pub planner: Planner,
    pub tables: Arc<Tables>,
    /// What `tables` are of, but for what an open transaction has changed.
    snapshot: Snapshot,
    pub arrays: Arrays,
    /// The rows that the statement has written, for `returning`.
    pub written: Option<Arc<dyn TableSource>>,
    /// The rows that an `on conflict` has kept from being inserted.
    pub excluded: Option<Arc<dyn TableSource>>,
    /// Rows of the caller that the statement reads as tables; its views do not.
    pub(super) frames: Frames,
    /// Rows that parts of the statement have given.
    pub(crate) given: Given,
    /// Where names are looked up; those in its views are [others](SearchPath::kept).
    pub(crate) path: SearchPath,
    /// Whose rights the statement has; what is in its views has [those of their owners](Rights::of_owner).
    pub(crate) rights: Rights,
    /// What a server has been told of the session.
    pub(super) settings: StatementSettings,
    /// The user of the session; none: who runs the program.
    pub(crate) user: Option<Arc<str>>,
    /// Their role; none: who runs the program.
    pub(crate) role: Option<Arc<str>>,
    /// The table that a `merge` changes, with its row ids.
    pub target: Option<Arc<dyn TableSource>>,
    /// What the functions over sequences ask, where a session may.
    pub numbers: Option<Arc<dyn Numbers>>,
    /// The same for texts that are kept.
    pub(super) kept_numbers: Option<Arc<dyn Numbers>>,
    /// Which constraints are looked at when its transaction ends; none where the statement is one itself.
    pub deferrals: Option<Deferrals>,
    /// What sees how the rows come that the statement writes, if it is analysed.
    pub watch: Option<Arc<Watch>>,
    pub clock: Clock,
}

impl StatementContext {
    /// The view of `snapshot` for a statement that began at `started`.
    pub(crate) fn new(
        instance: &Arc<Instance>,
        snapshot: &Snapshot,
        started: Instant,
    ) -> Result<StatementContext> {
        let tables = instance.catalog.tables(snapshot)?;
        Ok(StatementContext::over(instance, snapshot, tables, started))
    }

    /// The view of these tables, which a transaction may have changed since `snapshot`.
    pub(crate) fn over(
        instance: &Arc<Instance>,
        snapshot: &Snapshot,
        tables: Arc<Tables>,
        started: Instant,
    ) -> StatementContext {
        let workers = instance.workers();
        let traffic = Arc::new(Traffic::new(workers.nodes()));
        instance.work.begin(&traffic);
        let mut planner = instance.template.clone();
        // The width may rise while it runs.
        let width = workers.threads();
        let config = planner.config_mut();
        if config.target_partitions() != width {
            config.options_mut().execution.target_partitions = width;
        }
        planner.mark_start_execution();
        StatementContext {
            instance: Arc::clone(instance),
            allowance: None,
            planner,
            tables,
            snapshot: snapshot.clone(),
            arrays: Arrays {
                snapshot: snapshot.clone(),
                own: None,
            },
            written: None,
            excluded: None,
            frames: Frames::default(),
            given: Given::default(),
            path: SearchPath::kept(),
            rights: Rights::all(),
            user: None,
            role: None,
            settings: StatementSettings::default(),
            target: None,
            numbers: None,
            kept_numbers: None,
            deferrals: None,
            watch: None,
            clock: Clock::new(started, traffic),
        }
    }

    /// A view of the same tables in which texts that are kept are compiled.
    pub(super) fn kept(&self) -> StatementContext {
        let tables = Arc::clone(&self.tables);
        let mut own =
            StatementContext::over(&self.instance, &self.snapshot, tables, Instant::now());
        own.planner = self.planner.clone();
        own.arrays = self.arrays.clone();
        own.settings = self.settings.clone();
        own.numbers = self.kept_numbers.clone();
        own.kept_numbers = self.kept_numbers.clone();
        own
    }

    /// The same with names looked up in this path.
    pub(crate) fn with_path(mut self, path: SearchPath) -> StatementContext {
        self.path = path;
        self
    }

    /// The same within the memory that the role of this user may have.
    pub(crate) fn within_limits(mut self, user: Option<&Arc<str>>) -> StatementContext {
        let limit = user.and_then(|user| Some((user, self.tables.role(user)?)));
        let limit = limit.and_then(|(user, role)| Some((user, limits::memory(role)?)));
        if let Some((user, limit)) = limit {
            let own = self.instance.allowance(user, limit);
            let options = self.planner.config_mut().options_mut();
            options.extensions.insert(Memory::of(&own.budget));
            self.tell_options();
            self.allowance = Some(own);
        }
        self
    }

    /// The version of the store that the statement sees, if that is the latest and its transaction has changed nothing.
    fn latest_version(&self) -> Option<u64> {
        let latest = self.instance.store.snapshot();
        let same = !self.snapshot.is_open()
            && self.snapshot.version() == latest.version()
            && self.arrays.own.is_none();
        // The tables of a transaction that has changed some are its own.
        let tables = same.then(|| self.instance.catalog.tables(&latest));
        let tables = tables.and_then(|tables| tables.ok())?;
        Arc::ptr_eq(&tables, &self.tables).then(|| latest.version())
    }

    /// Whether the statement reads rows that are of nobody else: those of its caller, and of its own parts.
    fn has_own_rows(&self) -> bool {
        !self.frames.is_empty()
            || !self.given.is_empty()
            || self.written.is_some()
            || self.excluded.is_some()
            || self.target.is_some()
    }

    /// By what a plan of the statement is kept; none if it sees what no other statement does: what its transaction has
    /// changed, an older version than the latest, rows of its caller; or if each statement is to have a plan of its own.
    pub(crate) fn plan_key(&self) -> Option<PlanKey> {
        if self.has_own_rows() || self.instance.plan_use == PlanUse::Once {
            return None;
        }
        if self.settings.get("plan_cache_mode").as_deref() == Some("force_custom_plan") {
            return None;
        }
        Some(PlanKey {
            version: self.latest_version()?,
            path: self.path.clone(),
            user: self.user.clone(),
            role: self.role.clone(),
            settings: self.settings.clone(),
        })
    }

    /// Whether the rows of the statement wait for a client of a server.
    pub(crate) fn is_served(&self) -> bool {
        self.settings.is_served()
    }

    /// From which operators of the statement reserve memory.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        match &self.allowance {
            Some(own) => &own.budget,
            None => &self.instance.budget,
        }
    }

    /// Whether the user has a memory limit of its own.
    pub(crate) fn is_limited(&self) -> bool {
        self.allowance.is_some()
    }

    /// That whose statement it is has these privileges for something.
    ///
    /// # Errors
    /// [`Error::Denied`].
    pub(crate) fn may(&self, name: &str, wanted: Privileges) -> Result<()> {
        self.rights.check(&self.tables, name, wanted)
    }

    /// The name in the catalog of the table that the session [writes](syntax::names::written) so.
    pub(crate) fn own(&self, written: &str) -> String {
        self.path.resolve(&self.tables, written)
    }

    /// The table of that name, for statements that change it.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTable`] with the nearest names; if it is a view.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<Table>> {
        match self.tables.get(name) {
            Some(_) if self.tables.materialized(name).is_some() => Err(Error::coded(
                "42809",
                format!(
                    "cannot change materialized view \"{name}\": `refresh materialized view` does, and `drop materialized view` removes it"
                ),
            )),
            Some(table) => Ok(Arc::clone(table)),
            None if self.tables.view(name).is_some() => Err(Error::coded(
                "42809",
                format!("\"{name}\" is a view, which is only read; `drop view` removes it"),
            )),
            None if self.array(name)?.is_some() => Err(Error::coded(
                "42809",
                format!(
                    "\"{name}\" is an array: insert, update and delete change its cells, and `drop array` removes it"
                ),
            )),
            None => Err(unknown_table(name, &self.tables)),
        }
    }

    /// The array of that name, if there is one and no table or view hides it.
    ///
    /// # Errors
    /// Those of reading its definition.
    pub(crate) fn array(&self, name: &str) -> Result<Option<ArrayTable>> {
        if self.tables.get(name).is_some() || self.tables.view(name).is_some() {
            return Ok(None);
        }
        self.arrays.find(name)
    }

    /// The logical plan of `statement`, not optimised yet. `target` is the table that it deletes from or updates; it is
    /// scanned with its row ids.
    pub(crate) async fn plan(&self, statement: Sql, target: Option<&str>) -> Result<LogicalPlan> {
        let depth = Depth::default();
        self.plan_within(statement, target, depth, &self.rights)
            .await
    }

    /// The same, within views so deep, by these rights.
    pub(super) async fn plan_within(
        &self,
        mut statement: Sql,
        target: Option<&str>,
        depth: Depth,
        rights: &Rights,
    ) -> Result<LogicalPlan> {
        let only_written = only_written(&self.planner, &statement, target)?;
        if let Sql::Insert(insert) = &mut statement {
            // A mark that was looked at where rows are written.
            insert.partitioned = None;
        }
        let path = self.path_within(depth);
        records::take(&mut statement, &self.tables, &path)?;
        let defaults = self.defaults(&statement).await?;
        let mut calls = self.calls(&mut statement, rights).await?;
        calls.only_written = only_written;
        ctes::mark(&mut statement, &|name| self.is_volatile(name))?;
        calls::check(&statement, &self.planner)?;
        typed_values::cast(&mut statement, &self.tables, &path);
        let domains = domain_casts::take(&mut statement, &self.tables, &path)?;
        casts_apart::tell(&mut statement);
        calls.domains = self.domains(domains).await?;
        calls.row_ids = system_columns::reads_places(&statement);
        calls.file_places = file_columns::are_read(&statement);
        let statement = Extended::Statement(Box::new(statement));
        calls.views = self.views(&statement, &path, (depth, rights)).await?;
        calls.view_columns = self.view_columns(&statement, depth).await?;
        calls.defaults = defaults;
        if depth.is_outermost() {
            calls.frames = self.frames.clone();
            calls.given = Arc::clone(&self.given);
        } else {
            calls.numbers = self.kept_numbers.clone();
        }
        calls.descriptions = Said::of(&self.tables, &path, &calls.view_columns);
        calls.path = path;
        let mut names = Resolver::resolve(
            &self.planner,
            &self.tables,
            &self.arrays,
            &statement,
            target,
            &calls,
        )
        .await?;
        let statement = merged::first(statement, &names)?;
        let statement = inserted::apart(statement, &mut names, self.parser_options(false))?;
        let mut statement = statement;
        if let Extended::Statement(sql) = &mut statement {
            outer_names::qualify(sql);
            let options = || self.parser_options(false);
            united::apart(sql, &mut names, &options, !depth.is_outermost())?;
        }
        self.logical(&names, statement)
    }

    /// The plan of a statement all of whose tables are among `names`.
    fn logical(&self, names: &Resolver<'_>, mut statement: Extended) -> Result<LogicalPlan> {
        loop {
            let planned = SqlToRel::new_with_options(names, self.parser_options(false))
                .statement_to_plan(statement.clone());
            let error = match planned {
                Ok(plan) => {
                    shared_plans::check(&plan)?;
                    return Ok(floats::settled(plan)?);
                }
                Err(error) => error,
            };
            // Plans again, slower, to learn the position of the error.
            let again = SqlToRel::new_with_options(names, self.parser_options(true))
                .statement_to_plan(statement.clone());
            let error = Error::from(again.err().unwrap_or(error));
            // Each turn leaves one name less of those that may be of an output column.
            let taken = match (&error, &mut statement) {
                (Error::UnknownColumn { name, .. }, Extended::Statement(sql)) => {
                    sort_names::take_output(sql, name, error.position())
                }
                _ => false,
            };
            if taken {
                continue;
            }
            if let (Error::UnknownColumn { .. }, Extended::Statement(sql), Some(place)) =
                (&error, &statement, error.position())
                && let Some((clause, query)) = limit_columns::at(sql, place)
                && SqlToRel::new_with_options(names, self.parser_options(false))
                    .statement_to_plan(Extended::Statement(Box::new(query)))
                    .is_ok()
            {
                let message = format!("argument of {clause} must not contain variables");
                return Err(Error::coded("42P10", message).at(Some(place)));
            }
            return Err(error);
        }
    }

    /// Where names are looked up within views so deep.
    fn path_within(&self, depth: Depth) -> SearchPath {
        if depth.is_outermost() {
            self.path.clone()
        } else {
            SearchPath::kept()
        }
    }

    /// What aggregates, and what makes rows outside of the engine, get to know when they run.
    pub(crate) fn task(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::new(
            None,
            CATALOG.to_owned(),
            self.planner.config().clone(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            Arc::clone(self.runtime()),
        ))
    }

    /// The memory of the statement.
    fn runtime(&self) -> &Arc<RuntimeEnv> {
        match &self.allowance {
            Some(own) => &own.runtime,
            None => self.planner.runtime(),
        }
    }

    fn parser_options(&self, positions: bool) -> ParserOptions {
        ParserOptions {
            collect_spans: positions,
            ..ParserOptions::from(&self.planner.config_options().sql_parser)
        }
    }

    /// A resolver of types only: `create table` needs the planner, but no tables.
    pub(crate) fn types(&self) -> Resolver<'_> {
        Resolver::new(&self.planner, &self.tables, &self.path, HashMap::new())
    }

    /// Takes the calls that read files and graphs, and those of AFL's operators, out of `statement`.
    async fn calls(&self, statement: &mut Sql, rights: &Rights) -> Result<Calls> {
        let types = |list: &str| {
            let definition = definition::of_text("types", list, &self.types(), &self.tables)?;
            if let Some(column) = definition.columns.iter().find(|own| own.domain.is_some()) {
                return Err(Error::unsupported(format!(
                    "column \"{}\" of a file is of no domain: cast its values",
                    column.name
                )));
            }
            let columns = definition.columns.into_iter();
            Ok(columns
                .map(|column| (column.name, column.data_type))
                .collect())
        };
        let files = readers::take(&types, statement)?;
        let mut tables = HashMap::new();
        for (name, call) in graphs::take(statement)? {
            rights.check_all_data(&name)?;
            let instance = &self.instance;
            let (workers, budget) = (instance.workers(), self.budget());
            let table = scan::graphs::table(&self.snapshot, &call, workers, budget).await?;
            tables.insert(name, table);
        }
        for (name, query) in operators::take(statement)? {
            let arrays = Watched::new(&self.arrays);
            let plan =
                afl::compile(&query, &arrays).map_err(|e| Error::coded("42601", e.to_string()))?;
            arrays.check(&self.tables, rights)?;
            let table = scan::arrays::query::table(plan, self.instance.workers())?;
            tables.insert(name, table);
        }
        Ok(Calls {
            files,
            tables,
            written: self.written.clone(),
            excluded: self.excluded.clone(),
            target: self.target.clone(),
            descriptions: Said::of(&self.tables, &self.path, &ViewColumns::new()),
            settings: self.settings.clone(),
            privileges: Arc::new(Known {
                tables: Arc::clone(&self.tables),
                arrays: self.arrays.clone(),
                path: self.path.clone(),
                rights: self.rights.clone(),
                role: self.role.clone(),
            }),
            numbers: self.numbers.clone(),
            views: HashMap::new(),
            view_columns: ViewColumns::new(),
            defaults: Defaults::default(),
            frames: Frames::default(),
            given: Given::default(),
            path: SearchPath::kept(),
            rights: rights.clone(),
            only_written: None,
            row_ids: false,
            file_places: false,
            domains: DomainCasts::new(),
            instance: Arc::clone(&self.instance),
        })
    }
}
