//! The pipeline executor: takes a batch through the operators of its pipeline, in [steps](crate::operators::steps).

use std::sync::Arc;

use algebra::dot::NONE;

use crate::cancel::Stop;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Context;
use crate::operators::join_table::{JoinTable, ProbeState};
use crate::operators::meter::{At, WorkerClock};
use crate::operators::source::{ColumnReader, Selection};
use crate::operators::steps::{More, Scratch, Step, Steps};
use crate::operators::top_k::TopKFilter;
use crate::physical::program::{JoinKind, Operator, Probe, Together};
use crate::vector::batch::Batch;
use crate::vector::value::{Type, Values, Var, Vector};

/// The operators of a pipeline, with what they read. Shared by all workers.
pub(crate) struct PipelineExecutor<'a> {
    pub types: &'a [Type],
    pub operators: &'a [Operator],
    /// For each operator, and the sink: the vectors that are read there or later (ascending).
    pub live: &'a [Vec<Var>],
    pub join_tables: &'a [Option<Arc<JoinTable>>],
    pub parameters: &'a [Option<Vector>],
    /// Whether batches must hold all vectors of the last entry of `live` when they reach the end. Otherwise columns
    /// that no operator has read may be left to the column reader.
    pub complete: bool,
    /// The top-k filter that is applied at the end, if `complete` is set.
    pub top_k: Option<&'a TopKFilter>,
    /// Raised when the query is cancelled.
    pub stop: &'a Stop,
    /// The worker's clock, if operators are measured.
    pub clock: Option<&'a WorkerClock>,
}

