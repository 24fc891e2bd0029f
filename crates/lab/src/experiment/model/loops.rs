//! Bare loops: what the parts of the machine at hand do, and what the model is held against.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use placement::Random;

use crate::error::{Error, Result};

/// Words of a line.
const LINE: usize = 8;
/// Words that lie in a core's own caches, or in the one that it shares.
const CACHED: usize = 32 << 10;
/// Lines that are visited one after the other.
const VISITS: usize = 1 << 20;

/// Cycles of a word with so many steps of [`read`], each a rotation and a shift beside each other and then their combination; the word itself
/// takes one more. Without steps words wait for nothing but memory.
pub(super) fn cycles(steps: u32) -> f64 {
    match steps {
        0 => 0.0,
        steps => 1.0 + 2.0 * f64::from(steps),
    }
}

/// Words that are read, lines that are visited or words that are made between two looks at whether the user has asked to stop.
const PART: usize = 128 << 10;

/// Words for each thread, and lines in an order that nobody foresees.
pub(super) struct Loops<'s> {
    /// Ends each loop within a few milliseconds, once it is set: what it tells then is no time.
    stop: &'s AtomicBool,
    words: Vec<Vec<u64>>,
    /// Each line's first word is the number of the next one.
    chain: Vec<u64>,
}

/// Reads words, with so many steps of computing that each depend on the one before.
fn read(words: &[u64], steps: u32, stop: &AtomicBool) -> u64 {
    let mut all = 1;
    for part in words.chunks(PART) {
        for word in part {
            all ^= word;
            for _ in 0..steps {
                all = all.rotate_left(7) ^ (all >> 3);
            }
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    all
}

impl Loops<'_> {
    /// Of `bytes` for each of so many threads.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] once `stop` is set.
    pub(super) fn new(threads: usize, bytes: usize, stop: &AtomicBool) -> Result<Loops<'_>> {
        let go_on = |at: usize| {
            if at.is_multiple_of(PART) && stop.load(Ordering::Relaxed) {
                Err(Error::Interrupted)
            } else {
                Ok(())
            }
        };
        let lines = (bytes / 64).max(2);
        let mut order: Vec<usize> = (0..lines).collect();
        let mut random = Random::new(1);
        for at in (1..lines).rev() {
            go_on(at)?;
            order.swap(at, random.index(at + 1));
        }
        // A ring through all lines.
        let mut chain = vec![0; lines * LINE];
        for (at, line) in order.iter().enumerate() {
            go_on(at)?;
            chain[line * LINE] = order[(at + 1) % lines] as u64;
        }
        let mut words = Vec::with_capacity(threads);
        for thread in 0..threads {
            let mut own = Vec::with_capacity(lines * LINE);
            for at in 0..lines * LINE {
                go_on(at)?;
                own.push((at * (thread + 1)) as u64);
            }
            words.push(own);
        }
        Ok(Loops { stop, words, chain })
    }

    /// Bytes of each thread's words.
    pub(super) fn bytes(&self) -> f64 {
        self.chain.len() as f64 * 8.0
    }

    /// Seconds until memory answers.
    pub(super) fn latency(&self) -> f64 {
        let begun = Instant::now();
        let mut at = 0;
        for _ in 0..VISITS / PART {
            for _ in 0..PART {
                at = self.chain[at as usize * LINE];
            }
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        black_box(at);
        begun.elapsed().as_secs_f64() / VISITS as f64
    }

    /// Seconds of one thread that reads as many words as it has out of its caches, a part of them as often as there are parts.
    pub(super) fn cached(&self, steps: u32) -> f64 {
        let words = &self.words[0];
        let part = &words[..CACHED.min(words.len())];
        let begun = Instant::now();
        for _ in 0..words.len() / part.len() {
            black_box(read(black_box(part), steps, self.stop));
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        begun.elapsed().as_secs_f64()
    }

    /// Seconds until all threads have read their part of their words, `parts` of a whole for each.
    pub(super) fn memory(&self, parts: &[f64], steps: u32) -> f64 {
        let ready = Barrier::new(parts.len());
        std::thread::scope(|scope| {
            let threads = parts.iter().zip(&self.words).map(|(part, words)| {
                let words = &words[..(words.len() as f64 * part) as usize];
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    let begun = Instant::now();
                    black_box(read(black_box(words), steps, self.stop));
                    begun.elapsed().as_secs_f64()
                })
            });
            let threads: Vec<_> = threads.collect();
            let times = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or(f64::NAN));
            times.fold(0.0, f64::max)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_take_their_time() {
        let stop = AtomicBool::new(false);
        let loops = Loops::new(2, 1 << 20, &stop).unwrap();
        assert_eq!(loops.bytes(), 1048576.0);
        assert!(loops.latency() > 0.0);
        let (few, many) = (loops.cached(1), loops.cached(32));
        assert!(many > 2.0 * few, "{few} {many}");
        assert!(loops.memory(&[1.0, 0.5], 2) > 0.0);
        // The ring goes through all lines.
        let (mut at, mut visits) = (0, 0);
        loop {
            at = loops.chain[at as usize * LINE];
            visits += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(visits, (1 << 20) / 64);
    }

    #[test]
    fn what_is_stopped_ends() {
        let stop = AtomicBool::new(false);
        let loops = Loops::new(2, 64 << 20, &stop).unwrap();
        stop.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        loops.memory(&[1.0, 1.0], 1 << 10);
        loops.cached(1 << 10);
        loops.latency();
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
        assert!(matches!(
            Loops::new(2, 64 << 20, &stop),
            Err(Error::Interrupted)
        ));
    }
}
