//! Cardinality estimates: from what types and statistics tell, and from [samples](crate::logical::samples) of the tables, if these
//! are known.

use crate::logical::relation::{Query, Rel, Scan};
use crate::logical::samples::ScanSample;
use crate::physical::key_counts::KeyCounts;
use crate::vector::value::{Kind, Var};

/// Selectivity of a predicate about which nothing is known.
pub(crate) const GUESS: f64 = 0.2;
/// Selectivity of a predicate over groups (HAVING), which usually selects few of them.
const GUESS_GROUPS: f64 = 0.05;
/// Fewer values than this share of others cannot be matches of them all.
const MOST: f64 = 0.5;
/// Rows of a sample tell a share if they are at least so many.
const ENOUGH: usize = 32;

/// The share of all rows counts as much as that among so many rows.
const PRIOR: f64 = 4.0;

/// The estimated rows of `rel`, and of `rel` without its predicates.
pub(crate) fn expected(query: &Query, rel: &Rel) -> (f64, f64) {
    match rel {
        Rel::Scan(scan) => (
            expected_of_scan(query, scan),
            (scan.table.rows() as f64).max(1.0),
        ),
        Rel::Read(reading) => (reading.rows.max(1.0), reading.rows.max(1.0)),
        Rel::Values { batch, .. } => (batch.num_rows() as f64, batch.num_rows() as f64),
        Rel::Filter { input, .. } => {
            if let Some(sampled) = Sampled::of(query, rel) {
                return (sampled.rows(), sampled.sample.table_rows);
            }
            let (rows, base) = expected(query, input);
            let groups = match &**input {
                Rel::Shared { input, .. } => matches!(**input, Rel::Fold { .. }),
                input => matches!(input, Rel::Fold { .. }),
            };
            let share = if groups { GUESS_GROUPS } else { GUESS };
            (rows * share, base)
        }
        Rel::Map { input, .. } | Rel::Window { input, .. } | Rel::Expand { input, .. } => {
            expected(query, input)
        }
        Rel::Reduced(reduced) => expected(query, &reduced.input),
        Rel::Shared { input, .. } => expected(query, input),
        Rel::Join { inputs, equal, .. } => {
            expected_of_join(query, &inputs.iter().collect::<Vec<_>>(), equal)
        }
        Rel::Semi {
            input,
            other,
            equal,
            anti,
            ..
        } => {
            let (rows, base) = expected(query, input);
            let share = match reached(query, input, other, equal) {
                Some(share) if *anti => 1.0 - share.min(1.0),
                Some(share) => share,
                None => {
                    let (some, all) = expected(query, other);
                    some / all
                }
            };
            (rows * share.clamp(0.05, 1.0), base)
        }
        Rel::AsOf(join) => expected(query, &join.left),
        Rel::Left { left, right, .. } | Rel::Full { left, right, .. } => {
            let (left, right) = (expected(query, left), expected(query, right));
            (left.0.max(right.0), left.1.max(right.1))
        }
        Rel::Fold { input, keys, .. } => {
            let (rows, base) = expected(query, input);
            let groups = |rows| groups(query, keys, rows);
            (groups(rows), groups(base))
        }
        Rel::Sort { input, fetch, .. } => {
            let (rows, base) = expected(query, input);
            (fetch.map_or(rows, |n| rows.min(n as f64)), base)
        }
        Rel::Union { inputs, .. } => inputs.iter().fold((0.0, 0.0), |sum, (input, _)| {
            let (rows, base) = expected(query, input);
            (sum.0 + rows, sum.1 + base)
        }),
    }
}

/// The rows that the own filters of a scan are expected to leave.
fn expected_of_scan(query: &Query, scan: &Scan) -> f64 {
    let sampled = Sampled::of_scan(query, scan, 0);
    sampled.map_or(scan.expected.max(1.0), |sampled| sampled.rows())
}

