//! As-of joins: for each row the last row of others until then, or the first from then on.
//!
//! PostgreSQL's users write them as a subquery, `left join lateral (select ... from quotes as q where q.symbol = t.symbol and
//! q.time <= t.time order by q.time desc limit 1) as q on true`, or as one that stands for a value; DuckDB's as
//! [`asof join`](written). Both become the same plan: the rows of the left side get [numbers](AsOf::joined), are joined to all rows
//! that may match, and of those of each number the first of the order is kept. That is a plan as any other, which any executor runs;
//! Atoll's own engine [knows it again](known) and makes no pairs. In a subquery that is no as-of join, the rows are found for a
//! [domain](crate::optimize::unnest) of values.

use std::collections::HashMap;

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_common::alias::AliasGenerator;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Column, DFSchema, JoinType};
use datafusion_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion_expr::expr_rewriter::unalias;
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    BinaryExpr, Expr, ExprSchemable, FetchType, Join, LogicalPlan, LogicalPlanBuilder, Operator,
    SkipType, SortExpr, Window, WindowFrame, WindowFunctionDefinition, lit, when,
};
use datafusion_functions_window::row_number::row_number_udwf;

use crate::optimize::outer::{depends, outer_columns};

pub(crate) mod known;
pub(crate) mod written;

/// A subquery, or the right side of a join, of which each row of another relation wants the nearest row.
#[derive(Debug)]
pub(crate) struct AsOf {
    /// Its rows, under names of their own.
    right: LogicalPlan,
    /// Begins the names.
    name: String,
    /// Pairs (of the left side, of the right side) that must be equal.
    equal: Vec<(Expr, Expr)>,
    /// What is compared on the right side.
    of: Expr,
    /// How it compares with values of the left side; the first decides which row is the nearest.
    bounds: Vec<(Operator, Expr)>,
    /// Conditions of the left side alone.
    only: Vec<Expr>,
    /// The order of rows that are as near.
    ties: Vec<SortExpr>,
    /// The columns that are asked for, as expressions over both sides.
    outputs: Vec<Expr>,
}

impl AsOf {
    /// The as-of join that a subquery for each row with the columns `outer` is, if it is one.
    ///
    /// # Errors
    /// Those of building plans.
    pub(crate) fn of(
        subquery: &LogicalPlan,
        outer: &DFSchema,
        names: &AliasGenerator,
    ) -> Result<Option<AsOf>> {
        let Some(read) = Read::of(subquery)? else {
            return Ok(None);
        };
        let is_own = |column: &Column| outer.has_column(column);
        let exprs = || {
            let order = read.order.iter().map(|key| &key.expr);
            read.conditions.iter().chain(&read.outputs).chain(order)
        };
        if exprs().any(is_unfit) || !outer_columns(subquery).iter().all(is_own) {
            return Ok(None);
        }
        let Some((first, ties)) = read.order.split_first() else {
            return Ok(None);
        };
        if ties.iter().any(|key| key.expr.contains_outer()) {
            return Ok(None);
        }
        let right = Right::of(&read.plan, names)?;
        let all = |exprs: &[Expr]| -> Result<Vec<Expr>> {
            exprs.iter().map(|e| right.named(e)).collect()
        };
        let sought = (right.named(&first.expr)?, Some(first.asc));
        let outputs = all(&read.outputs)?;
        let Some(parts) = Parts::of(all(&read.conditions)?, &right, sought, outer)? else {
            return Ok(None);
        };
        if !outputs.iter().all(|e| right.is_known(e, outer)) {
            return Ok(None);
        }
        let ties = ties.iter().map(|key| {
            let expr = right.named(&key.expr)?;
            Ok(SortExpr::new(expr, key.asc, key.nulls_first))
        });
        let ties = ties.collect::<Result<Vec<_>>>()?;
        parts.with(right, ties, outputs).map(Some)
    }

