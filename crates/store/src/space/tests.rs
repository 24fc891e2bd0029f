//! The page map over chunks in a file.

use std::sync::Arc;

use buffer::PageId;
use io::Device;
use io::fault::Disk;
use memory::Budget;

use crate::error::{Error, Region};
use crate::format::bytes::checksum;
use crate::format::codec;
use crate::format::disk::tag_of;
use crate::format::kind::{Codec, Kind};
use crate::format::structures::{
    Blob, CHUNK, CHUNK_BYTES, Directory, ENTRY_BYTES, Entry, FIRST_EXTENT, aligned,
};
use crate::space::chunk::Surroundings;
use crate::space::leaf::LEAF_BYTES;
use crate::space::map::PageMap;

fn entry(at: u64, bucket: u8) -> Entry {
    Entry {
        offset: FIRST_EXTENT + 64 * at,
        stored: 7,
        raw: 7,
        sum: 1,
        bucket,
        kind: Kind::Values,
        codec: Codec::Raw,
    }
}

/// Writes a chunk with these pages at the end of a device.
fn put_chunk(data: &Arc<dyn Device>, chunk: u32, pages: &[(PageId, Entry)]) -> Blob {
    let mut raw = vec![0; CHUNK_BYTES];
    for (page, entry) in pages {
        let at = (page % CHUNK) as usize * ENTRY_BYTES;
        entry.write(&mut raw[at..at + ENTRY_BYTES]);
    }
    let (tag, number) = tag_of(Region::MapChunk(chunk));
    let (codec, stored) = codec::compress(&raw);
    let blob = Blob {
        offset: aligned(data.len().unwrap().max(1 << 20)),
        stored: stored.len() as u64,
        raw: raw.len() as u64,
        sum: checksum(tag, number, &stored),
        codec,
    };
    data.write_at(blob.offset, &stored).unwrap();
    blob
}

const CHUNKS: u32 = 20;

/// A device with chunks, each of which has its first page, and a map of them within `bound` bytes.
fn chunks(bound: u64, budget: Arc<Budget>, fixed: bool) -> (Disk, PageMap, Directory) {
    let disk = Disk::new(0);
    let data = disk.device("data");
    let blobs = (0..CHUNKS).map(|chunk| {
        let page = entry(u64::from(chunk), chunk as u8);
        Some(put_chunk(&data, chunk, &[(chunk * CHUNK, page)]))
    });
    let directory = Directory {
        next_page: u64::from(CHUNKS * CHUNK),
        chunks: blobs.collect(),
        ..Directory::default()
    };
    let map = PageMap::new(data, 65_536, budget, bound, fixed);
    map.begin(&directory, Vec::new()).unwrap();
    (disk, map, directory)
}

#[test]
fn entries_are_found_at_every_corner() {
    let disk = Disk::new(0);
    let map = PageMap::new(disk.device("data"), 65_536, Budget::new(0), 0, false);
    let pages = [
        0,
        1,
        1023,
        1024,
        2_097_151,
        2_097_152,
        u32::MAX - 1,
        u32::MAX,
    ];
    for (bucket, &page) in (0..).zip(&pages) {
        assert_eq!(map.get(page).unwrap(), None);
        map.open(page, &entry(9, bucket)).unwrap();
    }
    for (bucket, &page) in (0..).zip(&pages) {
        assert_eq!(map.get(page).unwrap(), Some(entry(9, bucket)));
    }
    let live = PageMap::chunks_below(2048).flat_map(|chunk| map.chunk(chunk).unwrap());
    let live: Vec<_> = live.map(|(page, _)| page).collect();
    assert_eq!(live, [0, 1, 1023, 1024]);
    map.clear(1023);
    map.let_go(1023);
    assert_eq!(map.get(1023).unwrap(), None);
    assert_eq!(map.get(2).unwrap(), None);
}

#[test]
fn chunks_are_read_when_they_are_looked_up_and_stay_within_the_bound() {
    let budget = Budget::new(1 << 30);
    let (disk, map, _) = chunks(8 * LEAF_BYTES + (1 << 18), budget.clone(), false);
    assert_eq!(disk.counts().reads, 0);
    for round in 0..3 {
        for chunk in 0..CHUNKS {
            let page = chunk * CHUNK;
            assert_eq!(map.get(page).unwrap().unwrap().bucket, chunk as u8);
            assert_eq!(map.get(page + 1).unwrap(), None);
            assert!(map.bytes() <= 8 * LEAF_BYTES + (1 << 18), "{round}");
            assert_eq!(budget.used(), map.bytes());
        }
    }
    assert_eq!(disk.counts().reads, u64::from(3 * CHUNKS));
    // What is looked up again and again stays, whatever else is.
    for chunk in 1..CHUNKS {
        map.get(0).unwrap();
        map.get(chunk * CHUNK).unwrap();
    }
    let before = disk.counts().reads;
    map.get(0).unwrap();
    assert_eq!(disk.counts().reads, before);
    drop(map);
    assert_eq!(budget.used(), 0);
}

