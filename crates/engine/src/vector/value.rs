//! Types and vectors: a column of values for the rows of a batch.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use algebra::filter::{compact, gather};
use arrow::array::*;
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::*;
use table::{Dictionary, Table, ints_of, wides_of};

use crate::error::{Error, Result};
use crate::vector::opaque;
use crate::vector::strings::Strings;

/// The number of a vector within a query.
pub type Var = usize;

/// How values are represented in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit whole numbers: integers, dates, times, and decimals without their point.
    Int,
    /// 128-bit whole numbers.
    Wide,
    /// 64-bit floats, among which all of 32 bits are.
    Float,
    /// Booleans.
    Bool,
    /// Dictionary codes of strings.
    Code,
    /// Strings; or texts that stand for values that the engine has no kernels for.
    Text,
}

/// The type of a vector.
#[derive(Clone, Debug)]
pub struct Type {
    /// The SQL type.
    pub data: DataType,
    /// The representation. Invariant: [`Kind::Code`] exactly if `labels` is present.
    pub kind: Kind,
    /// For whole numbers: the least and the greatest possible value.
    pub bounds: (i128, i128),
    /// The dictionary of the codes.
    pub labels: Option<Arc<Dictionary>>,
    /// Whether there may be NULLs.
    pub nullable: bool,
}

const NARROW: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);

/// Whether values of `data` are texts, and no texts that stand for others.
pub(crate) fn is_text(data: &DataType) -> bool {
    matches!(
        data,
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8
    )
}

impl Type {
    /// Whether equal values of both types are the same in memory: codes of one dictionary, or none on either side.
    pub(crate) fn represents_as(&self, other: &Type) -> bool {
        let same_labels = match (&self.labels, &other.labels) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (own, others) => own.is_none() && others.is_none(),
        };
        self.kind == other.kind && same_labels
    }

    /// The most different values that there can be, as far as the type tells.
    pub(crate) fn most_values(&self) -> f64 {
        match (self.kind, &self.labels) {
            (Kind::Code, Some(labels)) => labels.labels().len() as f64,
            (Kind::Bool, _) => 2.0,
            (Kind::Int | Kind::Wide, _) => (self.bounds.1 as f64) - (self.bounds.0 as f64) + 1.0,
            _ => f64::MAX,
        }
    }

    /// The type for values of `data`, with the widest bounds. `None` if the engine cannot represent them.
    pub fn of(data: &DataType, nullable: bool) -> Option<Type> {
        use DataType::*;
        let (kind, bounds) = match data {
            // All values of the type of NULL are NULL.
            Boolean | Null => (Kind::Bool, (0, 1)),
            Int8 => (Kind::Int, (i8::MIN.into(), i8::MAX.into())),
            Int16 => (Kind::Int, (i16::MIN.into(), i16::MAX.into())),
            Int32 | Date32 | Time32(_) => (Kind::Int, (i32::MIN.into(), i32::MAX.into())),
            Int64 | Time64(_) | Timestamp(..) => (Kind::Int, NARROW),
            UInt8 => (Kind::Int, (0, u8::MAX.into())),
            UInt16 => (Kind::Int, (0, u16::MAX.into())),
            UInt32 => (Kind::Int, (0, u32::MAX.into())),
            UInt64 => (Kind::Wide, (0, u64::MAX.into())),
            Decimal128(precision, _) => {
                let most = 10i128
                    .checked_pow(u32::from(*precision))
                    .map_or(i128::MAX, |p| p - 1);
                let kind = if most <= NARROW.1 {
                    Kind::Int
                } else {
                    Kind::Wide
                };
                (kind, (-most, most))
            }
            Float64 | Float32 => (Kind::Float, (0, 0)),
            Utf8View | Utf8 | LargeUtf8 => (Kind::Text, (0, 0)),
            other if opaque::is_opaque(other) => (Kind::Text, (0, 0)),
            _ => return None,
        };
        Some(Type {
            data: data.clone(),
            kind,
            bounds,
            labels: None,
            nullable,
        })
    }

    /// The type of the row ids of `table`, with the narrowest representation for them.
    pub fn of_row_ids(table: &Table) -> Type {
        let (least, greatest) = table.row_id_bounds();
        let ty = Type {
            data: DataType::UInt64,
            kind: Kind::Wide,
            bounds: (0, u64::MAX.into()),
            labels: None,
            nullable: false,
        };
        ty.within((least.into(), greatest.into()))
    }

    /// The type with `bounds` that are known to hold, and the narrowest representation for them.
    pub fn within(mut self, bounds: (i128, i128)) -> Type {
        if matches!(self.kind, Kind::Int | Kind::Wide) {
            self.bounds = (bounds.0.max(self.bounds.0), bounds.1.min(self.bounds.1));
            if self.bounds.0 > self.bounds.1 {
                self.bounds = (0, 0);
            }
            let narrow = NARROW.0 <= self.bounds.0 && self.bounds.1 <= NARROW.1;
            self.kind = if narrow { Kind::Int } else { Kind::Wide };
        }
        self
    }

    /// The type of the same values as codes into `labels`.
    pub fn coded(mut self, labels: Arc<Dictionary>) -> Type {
        self.kind = Kind::Code;
        self.labels = Some(labels);
        self
    }

    /// The type with `nullable` set.
    pub fn nullable(mut self, nullable: bool) -> Type {
        self.nullable = nullable;
        self
    }

    /// Whether the engine has no kernels for the values: they are kept as texts that sort as they do.
    pub fn is_opaque(&self) -> bool {
        self.kind == Kind::Text && opaque::is_opaque(&self.data)
    }

    /// Whether values of both types are of one SQL type as far as the engine cannot tell by their representation.
    pub(crate) fn may_meet(&self, other: &Type) -> bool {
        let is_opaque = self.is_opaque() || other.is_opaque();
        !is_opaque || self.data.equals_datatype(&other.data)
    }

    /// The type of the arrays that [`Vector::to_arrow`] gives, which sort as the values do.
    pub(crate) fn sorted_as(&self) -> DataType {
        if self.is_opaque() {
            DataType::Utf8View
        } else {
            self.data.clone()
        }
    }

    /// Digits after the decimal point; 0 for types without one.
    pub fn scale(&self) -> i8 {
        match self.data {
            DataType::Decimal128(_, scale) => scale,
            _ => 0,
        }
    }

    /// Bytes of one value.
    pub fn width(&self) -> usize {
        match self.kind {
            Kind::Int | Kind::Float => 8,
            Kind::Wide | Kind::Text => 16,
            Kind::Bool => 1,
            Kind::Code => 4,
        }
    }
}

