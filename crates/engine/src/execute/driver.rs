//! The driver: runs the stages of a program one after the other, each on all NUMA instances and in as many passes
//! over partitioned join tables as it takes.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use futures::future::{BoxFuture, FutureExt, join_all};
use tokio::sync::mpsc::Sender;

use crate::cancel::{Stop, StopOnDrop};
use crate::error::{Error, Result};
use crate::execute::partitioned::PartitionedTable;
use crate::execute::per_node::Instances;
use crate::execute::probe_rows::ProbeRows;
use crate::execute::query_state::QueryState;
use crate::execute::result_stream::{ResultSender, ResultStream};
use crate::execute::sink::{DENSE, SinkFactory, SinkState};
use crate::execute::{staged, stream};
use crate::executor::Executor;
use crate::logical::opening::WorkingRows;
use crate::logical::relation::Output;
use crate::memory::spill::Spill;
use crate::operators::limit::Limit;
use crate::options::{Execution, NumaPolicy};
use crate::physical::analysis::{
    barriers, expected_probes, expected_rows, groups, last_transfers, last_uses,
    may_be_partitioned, ordered,
};
use crate::physical::program::{Operator, Pipeline, Program, Sink, Source, Stage};
use crate::profile::Record;
use crate::runtime::Runtime;
use crate::vector::radix::PARTITIONS;
use crate::vector::value::Type;

/// Runs `program`, sends its answer to `sender`, and returns the report of the executor.
///
/// Boxed: what executes programs is compiled in this crate, once, and not again in each crate and test that awaits it.
pub(crate) fn run<'a>(
    program: &'a Program,
    types: Arc<[Type]>,
    output: &'a Output,
    runtime: &'a Runtime,
    execution: &'a Execution,
    sender: Sender<RecordBatch>,
) -> BoxFuture<'a, Result<Vec<String>>> {
    drive(program, types, output, runtime, execution, sender).boxed()
}

async fn drive(
    program: &Program,
    types: Arc<[Type]>,
    output: &Output,
    runtime: &Runtime,
    execution: &Execution,
    sender: Sender<RecordBatch>,
) -> Result<Vec<String>> {
    let stop = StopOnDrop(runtime.stop.below());
    let out = Arc::new(ResultStream::new(sender, output, &types));
    let mut run = QueryState::new(program, out, types, (runtime, execution, stop.0.clone()))?;
    let (last, transfers) = (last_uses(program), last_transfers(program));
    for number in 0..program.stages.len() {
        run.run_stage(program, number).await?;
        run.forget_read(number, &last, &transfers);
    }
    run.send_answer(program).await?;
    Ok(run.report)
}

impl QueryState {
    /// The state of a query of which nothing has run yet.
    pub(super) fn new(
        program: &Program,
        out: Arc<ResultStream>,
        types: Arc<[Type]>,
        (runtime, execution, stop): (&Runtime, &Execution, Stop),
    ) -> Result<QueryState> {
        Ok(QueryState {
            runtime: runtime.clone(),
            execution: execution.clone(),
            report: vec![format!(
                "run by the {} executor, plan {}",
                execution.executor.name(),
                execution.numa_policy.name()
            )],
            sends: false,
            stage: 0,
            out,
            aggregates: program.aggregates.clone(),
            parameters: vec![None; program.parameters.len()],
            join_tables: vec![None; program.stages.len()],
            rows: std::iter::repeat_with(|| None)
                .take(program.stages.len())
                .collect(),
            spilled: vec![None; program.stages.len()],
            partitioned: vec![None; program.stages.len()],
            working: WorkingRows::default(),
            spill: Spill::new(execution.spill.clone()),
            may_spill: false,
            may_partition: may_be_partitioned(program).into(),
            expected_probes: expected_probes(program).into(),
            ordered: ordered(program).into(),
            expected_rows: expected_rows(program).into(),
            most_dense: 0,
            held: std::iter::repeat_with(Vec::new)
                .take(program.stages.len())
                .collect(),
            stop,
            width: runtime.workers.threads(),
            share: None,
            instances: match execution.numa_policy {
                NumaPolicy::Distr => Instances::new(runtime, program, &types)?,
                _ => None,
            },
            types,
        })
    }

    /// Runs a stage, whose inputs have run, and takes the values of the scalar subqueries that it gives.
    pub(super) async fn run_stage(&mut self, program: &Program, number: usize) -> Result<()> {
        let stage = &program.stages[number];
        self.run_pipelines(number, stage, number == program.answer)
            .await?;
        for (parameter, (of, var)) in program.parameters.iter().enumerate() {
            if *of == number {
                self.parameters[parameter] = Some(self.single(number, *var)?);
            }
        }
        Ok(())
    }

    /// Sends the rows of the answer that were not sent while they were computed.
    pub(super) async fn send_answer(&mut self, program: &Program) -> Result<()> {
        if let Some(answer) = self.rows[program.answer].take() {
            self.out.send(&answer).await?;
        }
        if let Some(spilled) = self.spilled[program.answer].take() {
            for extent in &spilled.extents {
                self.out.send(&spilled.read(extent)?).await?;
            }
        }
        Ok(())
    }

