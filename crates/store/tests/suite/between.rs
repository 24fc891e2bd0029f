//! Commits between the writes of a checkpoint, and the power that goes meanwhile.

use std::cell::Cell;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use io::Device;
use io::fault::Disk;
use store::{Options, Store};

use crate::crash::{History, Images, recovers, seed_of};
use crate::model::{Random, State, change, small};

/// A data file before each of whose writes something else may happen.
struct Watched {
    device: Arc<dyn Device>,
    before: Mutex<Option<Box<dyn Fn() + Send>>>,
}

thread_local! {
    /// Whether what happens before a write is happening.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

impl Watched {
    fn look(&self) {
        if WITHIN.replace(true) {
            return;
        }
        if let Some(before) = self.before.lock().unwrap().as_ref() {
            before();
        }
        WITHIN.set(false);
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.device.fmt(f)
    }
}

impl Device for Watched {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.device.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.look();
        self.device.write_at(offset, from)
    }

    fn sync(&self) -> io::Result<()> {
        self.device.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.device.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.device.set_len(bytes)
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.device.allocate(offset, bytes)
    }

    fn path(&self) -> &Path {
        self.device.path()
    }
}

/// A store that is worked on, and what it should hold.
struct Work {
    history: History,
    random: Random,
    /// Commits that came between the writes of a checkpoint.
    between: usize,
}

impl Work {
    /// Commits, unless this thread is just doing so.
    fn commit(&mut self, store: &Arc<Store>) -> store::Result<bool> {
        let Some(mut transaction) = store.try_begin()? else {
            return Ok(false);
        };
        let base = transaction.base().version() as usize;
        let mut state = self.history.states[base].clone();
        change(&mut self.random, &mut transaction, &mut state, 2000)?;
        self.history.states.truncate(base + 1);
        self.history.states.push(state);
        let version = transaction.commit()? as usize;
        self.history.acknowledged = Some(version);
        self.history.states.truncate(version + 1);
        Ok(true)
    }
}

/// Commits and checkpoints with commits between their writes, until the disk stops; returns the
/// history, the commits that came between, and the most bytes that the log had after a checkpoint.
fn run(disk: &Disk, options: &Options, seed: u64) -> (History, usize, u64) {
    let work = Arc::new(Mutex::new(Work {
        history: History {
            states: vec![State::default()],
            acknowledged: None,
        },
        random: Random::new(seed),
        between: 0,
    }));
    let data = Arc::new(Watched {
        device: disk.device("data"),
        before: Mutex::default(),
    });
    let mut longest = 0;
    if let Ok(store) = Store::create_on(data.clone(), disk.device("log"), options) {
        work.lock().unwrap().history.acknowledged = Some(0);
        for _ in 0..6 {
            let mut work_now = work.lock().unwrap();
            if (0..3).any(|_| work_now.commit(&store).is_err()) {
                break;
            }
            drop(work_now);
            let (shared, of) = (work.clone(), store.clone());
            *data.before.lock().unwrap() = Some(Box::new(move || {
                let mut work = shared.lock().unwrap();
                // An error says that the disk has stopped, which the checkpoint will notice, too.
                if let Ok(true) = work.commit(&of) {
                    work.between += 1;
                }
            }));
            let done = store.checkpoint();
            *data.before.lock().unwrap() = None;
            if done.is_err() {
                break;
            }
            longest = longest.max(store.statistics().log_bytes);
        }
    }
    *data.before.lock().unwrap() = None;
    let work = Arc::into_inner(work).expect("nobody else has it");
    let work = work.into_inner().unwrap();
    (work.history, work.between, longest)
}

/// The power goes at every operation of such a run.
fn cut_short_anywhere(options: &Options, seed: u64, commits: usize) -> u64 {
    let whole = Disk::new(seed);
    let (history, between, longest) = run(&whole, options, seed);
    assert!(between >= commits, "{between} commits between writes");
    recovers(&whole.crash(0), &history, "nothing failed");
    let mut seen = Images::default();
    for operation in 0..whole.operations() {
        let disk = Disk::new(seed);
        disk.stop_after(operation);
        let (history, _, _) = run(&disk, options, seed);
        for image in 0..5 {
            let left = disk.crash(seed_of(operation, image));
            if seen.is_new(&left) {
                let of = format!("seed {seed}, operation {operation}, image {image}");
                recovers(&left, &history, &of);
            }
        }
    }
    assert!(seen.len() > 200, "{} distinct images", seen.len());
    longest
}

#[test]
fn commits_between_the_writes_of_a_checkpoint_survive() {
    let longest = cut_short_anywhere(&small(), 1, 12);
    assert!(longest > 4000, "the log goes on: {longest} bytes at most");
}

#[test]
fn a_log_that_has_become_long_is_emptied() {
    let options = Options {
        checkpoint_bytes: 1000,
        ..small()
    };
    let longest = cut_short_anywhere(&options, 1, 4);
    // With the same seed it was longer above.
    assert!(longest <= 4 * 1000, "{longest} bytes");
}
