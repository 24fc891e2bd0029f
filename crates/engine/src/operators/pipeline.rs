//! Taking a batch through the steps of its pipeline.

use std::sync::Arc;

use algebra::VECTOR_ROWS;
use algebra::dot::NONE;

use crate::cancel::Stop;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Context;
use crate::operators::join_table::{JoinTable, ProbeState};
use crate::operators::meter::{At, WorkerClock};
use crate::operators::source::{ColumnReader, Selection};
use crate::operators::top_k::TopKFilter;
use crate::physical::program::{JoinKind, Operator, Probe};
use crate::vector::batch::Batch;
use crate::vector::value::{Type, Values, Var, Vector};

/// What all workers of a pipeline share.
pub(crate) struct PipelineExecutor<'a> {
    pub types: &'a [Type],
    pub steps: &'a [Operator],
    /// For each step and the sink: the vectors that are read there or later.
    pub live: &'a [Vec<Var>],
    pub join_tables: &'a [Option<Arc<JoinTable>>],
    pub parameters: &'a [Option<Vector>],
    /// Whether batches hold all vectors of the last entry of `live` when they reach the end. Otherwise those that
    /// no step read may still be in the feed.
    pub complete: bool,
    /// What rows must reach at the end, where few of all are asked for; looked at if `complete`.
    pub top_k: Option<&'a TopKFilter>,
    /// Raised when nobody waits for the answer any more.
    pub stop: &'a Stop,
    /// The worker's clock, if operators are measured.
    pub clock: Option<&'a WorkerClock>,
}

/// What one worker needs besides; reused from batch to batch. One per step, as a step's pieces go on through the
/// others before the next piece is made.
#[derive(Default)]
pub(crate) struct Scratch {
    finding: ProbeState,
    left: Vec<u32>,
    right: Vec<u32>,
}

/// Where rows end. It may take the batch and say nothing of what it leaves in its place.
pub(crate) type Emit<'e> = dyn FnMut(&mut Batch, &mut Selection) -> Result<()> + 'e;

