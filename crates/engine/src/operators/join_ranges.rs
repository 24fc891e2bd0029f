//! Which of the rows with the same keys a probe of a join table looks at: those in a band, or the nearest one.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::Ordering;

use algebra::dot::NONE;

use crate::error::{Error, Result};
use crate::expr::eval::ints;
use crate::logical::relation::Key;
use crate::operators::join_index::{Index, PackedIndex};
use crate::operators::join_table::{JoinTable, ProbeState};
use crate::operators::ordered_rows::{OrderedRows, ordinals};
use crate::operators::sort::order_of;
use crate::physical::band::Band;
use crate::physical::nearest::{Nearest, holds};
use crate::vector::batch::Batch;
use crate::vector::value::{Type, Var, Vector};

impl JoinTable {
    /// The rows by their keys, in the order of `of` and then of `ties`; `None` if that is not a number, or another order is kept.
    fn ordered(&self, of: Var, ties: &[Key], types: &[Type]) -> Result<Option<&OrderedRows>> {
        let mut failed = None;
        let made = self.ordered.get_or_init(|| {
            let made = self.order(of, ties, types);
            made.unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(made.as_ref().filter(|made| made.is_by(of, ties))),
        }
    }

    fn order(&self, of: Var, ties: &[Key], types: &[Type]) -> Result<Option<OrderedRows>> {
        let column = self.column(of)?;
        let ranks = match ties {
            [] => None,
            ties => {
                let sorted = order_of(&self.columns, self.rows, types, ties, None)?;
                let mut ranks = vec![0u32; self.rows];
                for (rank, row) in (0..).zip(sorted) {
                    ranks[row as usize] = rank;
                }
                Some(ranks)
            }
        };
        let order = |groups: (&[u32], &[u32])| {
            OrderedRows::new((of, ties), column, groups, ranks.as_deref())
        };
        if let Index::All = &self.index {
            let rows: Vec<u32> = (0..self.rows as u32).collect();
            return Ok(order((&[0, self.rows as u32], &rows)));
        }
        Ok(self.grouped().and_then(order))
    }

    /// The rows by their keys, if it has keys and one of them has several rows: where those of each key begin, and the rows.
    fn grouped(&self) -> Option<(&[u32], &[u32])> {
        match &self.index {
            Index::KeyWords { hashed, .. }
            | Index::CompositeKey(_, PackedIndex::Hashed(hashed)) => hashed.grouped(),
            Index::CompositeKey(_, PackedIndex::Ranked(ranked)) => ranked.grouped(),
            Index::CompositeKey(_, PackedIndex::Direct(_)) | Index::All => None,
        }
    }

    /// Whether a band is worth to put the rows in order for what a probe has found: without keys; or where keys have many rows each,
    /// once as many pairs have been tried as there are rows.
    fn needs_order(&self, probe_state: &ProbeState) -> bool {
        /// Of so few rows each may be tried.
        const FEW_ROWS: usize = 4;
        if self.unique || self.rows <= FEW_ROWS {
            return false;
        }
        if let Index::All = self.index {
            return true;
        }
        let Some((starts, rows)) = self.grouped() else {
            return false;
        };
        if rows.len() / (starts.len() - 1).max(1) < FEW_ROWS {
            return false;
        }
        if self.ordered.get().is_some() {
            return true;
        }
        let groups = self.any(probe_state).iter().filter(|group| **group != NONE);
        let matches = |group: &u32| starts[*group as usize + 1] - starts[*group as usize];
        let pairs: u64 = groups.map(|group| u64::from(matches(group))).sum();
        let before = self.tried.fetch_add(pairs, Ordering::Relaxed);
        before.saturating_add(pairs) > rows.len() as u64
    }

    /// After [`find`](JoinTable::find): leaves only the rows of a band to the rows of `batch`.
    pub fn within(
        &self,
        batch: &Batch,
        band: &Band,
        types: &[Type],
        probe_state: &mut ProbeState,
    ) -> Result<()> {
        if !self.needs_order(probe_state) {
            return Ok(());
        }
        let Some(ordered) = self.ordered(band.of, &[], types)? else {
            return Ok(());
        };
        let mut within = ordered.runs(self.any(probe_state));
        if let Some((var, plus)) = band.low {
            let ends = [i64::MIN, i64::MAX];
            each_end(batch.get(var)?, plus, ends, &mut within, |run, low| {
                let values = &ordered.values()[run.clone()];
                run.start += values.partition_point(|value| *value < low);
            })?;
        }
        if let Some((other, (var, plus))) = band.reaching
            && let Some(most) = self.most_over(band.of, other)?
            // Of what is so wide the difference may be more than that.
            && most < i64::MAX
        {
            let ends = [i64::MIN, i64::MAX];
            each_end(batch.get(var)?, plus, ends, &mut within, |run, low| {
                let values = &ordered.values()[run.clone()];
                let low = low.saturating_sub(most);
                run.start += values.partition_point(|value| *value < low);
            })?;
        }
        if let Some((var, plus)) = band.high {
            let ends = [-i64::MAX, i64::MAX];
            each_end(batch.get(var)?, plus, ends, &mut within, |run, high| {
                let values = &ordered.values()[run.clone()];
                run.end = run.start + values.partition_point(|value| *value <= high);
            })?;
        }
        probe_state.within = Some(within);
        Ok(())
    }

    /// How much greater the numbers of `other` are than those of `of` in any row; `None` if that of two other vectors is known.
    fn most_over(&self, of: Var, other: Var) -> Result<Option<i64>> {
        let (low, high) = (self.column(of)?, self.column(other)?);
        let (lows, highs) = (ints(low)?, ints(high)?);
        let is_there = |row: usize| {
            let mut both = [low, high].into_iter();
            both.all(|vector| vector.valid.as_ref().is_none_or(|valid| valid[row]))
        };
        let (both, most) = *self.most_over.get_or_init(|| {
            let rows = (0..self.rows).filter(|row| is_there(*row));
            let over = rows.map(|row| highs[row].saturating_sub(lows[row]));
            ((of, other), over.max().unwrap_or(i64::MIN))
        });
        Ok((both == (of, other)).then_some(most))
    }

    /// After [`find`](JoinTable::find): leaves only the nearest row to each row of `batch`, which [`one`](JoinTable::one) gives.
    ///
    /// # Errors
    /// An internal error if one of the vectors is no number.
    pub fn nearest(
        &self,
        batch: &Batch,
        nearest: &Nearest,
        types: &[Type],
        probe_state: &mut ProbeState,
    ) -> Result<()> {
        let numbers = Numbers::of(batch.get(nearest.at)?)?;
        let column = Numbers::of(self.column(nearest.of)?)?;
        let mut found = Vec::with_capacity(batch.rows);
        if self.unique {
            found.append(&mut probe_state.first);
            for (row, found) in found
                .iter_mut()
                .enumerate()
                .filter(|(_, row)| **row != NONE)
            {
                let both = column.at(*found as usize).zip(numbers.at(row));
                if !both.is_some_and(|(of, at)| holds(nearest.op, of, at)) {
                    *found = NONE;
                }
            }
        } else {
            let ordered = self.ordered(nearest.of, &nearest.ties, types)?;
            let ordered = ordered.ok_or_else(no_number)?;
            let runs = ordered.runs(self.any(probe_state)).into_iter().enumerate();
            let nearest = |(row, run): (usize, Range<usize>)| {
                let place = nearest.place(&ordered.values()[run.clone()], numbers.at(row)?)?;
                Some(ordered.rows()[run.start + place])
            };
            found.extend(runs.map(|run| nearest(run).unwrap_or(NONE)));
        }
        for (op, var) in &nearest.bounds {
            let bounds = Numbers::of(batch.get(*var)?)?;
            for (row, found) in found
                .iter_mut()
                .enumerate()
                .filter(|(_, row)| **row != NONE)
            {
                let both = column.at(*found as usize).zip(bounds.at(row));
                if !both.is_some_and(|(of, bound)| holds(*op, of, bound)) {
                    *found = NONE;
                }
            }
        }
        probe_state.first = found;
        probe_state.single = true;
        Ok(())
    }
}

fn no_number() -> Error {
    Error::internal("the nearest row by what is no number")
}

/// Numbers that may be NULL, as whole ones that compare as they do.
struct Numbers<'v> {
    values: Cow<'v, [i64]>,
    valid: Option<&'v [bool]>,
}

