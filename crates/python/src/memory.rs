//! Memory of arrays of NumPy.

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow::buffer::{Buffer, MutableBuffer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::InterfaceError;

/// The memory of an array with one dimension, which is kept while this or a buffer of it is there.
pub(crate) struct Memory {
    /// The first value.
    address: usize,
    /// From a value to the next, in bytes; negative in an array that runs backwards.
    stride: isize,
    rows: usize,
    /// Bytes of a value.
    width: usize,
    owner: Arc<Owner>,
}

/// What keeps the memory.
struct Owner {
    _array: Py<PyAny>,
}

/// Nothing of it is looked at when a thread has panicked, or ever.
impl std::panic::RefUnwindSafe for Owner {}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("rows", &self.rows)
            .field("width", &self.width)
            .field("stride", &self.stride)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// The memory of an array of NumPy, and what kind of values it has: "i8", "M8\[ns\]", "O". None if it has another
    /// number of dimensions than one, or another byte order than this machine.
    ///
    /// # Errors
    /// If it does not describe itself as arrays of NumPy do.
    pub fn of(array: &Bound<'_, PyAny>) -> PyResult<Option<(String, Memory)>> {
        let described = array.getattr("__array_interface__")?;
        let described = described.cast_into::<PyDict>()?;
        let entry = |name: &str| -> PyResult<Bound<'_, PyAny>> {
            let entry = described.get_item(name)?;
            entry.ok_or_else(|| InterfaceError::new_err(format!("an array that has no {name}")))
        };
        let shape: Vec<usize> = entry("shape")?.extract()?;
        let kind: String = entry("typestr")?.extract()?;
        let (address, _): (usize, bool) = entry("data")?.extract()?;
        let [rows] = shape[..] else { return Ok(None) };
        let native = if cfg!(target_endian = "big") {
            '>'
        } else {
            '<'
        };
        let Some((kind, width)) = kind
            .strip_prefix([native, '|', '='])
            .and_then(|kind| Some((kind, width(kind)?)))
        else {
            return Ok(None);
        };
        let stride = match described.get_item("strides")? {
            Some(strides) if !strides.is_none() => strides.extract::<(isize,)>()?.0,
            _ => width as isize,
        };
        let memory = Memory {
            address,
            stride,
            rows,
            width,
            owner: Arc::new(Owner {
                _array: array.clone().unbind(),
            }),
        };
        Ok(Some((kind.to_owned(), memory)))
    }

    /// How many values there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of a value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Where a value lies.
    pub fn place(&self, row: usize) -> *const u8 {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let address = self.address.wrapping_add_signed(row as isize * self.stride);
        std::ptr::with_exposed_provenance(address)
    }

    /// Values of `width` bytes: as they lie, if they lie one after the other, or else copied.
    pub fn read(&self, rows: Range<usize>, width: usize) -> Buffer {
        assert!(
            rows.end <= self.rows && width == self.width,
            "{rows:?} of {self:?}"
        );
        let bytes = rows.len() * width;
        if bytes == 0 {
            return MutableBuffer::new(0).into();
        }
        let first = self.place(rows.start);
        if self.stride == width as isize
            && first.addr().is_multiple_of(width)
            && let Some(first) = NonNull::new(first.cast_mut())
        {
            // SAFETY: the range lies in the array, which `owner` keeps as it is: NumPy refuses to resize an array that
            // somebody refers to. Values that the caller changes meanwhile are the caller's race, as in every library
            // that reads arrays without the interpreter; each value stays one of its type.
            return unsafe { Buffer::from_custom_allocation(first, bytes, self.owner.clone()) };
        }
        let mut copied = MutableBuffer::with_capacity(bytes);
        for row in rows {
            // SAFETY: `place` is within the array, whose values have `width` bytes.
            copied.extend_from_slice(unsafe { std::slice::from_raw_parts(self.place(row), width) });
        }
        copied.into()
    }
}

/// Bytes of a value of a kind.
fn width(kind: &str) -> Option<usize> {
    if kind == "O" {
        return Some(size_of::<*const ()>());
    }
    let digits = kind.get(1..)?;
    let digits = digits.split('[').next()?;
    digits.parse().ok().filter(|width| (1..=16).contains(width))
}
