//! The emulated machine of an experiment.

use std::collections::BTreeMap;
use std::ffi::OsString;

use emulator::count::{Counting, Matrix, Region};
use emulator::{Ended, Launch, Outcome, Shape};
use placement::{CpuSet, Placement};
use report::quoted;
use topology::Machine;

use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::json;
use crate::options::Options;
use crate::workload::drive::{self, Task};
use crate::workload::kernel::{Job, Ran};

/// The most placements per boot: their list is one argument of the command, which may have 128 KiB.
const WORD: usize = 100 << 10;

/// A machine that is booted for each command.
pub(crate) struct Guest {
    machine: Machine,
    /// The machine as it is numbered inside the emulator.
    inside: Machine,
    /// The number inside of each cpu of the description.
    numbers: BTreeMap<u32, u32>,
    shape: Shape,
    /// The divisor of the caches' capacities.
    cache_scale: u64,
    limit: std::time::Duration,
}

/// The output of a command, and the regions that were counted.
pub(crate) struct Told {
    /// Its standard output.
    pub(crate) text: String,
    /// The rest.
    pub(crate) outcome: Outcome,
}

impl Guest {
    /// The machine of the options, or `spec`; `mem` MiB on each node unless told otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] for a machine that cannot be emulated.
    pub(crate) fn new(options: &Options, spec: &str, mem: u64) -> Result<Guest> {
        options.check()?;
        let machine = Machine::parse(options.machine.as_deref().unwrap_or(spec))?;
        let shape = Shape::of(&machine, options.mem.unwrap_or(mem), 0)?;
        let shape = shape.with_caches_scaled_down(options.cache_scale);
        Ok(Guest {
            inside: machine.in_order(),
            numbers: numbers(&machine),
            machine,
            shape,
            cache_scale: options.cache_scale,
            limit: std::time::Duration::from_secs(3600),
        })
    }

    /// The machine as described, with the description's cpu numbers, which reports, tables and mappings use.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The machine as programs inside see it: the emulator numbers cpus node by node, core by core.
    pub(crate) fn inside(&self) -> &Machine {
        &self.inside
    }

    /// The cpus' numbers inside.
    ///
    /// # Errors
    ///
    /// [`Error::Job`] for a cpu that the machine does not have.
    pub(crate) fn inside_cpus(&self, cpus: impl IntoIterator<Item = u32>) -> Result<CpuSet> {
        cpus.into_iter().map(|cpu| self.number(cpu)).collect()
    }

    /// Translates a placement on the machine as described to lists of the cpus' numbers inside.
    ///
    /// # Errors
    ///
    /// As [`inside_cpus`](Guest::inside_cpus).
    pub(crate) fn inside_sets(&self, placement: &Placement) -> Result<Vec<CpuSet>> {
        let sets = placement.sets().iter();
        sets.map(|set| self.inside_cpus(set.iter())).collect()
    }

    fn number(&self, cpu: u32) -> Result<u32> {
        self.numbers.get(&cpu).copied().ok_or_else(|| Error::Job {
            why: format!("{} has no cpu {cpu}", self.machine.name()),
        })
    }

    /// The description's number of a cpu inside; the same number if there is no such cpu.
    fn described(&self, cpu: u32) -> u32 {
        let own = self.numbers.iter().find(|(_, inside)| **inside == cpu);
        own.map_or(cpu, |(described, _)| *described)
    }

