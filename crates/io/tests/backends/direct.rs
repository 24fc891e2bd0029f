//! Reads past the page cache.

use std::path::Path;
use std::sync::Arc;

use futures::executor::block_on;
use futures::future::join_all;
use io::{Access, Aligned, Backend, Device, Direct, Error, File};

use super::{direct_file, of, pattern, queue};

crate::backends! {
    aligned_and_unaligned_reads_get_their_bytes
    what_was_just_written_is_read
    the_end_of_the_file_is_found
}

fn aligned_and_unaligned_reads_get_their_bytes(backend: Backend) {
    let bytes = pattern((1 << 20) + 777);
    let Some((_directory, device)) = direct_file(&bytes) else {
        return;
    };
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    let ranges = [
        (0, 4096),
        (4096, 65_536),
        (64, 65_536),
        (100_000, 1),
        (300_000, 300_000),
        ((1 << 20) + 700, 77), // the end of the file, within a sector
        (1 << 20, 777),
    ];
    for together in [true, false] {
        let ask = || -> Vec<_> {
            let fill = |&(offset, len): &(usize, usize)| {
                queue.fill(&device, offset as u64, len, Aligned::new(len, 4096))
            };
            ranges.iter().map(fill).collect()
        };
        let reads = if together { queue.together(ask) } else { ask() };
        for (room, (offset, len)) in block_on(join_all(reads)).into_iter().zip(ranges) {
            assert!(
                room.unwrap().as_slice() == &bytes[offset..offset + len],
                "{offset}"
            );
        }
    }
}

fn what_was_just_written_is_read(backend: Backend) {
    let Some((_directory, device)) = direct_file(&pattern(65_536)) else {
        return;
    };
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    for round in 0..20u8 {
        device
            .write_at(4096 + u64::from(round), &[round; 5000])
            .unwrap();
        let room = block_on(queue.fill(&device, 4096, 8192, Aligned::new(8192, 4096))).unwrap();
        let from = usize::from(round);
        assert!(room.as_slice()[from..from + 5000] == [round; 5000]);
    }
}

fn the_end_of_the_file_is_found(backend: Backend) {
    let Some((_directory, device)) = direct_file(&pattern(10_000)) else {
        return;
    };
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    for (offset, len, exists) in [(9000, 2000, 1000), (8192, 4096, 1808), (1 << 20, 9, 0)] {
        match block_on(queue.read(&device, offset, len)) {
            Err(Error::ShortRead { got, .. }) => assert_eq!(got, exists),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_file_system_that_refuses_is_named() {
    // The files of the kernel are in no page cache that one could go past.
    let open = || File::open("/proc/self/status", Access::Read).unwrap();
    let error = open().direct(Direct::Always).unwrap_err();
    assert!(matches!(error, Error::Direct { .. }), "{error}");
    let says = error.to_string();
    assert!(
        says.starts_with("/proc/self/status: direct I/O is refused here: "),
        "{says}"
    );
    let file = open().direct(Direct::IfPossible).unwrap();
    assert!(file.direct_refused().is_some());
    let device: Arc<dyn Device> = Arc::new(file);
    assert_eq!(device.path(), Path::new("/proc/self/status"));
    let queue = io::Queue::new(1).unwrap();
    assert_eq!(block_on(queue.read(&device, 0, 5)).unwrap(), b"Name:");
    assert!(
        open()
            .direct(Direct::Never)
            .unwrap()
            .direct_refused()
            .is_none()
    );
}
