//! The results over all runs, and whether they meet the targets.

use governor::Sensor;
use report::Sample;
use serde::Serialize;

use super::plan::{Variant, Workload};
use super::trial::Trial;

/// The least throughput, as a share of that without a governor.
const THROUGHPUT: f64 = 0.97;

/// The mean load below which fewer core-seconds are demanded.
const LOAD: f64 = 0.6;

/// Decisions after a load step by which all cores must have been handed out.
const PERIODS: usize = 3;

/// The least throughput with the throughput sensor, as a share of that with the best fixed number of cores.
const BEST: f64 = 0.9;

/// All runs of a workload under a variant, one per turn.
pub struct Series<'a> {
    /// The workload.
    pub workload: Workload,
    /// The variant.
    pub variant: Variant,
    /// The runs.
    pub runs: Vec<&'a Trial>,
}

/// A target and the figure that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The workload.
    pub workload: Workload,
    /// The variant.
    pub variant: String,
    /// The target.
    pub asked: String,
    /// The figure that was found, as text.
    pub found: String,
    /// Whether the target is met; `None` if it is not judged.
    pub met: Option<bool>,
}

impl Series<'_> {
    /// One number of each run.
    pub fn sample(&self, of: impl Fn(&Trial) -> f64) -> Sample {
        self.runs.iter().map(|trial| of(trial)).collect()
    }
}

/// The runs by workload and variant, in the order they come.
pub fn series(trials: &[Trial]) -> Vec<Series<'_>> {
    let mut all: Vec<Series<'_>> = Vec::new();
    for trial in trials {
        let same =
            |one: &&mut Series<'_>| one.workload == trial.workload && one.variant == trial.variant;
        match all.iter_mut().find(same) {
            Some(one) => one.runs.push(trial),
            None => all.push(Series {
                workload: trial.workload,
                variant: trial.variant,
                runs: vec![trial],
            }),
        }
    }
    all
}

/// All verdicts.
pub fn verdicts(all: &[Series<'_>], cpus: usize) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for one in all.iter().filter(|one| one.variant.governed()) {
        let base = all
            .iter()
            .find(|other| other.workload == one.workload && other.variant == Variant::Ungoverned);
        let Some(base) = base else {
            continue;
        };
        let verdict = |asked: String, found: String, met: Option<bool>| Verdict {
            workload: one.workload,
            variant: one.variant.name(),
            asked,
            found,
            met,
        };
        let bars = [
            throughput(one, base),
            core_seconds(one, base),
            prescribed(one),
        ];
        verdicts.extend(bars.map(|(asked, found, met)| verdict(asked, found, met)));
        if one.variant == Variant::Governed(governor::Mode::Adaptive, Sensor::Load)
            || one.workload == Workload::Step
        {
            let steps = one.runs.iter();
            let steps: Vec<Reaction> = steps.flat_map(|trial| reactions(trial, cpus)).collect();
            if let Some((found, met)) = reacted(&steps) {
                let asked = format!("all cores within {PERIODS} periods of a load step");
                verdicts.push(verdict(asked, found, met));
            }
        }
        if one.workload == Workload::Lock {
            verdicts.extend(best(all, one).map(|share| {
                verdict(
                    format!("throughput at least {BEST} of the best fixed number of cores"),
                    if share.is_finite() {
                        format!("{share:.3} in the second half")
                    } else {
                        "not measured: nothing was done".to_owned()
                    },
                    share.is_finite().then_some(share >= BEST),
                )
            }));
        }
    }
    verdicts
}

/// A target, the figure that was found, and whether it is met; `None` if it cannot be judged.
type Bar = (String, String, Option<bool>);

/// Throughput, relative to runs without a governor.
fn throughput(one: &Series<'_>, base: &Series<'_>) -> Bar {
    let ratio = one
        .sample(|trial| trial.throughput)
        .ratio(&base.sample(|trial| trial.throughput));
    let ratio = ratio.median();
    (
        format!("throughput at least {THROUGHPUT} of the ungoverned"),
        if ratio.is_finite() {
            format!("{ratio:.3}")
        } else {
            "not measured: nothing was answered".to_owned()
        },
        ratio.is_finite().then_some(ratio >= THROUGHPUT),
    )
}

/// Core-seconds, relative to runs without a governor.
fn core_seconds(one: &Series<'_>, base: &Series<'_>) -> Bar {
    let load = base
        .sample(|trial| trial.used_seconds() / trial.allocated)
        .median();
    let cores = one
        .sample(|trial| trial.allocated)
        .ratio(&base.sample(|trial| trial.allocated))
        .median();
    (
        format!(
            "fewer core-seconds where the mean load is below {:.0} %",
            LOAD * 100.0
        ),
        if load.is_finite() {
            format!("{cores:.2} of them, load {:.0} %", load * 100.0)
        } else {
            format!("{cores:.2} of them, load not measured")
        },
        (load < LOAD).then_some(cores < 1.0),
    )
}

