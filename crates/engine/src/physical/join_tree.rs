//! The tree of a join: which relation hangs next, and below which one.

use std::collections::{BTreeMap, BTreeSet};

use crate::physical::statistics::ONE;
use crate::vector::value::Var;

/// Keys that are unique are expected to have fewer matches than this. They come before those that nearly are.
pub(crate) const UNIQUE: f64 = 1.01;

/// Equalities, each as two vectors and the relations that have them.
pub(crate) type Edges = Vec<((usize, Var), (usize, Var))>;

/// For each relation those that equalities connect it with, by their numbers, each with the rows of it that are expected to match
/// a row of the relation.
pub(crate) type Matches = Vec<Vec<(usize, f64)>>;

/// The pairs of vectors (of a relation, of another one) that must be equal, for each two relations that equalities connect, either
/// way.
pub(crate) fn pairs(edges: &Edges) -> BTreeMap<(usize, usize), Vec<(Var, Var)>> {
    let mut pairs: BTreeMap<(usize, usize), Vec<(Var, Var)>> = BTreeMap::new();
    for ((a, of_a), (b, of_b)) in edges {
        // Two vectors of one relation are a condition, whichever comes first.
        if a != b {
            pairs.entry((*a, *b)).or_default().push((*of_a, *of_b));
            pairs.entry((*b, *a)).or_default().push((*of_b, *of_a));
        }
    }
    pairs
}

/// A tree of relations, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub root: usize,
    /// Each other relation behind its parent; a parent comes before what is below it.
    pub below: Vec<(usize, usize)>,
}

impl Tree {
    /// Hangs relations below `root` until none of `many` is left; `next` says which one of those that are open comes next, and
    /// below which of those that are reached, or that no equality connects any: a cross product with the root then.
    pub fn grow(
        root: usize,
        many: usize,
        mut next: impl FnMut(&[usize], &[bool]) -> Option<(usize, usize)>,
    ) -> Tree {
        let mut reached = vec![root];
        let mut is_open = vec![true; many];
        is_open[root] = false;
        let mut below = Vec::with_capacity(many.saturating_sub(1));
        while let Some(alone) = is_open.iter().position(|open| *open) {
            let (parent, child) = next(&reached, &is_open).unwrap_or((root, alone));
            below.push((parent, child));
            reached.push(child);
            is_open[child] = false;
        }
        Tree { root, below }
    }
}

/// The relations that equalities connect with those that are `reached`, not by way of `without`.
fn connected(reached: &[usize], edges: &Edges, without: usize) -> BTreeSet<usize> {
    let mut all: BTreeSet<usize> = reached.iter().copied().collect();
    loop {
        let before = all.len();
        for (a, b) in edges {
            let ends = [a.0, b.0];
            if !ends.contains(&without) && ends.iter().any(|end| all.contains(end)) {
                all.extend(ends);
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// The relation to hang next, below one that is `reached`: the first that is found by a key of its own. If there is none, one
/// that no relation still to come finds so, with the fewest matches; a relation that hangs below it itself is none that comes
/// before. Returns its parent and it.
pub(crate) fn next_relation(
    reached: &[usize],
    is_open: &[bool],
    matches: &Matches,
    edges: &Edges,
) -> Option<(usize, usize)> {
    for most in [UNIQUE, ONE] {
        for parent in reached {
            let mut open = matches[*parent].iter().filter(|(child, _)| is_open[*child]);
            if let Some((child, _)) = open.find(|(_, fan_out)| *fan_out < most) {
                return Some((*parent, *child));
            }
        }
    }
    // For each relation those still to come that find it.
    let mut finders: Vec<Vec<usize>> = vec![Vec::new(); is_open.len()];
    let open = matches.iter().enumerate();
    for (other, found) in open.filter(|(other, _)| is_open[*other]) {
        for (child, fan_out) in found.iter().filter(|(child, _)| *child != other) {
            if *fan_out < ONE {
                finders[*child].push(other);
            }
        }
    }
    let mut is_found_later: Vec<Option<bool>> = vec![None; is_open.len()];
    let mut best: Option<((bool, f64), (usize, usize))> = None;
    for parent in reached {
        for (child, fan_out) in matches[*parent].iter().filter(|(child, _)| is_open[*child]) {
            let is_later = *is_found_later[*child].get_or_insert_with(|| {
                let finders = &finders[*child];
                !finders.is_empty() && {
                    let others = connected(reached, edges, *child);
                    finders.iter().any(|other| others.contains(other))
                }
            });
            let rank = (is_later, *fan_out);
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, (*parent, *child)));
            }
        }
    }
    best.map(|(_, next)| next)
}

/// Any relation to hang next below any that is `reached`, chosen by `draw` of so many.
pub(crate) fn any_relation(
    reached: &[usize],
    is_open: &[bool],
    matches: &Matches,
    draw: impl FnOnce(usize) -> usize,
) -> Option<(usize, usize)> {
    let below = |parent: &usize| {
        let open = matches[*parent].iter().filter(|(child, _)| is_open[*child]);
        open.map(|(child, _)| (*parent, *child)).collect::<Vec<_>>()
    };
    let all: Vec<(usize, usize)> = reached.iter().flat_map(below).collect();
    (!all.is_empty()).then(|| all[draw(all.len())])
}
