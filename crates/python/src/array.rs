//! Arrays: what they are, and the values of a box of cells.

use std::sync::Arc;

use array::{Column, DataType, Decimal, MetadataValue, Region, Scalar, Schema};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::error::{InternalError, OperationalError, ProgrammingError};
use crate::owned::Owned;
use crate::wait::watched;

/// An array as it was when it was opened.
#[pyclass(frozen, module = "atoll._atoll")]
pub(crate) struct Array {
    name: String,
    schema: Schema,
    /// It, and the database whose workers read it.
    opened: Owned<(Arc<array::Array>, atoll::Database)>,
}

/// The exception that an error about arrays is.
fn raised(error: &array::Error) -> PyErr {
    use array::Error;
    let text = error.to_string();
    match error {
        Error::OutOfRange { .. } => pyo3::exceptions::PyIndexError::new_err(text),
        Error::NoArray { .. }
        | Error::NoVersion { .. }
        | Error::Unknown { .. }
        | Error::Decimal { .. }
        | Error::Operator { .. } => ProgrammingError::new_err(text),
        _ => OperationalError::new_err(text),
    }
}

/// The names of all arrays.
///
/// # Errors
/// Those of reading the store.
pub(crate) fn names(database: &atoll::Database) -> PyResult<Vec<String>> {
    array::names(&database.snapshot()).map_err(|e| raised(&e))
}

/// Opens the array `name` as the last commit left it.
///
/// # Errors
/// [`ProgrammingError`] if there is none.
pub(crate) fn open(database: &atoll::Database, name: &str) -> PyResult<Array> {
    let array = array::Array::open(&database.snapshot(), name).map_err(|e| raised(&e))?;
    Ok(Array {
        name: name.to_owned(),
        schema: array.schema().clone(),
        opened: Owned::new("the array", (array, database.clone())),
    })
}

/// The values of an attribute, and a byte for each that says whether it is there: none if all are.
type Values<'py> = (Bound<'py, PyByteArray>, Option<Bound<'py, PyByteArray>>);

/// Names, and the values that are said under them.
type Said<'py> = Vec<(String, Vec<Bound<'py, PyAny>>)>;

#[pymethods]
impl Array {
    /// Names of the dimensions, and how many cells they have.
    #[getter]
    fn dimensions(&self) -> Vec<(String, u64)> {
        let dimensions = self.schema.dimensions().iter();
        dimensions
            .map(|of| (of.name().to_owned(), of.length()))
            .collect()
    }

    /// Names of the attributes, and NumPy's names of their types.
    #[getter]
    fn attributes(&self) -> Vec<(String, &'static str)> {
        let attributes = self.schema.attributes().iter();
        attributes
            .map(|of| (of.name().to_owned(), kind(of.data_type())))
            .collect()
    }

    /// What is said of the array, or of its dimension or attribute of this name: names, each with its values.
    fn said<'py>(&self, py: Python<'py>, part: Option<&str>) -> PyResult<Said<'py>> {
        let entries = self.schema.metadata().of(part).iter();
        entries
            .map(|(name, value)| Ok((name.clone(), said_values(py, value)?)))
            .collect()
    }

    /// The coordinates of a dimension from one position to before another, as they are written; whether they are whole
    /// numbers by kind.
    fn coordinates(&self, dimension: usize, start: u64, end: u64) -> (Vec<String>, bool) {
        let Some(of) = self.schema.dimensions().get(dimension) else {
            return (Vec::new(), true);
        };
        let found = (start..end).map_while(|at| of.coordinate(at));
        (found.map(|at| at.to_string()).collect(), of.is_integer())
    }

    /// The positions of coordinates from one to another, both included and in either order; those of the ends where none
    /// is given.
    fn between(
        &self,
        dimension: usize,
        one: Option<String>,
        other: Option<String>,
    ) -> PyResult<(u64, u64)> {
        let bound = |text: Option<String>| match text {
            None => Ok(array::Bound::Edge),
            Some(text) => text.parse::<Decimal>().map(array::Bound::At),
        };
        let bounds = bound(one).and_then(|one| Ok((one, bound(other)?)));
        let (one, other) = bounds.map_err(|e| raised(&e))?;
        let of = self.dimension(dimension)?;
        of.range(one, other, &self.what()).map_err(|e| raised(&e))
    }

    /// The position of a coordinate.
    fn position(&self, dimension: usize, coordinate: &str) -> PyResult<u64> {
        let coordinate = coordinate.parse::<Decimal>().map_err(|e| raised(&e))?;
        let of = self.dimension(dimension)?;
        of.position(coordinate, &self.what())
            .map_err(|e| raised(&e))
    }

    /// The values of an attribute in a box of positions, in row-major order.
    fn read<'py>(
        &self,
        py: Python<'py>,
        attribute: usize,
        ranges: Vec<(u64, u64)>,
    ) -> PyResult<Values<'py>> {
        let (array, database) = self.opened.get()?;
        let region = Region::new(ranges);
        let count = self.schema.attributes().len();
        let wanted: Vec<bool> = (0..count).map(|at| at == attribute).collect();
        let read = async move { array.read(&region, &wanted).await };
        let block = watched(py, || (), || Ok(database.workers().block_on(read)))?;
        let block = block.map_err(|e| raised(&e))?;
        let missing = || InternalError::new_err("an attribute that was read is not there");
        let column = block.column(attribute).ok_or_else(missing)?;
        let values = PyByteArray::new(py, column.values().bytes());
        let there = there(column, block.present());
        Ok((values, there.map(|there| PyByteArray::new(py, &there))))
    }

    /// Gives it up.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.opened.check()?;
        let opened = self.opened.take();
        py.detach(|| drop(opened));
        Ok(())
    }
}

impl Array {
    fn what(&self) -> String {
        format!("array '{}'", self.name)
    }

    fn dimension(&self, at: usize) -> PyResult<&array::Dimension> {
        let missing = || InternalError::new_err("a dimension that is not there");
        self.schema.dimensions().get(at).ok_or_else(missing)
    }
}

/// Of each cell whether it exists and is not null; none if all are so.
fn there(column: &Column, present: Option<&[u8]>) -> Option<Vec<u8>> {
    match (column.valid(), present) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.to_vec()),
        (Some(valid), Some(present)) => {
            Some(valid.iter().zip(present).map(|(a, b)| a & b).collect())
        }
    }
}

/// What is said under a name: texts or numbers.
fn said_values<'py>(py: Python<'py>, value: &MetadataValue) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match value {
        MetadataValue::Texts(texts) => texts.iter().map(|own| own.into_bound_py_any(py)).collect(),
        MetadataValue::Numbers(numbers) => {
            let numbers = numbers.iter().map(|number| match number {
                Scalar::Null => Ok(py.None().into_bound(py)),
                Scalar::Bool(own) => own.into_bound_py_any(py),
                Scalar::Int(own) => own.into_bound_py_any(py),
                Scalar::Float(own) => own.into_bound_py_any(py),
            });
            numbers.collect()
        }
    }
}

/// NumPy's name of a type.
fn kind(data_type: DataType) -> &'static str {
    match data_type {
        DataType::F32 => "float32",
        DataType::F64 => "float64",
        other => other.name(),
    }
}
