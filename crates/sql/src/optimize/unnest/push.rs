//! The dependent join of the domain with a subquery, pushed down node by node.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Column, DFSchema, ExprSchema, JoinType, NullEquality};
use datafusion_expr::expr::{AggregateFunction, WindowFunction};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::conjunction;
use datafusion_expr::{
    Aggregate, Distinct, DistinctOn, Expr, Join, LogicalPlan, LogicalPlanBuilder, Operator,
    SortExpr, SubqueryAlias, Union, Unnest, Window, binary_expr,
};
use datafusion_functions::core::expr_fn::coalesce;

use crate::error::Error;
use crate::optimize::outer;
use crate::optimize::unnest::{Domain, Pushed, lateral, marked, same, shared};

impl Domain<'_> {
    /// The rows of `plan` for each row of the domain.
    pub(super) fn push(&self, plan: &LogicalPlan) -> Result<Pushed> {
        if !self.depends(plan) {
            return match plan {
                LogicalPlan::EmptyRelation(empty)
                    if empty.produce_one_row && empty.schema.fields().is_empty() =>
                {
                    self.fresh()
                }
                plan => self.beside(plan),
            };
        }
        match plan {
            LogicalPlan::Filter(filter) => {
                let Pushed { plan, values } = self.push(&filter.input)?;
                let predicate = self.bound(filter.predicate.clone(), &values)?;
                let plan = LogicalPlanBuilder::from(plan).filter(predicate)?.build()?;
                Ok(Pushed { plan, values })
            }
            LogicalPlan::Projection(projection) => {
                let input = self.push(&projection.input)?;
                let carried = input.values.clone();
                self.projected(&projection.expr, input, &carried)
            }
            LogicalPlan::SubqueryAlias(alias) => self.aliased(alias, self.push(&alias.input)?),
            LogicalPlan::Sort(sort) => {
                let Pushed { plan, values } = self.push(&sort.input)?;
                let keys = self.bound_keys(&sort.expr, &values)?;
                let plan = LogicalPlanBuilder::from(plan).sort(keys)?.build()?;
                Ok(Pushed { plan, values })
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Pushed { plan, values } = self.push(input)?;
                let plan = LogicalPlan::Distinct(Distinct::All(shared(plan)));
                Ok(Pushed { plan, values })
            }
            LogicalPlan::Distinct(Distinct::On(on)) => self.distinct_on(on),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Unnest(unnest) => {
                let Pushed { plan, values } = self.push(&unnest.input)?;
                let columns = unnest.exec_columns.clone();
                let unnest = Unnest::try_new(shared(plan), columns, unnest.options.clone())?;
                let plan = LogicalPlan::Unnest(unnest);
                Ok(Pushed { plan, values })
            }
            other => Err(Error::unsupported(format!(
                "not supported: a subquery that names a column of the query around it within {}",
                called(other)
            ))
            .into()),
        }
    }

    /// `expr` with the domain's `values` in place of outer columns.
    pub(super) fn bound(&self, expr: Expr, values: &[Column]) -> Result<Expr> {
        expr.transform(|e| {
            let Expr::OuterReferenceColumn(_, column) = &e else {
                return Ok(Transformed::no(e));
            };
            let found = self.outer.iter().position(|outer| outer == column);
            Ok(match found.and_then(|at| values.get(at)) {
                Some(value) => Transformed::yes(Expr::Column(value.clone())),
                None => Transformed::no(e),
            })
        })
        .data()
    }

    /// Like [`bound`](Self::bound), with the name that the expression had.
    fn bound_as_named(&self, expr: &Expr, values: &[Column]) -> Result<Expr> {
        let name = NamePreserver::new_for_projection().save(expr);
        Ok(name.restore(self.bound(expr.clone(), values)?))
    }

    fn bound_keys(&self, keys: &[SortExpr], values: &[Column]) -> Result<Vec<SortExpr>> {
        let bound = |key: &SortExpr| {
            let expr = self.bound(key.expr.clone(), values)?;
            Ok(SortExpr::new(expr, key.asc, key.nulls_first))
        };
        keys.iter().map(bound).collect()
    }

    /// `exprs` over `input`, and its columns `carried`.
    pub(super) fn projected(
        &self,
        exprs: &[Expr],
        input: Pushed,
        carried: &[Column],
    ) -> Result<Pushed> {
        let Pushed { plan, values } = input;
        let mut columns: Vec<Expr> = carried.iter().cloned().map(Expr::Column).collect();
        for expr in exprs {
            columns.push(self.bound_as_named(expr, &values)?);
        }
        let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
        Ok(Pushed { plan, values })
    }

    pub(super) fn aliased(&self, alias: &SubqueryAlias, input: Pushed) -> Result<Pushed> {
        let table = alias.alias.clone();
        let plan = SubqueryAlias::try_new(shared(input.plan), table.clone())?;
        let renamed = |value: Column| Column::new(Some(table.clone()), value.name);
        Ok(Pushed {
            plan: LogicalPlan::SubqueryAlias(plan),
            values: input.values.into_iter().map(renamed).collect(),
        })
    }

    /// Groups for each row of the domain. Without `group by` there is a group also where there are no rows: the domain
    /// is joined to the rows by an outer join, and the functions take only rows that it found.
    fn aggregate(&self, aggregate: &Aggregate) -> Result<Pushed> {
        if let [Expr::GroupingSet(_)] = &aggregate.group_expr[..] {
            return Err(Error::unsupported(
                "not supported: a subquery that names a column of the query around it below `grouping sets`, `cube` or `rollup`",
            )
            .into());
        }
        let Pushed { plan, values } = self.push(&aggregate.input)?;
        if !aggregate.group_expr.is_empty() {
            let bound = |e: &Expr| self.bound_as_named(e, &values);
            let groups = aggregate
                .group_expr
                .iter()
                .map(bound)
                .collect::<Result<_>>()?;
            let bound = |e: &Expr| self.bound(e.clone(), &values);
            let functions = aggregate
                .aggr_expr
                .iter()
                .map(bound)
                .collect::<Result<_>>()?;
            return self.regrouped(aggregate, plan, values, groups, functions);
        }
        let mark = self.names.next("__found");
        let (rows, domain) = (marked(plan, &mark)?, self.fresh()?);
        let condition = self.equal(&domain.values, &values, domain.plan.schema())?;
        let plan = LogicalPlanBuilder::from(domain.plan)
            .join_on(rows, JoinType::Left, condition)?
            .build()?;
        let found = Expr::Column(Column::new_unqualified(mark)).is_not_null();
        // The values of the rows are NULL where there are none.
        let inner = |e: Expr| self.bound(e, &values);
        let mut functions = Vec::with_capacity(aggregate.aggr_expr.len());
        for function in &aggregate.aggr_expr {
            functions.push(only_where(inner(function.clone())?, &found)?);
        }
        self.regrouped(aggregate, plan, domain.values, Vec::new(), functions)
    }

    /// `functions` of the groups by the domain's `values` and by `groups`, under the names that `before` gives them.
    fn regrouped(
        &self,
        before: &Aggregate,
        plan: LogicalPlan,
        values: Vec<Column>,
        groups: Vec<Expr>,
        functions: Vec<Expr>,
    ) -> Result<Pushed> {
        let by = values.iter().cloned().map(Expr::Column).chain(groups);
        let plan = LogicalPlanBuilder::from(plan)
            .aggregate(by, functions)?
            .build()?;
        let made = plan.schema().columns();
        let plan = renamed(plan, &made, values.len(), &before.schema)?;
        Ok(Pushed { plan, values })
    }

    fn window(&self, window: &Window) -> Result<Pushed> {
        let Pushed { plan, values } = self.push(&window.input)?;
        let before = plan.schema().fields().len();
        let mut functions = Vec::with_capacity(window.window_expr.len());
        for function in &window.window_expr {
            functions.push(partitioned(
                self.bound(function.clone(), &values)?,
                &values,
            )?);
        }
        let own = window.input.schema().columns();
        let plan = LogicalPlanBuilder::from(plan).window(functions)?.build()?;
        let made = plan.schema().columns();
        let columns: Vec<Column> = values
            .iter()
            .cloned()
            .chain(own)
            .chain(made[before..].iter().cloned())
            .collect();
        let plan = renamed(plan, &columns, values.len(), &window.schema)?;
        Ok(Pushed { plan, values })
    }

    fn union(&self, union: &Union) -> Result<Pushed> {
        let name = self.names.next("__domain");
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for input in &union.inputs {
            let columns = input.schema().columns();
            let Pushed { plan, values } = self.push(input)?;
            let values = values.into_iter().enumerate();
            let values = values.map(|(i, v)| Expr::Column(v).alias(format!("{name}_{i}")));
            let columns: Vec<Expr> = values
                .chain(columns.into_iter().map(Expr::Column))
                .collect();
            inputs.push(shared(
                LogicalPlanBuilder::from(plan).project(columns)?.build()?,
            ));
        }
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        let made = plan.schema().columns();
        let values = made[..self.outer.len()].to_vec();
        let plan = renamed(plan, &made, values.len(), &union.schema)?;
        Ok(Pushed { plan, values })
    }

    fn distinct_on(&self, on: &DistinctOn) -> Result<Pushed> {
        let Pushed { plan, values } = self.push(&on.input)?;
        let domain = || values.iter().cloned().map(Expr::Column);
        let bound = |e: &Expr| self.bound(e.clone(), &values);
        let keys = on.on_expr.iter().map(bound).collect::<Result<Vec<_>>>()?;
        let bound = |e: &Expr| self.bound_as_named(e, &values);
        let columns = on
            .select_expr
            .iter()
            .map(bound)
            .collect::<Result<Vec<_>>>()?;
        let order = match &on.sort_expr {
            None => None,
            Some(order) => {
                let first = domain().map(|e| SortExpr::new(e, true, false));
                Some(first.chain(self.bound_keys(order, &values)?).collect())
            }
        };
        let keys = domain().chain(keys).collect();
        let columns = domain().chain(columns).collect();
        let on = DistinctOn::try_new(keys, columns, order, shared(plan))?;
        let plan = LogicalPlan::Distinct(Distinct::On(on));
        Ok(Pushed { plan, values })
    }

    /// A join within the subquery. The side whose rows it keeps carries the domain; both do if both depend on it.
    fn join(&self, join: &Join) -> Result<Pushed> {
        if outer::lateral(&join.right).is_some() {
            return self.push(&lateral::unnested(join.clone(), self.names)?);
        }
        use JoinType::{
            Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi,
        };
        let (mut left, mut right) = (self.depends(&join.left), self.depends(&join.right));
        match join.join_type {
            Inner => left |= !right,
            Left | LeftSemi | LeftAnti | LeftMark => left = true,
            Right | RightSemi | RightAnti | RightMark => right = true,
            Full => (left, right) = (true, true),
        }
        let side = |plan: &Arc<LogicalPlan>, carries: bool| {
            if carries {
                self.push(plan).map(|p| (p.plan, Some(p.values)))
            } else {
                Ok((plan.as_ref().clone(), None))
            }
        };
        let (left, of_left) = side(&join.left, left)?;
        let (right, of_right) = side(&join.right, right)?;
        let kept_left = !matches!(join.join_type, Right | RightSemi | RightAnti | RightMark);
        let (first, second) = if kept_left {
            (&of_left, &of_right)
        } else {
            (&of_right, &of_left)
        };
        // One of them is there, by the above.
        let values = first.clone().or_else(|| second.clone()).unwrap_or_default();
        let mut conditions = Vec::new();
        if let (Some(mine), Some(other)) = (&of_left, &of_right) {
            conditions.extend(self.equal(mine, other, left.schema())?);
        }
        let equal = match join.null_equality {
            NullEquality::NullEqualsNothing => Operator::Eq,
            NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
        };
        for (l, r) in &join.on {
            let (l, r) = (
                self.bound(l.clone(), &values)?,
                self.bound(r.clone(), &values)?,
            );
            conditions.push(binary_expr(l, equal, r));
        }
        if let Some(filter) = &join.filter {
            conditions.push(self.bound(filter.clone(), &values)?);
        }
        let columns = join.schema.columns();
        let plan = LogicalPlanBuilder::from(left);
        let plan = match (join.join_type, conjunction(conditions)) {
            (Inner, None) => plan.cross_join(right)?.build()?,
            (kind, condition) => plan.join_on(right, kind, condition)?.build()?,
        };
        match (join.join_type, of_left, of_right) {
            (Full, Some(left), Some(right)) => self.either(plan, columns, &left, &right),
            (Inner | Left | Right, Some(_), Some(_)) => only(plan, values, columns),
            _ => Ok(Pushed { plan, values }),
        }
    }

    /// The domain's values of a full join: those of the side that has a row.
    fn either(
        &self,
        plan: LogicalPlan,
        columns: Vec<Column>,
        left: &[Column],
        right: &[Column],
    ) -> Result<Pushed> {
        let name = self.names.next("__domain");
        let (mut exprs, mut values) = (Vec::new(), Vec::new());
        for (i, (l, r)) in left.iter().zip(right).enumerate() {
            let both = vec![Expr::Column(l.clone()), Expr::Column(r.clone())];
            let value = format!("{name}_{i}");
            exprs.push(coalesce(both).alias(value.as_str()));
            values.push(Column::new_unqualified(value));
        }
        exprs.extend(columns.into_iter().map(Expr::Column));
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        Ok(Pushed { plan, values })
    }

    /// Conditions that two sides were made for the same row of the domain.
    fn equal(&self, left: &[Column], right: &[Column], schema: &DFSchema) -> Result<Vec<Expr>> {
        let pair = |(l, r): (&Column, &Column)| {
            let nullable = schema.field_from_column(l)?.is_nullable();
            Ok(same(l.clone(), r.clone(), nullable))
        };
        left.iter().zip(right).map(pair).collect()
    }
}

