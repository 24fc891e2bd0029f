//! Summaries of frames that values cannot be taken away from: sums of floats, which would lose digits, deviations, and
//! extremes of frames with holes.

use std::cmp::Ordering;
use std::ops::Range;

use crate::cancel::Stop;
use crate::error::Result;
use crate::operators::window::frames::Frames;
use crate::operators::window::shape::{Shape, each_block};

/// How rows are summed up, one after the other or by parts.
pub(super) trait Summary {
    /// What is known of some rows.
    type State: Copy;

    /// That of no rows.
    fn none(&self) -> Self::State;

    /// Adds a row behind the others.
    fn add(&self, state: &mut Self::State, row: usize);

    /// Adds the rows of `later`, which come behind the others.
    fn merge(&self, state: &mut Self::State, later: &Self::State);
}

/// Most rows of a frame that are summed up anew, one after the other: so the digits are those of PostgreSQL, which does
/// this with all frames that leave rows behind.
const SHORT: usize = 256;

/// The summaries of all frames, in the order of rows. A frame that only grows from one row to the next goes on from
/// there; one that is short, or has no row that was summed up before, is summed up anew; and another is put together from
/// the parts of a [`Tree`].
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(super) fn over_frames<S: Summary>(
    summary: &S,
    frames: &Frames,
    shape: &Shape,
) -> Result<Vec<S::State>> {
    let mut out = Vec::with_capacity(shape.rows);
    let mut tree: Option<Tree<S::State>> = None;
    let mut failed = Ok(());
    // The last long frame, which that of a peer is again.
    let mut last: Option<(Range<usize>, S::State)> = None;
    // The rows that are summed up in `state`.
    let (mut held, mut state) = (0..0, summary.none());
    shape.each_run(|rows| {
        for row in rows {
            let hull = frames.hull(row);
            let grows = held.start == hull.start && held.end <= hull.end;
            let is_short = hull.len() <= SHORT;
            if let Some((_, state)) = last.as_ref().filter(|(same, _)| *same == hull) {
                out.push(*state);
                continue;
            }
            let is_new = held.end <= hull.start;
            if frames.have_holes() || !(grows || is_short || is_new) {
                let pieces = frames.pieces(row);
                let mut own = summary.none();
                if is_short {
                    add_rows(summary, &mut own, pieces.into_iter().flatten());
                } else {
                    if tree.is_none() && failed.is_ok() {
                        match Tree::of(summary, shape.rows, &shape.stop) {
                            Ok(made) => tree = Some(made),
                            Err(e) => failed = Err(e),
                        }
                    }
                    if let Some(tree) = &tree {
                        for piece in pieces {
                            tree.add(summary, &mut own, piece);
                        }
                    }
                    last = (!frames.have_holes()).then_some((hull, own));
                }
                out.push(own);
                continue;
            }
            if !grows {
                (held, state) = (hull.start..hull.start, summary.none());
            }
            add_rows(summary, &mut state, held.end..hull.end);
            held = hull;
            out.push(state);
        }
    })?;
    failed?;
    Ok(out)
}

fn add_rows<S: Summary>(summary: &S, state: &mut S::State, rows: impl Iterator<Item = usize>) {
    rows.for_each(|row| summary.add(state, row));
}

/// Children of a node.
const FAN: usize = 16;

/// Levels that are enough for all rows that there can be.
const LEVELS: usize = 16;

/// Summaries of runs of rows: of 16 each, of 16 such runs each, and so on. Those of any rows are put together from a few.
struct Tree<T> {
    levels: Vec<Vec<T>>,
}

impl<T: Copy> Tree<T> {
    fn of<S: Summary<State = T>>(summary: &S, rows: usize, stop: &Stop) -> Result<Tree<T>> {
        let mut levels: Vec<Vec<T>> = Vec::new();
        let mut first = Vec::with_capacity(rows.div_ceil(FAN));
        // Blocks are of whole runs.
        each_block(0..rows, stop, |block| {
            for from in block.clone().step_by(FAN) {
                let mut state = summary.none();
                add_rows(summary, &mut state, from..block.end.min(from + FAN));
                first.push(state);
            }
        })?;
        let mut last = first;
        while last.len() > 1 {
            stop.check()?;
            let next = last.chunks(FAN).map(|nodes| {
                let mut state = summary.none();
                nodes
                    .iter()
                    .for_each(|node| summary.merge(&mut state, node));
                state
            });
            let next = next.collect();
            levels.push(std::mem::replace(&mut last, next));
        }
        levels.push(last);
        Ok(Tree { levels })
    }

    /// Adds `rows` to `state`.
    fn add<S: Summary<State = T>>(&self, summary: &S, state: &mut T, rows: Range<usize>) {
        // What is left on the right of each level.
        let mut right = [(0, 0); LEVELS];
        let (mut from, mut to) = (rows.start, rows.end);
        let mut level = 0;
        loop {
            let (up, until) = (from.div_ceil(FAN), to / FAN);
            if up >= until || level == self.levels.len() || level + 1 == LEVELS {
                self.add_nodes(summary, state, level, from..to);
                break;
            }
            self.add_nodes(summary, state, level, from..up * FAN);
            right[level] = (until * FAN, to);
            (from, to) = (up, until);
            level += 1;
        }
        for level in (0..level).rev() {
            let (from, to) = right[level];
            self.add_nodes(summary, state, level, from..to);
        }
    }

