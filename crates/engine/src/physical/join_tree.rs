//! The tree of a join: which relation hangs next, and below which one.

use std::collections::BTreeSet;

use crate::physical::statistics::ONE;
use crate::vector::value::Var;

/// Keys that are unique are expected to have fewer matches than this. They come before those that nearly are.
const UNIQUE: f64 = 1.01;

/// Equalities, each as two vectors and the relations that have them.
pub(crate) type Edges = Vec<((usize, Var), (usize, Var))>;

/// For each relation those that equalities connect it with, by their numbers, each with the rows of it that are expected to match
/// a row of the relation.
pub(crate) type Matches = Vec<Vec<(usize, f64)>>;

/// The vectors of `parent` and of `child` that an equality compares, if it is one of these two.
pub(crate) fn pair(
    (a, b): &((usize, Var), (usize, Var)),
    parent: usize,
    child: usize,
) -> Option<(Var, Var)> {
    match (a.0 == parent && b.0 == child, b.0 == parent && a.0 == child) {
        (true, _) => Some((a.1, b.1)),
        (_, true) => Some((b.1, a.1)),
        _ => None,
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
