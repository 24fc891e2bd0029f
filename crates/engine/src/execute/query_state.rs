//! The state of a running query: the results of its stages so far, and what they run with.

use std::ops::Range;
use std::sync::Arc;

use crate::cancel::Stop;
use crate::error::{Error, Result};
use crate::execute::partitioned::PartitionedTable;
use crate::execute::per_node::Instances;
use crate::execute::result_stream::ResultStream;
use crate::execute::share::InstanceShare;
use crate::logical::aggregate_call::AggregateCall;
use crate::logical::opening::WorkingRows;
use crate::memory::reservation::Reservation;
use crate::memory::spill::{Extent, Spill, Spilled, joined};
use crate::operators::join_table::JoinTable;
use crate::operators::source::pieces;
use crate::options::Execution;
use crate::physical::program::{Pipeline, Sink, Source, Stage};
use crate::runtime::Runtime;
use crate::time_line::Timed;
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Type, Var, Vector};

/// The state of a running query.
pub(crate) struct QueryState {
    pub runtime: Runtime,
    pub execution: Execution,
    pub stop: Stop,
    /// Receives the answer.
    pub out: Arc<ResultStream>,
    /// Whether the running stage sends its rows to `out` as they come.
    pub sends: bool,
    /// The stage that runs.
    pub stage: usize,
    /// The executor's report, a line for each stage or operator.
    pub report: Vec<String>,
    pub types: Arc<[Type]>,
    /// The aggregate functions that the engine has no accumulator for.
    pub aggregates: Arc<[Arc<dyn AggregateCall>]>,
    pub parameters: Vec<Option<Vector>>,
    pub join_tables: Vec<Option<Arc<JoinTable>>>,
    pub rows: Vec<Option<Arc<Materialized>>>,
    /// For each stage, its rows if they were spilled.
    pub spilled: Vec<Option<Arc<Spilled>>>,
    /// For each stage, its join table if it was spilled (Grace hash join).
    pub partitioned: Vec<Option<Arc<PartitionedTable>>>,
    /// The rows of the working tables of recursive queries, of which this one computes a round.
    pub working: WorkingRows,
    /// The query's spill file.
    pub spill: Arc<Spill>,
    /// For each stage, whether its join table may be partitioned.
    pub may_partition: Arc<[bool]>,
    /// For each stage, about how many rows probe its join table.
    pub expected_probes: Arc<[u64]>,
    /// For each stage, whether probes of its join table ask for the order of its rows.
    pub ordered: Arc<[bool]>,
    /// For each stage, about how many rows reach its sink.
    pub expected_rows: Arc<[u64]>,
    /// Most entries of a dense index of groups in the running stage, one worker's. More cost more to clear than rows to hash.
    pub most_dense: u64,
    /// Whether the running stage may spill.
    pub may_spill: bool,
    /// For each stage, the memory reserved for its rows and its join table.
    pub held: Vec<Vec<Reservation>>,
    /// Workers of the whole query when it began.
    pub width: usize,
    /// The share of this instance, if it is one of several.
    pub share: Option<InstanceShare>,
    /// The instances of the query, if it has several.
    pub instances: Option<Instances>,
}

impl QueryState {
    /// The value of a scalar subquery; NULL if it has no row.
    pub fn single(&self, stage: usize, var: Var) -> Result<Vector> {
        let stored = self.read_rows(stage)?;
        let stored = stored.ok_or_else(|| Error::internal("a subquery without rows"))?;
        match stored.rows {
            0 => Ok(Vector::nulls(self.types[var].kind, 1)),
            1 => stored
                .columns
                .get(&var)
                .cloned()
                .ok_or_else(|| Error::internal("a subquery without value")),
            rows => Err(Error::ManyRows { rows }),
        }
    }

    pub fn take(&mut self, number: usize, bytes: usize, what: &'static str) -> Result<()> {
        let held = Reservation::take(&self.runtime.budget, bytes as u64, what)?;
        self.held[number].push(held);
        Ok(())
    }

    /// Whether so little memory is left that results should be spilled rather than kept. Blocks in flight need the
    /// rest.
    pub fn is_full(&self) -> bool {
        let budget = &self.runtime.budget;
        budget.used() > budget.limit() / 4 * 3
    }

    /// After stage `number`: drops what nobody reads any more. `last` says for each stage who reads it last, and `keys`
    /// which scan takes the keys of its join table last. A join table of which only the keys are still wanted stays while what
    /// the query keeps takes a quarter of the memory at most. (The buffer pool, which counts as used, takes a third by itself.)
    pub fn forget_read(&mut self, number: usize, last: &[usize], keys: &[usize]) {
        let held = self.held.iter().flatten();
        let held: u64 = held.map(Reservation::bytes).sum();
        let is_short = held > self.runtime.budget.limit() / 4 || self.is_full();
        for (stage, (last, keys)) in last.iter().zip(keys).enumerate() {
            let is_over = *last <= number && (is_short || *keys <= number);
            if is_over && *last.max(keys) >= number {
                self.forget(stage);
            }
        }
    }

    /// Drops the rows and the join table of a stage and releases their memory.
    pub fn forget(&mut self, number: usize) {
        self.join_tables[number] = None;
        if let Some(all) = &mut self.instances {
            all.forget(number);
        }
        (self.rows[number], self.spilled[number]) = (None, None);
        self.held[number].clear();
    }

