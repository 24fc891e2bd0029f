//! Hostile bytes for allocation bits and places, and hostile files with raw pages.

use std::collections::{BTreeMap, BTreeSet};

use fuzz::{Draw, Target};
use io::fault::Disk;

use super::bitmap::Bitmap;
use super::pages::PageStore;
use super::place::{Places, key};
use crate::error::Result;
use crate::options::{Access, Options};
use crate::recovery::forge::Forge;
use crate::recovery::fuzzed::{options, word};

const PAGE: usize = 4096;
const GROUP: u64 = 8 * PAGE as u64;

#[test]
fn allocation_bits() {
    let words = &["valid", "refused"];
    let target = Target::new("raw::fuzzed::allocation_bits", 1500).expects(words);
    target.run(|draw| {
        let size = *draw.one_of(&[1, 64, 100, GROUP - 1, GROUP, GROUP + 1, 2 * GROUP + 77]);
        let mut bitmap = Bitmap::read(PAGE, 0, &[]).unwrap();
        bitmap.grow(size);
        for _ in 0..draw.below(40) {
            let page = draw.number() % size;
            bitmap.change(page, !draw.one_in(3) || bitmap.is_protected(page));
        }
        let mut groups: Vec<_> = (0..bitmap.protected())
            .map(|group| bitmap.bytes(group as usize))
            .collect();
        let at = draw.below(groups.len());
        if draw.one_in(4) {
            draw.mutate(&mut groups[at]);
        } else {
            // Where the bits are of pages that there are.
            let end = *draw.one_of(&[8, 16, PAGE]);
            draw.disturb(&mut groups[at][..end]);
        }
        let size = if draw.one_in(4) {
            draw.number() % (1 << 33)
        } else {
            size
        };
        let Ok(mut bitmap) = Bitmap::read(PAGE, size, &groups) else {
            return "refused";
        };
        let allocated = |bitmap: &Bitmap| bitmap.runs().flatten().collect::<BTreeSet<u64>>();
        let set = allocated(&bitmap);
        assert_eq!(set.len() as u64, bitmap.allocated());
        assert!(set.iter().all(|&page| page < size && bitmap.get(page)));
        for from in [0, draw.number() % size.max(1), size] {
            match bitmap.free_from(from) {
                Some(free) => assert!(free < size && !set.contains(&free)),
                None => assert_eq!(set.len() as u64, size),
            }
        }
        bitmap.grow(size + draw.below(70_000) as u64);
        let grown = allocated(&bitmap);
        assert!(grown.is_superset(&set) && grown.len() as u64 == bitmap.allocated());
        "valid"
    });
}

#[test]
fn places_of_pages() {
    let target = Target::new("raw::fuzzed::places_of_pages", 6_000).expects(&["some", "none"]);
    target.run(|draw| {
        let mut places = Places::of(None);
        for _ in 0..draw.below(6) {
            let place = draw.number() as u32;
            places.set(draw.below(1024) as u32, (!draw.one_in(4)).then_some(place));
        }
        let mut entry = places.entry().to_vec();
        draw.mutate(&mut entry);
        let first = 1024 * draw.below(1 << 22) as u32;
        let mut key = key(first).to_vec();
        if draw.one_in(4) {
            draw.mutate(&mut key);
        }
        let all: Vec<_> = Places::all(&key, &entry).collect();
        assert!(all.len() <= entry.len() / 5);
        for &(page, place) in &all {
            assert_eq!(Places::find(&entry, page), Some(place), "page {page}");
        }
        let mut places = Places::of(Some(&entry));
        let page = first + draw.below(1024) as u32;
        places.set(page, Some(9));
        assert_eq!(Places::find(places.entry(), page), Some(9));
        if all.is_empty() { "none" } else { "some" }
    });
}

/// A closed store of some pages, some of them written, some released.
fn some_pages(draw: &mut Draw) -> Disk {
    let disk = Disk::new(0);
    let store = PageStore::create_on(disk.device("data"), disk.device("log"), &options()).unwrap();
    for _ in 0..3 {
        let mut batch = store.begin().unwrap();
        let mut pages = Vec::new();
        for _ in 0..draw.below(8) {
            let page = batch.alloc().unwrap();
            if !draw.one_in(4) {
                batch.write(page, &draw.bytes(PAGE)).unwrap();
            }
            pages.push(page);
        }
        if draw.one_in(2) && !pages.is_empty() {
            batch.release(*draw.one_of(&pages)).unwrap();
        }
        batch.commit().unwrap();
    }
    store.close().unwrap();
    disk
}

/// Reads and writes all pages; an error is one of a page, never of another.
fn use_all(store: &PageStore, access: Access, draw: &mut Draw) -> Result<()> {
    let view = store.view();
    let list = view.list();
    let mut bytes = vec![0; store.page_size()];
    for index in 0..list.len().min(200) {
        let page = list.page(index);
        let read = view.read(page, &mut bytes);
        match futures::executor::block_on(list.pin(index)) {
            Ok(pin) => assert!(read.is_ok() && pin[..] == bytes[..], "page {page}"),
            Err(error) => assert!(["unreadable", "damaged"].contains(&word(&error)), "{error}"),
        }
    }
    if access == Access::Read {
        return Ok(());
    }
    let mut batch = store.begin()?;
    let page = batch.alloc()?;
    batch.write(page, &vec![3; store.page_size()])?;
    if !list.is_empty() {
        let page = list.page(draw.below(list.len()));
        match draw.below(3) {
            0 => batch.release(page)?,
            1 => batch.change(page)?.fill(1),
            _ => batch.read(page, &mut bytes)?,
        }
    }
    batch.commit()?;
    store.view().read(page, &mut bytes)?;
    assert!(bytes.iter().all(|&byte| byte == 3));
    Ok(())
}

#[test]
fn page_stores_are_opened_checked_read_and_written_to() {
    let words = &["sound", "with problems", "damaged", "truncated", "no pages"];
    let name = "raw::fuzzed::page_stores_are_opened_checked_read_and_written_to";
    let target = Target::new(name, 200).expects(words);
    let mut stores = BTreeMap::new();
    target.run(|draw| {
        let seed = draw.below(12) as u64;
        let store = stores
            .entry(seed)
            .or_insert_with(|| some_pages(&mut Draw::new(seed)));
        let mut forge = Forge::of(store);
        for _ in 0..1 + draw.below(2) {
            forge.forge(draw);
        }
        let options = Options {
            access: *draw.one_of(&[Access::Read, Access::Write]),
            ..options()
        };
        let (data, log) = (forge.disk.device("data"), forge.disk.device("log"));
        let store = match PageStore::open_on(data, log, &options) {
            Ok(store) => store,
            Err(error) => return word(&error),
        };
        let _ = store.statistics();
        let problems = store.check(&|_, _| {}).unwrap();
        let used = use_all(&store, options.access, draw);
        if problems.is_empty() {
            used.unwrap();
            "sound"
        } else {
            "with problems"
        }
    });
}
