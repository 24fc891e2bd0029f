//! The machine as a tree of nodes, caches and cores, in which equal branches have one kind.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use topology::CacheKind;

use super::nodes;
use crate::{Result, Site};

/// Equal for branches that look the same from inside: their contents can be exchanged.
pub(crate) type Kind = usize;

/// A position in [`Tree::branches`].
pub(crate) type Id = usize;

/// A part of the machine.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) kind: Kind,
    pub(crate) parts: Parts,
}

/// What a branch consists of.
#[derive(Debug, Clone)]
pub(crate) enum Parts {
    /// Of a core, by its position among the site's cores.
    Core(usize),
    /// Of branches; those of one run have one kind and may be exchanged with each other. Runs
    /// stand in the order of their kinds, so that branches of one kind have the same runs.
    Runs(Vec<Vec<Id>>),
    /// Of branches that may be exchanged in some ways only: `maps[m][i]` is where branch `i` goes.
    /// The first map is the identity. Only the root can be like this.
    Maps {
        branches: Vec<Id>,
        maps: Vec<Vec<usize>>,
    },
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) branches: Vec<Branch>,
    pub(crate) root: Id,
}

/// What makes two branches equal.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Look {
    Core {
        cpus: usize,
        caches: Vec<(u8, CacheKind, u64)>,
    },
    /// A label, and the number of branches of each kind.
    Runs(Vec<u64>, Vec<(Kind, usize)>),
}

/// A tree that grows from the cores to the root.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    branches: Vec<Branch>,
    kinds: HashMap<Look, Kind>,
}

impl Builder {
    fn add(&mut self, look: Look, parts: Parts) -> Id {
        let next = self.kinds.len();
        let kind = *self.kinds.entry(look).or_insert(next);
        self.branches.push(Branch { kind, parts });
        self.branches.len() - 1
    }

    pub(crate) fn kind(&self, branch: Id) -> Kind {
        self.branches[branch].kind
    }

    /// A branch of branches, of which those of one kind may be exchanged.
    pub(crate) fn join(&mut self, label: Vec<u64>, branches: &[Id]) -> Id {
        let mut runs: BTreeMap<Kind, Vec<Id>> = BTreeMap::new();
        for &branch in branches {
            runs.entry(self.kind(branch)).or_default().push(branch);
        }
        let counts = runs.iter().map(|(kind, run)| (*kind, run.len())).collect();
        let parts = match branches {
            // A level with one branch is no choice, but it may look different from outside.
            [single] => self.branches[*single].parts.clone(),
            _ => Parts::Runs(runs.into_values().collect()),
        };
        self.add(Look::Runs(label, counts), parts)
    }

    /// The root of branches that may be exchanged by `maps` only.
    pub(crate) fn root(mut self, branches: Vec<Id>, maps: Vec<Vec<usize>>) -> Tree {
        if let [root] = *branches {
            let branches = self.branches;
            return Tree { branches, root };
        }
        let parts = if let [_] = maps.as_slice() {
            Parts::Runs(branches.iter().map(|&branch| vec![branch]).collect())
        } else {
            Parts::Maps { branches, maps }
        };
        let kind = self.kinds.len();
        self.branches.push(Branch { kind, parts });
        Tree {
            root: self.branches.len() - 1,
            branches: self.branches,
        }
    }

    fn core(&mut self, core: &CoreLook, at: usize) -> Id {
        let look = Look::Core {
            cpus: core.cpus,
            caches: core.caches.clone(),
        };
        self.add(look, Parts::Core(at))
    }

    /// A branch of `cores`: what each of the largest `caches` among them holds, and the rest.
    fn nest(
        &mut self,
        label: Vec<u64>,
        cores: &BTreeSet<usize>,
        caches: &[(BTreeSet<usize>, Vec<u64>)],
        looks: &BTreeMap<usize, CoreLook>,
    ) -> Id {
        let mut left = cores.clone();
        let mut branches = Vec::new();
        for (at, (inner, label)) in caches.iter().enumerate() {
            // Caches that overlap without one holding the other are no tree: the later is ignored.
            if inner.is_subset(&left) {
                left.retain(|core| !inner.contains(core));
                branches.push(self.nest(label.clone(), inner, &caches[at + 1..], looks));
            }
        }
        branches.extend(left.iter().map(|&core| self.core(&looks[&core], core)));
        self.join(label, &branches)
    }
}

/// What can be seen of a core.
#[derive(Debug)]
struct CoreLook {
    cpus: usize,
    /// Those it does not share.
    caches: Vec<(u8, CacheKind, u64)>,
}

/// The tree of a site.
///
/// # Errors
///
/// [`Error::TooSymmetric`](crate::Error::TooSymmetric).
pub(crate) fn build(site: &Site) -> Result<Tree> {
    let mut builder = Builder::default();
    let nodes: Vec<Id> = (0..site.nodes().len())
        .map(|node| of_node(&mut builder, site, node))
        .collect();
    nodes::join(builder, site, &nodes)
}

/// The branch of one node.
fn of_node(builder: &mut Builder, site: &Site, node: usize) -> Id {
    let cores: BTreeSet<usize> = site.nodes()[node].iter().copied().collect();
    let look = |&core: &usize| {
        let cpus = site.slots()[core].cpus.len();
        let caches = Vec::new();
        (core, CoreLook { cpus, caches })
    };
    let mut looks: BTreeMap<usize, CoreLook> = cores.iter().map(look).collect();
    // Caches with the same cores are one level of the tree.
    let mut shared: BTreeMap<BTreeSet<usize>, Vec<u64>> = BTreeMap::new();
    for cache in &site.machine().nodes()[node].caches {
        let uses = |core: &&usize| {
            let cpus = &site.slots()[**core].cpus;
            cpus.iter().any(|cpu| cache.cpus.binary_search(cpu).is_ok())
        };
        let below: BTreeSet<usize> = cores.iter().filter(uses).copied().collect();
        match (below.len(), below.first()) {
            (0, _) => {}
            (1, Some(core)) => {
                let own = (cache.level, cache.kind, cache.bytes);
                looks
                    .get_mut(core)
                    .expect("a core of this node")
                    .caches
                    .push(own);
            }
            _ => {
                let kind = cache.kind as u64;
                let label = [u64::from(cache.level), kind, cache.bytes];
                shared.entry(below).or_default().extend(label);
            }
        }
    }
    let whole = shared.remove(&cores).unwrap_or_default();
    let mut inner: Vec<_> = shared.into_iter().collect();
    inner.sort_by_key(|(cores, _)| std::cmp::Reverse(cores.len()));
    builder.nest(whole, &cores, &inner, &looks)
}
