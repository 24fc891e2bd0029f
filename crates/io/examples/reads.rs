//! Reads of a file, backend by backend, against bare `pread` loops at the same depth.
//!
//!     cargo run -p io --release --example reads -- --gib 1
//!     cargo run -p io --release --example reads -- FILE
//!
//! Rounds are interleaved, and a figure is the median of its rounds; compare figures of one run only.
//! `bare` has a thread for each read under way, which is what the device gives at that depth at best
//! without a ring. Before each round the file is dropped from the page cache.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures::StreamExt;
use futures::executor::block_on;
use futures::stream;
use io::{Access, Aligned, Backend, Device, Direct, File, Queue, Settings};

type Failure = Box<dyn std::error::Error>;

/// Bytes of a page.
const PAGE: usize = 64 << 10;
/// Pages of a random round.
const RANDOM: usize = 2048;
/// Pages of a sequential round.
const SEQUENTIAL: usize = 4096;
/// Rounds of each kind.
const ROUNDS: usize = 5;

/// How pages are read.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Bare,
    Queue(Backend),
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Bare => "bare",
            Way::Queue(Backend::Threads) => "threads",
            Way::Queue(_) => "uring",
        }
    }
}

/// One thing to be measured.
struct Trial {
    what: String,
    way: Way,
    depth: usize,
    window: usize,
    pages: Arc<Vec<u64>>,
    direct: bool,
    rates: Vec<f64>,
    reads: u64,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (path, _made) = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--gib"), Some(gib)) => {
            let file = make(gib.parse()?)?;
            (file.path().to_owned(), Some(file))
        }
        (Some(file), None) => (PathBuf::from(file), None),
        _ => return Err("say FILE, or --gib N to have one made".into()),
    };
    let pages = fs::metadata(&path)?.len() / PAGE as u64;
    if pages < SEQUENTIAL as u64 {
        return Err("the file must have 256 MiB or more".into());
    }
    let mut trials = plan(pages);
    for round in 0..ROUNDS {
        for trial in &mut trials {
            let (rate, reads) = run(&path, trial)?;
            trial.rates.push(rate);
            trial.reads = reads;
        }
        writeln!(std::io::stderr(), "round {} of {ROUNDS}", round + 1)?;
    }
    print(&mut trials)
}

