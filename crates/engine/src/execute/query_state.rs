//! The state of a running query: what its stages have given so far, and what they run with.

use std::ops::Range;
use std::sync::Arc;

use crate::cancel::Stop;
use crate::error::{Error, Result};
use crate::execute::partitioned::PartitionedTable;
use crate::execute::per_node::Instances;
use crate::execute::result_stream::ResultStream;
use crate::execute::runtime::Runtime;
use crate::execute::share::InstanceShare;
use crate::memory::reservation::Reservation;
use crate::memory::spill::{Extent, Spill, Spilled, joined};
use crate::operators::join_table::JoinTable;
use crate::operators::source::pieces;
use crate::options::Execution;
use crate::physical::program::{Sink, Source, Stage};
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Type, Var, Vector};

/// A running query.
pub(crate) struct QueryState {
    pub runtime: Runtime,
    pub execution: Execution,
    pub stop: Stop,
    /// Where the answer goes.
    pub out: Arc<ResultStream>,
    /// Whether rows of the stage that runs go there as they come.
    pub sends: bool,
    /// What the executor tells of each stage.
    pub report: Vec<String>,
    pub types: Arc<[Type]>,
    pub parameters: Vec<Option<Vector>>,
    pub join_tables: Vec<Option<Arc<JoinTable>>>,
    pub rows: Vec<Option<Arc<Materialized>>>,
    /// Rows of stages that did not fit in memory.
    pub spilled: Vec<Option<Arc<Spilled>>>,
    /// Tables of stages that did not.
    pub partitioned: Vec<Option<Arc<PartitionedTable>>>,
    /// Where those lie.
    pub spill: Arc<Spill>,
    /// For each stage, whether its table may be worked on part by part.
    pub may_part: Arc<[bool]>,
    /// For each stage, about how many rows are looked up in its table.
    pub sought: Arc<[u64]>,
    /// Whether what the stage that runs gathers may be put away.
    pub may_spill: bool,
    /// What the rows and the table of each stage take.
    pub held: Vec<Vec<Reservation>>,
    /// Workers of the whole query when it began.
    pub width: usize,
    /// If it is one of several instances, which.
    pub share: Option<InstanceShare>,
    /// If it has several instances, those.
    pub instances: Option<Instances>,
}

impl QueryState {
    /// The value of a subquery: NULL if it has no row.
    pub fn single(&self, stage: usize, var: Var) -> Result<Vector> {
        let stored = self.few(stage)?;
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

    /// Whether so little memory is left that what is to stay should rather be put away: what passes through needs some.
    pub fn is_full(&self) -> bool {
        let budget = &self.runtime.budget;
        budget.used() > budget.limit() / 4 * 3
    }

    /// Gives back what the rows or the table of a stage take.
    pub fn forget(&mut self, number: usize) {
        self.join_tables[number] = None;
        if let Some(all) = &mut self.instances {
            all.forget(number);
        }
        (self.rows[number], self.spilled[number]) = (None, None);
        self.held[number].clear();
    }

    pub fn note_spilled(&mut self, number: usize, what: &str) {
        let bytes = self.spill.bytes() >> 10;
        self.report.push(format!(
            "stage {number}: {what} did not fit in memory; {bytes} KiB put in a file by now"
        ));
    }

    /// How many instances run at once.
    pub fn instances(&self) -> usize {
        self.share.as_ref().map_or(1, InstanceShare::of)
    }

    /// The stage whose table's rows are the groups of `sink`, if they are.
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
        // Every worker has a state for each row, which cannot be put away.
        let bytes = (join_table.all * self.width * (1 + 24 * folds.len())) as u64;
        let budget = &self.runtime.budget;
        let fits = bytes <= budget.limit().saturating_sub(budget.used()) / 3;
        let fits = fits && join_table.all <= self.room();
        (join_table.unique && fits).then_some(by.stage)
    }

    /// Rows or groups that a worker keeps at most.
    pub fn room(&self) -> usize {
        self.execution.room.unwrap_or(usize::MAX)
    }

    /// Whether all that `stage` reads is so little that one task does it while others would be started.
    pub(crate) fn is_small(&self, stage: &Stage) -> bool {
        let least = algebra::VECTOR_ROWS;
        let rows = stage.pipes.iter().map(|pipe| match &pipe.source {
            Source::Scan(scan) => scan.table.rows() as usize,
            // What waits for a device is not small.
            Source::Read(_) => least + 1,
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

    /// The pieces of so many rows that lie nowhere in particular.
    pub fn dealt(&self, rows: usize, size: usize) -> Arc<[Range<usize>]> {
        let all = pieces(rows, size);
        match &self.share {
            None => all,
            Some(share) => share.deal(&all),
        }
    }

    /// `extents` are the rows of stage `number`.
    pub(crate) fn file(&mut self, number: usize, vars: Vec<(Var, Kind)>, extents: Vec<Extent>) {
        self.spilled[number] = Some(Arc::new(Spilled {
            spill: self.spill.clone(),
            rows: extents.iter().map(|extent| extent.rows).sum(),
            extents,
            vars,
        }));
    }

    /// The rows of a stage, of which there are few.
    pub(crate) fn few(&self, number: usize) -> Result<Option<Arc<Materialized>>> {
        match &self.spilled[number] {
            None => Ok(self.rows[number].clone()),
            Some(spilled) => {
                let blocks = spilled.extents.iter().map(|extent| spilled.get(extent));
                let blocks = blocks.collect::<Result<Vec<_>>>()?;
                Ok(Some(Arc::new(joined(&blocks, &spilled.vars)?)))
            }
        }
    }

    /// The run of instance `number`.
    pub fn on(&self, all: &Instances, number: usize) -> QueryState {
        let mut runtime = self.runtime.clone();
        runtime.workers = all.workers[number].clone();
        QueryState {
            runtime,
            execution: self.execution.clone(),
            stop: self.stop.clone(),
            out: self.out.clone(),
            sends: self.sends,
            report: vec![],
            types: self.types.clone(),
            parameters: self.parameters.clone(),
            join_tables: all.join_tables[number].clone(),
            rows: self.rows.clone(),
            spilled: self.spilled.clone(),
            partitioned: vec![],
            spill: self.spill.clone(),
            may_part: self.may_part.clone(),
            sought: self.sought.clone(),
            may_spill: self.may_spill,
            held: vec![],
            width: self.width,
            share: Some(all.share(number)),
            instances: None,
        }
    }
}
