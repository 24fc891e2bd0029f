//! What a tree of a join is expected to cost.
//!
//! A tree says which relation is the probe side, what each other one is found by, and so which join tables are made. Its cost is
//! counted in rows that a probe gives: those of all probes, of build sides too, and [`BUILT`] for each row of a join table. What each
//! tree reads anyway does not count.
//!
//! The parts of a tree cannot be judged by themselves, as dynamic programming would have it: what was made before a join table
//! reduces the rows that come to it, by predicate transfer and by keys collected first ([`backward`](crate::physical::backward)).
//! So each tree is judged whole.

use std::collections::BTreeMap;

use crate::physical::backward::{Pair, cost_of_keeping};
use crate::physical::copies::Copies;
use crate::physical::join_tree::{Tree, UNIQUE};
use crate::physical::statistics::ONE;
use crate::vector::value::Var;

/// What a row costs in a join table whose keys are unique, in rows that a probe gives: where they lie close together, it is found by
/// counting bits.
const BUILT: f64 = 1.0;
/// What a row costs in a join table whose keys have many rows each.
const BUILT_OF_MANY: f64 = 4.0;
/// What a row costs that is counted by its key, so that the join table has a row for each key.
const COUNTED: f64 = 6.0;
/// What a row that is read once more costs, in rows that a probe gives.
const READ_AGAIN: f64 = 0.25;
/// How many times as much a tree costs of whose root no vector is read after the join, if rows need not come out once for each match:
/// as the root it gives them all the same.
const BARE: f64 = 3.0;
/// How much each further reduction of the same rows counts.
const DECAY: f64 = 0.5;

/// More relations, or more classes of equal vectors, are not judged: sets of them are bits.
pub(super) const MOST: usize = 64;

/// How a relation is found from another one.
pub(super) struct Link {
    /// The pairs of vectors (of the parent, of the relation) that must be equal.
    pub pairs: Vec<(Var, Var)>,
    /// How many rows of the relation, without its predicates, are expected to match a row of the parent.
    pub fan_out: f64,
    /// Whether that is known. If not, there may be as many as there are rows of the relation for each of the parent.
    pub is_known: bool,
    /// The share of these matches that its predicates leave, if that is told for the keys that the parent has.
    pub reached: Option<f64>,
    /// The classes of equal vectors that the pairs belong to, as bits.
    pub classes: u64,
}

/// The links by parent and relation.
pub(super) type Links = BTreeMap<(usize, usize), Link>;

/// What is judged of a relation.
pub(super) struct Relation {
    /// The rows that its predicates leave, and all of them, which are at least one.
    pub rows: f64,
    pub base: f64,
    /// What it takes to read a row again; `None` if that means to compute all of it again.
    pub again: Option<f64>,
    /// Whether one of its vectors is read after the join.
    pub is_wanted: bool,
    /// The classes of equal vectors that it has vectors of, as bits.
    pub classes: u64,
}

/// The relations of a join, and what any tree of them costs.
pub(super) struct Costs<'j> {
    pub relations: Vec<Relation>,
    pub links: &'j Links,
    /// How many values each class of equal vectors is expected to have.
    pub values: &'j [f64],
    pub copies: Copies,
}

/// What a relation of a tree lets through, with everything below it.
#[derive(Clone, Copy)]
struct Below {
    /// The share of its rows.
    share: f64,
    /// The same among rows that others have for the same keys.
    among: f64,
    /// How many of its rows match a row of its parent.
    matches: f64,
    /// Whether a vector is read after the join.
    is_wanted: bool,
    /// The classes that the relations have vectors of.
    classes: u64,
}

/// What reduces rows.
#[derive(Clone, Copy)]
struct Reduced {
    /// The classes of vectors whose values are known to be among some.
    classes: u64,
    /// The share of the relation's rows that have such.
    share: f64,
    /// The same among the rows that others have for the same keys.
    among: f64,
}

