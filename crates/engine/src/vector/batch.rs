//! Batches: the vectors of the rows that are being processed.

use algebra::filter::positions;

use crate::error::{Error, Result};
use crate::vector::value::{Var, Vector};

/// A batch of rows on its way through a pipeline. Invariant: every vector is `rows` long.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub rows: usize,
    vectors: Vec<Option<Vector>>,
    scratch: Vec<u32>,
}

impl Batch {
    /// An empty batch with room for `vars` vectors.
    pub fn new(vars: usize) -> Batch {
        let mut batch = Batch::default();
        batch.vectors.resize_with(vars, || None);
        batch
    }

    /// How many vectors it has room for.
    pub fn vars(&self) -> usize {
        self.vectors.len()
    }

    /// Drops all vectors and starts a batch of `rows` new rows, without vectors.
    pub fn restart(&mut self, rows: usize) {
        self.rows = rows;
        self.vectors.iter_mut().for_each(|v| *v = None);
    }

    /// Sets the vector `var`, which must be as long as the batch.
    pub fn set(&mut self, var: Var, vector: Vector) {
        debug_assert_eq!(vector.len(), self.rows);
        self.vectors[var] = Some(vector);
    }

    /// The vector `var`.
    ///
    /// # Errors
    /// An internal error if it has not been set.
    pub fn get(&self, var: Var) -> Result<&Vector> {
        let found = self.vectors.get(var).and_then(Option::as_ref);
        found.ok_or_else(|| Error::internal(format!("vector {var} is not there")))
    }

    /// Whether the vector `var` has been set.
    pub fn has(&self, var: Var) -> bool {
        self.vectors[var].is_some()
    }

    /// Keeps the rows where `mask` is true and, of the vectors, those in `live` (ascending). Returns the positions
    /// of the kept rows, or `None` if all rows are kept.
    pub fn filter(&mut self, mask: &[bool], live: &[Var]) -> Result<Option<&[u32]>> {
        let mut picks = std::mem::take(&mut self.scratch);
        positions(mask, &mut picks);
        let all = picks.len() == self.rows;
        if !all {
            self.pick(&picks, live)?;
        }
        self.scratch = picks;
        Ok((!all).then_some(&self.scratch[..]))
    }

    /// Keeps the rows at `picks` (ascending) and the vectors in `live` (ascending).
    pub fn pick(&mut self, picks: &[u32], live: &[Var]) -> Result<()> {
        for (var, vector) in self.vectors.iter_mut().enumerate() {
            if let Some(some) = vector {
                match live.binary_search(&var) {
                    Ok(_) => some.keep(picks)?,
                    Err(_) => *vector = None,
                }
            }
        }
        self.rows = picks.len();
        Ok(())
    }

    /// A new batch of the rows at `picks`, which may repeat and come in any order, with the vectors in `live`.
    pub fn gathered(&self, picks: &[u32], live: &[Var]) -> Result<Batch> {
        let mut batch = Batch::new(self.vectors.len());
        batch.rows = picks.len();
        for var in live {
            if let Some(vector) = &self.vectors[*var] {
                batch.vectors[*var] = Some(vector.at(picks)?);
            }
        }
        Ok(batch)
    }
}
