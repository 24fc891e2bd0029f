//! `explain [analyze]`.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, StringArray};
use datafusion_expr::LogicalPlan;
use engine::{Prepared, ProfileCollector};
use futures::TryStreamExt;
use memory::Budget;
use sqlparser::ast::{Delete, Statement as Sql, TableFactor, TableObject, Update};
use syntax::names::{known, table_name};
use syntax::parse::Statement;
use table::{Privileges, titled};

use crate::error::{Error, Result};
use crate::messages::plain;
use crate::optimize::rules;
use crate::run::answer::Answer;
use crate::run::clock::Statistics;
use crate::run::context::StatementContext;
use crate::run::instance::Instance;
use crate::run::native;
use crate::run::shared_plans;
use crate::run::watch::{Watch, measured};
use crate::statements::beside::{self, Beside};
use crate::statements::plan_json::COLUMN;
use crate::statements::{assigned, default, dml, merge, plan_json, using, ways};

/// How a statement is explained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// It runs, and each node tells what it did.
    pub analyze: bool,
    /// The optimised logical plan comes first.
    pub verbose: bool,
    /// As data, in one value.
    pub json: bool,
}

/// The plan of a statement, one node a line, or as data.
pub(crate) async fn explain(
    mut context: StatementContext,
    statement: Statement,
    how: How,
) -> Result<Answer> {
    let How {
        analyze,
        verbose,
        json,
    } = how;
    let (title, plan) = plan(&mut context, statement).await?;
    let plan = if analyze {
        context.with_ctes(&plan).await?.into_owned()
    } else {
        let plan = context.with_known(&plan).await?.into_owned();
        shared_plans::in_brief(plan)?
    };
    if json {
        return plan_json::explain(context, title, &plan, analyze).await;
    }
    let mut lines: Vec<String> = title.into_iter().collect();
    let optimised = rules::logical(&context.planner, &plan)?;
    if verbose {
        let text = optimised.display_indent().to_string();
        lines.extend(text.lines().map(str::to_owned));
        lines.push(String::new());
    }
    let prepared = native::prepare(&context, &optimised).await?;
    context.clock.planned();
    lines.extend(prepared.explain());
    if analyze {
        analyze_native(&context, &prepared, &mut lines).await?;
    }
    shown(&context, lines)
}

/// Runs a program and appends what it did to `lines`.
async fn analyze_native(
    context: &StatementContext,
    prepared: &Arc<Prepared>,
    lines: &mut Vec<String>,
) -> Result<()> {
    let collector = Arc::new(ProfileCollector::default());
    let mut running = native::run(context, prepared, Some(&collector)).await?;
    let mut rows = 0;
    while let Some(batch) = running.rows.try_next().await? {
        rows += batch.num_rows();
    }
    drop(running.rows);
    let report = std::mem::take(&mut *running.profile.lock());
    lines.extend(measured(report, &prepared.outline(), &collector.take()));
    lines.extend(summary_of(rows, context));
    Ok(())
}

/// Runs a program of another language; what it did is shown after `lines`.
pub(crate) async fn program(
    context: &StatementContext,
    prepared: &engine::Prepared,
    mut lines: Vec<String>,
) -> Result<Answer> {
    let (batches, profile) = native::batches(context, prepared).await?;
    lines.extend(profile);
    let rows = batches.iter().map(|batch| batch.num_rows()).sum();
    lines.extend(summary_of(rows, context));
    shown(context, lines)
}

/// The answer whose one column, [`COLUMN`], is these lines.
pub(crate) fn shown(context: &StatementContext, lines: Vec<String>) -> Result<Answer> {
    Answer::of_columns(column(&lines), &context.clock)
}

fn column(lines: &[String]) -> Vec<(&'static str, ArrayRef)> {
    let lines: Vec<String> = lines.iter().map(|line| plain::line(line)).collect();
    vec![(COLUMN, Arc::new(StringArray::from(lines)))]
}

/// The statement that runs, and is told of, if `statement` is an `explain analyze` of one that writes.
pub(crate) fn analysed(statement: Statement) -> (Statement, Option<Change>) {
    match statement {
        Statement::Explain {
            analyze: true,
            verbose,
            json,
            statement,
        } => match title(&statement) {
            Some(title) => {
                let change = Change { title, json };
                (*statement, Some(change))
            }
            None => {
                let explained = Statement::Explain {
                    analyze: true,
                    verbose,
                    json,
                    statement,
                };
                (explained, None)
            }
        },
        other => (other, None),
    }
}

/// What a statement does with the rows of its plan, if it writes; none of others.
fn title(statement: &Statement) -> Option<String> {
    let of_table = |what: &str, name: Result<String>| {
        let name = name.ok()?;
        Some(format!("{what} {}", titled(&name)))
    };
    let sql = match statement {
        Statement::Sql(sql) | Statement::Returning { statement: sql, .. } => sql,
        Statement::Merge(merge) => return of_table("merge into", Ok(known(&merge.target))),
        _ => return None,
    };
    match &**sql {
        Sql::Insert(_) => Some("insert".into()),
        Sql::Delete(delete) => of_table("delete from", dml::delete_target(delete)),
        Sql::Update(update) => match &update.table.relation {
            TableFactor::Table { name, .. } => of_table("update", table_name(name)),
            _ => None,
        },
        Sql::CreateTable(create) if create.query.is_some() => {
            of_table("create table", table_name(&create.name))
        }
        _ => None,
    }
}

/// A statement that writes and is analysed: it has run, and its rows are there.
#[derive(Debug)]
pub(crate) struct Change {
    title: String,
    json: bool,
}

