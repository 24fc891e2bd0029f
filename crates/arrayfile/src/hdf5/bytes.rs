//! Bytes of a file's structures, read one field after the other, and what can be wrong with them.

use crate::error::Error;

/// Why something in a file is not read.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// The file is damaged, or was not written to its end.
    Damaged(String),
    /// The file is sound and has what is not read.
    Unread(String),
    /// Reading failed.
    Failed(Error),
}

/// Result of what decodes a structure.
pub(super) type Parsed<T> = Result<T, Fault>;

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Failed(error.into())
    }
}

/// That a file is damaged.
pub(super) fn damaged<T>(what: impl Into<String>) -> Parsed<T> {
    Err(Fault::Damaged(what.into()))
}

/// That a file has what is not read.
pub(super) fn unread<T>(what: impl Into<String>) -> Parsed<T> {
    Err(Fault::Unread(what.into()))
}

/// How many bytes of a file are an address, and how many a length: 2, 4 or 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub offset: usize,
    pub length: usize,
}

/// A place in bytes, from which fields are taken. All numbers are little-endian.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    sizes: Sizes,
}

impl<'a> Cursor<'a> {
    /// The first byte.
    pub fn new(bytes: &'a [u8], sizes: Sizes) -> Cursor<'a> {
        Cursor { rest: bytes, sizes }
    }

    /// The bytes that were not taken.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// If there are not so many; so do all that take something.
    pub fn take(&mut self, count: usize) -> Parsed<&'a [u8]> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => damaged("one of its structures ends too early"),
        }
    }

    /// Leaves bytes out.
    pub fn skip(&mut self, count: usize) -> Parsed<()> {
        self.take(count).map(|_| ())
    }

    /// A number of 0 to 8 bytes.
    pub fn number(&mut self, bytes: usize) -> Parsed<u64> {
        let taken = self.take(bytes)?;
        let mut word = [0; 8];
        match word.get_mut(..taken.len()) {
            Some(low) => low.copy_from_slice(taken),
            None => return damaged("one of its numbers has more than 8 bytes"),
        }
        Ok(u64::from_le_bytes(word))
    }

    /// A number of one byte.
    pub fn u8(&mut self) -> Parsed<u8> {
        self.take(1).map(|taken| taken[0])
    }

    /// A number of two bytes.
    pub fn u16(&mut self) -> Parsed<u16> {
        self.number(2).map(|of| of as u16)
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Parsed<u32> {
        self.number(4).map(|of| of as u32)
    }

    /// A length, as long as the file says.
    pub fn length(&mut self) -> Parsed<u64> {
        self.number(self.sizes.length)
    }

    /// An address from the file's base on; `None` for the one that says that there is nothing.
    pub fn address(&mut self) -> Parsed<Option<u64>> {
        let address = self.number(self.sizes.offset)?;
        let none = u64::MAX >> (64 - 8 * self.sizes.offset);
        Ok((address != none).then_some(address))
    }

    /// Goes on after these four letters.
    pub fn signature(&mut self, letters: &str) -> Parsed<()> {
        if self.take(4)? == letters.as_bytes() {
            Ok(())
        } else {
            damaged(format!("a structure '{letters}' is not where it should be"))
        }
    }

    /// A version that is one of these.
    pub fn version(&mut self, of: &str, known: &[u8]) -> Parsed<u8> {
        let version = self.u8()?;
        if known.contains(&version) {
            Ok(version)
        } else {
            unread(format!("has {of} of version {version}, which is not known"))
        }
    }
}

/// Checks that the last four bytes are the checksum of those before.
///
/// # Errors
/// If they are not.
pub(super) fn checked<'a>(bytes: &'a [u8], what: &str) -> Parsed<&'a [u8]> {
    let Some((of, sum)) = bytes.split_last_chunk::<4>() else {
        return damaged(format!("{what} is too short"));
    };
    if has_sum(of, u32::from_le_bytes(*sum)) {
        Ok(of)
    } else {
        damaged(format!("{what} does not have its checksum"))
    }
}

/// Whether bytes have this checksum.
pub(super) fn has_sum(bytes: &[u8], sum: u32) -> bool {
    #[cfg(test)]
    if tests::TRUSTING.get() {
        return true;
    }
    lookup3(bytes) == sum
}

/// Bob Jenkins' hash lookup3 with the initial value 0, which HDF5 has as the checksum of its structures.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    let word = |of: &[u8], at: usize| {
        let mut word = [0; 4];
        for (to, from) in word.iter_mut().zip(of.iter().skip(at)) {
            *to = *from;
        }
        u32::from_le_bytes(word)
    };
    let mut rest = bytes;
    while rest.len() > 12 {
        a = a.wrapping_add(word(rest, 0));
        b = b.wrapping_add(word(rest, 4));
        c = c.wrapping_add(word(rest, 8));
        // Mixing, reversible.
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(rest, 0));
    b = b.wrapping_add(word(rest, 4));
    c = c.wrapping_add(word(rest, 8));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// Whether this thread takes every checksum for the right one, so that hostile bytes get behind it.
        pub static TRUSTING: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn the_checksum_is_that_of_its_inventor() {
        // The values that lookup3.c gives for its own examples.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn fields_are_taken_in_order_and_no_further() {
        let sizes = Sizes {
            offset: 4,
            length: 2,
        };
        let bytes = [1, 2, 0, 3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 9];
        let mut cursor = Cursor::new(&bytes, sizes);
        assert_eq!(cursor.u8().unwrap(), 1);
        assert_eq!(cursor.length().unwrap(), 2);
        assert_eq!(cursor.address().unwrap(), Some(3));
        assert_eq!(cursor.address().unwrap(), None);
        assert!(cursor.u16().is_err());
        assert_eq!(cursor.rest(), [9]);
        assert!(Cursor::new(&[0; 9], sizes).number(9).is_err());
        assert!(checked(b"abc", "it").is_err());
    }
}
