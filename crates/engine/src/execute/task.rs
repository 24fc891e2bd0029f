//! Pipeline tasks: what the workers of a running pipeline share.

use std::sync::Arc;

use arrow::datatypes::DataType;
use memory::Traffic;
use table::{Filter, Table};

use crate::cancel::Stop;
use crate::error::Result;
use crate::execute::key_filter::KeyFilter;
use crate::execute::open::OpenSource;
use crate::execute::query_state::QueryState;
use crate::execute::sink::{SinkFactory, SinkState};
use crate::operators::join_table::JoinTable;
use crate::operators::meter::{At, PipelineMeter, WorkerClock};
use crate::operators::pipeline::PipelineExecutor;
use crate::operators::source::{ColumnReader, Selection};
use crate::operators::steps::{Step, Steps};
use crate::physical::program::{Pipeline, Sink, Source};
use crate::profile::Kernel;
use crate::vector::batch::Batch;
use crate::vector::value::{Type, Var, Vector};

/// A running pipeline.
pub(crate) struct PipelineTask {
    pub source: OpenSource,
    /// Those filters of a scan that come from the join tables it probes.
    pub key_filters: Vec<KeyFilter>,
    pub pipeline: Pipeline,
    pub live: Vec<Vec<Var>>,
    pub sink_factory: SinkFactory,
    pub types: Arc<[Type]>,
    pub join_tables: Vec<Option<Arc<JoinTable>>>,
    pub parameters: Vec<Option<Vector>>,
    pub traffic: Arc<Traffic>,
    pub stop: Stop,
    /// Measures the operators, if a profile is collected.
    pub(crate) meter: Option<Arc<PipelineMeter>>,
}

pub(crate) fn node() -> usize {
    workers::here().map_or(0, |here| here.node)
}

impl PipelineTask {
    /// What the key filters of the scan did, a line for each.
    pub(crate) fn filtered(&self) -> impl Iterator<Item = String> {
        self.key_filters.iter().filter_map(KeyFilter::line)
    }

    /// The profile of the operators.
    pub(crate) fn kernels(&self) -> Vec<Kernel> {
        self.meter.as_ref().map_or(vec![], |meter| meter.kernels())
    }

    /// The executor of some of its operators; see [`PipelineExecutor::complete`].
    pub fn executor(
        &self,
        operators: std::ops::Range<usize>,
        complete: bool,
    ) -> PipelineExecutor<'_> {
        PipelineExecutor {
            types: &self.types,
            live: &self.live[operators.start..=operators.end],
            operators: &self.pipeline.operators[operators],
            join_tables: &self.join_tables,
            parameters: &self.parameters,
            complete,
            top_k: self.sink_factory.top_k.as_ref(),
            stop: &self.stop,
            clock: None,
        }
    }

    /// Bytes of a row at the operator where it is widest.
    pub fn row_bytes(&self) -> usize {
        let bytes = |vars: &Vec<Var>| vars.iter().map(|var| self.types[*var].width()).sum();
        self.live.iter().map(bytes).max().unwrap_or(0).max(1)
    }

    /// Takes the next step of a vector through all operators, and the rows that come to the end into the sink. Returns their
    /// number; `None` once the vector is done.
    pub(crate) fn push(
        &self,
        batch: &mut Batch,
        selection: &mut Selection,
        reader: ColumnReader<'_, '_>,
        steps: &mut Steps,
        sink: &mut SinkState,
        clock: Option<&WorkerClock>,
    ) -> Result<Option<usize>> {
        let operators = self.pipeline.operators.len();
        let decides = self.sink_factory.decides.as_ref();
        let executor = PipelineExecutor {
            clock,
            ..self.executor(0..operators, decides.is_none())
        };
        match executor.step(batch, selection, reader, steps)? {
            Step::Rows => {}
            Step::Nothing => return Ok(Some(0)),
            Step::End => {
                clock.inspect(|clock| clock.turn(At::Elsewhere));
                return Ok(None);
            }
        }
        let rows = batch.rows;
        let Some(decides) = decides else {
            self.sink_factory.add(sink, batch)?;
            return Ok(Some(rows));
        };
        executor.load(decides, reader, selection, batch)?;
        let live = &self.live[operators];
        if let Some(picks) = self.sink_factory.choose_rows(sink, batch)? {
            batch.pick(&picks, live)?;
            *selection = selection.pick(&picks);
        }
        if batch.rows > 0 {
            executor.load(live, reader, selection, batch)?;
        }
        self.sink_factory.settle_rows(sink, batch)?;
        Ok(Some(rows))
    }
}

impl QueryState {
    /// Opens a pipeline for its workers.
    pub fn task(
        &self,
        pipeline: &Pipeline,
        sink: &Sink,
        group_join: Option<usize>,
    ) -> Result<PipelineTask> {
        let mut source = self.open(&pipeline.source, sink.first_key())?;
        let mut key_filters = vec![];
        if let (Source::Scan(scan), OpenSource::Scan { filters, .. }) =
            (&pipeline.source, &mut source)
        {
            key_filters = self.key_filters(scan, pipeline);
            filters.extend(key_filters.iter().map(|own| own.filter.clone()));
            // Keys are looked up in less time than texts are read.
            filters.sort_by_key(|filter| reads_texts(filter, &scan.table));
        }
        Ok(PipelineTask {
            source,
            key_filters,
            live: pipeline.live(sink.reads(group_join.is_some())),
            pipeline: pipeline.clone(),
            sink_factory: self.sink_factory(sink, group_join)?,
            types: self.types.clone(),
            join_tables: self.join_tables.clone(),
            parameters: self.parameters.clone(),
            traffic: self.runtime.traffic.clone(),
            stop: self.stop.clone(),
            meter: None,
        })
    }
}

/// The source of a pipeline, as reports call it.
pub(crate) fn source_name(pipeline: &Pipeline) -> String {
    match &pipeline.source {
        Source::Scan(scan) => format!("scan {}", table::titled(&scan.table.definition().name)),
        Source::Read(reading) => format!("read {}", reading.source.name()),
        Source::Values { .. } => "values".into(),
        Source::Rows(stage) => format!("rows of stage {stage}"),
        Source::Marked { stage, .. } => format!("marked rows of stage {stage}"),
    }
}

/// Whether a filter looks at texts rather than at codes for them.
fn reads_texts(filter: &Filter, table: &Table) -> bool {
    let schema = table.schema();
    filter.columns.iter().any(|column| {
        let data = schema.field(*column).data_type();
        matches!(data, DataType::Utf8View) && !table.is_coded(*column)
    })
}
