//! The steps in which a vector of rows goes through the operators of a pipeline.
//!
//! Most operators leave at most as many rows as come. A probe and a function of rows may make very many of one vector, which go
//! on in pieces: each is a step, so that who takes the steps may hand rows over, reach a limit, or let other tasks run
//! between them.

use algebra::VECTOR_ROWS;

use crate::error::{Error, Result};
use crate::logical::row_function::RowPieces;
use crate::operators::expansion;
use crate::operators::join_table::ProbeState;
use crate::operators::meter::At;
use crate::operators::pipeline::PipelineExecutor;
use crate::operators::source::{ColumnReader, Selection};
use crate::physical::program::{Expand, JoinKind, Operator, Probe};
use crate::vector::batch::Batch;
use crate::vector::value::Vector;

/// How far a vector has come, and a worker's scratch space for the operators, which is used again for the next.
#[derive(Default)]
pub(crate) struct Steps {
    /// One for each operator.
    pub scratch: Vec<Scratch>,
    begun: bool,
    /// Operators that make many rows of those that came, and have not made all. Invariant: the later in the pipeline the
    /// later here, so the last goes on first.
    unfinished: Vec<Unfinished>,
}

/// A worker's scratch space for one operator.
#[derive(Default)]
pub(crate) struct Scratch {
    pub probe_state: ProbeState,
    pub left: Vec<u32>,
    pub right: Vec<u32>,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Rows are at the end.
    Rows,
    /// No rows, but more may come.
    Nothing,
    /// The vector is done.
    End,
}

/// Rows of which an operator makes many.
struct Unfinished {
    operator: usize,
    batch: Batch,
    selection: Selection,
    more: More,
}

/// What an operator that makes many rows has left.
pub(super) enum More {
    /// The pairs of a probe, whose state is in the scratch space. Whether each row has had a match so far; empty where nobody
    /// asks.
    Pairs(Vec<bool>),
    /// What a function makes.
    Made(RowPieces),
}

/// Rows on their way.
pub(super) type Moving = (Batch, Selection);

impl Steps {
    /// For a pipeline of so many operators.
    pub fn new(operators: usize) -> Steps {
        let scratch = std::iter::repeat_with(Scratch::default);
        Steps {
            scratch: scratch.take(operators).collect(),
            ..Steps::default()
        }
    }

    /// Begins with another vector; of the one before nothing is left.
    pub fn restart(&mut self) {
        self.begun = false;
        self.unfinished.clear();
    }

    /// Leaves rows with an operator that makes many of them.
    pub(super) fn leave(
        &mut self,
        operator: usize,
        batch: &mut Batch,
        selection: &mut Selection,
        more: More,
    ) {
        self.unfinished.push(Unfinished {
            operator,
            batch: std::mem::take(batch),
            selection: std::mem::take(selection),
            more,
        });
    }
}

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
                    return Ok(self.done(batch, selection, steps));
                };
                let live = &self.live[number + 1];
                let made = made.map_err(Error::Call)?;
                let rows = expansion::batch_of(&made, expand, &of.batch, live, self.types)?;
                Some((rows, of.selection.pick(&made.of)))
            }
            (Operator::Probe(probe), More::Pairs(matched)) => {
                if !self.next_pairs(probe, own)? {
                    let goes_on = self.after_pairs(probe, number, of)?;
                    self.done(batch, selection, steps);
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

    /// Takes back the rows of the last operator that made many, which has made all.
    fn done(&self, batch: &mut Batch, selection: &mut Selection, steps: &mut Steps) -> Step {
        if let Some(of) = steps.unfinished.pop() {
            (*batch, *selection) = (of.batch, of.selection);
        }
        Step::Nothing
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
    ) -> Result<Option<Moving>> {
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
