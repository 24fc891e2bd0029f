//! Records a run while it happens.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use counters::Watch;
use emulator::roi;
use governor::{BUSY, Decision, Trace, WAITING, core_seconds};
use governor_live::Live;
use topology::Machine;

use super::plan::{Variant, Workload};
use super::trial::{Life, Moment, Setting, Trial};
use crate::error::{Error, Result};

/// The longest sleep, after which an interrupt is noticed.
const NAP: Duration = Duration::from_millis(50);

/// What is recorded while it runs.
#[derive(Default)]
pub(super) struct Recorder {
    decisions: Vec<Decision>,
    lives: Vec<Life>,
    /// The last recorded stretch of each thread, and its processor time by then.
    last: BTreeMap<u32, (usize, f64)>,
    node_moves: u64,
    check: Option<Instant>,
    look: Option<Instant>,
    /// Time between two looks.
    pause: Duration,
    /// Time between two decisions, if the governor does not set it.
    period: Option<Duration>,
    /// When threads were last looked at, in seconds.
    looked: f64,
    /// The length of regions.
    window: Option<Duration>,
    /// When each region began, in seconds.
    pub(super) windows: Vec<f64>,
    /// When the present region began.
    marked: Duration,
}

impl Recorder {
    pub(super) fn new(setting: &Setting<'_>) -> Recorder {
        Recorder {
            pause: setting.look,
            period: setting.emulated.then_some(setting.period),
            window: setting.window,
            ..Recorder::default()
        }
    }

    /// Decides and looks until the time since `zero` is over.
    pub(super) fn follow(
        &mut self,
        live: &mut Live,
        watch: &mut Watch,
        (zero, until): (Instant, Duration),
        stop: &AtomicBool,
    ) -> Result<()> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let now = Instant::now();
            if now - zero >= until {
                return Ok(());
            }
            if self.check.is_none_or(|due| now >= due) {
                for mut decision in live.check()? {
                    // The clock of the run.
                    decision.time = (now - zero).as_secs_f64();
                    self.decisions.push(decision);
                }
                self.check = Some(match self.period {
                    Some(period) => Instant::now().max(now + period),
                    None => Instant::now() + live.pause(now),
                });
            }
            let now = Instant::now();
            if self.look.is_none_or(|due| now >= due) {
                self.see(watch, (now - zero).as_secs_f64());
                self.look = Some(now + self.pause);
            }
            let next = self.window.map(|window| zero + self.marked + window);
            if next.is_some_and(|next| next <= Instant::now()) {
                self.mark(zero.elapsed());
            }
            let due = [self.check, self.look, next].into_iter().flatten().min();
            let due = due.unwrap_or(now).min(zero + until);
            std::thread::sleep(due.saturating_duration_since(Instant::now()).min(NAP));
        }
    }

    /// Begins a region of counted accesses, and ends the one before.
    pub(super) fn mark(&mut self, at: Duration) {
        roi::start();
        self.windows.push(at.as_secs_f64());
        self.marked = at;
    }

    /// Records the cpus of threads that have run since the last look. Others are on none.
    fn see(&mut self, watch: &mut Watch, time: f64) {
        // What has ended is seen by the governor.
        let Ok(sample) = watch.look() else {
            return;
        };
        let looked = std::mem::replace(&mut self.looked, time);
        let activities = sample.processes.iter().map(|seen| &seen.activity);
        for thread in activities.flat_map(|activity| &activity.threads) {
            let (Some(cpu), Some(node)) = (thread.cpu, thread.node) else {
                continue;
            };
            let before = self.last.get(&thread.thread).copied();
            if before.is_some_and(|(_, seconds)| seconds == thread.seconds) {
                continue;
            }
            let from = looked;
            let at = match before.map(|(at, _)| (at, self.lives[at])) {
                Some((at, life)) if life.cpu == cpu && life.to >= from => {
                    self.lives[at].to = time;
                    at
                }
                other => {
                    let moved = other.is_some_and(|(_, life)| life.node != node);
                    self.node_moves += u64::from(moved);
                    let (thread, from) =
                        (thread.thread, other.map_or(from, |(_, l)| from.max(l.to)));
                    let to = time;
                    self.lives.push(Life {
                        thread,
                        from,
                        to,
                        cpu,
                        node,
                    });
                    self.lives.len() - 1
                }
            };
            self.last.insert(thread.thread, (at, thread.seconds));
        }
    }

    pub(super) fn finish(
        self,
        variant: Variant,
        setting: &Setting<'_>,
        seconds: f64,
    ) -> Result<Trial> {
        let ungoverned = variant.leaves_alone();
        let moments = self
            .decisions
            .iter()
            .map(|decision| moment(decision, ungoverned.then_some(setting.cpus)))
            .collect();
        let allocated = if ungoverned {
            setting.cpus as f64 * seconds
        } else {
            core_seconds(&self.decisions, seconds)
        };
        let changed = |decision: &&Decision| decision.changed();
        let changes: Vec<&Decision> = if ungoverned {
            Vec::new()
        } else {
            self.decisions.iter().filter(changed).collect()
        };
        let used = used(&self.decisions);
        Ok(Trial {
            workload: Workload::Clients,
            variant,
            query_seconds: 0.0,
            seconds,
            throughput: 0.0,
            phases: Vec::new(),
            allocated,
            used,
            decisions: if ungoverned { 0 } else { self.decisions.len() },
            changes: changes.len(),
            change_seconds: changes.iter().map(|one| one.decision_seconds).collect(),
            migrations: None,
            node_moves: (!self.lives.is_empty()).then_some(self.node_moves),
            switches: None,
            minor_faults: 0,
            energy: None,
            machine_joules: None,
            moves: None,
            windows: self.windows,
            replayed: if ungoverned {
                None
            } else {
                Some(replayed(self.decisions, variant, setting.machine)?)
            },
            moments,
            lives: self.lives,
        })
    }
}

