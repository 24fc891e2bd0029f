//! Samples of the tables that a query reads, for the estimates of the planner.
//!
//! Columns are read that filters test, that joins compare, that rows are grouped by and of which distinct values are looked for; a
//! table keeps what was read of it. A query of one table, or of small ones, has no plan that would be worth it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use table::SampledColumn;

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Context;
use crate::logical::relation::{Query, Rel, Scan};
use crate::logical::samples::{Condition, Samples, ScanSample};
use crate::physical::statistics::GUESS;
use crate::vector::batch::Batch;
use crate::vector::value::{Kind, Type, Values, Var, Vector};

/// A query of which no table has more rows does without samples.
const SMALL: u64 = 10_000;

/// Reads samples of the tables of `root` and of the parameters of `query`, from which [`prepare`](crate::prepare) then estimates
/// rows. What cannot be read is not known: that is no error, as no answer depends on it.
pub async fn sample(query: &mut Query, root: &Rel) {
    let mut walk = Walk::default();
    let parameters = query.parameters.iter().map(|(rel, _)| rel);
    for rel in parameters.chain([root]) {
        walk.relation(rel, Vec::new());
    }
    let rows = |found: &Found<'_>| found.scan.table.rows();
    if walk.found.len() < 2 || walk.found.iter().map(rows).all(|rows| rows <= SMALL) {
        return;
    }
    let wanted = walk.wanted();
    let mut samples = Samples::default();
    for found in &walk.found {
        let scan = found.scan;
        if scan.table.chosen().is_some() || scan.table.rows() == 0 {
            continue;
        }
        let mut read: HashMap<usize, Arc<SampledColumn>> = HashMap::new();
        for column in found.columns(&wanted) {
            if let Ok(values) = scan.table.sampled(column).await {
                read.insert(column, values);
            }
        }
        let place = samples.scans.len();
        scan.each_var(&mut |var| _ = samples.of.insert(var, place));
        samples.scans.push(found.sample(query, &read));
    }
    samples.names = walk.names;
    query.samples = samples;
}

/// A filter or a map above a scan.
#[derive(Clone, Copy)]
enum Step<'r> {
    Filter(&'r Expr),
    Map(&'r [(Var, Expr)]),
}

/// A scan with what is above it, from the lowest on.
struct Found<'r> {
    scan: &'r Scan,
    steps: Vec<Step<'r>>,
}

/// What a walk over relations found.
#[derive(Default)]
struct Walk<'r> {
    found: Vec<Found<'r>>,
    /// Vectors that are compared or grouped by, or whose distinct values are looked for.
    keys: Vec<Var>,
    /// Vectors that hold the values of another one.
    names: HashMap<Var, Var>,
    /// The addresses of shared relations.
    shared: HashSet<usize>,
}

impl<'r> Walk<'r> {
    /// Notes what is in `rel`, below the steps `above`, of which the last is the lowest.
    fn relation(&mut self, rel: &'r Rel, mut above: Vec<Step<'r>>) {
        match rel {
            Rel::Scan(scan) => {
                above.reverse();
                self.found.push(Found { scan, steps: above });
                return;
            }
            Rel::Filter { input, predicate } => {
                above.push(Step::Filter(predicate));
                return self.relation(input, above);
            }
            Rel::Map { input, exprs } => {
                for (var, expr) in exprs {
                    if let Some(from) = expr.as_var() {
                        self.named(*var, from);
                    }
                }
                above.push(Step::Map(exprs));
                return self.relation(input, above);
            }
            Rel::Shared { input, vars } => {
                vars.iter()
                    .for_each(|(there, here)| self.named(*here, *there));
                if !self.shared.insert(Arc::as_ptr(input) as usize) {
                    return;
                }
            }
            Rel::Join { equal, .. } | Rel::Semi { equal, .. } => self.compared(equal),
            Rel::Left { equal, outer, .. } | Rel::Full { equal, outer, .. } => {
                self.compared(equal);
                outer.iter().for_each(|(from, var)| self.named(*var, *from));
            }
            Rel::Fold { keys, folds, .. } => {
                self.keys.extend(keys);
                let distinct = folds.iter();
                let distinct = distinct.filter(|fold| fold.function.of_distinct().is_some());
                self.keys.extend(distinct.filter_map(|fold| fold.arg));
            }
            _ => {}
        }
        rel.each_input(&mut |input| self.relation(input, Vec::new()));
    }

    /// Notes that `var` holds the values of `from`, if that makes no circle.
    fn named(&mut self, var: Var, from: Var) {
        if self.origin(from) != var {
            self.names.insert(var, from);
        }
    }

    fn compared(&mut self, equal: &[(Var, Var)]) {
        self.keys.extend(equal.iter().flat_map(|(a, b)| [*a, *b]));
    }

    fn origin(&self, var: Var) -> Var {
        let mut var = var;
        while let Some(of) = self.names.get(&var) {
            var = *of;
        }
        var
    }

    /// The vectors of scans that are compared or grouped by.
    fn wanted(&self) -> HashSet<Var> {
        self.keys.iter().map(|var| self.origin(*var)).collect()
    }
}