impl PipelineExecutor<'_> {
    /// Reads those of `vars` that the batch does not have yet.
    pub fn load(
        &self,
        vars: &[Var],
        reader: ColumnReader<'_, '_>,
        selection: &Selection,
        batch: &mut Batch,
    ) -> Result<()> {
        for var in vars {
            if !batch.has(*var) {
                reader.load(*var, &self.types[*var], selection, batch)?;
                if let Some(clock) = self.clock.filter(|_| batch.has(*var)) {
                    clock.add(batch.rows, batch.rows * self.types[*var].width());
                }
            }
        }
        Ok(())
    }

    /// Takes `batch` through the operators from number `at` on, to the end or to one that makes many rows of it.
    pub(super) fn advance(
        &self,
        at: usize,
        batch: &mut Batch,
        selection: &mut Selection,
        reader: ColumnReader<'_, '_>,
        steps: &mut Steps,
    ) -> Result<Step> {
        for (number, operator) in self.operators.iter().enumerate().skip(at) {
            if batch.rows == 0 {
                return Ok(Step::Nothing);
            }
            let mut reads = Vec::new();
            operator.reads(&mut |var| reads.push(var));
            self.turn(At::Read(number), batch.rows);
            self.load(&reads, reader, selection, batch)?;
            self.turn(At::Operator(number), batch.rows);
            match operator {
                Operator::Filter(predicate) => {
                    let mask = self.mask(predicate, batch)?;
                    if let Some(picks) = batch.filter(&mask, &self.live[number + 1])? {
                        *selection = selection.pick(picks);
                    }
                }
                Operator::Map(var, expr) => {
                    let vector = self.context(batch).eval(expr)?.into_owned();
                    batch.set(*var, vector);
                }
                Operator::Together(together) => self.together(together, batch)?,
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
                Operator::Expand(expand) => {
                    self.expand(expand, number, batch, selection, steps)?;
                    return Ok(Step::Nothing);
                }
                Operator::Probe(probe) => {
                    if !self.probe(probe, number, batch, selection, steps)? {
                        return Ok(Step::Nothing);
                    }
                }
            }
        }
        self.at_the_end(batch, selection, reader)
    }

    /// Gives a batch that has come through all operators what it must have at the end.
    fn at_the_end(
        &self,
        batch: &mut Batch,
        selection: &mut Selection,
        reader: ColumnReader<'_, '_>,
    ) -> Result<Step> {
        if self.complete && batch.rows > 0 {
            self.turn(At::Read(self.operators.len()), batch.rows);
            let live = &self.live[self.operators.len()];
            if let Some(top_k) = self.top_k {
                self.load(&[top_k.var()], reader, selection, batch)?;
                if let Some(picks) = top_k.picks(batch)? {
                    batch.pick(&picks, live)?;
                    *selection = selection.pick(&picks);
                }
            }
            if batch.rows > 0 {
                self.load(live, reader, selection, batch)?;
            }
        }
        if batch.rows == 0 {
            return Ok(Step::Nothing);
        }
        self.turn(At::Sink, batch.rows);
        Ok(Step::Rows)
    }

    /// What expressions over `batch` read.
    pub(super) fn context<'b>(&'b self, batch: &'b Batch) -> Context<'b> {
        Context {
            batch,
            parameters: self.parameters,
        }
    }

    /// Tells the clock what `rows` rows go through from now on.
    fn turn(&self, to: At, rows: usize) {
        if let Some(clock) = self.clock {
            clock.turn(to);
            clock.rows(rows);
        }
    }

    /// Computes functions of one vector at once.
    fn together(&self, together: &Together, batch: &mut Batch) -> Result<()> {
        let arg = batch.get(together.of)?.decoded(&self.types[together.of])?;
        let found = together.calls.call(&arg).map_err(Error::Call)?;
        for (var, values) in together.vars.iter().zip(found) {
            let mut vector = Vector::from_arrow(&values, &self.types[*var])?;
            if let Values::Text(texts) = vector.values {
                vector.values = Values::Text(texts.passing());
            }
            batch.set(*var, vector);
        }
        Ok(())
    }

    fn mask(&self, predicate: &Expr, batch: &Batch) -> Result<Vec<bool>> {
        self.context(batch).mask(predicate)
    }

    /// The join table that `probe` probes.
    pub(super) fn join_table(&self, probe: &Probe) -> Result<&Arc<JoinTable>> {
        let table = self.join_tables[probe.stage].as_ref();
        table.ok_or_else(|| Error::internal("a join table that was not built"))
    }

    /// Probes a join table. Returns true if the batch itself goes on; false if nothing does, or if its pairs are left
    /// to the next steps.
    fn probe(
        &self,
        probe: &Probe,
        number: usize,
        batch: &mut Batch,
        selection: &mut Selection,
        steps: &mut Steps,
    ) -> Result<bool> {
        let join_table = self.join_table(probe)?;
        self.keep_loaded(probe, join_table, &self.live[number], batch, selection)?;
        let live = &self.live[number + 1];
        let state = &mut steps.scratch[number].probe_state;
        self.find(probe, join_table, batch, state)?;
        let simple = probe.residual.is_empty();
        let one = match probe.kind {
            JoinKind::Semi | JoinKind::Anti => Some(join_table.any(state)),
            _ => join_table.one(state),
        };
        let whole = simple && !(probe.kind == JoinKind::Outer && probe.marks);
        if let (Some(found), true) = (one, whole) {
            let whole = self.probe_unique(probe, join_table, found, live, batch, selection)?;
            if probe.kind != JoinKind::Outer || whole {
                return Ok(probe.kind != JoinKind::MarkOnly);
            }
        }
        let asked = !matches!(probe.kind, JoinKind::Inner | JoinKind::MarkOnly);
        let matched = vec![false; if asked { batch.rows } else { 0 }];
        steps.leave(number, batch, selection, More::Pairs(matched));
        Ok(false)
    }

    /// Finds the rows of a join table that may match those of `batch`: by their keys, and within a band or next to a number.
    fn find(
        &self,
        probe: &Probe,
        join_table: &JoinTable,
        batch: &Batch,
        state: &mut ProbeState,
    ) -> Result<()> {
        join_table.find(batch, &probe.keys, self.types, state)?;
        if let Some(nearest) = &probe.nearest {
            return join_table.nearest(batch, nearest, self.types, state);
        }
        match &probe.band {
            Some(band) => join_table.within(batch, band, self.types, state),
            None => Ok(()),
        }
    }

    /// Keeps the pairs for which the extra join predicates are true. `own` holds their rows on both sides.
    pub(super) fn keep_matching(
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

    /// For joins that keep rows without a match: keeps only rows whose match would be in the loaded partitions. The
    /// other rows are for other passes.
    fn keep_loaded(
        &self,
        probe: &Probe,
        join_table: &JoinTable,
        live: &[Var],
        batch: &mut Batch,
        selection: &mut Selection,
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
            *selection = selection.pick(picks);
        }
        Ok(())
    }

    /// A probe in which each row has at most one match. Keeps the rows that the join lets through and gives them
    /// the columns of their matches. Returns false, having done nothing, for an outer join with unmatched rows.
    fn probe_unique(
        &self,
        probe: &Probe,
        join_table: &JoinTable,
        found: &[u32],
        live: &[Var],
        batch: &mut Batch,
        selection: &mut Selection,
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
            self.add_columns(probe, join_table, found, live, batch)?;
            return Ok(true);
        }
        if probe.kind == JoinKind::MarkOnly {
            let rows: Vec<u32> = found.iter().copied().filter(|row| *row != NONE).collect();
            join_table.mark(&rows);
            return Ok(true);
        }
        if let Some(picks) = batch.filter(&mask, live)? {
            let rows: Vec<u32> = picks.iter().map(|p| found[*p as usize]).collect();
            *selection = selection.pick(picks);
            if probe.marks {
                join_table.mark(&rows);
            }
            if probe.kind != JoinKind::Anti {
                self.add_columns(probe, join_table, &rows, live, batch)?;
            }
        }
        Ok(true)
    }

    /// Gives the rows of `batch` the columns of their matches, the rows `found` of the join table.
    pub(super) fn add_columns(
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
