//! Each operator against a naive one over the bytes of all pages in a vector.

use buffer::FRAMES_PER_NODE;
use pages::{Fill, Join, Operator, Options, PageFile, Prefetching, Session, Sweep};
use proptest::prelude::*;

/// A store of random pages, some of them released again, some written with few values, some never
/// written.
fn made(path: &std::path::Path, page_size: u32, pages: u64, seed: u64) -> Vec<u8> {
    let file = PageFile::create(path, page_size, pages, &Options::default()).unwrap();
    let fill = Fill { pages: None, seed };
    pages::alloc(&file, 2, &fill, &|| false).unwrap();
    let mut rng = fastrand::Rng::with_seed(seed);
    let list = file.store().view().list();
    let mut batch = file.store().begin().unwrap();
    for index in 0..list.len() {
        let page = list.page(index);
        match rng.u8(..) {
            0..25 => batch.release(page).unwrap(),
            25..50 => batch
                .write(page, &vec![rng.u8(..); page_size as usize])
                .unwrap(),
            _ => {}
        }
    }
    if rng.bool() {
        batch.alloc().unwrap();
    }
    batch.commit().unwrap();
    let bytes = vector(&file);
    file.close().unwrap();
    bytes
}

/// The bytes of all pages, in their order.
fn vector(file: &PageFile) -> Vec<u8> {
    let view = file.store().view();
    let mut page_bytes = vec![0; file.store().page_size()];
    let mut all = Vec::new();
    for page in view.runs().flatten() {
        let page = page as u32;
        if !view.is_protected(page) {
            view.read(page, &mut page_bytes).unwrap();
            all.extend_from_slice(&page_bytes);
        }
    }
    all
}

