//! Generated columns: their values are computed from the others of the row whenever it is written.

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use sqlparser::ast::Ident;
use syntax::expression::expression;
use syntax::mentioned;
use table::Definition;

use crate::error::{Error, Result};
use crate::functions::temporal::local::Local;
use crate::run::context::StatementContext;
use crate::run::row_values::RowValues;

/// The generated columns of a table, ready to be computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeneratedColumns(Option<Computed>);

#[derive(Clone, Debug)]
struct Computed {
    /// The table as rows have it whose generated columns are not computed yet.
    open: Definition,
    /// Their positions.
    columns: Vec<usize>,
    values: RowValues,
}

impl GeneratedColumns {
    /// Those of `definition`.
    ///
    /// # Errors
    /// If one is computed by no expression over the row.
    pub(crate) async fn new(
        context: &mut StatementContext,
        definition: &Definition,
    ) -> Result<GeneratedColumns> {
        let mut open = definition.clone();
        let (mut columns, mut items, mut types) = (Vec::new(), Vec::new(), Vec::<DataType>::new());
        for (at, column) in definition.columns.iter().enumerate() {
            if let Some(text) = column.expression() {
                columns.push(at);
                items.push(expression(text)?);
                types.push(column.data_type.clone());
                open.columns[at].nullable = true;
                open.primary_key.clear();
            }
        }
        if columns.is_empty() {
            return Ok(GeneratedColumns::default());
        }
        let name = Ident::with_quote('"', &definition.name);
        let schema = open.schema();
        // In UTC, whoever writes the row: what a column holds is not to depend on the session.
        let before = context.set_local(Local::PLAIN);
        let values = RowValues::new(context, (&name, &schema), None, items, &types).await;
        context.set_local(before);
        let refused = |e: Error| match e {
            Error::Unsupported { message } => {
                Error::unsupported(format!("column generation expression: {message}"))
            }
            other => other,
        };
        Ok(GeneratedColumns(Some(Computed {
            open,
            columns,
            values: values.map_err(refused)?,
        })))
    }

    /// That a table may have those of `definition`.
    ///
    /// # Errors
    /// As [`new`](GeneratedColumns::new); if one names another, or is not always the same for a row.
    pub(crate) async fn check(
        context: &mut StatementContext,
        definition: &Definition,
    ) -> Result<()> {
        for column in &definition.columns {
            let Some(text) = column.expression() else {
                continue;
            };
            let named = mentioned::columns(text)?;
            let mut others = definition.columns.iter();
            let other =
                others.find(|other| other.expression().is_some() && named.contains(&other.name));
            if let Some(other) = other {
                return Err(Error::coded(
                    "42P17",
                    format!(
                        "cannot use generated column \"{}\" in column generation expression: A generated column cannot reference another generated column.",
                        other.name
                    ),
                ));
            }
        }
        let own = GeneratedColumns::new(context, definition).await?;
        match own.0 {
            Some(computed) if !computed.values.is_fixed() => Err(Error::coded(
                "42P17",
                "generation expression is not immutable",
            )),
            _ => Ok(()),
        }
    }

    /// The rows, which have the columns of the table, with what is computed in its place.
    ///
    /// # Errors
    /// If rows do not fit the table; those of the expressions.
    pub(crate) fn fill(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let Some(own) = &self.0 else {
            return Ok(rows);
        };
        let rows = table::normalise(&rows, &own.open)?;
        let values = own.values.evaluate(&rows)?;
        let mut columns = rows.columns().to_vec();
        for (at, value) in own.columns.iter().zip(values) {
            columns[*at] = value;
        }
        Ok(RecordBatch::try_new(rows.schema(), columns)?)
    }
}
