//! The machine as a tree of nodes, caches and cores, in which equal branches have one kind.

use std::collections::{BTreeMap, HashMap};

use topology::CacheKind;

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

    /// A core, by its position among the site's cores: `cpus` hardware threads, and the caches that no other core uses.
    pub(crate) fn core(&mut self, at: usize, cpus: usize, caches: Vec<(u8, CacheKind, u64)>) -> Id {
        self.add(Look::Core { cpus, caches }, Parts::Core(at))
    }
}
