//! Which placements are equivalent.

use super::steps::Step;
use super::tree::{Id, Parts, Tree};

/// What is in a branch, whichever of the equal branches it is.
///
/// Invariant: the parts of a run stand in the order of their first threads, empty ones last.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Inside {
    /// The threads of a core, ascending.
    Core(Vec<usize>),
    Runs(Vec<Vec<Inside>>),
    /// By the position of the branch.
    Maps(Vec<Inside>),
}

impl Inside {
    /// The first thread; `usize::MAX` for none.
    fn first(&self) -> usize {
        match self {
            Inside::Core(threads) => threads.first().copied().unwrap_or(usize::MAX),
            Inside::Runs(runs) => {
                // Each run has its first thread in its first part.
                let firsts = runs.iter().filter_map(|run| run.first().map(Inside::first));
                firsts.min().unwrap_or(usize::MAX)
            }
            Inside::Maps(parts) => parts.iter().map(Inside::first).min().unwrap_or(usize::MAX),
        }
    }
}

/// The core of each thread in the placement that stands for all that are equivalent to this one.
pub(crate) fn canonical(tree: &Tree, steps: &[Step], cores: &[usize]) -> Vec<usize> {
    let most = cores.iter().max().map_or(0, |most| most + 1);
    let mut threads = vec![Vec::new(); most];
    for (thread, &core) in cores.iter().enumerate() {
        threads[core].push(thread);
    }
    let mut inside = look(tree, tree.root, &threads);
    if let (Inside::Maps(parts), Parts::Maps { branches, maps }) =
        (&mut inside, &tree.branches[tree.root].parts)
    {
        *parts = settled(parts, branches, maps, steps);
    }
    let mut placed = vec![usize::MAX; cores.len()];
    lay(tree, tree.root, &inside, &mut placed);
    placed
}

/// What is in a branch, by the threads of each core.
fn look(tree: &Tree, id: Id, threads: &[Vec<usize>]) -> Inside {
    match &tree.branches[id].parts {
        Parts::Core(core) => Inside::Core(threads.get(*core).cloned().unwrap_or_default()),
        Parts::Runs(runs) => {
            let run = |run: &Vec<Id>| {
                let mut parts: Vec<Inside> =
                    run.iter().map(|&id| look(tree, id, threads)).collect();
                parts.sort_by_key(Inside::first);
                parts
            };
            Inside::Runs(runs.iter().map(run).collect())
        }
        Parts::Maps { branches, .. } => {
            let parts = branches.iter().map(|&id| look(tree, id, threads));
            Inside::Maps(parts.collect())
        }
    }
}

/// The parts of the root, exchanged until each first thread is in the branch that a walk through the
/// steps would have chosen for it.
fn settled(parts: &[Inside], branches: &[Id], maps: &[Vec<usize>], steps: &[Step]) -> Vec<Inside> {
    let mut parts = parts.to_vec();
    let position = |id: Id| {
        branches
            .iter()
            .position(|other| *other == id)
            .expect("a branch")
    };
    let mut step = steps.last().expect("a root with maps has steps");
    loop {
        let moved = step.moved.iter().map(|&id| position(id));
        let Some(at) = moved.min_by_key(|&at| parts[at].first()) else {
            return parts;
        };
        if parts[at].first() == usize::MAX {
            return parts;
        }
        let reached =
            |(id, _): &&(Id, usize)| step.maps.iter().any(|&map| maps[map][at] == position(*id));
        let &(id, next) = step
            .choices
            .iter()
            .find(reached)
            .expect("one of each orbit");
        let to = |map: &&usize| maps[**map][at] == position(id);
        let map = &maps[*step.maps.iter().find(to).expect("it is reached")];
        let mut exchanged = parts.clone();
        for (from, part) in parts.into_iter().enumerate() {
            exchanged[map[from]] = part;
        }
        parts = exchanged;
        step = &steps[next];
    }
}

/// Puts what is in a branch onto its cores.
fn lay(tree: &Tree, id: Id, inside: &Inside, placed: &mut [usize]) {
    match (&tree.branches[id].parts, inside) {
        (Parts::Core(core), Inside::Core(threads)) => {
            threads.iter().for_each(|&thread| placed[thread] = *core);
        }
        (Parts::Runs(runs), Inside::Runs(inside)) => {
            for (&id, inside) in runs.iter().flatten().zip(inside.iter().flatten()) {
                lay(tree, id, inside, placed);
            }
        }
        (Parts::Maps { branches, .. }, Inside::Maps(inside)) => {
            for (&id, inside) in branches.iter().zip(inside) {
                lay(tree, id, inside, placed);
            }
        }
        _ => unreachable!("a branch holds what was seen in one of its kind"),
    }
}
