//! `explain [analyze]`.

use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::sql::sqlparser::ast::{Statement as Sql, TableObject};
use futures::TryStreamExt;
use table::{Privileges, titled};

use crate::error::{Error, Result};
use crate::frontend::parse::Statement;
use crate::messages::plain;
use crate::names::table_name;
use crate::optimize::rules;
use crate::resources::operators;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::native;
use crate::run::native::{NativePlan, Outcome, Preparation};
use crate::run::shared_plans;
use crate::statements::plan_json::COLUMN;
use crate::statements::{assigned, dml, plan_json, ways};

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
    let (title, plan) = plan(&context, statement).await?;
    if analyze && title.is_some() {
        return Err(Error::unsupported(
            "`explain analyze` runs queries only; `explain` shows the plan of a statement that writes",
        ));
    }
    let plan = if analyze {
        context.with_ctes(&plan).await?.into_owned()
    } else {
        let plan = context.with_counts(&plan).await?.into_owned();
        shared_plans::in_brief(plan)?
    };
    if json {
        return plan_json::explain(context, title, &plan, analyze).await;
    }
    let queries = title.is_none();
    let mut lines: Vec<String> = title.into_iter().collect();
    let optimised = rules::logical(&context.state, &plan)?;
    if verbose {
        append(&mut lines, "", &optimised.display_indent());
        lines.push(String::new());
    }
    if context.instance.executor.is_native() && queries {
        let Preparation { native, refusals } = native::prepare(&context, &optimised).await?;
        match native {
            Some(native) => {
                context.clock.planned();
                lines.extend(native.explain(&refusals));
                if !analyze || analyze_native(&context, &native, verbose, &mut lines).await? {
                    return shown(&context, lines);
                }
                lines
                    .push("too little memory for this program; DataFusion runs it instead:".into());
            }
            None => lines.extend(native::told(&refusals)),
        }
    }
    let physical = context.physical_of(&plan, &optimised).await?;
    context.clock.planned();
    if analyze {
        let mut rows = 0;
        let mut stream = operators::rows(Arc::clone(&physical), context.task())?;
        while let Some(batch) = stream.try_next().await? {
            rows += batch.num_rows();
        }
        drop(stream);
        let display = DisplayableExecutionPlan::with_metrics(physical.as_ref());
        append(&mut lines, "", &display.indent(verbose));
        lines.extend(summary(rows, &context));
    } else {
        let display = DisplayableExecutionPlan::new(physical.as_ref());
        append(&mut lines, "", &display.indent(verbose));
    }
    shown(&context, lines)
}

/// Runs a query on Atoll's own engine and appends what it did to `lines`; false, with nothing appended, if the engine
/// cannot run it now.
async fn analyze_native(
    context: &StatementContext,
    native: &NativePlan,
    verbose: bool,
    lines: &mut Vec<String>,
) -> Result<bool> {
    let Outcome::Running(mut running) = native::run(context, native).await? else {
        return Ok(false);
    };
    let mut rows = 0;
    while let Some(batch) = running.rows.try_next().await? {
        rows += batch.num_rows();
    }
    drop(running.rows);
    lines.append(&mut running.profile.lock());
    if let Some(rest) = running.rest {
        let display = DisplayableExecutionPlan::with_metrics(rest.as_ref());
        append(lines, "  ", &display.indent(verbose));
    }
    lines.extend(summary(rows, context));
    Ok(true)
}

/// Appends the lines of `text` to `lines`, each behind `margin`.
fn append(lines: &mut Vec<String>, margin: &str, text: &dyn Display) {
    let text = text.to_string();
    lines.extend(text.lines().map(|line| format!("{margin}{line}")));
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
    lines.extend(summary(rows, context));
    shown(context, lines)
}

/// The answer whose one column, [`COLUMN`], is these lines.
pub(crate) fn shown(context: &StatementContext, lines: Vec<String>) -> Result<Answer> {
    let lines: Vec<String> = lines.iter().map(|line| plain::plan(line)).collect();
    Answer::of_columns(
        vec![(COLUMN, Arc::new(StringArray::from(lines)) as ArrayRef)],
        &context.clock,
    )
}

/// The plan to show, and a title if the statement is not a query.
async fn plan(
    context: &StatementContext,
    statement: Statement,
) -> Result<(Option<String>, LogicalPlan)> {
    let Statement::Sql(sql) = statement else {
        return Err(Error::unsupported(
            "`explain` takes a query, insert, delete or update",
        ));
    };
    match *sql {
        Sql::Query(_) => Ok((None, context.plan(*sql, None).await?)),
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
            let plan = context.plan(Sql::Insert(insert), None).await?;
            Ok((Some("insert".into()), dml::input(plan, true)?))
        }
        Sql::Delete(ref delete) => {
            let name = dml::delete_target(delete)?;
            context.may(&name, Privileges::DELETE)?;
            // Cells of an array have no row ids.
            let whole = context.array(&name)?.is_some();
            Ok((
                Some(format!("delete from {}", titled(&name))),
                dml::input(context.plan(*sql, Some(&name)).await?, whole)?,
            ))
        }
        Sql::Update(mut update) => {
            let name = match &update.table.relation {
                datafusion::sql::sqlparser::ast::TableFactor::Table { name, .. } => {
                    table_name(name)?
                }
                _ => return Err(Error::unsupported("`update` needs the name of a table")),
            };
            if let Ok(table) = context.table(&name) {
                ways::of_update(&mut update, table.definition())?;
            }
            assigned::fold_targets(&mut update)?;
            context.may(&name, Privileges::UPDATE)?;
            let plan = context.plan(Sql::Update(update), Some(&name)).await?;
            Ok((
                Some(format!("update {}", titled(&name))),
                dml::input(plan, true)?,
            ))
        }
        Sql::CreateTable(create) => match create.query {
            Some(query) => Ok((
                Some(format!(
                    "create table {}",
                    titled(&table_name(&create.name)?)
                )),
                context.plan(Sql::Query(query), None).await?,
            )),
            None => Err(Error::unsupported(
                "`create table` without a query has no plan",
            )),
        },
        _ => Err(Error::unsupported(
            "`explain` takes a query, insert, delete or update",
        )),
    }
}

/// What the whole statement did: rows, seconds, and bytes by node of the reader and of the page.
fn summary(rows: usize, context: &StatementContext) -> Vec<String> {
    let statistics = &context.clock.statistics();
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
    lines.extend(context.instance.work.report(context.clock.started()));
    lines
}
