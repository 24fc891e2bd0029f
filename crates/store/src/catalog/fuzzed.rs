//! Hostile bytes for spaces and changes.

use std::collections::BTreeMap;

use fuzz::{Draw, Target};

use super::changes::Changes;
use super::spaces::{Catalog, Space, decode_space, encode_space};
use crate::format::bytes::{Tag, checksum};
use crate::format::kind::{Codec, Kind};
use crate::format::structures::{Entry, FIRST_EXTENT};

const PAGE: u32 = 65_536;

pub(crate) fn any_key(draw: &mut Draw) -> Vec<u8> {
    let length = *draw.one_of(&[0, 1, 4, 4, 30]);
    let number = draw.below(200) as u32;
    let mut key = vec![b'k'; length];
    let bytes = number.to_be_bytes();
    key.iter_mut()
        .rev()
        .zip(bytes.iter().rev())
        .for_each(|(key, byte)| *key = *byte);
    key
}

fn any_space(draw: &mut Draw) -> Space {
    let entries = *draw.one_of(&[0, 1, 3, 40, 300]);
    let mut space = Space::default();
    for _ in 0..draw.below(entries + 1) {
        let (key, length) = (any_key(draw), draw.below(50));
        space.insert(key.into(), draw.bytes(length).into());
    }
    space
}

/// That a space is a map in the order of its keys.
fn is_a_map(space: &Space) {
    let model: BTreeMap<_, _> = space
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    assert_eq!(model.len(), space.len());
    assert!(
        space.iter().map(|(key, _)| key).eq(model.keys()),
        "in the order of the keys"
    );
    for (key, value) in &model {
        assert_eq!(space.get(&key[..]), Some(value));
    }
}

#[test]
fn spaces() {
    let target = Target::new("catalog::fuzzed::spaces", 6_000).expects(&["valid", "refused"]);
    target.run(|draw| {
        let mut bytes = encode_space(&any_space(draw));
        if draw.one_in(3) {
            let end = bytes.len().min(60);
            draw.disturb(&mut bytes[..end]);
        } else {
            draw.mutate(&mut bytes);
        }
        let Some(mut space) = decode_space(&bytes) else {
            return "refused";
        };
        is_a_map(&space);
        assert_eq!(decode_space(&encode_space(&space)).as_ref(), Some(&space));
        // What came in any order is a tree like any other.
        for _ in 0..draw.below(40) {
            let key = any_key(draw);
            if !space.remove(&key[..]) {
                space.insert(key.into(), [1].as_slice().into());
            }
        }
        is_a_map(&space);
        "valid"
    });
}

/// The changes of some transaction. With images, or without.
pub(crate) fn any_changes(draw: &mut Draw) -> Changes {
    let mut changes = Changes {
        next_space: draw.number() as u32,
        ..Changes::default()
    };
    let images = draw.one_in(2);
    for _ in 0..draw.below(4) {
        let page = *draw.one_of(&[0, 1, 2, 3, 7, 1023, 1024]);
        let length = 1 + draw.below(300);
        let image = draw.bytes(length);
        let entry = Entry {
            offset: FIRST_EXTENT + 64 * draw.below(40) as u64,
            stored: image.len() as u32,
            raw: image.len() as u32,
            sum: checksum(Tag::Page, page, &image),
            bucket: 0,
            kind: Kind::Blob,
            codec: Codec::Raw,
        };
        changes.written.push((page, entry));
        if images {
            changes.images.push(image.into());
        }
    }
    for _ in 0..draw.below(3) {
        changes.freed.push(*draw.one_of(&[0, 1, 2, 3, 9, u32::MAX]));
    }
    for _ in 0..draw.below(3) {
        changes.dropped.insert(draw.below(4) as u32);
    }
    for _ in 0..draw.below(6) {
        let (space, key, length) = (draw.below(4) as u32, any_key(draw), draw.below(200));
        let value = (!draw.one_in(3)).then(|| draw.bytes(length).into());
        changes.keys.insert((space, key.into()), value);
    }
    changes
}

#[test]
fn changes_of_a_record() {
    let words = &["valid", "with images", "refused"];
    let target = Target::new("catalog::fuzzed::changes_of_a_record", 20_000).expects(words);
    target.run(|draw| {
        let mut bytes = any_changes(draw).encode();
        draw.mutate(&mut bytes);
        let Some(changes) = Changes::decode(&bytes, PAGE) else {
            return "refused";
        };
        assert!(
            changes.encoded_bytes() <= bytes.len() as u64,
            "but for keys that come twice"
        );
        assert_eq!(
            Changes::decode(&changes.encode(), PAGE).as_ref(),
            Some(&changes)
        );
        let mut catalog = Catalog::new();
        changes.apply(&mut catalog);
        changes.apply(&mut catalog);
        for (_, space) in catalog.spaces.iter() {
            assert!(!space.is_empty());
            is_a_map(space);
        }
        if changes.images.is_empty() {
            "valid"
        } else {
            "with images"
        }
    });
}
