//! Indexes of chunks that are arrays: fixed ones, and extensible ones of data sets with one dimension without a limit.

use crate::hdf5::bytes::{Cursor, Parsed, checked, damaged};
use crate::hdf5::file::Hdf;
use crate::hdf5::grid::Chunks;

/// Elements in pages, of which some were never written.
struct Pages {
    /// Where the first lies.
    at: u64,
    /// Elements of a page.
    page: u64,
    /// All elements.
    count: u64,
    /// The place of the first element in the index.
    first: u64,
    /// The bit of the first page in the map of those that were written.
    bit: u64,
}

impl Pages {
    /// Adds the chunks of the pages that were written, as `written` has a bit for each.
    fn read(&self, chunks: &mut Chunks<'_>, written: &[u8], turned: usize) -> Parsed<()> {
        let element = chunks.element_bytes() as u64;
        for number in 0..self.count.div_ceil(self.page) {
            let bit = self.bit + number;
            let byte = written.get((bit / 8) as usize).copied().unwrap_or(0);
            if byte & (0x80 >> (bit % 8)) == 0 {
                continue;
            }
            let from = number * self.page;
            let count = self.page.min(self.count - from);
            let at = number.checked_mul(self.page * element + 4);
            let at = at
                .and_then(|at| at.checked_add(self.at))
                .unwrap_or(u64::MAX);
            let bytes = chunks.hdf.block(at, count * element + 4)?;
            let bytes = checked(&bytes, "a page of an index")?;
            chunks.elements(bytes, self.first + from, turned)?;
        }
        Ok(())
    }
}

/// The front of each structure of an array: letters, version, and what its elements are.
fn front(cursor: &mut Cursor<'_>, letters: &str, packed: bool) -> Parsed<()> {
    cursor.signature(letters)?;
    cursor.version("an index", &[0])?;
    if cursor.u8()? != u8::from(packed) {
        return damaged("an index has elements of another kind");
    }
    Ok(())
}

/// A number of bits that a page's length may have.
fn bits(of: u8) -> Parsed<u32> {
    if of < 32 {
        Ok(u32::from(of))
    } else {
        damaged(format!("an index has pages of 2^{of} elements"))
    }
}

/// The chunks of a fixed array.
///
/// # Errors
/// If it is damaged.
pub(super) fn fixed(chunks: &mut Chunks<'_>, at: u64) -> Parsed<()> {
    let hdf = chunks.hdf;
    let packed = chunks.length_bytes.is_some();
    let bytes = hdf.block(at, (8 + hdf.sizes.length + hdf.sizes.offset + 4) as u64)?;
    let mut cursor = hdf.cursor(checked(&bytes, "an index")?);
    front(&mut cursor, "FAHD", packed)?;
    let element = usize::from(cursor.u8()?);
    let page = 1u64 << bits(cursor.u8()?)?;
    let count = cursor.length()?;
    let Some(block) = cursor.address()? else {
        return Ok(());
    };
    check_element(chunks, element)?;
    let start = (6 + hdf.sizes.offset) as u64;
    if count <= page {
        let bytes = hdf.block(block, start + count * element as u64 + 4)?;
        let mut cursor = hdf.cursor(checked(&bytes, "an index")?);
        front(&mut cursor, "FADB", packed)?;
        cursor.skip(hdf.sizes.offset)?;
        return chunks.elements(cursor.rest(), 0, 0);
    }
    let map = count.div_ceil(page).div_ceil(8);
    let bytes = hdf.block(block, start.saturating_add(map).saturating_add(4))?;
    let mut cursor = hdf.cursor(checked(&bytes, "an index")?);
    front(&mut cursor, "FADB", packed)?;
    cursor.skip(hdf.sizes.offset)?;
    let pages = Pages {
        at: block.saturating_add(bytes.len() as u64),
        page,
        count,
        first: 0,
        bit: 0,
    };
    pages.read(chunks, cursor.rest(), 0)
}

fn check_element(chunks: &Chunks<'_>, element: usize) -> Parsed<()> {
    if element == chunks.element_bytes() {
        Ok(())
    } else {
        damaged(format!("an index has elements of {element} bytes"))
    }
}

/// What the header of an extensible array says.
struct Extensible {
    packed: bool,
    /// Bytes of a place in it.
    place_bytes: usize,
    /// Elements in the index block.
    in_index: u64,
    /// Elements of the shortest block.
    shortest: u64,
    /// Pointers to blocks of the shortest block of blocks.
    pointers: u64,
    page: u64,
    /// Blocks of blocks that there can be.
    levels: u32,
    /// One past the highest element that was written.
    end: u64,
    turned: usize,
}

impl Extensible {
    /// How many blocks a block of blocks has, and how many elements each.
    fn level(&self, level: u32) -> Option<(u64, u64)> {
        let blocks = 1u64.checked_shl(level / 2)?;
        let elements = 1u64
            .checked_shl(level.div_ceil(2))?
            .checked_mul(self.shortest)?;
        Some((blocks, elements))
    }
}

