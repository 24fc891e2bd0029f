//! The placement strategies of the text on a machine, and what each makes of a case.

use governor::{BUSY, Governor, Measure, Policy, Readings, elastic_net};
use placement::arrays::{Goal, schedule};
use placement::{CpuSet, Placement, Site, Strategy, Threads, draws};
use report::Sample;
use serde::Serialize;
use topology::Machine;

use super::traffic::{Counted, Model, Task};
use super::work::{Case, System};
use crate::error::Result;

/// The names of what is not a strategy of the text.
pub(super) const RANDOM: &str = "random, best";
pub(super) const SCHEDULER: &str = "scheduler";
/// The baseline.
pub(super) const OS: &str = "os";

/// Of what the system needs, what must be gained for shares of it to say something.
const LEAST: f64 = 0.05;

/// Which machine, and how thoroughly.
pub(super) struct Setting {
    pub site: Site,
    pub threads: usize,
    /// Random mappings of which the best is shown.
    pub draws: usize,
    /// Counts of what the system may move, with a seed each.
    pub seeds: u64,
}

/// What a case comes to under a variant.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub system: System,
    pub case: String,
    pub variant: String,
    /// The run with the median of weighted bytes.
    pub counted: Counted,
    /// Standard deviation over mean of weighted bytes, over the seeds; `None` where nothing is left to chance.
    pub variation: Option<f64>,
    /// The scheduler's reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

impl Setting {
    pub(super) fn new(machine: &Machine, threads: usize, quick: bool) -> Setting {
        Setting {
            site: Site::new(machine),
            threads,
            draws: if quick { 5 } else { 20 },
            seeds: if quick { 3 } else { 10 },
        }
    }

    /// The case under every strategy of the text, the best random mapping, and the scheduler.
    ///
    /// # Errors
    /// Those of placing.
    pub(super) fn compare(&self, system: System, case: &Case) -> Result<Vec<Row>> {
        let model = Model::of(&self.site);
        let sharing = system.sharing(self.threads);
        let redistributes = system.redistributes();
        let task = Task::grouped(
            sharing,
            self.threads,
            &case.chunks,
            case.keep,
            redistributes,
        )?;
        let groups = Threads::with_groups(sharing.groups(self.threads)?)?;
        let row = |variant: &str, counted, variation| Row {
            system,
            case: case.name.clone(),
            variant: variant.to_owned(),
            counted,
            variation,
            why: Vec::new(),
        };
        let mut rows = Vec::new();
        for (name, placement) in self.named(&groups, task.busy())? {
            let (counted, variation) = self.median(&model, &placement, &task);
            rows.push(row(&name, counted, variation));
        }
        let random = draws(&self.site, &groups, 1, self.draws)?;
        let random = random
            .iter()
            .map(|placement| model.count(placement, &task, 1));
        let best = random.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        rows.extend(best.map(|best| row(RANDOM, best, None)));
        let schedule = schedule(&self.site, self.threads, &case.chunks, Goal::Shortest)?;
        let own = Task::scheduled(&schedule, &case.chunks, case.keep);
        let counted = model.count(schedule.placement(), &own, 1);
        rows.push(Row {
            why: schedule.why().to_vec(),
            ..row(SCHEDULER, counted, None)
        });
        Ok(rows)
    }

