//! Columns of data frames as they lie in memory: arrays of NumPy, of Arrow, and of Python's texts.
//!
//! Nothing is made of them until a statement asks for it, and then only of the columns that it reads, a few thousand rows
//! at a time, by the workers. Texts that are objects are read by a thread that may wait for the interpreter.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::compute::concat;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Schema, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::{DataError, InterfaceError};
use crate::frame::Frame;
use crate::memory::Memory;
use crate::stream;
use crate::texts::Texts;
use crate::wait::detached;

/// Columns of a frame that is being described.
#[pyclass(frozen, module = "atoll._atoll")]
pub(crate) struct FrameBuilder {
    rows: usize,
    columns: Mutex<Vec<(Field, Column)>>,
}

#[pymethods]
impl FrameBuilder {
    /// A frame of so many rows, and without columns so far.
    #[new]
    fn new(rows: usize) -> FrameBuilder {
        FrameBuilder {
            rows,
            columns: Mutex::default(),
        }
    }

    /// Adds an array of NumPy. False if it is not of a kind that is read as it lies, and was not added. In an array of
    /// objects the `missing` ones are NULL, and with any of them NaN, too. If it is `asked` for, all of its objects are
    /// looked at, otherwise some: whether they are texts.
    fn add_array(
        &self,
        py: Python<'_>,
        name: String,
        array: &Bound<'_, PyAny>,
        missing: &Bound<'_, PyTuple>,
        asked: bool,
    ) -> PyResult<bool> {
        let Some((kind, memory)) = Memory::of(array)? else {
            return Ok(false);
        };
        self.check(&name, memory.rows())?;
        let pandas = !missing.is_empty();
        let (data_type, column) = if kind == "O" {
            let texts = Texts::new(memory, missing);
            if !texts.are_texts(py, asked) {
                return Ok(false);
            }
            (DataType::Utf8View, Column::Texts(texts))
        } else {
            match Numbers::new(&kind, memory, pandas) {
                Some(numbers) => (numbers.data_type.clone(), Column::Numbers(numbers)),
                None => return Ok(false),
            }
        };
        let field = Field::new(name, data_type, true);
        self.columns.lock().push((field, column));
        Ok(true)
    }

    /// Adds the columns of an Arrow stream, all of which is in memory.
    fn add_stream(&self, py: Python<'_>, capsule: &Bound<'_, PyCapsule>) -> PyResult<()> {
        let stream = stream::taken(capsule)?;
        let read = || {
            let mut reader = stream::reader(stream)?;
            let schema = arrow::array::RecordBatchReader::schema(&reader);
            let batches = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
            Ok((schema, batches))
        };
        let (schema, batches) = detached(py, read)?
            .map_err(|error: ArrowError| DataError::new_err(error.to_string()))?;
        for (at, field) in schema.fields().iter().enumerate() {
            let column = Chunks::new(&batches, at);
            self.check(field.name(), column.rows())?;
            let field = field.as_ref().clone();
            self.columns.lock().push((field, Column::Arrow(column)));
        }
        Ok(())
    }

    /// The frame.
    fn build(&self) -> Frame {
        let (fields, columns): (Vec<Field>, Vec<Column>) =
            std::mem::take(&mut *self.columns.lock())
                .into_iter()
                .unzip();
        let rows = self.rows;
        Frame::of_columns(
            Schema::new(fields).into(),
            Arc::new(FrameColumns { rows, columns }),
        )
    }
}

impl FrameBuilder {
    fn check(&self, name: &str, rows: usize) -> PyResult<()> {
        if rows == self.rows {
            return Ok(());
        }
        Err(InterfaceError::new_err(format!(
            "column {name:?} has {rows} rows and others have {}: give columns of one length",
            self.rows
        )))
    }
}

/// The columns of a frame.
#[derive(Debug)]
pub(crate) struct FrameColumns {
    rows: usize,
    columns: Vec<Column>,
}

