//! Which subplans have the same rows.
//!
//! Each relation and each column gets a number, bottom up, so that no plan is walked through twice: a relation is known
//! by what it does and by the numbers of its inputs, a column by how it is computed of other columns. Names, aliases,
//! the order of columns and columns that are left out are no part of that: a projection has the rows of its input, and
//! so has a window. Two aggregates by the same keys are the same relation, whatever functions each has.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, JoinType};
use datafusion_expr::TableSource;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{
    Aggregate, Distinct, Expr, Filter, Join, Limit, LogicalPlan, Projection, SortExpr, TableScan,
    Union, Window,
};

use crate::lower::subplans::estimates::Estimates;
use crate::lower::subplans::keys::{ColumnId, ColumnKey, Columns, JoinKey, Key, Node, Relation};
use crate::optimize::keys;
use crate::scan::provider::Provider;

/// Numbers of relations and columns.
#[derive(Default)]
pub(super) struct Numbering {
    relations: HashMap<Key, Relation>,
    columns: Columns,
    tables: Vec<Arc<dyn TableSource>>,
    /// The filters of relations that are filtered, and the relation below them.
    filtered: HashMap<Relation, (Relation, BTreeSet<ColumnId>)>,
    unknown: usize,
    pub estimates: Estimates,
    /// By the address of the plan, which stays in place while the plan is borrowed.
    pub nodes: HashMap<usize, Node>,
}

/// The address of a plan.
pub(in crate::lower) fn address(plan: &LogicalPlan) -> usize {
    std::ptr::from_ref(plan) as usize
}

