//! Attributes of data sets: those that say what the values mean.

use crate::hdf5::bytes::{Cursor, Fault, Parsed, damaged, unread};
use crate::hdf5::dataset::space_of;
use crate::hdf5::datatype::{Class, Datatype};
use crate::hdf5::file::Hdf;
use crate::hdf5::heap::{Collections, Fractal};
use crate::hdf5::object::{Object, kind, shared_bytes};
use crate::hdf5::tree2;
use crate::hdf5::values::scalars;
use crate::variables::model::Value;

/// The attributes that say how values are read. Others are only kept: of those it is no fault if they are damaged, or of a
/// type that is not read.
const NEEDED: [&str; 14] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "DIMENSION_LABELS",
    "_FillValue",
    "missing_value",
    "scale_factor",
    "add_offset",
    "_Unsigned",
    "dtype",
    "coordinates",
    "bounds",
    "climatology",
    "grid_mapping",
];

/// The most bytes of attributes that are only kept, of a whole file; later ones are left out.
const MOST_KEPT: usize = 64 << 20;

/// The most bytes of the texts of an attribute that lie in a heap.
const MOST_TEXT: usize = 1 << 20;

/// What of a data set refers to others, and is not needed.
const USERS: &str = "REFERENCE_LIST";

/// The most values of an attribute that are read.
const MOST_VALUES: u64 = 4096;

/// An attribute's value: also the addresses of objects, a list for each value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// Numbers or texts.
    Plain(Value),
    /// Addresses of objects.
    Objects(Vec<Vec<u64>>),
}

/// The attributes of an object.
///
/// # Errors
/// If they are damaged.
pub(super) fn attributes(
    hdf: &Hdf,
    object: &Object,
    heaps: &mut Collections,
) -> Parsed<Vec<(String, Content)>> {
    let mut found = Vec::new();
    for bytes in object.all(kind::ATTRIBUTE) {
        found.extend(attribute(hdf, bytes, heaps)?);
    }
    let Some(info) = object.first(kind::ATTRIBUTE_INFO) else {
        return Ok(found);
    };
    let mut cursor = hdf.cursor(info);
    cursor.version("attributes", &[0])?;
    if cursor.u8()? & 1 != 0 {
        cursor.skip(2)?;
    }
    if let (Some(heap), Some(tree)) = (cursor.address()?, cursor.address()?) {
        let heap = Fractal::read(hdf, heap)?;
        tree2::records(hdf, tree, &[8], &mut |_, mut record| {
            let id = record.take(8)?;
            if record.u8()? & 2 != 0 {
                return unread("shares attributes between objects; write it with h5repack");
            }
            let length = heap.id_bytes().min(8);
            let bytes = heap.object(hdf, &id[..length])?;
            found.extend(attribute(hdf, &bytes, heaps)?);
            Ok(())
        })?;
    }
    Ok(found)
}

