//! Loads pieces into a table, with all workers.

use std::sync::Arc;

use memory::Budget;
use store::Transaction;
use table::Loader;
use workers::Workers;

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
    let _waiting = Waiting::of(&loader, database.instance().budget());
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
        left(database),
        pieces,
        loader,
        &mut watch,
    )?;
    let loader = indexed(workers, loader)?;
    Ok(workers.block_on(async move { loader.finish().await })?)
}

/// The least memory that a load takes, and the part of what is left that its blocks may have.
const LEAST: u64 = 16 << 20;
const PART: u64 = 2;

/// Bytes that blocks may take: a part of what the memory limit leaves.
fn left(database: &Database) -> u64 {
    let budget = database.instance().budget();
    (budget.limit().saturating_sub(budget.used()) / PART).max(LEAST)
}

/// The most bytes for rows that wait for their places in the indexes of keys, and their part of the memory limit.
const WAITING: u64 = 256 << 20;
const WAITING_PART: u64 = 32;

/// The memory of rows that wait for their places in the indexes of keys; given back when dropped.
struct Waiting {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Waiting {
    /// Has as many rows of a load wait as there is memory for.
    fn of(loader: &Loader, budget: &Arc<Budget>) -> Waiting {
        let keys = loader.definition().keys.len() as u64;
        let mut bytes = WAITING.min(budget.limit() / WAITING_PART);
        if keys == 0 || budget.take(bytes).is_err() {
            bytes = 0;
        } else {
            loader.keep_waiting((bytes / keys / Loader::WAITING_BYTES) as usize);
        }
        Waiting {
            budget: Arc::clone(budget),
            bytes,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

/// Writes the indexes of keys, with all workers.
fn indexed(workers: &Workers, loader: Loader) -> Result<Loader, Error> {
    if loader.definition().keys.is_empty() {
        return Ok(loader);
    }
    let loader = Arc::new(loader);
    let tasks = (0..workers.width()).map(|_| {
        let loader = Arc::clone(&loader);
        workers.spawn(async move {
            while loader.index_some()? {}
            Ok::<_, table::Error>(())
        })
    });
    let tasks: Vec<_> = tasks.collect();
    workers.block_on(async move {
        for task in tasks {
            task.await??;
        }
        Ok::<_, Error>(())
    })?;
    Arc::try_unwrap(loader).map_err(|_| Error::Import("a load is still being indexed".into()))
}
