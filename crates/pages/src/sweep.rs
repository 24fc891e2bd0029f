//! The time of an operator over threads, partitions, prefetching and NUMA mode (row B11).

use std::path::Path;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::file::PageFile;
use crate::operators::{Answer, Operator};
use crate::options::Options;
use crate::session::Session;

/// What [`sweep`] measures: each combination of these, `rounds` times.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Numbers of partitions, instead of that in the options.
    pub partitions: Vec<usize>,
    /// Pages that each thread prefetches.
    pub prefetch: Vec<usize>,
    /// NUMA modes, instead of that in the options.
    pub numa: Vec<bool>,
    /// Rounds, in each of which every combination has its turn; at least 1.
    pub rounds: usize,
    /// Times that the operator runs in each turn; the time is that of all together. At least 1.
    pub iterations: usize,
    /// Whether the pool is emptied before each turn. Otherwise a pass over all pages, which is not
    /// measured, fills it first.
    pub cold: bool,
}

impl Default for Sweep {
    /// One warm combination, measured five times.
    fn default() -> Sweep {
        Sweep {
            threads: vec![1],
            partitions: vec![1],
            prefetch: vec![0],
            numa: vec![false],
            rounds: 5,
            iterations: 1,
            cold: false,
        }
    }
}

/// The times of one combination.
#[derive(Debug, Clone)]
pub struct Timed {
    /// Threads.
    pub threads: usize,
    /// Partitions of the pool that were asked for.
    pub partitions: usize,
    /// Pages that each thread prefetched.
    pub prefetch: usize,
    /// Whether the NUMA mode was on.
    pub numa: bool,
    /// Seconds of each round, in their order.
    pub seconds: Vec<f64>,
}

impl Timed {
    /// The median, in seconds; of an even number of rounds the upper of the two in the middle.
    pub fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// What [`sweep`] found.
#[derive(Debug, Clone)]
pub struct Swept {
    /// Bytes of a page.
    pub page_size: usize,
    /// Pages that each run read.
    pub pages: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// What every run answered.
    pub answer: Answer,
    /// The times.
    pub times: Vec<Timed>,
    /// The counters of each pool at the end of the last round: partitions asked for, NUMA mode.
    pub pools: Vec<(usize, bool, buffer::Statistics)>,
}

/// Measures an operator over the pages at `path`, in every combination of `sweep`; `stop` is asked
/// before each turn. Pools are made anew in each round, one after the other, so that they have the
/// memory for themselves.
///
/// # Errors
/// Those of [`PageFile::open`], [`Session::start`] and the operator;
/// [`Error::Interrupted`] as soon as `stop` says so; [`Error::Disagree`] if two runs answer
/// differently, which is a defect.
pub fn sweep(
    path: &Path,
    options: &Options,
    operator: Operator,
    sweep: &Sweep,
    stop: &dyn Fn() -> bool,
) -> Result<Swept> {
    let mut times = combinations(sweep);
    let mut swept: Option<Swept> = None;
    for _ in 0..sweep.rounds.max(1) {
        let mut pools = Vec::new();
        for shape in times.chunk_by_mut(|a, b| (a.partitions, a.numa) == (b.partitions, b.numa)) {
            let options = Options {
                partitions: shape[0].partitions,
                numa: shape[0].numa,
                ..options.clone()
            };
            let file = PageFile::open(path, &options)?;
            if !sweep.cold {
                operator.run(&Session::start(&file, 1, 0)?)?;
            }
            for timed in shape.iter_mut() {
                if stop() {
                    return Err(Error::Interrupted);
                }
                let session = Session::start(&file, timed.threads, timed.prefetch)?;
                if sweep.cold {
                    file.cool();
                }
                let (seconds, answer) = turn(operator, &session, sweep.iterations)?;
                timed.seconds.push(seconds);
                match &swept {
                    Some(swept) if swept.answer != answer => return Err(Error::Disagree),
                    Some(_) => {}
                    None => {
                        swept = Some(Swept {
                            page_size: file.store().page_size(),
                            pages: session.pages().len() as u64,
                            bytes: session.bytes(),
                            answer,
                            times: vec![],
                            pools: vec![],
                        });
                    }
                }
            }
            pools.push((options.partitions, options.numa, file.pool()));
        }
        if let Some(swept) = &mut swept {
            swept.pools = pools;
        }
    }
    let nothing = Error::Setting {
        what: "combinations",
        value: 0,
        least: 1,
        most: usize::MAX,
    };
    let mut swept = swept.ok_or(nothing)?;
    swept.times = times;
    Ok(swept)
}

/// All combinations, those with the same pool next to each other.
fn combinations(sweep: &Sweep) -> Vec<Timed> {
    let mut all = Vec::new();
    for &numa in &sweep.numa {
        for &partitions in &sweep.partitions {
            for &prefetch in &sweep.prefetch {
                all.extend(sweep.threads.iter().map(|&threads| Timed {
                    threads,
                    partitions,
                    prefetch,
                    numa,
                    seconds: Vec::with_capacity(sweep.rounds),
                }));
            }
        }
    }
    all
}

fn turn(operator: Operator, session: &Session, iterations: usize) -> Result<(f64, Answer)> {
    let begin = Instant::now();
    for _ in 1..iterations {
        std::hint::black_box(operator.run(session)?);
    }
    let answer = operator.run(session)?;
    Ok((begin.elapsed().as_secs_f64(), answer))
}
