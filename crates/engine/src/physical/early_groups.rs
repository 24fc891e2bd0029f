//! Groups that are made before a join (eager aggregation: Yan and Larson, VLDB 1995).
//!
//! `select c.name, c.city, c.phone, sum(s.price) from sale s join customer c on s.customer = c.id group by c.name, c.city, c.phone`
//! reads of the customers nothing but grouping keys, and finds each by its key. So sales are grouped by the key first, a number
//! instead of three texts; then the groups are joined, and grouped again, as two customers may have the same name, city and phone.
//!
//! The relation may also choose what is summed: `sum(case when day.name = 'Sunday' then price end)` over sales that join days. A
//! group of one day has the sum of its prices, which counts or does not.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::{Expr, Literal, Node, is_fallible};
use crate::logical::parts::{Merged, Part};
use crate::logical::relation::{Fold, Function, Query, Rel};
use crate::physical::copies::can_group;
use crate::physical::statistics::{
    ONE, expected, expected_of_join, fan_out, reached, values, values_left,
};
use crate::vector::value::{Kind, Var};

/// A relation is joined to groups if at least so many of their keys are its vectors, or if groups are much fewer than rows.
const KEYS: usize = 3;
/// Groups are made first if at most this share of the rows is expected to be left.
const GROUPED: f64 = 0.5;
/// Groups are much fewer than rows if at most this share of the rows is expected to be left.
const MUCH: f64 = 0.1;
/// A relation is joined to groups only if its own predicates leave at least this share of it: what drops rows comes first.
const WHOLE: f64 = 0.9;

/// A relation that is joined once there are groups.
struct Late {
    /// Its place among the inputs of the join.
    place: usize,
    /// Pairs (of another relation, of this one) that must be equal.
    links: Vec<(Var, Var)>,
    /// What is summed by conditions on it: `case when day.name = 'Sunday' then price end` is the price's sum, or NULL, for a group.
    cases: Vec<Case>,
}

/// An argument of sums that the conditions of a relation choose among values of the others.
struct Case {
    var: Var,
    branches: Vec<(Expr, Expr)>,
    last: Expr,
}

/// The rows to group and the functions of them: those given, or, if that pays, groups joined to what gives their other keys, and
/// the functions that merge them. The keys stay as they are.
pub(crate) fn before_join(
    query: &mut Query,
    input: Rel,
    keys: &[Var],
    folds: Vec<Fold>,
) -> Result<(Rel, Vec<Fold>)> {
    let mut exprs = Vec::new();
    let Some(join) = below_maps(&input, &mut exprs).filter(|_| !folds.is_empty()) else {
        return Ok((input, folds));
    };
    let Some(late) = join.late(query, keys, &folds, &exprs) else {
        return Ok((input, folds));
    };
    let mut made = Made::default();
    let merging: Result<Vec<Merging>> = folds
        .iter()
        .map(|fold| made.add(query, fold, &late.cases))
        .collect();
    let Ok(merging) = merging else {
        return Ok((input, folds));
    };
    for part in &made.parts {
        let var = query.add(format!("part of {}", part.name), part.ty.clone());
        made.vars.push(var);
    }
    let mut chosen = Vec::new();
    let folds: Result<Vec<Fold>> = folds
        .iter()
        .zip(&merging)
        .map(|(fold, merging)| made.merged(query, fold.var, merging, &late.cases, &mut chosen))
        .collect();
    let rel = rewritten(input, keys, made, late)?;
    let folds = folds?;
    if chosen.is_empty() {
        return Ok((rel, folds));
    }
    let rel = Rel::Map {
        input: Box::new(rel),
        exprs: chosen,
    };
    Ok((rel, folds))
}

/// What groups that are made early have.
#[derive(Default)]
struct Made {
    /// Values that are summed where a condition chooses them.
    values: Vec<(Var, Expr)>,
    parts: Vec<Part>,
    /// The results of the parts.
    vars: Vec<Var>,
}

/// How the result of a function follows from parts.
enum Merging {
    Merged(Merged),
    /// The sum of what the branches and the end of this case choose among sums, or of nothing.
    Chosen {
        case: usize,
        sums: Vec<Option<usize>>,
    },
}

