//! Views in a statement: each is planned from its text, and stands in the plan in place of its name.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::pg_catalog::ViewColumns;
use catalog::rights::Rights;
use catalog::search_path::SearchPath;
use datafusion_common::{Column, TableReference};
use datafusion_expr::TableSource;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion_sql::parser::Statement as Extended;
use futures::FutureExt;
use futures::future::BoxFuture;
use sqlparser::ast::Statement as Sql;
use syntax::names::{CATALOG, INFORMATION_SCHEMA, PG_CATALOG};
use syntax::views::of_text;
use table::{Definition, OnCommit, Privileges};

use crate::error::{Error, Result};
use crate::messages::tags::shown;
use crate::run::context::StatementContext;
use crate::run::depth::Depth;
use crate::run::modifiers;
use crate::run::resolver::name_of;
use crate::scan::view::View;

impl StatementContext {
    /// The views that `statement` names, planned.
    pub(super) async fn views(
        &self,
        statement: &Extended,
        path: &SearchPath,
        (depth, rights): (Depth, &Rights),
    ) -> Result<HashMap<String, Arc<dyn TableSource>>> {
        let mut planned: HashMap<String, Arc<dyn TableSource>> = HashMap::new();
        if self.tables.views().is_empty() {
            return Ok(planned);
        }
        for name in self.named(statement, path)? {
            if let Some(text) = self.tables.view(&name)
                && !planned.contains_key(&name)
            {
                rights.check(&self.tables, &name, Privileges::SELECT)?;
                let of_owner = Rights::of_owner(&self.tables, &name)?;
                let plan = self.view(&name, text, depth, &of_owner).await?;
                planned.insert(name, Arc::new(View::new(plan)));
            }
        }
        Ok(planned)
    }

    /// The columns of all views, if `statement` reads a catalog that tells them. They are those of the plans that the views
    /// have now: a view whose tables were changed since, so that it has none, has no columns either.
    pub(super) async fn view_columns(
        &self,
        statement: &Extended,
        depth: Depth,
    ) -> Result<ViewColumns> {
        let mut all = ViewColumns::new();
        // The columns of a view over these catalogs do not depend on what is in them.
        if depth.is_describing() || self.tables.views().is_empty() || !self.tells(statement)? {
            return Ok(all);
        }
        for name in self.tables.views() {
            let rights = Rights::of_owner(&self.tables, name);
            let (Some(text), Ok(rights)) = (self.tables.view(name), rights) else {
                continue;
            };
            let plan = self.view(name, text, depth.describing(), &rights).await;
            if let Ok(plan) = plan {
                all.insert(name.to_string(), described(name, &plan));
            }
        }
        Ok(all)
    }

    /// Whether `statement` reads a catalog of columns.
    fn tells(&self, statement: &Extended) -> Result<bool> {
        let references = self.planner.resolve_table_references(statement)?;
        let is_one = |reference: &TableReference| {
            matches!(
                (reference.table(), reference.schema()),
                ("pg_attribute", None | Some(PG_CATALOG))
                    | ("columns", None | Some(INFORMATION_SCHEMA))
            )
        };
        // What is said of a column of a view is asked for by the place of the column.
        let said = |name: &&str| {
            let said = self.tables.comments(name);
            said.is_some_and(|said| !said.columns.is_empty())
        };
        Ok(references.iter().any(is_one)
            || self.tables.views().iter().any(said) && asks_what_is_said(statement, &references))
    }

    /// The names in the catalog of what `statement` uses as tables.
    fn named(&self, statement: &Extended, path: &SearchPath) -> Result<Vec<String>> {
        let references = self.planner.resolve_table_references(statement)?;
        let here = |reference: &&TableReference| {
            reference.catalog().is_none_or(|catalog| catalog == CATALOG)
        };
        let names = references.iter().filter(here);
        Ok(names
            .map(|reference| name_of(reference, &self.tables, path))
            .collect())
    }

