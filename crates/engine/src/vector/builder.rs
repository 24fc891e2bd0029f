//! Builders of columns: sinks append the rows that reach them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::memory::reservation::Reservation;
use crate::vector::batch::Batch;
use crate::vector::strings::Strings;
use crate::vector::value::{Kind, Values, Var, Vector};

/// Collects the rows that reach one worker's sink.
#[derive(Debug)]
pub(crate) struct RowsBuilder {
    pub rows: usize,
    /// The memory reserved for these rows.
    pub held: Reservation,
    /// The node of the worker, under the per-node policy.
    pub node: Option<usize>,
    columns: Vec<(Var, ColumnBuilder)>,
    /// The source morsels that the rows come from, each with the index of its first row, in the order in which the
    /// worker took them.
    pieces: Vec<(u64, usize)>,
}

#[derive(Debug)]
struct ColumnBuilder {
    kind: Kind,
    values: Values,
    texts: Vec<Strings>,
    /// Bytes of `texts`.
    text_bytes: usize,
    /// Invariant: once a NULL was seen, as long as the values.
    valid: Option<Vec<bool>>,
}

impl RowsBuilder {
    /// An empty builder of these vectors.
    pub fn new(vars: &[(Var, Kind)]) -> RowsBuilder {
        let column = |kind: Kind| ColumnBuilder {
            kind,
            values: Values::new(kind),
            texts: vec![],
            text_bytes: 0,
            valid: None,
        };
        RowsBuilder {
            rows: 0,
            held: Reservation::default(),
            node: None,
            columns: vars
                .iter()
                .map(|(var, kind)| (*var, column(*kind)))
                .collect(),
            pieces: vec![(0, 0)],
        }
    }

    /// Says that the rows added from now on come from this morsel of the source.
    pub fn start(&mut self, piece: u64) {
        match self.pieces.last_mut() {
            Some((last, first)) if *first == self.rows => *last = piece,
            _ => self.pieces.push((piece, self.rows)),
        }
    }

    /// Appends the rows of a batch.
    ///
    /// # Errors
    /// An internal error if the batch lacks one of the vectors.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        for (var, column) in &mut self.columns {
            column.add(batch.get(*var)?, self.rows)?;
        }
        self.rows += batch.rows;
        Ok(())
    }

    /// Puts back the rows `some` of `columns`, which were taken from this builder. Their source morsels are
    /// forgotten.
    pub fn left(&mut self, mut columns: BTreeMap<Var, Vector>, some: &[u32]) -> Result<()> {
        for (var, column) in &mut self.columns {
            let all = columns.remove(var);
            let vector = all.ok_or_else(|| Error::internal("a column that was not collected"))?;
            let Vector { values, valid } = vector.at(some)?;
            (column.values, column.texts) = match values {
                // Copied, so that a few kept strings do not keep the buffers of all of them in memory.
                Values::Text(texts) => (Values::new(column.kind), vec![texts.copied()?]),
                values => (values, vec![]),
            };
            column.text_bytes = column.texts.iter().map(Strings::memory).sum();
            column.valid = valid;
        }
        self.rows = some.len();
        self.pieces = vec![(0, 0)];
        Ok(())
    }

    /// Takes all rows out, with their number, and leaves the builder empty. The reservation stays with the builder.
    pub fn taken(&mut self) -> Result<(BTreeMap<Var, Vector>, usize)> {
        let vars: Vec<(Var, Kind)> = self.columns.iter().map(|(v, c)| (*v, c.kind)).collect();
        let fresh = RowsBuilder {
            held: std::mem::take(&mut self.held),
            node: self.node,
            ..RowsBuilder::new(&vars)
        };
        RowsBuilder::concat(vec![std::mem::replace(self, fresh)])
    }

    /// Bytes of the collected values.
    pub fn memory(&self) -> usize {
        self.columns.iter().map(|(_, column)| column.memory()).sum()
    }

    /// Runs of rows that come from one morsel, with the number of that morsel.
    fn runs(&self) -> impl Iterator<Item = (u64, Range<usize>)> + '_ {
        let ends = self.pieces.iter().skip(1).map(|(_, start)| *start);
        let ends = ends.chain([self.rows]);
        let runs = self.pieces.iter().zip(ends);
        runs.map(|((piece, start), end)| (*piece, *start..end))
            .filter(|(_, run)| !run.is_empty())
    }

    /// Runs of rows of all `parts`, each as (morsel, part, rows), in the order in which [`concat`](Self::concat)
    /// puts them.
    fn in_order(parts: &[RowsBuilder]) -> Vec<(u64, usize, Range<usize>)> {
        let mut runs = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            runs.extend(part.runs().map(|(piece, run)| (piece, number, run)));
        }
        runs.sort_by_key(|(piece, _, _)| *piece);
        runs
    }

    /// For each run of rows in the order of [`concat`](Self::concat): the node where it was collected, and its
    /// length.
    pub fn nodes(parts: &[RowsBuilder]) -> Vec<(Option<usize>, usize)> {
        let runs = RowsBuilder::in_order(parts).into_iter();
        runs.map(|(_, part, run)| (parts[part].node, run.len()))
            .collect()
    }

    /// Concatenates the rows of `parts` in the order of their source morsels, and returns the columns and the
    /// number of rows. Keeping the order of the stored table makes probes cheaper.
    pub fn concat(parts: Vec<RowsBuilder>) -> Result<(BTreeMap<Var, Vector>, usize)> {
        let rows = parts.iter().map(|part| part.rows).sum();
        let columns = RowsBuilder::by_column(parts).into_iter();
        let columns = columns.map(|(var, parts)| Ok((var, parts.concat()?)));
        Ok((columns.collect::<Result<_>>()?, rows))
    }

    /// The columns of `parts`, which can be concatenated one beside the other, as [`concat`](Self::concat) does one after the other.
    pub fn by_column(parts: Vec<RowsBuilder>) -> Vec<(Var, ColumnParts)> {
        let one = parts.len() == 1 && parts[0].runs().is_sorted_by_key(|(piece, _)| piece);
        let runs = RowsBuilder::in_order(&parts).into_iter();
        let runs: Arc<[_]> = runs.map(|(_, part, run)| (part, run)).collect();
        let mut columns: BTreeMap<Var, ColumnParts> = BTreeMap::new();
        for part in parts {
            for (var, column) in part.columns {
                let own = columns.entry(var).or_insert_with(|| ColumnParts {
                    kind: column.kind,
                    parts: vec![],
                    runs: runs.clone(),
                    one,
                });
                own.parts.push(column);
            }
        }
        columns.into_iter().collect()
    }
}