/// The rows of a scan that are expected to pass its own filters and those that stand above it in the query.
pub(crate) fn expected_after_all(query: &Query, scan: &Scan) -> f64 {
    let sampled = Sampled::of_scan(query, scan, usize::MAX);
    sampled.map_or(scan.expected, |sampled| sampled.rows())
}

/// The groups that `rows` rows are expected to have by `keys`.
fn groups(query: &Query, keys: &[Var], rows: f64) -> f64 {
    if keys.is_empty() {
        return 1.0;
    }
    let most = |var: Var| query.ty(var).most_values();
    let (values, are_known) = query.samples.combinations(keys, &most);
    let is_sampled = |var: &Var| query.samples.column(*var).is_some();
    if are_known && keys.iter().any(is_sampled) {
        drawn(values, rows).max(1.0)
    } else {
        (rows / 4.0).max(1.0)
    }
}

/// Whether the rows of `rel` are expected to have at least `many` groups by `keys`. If samples do not tell that of each key: whether
/// types allow so many, and there are at least `rows` rows.
pub(crate) fn has_many_groups(
    query: &Query,
    rel: &Rel,
    keys: &[Var],
    (many, rows): (f64, f64),
) -> bool {
    let is_sampled = |var: &Var| {
        let column = query.samples.column(*var);
        column.is_some_and(|(_, column)| column.distinct.is_some())
    };
    let left = expected(query, rel).0;
    let is_known = left >= rows || keys.iter().all(is_sampled);
    is_known && drawn(values(query, keys), left) >= many
}

/// How many of `values` values `rows` rows are expected to have, if each has one of them at random.
fn drawn(values: f64, rows: f64) -> f64 {
    let values = values.max(1.0);
    (values * -(-rows / values).exp_m1()).min(rows)
}

/// The estimated rows of an inner join of `inputs`, with and without their predicates: each row of the largest that is not found by
/// a key of its own has one match in each other one.
pub(crate) fn expected_of_join(query: &Query, inputs: &[&Rel], equal: &[(Var, Var)]) -> (f64, f64) {
    let all: Vec<(f64, f64)> = inputs.iter().map(|rel| expected(query, rel)).collect();
    let mut largest: Vec<usize> = (0..all.len()).collect();
    largest.sort_by(|a, b| all[*b].1.total_cmp(&all[*a].1));
    let first = largest.first().copied().unwrap_or(0);
    let mut roots = largest.iter().copied();
    let root = roots.find(|place| !is_dimension(query, inputs, *place, equal));
    let root = root.unwrap_or(first);
    let share = |i: usize| {
        let found = reached_from_any(query, inputs, i, equal);
        found.unwrap_or_else(|| (all[i].0 / all[i].1).min(1.0))
    };
    let others: f64 = (0..all.len()).filter(|i| *i != root).map(share).product();
    let root = all.get(root).copied().unwrap_or((1.0, 1.0));
    (root.0 * others, root.1)
}

/// Whether another input, of which a key has several rows, finds the rows of that at `place` by a key that is unique there.
fn is_dimension(query: &Query, inputs: &[&Rel], place: usize, equal: &[(Var, Var)]) -> bool {
    let mut others = (0..inputs.len()).filter(|other| *other != place);
    others.any(|other| {
        let pairs = pairs_of(inputs[other], inputs[place], equal);
        let (there, own): (Vec<Var>, Vec<Var>) = pairs.into_iter().unzip();
        !own.is_empty()
            && fan_out(query, inputs[place], &own) < ONE
            && fan_out(query, inputs[other], &there) >= ONE
    })
}

/// A relation is found by a key of its own if a row is expected to have fewer matches than this.
pub(crate) const ONE: f64 = 1.5;

