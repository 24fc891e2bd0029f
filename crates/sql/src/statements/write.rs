//! Writing a stream of rows into a table, within a transaction.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use catalog::locks::TurnClaim;
use futures::{Stream, StreamExt};
use memory::Budget;
use store::Transaction;
use table::{Chunker, Definition, Loader};
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::resources::budget::{Held, footprint};
use crate::resources::stop;
use crate::resources::turn::Turn;
use crate::run::checks::Checks;
use crate::run::instance::Instance;
use crate::statements::deferred::Pending;
use crate::statements::in_order;

/// A transaction with the right to write.
pub(crate) struct Writing {
    pub tx: Transaction,
    budget: Arc<Budget>,
    /// The turn of a statement that is a transaction of its own, from its first look at the tables to the commit.
    pub turn: Option<Turn>,
    /// What is looked at when the transaction ends; nothing of a statement that is one itself.
    pub pending: Vec<Pending>,
}

/// Makes everything durable and visible, on a thread that may wait unless that is over soon. From here on the statement is
/// cancelled no more, and `turn` is held until the commit is over, whatever becomes of this future.
///
/// # Errors
/// [`Error::Cancelled`] if the statement was cancelled before; those of the store.
pub(crate) async fn commit(tx: Transaction, turn: Option<Turn>) -> Result<()> {
    stop::present().seal()?;
    if tx.commits_quickly() {
        tx.commit()?;
        return Ok(());
    }
    let done = tokio::task::spawn_blocking(move || {
        let done = tx.commit();
        drop(turn);
        done
    });
    done.await.map_err(Error::of_task)??;
    Ok(())
}

impl Writing {
    /// Waits for other writers without holding a worker, and begins a transaction. The `claim` is that of the session, if it is
    /// of one.
    ///
    /// # Errors
    /// Those of waiting for the turn, and of the store.
    pub(crate) async fn begin(instance: &Instance, claim: Option<TurnClaim>) -> Result<Writing> {
        let turn = instance.turns.wait(claim).await?;
        let store = Arc::clone(&instance.store);
        // To wake another thread takes longer than to begin where nobody is in the way.
        let begun = if store.syncs_quickly() {
            store.try_begin()?
        } else {
            None
        };
        let tx = match begun {
            Some(tx) => tx,
            None => tokio::task::spawn_blocking(move || store.begin())
                .await
                .map_err(Error::of_task)??,
        };
        Ok(Writing {
            tx,
            budget: Arc::clone(&instance.budget),
            turn: Some(turn),
            pending: Vec::new(),
        })
    }

    /// Writes to `tx`, which is nested in a transaction that has the turn.
    pub(crate) fn within(tx: Transaction, instance: &Instance) -> Writing {
        Writing {
            tx,
            budget: Arc::clone(&instance.budget),
            turn: None,
            pending: Vec::new(),
        }
    }

    /// Has what is written from now on take its memory from `budget`.
    pub(crate) fn charge(&mut self, budget: &Arc<Budget>) {
        self.budget = Arc::clone(budget);
    }

    /// Makes everything durable and visible.
    pub(crate) async fn commit(self) -> Result<()> {
        let Writing { tx, turn, .. } = self;
        commit(tx, turn).await
    }

    /// Appends `rows` to the table of `definition`, unless they fail a check, and says how many there were.
    ///
    /// # Errors
    ///
    /// The first of `rows`; those of the table and the store. Nothing may be committed then.
    pub(crate) async fn append(
        self,
        definition: &Definition,
        checks: &Checks,
        rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
        width: usize,
    ) -> Result<(Writing, u64)> {
        self.replace(definition, checks, rows, width, |_| Ok(()))
            .await
    }

