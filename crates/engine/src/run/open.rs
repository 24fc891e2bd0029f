//! Opening sources: what the pieces of work are, and who takes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use fiber::Morsels;
use table::{Morsel, Scan};

use super::{Run, missing};
use crate::error::Result;
use crate::execution::Plan;
use crate::expr::Var;
use crate::lookup::Lookup;
use crate::plan::{Source, Stage};
use crate::source::{Stored, pieces};
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
    Stored {
        stored: Arc<Stored>,
        pieces: Arc<[std::ops::Range<usize>]>,
        next: AtomicUsize,
    },
    Marked {
        lookup: Arc<Lookup>,
        rows: Vec<u32>,
        pieces: Arc<[std::ops::Range<usize>]>,
        next: AtomicUsize,
        row: Option<Var>,
    },
}

impl Opened {
    pub fn pieces(&self) -> usize {
        match self {
            Opened::Scan { pieces, .. } => pieces.len(),
            Opened::Stored { pieces, .. } | Opened::Marked { pieces, .. } => pieces.len(),
        }
    }
}

impl Run {
    /// Whether all that `stage` reads is so little that one task does it while others would be started.
    pub(super) fn is_small(&self, stage: &Stage) -> bool {
        let least = algebra::VECTOR_ROWS;
        let rows = stage.pipes.iter().map(|pipe| match &pipe.source {
            Source::Scan(scan) => scan.table.rows() as usize,
            Source::Values { batch, .. } => batch.num_rows(),
            Source::Rows(of) => self.rows[*of].as_ref().map_or(0, |rows| rows.rows),
            Source::Marked { stage: of, .. } => {
                self.lookups[*of].as_ref().map_or(0, |table| table.rows)
            }
        });
        rows.sum::<usize>() <= least
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
                let one_queue = self.execution.plan == Plan::Obliv;
                let homes = pieces.iter().enumerate().map(|(i, (home, _))| {
                    let home = if one_queue { 0 } else { *home };
                    (home, i as u32)
                });
                Opened::Scan {
                    morsels: Morsels::near(&self.runtime.nearness, homes),
                    scan: inner,
                    filters: scan.filters.clone(),
                    vars,
                    pieces: pieces.into_iter().map(|(_, piece)| piece).collect(),
                }
            }
            Source::Values { vars, batch } => {
                let mut columns = BTreeMap::new();
                for (var, array) in vars.iter().zip(batch.columns()) {
                    columns.insert(*var, Vector::from_arrow(array, &self.types[*var])?);
                }
                let rows = batch.num_rows();
                Opened::Stored {
                    pieces: pieces(rows, block),
                    next: AtomicUsize::new(0),
                    stored: Arc::new(Stored { columns, rows }),
                }
            }
            Source::Rows(stage) => {
                let stored = self.rows[*stage].clone().ok_or_else(missing)?;
                Opened::Stored {
                    pieces: pieces(stored.rows, block),
                    next: AtomicUsize::new(0),
                    stored,
                }
            }
            Source::Marked { stage, marked, row } => {
                let lookup = self.lookups[*stage].clone().ok_or_else(missing)?;
                let rows = lookup.marked(*marked);
                Opened::Marked {
                    pieces: pieces(rows.len(), block),
                    next: AtomicUsize::new(0),
                    lookup,
                    rows,
                    row: *row,
                }
            }
        })
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
