//! Answers that leave while they are being computed.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use memory::Budget;
use tokio::sync::mpsc::Sender;

use crate::error::{Error, Result, missing};
use crate::logical::relation::Output;
use crate::memory::reservation::Reservation;
use crate::memory::spill::{Extent, Spill};
use crate::vector::batch::Batch;
use crate::vector::builder::RowsBuilder;
use crate::vector::rows::Materialized;
use crate::vector::strings::compacted;
use crate::vector::value::{Kind, Type, Values, Var};

/// Rows of an answer's batches.
const BATCH_ROWS: usize = 8_192;

/// Where an answer goes.
#[derive(Debug)]
pub(crate) struct ResultStream {
    sender: Sender<RecordBatch>,
    output: Output,
    types: Arc<[Type]>,
}

impl ResultStream {
    /// Rows of these types go to `sender`, as `output` names them.
    pub fn new(sender: Sender<RecordBatch>, output: &Output, types: &Arc<[Type]>) -> ResultStream {
        ResultStream {
            sender,
            output: output.clone(),
            types: types.clone(),
        }
    }

    /// Sends all rows of `stored`.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if nobody takes them any more.
    pub async fn send(&self, stored: &Materialized) -> Result<()> {
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
pub(crate) struct ResultSender {
    out: Arc<ResultStream>,
    vars: Vec<(Var, Kind)>,
    /// Fewer than make a batch.
    rows: RowsBuilder,
    ready: Vec<RecordBatch>,
    /// Rows that did not fit in memory.
    away: Vec<Extent>,
    spill: Arc<Spill>,
    /// Bytes that those take.
    bytes: usize,
    held: Reservation,
}

impl ResultSender {
    pub fn new(out: Arc<ResultStream>, spill: Arc<Spill>, vars: Vec<(Var, Kind)>) -> ResultSender {
        ResultSender {
            out,
            rows: RowsBuilder::new(&vars),
            vars,
            ready: vec![],
            away: vec![],
            spill,
            bytes: 0,
            held: Reservation::default(),
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
        let rows = std::mem::replace(&mut self.rows, RowsBuilder::new(&self.vars));
        let (columns, rows) = RowsBuilder::concat(vec![rows])?;
        if rows > 0 {
            self.away.push(self.spill.put(columns.values(), rows)?);
        }
        Ok(())
    }

    /// Makes batches of the rows that there are.
    fn cut(&mut self) -> Result<()> {
        let rows = std::mem::replace(&mut self.rows, RowsBuilder::new(&self.vars));
        self.bytes += rows.memory();
        let (columns, rows) = RowsBuilder::concat(vec![rows])?;
        let stored = Materialized { columns, rows };
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
        self.held = Reservation::default();
        Ok(())
    }

    /// Sends all that is left.
    ///
    /// # Errors
    /// Those of [`ResultSender::flush`].
    pub async fn last(mut self) -> Result<()> {
        self.cut()?;
        self.flush().await
    }
}

/// The rows `run` of an answer as Arrow. Other rows of it need not stay in memory for them.
fn batch(
    answer: &Materialized,
    run: Range<usize>,
    types: &[Type],
    output: &Output,
) -> Result<RecordBatch> {
    let all = run == (0..answer.rows);
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(output.vars.len());
    for (var, field) in output.vars.iter().zip(output.schema.fields()) {
        let vector = answer.columns.get(var).ok_or_else(missing)?;
        let ty = Type {
            data: field.data_type().clone(),
            ..types[*var].clone()
        };
        let text = matches!(vector.values, Values::Text(_));
        columns.push(match (all, text) {
            (true, _) => vector.to_arrow(&ty)?,
            (false, false) => vector.run(run.clone()).to_arrow(&ty)?,
            (false, true) => compacted(vector.run(run.clone()).to_arrow(&ty)?),
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(run.len()));
    let batch = RecordBatch::try_new_with_options(output.schema.clone(), columns, &options)?;
    Ok(batch)
}

/// The rows of an answer in pieces of [`BATCH_ROWS`].
fn cuts(rows: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..rows).step_by(BATCH_ROWS);
    starts.map(move |start| start..rows.min(start + BATCH_ROWS))
}
