//! Pins per second of resident pages, against the least an atomic counter can do.
//!
//! `cargo run --release -p buffer --example pins [threads]`

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use buffer::{Config, LoadError, PageId, Pool, Source};
use futures::future::BoxFuture;

const PAGES: u32 = 4096;
const ROUNDS: u32 = 20_000_000;

struct Numbers;

impl Source for Numbers {
    fn bucket(&self, page: PageId) -> u8 {
        (page / 64) as u8
    }

    fn load<'a>(
        &'a self,
        page: PageId,
        frame: &'a mut [u8],
    ) -> BoxFuture<'a, Result<usize, LoadError>> {
        Box::pin(async move {
            frame.fill(page as u8);
            Ok(frame.len())
        })
    }
}

/// Nanoseconds for one of `ROUNDS` steps in each of `threads` threads.
fn time(threads: u32, step: impl Fn(u32, u32) + Sync) -> f64 {
    let step = &step;
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    step(thread, round);
                }
            });
        }
    });
    begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads: u32 = match std::env::args().nth(1) {
        Some(argument) => argument.parse()?,
        None => std::thread::available_parallelism()?.get() as u32,
    };
    let config = Config {
        bytes: u64::from(PAGES) * 2 * 4096,
        page_size: 4096,
        partitions_per_node: 16,
        nodes: vec![None; 2],
        replacement: buffer::Policy::default(),
    };
    let pool = Pool::new(&config, Arc::new(Numbers), memory::Budget::new(u64::MAX))?;
    for page in 0..PAGES {
        drop(futures::executor::block_on(pool.pin(page))?);
    }
    let own: Vec<[AtomicU64; 16]> = (0..threads).map(|_| Default::default()).collect();
    let shared = AtomicU64::new(0);
    let missed = AtomicU64::new(0);
    let pin = |page: u32| match pool.try_pin(page) {
        Some(pin) => {
            black_box(pin[0]);
        }
        None => {
            missed.fetch_add(1, Ordering::Relaxed);
        }
    };
    let spread = |round: u32| (round.wrapping_mul(2_654_435_769) >> 8) % PAGES;

    let mut out = std::io::stdout().lock();
    let mut report = |what: &str, nanoseconds: f64| {
        let rate = f64::from(threads) * 1e3 / nanoseconds;
        writeln!(out, "{what:<44} {nanoseconds:7.1} ns {rate:9.1} M/s")
    };
    writeln!(std::io::stderr(), "{threads} threads, {ROUNDS} rounds each")?;
    report(
        "atomic increment, a counter for each thread",
        time(threads, |thread, _| {
            own[thread as usize][0].fetch_add(1, Ordering::Relaxed);
        }),
    )?;
    report(
        "atomic increment, one counter for all",
        time(threads, |_, _| {
            shared.fetch_add(1, Ordering::Relaxed);
        }),
    )?;
    report(
        "pin and unpin, pages in order",
        time(threads, |thread, round| pin((round + thread * 64) % PAGES)),
    )?;
    report(
        "pin and unpin, pages at random",
        time(threads, |thread, round| pin(spread(round + thread))),
    )?;
    report(
        "pin and unpin, a page for each thread",
        time(threads, |thread, _| pin(thread * 64)),
    )?;
    report(
        "pin and unpin, one page for all",
        time(threads, |_, _| pin(0)),
    )?;
    assert_eq!(missed.into_inner(), 0);
    Ok(())
}
