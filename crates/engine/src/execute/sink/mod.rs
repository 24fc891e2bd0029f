//! Where rows end: each worker's own sink.

mod spill;
mod top_k;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memory::Budget;

use crate::error::{Error, Result, missing};
use crate::execute::query_state::QueryState;
use crate::execute::result_stream::{ResultSender, ResultStream};
use crate::memory::spill::{Lists, Spill};
use crate::operators::aggregate::grouping::{By, Grouping};
use crate::operators::top_k::TopKFilter;
use crate::physical::program::Sink;
use crate::vector::batch::Batch;
use crate::vector::builder::RowsBuilder;
use crate::vector::value::{Kind, Type, Var};

/// What the sinks of workers are made from.
pub(crate) struct SinkFactory {
    pub sink: Sink,
    /// Rows of the table whose rows are the groups.
    pub(crate) rows: Option<usize>,
    pub(crate) types: Arc<[Type]>,
    pub(crate) budget: Arc<Budget>,
    /// Where rows and groups go that do not fit.
    pub(crate) spill: Arc<Spill>,
    /// Whether they may go there.
    pub(crate) may_spill: bool,
    /// Rows or groups that are kept at most.
    pub(crate) room: usize,
    /// The vectors that are collected, ascending; of groups, none.
    pub(crate) vars: Vec<(Var, Kind)>,
    /// Entries of the largest dense index of groups.
    pub(crate) most: u64,
    /// Where rows go as they come, if they do.
    pub(crate) out: Option<Arc<ResultStream>>,
    /// What rows must reach to be kept, if few are asked for.
    pub top_k: Option<TopKFilter>,
}

impl SinkFactory {
    /// No groups yet.
    pub(crate) fn groups(&self) -> Result<Grouping> {
        let Sink::Fold { keys, folds, .. } = &self.sink else {
            return Err(Error::internal("groups of another stage"));
        };
        let types = |var: Var| self.types[var].clone();
        let own: Vec<Type> = keys.iter().map(|key| self.types[*key].clone()).collect();
        let by = self.rows.map_or(By::Keys(&own), By::Row);
        Grouping::new(by, folds, &types, self.most)
    }

    /// A worker's own sink, with nothing in it yet.
    pub fn end(&self) -> Result<SinkState> {
        Ok(match (&self.sink, &self.out) {
            (Sink::Fold { .. }, _) => SinkState::SpilledGroups(Box::new(AggregateSink {
                groups: self.groups()?,
                away: SpilledGroups::default(),
            })),
            (Sink::Rows { .. }, Some(out)) => SinkState::Sent(ResultSender::new(
                out.clone(),
                self.spill.clone(),
                self.vars.clone(),
            )),
            _ => SinkState::Rows(Box::new(RowSink {
                rows: RowsBuilder::new(&self.vars),
                away: vec![],
            })),
        })
    }

    /// Adds the rows of `batch` to a sink that was made here.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget has not what the sink grows by, and it may not be put away.
    pub fn add(&self, end: &mut SinkState, batch: &Batch) -> Result<()> {
        match (end, &self.sink) {
            (SinkState::Rows(gathered), _) => {
                self.add_rows(gathered, batch)?;
                self.keep_rows(gathered)
            }
            (SinkState::Sent(rows), _) => rows.add(batch, &self.budget),
            (
                SinkState::SpilledGroups(folded),
                Sink::Fold {
                    keys, group_join, ..
                },
            ) => {
                let group_join = group_join.as_ref().filter(|_| self.rows.is_some());
                let row = group_join.map(|by| by.row);
                folded.groups.add(batch, keys, row)?;
                self.keep_groups(folded, 0)
            }
            _ => Err(Error::internal("groups of another stage")),
        }
    }
}

/// A worker's own sink.
pub(crate) enum SinkState {
    Rows(Box<RowSink>),
    /// Rows that leave as they come.
    Sent(ResultSender),
    SpilledGroups(Box<AggregateSink>),
}

impl SinkState {
    /// What is added next is of this piece of the source.
    pub fn start(&mut self, piece: u64) {
        if let SinkState::Rows(gathered) = self {
            gathered.rows.start(piece);
        }
    }

    /// Lets go what is ready to leave.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if nobody takes it any more.
    pub async fn flush(&mut self) -> Result<()> {
        match self {
            SinkState::Sent(rows) => rows.flush().await,
            _ => Ok(()),
        }
    }

    /// The same, filled by the workers of `node`.
    pub(crate) fn of(mut self, node: usize) -> SinkState {
        if let SinkState::Rows(gathered) = &mut self {
            gathered.rows.node = Some(node);
        }
        self
    }

    pub(crate) fn gathered(self) -> Result<RowSink> {
        match self {
            SinkState::Rows(rows) => Ok(*rows),
            _ => Err(Error::internal("another sink where rows were expected")),
        }
    }

    pub(crate) fn folded(self) -> Result<AggregateSink> {
        match self {
            SinkState::SpilledGroups(groups) => Ok(*groups),
            _ => Err(Error::internal("another sink where groups were expected")),
        }
    }

    pub(crate) fn sent(self) -> Result<ResultSender> {
        match self {
            SinkState::Sent(rows) => Ok(rows),
            _ => Err(Error::internal("another sink where an answer was expected")),
        }
    }
}

/// The rows that a worker collected.
pub(crate) struct RowSink {
    pub rows: RowsBuilder,
    pub away: Lists,
}

/// The groups that a worker made.
pub(crate) struct AggregateSink {
    pub groups: Grouping,
    pub away: SpilledGroups,
}

/// Groups that were put away, by part.
#[derive(Default)]
pub(crate) struct SpilledGroups {
    /// Their keys and states.
    pub states: Lists,
    /// For each function of different values, by its place: keys and values.
    pub values: BTreeMap<usize, Lists>,
}

impl SpilledGroups {
    /// Whether nothing has been put away.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The same and those of `other`.
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
    /// What the sinks of workers are made from.
    pub fn sinks(&self, sink: &Sink, group_join: Option<usize>) -> Result<SinkFactory> {
        let width = self.width as u64;
        let rows = group_join.map(|stage| self.join_tables[stage].as_ref().ok_or_else(missing));
        let vars: BTreeSet<Var> = match sink {
            Sink::Table { keys, vars, .. } => keys.iter().chain(vars).copied().collect(),
            Sink::Rows { vars, .. } => vars.iter().copied().collect(),
            Sink::Fold { .. } => BTreeSet::new(),
        };
        Ok(SinkFactory {
            top_k: TopKFilter::of(sink, &self.types),
            sink: sink.clone(),
            rows: rows.transpose()?.map(|join_table| join_table.all),
            types: self.types.clone(),
            budget: self.runtime.budget.clone(),
            spill: self.spill.clone(),
            may_spill: self.may_spill,
            room: self.room(),
            vars: vars
                .into_iter()
                .map(|var| (var, self.types[var].kind))
                .collect(),
            out: self.sends.then(|| self.out.clone()),
            most: (self.runtime.budget.limit() / 16 / width / 32).min(1 << 26),
        })
    }
}
