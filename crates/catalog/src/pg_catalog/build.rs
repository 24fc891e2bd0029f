//! Tables from columns of plain values.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float32Array, Int16Array, Int16Builder, Int32Array,
    Int32Builder, Int64Array, IntervalMonthDayNanoArray, ListBuilder, RecordBatch, StringArray,
    StringBuilder, TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, IntervalUnit, Schema, TimeUnit};
use datafusion_common::Result;
use messages::numbers::{OIDS, TEXTS, VECTOR};
use table::Definition;

/// The columns of views by the views' names, as those of tables.
pub type ViewColumns = BTreeMap<String, Definition>;

/// The type of a column of the catalog by the letter that the files of [`system`](super::system) have for it.
pub(super) fn type_of(letter: &str) -> DataType {
    let list = |item: DataType| DataType::List(Arc::new(Field::new_list_field(item, true)));
    match letter {
        "n" => DataType::Int64,
        "i" | "s" => DataType::Int32,
        "b" => DataType::Boolean,
        "f" => DataType::Float32,
        "d" => DataType::Float64,
        "m" => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        "e" => DataType::Interval(IntervalUnit::MonthDayNano),
        "l" => list(DataType::Utf8),
        "a" => list(DataType::Int16),
        "o" => list(DataType::Int64),
        "v" => DataType::List(Arc::new(Field::new(VECTOR, DataType::Int16, true))),
        _ => DataType::Utf8,
    }
}

/// The zone of moments.
const UTC: &str = "+00:00";

