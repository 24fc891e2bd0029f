//! Hostile files: opened, checked, read, and written to.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::executor::block_on;
use fuzz::{Draw, Target};
use io::fault::Disk;
use memory::Budget;

use super::forge::Forge;
use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::options::{Access, Damage, Options, PoolOptions};
use crate::store::handle::Store;

/// Settings that make opening cheap; what the file says may take 4 MiB.
pub(crate) fn options() -> Options {
    Options {
        page_size: 4096,
        pool: PoolOptions {
            bytes: 16 * 4096,
            io_threads: 1,
            budget: Some(Budget::new(4 << 20)),
            ..PoolOptions::default()
        },
        dirty_bytes: 6000,
        ..Options::default()
    }
}

pub(crate) fn open(disk: &Disk, options: &Options) -> Result<Arc<Store>> {
    Store::open_on(disk.device("data"), disk.device("log"), options)
}

/// A store of some pages, some freed, and of some spaces; perhaps with commits that are in the log only.
fn some_store(draw: &mut Draw) -> Disk {
    let disk = Disk::new(0);
    let store = Store::create_on(disk.device("data"), disk.device("log"), &options()).unwrap();
    let mut pages = Vec::new();
    for commit in 0..4u8 {
        let mut transaction = store.begin().unwrap();
        for _ in 0..draw.below(5) {
            let length = 1 + draw.below(4096);
            let page = draw.bytes(length);
            pages.push(transaction.write_page(&page, commit, Kind::Blob).unwrap());
        }
        if draw.one_in(3) && !pages.is_empty() {
            transaction.free_page(pages.swap_remove(draw.below(pages.len())));
        }
        for _ in 0..draw.below(30) {
            let (space, length) = (draw.below(3) as u32, draw.below(200));
            let key = crate::catalog::fuzzed::any_key(draw);
            transaction.put(space, &key, &draw.bytes(length));
        }
        transaction.commit().unwrap();
        if draw.one_in(4) {
            store.checkpoint().unwrap();
        }
    }
    if !draw.one_in(4) {
        store.close().unwrap();
    }
    disk
}

/// The name of an error, whose text must name the file.
pub(crate) fn word(error: &Error) -> &'static str {
    let text = error.to_string();
    match error {
        Error::Damaged { .. } => {
            assert!(text.contains("data") || text.contains("log"), "{text}");
            "damaged"
        }
        Error::Truncated { needed, found, .. } => {
            assert!(needed > found, "{text}");
            "truncated"
        }
        Error::NotAtoll { .. } => "not atoll",
        Error::NewerFormat { .. } => "newer",
        Error::Memory { .. } => "memory",
        Error::Unfinished { .. } => "unfinished",
        Error::ForeignLog { .. } => "foreign log",
        Error::NotPages { .. } => "no pages",
        Error::Allocation { .. } => "allocation",
        Error::Unreadable { .. } => "unreadable",
        _ => panic!("not an error of a hostile file: {text}"),
    }
}

/// Reads all that a snapshot names. Returns how many pages could not be.
fn read_all(store: &Arc<Store>) -> usize {
    let snapshot = store.snapshot();
    for space in 0..8 {
        let entries: Vec<_> = snapshot.prefix(space, b"").collect();
        assert!(entries.is_sorted());
    }
    let unread = |page: &u32| match block_on(snapshot.pool().pin(*page)) {
        Ok(pin) => pin.len() > store.page_size(),
        Err(_) => true,
    };
    (0..40).filter(unread).count()
}

/// Writes to a store; what was committed must be there when it is opened again.
fn write_to(store: &Arc<Store>, disk: &Disk, draw: &mut Draw) -> Result<()> {
    let mut transaction = store.begin()?;
    let page = transaction.write_page(&[5; 999], 0, Kind::Blob)?;
    transaction.put(1, b"written", &page.to_le_bytes());
    transaction.commit()?;
    match draw.below(4) {
        0 => store.checkpoint()?,
        1 => drop(store.vacuum()?),
        2 => store.clone().close()?,
        _ => {}
    }
    let read = Options {
        access: Access::Read,
        ..options()
    };
    let again = open(disk, &read)?;
    let snapshot = again.snapshot();
    assert_eq!(
        snapshot.get(1, b"written").as_deref(),
        Some(&page.to_le_bytes()[..])
    );
    assert_eq!(block_on(snapshot.pool().pin(page)).unwrap()[..], [5; 999]);
    Ok(())
}

#[test]
fn stores_are_opened_checked_read_and_written_to() {
    let words = &[
        "sound",
        "with problems",
        "damaged",
        "truncated",
        "not atoll",
        "newer",
        "memory",
    ];
    let name = "recovery::fuzzed::stores_are_opened_checked_read_and_written_to";
    let target = Target::new(name, 200).expects(words);
    // Making one takes longer than a case, so cases share a few.
    let mut stores = BTreeMap::new();
    target.run(|draw| {
        let seed = draw.below(24) as u64;
        let store = stores
            .entry(seed)
            .or_insert_with(|| some_store(&mut Draw::new(seed)));
        let mut forge = Forge::of(store);
        for _ in 0..1 + draw.below(2) {
            forge.forge(draw);
        }
        let options = Options {
            access: *draw.one_of(&[Access::Read, Access::Write, Access::OnDemand]),
            damage: *draw.one_of(&[Damage::Refuse, Damage::Drop]),
            ..options()
        };
        let store = match open(&forge.disk, &options) {
            Ok(store) => store,
            Err(error) => return word(&error),
        };
        let _ = store.statistics();
        let problems = store.check(&|_, _| {}).unwrap();
        problems
            .iter()
            .for_each(|problem| assert!(!problem.to_string().is_empty()));
        read_all(&store);
        let sound = problems.is_empty();
        if options.access != Access::Read {
            match write_to(&store, &forge.disk, draw) {
                Ok(()) => {}
                Err(error) if sound => panic!("it was found sound: {error}"),
                Err(_) => {}
            }
        }
        if sound { "sound" } else { "with problems" }
    });
}
