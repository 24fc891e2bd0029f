//! Check constraints: conditions that rows must not fail. One that is NULL is not failed.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sqlparser::ast::Ident;
use syntax::expression::expression;
use syntax::lengths;
use syntax::mentioned;
use table::{Check, Definition, is_wide};

use crate::error::{Error, Result};
use crate::functions::convert::to_texts;
use crate::functions::lists::types::is_special;
use crate::run::context::StatementContext;
use crate::run::domains::Conditions;
use crate::run::instance::Instance;
use crate::run::row_values::RowValues;

/// The most characters of a value that a message shows, as PostgreSQL has it.
const SHOWN: usize = 64;

/// The checks of a table, ready to test rows that are to be written.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    table: String,
    /// The positions of columns without NULL.
    strict: Vec<usize>,
    names: Vec<String>,
    conditions: Option<RowValues>,
    lengths: Vec<Length>,
    /// The conditions of columns of domains, by position.
    domains: Vec<(usize, Conditions)>,
}

impl Checks {
    /// The checks of `definition`.
    ///
    /// # Errors
    /// If one is no condition on a row.
    pub(crate) async fn new(
        context: &mut StatementContext,
        definition: &Definition,
    ) -> Result<Checks> {
        let mut checks = Checks {
            table: definition.name.clone(),
            strict: strict(definition),
            names: Vec::new(),
            conditions: None,
            lengths: Vec::new(),
            domains: Vec::new(),
        };
        for (at, column) in definition.columns.iter().enumerate() {
            if let Some(domain) = &column.domain {
                let conditions = Conditions::new(context, domain).await?;
                checks.domains.push((at, conditions));
            }
        }
        let mut items = Vec::new();
        for check in &definition.checks {
            if let Some(length) = length(check, definition) {
                checks.lengths.push(length);
                continue;
            }
            checks.names.push(check.name.clone());
            items.push(expression(&check.text)?);
        }
        if items.is_empty() {
            return Ok(checks);
        }
        let name = Ident::with_quote('"', &definition.name);
        let schema = definition.schema();
        let refused = |e: Error| match e {
            Error::Unsupported { message } => {
                Error::unsupported(format!("check constraint: {message}"))
            }
            other => other,
        };
        let rows = (&name, &schema);
        let conditions = RowValues::conditions(context, rows, None, items, "CHECK").await;
        checks.conditions = Some(conditions.map_err(refused)?);
        Ok(checks)
    }

    /// The rows as they are kept, none of which fails a check: spaces beyond the length of a type are cut off. They
    /// have the columns and types of the table.
    ///
    /// # Errors
    /// [`Error::Constraint`] names the check or the column without NULL, and the row; or the domain; those of the conditions.
    pub fn test(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let rows = self.fitted(rows)?;
        self.have_values(&rows)?;
        for (column, conditions) in &self.domains {
            conditions.test(rows.column(*column))?;
        }
        let Some(conditions) = &self.conditions else {
            return Ok(rows);
        };
        for (name, values) in self.names.iter().zip(conditions.evaluate(&rows)?) {
            let Some(values) = values.as_boolean_opt() else {
                continue;
            };
            let failed = |row: &usize| values.is_valid(*row) && !values.value(*row);
            if let Some(row) = (0..values.len()).find(failed) {
                return Err(Error::Constraint {
                    code: "23514",
                    message: format!(
                        "new row for relation \"{}\" violates check constraint \"{name}\": Failing row contains ({}).",
                        self.table,
                        shown(&rows, row)
                    ),
                });
            }
        }
        Ok(rows)
    }

    /// That no row is NULL where the table has no NULL.
    fn have_values(&self, rows: &RecordBatch) -> Result<()> {
        for column in &self.strict {
            let Some(nulls) = rows.column(*column).logical_nulls() else {
                continue;
            };
            if let Some(row) = (0..nulls.len()).find(|row| nulls.is_null(*row)) {
                return Err(Error::Constraint {
                    code: "23502",
                    message: format!(
                        "NULL in column '{}' of table '{}', which is declared NOT NULL: Failing row contains ({}).",
                        rows.schema_ref().field(*column).name(),
                        self.table,
                        shown(rows, row)
                    ),
                });
            }
        }
        Ok(())
    }