/// Values, one per row.
#[derive(Clone, Debug)]
pub enum Values {
    /// Of [`Kind::Int`].
    Int(Vec<i64>),
    /// Of [`Kind::Wide`].
    Wide(Vec<i128>),
    /// Of [`Kind::Float`].
    Float(Vec<f64>),
    /// Of [`Kind::Bool`].
    Bool(Vec<bool>),
    /// Of [`Kind::Code`].
    Code(Vec<u32>),
    /// Of [`Kind::Text`].
    Text(Strings),
}

/// A column of values for some rows. The value of a NULL is arbitrary.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The values.
    pub values: Values,
    /// Which rows are not NULL; `None` if no row is.
    pub valid: Option<Vec<bool>>,
}

impl Values {
    /// An empty vector.
    pub fn new(kind: Kind) -> Values {
        match kind {
            Kind::Int => Values::Int(vec![]),
            Kind::Wide => Values::Wide(vec![]),
            Kind::Float => Values::Float(vec![]),
            Kind::Bool => Values::Bool(vec![]),
            Kind::Code => Values::Code(vec![]),
            Kind::Text => Values::Text(Strings::none()),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Values::Int(v) => v.len(),
            Values::Wide(v) => v.len(),
            Values::Float(v) => v.len(),
            Values::Bool(v) => v.len(),
            Values::Code(v) => v.len(),
            Values::Text(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values at `rows`.
    pub fn at(&self, rows: &[u32]) -> Result<Values> {
        macro_rules! gathered {
            ($variant:ident, $values:ident) => {{
                let mut out = Vec::new();
                gather($values, rows, &mut out);
                Values::$variant(out)
            }};
        }
        Ok(match self {
            Values::Int(v) => gathered!(Int, v),
            Values::Wide(v) => gathered!(Wide, v),
            Values::Float(v) => gathered!(Float, v),
            Values::Bool(v) => gathered!(Bool, v),
            Values::Code(v) => gathered!(Code, v),
            Values::Text(v) => Values::Text(v.at(rows)),
        })
    }

    /// Keeps the values at `rows`, which ascend.
    pub fn keep(&mut self, rows: &[u32]) -> Result<()> {
        match self {
            Values::Int(v) => compact(v, rows),
            Values::Wide(v) => compact(v, rows),
            Values::Float(v) => compact(v, rows),
            Values::Bool(v) => compact(v, rows),
            Values::Code(v) => compact(v, rows),
            Values::Text(v) => v.keep(rows),
        }
        Ok(())
    }
}

/// An array of the primitive type `$t`. `$values` are numbers of any width that fit in it.
macro_rules! array {
    ($t:ty, $values:expr, $nulls:expr, $data:expr) => {{
        let values = $values
            .iter()
            .map(|v| *v as <$t as ArrowPrimitiveType>::Native)
            .collect();
        let array = PrimitiveArray::<$t>::try_new(values, $nulls)?;
        Arc::new(array.with_data_type($data.clone()))
    }};
}

/// An array of the numeric, date or time type `$data`, with the values and nulls of a vector.
macro_rules! numbers {
    ($values:expr, $nulls:expr, $data:expr) => {
        match $data {
            DataType::Int8 => array!(Int8Type, $values, $nulls, $data),
            DataType::Int16 => array!(Int16Type, $values, $nulls, $data),
            DataType::Int32 => array!(Int32Type, $values, $nulls, $data),
            DataType::Int64 => array!(Int64Type, $values, $nulls, $data),
            DataType::UInt8 => array!(UInt8Type, $values, $nulls, $data),
            DataType::UInt16 => array!(UInt16Type, $values, $nulls, $data),
            DataType::UInt32 => array!(UInt32Type, $values, $nulls, $data),
            DataType::UInt64 => array!(UInt64Type, $values, $nulls, $data),
            DataType::Date32 => array!(Date32Type, $values, $nulls, $data),
            DataType::Time32(TimeUnit::Second) => array!(Time32SecondType, $values, $nulls, $data),
            DataType::Time32(_) => array!(Time32MillisecondType, $values, $nulls, $data),
            DataType::Time64(TimeUnit::Microsecond) => {
                array!(Time64MicrosecondType, $values, $nulls, $data)
            }
            DataType::Time64(_) => array!(Time64NanosecondType, $values, $nulls, $data),
            DataType::Timestamp(TimeUnit::Second, _) => {
                array!(TimestampSecondType, $values, $nulls, $data)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                array!(TimestampMillisecondType, $values, $nulls, $data)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                array!(TimestampMicrosecondType, $values, $nulls, $data)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                array!(TimestampNanosecondType, $values, $nulls, $data)
            }
            DataType::Decimal128(..) => array!(Decimal128Type, $values, $nulls, $data),
            other => return Err(Error::internal(format!("numbers as {other}"))),
        }
    };
}

impl Vector {
    /// A vector without NULLs.
    pub fn new(values: Values) -> Vector {
        Vector {
            values,
            valid: None,
        }
    }

    /// A vector of `rows` NULLs.
    pub fn nulls(kind: Kind, rows: usize) -> Vector {
        let values = match kind {
            Kind::Int => Values::Int(vec![0; rows]),
            Kind::Wide => Values::Wide(vec![0; rows]),
            Kind::Float => Values::Float(vec![0.0; rows]),
            Kind::Bool => Values::Bool(vec![false; rows]),
            Kind::Code => Values::Code(vec![0; rows]),
            Kind::Text => Values::Text(Strings::new(new_null_array(&DataType::Utf8View, rows))),
        };
        Vector {
            values,
            valid: Some(vec![false; rows]),
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows at `rows`.
    pub fn at(&self, rows: &[u32]) -> Result<Vector> {
        let valid = self.valid.as_ref().map(|valid| {
            let mut out = Vec::new();
            gather(valid, rows, &mut out);
            out
        });
        Ok(Vector {
            values: self.values.at(rows)?,
            valid,
        })
    }

    /// The rows of a run.
    pub(crate) fn run(&self, run: Range<usize>) -> Vector {
        let values = match &self.values {
            Values::Int(v) => Values::Int(v[run.clone()].to_vec()),
            Values::Wide(v) => Values::Wide(v[run.clone()].to_vec()),
            Values::Float(v) => Values::Float(v[run.clone()].to_vec()),
            Values::Bool(v) => Values::Bool(v[run.clone()].to_vec()),
            Values::Code(v) => Values::Code(v[run.clone()].to_vec()),
            Values::Text(v) => Values::Text(v.run(run.clone())),
        };
        let valid = self.valid.as_ref().map(|valid| valid[run].to_vec());
        Vector { values, valid }
    }

    /// A copy that shares no buffers.
    ///
    /// # Errors
    /// If the strings are too long for one array.
    pub(crate) fn copied(&self) -> Result<Vector> {
        match &self.values {
            Values::Text(texts) => Ok(Vector {
                values: Values::Text(texts.copied()?),
                valid: self.valid.clone(),
            }),
            _ => Ok(self.clone()),
        }
    }

    /// Keeps the rows at `rows`, which ascend.
    pub fn keep(&mut self, rows: &[u32]) -> Result<()> {
        self.values.keep(rows)?;
        if let Some(valid) = &mut self.valid {
            compact(valid, rows);
        }
        Ok(())
    }

    /// Concatenates the rows of `runs`, each a pair of a part and its rows.
    ///
    /// # Errors
    /// Those of [`Strings::concat`]; an internal error if parts are not of `kind`.
    pub fn runs(
        kind: Kind,
        parts: &[impl Borrow<Vector>],
        runs: &[(usize, Range<usize>)],
    ) -> Result<Vector> {
        let parts: Vec<&Vector> = parts.iter().map(Borrow::borrow).collect();
        let rows = runs.iter().map(|(_, run)| run.len()).sum();
        let valid = parts.iter().any(|part| part.valid.is_some()).then(|| {
            let mut valid = Vec::with_capacity(rows);
            for (part, run) in runs {
                match &parts[*part].valid {
                    Some(some) => valid.extend_from_slice(&some[run.clone()]),
                    None => valid.resize(valid.len() + run.len(), true),
                }
            }
            valid
        });
        macro_rules! joined {
            ($variant:ident) => {{
                let mut all = Vec::with_capacity(rows);
                for (part, run) in runs {
                    match &parts[*part].values {
                        Values::$variant(some) => all.extend_from_slice(&some[run.clone()]),
                        _ => return Err(Error::internal("parts of different kinds")),
                    }
                }
                Values::$variant(all)
            }};
        }
        let values = match kind {
            Kind::Int => joined!(Int),
            Kind::Wide => joined!(Wide),
            Kind::Float => joined!(Float),
            Kind::Bool => joined!(Bool),
            Kind::Code => joined!(Code),
            Kind::Text => {
                let texts = parts.iter().map(|part| match &part.values {
                    Values::Text(some) => Ok(some),
                    _ => Err(Error::internal("parts of different kinds")),
                });
                Values::Text(Strings::runs(&texts.collect::<Result<Vec<_>>>()?, runs)?)
            }
        };
        Ok(Vector { values, valid })
    }

    /// Converts an Arrow array to the representation that `ty` asks for.
    ///
    /// # Errors
    /// If the array has another type, or a number does not fit the representation.
    pub fn from_arrow(array: &ArrayRef, ty: &Type) -> Result<Vector> {
        let texts;
        let array = if ty.is_opaque() {
            texts = opaque::encode(array, &ty.data)?;
            &texts
        } else {
            array
        };
        let valid = array.logical_nulls().filter(|n| n.null_count() > 0);
        let values = match ty.kind {
            Kind::Int => {
                let mut out = Vec::with_capacity(array.len());
                ints_of(array, &mut out)?;
                Values::Int(out)
            }
            Kind::Wide => {
                let mut out = Vec::with_capacity(array.len());
                wides_of(array, &mut out)?;
                Values::Wide(out)
            }
            Kind::Float => match array.data_type() {
                DataType::Float64 => {
                    Values::Float(array.as_primitive::<Float64Type>().values().to_vec())
                }
                DataType::Float32 => {
                    let values = array.as_primitive::<Float32Type>().values().iter();
                    Values::Float(values.map(|value| f64::from(*value)).collect())
                }
                other => return Err(Error::unsupported(format!("{other} as floats"))),
            },
            Kind::Bool => match array.data_type() {
                DataType::Boolean => Values::Bool(array.as_boolean().values().iter().collect()),
                DataType::Null => Values::Bool(vec![false; array.len()]),
                other => return Err(Error::unsupported(format!("{other} as truth values"))),
            },
            Kind::Text => match array.data_type() {
                DataType::Utf8View => Values::Text(Strings::new(array.clone())),
                _ => Values::Text(Strings::new(cast(array, &DataType::Utf8View)?)),
            },
            Kind::Code => return Err(Error::internal("codes out of an array")),
        };
        Ok(Vector {
            values,
            valid: valid.map(|valid| valid.iter().collect()),
        })
    }

    /// Converts the vector to an Arrow array of type `ty.data`, for functions and answers.
    ///
    /// # Errors
    /// Those of [`to_arrow`](Vector::to_arrow).
    pub fn decoded(&self, ty: &Type) -> Result<ArrayRef> {
        let array = self.to_arrow(ty)?;
        if ty.is_opaque() {
            opaque::decode(&array, &ty.data)
        } else {
            Ok(array)
        }
    }

    /// Converts the vector to an Arrow array of type `ty.data`; of values that the engine has no kernels for, to the texts
    /// that stand for them, which sort as they do.
    ///
    /// # Errors
    /// An internal error if `ty` does not match the vector; those of Arrow.
    pub fn to_arrow(&self, ty: &Type) -> Result<ArrayRef> {
        let nulls = self
            .valid
            .as_ref()
            .map(|v| NullBuffer::new(BooleanBuffer::from(v.as_slice())));
        Ok(match &self.values {
            Values::Int(v) => numbers!(v, nulls, &ty.data),
            Values::Wide(v) => numbers!(v, nulls, &ty.data),
            Values::Float(v) if ty.data == DataType::Float32 => {
                let values = v.iter().map(|value| *value as f32).collect();
                Arc::new(Float32Array::try_new(values, nulls)?)
            }
            Values::Float(v) => Arc::new(Float64Array::try_new(v.clone().into(), nulls)?),
            Values::Bool(v) if ty.data == DataType::Null => Arc::new(NullArray::new(v.len())),
            Values::Bool(v) => {
                Arc::new(BooleanArray::new(BooleanBuffer::from(v.as_slice()), nulls))
            }
            Values::Code(codes) => {
                let Some(labels) = &ty.labels else {
                    return Err(Error::internal("codes without labels"));
                };
                let array = if labels.is_empty() {
                    new_null_array(&DataType::Utf8View, codes.len())
                } else {
                    take(
                        labels.labels(),
                        &UInt32Array::try_new(codes.clone().into(), nulls)?,
                        None,
                    )?
                };
                text_as(array, &ty.data)?
            }
            Values::Text(texts) => {
                let array = texts.array()?;
                let array = match nulls {
                    None => array,
                    Some(nulls) => {
                        let (views, buffers, _) = array.as_string_view().clone().into_parts();
                        // SAFETY: views and buffers are those of a sound array; only the validity mask differs.
                        Arc::new(unsafe {
                            StringViewArray::new_unchecked(views, buffers, Some(nulls))
                        })
                    }
                };
                text_as(array, &ty.data)?
            }
        })
    }
}

fn text_as(array: ArrayRef, data: &DataType) -> Result<ArrayRef> {
    match data {
        DataType::Utf8View => Ok(array),
        other if opaque::is_opaque(other) => Ok(array),
        other => Ok(cast(&array, other)?),
    }
}