/// A file of random bytes beside the sources, which lie on a disk.
fn make(gib: u64) -> Result<tempfile::NamedTempFile, Failure> {
    let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR"))?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut piece = vec![0; 1 << 20];
    for _ in 0..gib << 10 {
        random.fill(&mut piece);
        file.write_all(&piece)?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

fn plan(pages: u64) -> Vec<Trial> {
    let mut random = fastrand::Rng::with_seed(7);
    let scattered: Arc<Vec<u64>> = Arc::new((0..RANDOM).map(|_| random.u64(..pages)).collect());
    let ordered: Arc<Vec<u64>> = Arc::new((0..SEQUENTIAL as u64).collect());
    // Eight scans of a part each, which take turns.
    let part = SEQUENTIAL as u64 / 8;
    let turns = (0..SEQUENTIAL as u64).map(|i| i % 8 * part + i / 8);
    let turns = Arc::new(turns.collect());
    let ways = [
        Way::Bare,
        Way::Queue(Backend::Threads),
        Way::Queue(Backend::Uring),
    ];
    let mut trials = Vec::new();
    for direct in [false, true] {
        let mut add = |what: &str, depth, window, pages: &Arc<Vec<u64>>, way| {
            trials.push(Trial {
                what: format!("{what}{}", if direct { ", direct" } else { "" }),
                way,
                depth,
                window,
                pages: pages.clone(),
                direct,
                rates: Vec::new(),
                reads: 0,
            });
        };
        for way in ways {
            for depth in [1, 4, 16, 64] {
                add("random", depth, 256, &scattered, way);
            }
            add("in order", 64, 256, &ordered, way);
            add("8 readers in turn", 64, 256, &turns, way);
            if way != Way::Bare {
                add("8 readers, not joined", 64, 1, &turns, way);
            }
        }
    }
    trials
}

/// The rate of one round in MiB/s, and how many reads there were.
fn run(path: &Path, trial: &Trial) -> Result<(f64, u64), Failure> {
    let wish = if trial.direct {
        Direct::IfPossible
    } else {
        Direct::Never
    };
    let file = File::open(path, Access::Read)?.direct(wish)?;
    file.forget()?;
    let (seconds, reads) = match trial.way {
        Way::Bare => bare(path, &file, trial)?,
        Way::Queue(backend) => queued(Arc::new(file), backend, trial)?,
    };
    let bytes = trial.pages.len() * PAGE;
    Ok((bytes as f64 / seconds / f64::from(1 << 20), reads))
}

/// A thread for each read under way.
fn bare(path: &Path, file: &File, trial: &Trial) -> Result<(f64, u64), Failure> {
    let opened = match file.descriptor() {
        Some(descriptor) if trial.direct => descriptor.fd.try_clone_to_owned()?.into(),
        _ => fs::File::open(path)?,
    };
    let next = AtomicU64::new(0);
    let since = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..trial.depth)
            .map(|_| {
                scope.spawn(|| {
                    let mut page = Aligned::new(PAGE, 4096);
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed) as usize;
                        let Some(at) = trial.pages.get(number) else {
                            return std::io::Result::Ok(());
                        };
                        opened.read_exact_at(page.as_mut_slice(), at * PAGE as u64)?;
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })?;
    Ok((since.elapsed().as_secs_f64(), trial.pages.len() as u64))
}

/// As many tasks as reads may be under way, each of which waits for a page.
fn queued(file: Arc<File>, backend: Backend, trial: &Trial) -> Result<(f64, u64), Failure> {
    let device: Arc<dyn Device> = file;
    let queue = Queue::with(Settings {
        backend,
        threads: trial.depth.min(16),
        depth: trial.depth as u32,
        window: trial.window,
        ..Settings::default()
    })?;
    let rooms = (0..trial.depth).map(|_| Aligned::new(PAGE, 4096));
    let rooms = parking_lot::Mutex::new(rooms.collect::<Vec<_>>());
    let since = Instant::now();
    let read = |&page: &u64| {
        let room = rooms
            .lock()
            .pop()
            .unwrap_or_else(|| Aligned::new(PAGE, 4096));
        queue.fill(&device, page * PAGE as u64, PAGE, room)
    };
    let mut pages = trial.pages.iter();
    block_on(async {
        let mut under_way = stream::FuturesUnordered::new();
        queue.together(|| under_way.extend(pages.by_ref().take(trial.depth).map(read)));
        while let Some(room) = under_way.next().await {
            rooms.lock().push(room?);
            let mut free = 1;
            while let Some(Some(room)) = futures::FutureExt::now_or_never(under_way.next()) {
                rooms.lock().push(room?);
                free += 1;
            }
            queue.together(|| under_way.extend(pages.by_ref().take(free).map(read)));
        }
        Ok::<(), io::Error>(())
    })?;
    Ok((since.elapsed().as_secs_f64(), queue.statistics().reads))
}

fn print(trials: &mut [Trial]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "| what | depth | by | MiB/s | of bare | reads |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for trial in trials.iter_mut() {
        trial.rates.sort_by(f64::total_cmp);
    }
    let median = |trial: &Trial| trial.rates[trial.rates.len() / 2];
    for trial in trials.iter() {
        let like = trial.what.replace("readers, not joined", "readers in turn");
        let bare = trials
            .iter()
            .find(|t| t.way == Way::Bare && t.what == like && t.depth == trial.depth);
        let share = bare.map_or(1.0, |bare| median(trial) / median(bare));
        writeln!(
            out,
            "| {} | {} | {} | {:.0} | {:.2} | {} |",
            trial.what,
            trial.depth,
            trial.way.name(),
            median(trial),
            share,
            trial.reads
        )?;
    }
    Ok(())
}
