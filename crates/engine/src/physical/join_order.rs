//! Join ordering: which relation is the probe side, which become join tables, and in which order they are probed.
//!
//! An inner join of many relations is a graph. The relation with the most rows is its root, the probe side of the
//! pipeline. The others form a tree below the root; each becomes the build side of a join with its parent, so a
//! dimension of a dimension reduces that dimension before the root is read. A relation hangs where it is found by a
//! key of its own, if there is such a place: elsewhere each row could have many matches (fan-out), and equalities that
//! are left over would remove them again. The join tables that let the smallest share of rows through, their matches
//! counted, are probed first. A build side that is much larger than its parent is reduced by the keys of the parent's rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::logical::relation::Rel;
use crate::physical::band::Band;
use crate::physical::classes::Classes;
use crate::physical::copies::{self, Copies};
use crate::physical::one_side::computed_before;
use crate::physical::outer_join::drop_unmatched;
use crate::physical::planner::Planner;
use crate::physical::program::{JoinKind, Operator, Pipeline, Probe, Required, Sink, then};
use crate::physical::statistics::{ONE, expected, fan_out};
use crate::vector::value::Var;

/// Another relation is the root if it is expected to keep this many times as many rows as the largest relation.
const FEW: f64 = 8.0;
/// A build side is reduced by a join table that its parent probes by the same keys, if that table lets at most this
/// share of rows through.
const REDUCING: f64 = 0.5;

/// A relation of the join, and its place in the tree.
struct Node {
    rel: Option<Rel>,
    /// The parent, and the pairs of vectors (of the parent, of this relation) that must be equal.
    parent: Option<(usize, Vec<(Var, Var)>)>,
    vars: BTreeSet<Var>,
    expected: (f64, f64),
    /// How many of its rows, without its predicates, are expected to match a row of its parent.
    fan_out: f64,
}

/// Equalities, each as two vectors and the relations that have them.
type Edges = Vec<((usize, Var), (usize, Var))>;

/// For each relation those that equalities connect it with, by their numbers, each with the rows of it that are expected to match
/// a row of the relation.
type Matches = Vec<Vec<(usize, f64)>>;

