//! Files mapped into memory: the same bytes as read, and a file that is cut is an error, never a crash (row M1).

use std::sync::atomic::{AtomicUsize, Ordering};

use io::{Device, Error, File, Map, Mapping, Pattern};

/// A file of `bytes` bytes, each of which tells its place.
fn file(directory: &tempfile::TempDir, bytes: usize) -> File {
    let file = File::create(directory.path().join("pages")).unwrap();
    let content: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
    file.write_at(0, &content).unwrap();
    file
}

fn map(file: &File, offset: u64, len: usize, mapping: Mapping) -> io::Result<Map> {
    // SAFETY: these tests write to no file while a part of it is mapped; they only cut it.
    unsafe { Map::new(file, offset, len, mapping) }
}

#[test]
fn any_range_has_the_bytes_that_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = file(&directory, 300_001);
    for (offset, len) in [
        (0, 300_001),
        (0, 0),
        (300_001, 0),
        (1, 1),
        (4096, 8192),
        (65_535, 70_000),
    ] {
        let mut read = vec![0; len];
        file.read_at(offset, &mut read).unwrap();
        for mapping in [Mapping::ReadOnly, Mapping::CopyOnWrite] {
            let map = map(&file, offset, len, mapping).unwrap();
            for pattern in [
                Pattern::Normal,
                Pattern::Sequential,
                Pattern::Random,
                Pattern::Soon,
            ] {
                map.advise(pattern).unwrap();
            }
            assert_eq!(map.bytes(), read, "{len} bytes at {offset}");
            assert_eq!(map.offset(), offset);
            let (middle, end) = (len / 3, offset + len as u64);
            let part = map.range(offset + middle as u64, len - middle);
            assert_eq!(part, Some(&read[middle..]));
            assert_eq!(map.range(end, 1), None);
            assert_eq!(map.range(end, 0), Some(&[][..]));
            assert_eq!(map.range(end, usize::MAX), None);
            assert_eq!(map.range(offset.wrapping_sub(1), 1), None);
            map.check().unwrap();
        }
    }
}

#[test]
fn more_than_the_file_has_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = file(&directory, 10_000);
    for (offset, len, got) in [
        (0, 10_001, 10_000),
        (9_999, 2, 1),
        (20_000, 1, 0),
        (u64::MAX, 2, 0),
    ] {
        match map(&file, offset, len, Mapping::ReadOnly) {
            Err(Error::ShortRead {
                got: there, wanted, ..
            }) => assert_eq!((there, wanted), (got, len)),
            other => panic!("{len} bytes at {offset}: {other:?}"),
        }
    }
}

#[test]
fn a_copy_on_write_changes_nothing_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = file(&directory, 10_000);
    let mut private = map(&file, 100, 5_000, Mapping::CopyOnWrite).unwrap();
    private.bytes_mut().unwrap().fill(99);
    assert!(private.bytes().iter().all(|byte| *byte == 99));
    let mut read_only = map(&file, 100, 5_000, Mapping::ReadOnly).unwrap();
    assert!(read_only.bytes_mut().is_none());
    assert_eq!(read_only.bytes()[0], 14, "what the file has");
}

#[test]
fn it_outlives_the_handle_and_the_name_of_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let opened = file(&directory, 10_000);
    let path = opened.path().to_owned();
    let map = map(&opened, 0, 10_000, Mapping::ReadOnly).unwrap();
    drop(opened);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(map.bytes()[9_999], (9_999 / 7) as u8);
    map.check().unwrap();
}

#[test]
fn a_file_that_becomes_shorter_is_an_error_and_no_crash() {
    let directory = tempfile::tempdir().unwrap();
    let pages = 64;
    let file = file(&directory, pages * 65_536);
    for mapping in [Mapping::ReadOnly, Mapping::CopyOnWrite] {
        file.set_len((pages * 65_536) as u64).unwrap();
        let map = map(&file, 0, pages * 65_536, mapping).unwrap();
        map.check().unwrap();
        file.set_len(65_536).unwrap();
        // Several threads meet the loss at the same time, at the same pages.
        let zeros = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let lost = &map.bytes()[65_536..];
                    zeros.fetch_add(
                        lost.iter().filter(|byte| **byte == 0).count(),
                        Ordering::Relaxed,
                    );
                });
            }
        });
        assert_eq!(zeros.into_inner(), 4 * (pages - 1) * 65_536);
        assert_eq!(
            map.bytes()[65_535],
            (65_535 / 7) as u8,
            "what is left stays"
        );
        let Err(Error::Shrunk { needed, length, .. }) = map.check() else {
            panic!("the loss was not told");
        };
        assert_eq!((needed, length), ((pages * 65_536) as u64, 65_536));
        // The loss is remembered, as what was read in between cannot be unread.
        file.set_len((pages * 65_536) as u64).unwrap();
        assert!(matches!(map.check(), Err(Error::Shrunk { .. })));
    }
}

#[test]
fn a_loss_within_the_last_page_is_told_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = file(&directory, 4_000);
    let map = map(&file, 0, 4_000, Mapping::ReadOnly).unwrap();
    file.set_len(3_999).unwrap();
    assert!(matches!(map.check(), Err(Error::Shrunk { .. })));
}

#[test]
fn the_signal_of_somebody_elses_mapping_is_passed_on() {
    use std::os::fd::AsRawFd;

    let directory = tempfile::tempdir().unwrap();
    let ours = file(&directory, 65_536);
    let _watching = map(&ours, 0, 65_536, Mapping::ReadOnly).unwrap();
    let path = directory.path().join("theirs");
    std::fs::write(&path, vec![1; 65_536]).unwrap();
    let theirs = std::fs::OpenOptions::new()
        .write(true)
        .read(true)
        .open(&path)
        .unwrap();
    // SAFETY: a mapping of our own, at an address that the kernel chooses.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            65_536,
            libc::PROT_READ,
            libc::MAP_SHARED,
            theirs.as_raw_fd(),
            0,
        )
    };
    assert_ne!(base, libc::MAP_FAILED);
    theirs.set_len(0).unwrap();
    // SAFETY: the child does nothing but read one byte and end: no lock, no memory is taken.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: the page is mapped, if without content: the signal is what this test is about.
        unsafe {
            std::ptr::read_volatile(base.cast::<u8>());
            libc::_exit(0);
        }
    }
    let mut status = 0;
    // SAFETY: waits for the child of a moment ago.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert!(libc::WIFSIGNALED(status), "it ended with {status}");
    assert_eq!(libc::WTERMSIG(status), libc::SIGBUS);
    // SAFETY: the mapping of above, which nobody uses any more.
    unsafe { libc::munmap(base, 65_536) };
}
