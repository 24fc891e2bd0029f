//! Flipped bits, cut files, and files of others.

use io::fault::Disk;
use store::{Access, Damage, Error, Kind, Options, Region, Store};

use crate::model::{Random, State, change, create, open, open_to_read, small};

/// A closed store with pages of both codecs, some of them freed, and several spaces.
fn closed(seed: u64) -> (Disk, State) {
    let disk = Disk::new(seed);
    let mut random = Random::new(seed);
    let store = create(&disk).unwrap();
    let mut state = State::default();
    for step in 0..14 {
        let mut transaction = store.begin().unwrap();
        change(&mut random, &mut transaction, &mut state, 900).unwrap();
        transaction.commit().unwrap();
        if step == 6 {
            store.checkpoint().unwrap();
        }
    }
    store.close().unwrap();
    (disk, state)
}

pub fn copy(of: &Disk) -> Disk {
    let copy = Disk::new(0);
    for name in of.names() {
        copy.put(&name, of.bytes(&name));
    }
    copy
}

/// What opening and checking say of a damaged disk; `None` is nothing, and then the contents
/// have been found right.
fn verdict(disk: &Disk, state: &State, of: &str) -> Option<Vec<Region>> {
    let store = match open_to_read(disk) {
        Ok(store) => store,
        Err(Error::Damaged { region, .. }) => return Some(vec![region]),
        Err(error) => panic!("{of}: {error}"),
    };
    let problems = store.check(&|_, _| {}).unwrap();
    if problems.is_empty() {
        state.assert_is_all_of(&store, of);
        return None;
    }
    let region = |problem| match problem {
        store::Problem::Damaged(Error::Damaged { region, .. }) => region,
        other => panic!("{of}: {other}"),
    };
    Some(problems.into_iter().map(region).collect())
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let (disk, state) = closed(1);
    let data = disk.bytes("data");
    assert_eq!(
        data.len() as u64,
        open(&copy(&disk)).unwrap().statistics().file_bytes
    );
    let mut random = Random::new(9);
    let mut unnoticed = 0;
    let mut named = std::collections::BTreeSet::new();
    for byte in 0..data.len() as u64 {
        // The blocks before the extents are mostly zeros: try a part of them.
        if byte < 12_288 && byte % 4096 > 80 && byte % 4096 < 4090 && !byte.is_multiple_of(97) {
            continue;
        }
        let bit = byte * 8 + random.below(8);
        let damaged = copy(&disk);
        assert!(damaged.flip("data", bit));
        let of = format!("bit {bit} (byte {byte})");
        match (verdict(&damaged, &state, &of), byte) {
            (Some(regions), 0..4096) => assert_eq!(regions, [Region::Identity], "{of}"),
            (Some(regions), 4096..8192) => assert_eq!(regions, [Region::Root(0)], "{of}"),
            (Some(regions), 8192..12_288) => assert_eq!(regions, [Region::Root(1)], "{of}"),
            (Some(regions), _) => {
                assert_eq!(regions.len(), 1, "{of}: {regions:?}");
                named.insert(format!("{:?}", regions[0]));
            }
            (None, 0..12_288) => panic!("{of} is not noticed"),
            (None, _) => unnoticed += 1,
        }
    }
    for region in ["Directory", "MapChunk(0)", "Space(0)"] {
        assert!(named.contains(region), "{region} not among {named:?}");
    }
    let pages = named
        .iter()
        .filter(|name| name.starts_with("Page("))
        .count();
    assert_eq!(pages, state.pages.len(), "{named:?}");
    let free = open(&copy(&disk)).unwrap().statistics().free_bytes;
    let padding = 63 * named.len() as u64;
    assert!(
        unnoticed <= free + padding,
        "{unnoticed} of {} in use",
        data.len() as u64 - free
    );
}