impl Change {
    /// What sees it run.
    pub(crate) fn watch(&self) -> Arc<Watch> {
        Arc::default()
    }

    /// What `watch` has seen of the statement, which has run since `started` and has this answer.
    pub(crate) fn told(
        self,
        watch: &Watch,
        answer: Answer,
        (instance, started): (&Instance, Instant),
    ) -> Result<Answer> {
        let governed = instance.work.report(started);
        let statistics = &answer.statistics;
        let changed = answer.changed.unwrap_or_default();
        let seen = watch.seen();
        if self.json {
            let text = plan_json::changed(self.title, seen, changed, (statistics, governed))?;
            let column: ArrayRef = Arc::new(StringArray::from(vec![text]));
            return answer.told(vec![(COLUMN, column)]);
        }
        let mut lines = vec![self.title];
        match seen {
            None => lines.push("no plan: the rows are given, found by a key, or all".into()),
            Some(ran) => lines.extend(ran.told()),
        }
        let memory = memory(&instance.budget);
        lines.extend(summary(changed, statistics, (memory, governed)));
        answer.told(column(&lines))
    }
}

/// The plan to show, and a title if the statement is not a query.
async fn plan(
    context: &mut StatementContext,
    statement: Statement,
) -> Result<(Option<String>, LogicalPlan)> {
    let title = title(&statement);
    let sql = match statement {
        Statement::Sql(sql) | Statement::Returning { statement: sql, .. } => sql,
        Statement::Merge(merge) => return Ok((title, merge::pairs(context, &merge).await?)),
        _ => return Err(unexplained()),
    };
    let plan = match *sql {
        Sql::Query(_) => context.plan(*sql, None).await?,
        Sql::Insert(mut insert) => {
            // Which rows are there is asked when the rows have come.
            insert.on = None;
            if let TableObject::TableName(name) = &insert.table {
                let name = table_name(name)?;
                context.may(&name, Privileges::INSERT)?;
                if let Ok(table) = context.table(&name) {
                    ways::of_insert(&mut insert, table.definition())?;
                }
            }
            dml::input(context.plan(Sql::Insert(insert), None).await?, true)?
        }
        Sql::Delete(delete) => of_delete(context, delete).await?,
        Sql::Update(update) => of_update(context, update).await?,
        Sql::CreateTable(create) => match create.query {
            Some(query) => context.plan(Sql::Query(query), None).await?,
            None => {
                return Err(Error::unsupported(
                    "`create table` without a query has no plan",
                ));
            }
        },
        _ => return Err(unexplained()),
    };
    Ok((title, plan))
}

fn unexplained() -> Error {
    Error::unsupported("`explain` takes a query, insert, delete, update or merge")
}

/// The plan by which a `delete` finds its rows.
async fn of_delete(context: &StatementContext, delete: Delete) -> Result<LogicalPlan> {
    let name = dml::delete_target(&delete)?;
    context.may(&name, Privileges::DELETE)?;
    if delete.using.is_some() || using::is_aliased(&delete) {
        return using::planned(context, delete, &name, &[]).await;
    }
    // Cells of an array have no row ids.
    let whole = context.array(&name)?.is_some();
    dml::input(context.plan(Sql::Delete(delete), Some(&name)).await?, whole)
}

/// The plan of the new rows of an `update`, and of the ids of those that they replace.
async fn of_update(context: &StatementContext, mut update: Update) -> Result<LogicalPlan> {
    let name = match &update.table.relation {
        TableFactor::Table { name, .. } => table_name(name)?,
        _ => return Err(Error::unsupported("`update` needs the name of a table")),
    };
    let table = context.table(&name).ok();
    if let Some(table) = &table {
        ways::of_update(&mut update, table.definition())?;
    }
    assigned::fold_targets(&mut update)?;
    context.may(&name, Privileges::UPDATE)?;
    if let Some(table) = table {
        let definition = context.with_domain_defaults(table.definition());
        default::fill_update(&mut update, &definition)?;
        if beside::is_wanted(&update) {
            let planned = Beside::update(context, update, table.definition(), (&name, false));
            return Ok(planned.await?.1);
        }
    }
    dml::input(context.plan(Sql::Update(update), Some(&name)).await?, true)
}

/// What a whole query did.
fn summary_of(rows: usize, context: &StatementContext) -> Vec<String> {
    let governed = context.instance.work.report(context.clock.started());
    let ends = (memory(context.budget()), governed);
    summary(rows as u64, &context.clock.statistics(), ends)
}

/// What was taken of a memory limit.
fn memory(budget: &Budget) -> String {
    format!(
        "memory: {} bytes of {} at most, since the store was opened",
        budget.peak(),
        budget.limit()
    )
}

/// What the whole statement did: rows, seconds, bytes by node of the reader and of the page, and memory.
fn summary(
    rows: u64,
    statistics: &Statistics,
    (memory, governed): (String, Vec<String>),
) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        format!("rows: {rows}"),
        format!(
            "seconds: {:.6}, planning {:.6}",
            statistics.seconds, statistics.planning_seconds
        ),
        format!(
            "bytes read: {}, on the home node {}",
            statistics.total_bytes(),
            statistics.local_bytes()
        ),
    ];
    for (reader, row) in statistics.bytes.iter().enumerate() {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(page, bytes)| format!("{bytes} from node {page}"))
            .collect();
        lines.push(format!("  node {reader} read {}", cells.join(", ")));
    }
    lines.push(memory);
    lines.extend(governed);
    lines
}
