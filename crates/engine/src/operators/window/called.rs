//! Aggregates over frames that the engine has no accumulator for: each distinct frame gets a call of its own.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, new_empty_array};
use arrow::compute::{concat, take};
use memory::Budget;

use crate::error::{Error, Result};
use crate::logical::aggregate_call::AggregateCall;
use crate::memory::reservation::Reservation;
use crate::operators::window::frames::Frames;
use crate::operators::window::shape::Shape;
use crate::vector::value::{Type, Vector};

/// Values that a function gets at a time, about.
const AT_ONCE: usize = 1 << 16;

/// Frames that wait for their results.
struct Waiting<'w> {
    call: &'w dyn AggregateCall,
    values: &'w ArrayRef,
    budget: &'w Arc<Budget>,
    /// The memory of all results.
    held: Reservation,
    bytes: usize,
    /// The rows of the values of all frames that wait, frame by frame.
    rows: Vec<u32>,
    frames: Vec<Range<usize>>,
    results: Vec<ArrayRef>,
    /// How many frames have results, or wait.
    count: u32,
}

impl Waiting<'_> {
    fn put(&mut self, rows: impl Iterator<Item = u32>) -> Result<()> {
        let start = self.rows.len();
        self.rows.extend(rows);
        self.frames.push(start..self.rows.len());
        self.count += 1;
        if self.rows.len() >= AT_ONCE {
            self.run()?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        if self.frames.is_empty() {
            return Ok(());
        }
        let rows = UInt32Array::from(std::mem::take(&mut self.rows));
        let values = take(self.values, &rows, None)?;
        let results = self.call.call(&values, &self.frames);
        let results = results.map_err(Error::Call)?;
        self.bytes += results.get_array_memory_size();
        self.results.push(results);
        self.frames.clear();
        self.hold(self.bytes)
    }

    fn hold(&mut self, bytes: usize) -> Result<()> {
        self.held.cover(self.budget, bytes, "a window")
    }
}

/// What the function gives of the values in the frame of each row. Rows with the frame of the row before share its result.
///
/// # Errors
/// Those of the function; [`Error::Memory`] if the budget has no room for the results of all rows, as an answer has them;
/// [`Error::Cancelled`].
pub(super) fn results(
    (call, budget): (&dyn AggregateCall, &Arc<Budget>),
    (arg, of): (&Vector, &Type),
    ty: &Type,
    frames: &Frames,
    shape: &Shape,
) -> Result<Vector> {
    let values = arg.decoded(of)?;
    let left_out = arg.valid.as_deref().filter(|_| call.ignores_nulls());
    let counts = |row: &usize| left_out.is_none_or(|valid| valid[*row]);
    let mut waiting = Waiting {
        call,
        values: &values,
        budget,
        held: Reservation::default(),
        bytes: 0,
        rows: Vec::new(),
        frames: Vec::new(),
        results: Vec::new(),
        count: 0,
    };
    let mut picks: Vec<u32> = Vec::with_capacity(shape.rows);
    let mut before = None;
    for row in 0..shape.rows {
        if row.is_multiple_of(algebra::VECTOR_ROWS) {
            shape.stop.check()?;
        }
        let pieces = frames.pieces(row);
        if before.as_ref() != Some(&pieces) {
            let own = pieces.iter().flat_map(Range::clone).filter(counts);
            waiting.put(own.map(|row| row as u32))?;
            before = Some(pieces);
        }
        picks.push(waiting.count - 1);
    }
    waiting.run()?;
    let each = waiting.bytes / (waiting.count.max(1) as usize);
    waiting.hold(each.saturating_mul(picks.len()))?;
    let parts: Vec<&dyn Array> = waiting.results.iter().map(AsRef::as_ref).collect();
    let all = match &parts[..] {
        [] => new_empty_array(&ty.data),
        parts => concat(parts)?,
    };
    Vector::from_arrow(&all, ty)?.at(&picks)
}
