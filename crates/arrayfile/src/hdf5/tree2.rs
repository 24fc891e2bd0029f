//! B-trees of version 2: names of dense groups and attributes, and chunks.

use crate::hdf5::bytes::{Cursor, Parsed, checked, damaged};
use crate::hdf5::file::Hdf;

/// How deep a tree may be.
const MOST_DEPTH: u16 = 32;

/// A tree's header.
struct Tree {
    kind: u8,
    node_bytes: u64,
    record_bytes: usize,
    /// For each level from the leaves up: the bytes of a pointer to a node of it.
    pointer_bytes: Vec<(usize, usize)>,
}

/// A node that is still to be read.
struct Next {
    at: u64,
    records: u64,
    /// Levels below it.
    depth: u16,
}

/// Calls `each` with every record of the tree at an address, which must be of a kind.
///
/// # Errors
/// If the tree is damaged, and what `each` says.
pub(super) fn records(
    hdf: &Hdf,
    address: u64,
    kinds: &[u8],
    each: &mut dyn FnMut(u8, Cursor<'_>) -> Parsed<()>,
) -> Parsed<()> {
    let length = 4 + 1 + 1 + 4 + 2 + 2 + 2 + hdf.sizes.offset + 2 + hdf.sizes.length + 4;
    let bytes = hdf.block(address, length as u64)?;
    let mut cursor = hdf.cursor(checked(&bytes, "a B-tree")?);
    cursor.signature("BTHD")?;
    cursor.version("a B-tree", &[0])?;
    let kind = cursor.u8()?;
    if !kinds.contains(&kind) {
        return damaged(format!("a B-tree is of kind {kind}"));
    }
    let node_bytes = u64::from(cursor.u32()?);
    let record_bytes = usize::from(cursor.u16()?);
    let depth = cursor.u16()?;
    cursor.skip(2)?;
    let root = cursor.address()?;
    let count = u64::from(cursor.u16()?);
    if depth > MOST_DEPTH || record_bytes == 0 {
        return damaged(format!("a B-tree has {depth} levels"));
    }
    let pointer_bytes = pointers(hdf, node_bytes, record_bytes, depth)?;
    let tree = Tree {
        kind,
        node_bytes,
        record_bytes,
        pointer_bytes,
    };
    let mut next: Vec<Next> = root
        .map(|at| Next {
            at,
            records: count,
            depth,
        })
        .into_iter()
        .collect();
    while let Some(node) = next.pop() {
        tree.node(hdf, &node, &mut next, each)?;
    }
    Ok(())
}

/// The bytes of a child's count of records and of all records below it, for nodes whose children are of each level.
fn pointers(
    hdf: &Hdf,
    node_bytes: u64,
    record_bytes: usize,
    depth: u16,
) -> Parsed<Vec<(usize, usize)>> {
    /// Letters, version, kind, checksum.
    const FRONT: u64 = 10;
    let record = record_bytes as u64;
    let leaf = node_bytes.saturating_sub(FRONT) / record;
    let count_bytes = bytes_for(leaf);
    let mut all = leaf;
    let mut levels = vec![(count_bytes, 0)];
    for _ in 1..depth {
        let pointer = (hdf.sizes.offset + levels.last().map_or(0, |of| of.0 + of.1)) as u64;
        let here = node_bytes.saturating_sub(FRONT + pointer) / (record + pointer);
        let total = here
            .checked_add(1)
            .and_then(|of| of.checked_mul(all))
            .and_then(|of| of.checked_add(here));
        let Some(total) = total else {
            return damaged("a B-tree has too many levels");
        };
        all = total;
        levels.push((count_bytes, bytes_for(all)));
    }
    Ok(levels)
}

/// How many bytes a number up to `limit` has.
fn bytes_for(limit: u64) -> usize {
    (63 - limit.max(1).leading_zeros() as usize) / 8 + 1
}

impl Tree {
    fn node(
        &self,
        hdf: &Hdf,
        node: &Next,
        next: &mut Vec<Next>,
        each: &mut dyn FnMut(u8, Cursor<'_>) -> Parsed<()>,
    ) -> Parsed<()> {
        let records = (node.records as usize).saturating_mul(self.record_bytes);
        let level = node.depth.checked_sub(1).map(usize::from);
        let pointer = match level.map(|level| self.pointer_bytes.get(level)) {
            None => (0, 0),
            Some(Some(&of)) => of,
            Some(None) => return damaged("a B-tree has too many levels"),
        };
        let children = match level {
            Some(_) => {
                let one = hdf.sizes.offset + pointer.0 + pointer.1;
                (node.records as usize)
                    .saturating_add(1)
                    .saturating_mul(one)
            }
            None => 0,
        };
        let length = records.saturating_add(children).saturating_add(10) as u64;
        if length > self.node_bytes {
            return damaged("a node of a B-tree has more records than it can have");
        }
        let bytes = hdf.block(node.at, length)?;
        let mut cursor = hdf.cursor(checked(&bytes, "a node of a B-tree")?);
        cursor.signature(if level.is_some() { "BTIN" } else { "BTLF" })?;
        cursor.version("a node", &[0])?;
        if cursor.u8()? != self.kind {
            return damaged("a node of a B-tree belongs to another");
        }
        for _ in 0..node.records {
            let record = cursor.take(self.record_bytes)?;
            each(self.kind, hdf.cursor(record))?;
        }
        let Some(level) = level else { return Ok(()) };
        for _ in 0..=node.records {
            let at = cursor.address()?;
            let records = cursor.number(pointer.0)?;
            cursor.skip(pointer.1)?;
            let Some(at) = at else {
                return damaged("a node of a B-tree lies nowhere");
            };
            next.push(Next {
                at,
                records,
                depth: level as u16,
            });
        }
        Ok(())
    }
}
