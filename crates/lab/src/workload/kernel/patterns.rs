//! Access patterns that placements are compared with: three kinds of plans.

use serde::Serialize;

use super::plan::{LINE, Piece, Plan, Step};

/// A kind of plan. None names a node: exchanging equal nodes changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// A query over an array: threads in groups of three, each group with chunks that its first
    /// thread loaded, that all three go through together several times, and write results.
    Chunks,
    /// Streaming execution: each thread writes a block that another one, elsewhere in the order
    /// of creation, reads twice; all look into a dictionary that the first one made.
    Stream,
    /// A hash join: every third thread built a part of the table; all look up, mostly in one
    /// part, and read rows that another thread loaded.
    Join,
}

/// All kernels.
pub const KERNELS: [Kernel; 3] = [Kernel::Chunks, Kernel::Stream, Kernel::Join];

impl Kernel {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Chunks => "chunks",
            Kernel::Stream => "stream",
            Kernel::Join => "join",
        }
    }

    /// What it does, for people.
    pub fn about(self) -> &'static str {
        match self {
            Kernel::Chunks => {
                "threads in groups of three; each group reads chunks three times that its first thread \
                 loaded, and writes results"
            }
            Kernel::Stream => {
                "each thread writes a block that another reads twice; all look into one dictionary"
            }
            Kernel::Join => {
                "look-ups in a hash table in parts, 70 % of them in one part, and a scan of rows \
                 that another thread loaded"
            }
        }
    }

    /// The kernel of that name.
    pub fn named(name: &str) -> Option<Kernel> {
        KERNELS.into_iter().find(|kernel| kernel.name() == name)
    }

    /// The plan for so many threads (at least 1) on a machine whose last-level caches hold `cache`
    /// bytes each.
    pub fn plan(self, threads: usize, cache: u64) -> Plan {
        let cache = usize::try_from(cache).unwrap_or(usize::MAX / 16);
        match self {
            Kernel::Chunks => chunks(threads, cache),
            Kernel::Stream => stream(threads, cache),
            Kernel::Join => join(threads, cache),
        }
    }
}

/// Whole pages, at least one.
fn pages(bytes: usize) -> usize {
    (bytes / 4096).max(1) * 4096
}

fn chunks(threads: usize, cache: usize) -> Plan {
    const GROUP: usize = 3;
    const EACH: usize = 4;
    // What all groups work on at a time fits into one cache: whether a chunk is still there does
    // not hang on who is a little ahead.
    let chunk = pages(cache / 8);
    let groups = threads.div_ceil(GROUP);
    let loaded = (0..groups * EACH).map(|chunk_of| Piece {
        bytes: chunk,
        loader: chunk_of / EACH * GROUP,
    });
    let results = (0..threads).map(|thread| Piece {
        bytes: pages(chunk / 4),
        loader: thread,
    });
    let steps = |thread: usize| {
        let from = (thread % GROUP) as f64 / GROUP as f64;
        let mine = thread / GROUP * EACH;
        let scans = (mine..mine + EACH).map(move |piece| Step::Scan {
            piece,
            from,
            times: 3,
        });
        scans
            .chain([Step::Write {
                piece: groups * EACH + thread,
            }])
            .collect()
    };
    Plan {
        pieces: loaded.chain(results).collect(),
        threads: (0..threads).map(steps).collect(),
    }
}

fn stream(threads: usize, cache: usize) -> Plan {
    let block = pages(cache / 4);
    let own = (0..threads).map(|thread| Piece {
        bytes: block,
        loader: thread,
    });
    let dictionary = Piece {
        bytes: pages(cache / 4),
        loader: 0,
    };
    let steps = |thread: usize| {
        let from = (thread * stride(threads) + 1) % threads;
        vec![
            Step::Write { piece: thread },
            Step::Scan {
                piece: from,
                from: 0.0,
                times: 2,
            },
            Step::Gather {
                piece: threads,
                lines: block / LINE / 4,
                seed: thread as u64 + 1,
            },
        ]
    };
    Plan {
        pieces: own.chain([dictionary]).collect(),
        threads: (0..threads).map(steps).collect(),
    }
}

/// A number without a common divisor with `threads`, so that each thread has one reader.
fn stride(threads: usize) -> usize {
    fn divisor(a: usize, b: usize) -> usize {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    (5..)
        .find(|stride| divisor(*stride, threads) == 1)
        .unwrap_or(1)
}

fn join(threads: usize, cache: usize) -> Plan {
    let parts = threads.div_ceil(3);
    // The whole table is larger than a cache, a part is not.
    let part = pages(cache * 2 / 3);
    let rows = pages(cache / 4);
    let lookups = part / LINE * 2;
    let table = (0..parts).map(|part_of| Piece {
        bytes: part,
        loader: part_of * 3,
    });
    let probe = (0..threads).map(|thread| Piece {
        bytes: rows,
        loader: (thread + threads / 2) % threads,
    });
    let steps = |thread: usize| {
        let mine = (thread * 7 + 2) % parts;
        let seed = |part: usize| (thread * parts + part + 1) as u64;
        let mut steps = vec![Step::Scan {
            piece: parts + thread,
            from: 0.0,
            times: 1,
        }];
        for part in 0..parts {
            let share = match (part == mine, parts) {
                (_, 1) => lookups,
                (true, _) => lookups * 7 / 10,
                (false, _) => lookups * 3 / 10 / (parts - 1),
            };
            steps.push(Step::Gather {
                piece: part,
                lines: share,
                seed: seed(part),
            });
        }
        steps
    };
    Plan {
        pieces: table.chain(probe).collect(),
        threads: (0..threads).map(steps).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_sound_for_any_number_of_threads() {
        for kernel in KERNELS {
            for threads in 1..40 {
                let plan = kernel.plan(threads, 960 << 10);
                assert_eq!(plan.threads.len(), threads);
                assert!(
                    plan.pieces
                        .iter()
                        .all(|piece| piece.loader < threads && piece.bytes % 4096 == 0)
                );
                let named = |step: &Step| step.piece() < plan.pieces.len();
                assert!(
                    plan.threads.iter().flatten().all(named),
                    "{kernel:?} {threads}"
                );
                assert!(plan.touches() > 0);
            }
            assert_eq!(Kernel::named(kernel.name()), Some(kernel));
        }
    }

    #[test]
    fn no_two_threads_write_the_same_piece() {
        for kernel in KERNELS {
            let plan = kernel.plan(12, 1 << 20);
            let mut written: Vec<usize> = Vec::new();
            for step in plan.threads.iter().flatten() {
                if let Step::Write { piece } = step {
                    assert!(!written.contains(piece), "{kernel:?} {piece}");
                    written.push(*piece);
                }
            }
        }
    }

    #[test]
    fn a_run_touches_several_times_what_the_caches_hold() {
        let cache = 960 << 10;
        for kernel in KERNELS {
            let plan = kernel.plan(12, cache as u64);
            assert!(
                plan.touches() * LINE > 4 * 2 * cache,
                "{kernel:?}: {}",
                plan.touches() * LINE
            );
        }
    }
}