/// How many rows of `rel`, without its predicates, are expected to match one key, which its vectors `keys` have: its rows by the
/// number of values that these are expected to have.
pub(crate) fn fan_out(query: &Query, rel: &Rel, keys: &[Var]) -> f64 {
    if is_key(rel, keys) {
        return 1.0;
    }
    let rows = match Sampled::of(query, rel) {
        Some(sampled) => sampled.sample.table_rows,
        None => expected(query, rel).1.max(1.0),
    };
    let values = values(query, keys);
    rows / values.clamp(1.0, rows)
}

/// The share of the rows of `rel` that are expected to have a value in each of `vars`.
pub(crate) fn not_null(query: &Query, rel: &Rel, vars: &[Var]) -> f64 {
    let Some(sampled) = Sampled::of(query, rel) else {
        return 1.0;
    };
    let columns = &sampled.sample.columns;
    let of = |var: &Var| columns.get(&query.samples.origin(*var))?.valid.as_deref();
    let known: Vec<&[bool]> = vars.iter().filter_map(of).collect();
    let Some(rows) = known.iter().map(|valid| valid.len()).min() else {
        return 1.0;
    };
    let has_all = |row: &usize| known.iter().all(|valid| valid[*row]);
    let all = (0..rows).filter(has_all).count() as f64 / rows.max(1) as f64;
    let Some(passing) = sampled.sample.passing(sampled.conditions) else {
        return all;
    };
    let left = || (0..rows).filter(|row| passing.get(*row) == Some(&true));
    let (found, count) = (left().filter(has_all).count(), left().count());
    (found as f64 + PRIOR * all) / (count as f64 + PRIOR)
}

/// Whether it is known how many rows of `rel` have a value of `keys`: by a declared key, or by samples.
pub(crate) fn is_fan_out_known(query: &Query, rel: &Rel, keys: &[Var]) -> bool {
    is_key(rel, keys) || keys.iter().all(|var| is_sampled(query, *var))
}

/// Whether a sample tells how many values a vector has.
fn is_sampled(query: &Query, var: Var) -> bool {
    let column = query.samples.column(var);
    column.is_some_and(|(_, column)| column.distinct.is_some())
}

/// How many combinations of values `vars` are expected to have, in their tables.
pub(crate) fn values(query: &Query, vars: &[Var]) -> f64 {
    let most = |var: Var| query.ty(var).most_values();
    query.samples.combinations(vars, &most).0
}

/// The scan below filters and maps, with its sample.
struct Sampled<'q> {
    sample: &'q ScanSample,
    /// How many of the conditions of the sample hold.
    conditions: usize,
    /// How many more there are.
    more: usize,
}

