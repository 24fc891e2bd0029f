//! The rounds of a recursive query.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use futures::TryStreamExt;

use crate::optimize::recursion::direct::Direct;
use crate::optimize::recursion::reused::renewed;
use crate::optimize::recursion::work::Slot;
use crate::optimize::stoppable;
use crate::resources::budget::footprint;

/// Memory is asked for in pieces of so many bytes.
const PIECE: usize = 64 << 10;

/// Rows of so many bytes are handed on.
const MUCH: usize = 1 << 20;

/// How a round is computed.
pub(super) enum Way {
    Direct(Arc<Direct>),
    Operators(Operators),
}

impl Way {
    /// By the operators of `term`, which find the rows of the round before in `slot`.
    pub(super) fn operators(
        term: Arc<dyn ExecutionPlan>,
        slot: Arc<Slot>,
        context: Arc<TaskContext>,
    ) -> Way {
        Way::Operators(Operators {
            term,
            slot,
            context,
            rows: None,
            round: 0,
        })
    }
}

/// The operators of a recursive term.
pub(super) struct Operators {
    term: Arc<dyn ExecutionPlan>,
    slot: Arc<Slot>,
    context: Arc<TaskContext>,
    /// The rows of the present round.
    rows: Option<SendableRecordBatchStream>,
    round: usize,
}

impl Operators {
    fn begin(&mut self, rows: Vec<RecordBatch>) -> Result<()> {
        self.slot.put(rows);
        if self.round > 0 {
            self.term = renewed(&self.term, self.round)?;
        }
        self.round += 1;
        self.rows = Some(self.term.execute(0, Arc::clone(&self.context))?);
        Ok(())
    }

    /// The next rows of the present round.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = match &mut self.rows {
            Some(rows) => rows.try_next().await?,
            None => None,
        };
        if next.is_none() {
            self.rows = None;
            self.slot.put(Vec::new());
        }
        Ok(next)
    }
}

/// The rounds of a recursive query that runs.
pub(super) struct Rounds {
    /// The rows that it begins with, until there are no more.
    first: Option<SendableRecordBatchStream>,
    way: Way,
    seen: Option<Seen>,
    /// Rows of the round before that are still to be gone on from.
    last: VecDeque<RecordBatch>,
    /// Bytes of the rows of the round before.
    last_bytes: usize,
    /// Rows of the present round.
    present: Vec<RecordBatch>,
    present_bytes: usize,
    waiting: Waiting,
    /// Memory of all these.
    held: MemoryReservation,
    /// What ended the rounds, until the rows that were found before are handed on.
    failed: Option<DataFusionError>,
    over: bool,
}

