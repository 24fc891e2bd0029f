//! Radix partitioning by key: rows with equal keys land in the same partition, in whichever relation they are and
//! however their strings are encoded. Rows that do not fit in memory are spilled by partition and processed
//! partition by partition.

use algebra::hash::{combine_u64, hash_bytes};
use arrow::array::{Array, AsArray};

use crate::error::Result;
use crate::vector::key_encoding::word_of;
use crate::vector::value::{Type, Values, Vector};

/// Partitions per level.
pub(crate) const PARTITIONS: usize = 64;

/// The last level. A partition that is too large is split again at the next level, by other bits of the hash.
pub(crate) const LAST_LEVEL: u32 = 2;

const SEED: u64 = 0x9A27_0517;

/// Computes the partitions of rows. Reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct RadixPartitioner {
    words: Vec<u64>,
    hashes: Vec<u64>,
}

impl RadixPartitioner {
    /// The partition of each of `rows` rows, by the keys `vectors` of `types`, at `level`. NULL is a key like any
    /// other.
    pub fn of(
        &mut self,
        vectors: &[&Vector],
        types: &[&Type],
        rows: usize,
        level: u32,
    ) -> Result<Vec<u8>> {
        self.hashes.clear();
        self.hashes.resize(rows, SEED);
        for (vector, ty) in vectors.iter().zip(types) {
            words(vector, ty, &mut self.words)?;
            combine_u64(&self.words, &mut self.hashes);
        }
        let shift = 58 - 6 * level;
        let part = |hash: &u64| (hash >> shift) as u8 % PARTITIONS as u8;
        Ok(self.hashes.iter().map(part).collect())
    }
}

/// A word for each value; equal values have equal words, whatever type holds them.
fn words(vector: &Vector, ty: &Type, out: &mut Vec<u64>) -> Result<()> {
    out.clear();
    let wide = |v: &i128| match i64::try_from(*v) {
        Ok(narrow) => narrow as u64,
        Err(_) => hash_bytes(&v.to_le_bytes(), SEED),
    };
    match &vector.values {
        Values::Int(v) => out.extend(v.iter().map(|v| *v as u64)),
        Values::Wide(v) => out.extend(v.iter().map(wide)),
        Values::Float(v) => out.extend(v.iter().map(|v| word_of(*v))),
        Values::Bool(v) => out.extend(v.iter().map(|v| u64::from(*v))),
        Values::Code(_) | Values::Text(_) => {
            let own = Type {
                data: arrow::datatypes::DataType::Utf8View,
                ..ty.clone()
            };
            let array = vector.to_arrow(&own)?;
            let array = array.as_string_view();
            let text = |row| {
                if array.is_null(row) {
                    ""
                } else {
                    array.value(row)
                }
            };
            out.extend((0..array.len()).map(|row| hash_bytes(text(row).as_bytes(), SEED)));
        }
    }
    if let Some(valid) = &vector.valid {
        let nulls = out.iter_mut().zip(valid).filter(|(_, valid)| !**valid);
        nulls.for_each(|(word, _)| *word = 0);
    }
    Ok(())
}

/// The rows of each partition, ascending.
pub(crate) fn rows_of(parts: &[u8]) -> Vec<Vec<u32>> {
    let mut rows = vec![vec![]; PARTITIONS];
    for (row, part) in parts.iter().enumerate() {
        rows[usize::from(*part)].push(row as u32);
    }
    rows
}

/// How many levels there are.
const LEVELS: usize = LAST_LEVEL as usize + 1;

/// Partitions of a join table that are in memory at the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedPartitions {
    /// For each level a bit for each partition.
    parts: [u64; LEVELS],
}

impl LoadedPartitions {
    /// All of them.
    pub const ALL: LoadedPartitions = LoadedPartitions {
        parts: [u64::MAX; LEVELS],
    };

    /// Those of these that are `parts` at `level`, of which there is a bit for each.
    pub fn at(mut self, level: u32, parts: u64) -> LoadedPartitions {
        self.parts[level as usize] = parts;
        self
    }

