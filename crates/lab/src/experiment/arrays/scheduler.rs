//! The scheduler against every strategy and every mapping, on the same chunks on the same nodes (row T11).

use placement::arrays::{Chunk, Division, Goal, Load, Sharing, schedule};
use placement::{Classes, CpuSet, Placement, Site, Threads, draws};
use report::{Bars, Cell, Plot, Table, Unit};
use serde::Serialize;
use serde_json::json;

use super::mappings::mappings;
use super::section::{Section, step};
use super::variants::{OS, RANDOM, Setting};
use super::work::{System, chunks};
use crate::desk::Desk;
use crate::error::Result;

/// Bytes of the array.
const BYTES: u64 = 1_000_000_000;
/// The numbers of chunks.
const COUNTS: [usize; 4] = [1, 3, 10, 100];

/// Where chunks lie.
const RESIDENCIES: [(&str, Home); 4] = [
    ("in turn", |at, _, nodes| at % nodes),
    ("in runs", |at, count, nodes| at * nodes / count),
    ("three of four on node 0", |at, _, nodes| {
        usize::from(at % 4 == 3) % nodes
    }),
    ("all on node 0", |_, _, _| 0),
];

/// The node of a chunk, by its position, their number, and that of the nodes.
type Home = fn(usize, usize, usize) -> usize;

/// What a variant comes to.
#[derive(Clone, Debug, Serialize)]
struct Own {
    variant: String,
    busiest: f64,
    remote_share: f64,
}

/// A residency and a number of chunks, under every variant.
#[derive(Clone, Debug, Serialize)]
struct Compared {
    machine: String,
    residency: &'static str,
    chunks: usize,
    variants: Vec<Own>,
    /// The least of all mappings, each by itself.
    best_busiest: f64,
    best_remote: f64,
    mappings: usize,
    why: Vec<String>,
}

impl Own {
    fn of(variant: &str, load: &Load) -> Own {
        Own {
            variant: variant.to_owned(),
            busiest: load.busiest,
            remote_share: load.remote_share(),
        }
    }
}

const SHORTEST: &str = "scheduler, shortest";
const LOCAL: &str = "scheduler, local";

/// The comparison on these machines, of which there is at least one.
///
/// # Errors
/// Those of placing; [`Error::Interrupted`](crate::Error::Interrupted).
pub(super) fn section(settings: &[Setting], quick: bool, desk: &mut Desk<'_>) -> Result<Section> {
    let mut all = Vec::new();
    for setting in settings {
        let machine = setting.site.machine();
        step(desk, &format!("the scheduler on {}", machine.name()))?;
        for (residency, home) in RESIDENCIES {
            for count in COUNTS {
                let mut chunks = chunks(count, BYTES / count as u64, 1);
                for (at, chunk) in chunks.iter_mut().enumerate() {
                    chunk.home = home(at, count, machine.nodes().len());
                }
                all.push(compare(setting, residency, &chunks, quick)?);
            }
        }
    }
    let worst = |variant: &str, figure: &dyn Fn(&Compared, &Own) -> f64| {
        let ratios = all.iter().filter_map(|one| {
            let own = one.variants.iter().find(|own| own.variant == variant)?;
            Some(figure(one, own))
        });
        ratios.fold(f64::NEG_INFINITY, f64::max)
    };
    let busiest = worst(SHORTEST, &|one, own| own.busiest / one.best_busiest);
    let remote = worst(LOCAL, &|one, own| own.remote_share - one.best_remote);
    let mut plots: Vec<Vec<Plot>> = Vec::new();
    for setting in settings {
        plots.push(vec![bars(&all, setting.site.machine().name()).into()]);
    }
    Ok(Section {
        key: "scheduler".to_owned(),
        heading: "The scheduler for array queries".to_owned(),
        texts: vec![
            format!(
                "{} threads read 1 GB that lies on the nodes already; bytes follow from the placement exactly. The strategies place groups of four. The best mapping is that of all that differ, with the nodes either way round, and of every way to share chunks: whole ones, groups and instances of all sizes, and the scheduler's own pieces. The scheduler chooses threads per chunk and their nodes from the same facts. At worst its busiest core has {} of the best mapping's bytes (bar: 105 %), and under the other goal its remote share is {} percentage points from the best mapping's.",
                settings[0].threads,
                Unit::Share.show(busiest),
                Unit::Plain.show(remote * 100.0),
            ),
            format!(
                "Why, for three chunks of which all lie on node 0: {}.",
                reasons(&all)
            ),
        ],
        tables: vec![table(&all)],
        plots,
        raw: json!({ "compared": all, "worst_busiest": busiest, "worst_remote": remote }),
    })
}

fn reasons(all: &[Compared]) -> String {
    let one = all
        .iter()
        .find(|one| one.residency == "all on node 0" && one.chunks == 3);
    one.map_or(String::new(), |one| one.why.join(". "))
}

