//! From matrices to relations of the engine.
//!
//! The terms over the records of a table, with all records that they look up, become one join; a fold over them
//! becomes groups of its rows; groups that other terms look up are joined in turn, and where only their presence
//! matters they are a semi-join, without being made.

mod call;
mod expr;
mod lowering;
mod needs;
mod outer;
mod relation;
mod scan;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use engine::{Error, Expr, Function, Kind, Node, Output, Prepared, Query, Rel, Result, Type, Var};

use crate::check::element;
use crate::check::{Answer, Typed};
use crate::lower::lowering::{Frame, Lowering};
use crate::show;
use crate::space::{FoldId, Space, TermId};
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
        let counts = matches!(function, Function::Count | Function::CountDistinct);
        let whole = matches!(own.kind, Kind::Int | Kind::Wide);
        let data = match (function, whole) {
            (Function::Count | Function::CountDistinct, _) => arrow::datatypes::DataType::Int64,
            (Function::Min | Function::Max, _) => return Ok(own.nullable(true)),
            (_, false) => own.data.clone(),
            (Function::Avg, _) if own.data.is_integer() => arrow::datatypes::DataType::Float64,
            (Function::Avg, _) => element::number((own.scale() as u8 + 4).min(38)),
            (Function::Sum, _) => element::number(own.scale() as u8),
            // The language has no others.
            _ => return Err(unsupported()),
        };
        let ty = Type::of(&data, !counts).ok_or_else(unsupported)?;
        // No fold is over more records than this.
        const MOST: i128 = 1 << 48;
        let reach = own
            .bounds
            .0
            .checked_mul(MOST)
            .zip(own.bounds.1.checked_mul(MOST));
        Ok(match (function, reach) {
            _ if counts => ty.within((0, i64::MAX.into())),
            (Function::Sum, Some((low, high))) if whole => ty.within((low.min(0), high.max(0))),
            _ => ty,
        })
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
