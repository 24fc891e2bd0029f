//! `copy table|(query) to 'file'` and `copy table from 'file'`.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::{DataType, Field};
use datafusion_common::DataFusionError;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_expr::TableSource;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, ident};
use engine::SpillTo;
use futures::TryStreamExt;
use ingest::{Compressing, Compression, NullRule, Wanted};
use sqlparser::ast::{Ident, ObjectName, Query, Statement as Sql};
use syntax::copy::{CopyFrom, CopyTo, format_for, options_of};
use syntax::copy_options::{FileOptions, HeaderLine, Kind, not_copied};
use syntax::expression;
use syntax::names::{base, column_name, exact, table_name, written};
use table::{Definition, json_kind};

use crate::error::{Error, Result};
use crate::functions::convert::cast_to;
use crate::messages::nearest::unknown_column;
use crate::resources::whole_file::{WholeFile, failed, is_stream};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::row_form::{CsvForm, RowForm};
use crate::run::text_form::TextForm;
use crate::run::{output, query};
use crate::scan::files::table::FileTable;
use crate::statements::copied_file::{self, Columnar};
use crate::statements::copied_types::as_in_file;
use crate::statements::references;
use crate::statements::scope::Scope;

/// Writes the rows of a query to a file, which appears when it is complete: a failure leaves what was there before.
pub(crate) async fn to(
    scope: &mut Scope<'_>,
    statement: CopyTo,
    started: Instant,
) -> Result<Answer> {
    let mut context = scope.read(started).await?;
    let CopyTo {
        mut query,
        rows,
        target,
        options,
    } = statement;
    let kind = Kind::of(options.format.as_deref(), &target);
    options.check(kind, false)?;
    if options.dates.is_some() {
        return Err(Error::unsupported(
            "dates are written with year, month and day: use to_char for another form",
        ));
    }
    let whole = rows.whole();
    if let Some(brought) = whole.map_or(Ok(None), |name| brought_of(&context, name))? {
        query = brought;
    }
    context.rights.check_files(&target, true)?;
    let format = format_for(&target, &options)?;
    check_target(&target)?;
    let compression = compression_of(format, &target, &options)?;
    let input = output::distinctly_named(context.plan(Sql::Query(query), None).await?)?;
    let input = as_in_file(input, format)?;
    let fields = input.schema().fields().iter();
    let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
    rows.check_quoted(&options.force_quote, &names)?;
    if let Some(form) = row_form(format, &target, &options, &names) {
        let rows = query::rows(&mut context, &input).await?;
        let lines = (form, compression);
        let written = fill_lines(&context, rows, lines, PathBuf::from(target)).await?;
        return Ok(Answer::changed(Some(written), &context.clock));
    }
    let Some(columnar) = Columnar::of(format, options.compression.as_deref())? else {
        return Err(Error::unknown_format(format));
    };
    let rows = query::rows(&mut context, &input).await?;
    let written = fill(&context, rows, columnar, Path::new(&target)).await?;
    Ok(Answer::changed(Some(written), &context.clock))
}

/// Writes rows as columns to a file, which appears when it is whole; the number of rows.
async fn fill(
    context: &StatementContext,
    rows: SendableRecordBatchStream,
    format: Columnar,
    target: &Path,
) -> Result<u64> {
    let file = WholeFile::create(target, room(context)).await?;
    let memory = (context.budget(), context.instance.workers().width());
    let written = copied_file::write(rows, file.file(), format, target, memory).await?;
    file.publish().await?;
    Ok(written)
}

/// The folder of what pipes and devices get when it is whole.
fn room(context: &StatementContext) -> PathBuf {
    match &context.instance.execution.spill {
        Some(SpillTo::Directory(folder)) => folder.to_path_buf(),
        _ => std::env::temp_dir(),
    }
}