fn compare(
    setting: &Setting,
    residency: &'static str,
    chunks: &[Chunk],
    quick: bool,
) -> Result<Compared> {
    let site = &setting.site;
    let sharing = System::Groups.sharing(setting.threads);
    let division = sharing.divide(setting.threads, chunks)?;
    let groups = Threads::with_groups(sharing.groups(setting.threads)?)?;
    let busy = division
        .threads()
        .iter()
        .filter(|pieces| !pieces.is_empty())
        .count();
    let mut variants = Vec::new();
    for (name, placement) in setting.named(&groups, busy)? {
        variants.push(Own::of(
            &name,
            &Load::of(site, &placement, &division, chunks)?,
        ));
    }
    let mut random: Option<Load> = None;
    for placement in draws(site, &groups, 1, setting.draws)? {
        let load = Load::of(site, &placement, &division, chunks)?;
        if random
            .as_ref()
            .is_none_or(|best| load.busiest < best.busiest)
        {
            random = Some(load);
        }
    }
    variants.extend(random.map(|load| Own::of(RANDOM, &load)));
    let (mut why, mut own) = (Vec::new(), None);
    for (name, goal) in [(SHORTEST, Goal::Shortest), (LOCAL, Goal::Local)] {
        let schedule = schedule(site, setting.threads, chunks, goal)?;
        let load = Load::of(site, schedule.placement(), schedule.division(), chunks)?;
        variants.push(Own::of(name, &load));
        if goal == Goal::Shortest {
            why = schedule.why().to_vec();
            own = Some(schedule.division().clone());
        }
    }
    let mut divisions: Vec<Division> = own.into_iter().collect();
    for way in ways(setting.threads) {
        divisions.push(way.divide(setting.threads, chunks)?);
    }
    let (best_busiest, best_remote, mappings) = best(setting, &divisions, chunks, quick)?;
    Ok(Compared {
        machine: site.machine().name().to_owned(),
        residency,
        chunks: chunks.len(),
        variants,
        best_busiest,
        best_remote,
        mappings,
        why,
    })
}

/// Every way to share chunks that gives groups or instances equally many threads.
fn ways(threads: usize) -> Vec<Sharing> {
    let groups = (2..=threads).filter(|of| threads.is_multiple_of(*of));
    let groups = groups.map(|of| Sharing::Groups { of });
    let instances = (1..threads).filter(|count| threads.is_multiple_of(*count));
    let instances = instances.map(|count| Sharing::Instances { count });
    [Sharing::Whole]
        .into_iter()
        .chain(groups)
        .chain(instances)
        .collect()
}

/// The least of the busiest core and the least remote share of all mappings of all divisions, and how many mappings there
/// are.
fn best(
    setting: &Setting,
    divisions: &[Division],
    chunks: &[Chunk],
    quick: bool,
) -> Result<(f64, f64, usize)> {
    let site = &setting.site;
    let classes = Classes::new(site, &Threads::in_groups(setting.threads, 1)?)?;
    let (placements, _) = mappings(&classes, quick);
    let (mut busiest, mut remote) = (f64::INFINITY, f64::INFINITY);
    for placement in &placements {
        for placement in [&mirrored(site, placement)?, placement] {
            for division in divisions {
                // The scheduler may have used fewer threads than there are.
                let threads = division.threads().len();
                if threads == placement.threads() {
                    let load = Load::of(site, placement, division, chunks)?;
                    busiest = busiest.min(load.busiest);
                    remote = remote.min(load.remote_share());
                }
            }
        }
    }
    Ok((busiest, remote, placements.len()))
}

/// The placement with the two nodes exchanged, which makes a difference where chunks lie on nodes.
pub(super) fn mirrored(site: &Site, placement: &Placement) -> Result<Placement> {
    let sets = site.node_sets();
    let nodes: Vec<Vec<u32>> = sets.iter().map(|set| set.iter().collect()).collect();
    let other = |cpu: u32| {
        let place = |cpus: &Vec<u32>| cpus.iter().position(|own| *own == cpu);
        let (node, at) = nodes
            .iter()
            .enumerate()
            .find_map(|(node, cpus)| Some((node, place(cpus)?)))?;
        nodes[(node + 1) % nodes.len()].get(at).copied()
    };
    let set = |set: &CpuSet| set.iter().map(|cpu| other(cpu).unwrap_or(cpu)).collect();
    Ok(Placement::explicit(
        site,
        placement.sets().iter().map(set).collect(),
    )?)
}

fn table(all: &[Compared]) -> Table {
    let names: Vec<&str> = all[0]
        .variants
        .iter()
        .map(|own| own.variant.as_str())
        .collect();
    let head = ["machine", "chunks", "lie"]
        .into_iter()
        .chain(names.iter().copied());
    let mut table = Table::new(head.chain(["best mapping"])).caption(
        "In each cell the weighted bytes of the busiest core, the best mapping's = 100 %, and the remote share. The last column has the best of each by itself.",
    );
    for one in all {
        let cell = |name: &&str| {
            let own = one.variants.iter().find(|own| own.variant == **name);
            own.map_or(Cell::written("–"), |own| {
                pair(own.busiest / one.best_busiest, own.remote_share)
            })
        };
        let head = [
            Cell::from(one.machine.as_str()),
            Cell::number(one.chunks as f64, Unit::Count),
            Cell::from(one.residency),
        ];
        let cells = head.into_iter().chain(names.iter().map(cell));
        table.row(cells.chain([pair(1.0, one.best_remote)]));
    }
    table
}

fn pair(busiest: f64, remote: f64) -> Cell {
    Cell::written(format!("{:.0} %, {:.0} %", busiest * 100.0, remote * 100.0))
}

/// The busiest core of the system, the best random mapping and the scheduler.
fn bars(all: &[Compared], machine: &str) -> Bars {
    let names = [OS, RANDOM, SHORTEST, LOCAL];
    let title = format!("{machine}: busiest core");
    let mut bars = Bars::new(
        title,
        "weighted bytes, the best mapping's = 100 %",
        Unit::Share,
    )
    .series(names);
    for one in all.iter().filter(|one| one.machine == machine) {
        let value = |name: &&str| {
            let own = one.variants.iter().find(|own| own.variant == **name);
            own.map_or(f64::NAN, |own| own.busiest / one.best_busiest)
        };
        let name = format!("{} {}", one.chunks, one.residency);
        bars.category(name, names.iter().map(value));
    }
    bars
}
