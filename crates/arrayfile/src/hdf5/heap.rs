//! Heaps: names of groups, texts and lists of any length, and the fractal heap of dense groups and attributes.

use std::collections::VecDeque;

use crate::hdf5::bytes::{Fault, Parsed, checked, damaged, has_sum, unread};
use crate::hdf5::file::Hdf;

/// The names of a group.
pub(super) struct Names(Vec<u8>);

impl Names {
    /// Reads the local heap at an address.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(hdf: &Hdf, address: u64) -> Parsed<Names> {
        let length = 8 + 2 * hdf.sizes.length + hdf.sizes.offset;
        let bytes = hdf.block(address, length as u64)?;
        let mut cursor = hdf.cursor(&bytes);
        cursor.signature("HEAP")?;
        cursor.version("a heap", &[0])?;
        cursor.skip(3)?;
        let length = cursor.length()?;
        cursor.length()?;
        match cursor.address()? {
            Some(at) => Ok(Names(hdf.block(at, length)?)),
            None => damaged("the names of a group lie nowhere"),
        }
    }

    /// The name at an offset.
    ///
    /// # Errors
    /// If there is none.
    pub fn at(&self, offset: u64) -> Parsed<String> {
        let bytes = usize::try_from(offset).ok().and_then(|at| self.0.get(at..));
        let end = bytes.and_then(|of| of.iter().position(|&byte| byte == 0));
        match (bytes, end) {
            (Some(bytes), Some(end)) => Ok(String::from_utf8_lossy(&bytes[..end]).into_owned()),
            _ => damaged("a name is not where it should be"),
        }
    }
}

/// The collections of values of any length that were read lately.
#[derive(Default)]
pub(super) struct Collections {
    lately: VecDeque<(u64, Vec<u8>)>,
    /// Bytes of attributes that are kept, though no value depends on them.
    pub kept: usize,
}

/// How many collections are kept.
const KEPT: usize = 8;

impl Collections {
    /// The bytes of an object of the collection at an address.
    ///
    /// # Errors
    /// If it is not there.
    pub fn object(&mut self, hdf: &Hdf, address: u64, number: u32) -> Parsed<Vec<u8>> {
        let front = 8 + hdf.sizes.length;
        if !self.lately.iter().any(|(at, _)| *at == address) {
            let bytes = hdf.block(address, front as u64)?;
            let mut cursor = hdf.cursor(&bytes);
            cursor.signature("GCOL")?;
            cursor.version("a collection", &[1])?;
            cursor.skip(3)?;
            let bytes = hdf.block(address, cursor.length()?)?;
            if self.lately.len() >= KEPT {
                self.lately.pop_front();
            }
            self.lately.push_back((address, bytes));
        }
        let found = self.lately.iter().find(|(at, _)| *at == address);
        let bytes = found.map_or(&[][..], |(_, bytes)| bytes);
        let mut cursor = hdf.cursor(bytes);
        cursor.skip(front)?;
        while cursor.rest().len() >= front {
            let index = cursor.u16()?;
            cursor.skip(6)?;
            let length = cursor.length()?;
            if index == 0 {
                break;
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if u32::from(index) == number {
                return cursor.take(length).map(<[u8]>::to_vec);
            }
            let padded = length.checked_next_multiple_of(8).unwrap_or(usize::MAX);
            cursor.skip(padded.min(cursor.rest().len()))?;
        }
        damaged("a value of any length is not in its collection")
    }
}

/// A fractal heap: messages of groups and attributes that are too many for a header.
pub(super) struct Fractal {
    id_bytes: usize,
    offset_bytes: usize,
    length_bytes: usize,
    checked: bool,
    width: u64,
    start: u64,
    most_direct: u64,
    root: Option<u64>,
    /// Rows of the root; 0 if it is a single block of values.
    rows: u16,
}

/// Which block of values something lies in.
struct Place {
    at: u64,
    /// Where it begins in the heap.
    start: u64,
    bytes: u64,
}

impl Fractal {
    /// Reads the header of the heap at an address.
    ///
    /// # Errors
    /// If it is damaged, or packed.
    pub fn read(hdf: &Hdf, address: u64) -> Parsed<Fractal> {
        let (offset, length) = (hdf.sizes.offset, hdf.sizes.length);
        let all = 4 + 1 + 2 + 2 + 1 + 4 + 12 * length + 3 * offset + 2 + 2 + 2 + 2 + 4;
        let bytes = hdf.block(address, all as u64)?;
        let mut cursor = hdf.cursor(&bytes);
        cursor.signature("FRHP")?;
        cursor.version("a heap", &[0])?;
        let id_bytes = usize::from(cursor.u16()?);
        if cursor.u16()? != 0 {
            return unread("packs its names and attributes; write it with h5repack");
        }
        checked(&bytes, "a heap")?;
        let flags = cursor.u8()?;
        let most_object = u64::from(cursor.u32()?);
        cursor.skip(2 * length + 2 * offset + 8 * length)?;
        let width = u64::from(cursor.u16()?);
        let (start, most_direct) = (cursor.length()?, cursor.length()?);
        let bits = usize::from(cursor.u16()?);
        cursor.skip(2)?;
        let root = cursor.address()?;
        let rows = cursor.u16()?;
        let power = |of: u64| of.is_power_of_two() && of < 1 << 40;
        if !power(width) || !power(start) || !power(most_direct) || start > most_direct || bits > 64
        {
            return damaged("a heap has blocks of lengths that cannot be");
        }
        let of_direct = (most_direct.trailing_zeros() as usize).div_ceil(8);
        let of_object = (63 - most_object.max(1).leading_zeros() as usize) / 8 + 1;
        Ok(Fractal {
            id_bytes,
            offset_bytes: bits.div_ceil(8),
            length_bytes: of_direct.min(of_object),
            checked: flags & 2 != 0,
            width,
            start,
            most_direct,
            root,
            rows,
        })
    }

