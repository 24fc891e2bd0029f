//! Relations: the records that terms read, joined.
//!
//! What outer lookups lead to is joined after all that does not need it: see [`Terms::depth_of`].

use std::collections::BTreeSet;

use engine::{Error, Expr, Rel, Result, Var};

use crate::lower::lowering::{Frame, Lowering};
use crate::lower::needs::Needs;
use crate::lower::{filtered, nothing};
use crate::space::{FoldId, InstanceId, Space, TermId};
use crate::term::{Instance, Source, Term};

/// A relation that is to be joined, and the records that its rows are made of.
struct Input {
    rel: Rel,
    holds: BTreeSet<InstanceId>,
}

/// What a level of lookups leaves to be done once all of its relations are there.
struct Found {
    /// The conditions that no scan tests.
    conditions: BTreeSet<TermId>,
    /// Keys, and the vectors of records that must equal them.
    pairs: Vec<(TermId, InstanceId, Var)>,
    /// Groups that must exist, or must not.
    later: Vec<(InstanceId, FoldId, bool)>,
}

impl Lowering<'_> {
    /// The elements that fulfil `conditions`, with a vector for each of `wanted`: the records that these read are joined
    /// and filtered, those first that no outer lookup leads to.
    pub(super) fn relation(
        &mut self,
        space: &Space,
        conditions: &BTreeSet<TermId>,
        wanted: &[TermId],
    ) -> Result<(Rel, Vec<Var>)> {
        let needs = self.needs(space, conditions, wanted);
        let mut frame = Frame::default();
        let mut left: BTreeSet<TermId> = conditions
            .iter()
            .copied()
            .filter(|c| !matches!(self.terms.get(*c), Term::Present(_) | Term::Absent(_)))
            .collect();
        let depths = needs.instances.iter().map(|of| self.terms.depth_of(*of));
        let deepest = depths.max().unwrap_or(0);
        let mut rel = None;
        for depth in 0..=deepest {
            let at = |of: &&InstanceId| self.terms.depth_of(**of) == depth;
            let own: Vec<InstanceId> = needs.instances.iter().filter(at).copied().collect();
            let terms = self.terms;
            let (now, later) = left.into_iter().partition(|c| terms.depth(*c) <= depth);
            left = later;
            rel = Some(self.level(rel, &own, now, &mut frame, &needs)?);
        }
        let rel = rel.ok_or_else(|| Error::Internal("a matrix without records".into()))?;
        self.project(rel, &frame, wanted)
    }

    /// `before` with the records of `own` looked up, so that `conditions` hold.
    fn level(
        &mut self,
        before: Option<Rel>,
        own: &[InstanceId],
        conditions: BTreeSet<TermId>,
        frame: &mut Frame,
        needs: &Needs,
    ) -> Result<Rel> {
        let terms = self.terms;
        let mut inputs: Vec<Input> = Vec::new();
        if let Some(rel) = before {
            let mut rel = rel;
            let outer =
                |of: &&InstanceId| matches!(terms.of(**of), Instance::Lookup { outer: true, .. });
            for instance in own.iter().filter(outer) {
                rel = self.outer(rel, *instance, frame, needs)?;
            }
            let deep = terms.depth_of(own.first().copied().unwrap_or(InstanceId(0)));
            let known = |of: &&InstanceId| terms.depth_of(**of) < deep || outer(of);
            let holds = needs.instances.iter().filter(known).copied().collect();
            inputs.push(Input { rel, holds });
        }
        let mut found = Found {
            conditions,
            pairs: vec![],
            later: vec![],
        };
        for instance in own {
            if let Some(rel) = self.look_up(*instance, &mut found, frame, needs)? {
                let holds = [*instance].into();
                inputs.push(Input { rel, holds });
            }
        }
        if inputs.is_empty() {
            return Err(Error::Internal("a matrix without records".into()));
        }
        self.semi_joins(&mut inputs, frame, needs, found.later)?;
        let equal = self.equal(&mut inputs, frame, needs, found.pairs)?;
        let residual = self.residual(&mut inputs, frame, needs, found.conditions)?;
        Ok(joined(inputs, equal, residual))
    }

    /// The relation of a record that must be there; `None` if only its existence matters.
    fn look_up(
        &mut self,
        instance: InstanceId,
        found: &mut Found,
        frame: &mut Frame,
        needs: &Needs,
    ) -> Result<Option<Rel>> {
        let (source, keys, by) = match self.terms.of(instance) {
            Instance::Root(table) => (Source::Table(*table), &[][..], &[][..]),
            Instance::Lookup { outer: true, .. } => return Ok(None),
            Instance::Lookup {
                source, keys, by, ..
            } => (*source, &keys[..], &by[..]),
        };
        match source {
            Source::Table(table) => {
                let mut columns = needs.columns(instance);
                columns.extend(by);
                let tested = self.own_conditions(&mut found.conditions, instance);
                let (rel, vars) = self.scan(instance, table, columns, tested)?;
                for (column, var) in vars {
                    frame.columns.insert((instance, column), var);
                }
                for (key, column) in keys.iter().zip(by) {
                    let var = frame.columns[&(instance, *column)];
                    found.pairs.push((*key, instance, var));
                }
                Ok(Some(rel))
            }
            Source::Fold(fold) => {
                let missing = needs.absent.contains(&instance);
                let used = needs.aggregates(instance);
                let root = needs.root == Some(instance);
                if missing || used.is_empty() && !root {
                    found.later.push((instance, fold, missing));
                    return Ok(None);
                }
                let (rel, labels, values) = self.fold(fold, &used)?;
                for (n, var) in values {
                    frame.aggregates.insert((instance, n), var);
                }
                if root {
                    frame.labels = labels
                } else {
                    for (key, var) in keys.iter().zip(labels) {
                        found.pairs.push((*key, instance, var));
                    }
                }
                Ok(Some(rel))
            }
        }
    }

    /// Which vectors of two inputs must be equal, from pairs of a key and the vector it is looked up in.
    fn equal(
        &mut self,
        inputs: &mut [Input],
        frame: &Frame,
        needs: &Needs,
        pairs: Vec<(TermId, InstanceId, Var)>,
    ) -> Result<Vec<(Var, Var)>> {
        let mut equal = Vec::with_capacity(pairs.len());
        for (key, instance, var) in pairs {
            let key = self.expr(key, frame)?;
            let (a, b) = engine::alike(key, self.query.expr(var))?;
            let a = self.within(inputs, frame, a, needs)?;
            let b = match b.as_var() {
                Some(var) => var,
                None => {
                    let holder = inputs.iter().position(|i| i.holds.contains(&instance));
                    let input = &mut inputs[holder.unwrap_or_default()];
                    self.map(&mut input.rel, b)
                }
            };
            equal.push((a, b));
        }
        Ok(equal)
    }

    /// Tests conditions: those that one input fulfils by itself there; the others are returned.
    fn residual(
        &mut self,
        inputs: &mut [Input],
        frame: &Frame,
        needs: &Needs,
        conditions: BTreeSet<TermId>,
    ) -> Result<Vec<Expr>> {
        let mut residual = Vec::new();
        for condition in conditions {
            let of = self.reads(condition, needs);
            let e = self.expr(condition, frame)?;
            let holder = inputs.iter().position(|i| of.is_subset(&i.holds));
            match holder {
                Some(holder) => {
                    let input = &mut inputs[holder].rel;
                    *input = filtered(std::mem::replace(input, nothing()), e);
                }
                None => residual.push(e),
            }
        }
        Ok(residual)
    }

    /// The records that `term` reads; labels are those of the root.
    fn reads(&self, term: TermId, needs: &Needs) -> BTreeSet<InstanceId> {
        let mut all = self.terms.instances(term);
        if self.terms.any(term, &|term| matches!(term, Term::Label(_))) {
            all.extend(needs.root);
        }
        all
    }

    /// Removes from `left` the conditions that read only the records of `instance`, and no label; returns them.
    fn own_conditions(&self, left: &mut BTreeSet<TermId>, instance: InstanceId) -> Vec<TermId> {
        let own = |c: &TermId| {
            self.terms.instances(*c) == [instance].into()
                && !self.terms.any(*c, &|term| matches!(term, Term::Label(_)))
        };
        let taken: Vec<TermId> = left.iter().copied().filter(own).collect();
        taken.iter().for_each(|c| {
            left.remove(c);
        });
        taken
    }

    /// The vector of `e`, computed in the input that holds what it reads.
    fn within(
        &mut self,
        inputs: &mut [Input],
        frame: &Frame,
        e: Expr,
        needs: &Needs,
    ) -> Result<Var> {
        if let Some(var) = e.as_var() {
            return Ok(var);
        }
        let reads: BTreeSet<InstanceId> = e
            .vars()
            .iter()
            .filter_map(|var| frame.holder(*var).or(needs.root))
            .collect();
        let holder = inputs
            .iter()
            .position(|input| reads.is_subset(&input.holds));
        match holder {
            Some(holder) => Ok(self.map(&mut inputs[holder].rel, e)),
            None => Err(Error::Unsupported(
                "a `dot` by labels that are computed from several records".into(),
            )),
        }
    }

    /// The vector of `e`, computed in `rel`.
    pub(super) fn map(&mut self, rel: &mut Rel, e: Expr) -> Var {
        let var = self.query.add(e.to_string(), e.ty.clone());
        let input = std::mem::replace(rel, nothing());
        *rel = Rel::Map {
            input: Box::new(input),
            exprs: vec![(var, e)],
        };
        var
    }

    /// Semi joins and anti joins the inputs with the groups in `later`, which must exist or must not.
    fn semi_joins(
        &mut self,
        inputs: &mut [Input],
        frame: &Frame,
        needs: &Needs,
        later: Vec<(InstanceId, FoldId, bool)>,
    ) -> Result<()> {
        for (instance, fold, anti) in later {
            let terms = self.terms;
            let Instance::Lookup { keys, .. } = terms.of(instance) else {
                continue;
            };
            let groups = &terms.fold(fold).groups;
            let (mut other, others) =
                self.relation(&groups.space, &groups.conditions, &groups.keys)?;
            let mut of = BTreeSet::new();
            for key in keys {
                of.extend(self.reads(*key, needs));
            }
            let holder = inputs.iter().position(|input| of.is_subset(&input.holds));
            let Some(holder) = holder else {
                return Err(Error::Unsupported(
                    "a `dot` by labels of several records with `tr`".into(),
                ));
            };
            let mut equal = Vec::with_capacity(keys.len());
            for (key, var) in keys.iter().zip(others) {
                let key = self.expr(*key, frame)?;
                let (a, b) = engine::alike(key, self.query.expr(var))?;
                let a = match a.as_var() {
                    Some(var) => var,
                    None => self.map(&mut inputs[holder].rel, a),
                };
                let b = match b.as_var() {
                    Some(var) => var,
                    None => self.map(&mut other, b),
                };
                equal.push((a, b));
            }
            let rel = &mut inputs[holder].rel;
            *rel = Rel::Semi {
                input: Box::new(std::mem::replace(rel, nothing())),
                other: Box::new(other),
                equal,
                residual: vec![],
                anti,
            };
        }
        Ok(())
    }
}

impl Frame {
    /// The record that a vector belongs to; `None` for labels.
    fn holder(&self, var: Var) -> Option<InstanceId> {
        let all = self.columns.iter().chain(&self.aggregates);
        all.filter(|(_, own)| **own == var)
            .map(|((instance, _), _)| *instance)
            .next()
    }
}

/// The join of `inputs`; of one alone, only its residual conditions are left.
fn joined(mut inputs: Vec<Input>, equal: Vec<(Var, Var)>, residual: Vec<Expr>) -> Rel {
    let mut rel = match (inputs.len(), residual.is_empty()) {
        (1, true) => inputs.remove(0).rel,
        _ => Rel::Join {
            inputs: inputs.into_iter().map(|input| input.rel).collect(),
            equal,
            residual,
        },
    };
    if let Rel::Join {
        inputs, residual, ..
    } = &mut rel
        && inputs.len() == 1
    {
        let parts = std::mem::take(residual);
        rel = parts.into_iter().fold(inputs.remove(0), filtered);
    }
    rel
}
