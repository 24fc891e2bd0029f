//! Object headers: the messages of a group, a data set or a type.

use crate::hdf5::bytes::{Cursor, Fault, Parsed, checked, damaged, unread};
use crate::hdf5::file::Hdf;

/// The most messages of an object.
const MOST_MESSAGES: usize = 1 << 16;

/// What kinds of messages are for.
pub(super) mod kind {
    pub const DATASPACE: u16 = 0x01;
    pub const LINK_INFO: u16 = 0x02;
    pub const DATATYPE: u16 = 0x03;
    pub const OLD_FILL: u16 = 0x04;
    pub const FILL: u16 = 0x05;
    pub const LINK: u16 = 0x06;
    pub const EXTERNAL: u16 = 0x07;
    pub const LAYOUT: u16 = 0x08;
    pub const GROUP_INFO: u16 = 0x0a;
    pub const FILTERS: u16 = 0x0b;
    pub const ATTRIBUTE: u16 = 0x0c;
    pub const CONTINUATION: u16 = 0x10;
    pub const SYMBOL_TABLE: u16 = 0x11;
    pub const ATTRIBUTE_INFO: u16 = 0x15;
}

/// A message of an object header.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub kind: u16,
    pub bytes: Vec<u8>,
}

/// The messages of an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Object {
    messages: Vec<Message>,
}

impl Object {
    /// The first message of a kind.
    pub fn first(&self, kind: u16) -> Option<&[u8]> {
        self.all(kind).next()
    }

    /// All messages of a kind.
    pub fn all(&self, kind: u16) -> impl Iterator<Item = &[u8]> {
        let found = self.messages.iter().filter(move |of| of.kind == kind);
        found.map(|of| &of.bytes[..])
    }

    /// Reads the header at an address, shared messages resolved.
    ///
    /// # Errors
    /// If it is damaged, or of a version that is not known.
    pub fn read(hdf: &Hdf, address: u64) -> Parsed<Object> {
        Object::read_at_depth(hdf, address, 0)
    }

    fn read_at_depth(hdf: &Hdf, address: u64, depth: usize) -> Parsed<Object> {
        let start = hdf.block_up_to(address, 16)?;
        let mut found = if start.starts_with(b"OHDR") {
            second(hdf, address)?
        } else {
            first(hdf, address)?
        };
        let mut messages = Vec::new();
        for (message, shared) in found.drain(..) {
            let wanted = matches!(
                message.kind,
                kind::DATATYPE | kind::DATASPACE | kind::FILL | kind::FILTERS
            );
            match shared {
                true if wanted => messages.push(resolved(hdf, &message, depth)?),
                true => {}
                false => messages.push(message),
            }
        }
        Ok(Object { messages })
    }
}

/// A message that another object has, too.
fn resolved(hdf: &Hdf, message: &Message, depth: usize) -> Parsed<Message> {
    let bytes = shared_bytes(hdf, &message.bytes, message.kind, depth)?;
    Ok(Message {
        kind: message.kind,
        bytes,
    })
}

/// The bytes of the message that a shared message refers to.
///
/// # Errors
/// If it lies in a heap of shared messages, or the file is damaged.
pub(super) fn shared_bytes(hdf: &Hdf, bytes: &[u8], of: u16, depth: usize) -> Parsed<Vec<u8>> {
    if depth > 2 {
        return damaged("its shared messages refer to each other");
    }
    let mut cursor = hdf.cursor(bytes);
    let version = cursor.version("a shared message", &[1, 2, 3])?;
    let place = cursor.u8()?;
    if version == 1 {
        cursor.skip(6)?;
    }
    if version == 3 && place == 1 {
        return unread("keeps messages in a heap that objects share; write it with h5repack");
    }
    let Some(address) = cursor.address()? else {
        return damaged("a shared message lies nowhere");
    };
    let object = Object::read_at_depth(hdf, address, depth + 1)?;
    match object.first(of) {
        Some(bytes) => Ok(bytes.to_vec()),
        None => damaged("a shared message is not where it should be"),
    }
}

