//! Reading an array in another order of its dimensions, or the same cells again and again.

use crate::data::block::Block;
use crate::data::block::Column;
use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::error::Result;

/// Cells of a tile's side: of two dimensions that both are read with a step, lines of the caches are used as a whole.
const TILE: usize = 32;

/// The cells of `region`, each taken from where the steps lead in `block`: `steps` has for each dimension of the region
/// the cells of the block from one position to the next, 0 where it is the same cell.
///
/// # Errors
/// [`Error::TooLarge`](crate::Error::TooLarge).
///
/// # Panics
/// If the steps lead out of the block.
pub(crate) fn respread(block: &Block, region: &Region, steps: &[usize]) -> Result<Block> {
    let cells = region.cells("a result")?;
    let shape: Vec<usize> = region
        .shape()
        .iter()
        .map(|&length| length as usize)
        .collect();
    let mask = |bytes: &[u8]| {
        let mut out = vec![0; cells];
        spread(1, &shape, steps, bytes, &mut out);
        out
    };
    let column = |column: &Column| {
        let of = column.values().data_type();
        let mut values = Buffer::zeros(of, cells);
        spread(
            of.width(),
            &shape,
            steps,
            column.values().bytes(),
            values.bytes_mut(),
        );
        match column.valid() {
            None => Column::new(values),
            Some(valid) => Column::nullable(values, mask(valid)),
        }
    };
    let columns = block
        .columns()
        .iter()
        .map(|of| of.as_ref().map(column))
        .collect();
    let spread = Block::new(region.clone(), columns)?;
    Ok(match block.present() {
        None => spread,
        Some(present) => spread.with_present(mask(present)),
    })
}

/// The cells from each position to the next of a box in row-major order.
pub(crate) fn row_major(shape: &[u64]) -> Vec<usize> {
    let mut steps = vec![1; shape.len()];
    for at in (0..shape.len().saturating_sub(1)).rev() {
        steps[at] = steps[at + 1] * shape[at + 1] as usize;
    }
    steps
}

/// Writes `target`, of this shape and row-major, with the values at the steps in `source`.
fn spread(width: usize, shape: &[usize], steps: &[usize], source: &[u8], target: &mut [u8]) {
    match width {
        1 => spread_of::<1>(shape, steps, source, target),
        2 => spread_of::<2>(shape, steps, source, target),
        4 => spread_of::<4>(shape, steps, source, target),
        _ => spread_of::<8>(shape, steps, source, target),
    }
}

fn spread_of<const N: usize>(shape: &[usize], steps: &[usize], source: &[u8], target: &mut [u8]) {
    let (source, target) = (source.as_chunks::<N>().0, target.as_chunks_mut::<N>().0);
    if target.is_empty() {
        return;
    }
    let rank = shape.len();
    let Some(outer) = rank.checked_sub(2) else {
        return plane(&[1, shape[0]], &[0, steps[0]], source, target);
    };
    let (inner, inner_steps) = (&shape[outer..], &steps[outer..]);
    let mut position = vec![0; outer];
    for part in target.chunks_mut(inner[0] * inner[1]) {
        let start = position
            .iter()
            .zip(steps)
            .map(|(at, step)| at * step)
            .sum::<usize>();
        plane(inner, inner_steps, &source[start..], part);
        for at in (0..outer).rev() {
            position[at] += 1;
            if position[at] < shape[at] {
                break;
            }
            position[at] = 0;
        }
    }
}

/// The two innermost dimensions.
fn plane<T: Copy>(shape: &[usize], steps: &[usize], source: &[T], target: &mut [T]) {
    let (rows, row) = (shape[0], shape[1]);
    match steps[1] {
        1 => {
            for (at, target) in target.chunks_mut(row).enumerate() {
                target.copy_from_slice(&source[at * steps[0]..][..row]);
            }
        }
        0 => {
            for (at, target) in target.chunks_mut(row).enumerate() {
                target.fill(source[at * steps[0]]);
            }
        }
        step => {
            for first in (0..rows).step_by(TILE) {
                for start in (0..row).step_by(TILE) {
                    for at in first..rows.min(first + TILE) {
                        for column in start..row.min(start + TILE) {
                            target[at * row + column] = source[at * steps[0] + column * step];
                        }
                    }
                }
            }
        }
    }
}