impl Found<'_> {
    /// The columns of the table to read.
    fn columns(&self, wanted: &HashSet<Var>) -> BTreeSet<usize> {
        let mut read: BTreeSet<Var> = BTreeSet::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Filter(predicate) => predicate.each_var(&mut |var| _ = read.insert(var)),
                Step::Map(exprs) => {
                    for (var, expr) in exprs.iter().rev() {
                        if read.contains(var) {
                            expr.each_var(&mut |var| _ = read.insert(var));
                        }
                    }
                }
            }
        }
        let columns = self.scan.columns.iter();
        let columns = columns.filter(|(var, _)| read.contains(var) || wanted.contains(var));
        let filtered = self.scan.filters.iter().flat_map(|filter| &filter.columns);
        columns
            .map(|(_, column)| *column)
            .chain(filtered.copied())
            .collect()
    }

    fn sample(&self, query: &Query, read: &HashMap<usize, Arc<SampledColumn>>) -> ScanSample {
        let scan = self.scan;
        let (rows, is_complete) = scan.table.sampled_rows();
        let table_rows = scan.table.rows() as f64;
        let guess = (scan.expected / table_rows).min(1.0);
        let columns = scan.columns.iter();
        let columns =
            columns.filter_map(|(var, column)| Some((*var, Arc::clone(read.get(column)?))));
        let mut sample = ScanSample {
            table_rows,
            rows,
            is_complete,
            columns: columns.collect(),
            conditions: self.own_conditions(read, guess),
            own: 0,
            guess,
            shares: vec![],
        };
        sample.own = sample.conditions.len();
        let mut maps: Vec<&(Var, Expr)> = Vec::new();
        for step in &self.steps {
            match step {
                Step::Map(exprs) => maps.extend(*exprs),
                Step::Filter(predicate) => {
                    let passing = passing(query, &sample.columns, &maps, predicate).ok();
                    sample.conditions.push(Condition {
                        passing,
                        guess: GUESS,
                    });
                }
            }
        }
        let counts = 0..=sample.conditions.len();
        sample.shares = counts.map(|count| sample.share(count, None)).collect();
        sample
    }

    /// The filters of the scan itself: as one condition, with the share that they were taken to leave, if one cannot be tested.
    fn own_conditions(
        &self,
        read: &HashMap<usize, Arc<SampledColumn>>,
        guess: f64,
    ) -> Vec<Condition> {
        let tested = self.scan.filters.iter().map(|filter| {
            let columns = filter.columns.iter().map(|column| read.get(column));
            let columns: Vec<&Arc<SampledColumn>> = columns.collect::<Option<_>>()?;
            let rows = columns.iter().map(|column| column.values.len()).min()?;
            let arrays = columns.iter().map(|column| column.values.slice(0, rows));
            let arrays: Vec<_> = arrays.collect();
            let hits = filter.test.evaluate(&arrays, rows).ok()?;
            let passing = hits.iter().map(|hit| hit == Some(true)).collect();
            Some(Condition {
                passing: Some(passing).filter(|_| rows > 0),
                guess: GUESS,
            })
        });
        let tested: Option<Vec<Condition>> = tested.collect();
        let unknown = || Condition {
            passing: None,
            guess,
        };
        let tested = tested.filter(|all| all.iter().all(|c| c.passing.is_some()));
        tested.unwrap_or_else(|| vec![unknown()])
    }
}

/// The rows of a sample for which `predicate` is true, which reads vectors of the scan and of `maps`.
fn passing(
    query: &Query,
    columns: &HashMap<Var, Arc<SampledColumn>>,
    maps: &[&(Var, Expr)],
    predicate: &Expr,
) -> Result<Vec<bool>> {
    let mut read: BTreeSet<Var> = predicate.vars().into_iter().collect();
    let mut computed = Vec::new();
    for (var, expr) in maps.iter().rev() {
        if read.remove(var) {
            expr.each_var(&mut |var| _ = read.insert(var));
            computed.push((*var, expr));
        }
    }
    let is_volatile = |e: &Expr| e.is_volatile();
    if is_volatile(predicate) || computed.iter().any(|(_, e)| is_volatile(e)) {
        return Err(Error::unsupported("an early look at a volatile function"));
    }
    let unknown = || Error::unsupported("a condition on what is not sampled");
    let known = read.iter().map(|var| columns.get(var));
    let known: Vec<&Arc<SampledColumn>> = known.collect::<Option<_>>().ok_or_else(unknown)?;
    let rows = known.iter().map(|column| column.values.len()).min();
    let rows = rows.filter(|rows| *rows > 0).ok_or_else(unknown)?;
    let mut batch = Batch::new(query.vars.len());
    batch.restart(rows);
    for (var, column) in read.iter().zip(known) {
        batch.set(*var, vector(column, query.ty(*var), rows)?);
    }
    for (var, expr) in computed.iter().rev() {
        let context = Context {
            batch: &batch,
            parameters: &[],
        };
        let value = context.eval(expr)?.into_owned();
        batch.set(*var, value);
    }
    let context = Context {
        batch: &batch,
        parameters: &[],
    };
    context.mask(predicate)
}

/// The first `rows` values of a column as a vector of this type.
fn vector(column: &SampledColumn, ty: &Type, rows: usize) -> Result<Vector> {
    if ty.kind != Kind::Code {
        return Vector::from_arrow(&column.values.slice(0, rows), ty);
    }
    let codes = column.codes.as_ref().zip(ty.labels.as_ref());
    let codes = codes.filter(|((own, _), labels)| Arc::ptr_eq(own, labels));
    let ((_, codes), _) = codes.ok_or_else(|| Error::unsupported("codes of other labels"))?;
    let valid = column.valid.as_ref().map(|valid| valid[..rows].to_vec());
    Ok(Vector {
        values: Values::Code(codes[..rows].to_vec()),
        valid,
    })
}
