//! Rounds: a program that runs again and again, each time with other rows in a working table, as the term of a recursive query does.
//!
//! Stages that do not depend on the working table run in the first round alone: a join table of a relation that stays the same is
//! built once, and the rows of each round look their matches up in it. They keep their memory until the last round is over.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::future::{BoxFuture, FutureExt};
use tokio::sync::mpsc::Sender;

use crate::cancel::StopOnDrop;
use crate::error::Result;
use crate::execute::query_state::QueryState;
use crate::execute::result_stream::ResultStream;
use crate::logical::opening::Opening;
use crate::logical::relation::Output;
use crate::physical::analysis::renewed;
use crate::physical::program::Program;
use crate::vector::value::Type;

/// A program that runs round by round.
pub struct Rounds {
    program: Arc<Program>,
    output: Output,
    /// What has run so far, with the results of the stages that serve for all rounds.
    state: QueryState,
    /// The working table.
    working: u64,
    /// For each stage, whether each round runs it.
    renewed: Vec<bool>,
    begun: bool,
    /// A stream that nobody receives: between rounds.
    nobody: Arc<ResultStream>,
    _stop: StopOnDrop,
}

impl Rounds {
    pub(crate) fn new(
        program: &Arc<Program>,
        types: Arc<[Type]>,
        output: &Output,
        working: u64,
        opening: &Opening<'_>,
    ) -> Result<Rounds> {
        let stop = StopOnDrop(opening.runtime.stop.below());
        let mut execution = opening.execution.clone();
        // What it measures would be kept of each round.
        execution.profile = None;
        // Each round has a receiver of its own.
        let nobody = tokio::sync::mpsc::channel(1).0;
        let nobody = Arc::new(ResultStream::new(nobody, output, &types));
        let with = (opening.runtime, &execution, stop.0.clone());
        let mut state = QueryState::new(program, Arc::clone(&nobody), types, with)?;
        state.working = opening.working.clone();
        Ok(Rounds {
            program: Arc::clone(program),
            output: output.clone(),
            state,
            working,
            renewed: renewed(program, working),
            begun: false,
            nobody,
            _stop: stop,
        })
    }

    /// Runs a round with `rows` in the working table, and sends the rows that it finds to `sender`. The rows of the last round go with
    /// the next one.
    ///
    /// # Errors
    /// Those of [`Prepared::run_by`](crate::Prepared::run_by); after one there are no more rounds.
    pub fn run(
        &mut self,
        rows: Arc<[RecordBatch]>,
        sender: Sender<RecordBatch>,
    ) -> BoxFuture<'_, Result<()>> {
        async move {
            let types = &self.state.types;
            self.state.out = Arc::new(ResultStream::new(sender, &self.output, types));
            let done = self.round(rows).await;
            // The receiver hears that there are no more rows.
            self.state.out = Arc::clone(&self.nobody);
            done
        }
        .boxed()
    }

    async fn round(&mut self, rows: Arc<[RecordBatch]>) -> Result<()> {
        let Rounds { program, state, .. } = self;
        state.working.put(self.working, rows);
        state.report.clear();
        for (number, renewed) in self.renewed.iter().enumerate() {
            if *renewed {
                state.forget(number);
                state.partitioned[number] = None;
            }
        }
        for (number, renewed) in self.renewed.iter().enumerate() {
            if *renewed || !self.begun {
                state.run_stage(program, number).await?;
            }
        }
        self.begun = true;
        state.send_answer(program).await
    }
}

impl std::fmt::Debug for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rounds")
            .field("program", &self.program)
            .field("renewed", &self.renewed)
            .finish_non_exhaustive()
    }
}
