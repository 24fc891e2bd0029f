//! TPC-H Q1 with all of its memory on each node in turn.

use clap::Args;
use serde_json::json;

use super::counted::{Counted, table};
use super::database::{Databases, Engine, Q1};
use super::guest::{Guest, regions};
use super::{Desk, Options};
use crate::report::{Bars, Report, Unit};
use crate::{Error, Result};

/// The machine of the document.
const MACHINE: &str = "opteron-8387";
/// Runs before what is counted.
const WARM: usize = 1;

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
        let mut cpus = Vec::new();
        for node in &self.on {
            let Some(found) = nodes.get(*node).filter(|node| !node.cores.is_empty()) else {
                let why = format!("it has no node {node} with cores (--on)");
                return Err(Error::Shape {
                    machine: guest.machine().name().to_owned(),
                    why,
                });
            };
            cpus.extend(
                found
                    .cores
                    .iter()
                    .flat_map(|core| core.cpus.iter().map(u32::to_string)),
            );
        }
        let mut all = Vec::with_capacity(nodes.len());
        for node in 0..nodes.len() {
            desk.progress(&format!(
                "{} Q1 with its memory on node {node}",
                self.engine.name()
            ));
            let mut task = self.databases.task(self.engine, cpus.len(), desk)?;
            task.cpus = Some(cpus.join(","));
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
        let on: Vec<String> = self.on.iter().map(usize::to_string).collect();
        let mut bars = Bars::new(
            "Lines from memory by where all memory is",
            "lines of 64 bytes",
            Unit::Count,
        )
        .series(["local", "remote"])
        .stacked();
        for one in &all {
            bars.category(one.variant.as_str(), one.parted());
        }
        let report = Report::new("TPC-H Q1 with its memory on each node in turn", &desk.command)
            .lead(format!(
                "Q1 runs on the cores of nodes {}; a control group keeps all memory of {}, its mapped files included, to one node. The local share follows: about 1/{} where the memory is on one of these nodes, none where it is not.",
                on.join(" and "), self.engine.name(), self.on.len()
            ))
            .machine(guest.machine().clone())
            .emulated()
            .fact("Caches", guest.caches())
            .fact("Data", format!("TPC-H scale {}, hot", self.databases.scale))
            .section("Where the lines came from")
            .table(table.clone())
            .plot(bars)
            .section("Node pairs")
            .plots(all.iter().map(Counted::heat))
            .results(json!(all));
        desk.finish(
            &self.options.report("q1-nodes"),
            self.options.json,
            &report,
            &[&table],
        )
    }
}
