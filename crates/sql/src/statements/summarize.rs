//! `describe` of a query or a file, and `summarize`: what columns it has, and which values these have.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, SchemaRef};
use sqlparser::ast::{Query, Statement as Sql};
use syntax::parse::{Statement, parse};
use syntax::summarize::{ColumnsOf, Told, VALUES, schema};

use crate::error::{Error, Result};
use crate::messages::types::{column_type_name, json_type_of};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::query;
use crate::statements::describe;
use crate::statements::scope::Scope;

/// Runs such a statement.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    asked: ColumnsOf,
    started: Instant,
) -> Result<Answer> {
    let context = scope.read(started).await?;
    let columns = describe::of_query(&context, Sql::Query(asked.query.clone())).await?;
    match asked.told {
        Told::Types => types(&columns, &context),
        Told::Values => values(context, asked.query, &columns).await,
    }
}

/// Names and types, in the columns of `describe table`.
fn types(columns: &SchemaRef, context: &StatementContext) -> Result<Answer> {
    let fields = columns.fields();
    let nullable = fields
        .iter()
        .map(|field| if field.is_nullable() { "yes" } else { "no" });
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            fields.iter().map(|field| field.name()),
        )),
        Arc::new(StringArray::from_iter_values(
            fields.iter().map(|field| column_type_name(field)),
        )),
        Arc::new(StringArray::from_iter_values(nullable)),
        Arc::new(StringArray::from_iter_values(fields.iter().map(|_| ""))),
    ];
    let rows = RecordBatch::try_new(schema(Told::Types), arrays)?;
    Ok(Answer::rows_of(rows.schema(), vec![rows], &context.clock))
}

/// A row for each column, from one row of aggregates.
async fn values(
    context: StatementContext,
    query: Box<Query>,
    columns: &SchemaRef,
) -> Result<Answer> {
    let fields = columns.fields();
    let answer = query::run(context, aggregates(columns, query)?).await?;
    let mut texts = Vec::new();
    for batch in &answer.batches {
        for column in batch.columns() {
            texts.push(text(column)?);
        }
    }
    let mut texts = texts.into_iter();
    let mut next = move || texts.next().flatten();
    let rows = next().and_then(|text| text.parse::<i64>().ok());
    let mut told: Vec<Vec<Option<String>>> = vec![Vec::new(); VALUES.len()];
    let mut nulls = Vec::new();
    for _ in fields {
        for values in &mut told {
            values.push(next());
        }
        let not_null = next().and_then(|text| text.parse::<i64>().ok());
        nulls.push(match (rows, not_null) {
            (Some(rows), Some(not_null)) if rows > 0 => {
                // Two digits behind the point.
                Some(((rows - not_null) as f64 / rows as f64 * 1e4).round() / 1e2)
            }
            _ => None,
        });
    }
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            fields.iter().map(|field| field.name()),
        )),
        Arc::new(StringArray::from_iter_values(
            fields.iter().map(|field| column_type_name(field)),
        )),
    ];
    for (name, values) in VALUES.iter().zip(told) {
        arrays.push(match *name {
            "approx_unique" => {
                let numbers = values.into_iter().map(|text| text?.parse::<i64>().ok());
                Arc::new(numbers.collect::<Int64Array>())
            }
            _ => Arc::new(StringArray::from(values)),
        });
    }
    arrays.push(Arc::new(Int64Array::from(vec![rows; fields.len()])));
    arrays.push(Arc::new(Float64Array::from(nulls)));
    let rows = RecordBatch::try_new(schema(Told::Values), arrays)?;
    Ok(Answer {
        schema: rows.schema(),
        batches: vec![rows],
        ..answer
    })
}

/// The first value of a column as a text.
fn text(column: &ArrayRef) -> Result<Option<String>> {
    let texts = cast(column, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    Ok((!texts.is_empty() && texts.is_valid(0)).then(|| texts.value(0).to_owned()))
}

/// The query of the aggregates: how many rows, then for each column its [`VALUES`] and how many of these are not null.
fn aggregates(columns: &SchemaRef, query: Box<Query>) -> Result<Sql> {
    let mut items = vec!["count(*)::text".to_owned()];
    for (at, field) in columns.fields().iter().enumerate() {
        let column = format!("c{at}");
        items.extend(of_column(&column, field));
        items.push(format!("count({column})::text"));
    }
    let names: Vec<String> = (0..columns.fields().len())
        .map(|at| format!("c{at}"))
        .collect();
    let text = format!(
        "with summarized({}) as (select 1) select {} from summarized",
        names.join(", "),
        items.join(", ")
    );
    let defect = || Error::Defect {
        message: "the query of `summarize` is none".into(),
    };
    let parsed = parse(&text)?.pop().ok_or_else(defect)?;
    let Statement::Sql(mut sql) = parsed.statement else {
        return Err(defect());
    };
    let Sql::Query(outer) = &mut *sql else {
        return Err(defect());
    };
    let with = outer.with.as_mut().ok_or_else(defect)?;
    let cte = with.cte_tables.first_mut().ok_or_else(defect)?;
    cte.query = query;
    Ok(*sql)
}

/// What is asked of a column: its [`VALUES`], as texts.
fn of_column(column: &str, field: &Field) -> Vec<String> {
    let data_type = field.data_type();
    let plain = json_type_of(field).is_none();
    let ordered = plain
        && (data_type.is_numeric()
            || matches!(
                data_type,
                DataType::Utf8
                    | DataType::LargeUtf8
                    | DataType::Utf8View
                    | DataType::Date32
                    | DataType::Date64
                    | DataType::Timestamp(..)
                    | DataType::Time32(_)
                    | DataType::Time64(_)
            ));
    let has_text = !matches!(
        data_type,
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) | DataType::Null
    );
    let number = format!("{column}::double precision");
    let quantile =
        |of: &str| format!("(approx_percentile_cont({of}) within group (order by {number}))::text");
    let unless = |asked: bool, what: String| if asked { what } else { "null::text".to_owned() };
    let numeric = plain && data_type.is_numeric();
    vec![
        unless(ordered, format!("min({column})::text")),
        unless(ordered, format!("max({column})::text")),
        unless(has_text, format!("approx_distinct({column}::text)::text")),
        unless(numeric, format!("avg({number})::text")),
        unless(numeric, format!("stddev_samp({number})::text")),
        unless(numeric, quantile("0.25")),
        unless(numeric, quantile("0.5")),
        unless(numeric, quantile("0.75")),
    ]
}