impl PipelineExecutor<'_> {
    fn load(
        &self,
        vars: &[Var],
        reader: ColumnReader<'_, '_>,
        origin: &Selection,
        batch: &mut Batch,
    ) -> Result<()> {
        for var in vars {
            if !batch.has(*var) {
                reader.load(*var, &self.types[*var], origin, batch)?;
                if let Some(clock) = self.clock.filter(|_| batch.has(*var)) {
                    clock.add(batch.rows, batch.rows * self.types[*var].width());
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
        origin: &mut Selection,
        reader: ColumnReader<'_, '_>,
        scratch: &mut [Scratch],
        end: &mut Emit<'_>,
    ) -> Result<()> {
        for (number, step) in self.steps.iter().enumerate().skip(at) {
            if batch.rows == 0 {
                return Ok(());
            }
            let mut reads = Vec::new();
            step.reads(&mut |var| reads.push(var));
            self.turn(At::Read(number), batch.rows);
            self.load(&reads, reader, origin, batch)?;
            self.turn(At::Operator(number), batch.rows);
            let live = &self.live[number + 1];
            match step {
                Operator::Filter(predicate) => {
                    let mask = self.mask(predicate, batch)?;
                    if let Some(picks) = batch.filter(&mask, live)? {
                        *origin = origin.pick(picks);
                    }
                }
                Operator::Map(var, expr) => {
                    let context = Context {
                        batch,
                        parameters: self.parameters,
                    };
                    let vector = context.eval(expr)?.into_owned();
                    batch.set(*var, vector);
                }
                Operator::Alias(pairs) => {
                    for (from, to) in pairs {
                        let vector = batch.get(*from)?.clone();
                        batch.set(*to, vector);
                    }
                }
                Operator::Nulls(vars) => {
                    for var in vars {
                        batch.set(*var, Vector::nulls(self.types[*var].kind, batch.rows));
                    }
                }
                Operator::Probe(probe) => {
                    let whole = self.probe(probe, number, batch, origin, reader, scratch, end)?;
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
            if let Some(top_k) = self.top_k {
                self.load(&[top_k.var()], reader, origin, batch)?;
                if let Some(picks) = top_k.picks(batch)? {
                    batch.pick(&picks, live)?;
                    *origin = origin.pick(&picks);
                }
                if batch.rows == 0 {
                    return Ok(());
                }
            }
            self.load(live, reader, origin, batch)?;
        }
        self.turn(At::Sink, batch.rows);
        end(batch, origin)
    }

    /// What follows is done there, with so many rows.
    fn turn(&self, to: At, rows: usize) {
        if let Some(clock) = self.clock {
            clock.turn(to);
            clock.rows(rows);
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
        origin: &mut Selection,
        reader: ColumnReader<'_, '_>,
        scratch: &mut [Scratch],
        end: &mut Emit<'_>,
    ) -> Result<bool> {
        let join_table = self.join_tables[probe.stage]
            .as_ref()
            .ok_or_else(|| Error::internal("a table that was not made"))?;
        self.pass(probe, join_table, &self.live[number], batch, origin)?;
        let live = &self.live[number + 1];
        let mut own = std::mem::take(&mut scratch[number]);
        join_table.find(batch, &probe.keys, self.types, &mut own.finding)?;
        let simple = probe.residual.is_empty();
        let one = match probe.kind {
            JoinKind::Semi | JoinKind::Anti => Some(join_table.any(&own.finding)),
            _ => join_table.one(&own.finding),
        };
        let whole = simple && !(probe.kind == JoinKind::Outer && probe.marks);
        if let (Some(found), true) = (one, whole) {
            let whole = self.one(probe, join_table, found, live, batch, origin)?;
            if probe.kind != JoinKind::Outer || whole {
                scratch[number] = own;
                return Ok(probe.kind != JoinKind::MarkOnly);
            }
        }
        let mut partner = vec![false; batch.rows];
        let outer = probe.kind == JoinKind::Outer;
        let collects = outer || matches!(probe.kind, JoinKind::Semi | JoinKind::Anti);
        while join_table.pairs(&mut own.finding, &mut own.left, &mut own.right, VECTOR_ROWS) {
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
            self.give(probe, join_table, &own.right, &wanted, &mut pairs)?;
            self.keep_matching(probe, &wanted, reader, &mut pairs, &mut from, &mut own)?;
            if collects {
                own.left
                    .iter()
                    .for_each(|row| partner[*row as usize] = true);
            }
            if probe.marks {
                join_table.mark(&own.right);
            }
            if outer || probe.kind == JoinKind::Inner {
                self.run(number + 1, &mut pairs, &mut from, reader, scratch, end)?;
                self.clock.inspect(|clock| clock.turn(At::Operator(number)));
            }
        }
        scratch[number] = own;
        if matches!(probe.kind, JoinKind::Inner | JoinKind::MarkOnly) {
            return Ok(false);
        }
        let wanted = probe.kind == JoinKind::Semi;
        partner.iter_mut().for_each(|p| *p = *p == wanted);
        if let Some(picks) = batch.filter(&partner, live)? {
            *origin = origin.pick(picks);
        }
        if outer {
            for (_, var) in &probe.build_outputs {
                batch.set(*var, Vector::nulls(self.types[*var].kind, batch.rows));
            }
        }
        Ok(true)
    }

    /// Of pairs of rows, keeps those of which the extra predicates of the join are true; `own` names their rows.
    fn keep_matching(
        &self,
        probe: &Probe,
        wanted: &[Var],
        reader: ColumnReader<'_, '_>,
        pairs: &mut Batch,
        from: &mut Selection,
        own: &mut Scratch,
    ) -> Result<()> {
        let mut picks: Option<Vec<u32>> = None;
        for predicate in &probe.residual {
            self.load(&predicate.vars(), reader, from, pairs)?;
            let mask = self.mask(predicate, pairs)?;
            if let Some(left) = pairs.filter(&mask, wanted)? {
                *from = from.pick(left);
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
        Ok(())
    }

    /// Of rows that stay without a partner, keeps those whose partners could be among the parts of the table that are
    /// there: the others have their turn in another pass.
    fn pass(
        &self,
        probe: &Probe,
        join_table: &JoinTable,
        live: &[Var],
        batch: &mut Batch,
        origin: &mut Selection,
    ) -> Result<()> {
        let stay = matches!(probe.kind, JoinKind::Outer | JoinKind::Anti);
        let Some(pass) = join_table.pass.filter(|_| stay) else {
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
        join_table: &JoinTable,
        found: &[u32],
        live: &[Var],
        batch: &mut Batch,
        origin: &mut Selection,
    ) -> Result<bool> {
        let mut mask = Vec::new();
        algebra::dot::found(found, &mut mask);
        let all = !mask.contains(&false);
        match probe.kind {
            JoinKind::Outer if !all => return Ok(false),
            JoinKind::Anti => mask.iter_mut().for_each(|hit| *hit = !*hit),
            _ => {}
        }
        if all && probe.kind != JoinKind::Anti {
            if probe.marks {
                join_table.mark(found);
            }
            self.give(probe, join_table, found, live, batch)?;
            return Ok(true);
        }
        if probe.kind == JoinKind::MarkOnly {
            let rows: Vec<u32> = found.iter().copied().filter(|row| *row != NONE).collect();
            join_table.mark(&rows);
            return Ok(true);
        }
        if let Some(picks) = batch.filter(&mask, live)? {
            let rows: Vec<u32> = picks.iter().map(|p| found[*p as usize]).collect();
            *origin = origin.pick(picks);
            if probe.marks {
                join_table.mark(&rows);
            }
            if probe.kind != JoinKind::Anti {
                self.give(probe, join_table, &rows, live, batch)?;
            }
        }
        Ok(true)
    }

    /// Gives the rows of `batch` what the rows `found` of the table hold.
    fn give(
        &self,
        probe: &Probe,
        join_table: &JoinTable,
        found: &[u32],
        live: &[Var],
        batch: &mut Batch,
    ) -> Result<()> {
        if matches!(
            probe.kind,
            JoinKind::Semi | JoinKind::Anti | JoinKind::MarkOnly
        ) && probe.residual.is_empty()
        {
            return Ok(());
        }
        for (from, to) in &probe.build_outputs {
            if live.binary_search(to).is_ok() {
                if let Some(clock) = self.clock {
                    clock.add(found.len(), 2 * found.len() * self.types[*to].width());
                }
                batch.set(*to, join_table.column(*from)?.at(found)?);
            }
        }
        if let Some(row) = probe.row.filter(|row| live.binary_search(row).is_ok()) {
            let number = |row: &u32| match &join_table.numbers {
                Some(numbers) => i64::from(numbers[*row as usize]),
                None => i64::from(*row),
            };
            let rows = found.iter().map(number).collect();
            batch.set(row, Vector::new(Values::Int(rows)));
        }
        Ok(())
    }
}
