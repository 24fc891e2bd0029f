//! The runs: all configurations in turn, round after round.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::profile::Record;
use engine::time_line::Noted;
use engine::{Executor, ProfileCollector, TimeLine};
use report::Sample;
use topology::{CacheKind, Machine};

use super::bare::{Bare, Field};
use super::bench::{Bench, Ran, Subject, Way};
use super::host::{Spent, peak};
use super::scope::{Kind, PLANS, Scope, name};
use crate::desk::Desk;
use crate::error::{Error, Result};

/// How often a process is run to measure its memory.
const MEMORY_RUNS: usize = 3;
/// The most and the least bytes of memory that the bare loop reads.
const FIELD: (u64, u64) = (64 << 20, 512 << 20);

/// One configuration of a query, and its runs.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The query's position.
    pub query: usize,
    /// Its group: the configurations of one group are run one after the other and compared.
    pub group: usize,
    /// What the configurations of this group differ in.
    pub kind: Kind,
    /// How it is run.
    pub way: Way,
    /// Seconds by round.
    pub seconds: Sample,
    /// Page faults by round.
    pub faults: Sample,
    /// Bytes read from pages in the last run.
    pub bytes: u64,
    /// Blocks allocated and reused in the last run, if there are any.
    pub blocks: Option<(u64, u64)>,
}

/// One run with its profile.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its time.
    pub seconds: f64,
    /// By stage.
    pub records: Vec<Record>,
    /// By worker.
    pub spent: Vec<Spent>,
    /// Bytes read from pages by pair of nodes.
    pub bytes: Vec<Vec<u64>>,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Complete rounds.
    pub rounds: usize,
    /// Whether the user ended it before all rounds were made.
    pub ended: bool,
    /// Timed runs.
    pub variants: Vec<Variant>,
    /// Rates of bare loops, by loop and threads.
    pub bare: BTreeMap<(Bare, usize), Sample>,
    /// Bytes that the loop over memory reads.
    pub field: usize,
    /// Rows of each query's answer.
    pub rows: Vec<usize>,
    /// By query: the fused executor on one thread, with its operators measured.
    pub operators: Vec<Vec<Seen>>,
    /// By query and executor: runs with the most threads.
    pub waits: Vec<Vec<(Executor, Vec<Seen>)>>,
    /// By query and plan: runs under each plan.
    pub plans: Vec<Vec<(&'static str, Vec<Seen>)>>,
    /// Peak memory of a separate process, by query, executor and reuse of blocks.
    pub memory: Vec<(usize, Executor, bool, Sample)>,
    /// By query and executor: what each worker did, and when, in one run with the most threads after all rounds.
    pub lines: Vec<Vec<(Executor, Noted)>>,
    /// Pages that were read from the file in timed runs.
    pub loads: u64,
}

/// What is run in a turn.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Timed(usize),
    Bare(Bare, usize),
    Operators(usize),
    Waits(usize, usize),
    Plan(usize, usize),
}

impl Scope {
    /// The turns of a round, in groups that are compared.
    fn turns(&self, measured: &Measured) -> Vec<Vec<Turn>> {
        let mut groups: Vec<Vec<Turn>> = Vec::new();
        for (at, one) in measured.variants.iter().enumerate() {
            if groups.len() <= one.group {
                groups.resize(one.group + 1, vec![]);
            }
            groups[one.group].push(Turn::Timed(at));
        }
        for query in 0..measured.operators.len() {
            groups.push(vec![Turn::Operators(query)]);
            groups.push(
                (0..self.executors.len())
                    .map(|at| Turn::Waits(query, at))
                    .collect(),
            );
            groups.push((0..PLANS.len()).map(|at| Turn::Plan(query, at)).collect());
        }
        let bare = measured.bare.keys();
        groups.push(
            bare.map(|(bare, threads)| Turn::Bare(*bare, *threads))
                .collect(),
        );
        groups
    }

    /// The query of a turn and how it is run, which determine the contents of caches and which cpus are awake.
    fn state(&self, turn: Turn, measured: &Measured) -> Option<(usize, Way)> {
        let fused = self.usual(Executor::Fused);
        Some(match turn {
            Turn::Timed(at) => (measured.variants[at].query, measured.variants[at].way),
            Turn::Operators(query) => (
                query,
                Way {
                    threads: 1,
                    ..fused
                },
            ),
            Turn::Waits(query, at) => (query, self.usual(self.executors[at])),
            Turn::Plan(query, _) => (query, fused),
            Turn::Bare(..) => return None,
        })
    }
}

