//! Sinks: where the rows of a pipeline end. Every worker has its own.

mod spill;
mod top_k;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memory::Budget;

use crate::error::{Error, Result, missing};
use crate::execute::query_state::QueryState;
use crate::execute::result_stream::{ResultSender, ResultStream};
use crate::logical::aggregate_call::AggregateCall;
use crate::memory::spill::{Lists, Spill};
use crate::operators::aggregate::grouping::{GroupedBy, Grouping};
use crate::operators::top_k::TopKFilter;
use crate::physical::program::Sink;
use crate::vector::batch::Batch;
use crate::vector::builder::RowsBuilder;
use crate::vector::value::{Kind, Type, Var};

/// Makes the sinks of a stage's workers.
pub(crate) struct SinkFactory {
    pub sink: Sink,
    /// For a group join: the rows of the join table.
    pub(crate) rows: Option<usize>,
    pub(crate) types: Arc<[Type]>,
    /// The aggregate functions that the engine has no accumulator for.
    pub(crate) aggregates: Arc<[Arc<dyn AggregateCall>]>,
    pub(crate) budget: Arc<Budget>,
    /// Where rows and groups are spilled.
    pub(crate) spill: Arc<Spill>,
    /// Whether the stage may spill.
    pub(crate) may_spill: bool,
    /// Most rows or groups that a sink keeps before it spills.
    pub(crate) room: usize,
    /// The vectors that the sink collects, ascending; none for groups.
    pub(crate) vars: Vec<(Var, Kind)>,
    /// Most entries of a dense index of groups.
    pub(crate) most: u64,
    /// Receives the rows as they come, if the stage sends the answer.
    pub(crate) out: Option<Arc<ResultStream>>,
    /// For first rows of groups: the vectors that decide which rows are kept. The others need only be read of those.
    pub decides: Option<Vec<Var>>,
    /// The top-k filter, if the sink keeps only the first few rows of an order.
    pub top_k: Option<TopKFilter>,
}

/// The workers' dense indexes of groups have at most this many entries together for each row that is expected: to clear one, and to
/// read it at the end, takes less than a fourth of what it takes to find a group by its hash.
pub(crate) const DENSE: u64 = 4;

impl SinkFactory {
    /// An empty set of groups.
    pub(crate) fn groups(&self) -> Result<Grouping> {
        self.groups_indexed(self.most)
    }

    /// An empty set for about so many groups. Its dense index, if it has one, has few entries for each of them: a set that gets a
    /// part of all keys would clear and read an index for the range of all.
    pub(crate) fn groups_for(&self, count: usize) -> Result<Grouping> {
        self.groups_indexed(self.most.min(DENSE.saturating_mul(count as u64)))
    }

    /// An empty set of groups with at most so many entries in a dense index.
    fn groups_indexed(&self, most: u64) -> Result<Grouping> {
        let Sink::Fold { keys, folds, .. } = &self.sink else {
            return Err(Error::internal("groups of another stage"));
        };
        let types = |var: Var| self.types[var].clone();
        let own: Vec<Type> = keys.iter().map(|key| self.types[*key].clone()).collect();
        let by = self.rows.map_or(GroupedBy::Keys(&own), GroupedBy::Row);
        Grouping::new(by, folds, &types, most, &self.aggregates)
    }

    /// An empty sink for one worker.
    pub fn sink(&self) -> Result<SinkState> {
        Ok(match (&self.sink, &self.out) {
            (Sink::Fold { .. }, _) => SinkState::Aggregate(Box::new(AggregateSink {
                groups: self.groups()?,
                spilled: SpilledGroups::default(),
            })),
            (Sink::Rows { .. }, Some(out)) => SinkState::Sent(Box::new(ResultSender::new(
                out.clone(),
                self.spill.clone(),
                self.vars.clone(),
            ))),
            _ => SinkState::Rows(Box::new(RowSink {
                rows: RowsBuilder::new(&self.vars),
                spilled: vec![],
            })),
        })
    }

    /// Adds the rows of `batch` to a sink made here.
    ///
    /// # Errors
    /// [`Error::Memory`] if the sink grows beyond the memory limit and may not spill.
    pub fn add(&self, state: &mut SinkState, batch: &Batch) -> Result<()> {
        match (state, &self.sink) {
            (SinkState::Rows(row_sink), _) => {
                self.add_rows(row_sink, batch)?;
                self.reserve_rows(row_sink)
            }
            (SinkState::Sent(rows), _) => rows.add(batch, &self.budget),
            (
                SinkState::Aggregate(aggregate),
                Sink::Fold {
                    keys, group_join, ..
                },
            ) => {
                let group_join = group_join.as_ref().filter(|_| self.rows.is_some());
                let row = group_join.map(|by| by.row);
                aggregate.groups.add(batch, keys, row)?;
                self.reserve_groups(aggregate, 0)
            }
            _ => Err(Error::internal("groups of another stage")),
        }
    }
}

impl SinkFactory {
    /// For first rows of groups: see [`Grouping::choose_rows`]. The chosen rows go to
    /// [`settle_rows`](Self::settle_rows).
    pub fn choose_rows(&self, state: &mut SinkState, batch: &Batch) -> Result<Option<Vec<u32>>> {
        match (state, &self.sink) {
            (
                SinkState::Aggregate(aggregate),
                Sink::Fold {
                    keys, group_join, ..
                },
            ) => {
                let group_join = group_join.as_ref().filter(|_| self.rows.is_some());
                let row = group_join.map(|by| by.row);
                aggregate.groups.choose_rows(batch, keys, row)
            }
            _ => Err(Error::internal("first rows of another stage")),
        }
    }