#[test]
fn every_flipped_bit_of_a_page_names_the_page() {
    let disk = Disk::new(0);
    let store = create(&disk).unwrap();
    let transaction = store.begin().unwrap();
    let mut random = Random::new(2);
    let noise: Vec<u8> = (0..600).map(|_| random.next() as u8).collect();
    transaction.write_page(&[1; 50], 0, Kind::Values).unwrap();
    let page = transaction.write_page(&noise, 0, Kind::Values).unwrap();
    transaction.commit().unwrap();
    store.close().unwrap();
    let data = disk.bytes("data");
    let at = data
        .windows(600)
        .position(|window| window == noise)
        .unwrap() as u64;
    for bit in at * 8..(at + 600) * 8 {
        disk.flip("data", bit);
        let store = open_to_read(&disk).unwrap();
        let problems = store.check(&|_, _| {}).unwrap();
        assert_eq!(problems.len(), 1);
        let text = problems[0].to_string();
        assert!(
            text.contains(&format!("page {page} at offset {at}")),
            "{text}"
        );
        if bit % 64 == 0 {
            let error = futures::executor::block_on(store.pool().pin(page)).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains(&format!("page {page} at offset {at}")),
                "{error}"
            );
        }
        disk.flip("data", bit);
    }
}

#[test]
fn pages_in_each_others_place_are_noticed() {
    let disk = Disk::new(0);
    let store = create(&disk).unwrap();
    let transaction = store.begin().unwrap();
    let mut random = Random::new(3);
    let noise: Vec<Vec<u8>> = (0..2)
        .map(|_| (0..640).map(|_| random.next() as u8).collect())
        .collect();
    let slices: Vec<&[u8]> = noise.iter().map(|page| &page[..]).collect();
    transaction.write_pages(&slices, 0, Kind::Values).unwrap();
    transaction.commit().unwrap();
    store.close().unwrap();
    let mut data = disk.bytes("data");
    let first = data
        .windows(640)
        .position(|window| window == noise[0])
        .unwrap();
    let second = first + 640;
    assert_eq!(
        data[second..second + 640],
        noise[1],
        "one run, one page after the other"
    );
    let (head, tail) = data.split_at_mut(second);
    head[first..].swap_with_slice(&mut tail[..640]);
    disk.put("data", data);
    let problems = open_to_read(&disk).unwrap().check(&|_, _| {}).unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
}

/// A store that was not closed, whose log has five commits, and the states before and after each.
fn open_ended(seed: u64) -> (Disk, Vec<State>, Vec<u64>) {
    let (disk, mut state) = closed(seed);
    let store = open(&disk).unwrap();
    let mut random = Random::new(8);
    let mut states = vec![state.clone()];
    let mut ends = vec![8192];
    for _ in 0..5 {
        let mut transaction = store.begin().unwrap();
        change(&mut random, &mut transaction, &mut state, 50).unwrap();
        for key in [&b"some"[..], &b"more"[..]] {
            let value = random.page(20);
            transaction.put(1, key, &value);
            state.keys.insert((1, key.to_vec()), value);
        }
        transaction.commit().unwrap();
        states.push(state.clone());
        ends.push(8192 + store.statistics().log_bytes);
    }
    (disk, states, ends)
}

#[test]
fn every_flipped_bit_of_a_log_is_noticed() {
    let (closed, states, _) = open_ended(4);
    let mut random = Random::new(9);
    let last = &states[states.len() - 1];
    for byte in 0..disk_length(&closed, "log") {
        if byte < 8192 && byte % 4096 > 80 && byte % 4096 < 4090 && !byte.is_multiple_of(97) {
            continue;
        }
        let damaged = copy(&closed);
        damaged.flip("log", byte * 8 + random.below(8));
        let of = format!("byte {byte} of the log");
        match open_to_read(&damaged) {
            Err(Error::Damaged { region, offset, .. }) => {
                assert!(offset <= byte, "{of}: {region} at {offset}");
            }
            Err(error) => panic!("{of}: {error}"),
            Ok(store) => {
                assert!(byte < 8192, "{of} is not noticed");
                let problems = store.check(&|_, _| {}).unwrap();
                assert_eq!(problems.len(), 1, "{of}: {problems:?}");
                assert!(problems[0].to_string().contains("log header"), "{of}");
                last.assert_equals(&store.snapshot(), &of);
            }
        }
    }
}