/// The vectors of `parent` and of `child` that an equality compares, if it is one of these two.
fn pair((a, b): &((usize, Var), (usize, Var)), parent: usize, child: usize) -> Option<(Var, Var)> {
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

/// Plans the pipelines of an inner join. Where `copies` are counted and a relation is worth it, the planner's `numbers` say for how
/// many rows each stands.
pub(crate) fn join(
    planner: &mut Planner<'_>,
    inputs: Vec<Rel>,
    mut equal: Vec<(Var, Var)>,
    mut residual: Vec<Expr>,
    required: &Required,
    copies: Copies,
) -> Result<Vec<Pipeline>> {
    let inputs = drop_unmatched(inputs, &mut equal, &mut residual, planner.query);
    let keys = !equal.is_empty();
    let inputs = computed_before(planner.query, inputs, &mut residual, keys);
    let nodes = inputs.into_iter().map(|rel| {
        let mut vars = BTreeSet::new();
        rel.each_var(&mut |var| {
            vars.insert(var);
        });
        Node {
            expected: expected(&rel),
            rel: Some(rel),
            parent: None,
            vars,
            fan_out: 1.0,
        }
    });
    let mut graph = Graph {
        nodes: nodes.collect(),
        conditions: residual,
        copies,
    };
    let root = graph.root();
    graph.build_tree(planner, root, equal)?;
    let (pipelines, numbers) = graph.pipelines(planner, root, required, vec![])?;
    planner.numbers = numbers;
    Ok(pipelines)
}

/// The relation to hang next, below one that is `reached`: the first that is found by a key of its own. If there is none, one
/// that no relation still to come finds so, with the fewest matches; a relation that hangs below it itself is none that comes
/// before. Returns its parent and it.
fn next_relation(
    reached: &[usize],
    is_open: &[bool],
    matches: &Matches,
    edges: &Edges,
) -> Option<(usize, usize)> {
    for parent in reached {
        let mut open = matches[*parent].iter().filter(|(child, _)| is_open[*child]);
        if let Some((child, _)) = open.find(|(_, fan_out)| *fan_out < ONE) {
            return Some((*parent, *child));
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

struct Graph {
    nodes: Vec<Node>,
    /// Further predicates. Each is applied, and removed, as soon as the vectors it reads are there.
    conditions: Vec<Expr>,
    /// What becomes of several matches of one row.
    copies: Copies,
}

impl Graph {
    /// The relation with the most rows, unless its own predicates leave so few that it is the better build side.
    fn root(&self) -> usize {
        let size = |i: usize| self.nodes[i].expected;
        let all = 0..self.nodes.len();
        let base = |a: &usize, b: &usize| {
            let (a, b) = (size(*a), size(*b));
            a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0))
        };
        let largest = all.clone().max_by(base).unwrap_or(0);
        let left = all.max_by(|a, b| size(*a).0.total_cmp(&size(*b).0));
        match left {
            Some(left) if size(left).0 > FEW * size(largest).0 => left,
            _ => largest,
        }
    }

    fn owner(&self, var: Var) -> Result<usize> {
        let owner = self.nodes.iter().position(|node| node.vars.contains(&var));
        owner.ok_or_else(|| Error::internal(format!("no relation of the join gives vector {var}")))
    }

    /// Builds the tree below the root: breadth first where relations are found by keys of their own, then, one at a
    /// time, the relation with the fewest matches. Equalities that the tree does not use become conditions.
    fn build_tree(
        &mut self,
        planner: &Planner<'_>,
        root: usize,
        equal: Vec<(Var, Var)>,
    ) -> Result<()> {
        let mut edges = Edges::with_capacity(equal.len());
        for (a, b) in equal {
            edges.push(((self.owner(a)?, a), (self.owner(b)?, b)));
        }
        let matches = self.all_matches(planner, &edges);
        let mut reached = vec![root];
        let mut is_open = vec![true; self.nodes.len()];
        is_open[root] = false;
        let mut equal = Classes::default();
        while reached.len() < self.nodes.len() {
            let (parent, child) = match next_relation(&reached, &is_open, &matches, &edges) {
                Some(next) => next,
                None => {
                    // A relation that no equality connects: cross product.
                    let alone = is_open.iter().position(|open| *open);
                    (
                        root,
                        alone.ok_or_else(|| Error::internal("a join without its parts"))?,
                    )
                }
            };
            let (used, others): (Edges, Edges) = edges
                .into_iter()
                .partition(|edge| pair(edge, parent, child).is_some());
            edges = others;
            let pairs: Vec<(Var, Var)> = used
                .iter()
                .filter_map(|edge| pair(edge, parent, child))
                .collect();
            pairs.iter().for_each(|pair| equal.join(*pair));
            self.nodes[child].fan_out = self.fan_out(planner, child, &pairs);
            self.nodes[child].parent = Some((parent, pairs));
            reached.push(child);
            is_open[child] = false;
        }
        // What follows from the equalities of the tree need not be looked at.
        let open = edges.into_iter().map(|((_, a), (_, b))| (a, b));
        for (a, b) in open.filter(|pair| !equal.has(*pair)) {
            let (a, b) = (planner.query.expr(a), planner.query.expr(b));
            self.conditions.push(crate::expr::build::equal(a, b)?);
        }
        Ok(())
    }

    /// The matches of each relation below each other one that an equality connects it with. They stay what they are while the
    /// tree grows: an equality is used up only once both of its relations are in the tree.
    fn all_matches(&self, planner: &Planner<'_>, edges: &Edges) -> Matches {
        let mut pairs: BTreeMap<(usize, usize), Vec<(Var, Var)>> = BTreeMap::new();
        for ((a, of_a), (b, of_b)) in edges {
            pairs.entry((*a, *b)).or_default().push((*of_a, *of_b));
            // Two vectors of one relation are a condition, whichever comes first.
            if a != b {
                pairs.entry((*b, *a)).or_default().push((*of_b, *of_a));
            }
        }
        let mut matches = vec![Vec::new(); self.nodes.len()];
        for ((parent, child), pairs) in pairs {
            matches[parent].push((child, self.fan_out(planner, child, &pairs)));
        }
        matches
    }

    /// How many rows of a relation without its predicates are expected to match one key, which its vectors of `pairs` have.
    fn fan_out(&self, planner: &Planner<'_>, of: usize, pairs: &[(Var, Var)]) -> f64 {
        let own: Vec<Var> = pairs.iter().map(|(_, own)| *own).collect();
        let rel = self.nodes[of].rel.as_ref();
        rel.map_or(1.0, |rel| fan_out(planner.query, rel, &own))
    }

    fn children(&self, of: usize) -> Vec<usize> {
        let is_child = |i: &usize| {
            self.nodes[*i]
                .parent
                .as_ref()
                .is_some_and(|(parent, _)| *parent == of)
        };
        (0..self.nodes.len()).filter(is_child).collect()
    }

    /// The share of rows that a relation, with everything below it, lets through.
    fn share(&self, of: usize) -> f64 {
        let (rows, base) = self.nodes[of].expected;
        let below: f64 = self
            .children(of)
            .into_iter()
            .map(|child| self.share(child))
            .product();
        (rows / base).min(1.0) * below
    }

    /// The vectors of a relation and of everything below it.
    fn below(&self, of: usize) -> BTreeSet<Var> {
        let mut vars = self.nodes[of].vars.clone();
        for child in self.children(of) {
            vars.extend(self.below(child));
        }
        vars
    }

    /// How many rows of a relation, with everything below it, are expected to match a row of its parent.
    fn matches(&self, of: usize) -> f64 {
        let below: f64 = self
            .children(of)
            .into_iter()
            .map(|child| self.matches(child))
            .product();
        let (rows, base) = self.nodes[of].expected;
        (rows / base).min(1.0) * self.nodes[of].fan_out * below
    }

    /// The children of a relation, those that leave the fewest rows first, where the vectors `wanted` are read after the joins.
    fn probe_order(&self, children: Vec<usize>, wanted: &Required) -> Vec<usize> {
        let matches = |of| {
            let most = if self.is_bare(of, wanted) {
                1.0
            } else {
                f64::MAX
            };
            self.matches(of).min(most)
        };
        let children = children.into_iter();
        let ranked = children.map(|i| (matches(i), self.nodes[i].expected.1, i));
        let mut ranked: Vec<(f64, f64, usize)> = ranked.collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        ranked.into_iter().map(|(_, _, child)| child).collect()
    }

    /// Whether a row need not come out once for each match in a relation, of which, and of what is below it, none of the vectors is
    /// `wanted` after the join.
    fn is_bare(&self, of: usize, wanted: &Required) -> bool {
        self.copies != Copies::Kept && wanted.is_disjoint(&self.below(of))
    }

    /// Takes the conditions that the subtree of `at` can decide, except those that the subtree of one of its
    /// `children` can decide: these are left to that child.
    fn take_conditions(&mut self, at: usize, children: &[usize]) -> Vec<Expr> {
        let all = self.below(at);
        let ready = |e: &Expr| e.vars().iter().all(|var| all.contains(var));
        let (ready, others): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut self.conditions)
            .into_iter()
            .partition(ready);
        self.conditions = others;
        if ready.is_empty() {
            return ready;
        }
        let below: Vec<BTreeSet<Var>> = children.iter().map(|child| self.below(*child)).collect();
        let (inner, own): (Vec<Expr>, Vec<Expr>) = ready.into_iter().partition(|e| {
            let vars = e.vars();
            let mut below = below.iter();
            !vars.is_empty() && below.any(|below| vars.iter().all(|var| below.contains(var)))
        });
        self.conditions.extend(inner);
        own
    }

    /// Plans the stage that builds the join table of `child`, which its parent probes. `wanted` are the vectors
    /// that are read after the join, `probes` the build sides of the same parent that are probed earlier.
    fn build_side(
        &mut self,
        planner: &mut Planner<'_>,
        child: usize,
        wanted: &Required,
        probes: &[BuildSide],
    ) -> Result<BuildSide> {
        let share = self.share(child);
        let (parent, pairs) = match &mut self.nodes[child].parent {
            Some((parent, pairs)) => (Some(*parent), std::mem::take(pairs)),
            None => (None, vec![]),
        };
        let (here, there): (Vec<Var>, Vec<Var>) = pairs.into_iter().unzip();
        let below = self.below(child);
        let mut inner: Required = wanted.intersection(&below).copied().collect();
        let mut build_outputs: Vec<(Var, Var)> = inner.iter().map(|var| (*var, *var)).collect();
        let mut vars: Vec<Var> = inner.iter().copied().collect();
        let is_bare = self.is_bare(child, wanted);
        let (fan_out, matches) = (self.nodes[child].fan_out, self.matches(child));
        inner.extend(&there);
        let reducing = probes.iter().filter(|other| other.share <= REDUCING);
        let reducing = reducing.filter_map(|other| {
            let keys = other.same_keys(&here, &there)?;
            Some(semi_probe(other.stage, keys))
        });
        let mut reducing: Vec<Operator> = reducing.collect();
        if let Some(parent) = parent.filter(|parent| self.is_selective(*parent, child))
            && let Some(stage) = self.keys_stage(planner, parent, &here)?
        {
            reducing.push(semi_probe(stage, there.clone()));
        }
        let (mut pipelines, mut numbers) = self.pipelines(planner, child, &inner, reducing)?;
        let is_counted =
            self.copies == Copies::Counted && is_bare && copies::can_group(planner.query, &there);
        if is_counted && (numbers.is_some() || matches >= ONE) {
            let (groups, count) = copies::grouped(
                (&mut *planner.query, &mut planner.stages),
                pipelines,
                &there,
                numbers,
            )?;
            (pipelines, numbers) = (groups, Some(count));
        }
        if let Some(numbers) = numbers {
            vars.push(numbers);
            build_outputs.push((numbers, numbers));
        }
        let sink = Sink::Table {
            keys: there,
            vars,
            marks: false,
        };
        // A key finds one row anyway, and groups may be found by the rows of an inner join.
        let is_semi =
            self.copies == Copies::Ignored && is_bare && fan_out > 1.0 && !here.is_empty();
        Ok(BuildSide {
            stage: planner.stage(pipelines, sink),
            share,
            keys: here,
            kind: if is_semi {
                JoinKind::Semi
            } else {
                JoinKind::Inner
            },
            build_outputs,
            below,
            numbers,
        })
    }

    /// Whether a relation is small beside one below it, and its own predicates leave few of its rows: then its keys are
    /// worth a second look at it.
    fn is_selective(&self, parent: usize, child: usize) -> bool {
        let ((left, base), (there, _)) = (self.nodes[parent].expected, self.nodes[child].expected);
        left <= base * REDUCING && base * FEW <= there
    }

    /// The stage of a join table of the `keys` that the rows of a relation have, without what is below it; `None` if it is
    /// no plain scan.
    fn keys_stage(
        &self,
        planner: &mut Planner<'_>,
        of: usize,
        keys: &[Var],
    ) -> Result<Option<usize>> {
        let mut plain = self.nodes[of].rel.as_ref();
        while let Some(Rel::Filter { input, .. }) = plain {
            plain = Some(input);
        }
        let (Some(Rel::Scan(_)), Some(rel)) = (plain, &self.nodes[of].rel) else {
            return Ok(None);
        };
        let wanted = keys.iter().copied().collect();
        let pipelines = planner.pipelines(rel.clone(), &wanted)?;
        let sink = Sink::Table {
            keys: keys.to_vec(),
            vars: vec![],
            marks: false,
        };
        Ok(Some(planner.stage(pipelines, sink)))
    }

    /// The pipelines of the relation `at` joined with everything below it, which give the `required` vectors, and the vector that
    /// says for how many rows each stands, if it is not one. Its own rows go through `reducing` first, before they can have
    /// matches.
    fn pipelines(
        &mut self,
        planner: &mut Planner<'_>,
        at: usize,
        required: &Required,
        reducing: Vec<Operator>,
    ) -> Result<(Vec<Pipeline>, Option<Var>)> {
        let children = self.children(at);
        let mut mine = self.take_conditions(at, &children);
        let mut wanted: Required = required.clone();
        for e in &mine {
            wanted.extend(e.vars());
        }
        let children = self.probe_order(children, &wanted);
        let mut probes: Vec<BuildSide> = Vec::with_capacity(children.len());
        for child in children {
            let build_side = self.build_side(planner, child, &wanted, &probes)?;
            probes.push(build_side);
        }
        let mut own: Required = wanted.intersection(&self.nodes[at].vars).copied().collect();
        own.extend(probes.iter().flat_map(|build_side| &build_side.keys));
        for operator in &reducing {
            operator.reads(&mut |var| {
                own.insert(var);
            });
        }
        let rel = self.nodes[at]
            .rel
            .take()
            .ok_or_else(|| Error::internal("a relation joined twice"))?;
        let mut there = self.nodes[at].vars.clone();
        let mut pipelines = planner.pipelines(rel, &own)?;
        pipelines = conditions(pipelines, &mut mine, &there);
        for operator in reducing {
            pipelines = then(pipelines, operator);
        }
        let mut numbers = None;
        for build_side in probes {
            let probe = Probe {
                stage: build_side.stage,
                band: band_of(&build_side, &mine, &there),
                nearest: None,
                keys: build_side.keys,
                kind: build_side.kind,
                marks: false,
                residual: vec![],
                build_outputs: build_side.build_outputs,
                row: None,
            };
            pipelines = then(pipelines, Operator::Probe(probe));
            there.extend(build_side.below);
            pipelines = conditions(pipelines, &mut mine, &there);
            numbers = match (numbers, build_side.numbers) {
                (Some(a), Some(b)) => {
                    let product;
                    (pipelines, product) = copies::product(planner.query, pipelines, (a, b))?;
                    Some(product)
                }
                (a, b) => a.or(b),
            };
        }
        Ok((pipelines, numbers))
    }
}

/// The join table of a relation below another one.
struct BuildSide {
    stage: usize,
    /// The share of its relation's rows that are in it.
    share: f64,
    /// The vectors of the parent that probe it.
    keys: Vec<Var>,
    kind: JoinKind,
    build_outputs: Vec<(Var, Var)>,
    /// The vector that says for how many rows each of its rows stands.
    numbers: Option<Var>,
    /// All vectors of the relation and of everything below it.
    below: BTreeSet<Var>,
}

impl BuildSide {
    /// The vectors of another relation that match this table's keys. `here` and `there` are that relation's pairs
    /// with the common parent; they must include the keys by which the parent probes this table.
    fn same_keys(&self, here: &[Var], there: &[Var]) -> Option<Vec<Var>> {
        let same = |key: &Var| here.iter().position(|h| h == key).map(|i| there[i]);
        let keys: Option<Vec<Var>> = self.keys.iter().map(same).collect();
        keys.filter(|keys| !keys.is_empty())
    }
}

/// A semi join that keeps the rows with a match in `stage`'s join table.
fn semi_probe(stage: usize, keys: Vec<Var>) -> Operator {
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
fn band_of(build_side: &BuildSide, conditions: &[Expr], there: &BTreeSet<Var>) -> Option<Band> {
    let both = |var: &Var| there.contains(var) || build_side.below.contains(var);
    let known = conditions.iter().filter(|e| e.vars().iter().all(both));
    let known: Vec<Expr> = known.cloned().collect();
    Band::of(&known, |var| build_side.below.contains(&var))
}

/// Applies the conditions whose vectors are all in `there`.
fn conditions(
    mut pipelines: Vec<Pipeline>,
    waiting: &mut Vec<Expr>,
    there: &BTreeSet<Var>,
) -> Vec<Pipeline> {
    let ready = |e: &Expr| e.vars().iter().all(|var| there.contains(var));
    let (now, later): (Vec<Expr>, Vec<Expr>) = std::mem::take(waiting).into_iter().partition(ready);
    *waiting = later;
    for condition in now {
        pipelines = then(pipelines, Operator::Filter(condition));
    }
    pipelines
}
