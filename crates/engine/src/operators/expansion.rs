//! The operator of functions that make rows of rows.

use arrow::array::Array;

use crate::error::{Error, Result};
use crate::expr::eval::Context;
use crate::logical::row_function::{MadeRows, RowPieces};
use crate::physical::program::Expand;
use crate::vector::batch::Batch;
use crate::vector::value::{Type, Var, Vector};

/// Starts the function with the rows of a batch; no piece is to have more than `most` rows.
pub(crate) fn start(expand: &Expand, context: Context<'_>, most: usize) -> Result<RowPieces> {
    let mut args = Vec::with_capacity(expand.args.len());
    for arg in &expand.args {
        args.push(context.eval(arg)?.decoded(&arg.ty)?);
    }
    let rows = context.batch.rows;
    expand.function.call(&args, rows, most).map_err(Error::Call)
}

/// The batch of the rows that were made of those of `batch`, with the vectors in `live`.
///
/// # Errors
/// An internal error for columns of different lengths, or rows that the batch has not.
pub(crate) fn batch_of(
    made: &MadeRows,
    expand: &Expand,
    batch: &Batch,
    live: &[Var],
    types: &[Type],
) -> Result<Batch> {
    let is_sound = made.of.is_sorted()
        && made
            .of
            .last()
            .is_none_or(|row| (*row as usize) < batch.rows)
        && made.columns.len() == expand.vars.len()
        && made
            .columns
            .iter()
            .all(|column| column.len() == made.of.len());
    if !is_sound {
        return Err(Error::internal("a function of rows with other rows"));
    }
    let mut own = batch.gathered(&made.of, live)?;
    for (var, column) in expand.vars.iter().zip(&made.columns) {
        if live.binary_search(var).is_ok() {
            own.set(*var, Vector::from_arrow(column, &types[*var])?);
        }
    }
    Ok(own)
}
