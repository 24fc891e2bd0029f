//! Each read gets its own bytes, or the error that is its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::executor::block_on;
use futures::future::join_all;
use io::fault::{Disk, Faults};
use io::{Access, Aligned, Backend, Device, Error, File, Room, Settings};
use proptest::prelude::*;

use super::{file, of, pattern, queue};

crate::backends! {
    everybody_gets_their_own_bytes
    many_pages_in_one_batch
    the_end_of_the_file_is_an_error_that_says_where
    what_the_device_refuses_is_an_error_that_says_where
    a_room_that_is_too_small_is_refused
    the_room_comes_back_or_is_dropped
    simulated_disks_and_files_are_read_side_by_side
    the_end_answers_who_waits
    any_requests_get_their_bytes
}

fn everybody_gets_their_own_bytes(backend: Backend) {
    let bytes = pattern(1 << 20);
    let (_directory, device) = file(&bytes);
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (queue, device, bytes) = (&queue, &device, &bytes);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..100 {
                    let wants: Vec<_> = (0..8)
                        .map(|_| {
                            let len = random.usize(0..20_000);
                            (random.usize(0..=bytes.len() - len), len)
                        })
                        .collect();
                    let reads = wants
                        .iter()
                        .map(|&(offset, len)| queue.read(device, offset as u64, len));
                    for (read, (offset, len)) in block_on(join_all(reads)).into_iter().zip(wants) {
                        assert!(read.unwrap() == bytes[offset..offset + len]);
                    }
                }
            });
        }
    });
    let statistics = queue.statistics();
    assert_eq!(statistics.requests, 6400);
    assert!(statistics.reads <= 6400);
}

fn many_pages_in_one_batch(backend: Backend) {
    let bytes = pattern(4 << 20);
    let (_directory, device) = file(&bytes);
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    // More than are under way at the same time, in any order.
    let mut pages: Vec<usize> = (0..1024).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut pages);
    let reads: Vec<_> = queue.together(|| {
        let ask = |&page: &usize| {
            let room = Aligned::new(4096, 4096);
            queue.fill(&device, page as u64 * 4096, 4096, room)
        };
        pages.iter().map(ask).collect()
    });
    for (room, page) in block_on(join_all(reads)).into_iter().zip(pages) {
        assert!(room.unwrap().as_slice() == &bytes[page * 4096..][..4096]);
    }
    let statistics = queue.statistics();
    // All neighbours of a window of 256 pages out of 1,024 are few, but there are some.
    assert!(statistics.reads < 1000, "{statistics:?}");
}

fn the_end_of_the_file_is_an_error_that_says_where(backend: Backend) {
    let bytes = pattern(10_000);
    let (_directory, device) = file(&bytes);
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    let (good, bad, beyond, never) = queue.together(|| {
        (
            queue.read(&device, 8000, 2000),
            queue.read(&device, 9000, 3000),
            queue.read(&device, 50_000, 10),
            queue.read(&device, i64::MAX as u64 - 1, 10),
        )
    });
    assert!(block_on(good).unwrap() == bytes[8000..]);
    let error = block_on(bad).unwrap_err();
    let says = error.to_string();
    assert!(
        says.contains("pages: read only 1000 of 3000 bytes at offset 9000"),
        "{says}"
    );
    assert!(matches!(
        block_on(beyond),
        Err(Error::ShortRead { got: 0, .. })
    ));
    assert!(matches!(block_on(never), Err(Error::ShortRead { .. })));
}

fn what_the_device_refuses_is_an_error_that_says_where(backend: Backend) {
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    // The memory of this process as a file: nothing is mapped at its beginning, so it fails as a
    // damaged disk does.
    let memory = File::open("/proc/self/mem", Access::Read).unwrap();
    let device: Arc<dyn Device> = Arc::new(memory);
    let mut into = [0; 16];
    let reads = [
        device.read_at(4096, &mut into).unwrap_err(),
        block_on(queue.read(&device, 4096, 16)).unwrap_err(),
    ];
    for error in reads {
        let says = error.to_string();
        assert!(
            says.starts_with(
                "/proc/self/mem: reading 16 bytes at offset 4096 failed: Input/output"
            ),
            "{says}"
        );
    }
}

fn a_room_that_is_too_small_is_refused(backend: Backend) {
    let (_directory, device) = file(&pattern(1000));
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    let error = block_on(queue.fill(&device, 0, 200, vec![0; 100])).unwrap_err();
    assert!(matches!(
        error,
        Error::Room {
            wanted: 200,
            size: 100,
            ..
        }
    ));
    assert_eq!(block_on(queue.fill(&device, 0, 0, vec![7])).unwrap(), [7]);
}

