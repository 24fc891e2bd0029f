//! Functions that pick the value of another row.

use std::ops::Range;

use crate::error::Result;
use crate::expr::Literal;
use crate::expr::eval::repeat;
use crate::logical::window::FrameRow;
use crate::operators::window::frames::{Frames, Pieces};
use crate::operators::window::shape::{Shape, each_block};
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

    /// These picks.
    pub fn of_rows(rows: Vec<Option<u32>>) -> Picks {
        Picks {
            there: rows.iter().map(Option::is_some).collect(),
            rows: rows.into_iter().map(Option::unwrap_or_default).collect(),
        }
    }

    /// Adds the pick of the next row.
    #[inline]
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

/// The rows whose value is not NULL.
struct Present {
    /// Their places, ascending.
    places: Vec<u32>,
    /// For each row how many of them are before it, and at last how many there are.
    before: Vec<u32>,
}

impl Present {
    /// Those of a vector that has NULLs.
    fn of(valid: &[bool], shape: &Shape) -> Result<Present> {
        let mut places = Vec::new();
        let mut before = Vec::with_capacity(valid.len() + 1);
        before.push(0);
        each_block(0..valid.len(), &shape.stop, |rows| {
            for row in rows {
                if valid[row] {
                    places.push(row as u32);
                }
                before.push(places.len() as u32);
            }
        })?;
        Ok(Present { places, before })
    }

    /// The numbers of those among `rows`.
    fn among(&self, rows: Range<usize>) -> Range<usize> {
        self.before[rows.start] as usize..self.before[rows.end] as usize
    }

    fn place(&self, number: usize) -> usize {
        self.places[number] as usize
    }
}

/// For each row the value of that row of its frame; those whose value is NULL are passed over if `ignore_nulls`.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled); those of [`Vector::at`].
pub(super) fn picked(
    vector: &Vector,
    wanted: FrameRow,
    ignore_nulls: bool,
    frames: &Frames,
    shape: &Shape,
) -> Result<Vector> {
    let present = match &vector.valid {
        Some(valid) if ignore_nulls => Some(Present::of(valid, shape)?),
        _ => None,
    };
    let mut picks = Picks::with_capacity(shape.rows);
    each_block(0..shape.rows, &shape.stop, |rows| {
        for row in rows {
            let pieces = frames.pieces(row);
            picks.push(match &present {
                None => of_pieces(pieces, wanted),
                Some(present) => {
                    let pieces = pieces.map(|piece| present.among(piece));
                    of_pieces(pieces, wanted).map(|number| present.place(number))
                }
            });
        }
    })?;
    picks.of(vector)
}

/// A row of a frame.
#[inline]
fn of_pieces(pieces: Pieces, wanted: FrameRow) -> Option<usize> {
    match wanted {
        FrameRow::First => pieces.into_iter().flatten().next(),
        FrameRow::Last => pieces.into_iter().flatten().next_back(),
        FrameRow::Nth(nth) => {
            let mut skipped = usize::try_from(nth.checked_sub(1)?).ok()?;
            for mut piece in pieces {
                let rows = piece.len();
                if skipped < rows {
                    return piece.nth(skipped);
                }
                skipped -= rows;
            }
            None
        }
    }
}

/// `lag` by so many rows; `lead` if the number is negative.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled); those of [`Vector::at`] and [`Vector::runs`].
pub(super) fn shifted(
    vector: &Vector,
    kind: Kind,
    by: i64,
    (default, ignore_nulls): (&Literal, bool),
    shape: &Shape,
) -> Result<Vector> {
    if let (Some(valid), true) = (&vector.valid, ignore_nulls) {
        return shifted_among(
            vector,
            &Present::of(valid, shape)?,
            kind,
            by,
            default,
            shape,
        );
    }
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    if *default == Literal::Null {
        let mut picks = Picks::with_capacity(shape.rows);
        for partition in shape.partitions() {
            let Range { start, end } = partition.rows;
            each_block(start..end, &shape.stop, |rows| {
                for row in rows {
                    let other = if by < 0 {
                        row.checked_add(distance)
                    } else {
                        row.checked_sub(distance)
                    };
                    picks.push(other.filter(|other| (start..end).contains(other)));
                }
            })?;
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
    shape.stop.check()?;
    Vector::runs(kind, &[vector, &repeat(default, kind, longest)?], &runs)
}

/// The same where only rows count whose value is not NULL. The row itself never counts.
fn shifted_among(
    vector: &Vector,
    present: &Present,
    kind: Kind,
    by: i64,
    default: &Literal,
    shape: &Shape,
) -> Result<Vector> {
    let further = usize::try_from(by.unsigned_abs().saturating_sub(1)).unwrap_or(usize::MAX);
    let mut picks = Picks::with_capacity(shape.rows);
    for partition in shape.partitions() {
        let all = present.among(partition.rows.clone());
        each_block(partition.rows, &shape.stop, |rows| {
            for row in rows {
                let number = if by < 0 {
                    (present.before[row + 1] as usize).checked_add(further)
                } else {
                    (present.before[row] as usize)
                        .checked_sub(1)
                        .and_then(|last| last.checked_sub(further))
                };
                let number = number.filter(|number| all.contains(number));
                picks.push(number.map(|number| present.place(number)));
            }
        })?;
    }
    if *default == Literal::Null {
        return picks.of(vector);
    }
    // The default is a part of its own, of one row.
    let runs = picks.rows.iter().zip(&picks.there);
    let runs: Vec<_> = runs
        .map(|(row, there)| match *row as usize {
            row if *there => (0, row..row + 1),
            _ => (1, 0..1),
        })
        .collect();
    Vector::runs(kind, &[vector, &repeat(default, kind, 1)?], &runs)
}
