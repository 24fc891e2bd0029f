//! Cores are exchanged for those of the node that has the pages, once that is certain (E6).

use placement::CpuSet;

use crate::policy::readings::Readings;
use crate::policy::settings::Policy;
use crate::policy::sites::{Site, Sites};

/// Decides when cores are exchanged for those of another node, and which. Their number stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Follow {
    /// Position of the node that the last looks favour.
    toward: Option<usize>,
    /// Looks in a row that agree on it.
    agreed: u32,
    /// Age of the newest look at the pages, as of the previous check.
    age: Option<f64>,
    /// Checks for which nothing will be exchanged.
    rest: u32,
}

/// A core that is given back, and the one that replaces it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) from: Site,
    pub(crate) to: Site,
}

impl Follow {
    /// Makes one check. All cores that may be exchanged are exchanged at once, because threads move to and fro while
    /// cores are on both nodes. `still`: nothing else happens to the cores.
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

/// Pairs of a core of `taken` and the free core that replaces it. The node of the free cores has more than `ratio`
/// times the pages of the other's node; it is the one with most pages of those with free cores. A whole core is never
/// exchanged for a second hardware thread.
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
