//! The build sides of an inner join, and the probes of them.

use std::collections::BTreeSet;

use crate::expr::Expr;
use crate::physical::band::Band;
use crate::physical::program::{JoinKind, Operator, Probe};
use crate::vector::value::Var;

/// The join table of a relation below another one.
pub(super) struct BuildSide {
    pub stage: usize,
    /// The share of its relation's rows that are in it.
    pub share: f64,
    /// The share of the rows that other relations have for the same keys which are found in it.
    pub among: f64,
    /// The vectors of the parent that probe it.
    pub keys: Vec<Var>,
    pub kind: JoinKind,
    pub build_outputs: Vec<(Var, Var)>,
    /// The vector that says for how many rows each of its rows stands.
    pub numbers: Option<Var>,
    /// All vectors of the relation and of everything below it.
    pub below: BTreeSet<Var>,
}

/// The vectors of a relation that match `keys` of its parent, by which that probes another table: `here` and `there` are the pairs of
/// the parent and the relation; `None` if they do not include all of them.
pub(super) fn same_keys(keys: &[Var], here: &[Var], there: &[Var]) -> Option<Vec<Var>> {
    let same = |key: &Var| here.iter().position(|h| h == key).map(|i| there[i]);
    let keys: Option<Vec<Var>> = keys.iter().map(same).collect();
    keys.filter(|keys| !keys.is_empty())
}

/// A semi join that keeps the rows with a match in `stage`'s join table.
pub(super) fn semi_probe(stage: usize, keys: Vec<Var>) -> Operator {
    Operator::Probe(Probe {
        stage,
        keys,
        band: None,
        nearest: None,
        kind: JoinKind::Semi,
        marks: false,
        residual: vec![],
        build_outputs: vec![],
        row: None,
    })
}

/// What the conditions say of a number of a build side.
pub(super) fn band_of(
    build_side: &BuildSide,
    conditions: &[Expr],
    there: &BTreeSet<Var>,
) -> Option<Band> {
    let both = |var: &Var| there.contains(var) || build_side.below.contains(var);
    let known = conditions.iter().filter(|e| e.vars().iter().all(both));
    let known: Vec<Expr> = known.cloned().collect();
    Band::of(&known, |var| build_side.below.contains(&var))
}
