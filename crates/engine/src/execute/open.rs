//! Opening sources: how they are split into pieces of work, and which workers may take them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use table::{Morsel, Scan};
use workers::{Claimant, Morsels, Nearness};

use crate::error::{Result, missing};
use crate::execute::claim_order::order_pieces;
use crate::execute::query_state::QueryState;
use crate::execute::share::InstanceShare;
use crate::logical::opening::Opening;
use crate::logical::relation::{self as logical, Key};
use crate::memory::spill::Spilled;
use crate::operators::external_scan::OpenExternal;
use crate::operators::join_table::JoinTable;
use crate::operators::source::ScanVars;
use crate::options::NumaPolicy;
use crate::physical::program::Source;
use crate::vector::rows::Materialized;
use crate::vector::value::{Var, Vector};

/// Rows in a piece of materialised rows or of a join table.
const PIECE_ROWS: usize = 16 * algebra::VECTOR_ROWS;

/// An open source, whose pieces are claimed by workers.
pub(crate) enum OpenSource {
    Scan {
        scan: Scan,
        filters: Vec<table::Filter>,
        vars: ScanVars,
        pieces: Vec<Box<[Morsel]>>,
        morsels: Morsels,
    },
    Read(OpenExternal),
    Materialized {
        rows: Arc<Materialized>,
        pieces: Arc<[Range<usize>]>,
        next: AtomicUsize,
    },
    /// Spilled rows. `own` lists the extents that this instance reads.
    Spilled {
        spilled: Arc<Spilled>,
        own: Vec<usize>,
        next: AtomicUsize,
    },
    Marked {
        table: Arc<JoinTable>,
        rows: Vec<u32>,
        pieces: Arc<[Range<usize>]>,
        next: AtomicUsize,
        row: Option<Var>,
    },
}

impl OpenSource {
    /// How many pieces are unclaimed; before the work begins, how many there are.
    pub fn pieces(&self) -> usize {
        match self {
            OpenSource::Scan { morsels, .. } => morsels.left(),
            OpenSource::Read(opened) => opened.count,
            OpenSource::Spilled { own, .. } => own.len(),
            OpenSource::Materialized { pieces, .. } | OpenSource::Marked { pieces, .. } => {
                pieces.len()
            }
        }
    }
}

impl OpenSource {
    /// For a scan, a claimant of its pieces.
    pub fn claimant(&self) -> Option<Claimant<'_>> {
        match self {
            OpenSource::Scan { morsels, .. } => Some(morsels.claimant()),
            _ => None,
        }
    }

    /// How many tasks of the streaming executor read this source: `width` workers' worth, or twice as many if they
    /// wait for a device, so that half of them decode meanwhile.
    pub fn readers(&self, width: usize) -> usize {
        match self {
            OpenSource::Read(_) => 2 * width,
            _ => width,
        }
    }
}

