//! Taking a batch through the steps of its pipeline.

use std::sync::Arc;

use algebra::VECTOR_ROWS;
use algebra::dot::NONE;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::eval::Context;
use crate::expr::{Expr, Var};
use crate::ledger::{At, Watch};
use crate::lookup::{Finding, Lookup};
use crate::plan::{How, Probe, Step};
use crate::run::Bar;
use crate::source::{Feed, Origin};
use crate::stop::Stop;
use crate::value::{Type, Values, Vector};

/// What all workers of a pipeline share.
pub(crate) struct Line<'a> {
    pub types: &'a [Type],
    pub steps: &'a [Step],
    /// For each step and the sink: the vectors that are read there or later.
    pub live: &'a [Vec<Var>],
    pub lookups: &'a [Option<Arc<Lookup>>],
    pub parameters: &'a [Option<Vector>],
    /// Whether batches hold all vectors of the last entry of `live` when they reach the end. Otherwise those that
    /// no step read may still be in the feed.
    pub complete: bool,
    /// What rows must reach at the end, where few of all are asked for; looked at if `complete`.
    pub bar: Option<&'a Bar>,
    /// Raised when nobody waits for the answer any more.
    pub stop: &'a Stop,
    /// The worker's clock, if operators are measured.
    pub watch: Option<&'a Watch>,
}

/// What one worker needs besides; reused from batch to batch. One per step, as a step's pieces go on through the
/// others before the next piece is made.
#[derive(Default)]
pub(crate) struct Scratch {
    finding: Finding,
    left: Vec<u32>,
    right: Vec<u32>,
}

/// Where rows end. It may take the batch and say nothing of what it leaves in its place.
pub(crate) type End<'e> = dyn FnMut(&mut Batch, &mut Origin) -> Result<()> + 'e;

