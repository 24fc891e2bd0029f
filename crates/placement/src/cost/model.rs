//! The model of a machine.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use topology::{Machine, Rates};

use super::links::Links;
use super::work::{Step, Work};

/// Bytes of a line.
const LINE: f64 = 64.0;

/// Attempts at halving the distance between too little time and enough.
const HALVINGS: usize = 60;

/// From which share of its time on the memory of a node or a link is what holds everything up: cores then wait for its queue.
const CROWDED: f64 = 0.8;

/// How busy a channel or a link is at most: queues grow beyond all bounds before all of its time is used.
const FULL: f64 = 0.99;

/// A machine as the model sees it.
#[derive(Debug, Clone)]
pub struct Model {
    rates: Rates,
    nodes: usize,
    cores: usize,
    /// Seconds until the memory of a node answers, by reader and home, without queues.
    latency: Vec<Vec<f64>>,
    links: Links,
}

/// What work takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds until all is done.
    pub seconds: f64,
    /// Joules of cores, working and waiting.
    pub core_joules: f64,
    /// Joules of memory.
    pub memory_joules: f64,
    /// Joules of links between nodes.
    pub link_joules: f64,
    /// What holds it up.
    pub limit: Limit,
}

/// The part of a machine that holds work up: memory or a link that is crowded, or else the threads that are busy longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The threads, or the group of threads, at this place.
    Threads(usize),
    /// The memory of this node.
    Memory(usize),
    /// The link from a node to another.
    Link(usize, usize),
}

impl Cost {
    /// Joules of all parts together.
    pub fn joules(&self) -> f64 {
        self.core_joules + self.memory_joules + self.link_joules
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self.limit {
            Limit::Threads(at) => format!("threads {at}"),
            Limit::Memory(node) => format!("the memory of node {node}"),
            Limit::Link(from, to) => format!("the link from node {from} to node {to}"),
        };
        write!(
            f,
            "{:.6} s, {:.3} J; held up by {limit}",
            self.seconds,
            self.joules()
        )
    }
}

/// The bytes of a run by where they pass.
struct Flow {
    memory: Vec<f64>,
    links: BTreeMap<(usize, usize), f64>,
}

impl Model {
    /// A machine with its own rates, or [typical](Rates::TYPICAL) ones where it has none.
    pub fn new(machine: &Machine) -> Model {
        let nodes = machine.nodes().len();
        let rates = *machine.rates().unwrap_or(&Rates::TYPICAL);
        let latency = |reader, home| seconds_to(machine, &rates, reader, home);
        let row = |reader| (0..nodes).map(|home| latency(reader, home)).collect();
        Model {
            rates,
            nodes,
            cores: machine.cores(),
            latency: (0..nodes).map(row).collect(),
            links: Links::of(machine),
        }
    }

    /// The rates that it computes with.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// How many times as long as its own node's memory that of `home` takes to answer a core of node `reader` (the text's NUMA factor).
    pub fn factor(&self, reader: usize, home: usize) -> f64 {
        self.latency[reader][home] / self.latency[reader][reader]
    }

    /// What it takes to do all of this at the same time, each by a core of its own. Nodes that the machine does not have are its last.
    pub fn cost(&self, works: &[Work]) -> Cost {
        let each: Vec<[Step; 1]> = works.iter().map(|work| [vec![work.clone()]]).collect();
        let each: Vec<&[Step]> = each.iter().map(<[Step; 1]>::as_slice).collect();
        self.steps(&each)
    }

    /// What it takes where groups of threads work at the same time, each step by step.
    pub fn steps(&self, groups: &[&[Step]]) -> Cost {
        let all = || groups.iter().flat_map(|steps| steps.iter().flatten());
        let flow = self.flow(all());
        let (served, server) = self.served(&flow);
        let slowest = |step: &Step, time: f64| {
            let times = step
                .iter()
                .map(|work| self.busy(work, &flow, time) * work.sharing);
            times.fold(0.0, f64::max)
        };
        let busiest = |time: f64| {
            let times = groups.iter().map(|steps| {
                let steps = steps.iter().map(|step| slowest(step, time));
                steps.sum::<f64>()
            });
            times.enumerate().fold(
                (0.0, 0),
                |most, (at, time)| {
                    if time > most.0 { (time, at) } else { most }
                },
            )
        };
        // The longest queues that there may be are those of the least time; with them it is surely done.
        let mut low = served / FULL;
        let mut high = low.max(busiest(low).0);
        if high > low {
            for _ in 0..HALVINGS {
                let middle = (low + high) / 2.0;
                if busiest(middle).0 > middle {
                    low = middle;
                } else {
                    high = middle;
                }
            }
        }
        let limit = if served < CROWDED * high {
            Limit::Threads(busiest(high).1)
        } else {
            server
        };
        let busy = all().map(|work| self.busy(work, &flow, high)).sum();
        self.energy(busy, &flow, high, limit)
    }

