//! Boxes of cells within rows of bytes: which runs they are, and copying them.

use array::Region;

/// Side of the square that a transposition works on at a time, in cells.
const TILE: usize = 32;

/// A read that covers gaps spans no more bytes than this.
const SPAN: u64 = 1 << 20;

/// The boxes of these lengths that cover a shape, in row-major order.
pub(crate) fn boxes(shape: &[u64], lengths: &[u64]) -> impl Iterator<Item = Region> {
    let (shape, lengths) = (shape.to_vec(), lengths.to_vec());
    let mut next = (!shape.contains(&0)).then(|| vec![0; shape.len()]);
    std::iter::from_fn(move || {
        let now = next.take()?;
        let ranges = now.iter().zip(&lengths).zip(&shape);
        let region = Region::new(ranges.map(|((&at, &by), &end)| (at, end.min(at + by))));
        let mut after = now.clone();
        for at in (0..after.len()).rev() {
            after[at] += lengths[at];
            if after[at] < shape[at] {
                next = Some(after);
                break;
            }
            after[at] = 0;
        }
        Some(region)
    })
}

/// The runs of the cells of `region` in an array of `shape` that lies in row-major order: calls `run` with the first
/// cell and the number of cells of each, in order. Neighbouring runs are joined.
pub(crate) fn each_run<E>(
    shape: &[u64],
    region: &Region,
    run: &mut dyn FnMut(u64, u64) -> Result<(), E>,
) -> Result<(), E> {
    if region.is_empty() {
        return Ok(());
    }
    level(shape, region.ranges(), (0, 0), &mut |span| {
        (span.cells == span.useful).then(|| run(span.first, span.cells))
    })
}

/// The box from some dimension on.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Which dimension.
    from: usize,
    /// Its first cell.
    first: u64,
    /// The cells from its first to its last.
    cells: u64,
    /// How many of these are its own.
    useful: u64,
}

/// Offers the box from dimension `from` on, and where it is not taken (`None`) its parts along that dimension. A single
/// cell must be taken.
fn level<E>(
    shape: &[u64],
    ranges: &[(u64, u64)],
    (from, origin): (usize, u64),
    take: &mut dyn FnMut(Span) -> Option<Result<(), E>>,
) -> Result<(), E> {
    let mut span = Span {
        from,
        first: origin,
        cells: 1,
        useful: 1,
    };
    let (mut stride, mut inner) = (1, 1);
    for (&length, &(start, end)) in shape[from..].iter().zip(&ranges[from..]).rev() {
        span.first += start * stride;
        span.cells += (end - start - 1) * stride;
        span.useful *= end - start;
        inner = stride;
        stride *= length;
    }
    if let Some(taken) = take(span) {
        return taken;
    }
    for at in ranges[from].0..ranges[from].1 {
        level(shape, ranges, (from + 1, origin + at * inner), take)?;
    }
    Ok(())
}

/// Reads bytes at an offset.
pub(crate) type Fetch<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;

/// Reads the cells of `region` of an array of `shape`, in row-major order, `width` bytes each, into `into`. `fetch` reads
/// bytes at an offset from the array's first. Small pieces with small gaps between them are read in one go.
pub(crate) fn read_box<E>(
    shape: &[u64],
    region: &Region,
    width: usize,
    into: &mut [u8],
    fetch: &mut Fetch<'_, E>,
) -> Result<(), E> {
    if region.is_empty() {
        return Ok(());
    }
    let (mut done, mut scratch) = (0, Vec::new());
    let bytes = |cells: u64| cells as usize * width;
    level(shape, region.ranges(), (0, 0), &mut |span: Span| {
        let target = done..done + bytes(span.useful);
        let offset = span.first * width as u64;
        if span.cells == span.useful {
            done = target.end;
            return Some(fetch(offset, &mut into[target]));
        }
        if span.cells > SPAN / width as u64 || span.useful * 4 < span.cells {
            return None;
        }
        scratch.resize(bytes(span.cells), 0);
        if let Err(error) = fetch(offset, &mut scratch) {
            return Some(Err(error));
        }
        let part = Region::new((span.from..shape.len()).map(|at| (0, region.length(at))));
        Some(each_run(&shape[span.from..], &part, &mut |first, cells| {
            let run = &scratch[bytes(first)..][..bytes(cells)];
            into[done..][..run.len()].copy_from_slice(run);
            done += run.len();
            Ok(())
        }))
    })
}