    /// Appends `rows`, which replace the rows that `remove` deletes after the last of them has come, and says how many
    /// there were.
    ///
    /// Of a table with an order, as many rows as there is memory for are brought in order first.
    ///
    /// 1. Rows gather until they fill a block. If they never do, `remove` runs and they go to the table's tail. In this
    ///    order, because a tail that becomes full is sealed, and its rows then have other numbers than the statement
    ///    saw.
    /// 2. Otherwise each full block is encoded by a task of its own, at most `width` at a time and as many as the
    ///    memory limit leaves room for; its ordinal keeps the order in which the rows came. Blocks do not change the
    ///    numbers of other rows, so `remove` runs after them, and before it is asked whether their keys are new.
    ///
    /// # Errors
    ///
    /// As [`append`](Writing::append), and those of `remove`.
    pub(crate) async fn replace(
        self,
        definition: &Definition,
        checks: &Checks,
        rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
        width: usize,
        remove: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<(Writing, u64)> {
        let mut rows = in_order::sorted(rows, definition, &self.budget);
        let (mut chunker, mut few) = (Chunker::default(), Vec::new());
        while let Some(batch) = rows.next().await {
            let batch = checks.test(table::normalise(&batch?, definition)?)?;
            few.push(batch.clone());
            let full = chunker.push(batch);
            if !full.is_empty() {
                drop(few);
                return self
                    .load((full, chunker), (definition, checks), rows, width, remove)
                    .await;
            }
        }
        let Writing {
            mut tx,
            budget,
            turn,
            pending,
        } = self;
        remove(&mut tx)?;
        let (tx, count) = table::insert(tx, &definition.name, &few).await?;
        let writing = Writing {
            tx,
            budget,
            turn,
            pending,
        };
        Ok((writing, count))
    }

    /// Deletes rows by their ids, and puts others in their places.
    ///
    /// # Errors
    /// Those of the table and the store. Nothing may be committed then.
    pub(crate) async fn exchange(
        self,
        name: &str,
        ids: &[u64],
        rows: Option<&RecordBatch>,
    ) -> Result<Writing> {
        let Writing {
            mut tx,
            budget,
            turn,
            pending,
        } = self;
        table::delete(&mut tx, name, ids)?;
        if let Some(rows) = rows {
            (tx, _) = table::insert(tx, name, std::slice::from_ref(rows)).await?;
        }
        Ok(Writing {
            tx,
            budget,
            turn,
            pending,
        })
    }

    async fn load(
        self,
        (mut full, mut chunker): (Vec<Vec<RecordBatch>>, Chunker),
        (definition, checks): (&Definition, &Checks),
        mut rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
        width: usize,
        remove: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<(Writing, u64)> {
        let Writing {
            tx,
            budget,
            turn,
            pending,
        } = self;
        let mut blocks = Blocks::new(Loader::new(tx, &definition.name).await?, &budget, width);
        loop {
            for block in full {
                blocks.encode(block).await?;
            }
            full = match rows.next().await {
                Some(batch) => {
                    let batch = table::normalise(&batch?, definition)?;
                    chunker.push(checks.test(batch)?)
                }
                None => break,
            };
        }
        if let Some(rest) = chunker.rest() {
            blocks.last(rest).await?;
        }
        let (tx, count) = blocks.finish(remove).await?;
        let writing = Writing {
            tx,
            budget,
            turn,
            pending,
        };
        Ok((writing, count))
    }
}

/// Copies of a block that are in memory while it is encoded: as it came, in one piece, in pages.
const COPIES: u64 = 3;

/// Blocks that are being encoded.
struct Blocks {
    loader: Arc<Loader>,
    budget: Arc<Budget>,
    next: u64,
    width: usize,
    running: JoinSet<std::result::Result<(), table::Error>>,
    /// The memory of rows that wait for their places in the indexes of keys.
    _waiting: Held,
}

/// The most bytes for rows that wait for their places in the indexes of keys, and their part of the memory limit.
const WAITING: u64 = 256 << 20;
const WAITING_PART: u64 = 32;

/// Has as many rows of a load wait for their places in the indexes of keys as there is memory for.
fn keep_waiting(loader: &Loader, budget: &Arc<Budget>) -> Held {
    let mut held = Held::of(budget);
    let keys = loader.definition().keys.len() as u64;
    let bytes = WAITING.min(budget.limit() / WAITING_PART);
    if keys > 0 && held.more(bytes).is_ok() {
        loader.keep_waiting((bytes / keys / Loader::WAITING_BYTES) as usize);
    }
    held
}

impl Blocks {
    fn new(loader: Loader, budget: &Arc<Budget>, width: usize) -> Blocks {
        Blocks {
            _waiting: keep_waiting(&loader, budget),
            loader: Arc::new(loader),
            budget: Arc::clone(budget),
            next: 0,
            width: width.max(1),
            running: JoinSet::new(),
        }
    }

    /// Waits until a block of these rows may be encoded; the memory that it takes.
    async fn room(&mut self, rows: &[RecordBatch]) -> Result<Held> {
        let bytes = COPIES * rows.iter().map(footprint).sum::<u64>();
        let mut held = Held::of(&self.budget);
        // A block that does not fit although no other is being encoded is encoded all the same: it cannot be smaller.
        while self.running.len() >= self.width
            || held.more(bytes).is_err() && !self.running.is_empty()
        {
            self.wait().await?;
        }
        Ok(held)
    }

    async fn encode(&mut self, rows: Vec<RecordBatch>) -> Result<()> {
        let held = self.room(&rows).await?;
        let (loader, ordinal) = (Arc::clone(&self.loader), self.next);
        self.next += 1;
        self.running.spawn(async move {
            let _held = held;
            loader.block(ordinal, &rows)
        });
        Ok(())
    }

    /// Encodes the last block. Nothing comes after it that workers could do meanwhile: they encode its columns side by side.
    async fn last(&mut self, rows: Vec<RecordBatch>) -> Result<()> {
        let columns = self.loader.definition().columns.len();
        let parts = self.width.min(columns);
        if parts < 2 {
            return self.encode(rows).await;
        }
        let _held = self.room(&rows).await?;
        let Some(block) = self.loader.begin(self.next, &rows)? else {
            return Ok(());
        };
        self.next += 1;
        drop(rows);
        let block = Arc::new(block);
        for part in 0..parts {
            let (loader, block) = (Arc::clone(&self.loader), Arc::clone(&block));
            self.running.spawn(async move {
                let mut columns = (part..columns).step_by(parts);
                columns.try_for_each(|column| loader.column(&block, column))
            });
        }
        while !self.running.is_empty() {
            self.wait().await?;
        }
        Ok(self.loader.end(&block)?)
    }

    async fn wait(&mut self) -> Result<()> {
        match self.running.join_next().await {
            Some(done) => Ok(done.map_err(Error::of_task)??),
            None => Ok(()),
        }
    }

    async fn finish(
        mut self,
        remove: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<(Transaction, u64)> {
        while !self.running.is_empty() {
            self.wait().await?;
        }
        if !self.loader.definition().keys.is_empty() {
            for _ in 0..self.width {
                let loader = Arc::clone(&self.loader);
                self.running.spawn(async move {
                    while loader.index_some()? {}
                    Ok(())
                });
            }
            while !self.running.is_empty() {
                self.wait().await?;
            }
        }
        let mut loader = Arc::try_unwrap(self.loader).map_err(|_| Error::Defect {
            message: "a block is still being encoded after its load".into(),
        })?;
        remove(loader.transaction())?;
        Ok(loader.finish().await?)
    }
}
