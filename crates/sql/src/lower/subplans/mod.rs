//! Subplans that a plan has more than once, such as a common table expression that several parts of a query read. Each
//! is computed once: common subexpression elimination for relations.
//!
//! [`equality`] says which subplans have the same rows. Of the subplans of one relation, one that has all columns of
//! another can stand for it, and what is shared is as large as it can be: what lies below is then no longer there twice.
//!
//! Shared rows are kept in memory until their last reader has them, and readers cannot filter them on their way. So
//! only these are shared:
//!
//! * Aggregates, distinct rows, windows, limits and the first rows of an order: their rows are kept anyway.
//! * Joins, and what is filtered and computed of their rows, if no join of them multiplies rows and if there are at most
//!   half as many rows as are read for them ([`estimates`]).
//! * Joins of which all readers only ask whether there is a row, such as the right sides of semi joins: then the
//!   distinct rows are kept, of which there are no more than such a reader would keep itself.
//!
//! Joins all of whose readers are inner joins are not shared: there they become part of one join, whose order is
//! chosen, and whose other relations reduce them. Bare scans, filtered or not, are never shared.

mod equality;
mod estimates;
mod keys;
mod widen;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion_common::JoinType;
use datafusion_common::Result;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Aggregate, Distinct, Expr, Join, LogicalPlan};

use crate::lower::subplans::equality::Numbering;
use crate::lower::subplans::keys::Relation;

pub(super) use crate::lower::subplans::equality::address;

/// Most columns of which distinct rows are kept: the engine groups by a few only. Without any there is one group always.
const DISTINCT_COLUMNS: usize = 4;

/// The subplans of a plan, and which of them are equal.
#[derive(Default)]
pub(crate) struct Subplans<'p> {
    numbering: Numbering,
    /// Those that may be shared, each behind what it is part of.
    candidates: Vec<Candidate<'p>>,
    /// By the address of the plan.
    places: HashMap<usize, Place>,
    /// Plans that have been made. They stay, as they are known by their addresses.
    widened: Vec<Arc<LogicalPlan>>,
}

/// The first and the last of the numbers that a subplan and all below it have.
type Place = (usize, usize);

/// Who reads the rows of a shared plan: for each, which of its columns.
struct Readers<'p> {
    /// Whether only distinct rows are wanted.
    distinct: bool,
    readers: Vec<(Candidate<'p>, Vec<usize>)>,
}

/// A subplan that may be shared.
#[derive(Clone, Copy, Debug)]
struct Candidate<'p> {
    plan: &'p LogicalPlan,
    relation: Relation,
    place: Place,
    is_kept: bool,
    reader: Reader,
}

/// What the reader of a subplan's rows makes of them.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// Whether it only asks whether there is a row: how often does not matter to it.
    is_set: bool,
    /// Whether it is an inner join.
    is_inner: bool,
}

/// What is shared in a plan.
#[derive(Default)]
pub(crate) struct Common<'p> {
    pub shared: Vec<SharedPlan<'p>>,
    /// By the address of the subplan that is not computed by itself: what is read in its place.
    readers: HashMap<usize, Reading>,
}

/// A subplan that is computed once.
#[derive(Clone, Debug)]
pub(crate) struct SharedPlan<'p> {
    pub plan: Single<'p>,
    /// Whether only its distinct rows are wanted.
    pub distinct: bool,
}

/// A subplan that stands for others with the same rows.
#[derive(Clone, Debug)]
pub(crate) enum Single<'p> {
    /// One of the plan.
    Own(&'p LogicalPlan),
    /// One of them with all columns that any of them has.
    Widened(Arc<LogicalPlan>),
}

impl Single<'_> {
    pub(crate) fn plan(&self) -> &LogicalPlan {
        match self {
            Single::Own(plan) => plan,
            Single::Widened(plan) => plan,
        }
    }
}

/// How the rows of a shared subplan are read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// The position of the shared plan.
    pub shared: usize,
    /// For each column of the reader, its position among the columns of the shared plan.
    pub columns: Vec<usize>,
}

