//! The least and the greatest value of frames.

use std::cmp::Ordering;
use std::collections::VecDeque;

use arrow::array::AsArray;

use crate::error::{Error, Result};
use crate::logical::window::{FrameBounds, FrameEdge};
use crate::operators::window::cells::compare_floats;
use crate::operators::window::frames::Frames;
use crate::operators::window::shape::Shape;
use crate::operators::window::summaries::{Best, over_frames};
use crate::operators::window::values::Picks;
use crate::vector::value::{Type, Values, Vector};

/// The least value of the frame of each row, or else the greatest; of equal ones the last.
///
/// # Errors
/// [`Error::Cancelled`]; an internal error for codes without labels; those of strings.
pub(super) fn extremes(
    arg: &Vector,
    ty: &Type,
    least: bool,
    bounds: &FrameBounds,
    frames: &Frames,
    shape: &Shape,
) -> Result<Vector> {
    let find = Find {
        valid: arg.valid.as_deref(),
        least,
        // Frames that leave no row behind.
        grow: bounds.start == FrameEdge::First,
        frames,
        shape,
    };
    let picks = match &arg.values {
        Values::Int(v) => find.rows(|a, b| v[a].cmp(&v[b])),
        Values::Wide(v) => find.rows(|a, b| v[a].cmp(&v[b])),
        Values::Float(v) => find.rows(|a, b| compare_floats(v[a], v[b])),
        Values::Bool(v) => find.rows(|a, b| v[a].cmp(&v[b])),
        Values::Code(v) => {
            let labels = ty.labels.as_ref();
            let rank = labels.ok_or_else(|| Error::internal("codes without labels"))?;
            let rank = rank.rank();
            find.rows(|a, b| rank[v[a] as usize].cmp(&rank[v[b] as usize]))
        }
        Values::Text(v) => {
            let array = v.array()?;
            let texts = array.as_string_view();
            find.rows(|a, b| texts.value(a).cmp(texts.value(b)))
        }
    };
    picks?.of(arg)
}

/// What is looked for.
struct Find<'r> {
    valid: Option<&'r [bool]>,
    least: bool,
    grow: bool,
    frames: &'r Frames,
    shape: &'r Shape,
}

impl Find<'_> {
    /// The rows with the best values of frames, where the values of two rows compare like `compare`.
    fn rows(&self, compare: impl Fn(usize, usize) -> Ordering) -> Result<Picks> {
        if self.least {
            self.best(compare)
        } else {
            self.best(|a, b| compare(b, a))
        }
    }

    fn best(&self, order: impl Fn(usize, usize) -> Ordering) -> Result<Picks> {
        if self.grow || self.frames.have_holes() {
            let best = Best {
                order,
                valid: self.valid,
            };
            let found = over_frames(&best, self.frames, self.shape)?;
            return Ok(Picks::of_rows(found));
        }
        match self.valid {
            None => self.queued(order, |_| true),
            Some(valid) => self.queued(order, |row| valid[row]),
        }
    }

    /// A queue has the rows of the frame behind which no better one comes, so that the best is the first.
    fn queued(
        &self,
        order: impl Fn(usize, usize) -> Ordering,
        there: impl Fn(usize) -> bool,
    ) -> Result<Picks> {
        let mut picks = Picks::with_capacity(self.shape.rows);
        let mut queue: VecDeque<u32> = VecDeque::new();
        let mut next: usize = 0;
        self.shape.each_run(|rows| {
            for row in rows {
                let hull = self.frames.hull(row);
                // What an earlier frame has not had need not be looked at, if this one has it not either.
                next = next.max(hull.start);
                while next < hull.end {
                    if there(next) {
                        while queue
                            .pop_back_if(|last| order(*last as usize, next).is_ge())
                            .is_some()
                        {}
                        queue.push_back(next as u32);
                    }
                    next += 1;
                }
                while queue
                    .pop_front_if(|first| (*first as usize) < hull.start)
                    .is_some()
                {}
                let best = queue.front().map(|first| *first as usize);
                picks.push(best.filter(|best| *best < hull.end));
            }
        })?;
        Ok(picks)
    }
}
