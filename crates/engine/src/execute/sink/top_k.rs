//! The sink of a top-k: keeps the best rows, and tells scans the threshold.

use std::borrow::Cow;

use table::{Filter, Scan};

use crate::error::Result;
use crate::execute::sink::{RowSink, SinkFactory};
use crate::operators::sort::order;
use crate::operators::top_k::{MANY, best};
use crate::vector::batch::Batch;
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Var};

impl SinkFactory {
    /// `filters`, and what is known by now of the rows that can be among the best. `vars` are those of `scan`.
    pub(crate) fn filters<'f>(
        &self,
        filters: &'f [Filter],
        scan: &Scan,
        vars: &[Var],
    ) -> Cow<'f, [Filter]> {
        let known = self.top_k.as_ref().and_then(|top_k| {
            let numbers = matches!(top_k.ty.kind, Kind::Int | Kind::Wide);
            let place = vars.iter().position(|var| numbers && *var == top_k.var())?;
            top_k.filter(scan.columns()[place])
        });
        match known {
            None => Cow::Borrowed(filters),
            Some(known) => Cow::Owned([&[known], filters].concat()),
        }
    }

    /// Adds the rows of `batch`, and keeps the best only if they are asked for and have become many.
    pub(crate) fn add_rows(&self, gathered: &mut RowSink, batch: &Batch) -> Result<()> {
        gathered.rows.add(batch)?;
        let (Some(top_k), Some((keys, end))) = (&self.top_k, best(&self.sink)) else {
            return Ok(());
        };
        if gathered.rows.rows < MANY.max(4 * end) {
            return Ok(());
        }
        let (columns, rows) = gathered.rows.taken()?;
        let stored = Materialized { columns, rows };
        let mut picks = order(&stored, &self.types, keys, Some(end))?;
        if let Some(last) = picks.last() {
            top_k.raise(&stored, *last)?;
        }
        picks.sort_unstable();
        gathered.rows.left(stored.columns, &picks)
    }
}
