//! The top-k sink: keeps the first k rows of an order and publishes the threshold to scans.

use std::borrow::Cow;

use table::{Filter, Scan};

use crate::error::Result;
use crate::execute::sink::{RowSink, SinkFactory};
use crate::operators::sort::order;
use crate::operators::top_k::{MIN_ROWS, top_k};
use crate::vector::batch::Batch;
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Var};

impl SinkFactory {
    /// `filters`, preceded by the top-k filter if scans can apply it now. `vars` are the vectors of `scan`.
    pub(crate) fn filters<'f>(
        &self,
        filters: &'f [Filter],
        scan: &Scan,
        vars: &[Var],
    ) -> Cow<'f, [Filter]> {
        let known = self.top_k.as_ref().and_then(|top_k| {
            let numbers = matches!(top_k.ty.kind, Kind::Int | Kind::Wide);
            let place = vars.iter().position(|var| numbers && *var == top_k.var())?;
            top_k.filter(*scan.columns().get(place)?)
        });
        match known {
            None => Cow::Borrowed(filters),
            Some(known) => Cow::Owned([&[known], filters].concat()),
        }
    }

    /// Adds the rows of `batch`. For a top-k, drops rows beyond the first k once enough have gathered.
    pub(crate) fn add_rows(&self, row_sink: &mut RowSink, batch: &Batch) -> Result<()> {
        row_sink.rows.add(batch)?;
        let (Some(top_k), Some((keys, end))) = (&self.top_k, top_k(&self.sink)) else {
            return Ok(());
        };
        if row_sink.rows.rows < MIN_ROWS.max(4 * end) {
            return Ok(());
        }
        let (columns, rows) = row_sink.rows.taken()?;
        let stored = Materialized { columns, rows };
        let mut picks = order(&stored, &self.types, keys, Some(end))?;
        if let Some(last) = picks.last() {
            top_k.raise(&stored, *last)?;
        }
        picks.sort_unstable();
        row_sink.rows.left(stored.columns, &picks)
    }
}
