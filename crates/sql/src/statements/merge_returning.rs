//! The rows that a `merge` returns.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use sqlparser::ast::{Expr, Ident};
use syntax::merge::Merge;
use syntax::merge_returning::{ACTION, Returned};
use syntax::names::column_name;
use table::Definition;

use crate::error::{Error, Result};
use crate::messages::tags::shown;
use crate::resources::budget::{Held, footprint};
use crate::run::context::StatementContext;
use crate::run::row_values::RowValues;

/// What a `returning` gives of the rows that clauses have changed.
pub(super) struct ReturnedRows {
    values: RowValues,
    /// What its values see: the columns of the table, those of the source, and what was done.
    seen: SchemaRef,
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    held: Held,
}

impl ReturnedRows {
    /// What `items` ask of rows of the table and the source.
    ///
    /// # Errors
    /// If an item is no expression of their columns, or has a subquery.
    pub(super) async fn new(
        context: &mut StatementContext,
        definition: &Definition,
        statement: &Merge,
        items: &[Returned],
        source: &SchemaRef,
    ) -> Result<ReturnedRows> {
        let target = definition.schema();
        let of_source = source.fields().iter().map(|field| field.name().as_str());
        // Behind them are the column that says whether there is a row, and those of subqueries.
        let of_source: Vec<&str> = of_source.filter(|name| !name.starts_with("__")).collect();
        let of_target: Vec<&str> = target.fields().iter().map(|f| f.name().as_str()).collect();
        let all = |own: &Ident, columns: &[&str]| -> Vec<(Expr, String)> {
            let one = |column: &&str| {
                let parts = vec![own.clone(), Ident::with_quote('"', *column)];
                (Expr::CompoundIdentifier(parts), shown(column).to_owned())
            };
            columns.iter().map(one).collect()
        };
        let mut wanted = Vec::new();
        for item in items {
            match item {
                Returned::All => {
                    wanted.extend(all(&statement.source, &of_source));
                    wanted.extend(all(&statement.name, &of_target));
                }
                Returned::AllOf(ident) if column_name(ident) == statement.source.value => {
                    wanted.extend(all(&statement.source, &of_source));
                }
                Returned::AllOf(ident) if column_name(ident) == statement.name.value => {
                    wanted.extend(all(&statement.name, &of_target));
                }
                Returned::AllOf(ident) => {
                    return Err(Error::coded(
                        "42P01",
                        format!("missing FROM-clause entry for table \"{}\"", ident.value),
                    ));
                }
                Returned::Item(expr, name) => wanted.push((expr.as_ref().clone(), name.clone())),
            }
        }
        let (exprs, names): (Vec<Expr>, Vec<String>) = wanted.into_iter().unzip();
        let mut others: Vec<Field> = source.fields().iter().map(|f| f.as_ref().clone()).collect();
        others.push(Field::new(ACTION, DataType::Utf8View, false));
        let others: SchemaRef = Arc::new(Schema::new(others));
        let (own, other) = ((&statement.name, &target), (&statement.source, &others));
        let values = RowValues::new(context, own, Some(other), exprs, &[]).await?;
        let types = values.types().iter();
        let fields = names
            .iter()
            .zip(types)
            .map(|(name, data_type)| Field::new(name, data_type.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let seen = target.fields().iter().chain(others.fields());
        let seen = seen.map(|field| field.as_ref().clone().with_nullable(true));
        Ok(ReturnedRows {
            values,
            seen: Arc::new(Schema::new(seen.collect::<Vec<_>>())),
            schema,
            batches: Vec::new(),
            held: Held::of(&context.instance.budget),
        })
    }

    /// Takes rows of the table, and those of the source beside them, if there are any.
    ///
    /// # Errors
    /// Those of the expressions; [`Error::Memory`].
    pub(super) fn take(
        &mut self,
        target: Vec<ArrayRef>,
        source: Vec<ArrayRef>,
        action: &str,
        rows: usize,
    ) -> Result<()> {
        let mut columns = target;
        if source.is_empty() {
            // No row of the source.
            let more = &self.seen.fields()[columns.len()..self.seen.fields().len() - 1];
            columns.extend(more.iter().map(|f| new_null_array(f.data_type(), rows)));
        } else {
            columns.extend(source);
        }
        columns.push(Arc::new(StringViewArray::from(vec![action; rows])));
        let pairs = columns.into_iter().zip(self.seen.fields());
        let columns = pairs.map(|(column, field)| cast(&column, field.data_type()));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        let seen = RecordBatch::try_new(Arc::clone(&self.seen), columns)?;
        let values = self.values.evaluate(&seen)?;
        let kept = RecordBatch::try_new(Arc::clone(&self.schema), values)?;
        self.held
            .more(footprint(&kept))
            .map_err(|e| Error::Memory {
                message: format!("`returning` keeps the rows of the statement in memory: {e}"),
            })?;
        self.batches.push(kept);
        Ok(())
    }
}