    /// The rows with texts that have the lengths of their types.
    fn fitted(&self, rows: RecordBatch) -> Result<RecordBatch> {
        if self.lengths.is_empty() {
            return Ok(rows);
        }
        let mut columns = rows.columns().to_vec();
        for length in &self.lengths {
            columns[length.column] = length_of(length, &columns[length.column])?;
        }
        Ok(RecordBatch::try_new(rows.schema(), columns)?)
    }
}

/// The positions of the columns that have no NULL.
fn strict(definition: &Definition) -> Vec<usize> {
    let schema = definition.schema();
    let columns = schema.fields().iter().enumerate();
    columns
        .filter(|(_, column)| !column.is_nullable())
        .map(|(at, _)| at)
        .collect()
}

/// The length of a column.
#[derive(Clone, Debug)]
pub(crate) struct Length {
    /// The position of the column.
    column: usize,
    /// Most characters of its texts.
    most: usize,
    /// The type as the standard writes it.
    title: String,
}

/// The length that a check of `definition` keeps, if it is one.
pub(crate) fn length(check: &Check, definition: &Definition) -> Option<Length> {
    let (most, title) = lengths::read(check)?;
    let named = mentioned::columns(&check.text).ok()?;
    let column = definition.position(named.first()?).ok()?;
    Some(Length {
        column,
        most,
        title,
    })
}

/// The texts of a column without the spaces that are beyond its length, as the standard has it. Those of `char(n)` have no
/// spaces at their end at all: they mean nothing there, and so texts with and without them are equal.
///
/// # Errors
/// [`Error::Constraint`] names the type if anything else is beyond it.
pub(crate) fn length_of(length: &Length, values: &Arc<dyn Array>) -> Result<Arc<dyn Array>> {
    let texts = cast(values, &DataType::Utf8View)?;
    let texts = texts.as_string_view();
    let padded = length.title.starts_with("character(");
    // Characters are counted only where there are more bytes.
    let other = |text: &str| {
        padded && text.ends_with(' ')
            || text.len() > length.most && text.chars().count() > length.most
    };
    if !texts.iter().flatten().any(other) {
        return Ok(values.clone());
    }
    let fitted = |text: Option<&str>| -> Result<Option<String>> {
        let Some(text) = text else { return Ok(None) };
        let fitted = fitted(text, length)?;
        let fitted = if padded {
            fitted.trim_end_matches(' ')
        } else {
            fitted
        };
        Ok(Some(fitted.to_owned()))
    };
    let kept = texts.iter().map(fitted);
    let kept = kept.collect::<Result<StringViewArray>>()?;
    Ok(cast(&kept, values.data_type())?)
}

/// At most as many characters of a text as its type has, if only spaces follow.
fn fitted<'t>(text: &'t str, length: &Length) -> Result<&'t str> {
    let Some((end, _)) = text.char_indices().nth(length.most) else {
        return Ok(text);
    };
    let (kept, beyond) = text.split_at(end);
    if beyond.bytes().all(|byte| byte == b' ') {
        return Ok(kept);
    }
    Err(Error::Constraint {
        code: "22001",
        message: format!("value too long for type {}", length.title),
    })
}

/// A value of a type that Arrow shows otherwise.
pub(crate) fn special(column: &ArrayRef, row: usize) -> Option<String> {
    let text = to_texts(&column.slice(row, 1)).ok()?;
    let text = text.as_string_view_opt()?;
    text.is_valid(0).then(|| text.value(0).to_owned())
}

/// The values of a row.
fn shown(rows: &RecordBatch, row: usize) -> String {
    let options = FormatOptions::new().with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"));
    let value = |column: &Arc<dyn Array>| {
        if column.is_null(row) {
            return "null".to_owned();
        }
        let text = if is_special(column.data_type()) || is_wide(column.data_type()) {
            special(column, row)
        } else {
            let text = ArrayFormatter::try_new(column, &options);
            let text = text.and_then(|format| format.value(row).try_to_string());
            text.ok()
        };
        let text = text.unwrap_or_else(|| "?".to_owned());
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    };
    let values: Vec<String> = rows.columns().iter().map(value).collect();
    values.join(", ")
}

impl Instance {
    /// The checks of a table, for programs that write rows themselves.
    ///
    /// # Errors
    /// If one is no condition on a row any more.
    pub async fn checks(self: &Arc<Self>, definition: &Definition) -> Result<Checks> {
        let snapshot = self.store.snapshot();
        let mut context = StatementContext::new(self, &snapshot, Instant::now())?;
        Checks::new(&mut context, definition).await
    }
}
