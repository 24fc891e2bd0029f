//! What opening a store takes, of time and of memory, for stores of ever more pages.
//!
//! `cargo run -p store --release --example opening -- 1000000 10000000`
//!
//! For each number of pages it makes a store of so many bare pages of 8 bytes (64 bytes of the file each), and then
//! opens it in processes of their own: to read nothing, to read one page, to read a page of every chunk of the page
//! map, and to write one page. Of each it prints the time until the store is open, that of what is done then, and
//! the most memory that the process had (`VmHWM`). A store of one page, made first, is what all others are held
//! against.

#![expect(clippy::print_stdout, reason = "an example that prints figures")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use store::{Access, Kind, Options, PageId, PoolOptions, Store};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Pages of one transaction.
const BATCH: u64 = 1 << 16;
/// Pages of one chunk of the page map.
const CHUNK: u32 = 1024;
/// Repetitions of each; the median counts.
const REPEATS: usize = 5;

fn options(access: Access) -> Options {
    Options {
        page_size: 4096,
        access,
        pool: PoolOptions {
            bytes: 4 << 20,
            io_threads: 1,
            ..PoolOptions::default()
        },
        ..Options::default()
    }
}

/// Makes a store of pages 0 to `pages`, without an end.
fn make(path: &Path, pages: u64) -> Outcome<()> {
    let store = Store::create(path, &options(Access::Write))?;
    for first in (0..pages).step_by(BATCH as usize) {
        let count = BATCH.min(pages - first);
        let bytes: Vec<_> = (first..first + count).map(u64::to_le_bytes).collect();
        let slices: Vec<&[u8]> = bytes.iter().map(|page| &page[..]).collect();
        let transaction = store.begin()?;
        transaction.write_pages(&slices, 0, Kind::Blob)?;
        transaction.commit()?;
    }
    store.close()?;
    Ok(())
}

/// What a process does with a store.
const DEEDS: [&str; 4] = ["nothing", "one page", "every chunk", "write one page"];

/// Does one of `DEEDS`, and prints microseconds of opening, of the deed, and KiB of memory.
fn act(path: &Path, pages: u32, deed: &str) -> Outcome<()> {
    let access = match deed {
        "write one page" => Access::Write,
        _ => Access::Read,
    };
    let begun = Instant::now();
    let store = Store::open(path, &options(access))?;
    let opened = begun.elapsed();
    let begun = Instant::now();
    let read = |page: PageId| -> Outcome<()> {
        let pin = block_on(store.pool().pin(page))?;
        assert_eq!(*pin, u64::from(page).to_le_bytes(), "page {page}");
        Ok(())
    };
    match deed {
        "one page" => read(pages / 2)?,
        "every chunk" => (0..pages).step_by(CHUNK as usize).try_for_each(read)?,
        "write one page" => {
            let transaction = store.begin()?;
            transaction.write_page(b"one more", 0, Kind::Blob)?;
            transaction.commit()?;
            store.clone().close()?;
        }
        _ => {}
    }
    let done = begun.elapsed();
    println!("{} {} {}", opened.as_micros(), done.as_micros(), peak()?);
    Ok(())
}

/// The most memory that this process had, in KiB.
fn peak() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok(number.ok_or("this system does not report VmHWM")?)
}

/// Has a process of its own do a deed; returns the times of opening and of the deed, and KiB.
fn measure(path: &Path, pages: u64, deed: &str) -> Outcome<(Duration, Duration, u64)> {
    let mut runs = Vec::new();
    for _ in 0..REPEATS {
        let program = std::env::current_exe()?;
        let output = Command::new(program)
            .arg("--act")
            .args([path.as_os_str(), deed.as_ref()])
            .arg(pages.to_string())
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let numbers: Vec<u64> = text
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let [opened, done, memory] = numbers[..] else {
            return Err(format!("three numbers expected, not {text}").into());
        };
        runs.push((opened, done, memory));
    }
    let median = |of: fn(&(u64, u64, u64)) -> u64| {
        let mut all: Vec<u64> = runs.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let time = |of| Duration::from_micros(median(of));
    Ok((time(|run| run.0), time(|run| run.1), median(|run| run.2)))
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path, deed, pages] = &arguments[..]
        && flag == "--act"
    {
        return act(Path::new(path), pages.parse()?, deed);
    }
    let mut counts = vec![1];
    for argument in &arguments {
        counts.push(argument.parse::<u64>()?);
    }
    let directory = tempfile::tempdir()?;
    println!("     pages  then             to open    then   peak   more than for one page");
    let mut least = Vec::new();
    for pages in counts {
        let path = directory.path().join(format!("{pages}.atoll"));
        make(&path, pages)?;
        for (at, deed) in DEEDS.iter().enumerate() {
            let (opened, done, memory) = measure(&path, pages, deed)?;
            if least.len() == at {
                least.push(memory);
            }
            let more = memory.saturating_sub(least[at]);
            println!(
                "{pages:>10}  {deed:<14} {:>6.1} ms {:>6.1} ms {:>6.1} MiB, {:>5.1} bytes a page",
                opened.as_secs_f64() * 1e3,
                done.as_secs_f64() * 1e3,
                memory as f64 / 1024.0,
                more as f64 * 1024.0 / pages as f64,
            );
        }
        std::fs::remove_file(&path)?;
        std::fs::remove_file(path.with_extension("atoll.log"))?;
    }
    Ok(())
}
