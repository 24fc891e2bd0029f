//! Result streams: answers that are sent while they are computed.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, RecordBatch, RecordBatchOptions};
use memory::Budget;
use table::json_kind;
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

/// Rows in a batch of the answer.
const BATCH_ROWS: usize = 8_192;

/// Most bytes of a piece of a batch of wide rows, about: a batch of 8,192 rows of three texts of 1,000 bytes is 24 MB, and
/// four of them waited for each client of a server that took none.
const PIECE: usize = 2 << 20;

/// Receives the answer of a query.
#[derive(Debug)]
pub(crate) struct ResultStream {
    sender: Sender<RecordBatch>,
    output: Output,
    types: Arc<[Type]>,
}

impl ResultStream {
    /// A stream into `sender`, of rows of these types, with columns as `output` names them.
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
    /// [`Error::Cancelled`] if the receiver is gone.
    pub async fn send(&self, stored: &Materialized) -> Result<()> {
        for run in cuts(stored.rows) {
            let rows = batch(stored, run, &self.types, &self.output)?;
            self.give(rows).await?;
        }
        Ok(())
    }

    /// Sends a batch, in pieces where its rows are wide: of these no more than one waits, so that a receiver who takes nothing
    /// has little in memory.
    async fn give(&self, batch: RecordBatch) -> Result<()> {
        let bytes = own_bytes(&batch);
        if bytes <= PIECE {
            let sent = self.sender.send(batch).await;
            return sent.map_err(|_| Error::Cancelled);
        }
        let rows = (batch.num_rows() / bytes.div_ceil(PIECE)).max(1);
        for start in (0..batch.num_rows()).step_by(rows) {
            let piece = apart(&batch.slice(start, rows.min(batch.num_rows() - start)))?;
            // When nothing waits all places are free.
            let mut places = self
                .sender
                .reserve_many(self.sender.max_capacity())
                .await
                .map_err(|_| Error::Cancelled)?;
            if let Some(place) = places.next() {
                place.send(piece);
            }
        }
        Ok(())
    }
}

/// Bytes that may wait even if the memory limit leaves nothing for them.
const SLACK: usize = 1 << 20;

/// Sends one worker's rows of the answer in batches. Call [`flush`](ResultSender::flush) after each vector of the
/// source, so that no more waits here than one vector has become.
#[derive(Debug)]
pub(crate) struct ResultSender {
    out: Arc<ResultStream>,
    vars: Vec<(Var, Kind)>,
    /// Rows that do not fill a batch yet.
    rows: RowsBuilder,
    /// Of which pipeline of the stage the rows are.
    pipeline: usize,
    /// Whether rows were sent or are ready to be.
    begun: bool,
    ready: Vec<RecordBatch>,
    /// Spilled rows.
    spilled: Vec<Extent>,
    spill: Arc<Spill>,
    /// Bytes of `ready`.
    bytes: usize,
    held: Reservation,
}

impl ResultSender {
    pub fn new(out: Arc<ResultStream>, spill: Arc<Spill>, vars: Vec<(Var, Kind)>) -> ResultSender {
        ResultSender {
            out,
            rows: RowsBuilder::new(&vars),
            pipeline: 0,
            begun: false,
            vars,
            ready: vec![],
            spilled: vec![],
            spill,
            bytes: 0,
            held: Reservation::default(),
        }
    }

    /// Says that the rows added from now on come from this morsel of the source.
    pub fn start(&mut self, piece: u64) {
        self.rows.start(piece);
    }

    /// Says of which pipeline of its stage the rows are.
    pub fn of_pipeline(&mut self, pipeline: usize) {
        self.pipeline = pipeline;
    }

    /// Adds the rows of `batch`.
    ///
    /// # Errors
    /// [`Error::Memory`] if `budget` has no room for the waiting rows, they are more than a little, and spilling is
    /// not allowed.
    pub fn add(&mut self, batch: &Batch, budget: &Arc<Budget>) -> Result<()> {
        self.rows.add(batch)?;
        let waiting = self.bytes + self.rows.memory();
        let short = self.held.cover(budget, waiting, "rows of the result");
        match short {
            Err(_) if waiting > SLACK && self.spill.is_allowed() => self.spill_rows(),
            Err(e) if waiting > SLACK => Err(e),
            Ok(()) if self.rows.rows < BATCH_ROWS => Ok(()),
            _ => self.cut(),
        }
    }

