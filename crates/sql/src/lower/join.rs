//! Lowering of joins.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, JoinType, NullEquality};
use datafusion_expr::Join;
use engine::{Expr, Fold, Function, Kind, Literal, Node, Rel, Result, Type, Var};

use crate::lower::call::{Digits, OrEmpty, failed};
use crate::lower::expr::Scope;
use crate::lower::lowering::{Lowered, Lowering, mapped, once, unsupported};

/// The vectors of two sides whose values a join compares.
pub(super) type Keys = Vec<(Var, Var)>;

impl Lowering<'_> {
    pub fn join(&mut self, join: &Join) -> Result<Lowered> {
        if Lowering::differs_each_time(join) {
            return self.join_each_time(join);
        }
        let (left, left_vars) = self.rel(&join.left)?;
        let (right, right_vars) = self.rel(&join.right)?;
        let (left, right, mut equal) =
            self.keys_of(join, (left, &left_vars), (right, &right_vars))?;
        let schema: DFSchema = join
            .left
            .schema()
            .join(join.right.schema())
            .map_err(failed)?;
        let both: Vec<Var> = left_vars.iter().chain(&right_vars).copied().collect();
        let residual = match &join.filter {
            Some(filter) => self.conjuncts(
                filter,
                Scope {
                    schema: &schema,
                    vars: &both,
                },
            )?,
            None => vec![],
        };
        let (left, right) = match (join.null_aware, join.join_type, &mut equal[..]) {
            (false, ..) => (left, right),
            (true, JoinType::LeftAnti, [(mine, theirs)]) if residual.is_empty() => {
                self.not_in(left, *mine, right, theirs)?
            }
            _ => return unsupported("such a `not in`"),
        };
        let flipped = || equal.iter().map(|(a, b)| (*b, *a)).collect::<Vec<_>>();
        Ok(match join.join_type {
            JoinType::Inner => (inner(left, right, equal, residual), both),
            JoinType::LeftSemi => (semi(left, right, equal, residual, false), left_vars),
            JoinType::LeftAnti => (semi(left, right, equal, residual, true), left_vars),
            JoinType::RightSemi => (semi(right, left, flipped(), residual, false), right_vars),
            JoinType::RightAnti => (semi(right, left, flipped(), residual, true), right_vars),
            JoinType::Left => {
                let (rel, outer) = self.outer(left, right, &right_vars, equal, residual);
                (rel, [left_vars, outer].concat())
            }
            JoinType::Right => {
                let flipped = flipped();
                let (rel, outer) = self.outer(right, left, &left_vars, flipped, residual);
                (rel, [outer, right_vars].concat())
            }
            JoinType::Full => {
                let outer = self.or_null(&both);
                let vars = named(&outer, &both);
                let rel = Rel::Full {
                    left: Box::new(left),
                    right: Box::new(right),
                    equal,
                    residual,
                    outer,
                };
                (rel, vars)
            }
            JoinType::LeftMark if residual.is_empty() && !nulls_equal(join) => {
                let (rel, mark) = self.marked(left, right, equal)?;
                (rel, [left_vars, vec![mark]].concat())
            }
            JoinType::LeftMark => self.asked((left, left_vars), right, equal, residual)?,
            JoinType::RightMark => self.asked((right, right_vars), left, flipped(), residual)?,
        })
    }

    /// Both sides with the keys that the join compares as vectors, and the pairs of these vectors.
    pub(super) fn keys_of(
        &mut self,
        join: &Join,
        (left, left_vars): (Rel, &[Var]),
        (right, right_vars): (Rel, &[Var]),
    ) -> Result<(Rel, Rel, Keys)> {
        let left_scope = Scope {
            schema: join.left.schema(),
            vars: left_vars,
        };
        let right_scope = Scope {
            schema: join.right.schema(),
            vars: right_vars,
        };
        let (mut left_exprs, mut right_exprs) = (Vec::new(), Vec::new());
        let mut equal = Vec::with_capacity(join.on.len());
        for (a, b) in &join.on {
            let (a_e, b_e) = (self.expr(a, left_scope)?, self.expr(b, right_scope)?);
            let (mut a_e, mut b_e) = engine::alike(a_e, b_e)?;
            if nulls_equal(join) && (a_e.ty.nullable || b_e.ty.nullable) {
                // NULL equals NULL: whether both are NULL is one key, their values are another.
                let (a_is, b_is) = (engine::is_null(a_e.clone()), engine::is_null(b_e.clone()));
                let a_var = self.var(a_is, format!("{a} is null"), &mut left_exprs);
                let b_var = self.var(b_is, format!("{b} is null"), &mut right_exprs);
                equal.push((a_var, b_var));
                (a_e, b_e) = (or_nothing(a_e)?, or_nothing(b_e)?);
            }
            let a_var = self.var(a_e, a.to_string(), &mut left_exprs);
            let b_var = self.var(b_e, b.to_string(), &mut right_exprs);
            equal.push((a_var, b_var));
        }
        Ok((mapped(left, left_exprs), mapped(right, right_exprs), equal))
    }

    /// The rows of `input` that `mine not in (select theirs from other)` may be true of at all: all if `other` has no
    /// rows, otherwise those without NULL, and none if `other` has a NULL. Also `other`, whose key may be another one
    /// afterwards.
    fn not_in(
        &mut self,
        input: Rel,
        mine: Var,
        other: Rel,
        theirs: &mut Var,
    ) -> Result<(Rel, Rel)> {
        let mine = self.query.expr(mine);
        if !mine.ty.nullable && !self.query.ty(*theirs).nullable {
            return Ok((input, other));
        }
        let none = |me: &mut Self, rel: Rel| {
            let number = me.count(rel)?;
            engine::compare(engine::Compare::Eq, number, zero()?)
        };
        let [all, nulls, other] = self.thrice(other, *theirs);
        let empty = none(self, all.0)?;
        let nulls = Rel::Filter {
            input: Box::new(nulls.0),
            predicate: engine::is_null(self.query.expr(nulls.1)),
        };
        let whole = none(self, nulls)?;
        let there = engine::not(engine::is_null(mine));
        let input = Rel::Filter {
            input: Box::new(input),
            predicate: engine::or(vec![empty, engine::and(vec![there, whole])]),
        };
        *theirs = other.1;
        Ok((input, other.0))
    }

    /// The values that `var` has in `rel` for three readers, each with the vector that it reads. They are computed once,
    /// and kept but once each, if there is more to be done than to read a table.
    fn thrice(&mut self, rel: Rel, var: Var) -> [(Rel, Var); 3] {
        if is_only_read(&rel) {
            return [(rel.clone(), var), (rel.clone(), var), (rel, var)];
        }
        let rel = Arc::new(Rel::Fold {
            input: Box::new(rel),
            keys: vec![var],
            folds: vec![],
        });
        [(); 3].map(|()| {
            let own = self.again(var);
            let input = Arc::clone(&rel);
            let vars = vec![(var, own)];
            (Rel::Shared { input, vars }, own)
        })
    }

    /// The number of rows of `rel`, found before the query runs.
    fn count(&mut self, rel: Rel) -> Result<Expr> {
        let Some(ty) = Type::of(&DataType::Int64, false) else {
            return unsupported("numbers");
        };
        let var = self.query.add("count", ty.clone());
        let folds = vec![Fold {
            var,
            function: Function::Count,
            arg: None,
        }];
        let rel = Rel::Fold {
            input: Box::new(rel),
            keys: vec![],
            folds,
        };
        self.query.parameters.push((rel, var));
        let node = Node::Parameter(self.query.parameters.len() - 1);
        Ok(Expr { node, ty })
    }

    /// A mark join: the rows of `left`, and a vector that says of each whether `right` has a row with the same keys. It
    /// is a left outer join with the distinct keys of `right`.
    pub(super) fn marked(
        &mut self,
        left: Rel,
        right: Rel,
        equal: Vec<(Var, Var)>,
    ) -> Result<(Rel, Var)> {
        let keys: Vec<Var> = equal.iter().map(|(_, theirs)| *theirs).collect();
        let mut exprs = Vec::new();
        let Some(first) = keys.first().copied() else {
            let number = self.count(right)?;
            let some = engine::compare(engine::Compare::Gt, number, zero()?)?;
            let mark = self.var(some, "mark", &mut exprs);
            return Ok((mapped(left, exprs), mark));
        };
        let set = Rel::Fold {
            input: Box::new(right),
            keys: once(&keys),
            folds: vec![],
        };
        let (rel, found) = self.outer(left, set, &[first], equal, vec![]);
        // A key that is NULL equals no other.
        let Some(found) = found.first() else {
            return unsupported("a mark of nothing");
        };
        let some = engine::not(engine::is_null(self.query.expr(*found)));
        let mark = self.var(some, "mark", &mut exprs);
        Ok((mapped(rel, exprs), mark))
    }

    /// A mark join with any condition: the rows of `rel` that have a match in `other`, marked true, and those that have none,
    /// marked false. Both sides are computed once, but rows that are only read are read twice.
    fn asked(
        &mut self,
        (rel, vars): Lowered,
        other: Rel,
        equal: Vec<(Var, Var)>,
        residual: Vec<Expr>,
    ) -> Result<Lowered> {
        let mut read: Vec<Var> = vars.clone();
        let mut asked: Vec<Var> = Vec::new();
        for (mine, theirs) in &equal {
            read.push(*mine);
            asked.push(*theirs);
        }
        for var in residual.iter().flat_map(Expr::vars) {
            let side = if rel.gives(var) {
                &mut read
            } else {
                &mut asked
            };
            side.push(var);
        }
        let mut rows = self.twice(rel, &once(&read)).into_iter();
        let mut inputs = Vec::with_capacity(2);
        for (is_there, (other, theirs)) in [true, false]
            .into_iter()
            .zip(self.twice(other, &once(&asked)))
        {
            let Some((input, mine)) = rows.next() else {
                return unsupported("marks");
            };
            let new = |var: Var| {
                let mut both = mine.iter().chain(&theirs);
                let found = both.find(|(from, _)| *from == var);
                found.map_or(var, |(_, to)| *to)
            };
            let semi = Rel::Semi {
                input: Box::new(input),
                other: Box::new(other),
                equal: equal.iter().map(|(a, b)| (new(*a), new(*b))).collect(),
                residual: residual.iter().map(|e| e.renamed(&new)).collect(),
                anti: !is_there,
            };
            let mark = Expr::literal(Literal::Bool(is_there), &DataType::Boolean)?;
            let var = self.query.add("mark", mark.ty.clone());
            let mut own: Vec<Var> = vars.iter().map(|var| new(*var)).collect();
            own.push(var);
            inputs.push((mapped(semi, vec![(var, mark)]), own));
        }
        let mut out: Vec<Var> = vars.iter().map(|var| self.again(*var)).collect();
        let Some(ty) = Type::of(&DataType::Boolean, false) else {
            return unsupported("marks");
        };
        out.push(self.query.add("mark", ty));
        let vars = out.clone();
        Ok((Rel::Union { inputs, vars }, out))
    }

    /// `rel` for two readers, each with the vectors that stand for `vars` there.
    pub(super) fn twice(&mut self, rel: Rel, vars: &[Var]) -> [(Rel, Vec<(Var, Var)>); 2] {
        if is_only_read(&rel) {
            let same: Vec<(Var, Var)> = vars.iter().map(|var| (*var, *var)).collect();
            return [(rel.clone(), same.clone()), (rel, same)];
        }
        let rel = Arc::new(rel);
        [(); 2].map(|()| {
            let vars: Vec<(Var, Var)> = vars.iter().map(|var| (*var, self.again(*var))).collect();
            let input = Arc::clone(&rel);
            let shared = Rel::Shared {
                input,
                vars: vars.clone(),
            };
            (shared, vars)
        })
    }

    /// A new nullable vector for each of `vars`.
    pub(super) fn or_null(&mut self, vars: &[Var]) -> Vec<(Var, Var)> {
        let mut outer: Vec<(Var, Var)> = Vec::with_capacity(vars.len());
        for var in once(vars) {
            let ty = self.query.ty(var).clone().nullable(true);
            let name = self.query.vars[var].name.clone();
            outer.push((var, self.query.add(name, ty)));
        }
        outer
    }

    /// A left outer join, and the vectors that its right side has afterwards.
    pub(super) fn outer(
        &mut self,
        left: Rel,
        right: Rel,
        vars: &[Var],
        equal: Vec<(Var, Var)>,
        residual: Vec<Expr>,
    ) -> (Rel, Vec<Var>) {
        let outer = self.or_null(vars);
        let named = named(&outer, vars);
        let rel = Rel::Left {
            left: Box::new(left),
            right: Box::new(right),
            equal,
            residual,
            outer,
        };
        (rel, named)
    }
}

