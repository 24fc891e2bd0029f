//! The same work under each static strategy.

use clap::Args;
use placement::{Placement, Site, Strategy, Threads};
use report::{Bars, Point, Report, Table, Unit};
use serde_json::json;

use crate::desk::Desk;
use crate::error::Result;
use crate::guest::{Guest, regions};
use crate::options::Options;
use crate::result::counted::{Counted, bars, table};
use crate::workload::database::{Databases, Engine, Q6};
use crate::workload::drive::Placing;
use crate::workload::kernel::{Job, KERNELS, Kernel};

/// The machine of the text on elastic allocation (rows E): of the machines with four nodes, the one with the fewest
/// cpus to emulate. The text on thread placement (rows T) measured on `xeon-4114` and `xeon-2630`, two nodes each.
const MACHINE: &str = "opteron-8387";
/// Threads in a group, as in the kernels.
const GROUP: usize = 3;
/// The name of the variant in which Atoll places its threads and pages itself.
const OWN: &str = "own";
/// Warm-up runs, after which data and code are at their final places.
const WARM: usize = 2;

/// `placement`
#[derive(Args, Clone, Debug)]
pub struct Placements {
    /// Strategies
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "os,compact,sparse,shared,random:1"
    )]
    pub strategy: Vec<String>,
    /// What to run: kernels (chunks, stream, join) and Q6 in atoll, duckdb, postgres
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "chunks,stream,join,atoll", value_parser = workload)]
    pub workload: Vec<Workload>,
    /// Threads to place
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// The databases under test
    #[command(flatten)]
    pub databases: Databases,
    /// Those of all experiments
    #[command(flatten)]
    pub options: Options,
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A compute kernel.
    Kernel(Kernel),
    /// TPC-H Q6 in a database.
    Query(Engine),
}

fn workload(name: &str) -> std::result::Result<Workload, String> {
    let engines = [Engine::Atoll, Engine::Duckdb, Engine::Postgres];
    let engine = engines.into_iter().find(|engine| engine.name() == name);
    let kernel = Kernel::named(name).map(Workload::Kernel);
    kernel.or(engine.map(Workload::Query)).ok_or_else(|| {
        let kernels = KERNELS.map(Kernel::name).join(", ");
        format!("take one of {kernels}, atoll, duckdb, postgres")
    })
}

impl Workload {
    fn name(self) -> String {
        match self {
            Workload::Kernel(kernel) => kernel.name().to_owned(),
            Workload::Query(engine) => format!("{} Q6", engine.name()),
        }
    }
}

