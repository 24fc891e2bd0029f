//! Morsel-driven work lists: pieces of work (morsels), each with the node its data is on, and work stealing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The NUMA distance order: for each node, all nodes from the nearest (itself) to the farthest. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Nearness {
    /// Row `n` is a permutation of all nodes that starts with `n`.
    rows: Arc<[Box<[usize]>]>,
}

impl Nearness {
    /// The order for `nodes` nodes (at least one) with these distances. Equally distant nodes come in index order,
    /// counted from the node itself, so that not all workers steal from node 0 first.
    pub fn new(nodes: usize, distance: impl Fn(usize, usize) -> u32) -> Nearness {
        let nodes = nodes.max(1);
        let row = |node: usize| {
            let mut row: Vec<usize> = (0..nodes).map(|step| (node + step) % nodes).collect();
            // Stable: keeps the order from `node` upwards among equals.
            row.sort_by_key(|&other| (other != node, distance(node, other)));
            row.into_boxed_slice()
        };
        Nearness {
            rows: (0..nodes).map(row).collect(),
        }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.rows.len()
    }

    /// All nodes, nearest to `node` first. `node` is taken modulo the number of nodes.
    pub fn from(&self, node: usize) -> &[usize] {
        &self.rows[node % self.rows.len()]
    }
}

/// An atomic counter, as a trait so that claiming can be tested under loom.
trait Counter: Default {
    fn load(&self) -> usize;
    /// Adds one and returns the value before.
    fn next(&self) -> usize;
}

impl Counter for AtomicUsize {
    // Relaxed throughout: the items are immutable, so only the counter's own order matters.
    fn load(&self) -> usize {
        AtomicUsize::load(self, Ordering::Relaxed)
    }

    fn next(&self) -> usize {
        self.fetch_add(1, Ordering::Relaxed)
    }
}

/// After so many claims a claimant starts to leave the last pieces of other nodes to the workers there.
const PATIENCE: usize = 4;

/// The pieces of one node. Invariant: each item below the cursor is claimed by exactly one caller. Aligned to its
/// own cache lines, because workers of other nodes write to their lists.
#[derive(Debug)]
#[repr(align(128))]
struct List<C> {
    cursor: C,
    items: Box<[u32]>,
    /// Claimants whose last claim was made on this node.
    working: AtomicUsize,
}

impl<C: Counter> List<C> {
    fn claim(&self) -> Option<u32> {
        // Loading before the addition avoids writes to a finished list, and keeps its cursor from running away.
        if self.cursor.load() >= self.items.len() {
            return None;
        }
        self.items.get(self.cursor.next()).copied()
    }

    fn left(&self) -> usize {
        self.items.len().saturating_sub(self.cursor.load())
    }
}

/// A work list: numbered pieces (morsels), each with the home node of its data. Lock-free.
///
/// Each piece is claimed exactly once. A worker gets the pieces of its own node first, in the order given, then
/// those of the nearest node that has any left (work stealing).
#[derive(Debug)]
pub struct Morsels {
    nearness: Nearness,
    lists: Box<[List<AtomicUsize>]>,
}

impl Morsels {
    /// A list of `(home node, piece)` on `nodes` nodes with these distances. Home nodes are taken modulo the number
    /// of nodes.
    pub fn new(
        nodes: usize,
        distances: impl Fn(usize, usize) -> u32,
        items: impl IntoIterator<Item = (usize, u32)>,
    ) -> Morsels {
        Morsels::near(&Nearness::new(nodes, distances), items)
    }

    /// Like [`new`](Morsels::new), with a distance order that was computed before, such as that of a
    /// [`Layout`](crate::Layout).
    pub fn near(nearness: &Nearness, items: impl IntoIterator<Item = (usize, u32)>) -> Morsels {
        Morsels {
            nearness: nearness.clone(),
            lists: lists(nearness.nodes(), items),
        }
    }

    /// Claims a piece for a worker on `node`; `None` once all pieces are claimed.
    pub fn claim(&self, node: usize) -> Option<u32> {
        self.claim_from(node).map(|(_, item)| item)
    }

    /// Like [`claim`](Morsels::claim); also returns the home node of the piece.
    pub fn claim_from(&self, node: usize) -> Option<(usize, u32)> {
        claim(&self.nearness, &self.lists, node)
    }

