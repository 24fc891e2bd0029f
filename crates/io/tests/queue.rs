//! The queue of reads.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use futures::executor::block_on;
use futures::future::join_all;
use io::fault::{Disk, Faults};
use io::{Device, Error, Queue, Result};
use parking_lot::{Condvar, Mutex};

/// A device whose reads wait until the gate is open.
#[derive(Debug)]
struct Gated {
    device: Arc<dyn Device>,
    open: Mutex<bool>,
    changed: Condvar,
    entered: AtomicUsize,
}

impl Gated {
    fn new(bytes: &[u8]) -> Arc<Gated> {
        let device = Disk::new(0).device("data");
        device.write_at(0, bytes).unwrap();
        Arc::new(Gated {
            device,
            open: Mutex::new(false),
            changed: Condvar::new(),
            entered: AtomicUsize::new(0),
        })
    }

    fn open(&self) {
        *self.open.lock() = true;
        self.changed.notify_all();
    }

    /// Returns when a read waits at the gate.
    fn entered(&self) {
        while self.entered.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    }
}

impl Device for Gated {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.entered.fetch_add(1, Ordering::SeqCst);
        let mut open = self.open.lock();
        while !*open {
            self.changed.wait(&mut open);
        }
        drop(open);
        self.device.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, from: &[u8]) -> Result<()> {
        self.device.write_at(offset, from)
    }
    fn sync(&self) -> Result<()> {
        self.device.sync()
    }
    fn len(&self) -> Result<u64> {
        self.device.len()
    }
    fn set_len(&self, bytes: u64) -> Result<()> {
        self.device.set_len(bytes)
    }
    fn path(&self) -> &Path {
        self.device.path()
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

#[test]
fn neighbours_become_one_read() {
    let bytes = pattern(1 << 16);
    let gated = Gated::new(&bytes);
    let device: Arc<dyn Device> = gated.clone();
    let queue = Queue::new(1).unwrap();
    // The one thread waits in this read; the others gather behind it.
    let first = queue.read(&device, 60_000, 8);
    gated.entered();
    let ranges = [
        (4096, 4096), // adjoin, in any order
        (0, 4096),
        (8192, 100),
        (8200, 50),   // within
        (6000, 4000), // overlaps
        (20_000, 10), // apart
    ];
    let reads: Vec<_> = ranges
        .iter()
        .map(|&(offset, len)| queue.read(&device, offset, len))
        .collect();
    gated.open();
    assert_eq!(block_on(first).unwrap(), bytes[60_000..60_008]);
    for (read, (offset, len)) in reads.into_iter().zip(ranges) {
        let from = offset as usize;
        assert_eq!(block_on(read).unwrap(), bytes[from..from + len]);
    }
    let statistics = queue.statistics();
    assert_eq!((statistics.requests, statistics.reads), (7, 3));
    assert_eq!(statistics.read_bytes, 8 + 10_000 + 10);
    assert_eq!(
        statistics.requested_bytes,
        8 + ranges.iter().map(|r| r.1 as u64).sum::<u64>()
    );
}

#[test]
fn a_coalesced_read_has_a_limit() {
    let bytes = pattern(3 << 20);
    let gated = Gated::new(&bytes);
    let device: Arc<dyn Device> = gated.clone();
    let queue = Queue::new(1).unwrap();
    let first = queue.read(&device, 0, 1);
    gated.entered();
    let reads: Vec<_> = (0..48)
        .map(|i| queue.read(&device, i << 16, 1 << 16))
        .collect();
    gated.open();
    block_on(first).unwrap();
    for (i, read) in block_on(join_all(reads)).into_iter().enumerate() {
        assert!(read.unwrap() == bytes[i << 16..(i + 1) << 16], "part {i}");
    }
    assert_eq!(queue.statistics().reads, 1 + 3);
}

#[test]
fn one_bad_request_does_not_spoil_its_neighbours() {
    let bytes = pattern(1000);
    let gated = Gated::new(&bytes);
    let device: Arc<dyn Device> = gated.clone();
    let queue = Queue::new(1).unwrap();
    let first = queue.read(&device, 0, 1);
    gated.entered();
    let good = queue.read(&device, 500, 500);
    let bad = queue.read(&device, 900, 200);
    let never = queue.read(&device, u64::MAX, 2);
    gated.open();
    block_on(first).unwrap();
    assert_eq!(block_on(good).unwrap(), bytes[500..]);
    assert!(matches!(
        block_on(bad),
        Err(Error::ShortRead {
            offset: 900,
            wanted: 200,
            got: 100,
            ..
        })
    ));
    assert!(matches!(block_on(never), Err(Error::ShortRead { .. })));
}

#[test]
fn a_dropped_request_is_not_read() {
    let bytes = pattern(1000);
    let gated = Gated::new(&bytes);
    let device: Arc<dyn Device> = gated.clone();
    let queue = Queue::new(1).unwrap();
    let first = queue.read(&device, 0, 1);
    gated.entered();
    drop(queue.read(&device, 100, 100));
    let kept = queue.read(&device, 700, 100);
    drop(queue.read(&device, 600, 100));
    gated.open();
    block_on(first).unwrap();
    assert_eq!(block_on(kept).unwrap(), bytes[700..800]);
    let statistics = queue.statistics();
    assert_eq!((statistics.cancelled, statistics.reads), (2, 2));
}

#[test]
fn the_end_answers_who_still_waits() {
    let gated = Gated::new(&pattern(1000));
    let device: Arc<dyn Device> = gated.clone();
    let queue = Queue::new(1).unwrap();
    let first = queue.read(&device, 0, 10);
    gated.entered();
    let second = queue.read(&device, 500, 10);
    std::thread::scope(|scope| {
        let dropping = scope.spawn(move || drop(queue));
        // The end must be known to the thread before it comes back for more.
        std::thread::sleep(std::time::Duration::from_millis(50));
        gated.open();
        dropping.join().unwrap();
    });
    assert_eq!(block_on(first).unwrap().len(), 10);
    assert!(matches!(block_on(second), Err(Error::Threads { .. })));
}

/// A task that drops the last handle of a queue when it is woken.
struct LastHandle {
    queue: Mutex<Option<Queue>>,
    panicked: AtomicUsize,
    woken: AtomicUsize,
}

impl Wake for LastHandle {
    fn wake(self: Arc<Self>) {
        let queue = self.queue.lock().take();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(queue)));
        self.panicked
            .fetch_add(usize::from(dropped.is_err()), Ordering::SeqCst);
        self.woken.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_last_handle_may_be_dropped_on_an_io_thread() {
    for threads in [1, 3] {
        let bytes = pattern(1000);
        let gated = Gated::new(&bytes);
        let device: Arc<dyn Device> = gated.clone();
        let queue = Queue::new(threads).unwrap();
        // One for each thread: the next is asked for when the one before is at the gate.
        let blocked: Vec<_> = (1..=threads)
            .map(|busy| {
                let read = queue.read(&device, 0, 1);
                while gated.entered.load(Ordering::SeqCst) < busy {
                    std::thread::yield_now();
                }
                read
            })
            .collect();
        // These two become one read; the answer to the first ends the queue.
        let mut first = queue.read(&device, 100, 100);
        let second = queue.read(&device, 200, 100);
        let task = Arc::new(LastHandle {
            queue: Mutex::new(Some(queue)),
            panicked: AtomicUsize::new(0),
            woken: AtomicUsize::new(0),
        });
        let waker = Waker::from(task.clone());
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut first).poll(&mut context).is_pending());
        gated.open();
        for read in blocked {
            assert_eq!(block_on(read).unwrap(), bytes[..1]);
        }
        while task.woken.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(task.panicked.load(Ordering::SeqCst), 0, "{threads} threads");
        assert_eq!(block_on(first).unwrap(), bytes[100..200]);
        assert_eq!(block_on(second).unwrap(), bytes[200..300]);
    }
}

