//! From the fields of a chunk to columns.

use std::cell::Cell;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryViewBuilder, BooleanBuilder, PrimitiveArray,
    PrimitiveBuilder, RecordBatch, RecordBatchOptions, StringViewBuilder,
};
use arrow::compute::kernels::cast_utils::Parser;
use arrow::datatypes::*;

use crate::csv::cutter::Chunk;
use crate::csv::infer::is_padded;
use crate::csv::layout::Layout;
use crate::csv::record::{Reader, Records, lines};
use crate::csv::sniff;
use crate::error::{Error, Result};
use crate::piece::{BATCH_ROWS, Column, cast_to, schema_of};
use crate::stream::Source;
use crate::texts::{
    Moments, boolean, bytes_of, date, decimal128, decimal256, float32, float64, infinite,
    is_double, spoken,
};

/// The most characters of a value that a message shows.
const SHOWN: usize = 60;

/// What the chunks of a file share.
pub(crate) struct Shared {
    pub source: Arc<Source>,
    pub layout: Layout,
    pub columns: Arc<[Column]>,
}

/// A chunk that is being parsed, some rows at a time.
pub(crate) struct Parsing {
    shared: Arc<Shared>,
    schema: SchemaRef,
    text: String,
    /// The file's line on which the text starts.
    line: u64,
    at: usize,
    records: Records,
    /// Whether the record that is read is the header.
    heading: bool,
    done: bool,
}

/// What is wrong with a value.
enum Misfit {
    /// It cannot be read as the column's type.
    Type,
    /// It is a number with zeros before it in a column that was found to be one of numbers.
    Padded,
    /// It is a whole number of which a column that was found to be one of doubles would not keep all digits.
    Digits,
    /// There is none where there must be one.
    Null,
}

type Parsed<T> = std::result::Result<T, (usize, Misfit)>;

impl Parsing {
    /// With `header` the first record is left out.
    pub fn new(shared: Arc<Shared>, chunk: Chunk, header: bool) -> Result<Parsing> {
        let Chunk { line, text } = chunk;
        let text = match String::from_utf8(text) {
            Ok(text) => text,
            Err(error) => {
                let path = shared.source.path();
                sniff::text_of(path, error.as_bytes(), line)?.to_owned()
            }
        };
        let schema = schema_of(&shared.columns);
        let mut parsing = Parsing {
            shared,
            schema,
            text,
            line,
            at: 0,
            records: Records::default(),
            heading: header,
            done: false,
        };
        if header {
            parsing.read(1)?;
            parsing.heading = false;
        }
        Ok(parsing)
    }