impl Made {
    /// Adds the parts for a function.
    fn add(&mut self, query: &mut Query, fold: &Fold, cases: &[Case]) -> Result<Merging> {
        let case = cases.iter().position(|case| Some(case.var) == fold.arg);
        let Some(case) = case else {
            return Ok(Merging::Merged(Part::of(fold, query, &mut self.parts)?));
        };
        let mut sums = Vec::new();
        for value in cases[case].values() {
            if value.constant() == Some(&Literal::Null) {
                sums.push(None);
                continue;
            }
            let arg = match value.as_var() {
                Some(var) => var,
                None => {
                    let var = query.add("value", value.ty.clone());
                    self.values.push((var, value.clone()));
                    var
                }
            };
            let sum = Fold {
                var: fold.var,
                function: Function::Sum,
                arg: Some(arg),
            };
            match Part::of(&sum, query, &mut self.parts)? {
                Merged::Sum(place) => sums.push(Some(place)),
                _ => return Err(Error::internal("a sum without a part")),
            }
        }
        Ok(Merging::Chosen { case, sums })
    }

    /// The function that computes `var` from the parts; what it reads beside them is added to `chosen`.
    fn merged(
        &self,
        query: &mut Query,
        var: Var,
        merging: &Merging,
        cases: &[Case],
        chosen: &mut Vec<(Var, Expr)>,
    ) -> Result<Fold> {
        let (case, sums) = match merging {
            Merging::Merged(merged) => return Ok(merged.fold(var, &self.parts, &self.vars)),
            Merging::Chosen { case, sums } => (&cases[*case], sums),
        };
        let data = sums.iter().flatten().next();
        let data = data.map_or(DataType::Int64, |place| self.parts[*place].ty.data.clone());
        let mut sums = sums.iter().map(|place| match place {
            Some(place) => Ok(query.expr(self.vars[*place])),
            None => Expr::literal(Literal::Null, &data),
        });
        let mut next = || {
            let sum = sums.next();
            sum.unwrap_or_else(|| Err(Error::internal("a case with more branches than sums")))
        };
        let mut branches = Vec::with_capacity(case.branches.len());
        for (when, _) in &case.branches {
            branches.push((when.clone(), next()?));
        }
        let value = crate::expr::build::case(branches, next()?, &data)?;
        let arg = query.add("chosen", value.ty.clone());
        chosen.push((arg, value));
        Ok(Fold {
            var,
            function: Function::Sum,
            arg: Some(arg),
        })
    }
}

impl Case {
    /// The expression of the vector `var` as a case whose conditions read only `own` vectors and whose values read none of them.
    fn of((var, expr): &(Var, Expr), own: &BTreeSet<Var>) -> Option<Case> {
        let Node::Case(branches, last) = &expr.node else {
            return None;
        };
        let case = Case {
            var: *var,
            branches: branches.clone(),
            last: (**last).clone(),
        };
        let reads_own = |e: &Expr| e.vars().iter().all(|var| own.contains(var));
        let reads_others = |e: &Expr| e.vars().iter().all(|var| !own.contains(var));
        let is_number = matches!(expr.ty.kind, Kind::Int | Kind::Wide | Kind::Float);
        let splits = is_number
            && branches.iter().all(|(when, _)| reads_own(when))
            && case
                .values()
                .all(|value| reads_others(value) && !is_fallible(value))
            && case
                .values()
                .any(|value| value.constant() != Some(&Literal::Null));
        splits.then_some(case)
    }

    fn values(&self) -> impl Iterator<Item = &Expr> {
        let branches = self.branches.iter().map(|(_, then)| then);
        branches.chain([&self.last])
    }
}

/// An inner join.
struct Join<'r> {
    inputs: &'r [Rel],
    equal: &'r [(Var, Var)],
    residual: &'r [Expr],
}