    fn flow<'w>(&self, works: impl Iterator<Item = &'w Work>) -> Flow {
        let mut flow = Flow {
            memory: vec![0.0; self.nodes],
            links: BTreeMap::new(),
        };
        for ((reader, home), bytes) in works.flat_map(|work| &work.memory) {
            let (reader, home) = self.pair(*reader, *home);
            flow.memory[home] += bytes;
            for link in self.links.path(home, reader) {
                *flow.links.entry(*link).or_default() += bytes;
            }
        }
        flow
    }

    /// How long the memory or the link that is busy longest serves, and which it is.
    fn served(&self, flow: &Flow) -> (f64, Limit) {
        let memory = f64::from(self.rates.memory_mb) * 1e6;
        let link = f64::from(self.rates.link_mb) * 1e6;
        let memories = flow.memory.iter().enumerate();
        let memories = memories.map(|(node, bytes)| (bytes / memory, Limit::Memory(node)));
        let links = flow.links.iter();
        let links = links.map(|((from, to), bytes)| (bytes / link, Limit::Link(*from, *to)));
        let all = memories.chain(links);
        all.fold((0.0, Limit::Threads(0)), |most, own| {
            if own.0 > most.0 { own } else { most }
        })
    }

    fn pair(&self, reader: usize, home: usize) -> (usize, usize) {
        (reader.min(self.nodes - 1), home.min(self.nodes - 1))
    }

    /// Seconds of a core's work if everything together takes `time`.
    fn busy(&self, work: &Work, flow: &Flow, time: f64) -> f64 {
        let rates = &self.rates;
        let computing = work.cycles / (f64::from(rates.clock_mhz) * 1e6);
        let cached = work.cached / (f64::from(rates.cache_mb) * 1e6);
        let channels = f64::from(rates.channels);
        let memory = f64::from(rates.memory_mb) * 1e6;
        let link = f64::from(rates.link_mb) * 1e6;
        let waits = work.memory.iter().map(|((reader, home), bytes)| {
            let (reader, home) = self.pair(*reader, *home);
            let channel = LINE * channels / memory;
            let mut answer = self.latency[reader][home];
            answer += queue(channel, flow.memory[home] / (memory * time));
            for crossed in self.links.path(home, reader) {
                let bytes = flow.links.get(crossed).copied().unwrap_or(0.0);
                answer += queue(LINE / link, bytes / (link * time));
            }
            bytes / LINE * answer / f64::from(rates.lines)
        });
        computing.max(cached + waits.sum::<f64>())
    }

    /// With cores that work for `busy` seconds, all together.
    fn energy(&self, busy: f64, flow: &Flow, seconds: f64, limit: Limit) -> Cost {
        let rates = &self.rates;
        let idle = (self.cores as f64 * seconds - busy).max(0.0);
        let milli = |watts: u32| f64::from(watts) / 1e3;
        let bits = |bytes: f64, pj: u32| bytes * 8.0 * f64::from(pj) / 1e12;
        let on = milli(rates.memory_mw) * self.nodes as f64 * seconds;
        Cost {
            seconds,
            core_joules: milli(rates.core_mw) * busy + milli(rates.idle_mw) * idle,
            memory_joules: on + bits(flow.memory.iter().sum(), rates.memory_pj),
            link_joules: bits(flow.links.values().sum(), rates.link_pj),
            limit,
        }
    }
}

/// Seconds until the memory of `home` answers a core of `reader`, without queues.
fn seconds_to(machine: &Machine, rates: &Rates, reader: usize, home: usize) -> f64 {
    let local = f64::from(rates.latency_ns) / 1e9;
    if reader == home {
        return local;
    }
    let distance = |to: usize| f64::from(machine.distance(reader, to));
    let own = distance(reader).max(1.0);
    if machine.rates().is_none() {
        return local * (distance(home) / own).max(1.0);
    }
    let others = (0..machine.nodes().len()).filter(|node| *node != reader);
    let nearest = others.map(distance).fold(f64::INFINITY, f64::min);
    let more = f64::from(rates.remote_ns) / 1e9 - local;
    local + more * (distance(home) - own).max(0.0) / (nearest - own).max(1.0)
}

