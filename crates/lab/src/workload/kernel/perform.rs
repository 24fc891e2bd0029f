//! Carrying out a plan.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError, RwLock};

use emulator::roi;
use memory::Arena;
use placement::apply;
use serde::{Deserialize, Serialize};

use super::plan::{Job, LINE, Step};
use crate::error::{Error, Result};

/// Words of a line.
const WORDS: usize = LINE / 8;

/// Lines after which a thread lets others go on. On an emulated machine whose processors take
/// turns, this is what makes threads run beside each other, and not one after the other.
const TURN: usize = 16;

/// How one placement went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The cpu that each thread was on at the end of its steps.
    pub cpus: Vec<u32>,
    /// What the threads read, added up: it follows from the plan alone.
    pub sum: u64,
}

/// A piece in memory.
struct Data {
    arena: Arena,
}

impl Data {
    fn words(&self) -> &[AtomicU64] {
        let words = self.arena.len() / 8;
        // SAFETY: the arena is mapped, aligned to a page, zeroed and at least that long; nothing
        // but these atomic words refers to it while it lives.
        unsafe { std::slice::from_raw_parts(self.arena.as_ptr().cast::<AtomicU64>(), words) }
    }

    fn line(&self, at: usize) -> &AtomicU64 {
        &self.words()[at * WORDS]
    }

    fn lines(&self) -> usize {
        self.arena.len() / LINE
    }
}

/// What the threads of one run share.
struct Floor<'a> {
    job: &'a Job,
    barrier: Barrier,
    data: RwLock<Vec<Data>>,
    ran: Mutex<Ran>,
    failure: Mutex<Option<Error>>,
}

/// Carries out the plan under each placement in turn, and hands how it went to `each`. Every
/// placement is one region of interest, which begins with empty modelled caches and with the
/// data in memory.
///
/// # Errors
///
/// [`Error::Job`] for a plan or a placement that does not fit; [`Error::Pin`] where a thread may
/// not run on its cpus; [`Error::Memory`] where there is not enough; those of `each`.
pub fn perform(job: &Job, mut each: impl FnMut(Ran) -> Result<()>) -> Result<()> {
    check(job)?;
    let threads = job.plan.threads.len();
    let floor = Floor {
        job,
        barrier: Barrier::new(threads),
        data: RwLock::new(Vec::new()),
        ran: Mutex::new(Ran {
            cpus: vec![0; threads],
            sum: 0,
        }),
        failure: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let floor = &floor;
            scope.spawn(move || floor.work(thread, &mut |_| Ok(())));
        }
        floor.work(0, &mut each);
    });
    let failure = floor.failure.into_inner();
    match failure.unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn check(job: &Job) -> Result<()> {
    let wrong = |why: String| Err(Error::Job { why });
    let (threads, pieces) = (job.plan.threads.len(), job.plan.pieces.len());
    if threads == 0 {
        return wrong("it has no threads".to_owned());
    }
    for (at, piece) in job.plan.pieces.iter().enumerate() {
        if piece.loader >= threads || piece.bytes == 0 || piece.bytes % 4096 != 0 {
            return wrong(format!("piece {at} has no loader, or no whole pages"));
        }
    }
    let steps = job.plan.threads.iter().flatten();
    if let Some(step) = steps.into_iter().find(|step| step.piece() >= pieces) {
        return wrong(format!("there is no piece {}", step.piece()));
    }
    for (at, placement) in job.placements.iter().enumerate() {
        if placement.len() != threads || placement.iter().any(Vec::is_empty) {
            return wrong(format!(
                "placement {at} does not give each of {threads} threads a cpu"
            ));
        }
    }
    Ok(())
}

