//! Join ordering: which relation is the probe side, which become join tables, and in which order they are probed.
//!
//! An inner join of many relations is a graph. One relation is its root, the probe side of the pipeline. The others form
//! a tree below the root; each becomes the build side of a join with its parent, so a dimension of a dimension reduces
//! that dimension before the root is read. A relation hangs where it is found by a key of its own, if there is such a place:
//! elsewhere each row could have many matches (fan-out), and equalities that are left over would remove them again. A tree
//! grows so from each relation ([`hang`]), and the cheapest is taken ([`cost`]). The join tables that let the smallest share of
//! rows through, their matches counted, are probed first. Where few rows of a parent are left, a large build side is
//! reduced by their keys first ([`backward`](crate::physical::backward)): the parent is read twice, or its rows are kept. Where an
//! equality has no place in the tree, because the tree has another way between its relations, few values on one side of it
//! reduce the other one before it is joined.

mod cost;
mod hang;
mod reductions;

use std::collections::BTreeSet;

use crate::error::Result;
use crate::expr::Expr;
use crate::logical::relation::Rel;
use crate::physical::backward::Reduction;
use crate::physical::build_side::{BuildSide, band_of};
use crate::physical::classes::Classes;
use crate::physical::copies::{self, Copies};
use crate::physical::one_side::computed_before;
use crate::physical::outer_join::drop_unmatched;
use crate::physical::planner::Planner;
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Probe, Required, Sink, decided, then,
};
use crate::physical::statistics::{ONE, expected};
use crate::vector::value::Var;

/// A relation of the join, and its place in the tree.
struct Node {
    rel: Option<Rel>,
    /// The parent, and the pairs of vectors (of the parent, of this relation) that must be equal.
    parent: Option<(usize, Vec<(Var, Var)>)>,
    vars: BTreeSet<Var>,
    expected: (f64, f64),
    /// The share of its rows whose keys are not NULL.
    valued: f64,
    /// The share of its matches that its predicates leave for the keys that its parent has, if that is told.
    reached: Option<f64>,
    /// How many of its rows, without its predicates, are expected to match a row of its parent.
    fan_out: f64,
    /// Its own vectors that are read of it, and the conditions of these alone, once its parent is planned.
    needed: Required,
    conditions: Vec<Expr>,
    /// The stage of its rows, if they are read once and kept.
    kept: Option<usize>,
    /// What reduces its rows beside its own predicates and what is below it.
    reductions: Vec<Reduction>,
    /// The semi joins by equalities that the tree has no place for. Its expected rows are those that these leave.
    sideways: Vec<Operator>,
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
            expected: expected(planner.query, &rel),
            rel: Some(rel),
            parent: None,
            valued: 1.0,
            reached: None,
            needed: Required::new(),
            conditions: vec![],
            kept: None,
            vars,
            fan_out: 1.0,
            reductions: vec![],
            sideways: vec![],
        }
    });
    let mut graph = Graph {
        nodes: nodes.collect(),
        equal: Classes::default(),
        conditions: residual,
        copies,
    };
    let (root, apart) = graph.hang(planner, equal, required)?;
    graph.reduce_sideways(planner, &apart)?;
    let (pipelines, numbers) = graph.pipelines(planner, root, required, vec![])?;
    planner.numbers = numbers;
    Ok(pipelines)
}

struct Graph {
    nodes: Vec<Node>,
    /// The vectors that the equalities of the tree make equal.
    equal: Classes,
    /// Further predicates. Each is applied, and removed, as soon as the vectors it reads are there.
    conditions: Vec<Expr>,
    /// What becomes of several matches of one row.
    copies: Copies,
}

impl Graph {
    /// The share of its rows that the predicates of a relation leave, of those that its parent looks for.
    fn own_share(&self, of: usize) -> f64 {
        let Node {
            expected: (rows, base),
            reached,
            ..
        } = self.nodes[of];
        reached.unwrap_or(rows / base).min(1.0)
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
        self.shares(of).0
    }

    /// The same, and that of the rows that others have for the same keys.
    fn shares(&self, of: usize) -> (f64, f64) {
        let below: f64 = self
            .children(of)
            .into_iter()
            .map(|child| self.share(child))
            .product();
        let Node {
            expected: (rows, base),
            fan_out,
            ..
        } = self.nodes[of];
        let own = (self.own_share(of), (rows / base).min(1.0));
        cost::found(own, below, fan_out)
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
        self.own_share(of) * self.nodes[of].fan_out * below
    }

