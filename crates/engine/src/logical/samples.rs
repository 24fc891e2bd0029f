//! What samples of the stored tables tell of a query's relations: estimates, which change no answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use table::{SampledColumn, distinct_values};

use crate::vector::value::Var;

/// Rows that pass are counted if they are at least so many, or should be; below that the conditions are taken for independent, too.
const COUNTED: f64 = 8.0;

/// The samples of a query's scans.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub scans: Vec<ScanSample>,
    /// The scan of each of their vectors.
    pub of: HashMap<Var, usize>,
    /// Vectors that hold the values of another one.
    pub names: HashMap<Var, Var>,
    /// Estimated numbers of distinct combinations of vectors of a scan.
    combined: Mutex<HashMap<Vec<Var>, f64>>,
}

/// The sample of a scan's table.
#[derive(Debug)]
pub(crate) struct ScanSample {
    /// The rows of the table.
    pub table_rows: f64,
    /// The rows of the sample; a column of texts may have fewer.
    pub rows: usize,
    /// Whether these are all rows.
    pub is_complete: bool,
    pub columns: HashMap<Var, Arc<SampledColumn>>,
    /// The scan's own filters, then those above it, from the lowest on.
    pub conditions: Vec<Condition>,
    /// How many of them are the scan's own.
    pub own: usize,
    /// The share of rows that its own filters are taken to leave without a look at rows.
    pub guess: f64,
    /// The share of rows that pass the first conditions, by how many these are; as far as that is known yet.
    pub shares: Vec<f64>,
}

/// A condition on the rows of a scan.
#[derive(Debug)]
pub(crate) struct Condition {
    /// The rows of the sample, or the first of them, that it lets through; `None` if that was not to be found out.
    pub passing: Option<Vec<bool>>,
    /// The share of rows that it is taken to leave then.
    pub guess: f64,
}

impl Samples {
    /// The vector of a scan whose values `var` holds.
    pub fn origin(&self, var: Var) -> Var {
        let mut var = var;
        // Whoever fills this makes no circle.
        while let Some(of) = self.names.get(&var) {
            var = *of;
        }
        var
    }

    /// The sample of the scan whose values `var` holds, and the column.
    pub fn column(&self, var: Var) -> Option<(&ScanSample, &SampledColumn)> {
        let var = self.origin(var);
        let scan = &self.scans[*self.of.get(&var)?];
        Some((scan, scan.columns.get(&var)?))
    }

    /// Estimated number of combinations that the values of `vars` have in the tables that they are of, and whether all are known.
    /// `most` is what a type allows.
    pub fn combinations(&self, vars: &[Var], most: &dyn Fn(Var) -> f64) -> (f64, bool) {
        let mut by_scan: BTreeMap<usize, Vec<Var>> = BTreeMap::new();
        let (mut values, mut all_known) = (1.0, true);
        for var in vars {
            match (self.of.get(&self.origin(*var)), self.column(*var)) {
                (Some(scan), Some((_, column))) if column.distinct.is_some() => {
                    by_scan.entry(*scan).or_default().push(self.origin(*var));
                }
                _ => {
                    values *= most(*var);
                    all_known &= most(*var) < f64::MAX;
                }
            }
        }
        for (scan, vars) in by_scan {
            let most = vars.iter().map(|var| most(*var)).product::<f64>();
            values *= self.combined(&self.scans[scan], vars).min(most);
        }
        (values, all_known)
    }

    /// The distinct combinations of vectors of one scan.
    fn combined(&self, scan: &ScanSample, mut vars: Vec<Var>) -> f64 {
        vars.sort_unstable();
        vars.dedup();
        let one = |var: &Var| scan.columns.get(var).and_then(|column| column.distinct);
        if let [var] = &vars[..] {
            return one(var).unwrap_or(f64::MAX).max(1.0);
        }
        if let Some(known) = self.combined.lock().get(&vars) {
            return *known;
        }
        let product: f64 = vars.iter().filter_map(one).product();
        let found = scan.distinct(&vars, None, scan.table_rows);
        let found = found.unwrap_or(product).min(product).max(1.0);
        self.combined.lock().insert(vars, found);
        found
    }
}