impl<'p> Subplans<'p> {
    /// Looks for equal subplans of `plan`.
    ///
    /// # Errors
    /// Those of looking for columns by their names.
    pub(crate) fn of(plan: &'p LogicalPlan) -> Result<Subplans<'p>> {
        let mut subplans = Subplans::default();
        // What reads no table twice has nothing in common, and most queries are small.
        if reads_twice(plan)? {
            subplans.numbering.number(plan)?;
            let whole = Reader {
                is_set: false,
                is_inner: false,
            };
            subplans.visit(plan, whole, &mut 0);
        }
        Ok(subplans)
    }

    /// Numbers `plan` and all below it by their places, and gathers what may be shared.
    fn visit(&mut self, plan: &'p LogicalPlan, reader: Reader, next: &mut usize) {
        let Some(node) = self.numbering.nodes.get(&address(plan)) else {
            return;
        };
        let (relation, first) = (node.relation, *next);
        *next += 1;
        let is_kept = is_kept(plan);
        let at = self.candidates.len();
        let is_candidate = is_kept || is_joined(plan);
        if is_candidate {
            self.candidates.push(Candidate {
                plan,
                relation,
                place: (first, first),
                is_kept,
                reader,
            });
        }
        for subquery in subqueries(plan) {
            let value = Reader {
                is_set: false,
                is_inner: false,
            };
            self.visit(subquery, value, next);
        }
        for (position, input) in plan.inputs().into_iter().enumerate() {
            self.visit(input, below(plan, position, reader), next);
        }
        let place = (first, *next - 1);
        if is_candidate {
            self.candidates[at].place = place;
        }
        self.places.insert(address(plan), place);
    }

    /// What is to be computed once in `plan`, which is one of the subplans.
    pub(crate) fn common(&mut self, plan: &LogicalPlan) -> Common<'p> {
        let mut common = Common::default();
        let Some(place) = self.places.get(&address(plan)) else {
            return common;
        };
        let mut equal: BTreeMap<Relation, Vec<Candidate<'p>>> = BTreeMap::new();
        for candidate in &self.candidates {
            if is_within(candidate.place, *place) {
                let all = equal.entry(candidate.relation).or_default();
                all.push(*candidate);
            }
        }
        let mut read = Vec::new();
        // What reads another relation has a greater number: the largest first.
        for candidates in equal.into_values().rev() {
            if candidates.len() > 1 {
                self.share(candidates, &mut common, &mut read);
            }
        }
        common
    }

    /// Shares subplans of one relation. `read` are the places of subplans whose rows are read: what lies there is
    /// not computed any more.
    fn share(
        &mut self,
        mut candidates: Vec<Candidate<'p>>,
        common: &mut Common<'p>,
        read: &mut Vec<Place>,
    ) {
        candidates.retain(|candidate| !read.iter().any(|place| is_within(candidate.place, *place)));
        // What is kept anyway with the most columns; of joins what has the fewest.
        candidates.sort_by_key(|candidate| {
            let width = candidate.plan.schema().fields().len();
            let most = if candidate.is_kept {
                usize::MAX - width
            } else {
                width
            };
            (!candidate.is_kept, most, candidate.place)
        });
        if let Some((plan, readers)) = self.widened(&candidates) {
            common.add(Single::Widened(plan), readers, read);
            return;
        }
        // The places of subplans that read shared rows, or give them.
        let mut done: Vec<Place> = Vec::new();
        for from in &candidates {
            if !is_apart(from, &done) {
                continue;
            }
            let own = (0..from.plan.schema().fields().len()).collect();
            let (mut taken, mut readers) = (vec![from.place], vec![(*from, own)]);
            for other in outer_first(&candidates) {
                if is_apart(&other, &done)
                    && is_apart(&other, &taken)
                    && let Some(columns) = self.columns(from.plan, other.plan)
                {
                    taken.push(other.place);
                    readers.push((other, columns));
                }
            }
            if readers.len() > 1
                && let Some(distinct) = self.form(from, &readers)
            {
                common.add(Single::Own(from.plan), Readers { distinct, readers }, read);
                done.append(&mut taken);
            }
        }
    }

