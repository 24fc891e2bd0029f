//! `copy table|(query) to 'file'` and `copy table from 'file'`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigNonZeroUsize;
use datafusion::datasource::file_format::format_as_file_type;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, ident};
use datafusion::physical_plan::execute_stream;
use datafusion::sql::sqlparser::ast::{Ident, Statement as Sql};
use futures::TryStreamExt;
use table::Definition;

use crate::engine::Engine;
use crate::names::{column_name, table_name};
use crate::parse::{CopyFrom, CopyTo, FileOptions};
use crate::scope::Scope;
use crate::write::Writing;
use crate::{Answer, Error, Result, files, rewrite};

/// Writes the rows of a query to a file, which appears when it is complete.
pub(crate) async fn to(
    engine: &Arc<Engine>,
    statement: CopyTo,
    started: Instant,
) -> Result<Answer> {
    let snapshot = engine.store.snapshot();
    let mut scope = Scope::new(engine, &snapshot, started)?;
    let CopyTo {
        query,
        target,
        options,
    } = statement;
    let format = files::format_for(&target, &options)?;
    check_target(&target)?;
    let factory = scope
        .state
        .get_file_format_factory(format)
        .ok_or_else(|| files::unknown_format(format))?;
    // A file, not a directory of files, whatever its name.
    scope
        .state
        .config_mut()
        .options_mut()
        .execution
        .soft_max_rows_per_output_file = ConfigNonZeroUsize::try_new(usize::MAX)?;
    let input = rewrite::distinctly_named(scope.plan(Sql::Query(query), None).await?)?;
    let plan = LogicalPlanBuilder::copy_to(
        input,
        target.clone(),
        format_as_file_type(factory),
        writer_options(format, &target, &options),
        vec![],
    )?
    .build()?;
    let physical = scope.physical(&plan).await?;
    scope.clock.planned();
    let mut counts = execute_stream(physical, scope.task())?;
    let mut written = 0;
    while let Some(batch) = counts.try_next().await? {
        if let Some(count) = batch
            .columns()
            .first()
            .and_then(|c| c.as_primitive_opt::<UInt64Type>())
        {
            written += count.values().iter().sum::<u64>();
        }
    }
    Ok(Answer::changed(Some(written), &scope.clock))
}

/// Refuses targets that cannot be written, before a long query runs for them.
fn check_target(target: &str) -> Result<()> {
    let path = Path::new(target);
    let failed = |message: &str| {
        Err(Error::File {
            path: path.into(),
            message: message.into(),
        })
    };
    if target.contains("://") {
        return failed("only local files can be written");
    }
    if path.is_dir() || target.ends_with('/') {
        return failed("is a directory; name a file");
    }
    if path.extension().is_none() {
        return failed("needs an extension, such as .parquet or .csv");
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            failed("its directory does not exist")
        }
        _ => Ok(()),
    }
}

fn writer_options(format: &str, target: &str, options: &FileOptions) -> HashMap<String, String> {
    let mut written = HashMap::new();
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            written.insert(format!("format.{name}"), value);
        }
    };
    let byte = |byte: Option<u8>| byte.map(|b| char::from(b).to_string());
    if format == "csv" {
        let tabs = target.ends_with(".tsv").then_some(b'\t');
        set("delimiter", byte(options.delimiter.or(tabs)));
        set("quote", byte(options.quote));
        set("escape", byte(options.escape));
        set("null_value", options.null.clone());
        set(
            "has_header",
            Some(options.header.unwrap_or(true).to_string()),
        );
    } else {
        set("compression", options.compression.clone());
    }
    written
}

