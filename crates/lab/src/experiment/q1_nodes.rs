//! TPC-H Q1 with all of its memory on each node in turn.

use clap::Args;
use report::{Cell, Report, Table, Unit};
use serde_json::json;
use topology::Machine;

use crate::desk::Desk;
use crate::error::Result;
use crate::guest::{Guest, regions};
use crate::options::Options;
use crate::result::counted::{Counted, bars, table};
use crate::workload::database::{Databases, Engine, Q1};

/// Not the machine of the text on memory mapping (rows M), which is `xeon-4657l`: of that 96 cpus would have to be emulated.
const MACHINE: &str = "opteron-8387";
/// Warm-up runs.
const WARM: usize = 1;
/// The share of lines that must come from the node that has all memory.
const HELD: f64 = 0.95;
/// The greatest difference between a local share and the expected one.
const NEAR: f64 = 0.1;

/// `q1-nodes`
#[derive(Args, Clone, Debug)]
pub struct Q1Nodes {
    /// Nodes whose cores run the query
    #[arg(
        long,
        value_name = "NODE",
        value_delimiter = ',',
        default_value = "0,1"
    )]
    pub on: Vec<usize>,
    /// The database
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Engine::Atoll)]
    pub engine: Engine,
    /// The databases under test
    #[command(flatten)]
    pub databases: Databases,
    /// Those of all experiments
    #[command(flatten)]
    pub options: Options,
}

impl Q1Nodes {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let guest = Guest::new(&self.options, MACHINE, 768)?;
        let nodes = guest.machine().nodes();
        let cpus = self.cpus(guest.machine())?;
        let many = cpus.len();
        let cpus = guest.inside_cpus(cpus)?;
        let mut all = Vec::with_capacity(nodes.len());
        for node in 0..nodes.len() {
            desk.progress(&format!(
                "{} Q1 with its memory on node {node}",
                self.engine.name()
            ));
            let mut task = self.databases.task(self.engine, many, desk)?;
            task.cpus = Some(cpus.to_string());
            task.mems = Some(node.to_string());
            task.before = vec![Q1.to_owned(); WARM];
            task.statement = Q1.to_owned();
            task.times = self.options.runs();
            let (_, outcome) = guest.drive(&task, desk)?;
            all.push(Counted {
                workload: format!("{} Q1", self.engine.name()),
                variant: format!("node {node}"),
                runs: regions(&outcome, task.times)?,
            });
        }
        let table = table(&all, "memory on");
        let judged = judged(&all, &self.on);
        let on: Vec<String> = self.on.iter().map(usize::to_string).collect();
        let bars = bars("Lines from memory by where all memory is".to_owned(), &all);
        let report = Report::new("TPC-H Q1 with its memory on each node in turn", &desk.command)
            .lead(format!(
                "Q1 runs on the cores of {} {}, while a control group keeps all memory of {}, its mapped files included, to one node after the other.",
                if on.len() == 1 { "node" } else { "nodes" }, on.join(" and "), self.engine.name()
            ))
            .machine(guest.machine().clone())
            .emulated()
            .fact("Caches", guest.caches())
            .fact("Data", format!("TPC-H scale {}, hot", self.databases.scale))
            .fact("Runs", format!("{} of each, after {WARM} that does not count", self.options.runs()))
            .section("What is expected, and what was counted")
            .text(expected(self.on.len()))
            .table(judged.clone())
            .section("Where the lines came from")
            .table(table.clone())
            .plot(bars)
            .section("Node pairs")
            .plots(all.iter().map(Counted::heat))
            .results(json!(all));
        desk.finish(
            &self.options.report("q1-nodes"),
            self.options.json,
            report,
            &[&table, &judged],
        )
    }

    /// The cpus of the nodes that it runs on, numbered as in the description.
    fn cpus(&self, machine: &Machine) -> Result<Vec<u32>> {
        let mut cpus = Vec::new();
        for node in &self.on {
            let Some(found) = machine
                .nodes()
                .get(*node)
                .filter(|node| !node.cores.is_empty())
            else {
                let why = format!("it has no node {node} with cores (--on)");
                return Err(emulator::Error::Shape {
                    machine: machine.name().to_owned(),
                    why,
                }
                .into());
            };
            cpus.extend(
                found
                    .cores
                    .iter()
                    .flat_map(|core| core.cpus.iter().copied()),
            );
        }
        Ok(cpus)
    }
}

