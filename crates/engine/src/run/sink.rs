//! Where rows end: each worker's own sink.

use std::sync::Arc;

use memory::Budget;

use super::away::{Folded, Gathered, Groups};
use super::best::Bar;
use super::send::{Out, Sending};
use crate::batch::Batch;
use crate::column::Collected;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::group::{By, Grouping};
use crate::plan::Sink;
use crate::spill::Spill;
use crate::value::{Kind, Type};

/// What the sinks of workers are made from.
pub(crate) struct Shape {
    pub sink: Sink,
    /// Rows of the table whose rows are the groups.
    pub(super) rows: Option<usize>,
    pub(super) types: Arc<[Type]>,
    pub(super) budget: Arc<Budget>,
    /// Where rows and groups go that do not fit.
    pub(super) spill: Arc<Spill>,
    /// Whether they may go there.
    pub(super) may_spill: bool,
    /// Rows or groups that are kept at most.
    pub(super) room: usize,
    /// The vectors that are collected, ascending; of groups, none.
    pub(super) vars: Vec<(Var, Kind)>,
    /// Entries of the largest dense index of groups.
    pub(super) most: u64,
    /// Where rows go as they come, if they do.
    pub(super) out: Option<Arc<Out>>,
    /// What rows must reach to be kept, if few are asked for.
    pub bar: Option<Bar>,
}

impl Shape {
    /// No groups yet.
    pub(super) fn groups(&self) -> Result<Grouping> {
        let Sink::Fold { keys, folds, .. } = &self.sink else {
            return Err(Error::internal("groups of another stage"));
        };
        let types = |var: Var| self.types[var].clone();
        let own: Vec<Type> = keys.iter().map(|key| self.types[*key].clone()).collect();
        let by = self.rows.map_or(By::Keys(&own), By::Row);
        Grouping::new(by, folds, &types, self.most)
    }

    /// A worker's own sink, with nothing in it yet.
    pub fn end(&self) -> Result<End> {
        Ok(match (&self.sink, &self.out) {
            (Sink::Fold { .. }, _) => End::Groups(Box::new(Folded {
                groups: self.groups()?,
                away: Groups::default(),
            })),
            (Sink::Rows { .. }, Some(out)) => End::Sent(Sending::new(
                out.clone(),
                self.spill.clone(),
                self.vars.clone(),
            )),
            _ => End::Rows(Box::new(Gathered {
                rows: Collected::new(&self.vars),
                away: vec![],
            })),
        })
    }

    /// Adds the rows of `batch` to a sink that was made here.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget has not what the sink grows by, and it may not be put away.
    pub fn add(&self, end: &mut End, batch: &Batch) -> Result<()> {
        match (end, &self.sink) {
            (End::Rows(gathered), _) => {
                self.add_rows(gathered, batch)?;
                self.keep_rows(gathered)
            }
            (End::Sent(rows), _) => rows.add(batch, &self.budget),
            (
                End::Groups(folded),
                Sink::Fold {
                    keys,
                    folds,
                    by_row,
                },
            ) => {
                let by_row = by_row.as_ref().filter(|_| self.rows.is_some());
                let row = by_row.map(|by| by.row);
                folded.groups.add(batch, keys, row, folds)?;
                self.keep_groups(folded, 0)
            }
            _ => Err(Error::internal("groups of another stage")),
        }
    }
}

/// A worker's own sink.
pub(crate) enum End {
    Rows(Box<Gathered>),
    /// Rows that leave as they come.
    Sent(Sending),
    Groups(Box<Folded>),
}

impl End {
    /// What is added next is of this piece of the source.
    pub fn start(&mut self, piece: u64) {
        if let End::Rows(gathered) = self {
            gathered.rows.start(piece);
        }
    }

    /// Lets go what is ready to leave.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if nobody takes it any more.
    pub async fn flush(&mut self) -> Result<()> {
        match self {
            End::Sent(rows) => rows.flush().await,
            _ => Ok(()),
        }
    }

    /// The same, filled by the workers of `node`.
    pub(super) fn of(mut self, node: usize) -> End {
        if let End::Rows(gathered) = &mut self {
            gathered.rows.node = Some(node);
        }
        self
    }

    pub(super) fn gathered(self) -> Result<Gathered> {
        match self {
            End::Rows(rows) => Ok(*rows),
            _ => Err(Error::internal("another sink where rows were expected")),
        }
    }

    pub(super) fn folded(self) -> Result<Folded> {
        match self {
            End::Groups(groups) => Ok(*groups),
            _ => Err(Error::internal("another sink where groups were expected")),
        }
    }

    pub(super) fn sent(self) -> Result<Sending> {
        match self {
            End::Sent(rows) => Ok(rows),
            _ => Err(Error::internal("another sink where an answer was expected")),
        }
    }
}
