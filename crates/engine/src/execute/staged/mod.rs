//! The staged executor (the HEP-Frame text): some tasks set up the blocks of a ring, others process them.
//!
//! A block of the ring is *empty*, being *set up*, *ready* or being *processed*. A setup task opens pieces of the
//! source and fills an empty block with the rows that pass the source's filters. A processing task takes a ready
//! block through all operators into its own sink and empties it; by option several take parts of one block at the same time
//! ([`Execution::per_block`](crate::Execution::per_block)). A block without rows is dropped at once. Pipelines
//! are cut as in every executor and run one after the other. With little memory blocks are smaller, and then fewer.
//!
//! Filters whose order does not matter are reordered while the query runs, so that the filter which drops most rows
//! for its cost comes first (`order.rs`). Tasks of both kinds sleep while the ring has nothing for them; the
//! profile says how long and why.

pub(crate) mod order;
mod ring;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use table::Filter;

use crate::error::{Error, Result};
use crate::execute::query_state::QueryState;
use crate::execute::sink::SinkState;
use crate::execute::staged::order::{Order, Orders, Segment, segments};
use crate::execute::staged::ring::Ring;
use crate::execute::stream::block::Block;
use crate::execute::stream::channel::{Consumer, Producer, channel};
use crate::execute::stream::flow::{Flow, Tasks, join, stopping, tasks};
use crate::execute::stream::port::BlockPort;
use crate::execute::stream::source::{SharedSource, scan};
use crate::execute::stream::tally::{Tallies, Tally, milliseconds};
use crate::execute::task::{PipelineTask, source_name};
use crate::executor::Executor;
use crate::operators::pipeline::PipelineExecutor;
use crate::operators::source::{ColumnReader, Selection};
use crate::operators::steps::Steps;
use crate::physical::program::{Source, Stage};
use crate::profile::Record;
use crate::vector::batch::Batch;

/// A setup task's side of the ring.
struct Setup {
    flow: Arc<Flow>,
    ring: Arc<Ring>,
    /// Processing tasks that take a block.
    per_block: usize,
    orders: Arc<Orders>,
    empty: Consumer<usize>,
    ready: Producer<usize>,
    slot: usize,
}

impl BlockPort for Setup {
    async fn empty(&mut self, tally: &Tally) -> Result<Block> {
        // Closed only if the processing tasks have failed.
        self.slot = self
            .empty
            .receive(&tally.output)
            .await
            .ok_or(Error::Cancelled)?;
        Ok(self.ring.set_up(self.slot, &self.flow))
    }