    /// Spills the rows that do not fill a batch yet: a single vector of the source may become very many rows.
    fn spill_rows(&mut self) -> Result<()> {
        self.begun = true;
        let rows = std::mem::replace(&mut self.rows, RowsBuilder::new(&self.vars));
        let (columns, rows) = RowsBuilder::concat(vec![rows])?;
        if rows > 0 {
            self.spilled.push(self.spill.write(columns.values(), rows)?);
        }
        Ok(())
    }

    /// Makes batches of the waiting rows.
    fn cut(&mut self) -> Result<()> {
        self.begun = true;
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

    /// Sends all full batches, and waits while the receiver is busy.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the receiver is gone.
    pub async fn flush(&mut self) -> Result<()> {
        if self.ready.is_empty() && self.spilled.is_empty() {
            return Ok(());
        }
        for extent in std::mem::take(&mut self.spilled) {
            self.out
                .send(&self.spill.read(&extent, &self.vars)?)
                .await?;
        }
        for batch in self.ready.drain(..) {
            self.out.give(batch).await?;
        }
        self.bytes = 0;
        self.held = Reservation::default();
        Ok(())
    }

    /// Sends what remains with all workers of a stage: an answer of which nothing was sent yet in the order of its
    /// pipelines and of their sources, so that a small table is listed as it was filled.
    ///
    /// # Errors
    /// Those of [`ResultSender::flush`].
    pub async fn end(mut senders: Vec<ResultSender>) -> Result<()> {
        if senders.iter().any(|sender| sender.begun) {
            for mut sender in senders {
                sender.cut()?;
                sender.flush().await?;
            }
            return Ok(());
        }
        senders.sort_by_key(|sender| sender.pipeline);
        let mut held = vec![];
        let (mut pipelines, mut out) = (vec![], None);
        for sender in senders {
            held.push(sender.held);
            out = Some(sender.out);
            match pipelines.last_mut() {
                Some((of, parts)) if *of == sender.pipeline => Vec::push(parts, sender.rows),
                _ => pipelines.push((sender.pipeline, vec![sender.rows])),
            }
        }
        let Some(out) = out else { return Ok(()) };
        for (_, parts) in pipelines {
            let (columns, rows) = RowsBuilder::concat(parts)?;
            out.send(&Materialized { columns, rows }).await?;
        }
        Ok(())
    }
}

/// The rows `run` of the answer as Arrow. The batch does not keep other rows in memory.
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
            (true, _) => vector.decoded(&ty)?,
            (false, false) => vector.run(run.clone()).decoded(&ty)?,
            (false, true) => compacted(vector.run(run.clone()).decoded(&ty)?),
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(run.len()));
    let batch = RecordBatch::try_new_with_options(output.schema.clone(), columns, &options)?;
    Ok(batch)
}

/// Bytes of the values of `batch`, without what they share with rows of other batches.
fn own_bytes(batch: &RecordBatch) -> usize {
    let texts = |column: &ArrayRef| match json_kind(column.data_type()) {
        Some(_) => Arc::clone(column.as_struct().column(0)),
        None => Arc::clone(column),
    };
    let bytes = |column: &ArrayRef| match texts(column).as_string_view_opt() {
        Some(texts) => size_of_val(&**texts.views()) + texts.total_buffer_bytes_used(),
        None => column.to_data().get_slice_memory_size().unwrap_or(0),
    };
    batch.columns().iter().map(bytes).sum()
}

/// The same rows, whose texts lie in buffers of their own.
fn apart(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().cloned().map(compacted).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        batch.schema(),
        columns,
        &options,
    )?)
}

/// Splits the rows of a result into batches of [`BATCH_ROWS`].
fn cuts(rows: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..rows).step_by(BATCH_ROWS);
    starts.map(move |start| start..rows.min(start + BATCH_ROWS))
}
