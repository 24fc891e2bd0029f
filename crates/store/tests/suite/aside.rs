//! Keys that are set beside a transaction that is under way.

use std::sync::Arc;

use io::fault::Disk;
use store::{Access, Durability, Options, Store};

use crate::crash::{History, Images, recovers, seed_of};
use crate::model::{Random, State, change, create, create_with, open, small};

/// The space of what is set aside, which transactions do not change.
const SPACE: u32 = 7;

/// Sets a key beside whatever is under way.
fn put(store: &Arc<Store>, random: &mut Random, history: &mut History) -> store::Result<State> {
    let mut state = history.states[history.acknowledged.unwrap()].clone();
    let (key, value) = (vec![random.below(3) as u8], random.page(40));
    state.keys.insert((SPACE, key.clone()), value.clone());
    history.states.push(state.clone());
    let version = store.put_aside(SPACE, &key, &value)? as usize;
    assert_eq!(version, history.states.len() - 1);
    history.acknowledged = Some(version);
    let found = store.snapshot().get(SPACE, &key);
    assert_eq!(found.as_deref(), Some(&value[..]), "it is visible at once");
    Ok(state)
}

/// What was set aside in a state.
fn kept_in(state: &State) -> impl Iterator<Item = (&(u32, Vec<u8>), &Vec<u8>)> {
    let kept = |(key, _): &(&(u32, Vec<u8>), _)| key.0 == SPACE;
    state.keys.iter().filter(kept)
}

/// Transactions, some of which are dropped, with keys set before, within and after them, until the disk stops.
fn work(disk: &Disk, seed: u64, steps: usize) -> History {
    let mut random = Random::new(seed);
    let mut history = History {
        states: vec![State::default()],
        acknowledged: None,
    };
    let Ok(mut store) = create(disk) else {
        return history;
    };
    history.acknowledged = Some(0);
    for step in 0..steps {
        if one(&store, &mut random, &mut history).is_err() {
            return history;
        }
        if step % 7 == 3 && store.checkpoint().is_err() {
            return history;
        }
        if step % 7 == 6 {
            drop(store);
            match open(disk) {
                Ok(opened) => store = opened,
                Err(_) => return history,
            }
        }
    }
    history
}

fn one(store: &Arc<Store>, random: &mut Random, history: &mut History) -> store::Result<()> {
    if random.below(3) == 0 {
        put(store, random, history)?;
    }
    let mut transaction = store.begin()?;
    let mut state = history.states[history.acknowledged.unwrap()].clone();
    let base = state.clone();
    change(random, &mut transaction, &mut state, 2000)?;
    let mut inner = transaction.nested();
    for _ in 0..random.below(3) {
        let aside = put(store, random, history)?;
        let shown = transaction.base().prefix(SPACE, b"").count();
        assert_eq!(shown, kept_in(&base).count(), "not in what began before");
        for (key, value) in kept_in(&aside) {
            state.keys.insert(key.clone(), value.clone());
        }
    }
    change(random, &mut inner, &mut state, 2000)?;
    transaction.adopt(inner);
    if random.below(3) == 0 {
        return Ok(());
    }
    history.states.push(state.clone());
    let version = transaction.commit()? as usize;
    if version < history.states.len() - 1 {
        // It had changed nothing.
        history.states.pop();
    } else {
        history.acknowledged = Some(version);
        for ((space, key), value) in kept_in(&state) {
            let found = store.snapshot().get(*space, key);
            assert_eq!(found.as_deref(), Some(&value[..]), "it is still there");
        }
    }
    Ok(())
}

#[test]
fn what_is_set_aside_is_kept_whatever_becomes_of_the_transaction() {
    let mut seen = Images::default();
    for seed in 0..2 {
        let whole = Disk::new(seed);
        let history = work(&whole, seed, 9);
        assert!(history.acknowledged.unwrap() > 6, "the workload commits");
        recovers(&whole.crash(0), &history, "nothing failed");
        for operation in 0..whole.operations() {
            let disk = Disk::new(seed);
            disk.stop_after(operation);
            let history = work(&disk, seed, 9);
            for image in 0..3 {
                let left = disk.crash(seed_of(operation, image));
                if seen.is_new(&left) {
                    let of = format!("seed {seed}, operation {operation}, image {image}");
                    recovers(&left, &history, &of);
                }
            }
        }
    }
    assert!(seen.len() > 100, "{} distinct images", seen.len());
}

