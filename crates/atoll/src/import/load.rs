//! Loads pieces into a table, with all workers.

use store::Transaction;
use table::Loader;

use crate::database::Database;
use crate::error::Error;
use crate::import::assemble::Block;
use crate::import::pipeline::{self, Pieces, Sink};
use crate::progress::{Position, Progress};

impl Sink for Loader {
    fn block(&self, block: &Block) -> Result<(), Error> {
        Ok(Loader::block(self, block.ordinal, &block.batches)?)
    }
}

/// Loads pieces into an existing table within `transaction`; returns it with the number of rows.
pub(crate) fn load(
    database: &Database,
    transaction: Transaction,
    table: &str,
    pieces: Pieces,
    mut position: Position,
    progress: &dyn Progress,
) -> Result<(Transaction, u64), Error> {
    let workers = database.workers();
    let name = table.to_owned();
    let loader = workers.block_on(async move { Loader::new(transaction, &name).await })?;
    // The load is named before its first rows, as their time counts.
    if progress.update(&position).is_break() {
        return Err(Error::Interrupted);
    }
    let mut watch = |rows, bytes| {
        (position.rows, position.bytes) = (rows, bytes);
        progress.update(&position)
    };
    let (loader, _) = pipeline::run(
        workers.handle(),
        workers.width(),
        pieces,
        loader,
        &mut watch,
    )?;
    Ok(workers.block_on(async move { loader.finish().await })?)
}