/// The join below maps, whose expressions are added to `exprs`; `None` if there is another relation.
fn below_maps<'r>(rel: &'r Rel, exprs: &mut Vec<&'r (Var, Expr)>) -> Option<Join<'r>> {
    match rel {
        Rel::Map { input, exprs: own } => {
            let join = below_maps(input, exprs)?;
            exprs.extend(own);
            Some(join)
        }
        Rel::Join {
            inputs,
            equal,
            residual,
        } => Some(Join {
            inputs,
            equal,
            residual,
        }),
        _ => None,
    }
}

fn vars_of(rel: &Rel) -> BTreeSet<Var> {
    let mut vars = BTreeSet::new();
    rel.each_var(&mut |var| _ = vars.insert(var));
    vars
}

impl Join<'_> {
    /// The relation that is better joined to groups.
    fn late(
        &self,
        query: &Query,
        keys: &[Var],
        folds: &[Fold],
        exprs: &[&(Var, Expr)],
    ) -> Option<Late> {
        (0..self.inputs.len()).find_map(|place| {
            let own = vars_of(&self.inputs[place]);
            let (mine, others): (Vec<Var>, Vec<Var>) =
                keys.iter().copied().partition(|key| own.contains(key));
            let cases = self.cases(&own, &others, folds, exprs)?;
            let links = self.links(query, place, &own)?;
            // Each group is one of its rows: a group join.
            if others.is_empty() && links.iter().all(|(_, key)| mine.contains(key)) {
                return None;
            }
            let pays = self.pays(query, place, &links, (&mine, &others));
            pays.then_some(Late {
                place,
                links,
                cases,
            })
        })
    }

    /// The arguments that conditions on the `own` vectors of a relation choose. `None` if these are read in other ways, too, than as
    /// keys.
    fn cases(
        &self,
        own: &BTreeSet<Var>,
        others: &[Var],
        folds: &[Fold],
        exprs: &[&(Var, Expr)],
    ) -> Option<Vec<Case>> {
        let mut cases: Vec<Case> = Vec::new();
        let mut own = own.clone();
        for mapped in exprs {
            if !mapped.1.vars().iter().any(|var| own.contains(var)) {
                continue;
            }
            cases.push(Case::of(mapped, &own)?);
            own.insert(mapped.0);
        }
        let is_case = |var: &Var| cases.iter().any(|case| case.var == *var);
        let is_sum = |fold: &Fold| {
            fold.function == Function::Sum && fold.arg.is_some_and(|arg| is_case(&arg))
        };
        let read = folds.iter().filter(|fold| !is_sum(fold));
        let mut read = read.flat_map(Fold::reads).chain(others.iter().copied());
        let conditions = self.residual.iter().flat_map(Expr::vars);
        let is_free = !read.any(|var| own.contains(&var))
            && !conditions.into_iter().any(|var| own.contains(&var));
        is_free.then_some(cases)
    }

    /// The equalities that are expected to find one row of the relation at `place`, with the vectors `own`, for each row of the
    /// others, which must be connected without it.
    fn links(&self, query: &Query, place: usize, own: &BTreeSet<Var>) -> Option<Vec<(Var, Var)>> {
        let mut links = Vec::new();
        for (a, b) in self.equal {
            match (own.contains(a), own.contains(b)) {
                (true, true) => return None,
                (true, false) => links.push((*b, *a)),
                (false, true) => links.push((*a, *b)),
                (false, false) => {}
            }
        }
        let (here, keys): (Vec<Var>, Vec<Var>) = links.iter().copied().unzip();
        let is_found = !links.is_empty() && fan_out(query, &self.inputs[place], &keys) < ONE;
        let can_group = is_found && can_group(query, &here);
        (can_group && self.is_connected_without(place)).then_some(links)
    }

    fn is_connected_without(&self, place: usize) -> bool {
        let others: Vec<BTreeSet<Var>> = self
            .inputs
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place)
            .map(|(_, rel)| vars_of(rel))
            .collect();
        let mut reached = others.first().cloned().unwrap_or_default();
        let mut open: Vec<&BTreeSet<Var>> = others.iter().skip(1).collect();
        loop {
            let linked = |rel: &&BTreeSet<Var>| {
                self.equal.iter().any(|(a, b)| {
                    (reached.contains(a) && rel.contains(b))
                        || (reached.contains(b) && rel.contains(a))
                })
            };
            let Some(next) = open.iter().position(linked) else {
                return open.is_empty();
            };
            reached.extend(open.swap_remove(next));
        }
    }

    /// Whether groups by the key of the relation at `place`, which `links` find, are few beside the rows, and, if they are not very
    /// few, less costly than and as many as those by its vectors `mine`.
    fn pays(
        &self,
        query: &Query,
        place: usize,
        links: &[(Var, Var)],
        (mine, others): (&[Var], &[Var]),
    ) -> bool {
        let own = &self.inputs[place];
        let (left, base) = expected(query, own);
        let rest = self.inputs.iter().enumerate();
        let rest: Vec<&Rel> = rest
            .filter(|(i, _)| *i != place)
            .map(|(_, rel)| rel)
            .collect();
        let given = |(here, _): &(Var, Var)| rest.iter().find(|rel| rel.gives(*here));
        let parent = links.first().and_then(given);
        let share = parent.and_then(|parent| reached(query, parent, own, links));
        if share.unwrap_or(left / base) < WHOLE {
            return false;
        }
        let groups_of = |rel: &&Rel| {
            let keys = others.iter().copied().filter(|key| rel.gives(*key));
            let keys: Vec<Var> = keys.collect();
            if keys.is_empty() {
                1.0
            } else {
                values_left(query, rel, &keys, &self.pairs_with(rel))
            }
        };
        let here: Vec<Var> = links.iter().map(|(here, _)| *here).collect();
        let found = base.min(values(query, &here));
        let groups = found * rest.iter().map(groups_of).product::<f64>();
        let rows = expected_of_join(query, &rest, self.equal).0;
        let are_wide = mine.len() >= KEYS && values(query, mine) >= base * WHOLE;
        !mine.is_empty() && (groups <= MUCH * rows || (are_wide && groups <= GROUPED * rows))
    }

    /// The pairs (of another relation, of `rel`) that must be equal.
    fn pairs_with(&self, rel: &Rel) -> Vec<(Var, Var)> {
        let pairs = self.equal.iter();
        let pairs = pairs.filter_map(|(a, b)| match (rel.gives(*a), rel.gives(*b)) {
            (true, false) => Some((*b, *a)),
            (false, true) => Some((*a, *b)),
            _ => None,
        });
        pairs.collect()
    }
}