impl Numbering {
    /// Numbers `plan` and all plans below it, those in expressions too.
    pub fn number(&mut self, plan: &LogicalPlan) -> Result<Node> {
        let node = match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan)?,
            LogicalPlan::SubqueryAlias(alias) => self.number(&alias.input)?,
            LogicalPlan::Subquery(subquery) => self.number(&subquery.subquery)?,
            LogicalPlan::Filter(filter) => self.filter(filter)?,
            LogicalPlan::Projection(projection) => self.projection(projection)?,
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate)?,
            LogicalPlan::Window(window) => self.window(window)?,
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Node { relation, columns } = self.number(input)?;
                let relation =
                    self.relation(Key::Groups(relation, columns.iter().copied().collect()));
                Node { relation, columns }
            }
            LogicalPlan::Sort(sort) => {
                let input = self.number(&sort.input)?;
                match self.sorts(&sort.expr, sort.input.schema(), &input.columns)? {
                    Some(sorts) => Node {
                        relation: self.relation(Key::Sort(input.relation, sorts, sort.fetch)),
                        columns: input.columns,
                    },
                    None => self.unknown(plan),
                }
            }
            LogicalPlan::Limit(limit) => self.limit(limit, plan)?,
            LogicalPlan::Join(join) => self.join(join, plan)?,
            LogicalPlan::Union(union) => self.union(union)?,
            LogicalPlan::Values(values)
                if values.values.iter().flatten().any(Expr::is_volatile) =>
            {
                self.unknown(plan)
            }
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => {
                let relation = self.relation(Key::Given(Box::new(plan.clone())));
                self.positions(relation, 0, plan.schema().fields().len())
            }
            // What it reads in each round is not there beforehand.
            LogicalPlan::RecursiveQuery(_) => self.unknown(plan),
            other => {
                for input in other.inputs() {
                    self.number(input)?;
                }
                self.unknown(plan)
            }
        };
        self.nodes.insert(address(plan), node.clone());
        Ok(node)
    }

    fn scan(&mut self, scan: &TableScan) -> Result<Node> {
        let table = self.table(scan)?;
        let schema = scan.source.schema();
        let positions = match &scan.projection {
            Some(positions) => positions.clone(),
            None => (0..schema.fields().len()).collect(),
        };
        let columns = positions.into_iter();
        let columns: Vec<ColumnId> = columns
            .map(|position| self.column(ColumnKey::Stored(table, position)))
            .collect();
        let mut relation = self.relation(Key::Table(table));
        for filter in &scan.filters {
            let stored = |me: &mut Self, column: &Column| {
                let position = schema.index_of(&column.name).ok()?;
                Some(me.column(ColumnKey::Stored(table, position)))
            };
            relation = match self.expr(filter, &stored)? {
                Some(condition) => self.and(relation, condition),
                None => self.no_relation(),
            };
        }
        Ok(Node { relation, columns })
    }

    /// The number of the table that `scan` reads.
    pub(super) fn table(&mut self, scan: &TableScan) -> Result<usize> {
        let known = self.tables.iter().position(|known| {
            let both = (
                known.downcast_ref::<Provider>(),
                scan.source.downcast_ref::<Provider>(),
            );
            match both {
                (Some(a), Some(b)) => {
                    Arc::ptr_eq(a.table(), b.table()) && a.has_row_ids() == b.has_row_ids()
                }
                _ => std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(&scan.source)),
            }
        });
        Ok(known.unwrap_or_else(|| {
            self.tables.push(Arc::clone(&scan.source));
            self.tables.len() - 1
        }))
    }

    fn filter(&mut self, filter: &Filter) -> Result<Node> {
        let Node {
            mut relation,
            columns,
        } = self.number(&filter.input)?;
        for predicate in split_conjunction(&filter.predicate) {
            relation = match self.over(predicate, filter.input.schema(), &columns)? {
                Some(condition) => self.and(relation, condition),
                None => self.no_relation(),
            };
        }
        Ok(Node { relation, columns })
    }

    fn projection(&mut self, projection: &Projection) -> Result<Node> {
        let Node {
            mut relation,
            columns: below,
        } = self.number(&projection.input)?;
        let mut columns = Vec::with_capacity(projection.expr.len());
        for e in &projection.expr {
            let column = self.over(e, projection.input.schema(), &below)?;
            columns.push(match column {
                Some(column) => column,
                None => {
                    relation = self.no_relation();
                    self.no_column()
                }
            });
        }
        Ok(Node { relation, columns })
    }

    fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Node> {
        let input = self.number(&aggregate.input)?;
        let schema = aggregate.input.schema();
        let all = aggregate.schema.fields().len();
        let exprs = keys::once(&aggregate.group_expr);
        let mut groups = Vec::with_capacity(exprs.len());
        for e in &exprs {
            groups.push(self.over(e, schema, &input.columns)?);
        }
        let plain = !exprs.iter().any(|e| matches!(e, Expr::GroupingSet(_)))
            && all == exprs.len() + aggregate.aggr_expr.len();
        let known: Option<Vec<ColumnId>> = groups.iter().copied().collect();
        let (relation, columns) = match known {
            Some(columns) if plain => {
                let set = columns.iter().copied().collect();
                (self.relation(Key::Groups(input.relation, set)), columns)
            }
            known => {
                let relation = match known {
                    Some(_) => self.relation(Key::Sets(input.relation, groups)),
                    None => self.no_relation(),
                };
                let count = all.saturating_sub(aggregate.aggr_expr.len());
                (relation, self.positions(relation, 0, count).columns)
            }
        };
        let functions = self.functions(relation, &aggregate.aggr_expr, schema, &input.columns)?;
        Ok(self.node(relation, columns, functions))
    }

    fn window(&mut self, window: &Window) -> Result<Node> {
        let Node { relation, columns } = self.number(&window.input)?;
        let schema = window.input.schema();
        let functions = self.functions(relation, &window.window_expr, schema, &columns)?;
        Ok(self.node(relation, columns, functions))
    }

    /// The columns of functions over the rows, or groups, of `relation`; `None` for one that nothing equals.
    fn functions(
        &mut self,
        relation: Relation,
        exprs: &[Expr],
        schema: &DFSchema,
        below: &[ColumnId],
    ) -> Result<Vec<Option<ColumnId>>> {
        let mut columns = Vec::with_capacity(exprs.len());
        for e in exprs {
            let name = |me: &mut Self, column: &Column| me.place(column, schema, below);
            let e = self.renamed(e, &name)?;
            columns.push(e.map(|e| self.column(ColumnKey::Over(relation, e))));
        }
        Ok(columns)
    }

    /// A node of `relation` with these functions behind `columns`.
    fn node(
        &mut self,
        relation: Relation,
        mut columns: Vec<ColumnId>,
        functions: Vec<Option<ColumnId>>,
    ) -> Node {
        let known = functions.iter().all(Option::is_some);
        for function in functions {
            let column = function.unwrap_or_else(|| self.no_column());
            columns.push(column);
        }
        let relation = if known { relation } else { self.no_relation() };
        Node { relation, columns }
    }

    fn limit(&mut self, limit: &Limit, plan: &LogicalPlan) -> Result<Node> {
        let input = self.number(&limit.input)?;
        let schema = limit.input.schema();
        let mut bounds = [None, None];
        for (bound, e) in bounds.iter_mut().zip([&limit.skip, &limit.fetch]) {
            if let Some(e) = e {
                *bound = self.over(e, schema, &input.columns)?;
                if bound.is_none() {
                    return Ok(self.unknown(plan));
                }
            }
        }
        let [skip, fetch] = bounds;
        let relation = self.relation(Key::Limit(input.relation, skip, fetch));
        Ok(Node {
            relation,
            columns: input.columns,
        })
    }

    fn union(&mut self, union: &Union) -> Result<Node> {
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for input in &union.inputs {
            let Node { relation, columns } = self.number(input)?;
            inputs.push((relation, columns));
        }
        let relation = self.relation(Key::Union(inputs));
        Ok(self.positions(relation, 0, union.schema.fields().len()))
    }

    fn join(&mut self, join: &Join, plan: &LogicalPlan) -> Result<Node> {
        let (left, right) = (self.number(&join.left)?, self.number(&join.right)?);
        let mut equal = Vec::with_capacity(join.on.len());
        for (a, b) in &join.on {
            let a = self.over(a, join.left.schema(), &left.columns)?;
            let b = self.over(b, join.right.schema(), &right.columns)?;
            let (Some(a), Some(b)) = (a, b) else {
                return Ok(self.unknown(plan));
            };
            equal.push((a, b));
        }
        let lefts = left.columns.iter().map(|c| ColumnKey::Left(*c));
        let rights = right.columns.iter().map(|c| ColumnKey::Right(*c));
        let both: Vec<ColumnKey> = lefts.chain(rights).collect();
        let both: Vec<ColumnId> = both.into_iter().map(|key| self.column(key)).collect();
        let mut conditions = BTreeSet::new();
        if let Some(filter) = &join.filter {
            let schema = join.left.schema().join(join.right.schema())?;
            for condition in split_conjunction(filter) {
                match self.over(condition, &schema, &both)? {
                    Some(condition) => _ = conditions.insert(condition),
                    None => return Ok(self.unknown(plan)),
                }
            }
        }
        let relation = self.relation(Key::Join(Box::new(JoinKey {
            left: left.relation,
            right: right.relation,
            kind: join.join_type,
            equal,
            conditions,
            nulls: join.null_equality,
            null_aware: join.null_aware,
        })));
        let columns = match join.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti => left.columns,
            JoinType::RightSemi | JoinType::RightAnti => right.columns,
            JoinType::LeftMark => {
                let mark = self.column(ColumnKey::Nth(relation, 0));
                [left.columns, vec![mark]].concat()
            }
            JoinType::RightMark => {
                let mark = self.column(ColumnKey::Nth(relation, 0));
                [right.columns, vec![mark]].concat()
            }
            _ => both,
        };
        Ok(Node { relation, columns })
    }

    fn sorts(
        &mut self,
        sorts: &[SortExpr],
        schema: &DFSchema,
        columns: &[ColumnId],
    ) -> Result<Option<Vec<(ColumnId, bool, bool)>>> {
        let mut all = Vec::with_capacity(sorts.len());
        for sort in sorts {
            match self.over(&sort.expr, schema, columns)? {
                Some(column) => all.push((column, sort.asc, sort.nulls_first)),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    /// The rows of `relation` for which `condition` is true.
    fn and(&mut self, relation: Relation, condition: ColumnId) -> Relation {
        let filtered = self.filtered.get(&relation).cloned();
        let (below, mut conditions) = filtered.unwrap_or((relation, BTreeSet::new()));
        conditions.insert(condition);
        let relation = self.relation(Key::Filter(below, conditions.clone()));
        self.filtered.insert(relation, (below, conditions));
        relation
    }

    /// The column that `e` is over the columns of a plan with this schema; `None` if nothing equals it, as it may
    /// differ each time.
    fn over(
        &mut self,
        e: &Expr,
        schema: &DFSchema,
        columns: &[ColumnId],
    ) -> Result<Option<ColumnId>> {
        self.expr(e, &|me, column| me.place(column, schema, columns))
    }

    fn place(&self, column: &Column, schema: &DFSchema, columns: &[ColumnId]) -> Option<ColumnId> {
        let position = schema.index_of_column(column).ok()?;
        columns.get(position).copied()
    }

    fn expr(
        &mut self,
        e: &Expr,
        name: &dyn Fn(&mut Self, &Column) -> Option<ColumnId>,
    ) -> Result<Option<ColumnId>> {
        let Some(e) = self.renamed(e, name)? else {
            return Ok(None);
        };
        Ok(Some(match number(&e) {
            Some(column) => column,
            None => self.column(ColumnKey::Computed(e)),
        }))
    }

    /// `e` with numbers as the names of its columns and subqueries; `None` if nothing equals it.
    fn renamed(
        &mut self,
        e: &Expr,
        name: &dyn Fn(&mut Self, &Column) -> Option<ColumnId>,
    ) -> Result<Option<Expr>> {
        let mut known = true;
        let done = e.clone().transform_up(|e| {
            let name = match e {
                Expr::Alias(alias) => return Ok(Transformed::yes(*alias.expr)),
                Expr::Column(column) => match name(self, &column) {
                    Some(number) => return Ok(Transformed::yes(named(number))),
                    None => return stop(&mut known, Expr::Column(column)),
                },
                Expr::ScalarSubquery(subquery) => {
                    let node = self.number(&subquery.subquery)?;
                    match (node.columns.first(), &subquery.outer_ref_columns[..]) {
                        (Some(column), []) => format!("{} of {}", column, node.relation),
                        _ => return stop(&mut known, Expr::ScalarSubquery(subquery)),
                    }
                }
                Expr::OuterReferenceColumn(..)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::Placeholder(_) => return stop(&mut known, e),
                e => return Ok(Transformed::no(e)),
            };
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(
                name,
            ))))
        })?;
        Ok((known && !done.data.is_volatile()).then_some(done.data))
    }

    fn relation(&mut self, key: Key) -> Relation {
        if let Some(known) = self.relations.get(&key) {
            return *known;
        }
        self.estimates.add(&key, &mut self.columns, &self.tables);
        let number = self.relations.len();
        self.relations.insert(key, number);
        number
    }

    fn column(&mut self, key: ColumnKey) -> ColumnId {
        self.columns.number(key)
    }

    /// What the column of this number is.
    pub(super) fn key(&self, column: ColumnId) -> Option<ColumnKey> {
        self.columns.key(column)
    }

    /// A relation that no other equals.
    fn no_relation(&mut self) -> Relation {
        self.unknown += 1;
        self.relation(Key::Unknown(self.unknown))
    }

    /// A column that no other equals.
    fn no_column(&mut self) -> ColumnId {
        self.unknown += 1;
        self.column(ColumnKey::Unknown(self.unknown))
    }

    fn unknown(&mut self, plan: &LogicalPlan) -> Node {
        let relation = self.no_relation();
        self.positions(relation, 0, plan.schema().fields().len())
    }

    /// A node with columns known by their positions.
    fn positions(&mut self, relation: Relation, from: usize, to: usize) -> Node {
        let positions = from..to;
        let columns = positions.map(|position| self.column(ColumnKey::Nth(relation, position)));
        Node {
            columns: columns.collect(),
            relation,
        }
    }
}

/// Leaves an expression that nothing equals.
fn stop(known: &mut bool, e: Expr) -> Result<Transformed<Expr>> {
    *known = false;
    Ok(Transformed::new(e, false, TreeNodeRecursion::Stop))
}

/// A column with its number as its name.
pub(super) fn named(column: ColumnId) -> Expr {
    Expr::Column(Column::new_unqualified(format!("#{column}")))
}

/// The number of the column that `e` is no more than.
pub(super) fn number(e: &Expr) -> Option<ColumnId> {
    match e {
        Expr::Column(column) => column.name.strip_prefix('#')?.parse().ok(),
        _ => None,
    }
}

/// The columns in `e`, whose names are their numbers.
pub(super) fn numbers(e: &Expr) -> BTreeSet<ColumnId> {
    let mut all = BTreeSet::new();
    // The closure does not fail.
    let _ = e.apply(|e| {
        all.extend(number(e));
        Ok(TreeNodeRecursion::Continue)
    });
    all
}