/// Whether the rows of `rel` are those of a table, or are kept anyway, filtered or not.
fn is_only_read(rel: &Rel) -> bool {
    match rel {
        Rel::Scan(_) | Rel::Read(_) | Rel::Values { .. } | Rel::Shared { .. } => true,
        Rel::Filter { input, .. } | Rel::Map { input, .. } => is_only_read(input),
        _ => false,
    }
}

fn nulls_equal(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull
}

fn zero() -> Result<Expr> {
    Expr::literal(Literal::Int(0), &DataType::Int64)
}

/// The value, or for NULL a value that is the same for all rows.
fn or_nothing(e: Expr) -> Result<Expr> {
    let data = e.ty.data.clone();
    if e.ty.is_opaque() {
        let mut digits = engine::call(vec![e], Arc::new(Digits), &DataType::Utf8View)?;
        digits.ty.nullable = false;
        return Ok(digits);
    }
    let mut some = match e.ty.kind {
        Kind::Text | Kind::Code => engine::call(vec![e], Arc::new(OrEmpty), &data)?,
        kind => {
            let nothing = match kind {
                Kind::Float => Literal::Float(0.0),
                Kind::Bool => Literal::Bool(false),
                _ => Literal::Int(0),
            };
            let nothing = Expr::literal(nothing, &data)?;
            engine::case(vec![(engine::is_null(e.clone()), nothing)], e, &data)?
        }
    };
    some.ty.nullable = false;
    Ok(some)
}

/// The vector that stands for each of `vars` in `outer`.
pub(super) fn named(outer: &[(Var, Var)], vars: &[Var]) -> Vec<Var> {
    vars.iter()
        .filter_map(|var| outer.iter().find(|(from, _)| from == var))
        .map(|(_, to)| *to)
        .collect()
}

/// The rows of `input` that have a match in `other`, or that have none.
fn semi(input: Rel, other: Rel, equal: Keys, residual: Vec<Expr>, anti: bool) -> Rel {
    Rel::Semi {
        input: Box::new(input),
        other: Box::new(other),
        equal,
        residual,
        anti,
    }
}

/// One inner join of all relations on both sides.
pub(super) fn inner(left: Rel, right: Rel, equal: Vec<(Var, Var)>, residual: Vec<Expr>) -> Rel {
    let (mut inputs, mut pairs, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
    for side in [left, right] {
        match side {
            Rel::Join {
                inputs: more,
                equal,
                residual,
            } => {
                inputs.extend(more);
                pairs.extend(equal);
                conditions.extend(residual);
            }
            other => inputs.push(other),
        }
    }
    pairs.extend(equal);
    conditions.extend(residual);
    Rel::Join {
        inputs,
        equal: pairs,
        residual: conditions,
    }
}
