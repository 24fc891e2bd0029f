//! Loss of power at every operation of the disk.

use io::fault::Disk;

use crate::model::{Random, State, change, create, open, open_to_read};

/// What happened before the disk stopped.
pub struct History {
    /// The state of each version, from 0; the last one may not have been acknowledged.
    pub states: Vec<State>,
    /// The last version that was acknowledged, if the store was created at all.
    pub acknowledged: Option<usize>,
}

/// Commits, checkpoints, closes and opens until the disk stops.
pub fn work(disk: &Disk, seed: u64, steps: usize) -> History {
    let mut random = Random::new(seed);
    let mut history = History {
        states: vec![State::default()],
        acknowledged: None,
    };
    let Ok(mut store) = create(disk) else {
        return history;
    };
    history.acknowledged = Some(0);
    for _ in 0..steps {
        match random.below(12) {
            0 => {
                if store.clone().close().is_err() {
                    return history;
                }
                drop(store);
                match open(disk) {
                    Ok(opened) => store = opened,
                    Err(_) => return history,
                }
            }
            1 | 2 => {
                if store.checkpoint().is_err() {
                    return history;
                }
            }
            _ => {
                let Ok(mut transaction) = store.begin() else {
                    return history;
                };
                let mut state = history.states[history.acknowledged.unwrap()].clone();
                if change(&mut random, &mut transaction, &mut state, 2000).is_err() {
                    return history;
                }
                if random.below(6) == 0 {
                    continue;
                }
                let next = transaction.base().version() as usize + 1;
                history.states.truncate(next);
                history.states.push(state);
                match transaction.commit() {
                    Ok(version) => {
                        if version as usize == next {
                            history.acknowledged = Some(next);
                        } else {
                            history.states.pop();
                        }
                    }
                    Err(_) => return history,
                }
            }
        }
    }
    let _ = store.close();
    history
}

/// A seed of what a crash leaves: the kind of loss follows from it modulo 5, and which sectors
/// are lost from all of it, so that they are not the same ones at every operation.
fn seed_of(operation: u64, image: u64) -> u64 {
    operation * 5 * 31 + image
}

/// Opens what a crash left and compares; then goes on working with it.
pub fn recovers(image: &Disk, history: &History, of: &str) {
    // A reader first: it finds the same, and leaves everything as it is.
    let store = match open_to_read(image) {
        Ok(store) => store,
        Err(error) => {
            assert!(history.acknowledged.is_none(), "{of}: {error}");
            return;
        }
    };
    let version = store.snapshot().version() as usize;
    drop(store);
    let store = open(image).unwrap_or_else(|error| panic!("{of}: {error}"));
    assert_eq!(store.snapshot().version() as usize, version, "{of}");
    let acknowledged = history.acknowledged.unwrap_or(0);
    assert!(
        version >= acknowledged,
        "{of}: {version} lost {acknowledged}"
    );
    assert!(
        version < history.states.len(),
        "{of}: version {version} never was"
    );
    history.states[version].assert_is_all_of(&store, of);

    let mut transaction = store.begin().unwrap();
    transaction.put(11, b"after", of.as_bytes());
    assert_eq!(transaction.commit().unwrap() as usize, version + 1, "{of}");
    let mut state = history.states[version].clone();
    state.keys.insert((11, b"after".to_vec()), of.into());
    state.assert_is_all_of(&store, of);
    drop(store);
    state.assert_is_all_of(&open(image).unwrap(), of);
}

#[test]
fn every_operation_may_be_the_last() {
    for seed in 0..2 {
        let whole = Disk::new(seed);
        let history = work(&whole, seed, 24);
        assert!(history.acknowledged.unwrap() > 8, "the workload commits");
        recovers(&whole.crash(0), &history, "nothing failed");
        for operation in 0..whole.operations() {
            let disk = Disk::new(seed);
            disk.stop_after(operation);
            let history = work(&disk, seed, 24);
            for image in 0..5 {
                let of = format!("seed {seed}, operation {operation}, image {image}");
                recovers(&disk.crash(seed_of(operation, image)), &history, &of);
            }
        }
    }
}

#[test]
fn recovery_may_be_cut_short_too() {
    let seed = 3;
    let disk = Disk::new(seed);
    let whole = Disk::new(seed);
    let _ = work(&whole, seed, 16);
    // Shortly before the end, so that the log has something to replay.
    disk.stop_after(whole.operations() * 3 / 4);
    let history = work(&disk, seed, 16);
    for image in 0..5 {
        let crashed = disk.crash(image);
        let counted = crashed.crash(1);
        if open(&counted).is_err() {
            continue;
        }
        for operation in 0..counted.operations() {
            let again = crashed.crash(1);
            again.stop_after(operation);
            let _ = open(&again);
            for second in 0..5 {
                let of = format!("image {image}, recovery operation {operation}, image {second}");
                recovers(&again.crash(seed_of(operation, second)), &history, &of);
            }
        }
    }
}
