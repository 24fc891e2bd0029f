//! Opening sources: what the pieces of work are, and who takes them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use fiber::{Claimant, Morsels, Nearness};
use table::{Morsel, Scan};

use super::distr::Share;
use super::{Run, missing};
use crate::batches;
use crate::error::Result;
use crate::execution::Plan;
use crate::expr::Var;
use crate::lookup::Lookup;
use crate::plan::{How, Pipe, Source, Stage, Step};
use crate::source::{Filed, Stored, pieces};
use crate::value::Vector;

/// Rows of a stage or of a marked table that a worker takes at a time.
const PIECE_ROWS: usize = 16 * algebra::VECTOR_ROWS;

/// A source whose pieces workers claim.
pub(crate) enum Opened {
    Scan {
        scan: Scan,
        filters: Vec<table::Filter>,
        vars: Vec<Var>,
        pieces: Vec<Box<[Morsel]>>,
        morsels: Morsels,
    },
    Read(batches::Opened),
    Stored {
        stored: Arc<Stored>,
        pieces: Arc<[Range<usize>]>,
        next: AtomicUsize,
    },
    /// Rows that did not fit in memory; which extents are whose.
    Filed {
        filed: Arc<Filed>,
        own: Vec<usize>,
        next: AtomicUsize,
    },
    Marked {
        lookup: Arc<Lookup>,
        rows: Vec<u32>,
        pieces: Arc<[Range<usize>]>,
        next: AtomicUsize,
        row: Option<Var>,
    },
}

impl Opened {
    /// How many pieces nobody has claimed; before work begins, how many there are.
    pub fn pieces(&self) -> usize {
        match self {
            Opened::Scan { morsels, .. } => morsels.left(),
            Opened::Read(opened) => opened.count,
            Opened::Filed { own, .. } => own.len(),
            Opened::Stored { pieces, .. } | Opened::Marked { pieces, .. } => pieces.len(),
        }
    }
}

impl Opened {
    /// One of those who claim the pieces of a scan.
    pub fn claimant(&self) -> Option<Claimant<'_>> {
        match self {
            Opened::Scan { morsels, .. } => Some(morsels.claimant()),
            _ => None,
        }
    }

    /// How many tasks read it at once, with `width` workers: twice as many where they wait for a device, so that half
    /// of them decode meanwhile.
    pub fn readers(&self, width: usize) -> usize {
        match self {
            Opened::Read(_) => 2 * width,
            _ => width,
        }
    }
}

impl Run {
    /// Whether all that `stage` reads is so little that one task does it while others would be started.
    pub(super) fn is_small(&self, stage: &Stage) -> bool {
        let least = algebra::VECTOR_ROWS;
        let rows = stage.pipes.iter().map(|pipe| match &pipe.source {
            Source::Scan(scan) => scan.table.rows() as usize,
            // What waits for a device is not small.
            Source::Read(_) => least + 1,
            Source::Values { batch, .. } => batch.num_rows(),
            Source::Rows(of) => match &self.filed[*of] {
                Some(filed) => filed.rows,
                None => self.rows[*of].as_ref().map_or(0, |rows| rows.rows),
            },
            Source::Marked { stage: of, .. } => {
                self.lookups[*of].as_ref().map_or(0, |table| table.rows)
            }
        });
        rows.sum::<usize>() <= least
    }

    /// The pieces of so many rows that lie nowhere in particular.
    fn dealt(&self, rows: usize, size: usize) -> Arc<[Range<usize>]> {
        let all = pieces(rows, size);
        match &self.share {
            None => all,
            Some(share) => share.deal(&all),
        }
    }