/// A table under construction.
#[derive(Default)]
pub struct Built(Vec<(&'static str, ArrayRef)>);

impl Built {
    /// Of these columns.
    pub(crate) fn of(columns: Vec<(&'static str, ArrayRef)>) -> Built {
        Built(columns)
    }

    fn with(mut self, name: &'static str, array: ArrayRef) -> Built {
        self.0.push((name, array));
        self
    }

    /// A column of texts, of which some may be NULL.
    pub fn texts<T: Into<String>>(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> Built {
        let values = values.into_iter().map(|value| value.map(Into::into));
        self.with(name, Arc::new(values.collect::<StringArray>()))
    }

    /// Texts that are all there.
    pub fn names<T: Into<String>>(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = T>,
    ) -> Built {
        self.texts(name, values.into_iter().map(Some))
    }

    /// Lists of texts.
    pub(super) fn lists(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<Vec<String>>>,
    ) -> Built {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for value in values {
            match value {
                Some(items) => lists.append_value(items.into_iter().map(Some)),
                None => lists.append_null(),
            }
        }
        self.with(name, Arc::new(lists.finish()))
    }

    /// Arrays of small numbers: `smallint[]`.
    pub(super) fn arrays(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Vec<i16>>,
    ) -> Built {
        self.small(
            name,
            Field::LIST_FIELD_DEFAULT_NAME,
            values.into_iter().map(Some),
        )
    }

    /// The same, of which some are NULL.
    pub(super) fn some_arrays(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<Vec<i16>>>,
    ) -> Built {
        self.small(name, Field::LIST_FIELD_DEFAULT_NAME, values)
    }

    /// The same as `int2vector`.
    pub(super) fn vectors(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Vec<i16>>,
    ) -> Built {
        self.small(name, VECTOR, values.into_iter().map(Some))
    }

    /// `oidvector`: numbers of types, which count from 0 and have no braces around them as texts.
    pub(super) fn type_vectors(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Vec<i32>>,
    ) -> Built {
        let field = Field::new(VECTOR, DataType::Int32, true);
        let mut lists = ListBuilder::new(Int32Builder::new()).with_field(field);
        for value in values {
            lists.append_value(value.into_iter().map(Some));
        }
        self.with(name, Arc::new(lists.finish()))
    }

    /// `oid[]`: numbers of types.
    pub(super) fn type_arrays(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<Vec<i32>>>,
    ) -> Built {
        let field = Field::new(OIDS, DataType::Int32, true);
        let mut lists = ListBuilder::new(Int32Builder::new()).with_field(field);
        for value in values {
            lists.append_option(value.map(|items| items.into_iter().map(Some)));
        }
        self.with(name, Arc::new(lists.finish()))
    }

    /// `text[]`.
    pub(super) fn text_arrays(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<Vec<String>>>,
    ) -> Built {
        let field = Field::new(TEXTS, DataType::Utf8, true);
        let mut lists = ListBuilder::new(StringBuilder::new()).with_field(field);
        for value in values {
            lists.append_option(value.map(|items| items.into_iter().map(Some)));
        }
        self.with(name, Arc::new(lists.finish()))
    }

    /// Bytes.
    pub(super) fn bytes(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = &'static str>,
    ) -> Built {
        let values = values.into_iter().map(|value| Some(value.as_bytes()));
        self.with(name, Arc::new(values.collect::<BinaryArray>()))
    }

    fn small(
        self,
        name: &'static str,
        item: &str,
        values: impl IntoIterator<Item = Option<Vec<i16>>>,
    ) -> Built {
        let field = Field::new(item, DataType::Int16, true);
        let mut lists = ListBuilder::new(Int16Builder::new()).with_field(field);
        for value in values {
            lists.append_option(value.map(|items| items.into_iter().map(Some)));
        }
        self.with(name, Arc::new(lists.finish()))
    }

    pub(super) fn numbers(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = i64>,
    ) -> Built {
        self.with(name, Arc::new(values.into_iter().collect::<Int64Array>()))
    }

    pub(super) fn some_numbers(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<i64>>,
    ) -> Built {
        self.with(name, Arc::new(values.into_iter().collect::<Int64Array>()))
    }

    pub(super) fn some_small(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<i16>>,
    ) -> Built {
        self.with(name, Arc::new(values.into_iter().collect::<Int16Array>()))
    }

    /// No number in any of `rows` rows.
    pub(super) fn no_counts(self, name: &'static str, rows: usize) -> Built {
        self.with(name, new_null_array(&DataType::Int32, rows))
    }

    pub(super) fn reals(self, name: &'static str, values: impl IntoIterator<Item = f32>) -> Built {
        self.with(name, Arc::new(values.into_iter().collect::<Float32Array>()))
    }

    pub(super) fn counts(self, name: &'static str, values: impl IntoIterator<Item = i32>) -> Built {
        self.with(name, Arc::new(values.into_iter().collect::<Int32Array>()))
    }

    pub(super) fn truths(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = bool>,
    ) -> Built {
        let values = values.into_iter().map(Some);
        self.with(name, Arc::new(values.collect::<BooleanArray>()))
    }

    /// Microseconds since 1970.
    pub(super) fn moments(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<i64>>,
    ) -> Built {
        let values: TimestampMicrosecondArray = values.into_iter().collect();
        self.with(name, Arc::new(values.with_timezone(UTC)))
    }

    /// Intervals of so many seconds.
    pub(super) fn times(self, name: &'static str, values: impl IntoIterator<Item = i64>) -> Built {
        let times = values
            .into_iter()
            .map(|seconds| IntervalMonthDayNano::new(0, 0, seconds * 1_000_000_000));
        let times = IntervalMonthDayNanoArray::from_iter_values(times);
        self.with(name, Arc::new(times))
    }

    /// The same text in each of `rows` rows.
    pub fn text(self, name: &'static str, value: &str, rows: usize) -> Built {
        self.names(name, std::iter::repeat_n(value, rows))
    }

    /// No text in any of `rows` rows.
    pub(super) fn nothing(self, name: &'static str, rows: usize) -> Built {
        self.texts(name, std::iter::repeat_n(None::<String>, rows))
    }

    /// No list of texts in any of `rows` rows.
    pub(super) fn no_lists(self, name: &'static str, rows: usize) -> Built {
        let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
        self.with(name, new_null_array(&DataType::List(field), rows))
    }

    pub(super) fn number(self, name: &'static str, value: i64, rows: usize) -> Built {
        self.numbers(name, std::iter::repeat_n(value, rows))
    }

    pub(super) fn truth(self, name: &'static str, value: bool, rows: usize) -> Built {
        self.truths(name, std::iter::repeat_n(value, rows))
    }

    /// These rows, and those of `other` behind them, where columns that it has not are NULL.
    ///
    /// # Errors
    /// If a column is of two types.
    pub(super) fn and(self, other: &Built) -> Result<Built> {
        let mut both = Built::default();
        for (name, array) in self.0 {
            let more = other.0.iter().find(|(own, _)| *own == name);
            let more = match more {
                Some((_, more)) => Arc::clone(more),
                None => new_null_array(array.data_type(), other.rows()),
            };
            both = both.with(name, concat(&[array.as_ref(), more.as_ref()])?);
        }
        Ok(both)
    }

    /// How many rows there are.
    fn rows(&self) -> usize {
        self.0.first().map_or(0, |(_, array)| array.len())
    }

    /// With all of `columns`, each a name, a colon and a letter for its type, in their order; others stand behind them. Those
    /// that are not known are NULL where that is `nulls`, and what PostgreSQL has where there is nothing to say otherwise: 0
    /// and false.
    pub(super) fn completed(mut self, columns: &'static str, nulls: bool) -> Built {
        let rows = self.rows();
        let mut built = Built::default();
        for (name, letter) in columns.split(' ').filter_map(|own| own.split_once(':')) {
            let known = self.0.iter().position(|(own, _)| *own == name);
            built = match known {
                Some(at) => {
                    let (name, array) = self.0.remove(at);
                    built.with(name, array)
                }
                None => built.unknown(name, letter, rows, nulls),
            };
        }
        built.0.append(&mut self.0);
        built
    }

    fn unknown(self, name: &'static str, letter: &str, rows: usize, nulls: bool) -> Built {
        match letter {
            "n" if !nulls => self.number(name, 0, rows),
            "i" | "s" if !nulls => self.counts(name, std::iter::repeat_n(0, rows)),
            "b" if !nulls => self.truth(name, false, rows),
            "f" if !nulls => self.reals(name, std::iter::repeat_n(0.0, rows)),
            letter => self.with(name, new_null_array(&type_of(letter), rows)),
        }
    }

    /// The rows.
    ///
    /// # Errors
    /// If columns are of different lengths: a defect.
    pub fn batch(self) -> Result<RecordBatch> {
        let field =
            |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Arc::new(Schema::new(self.0.iter().map(field).collect::<Vec<_>>()));
        let arrays = self.0.into_iter().map(|(_, array)| array).collect();
        Ok(RecordBatch::try_new(schema, arrays)?)
    }
}
