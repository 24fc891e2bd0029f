//! Merging sorted runs.

use std::sync::Arc;

use crate::error::Result;
use crate::sort::radix::Record;
use crate::sort::spool::{Extent, Spool};

/// A sorted run in a spool, block after block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    blocks: Vec<Extent>,
}

impl Run {
    /// Appends records that are not below those before them.
    pub fn write<R: Record>(&mut self, spool: &mut Spool, records: &[R]) -> Result<()> {
        self.blocks
            .push(spool.write(bytemuck::cast_slice(records))?);
        Ok(())
    }
}

/// A run that is being read.
#[derive(Debug)]
struct Source<R> {
    run: Run,
    next: usize,
    records: Vec<R>,
    at: usize,
}

impl<R: Record> Source<R> {
    /// The record that is next; `None` at the end.
    #[inline]
    fn head(&self) -> Option<R> {
        self.records.get(self.at).copied()
    }

    /// Goes on to the next record.
    #[inline]
    fn step(&mut self, spool: &Spool) -> Result<()> {
        self.at += 1;
        if self.at < self.records.len() {
            return Ok(());
        }
        self.block(spool)
    }

    /// Reads the next block, if there is one.
    #[cold]
    fn block(&mut self, spool: &Spool) -> Result<()> {
        self.at = 0;
        let Some(extent) = self.run.blocks.get(self.next) else {
            self.records = Vec::new();
            return Ok(());
        };
        self.next += 1;
        self.records
            .resize(extent.bytes / size_of::<R>(), R::zeroed());
        spool.read(extent, bytemuck::cast_slice_mut(&mut self.records))
    }
}

/// Merges runs with a tree of losers: each inner node holds the run that lost there, and the winner
/// of all is replayed against one node a level. Of equal keys the earlier run wins.
#[derive(Debug)]
pub(crate) struct Merge<R> {
    spool: Arc<Spool>,
    sources: Vec<Source<R>>,
    losers: Vec<usize>,
    winner: usize,
}

impl<R: Record> Merge<R> {
    pub fn new(spool: impl Into<Arc<Spool>>, runs: Vec<Run>) -> Result<Merge<R>> {
        let spool = spool.into();
        let mut sources = Vec::with_capacity(runs.len());
        for run in runs {
            let mut source = Source {
                run,
                next: 0,
                records: Vec::new(),
                at: 0,
            };
            source.block(&spool)?;
            sources.push(source);
        }
        let mut merge = Merge {
            spool,
            losers: vec![0; sources.len()],
            sources,
            winner: 0,
        };
        merge.winner = merge.play(1);
        Ok(merge)
    }

    /// The winner below a node; sets the losers there. Leaf *n* is run *n - runs*.
    fn play(&mut self, node: usize) -> usize {
        let runs = self.sources.len();
        if node >= runs {
            return node - runs;
        }
        let (left, right) = (self.play(2 * node), self.play(2 * node + 1));
        let (winner, loser) = if self.beats(left, right) {
            (left, right)
        } else {
            (right, left)
        };
        self.losers[node] = loser;
        winner
    }

    #[inline]
    fn beats(&self, one: usize, other: usize) -> bool {
        match (self.sources[one].head(), self.sources[other].head()) {
            (Some(a), Some(b)) => (a.key(), one) < (b.key(), other),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// Appends the next records until there are `most` in `into`, or no more.
    pub fn fill(&mut self, into: &mut Vec<R>, most: usize) -> Result<()> {
        while into.len() < most {
            let Some(record) = self.sources.get(self.winner).and_then(Source::head) else {
                return Ok(());
            };
            into.push(record);
            self.sources[self.winner].step(&self.spool)?;
            let mut node = (self.winner + self.sources.len()) / 2;
            while node >= 1 {
                if self.beats(self.losers[node], self.winner) {
                    std::mem::swap(&mut self.losers[node], &mut self.winner);
                }
                node /= 2;
            }
        }
        Ok(())
    }
}
