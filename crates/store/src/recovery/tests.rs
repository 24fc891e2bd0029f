//! Files that were made to take more memory than they have bytes.

use std::sync::Arc;

use io::fault::Disk;
use memory::Budget;

use super::roots::{identity, root};
use crate::catalog::changes::Changes;
use crate::error::{Error, Region, Result};
use crate::format::kind::{Codec, Kind};
use crate::format::structures::{
    Blob, CHUNK_BYTES, Directory, ENTRY_BYTES, Entry, FIRST_EXTENT, ROOT_OFFSETS, Root, aligned,
};
use crate::log::Log;
use crate::options::{MAP_BYTES, Options, PoolOptions};
use crate::store::handle::Store;

const POOL: u64 = 32 * 16_384;

fn options() -> Options {
    Options {
        page_size: 16_384,
        pool: PoolOptions {
            bytes: POOL,
            io_threads: 1,
            budget: Some(Budget::new(64 << 20)),
            ..PoolOptions::default()
        },
        ..Options::default()
    }
}

fn open(disk: &Disk, options: &Options) -> Result<Arc<Store>> {
    Store::open_on(disk.device("data"), disk.device("log"), options)
}

/// An empty store, and its newest root.
fn empty() -> (Disk, Root) {
    let disk = Disk::new(0);
    Store::create_on(disk.device("data"), disk.device("log"), &options()).unwrap();
    let data = disk.device("data");
    let id = identity(&*data).unwrap().id;
    let root = root(&*data, 1, &id).unwrap().unwrap();
    (disk, root)
}

fn put_root(disk: &Disk, root: &Root) {
    let data = disk.device("data");
    let id = identity(&*data).unwrap().id;
    let offset = ROOT_OFFSETS[usize::from(root.slot())];
    data.write_at(offset, &root.encode(&id)).unwrap();
}

/// A structure at the end of the data file.
fn put_blob(disk: &Disk, region: Region, raw: &[u8]) -> Blob {
    let data = disk.device("data");
    let (tag, number) = crate::format::disk::tag_of(region);
    let (codec, stored) = crate::format::codec::compress(raw);
    let blob = Blob {
        offset: aligned(data.len().unwrap()),
        stored: stored.len() as u64,
        raw: raw.len() as u64,
        sum: crate::format::bytes::checksum(tag, number, &stored),
        codec,
    };
    data.write_at(blob.offset, &stored).unwrap();
    data.set_len(aligned(data.len().unwrap())).unwrap();
    blob
}

fn entry(offset: u64) -> Entry {
    Entry {
        offset,
        stored: 1,
        raw: 1,
        sum: 0,
        bucket: 0,
        kind: Kind::Blob,
        codec: Codec::Raw,
    }
}

/// A store whose log says that pages were written.
fn logged(written: Vec<(u32, Entry)>) -> Disk {
    let (disk, _) = empty();
    let id = identity(&*disk.device("data")).unwrap().id;
    let changes = Changes {
        written,
        next_space: 1,
        ..Changes::default()
    };
    let mut log = Log::open(disk.device("log"), id).unwrap().log;
    log.append((1, 0), &changes.encode(), true).unwrap();
    log.device().sync().unwrap();
    disk
}

#[test]
fn lengths_that_no_structure_has_are_refused_before_memory_is_taken() {
    for (raw, codec) in [
        (3 << 30, Codec::Zstd),
        (1 << 62, Codec::Zstd),
        (21, Codec::Raw),
    ] {
        let (disk, mut root) = empty();
        root.directory.raw = raw;
        root.directory.codec = codec;
        put_root(&disk, &root);
        let error = open(&disk, &options()).unwrap_err().to_string();
        assert!(
            error.contains("directory") && error.contains("impossible length"),
            "{error}"
        );
    }
    // A chunk and a space that say they are long.
    for region in [Region::MapChunk(0), Region::Space(1)] {
        let (disk, mut root) = empty();
        let mut blob = put_blob(&disk, region, &vec![0; CHUNK_BYTES]);
        blob.raw = 3 << 30;
        let directory = match region {
            Region::MapChunk(_) => Directory {
                next_page: 5,
                next_space: 1,
                chunks: vec![Some(blob)],
                spaces: vec![],
            },
            _ => Directory {
                next_page: 0,
                next_space: 2,
                chunks: vec![],
                spaces: vec![(1, blob)],
            },
        };
        root.directory = put_blob(&disk, Region::Directory, &directory.encode());
        put_root(&disk, &root);
        let error = open(&disk, &options()).unwrap_err().to_string();
        assert!(error.contains("impossible length"), "{error}");
    }
}