/// Decisions that a replay of the recorded trace repeats.
fn prescribed(one: &Series<'_>) -> Bar {
    let (same, made) = one.runs.iter().fold((0, 0), |(same, made), trial| {
        (same + trial.replayed.unwrap_or(0), made + trial.decisions)
    });
    (
        "the cores that the net prescribes on the recorded trace".to_owned(),
        format!("{same} of {made} decisions"),
        (made > 0).then_some(same == made),
    )
}

/// The outcome of a load step that needs all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// All cores were handed out at this decision, counted from 1.
    Within(usize),
    /// They were not handed out by any of this many decisions, which were all until the load ended.
    Never(usize),
    /// They were handed out before, so that there was nothing to do.
    Already,
}

/// The outcome of all steps, as text, and whether the target is met; `None` without a step.
fn reacted(steps: &[Reaction]) -> Option<(String, Option<bool>)> {
    if steps.is_empty() {
        return None;
    }
    let (mut most, mut never, mut failed) = (0, 0, false);
    let (mut unknown, mut already) = (false, 0);
    for step in steps {
        match *step {
            Reaction::Within(periods) => {
                most = most.max(periods);
                failed |= periods > PERIODS;
            }
            Reaction::Never(seen) => {
                never += 1;
                failed |= seen >= PERIODS;
                // A phase of fewer decisions than are asked for says nothing.
                unknown |= seen < PERIODS;
            }
            Reaction::Already => already += 1,
        }
    }
    let all = steps.len();
    let mut found = match (never, all - already) {
        (0, 0) => format!("nothing to be given in {all} steps"),
        (0, given) => format!("at most {most}, of {given} steps"),
        _ => format!("never, in {never} of {all} steps"),
    };
    if already > 0 {
        found += &format!("; {already} found all cores there already");
    }
    let judged = failed || (!unknown && already < all);
    Some((found, judged.then_some(!failed)))
}

/// For each load step that needs all cores: decisions until they were handed out.
fn reactions(trial: &Trial, cpus: usize) -> Vec<Reaction> {
    let mut all = Vec::new();
    for two in trial.phases.windows(2) {
        let step = !two[0].phase.fills(cpus) && two[1].phase.fills(cpus);
        if !step {
            continue;
        }
        let within = |time: f64| time >= two[1].from && time < two[1].to;
        let before = trial
            .moments
            .iter()
            .rfind(|moment| moment.time < two[1].from);
        if before.is_some_and(|moment| moment.cores >= cpus) {
            all.push(Reaction::Already);
            continue;
        }
        let mut after = trial.moments.iter().filter(|moment| within(moment.time));
        let count = after.clone().count();
        let there = after.position(|moment| moment.cores >= cpus);
        all.push(there.map_or(Reaction::Never(count), |at| Reaction::Within(at + 1)));
    }
    all
}

