//! Which tree a join gets: the root, and what each other relation hangs below.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::expr::build;
use crate::physical::backward::cost_again;
use crate::physical::classes::Classes;
use crate::physical::join_tree::{Edges, Matches, Tree, any_relation, next_relation, pairs};
use crate::physical::planner::Planner;
use crate::physical::program::Required;
use crate::physical::statistics::{ONE, fan_out, is_fan_out_known, not_null, reached, values};
use crate::vector::value::Var;

use super::Graph;
use super::cost::{Costs, Link, Links, MOST, Relation};

/// A key is NULL often if fewer of its rows have a value.
const OFTEN: f64 = 0.9;

/// The classes of equal vectors of a join, by number.
struct Equal {
    of: BTreeMap<Var, usize>,
    /// How many values each is expected to have.
    values: Vec<f64>,
}

impl Graph {
    /// Hangs all relations below one of them: returns that root, and the equalities that the tree does not use, which became
    /// conditions.
    pub(super) fn hang(
        &mut self,
        planner: &mut Planner<'_>,
        equal: Vec<(Var, Var)>,
        required: &Required,
    ) -> Result<(usize, Vec<(Var, Var)>)> {
        let mut edges = Edges::with_capacity(equal.len());
        for (a, b) in equal {
            edges.push(((self.owner(a)?, a), (self.owner(b)?, b)));
        }
        let with_nulls = self.without_nulls(planner, &edges);
        let classes = self.classes(planner, &edges);
        let links = self.links(planner, &edges, &classes);
        let tree = match planner.query.draw(self.nodes.len()) {
            Some(root) => self.any_tree(planner, root, &links),
            None => self.cheapest(&edges, &links, &classes, required),
        };
        for (parent, child) in &tree.below {
            let node = &mut self.nodes[*child];
            let link = links.get(&(*parent, *child));
            node.fan_out = link.map_or(node.expected.1, |link| link.fan_out);
            node.reached = link.and_then(|link| link.reached);
            let pairs = link.map_or(vec![], |link| link.pairs.clone());
            pairs.iter().for_each(|pair| self.equal.join(*pair));
            node.parent = Some((*parent, pairs));
        }
        for var in with_nulls {
            let is_null = build::is_null(planner.query.expr(var));
            self.conditions.push(build::not(is_null));
        }
        // What follows from the equalities of the tree need not be looked at.
        let all = edges.into_iter().map(|((_, a), (_, b))| (a, b));
        let apart: Vec<(Var, Var)> = all.filter(|pair| !self.equal.has(*pair)).collect();
        for (a, b) in &apart {
            let (a, b) = (planner.query.expr(*a), planner.query.expr(*b));
            self.conditions.push(build::equal(a, b)?);
        }
        Ok((tree.root, apart))
    }

    /// Expects no rows of which a key is NULL, as they match nothing. Returns the keys that are NULL often: their rows are dropped
    /// before they are joined with anything.
    fn without_nulls(&mut self, planner: &Planner<'_>, edges: &Edges) -> Vec<Var> {
        let mut keys: BTreeSet<(usize, Var)> = BTreeSet::new();
        edges.iter().for_each(|(a, b)| keys.extend([*a, *b]));
        let mut often = vec![];
        for (at, var) in keys {
            let node = &mut self.nodes[at];
            let share = node
                .rel
                .as_ref()
                .map(|rel| not_null(planner.query, rel, &[var]));
            let share = share.unwrap_or(1.0);
            node.valued *= share;
            node.expected.0 = (node.expected.0 * share).max(1.0);
            if share < OFTEN {
                often.push(var);
            }
        }
        often
    }

    fn owner_of(&self, var: Var) -> Option<usize> {
        self.nodes.iter().position(|node| node.vars.contains(&var))
    }

    pub(super) fn owner(&self, var: Var) -> Result<usize> {
        let owner = self.owner_of(var);
        owner.ok_or_else(|| Error::internal(format!("no relation of the join gives vector {var}")))
    }

    /// Which vectors equal each other in a row of the join.
    fn classes(&self, planner: &Planner<'_>, edges: &Edges) -> Equal {
        let mut all = Classes::default();
        edges.iter().for_each(|((_, a), (_, b))| all.join((*a, *b)));
        let mut equal = Equal {
            of: BTreeMap::new(),
            values: vec![],
        };
        for (number, class) in all.each().enumerate() {
            let most = class.iter().map(|var| {
                let base = self
                    .owner_of(*var)
                    .map_or(1.0, |at| self.nodes[at].expected.1);
                values(planner.query, &[*var]).min(base)
            });
            equal.values.push(most.fold(1.0, f64::max));
            equal.of.extend(class.iter().map(|var| (*var, number)));
        }
        equal
    }

