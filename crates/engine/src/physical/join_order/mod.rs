//! Join ordering: which relation is the probe side, which become join tables, and in which order they are probed.
//!
//! An inner join of many relations is a graph. The relation with the most rows is its root, the probe side of the
//! pipeline. The others form a tree below the root; each becomes the build side of a join with its parent, so a
//! dimension of a dimension reduces that dimension before the root is read. A relation hangs where it is found by a
//! key of its own, if there is such a place: elsewhere each row could have many matches (fan-out), and equalities that
//! are left over would remove them again. The join tables that let the smallest share of rows through, their matches
//! counted, are probed first. Where few rows of a parent are left, a large build side is reduced by
//! their keys first ([`backward`](crate::physical::backward)). Where an equality has no place in the tree, because the tree has
//! another way between its relations, few values on one side of it reduce the other one before it is joined.

mod reductions;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::logical::relation::Rel;
use crate::physical::backward::Reduction;
use crate::physical::build_side::{BuildSide, band_of};
use crate::physical::classes::Classes;
use crate::physical::copies::{self, Copies};
use crate::physical::join_tree::{Edges, Matches, any_relation, next_relation, pair};
use crate::physical::one_side::computed_before;
use crate::physical::outer_join::drop_unmatched;
use crate::physical::planner::Planner;
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Probe, Required, Sink, decided, then,
};
use crate::physical::statistics::{ONE, expected, fan_out, groups_below, reached, share_found};
use crate::vector::value::Var;

/// Another relation is the root if it is expected to keep this many times as many rows as the largest relation.
const FEW: f64 = 8.0;

/// A relation of the join, and its place in the tree.
struct Node {
    rel: Option<Rel>,
    /// The parent, and the pairs of vectors (of the parent, of this relation) that must be equal.
    parent: Option<(usize, Vec<(Var, Var)>)>,
    vars: BTreeSet<Var>,
    expected: (f64, f64),
    /// The same rows to choose the root by: groups are there by then, and have no predicates that a scan could test.
    size: (f64, f64),
    /// The share of its matches that its predicates leave for the keys that its parent has, if that is told.
    reached: Option<f64>,
    /// How many of its rows, without its predicates, are expected to match a row of its parent.
    fan_out: f64,
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
        let (left, base) = expected(planner.query, &rel);
        let groups = groups_below(planner.query, &rel);
        Node {
            expected: (left, base),
            size: (left, groups.unwrap_or(base)),
            rel: Some(rel),
            parent: None,
            reached: None,
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
    let any = planner.query.draw(graph.nodes.len());
    let root = any.unwrap_or_else(|| graph.root(planner, &equal));
    let apart = graph.build_tree(planner, root, equal)?;
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
    /// The relation with the most rows, unless its own predicates and the relations that it finds by keys leave so few of them that it
    /// is the better build side.
    fn root(&self, planner: &Planner<'_>, equal: &[(Var, Var)]) -> usize {
        let size = |i: usize| self.nodes[i].size;
        let all = 0..self.nodes.len();
        let base = |a: &usize, b: &usize| {
            let (a, b) = (size(*a), size(*b));
            a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0))
        };
        let largest = all.clone().max_by(base).unwrap_or(0);
        let left = all.max_by(|a, b| size(*a).0.total_cmp(&size(*b).0));
        match left {
            Some(left) if left != largest => {
                let of = self.nodes[largest].rel.as_ref();
                let others = (0..self.nodes.len()).filter(|i| ![largest, left].contains(i));
                let others: Vec<&Rel> = others.filter_map(|i| self.nodes[i].rel.as_ref()).collect();
                let found = of.map_or(1.0, |of| share_found(planner.query, of, &others, equal));
                let is_better = size(left).0 > FEW * (size(largest).0 * found).max(1.0);
                if is_better { left } else { largest }
            }
            _ => largest,
        }
    }

    fn owner(&self, var: Var) -> Result<usize> {
        let owner = self.nodes.iter().position(|node| node.vars.contains(&var));
        owner.ok_or_else(|| Error::internal(format!("no relation of the join gives vector {var}")))
    }

    /// Builds the tree below the root: breadth first where relations are found by keys of their own, then, one at a
    /// time, the relation with the fewest matches. Equalities that the tree does not use become conditions, and are returned.
    fn build_tree(
        &mut self,
        planner: &mut Planner<'_>,
        root: usize,
        equal: Vec<(Var, Var)>,
    ) -> Result<Vec<(Var, Var)>> {
        let mut edges = Edges::with_capacity(equal.len());
        for (a, b) in equal {
            edges.push(((self.owner(a)?, a), (self.owner(b)?, b)));
        }
        let matches = self.all_matches(planner, &edges);
        let mut reached = vec![root];
        let mut is_open = vec![true; self.nodes.len()];
        is_open[root] = false;
        while reached.len() < self.nodes.len() {
            let next = match planner.query.any_order {
                None => next_relation(&reached, &is_open, &matches, &edges),
                Some(_) => any_relation(&reached, &is_open, &matches, |many| {
                    planner.query.draw(many).unwrap_or_default()
                }),
            };
            let (parent, child) = match next {
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
            pairs.iter().for_each(|pair| self.equal.join(*pair));
            self.nodes[child].fan_out = self.fan_out(planner, child, &pairs);
            self.nodes[child].reached = self.reached(planner, (parent, child), &pairs);
            self.nodes[child].parent = Some((parent, pairs));
            reached.push(child);
            is_open[child] = false;
        }
        // What follows from the equalities of the tree need not be looked at.
        let open = edges.into_iter().map(|((_, a), (_, b))| (a, b));
        let apart: Vec<(Var, Var)> = open.filter(|pair| !self.equal.has(*pair)).collect();
        for (a, b) in &apart {
            let (a, b) = (planner.query.expr(*a), planner.query.expr(*b));
            self.conditions.push(crate::expr::build::equal(a, b)?);
        }
        Ok(apart)
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

    /// The share of a relation's matches that its predicates leave for the keys of its parent.
    fn reached(
        &self,
        planner: &Planner<'_>,
        (parent, child): (usize, usize),
        pairs: &[(Var, Var)],
    ) -> Option<f64> {
        let (parent, child) = (&self.nodes[parent].rel, &self.nodes[child].rel);
        reached(planner.query, parent.as_ref()?, child.as_ref()?, pairs)
    }

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
        let below: f64 = self
            .children(of)
            .into_iter()
            .map(|child| self.share(child))
            .product();
        self.own_share(of) * below
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
        pipelines = decided(pipelines, &mut mine, &there);
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