impl ScanSample {
    /// The estimated share of the rows that pass the first `count` conditions; of the rows `within`, if these are given.
    pub fn share(&self, count: usize, within: Option<&[bool]>) -> f64 {
        if let (Some(share), None) = (self.shares.get(count), within) {
            return *share;
        }
        let conditions = &self.conditions[..count.min(self.conditions.len())];
        let unknown = conditions.iter().filter(|c| c.passing.is_none());
        let guess: f64 = unknown.map(|condition| condition.guess).product();
        let known = conditions.iter().filter_map(|c| c.passing.as_deref());
        let known: Vec<&[bool]> = known.collect();
        let looked_at = |mask: &[bool]| match within {
            Some(within) => within[..mask.len()].iter().filter(|is_in| **is_in).count(),
            None => mask.len(),
        };
        let hits = |mask: &[bool]| match within {
            Some(within) => {
                let both = mask.iter().zip(within);
                both.filter(|(hit, is_in)| **hit && **is_in).count()
            }
            None => mask.iter().filter(|hit| **hit).count(),
        };
        let Some(all) = self.passing(count) else {
            return guess;
        };
        let (found, rows) = (hits(&all) as f64, looked_at(&all) as f64);
        if rows == 0.0 {
            return guess;
        }
        let share = |mask: &[bool]| (hits(mask) as f64).max(0.5) / looked_at(mask).max(1) as f64;
        let independent: f64 = known.iter().map(|mask| share(mask)).product();
        let is_exact = self.is_complete && within.is_none();
        let mut estimate = if is_exact || found.max(independent * rows) >= COUNTED {
            found.max(0.5) / rows
        } else {
            (found / rows + independent) / 2.0
        };
        if found == 0.0 && !is_exact && within.is_none() {
            estimate = estimate.min(self.guess.max(f64::MIN_POSITIVE));
        }
        estimate.min(1.0) * guess
    }

    /// The rows of the sample, or the first of them, that pass those of the first `count` conditions of which that is known; `None` if
    /// it is known of none.
    pub fn passing(&self, count: usize) -> Option<Vec<bool>> {
        let conditions = self.conditions.iter().take(count);
        let mut known = conditions.filter_map(|condition| condition.passing.as_deref());
        let mut all = known.next()?.to_vec();
        for mask in known {
            all.truncate(mask.len());
            all.iter_mut().zip(mask).for_each(|(all, hit)| *all &= hit);
        }
        Some(all)
    }

    /// The estimated number of distinct combinations of `vars` in `rows` rows of the table, of which the sample has those `within`, or
    /// all; `None` if these are too few to tell.
    pub fn distinct(&self, vars: &[Var], within: Option<&[bool]>, rows: f64) -> Option<f64> {
        /// Of one row there is nothing to compare.
        const ENOUGH: usize = 2;
        let mut length = within.map_or(self.rows, <[bool]>::len);
        let mut columns = Vec::with_capacity(vars.len());
        for var in vars {
            let column = self.columns.get(var)?;
            let keys = column.keys.as_deref()?;
            length = length.min(keys.len());
            columns.push((keys, column.valid.as_deref()));
        }
        let mut all = Vec::with_capacity(length);
        for row in (0..length).filter(|row| within.is_none_or(|within| within[*row])) {
            let mixed = columns.iter().fold(0u64, |mixed, (keys, valid)| {
                let is_null = valid.is_some_and(|valid| !valid[row]);
                let key = if is_null { u64::MAX / 3 } else { keys[row] };
                (mixed.rotate_left(23) ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            });
            all.push(mixed);
        }
        let is_enough = all.len() >= ENOUGH || (self.is_complete && !all.is_empty());
        is_enough.then(|| distinct_values(all, rows))
    }
}
