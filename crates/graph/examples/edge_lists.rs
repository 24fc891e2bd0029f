//! How fast edge lists are loaded, beside a bare loop over the bytes of the file.
//!
//! `cargo run --release -p graph --example edge_lists -- [MILLION_EDGES [MEMORY_MIB [FILE]]]`
//!
//! Without a file it makes one: a skewed random graph (R-MAT) of 2^20 vertices. Rounds of the bare loop, of a load
//! from text and of one from gzip alternate; the figures are medians. `read` is parsing, collecting the ids and
//! keeping the edges; the ratio is to the bare loop, which only counts line feeds, byte by byte.

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use graph::{Job, LoadOptions, Phase, Spill};
use store::{Options, Store};

const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (edges, memory) = (number(4)? * 1_000_000, number(256)? << 20);
    let directory = tempfile::tempdir()?;
    let plain = match arguments.next() {
        Some(file) => file.into(),
        None => directory.path().join("edges.txt"),
    };
    if !plain.exists() {
        write_random(&plain, edges)?;
    }
    let packed = directory.path().join("edges.gz");
    let bytes = std::fs::read(&plain)?;
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&packed)?, flate2::Compression::fast());
    encoder.write_all(&bytes)?;
    encoder.finish()?;

    let (mut bare, mut text, mut gzip) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        black_box(lines(black_box(&bytes)));
        bare.push(begun.elapsed());
        text.push(times(&plain, memory, directory.path())?);
        gzip.push(times(&packed, memory, directory.path())?);
    }
    let bare = median(bare);
    let rate = |time: Duration| bytes.len() as f64 / 1e6 / time.as_secs_f64();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:.0} MB of text; bare loop {:.0} MB/s",
        bytes.len() as f64 / 1e6,
        rate(bare)
    )?;
    for (name, rounds) in [("text", text), ("gzip", gzip)] {
        let phase = |at: usize| median(rounds.iter().map(|times| times[at]).collect());
        let read = phase(0);
        writeln!(
            out,
            "{name}: read {:.0} MB/s, {:.2} of the bare loop; number and sort {:.2} s, write {:.2} s; \
             in all {:.2} s, {:.0} MB/s",
            rate(read),
            bare.as_secs_f64() / read.as_secs_f64(),
            phase(1).as_secs_f64(),
            phase(2).as_secs_f64(),
            phase(3).as_secs_f64(),
            rate(phase(3)),
        )?;
    }
    Ok(())
}

/// Counts line feeds, one byte after the other.
fn lines(bytes: &[u8]) -> u64 {
    let mut lines = 0;
    for &byte in bytes {
        // Without the box the compiler looks at 32 bytes at once.
        lines += u64::from(black_box(byte == b'\n'));
    }
    lines
}

/// Loads a file into a new store: the times of reading, of sorting, of writing, and of all.
fn times(file: &Path, memory: u64, directory: &Path) -> Result<[Duration; 4], Box<dyn Error>> {
    let at = directory.join("store");
    let store = Store::create(&at, &Options::default())?;
    let begun = Instant::now();
    let (mut sort, mut write) = (None, None);
    let job = Job::new(memory::Budget::new(4 << 30)).telling(|progress| {
        let now = begun.elapsed();
        match progress.phase {
            Phase::Number => _ = sort.get_or_insert(now),
            Phase::Write => _ = write.get_or_insert(now),
            _ => {}
        }
    });
    let options = LoadOptions {
        memory,
        spill: Spill::directory(directory),
        ..LoadOptions::default()
    };
    futures::executor::block_on(graph::load(&store, "g", file, &options, job))?;
    let all = begun.elapsed();
    drop::<Arc<Store>>(store);
    for file in std::fs::read_dir(directory)? {
        let file = file?.path();
        if file
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("store"))
        {
            std::fs::remove_file(file)?;
        }
    }
    let (sort, write) = (sort.unwrap_or_default(), write.unwrap_or_default());
    Ok([sort, write - sort, all - write, all])
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Edges between vertices some of which have far more than others.
fn write_random(path: &Path, edges: u64) -> std::io::Result<()> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "# FromNodeId\tToNodeId")?;
    for _ in 0..edges {
        let (mut from, mut to) = (0_u32, 0_u32);
        for _ in 0..20 {
            let part = random.u32(..100);
            from = 2 * from + u32::from(part >= 76);
            to = 2 * to + u32::from((57..76).contains(&part) || part >= 95);
        }
        writeln!(file, "{from}\t{to}")?;
    }
    file.flush()
}