    /// The outermost of `candidates`, which have the same rows, and one of them that has all columns that any of them
    /// has; `None` if one has them already, or none can.
    fn widened(&mut self, candidates: &[Candidate<'p>]) -> Option<(Arc<LogicalPlan>, Readers<'p>)> {
        let mut taken: Vec<Place> = Vec::new();
        let mut readers = Vec::new();
        for candidate in outer_first(candidates) {
            if is_apart(&candidate, &taken) {
                taken.push(candidate.place);
                readers.push((candidate, vec![]));
            }
        }
        let first = candidates
            .iter()
            .find(|first| taken.contains(&first.place))?;
        let has_all = |(other, _): &(Candidate<'_>, Vec<usize>)| {
            self.columns(first.plan, other.plan).is_some()
        };
        if readers.len() < 2 || readers.iter().all(has_all) {
            return None;
        }
        // More columns have more distinct rows.
        let distinct = self.form(first, &readers).filter(|distinct| !distinct)?;
        let mut wanted = BTreeSet::new();
        for (reader, _) in &readers {
            wanted.extend(&self.numbering.nodes.get(&address(reader.plan))?.columns);
        }
        let plan = self.numbering.widened(first.plan, &wanted)?;
        // Its address means this plan for as long as there are addresses.
        self.widened.push(Arc::clone(&plan));
        for (reader, columns) in &mut readers {
            *columns = self.columns(&plan, reader.plan)?;
        }
        Some((plan, Readers { distinct, readers }))
    }

    /// Whether the distinct rows of `from` are shared, or all; `None` if it is not worth it for these readers.
    fn form(&self, from: &Candidate<'_>, readers: &[(Candidate<'_>, Vec<usize>)]) -> Option<bool> {
        let all = |is: fn(&Reader) -> bool| readers.iter().all(|(other, _)| is(&other.reader));
        if from.is_kept {
            return Some(false);
        }
        if all(|reader| reader.is_inner) {
            return None;
        }
        let width = from.plan.schema().fields().len();
        if all(|reader| reader.is_set) && (1..=DISTINCT_COLUMNS).contains(&width) {
            return Some(true);
        }
        let is_small = self.numbering.estimates.is_small(from.relation);
        is_small.then_some(false)
    }

    /// For each column of `reader` the position of the same column of `from`; `None` if that does not have all.
    pub(crate) fn columns(&self, from: &LogicalPlan, reader: &LogicalPlan) -> Option<Vec<usize>> {
        let node = |plan: &LogicalPlan| self.numbering.nodes.get(&address(plan));
        let (from_node, node) = (node(from)?, node(reader)?);
        if from_node.relation != node.relation {
            return None;
        }
        let (own, fields) = (from.schema().fields(), reader.schema().fields());
        let mut columns = Vec::with_capacity(node.columns.len());
        for (column, field) in node.columns.iter().zip(fields) {
            let mut known = from_node.columns.iter().zip(own);
            columns.push(known.position(|(other, known)| {
                other == column
                    && known.data_type() == field.data_type()
                    && known.is_nullable() == field.is_nullable()
            })?);
        }
        Some(columns)
    }
}

impl<'p> Common<'p> {
    /// Adds a plan and who reads its rows; notes in `read` which places are not computed any more.
    fn add(&mut self, plan: Single<'p>, readers: Readers<'p>, read: &mut Vec<Place>) {
        let shared = self.shared.len();
        for (reader, columns) in readers.readers {
            if !std::ptr::eq(reader.plan, plan.plan()) {
                read.push(reader.place);
            }
            let reading = Reading { shared, columns };
            self.readers.insert(address(reader.plan), reading);
        }
        self.shared.push(SharedPlan {
            plan,
            distinct: readers.distinct,
        });
    }

    /// How the rows of `plan` are read, if they are those of a shared plan.
    pub(crate) fn reading(&self, plan: &LogicalPlan) -> Option<&Reading> {
        self.readers.get(&address(plan))
    }

    /// The shared plans that are no part of the plan that shares them.
    pub(crate) fn made(&self) -> impl Iterator<Item = &LogicalPlan> {
        self.shared.iter().filter_map(|shared| match &shared.plan {
            Single::Widened(plan) => Some(&**plan),
            Single::Own(_) => None,
        })
    }

