//! Rows of Arrow as the values of parameters.

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;

use crate::errors;
use crate::flight::status::{Ended, Status};
use crate::values::row::Rows;
use crate::wire::backend::Report;

/// The rows with which a statement of so many parameters runs: those that were bound, or one without any.
///
/// # Errors
/// If they are others than the statement has.
pub(crate) fn batches(
    bound: Option<Vec<RecordBatch>>,
    parameters: usize,
) -> Result<Vec<Option<RecordBatch>>, Ended> {
    match bound {
        _ if parameters == 0 => Ok(vec![None]),
        None => {
            let message = format!("the statement has {parameters} parameters, none is bound");
            Err(Report::error("42P02", message).into())
        }
        Some(all) => Ok(all.into_iter().map(Some).collect()),
    }
}

/// The rows of a batch as texts.
pub(crate) struct Texts {
    rows: Option<Rows>,
    columns: usize,
}

impl Texts {
    /// # Errors
    /// If the batch has another number of columns than there are parameters, or values that cannot be parameters.
    pub(crate) fn new(batch: &Option<RecordBatch>, types: &[DataType]) -> Result<Texts, Ended> {
        let Some(batch) = batch else {
            let (rows, columns) = (None, 0);
            return Ok(Texts { rows, columns });
        };
        let columns = batch.num_columns();
        if columns != types.len() {
            let message = format!(
                "{columns} columns are bound, and the statement has {} parameters",
                types.len()
            );
            return Err(Status::invalid(message).into());
        }
        let rows = Rows::new(batch, vec![false; columns]).map_err(unread)?;
        let rows = Some(rows);
        Ok(Texts { rows, columns })
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows.as_ref().map_or(1, Rows::len)
    }

    /// The values of a row.
    ///
    /// # Errors
    /// If one cannot be a parameter.
    pub(crate) fn row(&self, at: usize) -> Result<Vec<Option<String>>, Ended> {
        let Some(rows) = &self.rows else {
            return Ok(Vec::new());
        };
        let writers = rows.writers().map_err(unread)?;
        let value = |column| {
            let mut text = Vec::new();
            if !writers.value(column, at, &mut text) {
                return Ok(None);
            }
            String::from_utf8(text)
                .map(Some)
                .map_err(|_| Report::error(errors::BAD_VALUE, "a parameter is no text").into())
        };
        (0..self.columns).map(value).collect()
    }
}

fn unread(e: arrow::error::ArrowError) -> Report {
    Report::error(errors::BAD_VALUE, format!("parameters cannot be read: {e}"))
}
