//! The simulated disk: that it does what a disk may do, all of it and nothing else.

use std::collections::BTreeSet;

use io::Error;
use io::fault::{Disk, Faults, SECTOR};
use proptest::prelude::*;

#[test]
fn a_simulated_file_behaves_like_a_file() {
    let disk = Disk::new(1);
    let device = disk.device("data");
    device.write_at(10, b"abc").unwrap();
    assert_eq!(device.len().unwrap(), 13);
    let mut into = [9; 13];
    device.read_at(0, &mut into).unwrap();
    assert_eq!(&into, b"\0\0\0\0\0\0\0\0\0\0abc");
    let again = disk.clone().device("data");
    again.set_len(11).unwrap();
    let error = device.read_at(10, &mut into[..2]).unwrap_err();
    assert!(matches!(error, Error::ShortRead { got: 1, .. }), "{error}");
    assert!(device.write_at(u64::MAX, b"x").is_err());
    assert!(device.set_len(u64::MAX).is_err());
    assert!(device.read_at(u64::MAX, &mut into).is_err());
    device.write_at(99, b"").unwrap();
    assert_eq!(device.len().unwrap(), 11);
    let counts = disk.counts();
    assert_eq!(
        (counts.writes, counts.resizes, counts.written_bytes),
        (2, 1, 3)
    );
    assert_eq!(disk.names(), ["data"]);
}

#[test]
fn what_was_synced_survives_and_the_rest_may_not() {
    let disk = Disk::new(1);
    let device = disk.device("data");
    device.write_at(0, &[1; 4 * SECTOR]).unwrap();
    device.sync().unwrap();
    device.write_at(SECTOR as u64, &[2; SECTOR]).unwrap();
    device.write_at(4 * SECTOR as u64, &[3; SECTOR]).unwrap();
    let mut images = BTreeSet::new();
    for seed in 0..200 {
        let left = disk.crash(seed).bytes("data");
        assert_eq!(left[..SECTOR], [1; SECTOR]);
        assert!(left.len() == 4 * SECTOR || left.len() == 5 * SECTOR);
        // Whole sectors, old or new.
        for (index, sector) in left.chunks(SECTOR).enumerate() {
            let value = sector[0];
            assert!(sector.iter().all(|byte| *byte == value));
            let possible: &[u8] = match index {
                1 => &[1, 2],
                4 => &[0, 3],
                _ => &[1],
            };
            assert!(possible.contains(&value), "sector {index}: {value}");
        }
        images.insert(left);
    }
    // Sector 1 old or new, times: no sector 4, zeros, new.
    assert_eq!(images.len(), 6, "all that may be left is seen");
}

#[test]
fn a_later_write_may_survive_an_earlier_one() {
    let disk = Disk::new(1);
    let (data, log) = (disk.device("data"), disk.device("log"));
    for device in [&data, &log] {
        device.set_len(SECTOR as u64).unwrap();
        device.sync().unwrap();
    }
    data.write_at(0, &[1]).unwrap();
    log.write_at(0, &[1]).unwrap();
    let seen: BTreeSet<_> = (0..100)
        .map(|seed| {
            let left = disk.crash(seed);
            (left.bytes("data")[0], left.bytes("log")[0])
        })
        .collect();
    assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
    // Within a sector, the earlier write is there whenever the later one is.
    data.write_at(1, &[1]).unwrap();
    for seed in 0..100 {
        let left = disk.crash(seed).bytes("data");
        assert!(left[..2] != [0, 1], "seed {seed}");
    }
}