    async fn full(&mut self, block: Block, tally: &Tally) -> Result<()> {
        self.ring.ready(self.slot, block);
        for _ in 0..self.per_block {
            let sent = self.ready.send(self.slot, &tally.output).await;
            sent.map_err(|_| Error::Cancelled)?;
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    fn filters(&self) -> Option<Arc<[Filter]>> {
        Some(self.orders.now().filters.clone())
    }

    fn into_sink(self) -> Option<SinkState> {
        None
    }

    fn opened(&self, left: bool) {
        if !left {
            self.ring.dropped();
        }
        self.orders.reconsider();
    }
}

/// A processing task.
struct Processing {
    flow: Arc<Flow>,
    task: Arc<PipelineTask>,
    ring: Arc<Ring>,
    orders: Arc<Orders>,
    tally: Arc<Tally>,
    ready: Consumer<usize>,
    empty: Producer<usize>,
}

impl Processing {
    async fn run(self) -> Result<Option<SinkState>> {
        let flow = &*self.flow;
        let segments = segments(&self.task.pipeline.operators);
        let mut steps: Vec<Steps> = segments
            .iter()
            .map(|segment| match segment {
                Segment::Free(_) => Steps::new(1),
                Segment::Fixed(range) => Steps::new(range.len()),
            })
            .collect();
        let mut sink = None;
        while let Some(slot) = self.ready.receive(&self.tally.input).await {
            flow.check()?;
            if let Some(rows) = self.ring.enter(slot) {
                self.tally.count(1, rows);
            }
            let done = self.block(slot, &segments, &mut steps, &mut sink);
            let is_last = self.ring.leave(slot, flow);
            done?;
            if let Some(sink) = &mut sink {
                sink.flush().await?;
            }
            if is_last {
                // Cannot fail: the channel has room for all slots.
                let _ = self.empty.try_send(slot);
            }
            self.orders.reconsider();
            tokio::task::yield_now().await;
        }
        Ok(sink)
    }

    /// Takes parts of a block through the operators until none is left; other tasks may take parts of it as well.
    fn block(
        &self,
        slot: usize,
        segments: &[Segment],
        steps: &mut [Steps],
        sink: &mut Option<SinkState>,
    ) -> Result<()> {
        let _working = self.tally.work();
        let sink = match sink {
            Some(sink) => sink,
            None => sink.insert(self.task.sink_factory.sink()?),
        };
        let order = self.orders.now();
        while !self.flow.limit.reached()
            && let Some((place, mut part)) = self.ring.take(slot)
        {
            self.flow.check()?;
            let Some(hold) = part.hold.clone() else {
                continue;
            };
            sink.start(part.place);
            let mut walk = Walk {
                task: self,
                order: &order,
                reader: hold.reader(),
                sink,
                rows: 0,
            };
            walk.go(segments, steps, &mut part.batch, &mut part.selection)?;
            let rows = walk.rows;
            part.hold = None;
            self.ring.give_back(slot, (place, part), rows);
            self.flow.limit.count(rows);
        }
        Ok(())
    }
}

/// One batch on its way through the segments of a pipeline.
struct Walk<'w> {
    task: &'w Processing,
    order: &'w Order,
    reader: ColumnReader<'w, 'w>,
    sink: &'w mut SinkState,
    /// Rows that reached the sink.
    rows: usize,
}

impl Walk<'_> {
    fn executor(&self, operators: std::ops::Range<usize>, complete: bool) -> PipelineExecutor<'_> {
        let task = &self.task.task;
        PipelineExecutor {
            types: &task.types,
            live: &self.order.live[operators.start..=operators.end],
            operators: &self.order.operators[operators],
            join_tables: &task.join_tables,
            parameters: &task.parameters,
            complete,
            top_k: None,
            stop: &task.stop,
            clock: None,
        }
    }

    fn go(
        &mut self,
        segments: &[Segment],
        steps: &mut [Steps],
        batch: &mut Batch,
        selection: &mut Selection,
    ) -> Result<()> {
        let (order, task, reader) = (self.order, self.task, self.reader);
        let Some((segment, segments)) = segments.split_first() else {
            let last = order.operators.len();
            let (mut rows, sink) = (0, &mut *self.sink);
            let all = &task.task;
            let executor = PipelineExecutor {
                types: &all.types,
                live: &order.live[last..=last],
                operators: &[],
                join_tables: &all.join_tables,
                parameters: &all.parameters,
                complete: true,
                top_k: all.sink_factory.top_k.as_ref(),
                stop: &all.stop,
                clock: None,
            };
            executor.run(
                batch,
                selection,
                reader,
                &mut Steps::default(),
                &mut |batch, _| {
                    rows += batch.rows;
                    task.flow.check()?;
                    all.sink_factory.add(sink, batch)
                },
            )?;
            self.rows += rows;
            return Ok(());
        };
        let Some((own, steps)) = steps.split_first_mut() else {
            return Err(Error::internal("a segment without steps"));
        };
        match segment {
            Segment::Free(range) => {
                for place in range.clone() {
                    let (tested, begun) = (batch.rows, Instant::now());
                    let mut passed = 0;
                    let executor = self.executor(place..place + 1, false);
                    executor.run(batch, selection, reader, own, &mut |batch, _| {
                        passed = batch.rows;
                        Ok(())
                    })?;
                    task.orders.record(order, place, tested, passed, begun);
                    if passed == 0 {
                        return Ok(());
                    }
                }
                self.go(segments, steps, batch, selection)
            }
            Segment::Fixed(range) => {
                let task = &task.task;
                let executor = PipelineExecutor {
                    types: &task.types,
                    live: &order.live[range.start..=range.end],
                    operators: &order.operators[range.clone()],
                    join_tables: &task.join_tables,
                    parameters: &task.parameters,
                    complete: false,
                    top_k: None,
                    stop: &task.stop,
                    clock: None,
                };
                executor.run(batch, selection, reader, own, &mut |batch, selection| {
                    self.go(segments, steps, batch, selection)
                })
            }
        }
    }
}

