//! What the runs say together, and whether that is what is asked for.

use governor::Sensor;
use serde::Serialize;

use super::plan::{Variant, Workload};
use super::trial::Trial;
use crate::record::Sample;

/// Throughput that is at least to be had, as a share of the ungoverned.
const THROUGHPUT: f64 = 0.97;

/// Below this mean load fewer core-seconds are asked for.
const LOAD: f64 = 0.6;

/// So many decisions after a load step all cores are to be there.
const PERIODS: usize = 3;

/// The sensor's throughput, as a share of that with the best fixed number of cores.
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

/// A figure that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The workload.
    pub workload: Workload,
    /// The variant.
    pub variant: String,
    /// What is asked for.
    pub asked: String,
    /// What was found, in words.
    pub found: String,
    /// Whether that is enough; `None` where it was not to be judged.
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

/// All that can be judged.
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
        let ratio = one
            .sample(|trial| trial.throughput)
            .ratio(&base.sample(|trial| trial.throughput));
        verdicts.push(verdict(
            format!("throughput at least {THROUGHPUT} of the ungoverned"),
            format!("{:.3}", ratio.median()),
            Some(ratio.median() >= THROUGHPUT),
        ));
        let load = base.sample(|trial| trial.used / trial.allocated).median();
        let cores = one
            .sample(|trial| trial.allocated)
            .ratio(&base.sample(|trial| trial.allocated))
            .median();
        verdicts.push(verdict(
            format!(
                "fewer core-seconds where the mean load is below {:.0} %",
                LOAD * 100.0
            ),
            format!("{cores:.2} of them, load {:.0} %", load * 100.0),
            (load < LOAD).then_some(cores < 1.0),
        ));
        let (same, made) = one.runs.iter().fold((0, 0), |(same, made), trial| {
            (same + trial.replayed.unwrap_or(0), made + trial.decisions)
        });
        verdicts.push(verdict(
            "the cores that the net prescribes on the recorded trace".to_owned(),
            format!("{same} of {made} decisions"),
            Some(same == made),
        ));
        if one.variant == Variant::Governed(governor::Mode::Adaptive, Sensor::Load)
            || one.workload == Workload::Step
        {
            let periods: Vec<usize> = one
                .runs
                .iter()
                .flat_map(|trial| reactions(trial, cpus))
                .collect();
            if let Some(most) = periods.iter().max() {
                verdicts.push(verdict(
                    format!("all cores within {PERIODS} periods of a load step"),
                    format!("at most {most}, of {} steps", periods.len()),
                    Some(*most <= PERIODS),
                ));
            }
        }
        if one.workload == Workload::Lock {
            verdicts.extend(best(all, one).map(|share| {
                verdict(
                    format!("throughput at least {BEST} of the best fixed number of cores"),
                    format!("{share:.3} in the second half"),
                    Some(share >= BEST),
                )
            }));
        }
    }
    verdicts
}

/// For each load step that needs all cores: decisions until they were there.
fn reactions(trial: &Trial, cpus: usize) -> Vec<usize> {
    let mut all = Vec::new();
    for two in trial.phases.windows(2) {
        let step = !two[0].phase.fills(cpus) && two[1].phase.fills(cpus);
        if !step {
            continue;
        }
        let within = |time: f64| time >= two[1].from && time < two[1].to;
        let mut count = 0;
        let after = trial.moments.iter().filter(|moment| within(moment.time));
        for moment in after {
            count += 1;
            if moment.cores >= cpus {
                break;
            }
        }
        all.push(count);
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
    use governor::{Energy, Mode};

    use super::super::load::Done;
    use super::super::plan::Phase;
    use super::super::trial::{Moment, Told};
    use super::*;

    fn trial(variant: Variant, queries: u64, cores: &[usize]) -> Trial {
        let phases = Workload::Step.phases(2, 1.0);
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
            used: 8.0,
            decisions: cores.len(),
            changes: 0,
            change_seconds: Vec::new(),
            migrations: None,
            node_moves: 0,
            moves: None,
            windows: Vec::new(),
            machine_joules: None,
            switches: None,
            minor_faults: 0,
            energy: Energy {
                cpu_joules: 0.0,
                link_joules: None,
                estimate: true,
            },
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
        assert_eq!(reactions(&trials[1], 2), [2, 1]);
        trials[1].throughput = 50.0;
        trials[3].throughput = 50.0;
        trials[3].replayed = Some(9);
        assert_eq!(
            met(&trials),
            [Some(false), Some(true), Some(false), Some(true)]
        );
        for trial in &mut trials {
            trial.used = 19.0;
        }
        assert_eq!(met(&trials)[1], None, "a load of 95 % is not judged");
    }
}
