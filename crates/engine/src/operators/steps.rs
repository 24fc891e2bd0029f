//! The steps in which a vector of rows goes through the operators of a pipeline.
//!
//! Most operators leave at most as many rows as come. A probe and a function of rows may make very many of one vector, which go
//! on in pieces: each is a step, so that who takes the steps may hand rows over, reach a limit, or let other tasks run
//! between them.

use crate::logical::row_function::RowPieces;
use crate::operators::join_table::ProbeState;
use crate::operators::source::Selection;
use crate::vector::batch::Batch;

/// How far a vector has come, and a worker's scratch space for the operators, which is used again for the next.
#[derive(Default)]
pub(crate) struct Steps {
    /// One for each operator.
    pub scratch: Vec<Scratch>,
    pub(super) begun: bool,
    /// Operators that make many rows of those that came, and have not made all. Invariant: the later in the pipeline the
    /// later here, so the last goes on first.
    pub(super) unfinished: Vec<Unfinished>,
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
pub(super) struct Unfinished {
    pub operator: usize,
    pub batch: Batch,
    pub selection: Selection,
    pub more: More,
}

/// What an operator that makes many rows has left.
pub(super) enum More {
    /// The pairs of a probe, whose state is in the scratch space. Whether each row has had a match so far; empty where nobody
    /// asks.
    Pairs(Vec<bool>),
    /// What a function makes.
    Made(RowPieces),
}

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

    /// Takes back the rows of the last operator that makes many, which has made all.
    pub(super) fn done(&mut self, batch: &mut Batch, selection: &mut Selection) {
        if let Some(of) = self.unfinished.pop() {
            (*batch, *selection) = (of.batch, of.selection);
        }
    }
}