/// Runs all pipelines of a stage and appends the sinks to `sinks`.
pub(crate) async fn stage(
    run: &mut QueryState,
    number: usize,
    stage: &Stage,
    group_join: Option<usize>,
    sinks: &mut Vec<SinkState>,
) -> Result<()> {
    let width = run.runtime.workers.threads();
    let places = run.execution.ring.unwrap_or(2 * width + 1);
    for pipeline in &stage.pipelines {
        let begun = Instant::now();
        let task = Arc::new(run.task(pipeline, &stage.sink, group_join)?);
        if task.source.pieces() == 0 {
            continue;
        }
        // One to set up while another is processed.
        let flow = Flow::new(run, &stage.sink, (places, places.min(2)), task.row_bytes())?;
        let (places, flow) = (places.min(flow.flights), Arc::new(flow));
        let setups = tasks(&run.execution, 0, width).min(task.source.pieces());
        let processings = tasks(&run.execution, 1, width);
        // More would find nothing left to do.
        let per_block = run.execution.per_block.min(processings);
        let ring = Arc::new(Ring::new(places, per_block));
        let orders = Arc::new(Orders::new(&task));
        let (empty_in, empty) = channel::<usize>(places, run.execution.lock_free);
        let (ready_in, ready) = channel::<usize>(places * per_block, run.execution.lock_free);
        for place in 0..places {
            let placed = empty_in.try_send(place);
            debug_assert!(placed.is_ok(), "there is room for all places");
        }
        let tallies = [Tallies::new(setups), Tallies::new(processings)];
        let setup = format!("setup, {}", source_name(pipeline));
        let timed = [run.timed(&setup), run.timed("processing")];
        let mut running: Tasks = Vec::with_capacity(setups + processings);
        let shared = SharedSource::new(&flow, &task);
        for tally in tallies[0].each() {
            let hand = Setup {
                flow: flow.clone(),
                ring: ring.clone(),
                per_block,
                orders: orders.clone(),
                empty: empty.clone(),
                ready: ready_in.clone(),
                slot: 0,
            };
            let task = scan(shared.clone(), tally.clone(), hand);
            let task = timed[0].clone().over(task);
            let task = run.stop.clone().over(stopping(flow.clone(), task));
            running.push(run.runtime.workers.spawn(task));
        }
        for tally in tallies[1].each() {
            let task = Processing {
                flow: flow.clone(),
                task: task.clone(),
                ring: ring.clone(),
                orders: orders.clone(),
                tally: tally.clone(),
                ready: ready.clone(),
                empty: empty_in.clone(),
            };
            let task = run
                .stop
                .clone()
                .over(stopping(flow.clone(), timed[1].clone().over(task.run())));
            running.push(run.runtime.workers.spawn(task));
        }
        drop((empty_in, empty, ready_in, ready));
        join(running, sinks).await?;
        let time = begun.elapsed();
        report(run, number, &task, &flow, &ring, &orders, &tallies, time);
    }
    Ok(())
}

/// Adds what the tasks of a pipeline did to the report, and to the profile if one is collected.
#[expect(
    clippy::too_many_arguments,
    reason = "everything that one pipeline ran with"
)]
fn report(
    run: &mut QueryState,
    number: usize,
    task: &PipelineTask,
    flow: &Flow,
    ring: &Ring,
    orders: &Orders,
    tallies: &[Tallies; 2],
    time: Duration,
) {
    let pipeline = &task.pipeline;
    let mut names = match &pipeline.source {
        Source::Scan(scan) => scan.shown.clone(),
        _ => vec![],
    };
    names.extend(task.key_filters.iter().map(|own| own.shown.clone()));
    let counted = ring.counted();
    let times = counted.times.map(milliseconds);
    run.report.push(format!(
        "stage {number}: staged, {}; a ring of {} blocks of {} rows: {} processed, {} morsels dropped by filters of the source, {} blocks by operators",
        milliseconds(time.as_nanos() as u64),
        ring.len(),
        flow.rows,
        counted.processed,
        counted.dropped[0],
        counted.dropped[1],
    ));
    run.report.push(format!(
        "    blocks were empty for {}, set up for {}, ready for {}, processed for {}",
        times[0], times[1], times[2], times[3],
    ));
    run.report.extend(orders.line(&names));
    let setup = format!("setup, {} (output: an empty block)", source_name(pipeline));
    run.report.push(tallies[0].line(&setup));
    let processing = "processing (input: a block that is ready)";
    run.report.push(tallies[1].line(processing));
    run.report.extend(task.filtered());
    if let Some(profile) = &run.execution.profile {
        profile.note(Record {
            stage: number,
            executor: Executor::Staged,
            seconds: time.as_secs_f64(),
            block_rows: flow.rows,
            blocks_made: flow.blocks.made.load(Ordering::Relaxed),
            blocks_reused: flow.blocks.reused.load(Ordering::Relaxed),
            operators: vec![
                tallies[0].operator(&format!("setup, {}", source_name(pipeline))),
                tallies[1].operator("processing"),
            ],
            kernels: vec![],
        });
    }
}
