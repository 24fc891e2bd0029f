//! The experiment on an emulated machine with several nodes: where accesses and threads go (E6, E12).

use std::time::Duration;

use clap::Args;
use emulator::count::Region;
use governor::{Mode, Sensor};
use report::{Report, Table, Unit};
use serde::{Deserialize, Serialize};
use serde_json::json;
use topology::Machine;

use super::crossing::{judged, moves};
use super::found::Found;
use super::modelled;
use super::options::seconds;
use super::page::{changes, cores_over_time, memory, on_cpus, states, threads};
use super::plan::{Phase, Variant, Workload};
use super::queries::{BELOW, ROW_BYTES, selected};
use super::run;
use super::traffic;
use super::trial::{Setting, Trial};
use crate::desk::Desk;
use crate::error::Result;
use crate::guest::{Guest, regions};
use crate::json;
use crate::options::Options;
use crate::result::counted::{Counted, bars, table};
use crate::workload::database::{Databases, Engine};

/// The machine of the text on elastic allocation (rows E).
const MACHINE: &str = "opteron-8387";

/// The node that holds the columns; the first if there are several.
const DATA: usize = 1;

/// Rows: 6 MiB of columns, several times what a modelled last-level cache holds.
const ROWS: usize = 1 << 19;

/// A scan that selects 23 of the 50 quantities.
const SCAN: &str = "select sum(l_extendedprice) from lineitem where l_quantity < 23.5;";

/// Time between two decisions. The governor would lengthen it in the emulator, where a decision costs many times as
/// much.
const PERIOD: Duration = Duration::from_millis(250);

/// The length of the windows in which accesses are counted.
const WINDOW: Duration = Duration::from_millis(500);

/// `elastic-nodes`
#[derive(Args, Clone, Debug)]
pub struct ElasticNodes {
    /// Clients that ask without a pause; few keep at most one node's cores busy
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub clients: Vec<u16>,
    /// The share of the time that each would be busy if it were alone; 1: it asks without a pause
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    pub share: f64,
    /// Which core is next: dense, sparse, adaptive
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "dense,sparse,adaptive"
    )]
    pub mode: Vec<Mode>,
    /// Also with the text's net and nothing around it, in each of these modes: a core at each decision
    #[arg(long)]
    pub plain: bool,
    /// A database instead of queries of our own: one client, the number of clients is its threads; of mariadb and postgres-clients so many clients
    #[arg(long)]
    pub engine: Option<Engine>,
    /// Nodes among which what is read is parted; with more than one nothing is judged
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4))]
    pub data_nodes: u16,
    /// The databases under test
    #[command(flatten)]
    pub databases: Databases,
    /// Seconds that are counted, of the emulated machine
    #[arg(long, value_name = "SECONDS", default_value_t = 6.0, value_parser = seconds)]
    pub seconds: f64,
    /// Those of all experiments
    #[command(flatten)]
    pub options: Options,
}

/// `elastic-inside`
#[derive(Args, Clone, Debug)]
pub struct Inside {
    /// The trials, as JSON
    pub task: String,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("take a number above 0, up to 1".to_owned()),
    }
}

fn cpus_of(node: &topology::Node) -> placement::CpuSet {
    let cpus = node.cores.iter().flat_map(|core| &core.cpus);
    cpus.copied().collect()
}

/// The trials of one boot.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Task {
    variants: Vec<Variant>,
    runs: usize,
    clients: usize,
    share: f64,
    data_nodes: usize,
    /// A database's client, and the statements for it.
    command: Vec<String>,
    statements: Vec<String>,
    /// The warm-up phase, in which cores and threads find their places.
    warm: f64,
    seconds: f64,
}