/// One column of the rows of several builders.
#[derive(Debug)]
pub(crate) struct ColumnParts {
    kind: Kind,
    parts: Vec<ColumnBuilder>,
    /// Runs of rows in their order, each with its part.
    runs: Arc<[(usize, Range<usize>)]>,
    /// Whether there is one part whose rows are in order.
    one: bool,
}

impl ColumnParts {
    /// Its values in the order of the rows.
    pub fn concat(self) -> Result<Vector> {
        let parts = self.parts.into_iter().map(ColumnBuilder::finish);
        let mut parts = parts.collect::<Result<Vec<_>>>()?;
        if self.one {
            return Ok(parts.swap_remove(0));
        }
        Vector::runs(self.kind, &parts, &self.runs)
    }
}

impl ColumnBuilder {
    fn add(&mut self, vector: &Vector, rows: usize) -> Result<()> {
        match (&mut self.values, &vector.values) {
            (Values::Int(all), Values::Int(some)) => all.extend_from_slice(some),
            (Values::Wide(all), Values::Wide(some)) => all.extend_from_slice(some),
            (Values::Float(all), Values::Float(some)) => all.extend_from_slice(some),
            (Values::Bool(all), Values::Bool(some)) => all.extend_from_slice(some),
            (Values::Code(all), Values::Code(some)) => all.extend_from_slice(some),
            (Values::Text(_), Values::Text(some)) => {
                self.text_bytes += Strings::add(&mut self.texts, some)?;
            }
            _ => return Err(Error::internal("a column of another kind")),
        }
        match (&mut self.valid, &vector.valid) {
            (None, None) => {}
            (valid, Some(some)) => valid
                .get_or_insert_with(|| vec![true; rows])
                .extend_from_slice(some),
            (Some(valid), None) => valid.resize(rows + vector.len(), true),
        }
        Ok(())
    }

    /// Bytes allocated.
    fn memory(&self) -> usize {
        let values = match &self.values {
            Values::Int(v) => 8 * v.capacity(),
            Values::Wide(v) => 16 * v.capacity(),
            Values::Float(v) => 8 * v.capacity(),
            Values::Bool(v) => v.capacity(),
            Values::Code(v) => 4 * v.capacity(),
            Values::Text(_) => self.text_bytes,
        };
        values + self.valid.as_ref().map_or(0, Vec::capacity)
    }

    fn finish(self) -> Result<Vector> {
        let values = match self.kind {
            Kind::Text => Values::Text(Strings::concat(&self.texts)?),
            _ => self.values,
        };
        Ok(Vector {
            values,
            valid: self.valid,
        })
    }
}