    /// The rows of `left`, each with its nearest row; `kind` says whether those without one stay. The columns that were asked for
    /// follow those of `left`, under these names.
    ///
    /// # Errors
    /// Those of building plans.
    pub(crate) fn joined(
        self,
        left: LogicalPlan,
        kind: JoinType,
        called: &[Column],
    ) -> Result<LogicalPlan> {
        let row = Column::new_unqualified(format!("{}_row", self.name));
        let own = left.schema().columns();
        let columns = || own.iter().cloned().map(Expr::Column);
        let mut ends = Vec::with_capacity(self.bounds.len());
        let mut conditions = Vec::new();
        for (i, (op, end)) in self.bounds.into_iter().enumerate() {
            let column = Column::new_unqualified(format!("{}_end_{i}", self.name));
            conditions.push(binary(self.of.clone(), op, Expr::Column(column.clone())));
            // A row without the conditions of its own side finds nothing, as one that is NULL.
            let end = match conjunction(self.only.iter().cloned()) {
                Some(only) if i == 0 => when(only, end).end()?,
                _ => end,
            };
            ends.push(end.alias(column.name));
        }
        let greatest = conditions.first().is_some_and(is_upper);
        for (mine, theirs) in self.equal {
            conditions.push(binary(mine, Operator::Eq, theirs));
        }
        // Any number does. An order, if only of what is the same in all rows, says that nobody can tell which it is.
        let number = numbered(Vec::new(), vec![SortExpr::new(lit(1i64), true, false)]);
        let made = Expr::Column(Column::new_unqualified(number.schema_name().to_string()));
        let left = LogicalPlanBuilder::from(left).window([number])?;
        let left = left.project(columns().chain(ends).chain([made.alias(row.name.as_str())]))?;
        let mut order = vec![SortExpr::new(self.of, !greatest, false)];
        order.extend(self.ties);
        let number = numbered(vec![Expr::Column(row)], order);
        let made = Expr::Column(Column::new_unqualified(number.schema_name().to_string()));
        let found = Expr::Column(Column::new_unqualified(found(&self.name)));
        let mut outputs = Vec::with_capacity(called.len());
        for (output, called) in self.outputs.into_iter().zip(called) {
            let output = match output {
                Expr::Column(column) if self.right.schema().has_column(&column) => {
                    Expr::Column(column)
                }
                computed if kind == JoinType::Left => when(found.clone(), computed).end()?,
                computed => computed,
            };
            outputs.push(output.alias_qualified(called.relation.clone(), &called.name));
        }
        left.join_on(self.right, kind, conditions)?
            .window([number])?
            .filter(made.lt_eq(lit(1u64)))?
            .project(columns().chain(outputs))?
            .build()
    }
}