#[derive(Debug)]
enum Column {
    Numbers(Numbers),
    Texts(Texts),
    Arrow(Chunks),
}

impl atoll::FrameColumns for FrameColumns {
    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> u64 {
        let width = |column: &Column| match column {
            Column::Numbers(numbers) => numbers.data_type.primitive_width().unwrap_or(1),
            Column::Texts(_) => 32,
            Column::Arrow(chunks) => chunks.width(),
        };
        let width: usize = self.columns.iter().map(width).sum();
        (width * self.rows) as u64
    }

    fn waits(&self, column: usize) -> bool {
        matches!(self.columns[column], Column::Texts(_))
    }

    fn may_be_null(&self, column: usize) -> bool {
        match &self.columns[column] {
            Column::Numbers(numbers) => numbers.missing != Missing::None,
            Column::Texts(_) => true,
            Column::Arrow(chunks) => chunks.nulls(),
        }
    }

    fn read(&self, column: usize, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        if rows.end > self.rows {
            let text = format!("rows {rows:?} of a frame with {}", self.rows);
            return Err(ArrowError::InvalidArgumentError(text));
        }
        match &self.columns[column] {
            Column::Numbers(numbers) => numbers.read(rows),
            Column::Texts(texts) => texts.read(rows),
            Column::Arrow(chunks) => chunks.read(rows),
        }
    }
}

/// Which numbers stand for NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    None,
    /// NaN, as in pandas.
    NaN,
    /// The least number, which is "not a time".
    NotATime,
}

/// Numbers in memory.
#[derive(Debug)]
struct Numbers {
    data_type: DataType,
    missing: Missing,
    memory: Memory,
}

impl Numbers {
    /// Those of an array of this kind, as NumPy names it, if it is one of those that are read as they lie.
    fn new(kind: &str, memory: Memory, pandas: bool) -> Option<Numbers> {
        use arrow::datatypes::TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        let floats = if pandas { Missing::NaN } else { Missing::None };
        let (data_type, missing) = match kind {
            "b1" => (DataType::Boolean, Missing::None),
            "i1" => (DataType::Int8, Missing::None),
            "i2" => (DataType::Int16, Missing::None),
            "i4" => (DataType::Int32, Missing::None),
            "i8" => (DataType::Int64, Missing::None),
            "u1" => (DataType::UInt8, Missing::None),
            "u2" => (DataType::UInt16, Missing::None),
            "u4" => (DataType::UInt32, Missing::None),
            "u8" => (DataType::UInt64, Missing::None),
            "f4" => (DataType::Float32, floats),
            "f8" => (DataType::Float64, floats),
            "M8[s]" => (DataType::Timestamp(Second, None), Missing::NotATime),
            "M8[ms]" => (DataType::Timestamp(Millisecond, None), Missing::NotATime),
            "M8[us]" => (DataType::Timestamp(Microsecond, None), Missing::NotATime),
            "M8[ns]" => (DataType::Timestamp(Nanosecond, None), Missing::NotATime),
            _ => return None,
        };
        let width = data_type.primitive_width().unwrap_or(1);
        (memory.width() == width).then_some(Numbers {
            data_type,
            missing,
            memory,
        })
    }

