//! The columns that a statement returns, and the types of its parameters, before it runs.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use catalog::settings::DateSettings;
use datafusion_common::DFSchema;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan};
use futures::FutureExt;
use futures::future::BoxFuture;
use sqlparser::ast::{DataType as SqlType, Statement as Sql, TableFactor, TableObject};
use syntax::names;
use syntax::parameters::{Hint, Readied};
use syntax::parse::{Statement, parse};
use syntax::roles::RoleStatement;
use syntax::schemas::SchemaStatement;
use syntax::summarize;
use syntax::{grammar, rewrite};

use crate::error::{Error, Result};
use crate::functions::lists::is_quantified;
use crate::functions::lists::types::{list_of, plain};
use crate::messages::tags::shown;
use crate::optimize::{known_limits, rules};
use crate::run::context::StatementContext;
use crate::run::kept_plans::Planned;
use crate::run::{shared_plans, system_columns, visible};
use crate::statements::parameter_types::of_columns;
use crate::statements::written::{columns as columns_of_rows, rows as written_rows};
use crate::statements::{assigned, beside, dml, merge, plan_json, steps};

/// Texts whose types nothing tells.
const TEXT: DataType = DataType::Utf8View;

/// The types of the parameters of a statement: those that were `declared`, or else what the statement and the planner
/// say, or else text.
///
/// # Errors
/// If a type that the statement names is none.
pub(crate) async fn parameters(
    context: &StatementContext,
    readied: &Readied,
    declared: &[Option<DataType>],
) -> Result<Vec<DataType>> {
    let hints = readied.hints();
    let mut types: Vec<Option<DataType>> = Vec::with_capacity(readied.parameters());
    for at in 0..readied.parameters() {
        let known = match (declared.get(at).cloned().flatten(), hints.get(&at)) {
            (Some(declared), _) => Some(declared),
            (None, Some(Hint::Count)) => Some(DataType::Int64),
            (None, Some(Hint::Cast(sql_type))) => Some(of_sql(context, sql_type).await?),
            (None, None) => None,
        };
        types.push(known);
    }
    if types.contains(&None)
        && let Some(known) = of_columns(context, readied)
    {
        for (at, data_type) in known {
            if let Some(own) = types.get_mut(at) {
                own.get_or_insert(data_type);
            }
        }
    }
    if types.contains(&None)
        && let Readied::Waiting(prepared, _) = readied
        && let Ok(plan) = planned(context, prepared.statement().clone()).await
        && let Ok(mut found) = plan.get_parameter_types()
    {
        found.extend(arrays(&plan)?);
        for (at, data_type) in types.iter_mut().enumerate() {
            if data_type.is_none() {
                *data_type = found.get(&format!("${}", at + 1)).cloned().flatten();
            }
        }
    }
    let known = |data_type: Option<DataType>| match data_type {
        None | Some(DataType::Null) => TEXT,
        Some(known) => known,
    };
    Ok(types.into_iter().map(known).collect())
}

