//! Columns that grow: what stages collect of the rows that reach their end.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::memory::reservation::Reservation;
use crate::vector::batch::Batch;
use crate::vector::strings::Strings;
use crate::vector::value::{Kind, Values, Var, Vector};

/// The rows that one worker collected.
#[derive(Debug)]
pub(crate) struct RowsBuilder {
    pub rows: usize,
    /// What it holds of the query's budget.
    pub held: Reservation,
    /// The node of the worker, where each node has its own.
    pub node: Option<usize>,
    columns: Vec<(Var, ColumnBuilder)>,
    /// The pieces of the source that rows are of, each with its first row, in the order they were taken.
    pieces: Vec<(u64, usize)>,
}

#[derive(Debug)]
struct ColumnBuilder {
    kind: Kind,
    values: Values,
    texts: Vec<Strings>,
    /// Bytes of those.
    text_bytes: usize,
    /// Invariant: as long as the values, once a NULL was seen.
    valid: Option<Vec<bool>>,
}

impl RowsBuilder {
    /// Nothing yet, of these vectors.
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

    /// The rows that follow are of this piece of the source.
    pub fn start(&mut self, piece: u64) {
        match self.pieces.last_mut() {
            Some((last, first)) if *first == self.rows => *last = piece,
            _ => self.pieces.push((piece, self.rows)),
        }
    }

    /// The rows of a batch, behind those that are there.
    ///
    /// # Errors
    ///
    /// Where the batch lacks one of the vectors.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        for (var, column) in &mut self.columns {
            column.add(batch.get(*var)?, self.rows)?;
        }
        self.rows += batch.rows;
        Ok(())
    }

    /// The same worker's rows, of which only `some` are left; they are in no order of pieces then.
    pub fn left(&mut self, mut columns: BTreeMap<Var, Vector>, some: &[u32]) -> Result<()> {
        for (var, column) in &mut self.columns {
            let all = columns.remove(var);
            let vector = all.ok_or_else(|| Error::internal("a column that was not collected"))?;
            let Vector { values, valid } = vector.at(some)?;
            (column.values, column.texts) = match values {
                // What is left of many is not to keep all of them.
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

    /// All rows, of which nothing is left here.
    pub fn taken(&mut self) -> Result<(BTreeMap<Var, Vector>, usize)> {
        let vars: Vec<(Var, Kind)> = self.columns.iter().map(|(v, c)| (*v, c.kind)).collect();
        let fresh = RowsBuilder {
            held: std::mem::take(&mut self.held),
            node: self.node,
            ..RowsBuilder::new(&vars)
        };
        RowsBuilder::concat(vec![std::mem::replace(self, fresh)])
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        self.columns.iter().map(|(_, column)| column.memory()).sum()
    }

    /// The runs of rows of one piece each.
    fn runs(&self) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> + '_ {
        let ends = self.pieces.iter().skip(1).map(|(_, start)| *start);
        let ends = ends.chain([self.rows]);
        let runs = self.pieces.iter().zip(ends);
        runs.map(|((piece, start), end)| (*piece, *start..end))
            .filter(|(_, run)| !run.is_empty())
    }

    /// The runs of rows of `parts`, each with its piece and its part, in the order in which [`concat`](Self::concat)
    /// gives them.
    fn in_order(parts: &[RowsBuilder]) -> Vec<(u64, usize, std::ops::Range<usize>)> {
        let mut runs = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            runs.extend(part.runs().map(|(piece, run)| (piece, number, run)));
        }
        runs.sort_by_key(|(piece, _, _)| *piece);
        runs
    }

    /// On which node how many of the rows were collected that [`concat`](Self::concat) gives, in that order.
    pub fn nodes(parts: &[RowsBuilder]) -> Vec<(Option<usize>, usize)> {
        let runs = RowsBuilder::in_order(parts).into_iter();
        runs.map(|(_, part, run)| (parts[part].node, run.len()))
            .collect()
    }

    /// All rows of `parts`, by pieces of the source: the order of a table, which makes looking up cheaper, is kept.
    pub fn concat(parts: Vec<RowsBuilder>) -> Result<(BTreeMap<Var, Vector>, usize)> {
        let rows = parts.iter().map(|part| part.rows).sum();
        let one = parts.len() == 1 && parts[0].runs().is_sorted_by_key(|(piece, _)| piece);
        let runs = RowsBuilder::in_order(&parts).into_iter();
        let runs: Vec<_> = runs.map(|(_, part, run)| (part, run)).collect();
        let mut columns: BTreeMap<Var, (Kind, Vec<Vector>)> = BTreeMap::new();
        for part in parts {
            for (var, column) in part.columns {
                let kind = column.kind;
                let own = columns.entry(var).or_insert_with(|| (kind, vec![]));
                own.1.push(column.finish()?);
            }
        }
        let mut all = BTreeMap::new();
        for (var, (kind, mut parts)) in columns {
            let vector = match one {
                true => parts.swap_remove(0),
                false => Vector::runs(kind, &parts, &runs)?,
            };
            all.insert(var, vector);
        }
        Ok((all, rows))
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

    /// Bytes it takes, room that is not used yet included.
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
