//! The order of rows by keys, packed into one number where they fit: rows of equal keys stay in their order.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::row::{RowConverter, Rows, SortField};

use crate::error::{Result, missing};
use crate::logical::relation::Key;
use crate::operators::sort::options;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Values, Vector};

/// What rows are sorted by.
pub(crate) enum SortRows {
    /// Keys of up to 64 bits, each with its row.
    Short(Vec<(u64, u32)>),
    /// Keys of up to 128 bits, each with its row.
    Long(Vec<(u128, u32)>),
    /// Keys as bytes that compare as they do, and the rows.
    Bytes(Arc<Rows>, Vec<u32>),
}

/// The order of rows of the third kind.
pub(crate) fn by_bytes(keys: &Rows, a: u32, b: u32) -> Ordering {
    let key = |row: u32| keys.row(row as usize);
    key(a).cmp(&key(b)).then(a.cmp(&b))
}

impl SortRows {
    /// The keys of `rows`.
    ///
    /// # Errors
    /// Those of Arrow; an internal error if a key is not among the columns.
    pub fn of(rows: &Materialized, types: &[Type], keys: &[Key]) -> Result<SortRows> {
        let mut vectors = Vec::with_capacity(keys.len());
        for key in keys {
            let vector = rows.columns.get(&key.var).ok_or_else(missing)?;
            vectors.push((vector, key, &types[key.var]));
        }
        let digits = vectors
            .iter()
            .map(|(vector, key, ty)| digit(vector, ty, key));
        let digits: Option<Vec<Digit>> = digits.collect();
        let numbers = 0..rows.rows as u32;
        if let Some(digits) = digits {
            let bits = digits.iter().map(|digit| digit.bits).sum::<u32>();
            if bits <= 64 {
                let mut packed = vec![0u64; rows.rows];
                for digit in &digits {
                    // A digit of all 64 bits is the only one.
                    let up = |key: u64| key.checked_shl(digit.bits).unwrap_or(0);
                    let pairs = packed.iter_mut().zip(&digit.values);
                    pairs.for_each(|(key, value)| *key = up(*key) | value);
                }
                return Ok(SortRows::Short(packed.into_iter().zip(numbers).collect()));
            }
            if bits <= 128 {
                let mut packed = vec![0u128; rows.rows];
                for digit in &digits {
                    let pairs = packed.iter_mut().zip(&digit.values);
                    pairs.for_each(|(key, value)| *key = *key << digit.bits | u128::from(*value));
                }
                return Ok(SortRows::Long(packed.into_iter().zip(numbers).collect()));
            }
        }
        let field = |(_, key, ty): &(&Vector, &Key, &Type)| {
            SortField::new_with_options(ty.sorted_as(), options(key))
        };
        let converter = RowConverter::new(vectors.iter().map(field).collect())?;
        let columns = vectors.iter().map(|(vector, _, ty)| vector.to_arrow(ty));
        let bytes = converter.convert_columns(&columns.collect::<Result<Vec<_>>>()?)?;
        Ok(SortRows::Bytes(Arc::new(bytes), numbers.collect()))
    }
}

/// A key as whole numbers of so many bits, which are in its order.
struct Digit {
    values: Vec<u64>,
    bits: u32,
}

/// The values of a key as numbers from 0 to `most`, and which of them there are.
struct Distances<'v> {
    values: Vec<u64>,
    most: u64,
    valid: Option<&'v [bool]>,
}

/// The key as numbers; `None` if it takes more than 64 bits.
fn digit(vector: &Vector, ty: &Type, key: &Key) -> Option<Digit> {
    let Distances {
        mut values,
        most,
        valid,
    } = distances(vector, ty)?;
    if key.descending {
        values.iter_mut().for_each(|value| *value = most - *value);
    }
    let mut greatest = most;
    if let Some(valid) = valid {
        greatest = most.checked_add(1)?;
        let (null, up) = if key.nulls_first {
            (0, 1)
        } else {
            (greatest, 0)
        };
        let pairs = values.iter_mut().zip(valid);
        pairs.for_each(|(value, valid)| *value = if *valid { *value + up } else { null });
    }
    let bits = u64::BITS - greatest.leading_zeros();
    Some(Digit { values, bits })
}