    /// Reports that stage `number` spilled, and how much the query has spilled so far.
    pub fn note_spilled(&mut self, number: usize, what: &str) {
        let bytes = self.spill.bytes() >> 10;
        self.report.push(format!(
            "stage {number}: {what} did not fit in memory; {bytes} KiB spilled so far"
        ));
    }

    /// How many instances run at the same time.
    pub fn instances(&self) -> usize {
        self.share.as_ref().map_or(1, InstanceShare::of)
    }

    /// The stage whose join table gives the groups of `sink`, if it is a group join that is possible and fits in
    /// memory.
    pub fn group_join(&self, sink: &Sink) -> Option<usize> {
        let Sink::Fold {
            group_join: Some(by),
            folds,
            ..
        } = sink
        else {
            return None;
        };
        let join_table = self.join_tables[by.stage].as_ref()?;
        // Every worker has accumulators for every row, which cannot be spilled.
        let bytes = (join_table.all * self.width * (1 + 24 * folds.len())) as u64;
        let budget = &self.runtime.budget;
        let fits = bytes <= budget.limit().saturating_sub(budget.used()) / 3;
        let fits = fits && join_table.all <= self.room();
        (join_table.unique && fits).then_some(by.stage)
    }

    /// Most rows or groups that a worker keeps before it spills.
    pub fn room(&self) -> usize {
        self.execution.max_rows_before_spill.unwrap_or(usize::MAX)
    }

    /// Whether `stage` asks a source for no more rows than its limit lets through, which tasks that read ahead would not do.
    pub(crate) fn is_lazy(&self, stage: &Stage) -> bool {
        let is_lazy = |pipeline: &Pipeline| match &pipeline.source {
            Source::Read(reading) => reading.source.is_lazy(),
            _ => false,
        };
        let (order, most) = stage.sink.sorts();
        order.is_empty() && most.is_some() && stage.pipelines.iter().any(is_lazy)
    }

    /// Whether `stage` reads so few rows that one task finishes before others would have started.
    pub(crate) fn is_small(&self, stage: &Stage) -> bool {
        let least = algebra::VECTOR_ROWS;
        let rows = stage
            .pipelines
            .iter()
            .map(|pipeline| match &pipeline.source {
                Source::Scan(scan) => scan.table.rows() as usize,
                // A source that waits for a device is never small.
                Source::Read(reading) => {
                    let size = reading.source.size(&self.opening());
                    size.map_or(least + 1, |(_, rows)| rows)
                }
                Source::Values { batch, .. } => batch.num_rows(),
                Source::Rows(of) => match &self.spilled[*of] {
                    Some(spilled) => spilled.rows,
                    None => self.rows[*of].as_ref().map_or(0, |rows| rows.rows),
                },
                Source::Marked { stage: of, .. } => {
                    self.join_tables[*of].as_ref().map_or(0, |table| table.rows)
                }
            });
        rows.sum::<usize>() <= least
    }

    /// This instance's pieces of rows that lie on no particular node.
    pub fn pieces_of(&self, rows: usize, size: usize) -> Arc<[Range<usize>]> {
        let all = pieces(rows, size);
        match &self.share {
            None => all,
            Some(share) => share.deal(&all),
        }
    }

    /// Sets the rows of stage `number` to spilled `extents`.
    pub(crate) fn set_spilled(
        &mut self,
        number: usize,
        vars: Vec<(Var, Kind)>,
        extents: Vec<Extent>,
    ) {
        self.spilled[number] = Some(Arc::new(Spilled {
            spill: self.spill.clone(),
            rows: extents.iter().map(|extent| extent.rows).sum(),
            extents,
            vars,
        }));
    }

    /// The rows of a stage that has few, read back if they were spilled.
    pub(crate) fn read_rows(&self, number: usize) -> Result<Option<Arc<Materialized>>> {
        match &self.spilled[number] {
            None => Ok(self.rows[number].clone()),
            Some(spilled) => {
                let blocks = spilled.extents.iter().map(|extent| spilled.read(extent));
                let blocks = blocks.collect::<Result<Vec<_>>>()?;
                Ok(Some(Arc::new(joined(&blocks, &spilled.vars)?)))
            }
        }
    }

    /// An operator of the running stage on the time line, if there is one.
    pub fn timed(&self, name: &str) -> Timed {
        Timed::new(self.execution.time_line.as_ref(), self.stage, name)
    }

    /// The state with which instance `number` runs a stage.
    pub fn of_instance(&self, all: &Instances, number: usize) -> QueryState {
        let mut runtime = self.runtime.clone();
        runtime.workers = all.workers[number].clone();
        QueryState {
            runtime,
            execution: self.execution.clone(),
            stop: self.stop.clone(),
            out: self.out.clone(),
            sends: self.sends,
            stage: self.stage,
            report: vec![],
            types: self.types.clone(),
            aggregates: self.aggregates.clone(),
            parameters: self.parameters.clone(),
            join_tables: all.join_tables[number].clone(),
            rows: self.rows.clone(),
            spilled: self.spilled.clone(),
            partitioned: vec![],
            working: self.working.clone(),
            spill: self.spill.clone(),
            may_partition: self.may_partition.clone(),
            expected_probes: self.expected_probes.clone(),
            ordered: self.ordered.clone(),
            expected_rows: self.expected_rows.clone(),
            most_dense: self.most_dense,
            may_spill: self.may_spill,
            held: vec![],
            width: self.width,
            share: Some(all.share(number)),
            instances: None,
        }
    }
}
