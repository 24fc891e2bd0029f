//! The parts of a `with` that changes tables, which run one after the other.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_expr::TableSource;
use sqlparser::ast::ObjectName;
use syntax::names::written;
use syntax::steps::{Touched, conflict};
use table::{json_type, jsonb_type, timetz_type};

use crate::error::{Error, Result};
use crate::functions::convert::convert;
use crate::messages::types::{JSON_TYPE, enum_type_of};
use crate::resources::budget::{Held, footprint};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::frames::Given;
use crate::scan::rows::RowTable;
use crate::statements::references;

/// What parts have given and changed so far.
pub(super) struct Done {
    pub given: Given,
    changed: BTreeSet<String>,
    /// Parts that return nothing.
    silent: BTreeSet<String>,
    held: Held,
}

impl Done {
    pub(super) fn new(budget: &Arc<memory::Budget>) -> Done {
        Done {
            given: Given::default(),
            changed: BTreeSet::new(),
            silent: BTreeSet::new(),
            held: Held::of(budget),
        }
    }

    /// That the next part neither reads nor changes what those before it have changed, but for rows that it adds.
    ///
    /// # Errors
    /// With the table; those of reading the catalog.
    pub(super) fn check(&self, context: &StatementContext, touched: &Touched) -> Result<()> {
        let mut left: Vec<String> = self.names(context, &touched.reads)?;
        let mut seen = BTreeSet::new();
        while let Some(name) = left.pop() {
            if self.changed.contains(&name) {
                return Err(conflict(&name));
            }
            if seen.insert(name.clone())
                && let Some(text) = context.tables.view(&name)
            {
                left.extend(context.uses(text)?);
            }
        }
        Ok(())
    }

    /// The names in the catalog of what is not given by a part before.
    fn names(&self, context: &StatementContext, names: &[ObjectName]) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for name in names {
            let written = written(name)?;
            if self.silent.contains(&written) {
                return Err(Error::coded(
                    "0A000",
                    format!("WITH query \"{written}\" does not have a RETURNING clause"),
                ));
            }
            if !self.given.contains_key(&written) {
                all.push(context.own(&written));
            }
        }
        Ok(all)
    }

    /// Takes what a part has changed, and its rows under its name.
    ///
    /// # Errors
    /// If there are more names of columns than columns; [`Error::Memory`].
    pub(super) fn take(
        &mut self,
        context: &StatementContext,
        touched: &Touched,
        (name, columns): (&str, &[String]),
        answer: Answer,
    ) -> Result<()> {
        if let Some(own) = &touched.changes {
            for own in self.names(context, std::slice::from_ref(own))? {
                self.changed
                    .extend(references::reached(&context.tables, &own));
            }
        }
        if answer.schema.fields().is_empty() {
            self.silent.insert(name.to_owned());
            return Ok(());
        }
        for batch in &answer.batches {
            self.held
                .more(footprint(batch))
                .map_err(|e| Error::Memory {
                    message: format!("the rows of `with` are kept in memory: {e}"),
                })?;
        }
        let table = table(name, columns, &answer.schema, &answer.batches)?;
        put(&mut self.given, name, table);
        Ok(())
    }
}

/// Puts rows under a name.
pub(super) fn put(given: &mut Given, name: &str, table: Arc<dyn TableSource>) {
    let mut all: HashMap<_, _> = given.as_ref().clone();
    all.insert(name.to_owned(), table);
    *given = Arc::new(all);
}

/// Rows as a table whose columns have these names; the others keep their own.
///
/// # Errors
/// If there are more names than columns.
pub(super) fn table(
    name: &str,
    columns: &[String],
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<Arc<dyn TableSource>> {
    let width = schema.fields().len();
    if columns.len() > width {
        return Err(Error::coded(
            "42P10",
            format!(
                "WITH query \"{name}\" has {width} columns available but {} columns specified",
                columns.len()
            ),
        ));
    }
    let fields = schema.fields().iter().enumerate().map(|(at, field)| {
        let called = columns.get(at).map_or(field.name(), |own| own);
        Field::new(called, own_type(field), true)
    });
    let own: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let inside = |batch: &RecordBatch| -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(own.fields());
        let columns = columns.map(|(column, field)| Ok(convert(column, field.data_type())?));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&own),
            columns,
            &options,
        )?)
    };
    let batches: Vec<RecordBatch> = batches.iter().map(inside).collect::<Result<_>>()?;
    Ok(Arc::new(RowTable::in_memory(own, batches)))
}

/// The type that a column has within statements: JSON and enums leave them as texts.
fn own_type(field: &Field) -> DataType {
    if let Some(own) = enum_type_of(field) {
        return own;
    }
    match field.metadata().get(JSON_TYPE).map(String::as_str) {
        Some("json") => json_type(),
        Some("jsonb") => jsonb_type(),
        Some("time with time zone") => timetz_type(),
        _ => field.data_type().clone(),
    }
}
