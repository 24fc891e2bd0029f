//! A pipeline being run: what its workers share, and a worker's way through the pieces of its source.

use std::sync::Arc;

use memory::Traffic;

use crate::cancel::Stop;
use crate::error::Result;
use crate::execute::open::OpenSource;
use crate::execute::query_state::QueryState;
use crate::execute::sink::{SinkFactory, SinkState};
use crate::operators::join_table::JoinTable;
use crate::operators::meter::{At, PipelineMeter, WorkerClock};
use crate::operators::pipeline::{PipelineExecutor, Scratch};
use crate::operators::source::{ColumnReader, Selection};
use crate::physical::program::{Pipeline, Sink};
use crate::profile::Kernel;
use crate::vector::batch::Batch;
use crate::vector::value::{Type, Var, Vector};

/// A pipeline being run by several workers.
pub(crate) struct PipelineTask {
    pub source: OpenSource,
    pub pipe: Pipeline,
    pub live: Vec<Vec<Var>>,
    pub sinks: SinkFactory,
    pub types: Arc<[Type]>,
    pub join_tables: Vec<Option<Arc<JoinTable>>>,
    pub parameters: Vec<Option<Vector>>,
    pub traffic: Arc<Traffic>,
    pub stop: Stop,
    /// Set if its operators are measured.
    pub(crate) meter: Option<Arc<PipelineMeter>>,
}

pub(crate) fn node() -> usize {
    fiber::here().map_or(0, |here| here.node)
}

impl PipelineTask {
    /// What its operators did.
    pub(crate) fn kernels(&self) -> Vec<Kernel> {
        self.meter.as_ref().map_or(vec![], |meter| meter.kernels())
    }

    /// Some of its steps; see [`PipelineExecutor::complete`].
    pub fn line(&self, steps: std::ops::Range<usize>, complete: bool) -> PipelineExecutor<'_> {
        PipelineExecutor {
            types: &self.types,
            live: &self.live[steps.start..=steps.end],
            steps: &self.pipe.steps[steps],
            join_tables: &self.join_tables,
            parameters: &self.parameters,
            complete,
            top_k: self.sinks.top_k.as_ref(),
            stop: &self.stop,
            clock: None,
        }
    }

    /// Bytes of a row where most vectors are there.
    pub fn row_bytes(&self) -> usize {
        let bytes = |vars: &Vec<Var>| vars.iter().map(|var| self.types[*var].width()).sum();
        self.live.iter().map(bytes).max().unwrap_or(0).max(1)
    }

    /// Takes one vector through all steps; gives how many rows came to the end.
    pub(crate) fn push(
        &self,
        batch: &mut Batch,
        origin: &mut Selection,
        reader: ColumnReader<'_, '_>,
        scratch: &mut [Scratch],
        end: &mut SinkState,
        clock: Option<&WorkerClock>,
    ) -> Result<usize> {
        batch.restart(origin.rows().len());
        let line = PipelineExecutor {
            clock,
            ..self.line(0..self.pipe.steps.len(), true)
        };
        let mut rows = 0;
        let mut add = |batch: &mut Batch, _: &mut Selection| {
            // One piece may have very many partners.
            self.stop.check()?;
            rows += batch.rows;
            self.sinks.add(end, batch)
        };
        line.run(0, batch, origin, reader, scratch, &mut add)?;
        clock.inspect(|clock| clock.turn(At::Elsewhere));
        Ok(rows)
    }
}

impl QueryState {
    /// What the workers of a pipeline share.
    pub fn task(
        &self,
        pipe: &Pipeline,
        sink: &Sink,
        group_join: Option<usize>,
    ) -> Result<PipelineTask> {
        Ok(PipelineTask {
            source: self.open(&pipe.source)?,
            live: pipe.live(sink.reads(group_join.is_some())),
            pipe: pipe.clone(),
            sinks: self.sinks(sink, group_join)?,
            types: self.types.clone(),
            join_tables: self.join_tables.clone(),
            parameters: self.parameters.clone(),
            traffic: self.runtime.traffic.clone(),
            stop: self.stop.clone(),
            meter: None,
        })
    }
}
