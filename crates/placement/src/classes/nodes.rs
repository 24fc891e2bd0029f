//! Which nodes may be exchanged: those that look alike from inside, from every other node, and in
//! memory.
//!
//! A node without cores belongs to the nearest node with cores, if one is nearest: the two are exchanged
//! together. Two nodes are twins if exchanging them changes no distance, package or shared cache. Twins are
//! one branch whose parts may be exchanged freely; this is repeated, as branches may be twins in
//! turn (the nodes of two packages, opposite corners of a square). Nearly all machines become
//! one branch that way. What is left of the others (rings, cubes) is looked through for all its
//! symmetries one by one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::tree::{Builder, Id, Kind, Tree};
use crate::error::{Error, Result};
use crate::site::Site;

/// The most symmetries that are listed one by one: more than any machine built so far has.
const MAX_MAPS: usize = 10_000;

/// The most attempts at finding them.
const MAX_STEPS: usize = 10_000_000;

/// What one sees of a node from another: a number for each way two nodes can stand to each other.
type View = u64;

/// Distance, whether in one package, and the caches in common.
type Relation = (u32, bool, Vec<(u8, u64)>);

/// Branches and how they stand to each other.
struct Graph {
    branches: Vec<Id>,
    /// By position: of the row's branch to the column's.
    views: Vec<Vec<View>>,
}

/// The tree over the branches of the nodes, by node.
pub(crate) fn join(mut builder: Builder, site: &Site, nodes: &[Id]) -> Result<Tree> {
    let mut graph = Graph::new(site, nodes, &mut builder);
    while let Some(smaller) = contract(&graph, &mut builder) {
        graph = smaller;
    }
    let kinds = graph.branches.iter().map(|&branch| builder.kind(branch));
    let maps = symmetries(&graph, &kinds.collect::<Vec<Kind>>())?;
    Ok(builder.root(graph.branches, maps))
}

impl Graph {
    /// A branch for each node with cores, with the nodes without cores that belong to it, and one
    /// for each that belongs to none.
    fn new(site: &Site, nodes: &[Id], builder: &mut Builder) -> Graph {
        let memory = memory_classes(site);
        let views = views(site);
        let members = households(site, &memory);
        let seen = |a: &[usize], b: &[usize]| -> Vec<View> {
            let pairs = a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b)));
            pairs.map(|(a, b)| views[a][b]).collect()
        };
        let branch = |members: &Vec<usize>| {
            let mut label: Vec<u64> = members.iter().map(|&node| memory[node]).collect();
            label.extend(seen(members, members));
            let branches: Vec<Id> = members.iter().map(|&node| nodes[node]).collect();
            builder.join(label, &branches)
        };
        let branches = members.iter().map(branch).collect();
        let mut numbers: HashMap<Vec<View>, View> = HashMap::new();
        let mut number = |a: usize, b: usize| {
            let next = numbers.len() as View + 1;
            let number = *numbers
                .entry(seen(&members[a], &members[b]))
                .or_insert(next);
            if a == b { 0 } else { number }
        };
        let count = members.len();
        let views = (0..count)
            .map(|a| (0..count).map(|b| number(a, b)).collect())
            .collect();
        Graph { branches, views }
    }
}

/// Each node with cores and the nodes without that belong to it, in an order that shows in their
/// distances and memory; where it does not, they belong to none.
fn households(site: &Site, memory: &[u64]) -> Vec<Vec<usize>> {
    let machine = site.machine();
    let both = |a, b| u64::from(machine.distance(a, b)) + u64::from(machine.distance(b, a));
    let (with, without): (Vec<usize>, Vec<usize>) =
        (0..memory.len()).partition(|&node| !site.nodes()[node].is_empty());
    let owner = |node: usize| {
        let near = with.iter().map(|&other| both(node, other)).min()?;
        let mut nearest = with.iter().filter(|&&other| both(node, other) == near);
        let owner = nearest.next()?;
        nearest.next().is_none().then_some(*owner)
    };
    let mut households: Vec<Vec<usize>> = with.iter().map(|&node| vec![node]).collect();
    for household in &mut households {
        let head = household[0];
        let mark = |node: usize| {
            (
                machine.distance(head, node),
                machine.distance(node, head),
                memory[node],
            )
        };
        let mut own: Vec<usize> = without.clone();
        own.retain(|&node| owner(node) == Some(head));
        own.sort_by_key(|&node| mark(node));
        if own.windows(2).all(|pair| mark(pair[0]) != mark(pair[1])) {
            household.extend(own);
        }
    }
    let placed: BTreeSet<usize> = households.iter().flatten().copied().collect();
    let rest = without.iter().filter(|node| !placed.contains(node));
    households.extend(rest.map(|&node| vec![node]));
    households
}

/// Nodes with about the same memory have the same number: what the kernel keeps for itself differs
/// from node to node, so sizes within an eighth of each other, one to the next, are equal.
fn memory_classes(site: &Site) -> Vec<u64> {
    let nodes = site.machine().nodes();
    let mut sizes: Vec<u64> = nodes.iter().map(|node| node.memory_bytes).collect();
    sizes.sort_unstable();
    let mut class = 0;
    let mut classes = HashMap::new();
    for (at, &size) in sizes.iter().enumerate() {
        let before = sizes[at.saturating_sub(1)];
        if size > before.saturating_add(before / 8) {
            class += 1;
        }
        classes.insert(size, class);
    }
    nodes
        .iter()
        .map(|node| classes[&node.memory_bytes])
        .collect()
}