/// The domain's `values` and `columns` of `plan`.
fn only(plan: LogicalPlan, values: Vec<Column>, columns: Vec<Column>) -> Result<Pushed> {
    let kept = values.iter().cloned().chain(columns).map(Expr::Column);
    let plan = LogicalPlanBuilder::from(plan).project(kept)?.build()?;
    Ok(Pushed { plan, values })
}

/// `columns` of `plan`, of which those after the domain's first `values` get the names of `schema` in its order.
fn renamed(
    plan: LogicalPlan,
    columns: &[Column],
    values: usize,
    schema: &DFSchema,
) -> Result<LogicalPlan> {
    let (domain, own) = columns.split_at(values);
    let mut exprs: Vec<Expr> = domain.iter().cloned().map(Expr::Column).collect();
    for (column, wanted) in own.iter().zip(schema.columns()) {
        let expr = Expr::Column(column.clone());
        exprs.push(if *column == wanted {
            expr
        } else {
            expr.alias_qualified(wanted.relation, wanted.name)
        });
    }
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}

/// The aggregate `function` over the rows for which `found` holds.
fn only_where(function: Expr, found: &Expr) -> Result<Expr> {
    function
        .transform(|e| match e {
            Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
                let filter = match params.filter.take() {
                    Some(filter) => found.clone().and(*filter),
                    None => found.clone(),
                };
                params.filter = Some(Box::new(filter));
                let function = AggregateFunction { func, params };
                Ok(Transformed::yes(Expr::AggregateFunction(function)))
            }
            e => Ok(Transformed::no(e)),
        })
        .data()
}

/// The window `function` within each row of the domain.
fn partitioned(function: Expr, values: &[Column]) -> Result<Expr> {
    function
        .transform(|e| match e {
            Expr::WindowFunction(mut function) => {
                let WindowFunction { params, .. } = function.as_mut();
                let domain = values.iter().cloned().map(Expr::Column);
                params.partition_by.splice(0..0, domain);
                Ok(Transformed::yes(Expr::WindowFunction(function)))
            }
            e => Ok(Transformed::no(e)),
        })
        .data()
}

/// What users call the node.
fn called(plan: &LogicalPlan) -> &'static str {
    match plan {
        LogicalPlan::RecursiveQuery(_) => "`with recursive`",
        LogicalPlan::Values(_) => "`values`",
        LogicalPlan::TableScan(_) => "the arguments of a table function",
        _ => "this part of it",
    }
}
