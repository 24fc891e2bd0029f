//! Transactions within transactions, and snapshots of those under way.

use std::sync::Arc;

use futures::executor::block_on;
use io::fault::Disk;
use store::{Error, Kind, Snapshot, Store, Transaction};

use crate::crash::{History, Images, recovers, seed_of};
use crate::model::{Random, State, change, create, create_with, open, small};

/// Random changes in transactions up to three deep, of which some are adopted and others dropped; `views` are given
/// snapshots of the states in between.
fn nest(
    random: &mut Random,
    outer: &mut Transaction,
    state: &mut State,
    depth: u32,
    views: &mut Vec<(Snapshot, State)>,
) -> store::Result<()> {
    for _ in 0..1 + random.below(3) {
        if depth == 0 || random.below(2) == 0 {
            change(random, outer, state, 2000)?;
        } else {
            let mut inner = outer.nested();
            let mut changed = state.clone();
            nest(random, &mut inner, &mut changed, depth - 1, views)?;
            if random.below(3) > 0 {
                outer.adopt(inner);
                *state = changed;
            }
        }
        if random.below(4) == 0 {
            let view = outer.view();
            assert!(view.is_open());
            views.push((view, state.clone()));
        }
    }
    Ok(())
}

#[test]
fn what_is_adopted_is_there_and_what_is_dropped_never_was() {
    for seed in 0..6 {
        let disk = Disk::new(seed);
        let mut random = Random::new(seed);
        let mut store = create(&disk).unwrap();
        let mut state = State::default();
        let mut views: Vec<(Snapshot, State)> = Vec::new();
        for step in 0..40 {
            let of = format!("seed {seed} step {step}");
            let mut transaction = store.begin().unwrap();
            let mut changed = state.clone();
            nest(&mut random, &mut transaction, &mut changed, 3, &mut views).unwrap();
            changed.assert_equals(&transaction.view(), &of);
            if random.below(3) > 0 {
                transaction.commit().unwrap();
                state = changed;
            } else {
                drop(transaction);
            }
            state.assert_equals(&store.snapshot(), &of);
            // What a view shows stays, whatever became of its transaction.
            for (view, state) in &views {
                state.assert_equals(view, &of);
            }
            while views.len() > 6 {
                views.swap_remove(random.below(views.len() as u64) as usize);
            }
            if step % 20 == 19 {
                views.clear();
                store.clone().close().unwrap();
                drop(store);
                store = open(&disk).unwrap();
                state.assert_is_all_of(&store, &of);
            }
        }
    }
}

/// Pages beyond what a small commit is, of several transactions within each other.
#[test]
fn together_they_may_be_too_large_for_the_log() {
    let options = store::Options {
        small_commit: 5_000,
        dirty_bytes: 100_000,
        ..small()
    };
    let disk = Disk::new(3);
    let store = create_with(&disk, &options).unwrap();
    let mut random = Random::new(3);
    let mut page = || (0..2_000).map(|_| random.next() as u8).collect::<Vec<u8>>();
    let (mut outer, mut pages) = (store.begin().unwrap(), Vec::new());
    for _ in 0..4 {
        let mut inner = outer.nested();
        let (kept, lost) = (page(), page());
        pages.push((inner.write_page(&kept, 0, Kind::Values).unwrap(), kept));
        let again = inner.nested();
        again.write_page(&lost, 0, Kind::Values).unwrap();
        drop(again);
        inner.put(0, b"n", &[pages.len() as u8]);
        outer.adopt(inner);
    }
    outer.commit().unwrap();
    let left = disk.crash(0);
    drop(store);
    let store = Store::open_on(left.device("data"), left.device("log"), &options).unwrap();
    for (page, bytes) in pages {
        assert!(*block_on(store.pool().pin(page)).unwrap() == bytes[..]);
    }
    assert_eq!(store.statistics().pages.pages, 4);
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}

#[test]
fn one_within_another_is_not_committed_by_itself() {
    let store = create(&Disk::new(0)).unwrap();
    let outer = store.begin().unwrap();
    let mut inner = outer.nested();
    inner.put(0, b"a", b"1");
    assert!(matches!(inner.commit(), Err(Error::Nested { .. })));
    assert!(store.try_begin().unwrap().is_none(), "it is still its turn");
    assert_eq!(outer.commit().unwrap(), 0);
    assert_eq!(store.begin().unwrap().commit().unwrap(), 0);
}

