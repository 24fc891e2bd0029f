//! `explain [analyze]`.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, StringArray};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::sqlparser::ast::Statement as Sql;
use futures::TryStreamExt;

use crate::error::{Error, Result};
use crate::frontend::names::table_name;
use crate::frontend::parse::Statement;
use crate::frontend::plain;
use crate::run::answer::Answer;
use crate::run::context::Scope;
use crate::run::engine::Engine;
use crate::run::fused::Outcome;
use crate::run::{fused, information};
use crate::statements::dml;

/// The plan of a statement, one node a line; with `analyze`, the statement runs and each node tells what it did.
pub(crate) async fn explain(
    engine: &Arc<Engine>,
    statement: Statement,
    analyze: bool,
    verbose: bool,
    started: Instant,
) -> Result<Answer> {
    let snapshot = engine.store.snapshot();
    let mut scope = Scope::new(engine, &snapshot, started)?;
    let (title, plan) = plan(&scope, statement).await?;
    if analyze && title.is_some() {
        return Err(Error::unsupported(
            "`explain analyze` runs queries only; `explain` shows the plan of a statement that writes",
        ));
    }
    let queries = title.is_none();
    let mut lines: Vec<String> = title.into_iter().collect();
    if verbose {
        let optimised = crate::optimize::rules::logical(&scope.state, &plan)?;
        lines.extend(
            optimised
                .display_indent()
                .to_string()
                .lines()
                .map(str::to_string),
        );
        lines.push(String::new());
    }
    if engine.executor.is_ours()
        && queries
        && let Some(program) = fused::prepare(&scope, &plan).await?
    {
        scope.clock.planned();
        lines.extend(program.explain());
        if !analyze {
            return shown(&scope, lines);
        }
        if let Outcome::Running(mut running) = fused::run(&scope, &program).await? {
            let mut rows = 0;
            while let Some(batch) = running.rows.try_next().await? {
                rows += batch.num_rows();
            }
            drop(running.rows);
            lines.append(&mut running.told.lock());
            if let Some(rest) = running.rest {
                let shown = DisplayableExecutionPlan::with_metrics(rest.as_ref()).indent(verbose);
                lines.extend(shown.to_string().lines().map(|line| format!("  {line}")));
            }
            lines.extend(summary(rows, &scope));
            return shown(&scope, lines);
        }
        lines.push("too little memory for this program; DataFusion runs it instead:".into());
    }
    let physical = scope.physical(&plan).await?;
    scope.clock.planned();
    if analyze {
        let mut rows = 0;
        let mut stream = execute_stream(Arc::clone(&physical), scope.task())?;
        while let Some(batch) = stream.try_next().await? {
            rows += batch.num_rows();
        }
        drop(stream);
        let shown = DisplayableExecutionPlan::with_metrics(physical.as_ref())
            .indent(verbose)
            .to_string();
        lines.extend(shown.lines().map(str::to_string));
        lines.extend(summary(rows, &scope));
    } else {
        let shown = DisplayableExecutionPlan::new(physical.as_ref())
            .indent(verbose)
            .to_string();
        lines.extend(shown.lines().map(str::to_string));
    }
    shown(&scope, lines)
}

/// Runs a program of another language; what it did stands after `lines`, as after the plan of a statement.
pub(crate) async fn program(
    scope: &Scope,
    prepared: &engine::Prepared,
    mut lines: Vec<String>,
) -> Result<Answer> {
    let (batches, told) = fused::batches(scope, prepared).await?;
    lines.extend(told);
    let rows = batches.iter().map(|batch| batch.num_rows()).sum();
    lines.extend(summary(rows, scope));
    shown(scope, lines)
}

pub(crate) fn shown(scope: &Scope, lines: Vec<String>) -> Result<Answer> {
    let lines: Vec<String> = lines.iter().map(|line| plain::plan(line)).collect();
    information::answer(
        scope,
        vec![("plan", Arc::new(StringArray::from(lines)) as ArrayRef)],
    )
}

/// The plan to show, and a title if the statement does more than query.
async fn plan(scope: &Scope, statement: Statement) -> Result<(Option<String>, LogicalPlan)> {
    let Statement::Sql(sql) = statement else {
        return Err(Error::unsupported(
            "`explain` takes a query, insert, delete or update",
        ));
    };
    match *sql {
        Sql::Query(_) => Ok((None, scope.plan(*sql, None).await?)),
        Sql::Insert(_) => Ok((
            Some("insert".into()),
            dml::input(scope.plan(*sql, None).await?)?,
        )),
        Sql::Delete(ref delete) => {
            let name = dml::delete_target(delete)?;
            Ok((
                Some(format!("delete from {name}")),
                dml::input(scope.plan(*sql, Some(&name)).await?)?,
            ))
        }
        Sql::Update(mut update) => {
            dml::fold_targets(&mut update)?;
            let name = match &update.table.relation {
                datafusion::sql::sqlparser::ast::TableFactor::Table { name, .. } => {
                    table_name(name)?
                }
                _ => return Err(Error::unsupported("`update` needs the name of a table")),
            };
            let plan = scope.plan(Sql::Update(update), Some(&name)).await?;
            Ok((Some(format!("update {name}")), dml::input(plan)?))
        }
        Sql::CreateTable(create) => match create.query {
            Some(query) => Ok((
                Some(format!("create table {}", table_name(&create.name)?)),
                scope.plan(Sql::Query(query), None).await?,
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
fn summary(rows: usize, scope: &Scope) -> Vec<String> {
    let statistics = &scope.clock.statistics();
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
    lines.extend(scope.engine.work.told(scope.clock.started()));
    lines
}
