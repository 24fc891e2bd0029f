//! The policy as a function: readings in, decision out.

use std::collections::BTreeSet;

use petri::Net;
use placement::CpuSet;
use topology::Machine;

use crate::error::Result;
use crate::policy::ask::{Asked, Asker};
use crate::policy::decision::{Action, Decision, Exchanged, Moved};
use crate::policy::filter::Filter;
use crate::policy::follow::{self, Follow};
use crate::policy::lonc::Search;
use crate::policy::nodes::{AWAY, Nodes};
use crate::policy::readings::{BUSY, LOAD, Readings, THROUGHPUT, TRAFFIC, WAITING};
use crate::policy::settings::{Policy, Sensor};
use crate::policy::sites::{Priorities, Site, Sites};

/// Decides how many cores a database has and which. It has no clock and reads nothing: the same
/// readings give the same decisions.
///
/// ```
/// use governor::{BUSY, Governor, Measure, Policy, Readings};
/// use topology::Machine;
///
/// let machine = Machine::parse("4x4")?;
/// let mut governor = Governor::new(Policy::plain(), &machine, &governor::elastic_net()?)?;
/// let all = (0..16).collect::<placement::CpuSet>();
/// let busy = Measure::new(0.99, "cpus", "test");
/// let readings = Readings::new(0.0, all).with(BUSY, busy);
/// assert_eq!(governor.step(&readings)?.cpus, [0]);
/// let decision = governor.step(&readings)?;
/// assert_eq!(decision.path(), "t1-Overload-t5");
/// assert_eq!(decision.cpus, [0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Governor {
    policy: Policy,
    net: Net,
    sites: Sites,
    /// The cpus that the database has; empty before the first decision.
    cpus: CpuSet,
    filter: Filter,
    search: Search,
    nodes: Nodes,
    follow: Follow,
}

/// How many cores a database should have, before it is decided which.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The number of cores.
    pub cores: usize,
    /// The least number, whatever other databases want.
    pub floor: usize,
    place: String,
    transitions: Vec<String>,
    why: String,
    weights: Vec<f64>,
}

impl Governor {
    /// A governor that has decided nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`](crate::error::Error::Policy), or [`Error::Net`](crate::error::Error::Net) where the
    /// net is not one for this: it has a reading `u`, parameters `th_min`, `th_max`, `n_min`,
    /// `n_total`, `u_max`, and a place `Provision` with the number of cores.
    pub fn new(policy: Policy, machine: &Machine, net: &Net) -> Result<Governor> {
        policy.check()?;
        Ok(Governor {
            net: policy.prepare(net)?,
            sites: Sites::new(machine, policy.siblings),
            cpus: CpuSet::default(),
            filter: Filter::default(),
            search: Search::new(policy.probe_every),
            nodes: Nodes::default(),
            follow: Follow::default(),
            policy,
        })
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The cpus of the database; empty before the first decision.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Takes over cpus that the database has already, so that the first decision is made from their load.
    pub fn holds(&mut self, cpus: &CpuSet) {
        self.cpus.clone_from(cpus);
    }

    /// The machine has changed: cpus came or went for good. What the database has is kept as far as
    /// it is still there.
    pub fn on(&mut self, machine: &Machine) {
        self.sites = Sites::new(machine, self.policy.siblings);
    }

    fn asker(&self) -> Asker<'_> {
        Asker {
            policy: &self.policy,
            net: &self.net,
        }
    }

    /// Makes a decision.
    ///
    /// The first decision hands out the least cores. A reading that is missing changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the net.
    pub fn step(&mut self, readings: &Readings) -> Result<Decision> {
        let plan = self.plan(readings)?;
        let cores = plan.cores;
        Ok(self.settle(readings, plan, cores, &CpuSet::default()))
    }

    /// The fewest and the most cores with these cpus.
    fn limits(&self, available: usize) -> (usize, usize) {
        let most = available.saturating_sub(self.policy.reserve);
        let most = self.policy.max_cores.map_or(most, |max| most.min(max));
        // The reserve gives way to the least.
        let least = self.policy.min_cores.min(available);
        (least.max(1), most.max(least).max(1))
    }