type Found = Vec<(Message, bool)>;

/// The messages of a header of version 1.
fn first(hdf: &Hdf, address: u64) -> Parsed<Found> {
    let start = hdf.block(address, 16)?;
    let mut cursor = hdf.cursor(&start);
    cursor.version("an object header", &[1])?;
    cursor.skip(1)?;
    let count = usize::from(cursor.u16()?);
    cursor.skip(4)?;
    let length = u64::from(cursor.u32()?);
    let mut found = Vec::new();
    let mut blocks = vec![hdf.block(address.saturating_add(16), length)?];
    while let Some(block) = blocks.pop() {
        let mut cursor = hdf.cursor(&block);
        while cursor.rest().len() >= 8 && found.len() < count {
            let kind = cursor.u16()?;
            let length = usize::from(cursor.u16()?);
            let flags = cursor.u8()?;
            cursor.skip(3)?;
            let bytes = cursor.take(length)?;
            if let Some((at, length)) = add(hdf, &mut found, (kind, flags, bytes))? {
                blocks.push(hdf.block(at, length)?);
            }
        }
    }
    Ok(found)
}

/// Adds a message; where its header goes on, if the message says that.
fn add(
    hdf: &Hdf,
    found: &mut Found,
    (kind, flags, bytes): (u16, u8, &[u8]),
) -> Parsed<Option<(u64, u64)>> {
    if found.len() >= MOST_MESSAGES {
        return damaged(format!("an object has more than {MOST_MESSAGES} messages"));
    }
    let bytes = bytes.to_vec();
    let message = Message { kind, bytes };
    let more = match kind {
        kind::CONTINUATION => {
            let mut cursor = hdf.cursor(&message.bytes);
            let at = cursor.address()?;
            let at = at.ok_or_else(|| Fault::Damaged("an object goes on nowhere".to_owned()))?;
            Some((at, cursor.length()?))
        }
        _ => None,
    };
    // Those that go on count, too, as versions before 2 say how many there are.
    found.push((message, flags & 2 != 0));
    Ok(more)
}

/// The messages of a header of version 2.
fn second(hdf: &Hdf, address: u64) -> Parsed<Found> {
    let start = hdf.block_up_to(address, 64)?;
    let mut cursor = hdf.cursor(&start);
    cursor.signature("OHDR")?;
    cursor.version("an object header", &[2])?;
    let flags = cursor.u8()?;
    if flags & 0x20 != 0 {
        cursor.skip(16)?;
    }
    if flags & 0x10 != 0 {
        cursor.skip(4)?;
    }
    let length = cursor.number(1 << (flags & 3))?;
    let front = (start.len() - cursor.rest().len()) as u64;
    let all = front.saturating_add(length).saturating_add(4);
    let bytes = hdf.block(address, all)?;
    let mut found = Vec::new();
    let mut more = Vec::new();
    let body = &checked(&bytes, "an object header")?[front as usize..];
    messages(hdf, hdf.cursor(body), flags, &mut found, &mut more)?;
    while let Some((at, length)) = more.pop() {
        let bytes = hdf.block(at, length)?;
        let mut cursor = hdf.cursor(checked(&bytes, "an object header")?);
        cursor.signature("OCHK")?;
        messages(hdf, cursor, flags, &mut found, &mut more)?;
    }
    Ok(found)
}

/// The messages of a piece of a header of version 2.
fn messages(
    hdf: &Hdf,
    mut cursor: Cursor<'_>,
    flags: u8,
    found: &mut Found,
    more: &mut Vec<(u64, u64)>,
) -> Parsed<()> {
    let ordered = flags & 4 != 0;
    let front = if ordered { 6 } else { 4 };
    while cursor.rest().len() >= front {
        let kind = u16::from(cursor.u8()?);
        let length = usize::from(cursor.u16()?);
        let flags = cursor.u8()?;
        if ordered {
            cursor.skip(2)?;
        }
        let bytes = cursor.take(length)?;
        more.extend(add(hdf, found, (kind, flags, bytes))?);
    }
    Ok(())
}