#[test]
fn many_threads_and_devices_get_their_own_bytes() {
    let disk = Disk::new(3);
    let devices: Vec<_> = (0..3u8)
        .map(|d| {
            let device = disk.device(&format!("d{d}"));
            let bytes: Vec<u8> = pattern(20_000).iter().map(|b| b ^ (d * 85)).collect();
            device.write_at(0, &bytes).unwrap();
            (device, bytes)
        })
        .collect();
    disk.set_faults(Faults {
        read_errors: 20,
        short_reads: 20,
        ..Faults::default()
    });
    let queue = Queue::new(4).unwrap();
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let (queue, devices, failed) = (&queue, &devices, &failed);
            scope.spawn(move || {
                for round in 0..100usize {
                    let (device, bytes) = &devices[(thread + round) % 3];
                    let wants: Vec<_> = (0..8)
                        .map(|i| ((thread * 997 + round * 31 + i * 64) % 19_000, 64 + i))
                        .collect();
                    let reads = wants
                        .iter()
                        .map(|&(offset, len)| queue.read(device, offset as u64, len));
                    for (read, (offset, len)) in block_on(join_all(reads)).into_iter().zip(wants) {
                        match read {
                            Ok(read) => assert_eq!(read, bytes[offset..offset + len]),
                            Err(Error::Injected { .. } | Error::ShortRead { .. }) => {
                                failed.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
            });
        }
    });
    let statistics = queue.statistics();
    assert_eq!(statistics.requests, 6400);
    assert!(failed.into_inner() > 0, "the faults were seen");
}

#[test]
fn a_device_that_panics_costs_only_its_own_reads() {
    #[derive(Debug)]
    struct Panics;
    impl Device for Panics {
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<()> {
            panic!("a bug in a device");
        }
        fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
            Ok(())
        }
        fn sync(&self) -> Result<()> {
            Ok(())
        }
        fn len(&self) -> Result<u64> {
            Ok(0)
        }
        fn set_len(&self, _: u64) -> Result<()> {
            Ok(())
        }
        fn path(&self) -> &Path {
            Path::new("panics")
        }
    }
    let queue = Queue::new(1).unwrap();
    let bad: Arc<dyn Device> = Arc::new(Panics);
    assert!(block_on(queue.read(&bad, 0, 1)).is_err());
    let good = Disk::new(0).device("good");
    good.write_at(0, b"x").unwrap();
    assert_eq!(block_on(queue.read(&good, 0, 1)).unwrap(), b"x");
}