/// What is put and removed in turn leaves nothing behind, so that nested ones begin with few changes however many were before
/// them; but what others know of is removed.
#[test]
fn what_is_put_and_removed_leaves_nothing() {
    let store = create(&Disk::new(0)).unwrap();
    let mut first = store.begin().unwrap();
    first.put(0, b"kept", b"1");
    first.put(0, b"gone", b"1");
    let version = first.commit().unwrap();
    let mut outer = store.begin().unwrap();
    for number in 0..50_u8 {
        let mut inner = outer.nested();
        inner.put(0, &[number], b"1");
        outer.adopt(inner);
        let mut inner = outer.nested();
        inner.delete(0, &[number]);
        outer.adopt(inner);
    }
    assert_eq!(outer.commit().unwrap(), version, "it has changed nothing");
    let mut outer = store.begin().unwrap();
    outer.put(0, b"aside", b"1");
    store.put_aside(0, b"aside", b"2").unwrap();
    outer.delete(0, b"aside");
    outer.delete(0, b"gone");
    outer.delete(0, b"kept");
    outer.put(0, b"kept", b"2");
    outer.commit().unwrap();
    let left = store.snapshot();
    let left: Vec<_> = left.prefix(0, b"").collect();
    assert_eq!(left, [(b"kept"[..].into(), b"2"[..].into())]);
}

/// Space of what was undone is used again, at once where nobody has seen it.
#[test]
fn space_of_what_is_dropped_is_used_again() {
    let store = create(&Disk::new(0)).unwrap();
    let write = |transaction: &Transaction| {
        for byte in 0..40 {
            let page = transaction.write_page(&[byte; 9_000], 0, Kind::Values);
            assert!(page.unwrap() < 200, "ids are used again");
        }
    };
    for round in 0..30 {
        let outer = store.begin().unwrap();
        let inner = outer.nested();
        write(&inner);
        let view = (round % 5 == 4).then(|| inner.view());
        drop((inner, outer));
        if let Some(view) = view {
            // They wait for the view, and for a commit: it holds the version before that.
            assert!(store.statistics().pending_bytes > 0);
            drop(view);
            let mut next = store.begin().unwrap();
            next.put(0, b"round", &[round]);
            next.commit().unwrap();
            drop(store.begin().unwrap());
        }
        assert_eq!(store.statistics().pending_bytes, 0, "round {round}");
    }
}

/// Commits what was nested until the disk stops.
fn work(disk: &Disk, seed: u64) -> History {
    let mut random = Random::new(seed);
    let mut history = History {
        states: vec![State::default()],
        acknowledged: None,
    };
    let Ok(store) = create_with(disk, &small()) else {
        return history;
    };
    history.acknowledged = Some(0);
    for _ in 0..7 {
        if commit(&store, &mut random, &mut history).is_err() {
            break;
        }
    }
    history
}

fn commit(store: &Arc<Store>, random: &mut Random, history: &mut History) -> store::Result<()> {
    let mut transaction = store.begin()?;
    let mut state = history.states[history.acknowledged.unwrap()].clone();
    nest(random, &mut transaction, &mut state, 2, &mut Vec::new())?;
    if random.below(6) == 0 {
        return Ok(());
    }
    let next = transaction.base().version() as usize + 1;
    history.states.truncate(next);
    history.states.push(state);
    if transaction.commit()? as usize == next {
        history.acknowledged = Some(next);
    } else {
        history.states.pop();
    }
    Ok(())
}

#[test]
fn every_operation_of_nested_ones_may_be_the_last() {
    let (mut seen, seed) = (Images::default(), 5);
    let whole = Disk::new(seed);
    assert!(work(&whole, seed).acknowledged.unwrap() > 3);
    for operation in 0..whole.operations() {
        let disk = Disk::new(seed);
        disk.stop_after(operation);
        let history = work(&disk, seed);
        for image in 0..5 {
            let left = disk.crash(seed_of(operation, image));
            if seen.is_new(&left) {
                recovers(
                    &left,
                    &history,
                    &format!("operation {operation}, image {image}"),
                );
            }
        }
    }
    assert!(seen.len() > 50, "{} distinct images", seen.len());
}
