//! What a pin costs: pin and unpin of resident pages against a bare pair of atomics on as many words.
//!
//! `cargo bench -p buffer` (`-- --rounds 9 --pages 131072`)
//!
//! What is compared takes turns; medians of all rounds are shown, in nanoseconds for a pin and its unpin. Bars: 12 ns in
//! order and 27 ns at random with 131,072 pages, half the speed of the bare pair; of two threads 90 % of two bare loops.
//! Of optimistic reads the bar is that of two threads, for one page and for two; here the page is read, too.

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

/// What a pin and its unpin cannot do without.
fn bare_pair(word: &AtomicU64) {
    let seen = word.load(Ordering::Relaxed);
    let (right, wrong) = (Ordering::Acquire, Ordering::Relaxed);
    let _ = black_box(word.compare_exchange(seen, seen + 1, right, wrong));
    word.fetch_sub(1, Ordering::Release);
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
            placement: buffer::Placement::default(),
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
                    bare_pair(&self.words[order(thread, step)]);
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

    /// Eight bytes of each page read optimistically, the same under a pin, and the bare pair, where
    /// threads that read one page have a word each: a line.
    fn optimistic(
        &self,
        out: &mut impl Write,
        name: &str,
        order: impl Fn(usize, usize) -> usize + Sync,
        bare: impl Fn(usize, usize) -> usize + Sync,
    ) -> std::io::Result<()> {
        let (mut reads, mut pins, mut bares) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            reads.push(time(2, |thread| {
                for step in 0..STEPS {
                    let page = order(thread, step) as PageId;
                    black_box(self.pool.read_optimistic(page, |page| page.u64_at(0)));
                }
            }));
            pins.push(time(2, |thread| {
                for step in 0..STEPS {
                    if let Some(pin) = self.pool.try_pin(order(thread, step) as PageId) {
                        black_box(pin.first_chunk::<8>().copied());
                    }
                }
            }));
            bares.push(time(2, |thread| {
                for step in 0..STEPS {
                    bare_pair(&self.words[bare(thread, step)]);
                }
            }));
        }
        let (read, pin, bare) = (median(reads), median(pins), median(bares));
        let share = 100.0 * bare / read;
        writeln!(
            out,
            "{name:<24} {read:>10.1} {pin:>10.1} {bare:>10.1} {share:>6.0}%"
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
        "\n{:<24} {:>10} {:>10} {:>10} {:>7}",
        "eight bytes, two threads", "read, ns", "pin, ns", "bare, ns", "share"
    )?;
    let each = |thread: usize, _: usize| thread * 64;
    bench.optimistic(&mut out, "one page", |_, _| 64, each)?;
    bench.optimistic(&mut out, "a page each", each, each)?;
    bench.optimistic(&mut out, "in order, other pages", in_order, in_order)?;
    bench.optimistic(&mut out, "at random", at_random, at_random)?;
    let misses = bench.pool.statistics().misses;
    assert_eq!(misses, pages as u64, "all pages stayed resident");
    Ok(())
}