/// Memory that counts when it is dropped.
struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: the vector's bytes, as for the vector alone.
unsafe impl Room for Counted {
    fn bytes(&mut self) -> (*mut u8, usize) {
        self.0.bytes()
    }
}

fn the_room_comes_back_or_is_dropped(backend: Backend) {
    let bytes = pattern(1 << 20);
    let (_directory, device) = file(&bytes);
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    let dropped = Arc::new(AtomicUsize::new(0));
    let room = || Counted(vec![0; 4096], dropped.clone());
    let kept = block_on(queue.fill(&device, 4096, 4096, room())).unwrap();
    assert!(kept.0 == bytes[4096..8192]);
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    for page in 0..200 {
        drop(queue.fill(&device, page * 4096, 4096, room()));
    }
    assert!(block_on(queue.fill(&device, 2 << 20, 4096, room())).is_err());
    // The end waits for what is under way.
    drop(queue);
    assert_eq!(dropped.load(Ordering::SeqCst), 201);
}

fn simulated_disks_and_files_are_read_side_by_side(backend: Backend) {
    let bytes = pattern(100_000);
    let (_directory, device) = file(&bytes);
    let disk = Disk::new(5);
    let simulated = disk.device("data");
    simulated.write_at(0, &bytes).unwrap();
    disk.set_faults(Faults {
        read_errors: 100,
        short_reads: 100,
        ..Faults::default()
    });
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    let mut failed = 0;
    for round in 0..100 {
        let reads: Vec<_> = queue.together(|| {
            let ask = |page: u64| {
                let device = if page.is_multiple_of(2) {
                    &device
                } else {
                    &simulated
                };
                (page, queue.read(device, page * 5000, 5000))
            };
            (0..20).map(ask).collect()
        });
        for (page, read) in reads {
            match block_on(read) {
                Ok(read) => assert!(read == bytes[page as usize * 5000..][..5000], "{round}"),
                Err(Error::Injected { .. } | Error::ShortRead { .. }) if page % 2 == 1 => {
                    failed += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(failed > 0, "the faults were seen");
}

fn the_end_answers_who_waits(backend: Backend) {
    let (_directory, device) = file(&pattern(1 << 20));
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    let reads: Vec<_> = (0..256)
        .map(|page| queue.read(&device, page * 4096, 4096))
        .collect();
    drop(queue);
    for read in reads {
        assert!(matches!(block_on(read), Ok(_) | Err(Error::Threads { .. })));
    }
}

fn any_requests_get_their_bytes(backend: Backend) {
    let bytes = pattern(60_000);
    let (_directory, device) = file(&bytes);
    let requests = prop::collection::vec((0usize..70_000, 1usize..9000), 1..40);
    let shape = (1usize..40, 0u64..6000, 1u64..40_000, 1u32..8, any::<bool>());
    let config = ProptestConfig::with_cases(64);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&(requests, shape), |(requests, shape)| {
        let (window, gap, longest, depth, together) = shape;
        let settings = Settings {
            backend,
            threads: 2,
            depth,
            window,
            gap,
            longest,
        };
        let Some(queue) = queue(settings) else {
            return Ok(());
        };
        let ask = || -> Vec<_> {
            let read = |&(offset, len): &(usize, usize)| queue.read(&device, offset as u64, len);
            requests.iter().map(read).collect()
        };
        let reads = if together { queue.together(ask) } else { ask() };
        for (read, &(offset, len)) in block_on(join_all(reads)).into_iter().zip(&requests) {
            match (read, bytes.get(offset..offset + len)) {
                (Ok(read), Some(bytes)) => prop_assert!(read == bytes),
                (Err(Error::ShortRead { got, wanted, .. }), None) => {
                    prop_assert_eq!(got, bytes.len().saturating_sub(offset));
                    prop_assert_eq!(wanted, len);
                }
                (read, _) => prop_assert!(false, "{:?} at {} of {}", read.is_ok(), offset, len),
            }
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn without_a_ring_threads_serve_and_say_why() {
    let queue = io::Queue::with(Settings::default()).unwrap();
    let chosen = queue.backend();
    match chosen.backend {
        Backend::Uring => assert!(chosen.to_string().starts_with("io_uring ("), "{chosen}"),
        _ => assert!(
            chosen.to_string().contains("threads (io_uring: "),
            "{chosen}"
        ),
    }
    let threads = io::Queue::new(2).unwrap();
    assert_eq!(threads.backend().to_string(), "threads");
}
