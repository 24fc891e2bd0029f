//! From a stream of rows into a table, within a transaction.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use futures::{Stream, StreamExt};
use store::Transaction;
use table::{Chunker, Definition, Loader};
use tokio::sync::MutexGuard;
use tokio::task::JoinSet;

use crate::answer::task_error;
use crate::engine::Engine;
use crate::{Error, Result};

/// The right to write, from the first look at the tables to the commit.
pub(crate) struct Writing<'e> {
    pub tx: Transaction,
    _turn: MutexGuard<'e, ()>,
}

impl<'e> Writing<'e> {
    /// Waits for the other writers, holding no worker.
    pub(crate) async fn begin(engine: &'e Engine) -> Result<Writing<'e>> {
        let turn = engine.writing.lock().await;
        let store = Arc::clone(&engine.store);
        let tx = tokio::task::spawn_blocking(move || store.begin())
            .await
            .map_err(task_error)??;
        Ok(Writing { tx, _turn: turn })
    }

    /// Makes everything durable and visible.
    pub(crate) async fn commit(self) -> Result<()> {
        let tx = self.tx;
        tokio::task::spawn_blocking(move || tx.commit())
            .await
            .map_err(task_error)??;
        Ok(())
    }

    /// Appends rows that are in memory.
    pub(crate) async fn insert(self, name: &str, rows: &[RecordBatch]) -> Result<Writing<'e>> {
        let Writing { tx, _turn } = self;
        let (tx, _) = table::insert(tx, name, rows).await?;
        Ok(Writing { tx, _turn })
    }

    /// Appends `rows` to table `name`, and says how many there were.
    ///
    /// 1. Rows gather until they fill a block. If they never do, they go to the table's tail.
    /// 2. Else each full block is encoded by a task of its own, at most `width` at a time; its ordinal keeps
    ///    the order in which the rows came.
    pub(crate) async fn append(
        self,
        name: &str,
        definition: &Definition,
        mut rows: impl Stream<Item = Result<RecordBatch>> + Unpin,
        width: usize,
    ) -> Result<(Writing<'e>, u64)> {
        let (mut chunker, mut few) = (Chunker::default(), Vec::new());
        while let Some(batch) = rows.next().await {
            let batch = table::normalise(&batch?, definition)?;
            few.push(batch.clone());
            let full = chunker.push(batch);
            if !full.is_empty() {
                return self
                    .load(name, definition, (full, chunker), rows, width)
                    .await;
            }
        }
        let Writing { tx, _turn } = self;
        let (tx, count) = table::insert(tx, name, &few).await?;
        Ok((Writing { tx, _turn }, count))
    }

    async fn load(
        self,
        name: &str,
        definition: &Definition,
        (mut full, mut chunker): (Vec<Vec<RecordBatch>>, Chunker),
        mut rows: impl Stream<Item = Result<RecordBatch>> + Unpin,
        width: usize,
    ) -> Result<(Writing<'e>, u64)> {
        let Writing { tx, _turn } = self;
        let mut blocks = Blocks::new(Loader::new(tx, name).await?, width);
        loop {
            for block in full {
                blocks.encode(block).await?;
            }
            full = match rows.next().await {
                Some(batch) => chunker.push(table::normalise(&batch?, definition)?),
                None => break,
            };
        }
        if let Some(rest) = chunker.rest() {
            blocks.encode(rest).await?;
        }
        let (tx, count) = blocks.finish().await?;
        Ok((Writing { tx, _turn }, count))
    }
}

/// Blocks on their way into the store.
struct Blocks {
    loader: Arc<Loader>,
    next: u64,
    width: usize,
    running: JoinSet<std::result::Result<(), table::Error>>,
}

impl Blocks {
    fn new(loader: Loader, width: usize) -> Blocks {
        Blocks {
            loader: Arc::new(loader),
            next: 0,
            width: width.max(1),
            running: JoinSet::new(),
        }
    }

    async fn encode(&mut self, rows: Vec<RecordBatch>) -> Result<()> {
        while self.running.len() >= self.width {
            self.wait().await?;
        }
        let (loader, ordinal) = (Arc::clone(&self.loader), self.next);
        self.next += 1;
        self.running
            .spawn(async move { loader.block(ordinal, &rows) });
        Ok(())
    }

    async fn wait(&mut self) -> Result<()> {
        match self.running.join_next().await {
            Some(done) => Ok(done.map_err(task_error)??),
            None => Ok(()),
        }
    }

    async fn finish(mut self) -> Result<(Transaction, u64)> {
        while !self.running.is_empty() {
            self.wait().await?;
        }
        let loader = Arc::try_unwrap(self.loader).map_err(|_| Error::Defect {
            message: "a block outlived its load".into(),
        })?;
        Ok(loader.finish()?)
    }
}