impl Floor<'_> {
    /// The life of a thread. All threads pass the same barriers, whatever fails.
    fn work(&self, thread: usize, each: &mut dyn FnMut(Ran) -> Result<()>) {
        for placement in &self.job.placements {
            self.keep(pin(thread, &placement[thread]));
            if thread == 0 {
                self.keep(self.reserve());
            }
            self.barrier.wait();
            // Nothing can fail between this barrier and the last.
            if self.failed() {
                return;
            }
            self.load(thread);
            self.barrier.wait();
            if thread == 0 {
                roi::flush();
                roi::start();
            }
            self.barrier.wait();
            let sum = self.steps(thread);
            self.barrier.wait();
            if thread == 0 {
                roi::stop();
            }
            self.note(thread, sum);
            self.barrier.wait();
            // Whether this failed is asked at the next placement, where all threads see the same.
            if thread == 0 {
                self.keep(each(self.take()));
            }
        }
    }

    fn reserve(&self) -> Result<()> {
        let mut data = self.data.write().unwrap_or_else(PoisonError::into_inner);
        data.clear();
        for piece in &self.job.plan.pieces {
            data.push(Data {
                arena: Arena::new(piece.bytes, None)?,
            });
        }
        Ok(())
    }

    /// Writes the pieces of this thread: line `i` of piece `p` holds `p + i`.
    fn load(&self, thread: usize) {
        let data = self.data.read().unwrap_or_else(PoisonError::into_inner);
        for (at, piece) in self.job.plan.pieces.iter().enumerate() {
            if piece.loader == thread {
                write(&data[at], at as u64);
            }
        }
    }

    fn steps(&self, thread: usize) -> u64 {
        let data = self.data.read().unwrap_or_else(PoisonError::into_inner);
        let sums = self.job.plan.threads[thread]
            .iter()
            .map(|step| take(step, &data));
        sums.fold(0, u64::wrapping_add)
    }

    fn note(&self, thread: usize, sum: u64) {
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        ran.cpus[thread] = cpu();
        ran.sum = ran.sum.wrapping_add(sum);
    }

    fn take(&self) -> Ran {
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = ran.cpus.len();
        std::mem::replace(
            &mut *ran,
            Ran {
                cpus: vec![0; threads],
                sum: 0,
            },
        )
    }

    fn keep(&self, result: Result<()>) {
        if let Err(error) = result {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
        }
    }

    fn failed(&self) -> bool {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
}

fn take(step: &Step, data: &[Data]) -> u64 {
    let piece = &data[step.piece()];
    let lines = piece.lines();
    match step {
        Step::Scan { from, times, .. } => {
            let begin = ((lines as f64 * from) as usize).min(lines);
            let order = || (begin..lines).chain(0..begin);
            (0..*times)
                .map(|_| read(piece, order()))
                .fold(0, u64::wrapping_add)
        }
        Step::Gather {
            lines: count, seed, ..
        } => {
            let mut state = *seed;
            read(piece, (0..*count).map(|_| draw(&mut state, lines)))
        }
        Step::Write { piece: number } => {
            write(piece, *number as u64);
            0
        }
    }
}

fn read(piece: &Data, order: impl Iterator<Item = usize>) -> u64 {
    let mut sum = 0u64;
    for (count, line) in order.enumerate() {
        sum = sum.wrapping_add(piece.line(line).load(Ordering::Relaxed));
        if count % TURN == TURN - 1 {
            std::hint::spin_loop();
        }
    }
    black_box(sum)
}

fn write(piece: &Data, first: u64) {
    for line in 0..piece.lines() {
        piece
            .line(line)
            .store(first + line as u64, Ordering::Relaxed);
        if line % TURN == TURN - 1 {
            std::hint::spin_loop();
        }
    }
}

/// The next of a sequence of numbers below `below`: SplitMix64.
fn draw(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * below as u128) >> 64) as usize
}

/// The cpu this thread is on.
fn cpu() -> u32 {
    // SAFETY: it takes nothing and returns a number.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).unwrap_or(0)
}

