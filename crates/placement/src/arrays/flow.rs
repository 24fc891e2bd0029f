//! How many threads each node gets, and how many bytes of each node they read, before chunks are cut.

use super::goal::Goal;
use super::load::Weights;

/// Attempts at halving the distance between what is too short and what is long enough.
const HALVINGS: usize = 50;

/// The most nodes for which threads are exchanged until nothing is gained.
const MOST_EXCHANGED: usize = 16;

/// The nodes that work is planned for.
pub(super) struct Nodes<'w> {
    /// Bytes that lie on each.
    pub data: Vec<f64>,
    /// Cores of each.
    pub cores: Vec<usize>,
    /// The most threads of a core.
    pub times: usize,
    /// How much bytes weigh.
    pub weights: &'w Weights,
    /// What is to be least.
    pub goal: Goal,
}

/// Threads of each node, and what they read.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    /// How many threads each node gets.
    pub threads: Vec<usize>,
    /// Bytes by home, then by the node that reads them.
    pub bytes: Vec<Vec<f64>>,
    /// Weighted bytes of the busiest core.
    pub busiest: f64,
}

impl Flow {
    /// Bytes that are read on another node than they lie on.
    pub(super) fn remote(&self) -> f64 {
        let row = |(home, row): (usize, &Vec<f64>)| row.iter().sum::<f64>() - row[home];
        self.bytes.iter().enumerate().map(row).sum()
    }

    /// Whether it is nearer to the goal than another.
    fn better(&self, other: &Flow, goal: Goal) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
        let mine = [self.busiest, self.remote()];
        let theirs = [other.busiest, other.remote()];
        let order = match goal {
            Goal::Shortest => [0, 1],
            Goal::Local => [1, 0],
        };
        let first = order.into_iter().find(|&at| !near(mine[at], theirs[at]));
        first.is_some_and(|at| mine[at] < theirs[at])
    }
}