impl Inside {
    pub(crate) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let task: Task = json::read(&self.task, "the task")?;
        let machine = Machine::live()?;
        let nodes = machine.nodes();
        let data = (DATA..DATA + task.data_nodes).map(|node| &nodes[node % nodes.len()]);
        let lab = desk.lab.clone();
        let mut setting = Setting {
            lab: &lab,
            guard: &[],
            machine: &machine,
            cpus: placement::apply::cpus_of(0).map_or(1, |cpus| cpus.len()),
            server: None,
            command: &task.command,
            statements: &task.statements,
            rows: ROWS,
            made_on: data.map(|node| cpus_of(node).to_string()).collect(),
            // What it reads and writes itself would be remote or not as the system moves it.
            own: machine.nodes().last().map(cpus_of),
            // Everything takes many times as long there.
            period: PERIOD,
            emulated: true,
            look: Duration::from_millis(200),
            counted: Some(2),
            window: Some(WINDOW),
            query_seconds: None,
            stop: desk.stop,
        };
        let phase = |seconds: f64| Phase {
            seconds,
            clients: task.clients,
            share: task.share,
            which: 0,
        };
        // An order wakes threads that have slept since before the cores were given: not while it is counted.
        let warm = task.warm / 2.0;
        let phases = [phase(warm), phase(warm), phase(task.seconds)];
        for _ in 0..task.runs {
            for variant in &task.variants {
                let trial = run::run(&setting, Workload::Clients, *variant, &phases)?;
                setting.query_seconds.get_or_insert(trial.query_seconds);
                desk.line(&trial)?;
            }
        }
        Ok(())
    }
}

