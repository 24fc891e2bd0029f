//! From matrices to relations of the engine.
//!
//! The terms over the records of a table, with all records that they look up, become one join; a fold over them
//! becomes groups of its rows; groups that other terms look up are joined in turn, and where only their presence
//! matters they are a semi-join, without being made.

mod call;
mod expr;
mod lowering;
mod needs;
mod scan;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use engine::{Error, Expr, Function, Kind, Node, Output, Prepared, Query, Rel, Result, Type, Var};

use crate::check::element;
use crate::check::{Answer, Typed};
use crate::lower::lowering::{Frame, Lowering};
use crate::lower::needs::Needs;
use crate::show;
use crate::space::{FoldId, InstanceId, Space, TermId};
use crate::term::{Instance, Source, Term};

/// The program of `typed`.
pub(crate) fn lower(typed: &Typed<'_>) -> Result<Prepared> {
    let mut lowering = Lowering {
        catalog: &typed.catalog,
        terms: &typed.terms,
        query: Query::default(),
        parameters: HashMap::new(),
    };
    let (root, vars) = lowering.answer(&typed.answer)?;
    let fields: Vec<Field> = typed
        .answer
        .columns
        .iter()
        .zip(&vars)
        .map(|(column, var)| {
            let ty = lowering.query.ty(*var);
            Field::new(&column.name, ty.data.clone(), ty.nullable)
        })
        .collect();
    let output = Output {
        vars,
        schema: Arc::new(Schema::new(fields)),
    };
    engine::prepare(lowering.query, root, output)
}

/// The columns of tables that the program reads, so that their dictionaries can be there.
pub(crate) fn columns(typed: &Typed<'_>) -> BTreeSet<(usize, usize)> {
    let mut all = BTreeSet::new();
    typed.terms.each_instance(&mut |instance| {
        if let Instance::Lookup {
            source: Source::Table(table),
            by,
            ..
        } = instance
        {
            all.extend(by.iter().map(|column| (*table, *column)));
        }
    });
    typed.terms.each_term(&mut |term| {
        if let Term::Column(instance, column) = term {
            match typed.terms.of(*instance) {
                Instance::Root(table)
                | Instance::Lookup {
                    source: Source::Table(table),
                    ..
                } => {
                    all.insert((*table, *column));
                }
                _ => {}
            }
        }
    });
    all
}

/// A relation that is to be joined, and the records that its rows are made of.
struct Input {
    rel: Rel,
    holds: BTreeSet<InstanceId>,
}

