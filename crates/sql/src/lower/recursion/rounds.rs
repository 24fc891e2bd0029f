//! The rounds of a recursive query.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use engine::{Error, Opening, Result};
use tokio::sync::mpsc;

use crate::lower::recursion::direct::Direct;
use crate::lower::recursion::seen::Seen;
use crate::resources::budget::{Held, footprint};
use crate::resources::stop;

/// Memory is asked for in pieces of so many bytes.
const PIECE: u64 = 64 << 10;

/// Rows of so many bytes are handed on.
const MUCH: u64 = 1 << 20;

/// Most rows that are handed on together.
const BATCH_ROWS: usize = 8_192;

/// Batches of a round that wait to be taken.
const QUEUE: usize = 4;

/// How a round is computed.
pub(super) enum Way {
    Direct(Arc<Direct>),
    Program(Box<engine::Rounds>),
}

/// The rounds of a recursive query that runs.
pub(super) struct Rounds {
    /// What gives the rows that it begins with, until it has.
    first: Option<Box<engine::Rounds>>,
    way: Way,
    /// Rows of the round before that are still to be gone on from.
    last: VecDeque<RecordBatch>,
    found: Found,
    /// What ended the rounds, until the rows that were found before are handed on.
    failed: Option<Error>,
    over: bool,
}

impl Rounds {
    pub(super) fn new(
        first: engine::Rounds,
        way: Way,
        (schema, distinct): (&SchemaRef, bool),
        opening: &Opening<'_>,
    ) -> Result<Rounds> {
        let seen = distinct.then(|| Seen::new(schema));
        Ok(Rounds {
            first: Some(Box::new(first)),
            way,
            last: VecDeque::new(),
            found: Found {
                schema: Arc::clone(schema),
                seen: seen.transpose()?,
                last_bytes: 0,
                present: Vec::new(),
                present_bytes: 0,
                waiting: Waiting::new(Arc::clone(schema)),
                held: Held::of(&opening.runtime.budget),
            },
            failed: None,
            over: false,
        })
    }

    /// The next rows of the query; none behind the last. Rows that came before an error are handed on before it.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(e) = self.failed.take() {
            self.over = true;
            return Err(e);
        }
        while !self.over && !self.found.waiting.is_full() {
            match self.step().await {
                Ok(more) => self.over = !more,
                Err(e) if self.found.waiting.batches.is_empty() => {
                    self.over = true;
                    return Err(e);
                }
                Err(e) => {
                    self.failed = Some(e);
                    break;
                }
            }
        }
        // Rounds that are computed directly never wait for anything.
        tokio::task::yield_now().await;
        self.found.waiting.take()
    }

    /// Finds some rows; false if there are no more.
    async fn step(&mut self) -> Result<bool> {
        if stop::is_stopped() {
            return Err(Error::Cancelled);
        }
        if let Some(mut first) = self.first.take() {
            self.found.round(&mut first, Vec::new()).await?;
            return Ok(true);
        }
        match &mut self.way {
            Way::Direct(direct) => {
                if self.last.is_empty() {
                    self.last = self.found.turn()?.into();
                }
                let Some(rows) = self.last.pop_front() else {
                    return Ok(false);
                };
                let rows = direct.of_rows(&rows);
                if let Some(rows) = rows.map_err(|e| Error::Call(Box::new(e)))? {
                    self.found.put(rows)?;
                }
            }
            Way::Program(term) => {
                let rows = self.found.turn()?;
                if rows.is_empty() {
                    return Ok(false);
                }
                self.found.round(term, rows).await?;
            }
        }
        Ok(true)
    }
}

/// What the rounds have found.
struct Found {
    /// The columns of the query.
    schema: SchemaRef,
    seen: Option<Seen>,
    /// Bytes of the rows of the round before.
    last_bytes: u64,
    /// Rows of the present round.
    present: Vec<RecordBatch>,
    present_bytes: u64,
    waiting: Waiting,
    /// Memory of all these.
    held: Held,
}

impl Found {
    /// Runs a round of a program and takes its rows as they come.
    async fn round(&mut self, program: &mut engine::Rounds, rows: Vec<RecordBatch>) -> Result<()> {
        let (sender, mut found) = mpsc::channel(QUEUE);
        let mut work = program.run(rows.into(), sender);
        loop {
            tokio::select! {
                biased;
                Some(rows) = found.recv() => self.put(rows)?,
                done = &mut work => break done?,
            }
        }
        while let Some(rows) = found.recv().await {
            self.put(rows)?;
        }
        Ok(())
    }

    /// Takes rows of the present round.
    fn put(&mut self, rows: RecordBatch) -> Result<()> {
        let rows = self.alike(rows)?;
        let rows = match &mut self.seen {
            Some(seen) => seen.others(rows)?,
            None => rows,
        };
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let bytes = footprint(&rows);
        self.present_bytes += bytes;
        self.waiting.put(rows.clone(), bytes);
        self.present.push(rows);
        self.hold()
    }

    /// Rows of a term with the columns of the query: those of a term may be of another representation of its types.
    fn alike(&self, rows: RecordBatch) -> Result<RecordBatch> {
        if rows.schema_ref() == &self.schema {
            return Ok(rows);
        }
        let fields = self.schema.fields().iter();
        let columns = rows.columns().iter().zip(fields).map(|(column, field)| {
            if column.data_type() == field.data_type() {
                return Ok(Arc::clone(column));
            }
            cast(column, field.data_type())
        });
        let columns: Vec<ArrayRef> = columns.collect::<std::result::Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }

    /// Ends a round: its rows, from which the next goes on.
    fn turn(&mut self) -> Result<Vec<RecordBatch>> {
        let rows = std::mem::take(&mut self.present);
        self.last_bytes = std::mem::take(&mut self.present_bytes);
        let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
        if rows.len() > 1 && count <= BATCH_ROWS {
            return Ok(vec![concat_batches(&self.schema, &rows)?]);
        }
        Ok(rows)
    }

    /// Holds the memory of all rows that are kept.
    fn hold(&mut self) -> Result<()> {
        let seen = self.seen.as_ref().map_or(0, Seen::bytes);
        let bytes = self.last_bytes + self.present_bytes + self.waiting.bytes + seen;
        let wanted = bytes.div_ceil(PIECE).saturating_mul(PIECE);
        let what = "a recursive query";
        let held = self.held.set(wanted);
        held.map_err(|_| Error::Memory { what, wanted })
    }
}

/// Rows that are found and not handed on yet. The first are at once, so that who needs no more has not to wait for more; then
/// ever more of them together.
struct Waiting {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: u64,
    /// How many rows are handed on next.
    wanted: usize,
}

impl Waiting {
    fn new(schema: SchemaRef) -> Waiting {
        Waiting {
            schema,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            wanted: 1,
        }
    }

    fn put(&mut self, rows: RecordBatch, bytes: u64) {
        self.rows += rows.num_rows();
        self.bytes += bytes;
        self.batches.push(rows);
    }

    fn is_full(&self) -> bool {
        self.rows >= self.wanted || self.bytes >= MUCH
    }

    fn take(&mut self) -> Result<Option<RecordBatch>> {
        let batches = std::mem::take(&mut self.batches);
        (self.rows, self.bytes) = (0, 0);
        self.wanted = self.wanted.saturating_mul(2).min(BATCH_ROWS);
        Ok(match &batches[..] {
            [] => None,
            [one] => Some(one.clone()),
            all => Some(concat_batches(&self.schema, all)?),
        })
    }
}