impl Rounds {
    pub(super) fn new(
        first: SendableRecordBatchStream,
        way: Way,
        distinct: bool,
        context: &TaskContext,
    ) -> Result<Rounds> {
        let schema = first.schema();
        let held = |name: &str| MemoryConsumer::new(name).register(context.memory_pool());
        let seen = distinct.then(|| Seen::new(&schema, held("RecursiveQueryHashTable")));
        Ok(Rounds {
            first: Some(first),
            way,
            seen: seen.transpose()?,
            last: VecDeque::new(),
            last_bytes: 0,
            present: Vec::new(),
            present_bytes: 0,
            waiting: Waiting::new(schema, context.session_config().batch_size()),
            held: held("RecursiveQuery"),
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
        while !self.over && !self.waiting.is_full() {
            match self.step().await {
                Ok(more) => self.over = !more,
                Err(e) if self.waiting.batches.is_empty() => {
                    self.over = true;
                    return Err(e);
                }
                Err(e) => {
                    self.failed = Some(e);
                    break;
                }
            }
        }
        self.waiting.take()
    }

    /// Finds some rows; false if there are no more.
    async fn step(&mut self) -> Result<bool> {
        stoppable::check()?;
        if let Some(first) = &mut self.first {
            match first.try_next().await? {
                Some(rows) => self.found(rows)?,
                None => self.first = None,
            }
            return Ok(true);
        }
        match &mut self.way {
            Way::Direct(direct) => {
                let direct = Arc::clone(direct);
                if self.last.is_empty() {
                    self.last = self.turn()?.into();
                }
                let Some(rows) = self.last.pop_front() else {
                    return Ok(false);
                };
                if let Some(rows) = direct.of_rows(&rows)? {
                    self.found(rows)?;
                }
            }
            Way::Operators(operators) => match operators.next().await? {
                Some(rows) => self.found(rows)?,
                None => {
                    let rows = self.turn()?;
                    if rows.is_empty() {
                        return Ok(false);
                    }
                    if let Way::Operators(operators) = &mut self.way {
                        operators.begin(rows)?;
                    }
                }
            },
        }
        Ok(true)
    }

    /// Ends a round: its rows, from which the next goes on.
    fn turn(&mut self) -> Result<Vec<RecordBatch>> {
        let rows = std::mem::take(&mut self.present);
        self.last_bytes = std::mem::take(&mut self.present_bytes);
        let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
        if rows.len() > 1 && count <= self.waiting.most {
            return Ok(vec![concat_batches(&self.waiting.schema, &rows)?]);
        }
        Ok(rows)
    }

    /// Takes rows of the present round.
    fn found(&mut self, rows: RecordBatch) -> Result<()> {
        let rows = match &mut self.seen {
            Some(seen) => seen.others(rows)?,
            None => rows,
        };
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let bytes = usize::try_from(footprint(&rows)).unwrap_or(usize::MAX);
        self.present_bytes = self.present_bytes.saturating_add(bytes);
        self.waiting.put(rows.clone(), bytes);
        self.present.push(rows);
        let all = self.last_bytes.saturating_add(self.present_bytes);
        let all = all.saturating_add(self.waiting.bytes);
        hold(&self.held, all)
    }
}

/// Has `held` be about so many bytes.
fn hold(held: &MemoryReservation, bytes: usize) -> Result<()> {
    let wanted = bytes.div_ceil(PIECE).saturating_mul(PIECE);
    if held.size() == wanted {
        return Ok(());
    }
    held.try_resize(wanted)
}

/// Rows that are found and not handed on yet. The first are at once, so that who needs no more has not to wait for more; then
/// ever more of them together.
struct Waiting {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// How many rows are handed on next, and at most.
    wanted: usize,
    most: usize,
}

impl Waiting {
    fn new(schema: SchemaRef, most: usize) -> Waiting {
        Waiting {
            schema,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            wanted: 1,
            most,
        }
    }

    fn put(&mut self, rows: RecordBatch, bytes: usize) {
        self.rows += rows.num_rows();
        self.bytes = self.bytes.saturating_add(bytes);
        self.batches.push(rows);
    }

    fn is_full(&self) -> bool {
        self.rows >= self.wanted || self.bytes >= MUCH
    }

    fn take(&mut self) -> Result<Option<RecordBatch>> {
        let batches = std::mem::take(&mut self.batches);
        (self.rows, self.bytes) = (0, 0);
        self.wanted = self.wanted.saturating_mul(2).min(self.most);
        Ok(match &batches[..] {
            [] => None,
            [one] => Some(one.clone()),
            all => Some(concat_batches(&self.schema, all)?),
        })
    }
}

/// The rows of `union`, none of which comes again.
struct Seen {
    rows: Box<dyn GroupValues>,
    held: MemoryReservation,
    /// How many rows there were when their memory was last looked at.
    counted: usize,
    numbers: Vec<usize>,
}

impl Seen {
    fn new(schema: &SchemaRef, held: MemoryReservation) -> Result<Seen> {
        Ok(Seen {
            rows: new_group_values(Arc::clone(schema), &GroupOrdering::None)?,
            held,
            counted: 0,
            numbers: Vec::new(),
        })
    }

    /// Those of these rows that did not come before.
    fn others(&mut self, rows: RecordBatch) -> Result<RecordBatch> {
        /// How many rows may come before their memory is looked at again.
        const UNCOUNTED: usize = 512;
        let mut next = self.rows.len();
        self.numbers.clear();
        self.rows.intern(rows.columns(), &mut self.numbers)?;
        // A row that is new has the next number, and those like it have that number behind it.
        let is_new = |number: &usize| {
            let new = *number >= next;
            next = next.max(number.saturating_add(1));
            new
        };
        let new: Vec<bool> = self.numbers.iter().map(is_new).collect();
        let count = self.rows.len();
        if count >= self.counted.saturating_add(UNCOUNTED) {
            self.counted = count;
            hold(&self.held, self.rows.size())?;
        }
        if new.iter().all(|new| *new) {
            return Ok(rows);
        }
        Ok(filter_record_batch(&rows, &BooleanArray::from(new))?)
    }
}