#[test]
fn a_stopped_disk_stays_stopped() {
    let disk = Disk::new(1);
    let device = disk.device("data");
    disk.stop_after(2);
    device.write_at(0, &[1; SECTOR]).unwrap();
    device.sync().unwrap();
    let error = device.write_at(0, &[2; 2 * SECTOR]).unwrap_err();
    assert!(
        matches!(error, Error::Injected { operation: 2, .. }),
        "{error}"
    );
    assert!(device.read_at(0, &mut [0]).is_err());
    assert!(device.write_at(0, &[3; SECTOR]).is_err());
    assert!(device.set_len(0).is_err());
    assert!(matches!(device.sync(), Err(Error::Injected { .. })));
    assert!(matches!(device.sync(), Err(Error::Latched { .. })));
    assert_eq!(disk.operations(), 7);
    // The write that died may be on the disk, those that came after it not.
    let seen: BTreeSet<_> = (0..100)
        .map(|seed| disk.crash(seed).bytes("data")[0])
        .collect();
    assert_eq!(seen, BTreeSet::from([1, 2]));
    // What is left works.
    let left = disk.crash(1).device("data");
    left.write_at(0, b"x").unwrap();
    left.sync().unwrap();
}

#[test]
fn a_full_disk_says_so_and_has_a_part() {
    let disk = Disk::new(1);
    let device = disk.device("data");
    disk.device("other").write_at(0, &[1; 30]).unwrap();
    disk.set_capacity(100);
    device.write_at(0, &[1; 50]).unwrap();
    let error = device.write_at(40, &[2; 40]).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(device.len().unwrap(), 70);
    device.write_at(0, &[3; 70]).unwrap();
    disk.set_capacity(1000);
    device.write_at(40, &[2; 40]).unwrap();
}

#[test]
fn holes_take_room_when_they_are_written_to_or_allocated() {
    let disk = Disk::new(1);
    let device = disk.device("data");
    device.set_len(1000).unwrap();
    assert_eq!(disk.room(), 0);
    disk.set_capacity(300);
    device.write_at(500, &[1; 100]).unwrap();
    assert_eq!(disk.room(), 100);
    let full = device.allocate(0, 1000).unwrap_err();
    assert!(matches!(full, Error::Full { .. }), "{full}");
    assert_eq!((disk.room(), device.len().unwrap()), (100, 1000));
    device.allocate(450, 100).unwrap();
    assert_eq!(disk.room(), 150);
    // It grows where it must, and what is there stays.
    device.allocate(950, 150).unwrap();
    assert_eq!((disk.room(), device.len().unwrap()), (300, 1100));
    assert_eq!(disk.bytes("data")[500..600], [1; 100]);
    assert_eq!(disk.counts().resizes, 3);
    // What was allocated can be written, the rest not.
    device.write_at(950, &[2; 150]).unwrap();
    let full = device.write_at(940, &[2; 20]).unwrap_err();
    assert!(matches!(full, Error::Full { .. }), "{full}");
    device.set_len(550).unwrap();
    assert_eq!(disk.room(), 100);
    assert!(device.allocate(u64::MAX, 2).is_err());
}

#[test]
fn a_torn_sector_is_old_on_one_side_and_new_on_the_other() {
    let disk = Disk::new(1);
    let device = disk.device("data");
    device.write_at(0, &[1; 4 * SECTOR]).unwrap();
    device.sync().unwrap();
    device.write_at(0, &[2; 4 * SECTOR]).unwrap();
    let mut kinds = BTreeSet::new();
    for seed in 0..300 {
        for sector in disk.crash_torn(seed).bytes("data").chunks(SECTOR) {
            let changes = sector.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 1, "seed {seed}");
            kinds.insert((sector[0], sector[SECTOR - 1]));
        }
        // Otherwise sectors stay whole.
        let whole = disk.crash(seed).bytes("data");
        assert!(
            whole
                .chunks(SECTOR)
                .all(|sector| sector.iter().all(|byte| *byte == sector[0]))
        );
    }
    assert_eq!(kinds, BTreeSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]));
}

#[test]
fn bytes_can_be_unreadable_once_or_for_good() {
    let disk = Disk::new(1);
    let device = disk.device("data");
    device.write_at(0, &[7; 100]).unwrap();
    let read = |offset, len| device.read_at(offset, &mut vec![0; len]);
    disk.fail_reads("data", 10..20, 1);
    disk.fail_reads("data", 50..51, u32::MAX);
    disk.fail_reads("other", 0..100, u32::MAX);
    read(0, 10).unwrap();
    read(20, 30).unwrap();
    assert!(matches!(read(0, 11), Err(Error::Injected { .. })));
    read(0, 11).unwrap();
    for _ in 0..3 {
        assert!(read(50, 1).is_err() && read(0, 100).is_err());
    }
    disk.mend_reads();
    read(0, 100).unwrap();
}

