//! Sorting rows in memory with all workers.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::execute::query_state::QueryState;
use crate::logical::relation::Key;
use crate::operators::window::sort::{SortRows, by_bytes};
use crate::vector::rows::Materialized;
use crate::vector::value::{Var, Vector};

/// Bytes per row while rows are sorted: a key with the number of its row, twice.
pub(super) const SORTING: usize = 64;

/// Rows for which it is worth while to start another task.
const TASK_ROWS: usize = 16 * algebra::VECTOR_ROWS;

/// Most rows that are sorted at once: between, a query can be cancelled.
const SORT_ROWS: usize = 1 << 18;

/// Items of a piece that are sampled when pieces are merged.
const SAMPLES: usize = 256;

impl QueryState {
    /// Rows per task, for work on `rows` rows.
    pub(super) fn task_rows(&self, rows: usize) -> usize {
        let width = self.runtime.workers.threads().max(1);
        rows.div_ceil(width).max(TASK_ROWS)
    }

    /// The numbers of the rows in the order of `keys`. Rows of equal keys stay in their order.
    pub(super) async fn sorted(&self, stored: &Materialized, keys: &[Key]) -> Result<Vec<u32>> {
        Ok(match SortRows::of(stored, &self.types, keys)? {
            SortRows::Short(rows) => {
                let rows = self.sort(rows, |a, b| a.cmp(b)).await?;
                rows.into_iter().map(|(_, row)| row).collect()
            }
            SortRows::Long(rows) => {
                let rows = self.sort(rows, |a, b| a.cmp(b)).await?;
                rows.into_iter().map(|(_, row)| row).collect()
            }
            SortRows::Bytes(keys, rows) => {
                let order = move |a: &u32, b: &u32| by_bytes(&keys, *a, *b);
                self.sort(rows, order).await?
            }
        })
    }

    /// Sorts `items`, of which no two are equal, with all workers: pieces at first, and then what lies between the same
    /// two of some sampled items in each piece.
    async fn sort<T, F>(&self, mut items: Vec<T>, order: F) -> Result<Vec<T>>
    where
        T: Copy + Send + Sync + 'static,
        F: Fn(&T, &T) -> Ordering + Clone + Send + Sync + 'static,
    {
        self.stop.check()?;
        let size = self.task_rows(items.len()).min(SORT_ROWS);
        if items.len() <= size {
            items.sort_unstable_by(order);
            return Ok(items);
        }
        let pieces = items.chunks(size).map(|piece| {
            let (mut piece, order) = (piece.to_vec(), order.clone());
            let stop = self.stop.clone();
            async move {
                stop.check()?;
                piece.sort_unstable_by(order);
                Ok::<_, Error>(piece)
            }
        });
        let pieces: Vec<_> = pieces.collect();
        let total = items.len();
        drop(items);
        let pieces = Arc::new(self.spread(pieces).await?);
        self.stop.check()?;
        let parts = pieces.len();
        let mut samples: Vec<T> = Vec::new();
        for piece in pieces.iter() {
            let step = (piece.len() / SAMPLES).max(1);
            samples.extend(piece.iter().skip(step / 2).step_by(step));
        }
        samples.sort_unstable_by(&order);
        let splitters = (1..parts).map(|part| samples[part * samples.len() / parts]);
        let splitters: Arc<Vec<T>> = Arc::new(splitters.collect());
        let merged = (0..parts).map(|part| {
            let (pieces, splitters, order) = (pieces.clone(), splitters.clone(), order.clone());
            let stop = self.stop.clone();
            async move {
                stop.check()?;
                let place = |piece: &[T], splitter: Option<&T>| {
                    splitter
                        .map(|splitter| piece.partition_point(|item| order(item, splitter).is_lt()))
                };
                let mut own = Vec::new();
                for piece in pieces.iter() {
                    let before = part.checked_sub(1).and_then(|part| splitters.get(part));
                    let start = place(piece, before).unwrap_or(0);
                    let end = place(piece, splitters.get(part)).unwrap_or(piece.len());
                    own.extend_from_slice(&piece[start..end]);
                }
                // It finds the runs that are sorted already, and merges them.
                own.sort_by(&order);
                Ok::<_, Error>(own)
            }
        });
        let merged = self.spread(merged.collect()).await?;
        let mut all = Vec::with_capacity(total);
        merged.iter().for_each(|own| all.extend_from_slice(own));
        Ok(all)
    }

    /// The rows `picks` of `stored`.
    pub(super) async fn gathered(
        &self,
        stored: Materialized,
        picks: Vec<u32>,
    ) -> Result<Materialized> {
        let rows = picks.len();
        let vars: Vec<Var> = stored.columns.keys().copied().collect();
        let all = stored.columns.into_values();
        let columns: Vec<Vector> = if rows <= TASK_ROWS {
            all.map(|vector| vector.at(&picks)).collect::<Result<_>>()?
        } else {
            let picks = Arc::new(picks);
            let tasks = all.map(|vector| {
                let picks = picks.clone();
                async move { vector.at(&picks) }
            });
            self.spread(tasks.collect()).await?
        };
        let columns = vars.into_iter().zip(columns).collect();
        Ok(Materialized { columns, rows })
    }

    /// Runs `tasks` on the workers, and returns what they give in their order.
    pub(super) async fn spread<T, F>(&self, tasks: Vec<F>) -> Result<Vec<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let mut spawned = Vec::with_capacity(tasks.len());
        let timed = self.timed("finish: part of it");
        for task in tasks {
            let task = timed.clone().over(task);
            spawned.push(self.runtime.workers.spawn(task).abort_on_drop());
        }
        let mut all = Vec::with_capacity(spawned.len());
        for task in spawned {
            all.push(task.await.map_err(|e| Error::Call(Box::new(e)))??);
        }
        Ok(all)
    }
}
