//! What reduces a relation of a join before it is joined with anything below it: join tables that its parent probes by the same
//! keys, the keys of its parent, and the values that an equality across the tree asks for.

use crate::error::{Error, Result};
use crate::physical::backward::{
    Pair, REDUCING, Reduction, Sideways, cost_again, cost_of_keeping, shares,
};
use crate::physical::build_side::{BuildSide, same_keys, semi_probe};
use crate::physical::planner::Planner;
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Required, Sink, Source, decided, pipeline, then,
};
use crate::vector::value::Var;

use super::Graph;

/// Of more relations none are reduced across the tree: for each equality the tree is walked several times, which may not take long.
const MOST: usize = 64;

impl Graph {
    /// The semi joins that reduce `child` before it is joined with anything: with the keys of its parent, if these are collected, or
    /// with the join tables that its parent is reduced by, or probes earlier, by the same keys.
    pub(super) fn reducing(
        &mut self,
        planner: &mut Planner<'_>,
        (parent, child): (usize, usize),
        (here, there): (&[Var], &[Var]),
        probes: &[BuildSide],
        above: &[Operator],
    ) -> Result<Vec<Operator>> {
        if let Some(stage) =
            self.backward(planner, (parent, child), (here, there), probes, above)?
        {
            // The keys went through the join tables that were probed earlier.
            return Ok(vec![semi_probe(stage, there.to_vec())]);
        }
        let few = probes.iter().filter(|other| other.among <= REDUCING);
        let few = few.map(|other| (other.stage, &other.keys));
        let above = above.iter().filter_map(|operator| match operator {
            Operator::Probe(probe) if probe.kind == JoinKind::Semi => {
                Some((probe.stage, &probe.keys))
            }
            _ => None,
        });
        let found = above.chain(few).filter_map(|(stage, keys)| {
            let keys = same_keys(keys, here, there)?;
            Some(semi_probe(stage, keys))
        });
        Ok(found.collect())
    }

    /// Notes what reduces `child` from above, by the vectors `there` that its parent's `here` are compared with. Where
    /// it is worth it the parent's keys are collected first: returns the stage of their join table.
    fn backward(
        &mut self,
        planner: &mut Planner<'_>,
        (parent, child): (usize, usize),
        (here, there): (&[Var], &[Var]),
        probes: &[BuildSide],
        above: &[Operator],
    ) -> Result<Option<usize>> {
        let mut reductions = self.nodes[parent].reductions.clone();
        reductions.extend(probes.iter().map(|other| Reduction {
            keys: other.keys.clone(),
            share: other.share,
            among: other.among,
        }));
        let (passed_on, others) = shares(&reductions, here, &self.equal);
        let node = &self.nodes[parent];
        let keeping = cost_of_keeping(node.expected, (passed_on, others));
        let reading = node.rel.as_ref().and_then(cost_again);
        let is_cheaper_kept = reading.is_none_or(|reading| keeping < reading);
        let rows = (self.rows_by(child, there), self.nodes[child].expected.1);
        let pair = Pair {
            parent: self.nodes[parent].expected,
            child: rows,
            matches: self.nodes[child].fan_out * self.own_share(child) * rows.0
                / self.nodes[child].expected.0.max(1.0),
            again: reading.map_or(keeping, |reading| reading.min(keeping)),
            reads: self.nodes[child]
                .rel
                .as_ref()
                .and_then(cost_again)
                .unwrap_or(1.0),
        };
        let gain = pair.gains((passed_on, others));
        let gain = gain.filter(|_| !here.is_empty());
        if gain.is_some() && is_cheaper_kept {
            self.keep(planner, parent, probes, above)?;
        }
        let stage = match gain {
            Some(_) => self.keys_stage(planner, parent, here, probes, above)?,
            None => None,
        };
        let share = passed_on.min(gain.unwrap_or(1.0));
        if share < 1.0 {
            let keys = there.to_vec();
            self.nodes[child].reductions.push(Reduction {
                keys,
                share,
                among: share,
            });
        }
        Ok(stage)
    }