impl Numbers<'_> {
    fn of(vector: &Vector) -> Result<Numbers<'_>> {
        Ok(Numbers {
            values: ordinals(vector).ok_or_else(no_number)?,
            valid: vector.valid.as_deref(),
        })
    }

    fn at(&self, row: usize) -> Option<i64> {
        let is_there = self.valid.is_none_or(|valid| valid[row]);
        is_there.then(|| self.values[row])
    }
}

/// Gives `end` the runs of rows with the sums of their numbers and `plus`; where the number is NULL the run is empty. What is infinite,
/// if something is added at all, is one of `infinite`, the past and the future.
fn each_end(
    numbers: &Vector,
    plus: i64,
    infinite: [i64; 2],
    within: &mut [Range<usize>],
    end: impl Fn(&mut Range<usize>, i64),
) -> Result<()> {
    let valid = numbers.valid.as_deref();
    for (row, (run, number)) in within.iter_mut().zip(ints(numbers)?).enumerate() {
        if run.start >= run.end || valid.is_some_and(|valid| !valid[row]) {
            run.end = run.start;
        } else {
            end(
                run,
                match *number {
                    i64::MAX if plus != 0 => infinite[1],
                    past if plus != 0 && past <= -i64::MAX => infinite[0],
                    // Beyond all numbers there is none, and the last one is tested again.
                    number => number.saturating_add(plus),
                },
            );
        }
    }
    Ok(())
}