    /// The strategies with a name. One whose groups are too large for a cache is left out.
    pub(super) fn named(&self, groups: &Threads, busy: usize) -> Result<Vec<(String, Placement)>> {
        let mut all = Vec::new();
        for strategy in [
            Strategy::Os,
            Strategy::Compact,
            Strategy::Sparse,
            Strategy::Shared,
        ] {
            match strategy.place(&self.site, groups) {
                Ok(placement) => all.push((strategy.to_string(), placement)),
                Err(placement::Error::GroupTooLarge { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let cpus = petri(self.site.machine(), busy)?;
        let sets = vec![cpus; self.threads];
        all.push(("petri".to_owned(), Placement::explicit(&self.site, sets)?));
        Ok(all)
    }

    /// The median by weighted bytes, where something is left to chance.
    pub(super) fn median(
        &self,
        model: &Model,
        placement: &Placement,
        task: &Task,
    ) -> (Counted, Option<f64>) {
        let fixed = placement.sets().iter().all(|set| set.len() == 1);
        let seeds = if fixed { 1 } else { self.seeds };
        let mut all: Vec<Counted> = (1..=seeds)
            .map(|seed| model.count(placement, task, seed))
            .collect();
        let weighted: Sample = all.iter().map(|counted| counted.weighted).collect();
        all.sort_by(|a, b| a.weighted.total_cmp(&b.weighted));
        let variation = (seeds > 1).then(|| weighted.variation());
        (all[(all.len() - 1) / 2], variation)
    }
}

/// The cpus that the net of the text hands out where so many threads are always busy, once it changes nothing more.
fn petri(machine: &Machine, busy: usize) -> Result<CpuSet> {
    let mut governor = Governor::new(Policy::plain(), machine, &elastic_net()?)?;
    let all = Site::new(machine).allowed();
    let steps = 4 * all.len() + 4;
    for step in 0..steps {
        let held = governor.cpus().len();
        let busy = Measure::new(busy.min(held.max(1)) as f64, "cpus", "model");
        let readings = Readings::new(step as f64, all.clone()).with(BUSY, busy);
        governor.step(&readings)?;
        if step > 0 && governor.cpus().len() == held {
            break;
        }
    }
    Ok(governor.cpus().clone())
}

/// The share of the gain that could be had which the strategies with a name have, in the mean: from the system's own to
/// the best. One that loses has none of it; `None` where next to nothing can be gained.
pub(super) fn reached(rows: &[&Row], best: f64, figure: impl Fn(&Counted) -> f64) -> Option<f64> {
    let os = rows.iter().find(|row| row.variant == OS)?;
    let gain = figure(&os.counted) - best;
    let named = ["compact", "sparse", "shared", "petri"];
    let own = rows
        .iter()
        .filter(|row| named.contains(&row.variant.as_str()));
    let shares: Vec<f64> = own
        .map(|row| ((figure(&os.counted) - figure(&row.counted)) / gain).max(0.0))
        .collect();
    let least = LEAST * figure(&os.counted);
    (gain > least && !shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_net_gives_busy_threads_their_cores() {
        let machine = Machine::parse("xeon-2630").unwrap();
        assert_eq!(petri(&machine, 12).unwrap().len(), 12);
        let few = petri(&machine, 4).unwrap();
        assert!((4..=8).contains(&few.len()), "{few}");
        let nodes: Vec<_> = few.iter().map(|cpu| machine.node_of_cpu(cpu)).collect();
        assert!(nodes.contains(&Some(0)));
    }

    #[test]
    fn every_strategy_of_the_text_is_there_and_the_scheduler_is_no_worse() {
        let machine = Machine::parse("xeon-2630").unwrap();
        let setting = Setting::new(&machine, 12, true);
        for system in [System::Groups, System::Instances] {
            let case = super::super::work::small(100, 2);
            let rows = setting.compare(system, &case).unwrap();
            let names: Vec<&str> = rows.iter().map(|row| row.variant.as_str()).collect();
            let expected = [
                OS, "compact", "sparse", "shared", "petri", RANDOM, SCHEDULER,
            ];
            assert_eq!(names, expected);
            let bytes = |row: &Row| row.counted.local + row.counted.remote;
            assert!(
                rows.iter()
                    .all(|row| bytes(row) > 1e9 && row.counted.asked >= bytes(row))
            );
            let scheduler = rows.last().unwrap();
            let least = rows
                .iter()
                .map(|row| row.counted.busiest)
                .fold(f64::INFINITY, f64::min);
            assert!(scheduler.counted.busiest <= 1.05 * least, "{rows:?}");
            assert!(!scheduler.why.is_empty() && rows[0].variation.is_some());
        }
    }
}
