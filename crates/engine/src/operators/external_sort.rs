//! Merging runs of rows in order that were put away.

use std::sync::Arc;

use arrow::row::{RowConverter, Rows, SortField};

use crate::cancel::Stop;
use crate::error::{Result, missing};
use crate::logical::relation::Key;
use crate::memory::spill::{Extent, Lists, RUN_ROWS, Spill};
use crate::operators::sort::options;
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Type, Var, Vector};

/// Runs that are merged at the same time.
const FAN: usize = 16;

/// What is merged, and where it lies.
pub(crate) struct Merging<'a> {
    pub spill: &'a Arc<Spill>,
    pub types: &'a [Type],
    pub vars: &'a [(Var, Kind)],
    pub keys: &'a [Key],
    pub stop: &'a Stop,
}

/// A run being read.
struct Head<'r> {
    rest: std::slice::Iter<'r, Extent>,
    block: Materialized,
    /// The keys of the block's rows, as bytes whose order is theirs.
    keys: Rows,
    at: usize,
}

impl Merging<'_> {
    /// One run of all rows of `runs`, in order, without the first `skip`, at most `fetch`.
    pub fn merge(&self, runs: Lists, skip: usize, fetch: Option<usize>) -> Result<Vec<Extent>> {
        let end = fetch.map_or(usize::MAX, |n| skip.saturating_add(n));
        let mut runs = std::collections::VecDeque::from(runs);
        while runs.len() > FAN {
            let some: Vec<Vec<Extent>> = runs.drain(..FAN).collect();
            runs.push_back(self.some(&some, 0, end)?);
        }
        self.some(&runs.into_iter().collect::<Vec<_>>(), skip, end)
    }

    /// The rows from number `skip` to `end` of the order.
    fn some(&self, runs: &[Vec<Extent>], skip: usize, end: usize) -> Result<Vec<Extent>> {
        let field = |key: &Key| {
            let data = self.types[key.var].data.clone();
            SortField::new_with_options(data, options(key))
        };
        let converter = RowConverter::new(self.keys.iter().map(field).collect())?;
        let mut heads: Vec<Head<'_>> = Vec::new();
        for run in runs {
            let mut rest = run.iter();
            if let Some((block, keys)) = self.next(&mut rest, &converter)? {
                heads.push(Head {
                    rest,
                    block,
                    keys,
                    at: 0,
                });
            }
        }
        // Heads, the one whose row is next last.
        let mut queue: Vec<usize> = (0..heads.len()).collect();
        queue.sort_by(|a, b| heads[*b].keys.row(0).cmp(&heads[*a].keys.row(0)));
        let (mut extents, mut picked, mut rows) = (vec![], Vec::new(), 0);
        while let Some(first) = queue.pop().filter(|_| rows < end) {
            let head = &mut heads[first];
            if rows >= skip {
                picked.push((first, head.at));
            }
            rows += 1;
            head.at += 1;
            let used_up = head.at == head.block.rows;
            if picked.len() == RUN_ROWS || used_up && !picked.is_empty() {
                self.stop.check()?;
                extents.push(self.put(&heads, &picked)?);
                picked.clear();
            }
            let head = &mut heads[first];
            if used_up {
                let Some((block, keys)) = self.next(&mut head.rest, &converter)? else {
                    continue;
                };
                (head.block, head.keys, head.at) = (block, keys, 0);
            }
            let own = heads[first].keys.row(heads[first].at);
            let place = queue.partition_point(|other| {
                let other = &heads[*other];
                other.keys.row(other.at) > own
            });
            queue.insert(place, first);
        }
        if !picked.is_empty() {
            extents.push(self.put(&heads, &picked)?);
        }
        Ok(extents)
    }

    /// The next block of a run, and its keys.
    fn next(
        &self,
        rest: &mut std::slice::Iter<'_, Extent>,
        converter: &RowConverter,
    ) -> Result<Option<(Materialized, Rows)>> {
        let Some(extent) = rest.next() else {
            return Ok(None);
        };
        let block = self.spill.get(extent, self.vars)?;
        let mut columns = Vec::with_capacity(self.keys.len());
        for key in self.keys {
            let vector = block.columns.get(&key.var).ok_or_else(missing)?;
            columns.push(vector.to_arrow(&self.types[key.var])?);
        }
        let keys = converter.convert_columns(&columns)?;
        Ok(Some((block, keys)))
    }

    /// Puts rows, each of a head's block, away.
    fn put(&self, heads: &[Head<'_>], picked: &[(usize, usize)]) -> Result<Extent> {
        let mut runs: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
        for (head, row) in picked {
            match runs.last_mut() {
                Some((last, run)) if last == head && run.end == *row => run.end += 1,
                _ => runs.push((*head, *row..row + 1)),
            }
        }
        let mut columns = Vec::with_capacity(self.vars.len());
        for (var, kind) in self.vars {
            let parts = heads.iter().map(|head| head.block.columns.get(var));
            let parts: Vec<&Vector> = parts.collect::<Option<_>>().ok_or_else(missing)?;
            columns.push(Vector::runs(*kind, &parts, &runs)?);
        }
        self.spill.put(columns.iter(), picked.len())
    }
}