/// How all nodes stand to each other.
fn views(site: &Site) -> Vec<Vec<View>> {
    let machine = site.machine();
    let count = machine.nodes().len();
    let packages = |node: usize| -> BTreeSet<u32> {
        let cores = machine.nodes()[node].cores.iter();
        cores.filter_map(|core| core.package).collect()
    };
    let packages: Vec<BTreeSet<u32>> = (0..count).map(packages).collect();
    let common = |a: usize, b: usize| -> Vec<(u8, u64)> {
        let (a, b) = (&machine.nodes()[a].caches, &machine.nodes()[b].caches);
        let both = a.iter().filter(|cache| b.contains(cache));
        both.map(|cache| (cache.level, cache.bytes)).collect()
    };
    let mut numbers: HashMap<Relation, View> = HashMap::new();
    let mut view = |a: usize, b: usize| {
        if a == b {
            return 0;
        }
        let together = !packages[a].is_disjoint(&packages[b]);
        let next = numbers.len() as View + 1;
        let key = (machine.distance(a, b), together, common(a, b));
        *numbers.entry(key).or_insert(next)
    };
    (0..count)
        .map(|a| (0..count).map(|b| view(a, b)).collect())
        .collect()
}

impl Graph {
    /// Whether exchanging two branches changes nothing.
    fn twins(&self, a: usize, b: usize, builder: &Builder) -> bool {
        let views = &self.views;
        builder.kind(self.branches[a]) == builder.kind(self.branches[b])
            && views[a][b] == views[b][a]
            && (0..self.branches.len())
                .filter(|&other| other != a && other != b)
                .all(|other| {
                    views[a][other] == views[b][other] && views[other][a] == views[other][b]
                })
    }
}

/// The graph with all twins joined; `None` where there are none.
fn contract(graph: &Graph, builder: &mut Builder) -> Option<Graph> {
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for at in 0..graph.branches.len() {
        match classes
            .iter_mut()
            .find(|class| graph.twins(class[0], at, builder))
        {
            Some(class) => class.push(at),
            None => classes.push(vec![at]),
        }
    }
    if classes.len() == graph.branches.len() {
        return None;
    }
    let joined = classes.iter().map(|class| match class.as_slice() {
        [single] => graph.branches[*single],
        class => {
            let branches: Vec<Id> = class.iter().map(|&at| graph.branches[at]).collect();
            builder.join(vec![graph.views[class[0]][class[1]]], &branches)
        }
    });
    let branches = joined.collect();
    let row = |a: &Vec<usize>| classes.iter().map(|b| graph.views[a[0]][b[0]]).collect();
    let views = classes.iter().map(row).collect();
    Some(Graph { branches, views })
}

/// All ways to exchange the branches of a graph that change nothing; the identity first.
fn symmetries(graph: &Graph, kinds: &[Kind]) -> Result<Vec<Vec<usize>>> {
    let colours = refined(graph, kinds);
    let mut search = Search {
        graph,
        colours: &colours,
        steps: 0,
        maps: Vec::new(),
    };
    search.extend(&mut Vec::new())?;
    Ok(search.maps)
}

/// A number for each branch that a symmetry cannot change: from its kind and from what it sees,
/// until nothing more is told apart.
fn refined(graph: &Graph, kinds: &[Kind]) -> Vec<usize> {
    let mut colours = kinds.to_vec();
    let count = |colours: &[usize]| colours.iter().collect::<BTreeSet<_>>().len();
    loop {
        let seen = |at: usize| {
            let others = (0..colours.len()).map(|other| {
                let (to, from) = (graph.views[at][other], graph.views[other][at]);
                (colours[other], to, from)
            });
            let mut others: Vec<_> = others.collect();
            others.sort_unstable();
            (colours[at], others)
        };
        let all: Vec<_> = (0..colours.len()).map(seen).collect();
        let distinct: BTreeSet<_> = all.iter().collect();
        let numbers: BTreeMap<_, usize> = distinct.into_iter().zip(0..).collect();
        let next: Vec<usize> = all.iter().map(|look| numbers[look]).collect();
        if count(&next) == count(&colours) {
            return next;
        }
        colours = next;
    }
}

/// The search for symmetries: each branch in turn is sent to each that looks the same.
struct Search<'g> {
    graph: &'g Graph,
    colours: &'g [usize],
    steps: usize,
    maps: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Finds all symmetries that begin with `map`.
    fn extend(&mut self, map: &mut Vec<usize>) -> Result<()> {
        let at = map.len();
        if at == self.colours.len() {
            if self.maps.len() == MAX_MAPS {
                return Err(Error::TooSymmetric { limit: MAX_MAPS });
            }
            self.maps.push(map.clone());
            return Ok(());
        }
        for image in 0..self.colours.len() {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(Error::TooSymmetric { limit: MAX_MAPS });
            }
            if self.fits(map, at, image) {
                map.push(image);
                self.extend(map)?;
                map.pop();
            }
        }
        Ok(())
    }

    /// Whether branch `at` may go to `image` when those before it go where `map` says.
    fn fits(&self, map: &[usize], at: usize, image: usize) -> bool {
        let views = &self.graph.views;
        self.colours[image] == self.colours[at]
            && !map.contains(&image)
            && map.iter().enumerate().all(|(before, &to)| {
                views[at][before] == views[image][to] && views[before][at] == views[to][image]
            })
    }
}
