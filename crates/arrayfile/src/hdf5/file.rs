//! The file as a whole: its superblock, and reading pieces of it.

use std::cell::Cell;
use std::sync::Arc;

use io::Device;

use crate::hdf5::bytes::{Cursor, Parsed, Sizes, checked, damaged, unread};

/// What every file begins with, or has at a power of two from 512 on.
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// The most bytes of one structure.
const MOST_BLOCK: u64 = 16 << 20;

/// The most bytes of structures that are read, beside twice the file: one that leads in circles ends there.
const MOST_READ: u64 = 64 << 20;

/// An HDF5 file that is open.
#[derive(Debug)]
pub(super) struct Hdf {
    device: Arc<dyn Device>,
    /// What addresses count from.
    base: u64,
    /// The length of the file.
    end: u64,
    pub sizes: Sizes,
    /// Where the object header of the root group lies.
    pub root: u64,
    /// Bytes of structures that were read.
    read: Cell<u64>,
}

impl Hdf {
    /// Reads the superblock.
    ///
    /// # Errors
    /// If there is none, or the file is shorter than it says.
    pub fn open(device: Arc<dyn Device>) -> Parsed<Hdf> {
        let end = device.len()?;
        let at = find(&*device, end)?;
        let mut bytes = vec![0; (end - at).min(256) as usize];
        device.read_at(at, &mut bytes)?;
        let (mut hdf, written) = superblock(&bytes, device, end)?;
        if hdf.base == 0 && at > 0 {
            // Some writers leave out what lies before the superblock.
            hdf.base = at;
        }
        if written > end {
            return damaged(format!(
                "has {end} of its {written} bytes; it was not written to its end"
            ));
        }
        Ok(hdf)
    }

    /// Reads a structure of `length` bytes.
    ///
    /// # Errors
    /// If it does not lie in the file, is too long, or more was read than a sound file has.
    pub fn block(&self, address: u64, length: u64) -> Parsed<Vec<u8>> {
        let read = self.read.get().saturating_add(length);
        if length > MOST_BLOCK {
            return damaged(format!(
                "a structure would have {length} bytes; {MOST_BLOCK} are read"
            ));
        }
        if read > MOST_READ + 2 * self.end {
            return damaged("its structures lead in circles");
        }
        self.read.set(read);
        self.place(address, length)?;
        let mut bytes = vec![0; length as usize];
        self.values(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a structure of at most `length` bytes, which may end with the file.
    pub fn block_up_to(&self, address: u64, length: u64) -> Parsed<Vec<u8>> {
        let left = self.end.saturating_sub(self.base).saturating_sub(address);
        self.block(address, length.min(left))
    }

    /// Reads values.
    ///
    /// # Errors
    /// If they do not lie in the file.
    pub fn values(&self, address: u64, into: &mut [u8]) -> Parsed<()> {
        let at = self.place(address, into.len() as u64)?;
        Ok(self.device.read_at(at, into)?)
    }

    /// Where in the file something lies.
    fn place(&self, address: u64, length: u64) -> Parsed<u64> {
        let at = self.base.checked_add(address);
        match at.filter(|at| at.checked_add(length).is_some_and(|end| end <= self.end)) {
            Some(at) => Ok(at),
            None => damaged("refers to bytes behind its end; it was not written to its end"),
        }
    }

    /// The bytes of the file.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The fields of bytes of this file.
    pub fn cursor<'a>(&self, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor::new(bytes, self.sizes)
    }
}

/// Where the superblock lies.
fn find(device: &dyn Device, end: u64) -> Parsed<u64> {
    let mut at = 0;
    while at + 8 <= end {
        let mut bytes = [0; 8];
        device.read_at(at, &mut bytes)?;
        if &bytes == SIGNATURE {
            return Ok(at);
        }
        at = (at * 2).max(512);
    }
    damaged("has no superblock of HDF5; it was not written to its end")
}

/// What a superblock says, and the length of the file when it was written.
fn superblock(bytes: &[u8], device: Arc<dyn Device>, end: u64) -> Parsed<(Hdf, u64)> {
    let any = Sizes {
        offset: 8,
        length: 8,
    };
    let mut cursor = Cursor::new(bytes, any);
    cursor.skip(8)?;
    let version = cursor.version("a superblock", &[0, 1, 2, 3])?;
    if version < 2 {
        cursor.skip(4)?;
    }
    let sizes = Sizes {
        offset: usize::from(cursor.u8()?),
        length: usize::from(cursor.u8()?),
    };
    if [sizes.offset, sizes.length]
        .iter()
        .any(|size| ![2, 4, 8].contains(size))
    {
        return unread(format!(
            "has addresses of {} bytes and lengths of {}",
            sizes.offset, sizes.length
        ));
    }
    let front = if version < 2 {
        // Reserved, two sizes of groups, flags; and in version 1 the size of indexes.
        cursor.skip(if version == 0 { 9 } else { 13 })?;
        bytes.len() - cursor.rest().len()
    } else {
        cursor.skip(1)?;
        let whole = 12 + 4 * sizes.offset + 4;
        let whole = bytes.get(..whole);
        checked(whole.unwrap_or(&[]), "its superblock")?;
        12
    };
    let mut cursor = Cursor::new(&bytes[front..], sizes);
    let base = cursor.address()?.unwrap_or(0);
    cursor.address()?;
    let written = cursor.address()?.unwrap_or(u64::MAX);
    if version < 2 {
        cursor.address()?;
        // The root's entry in a table of symbols: its name comes first.
        cursor.address()?;
    }
    let Some(root) = cursor.address()? else {
        return damaged("has no root group");
    };
    let hdf = Hdf {
        device,
        base,
        end,
        sizes,
        root,
        read: Cell::new(0),
    };
    Ok((hdf, written))
}