    /// How many rows one key of a relation's join table is expected to have, with everything below it. Unlike the matches of a row,
    /// keys that the table has not got do not count: few keys of many rows each are rows worth counting.
    fn rows_of_key(&self, of: usize) -> f64 {
        let (rows, base) = self.nodes[of].expected;
        let below = self.children(of).into_iter();
        let below: f64 = below.map(|child| self.matches(child)).product();
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

    /// The places of the `children` of a relation in the order in which their join tables are made: those of more rows than the
    /// relation has are made last, as the others can leave few of the keys that they are read for; but not those that reduce others,
    /// which the relation looks for by the same vectors.
    fn made_order(&self, of: usize, children: &[usize]) -> Vec<usize> {
        let looked_for = |child: usize| {
            let pairs = self.nodes[child].parent.iter();
            pairs.flat_map(|(_, pairs)| pairs.iter().map(|(here, _)| *here))
        };
        let is_late = |place: &usize| {
            let child = children[*place];
            let mut others = children.iter().filter(|other| **other != child);
            let is_larger = self.nodes[child].expected.1 > self.nodes[of].expected.1;
            is_larger
                && !others.any(|other| {
                    looked_for(*other).any(|var| looked_for(child).any(|own| own == var))
                })
        };
        let mut places: Vec<usize> = (0..children.len()).collect();
        places.sort_by_key(is_late);
        places
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
    /// that are read after the join, `probes` the build sides of the same parent that are probed earlier, and `above`
    /// what the parent's own rows go through.
    fn build_side(
        &mut self,
        planner: &mut Planner<'_>,
        child: usize,
        wanted: &Required,
        probes: &[BuildSide],
        above: &[Operator],
    ) -> Result<BuildSide> {
        let (share, among) = self.shares(child);
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
        let (fan_out, rows) = (self.nodes[child].fan_out, self.rows_of_key(child));
        inner.extend(&there);
        let mut reducing = Vec::new();
        if let Some(parent) = parent {
            let both = (&here[..], &there[..]);
            reducing = self.reducing(planner, (parent, child), both, probes, above)?;
        }
        let (mut pipelines, mut numbers) = self.pipelines(planner, child, &inner, reducing)?;
        let is_counted =
            self.copies == Copies::Counted && is_bare && copies::can_group(planner.query, &there);
        if is_counted && (numbers.is_some() || rows >= ONE) {
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
        let stage = planner.stage(pipelines, sink);
        planner.shares.insert(stage, share);
        Ok(BuildSide {
            stage,
            share,
            among,
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
        let mut all = std::mem::take(&mut self.nodes[at].sideways);
        all.extend(reducing);
        let reducing = all;
        let mut mine = self.take_conditions(at, &children);
        let mut wanted: Required = required.clone();
        for e in &mine {
            wanted.extend(e.vars());
        }
        let children = self.probe_order(children, &wanted);
        let node = &mut self.nodes[at];
        let mut own: Required = wanted.intersection(&node.vars).copied().collect();
        for operator in &reducing {
            operator.reads(&mut |var| _ = own.insert(var));
        }
        let is_own = |e: &Expr| e.vars().iter().all(|var| node.vars.contains(var));
        (node.conditions, mine) = mine.into_iter().partition(is_own);
        for child in &children {
            let parent = self.nodes[*child].parent.iter();
            own.extend(parent.flat_map(|(_, pairs)| pairs.iter().map(|(here, _)| *here)));
        }
        self.nodes[at].needed = own.clone();
        let places = self.made_order(at, &children);
        let mut made: Vec<BuildSide> = Vec::with_capacity(children.len());
        for place in &places {
            let child = children[*place];
            let build_side = self.build_side(planner, child, &wanted, &made, &reducing)?;
            made.push(build_side);
        }
        let mut probes: Vec<(usize, BuildSide)> = places.into_iter().zip(made).collect();
        probes.sort_by_key(|(place, _)| *place);
        let mut probes: Vec<BuildSide> = probes.into_iter().map(|(_, probe)| probe).collect();
        // Any order, if tests ask for one.
        for last in (1..probes.len()).rev() {
            if let Some(other) = planner.query.draw(last + 1) {
                probes.swap(last, other);
            }
        }
        let reducing = self.leaving_few(at, &[], &reducing);
        let mut there = self.nodes[at].vars.clone();
        let mut pipelines = self.rows_of(planner, at, &own, reducing)?;
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
            pipelines = decided(pipelines, &mut mine, &there);
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