/// The values as distances from the least. Those of NULLs are 0.
fn distances<'v>(vector: &'v Vector, ty: &Type) -> Option<Distances<'v>> {
    let valid = vector.valid.as_deref();
    let there = |row: usize| valid.is_none_or(|valid| valid[row]);
    let mut values: Vec<u64> = match &vector.values {
        Values::Int(v) => {
            let some = || v.iter().enumerate().filter(|(row, _)| there(*row));
            let least = some().map(|(_, v)| *v).min().unwrap_or(0);
            v.iter().map(|v| v.wrapping_sub(least) as u64).collect()
        }
        Values::Wide(v) => {
            let some = || v.iter().enumerate().filter(|(row, _)| there(*row));
            let least = some().map(|(_, v)| *v).min().unwrap_or(0);
            let most = some().map(|(_, v)| *v).max().unwrap_or(0);
            u64::try_from(most.checked_sub(least)?).ok()?;
            v.iter().map(|v| v.wrapping_sub(least) as u64).collect()
        }
        // The bits of floats without their sign are in their order, and those of negative ones in the opposite.
        Values::Float(v) => v
            .iter()
            .map(|v| v.to_bits())
            .map(|bits| {
                if bits >> 63 == 1 {
                    !bits
                } else {
                    bits | 1 << 63
                }
            })
            .collect(),
        Values::Bool(v) => v.iter().map(|v| u64::from(*v)).collect(),
        Values::Code(v) => {
            let rank = ty.labels.as_ref()?.rank();
            // The code of a NULL may be one that there is no label for.
            let place = |code: &u32| rank.get(*code as usize).copied().unwrap_or(0);
            v.iter().map(|code| u64::from(place(code))).collect()
        }
        Values::Text(_) => return None,
    };
    if let Some(valid) = valid {
        let nulls = values.iter_mut().zip(valid).filter(|(_, valid)| !**valid);
        nulls.for_each(|(value, _)| *value = 0);
    }
    let most = values.iter().copied().max().unwrap_or(0);
    Some(Distances {
        values,
        most,
        valid,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::*;
    use crate::operators::sort::order;

    fn sorted(rows: SortRows) -> Vec<u32> {
        match rows {
            SortRows::Short(mut rows) => {
                rows.sort_unstable();
                rows.into_iter().map(|(_, row)| row).collect()
            }
            SortRows::Long(mut rows) => {
                rows.sort_unstable();
                rows.into_iter().map(|(_, row)| row).collect()
            }
            SortRows::Bytes(keys, mut rows) => {
                rows.sort_unstable_by(|a, b| by_bytes(&keys, *a, *b));
                rows
            }
        }
    }

    prop_compose! {
        fn column()(
            ints in prop::collection::vec(prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>(), -3i64..3], 30),
            floats in prop::collection::vec(prop_oneof![Just(f64::NAN), Just(f64::INFINITY), any::<f64>(), Just(1.5), Just(-1.5)], 30),
            small in prop::collection::vec(-3i64..3, 30),
            wide in prop::collection::vec(prop_oneof![Just(i128::MIN), any::<i128>(), 0i128..4], 30),
            bools in prop::collection::vec(any::<bool>(), 30),
            valid in prop::option::of(prop::collection::vec(any::<bool>(), 30)),
            which in 0usize..5,
        ) -> (Vector, Type) {
            let ty = |data: DataType| Type::of(&data, true).unwrap();
            // There is one NaN.
            let floats = floats.into_iter().map(|v| if v.is_nan() { f64::NAN } else { v }).collect();
            let (values, ty) = match which {
                0 => (Values::Int(ints), ty(DataType::Int64)),
                1 => (Values::Float(floats), ty(DataType::Float64)),
                2 => (Values::Int(small), ty(DataType::Int64)),
                3 => (Values::Wide(wide), ty(DataType::Decimal128(38, 0))),
                _ => (Values::Bool(bools), ty(DataType::Boolean)),
            };
            (Vector { values, valid }, ty)
        }
    }

    proptest! {
        #[test]
        fn packed_keys_are_in_the_order_of_the_values(
            columns in prop::collection::vec(column(), 1..4),
            ways in prop::collection::vec((any::<bool>(), any::<bool>()), 4),
        ) {
            let types: Vec<Type> = columns.iter().map(|(_, ty)| ty.clone()).collect();
            let columns: BTreeMap<_, _> = columns.into_iter().map(|(column, _)| column).enumerate().collect();
            let key = |(var, (descending, nulls_first)): (usize, &(bool, bool))| Key {
                var,
                descending: *descending,
                nulls_first: *nulls_first,
            };
            let keys: Vec<Key> = ways.iter().enumerate().take(columns.len()).map(key).collect();
            let rows = Materialized { columns, rows: 30 };
            let found = sorted(SortRows::of(&rows, &types, &keys).unwrap());
            // Rows of equal keys may be in any order there.
            let wanted = order(&rows, &types, &keys, None).unwrap();
            let at = |rows_of: &[u32]| -> Vec<String> {
                let picked = |key: &Key| rows.columns[&key.var].at(rows_of).unwrap().to_arrow(&types[key.var]).unwrap();
                keys.iter().map(|key| format!("{:?}", picked(key))).collect()
            };
            prop_assert_eq!(at(&found), at(&wanted));
            let mut all = found.clone();
            all.sort_unstable();
            prop_assert_eq!(all, (0..30).collect::<Vec<u32>>());
        }
    }
}