    /// Adds nodes of a level, of which the lowest are the rows themselves.
    fn add_nodes<S: Summary<State = T>>(
        &self,
        summary: &S,
        state: &mut T,
        level: usize,
        nodes: Range<usize>,
    ) {
        match level.checked_sub(1).map(|level| &self.levels[level]) {
            None => add_rows(summary, state, nodes),
            Some(level) => {
                let nodes = &level[nodes.start..nodes.end.max(nodes.start)];
                nodes.iter().for_each(|node| summary.merge(state, node));
            }
        }
    }
}

/// The sum of floats; that of none is the zero that adds nothing to any number.
pub(super) struct FloatSums<'v> {
    pub values: &'v [f64],
    pub valid: Option<&'v [bool]>,
    pub none: f64,
}

impl Summary for FloatSums<'_> {
    type State = f64;

    fn none(&self) -> f64 {
        self.none
    }

    #[inline]
    fn add(&self, state: &mut f64, row: usize) {
        if self.valid.is_none_or(|valid| valid[row]) {
            *state += self.values[row];
        }
    }

    fn merge(&self, state: &mut f64, later: &f64) {
        *state += later;
    }
}

/// The number of floats, their mean, and the sum of the squares of their differences from it.
pub(super) struct Deviations<'v> {
    pub values: &'v [f64],
    pub valid: Option<&'v [bool]>,
}

/// A summary of floats.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deviation {
    pub count: i64,
    pub mean: f64,
    pub squares: f64,
}

impl Summary for Deviations<'_> {
    type State = Deviation;

    fn none(&self) -> Deviation {
        Deviation::default()
    }

    #[inline]
    fn add(&self, state: &mut Deviation, row: usize) {
        if self.valid.is_none_or(|valid| valid[row]) {
            let value = self.values[row];
            let before = value - state.mean;
            state.count += 1;
            state.mean += before / state.count as f64;
            state.squares += before * (value - state.mean);
        }
    }

    fn merge(&self, state: &mut Deviation, later: &Deviation) {
        if later.count == 0 {
            return;
        }
        if state.count == 0 {
            *state = *later;
            return;
        }
        let (own, theirs) = (state.count as f64, later.count as f64);
        let apart = later.mean - state.mean;
        state.count += later.count;
        state.mean += apart * (theirs / (own + theirs));
        state.squares += later.squares + apart * apart * own * theirs / (own + theirs);
    }
}

/// The row with the best value, of which the last is taken.
pub(super) struct Best<'v, F> {
    /// How the values of two rows compare: less if that of the first is better.
    pub order: F,
    pub valid: Option<&'v [bool]>,
}

impl<F: Fn(usize, usize) -> Ordering> Summary for Best<'_, F> {
    type State = Option<u32>;

    fn none(&self) -> Option<u32> {
        None
    }

    #[inline]
    fn add(&self, state: &mut Option<u32>, row: usize) {
        if self.valid.is_none_or(|valid| valid[row]) {
            self.merge(state, &Some(row as u32));
        }
    }

    fn merge(&self, state: &mut Option<u32>, later: &Option<u32>) {
        *state = match (*state, *later) {
            (Some(own), Some(later)) if (self.order)(own as usize, later as usize).is_lt() => {
                Some(own)
            }
            (own, later) => later.or(own),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as numbers from 1, in the order in which they are added.
    struct Listed;

    impl Summary for Listed {
        type State = (u64, usize);

        fn none(&self) -> (u64, usize) {
            (0, 0)
        }

        fn add(&self, state: &mut (u64, usize), row: usize) {
            self.merge(state, &(row as u64 + 1, 1));
        }

        fn merge(&self, state: &mut (u64, usize), later: &(u64, usize)) {
            for _ in 0..later.1 {
                state.0 = state.0.wrapping_mul(31);
            }
            *state = (state.0.wrapping_add(later.0), state.1 + later.1);
        }
    }

    #[test]
    fn any_rows_are_put_together_in_their_order() {
        for rows in [0, 1, 15, 16, 17, 255, 256, 257, 5_000] {
            let tree = Tree::of(&Listed, rows, &Stop::default()).unwrap();
            let mut random = rows;
            for _ in 0..200 {
                random = (random * 1_103_515_245 + 12_345) % (1 << 31);
                let from = random % (rows + 1);
                let to = from + (random >> 8) % (rows - from + 1);
                let (mut own, mut wanted) = (Listed.none(), Listed.none());
                tree.add(&Listed, &mut own, from..to);
                (from..to).for_each(|row| Listed.add(&mut wanted, row));
                assert_eq!(own, wanted, "{from}..{to} of {rows}");
            }
        }
    }

    #[test]
    fn the_last_of_the_best_is_taken() {
        let values = [3, 1, 2, 1, 5];
        let best = Best {
            order: |a: usize, b: usize| i32::cmp(&values[a], &values[b]),
            valid: Some(&[true, true, true, true, false]),
        };
        let mut state = best.none();
        (0..5).for_each(|row| best.add(&mut state, row));
        assert_eq!(state, Some(3));
    }
}
