//! What an object header says of a data set: its shape, where its values lie, how chunks are packed, what fills it.

use array::MAX_DIMENSIONS;

use crate::hdf5::bytes::{Fault, Parsed, damaged, unread};
use crate::hdf5::datatype::Datatype;
use crate::hdf5::file::Hdf;
use crate::hdf5::object::{Object, kind};
use crate::hdf5::packing::Filter;

/// The most cells of a data set: those that an array can have.
const MOST_CELLS: u64 = 1 << 60;

/// A shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Space {
    /// `None` if there is no value at all; empty for a single one.
    pub shape: Option<Vec<u64>>,
    /// How long each dimension can become; `u64::MAX` without a limit.
    pub most: Vec<u64>,
}

/// Where values lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layout {
    /// In the header itself.
    Compact(Vec<u8>),
    /// One after the other, if any was written.
    Contiguous(Option<u64>),
    Chunked(Chunked),
}

/// Values in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunked {
    /// Cells along each dimension.
    pub chunk: Vec<u64>,
    /// Whether chunks at the edge are not packed.
    pub plain_edges: bool,
    /// How many bytes the length of a packed chunk has in an index.
    pub length_bytes: usize,
    pub index: Index,
    /// Where the index lies, if any chunk was written.
    pub at: Option<u64>,
}

/// How the chunks are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// A B-tree of version 1.
    Tree,
    /// There is one chunk: how many bytes it is packed to, and which filters were left out, if it has any.
    Single(Option<(u64, u32)>),
    /// They lie one after the other.
    Implicit,
    FixedArray,
    ExtensibleArray,
    /// A B-tree of version 2.
    Tree2,
}

/// What a header says of a data set.
#[derive(Debug, Clone)]
pub(super) struct DataSet {
    pub space: Space,
    pub datatype: Datatype,
    pub layout: Layout,
    pub filters: Vec<Filter>,
    /// The bytes of the value of cells that were never written.
    pub fill: Option<Vec<u8>>,
}

impl DataSet {
    /// The data set of an object; `None` if it is none.
    ///
    /// # Errors
    /// If it is damaged, or lies where values are not read from.
    pub fn of(hdf: &Hdf, object: &Object) -> Parsed<Option<DataSet>> {
        let Some(layout) = object.first(kind::LAYOUT) else {
            return Ok(None);
        };
        let missing = |what: &str| Fault::Damaged(format!("a data set has no {what}"));
        let space = object.first(kind::DATASPACE);
        let space = space_of(hdf, space.ok_or_else(|| missing("shape"))?)?;
        let mut cells = space.shape.iter().flatten();
        let cells = cells.try_fold(1u64, |all, &of| all.checked_mul(of));
        if cells.is_none_or(|cells| cells > MOST_CELLS) {
            return unread("has more than 2^60 cells");
        }
        let datatype = object.first(kind::DATATYPE);
        let datatype = datatype.ok_or_else(|| missing("type"))?;
        let datatype = Datatype::parse(&mut hdf.cursor(datatype))?;
        if object.first(kind::EXTERNAL).is_some() {
            return unread("has its values in other files; write it with h5repack");
        }
        let layout = layout_of(hdf, layout, &datatype)?;
        if let (Layout::Chunked(of), Some(shape)) = (&layout, &space.shape)
            && of.chunk.len() != shape.len()
        {
            return damaged(format!(
                "its chunks have {} dimensions, and it has {}",
                of.chunk.len(),
                shape.len()
            ));
        }
        let filters = object.first(kind::FILTERS).map(|of| filters_of(hdf, of));
        let fill = match (object.first(kind::FILL), object.first(kind::OLD_FILL)) {
            (Some(bytes), _) => fill_of(hdf, bytes)?,
            (None, Some(bytes)) => sized(&mut hdf.cursor(bytes))?,
            (None, None) => None,
        };
        Ok(Some(DataSet {
            space,
            datatype,
            layout,
            filters: filters.transpose()?.unwrap_or_default(),
            fill,
        }))
    }
}

