//! Residency from a sample of addresses.

use crate::residency::maps::Map;

/// What a sample says of one mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    /// Of the mapping, in the order of the list that was sampled.
    pub map: usize,
    /// (Node, bytes), ascending.
    pub bytes: Vec<(u32, f64)>,
    /// (Node, variance in bytes squared).
    pub variance: Vec<(u32, f64)>,
}

/// Where to look: stratified, so that k addresses of a mapping lie in k equal parts of it.
pub(crate) struct Plan {
    random: fastrand::Rng,
    page: u64,
}

impl Plan {
    pub(crate) fn new(seed: u64, page: u64) -> Plan {
        Plan {
            random: fastrand::Rng::with_seed(seed),
            page,
        }
    }

    fn pages(&self, map: &Map) -> u64 {
        (map.end - map.start) / self.page
    }

    /// `count` addresses of a mapping, each the start of a page; all of them where it is small.
    fn addresses(&mut self, map: &Map, count: u64, into: &mut Vec<u64>) {
        let pages = self.pages(map);
        let count = count.min(pages);
        for part in 0..count {
            // In u128, as address spaces times counts are.
            let edge =
                |part: u64| (u128::from(pages) * u128::from(part) / u128::from(count)) as u64;
            let (first, next) = (edge(part), edge(part + 1));
            let page = first + self.random.u64(..(next - first).max(1));
            into.push(map.start + page * self.page);
        }
    }
}

/// Looks at about `budget` addresses, at least one per mapping that can be used: a quarter by
/// the size of the mappings, to see which are filled at all; the rest where memory was found.
/// `look` gives the node of each address, `None` where nothing is in memory.
pub(crate) fn sample<E>(
    maps: &[Map],
    budget: u64,
    plan: &mut Plan,
    mut look: impl FnMut(&[u64]) -> Result<Vec<Option<u32>>, E>,
) -> Result<(Vec<Estimate>, usize), E> {
    let usable: Vec<usize> = (0..maps.len())
        .filter(|&at| maps[at].usable && plan.pages(&maps[at]) > 0)
        .collect();
    let roots = usable
        .iter()
        .map(|&at| (plan.pages(&maps[at]) as f64).sqrt());
    let sum: f64 = roots.clone().sum::<f64>().max(1.0);
    let first: Vec<u64> = roots
        .map(|root| ((budget / 4) as f64 * root / sum).ceil() as u64)
        .collect();
    let mut seen = Seen::new(usable.len());
    seen.look(maps, &usable, &first, plan, &mut look)?;

    let filled: Vec<f64> = (0..usable.len())
        .map(|at| seen.share(at) * plan.pages(&maps[usable[at]]) as f64)
        .collect();
    let sum: f64 = filled.iter().sum::<f64>().max(1.0);
    let second: Vec<u64> = filled
        .iter()
        .map(|pages| ((budget - budget / 4) as f64 * pages / sum).round() as u64)
        .collect();
    seen.look(maps, &usable, &second, plan, &mut look)?;
    Ok((seen.estimates(maps, &usable), seen.total()))
}

/// Per mapping, how many addresses were looked at, and on which nodes their pages were.
struct Seen {
    looked: Vec<u64>,
    nodes: Vec<Vec<(u32, u64)>>,
}

impl Seen {
    fn new(maps: usize) -> Seen {
        Seen {
            looked: vec![0; maps],
            nodes: vec![Vec::new(); maps],
        }
    }

    fn total(&self) -> usize {
        self.looked.iter().sum::<u64>() as usize
    }

    fn look<E>(
        &mut self,
        maps: &[Map],
        usable: &[usize],
        counts: &[u64],
        plan: &mut Plan,
        look: &mut impl FnMut(&[u64]) -> Result<Vec<Option<u32>>, E>,
    ) -> Result<(), E> {
        let mut addresses = Vec::new();
        let mut owners = Vec::new();
        for (at, (&map, &count)) in usable.iter().zip(counts).enumerate() {
            plan.addresses(&maps[map], count, &mut addresses);
            owners.resize(addresses.len(), at);
        }
        for (node, at) in look(&addresses)?.into_iter().zip(owners) {
            self.looked[at] += 1;
            let Some(node) = node else { continue };
            match self.nodes[at].binary_search_by_key(&node, |(node, _)| *node) {
                Ok(found) => self.nodes[at][found].1 += 1,
                Err(place) => self.nodes[at].insert(place, (node, 1)),
            }
        }
        Ok(())
    }

    /// How much of a mapping is in memory, 0..=1.
    fn share(&self, at: usize) -> f64 {
        let found: u64 = self.nodes[at].iter().map(|(_, count)| count).sum();
        found as f64 / self.looked[at].max(1) as f64
    }

