//! Answers that leave while they are being computed.

use std::sync::Arc;

use arrow::array::RecordBatch;
use memory::Budget;
use tokio::sync::mpsc::Sender;

use super::answer::{BATCH_ROWS, batch, cuts};
use crate::batch::Batch;
use crate::column::Collected;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::held::Held;
use crate::rel::Output;
use crate::source::Stored;
use crate::spill::{Extent, Spill};
use crate::value::{Kind, Type};

/// Where an answer goes.
#[derive(Debug)]
pub(crate) struct Out {
    sender: Sender<RecordBatch>,
    output: Output,
    types: Arc<[Type]>,
}

impl Out {
    /// Rows of these types go to `sender`, as `output` names them.
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
        for run in cuts(stored.rows) {
            let rows = batch(stored, run, &self.types, &self.output)?;
            self.give(rows).await?;
        }
        Ok(())
    }

    async fn give(&self, batch: RecordBatch) -> Result<()> {
        let sent = self.sender.send(batch).await;
        sent.map_err(|_| Error::Cancelled)
    }
}

/// Bytes that may wait though the limit leaves nothing for them.
const SLACK: usize = 1 << 20;

/// One worker's rows of an answer, few at a time. Whoever adds rows flushes between two vectors of the source: what a
/// vector became is all that waits here.
#[derive(Debug)]
pub(crate) struct Sending {
    out: Arc<Out>,
    vars: Vec<(Var, Kind)>,
    /// Fewer than make a batch.
    rows: Collected,
    ready: Vec<RecordBatch>,
    /// Rows that did not fit in memory.
    away: Vec<Extent>,
    spill: Arc<Spill>,
    /// Bytes that those take.
    bytes: usize,
    held: Held,
}

impl Sending {
    pub fn new(out: Arc<Out>, spill: Arc<Spill>, vars: Vec<(Var, Kind)>) -> Sending {
        Sending {
            out,
            rows: Collected::new(&vars),
            vars,
            ready: vec![],
            away: vec![],
            spill,
            bytes: 0,
            held: Held::default(),
        }
    }

    /// Adds the rows of `batch`.
    ///
    /// # Errors
    /// [`Error::Memory`] if `budget` has not what waits, unless that is little, or may be put away.
    pub fn add(&mut self, batch: &Batch, budget: &Arc<Budget>) -> Result<()> {
        self.rows.add(batch)?;
        let waiting = self.bytes + self.rows.memory();
        let short = self.held.cover(budget, waiting, "rows of an answer");
        match short {
            Err(_) if waiting > SLACK && self.spill.is_allowed() => self.put_away(),
            Err(e) if waiting > SLACK => Err(e),
            Ok(()) if self.rows.rows < BATCH_ROWS => Ok(()),
            _ => self.cut(),
        }
    }

    /// Puts the rows that make no batch yet away: one vector of the source may become very many.
    fn put_away(&mut self) -> Result<()> {
        let rows = std::mem::replace(&mut self.rows, Collected::new(&self.vars));
        let (columns, rows) = Collected::concat(vec![rows])?;
        if rows > 0 {
            self.away.push(self.spill.put(columns.values(), rows)?);
        }
        Ok(())
    }

    /// Makes batches of the rows that there are.
    fn cut(&mut self) -> Result<()> {
        let rows = std::mem::replace(&mut self.rows, Collected::new(&self.vars));
        self.bytes += rows.memory();
        let (columns, rows) = Collected::concat(vec![rows])?;
        let stored = Stored { columns, rows };
        for run in cuts(stored.rows) {
            let rows = batch(&stored, run, &self.out.types, &self.out.output)?;
            self.ready.push(rows);
        }
        Ok(())
    }

    /// Sends what is ready; waits where nobody takes it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if nobody ever will.
    pub async fn flush(&mut self) -> Result<()> {
        if self.ready.is_empty() && self.away.is_empty() {
            return Ok(());
        }
        for extent in std::mem::take(&mut self.away) {
            self.out.send(&self.spill.get(&extent, &self.vars)?).await?;
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