/// Writes rows as lines to a file, which appears when it is whole; the number of rows.
async fn fill_lines(
    context: &StatementContext,
    mut rows: SendableRecordBatchStream,
    (form, compression): (RowForm, Compression),
    target: PathBuf,
) -> Result<u64> {
    let file = WholeFile::create(&target, room(context)).await?;
    let schema = rows.schema();
    let head = form.head(schema.fields().iter().map(|field| field.name().as_str()));
    let (form, target) = (Arc::new(form), Arc::new(target));
    let mut out = Compressing::new(file.file(), compression).map_err(|e| failed(&target, &e))?;
    out.write_all(&head).map_err(|e| failed(&target, &e))?;
    let mut written = 0;
    while let Some(batch) = rows.try_next().await? {
        written += batch.num_rows() as u64;
        let (form, target) = (Arc::clone(&form), Arc::clone(&target));
        let work = move || {
            let lines = form.lines(&batch).map_err(DataFusionError::from)?;
            out.write_all(&lines).map_err(|e| failed(&target, &e))?;
            Ok::<_, Error>(out)
        };
        let work = tokio::task::spawn_blocking(work).await;
        out = work.map_err(Error::of_task)??;
    }
    out.finish().map_err(|e| failed(&target, &e))?;
    file.publish().await?;
    Ok(written)
}

/// How lines of this format are written; none of formats that have no lines.
fn row_form(format: &str, target: &str, options: &FileOptions, names: &[&str]) -> Option<RowForm> {
    match format {
        "csv" => {
            let tabs = target.split('.').any(|part| part == "tsv");
            let quote = options.quote();
            let delimiter = if tabs { b'\t' } else { b',' };
            Some(RowForm::Csv(CsvForm {
                delimiter: options.delimiter.unwrap_or(delimiter),
                quote,
                escape: options.escape.unwrap_or(quote),
                null: options.null.clone().unwrap_or_default(),
                header: options.header != Some(HeaderLine::Row),
                quoted: options.force_quote.of(names.iter().copied()),
            }))
        }
        "text" => Some(RowForm::Text(TextForm {
            delimiter: options.delimiter.unwrap_or(b'\t'),
            null: options.null.clone().unwrap_or_else(|| "\\N".into()),
            header: options.header.unwrap_or_default() != HeaderLine::Row,
        })),
        "json" => Some(RowForm::Json),
        _ => None,
    }
}

/// How a file is compressed as a whole: as its name says, or as it was asked for.
///
/// # Errors
/// If the two contradict each other, if nothing is written so, or if the format allows no such compression.
fn compression_of(format: &str, target: &str, options: &FileOptions) -> Result<Compression> {
    let named = Compression::to_write(target)?;
    let refused = |message: &str| Error::File {
        path: target.into(),
        message: message.into(),
    };
    if matches!(format, "parquet" | "arrow") {
        // Their own option compresses what is in them.
        return match named {
            Compression::None => Ok(named),
            _ => Err(refused(
                "would be compressed as a whole, which its format does not allow; choose another name",
            )),
        };
    }
    match options.compression.as_deref().map(Compression::named) {
        None => Ok(named),
        Some(given) => match given? {
            given if named == Compression::None || given == named => Ok(given),
            _ => Err(refused(
                "has the name of another compression than the one that was asked for",
            )),
        },
    }
}

/// Refuses targets that cannot be written, before a long query runs.
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
    if is_stream(path) {
        return Ok(());
    }
    if store::is_part(path) {
        return failed(
            "is part of a store and is not overwritten; choose another name, or remove the store first",
        );
    }
    if path.is_dir() || target.ends_with('/') {
        return failed("is a directory; name a file");
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            failed("its directory does not exist")
        }
        _ => Ok(()),
    }
}

