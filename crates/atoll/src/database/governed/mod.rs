//! The workers, governed within this process.

use std::sync::{Arc, Weak};

use governor::runtime::{Crew, Options as Governing, Runtime};
use placement::CpuSet;
use topology::Machine;
use workers::{Layout, Place, Workers};

use crate::database::options::{Govern, Options};
use crate::error::{Error, Result};

/// Starts what publishes what statements do and, where the options say so, governs the workers.
pub(crate) fn start(
    instance: &Arc<sql::Instance>,
    machine: &Machine,
    live: &Machine,
    options: &Options,
) -> Result<Arc<Runtime>> {
    let workers = instance.workers();
    let on = match options.govern {
        Govern::Auto => live.nodes().len() > 1,
        Govern::On | Govern::Throughput => true,
        Govern::Off => false,
    };
    let team = Team::new(instance, machine, live);
    let refused = |e: governor::Error| Error::Options(e.to_string());
    // One worker is always needed.
    if !on || workers.threads() < 2 {
        let counting = Runtime::start(Arc::new(team), None);
        return Ok(Arc::new(counting.map_err(refused)?));
    }
    let cpus = cpus_of(&team.sites, workers.layout().places());
    let mut governing = Governing::new(machine.clone(), cpus);
    if options.govern == Govern::Throughput {
        governing = governing.by_throughput();
    }
    governing.policy.max_cores = Some(governing.cpus.len());
    // All cpus of the machine may be chosen from, where there are fewer workers than these.
    governing.available = team.sites.iter().map(|(cpu, _)| *cpu).collect();
    let runtime = Runtime::start(Arc::new(team), Some(governing));
    let runtime = Arc::new(runtime.map_err(refused)?);
    let telling = Arc::downgrade(&runtime);
    instance.report_with(move |began| {
        let runtime = telling.upgrade();
        runtime.map_or_else(Vec::new, |runtime| runtime.since(began))
    });
    Ok(runtime)
}

/// The workers, and where each cpu of the machine that they are laid out for is on the one they run on.
struct Team {
    /// Weak: this must not keep the threads alive and the file open.
    workers: Weak<Workers>,
    instance: Weak<sql::Instance>,
    /// Each cpu, node by node.
    sites: Vec<(u32, Place)>,
    /// The operating system's numbers of the nodes.
    nodes: Vec<u32>,
    /// Workers for each cpu, where there are more of them.
    each: usize,
}

impl Team {
    fn new(instance: &Arc<sql::Instance>, machine: &Machine, live: &Machine) -> Team {
        let workers = instance.workers();
        let sites = sites(machine, live, workers.layout().pin());
        Team {
            workers: Arc::downgrade(workers),
            instance: Arc::downgrade(instance),
            each: workers.threads().div_ceil(sites.len().max(1)),
            nodes: machine.nodes().iter().map(|node| node.os_index).collect(),
            sites,
        }
    }
}

/// Each cpu of the machine, node by node, and its place on the live one.
fn sites(machine: &Machine, live: &Machine, pin: bool) -> Vec<(u32, Place)> {
    let whole = Layout::of(machine, live, machine.cpus(), pin);
    let mut sites = Vec::new();
    for node in machine.nodes() {
        let of_node = |place: &&Place| place.node == node.index;
        let mut places: Vec<Place> = whole.places().iter().filter(of_node).copied().collect();
        for cpu in node.cores.iter().flat_map(|core| &core.cpus) {
            // The cpu itself where it is one of the live machine.
            let own = places.iter().position(|place| place.cpu == *cpu);
            if !places.is_empty() {
                sites.push((*cpu, places.remove(own.unwrap_or(0))));
            }
        }
    }
    sites
}

/// The cpus of workers at these places.
fn cpus_of(sites: &[(u32, Place)], places: &[Place]) -> CpuSet {
    let mut chosen = CpuSet::default();
    for place in places {
        let free = |(cpu, at): &&(u32, Place)| at == place && !chosen.contains(*cpu);
        if let Some((cpu, _)) = sites.iter().find(free) {
            chosen = chosen.iter().chain([*cpu]).collect();
        }
    }
    chosen
}

impl Crew for Team {
    fn threads(&self) -> Vec<u32> {
        let workers = self.workers.upgrade();
        workers.map_or_else(Vec::new, |workers| workers.thread_ids())
    }

    fn bytes(&self) -> Vec<(u32, u64)> {
        let matrix = self.instance.upgrade().map(|instance| instance.bytes());
        let sum = |page: usize| {
            let rows = matrix.iter().flatten();
            rows.filter_map(|row| row.get(page)).sum()
        };
        let nodes = self.nodes.iter().enumerate();
        nodes.map(|(page, node)| (*node, sum(page))).collect()
    }

    fn place(&self, cpus: &CpuSet) -> std::result::Result<(), String> {
        let Some(workers) = self.workers.upgrade() else {
            return Ok(());
        };
        let chosen = self.sites.iter().filter(|(cpu, _)| cpus.contains(*cpu));
        let places: Vec<Place> = chosen.map(|(_, place)| *place).collect();
        let width = workers.threads().min(places.len() * self.each);
        let places: Vec<Place> = places.into_iter().cycle().take(width).collect();
        workers.place(&places).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