impl Placements {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let guest = Guest::new(&self.options, MACHINE, 512)?;
        // What is wrong with a strategy is to be known before anything boots.
        let site = Site::new(guest.machine());
        let threads = usize::from(self.threads);
        let groups = Threads::in_groups(threads, threads.div_ceil(GROUP))?;
        let mut placed = Vec::with_capacity(self.strategy.len());
        for name in &self.strategy {
            placed.push(name.parse::<Strategy>()?.place(&site, &groups)?);
        }
        let mut all = Vec::new();
        for workload in &self.workload {
            let counted = match workload {
                Workload::Kernel(kernel) => self.kernel(*kernel, &guest, &placed, desk)?,
                Workload::Query(engine) => self.query(*engine, &guest, &placed, desk)?,
            };
            all.extend(counted);
        }
        let table = table(&all, "strategy");
        let report = self.report(&guest, &all, table.clone(), &desk.command);
        desk.finish(
            &self.options.report("placement"),
            self.options.json,
            report,
            &[&table],
        )
    }

    /// All strategies take turns in one boot.
    fn kernel(
        &self,
        kernel: Kernel,
        guest: &Guest,
        placed: &[Placement],
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Counted>> {
        let cpus = |placement: &Placement| -> Vec<Vec<u32>> {
            let sets = placement.sets().iter();
            sets.map(|set| set.iter().collect()).collect()
        };
        let each: Vec<Vec<Vec<u32>>> = placed.iter().map(cpus).collect();
        let runs = self.options.runs();
        desk.progress(&format!(
            "{} under {} strategies",
            kernel.name(),
            placed.len()
        ));
        let job = Job {
            plan: kernel.plan(usize::from(self.threads), guest.cache_bytes()),
            placements: (0..runs).flat_map(|_| each.clone()).collect(),
        };
        let told = guest.kernel(&job, desk)?;
        let own = |at: usize| {
            told.iter()
                .skip(at)
                .step_by(placed.len())
                .map(|(_, region)| region.clone())
        };
        let counted = self
            .strategy
            .iter()
            .enumerate()
            .map(|(at, strategy)| Counted {
                workload: kernel.name().to_owned(),
                variant: strategy.clone(),
                runs: own(at).collect(),
            });
        Ok(counted.collect())
    }

    /// One boot for each strategy, in which the query is hot when it is counted.
    fn query(
        &self,
        engine: Engine,
        guest: &Guest,
        placed: &[Placement],
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Counted>> {
        let plain = self
            .databases
            .task(engine, usize::from(self.threads), desk)?;
        let names = self.strategy.iter().map(String::as_str);
        let mut strategies: Vec<_> = names.zip(placed.iter().map(Some)).collect();
        if engine == Engine::Atoll {
            strategies.push((OWN, None));
        }
        let mut all = Vec::with_capacity(strategies.len());
        for (strategy, placement) in strategies {
            desk.progress(&format!("{} Q6 under {strategy}", engine.name()));
            let mut task = plain.clone();
            if engine == Engine::Atoll {
                // Otherwise it places its threads and pages itself.
                let affinity = if strategy == OWN { "on" } else { "off" };
                task.command
                    .extend(["--affinity", affinity].map(str::to_owned));
            }
            task.before = vec![Q6.to_owned(); WARM];
            task.statement = Q6.to_owned();
            task.times = self.options.runs();
            // The system's own is no placement at all.
            if let Some(placement) = placement.filter(|_| strategy != "os") {
                let sets = guest.inside_sets(placement)?;
                task.placing = Some(Placing {
                    cpus: sets.iter().map(ToString::to_string).collect(),
                    skip: engine.skip(),
                });
            }
            let (_, outcome) = guest.drive(&task, desk)?;
            all.push(Counted {
                workload: Workload::Query(engine).name(),
                variant: strategy.to_owned(),
                runs: regions(&outcome, task.times)?,
            });
        }
        Ok(all)
    }

    fn report(&self, guest: &Guest, all: &[Counted], table: Table, command: &str) -> Report {
        let mut report = Report::new(format!("{} threads under each strategy", self.threads), command)
            .lead("The same work with its threads placed by each static strategy: which node's memory the lines came from that were read after a last-level miss. The kernels' data is written first by the thread that loads it, under the same strategy.")
            .machine(guest.machine().clone())
            .emulated()
            .fact("Caches", guest.caches())
            .fact("Counted", "data accesses of programs in the region of interest: hot runs of the query, or the kernel's steps");
        for workload in &self.workload {
            if let Workload::Kernel(kernel) = workload {
                report = report.fact(format!("Workload {}", kernel.name()), kernel.about());
            }
        }
        let queries = |workload: &Workload| matches!(workload, Workload::Query(_));
        if self.workload.iter().any(queries) {
            let scale = self.databases.scale;
            report = report.fact("Data", format!("TPC-H at scale {scale}, lineitem"));
        }
        if self.workload.contains(&Workload::Query(Engine::Atoll)) {
            report = report.fact(
                "Atoll",
                format!("'{OWN}' is its own placement of threads and pages (--affinity on); under the strategies that is off"),
            );
        }
        report = report
            .section("All workloads")
            .table(table)
            .plot(self.shares(all));
        for workload in &self.workload {
            let name = workload.name();
            let own: Vec<&Counted> = all.iter().filter(|one| one.workload == name).collect();
            let title = format!("{name}: lines from memory");
            let bars = bars(title, own.iter().copied());
            report = report
                .section(name)
                .plot(bars)
                .plots(own.iter().map(|one| one.heat()));
        }
        report.results(json!(all))
    }

    fn shares(&self, all: &[Counted]) -> Bars {
        let names: Vec<String> = self
            .workload
            .iter()
            .map(|workload| workload.name())
            .collect();
        let mut bars = Bars::new(
            "Remote share",
            "remote lines of all lines from memory",
            Unit::Share,
        )
        .series(names.clone())
        .up_to(1.0);
        let own = all.iter().any(|one| one.variant == OWN).then_some(OWN);
        for strategy in self.strategy.iter().map(String::as_str).chain(own) {
            let point = |name: &String| {
                let own = all
                    .iter()
                    .find(|one| one.workload == *name && one.variant == strategy);
                own.map_or(Point::from(f64::NAN), |one| {
                    let (low, high) = one.share().range();
                    Point {
                        x: 0.0,
                        y: one.share().median(),
                        low,
                        high,
                    }
                })
            };
            bars.category(strategy, names.iter().map(point));
        }
        bars
    }
}