/// Appends the rows of a file to a table.
///
/// Columns are matched by name where the file has names and knows all of the statement's columns, by
/// position otherwise. Columns of the table that the statement does not name get their default, or NULL.
pub(crate) async fn from(
    scope: &mut Scope<'_>,
    statement: CopyFrom,
    started: Instant,
) -> Result<Answer> {
    let name = table_name(&statement.table)?;
    let (writing, mut context) = scope.write("COPY FROM", &[&name], started).await?;
    let table = context.table(&name)?;
    let definition = table.definition();
    let columns = wanted(definition, &statement.columns)?;
    let CopyFrom {
        source,
        options,
        columns: named,
        ..
    } = statement;
    options.check(Kind::of(options.format.as_deref(), &source), true)?;
    let read = columns
        .iter()
        .map(|at| definition.columns[*at].name.as_str());
    let read: Vec<&str> = read.collect();
    for (option, forced) in [
        ("FORCE_NOT_NULL", &options.force_not_null),
        ("FORCE_NULL", &options.force_null),
    ] {
        forced.check(&read, |column| {
            not_copied(option, column, Some(base(&name)), !named.is_empty())
        })?;
    }
    context.rights.check_files(&source, false)?;
    let file = open(definition, &columns, &source, &options).await?;
    let defaults = context.defaults_of(definition).await?;
    let plan = projection(definition, &columns, &defaults, Arc::new(file))?;
    let in_file = |e: Error| match e {
        Error::Execution { message, .. } | Error::Arithmetic { message, .. } => Error::File {
            path: source.clone().into(),
            message,
        },
        other => other,
    };
    let rows = query::rows(&mut context, &plan).await.map_err(in_file)?;
    let rows = rows.map_err(Error::from);
    let width = scope.instance.workers().width();
    let (writing, count) = references::append(&mut context, writing, &table, rows, width)
        .await
        .map_err(in_file)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(Some(count), &context.clock))
}

/// A query of the columns that rows may bring, of a table that has others.
///
/// # Errors
/// If there is no such table.
pub(super) fn brought_of(
    context: &StatementContext,
    name: &ObjectName,
) -> Result<Option<Box<Query>>> {
    let Some(table) = context.tables.get(&context.own(&written(name)?)) else {
        return Ok(None);
    };
    let definition = table.definition();
    let brought = brought(definition);
    if brought.len() == definition.columns.len() || brought.is_empty() {
        return Ok(None);
    }
    let column = |at: &usize| Ident::with_quote('"', &definition.columns[*at].name).to_string();
    let columns: Vec<String> = brought.iter().map(column).collect();
    let table = Ident::with_quote('"', exact(&definition.name));
    let text = format!("select {} from {table}", columns.join(", "));
    expression::written(&text).map(Some)
}

/// The positions of the columns that rows may bring: those that are not computed.
fn brought(definition: &Definition) -> Vec<usize> {
    let columns = definition.columns.iter().enumerate();
    let brought = columns.filter(|(_, column)| column.expression().is_none());
    brought.map(|(at, _)| at).collect()
}

