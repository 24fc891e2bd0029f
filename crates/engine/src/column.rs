//! Columns that grow: what stages collect of the rows that reach their end.

use std::collections::BTreeMap;

use arrow::array::ArrayRef;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::value::{Kind, Values, Vector};

/// The rows that one worker collected.
#[derive(Debug)]
pub(crate) struct Collected {
    pub rows: usize,
    columns: Vec<(Var, Growing)>,
}

#[derive(Debug)]
struct Growing {
    kind: Kind,
    values: Values,
    texts: Vec<ArrayRef>,
    /// Invariant: as long as the values, once a NULL was seen.
    valid: Option<Vec<bool>>,
}

impl Collected {
    pub fn new(vars: &[(Var, Kind)]) -> Collected {
        let column = |kind: Kind| Growing {
            kind,
            values: Values::new(kind),
            texts: vec![],
            valid: None,
        };
        Collected {
            rows: 0,
            columns: vars
                .iter()
                .map(|(var, kind)| (*var, column(*kind)))
                .collect(),
        }
    }

    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        for (var, column) in &mut self.columns {
            column.add(batch.get(*var)?, self.rows)?;
        }
        self.rows += batch.rows;
        Ok(())
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        self.columns
            .iter()
            .map(|(_, column)| column.memory(self.rows))
            .sum()
    }

    /// All rows of `parts`, in order.
    pub fn concat(parts: Vec<Collected>) -> Result<(BTreeMap<Var, Vector>, usize)> {
        let rows = parts.iter().map(|part| part.rows).sum();
        let mut columns: BTreeMap<Var, (Kind, Vec<Vector>)> = BTreeMap::new();
        for part in parts {
            for (var, column) in part.columns {
                let kind = column.kind;
                let own = columns.entry(var).or_insert_with(|| (kind, vec![]));
                if part.rows > 0 {
                    own.1.push(column.finish()?);
                }
            }
        }
        let mut all = BTreeMap::new();
        for (var, (kind, parts)) in columns {
            let vector = match parts.is_empty() {
                true => Vector::new(Values::new(kind)),
                false => Vector::concat(kind, parts)?,
            };
            all.insert(var, vector);
        }
        Ok((all, rows))
    }
}

impl Growing {
    fn add(&mut self, vector: &Vector, rows: usize) -> Result<()> {
        match (&mut self.values, &vector.values) {
            (Values::Int(all), Values::Int(some)) => all.extend_from_slice(some),
            (Values::Wide(all), Values::Wide(some)) => all.extend_from_slice(some),
            (Values::Float(all), Values::Float(some)) => all.extend_from_slice(some),
            (Values::Bool(all), Values::Bool(some)) => all.extend_from_slice(some),
            (Values::Code(all), Values::Code(some)) => all.extend_from_slice(some),
            (Values::Text(_), Values::Text(some)) => self.texts.push(some.clone()),
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

    fn memory(&self, rows: usize) -> usize {
        let width = match self.kind {
            Kind::Int | Kind::Float => 8,
            Kind::Wide => 16,
            Kind::Bool => 1,
            Kind::Code => 4,
            Kind::Text => 32,
        };
        rows * (width + usize::from(self.valid.is_some()))
    }

    fn finish(self) -> Result<Vector> {
        let values = match self.kind {
            Kind::Text => {
                let parts = self
                    .texts
                    .into_iter()
                    .map(|text| Vector::new(Values::Text(text)))
                    .collect();
                Vector::concat(Kind::Text, parts)?.values
            }
            _ => self.values,
        };
        Ok(Vector {
            values,
            valid: self.valid,
        })
    }
}
