//! Little-endian fields, written and read one after the other.

/// Reads fields from the front of a slice; `None` where the slice is too short.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn id(&mut self) -> Option<[u8; 16]> {
        self.array()
    }

    /// A slice after its length.
    pub(crate) fn slice(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Appends fields to a vector.
pub(crate) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// A slice after its length; the caller sees to it that the length fits.
    fn put_slice(&mut self, value: &[u8]);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_slice(&mut self, value: &[u8]) {
        debug_assert!(u32::try_from(value.len()).is_ok());
        self.put_u32(value.len() as u32);
        self.extend_from_slice(value);
    }
}

/// The checksum of `bytes` as the content of `what`: a region written to, or read from, the
/// wrong place has the right checksum for its own bytes, so the checksum starts from what the
/// region is.
pub(crate) fn checksum(what: Tag, number: u32, bytes: &[u8]) -> u32 {
    let mut seed = [0; 8];
    seed[..4].copy_from_slice(&(what as u32).to_le_bytes());
    seed[4..].copy_from_slice(&number.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&seed), bytes)
}

/// The sorts of regions, as their checksums tell them apart. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Tag {
    Page = 1,
    MapChunk = 2,
    Space = 3,
    Directory = 4,
    Root = 5,
    Identity = 6,
    LogHeader = 7,
    RecordHeader = 8,
    RecordBody = 9,
    LogSector = 10,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_short_input_is_noticed() {
        let mut out = Vec::new();
        out.put_u8(7);
        out.put_u32(1 << 20);
        out.put_u64(u64::MAX);
        out.put_slice(b"abc");
        let mut reader = Reader::new(&out);
        assert_eq!(reader.u8(), Some(7));
        assert_eq!(reader.u32(), Some(1 << 20));
        assert_eq!(reader.u64(), Some(u64::MAX));
        assert_eq!(reader.slice(), Some(&b"abc"[..]));
        assert!(reader.is_empty());
        for length in 0..out.len() {
            let mut reader = Reader::new(&out[..length]);
            let all = (|| {
                reader.u8()?;
                reader.u32()?;
                reader.u64()?;
                reader.slice()
            })();
            assert_eq!(all, None, "{length} bytes are too few");
        }
    }

    #[test]
    fn checksums_differ_by_place() {
        let page = checksum(Tag::Page, 1, b"x");
        assert_ne!(page, checksum(Tag::Page, 2, b"x"));
        assert_ne!(page, checksum(Tag::MapChunk, 1, b"x"));
    }
}
