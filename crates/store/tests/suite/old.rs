//! Files of earlier releases.

use io::fault::Disk;

use crate::model::{State, open, open_to_read};

/// A store with a log of format 2: closed once, then two commits that are in the log only. Page 1 is
/// in the data file, page 2 was written by the log's first record, and page 0 freed by the second.
fn old() -> (Disk, State) {
    let disk = Disk::new(0);
    disk.put("data", include_bytes!("../old/store").to_vec());
    disk.put("log", include_bytes!("../old/store.log").to_vec());
    let bytes = |length: u32, factor: u32, modulus: u32| {
        let byte = move |at: u32| (at * at * factor % modulus) as u8;
        (0..length).map(byte).collect::<Vec<u8>>()
    };
    let state = State {
        keys: [
            ((0, b"second".to_vec()), 2u32.to_le_bytes().to_vec()),
            ((2, b"third".to_vec()), vec![9; 1200]),
        ]
        .into(),
        pages: [(1, bytes(700, 1, 251)), (2, bytes(900, 3, 241))].into(),
    };
    (disk, state)
}

#[test]
fn a_store_of_an_earlier_release_opens_and_is_written_to() {
    let (disk, mut state) = old();
    let before = (disk.bytes("data"), disk.bytes("log"));
    state.assert_is_all_of(&open_to_read(&disk).unwrap(), "read");
    assert!(before == (disk.bytes("data"), disk.bytes("log")));
    let store = open(&disk).unwrap();
    assert_eq!(store.recovery().replayed, 2);
    state.assert_is_all_of(&store, "opened");
    let mut transaction = store.begin().unwrap();
    transaction.put(7, b"now", b"new");
    transaction.commit().unwrap();
    state.keys.insert((7, b"now".to_vec()), b"new".to_vec());
    drop(store);
    let store = open(&disk).unwrap();
    assert_eq!(store.recovery().replayed, 1, "from a log of today");
    state.assert_is_all_of(&store, "written to");
}

#[test]
fn every_flipped_bit_of_an_old_log_is_noticed() {
    let (disk, state) = old();
    let log = disk.bytes("log");
    for byte in (8192..log.len()).step_by(3) {
        let damaged = Disk::new(0);
        damaged.put("data", disk.bytes("data"));
        damaged.put("log", log.clone());
        damaged.flip("log", byte as u64 * 8 + 3);
        let error = open_to_read(&damaged)
            .expect_err("it is noticed")
            .to_string();
        assert!(error.contains("log record"), "byte {byte}: {error}");
    }
    state.assert_is_all_of(&open(&disk).unwrap(), "undamaged");
}