    /// Capacity of a last-level cache as modelled.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.shape.caches()[2].bytes
    }

    /// A description of the modelled caches, for the facts of a report.
    pub(crate) fn caches(&self) -> String {
        let [first, second, last] = [0, 1, 2].map(|level| {
            let bytes = self.shape.caches()[level].bytes as f64;
            let bytes = report::Unit::Bytes.show(bytes);
            format!("{} of {bytes}", self.caches_of(level))
        });
        let scaled = match self.cache_scale {
            1 => String::new(),
            scale => format!(", capacities divided by {scale}"),
        };
        format!(
            "modelled: first level {first}, second level {second}, last level {last}{scaled}; no prefetching, no coherence"
        )
    }

    /// How many caches of a level are modelled.
    fn caches_of(&self, level: usize) -> usize {
        let of_cpu = &self.shape.caches()[level].of_cpu;
        of_cpu.iter().max().map_or(0, |last| last + 1)
    }

    /// Capacity of all last-level caches together, as modelled.
    pub(crate) fn last_caches_bytes(&self) -> u64 {
        self.cache_bytes() * self.caches_of(2) as u64
    }

    /// Lines weighted with the distance they came from: 1 for a local one.
    pub(crate) fn weighted(&self, lines: &Matrix) -> f64 {
        let row = |(core, row): (usize, &Vec<u64>)| -> f64 {
            let weight = |page: usize| f64::from(self.shape.distance(core, page)) / 10.0;
            row.iter()
                .enumerate()
                .map(|(page, lines)| *lines as f64 * weight(page))
                .sum()
        };
        lines.iter().enumerate().map(row).sum()
    }

    /// Boots, runs a command that marks regions, and switches off.
    ///
    /// # Errors
    ///
    /// Those of [`Launch::run`]; [`Error::Guest`] if the command fails or is ended.
    pub(crate) fn run(&self, command: Vec<OsString>, desk: &mut Desk<'_>) -> Result<Told> {
        let mut launch = Launch::new(self.shape.clone(), &command);
        launch.counting = Some(Counting::Marks);
        launch.limit = self.limit;
        let (mut text, mut said) = (Vec::new(), Vec::new());
        let outcome = launch.run(&mut text, &mut said, desk.stop)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let said = String::from_utf8_lossy(&said).into_owned();
        if outcome.exit == 0 {
            return Ok(Told { text, outcome });
        }
        let why = match outcome.ended {
            Ended::Interrupted => return Err(Error::Interrupted),
            Ended::Limit => format!("it took longer than {} s", self.limit.as_secs()),
            Ended::Itself => {
                let last: Vec<&str> = said
                    .lines()
                    .rev()
                    .filter(|line| !line.is_empty())
                    .take(3)
                    .collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                format!("exit status {}: {}", outcome.exit, last.join("; "))
            }
        };
        let mut command = quoted(command);
        if command.len() > 200 {
            let cut = command
                .char_indices()
                .map(|(at, _)| at)
                .take_while(|at| *at <= 200)
                .last();
            command.truncate(cut.unwrap_or(0));
            command.push('…');
        }
        Err(Error::Guest { command, why })
    }

    /// Has a program answer statements on the machine.
    ///
    /// # Errors
    ///
    /// As [`run`](Guest::run).
    pub(crate) fn drive(&self, task: &Task, desk: &mut Desk<'_>) -> Result<(drive::Told, Outcome)> {
        let mut command = desk.lab.clone();
        command.extend(["drive".into(), json::write(task)?.into()]);
        let told = self.run(command, desk)?;
        let line = told.text.lines().last().unwrap_or_default();
        Ok((json::read(line, "what the program answered")?, told.outcome))
    }

    /// The job with the cpus' numbers inside.
    fn renumbered(&self, job: &Job) -> Result<Job> {
        let inside = |cpus: &Vec<u32>| cpus.iter().map(|cpu| self.number(*cpu)).collect();
        let placement = |threads: &Vec<Vec<u32>>| threads.iter().map(inside).collect();
        let placements = job.placements.iter().map(placement);
        Ok(Job {
            plan: job.plan.clone(),
            placements: placements.collect::<Result<_>>()?,
        })
    }

    /// Carries out the plan under each placement, with as few boots as there is room for, and
    /// returns what was counted under each. Cpus are numbered as the description has them.
    ///
    /// # Errors
    ///
    /// As [`run`](Guest::run), and [`Error::Count`] if there is not one region per placement.
    pub(crate) fn kernel(&self, job: &Job, desk: &mut Desk<'_>) -> Result<Vec<(Ran, Region)>> {
        let job = &self.renumbered(job)?;
        let mut all = Vec::with_capacity(job.placements.len());
        let room = WORD.saturating_sub(json::write(&job.plan)?.len());
        let each = json::write(&job.placements)?.len() / job.placements.len().max(1) + 1;
        for placements in job.placements.chunks((room / each).max(1)) {
            let part = Job {
                plan: job.plan.clone(),
                placements: placements.to_vec(),
            };
            let mut command = desk.lab.clone();
            command.extend(["kernel".into(), json::write(&part)?.into()]);
            let told = self.run(command, desk)?;
            let regions = regions(&told.outcome, placements.len())?;
            let mut ran = Vec::with_capacity(placements.len());
            for line in told.text.lines() {
                let mut one = json::read::<Ran>(line, "what the kernel printed")?;
                for cpu in &mut one.cpus {
                    *cpu = self.described(*cpu);
                }
                ran.push(one);
            }
            if ran.len() != placements.len() {
                let why = format!(
                    "{} of {} placements were carried out",
                    ran.len(),
                    placements.len()
                );
                return Err(Error::Count { why });
            }
            all.extend(ran.into_iter().zip(regions));
        }
        Ok(all)
    }
}