impl Lowering<'_> {
    fn answer(&mut self, answer: &Answer) -> Result<(Rel, Vec<Var>)> {
        let wanted: Vec<TermId> = answer.columns.iter().map(|column| column.term).collect();
        let (rel, vars) = match answer.space {
            Space::One => self.numbers(&wanted)?,
            _ => self.relation(&answer.space, &answer.conditions, &wanted)?,
        };
        if answer.order.is_empty() && answer.limit.is_none() {
            return Ok((rel, vars));
        }
        let keys = answer
            .order
            .iter()
            .map(|(position, descending)| engine::Key {
                var: vars[*position],
                descending: *descending,
                nulls_first: *descending,
            });
        let rel = Rel::Sort {
            input: Box::new(rel),
            keys: keys.collect(),
            skip: 0,
            fetch: answer.limit,
        };
        Ok((rel, vars))
    }

    /// One row of numbers: those of the first fold in its row, the others as subqueries.
    fn numbers(&mut self, wanted: &[TermId]) -> Result<(Rel, Vec<Var>)> {
        let mut first = None;
        for term in wanted {
            self.terms.each(*term, &mut |term| {
                if let Term::Scalar(fold, _) = self.terms.get(term) {
                    first = first.or(Some(*fold));
                }
            });
        }
        let mut frame = Frame::default();
        let rel = match first {
            Some(fold) => {
                let mut used = BTreeSet::new();
                for term in wanted {
                    self.terms
                        .each(*term, &mut |term| match self.terms.get(term) {
                            Term::Scalar(of, n) if *of == fold => {
                                used.insert(*n);
                            }
                            _ => {}
                        });
                }
                let (rel, _, found) = self.fold(fold, &used)?;
                for (n, var) in found {
                    frame.scalars.insert((fold, n), var);
                }
                rel
            }
            None => {
                let options = RecordBatchOptions::new().with_row_count(Some(1));
                let empty = Arc::new(Schema::empty());
                Rel::Values {
                    vars: vec![],
                    batch: RecordBatch::try_new_with_options(empty, vec![], &options)?,
                }
            }
        };
        self.project(rel, &frame, wanted)
    }

    /// The groups of a fold: their keys, and its results at the positions `used`.
    fn fold(
        &mut self,
        fold: FoldId,
        used: &BTreeSet<usize>,
    ) -> Result<(Rel, Vec<Var>, BTreeMap<usize, Var>)> {
        let terms = self.terms;
        let of = terms.fold(fold);
        let mut wanted = of.groups.keys.clone();
        wanted.extend(used.iter().filter_map(|n| of.found[*n].of));
        let (mut rel, vars) = self.relation(&of.groups.space, &of.groups.conditions, &wanted)?;
        let (keys, args) = vars.split_at(of.groups.keys.len());
        for key in keys {
            // A record without a label is in no row.
            if self.query.ty(*key).nullable {
                rel = Rel::Filter {
                    input: Box::new(rel),
                    predicate: engine::not(engine::is_null(self.query.expr(*key))),
                };
            }
        }
        let mut args = args.iter();
        let mut found = BTreeMap::new();
        let mut folds = Vec::with_capacity(used.len());
        for n in used {
            let what = &of.found[*n];
            let arg = what.of.and_then(|_| args.next().copied());
            let arg = match (what.function, arg) {
                (Function::Count, Some(arg)) if !self.query.ty(arg).nullable => None,
                (_, arg) => arg,
            };
            let ty = self.result(what.function, arg)?;
            let var = self.query.add(what.name.as_str(), ty);
            folds.push(engine::Fold {
                var,
                function: what.function,
                arg,
            });
            found.insert(*n, var);
        }
        let mut once: Vec<Var> = Vec::with_capacity(keys.len());
        for key in keys {
            if !once.contains(key) {
                once.push(*key);
            }
        }
        let rel = Rel::Fold {
            input: Box::new(rel),
            keys: once,
            folds,
        };
        Ok((rel, keys.to_vec(), found))
    }

    /// The type of an aggregate's result.
    fn result(&self, function: Function, arg: Option<Var>) -> Result<Type> {
        let unsupported = || Error::Unsupported("a fold of such values".into());
        let Some(arg) = arg else {
            let ty = Type::of(&arrow::datatypes::DataType::Int64, false).ok_or_else(unsupported)?;
            return Ok(ty.within((0, i64::MAX.into())));
        };
        let own = self.query.ty(arg).clone();
        let whole = matches!(own.kind, Kind::Int | Kind::Wide);
        let data = match (function, whole) {
            (Function::Count, _) => arrow::datatypes::DataType::Int64,
            (Function::Min | Function::Max, _) => return Ok(own.nullable(true)),
            (_, false) => own.data.clone(),
            (Function::Avg, _) if own.data.is_integer() => arrow::datatypes::DataType::Float64,
            (Function::Avg, _) => element::number((own.scale() as u8 + 4).min(38)),
            (Function::Sum, _) => element::number(own.scale() as u8),
            // The language has no folds of distinct values.
            _ => return Err(unsupported()),
        };
        let ty = Type::of(&data, function != Function::Count).ok_or_else(unsupported)?;
        // No fold is over more records than this.
        const MOST: i128 = 1 << 48;
        let reach = own
            .bounds
            .0
            .checked_mul(MOST)
            .zip(own.bounds.1.checked_mul(MOST));
        Ok(match (function, reach) {
            (Function::Count, _) => ty.within((0, i64::MAX.into())),
            (Function::Sum, Some((low, high))) if whole => ty.within((low.min(0), high.max(0))),
            _ => ty,
        })
    }

    /// The elements that fulfil `conditions`, with a vector for each of `wanted`: a pass over the records that these
    /// read collects the inputs, which are then joined and filtered.
    fn relation(
        &mut self,
        space: &Space,
        conditions: &BTreeSet<TermId>,
        wanted: &[TermId],
    ) -> Result<(Rel, Vec<Var>)> {
        let needs = self.needs(space, conditions, wanted);
        let mut frame = Frame::default();
        let mut inputs: Vec<Input> = Vec::new();
        let mut pairs: Vec<(TermId, InstanceId, Var)> = Vec::new();
        let mut later = Vec::new();
        let mut left: BTreeSet<TermId> = conditions
            .iter()
            .copied()
            .filter(|c| !matches!(self.terms.get(*c), Term::Present(_) | Term::Absent(_)))
            .collect();
        for instance in &needs.instances {
            let terms = self.terms;
            let of = terms.of(*instance);
            let missing = needs.absent.contains(instance);
            let (source, keys) = match of {
                Instance::Root(table) => (Source::Table(*table), &[][..]),
                Instance::Lookup { source, keys, .. } => (*source, &keys[..]),
            };
            let rel = match source {
                Source::Table(table) => {
                    let by = match of {
                        Instance::Lookup { by, .. } => &by[..],
                        Instance::Root(_) => &[],
                    };
                    let mut columns = needs.columns(*instance);
                    columns.extend(by);
                    let own = self.own_conditions(&mut left, *instance);
                    let (rel, vars) = self.scan(*instance, table, columns, own)?;
                    for (column, var) in vars {
                        frame.columns.insert((*instance, column), var);
                    }
                    for (key, column) in keys.iter().zip(by) {
                        pairs.push((*key, *instance, frame.columns[&(*instance, *column)]));
                    }
                    rel
                }
                Source::Fold(fold) => {
                    let used = needs.aggregates(*instance);
                    let root = needs.root == Some(*instance);
                    if missing || used.is_empty() && !root {
                        later.push((*instance, fold, missing));
                        continue;
                    }
                    let (rel, own, found) = self.fold(fold, &used)?;
                    for (n, var) in found {
                        frame.aggregates.insert((*instance, n), var);
                    }
                    if root {
                        frame.labels = own
                    } else {
                        for (key, var) in keys.iter().zip(own) {
                            pairs.push((*key, *instance, var));
                        }
                    }
                    rel
                }
            };
            inputs.push(Input {
                rel,
                holds: [*instance].into(),
            });
        }
        if inputs.is_empty() {
            return Err(Error::Internal("a matrix without records".into()));
        }
        self.semi_joins(&mut inputs, &frame, &needs, later)?;
        let equal = self.equal(&mut inputs, &frame, &needs, pairs)?;
        let residual = self.residual(&mut inputs, &frame, &needs, left)?;
        self.project(joined(inputs, equal, residual), &frame, wanted)
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

    /// Projects: `rel` with a vector for each of `wanted`, computed if need be.
    fn project(
        &mut self,
        mut rel: Rel,
        frame: &Frame,
        wanted: &[TermId],
    ) -> Result<(Rel, Vec<Var>)> {
        let mut exprs: Vec<(Var, Expr)> = Vec::new();
        let mut done: HashMap<TermId, Var> = HashMap::new();
        let mut vars = Vec::with_capacity(wanted.len());
        for term in wanted {
            if let Some(var) = done.get(term) {
                vars.push(*var);
                continue;
            }
            let e = self.expr(*term, frame)?;
            let var = match e.as_var() {
                Some(var) => var,
                None => {
                    let name = show::term(*term, self.catalog, self.terms);
                    let var = self.query.add(name, e.ty.clone());
                    exprs.push((var, e));
                    var
                }
            };
            done.insert(*term, var);
            vars.push(var);
        }
        if !exprs.is_empty() {
            rel = Rel::Map {
                input: Box::new(rel),
                exprs,
            };
        }
        Ok((rel, vars))
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
    fn map(&mut self, rel: &mut Rel, e: Expr) -> Var {
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

    /// The parameter for a number that another fold computes, as a scalar subquery.
    fn parameter(&mut self, fold: FoldId, n: usize) -> Result<Expr> {
        let number = match self.parameters.get(&(fold, n)) {
            Some(number) => *number,
            None => {
                let (rel, _, found) = self.fold(fold, &[n].into())?;
                self.query.parameters.push((rel, found[&n]));
                let number = self.query.parameters.len() - 1;
                self.parameters.insert((fold, n), number);
                number
            }
        };
        let var = self.query.parameters[number].1;
        Ok(Expr {
            node: Node::Parameter(number),
            ty: self.query.ty(var).clone().nullable(true),
        })
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

pub(crate) fn filtered(input: Rel, predicate: Expr) -> Rel {
    Rel::Filter {
        input: Box::new(input),
        predicate,
    }
}

/// A placeholder for a relation that is taken out of its place for a moment.
fn nothing() -> Rel {
    Rel::Union {
        inputs: vec![],
        vars: vec![],
    }
}
