//! How many rows subplans have, and which of them a join multiplies.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_common::JoinType;
use datafusion_expr::LogicalPlan;
use datafusion_expr::TableSource;

use crate::lower::subplans::keys::{ColumnId, ColumnKey, Columns, JoinKey, Key, Relation};
use crate::scan::provider::Provider;

/// The share of rows that filters are assumed to let through.
const SHARE: f64 = 0.2;
/// The groups of a row, as the engine's planner assumes them.
const GROUPS: f64 = 0.25;
/// Rows of what nothing is known of.
const UNKNOWN: f64 = 1000.0;

/// What is known of the rows of a relation.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    /// Their number, estimated.
    pub rows: f64,
    /// Their number without any filters.
    base: f64,
    /// All rows of the tables below, each as often as it is read.
    pub scanned: f64,
    /// Whether a join may have multiplied rows: no key of one side says that a row has one match at most.
    pub multiplies: bool,
    /// Sets of columns whose values no two rows share.
    keys: Vec<BTreeSet<ColumnId>>,
}

impl Estimate {
    fn of(rows: f64) -> Estimate {
        Estimate {
            rows,
            base: rows,
            scanned: rows,
            multiplies: false,
            keys: vec![],
        }
    }

    /// The share of rows that the filters let through.
    fn share(&self) -> f64 {
        (self.rows / self.base.max(1.0)).min(1.0)
    }

    /// Whether no two rows are equal in all of `columns`.
    fn has_key(&self, columns: &BTreeSet<ColumnId>) -> bool {
        self.base <= 1.0 || self.keys.iter().any(|key| key.is_subset(columns))
    }
}

/// What is known of relations, by their numbers.
#[derive(Default)]
pub(super) struct Estimates {
    all: Vec<Estimate>,
}

impl Estimates {
    /// Adds what is known of the next relation, whose inputs have been added before.
    pub fn add(&mut self, key: &Key, columns: &mut Columns, tables: &[Arc<dyn TableSource>]) {
        let estimate = self.of(key, columns, tables);
        self.all.push(estimate);
    }

    fn of(&self, key: &Key, columns: &mut Columns, tables: &[Arc<dyn TableSource>]) -> Estimate {
        match key {
            Key::Table(table) => stored(*table, columns, tables),
            Key::Filter(input, _) => {
                let mut estimate = self.all[*input].clone();
                estimate.rows *= SHARE;
                estimate
            }
            Key::Join(join) => self.joined(join, columns),
            Key::Groups(input, groups) => {
                let input = self.all[*input].clone();
                let share = |rows: f64| {
                    if groups.is_empty() {
                        1.0
                    } else {
                        (rows * GROUPS).max(1.0)
                    }
                };
                Estimate {
                    rows: share(input.rows),
                    base: share(input.base),
                    multiplies: false,
                    keys: vec![groups.clone()],
                    ..input
                }
            }
            Key::Sort(input, _, fetch) => {
                let mut estimate = self.all[*input].clone();
                if let Some(fetch) = fetch {
                    estimate.rows = estimate.rows.min(*fetch as f64);
                }
                estimate
            }
            Key::Sets(input, _) | Key::Limit(input, ..) => Estimate {
                keys: vec![],
                ..self.all[*input].clone()
            },
            Key::Union(inputs) => {
                let all = inputs.iter().map(|(input, _)| &self.all[*input]);
                let mut sum = Estimate::of(0.0);
                for input in all {
                    sum.rows += input.rows;
                    sum.base += input.base;
                    sum.scanned += input.scanned;
                    sum.multiplies |= input.multiplies;
                }
                sum
            }
            Key::Given(plan) => match &**plan {
                LogicalPlan::Values(values) => Estimate::of(values.values.len() as f64),
                _ => Estimate::of(1.0),
            },
            Key::Unknown(_) => Estimate::of(UNKNOWN),
        }
    }