    /// The first half of a decision: how many cores. Between several databases the number may
    /// then be cut before [`settle`](Governor::settle).
    ///
    /// # Errors
    ///
    /// Those of the net.
    pub fn plan(&mut self, readings: &Readings) -> Result<Plan> {
        let usable = self.usable(readings, &CpuSet::default());
        let (least, most) = self.limits(usable.len());
        let weights = self.sites.weights(&readings.residency());
        let mut plan = Plan {
            cores: least,
            floor: least,
            place: "Checks".to_owned(),
            transitions: Vec::new(),
            why: String::new(),
            weights,
        };
        let now = self.cpus.iter().filter(|cpu| usable.contains(*cpu)).count();
        if usable.is_empty() {
            plan.cores = 0;
            plan.why = "none of the machine's cpus may be used".to_owned();
            return Ok(plan);
        }
        if self.cpus.is_empty() {
            plan.why = format!("it starts with {least} of {most} cores");
            return Ok(plan);
        }
        let present = now.clamp(least, most);
        if now != self.cpus.len() || present != now {
            plan.cores = present;
            plan.why = format!("there are {} cpus to choose from now", usable.len());
            self.filter.reset();
            return Ok(plan);
        }
        let (u, told) = match self.metric(readings, now) {
            Ok(metric) => metric,
            Err(why) => {
                plan.cores = now;
                plan.why = format!("{why}: nothing changes");
                return Ok(plan);
            }
        };
        let u = self.filter.smooth(u, self.policy.smoothing);
        self.nodes.check(readings.number(BUSY));
        let free = self.asker().ask(u, readings, now, least, most)?;
        let (floor, ceiling, held) = self.bounds(readings, &free, (now, u), least, most);
        let asked = if (floor, ceiling) == (least, most) {
            free
        } else {
            self.asker().bounded(u, readings, now, floor, ceiling)?
        };
        plan.why = match held {
            Some(held) => format!("{told}; {held}"),
            None => told,
        };
        let (asked, peak) = self.by_peak(u, readings, asked, now, (floor, ceiling))?;
        if let Some(peak) = peak {
            plan.why = format!("{}, {peak:.0} % in a check before", plan.why);
        }
        plan.cores = asked.cores;
        plan.place = asked.place;
        plan.transitions = asked.transitions;
        let other = self.stay(readings, &usable, now, plan.cores);
        let other = other.or_else(|| self.homeward(now, plan.cores));
        let other = other.or_else(|| self.linger(&plan.weights, plan.cores));
        if let Some((cores, why)) = other {
            plan.cores = cores.max(least);
            plan.why = format!("{}; {why}", plan.why);
        }
        self.filter.decided(readings.time, now, plan.cores);
        Ok(plan)
    }

    /// The `u` that a release goes by: that of the busiest of the checks that agreed on it, if that is not the last
    /// one.
    fn by_peak(
        &self,
        u: f64,
        readings: &Readings,
        asked: Asked,
        now: usize,
        (floor, ceiling): (usize, usize),
    ) -> Result<(Asked, Option<f64>)> {
        let peak = self.filter.peak();
        let Some(peak) = peak.filter(|peak| asked.cores < now && *peak > u) else {
            return Ok((asked, None));
        };
        let asked = self.asker().ask(peak, readings, now, floor, ceiling)?;
        Ok((asked, Some(peak)))
    }

    /// The cores of the nodes from before the stay, and the reason, if these could have done all the work and no more
    /// are wanted.
    fn homeward(&self, now: usize, cores: usize) -> Option<(usize, String)> {
        let home = self.nodes.homeward().filter(|_| self.careful())?;
        let why = format!("the {home} cores of its nodes could have done it for a while");
        (cores <= now && home < cores).then_some((home, why))
    }

    /// Whether nodes are entered and left with hysteresis.
    fn careful(&self) -> bool {
        let policy = &self.policy;
        policy.mode == crate::policy::sites::Mode::Adaptive
            && policy.sensor == Sensor::Load
            && policy.patience > 1
    }

    /// A smaller number of cores to release, and the reason, if releasing all would leave a node too soon.
    fn linger(&self, weights: &[f64], cores: usize) -> Option<(usize, String)> {
        let policy = &self.policy;
        let (seen, needed) = (self.filter.down(), self.nodes.to_leave(policy.confirm_down));
        if !self.careful() || cores >= self.cpus.len() || seen >= needed {
            return None;
        }
        let priorities = self.sites.priorities(weights);
        let nodes = self.nodes_of(&self.cpus);
        let stays = |cores: &usize| {
            let kept = self.kept(&priorities, self.cpus.clone(), *cores);
            self.nodes_of(&kept) == nodes
        };
        let most = (cores..=self.cpus.len()).find(stays)?;
        let why = format!("check {seen} of {needed} that must agree before a node is left");
        (most > cores).then_some((most, why))
    }

    /// How many of these cores are left.
    fn kept(&self, priorities: &Priorities, mut cpus: CpuSet, cores: usize) -> CpuSet {
        while cpus.len() > cores {
            let Some(site) = self.sites.last(self.policy.mode, priorities, &cpus) else {
                break;
            };
            cpus = cpus.iter().filter(|cpu| *cpu != site.cpu).collect();
        }
        cpus
    }

