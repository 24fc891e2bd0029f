//! Joins whose condition differs each time, such as `on random() < 0.5`: it is computed once for each pair of rows.
//!
//! First come the pairs for which it is true. An outer, semi, anti or mark join then finds the rows that are in none of them by a number
//! that each row has.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, JoinType};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{Expr as Sql, Join};
use engine::{Rel, Result, Type, Var, WindowFold, WindowFunction};

use crate::lower::call::failed;
use crate::lower::expr::Scope;
use crate::lower::join::inner;
use crate::lower::lowering::{Lowered, Lowering, unsupported};

/// `join` without the conditions that differ each time, as an inner join, and these conditions.
fn parted(join: &Join) -> (Join, Option<Sql>) {
    let mut plain = join.clone();
    plain.join_type = JoinType::Inner;
    let (each_time, on): (Vec<_>, Vec<_>) = std::mem::take(&mut plain.on)
        .into_iter()
        .partition(|(a, b)| a.is_volatile() || b.is_volatile());
    plain.on = on;
    let filter = plain.filter.take().map(split_conjunction_owned);
    let (mut conditions, rest): (Vec<Sql>, Vec<Sql>) =
        filter.into_iter().flatten().partition(Sql::is_volatile);
    plain.filter = conjunction(rest);
    conditions.extend(each_time.into_iter().map(|(a, b)| a.eq(b)));
    (plain, conjunction(conditions))
}

impl Lowering<'_> {
    /// Whether a condition of `join` differs each time.
    pub(super) fn differs_each_time(join: &Join) -> bool {
        let mut keys = join.on.iter();
        keys.any(|(a, b)| a.is_volatile() || b.is_volatile())
            || join.filter.as_ref().is_some_and(Sql::is_volatile)
    }

    /// A join whose condition differs each time.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] for a full join, as in PostgreSQL, and for `not in`.
    pub(super) fn join_each_time(&mut self, join: &Join) -> Result<Lowered> {
        if join.null_aware {
            return unsupported("`not in` with a value that differs each time");
        }
        let left = self.rel(&join.left)?;
        let right = self.rel(&join.right)?;
        let (left, right) = match join.join_type {
            JoinType::Inner => return self.pairs(join, left, right),
            JoinType::Full => {
                return unsupported("a full join on a condition that differs each time");
            }
            _ => (left, right),
        };
        let keeps_right = matches!(
            join.join_type,
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
        );
        let (mine, theirs) = if keeps_right {
            (right, left)
        } else {
            (left, right)
        };
        let ((rel, vars), number) = self.numbered(mine)?;
        let read: Vec<Var> = vars.iter().copied().chain([number]).collect();
        let [(asked, to), (kept, kept_to)] = self.twice(rel, &read);
        let new = |to: &[(Var, Var)], var: Var| {
            let found = to.iter().find(|(from, _)| *from == var);
            found.map_or(var, |(_, to)| *to)
        };
        let asked_vars = vars.iter().map(|var| new(&to, *var)).collect();
        let theirs_vars = theirs.1.clone();
        let (pairs, _) = if keeps_right {
            self.pairs(join, theirs, (asked, asked_vars))?
        } else {
            self.pairs(join, (asked, asked_vars), theirs)?
        };
        let vars: Vec<Var> = vars.iter().map(|var| new(&kept_to, *var)).collect();
        let equal = vec![(new(&kept_to, number), new(&to, number))];
        Ok(match join.join_type {
            JoinType::LeftMark | JoinType::RightMark => {
                let (rel, mark) = self.marked(kept, pairs, equal)?;
                (rel, [vars, vec![mark]].concat())
            }
            JoinType::Left | JoinType::Right => {
                let (rel, outer) = self.outer(kept, pairs, &theirs_vars, equal, vec![]);
                let both = if keeps_right {
                    [outer, vars]
                } else {
                    [vars, outer]
                };
                (rel, both.concat())
            }
            of_rows => {
                let rel = Rel::Semi {
                    input: Box::new(kept),
                    other: Box::new(pairs),
                    equal,
                    residual: vec![],
                    anti: matches!(of_rows, JoinType::LeftAnti | JoinType::RightAnti),
                };
                (rel, vars)
            }
        })
    }

    /// The pairs of rows for which all conditions of `join` are true.
    fn pairs(&mut self, join: &Join, left: Lowered, right: Lowered) -> Result<Lowered> {
        let (plain, each_time) = parted(join);
        let ((left, left_vars), (right, right_vars)) = (left, right);
        let (left, right, equal) =
            self.keys_of(&plain, (left, &left_vars), (right, &right_vars))?;
        let schema: DFSchema = (join.left.schema().join(join.right.schema())).map_err(failed)?;
        let both = [left_vars, right_vars].concat();
        let scope = Scope {
            schema: &schema,
            vars: &both,
        };
        let residual = match &plain.filter {
            Some(filter) => self.conjuncts(filter, scope)?,
            None => vec![],
        };
        let mut rel = inner(left, right, equal, residual);
        if let Some(condition) = each_time {
            rel = self.chosen_each_time(rel, &condition, scope)?;
        }
        Ok((rel, both))
    }

    /// The rows with a number for each.
    fn numbered(&mut self, (rel, vars): Lowered) -> Result<(Lowered, Var)> {
        let Some(ty) = Type::of(&DataType::Int64, false) else {
            return unsupported("numbers");
        };
        let var = self.query.add("number", ty);
        let rel = Rel::Window {
            input: Box::new(rel),
            partition: vec![],
            order: vec![],
            functions: vec![WindowFold {
                var,
                function: WindowFunction::RowNumber,
                arg: None,
            }],
        };
        Ok(((rel, vars), var))
    }
}
