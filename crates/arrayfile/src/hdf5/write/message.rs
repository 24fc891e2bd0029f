//! The structures of a file that is written, as bytes: superblock of version 2, object headers of version 2 and their
//! messages, and a heap of what attributes refer to. By the format's specification, version 3.0; HDF5 1.8 reads them.

use array::DataType;

use crate::hdf5::bytes::lookup3;
use crate::hdf5::object::kind;

/// An address that is none.
pub(super) const NOWHERE: u64 = u64::MAX;

/// Bytes of the superblock.
pub(super) const SUPERBLOCK_BYTES: usize = 48;

/// Numbers one after the other, the least significant byte first.
#[derive(Debug, Clone, Default)]
pub(super) struct Bytes(pub Vec<u8>);

impl Bytes {
    /// These, and a number of one byte.
    pub fn u8(mut self, number: u8) -> Bytes {
        self.0.push(number);
        self
    }

    /// These, and a number of two bytes.
    pub fn u16(self, number: u16) -> Bytes {
        self.raw(&number.to_le_bytes())
    }

    /// These, and a number of four bytes.
    pub fn u32(self, number: u32) -> Bytes {
        self.raw(&number.to_le_bytes())
    }

    /// These, and a number of eight bytes.
    pub fn u64(self, number: u64) -> Bytes {
        self.raw(&number.to_le_bytes())
    }

    /// These, and `bytes` as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend(bytes);
        self
    }

    /// The bytes, and behind them their checksum.
    pub fn summed(self) -> Vec<u8> {
        let sum = lookup3(&self.0);
        self.u32(sum).0
    }
}