    pub(super) fn open(&self, source: &Source) -> Result<Opened> {
        let block = self.execution.block_rows.unwrap_or(PIECE_ROWS);
        Ok(match source {
            Source::Scan(scan) => {
                let columns = scan.columns.iter().map(|(_, column)| *column).collect();
                let vars = scan.columns.iter().map(|(var, _)| *var).collect();
                let inner = Scan::new(scan.table.clone(), columns, false);
                let nodes = self.runtime.nearness.nodes();
                let chunks = self.execution.block_rows.unwrap_or(0) / table::BLOCK_ROWS;
                let pieces = grouped(inner.morsels(), nodes, chunks.max(1));
                let list = |home| list(self.execution.plan, self.share.as_ref(), home);
                let homes = pieces.iter().enumerate();
                let homes = homes.filter_map(|(i, (home, _))| Some((list(*home)?, i as u32)));
                let nearness = match (self.execution.plan, &self.share) {
                    (Plan::Obliv, None) => &Nearness::new(1, |_, _| 0),
                    _ => &self.runtime.nearness,
                };
                Opened::Scan {
                    morsels: Morsels::near(nearness, homes),
                    scan: inner,
                    filters: scan.filters.clone(),
                    vars,
                    pieces: pieces.into_iter().map(|(_, piece)| piece).collect(),
                }
            }
            Source::Read(reading) => {
                let share = self.share.as_ref().map_or((0, 1), Share::place);
                Opened::Read(batches::Opened::new(reading, share)?)
            }
            Source::Values { vars, batch } => {
                let mut columns = BTreeMap::new();
                for (var, array) in vars.iter().zip(batch.columns()) {
                    columns.insert(*var, Vector::from_arrow(array, &self.types[*var])?);
                }
                let rows = batch.num_rows();
                Opened::Stored {
                    pieces: self.dealt(rows, block),
                    next: AtomicUsize::new(0),
                    stored: Arc::new(Stored { columns, rows }),
                }
            }
            Source::Rows(stage) if let Some(filed) = &self.filed[*stage] => {
                let (number, of) = self.share.as_ref().map_or((0, 1), Share::place);
                Opened::Filed {
                    filed: filed.clone(),
                    own: (number..filed.extents.len()).step_by(of).collect(),
                    next: AtomicUsize::new(0),
                }
            }
            Source::Rows(stage) => {
                let stored = self.rows[*stage].clone().ok_or_else(missing)?;
                Opened::Stored {
                    pieces: self.dealt(stored.rows, block),
                    next: AtomicUsize::new(0),
                    stored,
                }
            }
            Source::Marked { stage, marked, row } => {
                let lookup = self.lookups[*stage].clone().ok_or_else(missing)?;
                let rows = lookup.marked(*marked);
                Opened::Marked {
                    pieces: self.dealt(rows.len(), block),
                    next: AtomicUsize::new(0),
                    lookup,
                    rows,
                    row: *row,
                }
            }
        })
    }
}

/// The pipelines of a stage in groups that may run at the same time: one that reads which rows of a table are marked
/// waits for those before it that mark them.
pub(super) fn waves(stage: &Stage) -> Vec<Stage> {
    let marks = |pipe: &Pipe, table: usize| {
        pipe.steps.iter().any(|step| {
            matches!(step, Step::Probe(p) if p.stage == table
                && matches!(p.how, How::Mark | How::InnerMark | How::LeftMark))
        })
    };
    let mut waves: Vec<Stage> = vec![];
    for pipe in &stage.pipes {
        let last = waves.last_mut().filter(|last| match pipe.source {
            Source::Marked { stage: table, .. } => !last.pipes.iter().any(|p| marks(p, table)),
            _ => true,
        });
        match last {
            Some(last) => last.pipes.push(pipe.clone()),
            None => waves.push(Stage {
                pipes: vec![pipe.clone()],
                sink: stage.sink.clone(),
            }),
        }
    }
    waves
}

/// On which list a piece stands that lies on node `home`; none if another instance takes it.
fn list(plan: Plan, share: Option<&Share>, home: usize) -> Option<usize> {
    match (plan, share) {
        (_, Some(share)) => share.takes(home).then_some(home),
        (Plan::Obliv, None) => Some(0),
        (Plan::Shard | Plan::Distr, None) => Some(home),
    }
}

/// The pieces of work of a scan, each with its home node: `most` blocks of one node that follow one another there.
fn grouped(
    morsels: impl Iterator<Item = (u8, Morsel)>,
    nodes: usize,
    most: usize,
) -> Vec<(usize, Box<[Morsel]>)> {
    let mut homes: Vec<Vec<Morsel>> = vec![vec![]; nodes];
    let mut pieces = Vec::new();
    for (bucket, morsel) in morsels {
        let home = usize::from(bucket) % nodes;
        homes[home].push(morsel);
        if homes[home].len() == most {
            pieces.push((home, std::mem::take(&mut homes[home]).into_boxed_slice()));
        }
    }
    let rest = homes
        .into_iter()
        .enumerate()
        .filter(|(_, some)| !some.is_empty());
    pieces.extend(rest.map(|(home, some)| (home, some.into_boxed_slice())));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a worker on node 1 of four claims of eight pieces that lie on the nodes in turn.
    fn claimed(plan: Plan) -> Vec<u32> {
        let pieces = (0..8u32).filter_map(|i| Some((list(plan, None, i as usize % 4)?, i)));
        let morsels = Morsels::new(4, |_, _| 20, pieces);
        std::iter::from_fn(|| morsels.claim(1)).collect()
    }

    #[test]
    fn plans_differ_in_who_takes_what() {
        assert_eq!(claimed(Plan::Obliv), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(claimed(Plan::Shard), [1, 5, 2, 6, 3, 7, 0, 4]);
    }
}