/// The types of parameters that are the array of `x = any($1)`: arrays of what `x` is.
fn arrays(plan: &LogicalPlan) -> Result<HashMap<String, Option<DataType>>> {
    let mut found = HashMap::new();
    plan.apply_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        for input in node.inputs() {
            schema.merge(input.schema());
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(call) = expr
                    && is_quantified(call.name())
                    && let [value, Expr::Placeholder(parameter)] = &call.args[..]
                    && parameter.field.is_none()
                    && let Ok(ty) = value.get_type(&schema)
                    && ty != DataType::Null
                {
                    found.insert(parameter.id.clone(), Some(list_of(plain(&ty))));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// The type that SQL calls so.
async fn of_sql(context: &StatementContext, sql_type: &SqlType) -> Result<DataType> {
    let mut parsed = parse(&format!("select cast(null as {sql_type})"))?;
    match parsed.pop().map(|parsed| parsed.statement) {
        Some(Statement::Sql(sql)) => {
            let plan = context.plan(*sql, None).await?;
            let field = plan.schema().fields().first();
            Ok(field.map_or(TEXT, |field| field.data_type().clone()))
        }
        _ => Ok(TEXT),
    }
}

/// The plan of a statement that still has its parameters, which tells what it is compared with.
async fn planned(context: &StatementContext, mut statement: Sql) -> Result<LogicalPlan> {
    rewrite::statement(&mut statement)?;
    let target = match &mut statement {
        Sql::Delete(delete) => Some(context.own(&dml::delete_written(delete)?)),
        Sql::Update(update) => {
            assigned::fold_targets(update)?;
            match &update.table.relation {
                TableFactor::Table { name, .. } => Some(context.own(&names::written(name)?)),
                _ => None,
            }
        }
        _ => None,
    };
    context.plan(statement, target.as_deref()).await
}

/// Whether a statement returns rows.
pub(crate) fn returns(statement: &Statement) -> bool {
    match statement {
        Statement::Merge(merge) => merge.returning.is_some(),
        Statement::Steps { last, .. } => returns(last),
        Statement::Explain { .. }
        | Statement::Columns(_)
        | Statement::Returning { .. }
        | Statement::Schema(
            SchemaStatement::ShowPath
            | SchemaStatement::ShowDates(_)
            | SchemaStatement::SetPath { called: true, .. },
        ) => true,
        Statement::Sql(sql) => matches!(
            **sql,
            Sql::Query(_) | Sql::ExplainTable { .. } | Sql::ShowTables { .. }
        ),
        _ => false,
    }
}

/// The columns that a statement returns; none if it returns no rows.
///
/// # Errors
/// Those of planning it.
pub(crate) fn columns(
    context: &mut StatementContext,
    statement: Statement,
) -> BoxFuture<'_, Result<Option<SchemaRef>>> {
    of_statement(context, statement).boxed()
}

async fn of_statement(
    context: &mut StatementContext,
    statement: Statement,
) -> Result<Option<SchemaRef>> {
    let texts = |names: &[&str]| {
        let fields = names
            .iter()
            .map(|name| Field::new(*name, DataType::Utf8, false));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    };
    match statement {
        Statement::Explain { .. } => Ok(Some(texts(&[plan_json::COLUMN]))),
        Statement::Columns(asked) => Ok(Some(summarize::schema(asked.told))),
        Statement::Role(RoleStatement::Show(name)) => Ok(Some(texts(&[name]))),
        Statement::Schema(SchemaStatement::ShowPath) => Ok(Some(texts(&["search_path"]))),
        Statement::Schema(SchemaStatement::ShowDates(name)) => {
            Ok(Some(texts(&[DateSettings::shown(name).unwrap_or(name)])))
        }
        Statement::Schema(SchemaStatement::SetPath { called: true, .. }) => {
            Ok(Some(texts(&["set_config"])))
        }
        Statement::Returning { statement, query } => {
            let name = context.own(&written(&statement)?);
            let table = context.table(&name)?;
            if let Some((_, schema)) = columns_of_rows(&query, table.definition())? {
                return Ok(Some(visible::schema(&schema)));
            }
            let mut query = query;
            if beside::describe(context, &statement, table.definition(), &mut query).await? {
                return of_query(context, Sql::Query(query)).await.map(Some);
            }
            let has_places = match *statement {
                Sql::Delete(_) => system_columns::reads_places(&*query),
                _ => system_columns::reads_written_places(&query, table.definition()),
            };
            context.written = Some(written_rows(table.definition(), has_places, vec![])?);
            of_query(context, Sql::Query(query)).await.map(Some)
        }
        Statement::Merge(statement) => merge::columns(context, &statement).await,
        Statement::Steps { before, last, .. } => {
            for step in before {
                let schema = columns(context, step.statement).await?;
                if let Some(schema) = schema {
                    let rows = steps::table(&step.name, &step.columns, &schema, &[])?;
                    steps::put(&mut context.given, &step.name, rows);
                }
            }
            columns(context, *last).await
        }
        Statement::Sql(sql) => match *sql {
            Sql::Query(_) => of_query(context, *sql).await.map(Some),
            Sql::ExplainTable { .. } => Ok(Some(texts(&["column", "type", "nullable", "key"]))),
            Sql::ShowTables { .. } => Ok(Some(Arc::new(Schema::new(vec![
                Field::new("name", DataType::Utf8, false),
                Field::new("rows", DataType::UInt64, false),
                Field::new("columns", DataType::UInt64, false),
            ])))),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The columns of a query, as people see them.
pub(crate) async fn of_query(context: &StatementContext, query: Sql) -> Result<SchemaRef> {
    let (schema, _) = planned_query(context, query).await?;
    Ok(schema)
}

/// The columns of a query, as people see them, and its plan.
///
/// # Errors
/// Those of planning it.
pub(crate) async fn planned_query(
    context: &StatementContext,
    query: Sql,
) -> Result<(SchemaRef, Planned)> {
    grammar::check(&query)?;
    let plan = context.plan(query, None).await?;
    // Types change while the plan is analysed: two sides of a union get one.
    let brief = shared_plans::in_brief(known_limits::left_out(plan.clone())?)?;
    let optimised = rules::logical(&context.planner, &brief)?;
    let field = |field: &Arc<Field>| field.as_ref().clone().with_name(shown(field.name()));
    let fields: Vec<Field> = optimised.schema().fields().iter().map(field).collect();
    let schema = visible::schema(&Arc::new(Schema::new(fields)));
    Ok((schema, Planned::new(plan, optimised)))
}

/// The table that a statement writes to.
fn written(statement: &Sql) -> Result<String> {
    match statement {
        Sql::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => names::written(name),
            _ => Err(Error::unsupported("`insert` needs the name of a table")),
        },
        Sql::Delete(delete) => dml::delete_written(delete),
        Sql::Update(update) => match &update.table.relation {
            TableFactor::Table { name, .. } => names::written(name),
            _ => Err(Error::unsupported("`update` needs the name of a table")),
        },
        _ => Err(Error::unsupported(
            "`returning` is for statements that write",
        )),
    }
}
