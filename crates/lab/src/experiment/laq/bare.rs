//! Bare loops: the rates that the machine gives to a loop that does nothing else, the roofs of the roofline. They are
//! measured in the same rounds as the queries.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use workers::Workers;

/// Words in a piece, which a task takes at a time.
const PIECE: usize = 128 << 10;
/// Words that fit into a core's second-level cache.
const NEAR: usize = 16 << 10;
/// Accumulators of a loop over registers, in bytes, for the widest registers.
const LANES: usize = 256;
/// Rounds over the registers of one piece.
const ROUNDS: usize = 1 << 10;
/// How long a loop without an end of its own runs.
const LONG: Duration = Duration::from_millis(8);

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bare {
    /// Adds up words in memory that no cache holds, in bytes per second.
    Memory,
    /// Adds up words in the core's second-level cache, in bytes per second.
    Cache,
    /// Adds and combines 64-bit integers in registers, in operations per second.
    Wide,
    /// The same with 8-bit integers, the width of most stored codes.
    Narrow,
}

/// The memory that the loops read.
#[derive(Clone, Debug)]
pub struct Field(Arc<[AtomicU64]>);

/// Compiles a loop for each instruction level, and calls the best one.
macro_rules! widest {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        $(#[$meta])*
        fn $name($($arg: $ty),*) -> $ret {
            #[inline(always)]
            fn plain($($arg: $ty),*) -> $ret $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx2")]
                fn avx512($($arg: $ty),*) -> $ret { plain($($arg),*) }
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $ty),*) -> $ret { plain($($arg),*) }
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                    // SAFETY: the processor was just asked for both, which include AVX2.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor was just asked for it.
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

widest! {
    /// The sum of words.
    fn sum(words: &[u64]) -> u64 {
        words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }
}

widest! {
    /// Two operations on each of [`LANES`] / 8 numbers, so many times.
    fn wide(rounds: usize, seed: u64) -> u64 {
        let mut lanes = [seed; LANES / 8];
        for _ in 0..rounds {
            for lane in &mut lanes {
                // No sum of a series: neither can be left out.
                *lane = lane.wrapping_add(seed) ^ 0x5555;
            }
        }
        lanes.iter().fold(0, |all, lane| all.wrapping_add(*lane))
    }
}

widest! {
    /// Two operations on each of [`LANES`] numbers, so many times.
    fn narrow(rounds: usize, seed: u8) -> u64 {
        let mut lanes = [seed; LANES];
        for _ in 0..rounds {
            for lane in &mut lanes {
                *lane = lane.wrapping_add(seed) ^ 0x55;
            }
        }
        lanes.iter().fold(0, |all, lane| all + u64::from(*lane))
    }
}

impl Field {
    /// Allocates this many bytes, written by `workers` piece by piece so that they lie on all of their nodes.
    pub fn new(bytes: usize, workers: &Arc<Workers>) -> Field {
        let words = (bytes / 8).max(PIECE);
        let field = Field(
            std::iter::repeat_with(AtomicU64::default)
                .take(words)
                .collect(),
        );
        let writing = field.clone();
        share(workers, Some(words.div_ceil(PIECE)), move |piece| {
            let end = ((piece + 1) * PIECE).min(words);
            for word in &writing.0[piece * PIECE..end] {
                word.store(piece as u64, Ordering::Relaxed);
            }
            0
        });
        field
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len() * 8
    }

    fn words(&self, piece: usize) -> &[u64] {
        let end = ((piece + 1) * PIECE).min(self.0.len());
        let words = &self.0[piece * PIECE..end];
        // SAFETY: an atomic word has the size, the alignment and all bit patterns of a plain one, and nobody writes
        // once `new` has returned. Paid for: a loop over atomic words is not vectorised.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u64>(), words.len()) }
    }
}

/// Runs `pieces` pieces of `work` on all of `workers`, or as many as they can do in [`LONG`]; returns pieces per
/// second.
fn share(
    workers: &Arc<Workers>,
    pieces: Option<usize>,
    work: impl Fn(usize) -> u64 + Send + Sync + 'static,
) -> f64 {
    let (next, work) = (Arc::new(AtomicUsize::new(0)), Arc::new(work));
    let own = workers.clone();
    workers.block_on(async move {
        let begun = Instant::now();
        let task = |_| {
            let (next, work) = (next.clone(), work.clone());
            own.spawn(async move {
                let (mut all, mut done) = (0u64, 0usize);
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    let over = match pieces {
                        Some(pieces) => piece >= pieces,
                        None => begun.elapsed() >= LONG,
                    };
                    if over {
                        black_box(all);
                        return done;
                    }
                    all = all.wrapping_add(work(piece));
                    done += 1;
                }
            })
        };
        let tasks: Vec<_> = (0..own.width()).map(task).collect();
        let mut done = 0;
        for task in tasks {
            // A task that only counts does not fail.
            done += task.await.unwrap_or(0);
        }
        done as f64 / begun.elapsed().as_secs_f64()
    })
}

impl Bare {
    /// Bytes or operations per second of all of `workers` together.
    pub fn rate(self, field: &Field, workers: &Arc<Workers>) -> f64 {
        match self {
            Bare::Memory => {
                let own = field.clone();
                let pieces = own.0.len().div_ceil(PIECE);
                let work = move |piece| sum(black_box(own.words(piece)));
                share(workers, Some(pieces), work) * field.bytes() as f64 / pieces as f64
            }
            Bare::Cache => {
                let near: Arc<[u64]> = (0..NEAR as u64).collect();
                share(workers, None, move |_| sum(black_box(&near))) * (NEAR * 8) as f64
            }
            Bare::Wide => {
                let work = |piece| wide(black_box(ROUNDS), black_box(piece as u64));
                share(workers, None, work) * (2 * ROUNDS * LANES / 8) as f64
            }
            Bare::Narrow => {
                let work = |piece| narrow(black_box(ROUNDS), black_box(piece as u8));
                share(workers, None, work) * (2 * ROUNDS * LANES) as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_do_all_of_their_work() {
        let words: Vec<u64> = (0..1000).collect();
        assert_eq!(sum(&words), 499_500);
        let mut lane = 3u64;
        let mut byte = 3u8;
        for _ in 0..7 {
            lane = lane.wrapping_add(3) ^ 0x5555;
            byte = byte.wrapping_add(3) ^ 0x55;
        }
        assert_eq!(wide(7, 3), lane.wrapping_mul(LANES as u64 / 8));
        assert_eq!(narrow(7, 3), u64::from(byte) * LANES as u64);
        let live = topology::Machine::live().unwrap();
        let workers = Workers::new(workers::Layout::of(&live, &live, 2, false)).unwrap();
        let field = Field::new(3 << 20, &workers);
        assert_eq!(field.bytes(), 3 << 20);
        let pieces = field.0.len().div_ceil(PIECE);
        let all: u64 = (0..pieces).map(|piece| sum(field.words(piece))).sum();
        assert_eq!(
            all,
            (0..pieces as u64)
                .map(|piece| piece * PIECE as u64)
                .sum::<u64>()
        );
        for bare in [Bare::Memory, Bare::Cache, Bare::Wide, Bare::Narrow] {
            let rate = bare.rate(&field, &workers);
            assert!(rate.is_finite() && rate > 0.0, "{bare:?}: {rate}");
        }
    }
}
