//! Taking the steps of a pipeline, among them those of operators that make many rows.

use algebra::VECTOR_ROWS;

use crate::error::{Error, Result};
use crate::operators::expansion;
use crate::operators::meter::At;
use crate::operators::pipeline::PipelineExecutor;
use crate::operators::source::{ColumnReader, Selection};
use crate::operators::steps::{More, Scratch, Step, Steps, Unfinished};
use crate::physical::program::{Expand, JoinKind, Operator, Probe};
use crate::vector::batch::Batch;
use crate::vector::value::Vector;

/// Receives batches at the end. It may take the batch's contents and leave anything in their place.
pub(crate) type Emit<'e> = dyn FnMut(&mut Batch, &mut Selection) -> Result<()> + 'e;

impl PipelineExecutor<'_> {
    /// Takes `batch` through all operators, and what is left of it to `end`.
    pub fn run(
        &self,
        batch: &mut Batch,
        selection: &mut Selection,
        reader: ColumnReader<'_, '_>,
        steps: &mut Steps,
        end: &mut Emit<'_>,
    ) -> Result<()> {
        steps.restart();
        loop {
            match self.step(batch, selection, reader, steps)? {
                Step::Rows => end(batch, selection)?,
                Step::Nothing => {}
                Step::End => return Ok(()),
            }
        }
    }

    /// Takes the next step with a vector: `batch` has its rows before the first step, and afterwards those that
    /// [came to the end](Step::Rows). See [`Steps::restart`].
    pub fn step(
        &self,
        batch: &mut Batch,
        selection: &mut Selection,
        reader: ColumnReader<'_, '_>,
        steps: &mut Steps,
    ) -> Result<Step> {
        if !steps.begun {
            steps.begun = true;
            return self.advance(0, batch, selection, reader, steps);
        }
        let Some(of) = steps.unfinished.last_mut() else {
            return Ok(Step::End);
        };
        self.stop.check()?;
        let number = of.operator;
        self.clock.inspect(|clock| clock.turn(At::Operator(number)));
        let own = &mut steps.scratch[number];
        let piece = match (&self.operators[number], &mut of.more) {
            (Operator::Expand(expand), More::Made(pieces)) => {
                let Some(made) = pieces.next() else {
                    steps.done(batch, selection);
                    return Ok(Step::Nothing);
                };
                let live = &self.live[number + 1];
                let made = made.map_err(Error::Call)?;
                let rows = expansion::batch_of(&made, expand, &of.batch, live, self.types)?;
                Some((rows, of.selection.pick(&made.of)))
            }
            (Operator::Probe(probe), More::Pairs(matched)) => {
                if !self.next_pairs(probe, own)? {
                    let goes_on = self.after_pairs(probe, number, of)?;
                    steps.done(batch, selection);
                    if !goes_on {
                        return Ok(Step::Nothing);
                    }
                    return self.advance(number + 1, batch, selection, reader, steps);
                }
                let rows = (&of.batch, &of.selection);
                self.pairs(probe, number, rows, reader, own, matched)?
            }
            _ => return Err(Error::internal("rows left with another operator")),
        };
        let Some(piece) = piece else {
            return Ok(Step::Nothing);
        };
        (*batch, *selection) = piece;
        self.advance(number + 1, batch, selection, reader, steps)
    }

    /// Leaves `batch` with a function that makes rows of its rows.
    pub(super) fn expand(
        &self,
        expand: &Expand,
        number: usize,
        batch: &mut Batch,
        selection: &mut Selection,
        steps: &mut Steps,
    ) -> Result<()> {
        let made = expansion::start(expand, self.context(batch), VECTOR_ROWS)?;
        steps.leave(number, batch, selection, More::Made(made));
        Ok(())
    }

    /// Finds the next pairs of a probe; false if there are none left.
    fn next_pairs(&self, probe: &Probe, own: &mut Scratch) -> Result<bool> {
        let table = self.join_table(probe)?;
        Ok(table.pairs(
            &mut own.probe_state,
            &mut own.left,
            &mut own.right,
            VECTOR_ROWS,
        ))
    }

    /// The rows that the pairs found give, if they go on.
    fn pairs(
        &self,
        probe: &Probe,
        number: usize,
        (batch, selection): (&Batch, &Selection),
        reader: ColumnReader<'_, '_>,
        own: &mut Scratch,
        matched: &mut [bool],
    ) -> Result<Option<(Batch, Selection)>> {
        let table = self.join_table(probe)?;
        let mut wanted = self.live[number + 1].clone();
        for predicate in &probe.residual {
            predicate.each_var(&mut |var| wanted.push(var));
        }
        wanted.sort_unstable();
        wanted.dedup();
        let mut pairs = batch.gathered(&own.left, &wanted)?;
        let mut from = selection.pick(&own.left);
        self.add_columns(probe, table, &own.right, &wanted, &mut pairs)?;
        self.keep_matching(probe, &wanted, reader, &mut pairs, &mut from, own)?;
        if !matched.is_empty() {
            own.left
                .iter()
                .for_each(|row| matched[*row as usize] = true);
        }
        if probe.marks {
            table.mark(&own.right);
        }
        let goes_on = matches!(probe.kind, JoinKind::Outer | JoinKind::Inner);
        Ok(goes_on.then_some((pairs, from)))
    }

    /// What is left of rows whose pairs have all been found, by the kind of the join: for an outer one those without a match, with
    /// NULL on the other side. Returns false if nothing goes on.
    fn after_pairs(&self, probe: &Probe, number: usize, of: &mut Unfinished) -> Result<bool> {
        if matches!(probe.kind, JoinKind::Inner | JoinKind::MarkOnly) {
            return Ok(false);
        }
        let More::Pairs(matched) = &mut of.more else {
            return Err(Error::internal("pairs of what is no probe"));
        };
        let wanted = probe.kind == JoinKind::Semi;
        matched.iter_mut().for_each(|own| *own = *own == wanted);
        if let Some(picks) = of.batch.filter(matched, &self.live[number + 1])? {
            of.selection = of.selection.pick(picks);
        }
        if probe.kind == JoinKind::Outer {
            for (_, var) in &probe.build_outputs {
                let rows = of.batch.rows;
                of.batch
                    .set(*var, Vector::nulls(self.types[*var].kind, rows));
            }
        }
        Ok(true)
    }
}
