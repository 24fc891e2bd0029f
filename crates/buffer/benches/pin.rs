//! What a pin costs: pin and unpin of resident pages against a bare pair of atomics on as many words.
//!
//! `cargo bench -p buffer` (`-- --rounds 9 --pages 131072`)
//!
//! What is compared takes turns; medians of all rounds are shown, in nanoseconds for a pin and its unpin. Bars: 12 ns in
//! order and 27 ns at random with 131,072 pages, half the speed of the bare pair; of two threads 90 % of two bare loops.
//! Of optimistic reads the share is that of one thread alone in the same loop: what a second thread costs; the bare loop
//! loads a word twice.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use buffer::{Config, LoadError, PageId, Policy, Pool, Source};
use futures::future::BoxFuture;

/// Pins of a round.
const STEPS: usize = 1 << 22;

struct Numbers;

impl Source for Numbers {
    fn bucket(&self, _: PageId) -> u8 {
        0
    }

    fn load<'a>(
        &'a self,
        page: PageId,
        frame: &'a mut [u8],
    ) -> BoxFuture<'a, Result<usize, LoadError>> {
        Box::pin(async move {
            frame[..4].copy_from_slice(&page.to_le_bytes());
            Ok(frame.len())
        })
    }
}

/// Nanoseconds for a step, where each of `threads` threads takes `STEPS` steps, all at the same time.
fn time(threads: usize, steps: impl Fn(usize) + Sync) -> f64 {
    let steps = &steps;
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || steps(thread));
        }
    });
    begin.elapsed().as_nanos() as f64 / STEPS as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The number after `name` on the command line.
fn given(name: &str, usual: usize) -> Result<usize, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == name);
    match at.and_then(|at| arguments.get(at + 1)) {
        Some(number) => Ok(number.parse()?),
        None => Ok(usual),
    }
}

/// The pool, and as many bare words.
struct Bench {
    pool: Arc<Pool>,
    words: Vec<AtomicU64>,
    rounds: usize,
}

impl Bench {
    fn new(pages: usize, rounds: usize) -> Result<Bench, Box<dyn std::error::Error>> {
        let config = Config {
            bytes: (pages as u64 + 64) * 4096,
            page_size: 4096,
            partitions_per_node: 16,
            nodes: vec![None],
            replacement: Policy::default(),
            prefetch: buffer::Prefetching::default(),
        };
        let pool = Pool::new(&config, Arc::new(Numbers), memory::Budget::new(u64::MAX))?;
        for page in 0..pages as u32 {
            drop(futures::executor::block_on(pool.pin(page))?);
        }
        let words = (0..pages).map(|_| AtomicU64::new(0)).collect();
        Ok(Bench {
            pool,
            words,
            rounds,
        })
    }

    /// Pins in an order (of a thread and its step), and the bare pair in the same: a line.
    fn compare(
        &self,
        out: &mut impl Write,
        name: &str,
        threads: usize,
        order: impl Fn(usize, usize) -> usize + Sync,
    ) -> std::io::Result<()> {
        let (mut pins, mut bares) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            pins.push(time(threads, |thread| {
                for step in 0..STEPS {
                    if let Some(pin) = self.pool.try_pin(order(thread, step) as PageId) {
                        black_box(pin.as_ptr());
                    }
                }
            }));
            bares.push(time(threads, |thread| {
                for step in 0..STEPS {
                    let word = &self.words[order(thread, step)];
                    let seen = word.load(Ordering::Relaxed);
                    let (right, wrong) = (Ordering::Acquire, Ordering::Relaxed);
                    let _ = black_box(word.compare_exchange(seen, seen + 1, right, wrong));
                    word.fetch_sub(1, Ordering::Release);
                }
            }));
        }
        let (pin, bare) = (median(pins), median(bares));
        let share = 100.0 * bare / pin;
        writeln!(
            out,
            "{name:<24} {threads:>7} {pin:>10.1} {bare:>10.1} {share:>6.0}%"
        )
    }

    /// Optimistic reads of eight bytes, each thread of its page of `pages`, and two bare loops: as
    /// many threads that read a word and take a number from it in the same order. A line.
    fn optimistic(
        &self,
        out: &mut impl Write,
        name: &str,
        threads: usize,
        order: impl Fn(usize, usize) -> usize + Sync,
    ) -> std::io::Result<()> {
        let (mut reads, mut alone, mut bares) = (Vec::new(), Vec::new(), Vec::new());
        let read = |thread: usize| {
            for step in 0..STEPS {
                let page = order(thread, step) as PageId;
                black_box(self.pool.read_optimistic(page, |page| page.u64_at(0)));
            }
        };
        for _ in 0..self.rounds {
            reads.push(time(threads, read));
            // The same loop in one thread: what two cost each other.
            alone.push(time(1, read));
            bares.push(time(threads, |thread| {
                for step in 0..STEPS {
                    let word = &self.words[order(thread, step)];
                    black_box(word.load(Ordering::Acquire));
                    black_box(word.load(Ordering::Acquire));
                }
            }));
        }
        let (read, alone, bare) = (median(reads), median(alone), median(bares));
        writeln!(
            out,
            "{name:<24} {threads:>7} {read:>10.1} {alone:>10.1} {:>6.0}% {bare:>10.1}",
            100.0 * alone / read
        )
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pages = given("--pages", 131_072)?.next_power_of_two();
    let bench = Bench::new(pages, given("--rounds", 9)?.max(1))?;
    // In an array that is read in order: what is random is the page, not the list of pages.
    let mut random = fastrand::Rng::with_seed(7);
    let random: Vec<u32> = (0..STEPS).map(|_| random.u32(0..pages as u32)).collect();
    let in_order = |thread: usize, step: usize| (step + thread * pages / 2) & (pages - 1);
    let at_random =
        |thread: usize, step: usize| random[(step + thread * 7919) & (STEPS - 1)] as usize;

    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{pages} pages, {STEPS} pins a round, medians of {} rounds\n",
        bench.rounds
    )?;
    writeln!(
        out,
        "{:<24} {:>7} {:>10} {:>10} {:>7}",
        "pages", "threads", "pin, ns", "bare, ns", "share"
    )?;
    bench.compare(&mut out, "in order", 1, in_order)?;
    bench.compare(&mut out, "at random", 1, at_random)?;
    bench.compare(&mut out, "in order, other pages", 2, in_order)?;
    bench.compare(&mut out, "at random", 2, at_random)?;
    bench.compare(&mut out, "a page each", 2, |thread, _| thread * 64)?;
    writeln!(
        out,
        "\n{:<24} {:>7} {:>10} {:>10} {:>7} {:>10}",
        "optimistic", "threads", "read, ns", "alone, ns", "share", "bare, ns"
    )?;
    bench.optimistic(&mut out, "one page", 2, |_, _| 64)?;
    bench.optimistic(&mut out, "a page each", 2, |thread, _| thread * 64)?;
    bench.optimistic(&mut out, "in order, other pages", 2, in_order)?;
    bench.optimistic(&mut out, "at random", 2, at_random)?;
    let misses = bench.pool.statistics().misses;
    assert_eq!(misses, pages as u64, "all pages stayed resident");
    Ok(())
}
