//! The values of groups, each once: what `distinct` leaves of the rows of an aggregate.

use algebra::krao::Groups;
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::key::{Interner, Layout, Texts, Words};
use crate::value::{Type, Values, Vector};

/// Pairs of a group and one of its values.
#[derive(Debug)]
pub(crate) struct Distinct {
    layout: Layout,
    pairs: Groups,
    interners: Vec<Interner>,
    words: Words,
    numbers: Vec<u32>,
}

impl Distinct {
    /// Of values of type `ty`, none yet.
    ///
    /// # Errors
    /// Never, as long as groups have numbers.
    pub fn new(ty: &Type) -> Result<Distinct> {
        let group = Type::of(&DataType::Int64, false)
            .ok_or_else(|| Error::internal("numbers of no type"))?;
        let layout = Layout::groups(vec![group, ty.clone().nullable(false)]);
        Ok(Distinct {
            pairs: Groups::new(layout.words()),
            layout,
            interners: vec![],
            words: Words::default(),
            numbers: vec![],
        })
    }

    /// Adds values; returns the rows whose value its group did not have. NULLs are no values. `groups` absent: all
    /// belong to group 0.
    pub fn fresh(&mut self, groups: Option<&[u32]>, vector: &Vector) -> Result<Vec<u32>> {
        let there: Vec<u32> = match &vector.valid {
            None => (0..vector.len() as u32).collect(),
            Some(valid) => (0..vector.len() as u32)
                .filter(|row| valid[*row as usize])
                .collect(),
        };
        let group = |row: &u32| groups.map_or(0, |groups| i64::from(groups[*row as usize]));
        let numbers = Vector::new(Values::Int(there.iter().map(group).collect()));
        let values = Vector::new(vector.values.at(&there)?);
        let Distinct {
            layout,
            pairs,
            interners,
            words,
            numbers: found,
        } = self;
        let mut next = pairs.len() as u32;
        let mut texts = Texts::Adding(interners);
        layout.encode(&[&numbers, &values], there.len(), &mut texts, words)?;
        pairs.insert(&words.hashes, &words.columns(), found);
        // New pairs are numbered in the order they come.
        let mut fresh = Vec::new();
        for (pair, row) in found.iter().zip(there) {
            if *pair == next {
                fresh.push(row);
                next += 1;
            }
        }
        Ok(fresh)
    }

    /// All pairs: the groups and the values.
    pub fn all(&self) -> Result<(Vec<u32>, Vector)> {
        let all: Vec<u32> = (0..self.pairs.len() as u32).collect();
        let words: Vec<Vec<u64>> = (0..self.layout.words())
            .map(|word| {
                let mut column = Vec::new();
                self.pairs.column(word, &all, &mut column);
                column
            })
            .collect();
        let groups = words[0].iter().map(|group| *group as u32).collect();
        let value = self.layout.decode(&words, &self.interners)?.pop();
        Ok((groups, value.ok_or_else(|| Error::internal("no values"))?))
    }

    /// Forgets all pairs.
    pub fn forget(&mut self) {
        self.pairs = Groups::new(self.layout.words());
        self.interners.clear();
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        let texts: usize = self.interners.iter().map(Interner::memory).sum();
        self.pairs.memory() + texts
    }
}