/// The relation `rel`, a join below maps, where the rows of the other relations are grouped before the late one is joined.
fn rewritten(rel: Rel, keys: &[Var], made: Made, late: Late) -> Result<Rel> {
    let mut maps = vec![made.values];
    let mut rel = rel;
    while let Rel::Map { input, mut exprs } = rel {
        exprs.retain(|(var, _)| late.cases.iter().all(|case| case.var != *var));
        maps.push(exprs);
        rel = *input;
    }
    let Rel::Join {
        mut inputs,
        equal,
        residual,
    } = rel
    else {
        return Err(Error::internal("groups before a join that is none"));
    };
    let own = inputs.remove(late.place);
    let is_own = |var: &Var| own.gives(*var);
    let equal = equal.into_iter().filter(|(a, b)| !is_own(a) && !is_own(b));
    let mut rows = Rel::Join {
        inputs,
        equal: equal.collect(),
        residual,
    };
    for exprs in maps.into_iter().rev().filter(|exprs| !exprs.is_empty()) {
        rows = Rel::Map {
            input: Box::new(rows),
            exprs,
        };
    }
    let here = late.links.iter().map(|(here, _)| *here);
    let others = keys.iter().copied().filter(|key| !is_own(key));
    let group_keys: BTreeSet<Var> = here.chain(others).collect();
    let parts = made.parts.iter().zip(&made.vars);
    let groups = Rel::Fold {
        input: Box::new(rows),
        keys: group_keys.into_iter().collect(),
        folds: parts.map(|(part, var)| part.of_rows(*var)).collect(),
    };
    Ok(Rel::Join {
        inputs: vec![groups, own],
        equal: late.links,
        residual: vec![],
    })
}