/// The chunks of an extensible array.
///
/// # Errors
/// If it is damaged.
pub(super) fn extensible(chunks: &mut Chunks<'_>, at: u64) -> Parsed<()> {
    let hdf = chunks.hdf;
    let length = 12 + 6 * hdf.sizes.length + hdf.sizes.offset + 4;
    let bytes = hdf.block(at, length as u64)?;
    let (array, index) = header(chunks, checked(&bytes, "an index")?)?;
    let Some(index) = index else { return Ok(()) };
    // Those blocks of blocks that are so short that their blocks stand in the index block.
    let direct = 2 * array.pointers.trailing_zeros();
    let blocks = 2 * (array.pointers - 1);
    let seconds = u64::from(array.levels.saturating_sub(direct));
    let element = chunks.element_bytes() as u64;
    let start = (6 + hdf.sizes.offset) as u64;
    let all = start + array.in_index * element + (blocks + seconds) * hdf.sizes.offset as u64 + 4;
    let bytes = hdf.block(index, all)?;
    let mut cursor = hdf.cursor(checked(&bytes, "an index")?);
    front(&mut cursor, "EAIB", array.packed)?;
    cursor.skip(hdf.sizes.offset)?;
    let elements = cursor.take((array.in_index * element) as usize)?;
    chunks.elements(elements, 0, array.turned)?;
    let mut first = array.in_index;
    for level in 0..direct.min(array.levels) {
        let Some((count, elements)) = array.level(level) else {
            return damaged("an index is too long");
        };
        for _ in 0..count {
            if let Some(at) = cursor.address()? {
                block(chunks, &array, (at, first, elements), None)?;
            }
            first = first.saturating_add(elements);
        }
    }
    for level in direct..array.levels {
        let Some((count, elements)) = array.level(level) else {
            return damaged("an index is too long");
        };
        if let Some(at) = cursor.address()? {
            second(chunks, &array, (at, first), (count, elements))?;
        }
        first = first.saturating_add(count.saturating_mul(elements));
        if first >= array.end {
            break;
        }
    }
    Ok(())
}

fn header(chunks: &Chunks<'_>, bytes: &[u8]) -> Parsed<(Extensible, Option<u64>)> {
    let hdf: &Hdf = chunks.hdf;
    let mut cursor = hdf.cursor(bytes);
    let packed = chunks.length_bytes.is_some();
    front(&mut cursor, "EAHD", packed)?;
    check_element(chunks, usize::from(cursor.u8()?))?;
    let most = u32::from(cursor.u8()?);
    let in_index = u64::from(cursor.u8()?);
    let shortest = u64::from(cursor.u8()?);
    let pointers = u64::from(cursor.u8()?);
    let page = 1u64 << bits(cursor.u8()?)?;
    cursor.skip(4 * hdf.sizes.length)?;
    let end = cursor.length()?;
    cursor.length()?;
    if !shortest.is_power_of_two() || !pointers.is_power_of_two() || most > 64 {
        return damaged("an index has blocks of lengths that cannot be");
    }
    let turned = chunks.grid.most.iter().position(|&of| of == u64::MAX);
    let array = Extensible {
        packed,
        place_bytes: (most as usize).div_ceil(8),
        in_index,
        shortest,
        pointers,
        page,
        levels: 1 + most.saturating_sub(shortest.trailing_zeros()),
        end,
        turned: turned.unwrap_or(0),
    };
    Ok((array, cursor.address()?))
}

/// A block of blocks.
fn second(
    chunks: &mut Chunks<'_>,
    array: &Extensible,
    (at, mut first): (u64, u64),
    (count, elements): (u64, u64),
) -> Parsed<()> {
    let hdf = chunks.hdf;
    let pages = if elements > array.page {
        (elements / array.page).div_ceil(8)
    } else {
        0
    };
    let start = (6 + hdf.sizes.offset + array.place_bytes) as u64;
    let all = pages
        .checked_add(hdf.sizes.offset as u64)
        .and_then(|of| of.checked_mul(count))
        .and_then(|of| of.checked_add(start + 4));
    let bytes = hdf.block(at, all.unwrap_or(u64::MAX))?;
    let mut cursor = hdf.cursor(checked(&bytes, "an index")?);
    front(&mut cursor, "EASB", array.packed)?;
    cursor.skip(hdf.sizes.offset + array.place_bytes)?;
    let written = cursor.take((pages * count) as usize)?;
    for number in 0..count {
        if let Some(at) = cursor.address()? {
            // The bits of all blocks follow each other, wherever their bytes end.
            let map = (pages > 0).then(|| (written, number * (elements / array.page)));
            block(chunks, array, (at, first, elements), map)?;
        }
        first = first.saturating_add(elements);
    }
    Ok(())
}

/// A block of elements, in pages if it is long.
fn block(
    chunks: &mut Chunks<'_>,
    array: &Extensible,
    (at, first, count): (u64, u64, u64),
    written: Option<(&[u8], u64)>,
) -> Parsed<()> {
    let hdf = chunks.hdf;
    let start = (6 + hdf.sizes.offset + array.place_bytes) as u64;
    let element = chunks.element_bytes() as u64;
    let paged = count > array.page;
    let within = if paged { 0 } else { count * element };
    let bytes = hdf.block(at, start + within + 4)?;
    let mut cursor = hdf.cursor(checked(&bytes, "an index")?);
    front(&mut cursor, "EADB", array.packed)?;
    cursor.skip(hdf.sizes.offset + array.place_bytes)?;
    if !paged {
        return chunks.elements(cursor.rest(), first, array.turned);
    }
    let pages = Pages {
        at: at.saturating_add(bytes.len() as u64),
        page: array.page,
        count,
        first,
        bit: written.map_or(0, |(_, bit)| bit),
    };
    let written = written.map_or(&[][..], |(map, _)| map);
    pages.read(chunks, written, array.turned)
}