impl Line<'_> {
    fn load(
        &self,
        vars: &[Var],
        feed: Feed<'_, '_>,
        origin: &Origin,
        batch: &mut Batch,
    ) -> Result<()> {
        for var in vars {
            if !batch.has(*var) {
                feed.load(*var, &self.types[*var], origin, batch)?;
                if let Some(watch) = self.watch.filter(|_| batch.has(*var)) {
                    watch.add(batch.rows, batch.rows * self.types[*var].width());
                }
            }
        }
        Ok(())
    }

    /// Takes `batch` through the steps from number `at` on.
    pub fn run(
        &self,
        at: usize,
        batch: &mut Batch,
        origin: &mut Origin,
        feed: Feed<'_, '_>,
        scratch: &mut [Scratch],
        end: &mut End<'_>,
    ) -> Result<()> {
        for (number, step) in self.steps.iter().enumerate().skip(at) {
            if batch.rows == 0 {
                return Ok(());
            }
            let mut reads = Vec::new();
            step.reads(&mut |var| reads.push(var));
            self.turn(At::Read(number), batch.rows);
            self.load(&reads, feed, origin, batch)?;
            self.turn(At::Step(number), batch.rows);
            let live = &self.live[number + 1];
            match step {
                Step::Filter(predicate) => {
                    let mask = self.mask(predicate, batch)?;
                    if let Some(picks) = batch.filter(&mask, live)? {
                        *origin = origin.pick(picks);
                    }
                }
                Step::Map(var, expr) => {
                    let context = Context {
                        batch,
                        parameters: self.parameters,
                    };
                    let vector = context.eval(expr)?.into_owned();
                    batch.set(*var, vector);
                }
                Step::Alias(pairs) => {
                    for (from, to) in pairs {
                        let vector = batch.get(*from)?.clone();
                        batch.set(*to, vector);
                    }
                }
                Step::Nulls(vars) => {
                    for var in vars {
                        batch.set(*var, Vector::nulls(self.types[*var].kind, batch.rows));
                    }
                }
                Step::Probe(probe) => {
                    let whole = self.probe(probe, number, batch, origin, feed, scratch, end)?;
                    if !whole {
                        return Ok(());
                    }
                }
            }
        }
        if batch.rows == 0 {
            return Ok(());
        }
        if self.complete {
            self.turn(At::Read(self.steps.len()), batch.rows);
            let live = &self.live[self.steps.len()];
            if let Some(bar) = self.bar {
                self.load(&[bar.var()], feed, origin, batch)?;
                if let Some(picks) = bar.picks(batch)? {
                    batch.pick(&picks, live)?;
                    *origin = origin.pick(&picks);
                }
                if batch.rows == 0 {
                    return Ok(());
                }
            }
            self.load(live, feed, origin, batch)?;
        }
        self.turn(At::Sink, batch.rows);
        end(batch, origin)
    }

    /// What follows is done there, with so many rows.
    fn turn(&self, to: At, rows: usize) {
        if let Some(watch) = self.watch {
            watch.turn(to);
            watch.rows(rows);
        }
    }

    fn mask(&self, predicate: &Expr, batch: &Batch) -> Result<Vec<bool>> {
        let context = Context {
            batch,
            parameters: self.parameters,
        };
        context.mask(predicate)
    }

    /// Looks the rows up. True if the batch itself goes on; false if what became of it has already.
    #[allow(clippy::too_many_arguments)]
    fn probe(
        &self,
        probe: &Probe,
        number: usize,
        batch: &mut Batch,
        origin: &mut Origin,
        feed: Feed<'_, '_>,
        scratch: &mut [Scratch],
        end: &mut End<'_>,
    ) -> Result<bool> {
        let lookup = self.lookups[probe.stage]
            .as_ref()
            .ok_or_else(|| Error::internal("a table that was not made"))?;
        self.pass(probe, lookup, &self.live[number], batch, origin)?;
        let live = &self.live[number + 1];
        let mut own = std::mem::take(&mut scratch[number]);
        lookup.find(batch, &probe.keys, self.types, &mut own.finding)?;
        let simple = probe.residual.is_empty();
        let one = match probe.how {
            How::Semi | How::Anti => Some(lookup.any(&own.finding)),
            _ => lookup.one(&own.finding),
        };
        let whole = simple && probe.how != How::LeftMark;
        if let (Some(found), true) = (one, whole) {
            let whole = self.one(probe, lookup, found, live, batch, origin)?;
            if probe.how != How::Left || whole {
                scratch[number] = own;
                return Ok(probe.how != How::Mark);
            }
        }
        let mut partner = vec![false; batch.rows];
        let outer = matches!(probe.how, How::Left | How::LeftMark);
        let collects = outer || matches!(probe.how, How::Semi | How::Anti);
        let given: Vec<Var> = probe.gives.iter().map(|(_, to)| *to).collect();
        while lookup.pairs(&mut own.finding, &mut own.left, &mut own.right, VECTOR_ROWS) {
            self.stop.check()?;
            let mut wanted = live.clone();
            probe
                .residual
                .iter()
                .for_each(|e| e.each_var(&mut |var| wanted.push(var)));
            wanted.sort_unstable();
            wanted.dedup();
            let mut pairs = batch.gathered(&own.left, &wanted)?;
            let mut from = origin.pick(&own.left);
            self.give(probe, lookup, &own.right, &wanted, &mut pairs)?;
            let mut picks: Option<Vec<u32>> = None;
            for predicate in &probe.residual {
                self.load(&predicate.vars(), feed, &from, &mut pairs)?;
                let mask = self.mask(predicate, &pairs)?;
                if let Some(left) = pairs.filter(&mask, &wanted)? {
                    from = from.pick(left);
                    picks = Some(match picks {
                        None => left.to_vec(),
                        Some(before) => left.iter().map(|row| before[*row as usize]).collect(),
                    });
                }
            }
            if let Some(picks) = picks {
                own.left = picks.iter().map(|row| own.left[*row as usize]).collect();
                own.right = picks.iter().map(|row| own.right[*row as usize]).collect();
            }
            if collects {
                own.left
                    .iter()
                    .for_each(|row| partner[*row as usize] = true);
            }
            if matches!(probe.how, How::Mark | How::InnerMark | How::LeftMark) {
                lookup.mark(&own.right);
            }
            if outer || matches!(probe.how, How::Inner | How::InnerMark) {
                self.run(number + 1, &mut pairs, &mut from, feed, scratch, end)?;
                self.watch.inspect(|watch| watch.turn(At::Step(number)));
            }
        }
        scratch[number] = own;
        match probe.how {
            How::Inner | How::InnerMark | How::Mark => Ok(false),
            How::Semi | How::Anti | How::Left | How::LeftMark => {
                let wanted = probe.how == How::Semi;
                partner.iter_mut().for_each(|p| *p = *p == wanted);
                if let Some(picks) = batch.filter(&partner, live)? {
                    *origin = origin.pick(picks);
                }
                if outer {
                    for var in given {
                        batch.set(var, Vector::nulls(self.types[var].kind, batch.rows));
                    }
                }
                Ok(true)
            }
        }
    }

    /// Of rows that stay without a partner, keeps those whose partners could be among the parts of the table that are
    /// there: the others have their turn in another pass.
    fn pass(
        &self,
        probe: &Probe,
        lookup: &Lookup,
        live: &[Var],
        batch: &mut Batch,
        origin: &mut Origin,
    ) -> Result<()> {
        let stay = matches!(probe.how, How::Left | How::LeftMark | How::Anti);
        let Some(pass) = lookup.pass.filter(|_| stay) else {
            return Ok(());
        };
        let keys = probe.keys.iter();
        let vectors = keys.clone().map(|key| batch.get(*key));
        let vectors = vectors.collect::<Result<Vec<_>>>()?;
        let types: Vec<&Type> = keys.map(|key| &self.types[*key]).collect();
        let mask = pass.mask(&vectors, &types, batch.rows)?;
        if let Some(picks) = batch.filter(&mask, live)? {
            *origin = origin.pick(picks);
        }
        Ok(())
    }

    /// Where each row finds at most one: keeps the rows and gives them what they found. False if it is an outer
    /// join that some rows find nothing in, which are then to be told apart.
    fn one(
        &self,
        probe: &Probe,
        lookup: &Lookup,
        found: &[u32],
        live: &[Var],
        batch: &mut Batch,
        origin: &mut Origin,
    ) -> Result<bool> {
        let mut mask = Vec::new();
        algebra::dot::found(found, &mut mask);
        let all = !mask.contains(&false);
        match probe.how {
            How::Left if !all => return Ok(false),
            How::Anti => mask.iter_mut().for_each(|hit| *hit = !*hit),
            _ => {}
        }
        if all && probe.how != How::Anti {
            if matches!(probe.how, How::Mark | How::InnerMark) {
                lookup.mark(found);
            }
            self.give(probe, lookup, found, live, batch)?;
            return Ok(true);
        }
        if probe.how == How::Mark {
            let rows: Vec<u32> = found.iter().copied().filter(|row| *row != NONE).collect();
            lookup.mark(&rows);
            return Ok(true);
        }
        if let Some(picks) = batch.filter(&mask, live)? {
            let rows: Vec<u32> = picks.iter().map(|p| found[*p as usize]).collect();
            *origin = origin.pick(picks);
            if probe.how == How::InnerMark {
                lookup.mark(&rows);
            }
            if probe.how != How::Anti {
                self.give(probe, lookup, &rows, live, batch)?;
            }
        }
        Ok(true)
    }

    /// Gives the rows of `batch` what the rows `found` of the table hold.
    fn give(
        &self,
        probe: &Probe,
        lookup: &Lookup,
        found: &[u32],
        live: &[Var],
        batch: &mut Batch,
    ) -> Result<()> {
        if matches!(probe.how, How::Semi | How::Anti | How::Mark) && probe.residual.is_empty() {
            return Ok(());
        }
        for (from, to) in &probe.gives {
            if live.binary_search(to).is_ok() {
                if let Some(watch) = self.watch {
                    watch.add(found.len(), 2 * found.len() * self.types[*to].width());
                }
                batch.set(*to, lookup.column(*from)?.at(found)?);
            }
        }
        if let Some(row) = probe.row.filter(|row| live.binary_search(row).is_ok()) {
            let number = |row: &u32| match &lookup.numbers {
                Some(numbers) => i64::from(numbers[*row as usize]),
                None => i64::from(*row),
            };
            let rows = found.iter().map(number).collect();
            batch.set(row, Vector::new(Values::Int(rows)));
        }
        Ok(())
    }
}