/// Shuffles `all`; advances `number`, the state of the generator.
fn shuffle<T>(all: &mut [T], number: &mut u64) {
    for at in (1..all.len()).rev() {
        // SplitMix64.
        *number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *number;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        all.swap(at, (mixed % (at as u64 + 1)) as usize);
    }
}

impl Measured {
    fn new(scope: &Scope, queries: usize) -> Measured {
        let mut measured = Measured::default();
        for query in 0..queries {
            let first = measured.variants.last().map_or(0, |last| last.group + 1);
            for (at, (kind, group)) in scope.ways().into_iter().enumerate() {
                measured
                    .variants
                    .extend(group.into_iter().map(|way| Variant {
                        query,
                        group: first + at,
                        kind,
                        way,
                        seconds: Sample::default(),
                        faults: Sample::default(),
                        bytes: 0,
                        blocks: None,
                    }));
            }
            measured.operators.push(vec![]);
            let executors = scope.executors.iter();
            measured
                .waits
                .push(executors.map(|executor| (*executor, vec![])).collect());
            measured
                .plans
                .push(PLANS.map(|(name, _)| (name, vec![])).to_vec());
        }
        for threads in &scope.threads {
            for bare in [Bare::Memory, Bare::Wide] {
                measured.bare.insert((bare, *threads), Sample::default());
            }
        }
        // The roofs of what one thread does.
        for bare in [Bare::Memory, Bare::Cache, Bare::Wide, Bare::Narrow] {
            measured.bare.insert((bare, 1), Sample::default());
        }
        measured
    }

    /// The runs of one configuration.
    pub fn of(&self, query: usize, way: &Way) -> Option<&Variant> {
        let mut all = self.variants.iter();
        all.find(|one| one.query == query && one.way == *way)
    }

    /// The rate of a bare loop; NaN if it was not measured.
    pub fn rate(&self, bare: Bare, threads: usize) -> f64 {
        let own = self.bare.get(&(bare, threads));
        own.map_or(f64::NAN, Sample::median)
    }
}

/// Bytes of all last-level caches of a machine; 0 if unknown.
pub fn cached(machine: &Machine) -> u64 {
    let caches = machine.nodes().iter().flat_map(|node| &node.caches);
    let held = caches.filter(|cache| cache.kind != CacheKind::Instruction && cache.level > 2);
    held.map(|cache| cache.bytes).sum()
}

/// Bytes that the bare loop reads: four times those of the caches.
fn field_bytes(bench: &Bench) -> Result<usize> {
    let wanted = (4 * cached(&bench.live)).clamp(FIELD.0, FIELD.1);
    // Little memory: rather a loop of which a part stays in the cache than none.
    Ok(wanted.min(memory::available()? / 8) as usize)
}

/// Makes all runs. If `desk.stop` ends them, returns what was measured, provided that one round is complete.
///
/// # Errors
///
/// [`Error::Query`] for the first query that fails, or whose executors do not agree; [`Error::Interrupted`] if it is
/// ended before the first round is complete.
pub fn measure(
    bench: &Bench,
    subjects: &[Subject],
    scope: &Scope,
    desk: &mut Desk<'_>,
) -> Result<Measured> {
    let mut measured = Measured::new(scope, subjects.len());
    desk.progress("warming up: each query by each executor, answers compared");
    for subject in subjects {
        measured
            .rows
            .push(agreed(bench, subject, scope, desk.stop)?);
    }
    let field = field(bench, scope)?;
    measured.field = field.bytes();
    let loads = bench.loads();
    let mut groups = scope.turns(&measured);
    let (turns, mut number) = (groups.iter().map(Vec::len).sum::<usize>(), 0);
    let mut before = None;
    for round in 0..scope.repeat {
        desk.progress(&format!(
            "round {} of {}: {turns} runs of {} configurations and bare loops in turn",
            round + 1,
            scope.repeat,
            measured.variants.len()
        ));
        shuffle(&mut groups, &mut number);
        groups
            .iter_mut()
            .for_each(|group| shuffle(group, &mut number));
        for turn in groups.iter().flatten() {
            let state = scope.state(*turn, &measured);
            let mut done = if desk.stop.load(Ordering::Relaxed) {
                Err(Error::Interrupted)
            } else {
                Ok(())
            };
            // Something else has run: once for nothing, so that all are hot alike.
            if let (Ok(()), Some((query, way))) = (&done, state)
                && before != Some((query, way.threads))
            {
                done = bench.run(&subjects[query], &way, None).map(|_| ());
            }
            before = state.map(|(query, way)| (query, way.threads));
            done = done.and_then(|()| measured.turn(*turn, bench, subjects, scope, &field));
            match done {
                Err(Error::Interrupted) if round > 0 => {
                    measured.ended = true;
                    measured.loads = bench.loads() - loads;
                    return Ok(measured);
                }
                other => other?,
            }
        }
        measured.rounds += 1;
    }
    measured.loads = bench.loads() - loads;
    Ok(measured)
}

