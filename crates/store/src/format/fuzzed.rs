//! Hostile bytes for the fixed structures and the codec.

use fuzz::{Draw, Target};

use super::bytes::{Reader, Tag, checksum};
use super::codec;
use super::kind::{Codec, Kind};
use super::structures::{
    BLOCK, Bad, Blob, Directory, Entry, FIRST_EXTENT, Identity, LIMIT, Root, is_alignment,
    is_page_size,
};

pub(crate) fn any_blob(draw: &mut Draw) -> Blob {
    Blob {
        offset: FIRST_EXTENT + 64 * draw.below(1000) as u64,
        stored: draw.number(),
        raw: draw.number(),
        sum: draw.number() as u32,
        codec: *draw.one_of(&[Codec::Raw, Codec::Zstd]),
    }
}

/// Changes what a block says, and mostly makes its checksum anew.
pub(crate) fn forge_block(draw: &mut Draw, block: &mut Vec<u8>, tag: Tag, number: u32) {
    // The fields, and now and then the zeros behind them.
    let end = if draw.one_in(8) { BLOCK - 4 } else { 96 };
    draw.disturb(&mut block[..end]);
    if !draw.one_in(8) {
        let sum = checksum(tag, number, &block[..BLOCK - 4]);
        block[BLOCK - 4..].copy_from_slice(&sum.to_le_bytes());
    }
    if draw.one_in(20) {
        block.truncate(draw.below(BLOCK));
    }
}

fn word(bad: &Bad) -> &'static str {
    match bad {
        Bad::Magic => "magic",
        Bad::Checksum => "checksum",
        Bad::Newer(_) => "newer",
        Bad::Fields(_) => "fields",
    }
}

#[test]
fn root_slots() {
    let words = &["valid", "magic", "checksum", "fields"];
    let target = Target::new("format::fuzzed::root_slots", 20_000).expects(words);
    target.run(|draw| {
        let id = [draw.below(2) as u8; 16];
        let root = Root {
            sequence: draw.number() % LIMIT,
            version: draw.number() % LIMIT,
            file_bytes: draw.number(),
            log_counter: draw.number(),
            directory: any_blob(draw),
            alignment: *draw.one_of(&[64, 512, 4096]),
        };
        let mut block = root.encode(&id);
        forge_block(draw, &mut block, Tag::Root, u32::from(root.slot()));
        match Root::decode(&block, root.slot(), &[0; 16]) {
            Ok(found) => {
                assert!(found.sequence.max(found.version) < LIMIT && is_alignment(found.alignment));
                let again = found.encode(&[0; 16]);
                assert_eq!(Root::decode(&again, found.slot(), &[0; 16]), Ok(found));
                "valid"
            }
            Err(bad) => word(&bad),
        }
    });
}

#[test]
fn identity_blocks() {
    let words = &["valid", "magic", "checksum", "fields", "newer", "draft"];
    let target = Target::new("format::fuzzed::identity_blocks", 20_000).expects(words);
    target.run(|draw| {
        let identity = Identity {
            version: draw.below(2) as u32,
            page_size: 1 << (12 + draw.below(9)),
            id: [7; 16],
            created: draw.number(),
        };
        let drafted = draw.one_in(4);
        let mut block = identity.encode();
        forge_block(draw, &mut block, Tag::Identity, 0);
        if drafted && block.len() > 8 {
            block[..8].copy_from_slice(b"atoll..\0");
        }
        if let Some(found) = Identity::decode_draft(&block) {
            assert!(drafted && is_page_size(found.page_size));
            return "draft";
        }
        match Identity::decode(&block) {
            Ok(found) => {
                assert!(is_page_size(found.page_size));
                assert_eq!(Identity::decode(&found.encode()), Ok(found));
                "valid"
            }
            Err(bad) => word(&bad),
        }
    });
}

#[test]
fn directories() {
    let target = Target::new("format::fuzzed::directories", 20_000).expects(&["valid", "refused"]);
    target.run(|draw| {
        let mut chunks = Vec::new();
        for _ in 0..draw.below(5) {
            chunks.push((!draw.one_in(3)).then(|| any_blob(draw)));
        }
        let mut spaces = Vec::new();
        for _ in 0..draw.below(5) {
            spaces.push((draw.number() as u32, any_blob(draw)));
        }
        let directory = Directory {
            next_page: (chunks.len() as u64 * 1024).saturating_sub(draw.below(1024) as u64),
            next_space: draw.number() as u32,
            chunks,
            spaces,
        };
        let mut bytes = directory.encode();
        assert_eq!(Directory::decode(&bytes).as_ref(), Some(&directory));
        draw.mutate(&mut bytes);
        match Directory::decode(&bytes) {
            Some(found) => {
                assert_eq!(found.encode().len(), bytes.len());
                assert_eq!(Directory::decode(&found.encode()), Some(found));
                "valid"
            }
            None => "refused",
        }
    });
}

