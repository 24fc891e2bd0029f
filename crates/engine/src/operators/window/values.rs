//! Functions that pick the value of another row.

use std::ops::Range;

use crate::error::Result;
use crate::expr::Literal;
use crate::expr::eval::repeat;
use crate::logical::relation::FrameBounds;
use crate::operators::window::shape::Shape;
use crate::vector::value::{Kind, Vector};

/// The rows whose values are picked, one for each row; none for NULL.
pub(super) struct Picks {
    rows: Vec<u32>,
    there: Vec<bool>,
}

impl Picks {
    /// With room for the picks of so many rows.
    pub fn with_capacity(rows: usize) -> Picks {
        Picks {
            rows: Vec::with_capacity(rows),
            there: Vec::with_capacity(rows),
        }
    }

    /// Adds the pick of the next row.
    pub fn push(&mut self, row: Option<usize>) {
        self.rows.push(row.unwrap_or(0) as u32);
        self.there.push(row.is_some());
    }

    /// Their values in `vector`.
    ///
    /// # Errors
    /// Those of [`Vector::at`].
    pub fn of(self, vector: &Vector) -> Result<Vector> {
        let mut picked = vector.at(&self.rows)?;
        if self.there.contains(&false) {
            let valid = match &picked.valid {
                None => self.there,
                Some(valid) => {
                    let both = valid.iter().zip(&self.there);
                    both.map(|(valid, there)| *valid && *there).collect()
                }
            };
            picked.valid = Some(valid);
        }
        Ok(picked)
    }
}

/// For each row the value of that row of its frame which `pick` chooses.
///
/// # Errors
/// Those of [`Vector::at`].
pub(super) fn picked(
    vector: &Vector,
    frame: FrameBounds,
    shape: &Shape,
    pick: impl Fn(&mut Range<usize>) -> Option<usize>,
) -> Result<Vector> {
    let mut picks = Picks::with_capacity(shape.rows);
    for partition in shape.partitions() {
        for mut rows in partition.frames(frame) {
            picks.push(pick(&mut rows));
        }
    }
    picks.of(vector)
}

/// `lag` by so many rows; `lead` if the number is negative.
///
/// # Errors
/// Those of [`Vector::at`] and [`Vector::runs`].
pub(super) fn shifted(
    vector: &Vector,
    kind: Kind,
    by: i64,
    default: &Literal,
    shape: &Shape,
) -> Result<Vector> {
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    if *default == Literal::Null {
        let mut picks = Picks::with_capacity(shape.rows);
        for partition in shape.partitions() {
            let Range { start, end } = partition.rows;
            for row in start..end {
                let other = if by < 0 {
                    row.checked_add(distance)
                } else {
                    row.checked_sub(distance)
                };
                picks.push(other.filter(|other| (start..end).contains(other)));
            }
        }
        return picks.of(vector);
    }
    // Runs of the rows that there are, with the default (which is the second part) in the gaps.
    let mut runs = Vec::new();
    let mut longest = 0;
    for partition in shape.partitions() {
        let Range { start, end } = partition.rows;
        let gap = distance.min(end - start);
        longest = longest.max(gap);
        if by < 0 {
            runs.extend([(0, start + gap..end), (1, 0..gap)]);
        } else {
            runs.extend([(1, 0..gap), (0, start..end - gap)]);
        }
    }
    runs.retain(|(_, run)| !run.is_empty());
    Vector::runs(kind, &[vector, &repeat(default, kind, longest)?], &runs)
}