impl Nodes<'_> {
    /// Divides up to `wanted` threads.
    pub(super) fn plan(&self, wanted: usize) -> Flow {
        let mut best = self.flow(self.first(wanted));
        let nodes = self.data.len();
        if nodes > MOST_EXCHANGED {
            return best;
        }
        // Each round moves one thread; as each is better than the one before, none comes again.
        for _ in 0..wanted * nodes {
            let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
            let moved = pairs
                .filter(|&(a, b)| a != b && best.threads[a] > 0 && best.threads[b] < self.room(b));
            let moved = moved.map(|(a, b)| {
                let mut threads = best.threads.clone();
                threads[a] -= 1;
                threads[b] += 1;
                self.flow(threads)
            });
            let next = moved.reduce(|one, other| {
                if other.better(&one, self.goal) {
                    other
                } else {
                    one
                }
            });
            match next.filter(|next| next.better(&best, self.goal)) {
                Some(next) => best = next,
                None => break,
            }
        }
        best
    }

    fn room(&self, node: usize) -> usize {
        self.cores[node] * self.times
    }

    /// Threads for the nodes with most bytes per thread, as far as they have room; then, unless all shall stay local, for
    /// the nodes nearest to the one with most.
    fn first(&self, wanted: usize) -> Vec<usize> {
        let nodes = self.data.len();
        let mut threads = vec![0; nodes];
        let per_thread =
            |threads: &[usize], node: usize| self.data[node] / (threads[node] + 1) as f64;
        for _ in 0..wanted {
            let open = (0..nodes).filter(|&node| threads[node] < self.room(node));
            let (own, others): (Vec<usize>, Vec<usize>) =
                open.partition(|&node| self.data[node] > 0.0);
            let most = |&&a: &&usize, &&b: &&usize| {
                let by = per_thread(&threads, a).total_cmp(&per_thread(&threads, b));
                by.then(b.cmp(&a))
            };
            let next = own.iter().max_by(most).copied();
            // Where a node with bytes has no cores, its neighbours are needed even for the local goal.
            let served = (0..nodes).all(|node| self.data[node] == 0.0 || self.cores[node] > 0);
            let next = match (next, self.goal) {
                (Some(node), _) => Some(node),
                (None, Goal::Local) if served => None,
                (None, _) => self.helper(&threads, &others),
            };
            let Some(node) = next else { break };
            threads[node] += 1;
        }
        threads
    }

    /// The open node nearest to the one whose threads have most to do.
    fn helper(&self, threads: &[usize], open: &[usize]) -> Option<usize> {
        let load = |node: usize| self.data[node] / threads[node].max(1) as f64;
        let most = (0..self.data.len()).max_by(|&a, &b| load(a).total_cmp(&load(b)))?;
        let near = |&&a: &&usize, &&b: &&usize| {
            let weight = |node| self.weights.get(node, most);
            weight(a).total_cmp(&weight(b)).then(a.cmp(&b))
        };
        open.iter().min_by(near).copied()
    }

    /// What these threads read, so that the goal is met best.
    fn flow(&self, threads: Vec<usize>) -> Flow {
        // Of several threads on a core each has its part of it.
        let power = |node: usize| match (threads[node], self.cores[node]) {
            (0, _) | (_, 0) => 0.0,
            (own, cores) => own as f64 / own.div_ceil(cores) as f64,
        };
        let power: Vec<f64> = (0..threads.len()).map(power).collect();
        let bytes = match self.goal {
            Goal::Shortest => self.shortest(&power),
            Goal::Local => self.local(&power),
        };
        let busiest = (0..power.len()).filter(|&node| power[node] > 0.0);
        let busiest = busiest.map(|node| {
            let weighted = |home: usize| bytes[home][node] * self.weights.get(node, home);
            (0..bytes.len()).map(weighted).sum::<f64>() / power[node]
        });
        Flow {
            busiest: busiest.fold(0.0, f64::max),
            threads,
            bytes,
        }
    }

    /// Each node reads its own bytes; the nearest one with threads reads those of a node without.
    fn local(&self, power: &[f64]) -> Vec<Vec<f64>> {
        let nodes = power.len();
        let mut bytes = vec![vec![0.0; nodes]; nodes];
        for (home, row) in bytes.iter_mut().enumerate() {
            let able = (0..nodes).filter(|&node| power[node] > 0.0);
            let near = |&a: &usize, &b: &usize| {
                let weight = |node| self.weights.get(node, home);
                let own = |node: usize| node != home;
                own(a).cmp(&own(b)).then(weight(a).total_cmp(&weight(b)))
            };
            if let Some(node) = able.min_by(near) {
                row[node] = self.data[home];
            }
        }
        bytes
    }

    /// The busiest core has as little as possible: nodes read their own bytes, and give what is too much to the nearest
    /// that have time.
    fn shortest(&self, power: &[f64]) -> Vec<Vec<f64>> {
        let nodes = power.len();
        let mut pairs: Vec<(usize, usize)> = (0..nodes)
            .flat_map(|home| (0..nodes).map(move |node| (home, node)))
            .filter(|(home, node)| home != node)
            .collect();
        pairs.sort_by(|a, b| {
            let weight = |pair: &(usize, usize)| self.weights.get(pair.1, pair.0);
            weight(a).total_cmp(&weight(b))
        });
        let (all, every): (f64, f64) = (self.data.iter().sum(), power.iter().sum());
        let weights = pairs
            .iter()
            .map(|&(home, node)| self.weights.get(node, home));
        let heaviest = weights.fold(1.0, f64::max);
        let able = power.iter().copied().filter(|power| *power > 0.0);
        let least = able.fold(f64::INFINITY, f64::min);
        let (mut low, mut high) = (all / every, all * heaviest / least);
        let mut best = match self.within(power, &pairs, low) {
            Some(bytes) => return bytes,
            None => self.within(power, &pairs, high),
        };
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            match self.within(power, &pairs, middle) {
                Some(bytes) => (best, high) = (Some(bytes), middle),
                None => low = middle,
            }
        }
        best.unwrap_or_else(|| self.local(power))
    }

    /// The bytes by home and reading node where no core has more than `most` weighted ones; `None` where that is too
    /// little.
    fn within(&self, power: &[f64], pairs: &[(usize, usize)], most: f64) -> Option<Vec<Vec<f64>>> {
        let nodes = power.len();
        let mut bytes = vec![vec![0.0; nodes]; nodes];
        let mut left = self.data.clone();
        let mut spare: Vec<f64> = power.iter().map(|power| power * most).collect();
        for node in 0..nodes {
            let own = left[node].min(spare[node]);
            bytes[node][node] = own;
            left[node] -= own;
            spare[node] -= own;
        }
        for &(home, node) in pairs {
            let weight = self.weights.get(node, home);
            let moved = left[home].min(spare[node] / weight);
            bytes[home][node] += moved;
            left[home] -= moved;
            spare[node] -= moved * weight;
        }
        let rest: f64 = left.iter().sum();
        (rest <= 1e-9 * self.data.iter().sum::<f64>()).then_some(bytes)
    }
}
