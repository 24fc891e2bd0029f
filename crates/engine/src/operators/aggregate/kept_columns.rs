//! Columns of rows that aggregates keep, and of batches that they are taken from.

use std::sync::Arc;

use arrow::array::{AsArray, StringViewArray};

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::grow;
use crate::vector::strings::Strings;
use crate::vector::value::{Kind, Values, Vector};

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Null,
    Int(i64),
    Wide(i128),
    Float(f64),
    Bool(bool),
    Code(u32),
    Text(&'a str),
}

/// The values of a column.
pub(crate) trait Cells {
    fn cell(&self, row: usize) -> Cell<'_>;
}

/// A column of a batch.
#[derive(Debug)]
pub(crate) struct BatchColumn<'b> {
    values: &'b Values,
    /// For strings: the shared array, and which of its rows they are.
    texts: Option<(&'b StringViewArray, Option<&'b [u32]>)>,
    valid: Option<&'b [bool]>,
}

impl<'b> BatchColumn<'b> {
    /// The column that a vector is.
    ///
    /// # Errors
    /// An internal error for strings that are held as another array.
    pub fn of(vector: &'b Vector) -> Result<BatchColumn<'b>> {
        let texts = match &vector.values {
            Values::Text(strings) => {
                let (base, rows) = strings.parts();
                let views = base.as_string_view_opt();
                let views =
                    views.ok_or_else(|| Error::internal("strings held as another array"))?;
                Some((views, rows))
            }
            _ => None,
        };
        Ok(BatchColumn {
            values: &vector.values,
            texts,
            valid: vector.valid.as_deref(),
        })
    }

    /// The values, and which of them are not NULL.
    pub fn parts(&self) -> (&'b Values, Option<&'b [bool]>) {
        (self.values, self.valid)
    }

    /// The whole numbers, and which of them are not NULL.
    pub fn numbers(&self) -> Option<(&'b [i64], Option<&'b [bool]>)> {
        match self.values {
            Values::Int(values) => Some((values, self.valid)),
            _ => None,
        }
    }
}

impl Cells for BatchColumn<'_> {
    #[inline]
    fn cell(&self, row: usize) -> Cell<'_> {
        if self.valid.is_some_and(|valid| !valid[row]) {
            return Cell::Null;
        }
        match (self.values, self.texts) {
            (Values::Int(values), _) => Cell::Int(values[row]),
            (Values::Wide(values), _) => Cell::Wide(values[row]),
            (Values::Float(values), _) => Cell::Float(values[row]),
            (Values::Bool(values), _) => Cell::Bool(values[row]),
            (Values::Code(codes), _) => Cell::Code(codes[row]),
            (Values::Text(_), Some((views, rows))) => {
                Cell::Text(views.value(rows.map_or(row, |rows| rows[row] as usize)))
            }
            (Values::Text(_), None) => Cell::Null,
        }
    }
}

/// A column of kept rows.
#[derive(Debug)]
pub(crate) struct KeptColumn {
    values: KeptValues,
    /// Which values are not NULL; `None` until there is a NULL.
    valid: Option<Vec<bool>>,
}

#[derive(Debug)]
enum KeptValues {
    Int(Vec<i64>),
    Wide(Vec<i128>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Code(Vec<u32>),
    /// The strings, and their bytes.
    Text(Vec<Box<str>>, usize),
}

impl Cells for KeptColumn {
    #[inline]
    fn cell(&self, row: usize) -> Cell<'_> {
        if self.valid.as_ref().is_some_and(|valid| !valid[row]) {
            return Cell::Null;
        }
        match &self.values {
            KeptValues::Int(values) => Cell::Int(values[row]),
            KeptValues::Wide(values) => Cell::Wide(values[row]),
            KeptValues::Float(values) => Cell::Float(values[row]),
            KeptValues::Bool(values) => Cell::Bool(values[row]),
            KeptValues::Code(codes) => Cell::Code(codes[row]),
            KeptValues::Text(strings, _) => Cell::Text(&strings[row]),
        }
    }
}

impl KeptColumn {
    /// No values.
    pub fn new(kind: Kind) -> KeptColumn {
        let values = match kind {
            Kind::Int => KeptValues::Int(vec![]),
            Kind::Wide => KeptValues::Wide(vec![]),
            Kind::Float => KeptValues::Float(vec![]),
            Kind::Bool => KeptValues::Bool(vec![]),
            Kind::Code => KeptValues::Code(vec![]),
            Kind::Text => KeptValues::Text(vec![], 0),
        };
        KeptColumn {
            values,
            valid: None,
        }
    }