/// Appends the rows of a file to a table.
///
/// Columns are matched by name where the file has names and knows all of the statement's columns, by
/// position otherwise. Columns of the table that the statement does not name become NULL.
pub(crate) async fn from(
    engine: &Arc<Engine>,
    statement: CopyFrom,
    started: Instant,
) -> Result<Answer> {
    let name = table_name(&statement.table)?;
    let writing = Writing::begin(engine).await?;
    let mut scope = Scope::new(engine, writing.tx.base(), started)?;
    // One reader for one file: its line numbers are then those of the file.
    scope
        .state
        .config_mut()
        .options_mut()
        .optimizer
        .repartition_file_scans = false;
    let table = scope.table(&name)?;
    let definition = table.definition();
    let columns = wanted(definition, &statement.columns)?;
    let CopyFrom {
        source, options, ..
    } = statement;
    let file = open(&scope, definition, &columns, &source, &options).await?;
    let plan = projection(definition, &columns, file, &source)?;
    let in_file = |e: Error| match e {
        Error::Execution { message } | Error::Arithmetic { message } => Error::File {
            path: source.clone().into(),
            message,
        },
        other => other,
    };
    let physical = scope.physical(&plan).await.map_err(in_file)?;
    scope.clock.planned();
    let rows = execute_stream(physical, scope.task())?;
    let rows = rows.map_err(Error::from);
    let (writing, count) = writing
        .append(&name, definition, rows, engine.workers().width())
        .await
        .map_err(in_file)?;
    writing.commit().await?;
    Ok(Answer::changed(Some(count), &scope.clock))
}

/// The columns of the table that the file fills, in its order.
fn wanted(definition: &Definition, names: &[Ident]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..definition.columns.len()).collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for ident in names {
        let name = column_name(ident);
        let Some(column) = definition.columns.iter().position(|c| c.name == name) else {
            let names = definition.columns.iter().map(|c| c.name.clone());
            return Err(Error::UnknownColumn {
                candidates: crate::translate::nearest(&name, names),
                name,
                position: None,
            });
        };
        if columns.contains(&column) {
            return Err(Error::invalid(format!("column \"{name}\" is named twice")));
        }
        columns.push(column);
    }
    Ok(columns)
}

async fn open(
    scope: &Scope,
    definition: &Definition,
    columns: &[usize],
    source: &str,
    options: &FileOptions,
) -> Result<Arc<dyn TableProvider>> {
    let schema = match files::format_for(source, options)? {
        // The table knows better than a guess from the text.
        "csv" => Some(text_schema(definition, columns, source)),
        _ => None,
    };
    files::open_as(&scope.state, source, options, schema).await
}

/// The columns of a text file for the table: of the table's types where the reader can parse them.
fn text_schema(definition: &Definition, columns: &[usize], source: &str) -> SchemaRef {
    let mut fields: Vec<Field> = columns
        .iter()
        .map(|i| {
            let column = &definition.columns[*i];
            let data_type = match &column.data_type {
                DataType::BinaryView
                | DataType::Binary
                | DataType::FixedSizeBinary(_)
                | DataType::Interval(_) => DataType::Utf8View,
                readable => readable.clone(),
            };
            Field::new(&column.name, data_type, true)
        })
        .collect();
    if source.ends_with(".tbl") {
        // The generator of TPC-H ends each line with a delimiter.
        fields.push(Field::new("", DataType::Utf8View, true));
    }
    Arc::new(Schema::new(fields))
}

/// `select cast(file column as the table's type), ..., null, ... from file`.
fn projection(
    definition: &Definition,
    columns: &[usize],
    file: Arc<dyn TableProvider>,
    source: &str,
) -> Result<LogicalPlan> {
    let schema = file.schema();
    let by_name = columns
        .iter()
        .all(|i| schema.field_with_name(&definition.columns[*i].name).is_ok());
    let fields: Vec<String> = schema
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .filter(|n| !n.is_empty())
        .collect();
    if !by_name && fields.len() != columns.len() {
        return Err(Error::File {
            path: source.into(),
            message: format!(
                "has {} columns ({}) for {} of table \"{}\"",
                fields.len(),
                fields
                    .iter()
                    .take(12)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", "),
                columns.len(),
                definition.name
            ),
        });
    }
    let scan = LogicalPlanBuilder::scan("file", provider_as_source(file), None)?.build()?;
    let expressions = definition
        .columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let value = match columns.iter().position(|wanted| *wanted == i) {
                Some(_) if by_name => {
                    ident(&column.name).cast_to(&column.data_type, scan.schema())?
                }
                Some(at) => ident(&fields[at]).cast_to(&column.data_type, scan.schema())?,
                None => Expr::Literal(ScalarValue::Null, None)
                    .cast_to(&column.data_type, &DFSchema::empty())?,
            };
            Ok(value.alias(&column.name))
        })
        .collect::<Result<Vec<Expr>>>()?;
    Ok(LogicalPlanBuilder::from(scan)
        .project(expressions)?
        .build()?)
}
