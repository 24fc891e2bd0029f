//! The catalog: ordered maps, one per space, shared between versions and copied where changed.

use std::sync::Arc;

use crate::catalog::tree::{Iter, Tree};
use crate::format::bytes::{Put, Reader};

/// One ordered map.
pub(crate) type Space = Tree<Bytes, Bytes>;

/// A key or a value, shared between versions.
pub(crate) type Bytes = Arc<[u8]>;

/// All spaces as one version has them. Cloning copies one pointer; a change copies what lies on
/// the way to the entry it touches.
///
/// Invariant: no space is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Catalog {
    pub(crate) spaces: Tree<u32, Space>,
    /// The next number that [`new_space`](Catalog::new_space) gives out; 0 is the directory.
    pub(crate) next_space: u32,
}

impl Catalog {
    pub(crate) fn new() -> Catalog {
        Catalog {
            spaces: Tree::default(),
            next_space: 1,
        }
    }

    pub(crate) fn get(&self, space: u32, key: &[u8]) -> Option<Arc<[u8]>> {
        self.spaces.get(&space)?.get(key).cloned()
    }

    pub(crate) fn prefix(&self, space: u32, prefix: &[u8]) -> Entries<'_> {
        let space = self.spaces.get(&space);
        Entries {
            range: space.map(|space| space.iter_from(prefix)),
            prefix: prefix.into(),
        }
    }

    /// As [`prefix`](Catalog::prefix), without the keys before `from`, which starts with `prefix`.
    pub(crate) fn prefix_from(&self, space: u32, prefix: &[u8], from: &[u8]) -> Entries<'_> {
        debug_assert!(from.starts_with(prefix));
        let space = self.spaces.get(&space);
        Entries {
            range: space.map(|space| space.iter_from(from)),
            prefix: prefix.into(),
        }
    }

    pub(crate) fn put(&mut self, space: u32, key: Arc<[u8]>, value: Arc<[u8]>) {
        // A space that a caller numbered himself is not given out later.
        self.next_space = self.next_space.max(space.saturating_add(1));
        match self.spaces.get_mut(&space) {
            Some(entries) => entries.insert(key, value),
            None => self
                .spaces
                .insert(space, [(key, value)].into_iter().collect()),
        }
    }

    pub(crate) fn delete(&mut self, space: u32, key: &[u8]) {
        // Nothing is copied for a key that is not there.
        if self.get(space, key).is_some()
            && let Some(entries) = self.spaces.get_mut(&space)
        {
            entries.remove(key);
            if entries.is_empty() {
                self.spaces.remove(&space);
            }
        }
    }

    pub(crate) fn new_space(&mut self) -> u32 {
        let space = self.next_space;
        self.next_space = space.saturating_add(1);
        space
    }

    pub(crate) fn keys(&self) -> u64 {
        self.spaces
            .iter()
            .map(|(_, space)| space.len() as u64)
            .sum()
    }
}

/// The bytes of a space as a checkpoint writes them.
pub(crate) fn encode_space(space: &Space) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u64(space.len() as u64);
    for (key, value) in space.iter() {
        out.put_slice(key);
        out.put_slice(value);
    }
    out
}

/// The space of these bytes, if they are one.
pub(crate) fn decode_space(bytes: &[u8]) -> Option<Space> {
    let mut reader = Reader::new(bytes);
    let count = reader.u64()?;
    let mut space = Space::default();
    for _ in 0..count {
        let key = reader.slice()?;
        space.insert(key.into(), reader.slice()?.into());
    }
    (reader.is_empty() && space.len() as u64 == count).then_some(space)
}

/// The entries of a space whose keys start with a prefix, in the order of the keys.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    range: Option<Iter<'a, Bytes, Bytes>>,
    prefix: Box<[u8]>,
}

impl Iterator for Entries<'_> {
    type Item = (Arc<[u8]>, Arc<[u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.range.as_mut()?.next()?;
        if !key.starts_with(&self.prefix) {
            self.range = None;
            return None;
        }
        Some((key.clone(), value.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Arc<[u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn prefixes_are_ordered_and_bounded() {
        let mut catalog = Catalog::new();
        for key in ["b", "a/2", "a/1", "a", "a0"] {
            catalog.put(3, bytes(key), bytes(key));
        }
        let keys: Vec<_> = catalog.prefix(3, b"a/").map(|(key, _)| key).collect();
        assert_eq!(keys, [bytes("a/1"), bytes("a/2")]);
        let from = |from: &[u8]| catalog.prefix_from(3, b"a/", from).next();
        assert_eq!(from(b"a/1+").map(|(key, _)| key), Some(bytes("a/2")));
        assert_eq!(from(b"a/3"), None);
        assert_eq!(catalog.prefix(3, b"").count(), 5);
        assert_eq!(catalog.prefix(4, b"").count(), 0);
        assert_eq!(catalog.new_space(), 4);
    }

    #[test]
    fn a_clone_does_not_see_later_changes() {
        let mut catalog = Catalog::new();
        catalog.put(0, bytes("k"), bytes("old"));
        let before = catalog.clone();
        catalog.put(0, bytes("k"), bytes("new"));
        assert_eq!(before.get(0, b"k"), Some(bytes("old")));
        catalog.delete(0, b"k");
        assert!(catalog.spaces.is_empty());
        assert_eq!(before.get(0, b"k"), Some(bytes("old")));
    }

    /// Whether a change of one key copies others is seen at how many handles those have.
    #[test]
    fn a_change_leaves_most_of_a_space_and_of_the_spaces_shared() {
        let keys: Vec<_> = (0..20_000).map(|key| bytes(&format!("{key:05}"))).collect();
        let mut catalog = Catalog::new();
        for key in &keys {
            catalog.put(3, key.clone(), key.clone());
        }
        for space in 10..5000 {
            catalog.put(space, keys[0].clone(), keys[1].clone());
        }
        let before = catalog.clone();
        let handles: Vec<_> = keys.iter().map(Arc::strong_count).collect();
        catalog.put(3, bytes("10000"), bytes("new"));
        catalog.delete(3, b"19999");
        catalog.put(17, bytes("k"), bytes("v"));
        let copied = keys
            .iter()
            .zip(handles)
            .filter(|(key, handles)| Arc::strong_count(key) > *handles);
        let copied = copied.count();
        assert!(copied < 200, "{copied} of {} keys were copied", keys.len());
        let shared = |space| {
            let [old, new] = [&before, &catalog].map(|catalog| catalog.get(space, b"00000"));
            Arc::ptr_eq(&old.unwrap(), &new.unwrap())
        };
        assert!((10..5000).all(shared));
        assert_eq!(before.get(3, b"10000"), Some(bytes("10000")));
        assert_eq!((before.keys(), catalog.keys()), (24_990, 24_990));
    }

    #[test]
    fn spaces_come_back_and_cut_ones_do_not() {
        let space: Space = [("a", "1"), ("b", ""), ("", "3")]
            .into_iter()
            .map(|(key, value)| (bytes(key), bytes(value)))
            .collect();
        let encoded = encode_space(&space);
        assert_eq!(decode_space(&encoded), Some(space));
        for length in 0..encoded.len() {
            assert_eq!(decode_space(&encoded[..length]), None);
        }
    }
}