/// The expectation that the counts are compared with.
fn expected(on: usize) -> String {
    format!(
        "If lines come only from the node that has the memory, and the cores of the {on} {} read equally many of them, then \
         where that node is one of these {} of the lines are local, and none elsewhere.",
        if on == 1 { "node" } else { "nodes" },
        Unit::Share.show(1.0 / on as f64),
    )
}

/// For each node that had the memory: how much was local, and whether that is as expected.
fn judged(all: &[Counted], on: &[usize]) -> Table {
    let mut table = Table::new(["memory on", "asked for", "found", "shown"]).caption(format!(
        "Medians. Shown: where at least {} of the lines came from the node, and the local share is within {} points of what is expected.",
        Unit::Share.show(HELD),
        NEAR * 100.0
    ));
    for (node, counted) in all.iter().enumerate() {
        let from = counted.of_node(node).median();
        let local = counted.share().median();
        let local = 1.0 - local;
        let wanted = if on.contains(&node) {
            1.0 / on.len() as f64
        } else {
            0.0
        };
        // What was not counted shows nothing: comparisons with NaN are false.
        let held = from >= HELD;
        let near = (local - wanted).abs() <= NEAR;
        let found = if local.is_finite() {
            format!(
                "{} local, {} from node {node}",
                Unit::Share.show(local),
                Unit::Share.show(from)
            )
        } else {
            "no line was counted".to_owned()
        };
        table.row([
            Cell::from(counted.variant.as_str()),
            Cell::from(format!("{} local", Unit::Share.show(wanted))),
            Cell::from(found),
            if held && near {
                Cell::from("yes")
            } else {
                Cell::from("not shown").strong()
            },
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use emulator::count::Region;

    use super::*;

    /// Lines that nodes 0 and 1 of three read from the memory of `node`.
    fn counted(node: usize, reads: [u64; 2], elsewhere: u64) -> Counted {
        let mut dram = vec![vec![0; 3]; 3];
        dram[0][node] = reads[0];
        dram[1][node] = reads[1];
        dram[0][(node + 1) % 3] += elsewhere;
        Counted {
            workload: "Q1".to_owned(),
            variant: format!("node {node}"),
            runs: vec![Region {
                dram,
                ..Region::default()
            }],
        }
    }

    fn shown(all: &[Counted]) -> Vec<String> {
        let table = judged(all, &[0, 1]);
        table
            .rows()
            .iter()
            .map(|row| row[3].as_str().to_owned())
            .collect()
    }

    #[test]
    fn what_is_expected_is_shown_by_the_counts() {
        let all = [
            counted(0, [510, 490], 3),
            counted(1, [480, 520], 0),
            counted(2, [500, 500], 0),
        ];
        assert_eq!(shown(&all), ["yes", "yes", "yes"]);
        let found = judged(&all, &[0, 1]);
        assert_eq!(
            found.rows()[1][2].as_str(),
            "52.0 % local, 100 % from node 1"
        );
        assert_eq!(found.rows()[2][1].as_str(), "0 % local");
    }

    #[test]
    fn counts_that_say_otherwise_show_nothing() {
        let all = [
            // Node 0 reads nearly all: far from one half.
            counted(0, [950, 50], 0),
            // Half of the lines are local, yet many are not from the node that is to have all memory.
            counted(1, [400, 500], 100),
            // Nothing was counted at all.
            counted(2, [0, 0], 0),
        ];
        assert_eq!(shown(&all), ["not shown"; 3]);
        let found = judged(&all, &[0, 1]);
        assert_eq!(found.rows()[2][2].as_str(), "no line was counted");
        assert!(found.rows()[0][2].as_str().contains("95.0 % local"));
    }
}
