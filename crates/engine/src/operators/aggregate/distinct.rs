//! The values of groups, each once: what `distinct` leaves of the rows of an aggregate.

use algebra::krao::Groups;
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::vector::interner::Interner;
use crate::vector::key_encoding::{KeyEncoding, KeyWords, StringKeys};
use crate::vector::value::{Kind, Type, Values, Vector};

/// Pairs of a group and one of its values.
#[derive(Debug)]
pub(crate) struct Distinct {
    /// Whether there is but one group, which pairs do not name then.
    one: bool,
    layout: KeyEncoding,
    known: Known,
    words: KeyWords,
    numbers: Vec<u32>,
}

/// The pairs there are, numbered in the order they came.
#[derive(Debug)]
enum Known {
    /// Texts of one group.
    StringKeys(Box<Interner>),
    Pairs {
        pairs: Groups,
        interners: Vec<Interner>,
    },
}

impl Distinct {
    /// Of values of type `ty`, none yet. `one`: all rows belong to one group.
    ///
    /// # Errors
    /// Never, as long as groups have numbers.
    pub fn new(ty: &Type, one: bool) -> Result<Distinct> {
        let group = Type::of(&DataType::Int64, false)
            .ok_or_else(|| Error::internal("numbers of no type"))?;
        let value = ty.clone().nullable(false);
        let texts = one && ty.kind == Kind::Text;
        let layout = KeyEncoding::groups(match one {
            true => vec![value],
            false => vec![group, value],
        });
        Ok(Distinct {
            one,
            known: match texts {
                true => Known::StringKeys(Box::default()),
                false => Known::Pairs {
                    pairs: Groups::new(layout.words()),
                    interners: vec![],
                },
            },
            layout,
            words: KeyWords::default(),
            numbers: vec![],
        })
    }

    /// Adds values; returns the rows whose value its group did not have. NULLs are no values. `groups` absent: all
    /// belong to group 0.
    pub fn fresh(&mut self, groups: Option<&[u32]>, vector: &Vector) -> Result<Vec<u32>> {
        let there: Option<Vec<u32>> = vector.valid.as_ref().map(|valid| {
            let rows = 0..vector.len() as u32;
            rows.filter(|row| valid[*row as usize]).collect()
        });
        let picked = match &there {
            None => None,
            Some(there) => Some(Vector::new(vector.values.at(there)?)),
        };
        let values = picked.as_ref().unwrap_or(vector);
        let row = |place: usize| there.as_ref().map_or(place as u32, |there| there[place]);
        let mut next = self.len() as u32;
        match &mut self.known {
            Known::StringKeys(texts) => {
                let Values::Text(own) = &values.values else {
                    return Err(Error::internal("values of another kind"));
                };
                texts.add(own, None, &mut self.numbers);
            }
            Known::Pairs { pairs, interners } => {
                let group =
                    |place| groups.map_or(0, |groups| i64::from(groups[row(place) as usize]));
                let mut texts = StringKeys::Adding(interners);
                match self.one {
                    true => {
                        let words = &mut self.words;
                        self.layout
                            .encode(&[values], values.len(), &mut texts, words)?;
                    }
                    false => {
                        let numbers = (0..values.len()).map(group).collect();
                        let own = [&Vector::new(Values::Int(numbers)), values];
                        let words = &mut self.words;
                        self.layout.encode(&own, values.len(), &mut texts, words)?;
                    }
                }
                let words = &self.words;
                pairs.insert(&words.hashes, &words.columns(), &mut self.numbers);
            }
        }
        // New pairs are numbered in the order they come.
        let mut fresh = Vec::new();
        for (place, pair) in self.numbers.iter().enumerate() {
            if *pair == next {
                fresh.push(row(place));
                next += 1;
            }
        }
        Ok(fresh)
    }

    /// How many pairs there are.
    fn len(&self) -> usize {
        match &self.known {
            Known::StringKeys(texts) => texts.len(),
            Known::Pairs { pairs, .. } => pairs.len(),
        }
    }

    /// All pairs: the groups and the values.
    pub fn all(&self) -> Result<(Vec<u32>, Vector)> {
        let count = self.len();
        let all: Vec<u32> = (0..count as u32).collect();
        match &self.known {
            Known::StringKeys(texts) => {
                let array = texts.array(all.into_iter());
                let values = Values::Text(crate::vector::strings::Strings::new(array));
                Ok((vec![0; count], Vector::new(values)))
            }
            Known::Pairs { pairs, interners } => {
                let words: Vec<Vec<u64>> = (0..self.layout.words())
                    .map(|word| {
                        let mut column = Vec::new();
                        pairs.column(word, &all, &mut column);
                        column
                    })
                    .collect();
                let groups = match self.one {
                    true => vec![0; count],
                    false => words[0].iter().map(|group| *group as u32).collect(),
                };
                let value = self.layout.decode(&words, interners)?.pop();
                let value = value.ok_or_else(|| Error::internal("no values"))?;
                Ok((groups, value))
            }
        }
    }

    /// Forgets all pairs.
    pub fn forget(&mut self) {
        self.known = match &self.known {
            Known::StringKeys(_) => Known::StringKeys(Box::default()),
            Known::Pairs { .. } => Known::Pairs {
                pairs: Groups::new(self.layout.words()),
                interners: vec![],
            },
        };
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        match &self.known {
            Known::StringKeys(texts) => texts.memory(),
            Known::Pairs { pairs, interners } => {
                let texts: usize = interners.iter().map(Interner::memory).sum();
                pairs.memory() + texts
            }
        }
    }
}
