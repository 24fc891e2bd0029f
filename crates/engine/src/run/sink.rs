//! Where rows end: each worker's own sink.

use std::sync::Arc;

use memory::Budget;

use super::send::{Out, Sending};
use crate::batch::Batch;
use crate::column::Collected;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::group::{By, Grouping};
use crate::plan::Sink;
use crate::value::Type;

/// What the sinks of workers are made from.
pub(crate) struct Shape {
    pub sink: Sink,
    /// Rows of the table whose rows are the groups.
    pub(super) rows: Option<usize>,
    pub(super) types: Arc<[Type]>,
    pub(super) budget: Arc<Budget>,
    /// Entries of the largest dense index of groups.
    pub(super) most: u64,
    /// Where rows go as they come, if they do.
    pub(super) out: Option<Arc<Out>>,
}

impl Shape {
    fn groups(&self) -> Result<Grouping> {
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
        let kinds = |vars: &mut dyn Iterator<Item = Var>| -> Vec<_> {
            let mut vars: Vec<Var> = vars.collect();
            vars.sort_unstable();
            vars.dedup();
            vars.into_iter()
                .map(|var| (var, self.types[var].kind))
                .collect()
        };
        Ok(match &self.sink {
            Sink::Table { keys, vars, .. } => End::Rows(Collected::new(&kinds(
                &mut keys.iter().chain(vars).copied(),
            ))),
            Sink::Rows { vars, .. } if let Some(out) = &self.out => {
                End::Sent(Sending::new(out.clone(), kinds(&mut vars.iter().copied())))
            }
            Sink::Rows { vars, .. } => End::Rows(Collected::new(&kinds(&mut vars.iter().copied()))),
            Sink::Fold { .. } => End::Groups(Box::new(self.groups()?)),
        })
    }

    /// Adds the rows of `batch` to a sink that was made here.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget has not what the sink grows by.
    pub fn add(&self, end: &mut End, batch: &Batch) -> Result<()> {
        match (end, &self.sink) {
            (End::Rows(rows), _) => {
                rows.add(batch)?;
                rows.held
                    .cover(&self.budget, rows.memory(), "rows of a join or a sort")
            }
            (End::Sent(rows), _) => rows.add(batch, &self.budget),
            (
                End::Groups(groups),
                Sink::Fold {
                    keys,
                    folds,
                    by_row,
                },
            ) => {
                let by_row = by_row.as_ref().filter(|_| self.rows.is_some());
                groups.add(batch, keys, by_row.map(|by| by.row), folds)?;
                groups
                    .held
                    .cover(&self.budget, groups.memory(), "an aggregate")
            }
            _ => Err(Error::internal("groups of another stage")),
        }
    }
}

/// A worker's own sink.
pub(crate) enum End {
    Rows(Collected),
    /// Rows that leave as they come.
    Sent(Sending),
    Groups(Box<Grouping>),
}

impl End {
    /// What is added next is of this piece of the source.
    pub fn start(&mut self, piece: u64) {
        if let End::Rows(rows) = self {
            rows.start(piece);
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

    pub(super) fn collected(self) -> Result<Collected> {
        match self {
            End::Rows(rows) => Ok(rows),
            _ => Err(Error::internal("another sink where rows were expected")),
        }
    }

    pub(super) fn sent(self) -> Result<Sending> {
        match self {
            End::Sent(rows) => Ok(rows),
            _ => Err(Error::internal("another sink where an answer was expected")),
        }
    }
}
