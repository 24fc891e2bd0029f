//! Pages of which few rows are wanted, as where an index has told them: only these rows are read.

use crate::error::Result;
use crate::scan::chunk::PinnedChunk;
use crate::scan::mask::{Mask, set_bits};

/// If less than 1/512 of the rows of a page are wanted, they are tested one by one; otherwise the kernel tests the whole page, which
/// takes far less time for each row. With 1/32, Q19 of TPC-H took 1.49 times as long as without this; with 1/512 it takes as long.
const FEW: usize = 512;

/// Marks those `wanted` rows of page `index` whose stored numbers pass, if they are [few](FEW), and returns how many
/// there are; otherwise does nothing and returns `None`.
pub(super) fn by_rows(
    (chunk, index): (&PinnedChunk<'_>, usize),
    wanted: &Mask,
    hits: &mut Mask,
    passes: impl Fn(i128) -> bool,
) -> Result<Option<usize>> {
    let (rows, width) = (chunk.page_rows(index), chunk.matrix.width());
    let own = wanted.words(rows.clone());
    let count: usize = own.iter().map(|word| word.count_ones() as usize).sum();
    if count * FEW >= rows.len() || width == 0 {
        return Ok(None);
    }
    let (pin, base) = (chunk.page(index)?, chunk.base(index));
    let short = || chunk.damaged(chunk.matrix.pages[index].id, "is too short for its rows");
    for row in set_bits(own) {
        let bytes = pin.get(row * width..(row + 1) * width).ok_or_else(short)?;
        // Numbers of 64 bits have a sign, narrower ones are distances from the base.
        let value = match *bytes {
            [a] => i128::from(a),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            _ if width == 8 => i64::from_le_bytes(*bytes.first_chunk().ok_or_else(short)?).into(),
            _ => i128::from_le_bytes(*bytes.first_chunk().ok_or_else(short)?),
        };
        if passes(base + value) {
            hits.set(rows.start + row, true);
        }
    }
    Ok(Some(count))
}