/// The positions of the columns that the file fills, in the file's order.
pub(super) fn wanted(definition: &Definition, names: &[Ident]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok(brought(definition));
    }
    let mut columns = Vec::with_capacity(names.len());
    for ident in names {
        let name = column_name(ident);
        let Some(column) = definition.columns.iter().position(|c| c.name == name) else {
            return Err(unknown_column(&name, definition));
        };
        if definition.columns[column].expression().is_some() {
            return Err(Error::coded(
                "42P10",
                format!(
                    "column \"{name}\" is a generated column: Generated columns cannot be used in COPY."
                ),
            ));
        }
        if columns.contains(&column) {
            return Err(Error::coded(
                "42701",
                format!("column \"{name}\" is named twice"),
            ));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// The file as a table with the columns to fill, in the order of `columns` and under the names of the table.
///
/// Text is read in the types of the table, which are better than a guess. Other columns have the types of the file.
async fn open(
    definition: &Definition,
    columns: &[usize],
    source: &str,
    options: &FileOptions,
) -> Result<FileTable> {
    let (force_null, force_not_null) = (&options.force_null, &options.force_not_null);
    let is_matched = options.header == Some(HeaderLine::Match);
    let mut options = options_of(options)?;
    let wanted = columns.iter().map(|i| &definition.columns[*i]);
    let single = columns.len() == 1
        && wanted
            .clone()
            .all(|own| json_kind(&own.data_type).is_some());
    if single && options.format.is_none() && ingest::Format::of_name(source).is_none() {
        // Documents one to a line; as a file of JSON its columns would be what is within them.
        options.format = Some(ingest::Format::Text);
    }
    options.expected = wanted.clone().map(|column| column.name.clone()).collect();
    options.matched = is_matched.then(|| options.expected.clone());
    let names = || wanted.clone().map(|column| column.name.as_str());
    let quoted = force_null.of(names());
    let never = force_not_null.of(names());
    let nulls = quoted.into_iter().zip(never);
    let nulls = nulls.map(|(quoted, never)| NullRule { quoted, never });
    let file = FileTable::open_with(source, vec![source.into()], options).await?;
    let dataset = file.dataset();
    let fields = dataset.schema().fields();
    let place = |name: &String| {
        let exact = fields.iter().position(|field| field.name() == name);
        exact.or_else(|| {
            fields
                .iter()
                .position(|field| field.name().eq_ignore_ascii_case(name))
        })
    };
    let by_name: Option<Vec<usize>> = wanted.clone().map(|column| place(&column.name)).collect();
    let places = match by_name.filter(|_| dataset.is_named()) {
        Some(places) => places,
        None if fields.len() == columns.len() => (0..fields.len()).collect(),
        None => return Err(other_columns(definition, columns, source, &file)),
    };
    let json = dataset.is_json();
    let read = wanted.zip(&places).zip(nulls);
    let read = read.map(|((column, place), nulls)| {
        let own = fields[*place].data_type();
        let document = json_kind(&column.data_type).is_some() || json_kind(own).is_some();
        // Of what is nested, only JSON is read as it is written.
        let text = dataset.is_guess(*place) && (document || !own.is_nested());
        let data_type = match &column.data_type {
            _ if !text => own,
            // Of strings, moments of any form are read.
            moment if json && moment.is_temporal() => &DataType::Utf8View,
            DataType::BinaryView
            | DataType::Binary
            | DataType::FixedSizeBinary(_)
            | DataType::List(_)
            | DataType::Struct(_)
            | DataType::Map(..)
            // It may be NaN.
            | DataType::Decimal256(..)
            | DataType::Interval(_) => &DataType::Utf8View,
            readable => readable,
        };
        Wanted {
            column: *place,
            field: Arc::new(Field::new(&column.name, data_type.clone(), true)),
            declared: true,
            nulls,
        }
    });
    let read = read.collect();
    Ok(file.with_columns(read))
}

fn other_columns(
    definition: &Definition,
    columns: &[usize],
    source: &str,
    file: &FileTable,
) -> Error {
    let fields = file.dataset().schema().fields();
    let names: Vec<&str> = fields.iter().map(|f| f.name().as_str()).take(12).collect();
    Error::File {
        path: source.into(),
        message: format!(
            "has {} columns ({}) for {} of table \"{}\"",
            fields.len(),
            names.join(", "),
            columns.len(),
            definition.name
        ),
    }
}

/// `select cast(column as the table's type), ..., default or null, ... from rows`.
pub(super) fn projection(
    definition: &Definition,
    columns: &[usize],
    defaults: &HashMap<String, Expr>,
    rows: Arc<dyn TableSource>,
) -> Result<LogicalPlan> {
    let scan = LogicalPlanBuilder::scan("file", rows, None)?.build()?;
    let expressions = definition
        .columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let value = if columns.contains(&i) {
                cast_to(ident(&column.name), &column.data_type, scan.schema())?
            } else if let Some(default) = defaults.get(&column.name) {
                default.clone()
            } else {
                Expr::Literal(ScalarValue::Null, None)
                    .cast_to(&column.data_type, &DFSchema::empty())?
            };
            Ok(value.alias(&column.name))
        })
        .collect::<Result<Vec<Expr>>>()?;
    Ok(LogicalPlanBuilder::from(scan)
        .project(expressions)?
        .build()?)
}