/// How long a line waits for a server that takes `service` for each, and is busy for such a share of the time.
fn queue(service: f64, busy: f64) -> f64 {
    let busy = busy.min(FULL);
    service * busy / (2.0 * (1.0 - busy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> Model {
        Model::new(&Machine::parse(name).unwrap())
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-3 * b.abs()
    }

    #[test]
    fn the_factors_of_the_texts_come_out() {
        assert!((model("xeon-4114").factor(0, 1) - 1.36).abs() < 0.01);
        assert!((model("xeon-2630").factor(1, 0) - 1.32).abs() < 0.01);
        let opteron = model("opteron-8387");
        assert!((opteron.factor(0, 1) - 1.6).abs() < 0.01);
        assert!((opteron.factor(0, 3) - 2.2).abs() < 0.01);
        // Without rates of its own a machine has typical ones, and its distances.
        assert_eq!(model("4x4").factor(0, 1), 2.0);
    }

    #[test]
    fn a_thread_waits_for_its_lines() {
        let model = model("xeon-2630");
        // 12 lines in 80 ns are 9.6 GB/s; the queue of a memory that is busy for 28 % is 1.5 ns more.
        let cost = model.cost(&[Work::new(0).memory(0, 9.6e9)]);
        let busy = 9.6 / 34.0 / cost.seconds;
        let channel = 64.0 * 4.0 / 34.0;
        let waits = 80.0 + channel * busy / (2.0 * (1.0 - busy));
        assert!(near(cost.seconds, waits / 80.0), "{cost}");
        assert_eq!(cost.limit, Limit::Threads(0));
        // It computes while lines come.
        let more = model.cost(&[Work::new(0).cycles(6.9e9).cached(40e9)]);
        assert!(near(more.seconds, 3.0), "{more}");
        assert_eq!((more.link_joules, more.limit), (0.0, Limit::Threads(0)));
    }

    #[test]
    fn many_cores_wait_for_the_memory_or_the_link() {
        let model = model("xeon-2630");
        let all = |home: usize| -> Vec<Work> {
            let work = |_| Work::new(0).memory(home, 34e9 / 6.0);
            (0..6).map(work).collect()
        };
        let local = model.cost(&all(0));
        assert_eq!(local.limit, Limit::Memory(0));
        // Six cores would take 57.6 GB/s: the queue of a memory that is busy for 94 % keeps them waiting for the rest.
        assert!((local.seconds - 1.0 / 0.936).abs() < 0.01, "{local}");
        let remote = model.cost(&all(1));
        assert_eq!(remote.limit, Limit::Link(1, 0));
        let least = 34.0 / 14.4;
        assert!(
            (least..=1.001 * least / FULL).contains(&remote.seconds),
            "{remote}"
        );
        // 272 gigabits of 10 pJ.
        assert!(near(remote.link_joules, 34.0 * 8.0 * 10.0 / 1e3));
        assert!(near(
            local.memory_joules,
            34.0 * 8.0 * 70.0 / 1e3 + 12.0 * local.seconds
        ));
        // Both halves at once are done in the time of one.
        let mut both = all(0);
        both.extend((0..6).map(|_| Work::new(1).memory(1, 34e9 / 6.0)));
        assert!(near(model.cost(&both).seconds, local.seconds));
    }

    #[test]
    fn a_crowded_memory_is_slower_before_it_is_full() {
        let model = model("xeon-4114");
        let with = |cores: usize| {
            let works: Vec<Work> = (0..cores).map(|_| Work::new(0).memory(0, 1e9)).collect();
            model.cost(&works).seconds
        };
        let times: Vec<f64> = (1..=10).map(with).collect();
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
        assert!(times[6] / times[0] > 1.1 && times[9] >= 10.0 / 92.0);
    }

    #[test]
    fn a_step_takes_as_long_as_its_slowest_thread() {
        let model = model("xeon-4114");
        let work = |home| Work::new(0).memory(home, 1e9);
        let near = model.cost(&[work(0)]).seconds;
        // A thread that moves does one thing after the other.
        let moved = model.cost(&[work(0).moved(1, 0, 1e9)]).seconds;
        assert!((moved / near - 2.36).abs() < 0.05, "{moved} {near}");
        // Each step has one that reads from afar, or all in one step.
        let mixed: [Step; 2] = [vec![work(0), work(1)], vec![work(1), work(0)]];
        let apart: [Step; 2] = [vec![work(0), work(0)], vec![work(1), work(1)]];
        let mixed = model.steps(&[&mixed]).seconds;
        let apart = model.steps(&[&apart]).seconds;
        assert!((mixed / near - 2.72).abs() < 0.1 && apart < 0.9 * mixed);
        // Two threads on a core take twice as long, and no more energy of the core.
        let pair = [work(0).shared_by(2.0), work(0).shared_by(2.0)];
        let pair = model.cost(&pair);
        assert!((pair.seconds / near - 2.0).abs() < 0.05, "{pair}");
    }

    #[test]
    fn nothing_takes_no_time() {
        let cost = model("xeon-4114").cost(&[]);
        assert_eq!((cost.seconds, cost.joules()), (0.0, 0.0));
        let cost = model("2x2").cost(&[Work::new(7).memory(9, 64.0)]);
        assert!(cost.seconds > 0.0 && cost.seconds.is_finite());
    }
}