    /// The number of nodes that these cpus are on.
    fn nodes_of(&self, cpus: &CpuSet) -> usize {
        let nodes = cpus.iter().filter_map(|cpu| self.sites.site(cpu));
        let nodes: BTreeSet<usize> = nodes.map(|site| site.node).collect();
        nodes.len()
    }

    /// How many of these cpus are on nodes of the others.
    fn near(&self, usable: &CpuSet, cpus: &CpuSet) -> usize {
        let node = |cpu| self.sites.site(cpu).map(|site| site.node);
        let near = |cpu: &u32| cpus.iter().any(|own| node(own) == node(*cpu));
        usable.iter().filter(near).count()
    }

    /// The cores of the present nodes, and the reason for no more, if more would be on another node while the present
    /// ones can do the work, or might.
    fn stay(
        &mut self,
        readings: &Readings,
        usable: &CpuSet,
        now: usize,
        cores: usize,
    ) -> Option<(usize, String)> {
        let policy = &self.policy;
        let asked =
            policy.mode == crate::policy::sites::Mode::Adaptive && policy.sensor == Sensor::Load;
        let home = self.near(usable, &self.cpus).max(now);
        // Where nobody tells how much waits the cores become more step by step anyway.
        let demand = readings.number(BUSY).zip(readings.number(WAITING));
        let Some((busy, waiting)) = demand.filter(|_| asked && cores > home) else {
            self.nodes.stays();
            return None;
        };
        if policy.confirm_node > 1 && busy + waiting <= home as f64 + AWAY {
            self.nodes.stays();
            return Some((home, format!("the {home} cores of its nodes can do it")));
        }
        if self.nodes.enters(now, waiting, policy.confirm_node) {
            return None;
        }
        let more = cores - home;
        let why = format!("{more} more would be of other nodes: if the next checks agree");
        Some((home, why))
    }

    /// The cpus to choose from, without those of other databases.
    fn usable(&self, readings: &Readings, others: &CpuSet) -> CpuSet {
        let sites = self.sites.all().iter().map(|site| site.cpu);
        sites
            .filter(|cpu| readings.available.contains(*cpu) && !others.contains(*cpu))
            .collect()
    }

    /// The net's `u`, and its meaning in words.
    fn metric(
        &self,
        readings: &Readings,
        cores: usize,
    ) -> std::result::Result<(f64, String), String> {
        if self.policy.sensor == Sensor::Traffic {
            let ratio = readings.number(TRAFFIC);
            let ratio = ratio.ok_or_else(|| readings.why_not(TRAFFIC))?.max(0.0);
            return Ok((ratio, format!("traffic ratio {ratio:.2}")));
        }
        let waiting = readings
            .number(WAITING)
            .filter(|_| self.policy.count_waiting);
        let waiting = waiting.unwrap_or(0.0).max(0.0);
        let per_core = 100.0 / cores as f64;
        let load = match (readings.number(BUSY), readings.number(LOAD)) {
            (Some(busy), _) => per_core * busy,
            (None, Some(load)) => load,
            (None, None) => return Err(readings.why_not(BUSY)),
        };
        let (alone, load) = (load.clamp(0.0, 100.0), load + per_core * waiting);
        let load = load.clamp(0.0, 100.0);
        let told = if load > alone + 1.0 {
            format!("load {alone:.0} % of {cores} cores, {load:.0} % with threads that wait")
        } else {
            format!("load {load:.0} % of {cores} cores")
        };
        Ok((load, told))
    }

    /// The bounds that hysteresis, rate limits and the throughput sensor set for the net.
    fn bounds(
        &mut self,
        readings: &Readings,
        free: &Asked,
        (now, u): (usize, f64),
        least: usize,
        most: usize,
    ) -> (usize, usize, Option<String>) {
        self.filter.checks();
        if self.policy.sensor == Sensor::Throughput {
            let (overloaded, idle) = (free.place == "Overload", free.place == "Idle");
            match readings.number(THROUGHPUT) {
                Some(throughput) => {
                    let limits = (least, most);
                    let bounds = self.search.check(now, throughput, overloaded, idle, limits);
                    if bounds.why.is_some() || (bounds.floor, bounds.ceiling) != limits {
                        return (bounds.floor, bounds.ceiling, bounds.why);
                    }
                }
                None => {
                    let why = format!("{}: the load decides alone", readings.why_not(THROUGHPUT));
                    return (least, most, Some(why));
                }
            }
        }
        let wanted = free.cores;
        match self
            .filter
            .hold_back(&self.policy, readings.time, (now, u), wanted)
        {
            Some(why) => (now, now, Some(why)),
            None => (least, most, None),
        }
    }

