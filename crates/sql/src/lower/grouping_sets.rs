//! Lowering of grouping sets, rollup and cube, by levels.
//!
//! Rows are grouped once, by the keys of all sets. Each set then merges the groups of the smallest level before it that has
//! all its keys: `rollup (a, b)` groups rows by `a, b`, those groups by `a`, and these to one. For that, a level has *partial
//! results* beside its own: a sum in a type that no sum overflows, and for an average its sum and its count. What of both is
//! the same is accumulated once.
//!
//! Distinct values are keys of the finest level, which all sets merge then: values that are distinct among its groups are
//! distinct among the rows.
//!
//! Of some functions, such as `stddev` and `string_agg`, the results of groups do not tell those of coarser ones. Then the rows are kept,
//! and each set groups them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_expr::{Aggregate, Expr as Sql, GroupingSet};
use engine::{Error, Expr, Fold, Function, Literal, Merged, Node, Part, Rel, Result, Type, Var};

use crate::lower::aggregate::addable;
use crate::lower::expr::Scope;
use crate::lower::first_rows::Computed;
use crate::lower::lowering::{Lowered, Lowering, mapped, once, unsupported};

/// Most sets that are lowered: each is a stage of the program.
const MOST: usize = 256;

/// How a result follows from those of finer groups.
enum Finer {
    /// From their results for parts of the rows.
    Merged(Merged),
    /// The same function, of a key of the finest level.
    Distinct(Var),
}

/// The functions of all sets, and what is kept to merge them.
struct Merging {
    /// The functions as of rows, with vectors for the results of all sets.
    folds: Vec<Fold>,
    /// How each result is merged.
    merged: Vec<Finer>,
    parts: Vec<Part>,
    /// The arguments of functions of distinct values.
    distinct: Vec<Var>,
}

/// Groups of rows.
struct Level {
    rel: Arc<Rel>,
    /// The keys, as vectors of the rows and as vectors of the groups.
    keys: Vec<(Var, Var)>,
    partials: Vec<Var>,
    /// The results; `None` if it is no set's level, but only there to be merged.
    results: Option<Vec<Var>>,
}

impl Level {
    /// Whether these vectors of the rows are keys.
    fn has(&self, keys: &[Var]) -> bool {
        keys.iter()
            .all(|key| self.keys.iter().any(|(row, _)| row == key))
    }
}