/// The throughput of the sensor's run, once it has found its number, over that with the best number
/// of cores.
fn best(all: &[Series<'_>], one: &Series<'_>) -> Option<f64> {
    let fixed = all.iter().filter(|other| {
        other.workload == one.workload && matches!(other.variant, Variant::Fixed(_))
    });
    let late = |trial: &Trial| -> f64 {
        let half = trial.phases.len() / 2;
        let (queries, seconds) = trial.phases[half..]
            .iter()
            .fold((0, 0.0), |(queries, seconds), told| {
                (queries + told.done.queries, seconds + told.to - told.from)
            });
        queries as f64 / seconds
    };
    let best = fixed.map(|other| other.sample(late).median());
    let best = best.max_by(f64::total_cmp)?;
    Some(one.sample(late).median() / best)
}

#[cfg(test)]
pub(super) mod tests {
    use governor::Mode;

    use super::super::load::Done;
    use super::super::plan::Phase;
    use super::super::trial::{Moment, Told};
    use super::*;

    fn trial(variant: Variant, queries: u64, cores: &[usize]) -> Trial {
        let phases = Workload::Step.phases(2, 1.0, &[], 0);
        let mut from = 0.0;
        let told = |phase: &Phase| {
            let begun = from;
            from += phase.seconds;
            Told {
                phase: *phase,
                from: begun,
                to: from,
                done: Done {
                    queries,
                    ..Done::default()
                },
            }
        };
        let moment = |(at, cores): (usize, &usize)| Moment {
            time: at as f64,
            cores: *cores,
            busy: None,
            waiting: None,
            place: "Stable".to_owned(),
            memory: Default::default(),
            change: None,
        };
        Trial {
            workload: Workload::Step,
            variant,
            query_seconds: 0.001,
            seconds: 10.0,
            throughput: queries as f64,
            phases: phases.iter().map(told).collect(),
            allocated: cores.iter().sum::<usize>() as f64,
            used: Some(8.0),
            decisions: cores.len(),
            changes: 0,
            change_seconds: Vec::new(),
            migrations: None,
            node_moves: None,
            moves: None,
            windows: Vec::new(),
            machine_joules: None,
            switches: None,
            minor_faults: 0,
            energy: None,
            replayed: Some(cores.len()),
            moments: cores.iter().enumerate().map(moment).collect(),
            lives: Vec::new(),
        }
    }

    /// A run of the workload step.
    pub(in super::super) fn step() -> Trial {
        trial(Variant::Ungoverned, 1, &[2; 10])
    }

    #[test]
    fn each_bar_is_judged() {
        let governed = Variant::Governed(Mode::Dense, Sensor::Load);
        let all = [2; 10];
        let some = [1, 1, 1, 2, 1, 1, 2, 2, 1, 1];
        let mut trials = vec![
            trial(Variant::Ungoverned, 100, &all),
            trial(governed, 98, &some),
            trial(Variant::Ungoverned, 200, &all),
            trial(governed, 196, &some),
        ];
        let met = |trials: &[Trial]| -> Vec<Option<bool>> {
            let verdicts = verdicts(&series(trials), 2);
            verdicts.iter().map(|verdict| verdict.met).collect()
        };
        assert_eq!(met(&trials), [Some(true); 4]);
        let within = [2, 1].map(Reaction::Within);
        assert_eq!(reactions(&trials[1], 2), within);
        trials[1].throughput = 50.0;
        trials[3].throughput = 50.0;
        trials[3].replayed = Some(9);
        assert_eq!(
            met(&trials),
            [Some(false), Some(true), Some(false), Some(true)]
        );
        for trial in &mut trials {
            trial.used = Some(19.0);
        }
        assert_eq!(met(&trials)[1], None, "a load of 95 % is not judged");
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let governed = Variant::Governed(Mode::Dense, Sensor::Load);
        let mut trials = vec![
            trial(Variant::Ungoverned, 0, &[2; 10]),
            trial(governed, 0, &[]),
        ];
        for trial in &mut trials {
            trial.used = None;
        }
        let verdicts = verdicts(&series(&trials), 2);
        let not_judged = verdicts.iter().take(3);
        for verdict in not_judged {
            assert_eq!(verdict.met, None, "{verdict:?}");
            assert!(!verdict.found.contains("NaN"), "{verdict:?}");
        }
        assert!(verdicts[1].found.contains("load not measured"));
    }

    #[test]
    fn cores_that_never_came_are_not_taken_for_soon() {
        let (soon, never) = (Reaction::Within(2), Reaction::Never(40));
        assert_eq!(reacted(&[]), None);
        assert_eq!(reacted(&[soon, soon]).unwrap().1, Some(true));
        assert_eq!(reacted(&[Reaction::Within(4)]).unwrap().1, Some(false));
        let (found, met) = reacted(&[soon, never]).unwrap();
        assert_eq!(
            (found.as_str(), met),
            ("never, in 1 of 2 steps", Some(false))
        );
        // The phase was over after two decisions: three were asked for.
        let short = Reaction::Never(2);
        assert_eq!(reacted(&[soon, short]).unwrap().1, None);
        assert_eq!(
            reacted(&[Reaction::Within(9), short]).unwrap().1,
            Some(false)
        );
        // Cores that were never taken could not be given back.
        let (found, met) = reacted(&[Reaction::Already, soon]).unwrap();
        assert_eq!(met, Some(true));
        assert_eq!(
            found,
            "at most 2, of 1 steps; 1 found all cores there already"
        );
        assert_eq!(reacted(&[Reaction::Already; 2]).unwrap().1, None);
        let governed = Variant::Governed(Mode::Dense, Sensor::Load);
        let kept = trial(governed, 1, &[2; 10]);
        assert_eq!(reactions(&kept, 2), [Reaction::Already; 2]);
        let run = trial(governed, 1, &[1; 10]);
        let seen = reactions(&run, 2);
        assert!(
            seen.iter().all(|step| matches!(step, Reaction::Never(_))),
            "{seen:?}"
        );
    }
}