/// Copies what two boxes have in common; both lie in row-major order, `width` bytes for each cell.
pub(crate) fn copy_common(
    width: usize,
    (from, source): (&Region, &[u8]),
    (to, target): (&Region, &mut [u8]),
) {
    let common = from.intersection(to);
    let relative = |of: &Region| {
        let ranges = common.ranges().iter().zip(of.ranges());
        Region::new(ranges.map(|(a, b)| (a.0 - b.0, a.1 - b.0)))
    };
    if common.is_empty() {
        return;
    }
    // A run of the common box along its last dimensions, as far as it is one in both.
    let mut runs = Vec::new();
    collect(&from.shape(), &relative(from), &mut runs);
    let mut at = 0;
    let mut used = 0;
    let copied: Result<(), ()> = each_run(&to.shape(), &relative(to), &mut |first, cells| {
        let (mut first, mut left) = (first, cells);
        while left > 0 {
            let (start, length): (u64, u64) = runs[at];
            let piece = left.min(length - used);
            let read = (start + used) as usize * width..(start + used + piece) as usize * width;
            target[first as usize * width..][..read.len()].copy_from_slice(&source[read]);
            (first, left, used) = (first + piece, left - piece, used + piece);
            if used == length {
                (at, used) = (at + 1, 0);
            }
        }
        Ok(())
    });
    debug_assert!(copied.is_ok(), "copying does not fail");
}

fn collect(shape: &[u64], region: &Region, runs: &mut Vec<(u64, u64)>) {
    let all: Result<(), ()> = each_run(shape, region, &mut |first, cells| {
        runs.push((first, cells));
        Ok(())
    });
    debug_assert!(all.is_ok(), "collecting does not fail");
}

/// Brings cells into row-major order of `lengths`: the cell after one along dimension *k* lies `strides[k]` cells behind
/// it in `source`.
///
/// # Panics
/// If a cell lies outside of `source`, or `target` has not the length of all cells.
pub(crate) fn gather(
    width: usize,
    lengths: &[usize],
    strides: &[usize],
    source: &[u8],
    target: &mut [u8],
) {
    match width {
        1 => tiles::<1>(lengths, strides, source, target),
        2 => tiles::<2>(lengths, strides, source, target),
        4 => tiles::<4>(lengths, strides, source, target),
        _ => tiles::<8>(lengths, strides, source, target),
    }
}

fn tiles<const W: usize>(lengths: &[usize], strides: &[usize], source: &[u8], target: &mut [u8]) {
    let cells: usize = lengths.iter().product();
    assert_eq!(target.len(), cells * W, "as many bytes as cells need");
    let Some(last) = lengths.len().checked_sub(1) else {
        return target.copy_from_slice(&source[..W]);
    };
    if cells == 0 {
        return;
    }
    // The dimension along which the source is read without jumps, besides the last, along which the target is written.
    let near = (0..last).min_by_key(|&at| strides[at]).unwrap_or(last);
    let mut steps = vec![1; lengths.len()];
    for at in (0..last).rev() {
        steps[at] = steps[at + 1] * lengths[at + 1];
    }
    let outer: Vec<usize> = (0..last).filter(|&at| at != near).collect();
    let rows = if near == last { 1 } else { lengths[near] };
    let (row_step, row_stride) = (steps[near], strides[near]);
    let mut position = vec![0; outer.len()];
    loop {
        let at = |by: &[usize]| {
            position
                .iter()
                .zip(&outer)
                .map(|(at, &of)| at * by[of])
                .sum()
        };
        let (from, to): (usize, usize) = (at(strides), at(&steps));
        for row_block in (0..rows).step_by(TILE) {
            for block in (0..lengths[last]).step_by(TILE) {
                for row in row_block..rows.min(row_block + TILE) {
                    let (from, to) = (from + row * row_stride, to + row * row_step);
                    for cell in block..lengths[last].min(block + TILE) {
                        let read = &source[(from + cell * strides[last]) * W..][..W];
                        target[(to + cell) * W..][..W].copy_from_slice(read);
                    }
                }
            }
        }
        let advanced = (0..outer.len()).rev().find(|&at| {
            position[at] += 1;
            let more = position[at] < lengths[outer[at]];
            if !more {
                position[at] = 0;
            }
            more
        });
        if advanced.is_none() {
            return;
        }
    }
}

