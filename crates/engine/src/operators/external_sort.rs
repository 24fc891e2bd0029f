//! External sort: merging spilled sorted runs.

use std::sync::Arc;

use arrow::row::{RowConverter, Rows, SortField};

use crate::cancel::Stop;
use crate::error::{Result, missing};
use crate::logical::relation::Key;
use crate::memory::spill::{Extent, Lists, RUN_ROWS, Spill};
use crate::operators::sort::options;
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Type, Var, Vector};

/// Most runs that are merged at once.
const FAN: usize = 16;

/// A merge of sorted runs.
pub(crate) struct Merging<'a> {
    pub spill: &'a Arc<Spill>,
    pub types: &'a [Type],
    pub vars: &'a [(Var, Kind)],
    pub keys: &'a [Key],
    pub stop: &'a Stop,
}

/// The current position in a run.
struct Head<'r> {
    rest: std::slice::Iter<'r, Extent>,
    block: Materialized,
    /// The sort keys of the block's rows, as bytes that compare like the keys.
    keys: Rows,
    at: usize,
}

impl Merging<'_> {
    /// Merges `runs` into one. Skips its first `skip` rows and keeps at most `fetch`.
    pub fn merge(&self, runs: Lists, skip: usize, fetch: Option<usize>) -> Result<Vec<Extent>> {
        let end = fetch.map_or(usize::MAX, |n| skip.saturating_add(n));
        let mut runs = std::collections::VecDeque::from(runs);
        while runs.len() > FAN {
            let some: Vec<Vec<Extent>> = runs.drain(..FAN).collect();
            runs.push_back(self.some(&some, 0, end)?);
        }
        self.some(&runs.into_iter().collect::<Vec<_>>(), skip, end)
    }

    /// Merges up to [`FAN`] runs. Writes the rows from number `skip` to `end` of the result.
    fn some(&self, runs: &[Vec<Extent>], skip: usize, end: usize) -> Result<Vec<Extent>> {
        let field = |key: &Key| {
            let data = self.types[key.var].sorted_as();
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
        // The heads in descending order of their next rows, so that the least is last.
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

    /// Reads the next block of a run and encodes its sort keys.
    fn next(
        &self,
        rest: &mut std::slice::Iter<'_, Extent>,
        converter: &RowConverter,
    ) -> Result<Option<(Materialized, Rows)>> {
        let Some(extent) = rest.next() else {
            return Ok(None);
        };
        let block = self.spill.read(extent, self.vars)?;
        let mut columns = Vec::with_capacity(self.keys.len());
        for key in self.keys {
            let vector = block.columns.get(&key.var).ok_or_else(missing)?;
            columns.push(vector.to_arrow(&self.types[key.var])?);
        }
        let keys = converter.convert_columns(&columns)?;
        Ok(Some((block, keys)))
    }

    /// Spills the picked rows, each given as a head and a row of its block.
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
        self.spill.write(columns.iter(), picked.len())
    }
}