/// The join as the text has it: one table, a pair after the other.
fn joined(bytes: &[u8], page_size: usize) -> Join {
    let cut = bytes.len() / page_size / 16 * page_size;
    let mut table = std::collections::HashMap::new();
    for pair in bytes[..cut].chunks(2).filter(|pair| pair[0] % 2 == 0) {
        table.insert(pair[0], u64::from(pair[1]));
    }
    let mut matches = 0;
    for pair in bytes[cut..].chunks(2) {
        if let Some(value) = table.get_mut(&pair[0]) {
            *value += u64::from(pair[1]);
            matches += 1;
        }
    }
    Join {
        keys: table.len() as u64,
        matches,
        sum: table.values().sum(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn operators_equal_naive_ones(
        page_bits in 12u32..=17,
        pages in prop_oneof![Just(0u64), 1..40u64, 40..200u64],
        frames in prop_oneof![Just(0usize), 0..300usize],
        partitions in prop_oneof![Just(1usize), Just(4), Just(16), Just(128), 1..=128usize],
        threads in 1..=8usize,
        prefetch in 0..=8usize,
        nodes in 0..=2usize,
        threshold: i32,
        seed: u64,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("reef.pages");
        let page_size = 1 << page_bits;
        let bytes = made(&path, page_size, pages, seed);
        let least = FRAMES_PER_NODE * nodes.max(1);
        let options = Options {
            pool_bytes: ((least + frames) * page_size as usize) as u64,
            partitions,
            numa: nodes > 0,
            placement: pages::Placement::Interleave,
            machine: (nodes > 0).then(|| format!("{nodes}x4")),
            access: pages::Access::Read,
            mapped: seed % 3 == 0,
            direct: seed % 5 == 0,
            prefetcher: Prefetching::ALL[seed as usize % Prefetching::ALL.len()],
        };
        let file = PageFile::open(&path, &options).unwrap();
        let session = Session::start(&file, threads, prefetch).unwrap();
        prop_assert_eq!(session.bytes(), bytes.len() as u64);
        let integers = bytes.chunks_exact(4).map(|integer| i32::from_le_bytes(integer.try_into().unwrap()));
        let above = integers.filter(|integer| *integer > threshold).count() as u64;
        let mut values = [0; 256];
        for &byte in &bytes {
            values[usize::from(byte)] += 1;
        }
        // The second time some or all pages are resident.
        for _ in 0..2 {
            prop_assert_eq!(pages::scan(&session, threshold).unwrap(), above);
            prop_assert_eq!(pages::groupby(&session).unwrap(), values);
            prop_assert_eq!(pages::hashjoin(&session).unwrap(), joined(&bytes, page_size as usize));
        }
        prop_assert_eq!(file.pool().pinned, 0);
    }
}

#[test]
fn filling_is_repeatable_and_reaches_the_number() {
    let directory = tempfile::tempdir().unwrap();
    let filled = |name: &str, threads, seed, first: Option<u64>| {
        let path = directory.path().join(name);
        let file = PageFile::create(path, 4096, 500, &Options::default()).unwrap();
        let mut fill = Fill { pages: first, seed };
        let one = pages::alloc(&file, threads, &fill, &|| false).unwrap();
        fill.pages = None;
        let two = pages::alloc(&file, threads, &fill, &|| false).unwrap();
        let bytes = vector(&file);
        (one.allocated + two.allocated, two.written, bytes)
    };
    let (allocated, written, bytes) = filled("a", 1, 7, Some(33));
    assert_eq!((allocated, written), (written, allocated));
    assert!(allocated >= 500);
    assert_eq!(bytes.len() as u64, allocated * 4096);
    assert_eq!(filled("b", 8, 7, None).2, bytes);
    assert_ne!(filled("c", 3, 8, None).2, bytes);
    let first: Vec<_> = bytes.chunks(4096).map(|page| &page[..16]).collect();
    let distinct: std::collections::HashSet<_> = first.iter().collect();
    assert_eq!(distinct.len(), first.len(), "no two pages alike");
}

#[test]
fn what_was_filled_survives_closing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reef.pages");
    let file = PageFile::create(&path, 8192, 60, &Options::default()).unwrap();
    pages::alloc(&file, 2, &Fill::default(), &|| false).unwrap();
    let bytes = vector(&file);
    drop(file);
    let file = PageFile::open(&path, &Options::default()).unwrap();
    assert_eq!(vector(&file), bytes);
    assert!(file.store().check(&|_, _| {}).unwrap().is_empty());
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reef.pages");
    let open = |options: &Options| PageFile::open(&path, options).map(drop);
    let message = |result: pages::Result<()>| result.unwrap_err().to_string();
    let missing = message(open(&Options::default()));
    assert!(missing.contains("reef.pages"), "{missing}");
    let made = PageFile::create(&path, 5000, 1, &Options::default()).map(drop);
    assert!(message(made).contains("5000"));
    drop(PageFile::create(&path, 4096, 20, &Options::default()).unwrap());
    let small = Options {
        pool_bytes: 7 * 4096,
        ..Options::default()
    };
    assert!(message(open(&small)).contains("28672"));
    let none = Options {
        partitions: 0,
        ..Options::default()
    };
    assert_eq!(
        message(open(&none)),
        "0 partitions are not possible: choose 1 to 65536"
    );
    let file = PageFile::open(&path, &Options::default()).unwrap();
    let start = |threads, prefetch| message(Session::start(&file, threads, prefetch).map(drop));
    assert!(start(0, 0).contains("0 threads are not possible"));
    assert!(start(5000, 0).contains("5000 threads"));
    assert!(start(1, 1025).contains("1025 pages to prefetch"));
}

#[test]
fn a_damaged_page_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reef.pages");
    let file = PageFile::create(&path, 4096, 40, &Options::default()).unwrap();
    pages::alloc(&file, 1, &Fill::default(), &|| false).unwrap();
    file.close().unwrap();
    let mut data = std::fs::read(&path).unwrap();
    // The last half of the file is pages: 40 of them, and little besides.
    let half = data.len() / 2;
    for byte in &mut data[half..] {
        *byte ^= 0x55;
    }
    std::fs::write(&path, data).unwrap();
    // What is damaged is found by whoever reads it first.
    let scanned = PageFile::open(&path, &Options::default())
        .and_then(|file| Session::start(&file, 4, 4))
        .and_then(|session| pages::scan(&session, 0));
    let error = scanned.unwrap_err().to_string();
    assert!(error.contains("page") && !error.contains('\n'), "{error}");
}

#[test]
fn a_sweep_measures_each_combination_in_each_round() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reef.pages");
    let file = PageFile::create(&path, 4096, 100, &Options::default()).unwrap();
    pages::alloc(&file, 1, &Fill::default(), &|| false).unwrap();
    file.close().unwrap();
    let options = Options {
        access: pages::Access::Read,
        ..Options::default()
    };
    let wanted = Sweep {
        threads: vec![1, 2],
        partitions: vec![1, 16],
        prefetch: vec![0, 3],
        numa: vec![false, true],
        rounds: 3,
        iterations: 2,
        cold: false,
    };
    let swept = pages::sweep(&path, &options, Operator::Groupby, &wanted, &|| false).unwrap();
    assert_eq!((swept.times.len(), swept.pools.len()), (16, 4));
    assert!(swept.times.iter().all(|timed| timed.seconds.len() == 3));
    assert!(swept.times.iter().all(|timed| timed.median() > 0.0));
    // Opening reads the one protected page. Then the pass that warms, and two iterations of four
    // combinations.
    let (_, _, pool) = &swept.pools[0];
    assert_eq!((pool.misses, pool.hits), (swept.pages + 1, 8 * swept.pages));
    let stopped = pages::sweep(&path, &options, Operator::Scan(9), &wanted, &|| true);
    assert_eq!(stopped.unwrap_err().to_string(), "interrupted");
}
