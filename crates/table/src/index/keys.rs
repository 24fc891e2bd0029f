//! The keys of rows that are Arrow arrays.

use std::collections::HashMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use crate::error::{Error, Result};
use crate::format::keys::{Form, push_bytes, push_float};
use crate::format::nested::to_storage;
use crate::scan::{ints_of, wides_of};
use crate::schema::is_enum;

/// The keys of the rows of some arrays, as bytes: equal exactly where the values are.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// Where each ends. Invariant: ascending.
    ends: Vec<usize>,
    /// Absent if no row has a NULL.
    null: Option<Vec<bool>>,
}

/// Values of a column, ready to be appended one by one.
enum Values {
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
    Floats(Vec<f64>),
    Bytes(BinaryViewArray),
}

impl Keys {
    /// The keys of the rows of `columns`, which have stored types.
    ///
    /// # Errors
    /// [`Error::Kind`] for a column that has no stored type.
    pub fn of(columns: &[ArrayRef]) -> Result<Keys> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut values = Vec::with_capacity(columns.len());
        let mut null: Option<Vec<bool>> = None;
        for column in columns {
            let stored = is_enum(column.data_type()).then(|| to_storage(column));
            let column = &stored.transpose()?.unwrap_or_else(|| column.clone());
            values.push(match Form::of(column.data_type()) {
                Form::Narrow => {
                    let mut numbers = Vec::with_capacity(rows);
                    ints_of(column, &mut numbers)?;
                    Values::Narrow(numbers)
                }
                Form::Wide => {
                    let mut numbers = Vec::with_capacity(rows);
                    wides_of(column, &mut numbers)?;
                    Values::Wide(numbers)
                }
                Form::Float => Values::Floats(floats(column)),
                Form::Bytes => Values::Bytes(bytes(column)?),
            });
            if let Some(nulls) = column.logical_nulls().filter(|n| n.null_count() > 0) {
                let all = null.get_or_insert_with(|| vec![false; rows]);
                for (row, gone) in all.iter_mut().enumerate() {
                    *gone |= nulls.is_null(row);
                }
            }
        }
        let mut keys = Keys {
            bytes: Vec::with_capacity(rows * 8 * columns.len()),
            ends: Vec::with_capacity(rows),
            null,
        };
        for row in 0..rows {
            if keys.null.as_ref().is_none_or(|null| !null[row]) {
                for column in &values {
                    column.push(row, &mut keys.bytes);
                }
            }
            keys.ends.push(keys.bytes.len());
        }
        Ok(keys)
    }

    /// Appends the key of one more row; none if it has a NULL.
    pub(crate) fn push(&mut self, key: Option<&[u8]>) {
        if key.is_none() || self.null.is_some() {
            let rows = self.ends.len();
            let null = self.null.get_or_insert_with(|| vec![false; rows]);
            null.push(key.is_none());
        }
        self.bytes.extend_from_slice(key.unwrap_or_default());
        self.ends.push(self.bytes.len());
    }

    /// About the bytes of memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        (self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()) as u64
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key of a row; `None` if one of its values is NULL.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        if self.null.as_ref().is_some_and(|null| null[row]) {
            return None;
        }
        Some(&self.bytes[self.range(row)])
    }

    fn range(&self, row: usize) -> Range<usize> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[row]
    }

    /// The rows that have keys, and these.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        (0..self.len()).filter_map(|row| Some((row, self.get(row)?)))
    }
}

impl Values {
    fn push(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Values::Narrow(values) => Form::Narrow.push_int(values[row].into(), out),
            Values::Wide(values) => Form::Wide.push_int(values[row], out),
            Values::Floats(values) => push_float(values[row], out),
            Values::Bytes(values) => push_bytes(values.value(row), out),
        }
    }
}

fn floats(column: &ArrayRef) -> Vec<f64> {
    match column.as_primitive_opt::<Float32Type>() {
        Some(single) => single.values().iter().map(|v| f64::from(*v)).collect(),
        None => column.as_primitive::<Float64Type>().values().to_vec(),
    }
}

fn bytes(column: &ArrayRef) -> Result<BinaryViewArray> {
    if let Some(texts) = column.as_string_view_opt() {
        return Ok(texts.clone().to_binary_view());
    }
    if let Some(ids) = column.as_fixed_size_binary_opt() {
        return Ok(BinaryViewArray::from_iter(ids.iter()));
    }
    if matches!(column.data_type(), DataType::Decimal256(..)) {
        return Ok(to_storage(column)?.as_binary_view().clone());
    }
    match column.as_binary_view_opt() {
        Some(bytes) => Ok(bytes.clone()),
        None => Err(Error::Kind(format!("{} as a key", column.data_type()))),
    }
}

/// Rows by their keys.
#[derive(Clone, Debug, Default)]
pub struct KeyMap {
    rows: HashMap<Box<[u8]>, u32>,
}

impl KeyMap {
    /// Puts rows in, of which those without a NULL in `columns` have keys. The row of a key is its place in `columns`.
    ///
    /// # Errors
    /// [`Error::Kind`] for a column that has no stored type.
    pub fn of(columns: &[ArrayRef]) -> Result<KeyMap> {
        let keys = Keys::of(columns)?;
        let rows = keys.iter().map(|(row, key)| (key.into(), row as u32));
        Ok(KeyMap {
            rows: rows.collect(),
        })
    }

    /// For each row of `columns` the row that was put in with its key.
    ///
    /// # Errors
    /// As [`KeyMap::of`].
    pub fn get(&self, columns: &[ArrayRef]) -> Result<Vec<Option<u32>>> {
        let keys = Keys::of(columns)?;
        let rows = (0..keys.len()).map(|row| self.rows.get(keys.get(row)?).copied());
        Ok(rows.collect())
    }

    /// For each row whether it has the same key in both, or none in both.
    ///
    /// # Errors
    /// As [`KeyMap::of`].
    pub fn same(one: &[ArrayRef], other: &[ArrayRef]) -> Result<Vec<bool>> {
        let (one, other) = (Keys::of(one)?, Keys::of(other)?);
        let rows = 0..one.len().min(other.len());
        Ok(rows.map(|row| one.get(row) == other.get(row)).collect())
    }

    /// The rows that have keys, one for each.
    pub fn rows(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = self.rows.values().copied().collect();
        rows.sort_unstable();
        rows
    }
}