#[test]
fn faults_come_as_often_as_asked_and_from_the_seed() {
    let run = |seed| {
        let disk = Disk::new(seed);
        let device = disk.device("data");
        device.write_at(0, &[0; 4096]).unwrap();
        disk.set_faults(Faults {
            short_reads: 100,
            read_errors: 100,
            flipped_reads: 100,
            short_writes: 100,
            write_errors: 100,
            sync_errors: 0,
        });
        let mut seen = [0u32; 5];
        for _ in 0..1000 {
            let mut into = [0; 64];
            match device.read_at(0, &mut into) {
                Ok(()) => seen[0] += into.iter().map(|byte| byte.count_ones()).sum::<u32>(),
                Err(Error::ShortRead { .. }) => seen[1] += 1,
                Err(_) => seen[2] += 1,
            }
            match device.write_at(0, &[0; 64]) {
                Ok(()) => {}
                Err(Error::ShortWrite { .. }) => seen[3] += 1,
                Err(_) => seen[4] += 1,
            }
        }
        seen
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    for count in run(1) {
        assert!((40..200).contains(&count), "{count} of 1000");
    }
}

#[test]
fn a_failed_sync_latches_and_promises_nothing() {
    let disk = Disk::new(1);
    let device = disk.device("data");
    device.write_at(0, &[1]).unwrap();
    disk.set_faults(Faults {
        sync_errors: 1000,
        ..Faults::default()
    });
    assert!(matches!(device.sync(), Err(Error::Injected { .. })));
    disk.set_faults(Faults::default());
    assert!(matches!(device.sync(), Err(Error::Latched { .. })));
    assert!(matches!(
        device.write_at(0, &[2]),
        Err(Error::Latched { .. })
    ));
    assert!((0..20).any(|seed| disk.crash(seed).bytes("data").is_empty()));
}

#[test]
fn damage_can_be_done_on_purpose() {
    let disk = Disk::new(1);
    disk.put("data", vec![0, 0]);
    assert!(disk.flip("data", 9));
    assert_eq!(disk.bytes("data"), [0, 2]);
    assert_eq!(disk.crash(0).bytes("data"), [0, 2]);
    assert!(!disk.flip("data", 16) && !disk.flip("none", 0));
    assert!(disk.bytes("none").is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Write(u64, u8, usize),
    Resize(u64),
    Sync,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4000u64, 1..255u8, 1..1500usize).prop_map(|(o, b, n)| Step::Write(o, b, n)),
        1 => (0..4000u64).prop_map(Step::Resize),
        2 => Just(Step::Sync),
    ]
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every byte left by a crash is one that was there at the last sync or at some time after.
    #[test]
    fn a_crash_leaves_only_what_was(steps in prop::collection::vec(step(), 1..30)) {
        let disk = Disk::new(1);
        let device = disk.device("data");
        // What the file was at the last sync and after each step since.
        let mut since = vec![Vec::new()];
        for step in &steps {
            match *step {
                Step::Write(offset, value, len) => {
                    device.write_at(offset, &vec![value; len]).unwrap();
                }
                Step::Resize(bytes) => device.set_len(bytes).unwrap(),
                Step::Sync => {
                    device.sync().unwrap();
                    since.clear();
                }
            }
            since.push(disk.bytes("data"));
        }
        let mut last = 0;
        for seed in 0..10 {
            let left = disk.crash(seed).bytes("data");
            prop_assert!(since.iter().any(|was| was.len() == left.len()));
            for (at, value) in left.iter().enumerate() {
                let possible = since.iter().any(|was| byte(was, at) == *value);
                prop_assert!(possible || *value == 0, "seed {}, byte {}", seed, at);
            }
            if seed % 5 == 1 {
                prop_assert_eq!(&left, since.last().unwrap());
                last += 1;
            }
            if seed % 5 == 0 {
                prop_assert_eq!(&left, &since[0]);
            }
        }
        prop_assert_eq!(last, 2);
    }
}