    /// The plan of a view, with the names of its columns, by these rights: if the view is there, those of its owner.
    ///
    /// # Errors
    /// If it does not go with the tables that there are, or two columns have one name.
    pub(crate) fn view<'a>(
        &'a self,
        name: &'a str,
        text: &'a str,
        depth: Depth,
        rights: &'a Rights,
    ) -> BoxFuture<'a, Result<LogicalPlan>> {
        async move {
            let view = of_text(text)?;
            let depth = depth.within(&view)?;
            let plan = self
                .plan_within(Sql::Query(view.query), None, depth, rights)
                .await
                .map_err(|e| match e {
                    Error::TooComplex { .. } | Error::Denied { .. } => e,
                    e => Error::about(&e, format!("view \"{name}\": {e}")),
                })?;
            named_columns(name, plan, &view.columns)
        }
        .boxed()
    }

    /// The tables and views that a view names.
    pub(crate) fn uses(&self, text: &str) -> Result<Vec<String>> {
        let query = Sql::Query(of_text(text)?.query);
        let statement = Extended::Statement(Box::new(query));
        self.named(&statement, &SearchPath::kept())
    }

    /// The first view, other than `but`, that names one of `names`.
    ///
    /// # Errors
    /// If the text of a view is none any more.
    pub(crate) fn dependent(&self, names: &[&str], but: &[&str]) -> Result<Option<String>> {
        let tables = &self.tables;
        let kept = |name: &str| tables.materialized(name).map(|query| query.text);
        for view in tables.views().into_iter().chain(tables.names()) {
            let text = tables.view(view).or_else(|| kept(view));
            let Some(text) = text.filter(|_| !but.contains(&view)) else {
                continue;
            };
            if self
                .uses(text)?
                .iter()
                .any(|used| names.contains(&used.as_str()))
            {
                return Ok(Some(view.to_string()));
            }
        }
        Ok(None)
    }
}

/// The columns of a view that has this plan, as those of a table.
fn described(name: &str, plan: &LogicalPlan) -> Definition {
    let fields = plan.schema().fields().iter();
    let columns = fields.map(|field| table::Column {
        name: field.name().clone(),
        data_type: table::stored_type(field.data_type())
            .unwrap_or_else(|| field.data_type().clone()),
        nullable: true,
        default: None,
        generated: None,
        sequences: Vec::new(),
        digits: None,
        domain: None,
    });
    let mut definition = Definition {
        name: name.to_owned(),
        columns: columns.collect(),
        primary_key: vec![],
        foreign_keys: vec![],
        keys: vec![],
        rules: vec![],
        checks: vec![],
        indexes: vec![],
        on_commit: OnCommit::Preserve,
        order: vec![],
    };
    modifiers::keep(&mut definition, &modifiers::of_plan(plan));
    definition
}

/// `plan` with the names that people see, or with those that the view declares.
fn named_columns(view: &str, plan: LogicalPlan, declared: &[String]) -> Result<LogicalPlan> {
    let columns: Vec<Column> = plan.schema().iter().map(Column::from).collect();
    if declared.len() > columns.len() {
        return Err(Error::coded(
            "42601",
            format!(
                "view \"{view}\" names {} columns of a query that has {}",
                declared.len(),
                columns.len()
            ),
        ));
    }
    let mut names: Vec<String> = declared.to_vec();
    let rest = plan.schema().fields().iter().skip(declared.len());
    names.extend(rest.map(|field| shown(field.name()).to_string()));
    if let Some(at) = (0..names.len()).find(|&at| names[..at].contains(&names[at])) {
        return Err(Error::duplicate_column(&names[at]));
    }
    let columns = columns.into_iter().zip(names);
    let columns: Vec<Expr> = columns
        .map(|(column, name)| Expr::Column(column).alias(name))
        .collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

/// Whether a statement asks for comments on columns.
fn asks_what_is_said(statement: &Extended, references: &[TableReference]) -> bool {
    let mut tables = references.iter();
    tables.any(|reference| reference.table() == "pg_description")
        || statement.to_string().contains("col_description")
}
