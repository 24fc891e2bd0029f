//! `create materialized view`, `refresh materialized view`, `drop materialized view`: queries whose rows are kept in a
//! table, which nothing else changes.

use std::time::Instant;

use arrow::datatypes::{Field, Schema};
use catalog::rights::Rights;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ident};
use futures::TryStreamExt;
use sqlparser::ast::ObjectName;
use syntax::materialized::MaterializedStatement;
use syntax::names::check_column;
use table::Definition;

use crate::error::{Error, Result};
use crate::functions::convert::cast_to;
use crate::run::answer::Answer;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::depth::Depth;
use crate::run::{modifiers, query};
use crate::statements::cascade::drop_dependents;
use crate::statements::relations::{self, taken, there_already};
use crate::statements::scope::Scope;
use crate::statements::views::stay_unread;
use crate::statements::write::Writing;

/// Runs such a statement.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    statement: MaterializedStatement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        MaterializedStatement::Create {
            name,
            if_not_exists,
            text,
            with_data,
        } => create(scope, &name, if_not_exists, (&text, with_data), started).await,
        MaterializedStatement::Refresh { name, with_data } => {
            refresh(scope, &name, with_data, started).await
        }
    }
}

async fn create(
    scope: &mut Scope<'_>,
    name: &str,
    if_not_exists: bool,
    (text, with_data): (&str, bool),
    started: Instant,
) -> Result<Answer> {
    let name = &scope.new_name(name)?;
    let what = "CREATE MATERIALIZED VIEW";
    let (mut writing, mut context) = scope.write(what, &[name], started).await?;
    scope.schema_stays(&context, name)?;
    if taken(&context, name)? {
        if if_not_exists {
            return Ok(Answer::changed(None, &context.clock).with_notice(there_already(name)));
        }
        return Err(Error::coded(
            "42P07",
            format!("relation \"{name}\" already exists"),
        ));
    }
    let plan = context
        .view(name, text, Depth::default(), &context.rights)
        .await?;
    let fields = plan.schema().fields().iter();
    let fields: Vec<Field> = fields
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect();
    for field in &fields {
        check_column(field.name())?;
    }
    let mut definition = Definition::from_schema(name, &Schema::new(fields))?;
    modifiers::keep(&mut definition, &modifiers::of_plan(&plan));
    table::create(&mut writing.tx, &definition)?;
    let mut count = None;
    if with_data {
        let (filled, rows) = fill(&mut context, writing, &definition, plan).await?;
        writing = filled;
        count = Some(rows);
    }
    table::set_materialized(&mut writing.tx, name, text, with_data)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(count, &context.clock))
}

/// Appends the rows of the query.
async fn fill(
    context: &mut StatementContext,
    writing: Writing,
    definition: &Definition,
    plan: LogicalPlan,
) -> Result<(Writing, u64)> {
    // What it reads may have got more columns since.
    let columns = definition.columns.iter().map(|column| {
        let own = cast_to(ident(&column.name), &column.data_type, plan.schema())?;
        Ok(own.alias(&column.name))
    });
    let columns = columns.collect::<Result<Vec<Expr>>>()?;
    let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
    let rows = query::rows(context, &plan).await?.map_err(Error::from);
    let width = context.instance.workers().width();
    writing
        .append(definition, &Checks::default(), rows, width)
        .await
}

async fn refresh(
    scope: &mut Scope<'_>,
    name: &str,
    with_data: bool,
    started: Instant,
) -> Result<Answer> {
    let what = "REFRESH MATERIALIZED VIEW";
    let (mut writing, mut context) = scope.write(what, &[name], started).await?;
    is_there(&context, name)?;
    let tables = context.tables.clone();
    let (Some(query), Some(table)) = (tables.materialized(name), tables.get(name)) else {
        return Err(none(name));
    };
    let definition = table.definition();
    table::truncate(&mut writing.tx, name)?;
    if with_data {
        let rights = Rights::of_owner(&tables, name)?;
        let depth = Depth::default();
        let plan = context.view(name, query.text, depth, &rights).await?;
        (writing, _) = fill(&mut context, writing, definition, plan).await?;
    }
    table::set_materialized(&mut writing.tx, name, query.text, with_data)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

fn none(name: &str) -> Error {
    Error::coded(
        "42P01",
        format!("materialized view \"{name}\" does not exist"),
    )
}

/// That there is one of this name.
fn is_there(context: &StatementContext, name: &str) -> Result<()> {
    if context.tables.materialized(name).is_some() {
        return Ok(());
    }
    Err(if taken(context, name)? {
        Error::coded("42809", format!("\"{name}\" is not a materialized view"))
    } else {
        none(name)
    })
}

/// `drop materialized view [if exists] a, b`.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    (if_exists, cascade): (bool, bool),
    started: Instant,
) -> Result<Answer> {
    let there = |context: &StatementContext, name: &str| match is_there(context, name) {
        Ok(()) => Ok(true),
        Err(e) if taken(context, name)? => Err(e),
        Err(_) if if_exists => Ok(false),
        Err(e) => Err(e),
    };
    relations::drop(
        scope,
        "DROP MATERIALIZED VIEW",
        names,
        started,
        there,
        |scope, context, writing, there| {
            let gone = if cascade {
                drop_dependents(scope, context, writing, there)?
            } else {
                stay_unread(context, there)?;
                Vec::new()
            };
            for name in there {
                table::drop(&mut writing.tx, name)?;
            }
            Ok(gone)
        },
    )
    .await
}