/// The shape that a message says.
///
/// # Errors
/// If it has too many dimensions.
pub(super) fn space_of(hdf: &Hdf, bytes: &[u8]) -> Parsed<Space> {
    let mut cursor = hdf.cursor(bytes);
    let version = cursor.version("a shape", &[1, 2])?;
    let rank = usize::from(cursor.u8()?);
    let flags = cursor.u8()?;
    let form = cursor.u8()?;
    if version == 1 {
        cursor.skip(4)?;
    }
    if rank > MAX_DIMENSIONS {
        return damaged(format!(
            "a data set has {rank} dimensions; there can be {MAX_DIMENSIONS}"
        ));
    }
    let mut lengths = || -> Parsed<Vec<u64>> { (0..rank).map(|_| cursor.length()).collect() };
    let shape = lengths()?;
    let most = if flags & 1 != 0 {
        lengths()?
    } else {
        shape.clone()
    };
    let unlimited = u64::MAX >> (64 - 8 * hdf.sizes.length);
    let most = most.into_iter();
    let most = most.map(|of| if of == unlimited { u64::MAX } else { of });
    let nothing = version == 2 && form == 2;
    Ok(Space {
        shape: (!nothing).then_some(shape),
        most: most.collect(),
    })
}

fn layout_of(hdf: &Hdf, bytes: &[u8], datatype: &Datatype) -> Parsed<Layout> {
    let mut cursor = hdf.cursor(bytes);
    let version = cursor.version("a layout", &[1, 2, 3, 4, 5])?;
    if version < 3 {
        return old_layout(hdf, bytes);
    }
    match (cursor.u8()?, version) {
        (0, _) => {
            let length = usize::from(cursor.u16()?);
            Ok(Layout::Compact(cursor.take(length)?.to_vec()))
        }
        (1, _) => Ok(Layout::Contiguous(cursor.address()?)),
        (2, 3) => {
            let rank = usize::from(cursor.u8()?);
            let at = cursor.address()?;
            let chunk = chunk_of(&mut cursor, rank, 4)?;
            Ok(Layout::Chunked(Chunked {
                chunk,
                plain_edges: false,
                length_bytes: 4,
                index: Index::Tree,
                at,
            }))
        }
        (2, _) => {
            let flags = cursor.u8()?;
            let rank = usize::from(cursor.u8()?);
            let bytes = usize::from(cursor.u8()?);
            let chunk = chunk_of(&mut cursor, rank, bytes)?;
            let index = match cursor.u8()? {
                1 if flags & 2 != 0 => Index::Single(Some((cursor.length()?, cursor.u32()?))),
                1 => Index::Single(None),
                2 => Index::Implicit,
                3 => {
                    cursor.skip(1)?;
                    Index::FixedArray
                }
                4 => {
                    cursor.skip(5)?;
                    Index::ExtensibleArray
                }
                5 => {
                    cursor.skip(6)?;
                    Index::Tree2
                }
                other => return damaged(format!("has an index of kind {other} of its chunks")),
            };
            let size = chunk
                .iter()
                .try_fold(datatype.width as u64, |all, &of| all.checked_mul(of));
            let size = size.ok_or_else(|| Fault::Damaged("its chunks are too long".to_owned()))?;
            // One byte more than the length of a chunk that is not packed needs.
            let log = 63 - size.max(1).leading_zeros() as usize;
            let length_bytes = match version {
                4 => (1 + (log + 8) / 8).min(8),
                _ => hdf.sizes.length,
            };
            Ok(Layout::Chunked(Chunked {
                chunk,
                plain_edges: flags & 1 != 0,
                length_bytes,
                index,
                at: cursor.address()?,
            }))
        }
        (3, _) => unread("is put together of other files (a virtual data set)"),
        (other, _) => damaged(format!("has a layout of kind {other}, which there is not")),
    }
}