    /// The values of a vector.
    ///
    /// # Errors
    /// Those of [`Strings::array`].
    pub fn of_vector(vector: Vector) -> Result<KeptColumn> {
        let values = match vector.values {
            Values::Int(values) => KeptValues::Int(values),
            Values::Wide(values) => KeptValues::Wide(values),
            Values::Float(values) => KeptValues::Float(values),
            Values::Bool(values) => KeptValues::Bool(values),
            Values::Code(codes) => KeptValues::Code(codes),
            Values::Text(strings) => {
                let array = strings.array()?;
                let strings = array.as_string_view().iter();
                let strings: Vec<Box<str>> =
                    strings.map(|s| s.unwrap_or_default().into()).collect();
                let bytes = strings.iter().map(|string| string.len()).sum();
                KeptValues::Text(strings, bytes)
            }
        };
        Ok(KeptColumn {
            values,
            valid: vector.valid,
        })
    }

    fn len(&self) -> usize {
        match &self.values {
            KeptValues::Int(values) => values.len(),
            KeptValues::Wide(values) => values.len(),
            KeptValues::Float(values) => values.len(),
            KeptValues::Bool(values) => values.len(),
            KeptValues::Code(codes) => codes.len(),
            KeptValues::Text(strings, _) => strings.len(),
        }
    }

    /// Grows to `rows` values.
    pub fn resize(&mut self, rows: usize) {
        match &mut self.values {
            KeptValues::Int(values) => grow(values, rows, |n| vec![0; n], 0),
            KeptValues::Wide(values) => grow(values, rows, |n| vec![0; n], 0),
            KeptValues::Float(values) => grow(values, rows, |n| vec![0.0; n], 0.0),
            KeptValues::Bool(values) => grow(values, rows, |n| vec![false; n], false),
            KeptValues::Code(codes) => grow(codes, rows, |n| vec![0; n], 0),
            KeptValues::Text(strings, _) => strings.resize_with(rows, Box::default),
        }
        if let Some(valid) = &mut self.valid {
            valid.resize(rows, true);
        }
    }

    /// The whole numbers, if none is NULL.
    pub fn numbers_mut(&mut self) -> Option<&mut Vec<i64>> {
        match (&mut self.values, &self.valid) {
            (KeptValues::Int(values), None) => Some(values),
            _ => None,
        }
    }

    /// Sets the value at `place`.
    ///
    /// # Errors
    /// An internal error for a value of another kind.
    pub fn set(&mut self, place: usize, cell: Cell<'_>) -> Result<()> {
        if matches!(cell, Cell::Null) {
            let rows = self.len();
            self.valid.get_or_insert_with(|| vec![true; rows])[place] = false;
            return Ok(());
        }
        match (&mut self.values, cell) {
            (KeptValues::Int(values), Cell::Int(value)) => values[place] = value,
            (KeptValues::Wide(values), Cell::Wide(value)) => values[place] = value,
            (KeptValues::Float(values), Cell::Float(value)) => values[place] = value,
            (KeptValues::Bool(values), Cell::Bool(value)) => values[place] = value,
            (KeptValues::Code(codes), Cell::Code(code)) => codes[place] = code,
            (KeptValues::Text(strings, bytes), Cell::Text(string)) => {
                *bytes += string.len();
                *bytes -= strings[place].len();
                strings[place] = string.into();
            }
            _ => return Err(Error::internal("a kept value of another kind")),
        }
        if let Some(valid) = &mut self.valid {
            valid[place] = true;
        }
        Ok(())
    }

    /// The values at `places`.
    pub fn vector(&self, places: &[u32]) -> Vector {
        let at = || places.iter().map(|place| *place as usize);
        let values = match &self.values {
            KeptValues::Int(values) => Values::Int(at().map(|place| values[place]).collect()),
            KeptValues::Wide(values) => Values::Wide(at().map(|place| values[place]).collect()),
            KeptValues::Float(values) => Values::Float(at().map(|place| values[place]).collect()),
            KeptValues::Bool(values) => Values::Bool(at().map(|place| values[place]).collect()),
            KeptValues::Code(codes) => Values::Code(at().map(|place| codes[place]).collect()),
            KeptValues::Text(strings, _) => {
                let array = StringViewArray::from_iter_values(at().map(|place| &*strings[place]));
                Values::Text(Strings::new(Arc::new(array)))
            }
        };
        let valid = self.valid.as_ref();
        let valid: Option<Vec<bool>> = valid.map(|valid| at().map(|place| valid[place]).collect());
        Vector {
            values,
            valid: valid.filter(|valid| valid.contains(&false)),
        }
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        let values = match &self.values {
            KeptValues::Int(values) => 8 * values.capacity(),
            KeptValues::Wide(values) => 16 * values.capacity(),
            KeptValues::Float(values) => 8 * values.capacity(),
            KeptValues::Bool(values) => values.capacity(),
            KeptValues::Code(codes) => 4 * codes.capacity(),
            KeptValues::Text(strings, bytes) => size_of::<Box<str>>() * strings.capacity() + bytes,
        };
        values + self.valid.as_ref().map_or(0, Vec::capacity)
    }

    /// The bytes of strings.
    pub fn string_bytes(&self) -> usize {
        match &self.values {
            KeptValues::Text(_, bytes) => *bytes,
            _ => 0,
        }
    }
}
