//! Commits of one page of 4 KiB, each durable before the next of its writer begins: this store, SQLite
//! (`journal_mode=WAL`, `synchronous=FULL`), redb (`Durability::Immediate`) and LMDB (as it is by default, which syncs), with 1
//! and 16 writers.
//!
//! They take turns in each round, since a disk drifts; the figures are medians over the rounds.
//! Syncs are counted where all of them make them: the calls to the C library, which this program
//! takes the place of.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

mod peers;

use peers::{Atoll, Lmdb, Peer, Redb, Sqlite};

const ROUNDS: usize = 7;
/// Commits of one round, all writers together.
const COMMITS: usize = 192;
pub const PAGE: usize = 4096;

static SYNCS: AtomicU64 = AtomicU64::new(0);

/// Counts, and does what the C library does.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: libc::c_int) -> libc::c_int {
    SYNCS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the call takes a file descriptor by number and touches no memory.
    unsafe { libc::syscall(libc::SYS_fdatasync, file) as libc::c_int }
}

/// Counts, and does what the C library does.
#[unsafe(no_mangle)]
extern "C" fn fsync(file: libc::c_int) -> libc::c_int {
    SYNCS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_fsync, file) as libc::c_int }
}

/// What one round of one peer took.
#[derive(Clone, Copy, Default)]
struct Figures {
    /// Commits in a second.
    rate: f64,
    /// Of one commit, in milliseconds.
    median: f64,
    worst: f64,
    /// For one commit.
    syncs: f64,
    bytes: f64,
}

fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

fn round(peer: &dyn Peer, writers: usize, seed: u64) -> Figures {
    let (syncs, bytes) = (SYNCS.load(Ordering::Relaxed), written_bytes());
    let started = Instant::now();
    let times: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed * 100 + writer as u64);
                    let mut writes = peer.writer();
                    let commits = 0..COMMITS / writers;
                    let one = |_| {
                        let page: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
                            .take(PAGE)
                            .collect();
                        let started = Instant::now();
                        writes(&page);
                        started.elapsed().as_secs_f64() * 1000.0
                    };
                    commits.map(one).collect::<Vec<_>>()
                })
            })
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("a writer"));
        joined.flatten().collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let commits = (COMMITS / writers * writers) as f64;
    let mut sorted = times;
    sorted.sort_by(f64::total_cmp);
    Figures {
        rate: commits / seconds,
        median: sorted[sorted.len() / 2],
        worst: sorted[sorted.len() * 99 / 100],
        syncs: (SYNCS.load(Ordering::Relaxed) - syncs) as f64 / commits,
        bytes: (written_bytes() - bytes) as f64 / commits,
    }
}

fn median(rounds: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_string());
    let directory = tempfile::tempdir_in(directory).expect("a directory for the databases");
    let path = |name: &str| -> Box<Path> { directory.path().join(name).into() };
    let peers: [(&str, Arc<dyn Peer>); 4] = [
        ("atoll", Arc::new(Atoll::create(&path("atoll")))),
        ("sqlite", Arc::new(Sqlite::create(&path("sqlite")))),
        ("redb", Arc::new(Redb::create(&path("redb")))),
        ("lmdb", Arc::new(Lmdb::create(&path("lmdb")))),
    ];
    println!(
        "commits of one page of {PAGE} bytes, medians of {ROUNDS} interleaved rounds of {COMMITS}"
    );
    println!(
        "writers  store   commits/s   of atoll  median ms   p99 ms  syncs/commit  bytes/commit"
    );
    for writers in [1, 16] {
        // What files grow by at first is not what a commit costs later.
        for (_, peer) in &peers {
            round(&**peer, writers, 0);
        }
        let mut figures = vec![Vec::new(); peers.len()];
        for turn in 0..ROUNDS {
            for place in 0..peers.len() {
                let which = (turn + place) % peers.len();
                figures[which].push(round(&*peers[which].1, writers, turn as u64 + 1));
            }
        }
        for ((name, _), rounds) in peers.iter().zip(&figures) {
            let pairs = rounds.iter().zip(&figures[0]);
            let ratios: Vec<_> = pairs
                .map(|(peer, atoll)| Figures {
                    rate: peer.rate / atoll.rate,
                    ..Figures::default()
                })
                .collect();
            println!(
                "{writers:>7}  {name:<7} {:>9.0}  {:>9.2}  {:>9.3}  {:>7.3}  {:>12.2}  {:>12.0}",
                median(rounds, |figures| figures.rate),
                median(&ratios, |figures| figures.rate),
                median(rounds, |figures| figures.median),
                median(rounds, |figures| figures.worst),
                median(rounds, |figures| figures.syncs),
                median(rounds, |figures| figures.bytes),
            );
        }
    }
}