#[test]
fn a_damaged_commit_is_given_up_only_when_told() {
    let (disk, states, ends) = open_ended(4);
    // The last one, and one that others follow.
    for record in [4, 2] {
        let damaged = copy(&disk);
        damaged.flip("log", (ends[record] + 40) * 8);
        let log = damaged.bytes("log");
        for open in [open, open_to_read] {
            let error = open(&damaged).unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(
                    error,
                    Error::Damaged { region: Region::LogRecord(_), offset, .. }
                        if offset == ends[record]
                ),
                "{text}"
            );
            assert!(text.contains("pages STORE repair"), "{text}");
            assert!(damaged.bytes("log") == log, "nothing is written over it");
        }
        let dropping = Options {
            damage: Damage::Drop,
            ..small()
        };
        let open_dropping = |access| {
            let options = Options {
                access,
                ..dropping.clone()
            };
            Store::open_on(damaged.device("data"), damaged.device("log"), &options).unwrap()
        };
        let store = open_dropping(Access::Read);
        let dropped = store.recovery().dropped.clone().unwrap();
        assert_eq!(dropped.version, store.snapshot().version() + 1);
        assert_eq!(dropped.offset, ends[record]);
        assert_eq!(dropped.bytes, log.len() as u64 - ends[record]);
        assert!(dropped.damage.is_some(), "{dropped}");
        assert_eq!(store.recovery().replayed, record as u64);
        states[record].assert_equals(&store.snapshot(), "given up");
        assert_eq!(
            store.check(&|_, _| {}).unwrap().len(),
            1,
            "it is still there"
        );
        drop(store);
        assert!(damaged.bytes("log") == log, "a reader writes nothing");
        drop(open_dropping(Access::Write));
        // Now it is gone for good, and commits go on from there.
        let store = open(&damaged).unwrap();
        assert_eq!(store.recovery().dropped, None);
        states[record].assert_equals(&store.snapshot(), "repaired");
        let mut transaction = store.begin().unwrap();
        transaction.put(9, b"k", b"v");
        assert_eq!(transaction.commit().unwrap(), dropped.version);
        drop(store);
        let store = open(&damaged).unwrap();
        assert_eq!(store.snapshot().get(9, b"k").as_deref(), Some(&b"v"[..]));
    }
}

#[test]
fn a_commit_that_was_cut_short_is_dropped_and_reported() {
    let (disk, states, ends) = open_ended(4);
    let mut log = disk.bytes("log");
    log.truncate(ends[5] as usize - 30);
    disk.put("log", log);
    let store = open(&disk).unwrap();
    let recovery = store.recovery();
    let dropped = recovery.dropped.as_ref().unwrap();
    assert_eq!((recovery.replayed, dropped.offset), (4, ends[4]));
    assert_eq!(dropped.damage, None);
    assert!(dropped.to_string().contains("before it was acknowledged"));
    states[4].assert_is_all_of(&store, "cut short");
}

fn disk_length(disk: &Disk, name: &str) -> u64 {
    disk.bytes(name).len() as u64
}

#[test]
fn cut_files_are_noticed() {
    let (disk, _) = closed(2);
    let (data, log) = (disk.bytes("data"), disk.bytes("log"));
    for length in (0..data.len())
        .rev()
        .filter(|length| length % 61 == 0 || data.len() - length < 70)
    {
        let cut = copy(&disk);
        cut.put("data", data[..length].to_vec());
        match open(&cut).unwrap_err() {
            Error::Truncated { needed, found, .. } => {
                assert_eq!(found, length as u64);
                assert!(needed > found);
            }
            Error::NotAtoll { .. } => assert_eq!(length, 0),
            error => panic!("cut to {length}: {error}"),
        }
    }
    for length in (0..log.len()).rev().step_by(61) {
        let cut = copy(&disk);
        cut.put("log", log[..length].to_vec());
        let error = open(&cut).unwrap_err();
        assert!(
            matches!(error, Error::Truncated { .. }),
            "log cut to {length}: {error}"
        );
    }
}