impl<'q> Sampled<'q> {
    /// `rel`, if it is a scan of a table of which there is a sample, below filters and maps.
    fn of(query: &'q Query, rel: &Rel) -> Option<Sampled<'q>> {
        let (mut rel, mut filters) = (rel, 0);
        loop {
            match rel {
                Rel::Filter { input, .. } => {
                    filters += 1;
                    rel = input;
                }
                Rel::Map { input, .. } => rel = input,
                Rel::Scan(scan) => return Sampled::of_scan(query, scan, filters),
                _ => return None,
            }
        }
    }

    fn of_scan(query: &'q Query, scan: &Scan, filters: usize) -> Option<Sampled<'q>> {
        let (var, _) = scan.columns.first()?;
        let sample = &query.samples.scans[*query.samples.of.get(var)?];
        let known = sample.conditions.len() - sample.own;
        let more = match filters {
            usize::MAX => 0,
            filters => filters.saturating_sub(known),
        };
        Some(Sampled {
            sample,
            conditions: sample.own + filters.min(known),
            more,
        })
    }

    fn guess(&self) -> f64 {
        GUESS.powi(i32::try_from(self.more).unwrap_or(i32::MAX))
    }

    fn rows(&self) -> f64 {
        let share = self.sample.share(self.conditions, None);
        (self.sample.table_rows * share * self.guess()).max(1.0)
    }

    /// The rows of the sample whose vectors have values within the bounds of those that they are compared with; `None` if all
    /// have.
    fn inside(&self, query: &Query, pairs: &[(Var, Var)]) -> Option<Vec<bool>> {
        let is_number = |var: Var| query.ty(var).kind == Kind::Int;
        let mut inside: Option<Vec<bool>> = None;
        for (there, own) in pairs {
            let ((low, high), (least, greatest)) = (query.ty(*there).bounds, query.ty(*own).bounds);
            let is_narrower = low > least || high < greatest;
            if !is_narrower || !is_number(*there) || !is_number(*own) {
                continue;
            }
            let origin = query.samples.origin(*own);
            let column = self.sample.columns.get(&origin);
            let Some(keys) = column.and_then(|column| column.keys.as_ref()) else {
                continue;
            };
            let inside = inside.get_or_insert_with(|| vec![true; self.sample.rows]);
            for (is_in, key) in inside.iter_mut().zip(keys) {
                let key = i128::from(*key as i64);
                *is_in &= low <= key && key <= high;
            }
        }
        inside
    }
}

/// How many rows of `child` with its predicates are expected to match a row of `parent`, by how many do without them, where `pairs`
/// of vectors are equal: what is told by the range of keys that the parent has, or by its own keys. `None` if nothing tells.
pub(crate) fn reached(
    query: &Query,
    parent: &Rel,
    child: &Rel,
    pairs: &[(Var, Var)],
) -> Option<f64> {
    let contained = contained(query, pairs);
    match reached_by_keys(query, parent, child, pairs) {
        Some(share) => Some(share * contained.unwrap_or(1.0)),
        None => contained.map(|contained| {
            let (rows, base) = expected(query, child);
            contained * (rows / base).min(1.0)
        }),
    }
}

/// The share of keys that can have a match, as there are fewer values on the side of the child: returns of a tenth of all sales. `None`
/// if most can.
fn contained(query: &Query, pairs: &[(Var, Var)]) -> Option<f64> {
    let (here, own): (Vec<Var>, Vec<Var>) = pairs.iter().copied().unzip();
    if pairs.is_empty() || !here.iter().chain(&own).all(|var| is_sampled(query, *var)) {
        return None;
    }
    let share = values(query, &own) / values(query, &here).max(1.0);
    (share < MOST).then_some(share)
}

fn reached_by_keys(query: &Query, parent: &Rel, child: &Rel, pairs: &[(Var, Var)]) -> Option<f64> {
    let sampled = Sampled::of(query, child)?;
    let sample = sampled.sample;
    if let [pair] = pairs
        && sample.is_complete
        && sampled.conditions > 0
        && let Some(share) = looked_up(query, &sampled, parent, *pair)
    {
        return Some(share * sampled.guess());
    }
    let inside = sampled.inside(query, pairs)?;
    let count = inside.iter().filter(|is_in| **is_in).count();
    if count == inside.len() {
        return None;
    }
    if count >= ENOUGH {
        let share = sample.share(sampled.conditions, Some(&inside));
        return Some(share * sampled.guess());
    }
    // Few rows tell less than all do.
    let passing = sample.passing(sampled.conditions)?;
    let both = passing.iter().zip(&inside);
    let hits = both.filter(|(hit, is_in)| **hit && **is_in).count();
    let all = sample.share(sampled.conditions, None);
    let share = (hits as f64 + PRIOR * all) / (count as f64 + PRIOR);
    Some(share * sampled.guess())
}

/// The same, by the keys of rows of the parent, if all keys of the child are known.
fn looked_up(
    query: &Query,
    sampled: &Sampled<'_>,
    parent: &Rel,
    (there, own): (Var, Var),
) -> Option<f64> {
    let origin = query.samples.origin(own);
    let child = sampled.sample.columns.get(&origin)?;
    let (parents, column) = query.samples.column(there)?;
    let (own, keys) = (child.keys.as_deref()?, column.keys.as_deref()?);
    let passing = sampled.sample.passing(sampled.conditions)?;
    let is_valid = |valid: &Option<Vec<bool>>, row: usize| valid.as_ref().is_none_or(|v| v[row]);
    let above = Sampled::of(query, parent).filter(|above| std::ptr::eq(above.sample, parents));
    let above = above.and_then(|above| parents.passing(above.conditions));
    let above = above.filter(|mask| mask.iter().filter(|hit| **hit).count() >= ENOUGH);
    let is_looked_at = |row: &usize| match &above {
        Some(mask) => mask.get(*row) == Some(&true),
        None => true,
    };
    let rows = (0..keys.len()).filter(|row| is_valid(&column.valid, *row) && is_looked_at(row));
    let looked_for = KeyCounts::of(rows.map(|row| keys[row]));
    let (mut found, mut could) = (0, 0);
    for (row, is_left) in passing.iter().enumerate() {
        if is_valid(&child.valid, row) {
            let matches = looked_for.of_key(own[row]);
            could += matches;
            found += if *is_left { matches } else { 0 };
        }
    }
    (could >= ENOUGH).then(|| (found as f64).max(0.5) / could as f64)
}

/// The share of the input at `place` that is reached from the first other one that is equal to it in vectors, if that is told.
fn reached_from_any(
    query: &Query,
    inputs: &[&Rel],
    place: usize,
    equal: &[(Var, Var)],
) -> Option<f64> {
    let child = inputs[place];
    let mut others = inputs.iter().enumerate();
    others.find_map(|(other, parent)| {
        let pairs = pairs_of(parent, child, equal);
        let keys: Vec<Var> = pairs.iter().map(|(_, own)| *own).collect();
        let is_found = other != place && !keys.is_empty() && fan_out(query, child, &keys) < ONE;
        is_found.then(|| reached(query, parent, child, &pairs))?
    })
}

/// The pairs of vectors of `parent` and of `child` that must be equal.
fn pairs_of(parent: &Rel, child: &Rel, equal: &[(Var, Var)]) -> Vec<(Var, Var)> {
    let pair = |(a, b): &(Var, Var)| {
        if parent.gives(*a) && child.gives(*b) {
            Some((*a, *b))
        } else {
            (parent.gives(*b) && child.gives(*a)).then_some((*b, *a))
        }
    };
    equal.iter().filter_map(pair).collect()
}

/// The distinct combinations of `vars` that the rows of `rel` are expected to have which the keys of other relations, the first of
/// `pairs` of equal vectors, can reach.
pub(crate) fn values_left(query: &Query, rel: &Rel, vars: &[Var], pairs: &[(Var, Var)]) -> f64 {
    let (rows, base) = expected(query, rel);
    let all = values(query, vars);
    let Some(sampled) = Sampled::of(query, rel) else {
        return (all * (rows / base).min(1.0)).min(rows).max(1.0);
    };
    let sample = sampled.sample;
    let (passing, inside) = (
        sample.passing(sampled.conditions),
        sampled.inside(query, pairs),
    );
    let share = |mask: &Vec<bool>| {
        let hits = mask.iter().filter(|hit| **hit).count();
        hits.max(1) as f64 / mask.len().max(1) as f64
    };
    let mask = match (passing, inside) {
        (Some(mut passing), Some(inside)) => {
            passing
                .iter_mut()
                .zip(inside)
                .for_each(|(hit, is_in)| *hit &= is_in);
            Some(passing)
        }
        (passing, inside) => passing.or(inside),
    };
    let rows = mask.as_ref().map_or(rows, |mask| base * share(mask));
    let origins: Vec<Var> = vars.iter().map(|var| query.samples.origin(*var)).collect();
    let found = mask.and_then(|mask| sample.distinct(&origins, Some(&mask), rows));
    found.unwrap_or(all).min(drawn(all, rows)).max(1.0)
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