impl QueryState {
    /// What external sources are opened with.
    pub(crate) fn opening(&self) -> Opening<'_> {
        Opening {
            share: self.share.as_ref().map_or((0, 1), InstanceShare::place),
            runtime: &self.runtime,
            execution: &self.execution,
            working: &self.working,
        }
    }

    /// Opens a source. With `first`, the sink keeps the first rows of an order that begins with this key.
    pub(crate) fn open(&self, source: &Source, first: Option<Key>) -> Result<OpenSource> {
        let block = self.execution.block_rows.unwrap_or(PIECE_ROWS);
        Ok(match source {
            Source::Scan(scan) => {
                let vars = ScanVars::of(scan);
                let inner = stored(scan);
                let nodes = self.runtime.nearness.nodes();
                let chunks = self.execution.block_rows.unwrap_or(0) / table::BLOCK_ROWS;
                let mut pieces = grouped(inner.morsels(), nodes, chunks.max(1));
                order_pieces(&mut pieces, scan, first, &self.types);
                let queue = |home| queue(self.execution.numa_policy, self.share.as_ref(), home);
                let homes = pieces.iter().enumerate();
                let homes = homes.filter_map(|(i, (home, _))| Some((queue(*home)?, i as u32)));
                let nearness = match (self.execution.numa_policy, &self.share) {
                    (NumaPolicy::Obliv, None) => &Nearness::new(1, |_, _| 0),
                    _ => &self.runtime.nearness,
                };
                OpenSource::Scan {
                    morsels: Morsels::near(nearness, homes),
                    scan: inner,
                    filters: scan.filters.clone(),
                    vars,
                    pieces: pieces.into_iter().map(|(_, piece)| piece).collect(),
                }
            }
            Source::Read(reading) => OpenSource::Read(OpenExternal::new(reading, &self.opening())?),
            Source::Values { vars, batch } => {
                let mut columns = BTreeMap::new();
                for (var, array) in vars.iter().zip(batch.columns()) {
                    columns.insert(*var, Vector::from_arrow(array, &self.types[*var])?);
                }
                let rows = batch.num_rows();
                OpenSource::Materialized {
                    pieces: self.pieces_of(rows, block),
                    next: AtomicUsize::new(0),
                    rows: Arc::new(Materialized { columns, rows }),
                }
            }
            Source::Rows(stage) if let Some(spilled) = &self.spilled[*stage] => {
                let (number, of) = self.share.as_ref().map_or((0, 1), InstanceShare::place);
                OpenSource::Spilled {
                    spilled: spilled.clone(),
                    own: (number..spilled.extents.len()).step_by(of).collect(),
                    next: AtomicUsize::new(0),
                }
            }
            Source::Rows(stage) => {
                let stored = self.rows[*stage].clone().ok_or_else(missing)?;
                OpenSource::Materialized {
                    pieces: self.pieces_of(stored.rows, block),
                    next: AtomicUsize::new(0),
                    rows: stored,
                }
            }
            Source::Marked { stage, marked, row } => {
                let join_table = self.join_tables[*stage].clone().ok_or_else(missing)?;
                let rows = join_table.marked(*marked);
                OpenSource::Marked {
                    pieces: self.pieces_of(rows.len(), block),
                    next: AtomicUsize::new(0),
                    table: join_table,
                    rows,
                    row: *row,
                }
            }
        })
    }
}

/// What a scan reads of its table.
fn stored(scan: &logical::Scan) -> Scan {
    let columns = scan.columns.iter().map(|(_, column)| *column).collect();
    let own = Scan::new(scan.table.clone(), columns, scan.row_ids.is_some());
    if scan.parts.is_empty() {
        return own;
    }
    let parts = scan.parts.iter().map(|own| own.part.clone());
    own.with_parts(parts.collect())
}

/// The queue of a piece that lies on node `home`; `None` if another instance takes the piece.
fn queue(numa_policy: NumaPolicy, share: Option<&InstanceShare>, home: usize) -> Option<usize> {
    match (numa_policy, share) {
        (_, Some(share)) => share.takes(home).then_some(home),
        (NumaPolicy::Obliv, None) => Some(0),
        (NumaPolicy::Shard | NumaPolicy::Distr, None) => Some(home),
    }
}

/// Groups morsels into pieces of work: each of up to `most` consecutive blocks of one node. Returns the pieces with
/// their home nodes.
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
    fn claimed(numa_policy: NumaPolicy) -> Vec<u32> {
        let pieces = (0..8u32).filter_map(|i| Some((queue(numa_policy, None, i as usize % 4)?, i)));
        let morsels = Morsels::new(4, |_, _| 20, pieces);
        std::iter::from_fn(|| morsels.claim(1)).collect()
    }

    #[test]
    fn plans_differ_in_who_takes_what() {
        assert_eq!(claimed(NumaPolicy::Obliv), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(claimed(NumaPolicy::Shard), [1, 5, 2, 6, 3, 7, 0, 4]);
    }
}