    /// Whether `plan` is not computed, as its rows are those of another.
    pub(crate) fn is_elsewhere(&self, plan: &LogicalPlan) -> bool {
        let shared = self
            .reading(plan)
            .map(|reading| &self.shared[reading.shared]);
        shared.is_some_and(|shared| !std::ptr::eq(shared.plan.plan(), plan))
    }
}

/// Whether all of the first place is within the second.
fn is_within(inner: Place, outer: Place) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// Whether a subplan has no part in any of `places`, nor they in it.
fn is_apart(candidate: &Candidate<'_>, places: &[Place]) -> bool {
    let own = candidate.place;
    let mut overlapping = places.iter();
    !overlapping.any(|place| is_within(own, *place) || is_within(*place, own))
}

/// In the order of the plan: a subplan comes before those within it.
fn outer_first<'p>(candidates: &[Candidate<'p>]) -> Vec<Candidate<'p>> {
    let mut all = candidates.to_vec();
    all.sort_by_key(|candidate| candidate.place);
    all
}

/// Whether a table is read in several places, or two tables of the same columns.
fn reads_twice(plan: &LogicalPlan) -> Result<bool> {
    let (mut tables, mut twice) = (Vec::new(), false);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let columns = scan.source.schema();
            twice |= tables.contains(&columns);
            tables.push(columns);
        }
        Ok(if twice {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(twice)
}

/// Whether the rows of `plan` are in memory before the first of them is read.
fn is_kept(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_some(),
        _ => false,
    }
}

/// Whether `plan` is a join, or what is filtered and computed of its rows.
fn is_joined(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(_) => true,
        LogicalPlan::Projection(projection) => is_joined_below(&projection.input),
        LogicalPlan::Filter(filter) => is_joined_below(&filter.input),
        _ => false,
    }
}

fn is_joined_below(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => is_joined_below(&alias.input),
        other => is_joined(other),
    }
}

/// What the input at `position` of `plan` is read by, if `reader` reads `plan`.
fn below(plan: &LogicalPlan, position: usize, reader: Reader) -> Reader {
    let (is_set, is_inner) = match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            return reader;
        }
        LogicalPlan::Sort(sort) => (reader.is_set && sort.fetch.is_none(), false),
        LogicalPlan::Union(_) => (reader.is_set, false),
        LogicalPlan::Distinct(Distinct::All(_)) => (true, false),
        LogicalPlan::Aggregate(Aggregate { aggr_expr, .. }) => (aggr_expr.is_empty(), false),
        LogicalPlan::Join(join) => (
            is_asked(join, position) || reader.is_set,
            join.join_type == JoinType::Inner,
        ),
        _ => (false, false),
    };
    Reader { is_set, is_inner }
}

/// Whether a join only asks whether its input at `position` has a row.
fn is_asked(join: &Join, position: usize) -> bool {
    match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => position == 1,
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => position == 0,
        _ => false,
    }
}

/// The plans in the expressions of `plan`, where they give a single value.
fn subqueries(plan: &LogicalPlan) -> Vec<&LogicalPlan> {
    let exprs: Vec<&Expr> = match plan {
        LogicalPlan::TableScan(scan) => scan.filters.iter().collect(),
        LogicalPlan::Filter(filter) => vec![&filter.predicate],
        LogicalPlan::Projection(projection) => projection.expr.iter().collect(),
        LogicalPlan::Window(window) => window.window_expr.iter().collect(),
        LogicalPlan::Sort(sort) => sort.expr.iter().map(|sort| &sort.expr).collect(),
        LogicalPlan::Aggregate(aggregate) => {
            let groups = aggregate.group_expr.iter();
            groups.chain(&aggregate.aggr_expr).collect()
        }
        LogicalPlan::Join(join) => {
            let equal = join.on.iter().flat_map(|(a, b)| [a, b]);
            equal.chain(&join.filter).collect()
        }
        _ => vec![],
    };
    let mut found = Vec::new();
    for e in exprs {
        // The closure does not fail.
        let _ = e.apply(|e| {
            if let Expr::ScalarSubquery(subquery) = e {
                found.push(&*subquery.subquery);
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    found
}