    fn estimates(&self, maps: &[Map], usable: &[usize]) -> Vec<Estimate> {
        let estimate = |(at, &map): (usize, &usize)| {
            let size = (maps[map].end - maps[map].start) as f64;
            let looked = self.looked[at].max(1) as f64;
            let share = |count: u64| count as f64 / looked;
            Estimate {
                map,
                bytes: self.nodes[at]
                    .iter()
                    .map(|&(node, count)| (node, size * share(count)))
                    .collect(),
                variance: self.nodes[at]
                    .iter()
                    .map(|&(node, count)| {
                        let share = share(count);
                        (node, size * size * share * (1.0 - share) / looked)
                    })
                    .collect(),
            }
        };
        usable
            .iter()
            .enumerate()
            .map(estimate)
            .filter(|estimate| !estimate.bytes.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const PAGE: u64 = 4096;

    /// Mappings of so many pages each, with gaps, and a rule that fills them.
    fn maps(sizes: &[u64]) -> Vec<Map> {
        let mut start = 1 << 20;
        let map = |pages: &u64| {
            let map = Map {
                start,
                end: start + pages * PAGE,
                executable: false,
                usable: true,
                private: true,
                name: String::new(),
            };
            start = map.end + 16 * PAGE;
            map
        };
        sizes.iter().map(map).collect()
    }

    fn run(
        maps: &[Map],
        budget: u64,
        node: impl Fn(usize, u64) -> Option<u32>,
    ) -> (BTreeMap<u32, f64>, f64, usize) {
        let mut plan = Plan::new(7, PAGE);
        let look = |addresses: &[u64]| -> Result<Vec<Option<u32>>, ()> {
            let of = |address: &u64| {
                let at = maps.iter().position(|m| (m.start..m.end).contains(address));
                let at = at.expect("in a mapping");
                assert_eq!(address % PAGE, 0);
                node(at, (address - maps[at].start) / PAGE)
            };
            Ok(addresses.iter().map(of).collect())
        };
        let (estimates, looked) = sample(maps, budget, &mut plan, look).unwrap();
        let mut bytes = BTreeMap::new();
        let mut variance = 0.0;
        for estimate in &estimates {
            for (node, of) in &estimate.bytes {
                *bytes.entry(*node).or_default() += of;
            }
            variance += estimate.variance.iter().map(|(_, v)| v).sum::<f64>();
        }
        (bytes, variance.sqrt(), looked)
    }

    #[test]
    fn a_small_process_is_seen_whole() {
        let maps = maps(&[10, 1, 40]);
        let (bytes, error, looked) = run(&maps, 1 << 14, |at, page| {
            (at != 1).then_some(u32::from(page % 2 == 0))
        });
        assert_eq!(bytes[&0], 25.0 * PAGE as f64);
        assert_eq!(bytes[&1], 25.0 * PAGE as f64);
        assert!(looked >= 51, "{looked}");
        assert!(error > 0.0 || looked > 51);
    }

    #[test]
    fn a_sparse_reservation_does_not_swallow_the_sample() {
        // 4 TiB reserved and empty, 4 GiB filled, on two nodes by halves.
        let maps = maps(&[1 << 30, 1 << 20]);
        let (bytes, error, looked) = run(&maps, 1 << 14, |at, page| {
            (at == 1).then_some(u32::from(page >= 1 << 19))
        });
        let half = (2u64 << 30) as f64;
        for node in [0, 1] {
            assert!((bytes[&node] - half).abs() < 0.01 * half, "{bytes:?}");
        }
        assert!(looked < (1 << 14) + 16, "{looked}");
        assert!(error < 0.02 * half, "{error}");
    }

    #[test]
    fn nothing_mapped_is_nothing_looked_at() {
        assert_eq!(run(&[], 100, |_, _| Some(0)), (BTreeMap::new(), 0.0, 0));
    }

    proptest! {
        /// The work is bounded whatever the process has mapped, and the estimate is near.
        #[test]
        fn bounded_and_near(
            sizes in proptest::collection::vec(1u64..1 << 22, 1..40),
            modulus in 1u64..7,
            budget in 1u64 << 10..1 << 13,
        ) {
            let maps = maps(&sizes);
            let (bytes, _, looked) = run(&maps, budget, |_, page| Some(u32::from(page % modulus == 0)));
            prop_assert!(looked as u64 <= 2 * sizes.len() as u64 + budget + 1, "{}", looked);
            let all: f64 = bytes.values().sum();
            let real = (sizes.iter().sum::<u64>() * PAGE) as f64;
            // All of it is in memory, so the sum is exact.
            prop_assert!((all - real).abs() < 1.0);
            let real: u64 = sizes.iter().map(|pages| pages.div_ceil(modulus) * PAGE).sum();
            let read = bytes.get(&1).copied().unwrap_or(0.0);
            prop_assert!((read - real as f64).abs() < 0.2 * all, "{} for {}", read, real);
        }
    }
}
