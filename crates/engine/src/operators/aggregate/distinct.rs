//! Distinct values per group, for COUNT(DISTINCT x) and the like.

use algebra::krao::Groups;
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{AccumulatedValues, Accumulator, same};
use crate::operators::aggregate::sums::Count;
use crate::vector::interner::Interner;
use crate::vector::key_encoding::{KeyEncoding, KeyWords, StringKeys};
use crate::vector::value::{Kind, Type, Values, Vector};

/// The distinct values of each group, their number and, if asked for, their sum.
#[derive(Debug)]
pub(crate) struct DistinctValues {
    known: DistinctSet,
    counts: Count,
    sum: Option<Box<dyn Accumulator>>,
    ty: Type,
    single: bool,
}

impl DistinctValues {
    /// No values yet. `single` says that there is only one group; `sum` adds up each distinct value once.
    ///
    /// # Errors
    /// Those of [`DistinctSet::new`].
    pub fn new(
        ty: &Type,
        single: bool,
        sum: Option<Box<dyn Accumulator>>,
    ) -> Result<DistinctValues> {
        Ok(DistinctValues {
            known: DistinctSet::new(ty, single)?,
            counts: Count::default(),
            sum,
            ty: ty.clone(),
            single,
        })
    }
}

impl Accumulator for DistinctValues {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        let sum = self.sum.as_ref().map(|sum| sum.fresh()).transpose()?;
        Ok(Box::new(DistinctValues::new(&self.ty, self.single, sum)?))
    }

    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups);
        if let Some(sum) = &mut self.sum {
            sum.resize(groups);
        }
    }

    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(|| Error::internal("a distinct aggregate without argument"))?;
        let fresh = self.known.fresh(groups, vector)?;
        let of = |groups: &[u32]| fresh.iter().map(|row| groups[*row as usize]).collect();
        let groups: Option<Vec<u32>> = groups.map(of);
        self.counts.add(groups.as_deref(), fresh.len(), None)?;
        if let Some(sum) = &mut self.sum {
            let values = Vector::new(vector.values.at(&fresh)?);
            sum.add(groups.as_deref(), fresh.len(), Some(&values))?;
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &DistinctValues = same(other)?;
        let (mut groups, values) = other.known.all()?;
        let mut places = vec![0; from.iter().max().map_or(0, |most| *most as usize + 1)];
        for (from, to) in from.iter().zip(to) {
            places[*from as usize] = *to;
        }
        for group in &mut groups {
            *group = places[*group as usize];
        }
        self.add(Some(&groups), values.len(), Some(&values))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![]
    }

    fn state(&self, _: &[u32]) -> Result<Vec<Vector>> {
        Ok(vec![])
    }

    fn of_state(&self, _: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        self.fresh()
    }

    fn memory(&self) -> usize {
        let sum = self.sum.as_ref().map_or(0, |sum| sum.memory());
        self.counts.memory() + sum + self.known.memory()
    }

    fn memory_of_values(&self) -> usize {
        self.known.memory()
    }

    fn each_value(&self, take: &mut dyn FnMut(&[u32], &Vector) -> Result<()>) -> Result<()> {
        let (groups, values) = self.known.all()?;
        take(&groups, &values)
    }

    fn forget_values(&mut self) {
        self.known.forget();
    }

    fn found(&self) -> AccumulatedValues<'_> {
        self.sum
            .as_ref()
            .map_or(AccumulatedValues::Counts, |sum| sum.found())
    }

    fn counts(&self) -> Option<&[i64]> {
        self.counts.counts()
    }
}

/// A set of pairs of a group and a value.
#[derive(Debug)]
struct DistinctSet {
    /// Whether there is only one group; then pairs hold no group.
    one: bool,
    layout: KeyEncoding,
    known: Known,
    words: KeyWords,
    numbers: Vec<u32>,
}

/// The pairs, numbered in order of first appearance.
#[derive(Debug)]
enum Known {
    /// Strings of a single group.
    Strings(Box<Interner>),
    Pairs {
        pairs: Groups,
        interners: Vec<Interner>,
    },
}

impl DistinctSet {
    /// An empty set for values of type `ty`. `one` says that there is only one group.
    ///
    /// # Errors
    /// An internal error if the engine has no type for group numbers.
    pub fn new(ty: &Type, one: bool) -> Result<DistinctSet> {
        let group = Type::of(&DataType::Int64, false)
            .ok_or_else(|| Error::internal("numbers of no type"))?;
        let value = ty.clone().nullable(false);
        let texts = one && ty.kind == Kind::Text;
        let layout = KeyEncoding::groups(if one { vec![value] } else { vec![group, value] });
        Ok(DistinctSet {
            one,
            known: if texts {
                Known::Strings(Box::default())
            } else {
                Known::Pairs {
                    pairs: Groups::new(layout.words()),
                    interners: vec![],
                }
            },
            layout,
            words: KeyWords::default(),
            numbers: vec![],
        })
    }

    /// Adds values and returns the rows whose value is new in its group. NULLs are ignored. If `groups` is absent,
    /// all rows belong to group 0.
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
            Known::Strings(texts) => {
                let Values::Text(own) = &values.values else {
                    return Err(Error::internal("values of another kind"));
                };
                texts.add(own, None, &mut self.numbers);
            }
            Known::Pairs { pairs, interners } => {
                let group =
                    |place| groups.map_or(0, |groups| i64::from(groups[row(place) as usize]));
                let mut texts = StringKeys::Adding(interners);
                if self.one {
                    let words = &mut self.words;
                    self.layout
                        .encode(&[values], values.len(), &mut texts, words)?;
                } else {
                    let numbers = (0..values.len()).map(group).collect();
                    let own = [&Vector::new(Values::Int(numbers)), values];
                    let words = &mut self.words;
                    self.layout.encode(&own, values.len(), &mut texts, words)?;
                }
                let words = &self.words;
                pairs.insert(&words.hashes, &words.columns(), &mut self.numbers);
            }
        }
        // New pairs have consecutive numbers in row order.
        let mut fresh = Vec::new();
        for (place, pair) in self.numbers.iter().enumerate() {
            if *pair == next {
                fresh.push(row(place));
                next += 1;
            }
        }
        Ok(fresh)
    }

    /// The number of pairs.
    fn len(&self) -> usize {
        match &self.known {
            Known::Strings(texts) => texts.len(),
            Known::Pairs { pairs, .. } => pairs.len(),
        }
    }

    /// All pairs, as the groups and the values.
    pub fn all(&self) -> Result<(Vec<u32>, Vector)> {
        let count = self.len();
        let all: Vec<u32> = (0..count as u32).collect();
        match &self.known {
            Known::Strings(texts) => {
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
                let groups = if self.one {
                    vec![0; count]
                } else {
                    words[0].iter().map(|group| *group as u32).collect()
                };
                let value = self.layout.decode(&words, interners)?.pop();
                let value = value.ok_or_else(|| Error::internal("no values"))?;
                Ok((groups, value))
            }
        }
    }

    /// Removes all pairs.
    pub fn forget(&mut self) {
        self.known = match &self.known {
            Known::Strings(_) => Known::Strings(Box::default()),
            Known::Pairs { .. } => Known::Pairs {
                pairs: Groups::new(self.layout.words()),
                interners: vec![],
            },
        };
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        match &self.known {
            Known::Strings(texts) => texts.memory(),
            Known::Pairs { pairs, interners } => {
                let texts: usize = interners.iter().map(Interner::memory).sum();
                pairs.memory() + texts
            }
        }
    }
}