/// Lets this thread run on these cpus only.
fn pin(thread: usize, cpus: &[u32]) -> Result<()> {
    let set = cpus.iter().copied().collect();
    apply::bind(0, &set).map_err(|source| Error::Pin {
        thread,
        cpus: cpus.to_vec(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::kernel::{KERNELS, Piece, Plan};

    /// What [`Ran::sum`] is for this plan.
    fn expected(plan: &Plan) -> u64 {
        let value = |piece: usize, line: usize| (piece + line) as u64;
        let sum = |step: &Step| {
            let piece = step.piece();
            let lines = plan.pieces[piece].bytes / LINE;
            match step {
                Step::Scan { times, .. } => {
                    *times as u64 * (0..lines).map(|line| value(piece, line)).sum::<u64>()
                }
                Step::Gather {
                    lines: count, seed, ..
                } => {
                    let mut state = *seed;
                    (0..*count)
                        .map(|_| value(piece, draw(&mut state, lines)))
                        .sum()
                }
                Step::Write { .. } => 0,
            }
        };
        plan.threads
            .iter()
            .flatten()
            .map(sum)
            .fold(0, u64::wrapping_add)
    }

    fn allowed() -> Vec<u32> {
        let machine = topology::Machine::live().unwrap();
        let cores = machine.nodes().iter().flat_map(|node| &node.cores);
        cores.flat_map(|core| core.cpus.clone()).collect()
    }

    #[test]
    fn every_placement_does_all_of_the_work_where_it_is_told_to() {
        let cpus = allowed();
        for kernel in KERNELS {
            let plan = kernel.plan(5, 64 << 10);
            let first = vec![vec![cpus[0]]; 5];
            let spread: Vec<Vec<u32>> = (0..5)
                .map(|thread| vec![cpus[thread % cpus.len()]])
                .collect();
            let job = Job {
                plan,
                placements: vec![first.clone(), spread.clone(), vec![cpus.clone(); 5]],
            };
            let mut seen = Vec::new();
            perform(&job, |ran| {
                seen.push(ran);
                Ok(())
            })
            .unwrap();
            assert_eq!(seen.len(), 3);
            let sum = expected(&job.plan);
            assert!(seen.iter().all(|ran| ran.sum == sum), "{kernel:?}");
            assert_eq!(seen[0].cpus, first.concat());
            assert_eq!(seen[1].cpus, spread.concat());
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let plan = |loader, piece| Plan {
            pieces: vec![Piece {
                bytes: 4096,
                loader,
            }],
            threads: vec![vec![Step::Write { piece }]],
        };
        let refused = |plan, placements| {
            let job = Job { plan, placements };
            perform(&job, |_| Ok(())).unwrap_err().to_string()
        };
        let cpu = vec![vec![vec![0]]];
        assert!(refused(plan(1, 0), cpu.clone()).contains("loader"));
        assert!(refused(plan(0, 7), cpu.clone()).contains("piece 7"));
        assert!(refused(plan(0, 0), vec![vec![]]).contains("placement 0"));
        assert!(refused(plan(0, 0), vec![vec![vec![]]]).contains("placement 0"));
        let empty = Plan {
            pieces: Vec::new(),
            threads: Vec::new(),
        };
        assert!(refused(empty, Vec::new()).contains("no threads"));
        for cpu in [4095, 1 << 20] {
            let error = refused(plan(0, 0), vec![vec![vec![cpu]]]);
            assert!(
                error.contains("thread 0") && error.contains(&cpu.to_string()),
                "{error}"
            );
        }
    }

    #[test]
    fn a_failure_of_one_thread_ends_all_of_them() {
        let cpus = allowed();
        let plan = KERNELS[0].plan(4, 64 << 10);
        let mut placement = vec![vec![cpus[0]]; 4];
        placement[3] = vec![4095];
        let job = Job {
            plan,
            placements: vec![placement],
        };
        let error = perform(&job, |_| Ok(())).unwrap_err();
        assert!(matches!(error, Error::Pin { thread: 3, .. }), "{error}");
    }

    #[test]
    fn the_caller_may_end_it() {
        let cpus = allowed();
        let job = Job {
            plan: KERNELS[1].plan(3, 64 << 10),
            placements: vec![vec![vec![cpus[0]]; 3]; 9],
        };
        let mut calls = 0;
        let end = perform(&job, |_| {
            calls += 1;
            Err(Error::Job {
                why: "enough".to_owned(),
            })
        });
        assert!(end.is_err());
        assert_eq!(calls, 1);
    }
}
