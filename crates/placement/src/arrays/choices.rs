//! Speed against energy: schedules of fewer and more threads, by a model of the machine.

use super::division::Chunk;
use super::goal::Goal;
use super::schedule::schedule;
use crate::cost::{CYCLES, Cost, Model, Work, front};
use crate::error::Result;
use crate::site::Site;

/// A schedule that no other one is better than in both time and energy.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Its threads.
    pub threads: usize,
    /// What it has as little of as possible.
    pub goal: Goal,
    /// What it takes.
    pub cost: Cost,
}

/// The Pareto front of the [schedules](schedule) of up to `threads` threads, the quickest first: one thread, and twice as many each time, for
/// both goals, their time and energy by the [model](crate::cost) of the machine.
///
/// # Errors
/// As [`schedule`].
pub fn choices(site: &Site, threads: usize, chunks: &[Chunk]) -> Result<Vec<Choice>> {
    let model = Model::new(site.machine());
    let doubled = std::iter::successors(Some(1), |count| Some(count * 2));
    let mut counts: Vec<usize> = doubled.take_while(|count| *count < threads).collect();
    counts.push(threads);
    let mut all: Vec<Choice> = Vec::new();
    for threads in counts {
        for goal in [Goal::Shortest, Goal::Local] {
            let schedule = schedule(site, threads, chunks, goal)?;
            let sets = schedule.placement().sets().iter();
            let works = sets.zip(schedule.division().threads());
            let works = works.map(|(cpus, pieces)| {
                let core = cpus.iter().next().and_then(|cpu| site.core_of(cpu));
                let work = Work::new(core.map_or(0, |core| site.slots()[core].node));
                pieces.iter().fold(work, |work, piece| {
                    let bytes = piece.bytes() as f64;
                    work.memory(chunks[piece.chunk].home, bytes)
                        .cycles(CYCLES * bytes)
                })
            });
            let works: Vec<Work> = works.collect();
            all.push(Choice {
                threads: schedule.threads(),
                goal,
                cost: model.cost(&works),
            });
        }
    }
    let costs: Vec<Cost> = all.iter().map(|choice| choice.cost).collect();
    Ok(front(&costs).into_iter().map(|at| all[at]).collect())
}

#[cfg(test)]
mod tests {
    use topology::Machine;

    use super::*;

    #[test]
    fn the_front_falls_in_energy_as_it_rises_in_time() {
        let site = Site::new(&Machine::parse("xeon-4114").unwrap());
        let chunk = |at: usize| Chunk {
            home: at % 2,
            bytes: 64 << 20,
            slabs: 512,
        };
        let chunks: Vec<Chunk> = (0..20).map(chunk).collect();
        let front = choices(&site, 20, &chunks).unwrap();
        assert_eq!(front[0].threads, 20);
        assert!(front.windows(2).all(|pair| {
            let (a, b) = (&pair[0].cost, &pair[1].cost);
            a.seconds < b.seconds && a.joules() > b.joules()
        }));
        // Idle cores and memory that is on take more than what few threads spare.
        assert!(front.iter().all(|choice| choice.threads > 1), "{front:?}");
        let one = choices(&site, 1, &chunks).unwrap();
        assert_eq!(one.len(), 1);
        assert!(choices(&site, 0, &chunks).is_err());
        assert_eq!(choices(&site, 4, &[]).unwrap().len(), 1);
    }
}
