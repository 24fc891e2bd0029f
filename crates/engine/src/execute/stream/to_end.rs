//! Taking the rows of a source to the end of the pipeline on the worker that opened them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::execute::open::OpenSource;
use crate::execute::pieces::OpenRows;
use crate::execute::sink::SinkState;
use crate::execute::stream::block::Block;
use crate::execute::stream::flow::Flow;
use crate::execute::stream::port::BlockPort;
use crate::execute::stream::tally::Tally;
use crate::execute::task::PipelineTask;
use crate::operators::source::Selection;
use crate::operators::steps::Steps;
use crate::vector::batch::Batch;

/// After so many steps with one vector, which a join makes many of, other tasks have their turn.
const TURN: usize = 64;

/// Takes all rows to the end of the pipeline, into a sink of its own.
pub(crate) struct ToEnd {
    pub flow: Arc<Flow>,
    task: Arc<PipelineTask>,
    batch: Batch,
    selection: Selection,
    steps: Steps,
    sink: Option<SinkState>,
}

impl ToEnd {
    pub fn new(flow: &Arc<Flow>, task: &Arc<PipelineTask>) -> ToEnd {
        ToEnd {
            flow: flow.clone(),
            task: task.clone(),
            batch: Batch::new(task.types.len()),
            selection: Selection::default(),
            steps: Steps::new(task.pipeline.operators.len()),
            sink: None,
        }
    }

    /// Whether the scan has no further piece, so that passing one on would leave this worker without work.
    pub fn is_last(&self) -> bool {
        let source = &self.task.source;
        self.flow.keeps_last() && matches!(source, OpenSource::Scan { .. }) && source.pieces() == 0
    }

    /// Takes rows to the end of the pipeline, vector by vector, as the fused executor does. Returns true once the limit is
    /// reached.
    async fn run(&mut self, mut rows: OpenRows) -> Result<bool> {
        let (flow, task) = (&*self.flow, &*self.task);
        let sink = match &mut self.sink {
            Some(sink) => sink,
            None => self.sink.insert(task.sink_factory.sink()?),
        };
        sink.start(rows.place);
        let mut taken = 0;
        while rows.next(&mut self.selection) {
            self.batch.restart(self.selection.rows().len());
            self.steps.restart();
            loop {
                let (batch, selection) = (&mut self.batch, &mut self.selection);
                let reader = rows.hold.reader();
                let came = task.push(batch, selection, reader, &mut self.steps, sink, None)?;
                let Some(came) = came else { break };
                if flow.limit.count(came) {
                    return Ok(true);
                }
                sink.flush().await?;
                taken += 1;
                if taken % TURN == 0 {
                    flow.check()?;
                    flow.yield_now().await;
                }
            }
        }
        Ok(false)
    }
}

impl BlockPort for ToEnd {
    async fn empty(&mut self, _: &Tally) -> Result<Block> {
        Err(Error::internal("a block of rows that are not passed on"))
    }

    async fn full(&mut self, _: Block, _: &Tally) -> Result<()> {
        Err(Error::internal("a block of rows that are not passed on"))
    }

    async fn take_on(
        &mut self,
        rows: OpenRows,
        tally: &Tally,
    ) -> Result<std::result::Result<bool, OpenRows>> {
        let _working = tally.work();
        tally.kept.fetch_add(1, Ordering::Relaxed);
        Ok(Ok(self.run(rows).await?))
    }

    fn into_sink(self) -> Option<SinkState> {
        self.sink
    }
}