/// The memory that bare loops read.
fn field(bench: &Bench, scope: &Scope) -> Result<Field> {
    let bytes = match scope.field {
        Some(bytes) => {
            let most = memory::available()? / 2;
            if bytes as u64 > most {
                let (wanted, most) = (bytes >> 20, most >> 20);
                let why = format!(
                    "--bare {wanted} is more than half of the free memory; take {most} at most"
                );
                return Err(Error::Given { why });
            }
            bytes
        }
        None => field_bytes(bench)?,
    };
    Ok(Field::new(bytes, bench.workers(bench.most())))
}

/// Has each executor answer the query twice, so that it is hot; returns the number of rows.
fn agreed(bench: &Bench, subject: &Subject, scope: &Scope, stop: &AtomicBool) -> Result<usize> {
    let mut first: Option<Ran> = None;
    for executor in scope.executors.iter().chain(&scope.executors) {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let ran = bench.run(subject, &scope.usual(*executor), None)?;
        let first = first.get_or_insert_with(|| ran.clone());
        if !alike(&first.rows, &ran.rows) {
            return Err(Error::Query {
                query: subject.name.clone(),
                why: format!(
                    "{} answers {} rows, and {} answers others: that is an error of the engine, please report it",
                    name(scope.executors[0]),
                    first.rows.len(),
                    name(*executor)
                ),
            });
        }
    }
    Ok(first.map_or(0, |ran| ran.rows.len()))
}