/// The front of a file of `end` bytes whose root group lies at `root`.
pub(super) fn superblock(end: u64, root: u64) -> Vec<u8> {
    Bytes::default()
        .raw(b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00")
        .u64(0)
        .u64(NOWHERE)
        .u64(end)
        .u64(root)
        .summed()
}

/// A message of an object header: which kind, and its bytes.
pub(super) type Message = (u16, Vec<u8>);

/// The header of an object with these messages, of fewer than 64 KiB each.
pub(super) fn header(messages: &[Message]) -> Vec<u8> {
    let all: usize = messages.iter().map(|(_, bytes)| 4 + bytes.len()).sum();
    let mut header = Bytes(b"OHDR\x02\x02".to_vec()).u32(all as u32);
    for (kind, bytes) in messages {
        debug_assert!(bytes.len() <= usize::from(u16::MAX), "a message is short");
        header = header.u8(*kind as u8).u16(bytes.len() as u16).u8(0);
        header = header.raw(bytes);
    }
    header.summed()
}

/// A type whose first byte is of `class`, with bits that say more and the bytes of a value.
fn class(class: u8, bits: u32, width: usize) -> Bytes {
    // Version 3 for all: it has types within types without padding.
    Bytes::default()
        .u32(0x30 | u32::from(class) | bits << 8)
        .u32(width as u32)
}

/// The type of an attribute's values: whole numbers and floats; a bool is a byte.
pub(super) fn number_type(of: DataType) -> Vec<u8> {
    let width = of.width();
    let bits = width as u16 * 8;
    let float = |sign: u32, places: [u8; 4], bias: u32| {
        let front = class(1, 0x20 | sign << 8, width).u16(0).u16(bits);
        front.raw(&places).u32(bias).0
    };
    match of {
        DataType::F32 => float(31, [23, 8, 0, 23], 127),
        DataType::F64 => float(63, [52, 11, 0, 52], 1023),
        DataType::Bool | DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64 => {
            class(0, 8, width).u16(0).u16(bits).0
        }
        DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => {
            class(0, 0, width).u16(0).u16(bits).0
        }
    }
}

/// What h5py has as a bool: a byte whose values are called FALSE and TRUE.
pub(super) fn bool_type() -> Vec<u8> {
    let names = class(8, 2, 1).raw(&number_type(DataType::I8));
    names.raw(b"FALSE\0TRUE\0\x00\x01").0
}

/// The address of an object.
fn reference_type() -> Vec<u8> {
    class(7, 0, 8).0
}

/// The dimensions of a data set, and how long each may become.
pub(super) fn space(shape: &[u64], most: &[u64]) -> Message {
    let front = Bytes::default().u8(2).u8(shape.len() as u8).u8(1).u8(1);
    let all = shape.iter().chain(most);
    (
        kind::DATASPACE,
        all.fold(front, |bytes, &of| bytes.u64(of)).0,
    )
}

/// The dimensions of an attribute that has one of this length, or none.
fn attribute_space(length: Option<u64>) -> Vec<u8> {
    match length {
        Some(length) => Bytes(vec![2, 1, 0, 1]).u64(length).0,
        None => vec![2, 0, 0, 0],
    }
}

/// What cells have that were never written. Room is taken chunk by chunk.
pub(super) fn fill(value: &[u8]) -> Message {
    let bytes = Bytes(vec![3, 0x2b]).u32(value.len() as u32).raw(value);
    (kind::FILL, bytes.0)
}

/// Chunks of these lengths, of values of `width` bytes, whose index lies at `index`.
pub(super) fn layout(chunk: &[u64], width: usize, index: u64) -> Message {
    let front = Bytes(vec![3, 2, chunk.len() as u8 + 1]).u64(index);
    let bytes = chunk.iter().fold(front, |bytes, &of| bytes.u32(of as u32));
    (kind::LAYOUT, bytes.u32(width as u32).0)
}

/// Chunks whose bytes are brought together by weight, and packed with zlib at this level.
pub(super) fn filters(width: usize, level: u32) -> Message {
    const SHUFFLE: u16 = 2;
    const DEFLATE: u16 = 1;
    let front = Bytes(vec![2, 2]);
    let shuffle = front.u16(SHUFFLE).u16(1).u16(1).u32(width as u32);
    (
        kind::FILTERS,
        shuffle.u16(DEFLATE).u16(1).u16(1).u32(level).0,
    )
}

/// An attribute: its name, type, dimensions and values.
fn attribute(name: &str, of: &[u8], space: &[u8], values: &[u8]) -> Message {
    let utf8 = u8::from(!name.is_ascii());
    let front = Bytes(vec![3, 0])
        .u16(name.len() as u16 + 1)
        .u16(of.len() as u16)
        .u16(space.len() as u16)
        .u8(utf8);
    let bytes = front.raw(name.as_bytes()).u8(0).raw(of).raw(space);
    (kind::ATTRIBUTE, bytes.raw(values).0)
}

/// An attribute that is a text.
pub(super) fn text(name: &str, text: &str) -> Message {
    let values = [text.as_bytes(), b"\0"].concat();
    let utf8 = u32::from(!text.is_ascii()) << 4;
    let of = class(3, utf8, values.len()).0;
    attribute(name, &of, &attribute_space(None), &values)
}

/// An attribute that is a number of 32 bits.
pub(super) fn number(name: &str, value: i32) -> Message {
    let of = number_type(DataType::I32);
    attribute(name, &of, &attribute_space(None), &value.to_le_bytes())
}

/// An attribute with values of a type.
pub(super) fn some(name: &str, of: DataType, values: &[u8]) -> Message {
    let count = (values.len() / of.width()) as u64;
    let space = attribute_space(Some(count));
    attribute(name, &number_type(of), &space, values)
}

/// An attribute that has several texts: each has as many bytes as the longest, and a zero.
pub(super) fn texts(name: &str, texts: &[String]) -> Message {
    let width = texts.iter().map(String::len).max().unwrap_or(0) + 1;
    let utf8 = u32::from(!texts.iter().all(|of| of.is_ascii())) << 4;
    let mut values = Vec::new();
    for text in texts {
        let end = values.len() + width;
        values.extend(text.as_bytes());
        values.resize(end, 0);
    }
    let of = class(3, utf8, width).0;
    let space = attribute_space(Some(texts.len() as u64));
    attribute(name, &of, &space, &values)
}

/// The scales of a data set's dimensions, the first of which is this entry of the heap at `heap`.
pub(super) fn scales(rank: usize, heap: u64, first: usize) -> Message {
    let list = class(9, 0, 16).raw(&reference_type()).0;
    let entries = (first..first + rank).fold(Bytes::default(), |bytes, entry| {
        bytes.u32(1).u64(heap).u32(entry as u32)
    });
    let space = attribute_space(Some(rank as u64));
    attribute("DIMENSION_LIST", &list, &space, &entries.0)
}

/// The data sets that have a scale as their dimension of this number.
pub(super) fn users(addresses: &[u64], dimension: usize) -> Message {
    let pair = class(6, 2, 16)
        .raw(b"dataset\0\x00")
        .raw(&reference_type())
        .raw(b"dimension\0\x08")
        .raw(&number_type(DataType::I32))
        .0;
    let values = addresses.iter().fold(Bytes::default(), |bytes, &at| {
        bytes.u64(at).u32(dimension as u32).u32(0)
    });
    let space = attribute_space(Some(addresses.len() as u64));
    attribute("REFERENCE_LIST", &pair, &space, &values.0)
}

/// The messages of a group with these members, in this order.
pub(super) fn group(members: &[(&str, u64)]) -> Vec<Message> {
    // Members are numbered as they come, and lie in the header.
    let numbered = 3;
    let info = Bytes(vec![0, numbered]).u64(members.len() as u64);
    let info = info.u64(NOWHERE).u64(NOWHERE).u64(NOWHERE).0;
    let in_header = Bytes(vec![0, 1]).u16(u16::MAX).u16(0).0;
    let links = members.iter().enumerate().map(|(at, (name, object))| {
        let (number, utf8) = (0x04, 0x10);
        let four_bytes_of_length = 2;
        let front = Bytes(vec![1, number | utf8 | four_bytes_of_length]);
        let front = front.u64(at as u64).u8(1).u32(name.len() as u32);
        (kind::LINK, front.raw(name.as_bytes()).u64(*object).0)
    });
    let infos = [(kind::LINK_INFO, info), (kind::GROUP_INFO, in_header)];
    infos.into_iter().chain(links).collect()
}

/// A heap with the addresses of objects, an entry for each, numbered from 1.
pub(super) fn heap(addresses: &[u64]) -> Vec<u8> {
    /// The least that the library has.
    const LEAST: usize = 4096;
    let used = 16 + addresses.len() * 24;
    let length = (used + 16).max(LEAST);
    let front = Bytes(b"GCOL\x01\0\0\0".to_vec()).u64(length as u64);
    let entries = addresses
        .iter()
        .enumerate()
        .fold(front, |bytes, (at, &of)| {
            bytes.u16(at as u16 + 1).u16(0).u32(0).u64(8).u64(of)
        });
    // What is free is entry 0, with its own front.
    let free = entries.u16(0).u16(0).u32(0).u64((length - used) as u64);
    let mut bytes = free.0;
    bytes.resize(length, 0);
    bytes
}