    /// A claimant, which claims piece after piece.
    pub fn claimant(&self) -> Claimant<'_> {
        Claimant {
            morsels: self,
            at: None,
            claimed: 0,
        }
    }

    /// The number of unclaimed pieces. It may be lower by the time the caller looks at it.
    pub fn left(&self) -> usize {
        self.lists.iter().map(List::left).sum()
    }
}

/// Claims the pieces of a list one after the other.
///
/// As with [`Morsels::claim`], pieces of the own node come first, then those of the nearest node. After a few
/// claims, however, a claimant leaves the last pieces of another node to the claimants there, one for each: they
/// will take them next, and read them from local memory. All pieces get claimed as long as no claimant stops before
/// [`claim`](Claimant::claim) returns `None`.
#[derive(Debug)]
pub struct Claimant<'a> {
    morsels: &'a Morsels,
    /// The node where it is counted as working.
    at: Option<usize>,
    claimed: usize,
}

impl Claimant<'_> {
    /// Claims a piece for a worker that is now on `node`; `None` once all pieces are claimed or left to others.
    pub fn claim(&mut self, node: usize) -> Option<u32> {
        let lists = &self.morsels.lists;
        let node = node % lists.len();
        // Counted before it looks: of the claimants that leave a node, the last one sees that nobody is left.
        if self.at != Some(node) {
            self.leave();
            lists[node].working.fetch_add(1, Ordering::SeqCst);
            self.at = Some(node);
        }
        let patient = self.claimed >= PATIENCE;
        let piece = self.morsels.nearness.from(node).iter().find_map(|&home| {
            let list = &lists[home];
            let theirs = if patient && home != node {
                list.working.load(Ordering::SeqCst)
            } else {
                0
            };
            (list.left() > theirs).then(|| list.claim())?
        });
        match piece {
            Some(_) => self.claimed += 1,
            None => self.leave(),
        }
        piece
    }

    fn leave(&mut self) {
        if let Some(at) = self.at.take() {
            self.morsels.lists[at]
                .working
                .fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Claimant<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

fn lists<C: Counter>(
    nodes: usize,
    items: impl IntoIterator<Item = (usize, u32)>,
) -> Box<[List<C>]> {
    let mut homes = vec![Vec::new(); nodes];
    for (home, item) in items {
        homes[home % nodes].push(item);
    }
    let list = |items: Vec<u32>| List {
        cursor: C::default(),
        items: items.into_boxed_slice(),
        working: AtomicUsize::new(0),
    };
    homes.into_iter().map(list).collect()
}

fn claim<C: Counter>(nearness: &Nearness, lists: &[List<C>], node: usize) -> Option<(usize, u32)> {
    nearness
        .from(node)
        .iter()
        .find_map(|&home| Some((home, lists[home].claim()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A square: 0-1, 1-2, 2-3, 3-0 are near, the diagonals far.
    fn square(a: usize, b: usize) -> u32 {
        match a.abs_diff(b) {
            0 => 10,
            2 => 22,
            _ => 16,
        }
    }

    #[test]
    fn own_node_first_then_the_nearest() {
        let morsels = Morsels::new(4, square, (0..8).map(|n| (n as usize % 4, n)));
        assert_eq!(morsels.left(), 8);
        let homes: Vec<usize> = std::iter::from_fn(|| morsels.claim_from(1))
            .map(|(home, _)| home)
            .collect();
        assert_eq!(homes, [1, 1, 2, 2, 0, 0, 3, 3]);
        assert_eq!((morsels.left(), morsels.claim(0)), (0, None));
    }

    #[test]
    fn the_last_pieces_are_left_to_who_works_there() {
        // Six pieces on each of two nodes.
        let morsels = Morsels::new(2, |_, _| 20, (0..12).map(|n| (n as usize % 2, n)));
        let (mut here, mut there) = (morsels.claimant(), morsels.claimant());
        assert_eq!(there.claim(1), Some(1));
        let own: Vec<u32> = (0..6).filter_map(|_| here.claim(0)).collect();
        assert_eq!(own, [0, 2, 4, 6, 8, 10]);
        // Four of the other node's five left are more than one worker there takes next.
        let others: Vec<u32> = std::iter::from_fn(|| here.claim(0)).collect();
        assert_eq!(others, [3, 5, 7, 9]);
        assert_eq!((there.claim(1), there.claim(1)), (Some(11), None));
    }

    #[test]
    fn nothing_is_left_where_nobody_works() {
        let morsels = Morsels::new(4, square, (0..40).map(|n| (n as usize % 4, n)));
        let mut one = morsels.claimant();
        assert_eq!(std::iter::from_fn(|| one.claim(2)).count(), 40);
        // Who has just come is not patient.
        let few = Morsels::new(2, |_, _| 20, [(1, 7), (1, 8)]);
        let (mut here, mut there) = (few.claimant(), few.claimant());
        assert_eq!((there.claim(1), here.claim(0)), (Some(7), Some(8)));
    }

    #[test]
    fn given_order_is_kept_within_a_node() {
        let morsels = Morsels::new(2, square, [(1, 9), (0, 5), (1, 3), (1, 7)]);
        let order: Vec<u32> = std::iter::from_fn(|| morsels.claim(1)).collect();
        assert_eq!(order, [9, 3, 7, 5]);
    }

    #[test]
    fn nodes_that_do_not_exist_count_modulo() {
        let morsels = Morsels::new(0, square, [(7, 1)]);
        assert_eq!(morsels.claim(99), Some(1));
    }

    #[test]
    fn exactly_once_under_many_threads() {
        let morsels = Morsels::new(4, square, (0..50_000).map(|n| (n as usize % 3, n)));
        let claimed: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|n| {
                    let morsels = &morsels;
                    scope.spawn(move || std::iter::from_fn(|| morsels.claim(n % 4)).collect())
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let mut all: Vec<u32> = claimed.into_iter().flatten().collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..50_000));
    }

    /// Claimants that change nodes claim everything between them.
    #[test]
    fn claimants_that_move_leave_nothing() {
        for round in 0..200usize {
            let morsels = Morsels::new(4, square, (0..97).map(|n| (n as usize % 4, n)));
            let claimed: Vec<Vec<u32>> = std::thread::scope(|scope| {
                let run = |n: usize| {
                    let mut claimant = morsels.claimant();
                    let mut at = n + round;
                    std::iter::from_fn(|| {
                        at = (at * 5 + 3) % 8192;
                        claimant.claim(at / 7 % 4)
                    })
                    .collect()
                };
                let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || run(n))).collect();
                let threads = threads.into_iter();
                threads.map(|thread| thread.join().unwrap()).collect()
            });
            let mut all: Vec<u32> = claimed.into_iter().flatten().collect();
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..97), "round {round}: {all:?}");
        }
    }

    proptest! {
        #[test]
        fn rows_are_permutations_by_distance(
            nodes in 1usize..9,
            distances in proptest::collection::vec(10u32..40, 64),
        ) {
            let distance = |a: usize, b: usize| distances[a * 8 + b];
            let nearness = Nearness::new(nodes, distance);
            for node in 0..nodes {
                let row = nearness.from(node);
                prop_assert_eq!(row[0], node);
                let all: BTreeSet<usize> = row.iter().copied().collect();
                prop_assert_eq!(all.len(), nodes);
                let far: Vec<u32> = row[1..].iter().map(|&other| distance(node, other)).collect();
                prop_assert!(far.is_sorted());
            }
        }
    }

    impl Counter for loom::sync::atomic::AtomicUsize {
        fn load(&self) -> usize {
            loom::sync::atomic::AtomicUsize::load(self, Ordering::Relaxed)
        }

        fn next(&self) -> usize {
            self.fetch_add(1, Ordering::Relaxed)
        }
    }

    /// Every interleaving of two workers on two nodes, stealing from each other.
    #[test]
    fn exactly_once_in_every_interleaving() {
        loom::model(|| {
            type Lists = Box<[List<loom::sync::atomic::AtomicUsize>]>;
            let shared: Arc<Lists> = Arc::new(lists(2, [(0, 10), (0, 11), (1, 20)]));
            let run = |node: usize, shared: Arc<Lists>| {
                let nearness = Nearness::new(2, |_, _| 20);
                std::iter::from_fn(|| claim(&nearness, &shared, node))
                    .map(|(_, item)| item)
                    .collect::<Vec<u32>>()
            };
            let theirs = shared.clone();
            let other = loom::thread::spawn(move || run(1, theirs));
            let mut all = run(0, shared);
            all.extend(other.join().unwrap());
            all.sort_unstable();
            assert_eq!(all, [10, 11, 20]);
        });
    }
}