    async fn run_pipelines(&mut self, number: usize, stage: &Stage, answer: bool) -> Result<()> {
        let group_join = self.group_join(&stage.sink);
        self.stage = number;
        self.sends = answer && stage.sink.is_plain();
        let width = self.width.max(1) as u64;
        self.most_dense = self.expected_rows[number].saturating_mul(DENSE) / width;
        self.may_spill = self.spill.is_allowed()
            && (self.may_partition[number] || !matches!(stage.sink, Sink::Table { .. }));
        let mut sinks = Vec::new();
        for (mut tables, stage) in groups(stage, &|table| self.partitioned[table].is_some()) {
            tables.sort_by_key(|table| first_probe(&stage, *table));
            self.passes(number, &stage, &tables, group_join, &mut sinks)
                .await?;
        }
        intact(stage)?;
        let factory = self.sink_factory(&stage.sink, group_join)?;
        if sinks.is_empty() {
            // Without any row the stage still needs its columns, so it ends with one empty sink.
            sinks.push(factory.sink()?);
        }
        let timed = self.timed(match &stage.sink {
            Sink::Table { .. } => "finish: join table",
            Sink::Fold { .. } => "finish: groups",
            Sink::Rows { .. } => "finish: rows",
            Sink::Window { .. } => "finish: window functions",
        });
        timed
            .over(self.finish(number, stage, factory, group_join, sinks))
            .await
    }

    /// Makes the result of a stage of what its workers have left in their sinks.
    async fn finish(
        &mut self,
        number: usize,
        stage: &Stage,
        factory: SinkFactory,
        group_join: Option<usize>,
        sinks: Vec<SinkState>,
    ) -> Result<()> {
        match &stage.sink {
            Sink::Table { .. } => self.finish_join_table(number, &factory, sinks).await,
            Sink::Fold { .. } => {
                self.finish_aggregate(number, &factory, group_join, sinks)
                    .await
            }
            Sink::Rows { .. } if self.sends => {
                let senders = sinks.into_iter().map(SinkState::sent);
                ResultSender::end(senders.collect::<Result<_>>()?).await
            }
            Sink::Rows { .. } => self.finish_rows(number, &factory, sinks).await,
            Sink::Window { .. } => self.finish_window(number, &factory, sinks).await,
        }
    }

    /// Runs the pipelines of a stage on the workers of this instance.
    pub(crate) async fn run_here(
        &mut self,
        number: usize,
        stage: &Stage,
        group_join: Option<usize>,
        sinks: &mut Vec<SinkState>,
    ) -> Result<()> {
        let alone = if is_serial(stage) {
            Some("one row after the other")
        } else if self.is_small(stage) {
            Some("too few rows for several tasks")
        } else {
            self.is_lazy(stage).then_some("no rows behind the limit")
        };
        let executor = match alone {
            Some(_) => Executor::Fused,
            None => self.execution.executor,
        };
        if let (Some(why), true) = (alone, executor != self.execution.executor) {
            self.report.push(format!("stage {number}: {why}"));
        }
        match executor {
            Executor::Fused => {
                let begun = Instant::now();
                let limit = Arc::new(Limit::new(&stage.sink));
                let mut kernels = vec![];
                for (place, pipeline) in stage.pipelines.iter().enumerate() {
                    let before = sinks.len();
                    let done = self
                        .pipeline(pipeline, &stage.sink, group_join, &limit, sinks)
                        .await?;
                    kernels.extend(done);
                    let own = sinks[before..].iter_mut();
                    own.for_each(|sink| sink.of_pipeline(place));
                }
                let seconds = begun.elapsed().as_secs_f64();
                if let Some(profile) = &self.execution.profile {
                    profile.note(Record {
                        stage: number,
                        executor,
                        seconds,
                        block_rows: 0,
                        blocks_made: 0,
                        blocks_reused: 0,
                        operators: vec![],
                        kernels,
                    });
                }
                let time = stream::tally::milliseconds((seconds * 1e9) as u64);
                self.report.push(format!("stage {number}: fused, {time}"));
                Ok(())
            }
            Executor::Stream => stream::stage(self, number, stage, group_join, sinks).await,
            Executor::Staged => staged::stage(self, number, stage, group_join, sinks).await,
        }
    }