#[test]
fn a_lost_root_is_not_replaced_by_an_older_state() {
    let disk = Disk::new(0);
    let store = create(&disk).unwrap();
    for value in 0..3u8 {
        let mut transaction = store.begin().unwrap();
        transaction.put(0, b"k", &[value]);
        transaction.commit().unwrap();
        store.checkpoint().unwrap();
    }
    // Not closed: the other slot holds the checkpoint before the last.
    drop(store);
    let (mut right, mut lost) = (0, 0);
    for slot in [0u8, 1] {
        let damaged = copy(&disk);
        damaged.flip("data", (4096 + 4096 * u64::from(slot) + 30) * 8);
        match open_to_read(&damaged) {
            Ok(store) => {
                assert_eq!(store.snapshot().get(0, b"k").as_deref(), Some(&[2][..]));
                assert_eq!(store.check(&|_, _| {}).unwrap().len(), 1);
                right += 1;
            }
            Err(Error::Damaged { region, .. }) => {
                assert_eq!(region, Region::Root(slot), "the damaged one is named");
                lost += 1;
            }
            Err(error) => panic!("{error}"),
        }
        // Nor if the log cannot say any more which of the roots is the newest.
        for header in [0, 4096] {
            damaged.flip("log", (header + 30) * 8);
            let error = open_to_read(&damaged).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::Damaged {
                        region: Region::Root(_),
                        ..
                    }
                ),
                "{error}"
            );
            damaged.flip("log", (header + 30) * 8);
        }
    }
    assert_eq!((right, lost), (1, 1));
}

#[test]
fn an_older_copy_of_one_file_is_not_taken_for_the_present_one() {
    let (disk, _) = closed(6);
    let (data, log) = (disk.bytes("data"), disk.bytes("log"));
    let store = open(&disk).unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.put(0, b"k", b"v");
    transaction.commit().unwrap();
    store.close().unwrap();
    let mixed = copy(&disk);
    mixed.put("log", log);
    let error = open(&mixed).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Damaged {
                region: Region::LogHeader(_),
                ..
            }
        ),
        "{error}"
    );
    let mixed = copy(&disk);
    mixed.put("data", data);
    let error = open(&mixed).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Damaged {
                region: Region::Root(_),
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn other_files_and_other_stores_are_told_apart() {
    let (disk, _) = closed(3);
    let open_with = |data: Vec<u8>, log: Vec<u8>| {
        let other = Disk::new(0);
        other.put("data", data);
        other.put("log", log);
        open(&other).unwrap_err()
    };
    let (data, log) = (disk.bytes("data"), disk.bytes("log"));
    let (_, foreign) = {
        let other = closed(5).0;
        (other.bytes("data"), other.bytes("log"))
    };
    let error = open_with(b"PAR1 and more".repeat(5000), log.clone());
    assert!(matches!(error, Error::NotAtoll { .. }), "{error}");
    let error = open_with(b"short".to_vec(), log.clone());
    assert!(matches!(error, Error::NotAtoll { .. }), "{error}");
    let error = open_with(data.clone(), foreign);
    assert!(matches!(error, Error::ForeignLog { .. }), "{error}");
    let error = open_with(data.clone(), vec![0; 8192]);
    assert!(
        matches!(
            error,
            Error::Damaged {
                region: Region::LogHeader(0),
                ..
            }
        ),
        "{error}"
    );

    // A later release would write its version into the identity, and seal it as we do.
    let mut newer = data.clone();
    newer[8..12].copy_from_slice(&7u32.to_le_bytes());
    let mut seed = 6u32.to_le_bytes().to_vec();
    seed.extend_from_slice(&[0; 4]);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&seed), &newer[..4092]);
    newer[4092..4096].copy_from_slice(&sum.to_le_bytes());
    let error = open_with(newer, log);
    assert!(
        matches!(
            error,
            Error::NewerFormat {
                found: 7,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("version 7"), "{error}");
}

#[test]
fn only_possible_page_sizes() {
    let disk = Disk::new(0);
    let options = store::Options {
        page_size: 2048,
        ..small()
    };
    let error = Store::create_on(disk.device("data"), disk.device("log"), &options).unwrap_err();
    assert!(matches!(error, Error::PageSize { bytes: 2048 }), "{error}");
}
