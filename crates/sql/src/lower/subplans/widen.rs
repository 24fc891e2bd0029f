//! Subplans with more columns, for readers that want other columns of the same rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, JoinType};
use datafusion_expr::{
    Aggregate, Expr, Filter, Join, Limit, LogicalPlan, Projection, Sort, SubqueryAlias, TableScan,
    TableScanBuilder,
};

use crate::lower::subplans::equality::{Numbering, named, number, numbers};
use crate::lower::subplans::keys::{ColumnId, ColumnKey, Node};

impl Numbering {
    /// `plan` with those of the columns `wanted` that it has not; `None` if they are not to be had of its rows.
    pub(super) fn widened(
        &mut self,
        plan: &LogicalPlan,
        wanted: &BTreeSet<ColumnId>,
    ) -> Option<Arc<LogicalPlan>> {
        let relation = self.number(plan).ok()?.relation;
        // What cannot be made for want of names that are unique, say, is not shared.
        let wide = Arc::new(self.with(plan, wanted).ok()??);
        let node = self.number(&wide).ok()?;
        let has_all = wanted.iter().all(|column| node.columns.contains(column));
        (node.relation == relation && has_all).then_some(wide)
    }

    fn with(
        &mut self,
        plan: &LogicalPlan,
        wanted: &BTreeSet<ColumnId>,
    ) -> Result<Option<LogicalPlan>> {
        let node = self.number(plan)?;
        let missing = wanted
            .iter()
            .filter(|column| !node.columns.contains(column));
        let missing: BTreeSet<ColumnId> = missing.copied().collect();
        if missing.is_empty() {
            return Ok(Some(plan.clone()));
        }
        match plan {
            LogicalPlan::TableScan(scan) => self.with_stored(scan, &missing),
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(input) = self.with(&alias.input, &missing)? else {
                    return Ok(None);
                };
                let alias = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
                Ok(Some(LogicalPlan::SubqueryAlias(alias)))
            }
            LogicalPlan::Filter(filter) => {
                let input = self.with(&filter.input, &missing)?;
                let predicate = filter.predicate.clone();
                let filter = input.map(|input| Filter::try_new(predicate, Arc::new(input)));
                Ok(filter.transpose()?.map(LogicalPlan::Filter))
            }
            LogicalPlan::Sort(sort) => {
                let input = self.with(&sort.input, &missing)?;
                Ok(input.map(|input| {
                    LogicalPlan::Sort(Sort {
                        expr: sort.expr.clone(),
                        input: Arc::new(input),
                        fetch: sort.fetch,
                    })
                }))
            }
            LogicalPlan::Limit(limit) => {
                let input = self.with(&limit.input, &missing)?;
                Ok(input.map(|input| {
                    LogicalPlan::Limit(Limit {
                        skip: limit.skip.clone(),
                        fetch: limit.fetch.clone(),
                        input: Arc::new(input),
                    })
                }))
            }
            LogicalPlan::Projection(projection) => self.with_computed(projection, &missing),
            LogicalPlan::Join(join) => self.with_joined(join, &missing),
            LogicalPlan::Aggregate(aggregate) => self.with_functions(aggregate, &node, &missing),
            _ => Ok(None),
        }
    }

    fn with_stored(
        &mut self,
        scan: &TableScan,
        missing: &BTreeSet<ColumnId>,
    ) -> Result<Option<LogicalPlan>> {
        let Some(mut positions) = scan.projection.clone() else {
            return Ok(None);
        };
        let table = self.table(scan)?;
        for column in missing {
            match self.key(*column) {
                Some(ColumnKey::Stored(own, position)) if own == table => positions.push(position),
                _ => return Ok(None),
            }
        }
        let wide = TableScanBuilder::new(scan.table_name.clone(), Arc::clone(&scan.source))
            .with_projection(Some(positions))
            .with_filters(scan.filters.clone())
            .with_fetch(scan.fetch)
            .build()?;
        Ok(Some(LogicalPlan::TableScan(wide)))
    }

    fn with_computed(
        &mut self,
        projection: &Projection,
        missing: &BTreeSet<ColumnId>,
    ) -> Result<Option<LogicalPlan>> {
        let mut input = projection.input.as_ref().clone();
        let mut added = Vec::with_capacity(missing.len());
        for column in missing {
            let whole = self.with(&input, &BTreeSet::from([*column]))?;
            let (wide, e) = match (whole, self.key(*column)) {
                (None, Some(ColumnKey::Computed(e))) => (self.with(&input, &numbers(&e))?, e),
                (whole, _) => (whole, named(*column)),
            };
            let Some(wide) = wide else {
                return Ok(None);
            };
            input = wide;
            added.push((*column, e));
        }
        let node = self.number(&input)?;
        let mut exprs = projection.expr.clone();
        for (column, e) in added {
            let Some(e) = over(e, &input, &node)? else {
                return Ok(None);
            };
            exprs.push(e.alias(name(column)));
        }
        let projection = Projection::try_new(exprs, Arc::new(input))?;
        Ok(Some(LogicalPlan::Projection(projection)))
    }

    fn with_joined(
        &mut self,
        join: &Join,
        missing: &BTreeSet<ColumnId>,
    ) -> Result<Option<LogicalPlan>> {
        let (mut left, mut right) = (BTreeSet::new(), BTreeSet::new());
        for column in missing {
            match (join.join_type, self.key(*column)) {
                (JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark, Some(_)) => {
                    left.insert(*column);
                }
                (JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark, Some(_)) => {
                    right.insert(*column);
                }
                (_, Some(ColumnKey::Left(own))) => _ = left.insert(own),
                (_, Some(ColumnKey::Right(own))) => _ = right.insert(own),
                _ => return Ok(None),
            }
        }
        let (left, right) = (
            self.with(&join.left, &left)?,
            self.with(&join.right, &right)?,
        );
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(None);
        };
        let join = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            join.on.clone(),
            join.filter.clone(),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        Ok(Some(LogicalPlan::Join(join)))
    }

    fn with_functions(
        &mut self,
        aggregate: &Aggregate,
        node: &Node,
        missing: &BTreeSet<ColumnId>,
    ) -> Result<Option<LogicalPlan>> {
        let (mut added, mut below) = (Vec::with_capacity(missing.len()), BTreeSet::new());
        for column in missing {
            match self.key(*column) {
                Some(ColumnKey::Over(relation, e)) if relation == node.relation => {
                    below.append(&mut numbers(&e));
                    added.push((*column, e));
                }
                _ => return Ok(None),
            }
        }
        let Some(input) = self.with(&aggregate.input, &below)? else {
            return Ok(None);
        };
        let own = self.number(&input)?;
        let mut functions = aggregate.aggr_expr.clone();
        for (column, e) in added {
            let Some(e) = over(e, &input, &own)? else {
                return Ok(None);
            };
            functions.push(e.alias(name(column)));
        }
        let groups = aggregate.group_expr.clone();
        let aggregate = Aggregate::try_new(Arc::new(input), groups, functions)?;
        Ok(Some(LogicalPlan::Aggregate(aggregate)))
    }
}

/// The name of a column that is added.
fn name(column: ColumnId) -> String {
    format!("shared {column}")
}

/// `e`, whose columns have numbers as names, over the columns of `plan`; `None` if one is missing.
fn over(e: Expr, plan: &LogicalPlan, node: &Node) -> Result<Option<Expr>> {
    let mut found = true;
    let done = e.transform_up(|e| {
        if !matches!(e, Expr::Column(_)) {
            return Ok(Transformed::no(e));
        }
        let own = number(&e);
        let position = own.and_then(|own| node.columns.iter().position(|column| *column == own));
        let Some(position) = position else {
            found = false;
            return Ok(Transformed::no(e));
        };
        let field = plan.schema().qualified_field(position);
        Ok(Transformed::yes(Expr::Column(Column::from(field))))
    })?;
    Ok(found.then_some(done.data))
}