/// An attribute by its message; `None` if its values are not read.
fn attribute(
    hdf: &Hdf,
    bytes: &[u8],
    heaps: &mut Collections,
) -> Parsed<Option<(String, Content)>> {
    let mut cursor = hdf.cursor(bytes);
    let version = cursor.version("an attribute", &[1, 2, 3])?;
    let flags = cursor.u8()?;
    let lengths = [cursor.u16()?, cursor.u16()?, cursor.u16()?].map(usize::from);
    if version == 3 {
        cursor.skip(1)?;
    }
    let mut part = |length: usize| {
        let taken = cursor.take(length)?;
        if version == 1 {
            let padding = length.next_multiple_of(8) - length;
            cursor.skip(padding.min(cursor.rest().len()))?;
        }
        Ok::<&[u8], Fault>(taken)
    };
    let (name, datatype, space) = (part(lengths[0])?, part(lengths[1])?, part(lengths[2])?);
    let name = String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name)).into_owned();
    if name == USERS {
        return Ok(None);
    }
    let parts = (flags, version, datatype, space);
    let needed = NEEDED.contains(&name.as_str());
    match of_parts(hdf, parts, cursor, heaps) {
        Ok(content) if needed => Ok(content.map(|content| (name, content))),
        Ok(content) => {
            let found = content.filter(|content| {
                heaps.kept = heaps.kept.saturating_add(bytes_of(content));
                heaps.kept <= MOST_KEPT
            });
            Ok(found.map(|content| (name, content)))
        }
        Err(Fault::Damaged(_) | Fault::Unread(_)) if !needed => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Bytes of an attribute in memory, about.
fn bytes_of(content: &Content) -> usize {
    match content {
        Content::Plain(Value::Numbers(numbers)) => size_of_val(&numbers[..]),
        Content::Plain(Value::Texts(texts)) => {
            texts.iter().map(|of| of.len() + size_of::<String>()).sum()
        }
        Content::Objects(lists) => lists.iter().map(|of| size_of_val(&of[..])).sum(),
    }
}

/// The values of an attribute, of which flags, the version, the type and the dimensions are given; `None` if they are not
/// read.
fn of_parts(
    hdf: &Hdf,
    (flags, version, datatype, space): (u8, u8, &[u8], &[u8]),
    cursor: Cursor<'_>,
    heaps: &mut Collections,
) -> Parsed<Option<Content>> {
    let shared = |bytes: &[u8], flag: u8, of: u16| {
        if version > 1 && flags & flag != 0 {
            shared_bytes(hdf, bytes, of, 0)
        } else {
            Ok(bytes.to_vec())
        }
    };
    let datatype = shared(datatype, 1, kind::DATATYPE)?;
    let space = shared(space, 2, kind::DATASPACE)?;
    let datatype = Datatype::parse(&mut hdf.cursor(&datatype))?;
    let shape = space_of(hdf, &space)?.shape;
    let count = shape.map_or(Some(0), |shape| {
        shape.iter().try_fold(1u64, |all, &of| all.checked_mul(of))
    });
    match count {
        Some(count) if count <= MOST_VALUES => {
            content(hdf, cursor, &datatype, count as usize, heaps)
        }
        _ => Ok(None),
    }
}

/// The values of an attribute.
fn content(
    hdf: &Hdf,
    mut cursor: Cursor<'_>,
    datatype: &Datatype,
    count: usize,
    heaps: &mut Collections,
) -> Parsed<Option<Content>> {
    if let Some((of, big_endian)) = datatype.number() {
        let bytes = cursor.take(count.saturating_mul(datatype.width))?;
        let numbers = scalars(of, big_endian, bytes);
        return Ok(Some(Content::Plain(Value::Numbers(numbers))));
    }
    match &datatype.class {
        Class::Text => {
            let texts = (0..count).map(|_| cursor.take(datatype.width).map(text));
            let texts = texts.collect::<Parsed<Vec<String>>>()?;
            Ok(Some(Content::Plain(Value::Texts(texts))))
        }
        Class::LongText => {
            let (mut texts, mut bytes) = (Vec::new(), 0);
            for _ in 0..count {
                let found = text(&long(hdf, &mut cursor, 1, heaps)?);
                bytes += found.len();
                // Many may refer to one.
                if bytes > MOST_TEXT {
                    return Ok(None);
                }
                texts.push(found);
            }
            Ok(Some(Content::Plain(Value::Texts(texts))))
        }
        Class::List(of) if of.class == Class::Reference => {
            let mut lists = Vec::new();
            for _ in 0..count {
                let bytes = long(hdf, &mut cursor, of.width, heaps)?;
                let mut cursor = hdf.cursor(&bytes);
                let mut list = Vec::new();
                while cursor.rest().len() >= hdf.sizes.offset && of.width == hdf.sizes.offset {
                    list.extend(cursor.address()?);
                }
                lists.push(list);
            }
            Ok(Some(Content::Objects(lists)))
        }
        _ => Ok(None),
    }
}

/// The bytes of a value that lies in a heap.
fn long(
    hdf: &Hdf,
    cursor: &mut Cursor<'_>,
    width: usize,
    heaps: &mut Collections,
) -> Parsed<Vec<u8>> {
    let count = cursor.u32()? as usize;
    let at = cursor.address()?;
    let number = cursor.u32()?;
    match at {
        Some(at) if count > 0 && at > 0 => {
            let mut bytes = heaps.object(hdf, at, number)?;
            let length = count.saturating_mul(width);
            if length > bytes.len() {
                return damaged("a value of any length is shorter than it should be");
            }
            bytes.truncate(length);
            Ok(bytes)
        }
        _ => Ok(Vec::new()),
    }
}

/// A text up to its first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]);
    text.trim_end().to_owned()
}
