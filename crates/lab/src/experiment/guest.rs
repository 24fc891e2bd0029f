//! The emulated machine of an experiment.

use std::ffi::OsString;

use topology::Machine;

use super::drive::{self, Task};
use super::{Desk, Options};
use crate::count::{Counting, Matrix, Region};
use crate::kernel::{Job, Ran};
use crate::machine::{Ended, Launch, Outcome, Shape};
use crate::report::quoted;
use crate::{Error, Result};

/// Placements per boot: their list is passed as one word of the command, which may have 128 KiB.
const WORD: usize = 100 << 10;

/// A machine that is booted for each command.
pub(super) struct Guest {
    machine: Machine,
    shape: Shape,
    limit: std::time::Duration,
}

/// What a command printed and what was counted.
pub(super) struct Told {
    /// Its standard output.
    pub(super) text: String,
    /// The rest.
    pub(super) outcome: Outcome,
}

impl Guest {
    /// The machine of the options, or `spec`; `mem` MiB on each node unless told otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] also for a machine whose cpus the emulator would number otherwise, as
    /// placements name cpus.
    pub(super) fn new(options: &Options, spec: &str, mem: u64) -> Result<Guest> {
        options.check()?;
        let machine = Machine::parse(options.machine.as_deref().unwrap_or(spec))?;
        let shape = Shape::of(&machine, options.mem.unwrap_or(mem), 0)?;
        let shape = shape.with_caches_scaled_down(options.cache_scale);
        let nodes = shape.node_of_cpu();
        let same = |(cpu, node): (usize, &usize)| machine.node_of_cpu(cpu as u32) == Some(*node);
        if !nodes.iter().enumerate().all(same) {
            return Err(Error::Shape {
                machine: machine.name().to_owned(),
                why: "it numbers its cpus in another order than node by node; describe it as NODESxCORES".to_owned(),
            });
        }
        Ok(Guest {
            machine,
            shape,
            limit: std::time::Duration::from_secs(3600),
        })
    }

    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Capacity of a last-level cache as modelled.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.shape.caches()[2].bytes
    }

    /// What the modelled caches are, for the facts of a report.
    pub(super) fn caches(&self) -> String {
        let [first, second, last] = [0, 1, 2]
            .map(|level| crate::report::Unit::Bytes.show(self.shape.caches()[level].bytes as f64));
        format!(
            "{first} and {second} per core, {last} per last-level cache (scaled down); no prefetching, no coherence"
        )
    }

    /// Lines weighted with the distance they came from: 1 for a local one.
    pub(super) fn weighted(&self, lines: &Matrix) -> f64 {
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
    /// Those of [`Launch::run`]; [`Error::Guest`] where the command fails or is ended.
    pub(super) fn run(&self, command: Vec<OsString>, desk: &mut Desk<'_>) -> Result<Told> {
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
    pub(super) fn drive(&self, task: &Task, desk: &mut Desk<'_>) -> Result<(drive::Told, Outcome)> {
        let mut command = desk.lab.clone();
        command.extend(["drive".into(), json(task)?.into()]);
        let told = self.run(command, desk)?;
        let line = told.text.lines().last().unwrap_or_default();
        Ok((
            super::parse(line, "what the program answered")?,
            told.outcome,
        ))
    }

    /// Carries out the plan under each placement, with as few boots as there is room for, and
    /// returns what was counted under each.
    ///
    /// # Errors
    ///
    /// As [`run`](Guest::run), and [`Error::Count`] where there is not one region a placement.
    pub(super) fn kernel(&self, job: &Job, desk: &mut Desk<'_>) -> Result<Vec<(Ran, Region)>> {
        let mut all = Vec::with_capacity(job.placements.len());
        let room = WORD.saturating_sub(json(&job.plan)?.len());
        let each = json(&job.placements)?.len() / job.placements.len().max(1) + 1;
        for placements in job.placements.chunks((room / each).max(1)) {
            let part = Job {
                plan: job.plan.clone(),
                placements: placements.to_vec(),
            };
            let mut command = desk.lab.clone();
            command.extend(["kernel".into(), json(&part)?.into()]);
            let told = self.run(command, desk)?;
            let regions = regions(&told.outcome, placements.len())?;
            let mut ran = Vec::with_capacity(placements.len());
            for line in told.text.lines() {
                ran.push(super::parse::<Ran>(line, "what the kernel printed")?);
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

/// The regions of a run, of which there are to be so many.
pub(super) fn regions(outcome: &Outcome, expected: usize) -> Result<Vec<Region>> {
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

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Output {
        source: error.into(),
    })
}

/// Local and remote lines of a matrix.
pub(super) fn parts(lines: &Matrix) -> (u64, u64) {
    let all: u64 = lines.iter().flatten().sum();
    let local = (0..lines.len()).map(|node| lines[node][node]).sum();
    (local, all - local)
}