/// Turns the bytes of each value around.
pub(crate) fn swap(width: usize, bytes: &mut [u8]) {
    if width > 1 {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
}

/// The values of a chunk in row-major order; `order` is that of the dimensions as they lie in it, `width` the bytes of a
/// value.
pub(crate) fn turned(values: Vec<u8>, chunk: &[u64], order: &[usize], width: usize) -> Vec<u8> {
    if order.iter().enumerate().all(|(at, &of)| at == of) {
        return values;
    }
    let lengths: Vec<usize> = chunk.iter().map(|&of| of as usize).collect();
    let mut strides = vec![0; lengths.len()];
    let mut stride = 1;
    for &at in order.iter().rev() {
        strides[at] = stride;
        stride *= lengths[at];
    }
    let mut turned = vec![0; values.len()];
    gather(width, &lengths, &strides, &values, &mut turned);
    turned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All positions of a box.
    fn positions(region: &Region) -> Vec<Vec<u64>> {
        let mut all = vec![vec![]];
        for &(start, end) in region.ranges() {
            all = all
                .iter()
                .flat_map(|of: &Vec<u64>| (start..end).map(move |at| [&of[..], &[at]].concat()))
                .collect();
        }
        all
    }

    fn number(shape: &[u64], position: &[u64]) -> u64 {
        shape
            .iter()
            .zip(position)
            .fold(0, |sum, (length, at)| sum * length + at)
    }

    /// A shape and two boxes in it.
    fn boxes() -> impl Strategy<Value = (Vec<u64>, Region, Region)> {
        let axis = (1..6u64).prop_flat_map(|length| {
            let range = (0..length, 0..length).prop_map(|(a, b)| (a.min(b), a.max(b) + 1));
            (Just(length), range.clone(), range)
        });
        prop::collection::vec(axis, 1..5).prop_map(|axes| {
            let shape = axes.iter().map(|of| of.0).collect();
            let one = Region::new(axes.iter().map(|of| of.1));
            (shape, one, Region::new(axes.iter().map(|of| of.2)))
        })
    }

    proptest! {
        #[test]
        fn a_box_is_read_and_copied_cell_by_cell((shape, one, other) in boxes()) {
            let all: Vec<u8> = (0..shape.iter().product::<u64>() as u16).flat_map(u16::to_le_bytes).collect();
            let expected = |region: &Region| -> Vec<u8> {
                let cells = positions(region).into_iter().map(|at| number(&shape, &at) as u16);
                cells.flat_map(u16::to_le_bytes).collect()
            };
            let mut read = vec![0; expected(&one).len()];
            let mut reads = 0;
            read_box::<()>(&shape, &one, 2, &mut read, &mut |offset, into| {
                reads += 1;
                let length = into.len();
                into.copy_from_slice(&all[offset as usize..][..length]);
                Ok(())
            }).unwrap();
            prop_assert_eq!(&read, &expected(&one));
            prop_assert!(reads <= positions(&one).len());
            let mut target = vec![0xff; expected(&other).len()];
            copy_common(2, (&one, &read), (&other, &mut target));
            for (at, position) in positions(&other).iter().enumerate() {
                let cell = Region::new(position.iter().map(|&at| (at, at + 1)));
                let value = if one.contains(&cell) { number(&shape, position) as u16 } else { 0xffff };
                prop_assert_eq!(&target[at * 2..][..2], &value.to_le_bytes());
            }
        }

        #[test]
        fn any_order_of_dimensions_is_brought_into_rows(
            (lengths, order) in prop::collection::vec(1..40usize, 1..4).prop_flat_map(|lengths| {
                let order = Just((0..lengths.len()).collect::<Vec<_>>()).prop_shuffle();
                (Just(lengths), order)
            }),
        ) {
            // `order` lists the dimensions as they lie, the outermost first.
            let mut strides = vec![0; lengths.len()];
            let mut stride = 1;
            for &at in order.iter().rev() {
                strides[at] = stride;
                stride *= lengths[at];
            }
            let source: Vec<u8> = (0..stride as u32).flat_map(u32::to_le_bytes).collect();
            let mut target = vec![0; source.len()];
            gather(4, &lengths, &strides, &source, &mut target);
            let whole = Region::new(lengths.iter().map(|&length| (0, length as u64)));
            for (at, position) in positions(&whole).iter().enumerate() {
                let from: usize = position.iter().zip(&strides).map(|(&at, by)| at as usize * by).sum();
                prop_assert_eq!(&target[at * 4..][..4], &(from as u32).to_le_bytes());
            }
        }
    }
}
