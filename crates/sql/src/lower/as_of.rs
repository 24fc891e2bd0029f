//! Lowering of as-of joins, which stand in plans as the first of the numbered matches of each row.

use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, JoinType};
use datafusion_expr::{Filter, Join, LogicalPlan, Operator, Window};
use engine::{AsOf, Compare, Error, Expr, Key, Kind, Literal, Rel, Result, RowNumbers, Var};

use crate::lower::call::failed;
use crate::lower::expr::Scope;
use crate::lower::join::named;
use crate::lower::lowering::{Lowered, Lowering, filtered, mapped, once, unsupported};
use crate::optimize::as_of::known::Known;
use crate::optimize::first_rows::{Numbered, numbered};

impl Lowering<'_> {
    /// The rows of a filter that keeps the first of the numbered matches of each row; `None` for other filters.
    pub(super) fn as_of(&mut self, filter: &Filter) -> Result<Option<Lowered>> {
        let numbered = numbered(filter).map_err(failed)?;
        let is_first = |own: &Numbered<'_>| own.most == 1 && own.numbers == RowNumbers::Rows;
        let Some(numbered) = numbered.filter(is_first) else {
            return Ok(None);
        };
        let (window, params) = (numbered.window, &numbered.function.params);
        let Some(known) = Known::of(window, &params.partition_by, &params.order_by) else {
            return Ok(None);
        };
        let parameters = self.query.parameters.len();
        let Some((rel, vars)) = self.nearest(&known)? else {
            self.query.parameters.truncate(parameters);
            return Ok(None);
        };
        let mut out = chosen(&window.input, &vars)?;
        let (rel, number) = self.with_one(rel)?;
        out.push(number);
        let scope = Scope {
            schema: &window.schema,
            vars: &out,
        };
        let mut rel = rel;
        for other in &numbered.others {
            for predicate in self.conjuncts(other, scope)? {
                rel = filtered(rel, predicate);
            }
        }
        Ok(Some((rel, out)))
    }

    /// The as-of join, and the vectors of the columns of its plan's join; `None` if the engine has no numbers for what it compares.
    fn nearest(&mut self, known: &Known<'_>) -> Result<Option<Lowered>> {
        let join = known.join;
        let (left, left_vars) = self.without_numbers(&join.left, known.rows)?;
        let (right, right_vars) = self.rel(&join.right)?;
        let (left, right, equal) = self.keys_of(join, (left, &left_vars), (right, &right_vars))?;
        let Some(numbers) = self.compared(known, &left_vars, &right_vars)? else {
            return Ok(None);
        };
        let mut ties = Vec::with_capacity(known.ties.len());
        for (column, key) in &known.ties {
            let var = var_of(join.right.schema(), &right_vars, column)?;
            if self.query.ty(var).kind == Kind::Float {
                // Zeros of both signs would have an order.
                return Ok(None);
            }
            ties.push(Key {
                var,
                descending: !key.asc,
                nulls_first: key.nulls_first,
            });
        }
        let keeps = is_outer(join);
        let outer = if keeps {
            self.or_null(&right_vars)
        } else {
            let own = once(&right_vars).into_iter();
            own.map(|var| (var, self.again(var))).collect()
        };
        let mut bounds = numbers.bounds.into_iter();
        let Some((op, at)) = bounds.next() else {
            return Ok(None);
        };
        let vars = [left_vars, named(&outer, &right_vars)].concat();
        let rel = Rel::AsOf(AsOf {
            left: Box::new(mapped(left, numbers.left)),
            right: Box::new(mapped(right, numbers.right)),
            equal,
            of: numbers.of,
            op,
            at,
            bounds: bounds.collect(),
            ties,
            keeps,
            outer,
        });
        Ok(Some((rel, vars)))
    }

    /// What an as-of join compares, as vectors.
    fn compared(
        &mut self,
        known: &Known<'_>,
        left_vars: &[Var],
        right_vars: &[Var],
    ) -> Result<Option<Numbers>> {
        let join = known.join;
        let sought = var_of(join.right.schema(), right_vars, &known.of)?;
        let mut numbers = Numbers {
            left: Vec::new(),
            right: Vec::new(),
            of: sought,
            bounds: Vec::with_capacity(known.bounds.len()),
        };
        for (i, (op, end)) in known.bounds.iter().enumerate() {
            let op = match op {
                Operator::Lt => Compare::Lt,
                Operator::LtEq => Compare::Le,
                Operator::Gt => Compare::Gt,
                Operator::GtEq => Compare::Ge,
                _ => return Ok(None),
            };
            let end = var_of(join.left.schema(), left_vars, end)?;
            let (of, end) = engine::alike(self.query.expr(sought), self.query.expr(end))?;
            let is_number = |e: &Expr| matches!(e.ty.kind, Kind::Int | Kind::Float);
            if !is_number(&of) || of.ty.kind != end.ty.kind {
                return Ok(None);
            }
            let of = match (i, of.as_var()) {
                (_, Some(of)) => of,
                (0, None) => self.var(of, "number", &mut numbers.right),
                (_, None) => return Ok(None),
            };
            if i > 0 && of != numbers.of {
                return Ok(None);
            }
            numbers.of = of;
            let end = self.var(end, "number", &mut numbers.left);
            numbers.bounds.push((op, end));
        }
        Ok(Some(numbers))
    }

    /// The left side of an as-of join, with any number in place of the numbers of its rows, which only the plan needs.
    fn without_numbers(&mut self, plan: &LogicalPlan, rows: &Window) -> Result<Lowered> {
        match plan {
            LogicalPlan::Window(window) if std::ptr::eq(window, rows) => {
                let (rel, mut vars) = self.rel(&window.input)?;
                let (rel, number) = self.with_one(rel)?;
                vars.push(number);
                Ok((rel, vars))
            }
            LogicalPlan::Projection(projection) => {
                let input = self.without_numbers(&projection.input, rows)?;
                self.projected(projection, input)
            }
            LogicalPlan::Filter(filter) => {
                let input = self.without_numbers(&filter.input, rows)?;
                self.filtered(filter, input)
            }
            LogicalPlan::SubqueryAlias(alias) => self.without_numbers(&alias.input, rows),
            other => unsupported(other.display().to_string()),
        }
    }

    /// `rel` with a vector of ones, as numbers of rows are.
    fn with_one(&mut self, rel: Rel) -> Result<(Rel, Var)> {
        let one = Expr::literal(Literal::Int(1), &DataType::UInt64)?;
        let var = self.query.add("row_number", one.ty.clone());
        Ok((mapped(rel, vec![(var, one)]), var))
    }
}

/// What an as-of join compares.
struct Numbers {
    /// What has to be computed on both sides.
    left: Vec<(Var, Expr)>,
    right: Vec<(Var, Expr)>,
    of: Var,
    bounds: Vec<(Compare, Var)>,
}

fn is_outer(join: &Join) -> bool {
    join.join_type == JoinType::Left
}

fn var_of(schema: &DFSchema, vars: &[Var], column: &Column) -> Result<Var> {
    let place = schema.maybe_index_of_column(column);
    let var = place.and_then(|place| vars.get(place)).copied();
    var.ok_or_else(|| Error::Unsupported(format!("the column {column}")))
}

/// The vectors of what projections that only choose columns leave of a join with these.
fn chosen(plan: &LogicalPlan, vars: &[Var]) -> Result<Vec<Var>> {
    let LogicalPlan::Projection(projection) = plan else {
        return Ok(vars.to_vec());
    };
    let below = chosen(&projection.input, vars)?;
    let schema = projection.input.schema();
    let own = projection.expr.iter().map(|e| {
        let columns = e.column_refs();
        let column = columns.into_iter().next();
        let column = column.ok_or_else(|| Error::Unsupported(e.to_string()))?;
        var_of(schema, &below, column)
    });
    own.collect()
}