/// A tree that is being judged.
struct Judged<'t> {
    costs: &'t Costs<'t>,
    children: Vec<Vec<usize>>,
    below: Vec<Below>,
    cost: f64,
}

impl<'j> Costs<'j> {
    /// The expected cost of a tree.
    pub fn of(&self, tree: &Tree) -> f64 {
        let many = self.relations.len();
        let mut judged = Judged {
            costs: self,
            children: vec![Vec::new(); many],
            below: Vec::with_capacity(many),
            cost: 0.0,
        };
        for (parent, child) in &tree.below {
            judged.children[*parent].push(*child);
        }
        judged.sum_up(tree);
        judged.rows(tree.root, vec![]);
        let is_bare = self.copies == Copies::Ignored && !self.relations[tree.root].is_wanted;
        judged.cost * if is_bare { BARE } else { 1.0 }
    }

    fn link(&self, parent: usize, child: usize) -> Option<&'j Link> {
        self.links.get(&(parent, child))
    }

    /// The share of pairs that the equalities of `classes` leave, which no link sees to.
    fn left(&self, classes: u64) -> f64 {
        let all = self.values.iter().enumerate();
        let met = all.filter(|(class, _)| classes >> class & 1 == 1);
        met.map(|(_, values)| 1.0 / values.max(1.0)).product()
    }
}