fn moment(decision: &Decision, all: Option<usize>) -> Moment {
    let value = |name: &str| {
        decision
            .readings
            .get(name)
            .and_then(|measure| measure.value)
    };
    let memory = decision.readings.iter().filter_map(|(name, measure)| {
        let node = name.strip_prefix(governor::RESIDENCY)?.parse().ok()?;
        Some((node, measure.value?))
    });
    let changed = all.is_none() && decision.changed();
    Moment {
        time: decision.time,
        cores: all.unwrap_or(decision.cpus.len()),
        busy: value(BUSY),
        waiting: value(WAITING),
        place: decision.place.clone(),
        memory: memory.collect(),
        change: changed.then(|| format!("{}: {}", decision.path(), decision.why)),
    }
}

/// Core-seconds used: busy cpus times the time they were measured over. `None` if a reading is missing, or if there
/// are no two decisions to read between.
fn used(decisions: &[Decision]) -> Option<f64> {
    let busy = |decision: &Decision| decision.readings.get(BUSY).and_then(|m| m.value);
    if decisions.len() < 2 {
        return None;
    }
    decisions
        .windows(2)
        .map(|two| Some(busy(&two[1])? * (two[1].time - two[0].time)))
        .sum()
}

/// Replays the run from its trace, written to a file and read again; returns how many decisions come out the same.
fn replayed(decisions: Vec<Decision>, variant: Variant, machine: &Machine) -> Result<usize> {
    let mut file = Vec::new();
    let trace = Trace {
        head: None,
        decisions,
    };
    let written = trace.write(&mut file);
    written.map_err(|source| Error::Output { source })?;
    let read = Trace::read(&file[..])?;
    let net = governor::elastic_net()?;
    let again = governor::replay(&read, variant.policy(), machine, &net)?;
    let pairs = again.iter().zip(&trace.decisions);
    Ok(pairs.filter(|(now, then)| now.cpus == then.cpus).count())
}
