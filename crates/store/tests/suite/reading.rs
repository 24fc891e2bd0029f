//! The ways in which pages are read: each gives the same bytes.

use std::path::Path;
use std::sync::Arc;

use futures::executor::block_on;
use futures::future::join_all;
use io::{Backend, Direct};
use store::{Error, Kind, Options, PageId, PoolOptions, Store};

const PAGE: usize = 16 << 10;
const PAGES: usize = 64;

fn options(pool: PoolOptions) -> Options {
    Options {
        page_size: PAGE as u32,
        pool: PoolOptions {
            bytes: 256 * PAGE as u64,
            ..pool
        },
        ..Options::default()
    }
}

/// What page `number` holds: every third is compressed, and some are short.
fn page(number: usize) -> Vec<u8> {
    let length = PAGE - number % 5 * 100;
    if number.is_multiple_of(3) {
        return vec![number as u8; length];
    }
    let mut random = fastrand::Rng::with_seed(number as u64);
    (0..length).map(|_| random.u8(..)).collect()
}

fn create(path: &Path) -> Vec<PageId> {
    let store = Store::create(path, &options(PoolOptions::default())).unwrap();
    let transaction = store.begin().unwrap();
    let pages: Vec<_> = (0..PAGES).map(page).collect();
    let pages: Vec<&[u8]> = pages.iter().map(|page| &page[..]).collect();
    let ids = transaction.write_pages(&pages, 0, Kind::Blob).unwrap();
    transaction.commit().unwrap();
    store.close().unwrap();
    ids
}

/// Reads all pages by pinning them together, then by prefetching some and pinning one after the other. Returns how many
/// reads the first took.
fn read_all(store: &Arc<Store>, ids: &[PageId]) -> u64 {
    let pool = store.pool();
    let pins = ids.iter().map(|&id| pool.pin(id));
    for (number, pin) in block_on(pool.together(join_all(pins)))
        .into_iter()
        .enumerate()
    {
        assert!(*pin.unwrap() == page(number)[..], "page {number}");
    }
    let together = store.reads().reads;
    store.forget().unwrap();
    pool.prefetch(&ids[..32]);
    for (number, &id) in ids.iter().enumerate() {
        assert!(
            *block_on(pool.pin(id)).unwrap() == page(number)[..],
            "page {number}"
        );
    }
    together
}

fn pools(backend: Backend) -> Vec<PoolOptions> {
    let reads = io::Settings {
        backend,
        ..io::Settings::default()
    };
    let plain = PoolOptions {
        reads,
        ..PoolOptions::default()
    };
    let direct = PoolOptions {
        direct: Direct::IfPossible,
        ..plain.clone()
    };
    let registered = PoolOptions {
        registered: true,
        ..plain.clone()
    };
    vec![plain, direct, registered]
}

fn every_way_reads_the_same(backend: Backend) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("a.atoll");
    let ids = create(&path);
    for pool in pools(backend) {
        let registered = pool.registered;
        let store = match Store::open(&path, &options(pool)) {
            Ok(store) => store,
            Err(Error::Io(error)) if matches!(*error, io::Error::Uring { .. }) => {
                return notrun::not_run(error);
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(store.reader().backend, backend);
        store.forget().unwrap();
        let together = read_all(&store, &ids);
        let reads = store.reads();
        assert!(reads.requests >= 2 * PAGES as u64, "{reads:?}");
        // The pages of one transaction are neighbours: 1 MiB in a few reads. How many of those that are pinned one by
        // one were prefetched in time depends on the machine.
        assert!(together < PAGES as u64 / 2, "{together} for {PAGES} pages");
        let noted = store.notes().join("; ");
        if registered && backend == Backend::Threads {
            assert!(noted.contains("cannot be registered"), "{noted}");
        }
    }
}

#[test]
fn a_ring_reads_pages_in_every_way() {
    every_way_reads_the_same(Backend::Uring);
}

#[test]
fn threads_read_pages_in_every_way() {
    every_way_reads_the_same(Backend::Threads);
}

#[test]
fn a_load_that_is_dropped_gives_its_frame_back_when_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.atoll");
    let ids = create(&path);
    let mut options = options(PoolOptions::default());
    // As few frames as can be.
    options.pool.bytes = 8 * PAGE as u64;
    let store = Store::open(&path, &options).unwrap();
    for round in 0..200 {
        let id = ids[round % PAGES];
        block_on(async {
            let pin = std::pin::pin!(store.pool().pin(id));
            // Begun, and dropped at once or as soon as it has come.
            drop(futures::poll!(pin));
        });
    }
    for (number, &id) in ids.iter().enumerate() {
        assert!(*block_on(store.pool().pin(id)).unwrap() == page(number)[..]);
    }
}
