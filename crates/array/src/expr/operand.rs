//! Values that an operator works on: those of a column, or one for all cells.

use crate::data::block::Column;
use crate::data::buffer::Buffer;
use crate::model::types::{DataType, Element, Scalar};

/// The values of a piece of cells.
#[derive(Debug)]
pub(crate) enum Operand<'a> {
    /// The values from `start` on of a column.
    Part {
        column: &'a Column,
        start: usize,
        length: usize,
    },
    /// Values that were computed.
    Owned(Column),
    /// One value for all.
    Constant {
        value: Scalar,
        of: DataType,
        length: usize,
    },
}

/// Values of one type: one for each cell, or one for all.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a, T> {
    Each(&'a [T]),
    All(T),
}

impl<T: Copy> Values<'_, T> {
    #[inline(always)]
    pub fn get(&self, at: usize) -> T {
        match self {
            Values::Each(values) => values[at],
            Values::All(value) => *value,
        }
    }
}

impl Operand<'_> {
    /// The type of its values.
    pub fn data_type(&self) -> DataType {
        match self {
            Operand::Part { column, .. } => column.values().data_type(),
            Operand::Owned(column) => column.values().data_type(),
            Operand::Constant { of, .. } => *of,
        }
    }

    /// How many cells it has.
    pub fn len(&self) -> usize {
        match self {
            Operand::Part { length, .. } | Operand::Constant { length, .. } => *length,
            Operand::Owned(column) => column.values().len(),
        }
    }

    /// The values. A constant that is null, or that its type does not hold, is zero.
    pub fn values<T: Element>(&self) -> Values<'_, T> {
        match self {
            Operand::Part {
                column,
                start,
                length,
            } => Values::Each(&column.values().values()[*start..*start + *length]),
            Operand::Owned(column) => Values::Each(column.values().values()),
            Operand::Constant { value, of, .. } => {
                let bytes = value.to_bytes(*of).unwrap_or_default();
                Values::All(bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()]))
            }
        }
    }

    /// A byte for each value, 0 where it is null; `None` where none is.
    pub fn valid(&self) -> Option<std::borrow::Cow<'_, [u8]>> {
        match self {
            Operand::Part {
                column,
                start,
                length,
            } => column
                .valid()
                .map(|valid| valid[*start..*start + *length].into()),
            Operand::Owned(column) => column.valid().map(Into::into),
            Operand::Constant {
                value: Scalar::Null,
                length,
                ..
            } => Some(vec![0; *length].into()),
            Operand::Constant { .. } => None,
        }
    }

    /// A value.
    pub fn get(&self, at: usize) -> Scalar {
        match self {
            Operand::Part { column, start, .. } => column.get(start + at),
            Operand::Owned(column) => column.get(at),
            Operand::Constant { value, .. } => *value,
        }
    }

    /// All values as a column.
    pub fn into_column(self) -> Column {
        match self {
            Operand::Owned(column) => column,
            Operand::Constant { value, of, length } => {
                let valid = vec![u8::from(!value.is_null()); length];
                Column::nullable(Buffer::filled(of, length, value), valid)
            }
            Operand::Part {
                column,
                start,
                length,
            } => {
                let of = column.values().data_type();
                let width = of.width();
                let mut values = Buffer::zeros(of, length);
                let bytes = &column.values().bytes()[start * width..(start + length) * width];
                values.bytes_mut().copy_from_slice(bytes);
                match column.valid() {
                    None => Column::new(values),
                    Some(valid) => Column::nullable(values, valid[start..start + length].to_vec()),
                }
            }
        }
    }
}

/// Where both are valid; `None` where all are.
pub(crate) fn both_valid(a: &Operand<'_>, b: &Operand<'_>) -> Option<Vec<u8>> {
    match (a.valid(), b.valid()) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.into_owned()),
        (Some(a), Some(b)) => Some(a.iter().zip(b.iter()).map(|(a, b)| a & b).collect()),
    }
}

/// A column of values that may be null.
pub(crate) fn column(values: Buffer, valid: Option<Vec<u8>>) -> Column {
    match valid {
        None => Column::new(values),
        Some(valid) => Column::nullable(values, valid),
    }
}