    /// Runs the pipelines of `stage` for all combinations of partitions of the partitioned join tables `tables`:
    /// one pass for as many partitions as fit in memory.
    pub(crate) fn passes<'r>(
        &'r mut self,
        number: usize,
        stage: &'r Stage,
        tables: &'r [usize],
        group_join: Option<usize>,
        sinks: &'r mut Vec<SinkState>,
    ) -> BoxFuture<'r, Result<()>> {
        async move {
            let Some((table, others)) = tables.split_first() else {
                return self.run_barriers(number, stage, group_join, sinks).await;
            };
            let partitioned = self.partitioned[*table].clone();
            let partitioned =
                partitioned.ok_or_else(|| Error::internal("a table without parts"))?;
            let over = (*table, &*partitioned);
            let apart = self.probe_rows(number, stage, over, group_join).await?;
            let (rows, stage) = match &apart {
                Some((rows, left)) => (Some(rows), left),
                None => (None, stage),
            };
            let passes = self
                .passes_over(number, stage, (over, rows), others, group_join, sinks)
                .await?;
            let line =
                format!("stage {number}: {passes} passes over the join table of stage {table}");
            self.report.push(line);
            Ok(())
        }
        .boxed()
    }

    /// Runs the pipelines of `stage` for the partitions of one partitioned join table, and all combinations of those of `others`; with
    /// the `rows` of each partition, if these were spilled. Returns the number of passes.
    fn passes_over<'r>(
        &'r mut self,
        number: usize,
        stage: &'r Stage,
        ((table, partitioned), rows): ((usize, &'r PartitionedTable), Option<&'r ProbeRows>),
        others: &'r [usize],
        group_join: Option<usize>,
        sinks: &'r mut Vec<SinkState>,
    ) -> BoxFuture<'r, Result<usize>> {
        async move {
            let (mut next, mut passes) = (0, 0);
            while next < PARTITIONS {
                let first = next;
                let mut divided = partitioned.divided(first);
                if divided.is_none() {
                    match self.load(table, partitioned, first).await? {
                        Some(end) => next = end,
                        None => divided = Some(self.divided(partitioned, first)?),
                    }
                }
                if let Some(parts) = divided {
                    next += 1;
                    let rows = rows.map(|rows| self.divided_rows(rows, first));
                    let rows = rows.transpose()?;
                    let over = ((table, &*parts), rows.as_ref());
                    passes += self
                        .passes_over(number, stage, over, others, group_join, sinks)
                        .await?;
                    continue;
                }
                if let Some(rows) = rows {
                    self.read_parts(rows, first..next);
                }
                passes += 1;
                self.passes(number, stage, others, group_join, sinks)
                    .await?;
                if let (true, Some(join_table)) = (partitioned.marks, &self.join_tables[table]) {
                    partitioned.mark(first..next, &join_table.marked(true));
                }
                self.forget(table);
            }
            Ok(passes)
        }
        .boxed()
    }

    async fn run_barriers(
        &mut self,
        number: usize,
        stage: &Stage,
        group_join: Option<usize>,
        sinks: &mut Vec<SinkState>,
    ) -> Result<()> {
        for barrier in barriers(stage) {
            match self.instances.take_if(|_| !is_serial(&barrier)) {
                None => self.run_here(number, &barrier, group_join, sinks).await?,
                Some(all) => {
                    let done = self.run_everywhere(&all, number, &barrier, group_join, sinks);
                    done.await?;
                    self.instances = Some(all);
                }
            }
        }
        Ok(())
    }

    /// Runs the pipelines of a stage on all NUMA instances at once.
    pub(crate) async fn run_everywhere(
        &mut self,
        all: &Instances,
        number: usize,
        stage: &Stage,
        group_join: Option<usize>,
        sinks: &mut Vec<SinkState>,
    ) -> Result<()> {
        let mut runs: Vec<QueryState> = (0..all.workers.len())
            .map(|n| self.of_instance(all, n))
            .collect();
        let running = runs.iter_mut().map(|run| async move {
            let mut sinks = Vec::new();
            let done = run.run_here(number, stage, group_join, &mut sinks).await;
            if done.is_err() {
                run.stop.stop();
            }
            done.map(|()| sinks)
        });
        let mut failed = None;
        for (done, workers) in join_all(running).await.into_iter().zip(&*all.workers) {
            let node = workers.layout().places()[0].node;
            match done {
                Ok(own) => sinks.extend(own.into_iter().map(|sink| sink.of(node))),
                Err(Error::Cancelled) => failed = failed.or(Some(Error::Cancelled)),
                Err(e) => failed = Some(e),
            }
        }
        for (run, workers) in runs.into_iter().zip(&*all.workers) {
            let node = workers.layout().places()[0].node;
            let lines = run.report.into_iter();
            self.report
                .extend(lines.map(|line| format!("node {node}: {line}")));
        }
        failed.map_or(Ok(()), Err)?;
        all.agree(stage)
    }
}

/// The place of the first probe of `table` in the first pipeline of `stage`.
fn first_probe(stage: &Stage, table: usize) -> Option<usize> {
    let mut operators = stage.pipelines.first()?.operators.iter();
    operators
        .position(|operator| matches!(operator, Operator::Probe(probe) if probe.stage == table))
}

/// Whether one worker must take all rows of a stage in their order.
fn is_serial(stage: &Stage) -> bool {
    stage.pipelines.iter().any(Pipeline::is_serial)
}

/// Fails where a table that `stage` has read lies in a file that was mapped and lost a part meanwhile: the rows that
/// were read may be wrong.
fn intact(stage: &Stage) -> Result<()> {
    for pipeline in &stage.pipelines {
        if let Source::Scan(scan) = &pipeline.source {
            let pool = scan.table.snapshot().pool();
            pool.intact().map_err(table::Error::from)?;
        }
    }
    Ok(())
}
