//! Answers that leave while they are being computed.

use std::sync::Arc;

use arrow::array::RecordBatch;
use memory::Budget;
use tokio::sync::mpsc::Sender;

use super::answer::{BATCH_ROWS, batches};
use crate::batch::Batch;
use crate::column::Collected;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::held::Held;
use crate::rel::Output;
use crate::source::Stored;
use crate::value::{Kind, Type};

/// Where an answer goes.
#[derive(Debug)]
pub(crate) struct Out {
    sender: Sender<RecordBatch>,
    output: Output,
    types: Arc<[Type]>,
}

impl Out {
    pub fn new(sender: Sender<RecordBatch>, output: &Output, types: &Arc<[Type]>) -> Out {
        Out {
            sender,
            output: output.clone(),
            types: types.clone(),
        }
    }

    /// Sends all rows of `stored`.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if nobody takes them any more.
    pub async fn send(&self, stored: &Stored) -> Result<()> {
        for batch in batches(stored, &self.types, &self.output)? {
            self.give(batch).await?;
        }
        Ok(())
    }

    async fn give(&self, batch: RecordBatch) -> Result<()> {
        let sent = self.sender.send(batch).await;
        sent.map_err(|_| Error::Cancelled)
    }
}

/// One worker's rows of an answer, few at a time. Whoever adds rows flushes between two vectors of the source: what a
/// vector became is all that waits here.
#[derive(Debug)]
pub(crate) struct Sending {
    out: Arc<Out>,
    vars: Vec<(Var, Kind)>,
    /// Fewer than make a batch.
    rows: Collected,
    ready: Vec<RecordBatch>,
    /// Bytes that those take.
    bytes: usize,
    held: Held,
}

impl Sending {
    pub fn new(out: Arc<Out>, vars: Vec<(Var, Kind)>) -> Sending {
        Sending {
            out,
            rows: Collected::new(&vars),
            vars,
            ready: vec![],
            bytes: 0,
            held: Held::default(),
        }
    }

    /// Adds the rows of `batch`.
    ///
    /// # Errors
    /// [`Error::Memory`] if `budget` has not what waits.
    pub fn add(&mut self, batch: &Batch, budget: &Arc<Budget>) -> Result<()> {
        self.rows.add(batch)?;
        let waiting = self.bytes + self.rows.memory();
        self.held.cover(budget, waiting, "rows of an answer")?;
        match self.rows.rows >= BATCH_ROWS {
            true => self.cut(),
            false => Ok(()),
        }
    }

    /// Makes batches of the rows that there are.
    fn cut(&mut self) -> Result<()> {
        let rows = std::mem::replace(&mut self.rows, Collected::new(&self.vars));
        self.bytes += rows.memory();
        let (columns, rows) = Collected::concat(vec![rows])?;
        let stored = Stored { columns, rows };
        let made = batches(&stored, &self.out.types, &self.out.output)?;
        self.ready.extend(made);
        Ok(())
    }

    /// Sends what is ready; waits where nobody takes it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if nobody ever will.
    pub async fn flush(&mut self) -> Result<()> {
        if self.ready.is_empty() {
            return Ok(());
        }
        for batch in self.ready.drain(..) {
            self.out.give(batch).await?;
        }
        self.bytes = 0;
        self.held = Held::default();
        Ok(())
    }

    /// Sends all that is left.
    ///
    /// # Errors
    /// Those of [`Sending::flush`].
    pub async fn last(mut self) -> Result<()> {
        self.cut()?;
        self.flush().await
    }
}