/// The number of each cpu in the emulated machine, by that of the description.
fn numbers(machine: &Machine) -> BTreeMap<u32, u32> {
    let cores = machine.nodes().iter().flat_map(|node| &node.cores);
    let cpus = cores.flat_map(|core| core.cpus.iter().copied());
    cpus.zip(0..).collect()
}

/// The regions of a run; their number must be `expected`.
pub(crate) fn regions(outcome: &Outcome, expected: usize) -> Result<Vec<Region>> {
    let regions = outcome
        .count
        .as_ref()
        .map_or(&[][..], |count| &count.regions);
    if regions.len() != expected {
        let why = format!(
            "{} regions were marked, {expected} were expected",
            regions.len()
        );
        return Err(Error::Count { why });
    }
    Ok(regions.to_vec())
}

/// Local and remote lines of a matrix.
pub(crate) fn parts(lines: &Matrix) -> (u64, u64) {
    let all: u64 = lines.iter().flatten().sum();
    let local = (0..lines.len()).map(|node| lines[node][node]).sum();
    (local, all - local)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use placement::{Site, Strategy, Threads};

    use super::*;
    use crate::workload::kernel::{KERNELS, Kernel};

    #[derive(Parser)]
    struct Given {
        #[command(flatten)]
        options: Options,
    }

    fn guest(machine: &str) -> Guest {
        let given = Given::parse_from(["lab", "--machine", machine, "--mem", "128"]);
        Guest::new(&given.options, "4x4", 64).unwrap()
    }

    /// The Xeon numbers the first hardware threads of all cores before the second ones.
    #[test]
    fn cpus_are_numbered_inside_as_the_emulator_does() {
        let guest = guest("xeon-4657l");
        assert_eq!(guest.machine().nodes()[1].cores[0].cpus, [12, 60]);
        let inside = guest.inside_cpus([12, 60, 0, 95]).unwrap();
        assert_eq!(inside.iter().collect::<Vec<_>>(), [0, 24, 25, 95]);
        for (cpu, inside) in &guest.numbers {
            assert_eq!(guest.described(*inside), *cpu);
            let nodes = [
                guest.machine().node_of_cpu(*cpu),
                guest.inside().node_of_cpu(*inside),
                Some(guest.shape.node_of_cpu()[*inside as usize]),
            ];
            assert!(nodes.iter().all(|node| *node == nodes[0]), "cpu {cpu}");
        }
        assert!(guest.inside_cpus([96]).is_err());
    }

    #[test]
    fn placements_and_jobs_name_the_same_cores_inside() {
        let guest = guest("xeon-4657l");
        let site = Site::new(guest.machine());
        let threads = Threads::in_groups(8, 1).unwrap();
        let placement = Strategy::Sparse.place(&site, &threads).unwrap();
        let sets = guest.inside_sets(&placement).unwrap();
        let nodes = |sets: &[CpuSet], machine: &Machine| -> Vec<Option<usize>> {
            let first = sets.iter().map(|set| set.iter().next().unwrap());
            first.map(|cpu| machine.node_of_cpu(cpu)).collect()
        };
        assert_eq!(
            nodes(&sets, guest.inside()),
            nodes(placement.sets(), guest.machine())
        );
        let job = Job {
            plan: Kernel::plan(KERNELS[0], 2, 1 << 20),
            placements: vec![vec![vec![12], vec![60, 0]]],
        };
        let inside = guest.renumbered(&job).unwrap();
        assert_eq!(inside.placements, [[vec![24], vec![25, 0]]]);
    }

    #[test]
    fn machines_in_order_stay_as_they_are() {
        for spec in ["opteron-8387", "2x3", "xeon-2630"] {
            let guest = guest(spec);
            assert!(guest.numbers.iter().all(|(cpu, inside)| cpu == inside));
        }
    }
}
