//! Where the accesses of TPC-H Q1 and Q6 go with affinity on and off, and what the engine itself counts.

use clap::Args;
use emulator::count::Matrix;
use report::Report;

use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::guest::{Guest, regions};
use crate::options::Options;
use crate::result::compared::{self, Compared};
use crate::result::counted::Counted;
use crate::workload::database::{Databases, Engine, Q1, Q6};

/// Not the machine of the text on memory mapping (rows M), which is `xeon-4657l`: of that 96 cpus would have to be emulated.
const MACHINE: &str = "opteron-8387";
/// Warm-up runs.
const WARM: usize = 2;
/// Statement before a query by which its answer ends with the engine's counts.
const EXPLAIN: &str = "explain analyze ";

/// `affinity`
#[derive(Args, Clone, Debug)]
pub struct Affinity {
    /// The databases under test
    #[command(flatten)]
    pub databases: Databases,
    /// Those of all experiments
    #[command(flatten)]
    pub options: Options,
}

/// A setting: who places threads and memory, and where memory may be.
#[derive(Clone, Copy)]
struct Setting {
    affinity: &'static str,
    /// The node to which a control group restricts all memory, if any.
    node: Option<usize>,
}

impl Setting {
    const ALL: [Setting; 4] = [
        Setting::of("on", None),
        Setting::of("off", None),
        Setting::of("on", Some(0)),
        Setting::of("off", Some(0)),
    ];

    const fn of(affinity: &'static str, node: Option<usize>) -> Setting {
        Setting { affinity, node }
    }

    fn name(self) -> String {
        match self.node {
            None => format!("{}, memory anywhere", self.affinity),
            Some(node) => format!("{}, memory on node {node}", self.affinity),
        }
    }
}

impl Affinity {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let guest = Guest::new(&self.options, MACHINE, 768)?;
        let mut all = Vec::new();
        for (name, query) in [("Q6", Q6), ("Q1", Q1)] {
            for setting in Setting::ALL {
                desk.progress(&format!("{name} with affinity {}", setting.name()));
                all.push(self.one(name, query, setting, &guest, desk)?);
            }
        }
        let all: Vec<&Compared> = all.iter().collect();
        let report = Report::new("Accesses with affinity on and off", &desk.command)
            .lead("Affinity on: workers are pinned and the pool's pages lie on their home nodes, over which blocks are spread. Off: the system places both. With all memory on one node, a control group keeps it there, and only that node's cores can be near it.".to_owned())
            .fact("Data", format!("TPC-H scale {}, hot: {WARM} runs before what is counted", self.databases.scale));
        let (report, [lines, engine]) = compared::fill(report, &guest, &all, "affinity");
        desk.finish(
            &self.options.report("affinity"),
            self.options.json,
            report,
            &[&lines, &engine],
        )
    }

    fn one(
        &self,
        name: &str,
        query: &str,
        setting: Setting,
        guest: &Guest,
        desk: &mut Desk<'_>,
    ) -> Result<Compared> {
        let cpus = guest.machine().cpus();
        let mut task = self.databases.task(Engine::Atoll, cpus, desk)?;
        let affinity = ["--affinity", setting.affinity].map(str::to_owned);
        task.command.extend(affinity);
        task.mems = setting.node.map(|node| node.to_string());
        task.before = vec![query.to_owned(); WARM];
        task.statement = format!("{EXPLAIN}{query}");
        task.times = self.options.runs();
        let (told, outcome) = guest.drive(&task, desk)?;
        let nodes = guest.machine().nodes().len();
        let engine = told.answers.iter().map(|answer| bytes(answer, nodes));
        let emulated = Counted {
            workload: format!("atoll {name}"),
            variant: setting.name(),
            runs: regions(&outcome, task.times)?,
        };
        let known = setting.affinity == "on" && setting.node.is_none();
        Ok(Compared::new(
            emulated,
            engine.collect::<Result<_>>()?,
            known,
        ))
    }
}

/// Parses the engine's counts: a line `node 2 read 512 from node 0, 64 from node 1` for each node that read.
fn bytes(answer: &str, nodes: usize) -> Result<Matrix> {
    let mut matrix: Matrix = vec![vec![0; nodes]; nodes];
    let mut lines = 0;
    for line in answer.lines() {
        let line = line.trim().trim_matches('"').trim();
        let Some((reader, read)) = line
            .strip_prefix("node ")
            .and_then(|rest| rest.split_once(" read "))
        else {
            continue;
        };
        lines += 1;
        for part in read.split(", ") {
            let cell = || {
                let (bytes, page) = part.split_once(" from node ")?;
                let row = matrix.get_mut(reader.parse::<usize>().ok()?)?;
                *row.get_mut(page.parse::<usize>().ok()?)? = bytes.parse().ok()?;
                Some(())
            };
            let mut cell = cell;
            cell().ok_or_else(|| unclear(line))?;
        }
    }
    if lines == 0 {
        return Err(unclear(answer.lines().last().unwrap_or_default()));
    }
    Ok(matrix)
}

fn unclear(line: &str) -> Error {
    Error::Count {
        why: format!("the database does not say which node read what: '{line}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_read_is_found_in_its_plan() {
        let answer = "plan\n\"ScanExec: columns=[a, b]\"\nrows: 1\n\"bytes read: 30, on the home node 20\"\n\"  node 0 read 20 from node 0, 4 from node 1\"\n  node 1 read 6 from node 0\n";
        let read = bytes(answer, 2).unwrap();
        assert_eq!(read, [[20, 4], [6, 0]]);
        assert!(bytes("plan\nrows: 1\n", 2).is_err());
        assert!(bytes("node 7 read 1 from node 0", 2).is_err());
        assert!(bytes("node 0 read much from node 0", 2).is_err());
    }
}