impl Judged<'_> {
    /// Computes what each relation lets through, those below first.
    fn sum_up(&mut self, tree: &Tree) {
        let own = self.costs.relations.iter().map(|relation| Below {
            share: (relation.rows / relation.base).min(1.0),
            among: 1.0,
            matches: 1.0,
            is_wanted: relation.is_wanted,
            classes: relation.classes,
        });
        self.below = own.collect();
        for (parent, child) in tree.below.iter().rev() {
            let link = self.costs.link(*parent, *child);
            let relation = &self.costs.relations[*child];
            let own = link.and_then(|link| link.reached);
            let own = own.unwrap_or(relation.rows / relation.base).min(1.0);
            let fan_out = match link {
                Some(link) if link.is_known => link.fan_out,
                Some(link) => {
                    let above = &self.costs.relations[*parent];
                    link.fan_out.max(relation.base / above.base)
                }
                None => relation.base,
            };
            let of_children = self.children[*child]
                .iter()
                .map(|below| &self.below[*below]);
            let (shares, matches) = of_children.fold((1.0, own * fan_out), |all, below| {
                (all.0 * below.share, all.1 * below.matches)
            });
            let (share, among) = found((own, relation.rows / relation.base), shares, fan_out);
            self.below[*child].share = share;
            self.below[*child].among = among;
            self.below[*child].matches = matches;
            let of = self.below[*child];
            let above = &mut self.below[*parent];
            above.is_wanted |= of.is_wanted;
            above.classes |= of.classes;
        }
    }

    /// How many rows come out of the probe of `child` for one that goes in.
    fn matches(&self, child: usize) -> f64 {
        let Below {
            matches, is_wanted, ..
        } = self.below[child];
        if is_wanted || self.costs.copies == Copies::Kept {
            matches
        } else {
            matches.min(1.0)
        }
    }

    /// The rows of `at` joined with everything below it, if its own are `reduced` from above. Adds to the cost what makes them.
    fn rows(&mut self, at: usize, reduced: Vec<Reduced>) -> f64 {
        let relation = &self.costs.relations[at];
        let mut children = std::mem::take(&mut self.children[at]);
        // Those of more rows than the relation has are made last.
        children.sort_by(|a, b| {
            let (of_a, of_b) = (&self.costs.relations[*a], &self.costs.relations[*b]);
            let is_late = |of: &Relation| of.base > relation.base;
            let by_matches = self.matches(*a).total_cmp(&self.matches(*b));
            let by_matches = by_matches.then(of_a.base.total_cmp(&of_b.base));
            is_late(of_a).cmp(&is_late(of_b)).then(by_matches)
        });
        let mut known = reduced.clone();
        for child in &children {
            let below = self.passed_on(at, *child, &known);
            let link = self.costs.link(at, *child);
            let is_unique = link.is_some_and(|link| link.fan_out < ONE);
            let has_copies = link.is_some_and(|link| link.fan_out >= UNIQUE);
            let is_counted = self.costs.copies == Copies::Counted && !self.below[*child].is_wanted;
            let built = match is_unique {
                _ if is_counted && has_copies => COUNTED,
                true => BUILT,
                false => BUILT_OF_MANY,
            };
            self.cost += built * self.rows(*child, below);
            let Below { share, among, .. } = self.below[*child];
            known.push(Reduced {
                classes: link.map_or(0, |link| link.classes),
                share,
                among,
            });
        }
        // Its scan drops what it finds in no table of a single key.
        let is_early = |classes: u64| classes.count_ones() == 1;
        let early = children.iter().filter(|child| {
            let link = self.costs.link(at, **child);
            link.is_some_and(|link| is_early(link.classes))
        });
        let early = early.map(|child| self.below[*child].share.min(1.0));
        let above = reduced.iter().map(|reduced| reduced.share);
        let mut rows: f64 = relation.rows * together(above.chain(early));
        children.sort_by(|a, b| self.matches(*a).total_cmp(&self.matches(*b)));
        let mut met = relation.classes;
        for child in children {
            let link = self.costs.link(at, child);
            let classes = link.map_or(0, |link| link.classes);
            let below = self.below[child];
            let early = if is_early(classes) {
                below.share.min(1.0)
            } else {
                1.0
            };
            rows *= self.matches(child) / early.max(f64::MIN_POSITIVE);
            rows *= self.costs.left(met & below.classes & !classes);
            met |= below.classes;
            self.cost += rows;
        }
        rows
    }

    /// What reduces `child` by its link, of what is `known` of its parent's rows.
    fn passed_on(&mut self, parent: usize, child: usize, known: &[Reduced]) -> Vec<Reduced> {
        let link = self.costs.link(parent, child);
        let classes = link.map_or(0, |link| link.classes);
        let (mut passed, mut others) = (1.0, 1.0);
        for reduced in known {
            if reduced.classes != 0 && reduced.classes & !classes == 0 {
                passed *= reduced.among;
            } else {
                others *= reduced.share;
            }
        }
        let (above, own) = (&self.costs.relations[parent], &self.costs.relations[child]);
        let keeping = cost_of_keeping((above.rows, above.base), (passed, others));
        let pair = Pair {
            parent: (above.rows, above.base),
            child: (own.rows, own.base),
            matches: link.map_or(1.0, |link| {
                link.fan_out * link.reached.unwrap_or(own.rows / own.base)
            }),
            again: above.again.map_or(keeping, |again| again.min(keeping)),
            reads: own.again.unwrap_or(1.0),
        };
        if classes != 0
            && let Some(share) = pair.gains((passed, others))
        {
            let keys = (pair.parent.0 * passed * others).min(pair.parent.1);
            self.cost += READ_AGAIN * pair.again * pair.parent.1 + (1.0 + BUILT) * keys;
            passed *= share;
        }
        let all = Reduced {
            classes,
            share: passed,
            among: passed,
        };
        if passed < 1.0 { vec![all] } else { vec![] }
    }
}

/// The share of a parent's rows that find one of a relation, of which each has `fan_out` matches on average. Predicates leave the share
/// `own` of these matches, and `of_all` of all rows of the relation; what is below it lets the share `below` of its rows through. One
/// of many matches is left more often than the only one. And the share of the rows that other relations have for the same keys: who
/// has comments mostly has posts, so that only some have any does not reduce them.
pub(super) fn found((own, of_all): (f64, f64), below: f64, fan_out: f64) -> (f64, f64) {
    let contained = (own / of_all.max(f64::MIN_POSITIVE)).min(1.0);
    let left = (own / contained.max(f64::MIN_POSITIVE) * below).min(1.0);
    let among = 1.0 - (1.0 - left).powf(fan_out.max(1.0));
    (contained * among, among)
}