    fn read(&self, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        use arrow::datatypes::TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        let nan = self.missing == Missing::NaN;
        let time = |value: i64| value == i64::MIN;
        Ok(match &self.data_type {
            DataType::Boolean => {
                let bytes = self.memory.read(rows, 1);
                let bits = BooleanBuffer::collect_bool(bytes.len(), |row| bytes[row] != 0);
                Arc::new(BooleanArray::new(bits, None))
            }
            DataType::Int8 => self.values::<Int8Type>(rows, |_| false),
            DataType::Int16 => self.values::<Int16Type>(rows, |_| false),
            DataType::Int32 => self.values::<Int32Type>(rows, |_| false),
            DataType::Int64 => self.values::<Int64Type>(rows, |_| false),
            DataType::UInt8 => self.values::<UInt8Type>(rows, |_| false),
            DataType::UInt16 => self.values::<UInt16Type>(rows, |_| false),
            DataType::UInt32 => self.values::<UInt32Type>(rows, |_| false),
            DataType::UInt64 => self.values::<UInt64Type>(rows, |_| false),
            DataType::Float32 => self.values::<Float32Type>(rows, |value| nan & value.is_nan()),
            DataType::Float64 => self.values::<Float64Type>(rows, |value| nan & value.is_nan()),
            DataType::Timestamp(unit, _) => match unit {
                Second => self.values::<TimestampSecondType>(rows, time),
                Millisecond => self.values::<TimestampMillisecondType>(rows, time),
                Microsecond => self.values::<TimestampMicrosecondType>(rows, time),
                Nanosecond => self.values::<TimestampNanosecondType>(rows, time),
            },
            other => {
                let text = format!("numbers of type {other} in a frame");
                return Err(ArrowError::NotYetImplemented(text));
            }
        })
    }

    /// Some values as an array, in which those that are `missing` are NULL.
    fn values<T: ArrowPrimitiveType>(
        &self,
        rows: Range<usize>,
        missing: impl Fn(T::Native) -> bool,
    ) -> ArrayRef {
        let buffer: Buffer = self.memory.read(rows, size_of::<T::Native>());
        let values: ScalarBuffer<T::Native> = buffer.into();
        // All of them are looked at, which takes no branches.
        let any = self.missing != Missing::None
            && values
                .iter()
                .fold(false, |any, value| any | missing(*value));
        let nulls = any.then(|| {
            let valid = |row: usize| !missing(values[row]);
            NullBuffer::new(BooleanBuffer::collect_bool(values.len(), valid))
        });
        Arc::new(PrimitiveArray::<T>::new(values, nulls))
    }
}

/// A column of Arrow, in one array or several.
#[derive(Debug)]
struct Chunks {
    /// Those that have rows.
    arrays: Vec<ArrayRef>,
    /// The first row of each, and the number of all rows.
    starts: Vec<usize>,
    /// What there is without rows.
    empty: Option<ArrayRef>,
}

impl Chunks {
    fn new(batches: &[RecordBatch], column: usize) -> Chunks {
        let all = batches.iter().map(|batch| Arc::clone(batch.column(column)));
        let arrays: Vec<ArrayRef> = all.filter(|array| !array.is_empty()).collect();
        let mut starts = vec![0];
        let mut rows = 0;
        for array in &arrays {
            rows += array.len();
            starts.push(rows);
        }
        Chunks {
            empty: arrays.first().map(|array| array.slice(0, 0)),
            arrays,
            starts,
        }
    }

    fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Bytes of a row, about.
    fn width(&self) -> usize {
        let bytes = self
            .arrays
            .iter()
            .map(|array| array.get_array_memory_size());
        bytes.sum::<usize>() / self.rows().max(1)
    }

    fn nulls(&self) -> bool {
        let mut arrays = self.arrays.iter();
        arrays.any(|array| array.logical_null_count() > 0)
    }

    fn read(&self, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let mut at = self.starts.partition_point(|start| *start <= rows.start);
        let (mut parts, mut next) = (Vec::new(), rows.start);
        while next < rows.end {
            let (start, end) = (self.starts[at - 1], self.starts[at].min(rows.end));
            parts.push(self.arrays[at - 1].slice(next - start, end - next));
            (next, at) = (end, at + 1);
        }
        match (parts.as_slice(), &self.empty) {
            ([part], _) => Ok(Arc::clone(part)),
            ([], Some(empty)) => Ok(Arc::clone(empty)),
            ([], None) => Err(ArrowError::InvalidArgumentError(
                "rows of a column without any".into(),
            )),
            _ => {
                let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
                concat(&parts)
            }
        }
    }
}