    /// Reads the fields of the next records, `most` at most.
    fn read(&mut self, most: usize) -> Result<()> {
        self.records.clear();
        let mut dialect = self.shared.layout.dialect;
        // Lines before the header are none.
        dialect.single &= !self.heading;
        let mut reader = Reader::resume(&self.text, dialect, self.at);
        let wanted = self.shared.layout.names.len();
        while self.records.len() < most {
            let more = reader.next(&mut self.records).map_err(|wrong| {
                let reason = wrong.reason(&self.text, self.line);
                self.failure(wrong.offset(), reason)
            })?;
            if !more {
                break;
            }
            let last = self.records.len() - 1;
            let got = self.records.width(last);
            if got != wanted {
                let few = if got < wanted { "too few" } else { "too many" };
                let reason = format!(
                    "{few} fields: {got} instead of {wanted}; correct the line, or give the delimiter and the quote"
                );
                return Err(self.failure(self.records.start(last), reason));
            }
        }
        self.at = reader.at();
        Ok(())
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        self.read(BATCH_ROWS)?;
        let rows = self.records.len();
        if rows == 0 {
            return Ok(None);
        }
        let shared = Arc::clone(&self.shared);
        let columns = shared.columns.iter().map(|column| {
            self.column(column)
                .map_err(|(row, misfit)| self.misfit(column, row, &misfit))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        batch
            .map(Some)
            .map_err(|error| self.failure(self.records.start(0), error.to_string()))
    }

    /// The values of a column, as its type.
    fn column(&self, column: &Column) -> Parsed<ArrayRef> {
        let data_type = column.field.data_type();
        let cells = Cells {
            parsing: self,
            column,
            text: is_text(data_type),
        };
        macro_rules! numbers {
            ($type:ty) => {
                cells.numbers::<$type>(|value| value.parse().ok())
            };
        }
        macro_rules! parsed {
            ($type:ty) => {
                cells.primitive::<$type>(<$type as Parser>::parse)
            };
        }
        Ok(match data_type {
            DataType::Boolean => cells.booleans()?,
            DataType::Int8 => Arc::new(numbers!(Int8Type)?),
            DataType::Int16 => Arc::new(numbers!(Int16Type)?),
            DataType::Int32 => Arc::new(numbers!(Int32Type)?),
            DataType::Int64 => Arc::new(numbers!(Int64Type)?),
            DataType::UInt8 => Arc::new(numbers!(UInt8Type)?),
            DataType::UInt16 => Arc::new(numbers!(UInt16Type)?),
            DataType::UInt32 => Arc::new(numbers!(UInt32Type)?),
            DataType::UInt64 => Arc::new(numbers!(UInt64Type)?),
            DataType::Float32 => Arc::new(cells.numbers::<Float32Type>(float32)?),
            DataType::Float64 => Arc::new(cells.numbers::<Float64Type>(float64)?),
            DataType::Date32 => Arc::new(cells.dates()?),
            DataType::Time32(TimeUnit::Second) => Arc::new(parsed!(Time32SecondType)?),
            DataType::Time32(_) => Arc::new(parsed!(Time32MillisecondType)?),
            DataType::Time64(TimeUnit::Microsecond) => Arc::new(parsed!(Time64MicrosecondType)?),
            DataType::Time64(_) => Arc::new(parsed!(Time64NanosecondType)?),
            DataType::Timestamp(unit, zone) => {
                cells.timestamps(*unit, zone.as_deref(), data_type)?
            }
            DataType::Decimal128(digits, scale) => {
                let (digits, scale) = (*digits, *scale);
                let array =
                    cells.numbers::<Decimal128Type>(|value| decimal128(value, digits, scale))?;
                Arc::new(array.with_data_type(data_type.clone()))
            }
            DataType::Decimal256(digits, scale) => {
                let (digits, scale) = (*digits, *scale);
                let array =
                    cells.numbers::<Decimal256Type>(|value| decimal256(value, digits, scale))?;
                Arc::new(array.with_data_type(data_type.clone()))
            }
            DataType::Utf8View => cells.texts()?,
            DataType::BinaryView | DataType::Binary | DataType::LargeBinary => {
                cells.bytes(data_type)?
            }
            other => cells.cast(other)?,
        })
    }

    /// The error for what stands at this offset of the text.
    fn failure(&self, offset: usize, reason: String) -> Error {
        let line = self.line + lines(&self.text.as_bytes()[..offset]);
        Error::line(self.shared.source.path(), line, reason)
    }

    fn misfit(&self, column: &Column, row: usize, misfit: &Misfit) -> Error {
        let value = self.records.field(&self.text, row, column.source);
        let mut shown: String = value.chars().take(SHOWN).collect();
        if shown.len() < value.len() {
            shown.push_str("...");
        }
        let (name, kind) = (column.field.name(), spoken(column.field.data_type()));
        let declare = "declare the column's type (--schema for imports, types for queries)";
        let reason = match misfit {
            Misfit::Null => {
                format!("column {name:?} must not be null, but has no value here; fill it in")
            }
            Misfit::Padded => format!(
                "{shown:?} in column {name:?} would lose its zeros or its plus as a {kind}, which the column holds as far as the first {} records tell; {declare}",
                self.shared.layout.sampled
            ),
            Misfit::Digits => format!(
                "{shown:?} in column {name:?} would lose digits as a {kind}, which the column holds as far as the first {} records tell; {declare}",
                self.shared.layout.sampled
            ),
            Misfit::Type if column.strict => format!(
                "{shown:?} in column {name:?} is no {kind}, which the column holds as far as the first {} records tell; correct it, or {declare}",
                self.shared.layout.sampled
            ),
            Misfit::Type => {
                format!("{shown:?} in column {name:?} is no {kind}; correct it, or {declare}")
            }
        };
        self.failure(self.records.start(row), reason)
    }
}

/// Whether values of this type are texts or bytes, of which an empty field is a value.
fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8View
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::BinaryView
            | DataType::Binary
            | DataType::LargeBinary
    )
}

impl Iterator for Parsing {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.batch();
        self.done = !matches!(batch, Ok(Some(_)));
        batch.transpose()
    }
}

/// The values of one column.
struct Cells<'a> {
    parsing: &'a Parsing,
    column: &'a Column,
    /// Whether an empty field may be a text that is empty.
    text: bool,
}

