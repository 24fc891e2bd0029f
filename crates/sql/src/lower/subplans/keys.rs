//! What relations and columns are known by.

use std::collections::{BTreeSet, HashMap};

use datafusion_common::{JoinType, NullEquality};
use datafusion_expr::{Expr, LogicalPlan};

/// The number of a relation: greater than those of the relations that it reads.
pub(super) type Relation = usize;

/// The number of a column of relations.
pub(super) type ColumnId = usize;

/// What a relation is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// All rows of the table of this number.
    Table(usize),
    Filter(Relation, BTreeSet<ColumnId>),
    Join(Box<JoinKey>),
    /// A row for each group, or each distinct row.
    Groups(Relation, BTreeSet<ColumnId>),
    /// Grouping sets.
    Sets(Relation, Vec<Option<ColumnId>>),
    Sort(Relation, Vec<(ColumnId, bool, bool)>, Option<usize>),
    Limit(Relation, Option<ColumnId>, Option<ColumnId>),
    Union(Vec<(Relation, Vec<ColumnId>)>),
    /// Rows that the plan contains.
    Given(Box<LogicalPlan>),
    /// Equal to no other.
    Unknown(usize),
}

/// What a join is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct JoinKey {
    pub left: Relation,
    pub right: Relation,
    pub kind: JoinType,
    /// Of the left input, and of the right one.
    pub equal: Vec<(ColumnId, ColumnId)>,
    /// Over columns of [`ColumnKey::Left`] and [`ColumnKey::Right`].
    pub conditions: BTreeSet<ColumnId>,
    pub nulls: NullEquality,
    pub null_aware: bool,
}

/// What a column of a relation is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ColumnKey {
    /// A column of a table, by their positions.
    Stored(usize, usize),
    /// A column of the left input of a join.
    Left(ColumnId),
    /// A column of the right input of a join.
    Right(ColumnId),
    /// An expression over columns that have numbers as names.
    Computed(Expr),
    /// An aggregate or a window function over the rows, or groups, of this relation.
    Over(Relation, Expr),
    /// A column of this relation, by its position.
    Nth(Relation, usize),
    /// Equal to no other.
    Unknown(usize),
}

/// The rows of a plan, and the column of each field of its schema.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub relation: Relation,
    pub columns: Vec<ColumnId>,
}

/// The numbers of columns.
#[derive(Default)]
pub(super) struct Columns {
    numbers: HashMap<ColumnKey, ColumnId>,
}

impl Columns {
    /// The number of a column, a new one if it is not known yet.
    pub fn number(&mut self, key: ColumnKey) -> ColumnId {
        let next = self.numbers.len();
        *self.numbers.entry(key).or_insert(next)
    }

    /// What the column of this number is.
    pub fn key(&self, number: ColumnId) -> Option<ColumnKey> {
        let mut all = self.numbers.iter();
        let found = all.find(|(_, other)| **other == number);
        found.map(|(key, _)| key.clone())
    }
}