/// Whether a condition on what is sought bounds it from above.
fn is_upper(condition: &Expr) -> bool {
    matches!(condition, Expr::BinaryExpr(binary) if matches!(binary.op, Operator::Lt | Operator::LtEq))
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// The column that is NULL where nothing was found.
fn found(name: &str) -> String {
    format!("{name}_found")
}

fn numbered(partition_by: Vec<Expr>, order_by: Vec<SortExpr>) -> Expr {
    Expr::WindowFunction(Box::new(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(row_number_udwf()),
        params: WindowFunctionParams {
            args: Vec::new(),
            partition_by,
            window_frame: WindowFrame::new((!order_by.is_empty()).then_some(false)),
            order_by,
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    }))
}

/// Whether an expression may have another value each time, or has a query in it.
fn is_unfit(e: &Expr) -> bool {
    let has_query = |e: &Expr| {
        Ok(matches!(
            e,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        ))
    };
    e.is_volatile() || e.exists(has_query).unwrap_or(true)
}

/// `select ... from ... where ... order by ... limit 1`, taken apart down to what does not depend on the row outside.
struct Read {
    plan: LogicalPlan,
    conditions: Vec<Expr>,
    order: Vec<SortExpr>,
    outputs: Vec<Expr>,
}

impl Read {
    fn of(subquery: &LogicalPlan) -> Result<Option<Read>> {
        let columns = subquery.schema().columns();
        let mut read = Read {
            plan: subquery.clone(),
            conditions: Vec::new(),
            order: Vec::new(),
            outputs: columns.into_iter().map(Expr::Column).collect(),
        };
        let (mut limited, mut sorted) = (false, false);
        while !sorted || depends(&read.plan) {
            let next = match read.plan.clone() {
                LogicalPlan::Limit(limit) if !limited => {
                    let (skip, fetch) = (limit.get_skip_type()?, limit.get_fetch_type()?);
                    let one = matches!(fetch, FetchType::Literal(Some(1)));
                    if !one || !matches!(skip, SkipType::Literal(0)) {
                        return Ok(None);
                    }
                    limited = true;
                    limit.input
                }
                LogicalPlan::Sort(sort) if limited && !sorted => {
                    (read.order, sorted) = (sort.expr, true);
                    sort.input
                }
                LogicalPlan::Filter(filter) if sorted => {
                    read.conditions
                        .extend(split_conjunction_owned(filter.predicate));
                    filter.input
                }
                LogicalPlan::Projection(projection) => {
                    let below = projection.expr.iter().cloned().map(unalias);
                    let named = projection.schema.columns().into_iter().zip(below);
                    read.replace(&named.collect())?;
                    projection.input
                }
                LogicalPlan::SubqueryAlias(alias) => {
                    let below = alias.input.schema().columns().into_iter();
                    let named = alias.schema.columns().into_iter();
                    let named = named.zip(below.map(Expr::Column));
                    read.replace(&named.collect())?;
                    alias.input
                }
                _ => return Ok(None),
            };
            read.plan = next.as_ref().clone();
        }
        Ok(Some(read))
    }

    /// Names columns by what they are further down.
    fn replace(&mut self, named: &HashMap<Column, Expr>) -> Result<()> {
        let keys = self.order.iter_mut().map(|key| &mut key.expr);
        for e in self
            .conditions
            .iter_mut()
            .chain(&mut self.outputs)
            .chain(keys)
        {
            *e = replaced(std::mem::take(e), named)?;
        }
        Ok(())
    }
}

fn replaced(e: Expr, named: &HashMap<Column, Expr>) -> Result<Expr> {
    e.transform(|e| {
        let other = match &e {
            Expr::Column(column) => named.get(column).cloned(),
            _ => None,
        };
        Ok(other.map_or_else(|| Transformed::no(e), Transformed::yes))
    })
    .data()
}

/// The rows of the right side under names that nothing else has, with a column that says that a row was found.
struct Right {
    plan: LogicalPlan,
    name: String,
    named: HashMap<Column, Expr>,
}

impl Right {
    fn of(plan: &LogicalPlan, names: &AliasGenerator) -> Result<Right> {
        let name = names.next("__asof");
        let (mut exprs, mut named) = (Vec::new(), HashMap::new());
        for (i, column) in plan.schema().columns().into_iter().enumerate() {
            let own = Column::new_unqualified(format!("{name}_{i}"));
            exprs.push(Expr::Column(column.clone()).alias(own.name.as_str()));
            named.insert(column, Expr::Column(own));
        }
        exprs.push(lit(true).alias(found(&name)));
        let plan = LogicalPlanBuilder::from(plan.clone())
            .project(exprs)?
            .build()?;
        Ok(Right { plan, name, named })
    }

    /// An expression of a subquery over these columns and those of the row outside.
    fn named(&self, e: &Expr) -> Result<Expr> {
        let own = replaced(e.clone(), &self.named)?;
        own.transform(|e| {
            Ok(match e {
                Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
                e => Transformed::no(e),
            })
        })
        .data()
    }

    /// Whether all columns of an expression are of one of both sides.
    fn is_known(&self, e: &Expr, outer: &DFSchema) -> bool {
        let own = self.plan.schema();
        let is_known = |column: &&Column| own.has_column(column) || outer.has_column(column);
        e.column_refs().iter().all(is_known)
    }

    /// Which sides the columns of an expression are of: the left one, this one.
    fn sides(&self, e: &Expr) -> (bool, bool) {
        let (mut left, mut right) = (false, false);
        for column in e.column_refs() {
            let is_own = column.relation.is_none() && self.plan.schema().has_column(column);
            (left, right) = (left || !is_own, right || is_own);
        }
        (left, right)
    }
}

/// The conditions of an as-of join.
struct Parts {
    equal: Vec<(Expr, Expr)>,
    of: Expr,
    bounds: Vec<(Operator, Expr)>,
    /// Conditions of the left side alone, and of the right side alone.
    left: Vec<Expr>,
    right: Vec<Expr>,
}

impl Parts {
    /// Those that `conditions` are, if they are those of an as-of join that seeks a row by this expression: the first of an ascending
    /// order or of a descending one, or whichever its only comparison says.
    fn of(
        conditions: Vec<Expr>,
        right: &Right,
        (of, ascending): (Expr, Option<bool>),
        outer: &DFSchema,
    ) -> Result<Option<Parts>> {
        let mut parts = Parts {
            equal: Vec::new(),
            of,
            bounds: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
        };
        let is_known = |e: &Expr| right.is_known(e, outer);
        if !conditions.iter().chain([&parts.of]).all(is_known) {
            return Ok(None);
        }
        for condition in conditions {
            match right.sides(&condition) {
                (false, true) => parts.right.push(condition),
                (_, false) => parts.left.push(condition),
                (true, true) => {
                    let Some((mine, op, theirs)) = compared(condition, right) else {
                        return Ok(None);
                    };
                    match op {
                        Operator::Eq => parts.equal.push((mine, theirs)),
                        op if theirs == parts.of => parts.bounds.push((op, mine)),
                        _ => return Ok(None),
                    }
                }
            }
        }
        let is_first = |op: Operator| match ascending {
            Some(true) => matches!(op, Operator::Gt | Operator::GtEq),
            Some(false) => matches!(op, Operator::Lt | Operator::LtEq),
            None => true,
        };
        parts.bounds.sort_by_key(|(op, _)| !is_first(*op));
        let towards = parts.bounds.iter().filter(|(op, _)| is_first(*op)).count();
        let (schema, bounds) = (right.plan.schema(), &parts.bounds);
        let ty = parts.of.get_type(schema)?;
        let mut alike = true;
        for (_, end) in bounds {
            alike &= end.get_type(outer)? == ty;
        }
        let is_one = towards == 1 && alike && is_number(&ty);
        let is_sound = parts.of.column_refs().iter().all(|c| schema.has_column(c));
        Ok((is_one && is_sound).then_some(parts))
    }

    fn with(self, right: Right, ties: Vec<SortExpr>, outputs: Vec<Expr>) -> Result<AsOf> {
        let plan = match conjunction(self.right) {
            Some(own) => LogicalPlanBuilder::from(right.plan).filter(own)?.build()?,
            None => right.plan,
        };
        let (plan, of) = match self.of {
            column @ Expr::Column(_) => (plan, column),
            computed => {
                let name = format!("{}_of", right.name);
                let own = plan.schema().columns().into_iter().map(Expr::Column);
                let own: Vec<Expr> = own.chain([computed.alias(name.as_str())]).collect();
                let plan = LogicalPlanBuilder::from(plan).project(own)?.build()?;
                (plan, Expr::Column(Column::new_unqualified(name)))
            }
        };
        Ok(AsOf {
            right: plan,
            name: right.name,
            equal: self.equal,
            of,
            bounds: self.bounds,
            only: self.left,
            ties,
            outputs,
        })
    }
}

/// A comparison of an expression of the left side with one of the right side: the first, how the second compares with it, the second.
fn compared(condition: Expr, right: &Right) -> Option<(Expr, Operator, Expr)> {
    let Expr::BinaryExpr(binary) = condition else {
        return None;
    };
    use Operator::{Eq, Gt, GtEq, Lt, LtEq};
    if !matches!(binary.op, Eq | Lt | LtEq | Gt | GtEq) {
        return None;
    }
    match (right.sides(&binary.left), right.sides(&binary.right)) {
        ((true, false), (false, true)) => Some((*binary.left, binary.op.swap()?, *binary.right)),
        ((false, true), (true, false)) => Some((*binary.right, binary.op, *binary.left)),
        _ => None,
    }
}

/// Whether values of a type are numbers of 64 bits in Atoll's own engine.
fn is_number(ty: &DataType) -> bool {
    use DataType::{
        Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Time64, Timestamp,
    };
    match ty {
        Int8 | Int16 | Int32 | Int64 | Date32 | Time64(_) | Timestamp(..) | Float32 | Float64 => {
            true
        }
        Decimal128(digits, _) => *digits <= 18,
        _ => false,
    }
}

/// The columns of a join's right side in its result.
pub(crate) fn right_columns(join: &Join) -> Vec<Column> {
    let before = join.left.schema().fields().len();
    join.schema.columns().split_off(before)
}

/// Whether a window numbers all rows in any order.
fn is_any_number(window: &Window) -> bool {
    let [Expr::WindowFunction(own)] = &window.window_expr[..] else {
        return false;
    };
    let params = &own.params;
    let is_constant = |key: &SortExpr| matches!(key.expr, Expr::Literal(..));
    own.fun.name() == "row_number"
        && params.partition_by.is_empty()
        && params.order_by.iter().all(is_constant)
}