    /// Adds the rows of `batch` that were chosen.
    ///
    /// # Errors
    /// As of [`add`](Self::add).
    pub fn settle_rows(&self, state: &mut SinkState, batch: &Batch) -> Result<()> {
        let SinkState::Aggregate(aggregate) = state else {
            return Err(Error::internal("first rows of another stage"));
        };
        if batch.rows > 0 {
            aggregate.groups.settle_rows(batch)?;
        }
        self.reserve_groups(aggregate, 0)
    }
}

/// One worker's sink.
pub(crate) enum SinkState {
    Rows(Box<RowSink>),
    /// Rows of the answer, sent as they come.
    Sent(Box<ResultSender>),
    Aggregate(Box<AggregateSink>),
}

impl SinkState {
    /// The rows added from now on come from this morsel of the source.
    pub fn start(&mut self, piece: u64) {
        match self {
            SinkState::Rows(row_sink) => row_sink.rows.start(piece),
            SinkState::Sent(rows) => rows.start(piece),
            _ => {}
        }
    }

    /// The rows are of this pipeline of the stage.
    pub fn of_pipeline(&mut self, pipeline: usize) {
        if let SinkState::Sent(rows) = self {
            rows.of_pipeline(pipeline);
        }
    }

    /// Sends rows that are ready to be sent.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the receiver is gone.
    pub async fn flush(&mut self) -> Result<()> {
        match self {
            SinkState::Sent(rows) => rows.flush().await,
            _ => Ok(()),
        }
    }

    /// Records that the sink was filled by the workers of `node`.
    pub(crate) fn of(mut self, node: usize) -> SinkState {
        if let SinkState::Rows(row_sink) = &mut self {
            row_sink.rows.node = Some(node);
        }
        self
    }

    pub(crate) fn row_sink(self) -> Result<RowSink> {
        match self {
            SinkState::Rows(rows) => Ok(*rows),
            _ => Err(Error::internal("another sink where rows were expected")),
        }
    }

    pub(crate) fn aggregate(self) -> Result<AggregateSink> {
        match self {
            SinkState::Aggregate(groups) => Ok(*groups),
            _ => Err(Error::internal("another sink where groups were expected")),
        }
    }

    pub(crate) fn sent(self) -> Result<ResultSender> {
        match self {
            SinkState::Sent(rows) => Ok(*rows),
            _ => Err(Error::internal("another sink where an answer was expected")),
        }
    }
}

/// The rows that one worker collected.
pub(crate) struct RowSink {
    pub rows: RowsBuilder,
    pub spilled: Lists,
}

/// The groups that one worker made.
pub(crate) struct AggregateSink {
    pub groups: Grouping,
    pub spilled: SpilledGroups,
}

/// Spilled groups, by partition.
#[derive(Default)]
pub(crate) struct SpilledGroups {
    /// Keys and accumulator states.
    pub states: Lists,
    /// For each accumulator of distinct values, by its index: keys and values.
    pub values: BTreeMap<usize, Lists>,
}

impl SpilledGroups {
    /// Whether nothing was spilled.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Adds the extents of `other`.
    pub fn join(&mut self, other: SpilledGroups) {
        join(&mut self.states, other.states);
        for (place, lists) in other.values {
            join(self.values.entry(place).or_default(), lists);
        }
    }
}

fn join(lists: &mut Lists, more: Lists) {
    if lists.len() < more.len() {
        lists.resize_with(more.len(), Vec::new);
    }
    lists
        .iter_mut()
        .zip(more)
        .for_each(|(all, own)| all.extend(own));
}

impl QueryState {
    /// The sink factory of a stage.
    pub fn sink_factory(&self, sink: &Sink, group_join: Option<usize>) -> Result<SinkFactory> {
        let width = self.width as u64;
        let rows = group_join.map(|stage| self.join_tables[stage].as_ref().ok_or_else(missing));
        let vars: BTreeSet<Var> = match sink {
            Sink::Table { keys, vars, .. } => keys.iter().chain(vars).copied().collect(),
            Sink::Rows { vars, .. } | Sink::Window { vars, .. } => vars.iter().copied().collect(),
            Sink::Fold { .. } => BTreeSet::new(),
        };
        Ok(SinkFactory {
            top_k: TopKFilter::of(sink, &self.types),
            decides: sink.decides(group_join.is_some()),
            sink: sink.clone(),
            rows: rows.transpose()?.map(|join_table| join_table.all),
            types: self.types.clone(),
            aggregates: self.aggregates.clone(),
            budget: self.runtime.budget.clone(),
            spill: self.spill.clone(),
            may_spill: self.may_spill,
            room: self.room(),
            vars: vars
                .into_iter()
                .map(|var| (var, self.types[var].kind))
                .collect(),
            out: self.sends.then(|| self.out.clone()),
            most: (self.runtime.budget.limit() / 16 / width / 32)
                .min(1 << 26)
                .min(self.most_dense),
        })
    }
}
