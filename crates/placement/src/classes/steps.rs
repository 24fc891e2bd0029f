//! A root whose branches may be exchanged in some ways only.

use std::collections::HashMap;

use super::tree::Id;

/// The branches that are not yet used at some point of making a placement, and how the first of
/// the threads that are left can go on.
///
/// The symmetries that are left are those that move no used branch. What they do not move either is
/// `fixed`: two placements that differ there are not equivalent, so each of them takes any
/// subset of the threads. Then the first thread that is left goes into one of `moved`; all branches
/// of an orbit are the same to it, so it chooses among one of each.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) fixed: Vec<Id>,
    pub(crate) moved: Vec<Id>,
    /// One branch of each orbit, and the step that follows once it is used.
    pub(crate) choices: Vec<(Id, usize)>,
    /// The symmetries that are left: positions in the root's maps.
    pub(crate) maps: Vec<usize>,
}

/// All steps of a root; the last is where to begin.
pub(crate) fn steps(branches: &[Id], maps: &[Vec<usize>]) -> Vec<Step> {
    let mut maker = Maker {
        branches,
        maps,
        known: HashMap::new(),
        steps: Vec::new(),
    };
    maker.step((0..branches.len()).collect(), (0..maps.len()).collect());
    maker.steps
}

struct Maker<'a> {
    branches: &'a [Id],
    maps: &'a [Vec<usize>],
    /// The step of each set of unused branches.
    known: HashMap<Vec<usize>, usize>,
    steps: Vec<Step>,
}

impl Maker<'_> {
    /// The step at which `unused` (positions) and `left` (of the maps) remain.
    fn step(&mut self, unused: Vec<usize>, left: Vec<usize>) -> usize {
        if let Some(step) = self.known.get(&unused) {
            return *step;
        }
        let stays = |at: &usize| left.iter().all(|&map| self.maps[map][*at] == *at);
        let (fixed, moved): (Vec<usize>, Vec<usize>) = unused.iter().partition(|at| stays(at));
        let lowest = |at: &usize| left.iter().map(|&map| self.maps[map][*at]).min();
        let firsts: Vec<usize> = moved
            .iter()
            .filter(|&at| lowest(at) == Some(*at))
            .copied()
            .collect();
        let mut choices = Vec::new();
        for first in firsts {
            let rest = moved.iter().copied().filter(|&at| at != first).collect();
            let keep = |map: &usize| self.maps[*map][first] == first;
            let keep = left.iter().copied().filter(keep).collect();
            choices.push((self.branches[first], self.step(rest, keep)));
        }
        let ids = |at: Vec<usize>| at.into_iter().map(|at| self.branches[at]).collect();
        self.steps.push(Step {
            fixed: ids(fixed),
            moved: ids(moved),
            choices,
            maps: left,
        });
        self.known.insert(unused, self.steps.len() - 1);
        self.steps.len() - 1
    }
}