    /// How many bytes name an object.
    pub fn id_bytes(&self) -> usize {
        self.id_bytes
    }

    /// The object that is named so.
    ///
    /// # Errors
    /// If it is not there.
    pub fn object(&self, hdf: &Hdf, id: &[u8]) -> Parsed<Vec<u8>> {
        let mut cursor = hdf.cursor(id);
        let first = cursor.u8()?;
        match first >> 4 & 3 {
            0 => {}
            2 => {
                let length = usize::from(first & 15) + 1;
                return cursor.take(length).map(<[u8]>::to_vec);
            }
            _ => return unread("has an attribute of more than 64 KiB"),
        }
        let at = cursor.number(self.offset_bytes)?;
        let length = cursor.number(self.length_bytes)?;
        let place = self.place(hdf, at)?;
        let block = hdf.block(place.at, place.bytes)?;
        let mut cursor = hdf.cursor(&block);
        cursor.signature("FHDB")?;
        if self.checked {
            self.check(hdf, &block)?;
        }
        let from = (at - place.start) as usize;
        let end = from.checked_add(length as usize);
        match end.and_then(|end| block.get(from..end)) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => damaged("an object of a heap lies outside of it"),
        }
    }

    /// Checks the sum of a block of values, which stands in its front and counts as zero.
    fn check(&self, hdf: &Hdf, block: &[u8]) -> Parsed<()> {
        let at = 5 + hdf.sizes.offset + self.offset_bytes;
        let mut bytes = block.to_vec();
        let Some(sum) = bytes.get_mut(at..at + 4) else {
            return damaged("a block of a heap is too short");
        };
        let said = u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]);
        sum.fill(0);
        if has_sum(&bytes, said) {
            Ok(())
        } else {
            damaged("a block of a heap does not have its checksum")
        }
    }

    /// The bytes of a block in a row.
    fn block_bytes(&self, row: u32) -> Option<u64> {
        self.start
            .checked_shl(row.saturating_sub(1))
            .filter(|of| of >> row.saturating_sub(1) == self.start)
    }

    /// The block of values that has a byte of the heap.
    fn place(&self, hdf: &Hdf, byte: u64) -> Parsed<Place> {
        let outside = || Fault::Damaged("an object of a heap lies outside of it".to_owned());
        let mut at = self.root.ok_or_else(outside)?;
        if self.rows == 0 {
            return Ok(Place {
                at,
                start: 0,
                bytes: self.start,
            });
        }
        let direct = self.most_direct.trailing_zeros() - self.start.trailing_zeros() + 2;
        let (mut start, mut rows) = (0u64, u32::from(self.rows));
        // Each step leads into a block that is shorter.
        loop {
            let (row, row_start) = self.row(byte - start, rows).ok_or_else(outside)?;
            let bytes = self.block_bytes(row).ok_or_else(outside)?;
            let column = (byte - start - row_start) / bytes;
            let front = 5 + hdf.sizes.offset + self.offset_bytes;
            let entry = u64::from(row) * self.width + column;
            let entries = u64::from(rows) * self.width;
            let length = entries
                .checked_mul(hdf.sizes.offset as u64)
                .map(|of| of + front as u64 + 4);
            let block = hdf.block(at, length.ok_or_else(outside)?)?;
            let mut cursor = hdf.cursor(checked(&block, "a block of a heap")?);
            cursor.signature("FHIB")?;
            cursor.skip(front - 4)?;
            cursor.skip(entry as usize * hdf.sizes.offset)?;
            at = cursor.address()?.ok_or_else(outside)?;
            start += row_start + column * bytes;
            if row < direct {
                return Ok(Place { at, start, bytes });
            }
            // A block of blocks has so many rows that they fill it.
            rows = (bytes.trailing_zeros() + 1)
                .checked_sub((self.start * self.width).trailing_zeros())
                .ok_or_else(outside)?;
        }
    }

    /// The row that has a byte, and where the row begins.
    fn row(&self, byte: u64, rows: u32) -> Option<(u32, u64)> {
        let mut start = 0u64;
        for row in 0..rows {
            let end = start.checked_add(self.block_bytes(row)?.checked_mul(self.width)?)?;
            if byte < end {
                return Some((row, start));
            }
            start = end;
        }
        None
    }
}
