//! Data frames of other libraries, as statements read them.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi_stream::ArrowArrayStreamReader;
use atoll::{FrameColumns, Frames};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::{DataError, InterfaceError};
use crate::stream;
use crate::wait::detached;

/// Rows that came as an Arrow stream, or columns as they lie in memory; none is copied.
#[pyclass(frozen, module = "atoll._atoll")]
pub(crate) struct Frame {
    schema: SchemaRef,
    rows: Rows,
}

enum Rows {
    /// Batches that are there, for any number of statements.
    Held(Vec<RecordBatch>),
    /// Columns that become batches as they are read, for any number of statements.
    Lazy(Arc<dyn FrameColumns>),
    /// Batches that come once, for one statement.
    Coming(Mutex<Option<ArrowArrayStreamReader>>),
}

#[pymethods]
impl Frame {
    /// The rows of the stream in `capsule`: all of them at once if they are to be `held`.
    #[new]
    #[pyo3(signature = (capsule, held))]
    fn new(py: Python<'_>, capsule: &Bound<'_, PyCapsule>, held: bool) -> PyResult<Frame> {
        let stream = stream::taken(capsule)?;
        let made = detached(py, || {
            let mut reader = stream::reader(stream)?;
            let schema = reader.schema();
            let rows = if held {
                Rows::Held(reader.by_ref().collect::<Result<_, _>>()?)
            } else {
                Rows::Coming(Mutex::new(Some(reader)))
            };
            Ok(Frame { schema, rows })
        })?;
        made.map_err(|error: ArrowError| DataError::new_err(error.to_string()))
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }
}

impl Frame {
    /// A frame of columns as they lie in memory.
    pub(crate) fn of_columns(schema: SchemaRef, columns: Arc<dyn FrameColumns>) -> Frame {
        let rows = Rows::Lazy(columns);
        Frame { schema, rows }
    }
}

/// The frames of a statement, by name.
///
/// # Errors
/// If one has no columns or two of one name, or came once and was read.
pub(crate) fn frames(given: &[(String, PyRef<'_, Frame>)]) -> PyResult<Frames> {
    let mut frames = Frames::default();
    for (name, frame) in given {
        let added = match &frame.rows {
            Rows::Held(batches) => frames.add_batches(name, &frame.schema, batches.clone()),
            Rows::Lazy(columns) => frames.add_columns(name, &frame.schema, columns.clone()),
            Rows::Coming(reader) => match reader.lock().take() {
                Some(reader) => frames.add_reader(name, Box::new(reader)),
                None => {
                    let text =
                        format!("{name}: the stream was read already: make a table of it first");
                    return Err(InterfaceError::new_err(text));
                }
            },
        };
        added.map_err(|e| DataError::new_err(e.to_string()))?;
    }
    Ok(frames)
}