    /// The rows that the predicates of a relation leave, and of those below it that are found by one of its vectors
    /// `keys`: what reduces it by these reduces them, too.
    fn rows_by(&self, of: usize, keys: &[Var]) -> f64 {
        let is_key = |var: &Var| {
            let mut keys = keys.iter();
            keys.any(|key| key == var || self.equal.has((*key, *var)))
        };
        let below = self.children(of).into_iter().filter(|child| {
            let parent = self.nodes[*child].parent.as_ref();
            parent.is_some_and(|(_, pairs)| pairs.iter().any(|(here, _)| is_key(here)))
        });
        let below = below.map(|child| self.rows_by(child, keys));
        self.nodes[of].expected.0 + below.sum::<f64>()
    }

    /// The stage of a join table of the `keys` that the rows of a relation have which pass the operators `above` and have
    /// matches in those of `probes` that leave few.
    fn keys_stage(
        &self,
        planner: &mut Planner<'_>,
        of: usize,
        keys: &[Var],
        probes: &[BuildSide],
        above: &[Operator],
    ) -> Result<Option<usize>> {
        let operators = self.leaving_few(of, probes, above);
        self.collected(planner, of, keys, operators)
    }

    /// What a relation's rows can go through before they are joined: the operators `above`, and semi joins with those of `probes` that
    /// leave few. Not what its rows went through when they were kept.
    pub(super) fn leaving_few(
        &self,
        of: usize,
        probes: &[BuildSide],
        above: &[Operator],
    ) -> Vec<Operator> {
        let kept = self.nodes[of].kept;
        let few = |other: &&BuildSide| {
            let is_done = kept.is_some_and(|kept| other.stage < kept);
            other.share <= REDUCING && !other.keys.is_empty() && !is_done
        };
        let matched = probes.iter().filter(few);
        let matched = matched.map(|other| semi_probe(other.stage, other.keys.clone()));
        let above = above.iter().filter(|_| kept.is_none());
        above.cloned().chain(matched).collect()
    }

    /// Keeps the rows of a relation that are left by now, to read these from now on instead of the relation.
    fn keep(
        &mut self,
        planner: &mut Planner<'_>,
        at: usize,
        probes: &[BuildSide],
        above: &[Operator],
    ) -> Result<()> {
        if self.nodes[at].kept.is_some() {
            return Ok(());
        }
        let operators = self.leaving_few(at, probes, above);
        let vars = self.nodes[at].needed.clone();
        let mut wanted = vars.clone();
        for operator in &operators {
            operator.reads(&mut |var| _ = wanted.insert(var));
        }
        let pipelines = self.rows_of(planner, at, &wanted, operators)?;
        let sink = Sink::Rows {
            vars: vars.into_iter().collect(),
            order: vec![],
            skip: 0,
            fetch: None,
        };
        self.nodes[at].kept = Some(planner.stage(pipelines, sink));
        Ok(())
    }

    /// The pipelines of a relation's own rows, or of those of them that are kept, which pass its conditions and `operators`.
    pub(super) fn rows_of(
        &mut self,
        planner: &mut Planner<'_>,
        at: usize,
        wanted: &Required,
        operators: Vec<Operator>,
    ) -> Result<Vec<Pipeline>> {
        let node = &mut self.nodes[at];
        let mut pipelines = match node.kept {
            Some(kept) => vec![pipeline(Source::Rows(kept))],
            None => {
                let rel = node.rel.take();
                let rel = rel.ok_or_else(|| Error::internal("a relation joined twice"))?;
                let pipelines = planner.pipelines(rel, wanted)?;
                decided(pipelines, &mut node.conditions, &node.vars)
            }
        };
        for operator in operators {
            pipelines = then(pipelines, operator);
        }
        Ok(pipelines)
    }

    /// The stage of a join table of the `keys` that the rows of a relation have which pass `operators`; `None` if it was read already.
    fn collected(
        &self,
        planner: &mut Planner<'_>,
        of: usize,
        keys: &[Var],
        operators: Vec<Operator>,
    ) -> Result<Option<usize>> {
        let node = &self.nodes[of];
        let mut wanted: Required = keys.iter().copied().collect();
        for operator in &operators {
            operator.reads(&mut |var| _ = wanted.insert(var));
        }
        let mut pipelines = match (&node.kept, &node.rel) {
            (Some(kept), _) => vec![pipeline(Source::Rows(*kept))],
            (None, Some(rel)) => planner.pipelines(rel.clone(), &wanted)?,
            (None, None) => return Ok(None),
        };
        for operator in operators {
            pipelines = then(pipelines, operator);
        }
        let sink = Sink::Table {
            keys: keys.to_vec(),
            vars: vec![],
            marks: false,
        };
        Ok(Some(planner.stage(pipelines, sink)))
    }