/// The share of rows that several reductions leave. Those of real data go together, so each counts less than the one before it that
/// leaves fewer rows.
fn together(shares: impl Iterator<Item = f64>) -> f64 {
    let mut shares: Vec<f64> = shares.filter(|share| *share < 1.0).collect();
    shares.sort_by(f64::total_cmp);
    let weights = std::iter::successors(Some(1.0), |weight| Some(weight * DECAY));
    let all = shares.iter().zip(weights);
    all.map(|(share, weight)| share.powf(weight)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_matches_is_left_more_often_than_the_only_one() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-3;
        // A hundredth of the keywords, of which a film has one, or a hundred.
        assert!(near(found((0.01, 0.01), 1.0, 1.0).0, 0.01));
        assert!(near(found((0.01, 0.01), 1.0, 100.0).0, 0.634));
        // Only a tenth of the films have keywords.
        assert!(near(found((0.1, 1.0), 0.01, 100.0).0, 0.0634));
        assert!(near(found((0.1, 1.0), 0.01, 100.0).1, 0.634));
        // More of the matches than of the rows.
        assert!(near(found((0.5, 0.01), 0.5, 1.0).0, 0.25));
        assert!(near(found((0.0, 0.0), 1.0, 1.0).0, 0.0));
    }

    #[test]
    fn reductions_that_go_together_count_less() {
        assert_eq!(together([1.0, 1.0].into_iter()), 1.0);
        assert!((together([0.25, 0.01, 1.0].into_iter()) - 0.005).abs() < 1e-9);
    }

    /// Films, their keywords of which one is asked for, and roles that hang below either.
    fn films() -> (Vec<Relation>, Links) {
        let relation = |rows: f64, base: f64| Relation {
            rows,
            base,
            again: Some(1.0),
            is_wanted: true,
            classes: 1,
        };
        let relations = vec![
            relation(250_000.0, 250_000.0),
            relation(30.0, 450_000.0),
            relation(3_600_000.0, 3_600_000.0),
        ];
        let mut links = Links::new();
        for (parent, child, fan_out) in [
            (0, 1, 2.0),
            (0, 2, 14.0),
            (1, 0, 1.0),
            (1, 2, 14.0),
            (2, 0, 1.0),
            (2, 1, 2.0),
        ] {
            let link = Link {
                pairs: vec![],
                fan_out,
                is_known: true,
                reached: None,
                classes: 1,
            };
            links.insert((parent, child), link);
        }
        (relations, links)
    }

    #[test]
    fn what_is_small_comes_before_what_it_reduces() {
        let (relations, links) = films();
        let costs = Costs {
            relations,
            links: &links,
            values: &[250_000.0],
            copies: Copies::Kept,
        };
        let tree = |root: usize, below: [(usize, usize); 2]| Tree {
            root,
            below: below.to_vec(),
        };
        let roles_first = costs.of(&tree(2, [(2, 1), (2, 0)]));
        let films_first = costs.of(&tree(0, [(0, 1), (0, 2)]));
        let roles_below_keywords = costs.of(&tree(1, [(1, 0), (1, 2)]));
        // Roles are many: no join table is made of all of them, and films are made one of after the keywords.
        assert!(roles_first < 10_000.0, "{roles_first}");
        assert!(films_first < 20_000.0, "{films_first}");
        assert!(roles_below_keywords < 20_000.0, "{roles_below_keywords}");
        // Nothing reduces films before roles look for them.
        let chain = costs.of(&tree(1, [(1, 2), (2, 0)]));
        assert!(chain > roles_first, "{chain} {roles_first}");
    }
}
