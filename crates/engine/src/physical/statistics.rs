//! Cardinality estimates.

use crate::logical::relation::{Query, Rel};
use crate::vector::value::Var;

/// Selectivity of a predicate about which nothing is known.
const GUESS: f64 = 0.2;
/// Selectivity of a predicate over groups (HAVING), which usually selects few of them.
const GUESS_GROUPS: f64 = 0.05;

/// The estimated rows of `rel`, and of `rel` without its predicates.
pub(crate) fn expected(rel: &Rel) -> (f64, f64) {
    match rel {
        Rel::Scan(scan) => (scan.expected.max(1.0), (scan.table.rows() as f64).max(1.0)),
        Rel::Read(reading) => (reading.rows.max(1.0), reading.rows.max(1.0)),
        Rel::Values { batch, .. } => (batch.num_rows() as f64, batch.num_rows() as f64),
        Rel::Filter { input, .. } => {
            let (rows, base) = expected(input);
            let groups = match &**input {
                Rel::Shared { input, .. } => matches!(**input, Rel::Fold { .. }),
                input => matches!(input, Rel::Fold { .. }),
            };
            let share = if groups { GUESS_GROUPS } else { GUESS };
            (rows * share, base)
        }
        Rel::Map { input, .. } | Rel::Window { input, .. } | Rel::Expand { input, .. } => {
            expected(input)
        }
        Rel::Reduced(reduced) => expected(&reduced.input),
        Rel::Shared { input, .. } => expected(input),
        Rel::Join { inputs, .. } => expected_of_join(&inputs.iter().collect::<Vec<_>>()),
        Rel::Semi { input, other, .. } => {
            let (rows, base) = expected(input);
            let (some, all) = expected(other);
            (rows * (some / all).clamp(0.01, 1.0).max(0.05), base)
        }
        Rel::AsOf(join) => expected(&join.left),
        Rel::Left { left, right, .. } | Rel::Full { left, right, .. } => {
            let (left, right) = (expected(left), expected(right));
            (left.0.max(right.0), left.1.max(right.1))
        }
        Rel::Fold { input, keys, .. } => {
            let (rows, base) = expected(input);
            if keys.is_empty() {
                (1.0, 1.0)
            } else {
                ((rows / 4.0).max(1.0), (base / 4.0).max(1.0))
            }
        }
        Rel::Sort { input, fetch, .. } => {
            let (rows, base) = expected(input);
            (fetch.map_or(rows, |n| rows.min(n as f64)), base)
        }
        Rel::Union { inputs, .. } => inputs.iter().fold((0.0, 0.0), |sum, (input, _)| {
            let (rows, base) = expected(input);
            (sum.0 + rows, sum.1 + base)
        }),
    }
}

/// The estimated rows of an inner join of `inputs`, with and without their predicates: each row of the largest has one match
/// in each other one.
pub(crate) fn expected_of_join(inputs: &[&Rel]) -> (f64, f64) {
    let all: Vec<(f64, f64)> = inputs.iter().map(|rel| expected(rel)).collect();
    let root = (0..all.len())
        .max_by(|a, b| all[*a].1.total_cmp(&all[*b].1))
        .unwrap_or(0);
    let share = |i: usize| (all[i].0 / all[i].1).min(1.0);
    let others: f64 = (0..all.len()).filter(|i| *i != root).map(share).product();
    let root = all.get(root).copied().unwrap_or((1.0, 1.0));
    (root.0 * others, root.1)
}

/// A relation is found by a key of its own if a row is expected to have fewer matches than this.
pub(crate) const ONE: f64 = 1.5;

/// How many rows of `rel`, without its predicates, are expected to match one key: its rows by the number of values that its vectors
/// `keys` can have.
pub(crate) fn fan_out(query: &Query, rel: &Rel, keys: &[Var]) -> f64 {
    if is_key(rel, keys) {
        return 1.0;
    }
    let rows = expected(rel).1.max(1.0);
    let values: f64 = keys
        .iter()
        .map(|var| query.ty(*var).most_values())
        .product();
    rows / values.clamp(1.0, rows)
}

/// Whether `vars` are known to be unique in `rel`: they include a declared key, the row ids, or all grouping keys.
pub(crate) fn is_key(rel: &Rel, vars: &[Var]) -> bool {
    match rel {
        Rel::Scan(scan) => {
            let definition = scan.table.definition();
            let has = |column: &usize| {
                let var = scan.columns.iter().find(|(_, own)| own == column);
                var.is_some_and(|(var, _)| vars.contains(var))
            };
            let declared = std::iter::once(&definition.primary_key);
            let mut keys = declared.chain(definition.keys.iter().map(|key| &key.columns));
            let by_row = scan.row_ids.is_some_and(|row| vars.contains(&row));
            by_row || keys.any(|key| !key.is_empty() && key.iter().all(has))
        }
        Rel::Filter { input, .. }
        | Rel::Map { input, .. }
        | Rel::Window { input, .. }
        | Rel::Sort { input, .. }
        | Rel::Semi { input, .. } => is_key(input, vars),
        Rel::Reduced(reduced) => is_key(&reduced.input, vars),
        // Each row has at most one match.
        Rel::AsOf(join) => is_key(&join.left, vars),
        Rel::Shared { input, vars: own } => {
            let inner = own.iter().filter(|(_, here)| vars.contains(here));
            let inner: Vec<Var> = inner.map(|(there, _)| *there).collect();
            is_key(input, &inner)
        }
        Rel::Fold { keys, folds, .. } => {
            let one = !folds.iter().any(|fold| fold.function.is_of_many());
            one && keys.iter().all(|key| vars.contains(key))
        }
        Rel::Read(_)
        | Rel::Expand { .. }
        | Rel::Values { .. }
        | Rel::Join { .. }
        | Rel::Left { .. }
        | Rel::Full { .. }
        | Rel::Union { .. } => false,
    }
}
