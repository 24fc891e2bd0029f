//! Keys that are numbered in the order in which they come.
//!
//! Keys of one or two whole numbers of 64 bits, nearly all that there are, are kept as these; others as bytes, one behind
//! the other. Rows often have the key of the row before, so that is looked at first.

use std::hash::BuildHasher;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use hashbrown::hash_map::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable, hash_table};

use crate::error::Result;
use crate::format::keys::Form;
use crate::index::keys::Keys;
use crate::scan::ints_of;
use crate::schema::is_enum;

/// Keys, each with a number from 0 on. All have the same columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbered {
    numbers: HashMap<[i64; 2], usize>,
    bytes: Bytes,
}

/// Keys of other columns than whole numbers.
#[derive(Clone, Debug, Default)]
struct Bytes {
    hasher: DefaultHashBuilder,
    table: HashTable<usize>,
    all: Keys,
}

/// Keys of rows as whole numbers.
struct Pairs {
    first: Vec<i64>,
    second: Option<Vec<i64>>,
    nulls: Option<NullBuffer>,
}

impl Pairs {
    /// Those of `columns`; none if they are of other types.
    fn of(columns: &[ArrayRef]) -> Result<Option<Pairs>> {
        let fits = |column: &ArrayRef| {
            let own = column.data_type();
            !is_enum(own) && matches!(Form::of(own), Form::Narrow)
        };
        if !(1..=2).contains(&columns.len()) || !columns.iter().all(fits) {
            return Ok(None);
        }
        let mut nulls = None;
        let mut all = Vec::with_capacity(2);
        for column in columns {
            let mut numbers = Vec::with_capacity(column.len());
            ints_of(column, &mut numbers)?;
            all.push(numbers);
            nulls = NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref());
        }
        let second = (all.len() == 2).then(|| all.pop()).flatten();
        Ok(all.pop().map(|first| Pairs {
            first,
            second,
            nulls,
        }))
    }

    fn get(&self, row: usize) -> Option<[i64; 2]> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        let second = self.second.as_ref().map_or(0, |second| second[row]);
        Some([self.first[row], second])
    }
}

impl Numbered {
    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len() + self.bytes.all.len()
    }

    /// About the bytes of memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        let pairs = self.numbers.capacity() * size_of::<([i64; 2], usize)>() * 8 / 7;
        let others = self.bytes.table.capacity() * size_of::<usize>() * 8 / 7;
        (pairs + others) as u64 + self.bytes.all.bytes()
    }

    /// The number of each row's key, which is the next one if the key is new; none for a row with a NULL, which has no key.
    ///
    /// # Errors
    /// [`crate::Error::Kind`] for a column that has no stored type.
    pub(crate) fn put(&mut self, columns: &[ArrayRef]) -> Result<Vec<Option<usize>>> {
        let Some(pairs) = Pairs::of(columns)? else {
            let keys = Keys::of(columns)?;
            let number = |row| keys.get(row).map(|key| self.bytes.put(key));
            return Ok((0..keys.len()).map(number).collect());
        };
        let mut last = None;
        let number = |row| {
            let key = pairs.get(row)?;
            if let Some((_, number)) = last.filter(|(before, _)| *before == key) {
                return Some(number);
            }
            let next = self.numbers.len();
            let number = match self.numbers.entry(key) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(vacant) => *vacant.insert(next),
            };
            last = Some((key, number));
            Some(number)
        };
        Ok((0..pairs.first.len()).map(number).collect())
    }

    /// The number of each row's key; none for one that is not there.
    ///
    /// # Errors
    /// As [`put`](Numbered::put).
    pub(crate) fn get(&self, columns: &[ArrayRef]) -> Result<Vec<Option<usize>>> {
        let Some(pairs) = Pairs::of(columns)? else {
            let keys = Keys::of(columns)?;
            let number = |row| self.bytes.get(keys.get(row)?);
            return Ok((0..keys.len()).map(number).collect());
        };
        let number = |row| self.numbers.get(&pairs.get(row)?).copied();
        Ok((0..pairs.first.len()).map(number).collect())
    }
}

impl Bytes {
    fn get(&self, key: &[u8]) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        let same = |at: &usize| self.all.get(*at) == Some(key);
        self.table.find(hash, same).copied()
    }

    fn put(&mut self, key: &[u8]) -> usize {
        let (hasher, all) = (&self.hasher, &mut self.all);
        let same = |at: &usize| all.get(*at) == Some(key);
        let hash_of = |at: &usize| hasher.hash_one(all.get(*at).unwrap_or_default());
        match self.table.entry(hasher.hash_one(key), same, hash_of) {
            hash_table::Entry::Occupied(known) => *known.get(),
            hash_table::Entry::Vacant(vacant) => {
                let next = all.len();
                vacant.insert(next);
                all.push(Some(key));
                next
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, Int64Array, StringViewArray};

    use super::*;

    /// Columns of each kind of key, with repeated values and NULL.
    fn columns(random: &mut fastrand::Rng, rows: usize) -> Vec<Vec<ArrayRef>> {
        let mut ints = || -> Int64Array {
            let mut last = 0;
            let value = |_| match random.u8(0..6) {
                0 => None,
                1 => Some(last),
                2 => Some(i64::MIN),
                _ => {
                    last = random.i64(-20..20);
                    Some(last)
                }
            };
            (0..rows).map(value).collect()
        };
        let (a, b) = (ints(), ints());
        let short: Int32Array = b.iter().map(|v| v.map(|v| v as i32)).collect();
        let texts: StringViewArray = a.iter().map(|v| v.map(|v| v.to_string())).collect();
        let floats: Float64Array = b.iter().map(|v| v.map(|v| v as f64 / 0.0)).collect();
        let [a, b]: [ArrayRef; 2] = [Arc::new(a), Arc::new(b)];
        let (short, texts): (ArrayRef, ArrayRef) = (Arc::new(short), Arc::new(texts));
        vec![
            vec![a.clone()],
            vec![a.clone(), b.clone()],
            vec![short, a.clone()],
            vec![a, b.clone(), b],
            vec![texts],
            vec![Arc::new(floats)],
        ]
    }

    #[test]
    fn keys_have_numbers_in_the_order_in_which_they_come() {
        let mut random = fastrand::Rng::with_seed(3);
        for kind in 0..6 {
            let mut own = Numbered::default();
            let mut model: HashMap<Vec<u8>, usize> = HashMap::new();
            for _ in 0..20 {
                let rows = random.usize(0..60);
                let rows = columns(&mut random, rows).swap_remove(kind);
                let keys = Keys::of(&rows).unwrap();
                let known = |row| model.get(keys.get(row)?).copied();
                let known: Vec<Option<usize>> = (0..keys.len()).map(known).collect();
                assert_eq!(own.get(&rows).unwrap(), known);
                let wanted: Vec<Option<usize>> = (0..keys.len())
                    .map(|row| {
                        let next = model.len();
                        Some(*model.entry(keys.get(row)?.to_vec()).or_insert(next))
                    })
                    .collect();
                assert_eq!(own.put(&rows).unwrap(), wanted);
                assert_eq!(own.len(), model.len());
                assert!(own.bytes() >= model.len() as u64 * 8);
            }
        }
    }
}