/// Whether two answers agree, up to rounding: sums of floats depend on the order of addition.
fn alike(one: &[String], other: &[String]) -> bool {
    let near = |(a, b): (&str, &str)| match (a.parse::<f64>(), b.parse::<f64>()) {
        _ if a == b => true,
        (Ok(a), Ok(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => false,
    };
    let row = |(a, b): (&String, &String)| {
        let (a, b) = (a.split('|'), b.split('|'));
        a.clone().count() == b.clone().count() && a.zip(b).all(near)
    };
    one.len() == other.len() && one.iter().zip(other).all(row)
}

impl Measured {
    fn turn(
        &mut self,
        turn: Turn,
        bench: &Bench,
        subjects: &[Subject],
        scope: &Scope,
        field: &Field,
    ) -> Result<()> {
        match turn {
            Turn::Timed(at) => {
                let one = &mut self.variants[at];
                // What counts blocks takes no time; fused execution has none to count.
                let counts = one.way.executor != Executor::Fused;
                let profile = counts.then(|| Arc::new(ProfileCollector::default()));
                let ran = bench.run(&subjects[one.query], &one.way, profile.clone())?;
                one.blocks = profile.map(|profile| {
                    let records = profile.take();
                    let made = records.iter().map(|record| record.blocks_made).sum();
                    (
                        made,
                        records.iter().map(|record| record.blocks_reused).sum(),
                    )
                });
                one.seconds.push(ran.seconds);
                one.faults.push(ran.faults as f64);
                one.bytes = ran.bytes.iter().flatten().sum();
            }
            Turn::Bare(bare, threads) => {
                let rate = bare.rate(field, bench.workers(threads));
                self.bare.entry((bare, threads)).or_default().push(rate);
            }
            Turn::Operators(query) => {
                let way = Way {
                    threads: 1,
                    ..scope.usual(Executor::Fused)
                };
                let seen = seen(bench, &subjects[query], &way, true)?;
                self.operators[query].push(seen);
            }
            Turn::Waits(query, at) => {
                let (executor, all) = &mut self.waits[query][at];
                // Measuring what fused operators do would change what threads wait for.
                let noted = *executor != Executor::Fused;
                let way = scope.usual(*executor);
                all.push(seen(bench, &subjects[query], &way, noted)?);
            }
            Turn::Plan(query, at) => {
                let way = Way {
                    plan: PLANS[at].1,
                    ..scope.usual(Executor::Fused)
                };
                let seen = seen(bench, &subjects[query], &way, false)?;
                self.plans[query][at].1.push(seen);
            }
        }
        Ok(())
    }

    /// Runs each query once by each executor, and notes what each worker does.
    ///
    /// # Errors
    ///
    /// Those of [`Bench::run`].
    pub fn lines(&mut self, bench: &Bench, subjects: &[Subject], scope: &Scope) -> Result<()> {
        for subject in subjects {
            let mut own = Vec::with_capacity(scope.executors.len());
            for executor in &scope.executors {
                let (way, line) = (scope.usual(*executor), Arc::new(TimeLine::default()));
                bench.run(subject, &way, None)?;
                bench.noted(subject, &way, None, Some(line.clone()))?;
                own.push((*executor, line.take()));
            }
            self.lines.push(own);
        }
        Ok(())
    }

    /// Measures the peak memory of a process that only runs the query once. If the program fails, the figure is
    /// unknown, which is no error.
    pub fn processes(
        &mut self,
        scope: &Scope,
        store: &std::path::Path,
        texts: &[String],
        desk: &mut Desk<'_>,
    ) {
        let Some(program) = desk.database.clone() else {
            return;
        };
        let own = scope.executors.iter().filter(|e| **e != Executor::Fused);
        let mut all: Vec<(usize, Executor, bool, Sample)> = Vec::new();
        for query in 0..texts.len() {
            for executor in own.clone() {
                let both = [true, false].map(|reuse| (query, *executor, reuse, Sample::default()));
                all.extend(both);
            }
        }
        if all.is_empty() {
            return;
        }
        desk.progress("memory of processes that run a query once, blocks used again or not");
        let threads = scope.threads.last().copied().unwrap_or(1).to_string();
        for _ in 0..MEMORY_RUNS {
            for (query, executor, reuse, peaks) in &mut all {
                if desk.stop.load(Ordering::Relaxed) {
                    self.ended = true;
                    return;
                }
                let mut command = Command::new(&program);
                command.arg("laq").arg(store).arg(&texts[*query]);
                let reuse = if *reuse { "on" } else { "off" };
                let with = ["--executor", name(*executor), "--reuse", reuse];
                command.args(with).args(["--threads", &threads]);
                match peak(&mut command) {
                    Ok(bytes) => peaks.push(bytes as f64),
                    Err(error) => {
                        desk.progress(&format!("memory is not known: {error}"));
                        return;
                    }
                }
            }
        }
        self.memory = all;
    }
}

fn seen(bench: &Bench, subject: &Subject, way: &Way, noted: bool) -> Result<Seen> {
    let profile = noted.then(|| Arc::new(ProfileCollector::default()));
    let ran = bench.run(subject, way, profile.clone())?;
    Ok(Seen {
        seconds: ran.seconds,
        records: profile.map_or(vec![], |profile| profile.take()),
        spent: ran.spent,
        bytes: ran.bytes,
    })
}

/// The run of the median time, whose figures belong together.
pub fn middle(all: &[Seen]) -> Option<&Seen> {
    let mut order: Vec<&Seen> = all.iter().collect();
    order.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    order.get(order.len().max(1).div_ceil(2) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_may_differ_in_the_last_digits_of_floats_only() {
        let rows = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let one = rows(&["a|0.30000000000000004", "b|7"]);
        assert!(alike(&one, &rows(&["a|0.3", "b|7"])));
        for other in [
            &["a|0.3", "b|8"][..],
            &["a|0.3"],
            &["c|0.3", "b|7"],
            &["a|0.3|", "b|7"],
        ] {
            assert!(!alike(&one, &rows(other)), "{other:?}");
        }
    }

    #[test]
    fn every_configuration_has_a_turn_and_reuse_is_compared_where_there_are_blocks() {
        let scope = Scope {
            executors: vec![Executor::Fused, Executor::Staged],
            blocks: vec![2048, 4096],
            threads: vec![2, 4],
            repeat: 5,
            field: None,
        };
        let measured = Measured::new(&scope, 2);
        // For each query: 4 of fused and of staged, 2 of reuse, 4 of allocation, 3 of threads for a block; operators, 2 waits, 3
        // plans. Bare loops: two with 2 and 4 threads each, four with one.
        assert_eq!(measured.variants.len(), 34);
        let mut groups = scope.turns(&measured);
        let sizes = |groups: &[Vec<Turn>]| groups.iter().map(Vec::len).collect::<Vec<_>>();
        let query = [2, 2, 2, 2, 2, 4, 3];
        let rest = [1, 2, 3, 1, 2, 3, 8];
        assert_eq!(sizes(&groups), [query, query, rest].concat());
        let (mut number, before) = (0, format!("{groups:?}"));
        shuffle(&mut groups, &mut number);
        assert_ne!(format!("{groups:?}"), before);
        groups.sort_by_key(Vec::len);
        assert_eq!(groups.concat().len(), 34 + 2 * 6 + 8);
        let off: Vec<_> = measured
            .variants
            .iter()
            .filter(|one| !one.way.reuse)
            .collect();
        assert!(off.len() == 2 && off.iter().all(|one| one.way.executor == Executor::Staged));
        assert!(middle(&[]).is_none());
    }
}
