//! The least and the greatest value of frames.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::error::Result;
use crate::logical::relation::FrameBounds;
use crate::operators::window::cells::Cells;
use crate::operators::window::shape::Shape;
use crate::operators::window::values::Picks;
use crate::vector::value::{Type, Vector};

/// The least value of the frame of each row, or else the greatest; of equal ones the last.
///
/// A queue has the rows of the frame behind which no better one comes, so that the best is the first.
///
/// # Errors
/// Those of [`Cells::of`].
pub(super) fn extremes(
    arg: &Vector,
    ty: &Type,
    least: bool,
    frame: FrameBounds,
    shape: &Shape,
) -> Result<Vector> {
    let cells = Cells::of(arg, ty)?;
    let stays = if least {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    let mut picks = Picks::with_capacity(shape.rows);
    let mut queue: VecDeque<usize> = VecDeque::new();
    for partition in shape.partitions() {
        queue.clear();
        let mut next = partition.rows.start;
        for rows in partition.frames(frame) {
            for row in next..rows.end {
                if cells.is_valid(row) {
                    while queue
                        .pop_back_if(|last| cells.compare(*last, row) != stays)
                        .is_some()
                    {}
                    queue.push_back(row);
                }
            }
            next = next.max(rows.end);
            while queue.pop_front_if(|first| *first < rows.start).is_some() {}
            picks.push(queue.front().copied().filter(|_| !rows.is_empty()));
        }
    }
    drop(cells);
    picks.of(arg)
}
