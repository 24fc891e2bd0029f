//! What reading files while they are processed is worth: `cargo run --release -p atoll --example files -- DIRECTORY
//! [parquet|csv] [RUNS] [THREADS]`, with `lineitem` and `part` of TPC-H in the directory.
//!
//! TPC-H Q6, Q1 and Q14 over the files, whose pages are thrown out of the page cache before each run (this needs no
//! privilege, but is only as good as the system's word for it: bytes read from the device are shown). In turn: all rows
//! decoded into memory by all workers, then processed (fused); and read while they are processed (stream).
//!
//! What the second can gain at best: reading the same bytes takes the device some time even if nobody works (measured,
//! in the same turn, by threads that only read), and the work takes the processors some time even if nobody waits
//! (measured: the processor time of the very run, over the threads). No run is shorter than the longer of the two, after
//! the planning, which one thread does before: it finds the types of CSV, for one.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use atoll::{Database, Executor, Options, Session, tpch};
use io::Device;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes that a thread that only reads asks for at once.
const CHUNK: u64 = 4 << 20;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `text` with the files of the directory in the place of its tables.
fn over_files(text: &str, directory: &Path, extension: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = rest
            .find(|c| !is_word(c))
            .unwrap_or(rest.len())
            .max(c.len_utf8());
        let (word, after) = rest.split_at(length);
        match word {
            "lineitem" | "part" => {
                let file = directory.join(format!("{word}.{extension}"));
                out += &format!("'{}' {word}", file.display());
            }
            other => out += other,
        }
        rest = after;
    }
    out
}

/// Throws the files out of the page cache.
fn cool(files: &[PathBuf]) -> Result<()> {
    for path in files {
        io::File::open(path, io::Access::Read)?.forget()?;
    }
    Ok(())
}

/// Bytes that this process had read from devices, and the seconds of processor time that it took.
fn spent() -> Result<(u64, f64)> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let bytes = io
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "));
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after) = stat.rsplit_once(')').ok_or("no stat")?;
    // User and system time stand 12th and 13th after the name.
    let ticks = after.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks
        .map(str::parse::<u64>)
        .sum::<std::result::Result<_, _>>()?;
    Ok((bytes.ok_or("no read_bytes")?.parse()?, ticks as f64 / 100.0))
}

/// Bytes per second of the device when threads only read the files.
fn bandwidth(files: &[PathBuf], threads: usize) -> Result<f64> {
    cool(files)?;
    let (before, begun) = (spent()?.0, Instant::now());
    for path in files {
        let file = File::open(path)?;
        let (size, next) = (file.metadata()?.len(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut buffer = vec![0; CHUNK as usize];
                    loop {
                        let at = next.fetch_add(CHUNK, Ordering::Relaxed);
                        if at >= size || file.read_at(&mut buffer, at).is_err() {
                            return;
                        }
                    }
                });
            }
        });
    }
    let bytes = spent()?.0 - before;
    Ok(bytes as f64 / begun.elapsed().as_secs_f64())
}

/// What a run took.
struct Run {
    seconds: f64,
    bytes: u64,
    processors: f64,
    /// Seconds of planning, which are in all of these.
    planning: f64,
}

fn cold(session: &Session, text: &str, files: &[PathBuf]) -> Result<Run> {
    cool(files)?;
    let (before, begun) = (spent()?, Instant::now());
    let answers = session.sql(text)?;
    let seconds = begun.elapsed().as_secs_f64();
    if answers[0].statistics.ran_on != "algebra" {
        return Err("another engine ran it".into());
    }
    let after = spent()?;
    Ok(Run {
        seconds,
        bytes: after.0 - before.0,
        processors: after.1 - before.1,
        planning: answers[0].statistics.planning_seconds,
    })
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("which directory?")?);
    let extension = arguments.next().unwrap_or_else(|| "parquet".into());
    let runs: usize = arguments.next().map_or(Ok(5), |n| n.parse())?;
    let threads: usize = arguments.next().map_or(Ok(2), |n| n.parse())?;
    let scratch = tempfile::tempdir()?;
    let open = |executor: Executor| -> Result<Database> {
        let mut options = Options::default();
        options.threads = Some(threads);
        options.executor = executor;
        options.execution.preload = executor == Executor::Fused;
        Ok(Database::create(
            scratch.path().join(format!("{executor:?}.atoll")),
            &options,
        )?)
    };
    let (fused, stream) = (open(Executor::Fused)?, open(Executor::Stream)?);
    let (fused, stream) = (fused.session(), stream.session());
    let mut out = std::io::stdout().lock();
    for number in [6, 1, 14] {
        let tables: &[&str] = if number == 14 {
            &["lineitem", "part"]
        } else {
            &["lineitem"]
        };
        let files: Vec<PathBuf> = tables
            .iter()
            .map(|table| directory.join(format!("{table}.{extension}")))
            .collect();
        let text = over_files(tpch::QUERIES[number - 1], &directory, &extension);
        let mut all: [Vec<f64>; 6] = Default::default();
        for run in 0..=runs {
            let rate = bandwidth(&files, threads)?;
            let first = cold(&fused, &text, &files)?;
            let second = cold(&stream, &text, &files)?;
            if run == 0 {
                continue;
            }
            let device = second.bytes as f64 / rate;
            let processors = (second.processors - second.planning) / threads as f64;
            let permitted = first.seconds - second.planning - device.max(processors);
            let gained = first.seconds - second.seconds;
            let values = [
                first.seconds,
                second.seconds,
                device,
                processors,
                permitted,
                gained / permitted,
            ];
            all.iter_mut()
                .zip(values)
                .for_each(|(all, value)| all.push(value));
        }
        let [first, second, device, processors, permitted, share] = all.map(median);
        writeln!(
            out,
            "Q{number} over {extension}, cold, {runs} runs: loaded then fused {first:.3} s, stream {second:.3} s; device {device:.3} s, processors {processors:.3} s; gain permitted {permitted:.3} s, share of it {share:.2}"
        )?;
    }
    Ok(())
}
