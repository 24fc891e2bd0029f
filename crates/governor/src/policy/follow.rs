//! Cores are exchanged for those of the node that has the pages, once that is certain (E6).

use placement::CpuSet;

use crate::policy::readings::Readings;
use crate::policy::settings::Policy;
use crate::policy::sites::{Site, Sites};

/// When cores go to another node, and which. Their number stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Follow {
    /// The node to which the last looks would have cores go, by its position.
    toward: Option<usize>,
    /// Looks in a row that agree.
    agreed: u32,
    /// How old the newest look at where pages are was at the check before.
    age: Option<f64>,
    /// Checks in which nothing is exchanged any more.
    rest: u32,
}

/// A core that is given back, and the one that comes for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) from: Site,
    pub(crate) to: Site,
}

impl Follow {
    /// One check. What may be exchanged is exchanged at once, as threads go to and fro between the nodes of a group
    /// whose cores are on both. `still`: nothing else happens to its cores.
    pub(crate) fn check(
        &mut self,
        policy: &Policy,
        readings: &Readings,
        possible: impl FnOnce() -> Vec<Exchange>,
        still: bool,
    ) -> Vec<Exchange> {
        self.rest = self.rest.saturating_sub(1);
        let age = readings.residency_age();
        // What was looked at once is no second opinion, however often it is read.
        let new = match (age, self.age) {
            (Some(now), Some(before)) => now <= before,
            (now, _) => now.is_some(),
        };
        self.age = age;
        if policy.follow <= 0.0 || policy.mode != crate::policy::sites::Mode::Adaptive {
            return Vec::new();
        }
        let exchanges = possible();
        let toward = exchanges.first().map(|exchange| exchange.to.node);
        if toward != self.toward {
            (self.toward, self.agreed) = (toward, 0);
        }
        self.agreed = self.agreed.saturating_add(u32::from(new));
        if !still || self.rest > 0 || self.agreed < policy.confirm_follow {
            return Vec::new();
        }
        if !exchanges.is_empty() {
            *self = Follow {
                age,
                rest: policy.rest_follow,
                ..Follow::default()
            };
        }
        exchanges
    }
}

/// Cores of `taken` that have far fewer pages (times `ratio`) than a node with free cores, and the free cores for
/// them: all of one node, of those that have some the one with most pages. A whole core is never given for a second
/// hardware thread.
pub(crate) fn exchanges(
    sites: &Sites,
    weights: &[f64],
    taken: &CpuSet,
    free: impl Fn(u32) -> bool,
    ratio: f64,
) -> Vec<Exchange> {
    let priorities = sites.priorities(weights);
    let weight = |node: usize| weights.get(node).copied().unwrap_or(0.0);
    let mut nodes: Vec<usize> = (0..priorities.len()).collect();
    nodes.sort_by_key(|node| priorities[*node]);
    for node in nodes {
        let far_fewer = |site: &&Site| weight(site.node) * ratio < weight(node);
        let own = sites.all().iter().filter(|site| taken.contains(site.cpu));
        let mut own: Vec<Site> = own.filter(far_fewer).copied().collect();
        // Away from where there are fewest pages first.
        own.sort_by_key(|site| std::cmp::Reverse(priorities[site.node]));
        let there = sites.all().iter().filter(|site| site.node == node);
        let mut there: Vec<Site> = there.filter(|site| free(site.cpu)).copied().collect();
        there.sort_by_key(Site::thread);
        let mut found = Vec::new();
        for to in there {
            // The least of a core that this one is as good as.
            let fitting = own.iter().enumerate();
            let fitting = fitting.filter(|(_, from)| from.thread() >= to.thread());
            let Some((at, _)) = fitting.min_by_key(|(_, from)| from.thread()) else {
                continue;
            };
            found.push(Exchange {
                from: own.remove(at),
                to,
            });
        }
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}