/// The layout of a file of before 2004.
fn old_layout(hdf: &Hdf, bytes: &[u8]) -> Parsed<Layout> {
    let mut cursor = hdf.cursor(bytes);
    cursor.skip(1)?;
    let rank = usize::from(cursor.u8()?);
    let form = cursor.u8()?;
    cursor.skip(5)?;
    let at = if form == 0 { None } else { cursor.address()? };
    match form {
        0 => {
            cursor.skip(4 * rank)?;
            let length = cursor.u32()? as usize;
            Ok(Layout::Compact(cursor.take(length)?.to_vec()))
        }
        1 => Ok(Layout::Contiguous(at)),
        2 => Ok(Layout::Chunked(Chunked {
            chunk: chunk_of(&mut cursor, rank, 4)?,
            plain_edges: false,
            length_bytes: 4,
            index: Index::Tree,
            at,
        })),
        other => damaged(format!("has a layout of kind {other}, which there is not")),
    }
}

/// The lengths of a chunk; the last that is said is the bytes of a value.
fn chunk_of(
    cursor: &mut crate::hdf5::bytes::Cursor<'_>,
    rank: usize,
    bytes: usize,
) -> Parsed<Vec<u64>> {
    if rank == 0 || rank > MAX_DIMENSIONS + 1 {
        return damaged(format!("its chunks have {rank} dimensions"));
    }
    let lengths = (1..rank).map(|_| cursor.number(bytes));
    let lengths = lengths.collect::<Parsed<Vec<u64>>>()?;
    cursor.number(bytes)?;
    let cells = lengths
        .iter()
        .try_fold(1u64, |all, &of| all.checked_mul(of));
    match cells {
        Some(1..=0xffff_ffff) => Ok(lengths),
        _ => damaged(format!("its chunks have {lengths:?} cells")),
    }
}

fn filters_of(hdf: &Hdf, bytes: &[u8]) -> Parsed<Vec<Filter>> {
    let mut cursor = hdf.cursor(bytes);
    let version = cursor.version("a list of filters", &[1, 2])?;
    let count = cursor.u8()?;
    if version == 1 {
        cursor.skip(6)?;
    }
    let mut filters = Vec::new();
    for _ in 0..count {
        let id = cursor.u16()?;
        let name = if version == 1 || id >= 256 {
            usize::from(cursor.u16()?)
        } else {
            0
        };
        cursor.skip(2)?;
        let values = usize::from(cursor.u16()?);
        cursor.skip(if version == 1 {
            name.next_multiple_of(8)
        } else {
            name
        })?;
        let first = if values > 0 {
            Some(cursor.u32()?)
        } else {
            None
        };
        let mut left = values.saturating_sub(1) * 4;
        if version == 1 && values % 2 == 1 {
            left += 4;
        }
        cursor.skip(left)?;
        filters.push(Filter { id, first });
    }
    Ok(filters)
}

/// A value with its length before it; `None` if it has none.
fn sized(cursor: &mut crate::hdf5::bytes::Cursor<'_>) -> Parsed<Option<Vec<u8>>> {
    let length = cursor.u32()? as usize;
    // A negative length says that there is none.
    if length == 0 || length > i32::MAX as usize {
        return Ok(None);
    }
    Ok(Some(cursor.take(length)?.to_vec()))
}

fn fill_of(hdf: &Hdf, bytes: &[u8]) -> Parsed<Option<Vec<u8>>> {
    let mut cursor = hdf.cursor(bytes);
    let version = cursor.version("a fill value", &[1, 2, 3])?;
    if version == 3 {
        let defined = cursor.u8()? & 0x20 != 0;
        return if defined {
            sized(&mut cursor)
        } else {
            Ok(None)
        };
    }
    cursor.skip(2)?;
    let defined = cursor.u8()? != 0;
    if version == 2 && !defined {
        return Ok(None);
    }
    sized(&mut cursor)
}