impl Lowering<'_> {
    /// The groups of all `sets` of the rows of `rel`, of which `scope` names the vectors.
    pub(super) fn grouping_sets(
        &mut self,
        aggregate: &Aggregate,
        sets: &GroupingSet,
        rel: Rel,
        scope: Scope<'_>,
    ) -> Result<Lowered> {
        let all = sets.distinct_expr();
        let fields = aggregate.schema.fields();
        if fields.len() != all.len() + 1 + aggregate.aggr_expr.len() {
            return unsupported("grouping sets with other columns than keys and functions");
        }
        let sets = places(sets, &all)?;
        let mut computed = Computed::default();
        let mut keys = Vec::with_capacity(all.len());
        for (e, field) in all.iter().zip(fields) {
            let e = self.expr(e, scope)?;
            keys.push(self.var(e, field.name(), &mut computed.exprs));
        }
        self.narrow(&once(&keys));
        let folds = self.folds(aggregate, scope, &keys, &mut computed)?;
        let ids = ids(&sets, all.len(), fields[all.len()].data_type())?;
        let rows = mapped(rel, computed.exprs);
        let (levels, of) = match self.merging(&folds) {
            Ok(merging) => self.levels(rows, &keys, &sets, &merging),
            Err(Error::Unsupported(_)) => self.levels_of_rows(rows, &keys, &sets, &folds)?,
            Err(e) => return Err(e),
        };
        let mut inputs = Vec::with_capacity(sets.len());
        for ((set, level), id) in sets.iter().zip(of).zip(&ids) {
            inputs.push(self.branch(&levels[level], &keys, set, id)?);
        }
        let mut vars = Vec::with_capacity(fields.len());
        for key in &keys {
            let column = self.query.vars[*key].clone();
            vars.push(self.query.add(column.name, column.ty.nullable(true)));
        }
        let bounds = ids.iter().map(|id| id.ty.bounds);
        let (low, high) = bounds.fold((0, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
        let Some(ty) = Type::of(fields[all.len()].data_type(), false) else {
            return unsupported("such ids of grouping sets");
        };
        vars.push(
            self.query
                .add(fields[all.len()].name(), ty.within((low, high))),
        );
        vars.extend(folds.iter().map(|fold| fold.var));
        let rel = Rel::Union {
            inputs,
            vars: vars.clone(),
        };
        Ok((rel, vars))
    }

    /// What levels keep to compute `folds`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the results of groups do not tell those of coarser ones.
    fn merging(&self, folds: &[Fold]) -> Result<Merging> {
        let (mut merged, mut distinct) = (Vec::with_capacity(folds.len()), Vec::new());
        let mut parts = Vec::new();
        for fold in folds {
            merged.push(match (fold.function, fold.arg) {
                (
                    Function::CountDistinct | Function::SumDistinct | Function::AvgDistinct,
                    Some(arg),
                ) => {
                    distinct.push(arg);
                    Finer::Distinct(arg)
                }
                (function, arg) => {
                    if let (Function::Sum | Function::Avg, Some(arg)) = (function, arg) {
                        addable(self.query.ty(arg))?;
                    }
                    Finer::Merged(Part::of(fold, &self.query, &mut parts)?)
                }
            });
        }
        Ok(Merging {
            folds: folds.to_vec(),
            merged,
            parts,
            distinct: once(&distinct),
        })
    }

    /// The levels of all sets, and the place of each set's.
    fn levels(
        &mut self,
        rows: Rel,
        keys: &[Var],
        sets: &[Vec<usize>],
        merging: &Merging,
    ) -> (Vec<Level>, Vec<usize>) {
        let keys_of = |set: &Vec<usize>| once(&set.iter().map(|at| keys[*at]).collect::<Vec<_>>());
        let finest = once(&[keys, &merging.distinct[..]].concat());
        let is_set = sets.iter().any(|set| keys_of(set).len() == finest.len());
        let is_set = is_set && merging.distinct.is_empty();
        let mut levels = vec![self.finest(rows, finest, is_set, merging)];
        let mut of = vec![0; sets.len()];
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|set| Reverse(keys_of(&sets[*set]).len()));
        for set in order {
            let wanted = keys_of(&sets[set]);
            let same = |level: &Level| {
                level.results.is_some() && level.keys.len() == wanted.len() && level.has(&wanted)
            };
            of[set] = levels.iter().position(same).unwrap_or_else(|| {
                let finer = levels.iter().filter(|level| level.has(&wanted));
                let finer = finer.filter(|level| level.has(&merging.distinct));
                // The finest has all keys.
                let smallest = finer.min_by_key(|level| level.keys.len());
                let level = self.coarser(smallest.unwrap_or(&levels[0]), &wanted, merging);
                levels.push(level);
                levels.len() - 1
            });
        }
        (levels, of)
    }

    /// The levels of all sets, each made of the rows, which are kept for that, and the place of each set's.
    fn levels_of_rows(
        &mut self,
        rows: Rel,
        keys: &[Var],
        sets: &[Vec<usize>],
        folds: &[Fold],
    ) -> Result<(Vec<Level>, Vec<usize>)> {
        // Their orders leave out the keys of the groups, which coarser groups have not got.
        if folds.iter().any(|fold| fold.function.order().is_some()) {
            return unsupported("the first row of grouping sets");
        }
        let mut vars = Vec::new();
        rows.each_var(&mut |var| vars.push((var, var)));
        let rows = Arc::new(rows);
        let mut levels: Vec<Level> = Vec::new();
        let mut of = Vec::with_capacity(sets.len());
        for set in sets {
            let wanted = once(&set.iter().map(|at| keys[*at]).collect::<Vec<_>>());
            let same = |level: &Level| level.keys.len() == wanted.len() && level.has(&wanted);
            if let Some(known) = levels.iter().position(same) {
                of.push(known);
                continue;
            }
            let own = folds.iter().map(|fold| Fold {
                var: self.again(fold.var),
                ..*fold
            });
            let own: Vec<Fold> = own.collect();
            let results = own.iter().map(|fold| fold.var).collect();
            let level = Rel::Fold {
                input: Box::new(Rel::Shared {
                    input: Arc::clone(&rows),
                    vars: vars.clone(),
                }),
                keys: wanted.clone(),
                folds: own,
            };
            of.push(levels.len());
            levels.push(Level {
                rel: Arc::new(level),
                keys: wanted.into_iter().map(|key| (key, key)).collect(),
                partials: vec![],
                results: Some(results),
            });
        }
        Ok((levels, of))
    }

    /// Groups `rows` by `keys`.
    fn finest(&mut self, rows: Rel, keys: Vec<Var>, is_set: bool, merging: &Merging) -> Level {
        let mut folds = Vec::new();
        let mut partials = Vec::with_capacity(merging.parts.len());
        for part in &merging.parts {
            let name = format!("part of {}", part.name);
            let var = self.query.add(name, part.ty.clone());
            partials.push(var);
            folds.push(part.of_rows(var));
        }
        let results = is_set.then(|| {
            let each = merging.folds.iter().zip(&merging.merged);
            let each = each.map(|(fold, merged)| match merged {
                Finer::Merged(Merged::Part(place)) => partials[*place],
                _ => {
                    let var = self.again(fold.var);
                    folds.push(Fold { var, ..*fold });
                    var
                }
            });
            each.collect()
        });
        let level = Rel::Fold {
            input: Box::new(rows),
            keys: keys.clone(),
            folds,
        };
        Level {
            rel: Arc::new(level),
            keys: keys.into_iter().map(|key| (key, key)).collect(),
            partials,
            results,
        }
    }

    /// Merges the groups of `finer` to those of `keys`, which it has.
    fn coarser(&mut self, finer: &Level, keys: &[Var], merging: &Merging) -> Level {
        let mut vars = Vec::new();
        let mut read = |lowering: &mut Self, var: Var| {
            let here = lowering.again(var);
            vars.push((var, here));
            here
        };
        let mut here: HashMap<Var, Var> = HashMap::new();
        for (row, group) in &finer.keys {
            if keys.contains(row) || merging.distinct.contains(row) {
                here.insert(*row, read(self, *group));
            }
        }
        let partials = finer.partials.iter();
        let partials: Vec<Var> = partials.map(|var| read(self, *var)).collect();
        let mut folds = Vec::new();
        let mut kept = Vec::with_capacity(partials.len());
        for (part, from) in merging.parts.iter().zip(&partials) {
            let var = self.again(*from);
            kept.push(var);
            folds.push(part.of_parts(var, *from));
        }
        let mut results = Vec::with_capacity(merging.folds.len());
        for (fold, merged) in merging.folds.iter().zip(&merging.merged) {
            if let Finer::Merged(Merged::Part(place)) = merged {
                results.push(kept[*place]);
                continue;
            }
            let var = self.again(fold.var);
            results.push(var);
            folds.push(match merged {
                Finer::Merged(merged) => merged.fold(var, &merging.parts, &partials),
                Finer::Distinct(arg) => Fold {
                    var,
                    function: fold.function,
                    arg: here.get(arg).copied(),
                },
            });
        }
        let pairs = keys.iter().filter_map(|key| Some((*key, *here.get(key)?)));
        let keys: Vec<(Var, Var)> = pairs.collect();
        let groups = Rel::Shared {
            input: Arc::clone(&finer.rel),
            vars,
        };
        let level = Rel::Fold {
            input: Box::new(groups),
            keys: keys.iter().map(|(_, here)| *here).collect(),
            folds,
        };
        Level {
            rel: Arc::new(level),
            keys,
            partials: kept,
            results: Some(results),
        }
    }

    /// The groups of a set: NULL stands for the keys that it has not got, and `id` for the set.
    fn branch(
        &mut self,
        level: &Level,
        keys: &[Var],
        set: &[usize],
        id: &Expr,
    ) -> Result<(Rel, Vec<Var>)> {
        let (mut vars, mut exprs, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for (place, key) in keys.iter().enumerate() {
            let var = self.again(*key);
            own.push(var);
            let group = level.keys.iter().find(|(row, _)| row == key);
            match group.filter(|_| set.contains(&place)) {
                Some((_, group)) => vars.push((*group, var)),
                None => {
                    let column = &mut self.query.vars[var];
                    column.ty = column.ty.clone().nullable(true);
                    let node = Node::Literal(Literal::Null);
                    let ty = column.ty.clone();
                    exprs.push((var, Expr { node, ty }));
                }
            }
        }
        let var = self.query.add("grouping id", id.ty.clone());
        exprs.push((var, id.clone()));
        own.push(var);
        let Some(results) = &level.results else {
            return unsupported("a grouping set without results");
        };
        for result in results {
            let var = self.again(*result);
            vars.push((*result, var));
            own.push(var);
        }
        let groups = Rel::Shared {
            input: Arc::clone(&level.rel),
            vars,
        };
        Ok((mapped(groups, exprs), own))
    }
}

/// The sets, each as the places of its keys among `all`.
fn places(sets: &GroupingSet, all: &[&Sql]) -> Result<Vec<Vec<usize>>> {
    let places = all.len();
    let some =
        |has: &dyn Fn(usize) -> bool| -> Vec<usize> { (0..places).filter(|at| has(*at)).collect() };
    let sets: Vec<Vec<usize>> = match sets {
        GroupingSet::Rollup(_) => {
            let first = (0..=places).rev();
            first.map(|first| (0..first).collect()).collect()
        }
        GroupingSet::Cube(_) if places <= MOST.ilog2() as usize => {
            let sets = (0..1_usize << places).rev();
            sets.map(|set| some(&|at| (set >> at) & 1 == 1)).collect()
        }
        GroupingSet::Cube(_) => return unsupported("so many grouping sets"),
        GroupingSet::GroupingSets(sets) => {
            let sets = sets.iter();
            sets.map(|set| some(&|at| set.contains(all[at]))).collect()
        }
    };
    if sets.len() > MOST {
        return unsupported("so many grouping sets");
    }
    Ok(sets)
}

/// The id of each set, as DataFusion's plans define it: a bit for each of the `keys`, the last one lowest, that is set where
/// the key is missing, and above these how often the same set came before.
fn ids(sets: &[Vec<usize>], keys: usize, data: &DataType) -> Result<Vec<Expr>> {
    let Some(ty) = Type::of(data, false).filter(|_| keys < 64) else {
        return unsupported("such ids of grouping sets");
    };
    let mut times: HashMap<i128, i128> = HashMap::new();
    let id = |set: &Vec<usize>| {
        let missing = (0..keys).map(|at| i128::from(!set.contains(&at)));
        let missing = missing.fold(0, |bits, bit| bits << 1 | bit);
        let times = times.entry(missing).or_insert(0);
        let id = *times << keys | missing;
        *times += 1;
        if id > ty.bounds.1.min(i64::MAX.into()) {
            return unsupported("so many keys of grouping sets");
        }
        Expr::literal(Literal::Wide(id), data)
    };
    sets.iter().map(id).collect()
}