impl<'a> Cells<'a> {
    /// Each row's value; NULLs are none.
    fn values(&self) -> impl Iterator<Item = Parsed<Option<&'a str>>> {
        let Parsing {
            shared,
            records,
            text,
            ..
        } = self.parsing;
        let fields = records.column(text, self.column.source, shared.layout.names.len());
        let (nulls, nullable) = (&shared.layout.nulls, self.column.field.is_nullable());
        let empty_is_null = nulls.is_empty() || !self.text;
        let is_text = self.text;
        let rule = self.column.nulls;
        let is_null_text = move |value: &str| match &nulls[..] {
            [] => value.is_empty(),
            nulls => nulls.iter().any(|null| null == value),
        };
        fields.enumerate().map(move |(row, (value, quoted))| {
            // What stands within quotes is a text, even an empty one. Other types have no such value.
            let null = if quoted && rule.quoted {
                is_null_text(value)
            } else if rule.never || (quoted && is_text) {
                false
            } else if value.is_empty() {
                empty_is_null || nulls.iter().any(String::is_empty)
            } else {
                !nulls.is_empty() && nulls.iter().any(|null| null == value)
            };
            if !null {
                Ok(Some(value))
            } else if nullable {
                Ok(None)
            } else if is_text && nulls.is_empty() {
                // Empty text is text where there must be some.
                Ok(Some(value))
            } else {
                Err((row, Misfit::Null))
            }
        })
    }

    fn rows(&self) -> usize {
        self.parsing.records.len()
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(&str) -> Option<T::Native>,
    ) -> Parsed<PrimitiveArray<T>> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.rows());
        for (row, value) in self.values().enumerate() {
            match value? {
                Some(value) => builder.append_value(parse(value).ok_or((row, Misfit::Type))?),
                None => builder.append_null(),
            }
        }
        Ok(builder.finish())
    }

    /// As [`Cells::primitive`]; where the type was only found out, numbers keep all they are written with.
    fn numbers<T: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(&str) -> Option<T::Native>,
    ) -> Parsed<PrimitiveArray<T>> {
        if !self.column.strict {
            return self.primitive(parse);
        }
        let floats = T::DATA_TYPE == DataType::Float64;
        let (padded, lossy) = (Cell::new(false), Cell::new(false));
        let array = self.primitive(|value| {
            padded.set(is_padded(value));
            lossy.set(floats && !is_double(value));
            parse(value).filter(|_| !padded.get() && !lossy.get())
        });
        array.map_err(|(row, misfit)| match misfit {
            Misfit::Type if padded.get() => (row, Misfit::Padded),
            Misfit::Type if lossy.get() => (row, Misfit::Digits),
            other => (row, other),
        })
    }

    /// Dates, in the form that was given for them, or else with year, month and day.
    fn dates(&self) -> Parsed<PrimitiveArray<Date32Type>> {
        let form = self.parsing.shared.layout.dates.as_ref();
        self.primitive(|value| match form {
            Some(form) => form.day(value).or_else(|| infinite(value, i32::MAX)),
            None => date(value),
        })
    }

    /// Bytes, written as PostgreSQL writes them.
    fn bytes(&self, wanted: &DataType) -> Parsed<ArrayRef> {
        let mut builder = BinaryViewBuilder::with_capacity(self.rows());
        for (row, value) in self.values().enumerate() {
            match value? {
                Some(value) => {
                    builder.append_value(bytes_of(value).ok_or((row, Misfit::Type))?);
                }
                None => builder.append_null(),
            }
        }
        let bytes: ArrayRef = Arc::new(builder.finish());
        cast_to(&bytes, wanted).map_err(|_| (0, Misfit::Type))
    }

    fn booleans(&self) -> Parsed<ArrayRef> {
        let mut builder = BooleanBuilder::with_capacity(self.rows());
        for (row, value) in self.values().enumerate() {
            builder.append_option(match value? {
                None => None,
                Some(value) => Some(boolean(value).ok_or((row, Misfit::Type))?),
            });
        }
        Ok(Arc::new(builder.finish()))
    }

    fn texts(&self) -> Parsed<ArrayRef> {
        let mut builder = StringViewBuilder::with_capacity(self.rows());
        for value in self.values() {
            match value? {
                Some(value) => builder.append_value(value),
                None => builder.append_null(),
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    fn timestamps(
        &self,
        unit: TimeUnit,
        zone: Option<&str>,
        wanted: &DataType,
    ) -> Parsed<ArrayRef> {
        let moments = Moments::new(unit, zone, self.column.strict).ok_or((0, Misfit::Type))?;
        let parse = |value: &str| moments.count(value);
        macro_rules! times {
            ($type:ty) => {
                Arc::new(
                    self.primitive::<$type>(parse)?
                        .with_data_type(wanted.clone()),
                )
            };
        }
        Ok(match unit {
            TimeUnit::Second => times!(TimestampSecondType),
            TimeUnit::Millisecond => times!(TimestampMillisecondType),
            TimeUnit::Microsecond => times!(TimestampMicrosecondType),
            TimeUnit::Nanosecond => times!(TimestampNanosecondType),
        })
    }

    /// The values parsed as text, then cast to `data_type`.
    fn cast(&self, data_type: &DataType) -> Parsed<ArrayRef> {
        let texts = self.texts()?;
        cast_to(&texts, data_type).map_err(|_| {
            let alone = |row: &usize| cast_to(&texts.slice(*row, 1), data_type).is_err();
            (
                (0..texts.len()).find(alone).unwrap_or_default(),
                Misfit::Type,
            )
        })
    }
}
