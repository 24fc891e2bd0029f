//! The first groups of an order: only their keys and results are computed.

use std::collections::BTreeMap;

use crate::error::{Result, missing};
use crate::logical::relation::Fold;
use crate::operators::aggregate::grouping::{Finished, Grouping};
use crate::operators::sort::order_of;
use crate::operators::top_k::TopKFilter;
use crate::physical::program::FirstGroups;
use crate::vector::batch::Batch;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Var, Vector};

/// Which groups are asked for, and of what.
pub(crate) struct FirstOf<'a> {
    /// The vectors that the aggregation makes.
    pub keys: &'a [Var],
    pub folds: &'a [Fold],
    pub types: &'a [Type],
    pub first: &'a FirstGroups,
    /// Raised to the first key of the last of these groups, by all that know some of the groups.
    pub filter: &'a TopKFilter,
}

impl Grouping {
    /// As [`finish`](Self::finish), of the first groups that are asked for.
    pub fn finish_first(self, of: &FirstOf<'_>) -> Result<Finished> {
        let types = |var: Var| of.types[var].clone();
        let mut groups = self.numbers();
        let first = of.first.groups;
        // First by the first key alone, which is a number most often, where others may be strings.
        let own = of.filter.var();
        let some = self.columns(of, &[own], &groups)?;
        groups = reaching(of.filter, some, groups, first)?;
        if groups.len() > first {
            let vars: Vec<Var> = of.first.order.iter().map(|key| key.var).collect();
            let columns = self.columns(of, &vars, &groups)?;
            let order = &of.first.order;
            let picks = order_of(&columns, groups.len(), of.types, order, Some(first))?;
            groups = picks.iter().map(|pick| groups[*pick as usize]).collect();
        }
        self.results(of.folds, &types, &groups, &groups)
    }

    /// These vectors of the groups `groups`.
    fn columns(
        &self,
        of: &FirstOf<'_>,
        vars: &[Var],
        groups: &[u32],
    ) -> Result<BTreeMap<Var, Vector>> {
        let types = |var: Var| of.types[var].clone();
        let mut columns = BTreeMap::new();
        if of.keys.iter().any(|key| vars.contains(key)) {
            columns.extend(of.keys.iter().copied().zip(self.keys(groups)?));
        }
        for (parts, fold) in self.parts.iter().zip(of.folds) {
            if vars.contains(&fold.var) {
                let results = self.result(parts, fold, &types, (groups, groups))?;
                columns.insert(fold.var, results);
            }
        }
        Ok(columns)
    }
}

/// Those of `groups`, which have these vectors, that may be among the first `first` of all by the key of `filter`, which is raised.
fn reaching(
    filter: &TopKFilter,
    mut columns: BTreeMap<Var, Vector>,
    groups: Vec<u32>,
    first: usize,
) -> Result<Vec<u32>> {
    let var = filter.var();
    let vector = columns.remove(&var).ok_or_else(missing)?;
    let mut batch = Batch::new(var + 1);
    let mut groups = groups;
    let mut vector = filtered(filter, &mut batch, vector, &mut groups)?;
    if groups.len() > first {
        let stored = Materialized {
            columns: BTreeMap::from([(var, vector)]),
            rows: groups.len(),
        };
        filter.raise_to(&stored, first)?;
        vector = stored.columns.into_values().next().ok_or_else(missing)?;
        filtered(filter, &mut batch, vector, &mut groups)?;
    }
    Ok(groups)
}

/// Drops the groups that do not reach the threshold; `vector` has their keys.
fn filtered(
    filter: &TopKFilter,
    batch: &mut Batch,
    vector: Vector,
    groups: &mut Vec<u32>,
) -> Result<Vector> {
    batch.restart(groups.len());
    batch.set(filter.var(), vector);
    let picks = filter.picks(batch)?;
    let vector = batch.get(filter.var())?;
    let Some(picks) = picks else {
        return Ok(vector.clone());
    };
    *groups = picks.iter().map(|pick| groups[*pick as usize]).collect();
    vector.at(&picks)
}