#[test]
fn a_space_that_is_longer_than_the_memory_left_is_refused() {
    let (disk, mut root) = empty();
    let zeros = vec![0; 70 << 20];
    let space = put_blob(&disk, Region::Space(1), &zeros);
    assert!(space.stored < 20 << 10, "{} bytes", space.stored);
    let directory = Directory {
        next_page: 0,
        next_space: 2,
        chunks: vec![],
        spaces: vec![(1, space)],
    };
    root.directory = put_blob(&disk, Region::Directory, &directory.encode());
    put_root(&disk, &root);
    let error = open(&disk, &options()).unwrap_err();
    assert!(
        matches!(error, Error::Memory { wanted, .. } if wanted == 70 << 20),
        "{error}"
    );
}

#[test]
fn chunks_do_not_share_their_place() {
    let (disk, mut root) = empty();
    let mut bytes = vec![0; CHUNK_BYTES];
    entry(FIRST_EXTENT).write(&mut bytes[..ENTRY_BYTES]);
    let chunk = put_blob(&disk, Region::MapChunk(0), &bytes);
    let directory = Directory {
        next_page: 1 << 20,
        next_space: 1,
        chunks: vec![Some(chunk); 1024],
        spaces: vec![],
    };
    root.directory = put_blob(&disk, Region::Directory, &directory.encode());
    put_root(&disk, &root);
    let error = open(&disk, &options()).unwrap_err().to_string();
    assert!(
        error.contains("chunk") && error.contains("overlaps"),
        "{error}"
    );
}

#[test]
fn entries_enter_the_map_only_if_they_can_be() {
    let spread = (0..60_000u32).map(|page| (page * 1024, entry(FIRST_EXTENT)));
    let dense = (0..60_000u32).map(|page| (page, entry(FIRST_EXTENT)));
    let beyond = [(0, entry(FIRST_EXTENT + (1 << 30)))];
    let cases = [
        (spread.collect::<Vec<_>>(), "more than the file"),
        (dense.collect(), "more than the file"),
        (beyond.to_vec(), "truncated"),
        (vec![(0, entry(FIRST_EXTENT))], "overlaps"),
    ];
    for (written, why) in cases {
        let disk = logged(written);
        let options = options();
        let error = open(&disk, &options).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        let budget = options.pool.budget.unwrap();
        assert!(budget.peak() < POOL + (1 << 20), "{} bytes", budget.peak());
        assert_eq!(budget.used(), 0, "all is given back");
    }
}

#[test]
fn the_map_counts_in_the_budget() {
    // A file with a hole has room for many pages.
    let disk = logged(
        (0..4000u32)
            .map(|page| {
                let at = FIRST_EXTENT + 64 + u64::from(page) * 64;
                (page * 1024, entry(at))
            })
            .collect(),
    );
    disk.device("data").set_len(1 << 29).unwrap();
    let options = options();
    let error = open(&disk, &options).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
    assert!(error.to_string().contains("page map"), "{error}");
    let roomy = Options {
        pool: PoolOptions {
            budget: Some(Budget::new(256 << 20)),
            ..options.pool
        },
        ..options
    };
    let store = open(&disk, &roomy).unwrap();
    let budget = roomy.pool.budget.unwrap();
    assert!(budget.peak() > 4000 * 24 * 1024, "{}", budget.peak());
    // The log was folded in when the store was opened: now all chunks may be dropped, and most were.
    let map = store.statistics().map_bytes;
    assert!(map <= MAP_BYTES + (1 << 20), "{map} bytes");
    assert!(budget.used() <= POOL + map + (1 << 20), "{}", budget.used());
    drop(store);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_record_that_is_longer_than_the_memory_left_is_refused() {
    let (disk, _) = empty();
    let id = identity(&*disk.device("data")).unwrap().id;
    let mut changes = Changes {
        next_space: 2,
        ..Changes::default()
    };
    let key = (1, (*b"long").into());
    changes.keys.insert(key, Some(vec![7; 3 << 20].into()));
    let mut log = Log::open(disk.device("log"), id).unwrap().log;
    log.append((1, 0), &changes.encode(), true).unwrap();
    log.device().sync().unwrap();
    let options = |bytes| {
        let mut options = options();
        options.pool.budget = Some(Budget::new(bytes));
        options
    };
    let error = open(&disk, &options(2 << 20)).unwrap_err();
    assert!(
        matches!(error, Error::Memory { wanted, .. } if wanted > 3 << 20),
        "{error}"
    );
    assert!(
        error.to_string().contains("log record of version 1"),
        "{error}"
    );
    open(&disk, &options(8 << 20)).unwrap();
}
