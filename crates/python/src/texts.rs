//! Texts that are objects of Python, as pandas holds them in columns of objects.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use arrow::error::ArrowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::memory::Memory;

/// Objects that are looked at where not all are.
const SAMPLE: usize = 1000;

/// Bytes of texts that lie together: texts of up to 12 bytes lie in their views.
const BLOCK: u32 = 1 << 20;

/// Texts, and objects that stand for NULL.
#[derive(Debug)]
pub(crate) struct Texts {
    memory: Memory,
    /// Objects that stand for NULL; they are kept, so that no others come to lie at their addresses.
    _missing: Py<PyTuple>,
    /// Where they lie.
    sentinels: Vec<usize>,
}

/// What an object is.
enum Value {
    Text,
    Null,
    Other,
}

impl Texts {
    /// The objects of an array, of which those in `missing` are NULL and, if there are any, NaN.
    pub fn new(memory: Memory, missing: &Bound<'_, PyTuple>) -> Texts {
        Texts {
            memory,
            sentinels: missing
                .iter()
                .map(|object| object.as_ptr().addr())
                .collect(),
            _missing: missing.clone().unbind(),
        }
    }

    /// Whether all objects are texts or NULL, or some of them if not all are looked at.
    pub fn are_texts(&self, _py: Python<'_>, all: bool) -> bool {
        let rows = self.memory.rows();
        let step = if all { 1 } else { (rows / SAMPLE).max(1) };
        let mut some = (0..rows).step_by(step);
        some.all(|row| {
            // SAFETY: this thread has the interpreter, so the object is alive.
            !matches!(unsafe { self.value(self.object(row)) }, Value::Other)
        })
    }

    /// The texts in a range of rows. Waits for the interpreter.
    ///
    /// # Errors
    /// If an object is no text, or the interpreter has ended.
    pub fn read(&self, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let read = Python::try_attach(|py| self.attached(py, rows));
        let gone = || ArrowError::ComputeError("the interpreter has ended".into());
        read.unwrap_or_else(|| Err(gone()))
    }

    fn attached(&self, py: Python<'_>, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let mut texts = StringViewBuilder::with_capacity(rows.len()).with_fixed_block_size(BLOCK);
        for row in rows {
            let object = self.object(row);
            // SAFETY: this thread has the interpreter, so the object is alive.
            match unsafe { self.value(object) } {
                Value::Text => texts.append_value(self.text(py, object, row)?),
                Value::Null => texts.append_null(),
                Value::Other => {
                    let text = format!(
                        "row {row} is no text, as others of its column are: name the column in the statement, so that all of it is looked at"
                    );
                    return Err(ArrowError::CastError(text));
                }
            }
        }
        Ok(Arc::new(texts.finish()))
    }

    /// The object at a place of the array, which may be changed while others have the interpreter.
    fn object(&self, row: usize) -> *mut ffi::PyObject {
        let place = self.memory.place(row).cast::<*mut ffi::PyObject>();
        // SAFETY: the array is one of objects, so a pointer lies there, perhaps not at a multiple of its size.
        unsafe { place.read_unaligned() }
    }

    /// What an object is.
    ///
    /// # Safety
    /// It is alive, or there is none, and this thread has the interpreter.
    unsafe fn value(&self, object: *mut ffi::PyObject) -> Value {
        // NumPy takes what was never set for None.
        if object.is_null() {
            return Value::Null;
        }
        // SAFETY: the caller says that it is alive; these look at its type, and at a float's value.
        unsafe {
            if ffi::PyUnicode_CheckExact(object) != 0 {
                return Value::Text;
            }
            if object == ffi::Py_None() || self.sentinels.contains(&object.addr()) {
                return Value::Null;
            }
            if ffi::PyUnicode_Check(object) != 0 {
                return Value::Text;
            }
            let nan = !self.sentinels.is_empty()
                && ffi::PyFloat_Check(object) != 0
                && ffi::PyFloat_AsDouble(object).is_nan();
            if nan { Value::Null } else { Value::Other }
        }
    }

    /// The bytes of a text, which stay where they are while the object is alive.
    fn text<'py>(
        &self,
        py: Python<'py>,
        object: *mut ffi::PyObject,
        row: usize,
    ) -> Result<&'py str, ArrowError> {
        let mut bytes: ffi::Py_ssize_t = 0;
        // SAFETY: the object is a text that is alive; it keeps the bytes that are returned.
        let start = unsafe { ffi::PyUnicode_AsUTF8AndSize(object, &raw mut bytes) };
        if start.is_null() {
            let why = PyErr::take(py).map(|error| error.to_string());
            let why = why.unwrap_or_default();
            return Err(ArrowError::CastError(format!("row {row}: {why}")));
        }
        // SAFETY: Python says that there are so many bytes, and that they are UTF-8. They are copied before this thread
        // gives the interpreter away.
        Ok(unsafe {
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(
                start.cast::<u8>(),
                bytes as usize,
            ))
        })
    }
}