    /// The second half of a decision: which cores. `cores` is what the plan gets, `others` the
    /// cpus that other databases have.
    pub fn settle(
        &mut self,
        readings: &Readings,
        plan: Plan,
        cores: usize,
        others: &CpuSet,
    ) -> Decision {
        let before = self.cpus.clone();
        let usable = self.usable(readings, others);
        let priorities = self.sites.priorities(&plan.weights);
        let now: CpuSet = before.iter().filter(|cpu| usable.contains(*cpu)).collect();
        let cores = cores.min(usable.len());
        let mut now = self.kept(&priorities, now, cores);
        while now.len() < cores {
            let Some(site) = self.next(&priorities, &usable, &now) else {
                break;
            };
            now = now.iter().chain([site.cpu]).collect();
        }
        let mut why = plan.why;
        if cores != plan.cores {
            why = format!("{why}; it gets {cores} of the {} it asks for", plan.cores);
        }
        let exchanged = self.exchange(readings, &plan.weights, &usable, now == before);
        if let Some(first) = exchanged.first() {
            let gone = |cpu: &u32| exchanged.iter().any(|one| one.from.cpu == *cpu);
            let came = exchanged.iter().map(|one| one.to.cpu);
            now = now.iter().filter(|cpu| !gone(cpu)).chain(came).collect();
            let share = self.share(&plan.weights, first.to.cpu);
            let told: Vec<String> = exchanged.iter().map(Exchanged::to_string).collect();
            let told = told.join(", ");
            why = format!("{why}; exchanged {told}: {share:.0} % of its pages are there");
        }
        let list = |of: &CpuSet, without: &CpuSet| -> Vec<Moved> {
            let gone = of.iter().filter(|cpu| !without.contains(*cpu));
            gone.map(|cpu| self.moved(cpu)).collect()
        };
        let decision = Decision {
            time: readings.time,
            readings: readings.values.clone(),
            place: plan.place,
            transitions: plan.transitions,
            action: match now.len().cmp(&before.len()) {
                std::cmp::Ordering::Greater => Action::Allocate,
                std::cmp::Ordering::Less => Action::Release,
                std::cmp::Ordering::Equal => Action::None,
            },
            cpus: now.iter().collect(),
            why,
            decision_seconds: 0.0,
            available: readings.available.to_string(),
            cores_before: before.len(),
            allocated: list(&now, &before),
            released: list(&before, &now),
            exchanged,
            lonc: (self.policy.sensor == Sensor::Throughput).then(|| self.search.lonc(now.len())),
            migrated: None,
            target: None,
        };
        let nodes = (self.nodes_of(&before), self.nodes_of(&now));
        let home = self.near(&usable, &before);
        self.nodes
            .settled(nodes, (home, now.len()), self.policy.patience);
        self.cpus = now;
        decision
    }

    /// The cores that are exchanged to follow the pages: none unless nothing else happens to the cores (`still`).
    fn exchange(
        &mut self,
        readings: &Readings,
        weights: &[f64],
        usable: &CpuSet,
        still: bool,
    ) -> Vec<Exchanged> {
        let (sites, cpus, ratio) = (&self.sites, &self.cpus, self.policy.follow);
        let free = |cpu| usable.contains(cpu) && !cpus.contains(cpu);
        let possible = || follow::exchanges(sites, weights, cpus, free, ratio);
        let exchanges = self.follow.check(&self.policy, readings, possible, still);
        let told = |one: follow::Exchange| Exchanged {
            from: self.moved(one.from.cpu),
            to: self.moved(one.to.cpu),
        };
        exchanges.into_iter().map(told).collect()
    }

    /// The pages on a cpu's node, in per cent of all.
    fn share(&self, weights: &[f64], cpu: u32) -> f64 {
        let all: f64 = weights.iter().sum();
        let site = self.sites.site(cpu);
        let there = site.and_then(|site| weights.get(site.node));
        100.0 * there.copied().unwrap_or(0.0) / all.max(f64::MIN_POSITIVE)
    }

    fn moved(&self, cpu: u32) -> Moved {
        let node = self.sites.site(cpu).map_or(0, |site| site.os_node);
        Moved { cpu, node }
    }

    fn next(&self, priorities: &Priorities, usable: &CpuSet, taken: &CpuSet) -> Option<Site> {
        let free = |cpu| usable.contains(cpu) && !taken.contains(cpu);
        self.sites.next(self.policy.mode, priorities, free)
    }
}