#[test]
fn what_the_transaction_has_changed_itself_is_as_it_says() {
    let disk = Disk::new(0);
    let store = create(&disk).unwrap();
    let key = |store: &Arc<Store>, key: &[u8]| store.snapshot().get(SPACE, key);
    store.put_aside(SPACE, b"a", b"1").unwrap();
    let mut transaction = store.begin().unwrap();
    store.put_aside(SPACE, b"a", b"2").unwrap();
    store.put_aside(SPACE, b"b", b"2").unwrap();
    transaction.delete(SPACE, b"a");
    transaction.commit().unwrap();
    assert_eq!(key(&store, b"a"), None);
    assert_eq!(key(&store, b"b").as_deref(), Some(&b"2"[..]));
    // What was deleted does not come back with a later transaction.
    let mut transaction = store.begin().unwrap();
    transaction.put(0, b"x", b"");
    transaction.commit().unwrap();
    assert_eq!(key(&store, b"a"), None);
    drop(store);
    let store = open(&disk.crash(0)).unwrap();
    assert_eq!(key(&store, b"a"), None);
    assert_eq!(key(&store, b"b").as_deref(), Some(&b"2"[..]));
}

#[test]
fn it_survives_a_kill_whatever_the_store_is_to_survive() {
    let options = Options {
        durability: Durability::None,
        ..small()
    };
    for within in [false, true] {
        let disk = Disk::new(1);
        let store = create_with(&disk, &options).unwrap();
        let transaction = within.then(|| store.begin().unwrap());
        store.put_aside(SPACE, b"a", b"1").unwrap();
        // What the process has handed to the system stays, and nothing else.
        let left = Disk::new(1);
        for name in disk.names() {
            left.put(&name, disk.bytes(&name));
        }
        drop(transaction);
        let killed = open(&left).unwrap();
        assert_eq!(
            killed.snapshot().get(SPACE, b"a").as_deref(),
            Some(&b"1"[..]),
            "{within}"
        );
    }
}

#[test]
fn handles_that_write_on_demand_set_keys_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.atoll");
    let on_demand = Options {
        access: Access::OnDemand,
        ..small()
    };
    Store::create(&path, &small()).unwrap().close().unwrap();
    let first = Store::open(&path, &on_demand).unwrap();
    first.put_aside(SPACE, b"a", b"1").unwrap();
    let transaction = first.begin().unwrap();
    first.put_aside(SPACE, b"a", b"2").unwrap();
    let second = Store::open(&path, &on_demand);
    drop(transaction);
    drop(second);
    let second = Store::open(&path, &on_demand).unwrap();
    assert_eq!(
        second.snapshot().get(SPACE, b"a").as_deref(),
        Some(&b"2"[..])
    );
    second.put_aside(SPACE, b"a", b"3").unwrap();
    // The first does not know of that, and writes nothing over it.
    assert!(first.put_aside(SPACE, b"a", b"4").is_err());
    drop((first, second));
    let last = Store::open(&path, &on_demand).unwrap();
    assert_eq!(last.snapshot().get(SPACE, b"a").as_deref(), Some(&b"3"[..]));
}

#[test]
fn many_threads_set_keys_beside_transactions() {
    let store = create(&Disk::new(2)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let store = &store;
            scope.spawn(move || {
                for count in 0..50u8 {
                    store.put_aside(SPACE, &[thread], &[count]).unwrap();
                }
            });
        }
        for round in 0..50u8 {
            let mut transaction = store.begin().unwrap();
            transaction.put(0, b"round", &[round]);
            std::thread::yield_now();
            if round % 3 > 0 {
                transaction.commit().unwrap();
            }
        }
    });
    let snapshot = store.snapshot();
    for thread in 0..4 {
        assert_eq!(snapshot.get(SPACE, &[thread]).as_deref(), Some(&[49][..]));
    }
    assert_eq!(snapshot.get(0, b"round").as_deref(), Some(&[49][..]));
}
