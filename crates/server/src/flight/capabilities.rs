//! What this server can do, by the numbers of `GetSqlInfo`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int32Builder, Int64Array, ListBuilder, MapBuilder,
    RecordBatch, StringArray, StringBuilder, UInt32Array, UnionArray,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, UnionFields, UnionMode};
use arrow::error::ArrowError;

use crate::errors;
use crate::options::Options;
use crate::wire::backend::Report;

/// The version of Arrow whose messages are sent.
const ARROW: &str = "59";

/// What is said of something.
#[derive(Clone, Copy)]
enum Said {
    Text(&'static str),
    Truth(bool),
    Number(i64),
    Mask(i32),
}

/// What is always so.
const ALL: [(u32, Said); 34] = [
    (0, Said::Text("Atoll")),
    (1, Said::Text(env!("CARGO_PKG_VERSION"))),
    (2, Said::Text(ARROW)),
    // SQL; no Substrait.
    (4, Said::Truth(true)),
    (5, Said::Truth(false)),
    // Transactions with savepoints.
    (8, Said::Mask(2)),
    (9, Said::Truth(true)),
    (10, Said::Truth(true)),
    (11, Said::Truth(true)),
    (500, Said::Truth(false)),
    (501, Said::Truth(false)),
    (502, Said::Truth(true)),
    // Names are in lower case, those in quotes as they stand.
    (503, Said::Number(3)),
    (504, Said::Text("\"")),
    (505, Said::Number(1)),
    (506, Said::Truth(true)),
    // Nulls come last.
    (507, Said::Number(0)),
    (513, Said::Text("\\")),
    (514, Said::Text("$")),
    (515, Said::Truth(true)),
    (516, Said::Truth(true)),
    (518, Said::Truth(true)),
    (520, Said::Truth(true)),
    (521, Said::Truth(true)),
    // Groups by what is not selected, too.
    (522, Said::Mask(3)),
    (523, Said::Truth(true)),
    (524, Said::Truth(true)),
    (528, Said::Mask(6)),
    (529, Said::Text("schema")),
    (531, Said::Text("database")),
    // In comparisons, `exists`, `in`; those that depend on the row outside.
    (538, Said::Mask(15)),
    (539, Said::Truth(true)),
    (540, Said::Mask(3)),
    (563, Said::Truth(true)),
];

/// The kinds of what is said, in the order that Flight SQL fixes.
fn kinds() -> UnionFields {
    let numbers = DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)));
    let entries = Fields::from(vec![
        Field::new("keys", DataType::Int32, false),
        Field::new("values", numbers, true),
    ]);
    let entries = Field::new("entries", DataType::Struct(entries), false);
    let texts = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    UnionFields::from_fields(vec![
        Field::new("string_value", DataType::Utf8, false),
        Field::new("bool_value", DataType::Boolean, false),
        Field::new("bigint_value", DataType::Int64, false),
        Field::new("int32_bitmask", DataType::Int32, false),
        Field::new("string_list", texts, true),
        Field::new(
            "int32_to_int32_list_map",
            DataType::Map(Arc::new(entries), false),
            true,
        ),
    ])
}

/// The columns: a number, and what is said of it.
pub(super) fn schema() -> SchemaRef {
    let value = DataType::Union(kinds(), UnionMode::Dense);
    Arc::new(Schema::new(vec![
        Field::new("info_name", DataType::UInt32, false),
        Field::new("value", value, false),
    ]))
}

/// What is said of these numbers; of all, if none is named. Of what is not known nothing is said.
///
/// # Errors
/// None that can happen: the columns are those of the schema.
pub(super) fn rows(wanted: &[u32], options: &Options) -> Result<RecordBatch, Report> {
    let millis = options.statement_timeout.unwrap_or_default().as_millis();
    let idle = options
        .idle_in_transaction_timeout
        .unwrap_or_default()
        .as_millis();
    let number = |millis: u128| Said::Number(i64::try_from(millis).unwrap_or(i64::MAX));
    let mut all = ALL.to_vec();
    all.extend([(100, number(millis)), (101, number(idle))]);
    all.sort_by_key(|(name, _)| *name);
    all.retain(|(name, _)| wanted.is_empty() || wanted.contains(name));
    built(&all).map_err(|e| Report::error(errors::INTERNAL, e.to_string()))
}

fn built(all: &[(u32, Said)]) -> Result<RecordBatch, ArrowError> {
    let (mut texts, mut truths, mut numbers, mut masks) = (vec![], vec![], vec![], vec![]);
    let (mut kinds_of, mut places) = (Vec::new(), Vec::new());
    let mut push = |kind: i8, length: usize| {
        kinds_of.push(kind);
        places.push(length as i32 - 1);
    };
    for (_, said) in all {
        match *said {
            Said::Text(text) => {
                texts.push(text);
                push(0, texts.len());
            }
            Said::Truth(truth) => {
                truths.push(truth);
                push(1, truths.len());
            }
            Said::Number(number) => {
                numbers.push(number);
                push(2, numbers.len());
            }
            Said::Mask(mask) => {
                masks.push(mask);
                push(3, masks.len());
            }
        }
    }
    let lists = ListBuilder::new(StringBuilder::new()).finish();
    let numbers_of = ListBuilder::new(Int32Builder::new());
    let maps = MapBuilder::new(None, Int32Builder::new(), numbers_of).finish();
    let children: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts)),
        Arc::new(BooleanArray::from(truths)),
        Arc::new(Int64Array::from(numbers)),
        Arc::new(Int32Array::from(masks)),
        Arc::new(lists),
        Arc::new(maps),
    ];
    let values = UnionArray::try_new(
        kinds(),
        ScalarBuffer::from(kinds_of),
        Some(ScalarBuffer::from(places)),
        children,
    )?;
    let names = UInt32Array::from_iter_values(all.iter().map(|(name, _)| *name));
    RecordBatch::try_new(schema(), vec![Arc::new(names), Arc::new(values)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_said() {
        let options = Options::default();
        assert_eq!(rows(&[], &options).unwrap().num_rows(), ALL.len() + 2);
        assert_eq!(rows(&[8, 0, 9999], &options).unwrap().num_rows(), 2);
    }
}