#[test]
fn map_entries() {
    let words = &["valid", "none", "refused"];
    let target = Target::new("format::fuzzed::map_entries", 40_000).expects(words);
    target.run(|draw| {
        let raw = 1 + draw.below(65_536) as u32;
        let codec = *draw.one_of(&[Codec::Raw, Codec::Zstd]);
        let entry = Entry {
            offset: any_blob(draw).offset,
            stored: match codec {
                Codec::Raw => raw,
                Codec::Zstd => raw / 2,
            },
            raw,
            sum: draw.number() as u32,
            bucket: draw.number() as u8,
            kind: *draw.one_of(&Kind::ALL),
            codec,
        };
        let mut bytes = [0; 24];
        if !draw.one_in(10) {
            entry.write(&mut bytes);
            draw.disturb(&mut bytes);
        }
        match Entry::take(&mut Reader::new(&bytes), 65_536) {
            Ok(Some(found)) => {
                assert!((1..=65_536).contains(&found.raw) && found.stored <= found.raw);
                assert!(found.offset >= FIRST_EXTENT && found.offset.is_multiple_of(64));
                assert!(found.offset.checked_add(found.extent()).is_some());
                let mut again = [0; 24];
                found.write(&mut again);
                assert_eq!(again, bytes);
                "valid"
            }
            Ok(None) => "none",
            Err(_) => "refused",
        }
    });
}

/// The bytes of a frame of zstd, as hostile as they come: of a length that it says, or does not, with a window as
/// large as it can say.
pub(crate) fn any_frame(draw: &mut Draw, raw: &[u8]) -> Vec<u8> {
    let mut frame = zstd::bulk::compress(raw, 1).unwrap();
    match draw.below(4) {
        0 => draw.mutate(&mut frame),
        1 => {
            // Most of what there is to say stands at the beginning.
            let head = frame.len().min(18);
            draw.disturb(&mut frame[4.min(head)..head]);
        }
        2 => {
            // No length, and any window.
            let window = draw.number() as u8;
            frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
            // A last block of one byte that comes again and again, or of bytes as they are.
            let (kind, length) = *draw.one_of(&[(1, raw.len()), (0, raw.len()), (1, 1 << 17)]);
            frame.extend(&((length << 3 | kind << 1 | 1) as u32).to_le_bytes()[..3]);
            match (kind, raw.first()) {
                (1, first) => frame.push(first.copied().unwrap_or_default()),
                _ => frame.extend(raw),
            }
        }
        _ => {}
    }
    frame
}

#[test]
fn pages_of_both_codecs() {
    let words = &["the same", "another", "refused"];
    let target = Target::new("format::fuzzed::pages_of_both_codecs", 6_000).expects(words);
    target.run(|draw| {
        let length = 1 + draw.below(70_000);
        let raw = draw.bytes(length);
        let (codec, mut stored) = if draw.one_in(4) {
            (Codec::Raw, raw.clone())
        } else {
            (Codec::Zstd, any_frame(draw, &raw))
        };
        if draw.one_in(10) {
            draw.mutate(&mut stored);
        }
        let claimed = match draw.below(4) {
            0 => draw.number() as usize % 200_000,
            _ => length,
        };
        let mut into = vec![0; claimed];
        let page = codec::decompress(codec, &stored, &mut into).map(|()| into);
        // A structure is taken by its stored bytes, whatever it claims.
        let claimed = match draw.below(8) {
            0 => draw.number(),
            _ => claimed as u64,
        };
        let unpacked = codec::unpack(codec, stored, claimed);
        if let Ok(unpacked) = &unpacked {
            assert_eq!(unpacked.len() as u64, claimed);
        }
        match (page, unpacked) {
            (Ok(page), Ok(unpacked)) if page.len() == unpacked.len() => {
                assert!(page == unpacked, "both ways give the same");
                if page == raw { "the same" } else { "another" }
            }
            (Err(_), Err(_)) => "refused",
            _ => "refused by one",
        }
    });
}