    /// Reduces relations by the equalities that are `apart` from the tree: where one side of an equality, or a vector that equals it,
    /// belongs to a relation with few values, the rows of the other side that have none of them are dropped when they are read. Of
    /// TPC-H's query 5 only customers of the region's nations are read, of TPC-DS's 72 only the stocks of the year's weeks.
    pub(super) fn reduce_sideways(
        &mut self,
        planner: &mut Planner<'_>,
        apart: &[(Var, Var)],
    ) -> Result<()> {
        if self.nodes.len() > MOST {
            return Ok(());
        }
        for (a, b) in apart {
            for (var, other) in [(*a, *b), (*b, *a)] {
                let at = self.owner(var)?;
                let Some((source, key, share)) = self.few_values(at, other)? else {
                    continue;
                };
                let Some(stage) = self.values_stage(planner, source, &[key])? else {
                    continue;
                };
                let node = &mut self.nodes[at];
                node.sideways.push(semi_probe(stage, vec![var]));
                node.expected.0 = (node.expected.0 * share).max(1.0);
                node.reached = node.reached.map(|reached| reached * share);
                let keys = vec![var];
                node.reductions.push(Reduction {
                    keys,
                    share,
                    among: share,
                });
                // The other way would find the same values again.
                break;
            }
        }
        Ok(())
    }

    /// The relation whose values of a vector that equals `other` reduce the relation `at` at the least cost, that vector, and the share
    /// of rows that they are expected to leave; `None` if none is worth it.
    fn few_values(&self, at: usize, other: Var) -> Result<Option<(usize, Var, f64)>> {
        let mut best: Option<(f64, (usize, Var, f64))> = None;
        let equal = self.equal.of(other).cloned().unwrap_or_default();
        for key in equal.into_iter().chain([other]) {
            let source = self.owner(key)?;
            if self.is_below(source, at) || self.is_below(at, source) {
                continue;
            }
            let Some(cost) = self.cost_of_values(source) else {
                continue;
            };
            let parent = self.nodes[at].parent.as_ref();
            let share = self.share(source);
            let pair = Sideways {
                cost,
                values: self.nodes[source].expected.1 * share,
                share,
                rows: self.nodes[at].expected.0,
                parent: parent.map(|(parent, _)| self.nodes[*parent].expected.0),
            };
            let is_better = best.as_ref().is_none_or(|(least, _)| cost < *least);
            if is_better && pair.is_worth_it() {
                best = Some((cost, (source, key, share)));
            }
        }
        Ok(best.map(|(_, found)| found))
    }

    /// Whether `of` is the relation `at` or one below it.
    fn is_below(&self, of: usize, at: usize) -> bool {
        let parent = self.nodes[of].parent.as_ref();
        of == at || parent.is_some_and(|(parent, _)| self.is_below(*parent, at))
    }

    /// What it takes to read a relation and all below it once more; `None` if they cannot be.
    fn cost_of_values(&self, of: usize) -> Option<f64> {
        let node = &self.nodes[of];
        let own = cost_again(node.rel.as_ref()?)? * node.expected.1;
        let below = self.children(of).into_iter();
        below
            .map(|child| self.cost_of_values(child))
            .try_fold(own, |sum, cost| Some(sum + cost?))
    }

    /// The stage of a join table of the `keys` that the rows of a relation have which everything below it lets through.
    fn values_stage(
        &self,
        planner: &mut Planner<'_>,
        of: usize,
        keys: &[Var],
    ) -> Result<Option<usize>> {
        let mut matched = self.nodes[of].sideways.clone();
        for child in self.children(of) {
            let parent = self.nodes[child].parent.iter();
            let (here, there): (Vec<Var>, Vec<Var>) =
                parent.flat_map(|(_, pairs)| pairs).copied().unzip();
            match self.values_stage(planner, child, &there)? {
                Some(stage) => matched.push(semi_probe(stage, here)),
                None => return Ok(None),
            }
        }
        self.collected(planner, of, keys, matched)
    }
}
