//! Disks that are full, fail, or must not be written to.

use io::fault::{Disk, Faults};
use store::{Error, Kind};

use crate::model::{Random, State, change, create, open, open_to_read};

#[test]
fn a_full_disk_undoes_the_transaction_and_nothing_else() {
    let mut fulls = 0;
    for room in (0..60_000).step_by(512) {
        let disk = Disk::new(1);
        let mut random = Random::new(1);
        let store = create(&disk).unwrap();
        let used: usize = disk.names().iter().map(|name| disk.bytes(name).len()).sum();
        disk.set_capacity(used as u64 + room);
        let mut state = State::default();
        for step in 0..30 {
            let of = format!("room {room}, step {step}");
            let mut changed = state.clone();
            let mut transaction = store.begin().unwrap();
            let done = change(&mut random, &mut transaction, &mut changed, 3000)
                .and_then(|()| transaction.commit());
            match done {
                Ok(_) => state = changed,
                Err(error) => {
                    assert!(error.is_full(), "{of}: {error}");
                    fulls += 1;
                    state.assert_equals(&store.snapshot(), &of);
                }
            }
            if step % 5 == 4
                && let Err(error) = store.checkpoint()
            {
                assert!(error.is_full(), "{of}: {error}");
                fulls += 1;
            }
        }
        let of = format!("room {room}");
        state.assert_is_all_of(&store, &of);
        if let Err(error) = store.clone().close() {
            assert!(error.is_full(), "{of}: {error}");
        }
        drop(store);
        // The disk is as full as before when it is opened again.
        state.assert_is_all_of(&open(&disk).unwrap(), &of);
        disk.set_capacity(u64::MAX);
        let store = open(&disk).unwrap();
        let mut transaction = store.begin().unwrap();
        change(&mut random, &mut transaction, &mut state, 3000).unwrap();
        transaction.commit().unwrap();
        state.assert_is_all_of(&store, &of);
    }
    assert!(fulls > 100, "the disk was full {fulls} times");
}

#[test]
fn a_failing_disk_never_loses_an_acknowledged_commit() {
    let mut latched = 0;
    for seed in 0..60 {
        let disk = Disk::new(seed);
        let mut random = Random::new(seed);
        let store = create(&disk).unwrap();
        disk.set_faults(Faults {
            short_writes: 8,
            write_errors: 8,
            sync_errors: 8,
            ..Faults::default()
        });
        let mut state = State::default();
        let mut acknowledged = 0;
        let mut maybe = None;
        for step in 0..60 {
            let Ok(mut transaction) = store.begin() else {
                break;
            };
            let mut changed = state.clone();
            if change(&mut random, &mut transaction, &mut changed, 3000).is_err() {
                continue;
            }
            match transaction.commit() {
                Ok(version) => (acknowledged, state) = (version, changed),
                Err(Error::Latched { .. }) => break,
                Err(_) => {
                    assert!(maybe.is_none(), "seed {seed}: a commit after a failed one");
                    maybe = Some(changed);
                }
            }
            if step % 7 == 0 {
                let _ = store.checkpoint();
            }
        }
        disk.set_faults(Faults::default());
        if maybe.is_some() {
            latched += 1;
            let error = store.begin().unwrap_err();
            assert!(matches!(error, Error::Latched { .. }), "{error}");
            assert!(store.statistics().latched.is_some());
        }
        // Readers go on.
        state.assert_equals(&store.snapshot(), &format!("seed {seed}"));
        drop(store);
        for image in 0..4 {
            let of = format!("seed {seed}, image {image}");
            let store = open(&disk.crash(seed * 155 + image))
                .unwrap_or_else(|error| panic!("{of}: {error}"));
            let version = store.snapshot().version();
            match &maybe {
                Some(changed) if version == acknowledged + 1 => {
                    changed.assert_is_all_of(&store, &of);
                }
                _ => {
                    assert_eq!(version, acknowledged, "{of}");
                    state.assert_is_all_of(&store, &of);
                }
            }
        }
    }
    assert!(latched > 10, "{latched}");
}

#[test]
fn a_reader_writes_nothing() {
    let disk = Disk::new(0);
    let store = create(&disk).unwrap();
    let mut transaction = store.begin().unwrap();
    let page = transaction.write_page(b"page", 0, Kind::Blob).unwrap();
    transaction.put(0, b"key", b"value");
    transaction.commit().unwrap();
    assert!(store.statistics().log_bytes > 0);
    drop(store);
    let before = disk.counts();
    let files: Vec<_> = disk.names().iter().map(|name| disk.bytes(name)).collect();
    let store = open_to_read(&disk).unwrap();
    let state = State {
        keys: [((0, b"key".to_vec()), b"value".to_vec())].into(),
        pages: [(page, b"page".to_vec())].into(),
    };
    state.assert_is_all_of(&store, "read only");
    assert!(matches!(store.begin().unwrap_err(), Error::ReadOnly { .. }));
    assert!(matches!(
        store.checkpoint().unwrap_err(),
        Error::ReadOnly { .. }
    ));
    store.close().unwrap();
    let after = disk.counts();
    assert_eq!(
        (before.writes, before.syncs, before.resizes),
        (after.writes, after.syncs, after.resizes)
    );
    assert_eq!(
        files,
        disk.names()
            .iter()
            .map(|name| disk.bytes(name))
            .collect::<Vec<_>>()
    );
}