impl ElasticNodes {
    pub(crate) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let guest = Guest::new(&self.options, MACHINE, 512)?;
        let mut variants = vec![Variant::Ungoverned];
        let governed = |mode: &Mode| Variant::Governed(*mode, Sensor::Load);
        variants.extend(self.mode.iter().map(governed));
        if self.plain {
            variants.extend(self.mode.iter().copied().map(Variant::Plain));
        }
        let mut all = Vec::new();
        for clients in &self.clients {
            desk.progress(&format!(
                "{clients} clients under each of {} variants",
                variants.len()
            ));
            all.push(self.boot(usize::from(*clients), &variants, &guest, desk)?);
        }
        let counted: Vec<Counted> = all.iter().flat_map(|one| one.counted.clone()).collect();
        let lines = table(&counted, "variant");
        let moves = moves(&all, guest.inside());
        let cores = guest.machine().nodes()[0].cores.len();
        // What lies on several nodes is remote to somebody wherever the cores are.
        let most = if self.data_nodes == 1 { cores } else { 0 };
        let judged = judged(&all, most, guest.inside());
        let modelled = modelled::table(&all, guest.inside());
        let tables = [&lines, &modelled, &moves, &judged];
        let report = self.report(&guest, &all, tables, &desk.command);
        desk.finish(
            &self.options.report("elastic-nodes"),
            self.options.json,
            report,
            &tables,
        )
    }

    /// All variants in turn, in one boot.
    fn boot(
        &self,
        clients: usize,
        variants: &[Variant],
        guest: &Guest,
        desk: &mut Desk<'_>,
    ) -> Result<Found> {
        let quick = self.options.quick;
        let command = match self.engine {
            Some(engine) => self.databases.task(engine, clients, desk)?.command,
            None => Vec::new(),
        };
        let task = Task {
            variants: variants.to_vec(),
            runs: self.options.runs(),
            // A database has threads of its own.
            clients: self
                .engine
                .map_or(clients, |engine| engine.clients(clients)),
            command,
            statements: vec![SCAN.to_owned()],
            share: self.share,
            data_nodes: usize::from(self.data_nodes),
            warm: 6.0,
            seconds: if quick {
                self.seconds / 2.0
            } else {
                self.seconds
            },
        };
        let words = json::write(&task)?;
        let mut command = desk.lab.clone();
        command.extend(["elastic-inside".into(), words.into()]);
        let told = guest.run(command, desk)?;
        let mut trials = vec![Vec::new(); variants.len()];
        for (at, line) in told.text.lines().enumerate() {
            let trial: Trial = json::read(line, "what was run")?;
            trials[at % variants.len()].push(trial);
        }
        let many = trials.iter().flatten().map(traffic::windows).sum();
        let mut regions = regions(&told.outcome, many)?.into_iter();
        let mut runs = vec![Vec::new(); variants.len()];
        // One run of each variant after the other.
        for run in 0..task.runs {
            for (trials, runs) in trials.iter().zip(&mut runs) {
                let count = trials.get(run).map_or(0, traffic::windows);
                runs.push(regions.by_ref().take(count).collect::<Vec<Region>>());
            }
        }
        let counted = variants.iter().zip(trials.iter().zip(&runs));
        let counted = counted.map(|(variant, (trials, runs))| Counted {
            workload: self.of(clients),
            variant: variant.name(),
            runs: trials
                .iter()
                .zip(runs)
                .map(|(trial, windows)| traffic::last_phase(trial, windows))
                .collect(),
        });
        Ok(Found {
            clients,
            counted: counted.collect(),
            windows: runs
                .into_iter()
                .map(|runs| runs.into_iter().next().unwrap_or_default())
                .collect(),
            trials,
        })
    }

    /// The place of the data, as text.
    fn home(&self) -> String {
        match usize::from(self.data_nodes) {
            1 => format!("node {DATA}"),
            many => format!("{many} nodes from {DATA} on"),
        }
    }

    /// What runs, as the beginning of a sentence.
    fn asks(&self) -> String {
        match self.engine {
            Some(engine) => format!(
                "{} scans a table that was loaded on {}",
                engine.name(),
                self.home()
            ),
            None => format!("Clients scan columns that lie on {}", self.home()),
        }
    }

    /// The clients, as text.
    fn of(&self, clients: usize) -> String {
        match self.engine {
            Some(engine) => match engine.clients(clients) {
                1 => format!("{}, {clients} threads", engine.name()),
                many => format!("{}, {many} clients", engine.name()),
            },
            None => format!("{clients} clients"),
        }
    }

    fn report(
        &self,
        guest: &Guest,
        all: &[Found],
        [lines, modelled, moves, judged]: [&Table; 4],
        command: &str,
    ) -> Report {
        let mut report = Report::new("Cores that follow the load, and the memory", command)
            .lead(format!("{}, with all cores and with a governor: which node's memory the lines came from that were read after a last-level miss, and how often threads went to another node.", self.asks()))
            .machine(guest.inside().clone())
            .emulated()
            .fact("Caches", guest.caches())
            .fact("Data", match self.engine {
                Some(_) => format!("TPC-H at scale {}, lineitem, loaded by a database that ran on {} until then; asked: {SCAN}", self.databases.scale, self.home()),
                None => format!("{} of columns on {}, {} of the rows selected", Unit::Bytes.show((ROWS * ROW_BYTES) as f64), self.home(), Unit::Share.show(selected(ROWS, BELOW))),
            })
            .fact("Clients", match self.share {
                share if share < 1.0 => format!("each would be busy {:.0} % of the time if it were alone", share * 100.0),
                _ => "they ask without a pause".to_owned(),
            })
            .fact("Period", format!("{} ms between two decisions", PERIOD.as_millis()))
            .fact("Counted", "all data accesses of programs, the governor's own included (it stays on the last node), after a warm-up of some seconds")
            .section("Lines from memory")
            .table(lines.clone())
            .section("Throughput and energy by a model")
            .table(modelled.clone())
            .section("Threads")
            .table(moves.clone())
            .section("What is asked for")
            .table(judged.clone());
        for found in all {
            let clients = found.clients;
            let title = format!("{}: lines from memory", self.of(clients));
            let bars = bars(title, &found.counted);
            report = report
                .section(self.of(clients))
                .plot(bars)
                .plots(found.counted.iter().map(Counted::heat));
            let firsts: Vec<&Trial> = found.trials.iter().filter_map(|all| all.first()).collect();
            let machine = guest.inside();
            let cpus = machine.cpus();
            report = report.plot(cores_over_time(&self.of(clients), &firsts, cpus));
            for (first, windows) in firsts.iter().zip(&found.windows) {
                let name = format!("{}, {}", self.of(clients), first.variant.name());
                report = report
                    .plot(traffic::by_node(&name, first, windows))
                    .plot(traffic::remote(&name, first, windows))
                    .plot(threads(&name, first, machine))
                    .plot(on_cpus(&name, first));
                if let Some(memory) = memory(&name, first, machine) {
                    report = report.plot(memory);
                }
                if first.variant.governed() {
                    report = report
                        .plot(states(&name, first))
                        .table(changes(&name, first));
                }
            }
        }
        let results: Vec<_> = all
            .iter()
            .map(|one| json!({ "clients": one.clients, "counted": one.counted, "trials": one.trials }))
            .collect();
        report.results(json!(results))
    }
}