#[test]
fn what_is_not_in_the_file_stays() {
    let (disk, map, mut directory) = chunks(0, Budget::new(0), false);
    let look_at_all = || {
        for chunk in 0..CHUNKS {
            map.get(chunk * CHUNK).unwrap();
        }
    };
    map.open(5, &entry(100, 1)).unwrap();
    map.hold(CHUNK).unwrap().unwrap();
    map.hold(2 * CHUNK).unwrap().unwrap();
    map.change(2 * CHUNK);
    map.clear(2 * CHUNK);
    map.let_go(2 * CHUNK);
    look_at_all();
    assert_eq!(map.resident(5), Some(entry(100, 1)));
    assert_eq!(map.resident(CHUNK), Some(entry(1, 1)));
    assert_eq!(map.get(2 * CHUNK).unwrap(), None, "not that of the file");
    assert_eq!(map.hold(CHUNK + 1).unwrap(), None, "nothing is held");
    // A checkpoint has written the second chunk without a page, and the first as it is.
    map.change(5);
    map.let_go(5);
    let data = disk.device("data");
    let pages = [(0, entry(0, 0)), (5, entry(100, 1))];
    directory.chunks[0] = Some(put_chunk(&data, 0, &pages));
    directory.chunks[2] = None;
    let written = [0, 2].map(|chunk| (chunk, directory.chunks[chunk as usize]));
    let around = Surroundings {
        next_page: directory.next_page,
        structures: Vec::new(),
    };
    // The first has been changed since.
    map.install(written.into_iter(), |chunk| chunk == 0, around.clone());
    look_at_all();
    assert!(map.resident(5).is_some());
    map.install(written.into_iter().take(1), |_| false, around);
    look_at_all();
    assert_eq!(map.resident(5), None, "it was dropped");
    assert_eq!(map.get(5).unwrap(), Some(entry(100, 1)), "and is found");
    assert_eq!(map.get(2 * CHUNK).unwrap(), None);
    map.let_go(CHUNK);
    look_at_all();
    assert_eq!(map.resident(CHUNK), None);
}

#[test]
fn what_was_read_at_a_former_place_is_not_believed() {
    let (disk, map, directory) = chunks(1 << 20, Budget::new(1 << 20), false);
    let (chunk, blob) = map.missing(3 * CHUNK + 7).unwrap();
    assert_eq!((chunk, Some(blob)), (3, directory.chunks[3]));
    let data = disk.device("data");
    let mut stored = vec![0; blob.stored as usize];
    data.read_at(blob.offset, &mut stored).unwrap();
    let new = put_chunk(&data, 3, &[(3 * CHUNK, entry(50, 77))]);
    let around = Surroundings {
        next_page: directory.next_page,
        structures: Vec::new(),
    };
    map.install([(3, Some(new))].into_iter(), |_| false, around);
    map.offer(3, &blob, &stored);
    assert!(map.is_missing(3));
    assert_eq!(map.get(3 * CHUNK).unwrap(), Some(entry(50, 77)));
    // What is not a chunk is left to who looks a page up.
    let (chunk, blob) = map.missing(4 * CHUNK).unwrap();
    map.offer(chunk, &blob, &[1, 2, 3]);
    assert!(map.is_missing(4));
    assert_eq!(map.get(4 * CHUNK).unwrap(), Some(entry(4, 4)));
}

#[test]
fn what_a_chunk_says_is_held_against_the_file() {
    let long = Entry {
        offset: 1 << 30,
        ..entry(0, 0)
    };
    let cases = [
        (vec![(0, long)], "page 0 is beyond the end of the file"),
        (
            vec![(0, entry(3, 0)), (9, entry(3, 0))],
            "page 9 overlaps page 0",
        ),
        (
            vec![(8, entry(4, 0))],
            "page 8 overlaps the structure at offset 12544",
        ),
        (vec![(70, entry(1, 0))], "page 70 is beyond the last one"),
    ];
    for (pages, why) in cases {
        let disk = Disk::new(0);
        let data = disk.device("data");
        let blob = put_chunk(&data, 0, &pages);
        let map = PageMap::new(data, 65_536, Budget::new(1 << 20), 1 << 20, false);
        let directory = Directory {
            next_page: 70,
            chunks: vec![Some(blob)],
            ..Directory::default()
        };
        let structure = (FIRST_EXTENT + 4 * 64, 64);
        map.begin(&directory, vec![structure]).unwrap();
        let error = map.get(1).unwrap_err();
        let Error::Damaged { region, offset, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((*region, *offset), (Region::MapChunk(0), blob.offset));
        assert!(error.to_string().contains(why), "{error}");
        assert!(map.chunk(0).is_err() && map.hold(1).is_err());
    }
}

#[test]
fn where_the_file_is_mapped_all_stays() {
    let (disk, map, _) = chunks(0, Budget::new(0), true);
    assert_eq!(map.fixed(0), None);
    for _ in 0..2 {
        for chunk in 0..CHUNKS {
            map.get(chunk * CHUNK).unwrap();
            assert!(map.fixed(chunk * CHUNK).is_some());
        }
    }
    assert_eq!(disk.counts().reads, u64::from(CHUNKS));
}