    /// Which rows have keys that belong to a loaded partition.
    pub fn mask(&self, vectors: &[&Vector], types: &[&Type], rows: usize) -> Result<Vec<bool>> {
        let mut mask = vec![true; rows];
        for (level, loaded) in (0..).zip(self.parts) {
            if loaded != u64::MAX {
                let parts = RadixPartitioner::default().of(vectors, types, rows, level)?;
                let both = mask.iter_mut().zip(parts);
                both.for_each(|(own, part)| *own &= loaded >> part & 1 == 1);
            }
        }
        Ok(mask)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::vector::strings::Strings;
    use arrow::array::StringViewArray;
    use arrow::datatypes::DataType;

    fn parts(vector: &Vector, data: &DataType, level: u32) -> Vec<u8> {
        let ty = Type::of(data, true).unwrap();
        let rows = vector.len();
        let parts = RadixPartitioner::default().of(&[vector], &[&ty], rows, level);
        parts.unwrap()
    }

    #[test]
    fn equal_keys_are_in_one_part_however_they_are_held() {
        let narrow: Vec<i64> = (-500..500).map(|v| v * 1_000_003).collect();
        let wide = narrow.iter().map(|v| i128::from(*v)).collect();
        let narrow = Vector::new(Values::Int(narrow));
        let wide = Vector::new(Values::Wide(wide));
        assert_eq!(
            parts(&narrow, &DataType::Int64, 0),
            parts(&wide, &DataType::UInt64, 0)
        );
        let signs = Vector::new(Values::Float(vec![0.0, -0.0, f64::NAN, -f64::NAN]));
        let signs = parts(&signs, &DataType::Float64, 0);
        assert_eq!((signs[0], signs[2]), (signs[1], signs[3]));
        let words = ["", "a", "a longer text than twelve bytes", "a"];
        let words = StringViewArray::from_iter_values(words);
        let words = Vector::new(Values::Text(Strings::new(Arc::new(words))));
        let words = parts(&words, &DataType::Utf8View, 0);
        assert_eq!(words[1], words[3]);
    }

    #[test]
    fn parts_are_about_equal_and_levels_divide_what_one_part_holds() {
        let numbers = Vector::new(Values::Int((0..64_000).collect()));
        let first = rows_of(&parts(&numbers, &DataType::Int64, 0));
        assert!(first.iter().all(|rows| (800..1_200).contains(&rows.len())));
        let again = parts(&numbers.at(&first[7]).unwrap(), &DataType::Int64, 1);
        assert!(rows_of(&again).iter().all(|rows| rows.len() < 50));
    }

    #[test]
    fn a_row_is_in_one_pass_also_if_its_key_is_null() {
        let mut numbers = Vector::new(Values::Int((0..100).collect()));
        numbers.valid = Some((0..100).map(|n| n % 3 > 0).collect());
        let ty = Type::of(&DataType::Int64, true).unwrap();
        let mask = |parts| {
            LoadedPartitions::ALL
                .at(0, parts)
                .mask(&[&numbers], &[&ty], 100)
                .unwrap()
        };
        let (one, other) = (mask(0xFFFF_0000_1234_0001), mask(!0xFFFF_0000_1234_0001));
        assert!(one.iter().zip(other).all(|(one, other)| *one != other));
        let part = LoadedPartitions::ALL.at(0, 0xFFFF_FFFF);
        let mask = |parts: LoadedPartitions| parts.mask(&[&numbers], &[&ty], 100).unwrap();
        let halves = [part.at(1, 0xFFFF), part.at(1, !0xFFFF)].map(mask);
        let both = halves[0].iter().zip(&halves[1]);
        let whole = mask(part);
        assert!(whole.contains(&true) && whole.contains(&false));
        assert!(
            both.zip(whole)
                .all(|((one, other), all)| (one ^ other) == all && !(one & other))
        );
    }
}
