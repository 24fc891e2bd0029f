//! The access counter against traffic that is known in advance.
//!
//! Tolerance: 0.5 % of the closed form, and 0.5 % of the whole where it says 0. What is above it
//! comes from other programs in the guest, the probe's own stack and the loader's pages.

use std::ffi::OsString;
use std::path::PathBuf;

use emulator::Launch;
use emulator::count::{Count, Counting, LINE_BYTES, Region};

use crate::{run, shape};

const TOLERANCE: f64 = 0.005;

/// MiB that a stream passes over.
const MIB: u64 = 32;
const LINES: u64 = (MIB << 20) / LINE_BYTES;

/// Capacities of the modelled caches: first, second, last level.
const CACHES: [u64; 3] = [2 << 10, 8 << 10, 512 << 10];

/// The example that makes the traffic: `cargo test` builds it beside the tests, in target/PROFILE/examples.
fn traffic() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.ancestors().nth(2).unwrap().join("examples/traffic");
    assert!(path.is_file(), "cargo build -p emulator --examples");
    path
}

fn count(spec: &str, words: &[&str]) -> Region {
    counted(spec, words).total
}

fn counted(spec: &str, words: &[&str]) -> Count {
    let shape = shape(spec, 256).with_cache_bytes(CACHES);
    let mut command = vec![traffic().into_os_string()];
    command.extend(words.iter().map(OsString::from));
    let mut launch = Launch::new(shape, command);
    launch.counting = Some(Counting::Marks);
    let run = run(&launch);
    assert_eq!(run.outcome.exit, 0, "{}{}", run.out, run.err);
    let count = run.outcome.count.unwrap();
    assert!(!count.regions.is_empty(), "the probe marks regions");
    count
}

/// Checks a matrix against the closed form.
#[track_caller]
fn check(name: &str, counted: &[Vec<u64>], expected: &[Vec<u64>]) {
    let all: u64 = expected.iter().flatten().sum();
    eprintln!("{name}: {counted:?}, expected {expected:?}");
    for (core, row) in expected.iter().enumerate() {
        for (page, lines) in row.iter().enumerate() {
            let counted = counted[core][page];
            let base = if *lines > 0 { *lines } else { all };
            let error = counted.abs_diff(*lines) as f64 / base as f64;
            assert!(
                error <= TOLERANCE,
                "{name}: cores of {core}, pages of {page}: {counted} lines, expected {lines}"
            );
        }
    }
}

fn matrix(nodes: usize, lines: impl Fn(usize, usize) -> u64) -> Vec<Vec<u64>> {
    (0..nodes)
        .map(|core| (0..nodes).map(|page| lines(core, page)).collect())
        .collect()
}

#[test]
fn a_stream_over_memory_bound_here() {
    let count = count("2x2", &["stream", "1", "own", &MIB.to_string(), "read"]);
    let expected = matrix(
        2,
        |core, page| if (core, page) == (1, 1) { LINES } else { 0 },
    );
    check("bound here", &count.dram, &expected);
    assert!(count.remote_share().unwrap() <= TOLERANCE);
    let ratio = count.llc_miss_ratio().unwrap();
    assert!(
        (1.0 - ratio).abs() <= TOLERANCE,
        "every line is missed, not {ratio}"
    );
    assert!(count.instructions > LINES, "{count:?}");
}

#[test]
fn a_stream_over_memory_bound_there() {
    let count = count("2x2", &["stream", "0", "1", &MIB.to_string(), "write"]);
    let expected = matrix(
        2,
        |core, page| if (core, page) == (0, 1) { LINES } else { 0 },
    );
    check("bound there, read for writing", &count.dram, &expected);
    check("bound there, written back", &count.write_backs, &expected);
    assert!(count.remote_share().unwrap() >= 1.0 - TOLERANCE);
}

#[test]
fn a_stream_over_interleaved_memory() {
    let count = count(
        "4x1",
        &["stream", "2", "interleaved", &MIB.to_string(), "read"],
    );
    let expected = matrix(4, |core, _| if core == 2 { LINES / 4 } else { 0 });
    check("interleaved", &count.dram, &expected);
}

/// A quarter of the memory is a window, from the middle of a page on: its lines are counted apart, by node, in the region that ends
/// next and in no other. Its ends are exact: what is beside it does not count.
#[test]
fn lines_of_a_window_are_counted_apart() {
    let quarter = (MIB << 20) / 4;
    let [first, last] = [quarter, 2 * quarter].map(|at| (at + 2048).to_string());
    let words = ["window", "1", "0,1", &MIB.to_string(), &first, &last];
    let count = counted("2x1", &words);
    let all = matrix(2, |core, _| if core == 1 { LINES / 2 } else { 0 });
    let some = matrix(2, |core, _| if core == 1 { LINES / 8 } else { 0 });
    check("all of it", &count.regions[0].dram, &all);
    assert_eq!(count.regions[0].windows, some);
    check("without a window", &count.regions[1].dram, &all);
    assert!(count.regions[1].windows.is_empty(), "{count:?}");
}

/// Where a page is must not be remembered beyond what the kernel allows a processor to.
#[test]
fn a_stream_over_memory_that_is_moved_and_mapped_anew() {
    const ROUNDS: u64 = 4;
    let mib = (MIB / 8).to_string();
    let count = count("2x1", &["moved", "0", "0", "1", &mib, &ROUNDS.to_string()]);
    let lines = LINES / 8 * ROUNDS;
    let expected = matrix(2, |core, _| if core == 0 { lines } else { 0 });
    check("moved", &count.dram, &expected);
}

#[test]
fn many_threads_each_on_the_neighbours_memory() {
    // Node 0 reads from node 1, once with each of its 4 cores; so does node 3.
    let mib = (MIB / 4).to_string();
    let count = count("4x4", &["stream", "0,0,0,0,3,3,3,3", "1", &mib, "read"]);
    let reads = |core, page| matches!((core, page), (0 | 3, 1));
    let expected = matrix(4, |core, page| if reads(core, page) { LINES } else { 0 });
    check("eight threads", &count.dram, &expected);
}

/// With uniformly random reads of a table of T lines, a cache of C < T lines that replaces the
/// least recently used holds any C of them with equal probability: (T - C) / T of the reads miss.
/// The same holds of all levels together as far as the last one holds what the others do.
#[test]
fn random_reads_of_a_table_twice_the_cache() {
    const READS: u64 = 4_000_000;
    let table = (2 * CACHES[2]).to_string();
    let count = count("2x1", &["random", "0", &table, &READS.to_string()]);
    let expected = matrix(
        2,
        |core, page| if (core, page) == (0, 0) { READS / 2 } else { 0 },
    );
    check("random", &count.dram, &expected);
}