    fn joined(&self, join: &JoinKey, columns: &mut Columns) -> Estimate {
        let (left, right) = (self.all[join.left].clone(), self.all[join.right].clone());
        let left_columns: BTreeSet<ColumnId> = join.equal.iter().map(|(a, _)| *a).collect();
        let right_columns: BTreeSet<ColumnId> = join.equal.iter().map(|(_, b)| *b).collect();
        // Whether a row of the other side has one match at most.
        let (left_is_one, right_is_one) =
            (left.has_key(&left_columns), right.has_key(&right_columns));
        let scanned = left.scanned + right.scanned;
        let below = left.multiplies || right.multiplies;
        let found = |kept: &Estimate, other: &Estimate| kept.rows * other.share();
        let kept = |kept: &Estimate, rows: f64| Estimate {
            rows,
            scanned,
            ..kept.clone()
        };
        let (rows, base, multiplies) = match join.kind {
            JoinType::LeftSemi => return kept(&left, found(&left, &right)),
            JoinType::RightSemi => return kept(&right, found(&right, &left)),
            JoinType::LeftAnti | JoinType::LeftMark => return kept(&left, left.rows),
            JoinType::RightAnti | JoinType::RightMark => return kept(&right, right.rows),
            JoinType::Inner => match (left_is_one, right_is_one) {
                (_, true) => (found(&left, &right), left.base, false),
                (true, false) => (found(&right, &left), right.base, false),
                (false, false) => (left.rows.max(right.rows), left.base.max(right.base), true),
            },
            JoinType::Left => (left.rows, left.base, !right_is_one),
            JoinType::Right => (right.rows, right.base, !left_is_one),
            JoinType::Full => {
                let (rows, base) = (left.rows + right.rows, left.base + right.base);
                (rows, base, !(left_is_one && right_is_one))
            }
        };
        let mut keys = Vec::new();
        let (keep_left, keep_right) = match join.kind {
            JoinType::Inner => (right_is_one, left_is_one),
            JoinType::Left => (right_is_one, false),
            JoinType::Right => (false, left_is_one),
            _ => (false, false),
        };
        if keep_left {
            keys.extend(renamed(&left.keys, ColumnKey::Left, columns));
        }
        if keep_right {
            keys.extend(renamed(&right.keys, ColumnKey::Right, columns));
        }
        Estimate {
            rows,
            base,
            scanned,
            multiplies: multiplies || below,
            keys,
        }
    }

    /// Whether the rows of a relation are few enough to keep them rather than to compute them twice: no join of it
    /// multiplies rows, and it has at most half as many as are read for it.
    pub fn is_small(&self, relation: Relation) -> bool {
        let known = self.all.get(relation);
        known.is_some_and(|known| !known.multiplies && known.rows * 2.0 <= known.scanned)
    }
}

/// What is known of a table.
fn stored(table: usize, columns: &mut Columns, tables: &[Arc<dyn TableSource>]) -> Estimate {
    let provider = tables.get(table);
    let Some(provider) = provider.and_then(|known| known.downcast_ref::<Provider>()) else {
        return Estimate::of(UNKNOWN);
    };
    let stored = provider.table();
    let rows = stored.rows();
    let definition = stored.definition();
    let declared = std::iter::once(&definition.primary_key);
    let declared = declared.chain(definition.keys.iter().map(|key| &key.columns));
    let mut keys: Vec<Vec<usize>> = declared.filter(|key| !key.is_empty()).cloned().collect();
    for column in 0..definition.columns.len() {
        // About as many values are possible as there are rows: numbered rows.
        let numbered = rows..=rows + rows / 8;
        let distinct = stored.statistics(column).distinct;
        if rows > 0 && distinct.is_some_and(|distinct| numbered.contains(&distinct)) {
            keys.push(vec![column]);
        }
    }
    let mut estimate = Estimate::of(rows as f64);
    for key in keys {
        let key = key.into_iter();
        let key = key.map(|column| columns.number(ColumnKey::Stored(table, column)));
        estimate.keys.push(key.collect());
    }
    estimate
}

/// Keys of one side of a join, as columns of the join.
fn renamed(
    keys: &[BTreeSet<ColumnId>],
    side: fn(ColumnId) -> ColumnKey,
    columns: &mut Columns,
) -> Vec<BTreeSet<ColumnId>> {
    let mut all = Vec::with_capacity(keys.len());
    for key in keys {
        let key = key.iter().map(|column| columns.number(side(*column)));
        all.push(key.collect());
    }
    all
}
