//! Groups: what they have, and where it lies.

use crate::hdf5::bytes::{Cursor, Parsed, damaged};
use crate::hdf5::file::Hdf;
use crate::hdf5::heap::{Fractal, Names};
use crate::hdf5::object::{Object, kind};
use crate::hdf5::tree2;

/// The most members of a group.
const MOST_MEMBERS: usize = 1 << 16;

/// The most levels of a B-tree.
const MOST_LEVELS: u8 = 32;

/// A name in a group and what it stands for.
pub(super) type Member = (String, Link);

/// What a name in a group stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Link {
    /// The object at this address.
    Hard(u64),
    /// What has this path, from the group on, or from the root if it begins with `/`: a soft link.
    Soft(String),
    /// Something in another file, which has this name: an external link.
    Elsewhere(String),
}

/// The members of a group, in the order in which they were made if the file has it, else by name; `None` if the object is
/// none.
///
/// # Errors
/// If it is damaged.
pub(super) fn members(hdf: &Hdf, object: &Object) -> Parsed<Option<Vec<Member>>> {
    if let Some(bytes) = object.first(kind::SYMBOL_TABLE) {
        let mut cursor = hdf.cursor(bytes);
        let (Some(tree), Some(heap)) = (cursor.address()?, cursor.address()?) else {
            return damaged("the members of a group lie nowhere");
        };
        let mut found = Vec::new();
        symbols(hdf, tree, &Names::read(hdf, heap)?, &mut found)?;
        found.sort();
        return Ok(Some(found));
    }
    let mut found = Vec::new();
    let Some(info) = object.first(kind::LINK_INFO) else {
        return Ok(None);
    };
    for link in object.all(kind::LINK) {
        add(&mut found, link_of(hdf.cursor(link))?)?;
    }
    let mut cursor = hdf.cursor(info);
    cursor.version("links", &[0])?;
    if cursor.u8()? & 1 != 0 {
        cursor.skip(8)?;
    }
    if let (Some(heap), Some(tree)) = (cursor.address()?, cursor.address()?) {
        let heap = Fractal::read(hdf, heap)?;
        tree2::records(hdf, tree, &[5], &mut |_, mut record| {
            record.skip(4)?;
            let link = heap.object(hdf, record.take(heap.id_bytes())?)?;
            add(&mut found, link_of(hdf.cursor(&link))?)
        })?;
    }
    found.sort();
    Ok(Some(found.into_iter().map(|(_, member)| member).collect()))
}

fn add<T>(found: &mut Vec<T>, member: Option<T>) -> Parsed<()> {
    if found.len() >= MOST_MEMBERS {
        return damaged(format!("a group has more than {MOST_MEMBERS} members"));
    }
    found.extend(member);
    Ok(())
}

/// A member by its message, and which it is in order if the file has an order; `None` if it is no object of this file.
fn link_of(mut cursor: Cursor<'_>) -> Parsed<Option<(u64, Member)>> {
    cursor.version("a link", &[1])?;
    let flags = cursor.u8()?;
    let form = if flags & 8 != 0 { cursor.u8()? } else { 0 };
    let order = if flags & 4 != 0 { cursor.number(8)? } else { 0 };
    if flags & 16 != 0 {
        cursor.skip(1)?;
    }
    let length = cursor.number(1 << (flags & 3))?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let name = String::from_utf8_lossy(cursor.take(length)?).into_owned();
    let link = match form {
        0 => cursor.address()?.map(Link::Hard),
        1 => {
            let length = usize::from(cursor.u16()?);
            let path = String::from_utf8_lossy(cursor.take(length)?).into_owned();
            Some(Link::Soft(path))
        }
        64 => {
            let length = usize::from(cursor.u16()?);
            // A version and flags, and the names of the file and of the object, each with a zero behind it.
            let names = cursor.take(length)?.get(1..).unwrap_or_default();
            let file = names.split(|byte| *byte == 0).next().unwrap_or_default();
            Some(Link::Elsewhere(String::from_utf8_lossy(file).into_owned()))
        }
        _ => None,
    };
    Ok(link.map(|link| (order, (name, link))))
}

/// The members of a group of the old kind.
fn symbols(hdf: &Hdf, tree: u64, names: &Names, found: &mut Vec<Member>) -> Parsed<()> {
    let mut next = vec![(tree, MOST_LEVELS)];
    while let Some((at, below)) = next.pop() {
        let start = hdf.block(at, 8)?;
        if start.starts_with(b"SNOD") {
            leaf(hdf, at, names, found)?;
            continue;
        }
        let mut cursor = hdf.cursor(&start);
        cursor.signature("TREE")?;
        let (form, level, count) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
        if form != 0 || level >= below {
            return damaged("a B-tree of a group has another's nodes");
        }
        let length = (usize::from(count) + 1) * (hdf.sizes.length + hdf.sizes.offset);
        let bytes = hdf.block(at, (8 + 2 * hdf.sizes.offset + length) as u64)?;
        let mut cursor = hdf.cursor(&bytes);
        cursor.skip(8 + 2 * hdf.sizes.offset)?;
        for _ in 0..count {
            cursor.length()?;
            match cursor.address()? {
                // What lies below level 0 is no node of the tree, but its entries.
                Some(at) => next.push((at, level)),
                None => return damaged("a node of a B-tree lies nowhere"),
            }
        }
    }
    Ok(())
}

/// The entries of a leaf.
fn leaf(hdf: &Hdf, at: u64, names: &Names, found: &mut Vec<Member>) -> Parsed<()> {
    /// An entry that is a link by name.
    const BY_NAME: u32 = 2;
    let start = hdf.block(at, 8)?;
    let mut cursor = hdf.cursor(&start);
    cursor.skip(6)?;
    let count = usize::from(cursor.u16()?);
    let entry = 2 * hdf.sizes.offset + 24;
    let bytes = hdf.block(at.saturating_add(8), (count * entry) as u64)?;
    let mut cursor = hdf.cursor(&bytes);
    for _ in 0..count {
        let name = cursor.address()?.unwrap_or(u64::MAX);
        let object = cursor.address()?;
        let form = cursor.u32()?;
        cursor.skip(4)?;
        let path = u64::from(cursor.u32()?);
        cursor.skip(12)?;
        if form == BY_NAME {
            add(found, Some((names.at(name)?, Link::Soft(names.at(path)?))))?;
        } else if let Some(object) = object {
            add(found, Some((names.at(name)?, Link::Hard(object))))?;
        }
    }
    Ok(())
}