    /// How relations are found from each other, both ways for each two that equalities connect.
    fn links(&self, planner: &Planner<'_>, edges: &Edges, equal: &Equal) -> Links {
        let all = pairs(edges).into_iter().map(|((parent, child), pairs)| {
            let own: Vec<Var> = pairs.iter().map(|(_, own)| *own).collect();
            let (above, rel) = (&self.nodes[parent].rel, &self.nodes[child].rel);
            let (fan_out, is_known, reached) = match (above, rel) {
                (Some(above), Some(rel)) => (
                    fan_out(planner.query, rel, &own),
                    is_fan_out_known(planner.query, rel, &own),
                    reached(planner.query, above, rel, &pairs)
                        .map(|share| share * self.nodes[child].valued),
                ),
                _ => (1.0, false, None),
            };
            let link = Link {
                fan_out,
                is_known,
                reached,
                classes: bits(equal, &own),
                pairs,
            };
            ((parent, child), link)
        });
        let mut links: Links = all.collect();
        let ways: Vec<(usize, usize)> = links.keys().copied().collect();
        for (parent, child) in ways {
            let told = links.get(&(child, parent));
            let told = told
                .filter(|back| back.fan_out < ONE)
                .and_then(|back| back.reached);
            let rows = |at: usize| self.nodes[at].expected.0.max(1.0);
            if let (Some(told), Some(link)) = (told, links.get_mut(&(parent, child)))
                && link.fan_out >= ONE
            {
                // The same pairs, seen from the other side.
                let matches = told * rows(child) / rows(parent);
                let share = matches.min(1.0);
                link.reached = Some(share);
                link.fan_out = (matches / share.max(f64::MIN_POSITIVE)).max(ONE);
            }
        }
        links
    }

    /// Any tree below `root`, if tests ask for one.
    fn any_tree(&self, planner: &mut Planner<'_>, root: usize, links: &Links) -> Tree {
        let matches = matches(links, self.nodes.len());
        Tree::grow(root, self.nodes.len(), |reached, is_open| {
            any_relation(reached, is_open, &matches, |many| {
                planner.query.draw(many).unwrap_or_default()
            })
        })
    }

    /// The cheapest of the trees that grow from each relation.
    fn cheapest(&self, edges: &Edges, links: &Links, equal: &Equal, required: &Required) -> Tree {
        let many = self.nodes.len();
        let matches = matches(links, many);
        let grown = |root: usize| {
            Tree::grow(root, many, |reached, is_open| {
                next_relation(reached, is_open, &matches, edges)
            })
        };
        let size = |i: &usize| self.nodes[*i].expected;
        // Of trees that cost the same the one below the largest relation comes first.
        let mut roots: Vec<usize> = (0..many).collect();
        roots.sort_by(|a, b| {
            let (a, b) = (size(a), size(b));
            b.1.total_cmp(&a.1).then(b.0.total_cmp(&a.0))
        });
        let largest = roots.first().copied().unwrap_or(0);
        if many > MOST || equal.values.len() > MOST {
            return grown(largest);
        }
        let mut wanted = required.clone();
        self.conditions.iter().for_each(|e| wanted.extend(e.vars()));
        let relations = self.nodes.iter().map(|node| Relation {
            rows: node.expected.0,
            base: node.expected.1.max(1.0),
            again: node.rel.as_ref().and_then(cost_again),
            is_wanted: !node.vars.is_disjoint(&wanted),
            classes: bits(equal, &node.vars),
        });
        let costs = Costs {
            relations: relations.collect(),
            links,
            values: &equal.values,
            copies: self.copies,
        };
        let trees = roots.into_iter().map(|root| {
            let tree = grown(root);
            (costs.of(&tree), tree)
        });
        let best = trees.min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or_else(|| grown(largest), |(_, tree)| tree)
    }
}

/// The classes of these vectors, as bits.
fn bits<'v>(equal: &Equal, vars: impl IntoIterator<Item = &'v Var>) -> u64 {
    let classes = vars.into_iter().filter_map(|var| equal.of.get(var));
    classes.fold(0, |bits, class| {
        bits | 1u64.checked_shl(*class as u32).unwrap_or(0)
    })
}

/// The fan-outs of links, by parent.
fn matches(links: &Links, many: usize) -> Matches {
    let mut matches = vec![Vec::new(); many];
    for ((parent, child), link) in links {
        matches[*parent].push((*child, link.fan_out));
    }
    matches
}
