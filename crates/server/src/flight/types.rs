//! The types of SQL, as ODBC and JDBC number them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::errors;
use crate::wire::backend::Report;

/// A type: its name, its number, its size in digits or characters; whether it is a number, and with a sign; what it
/// takes in parentheses.
struct Type {
    name: &'static str,
    number: i32,
    size: Option<i32>,
    signed: Option<bool>,
    takes: &'static [&'static str],
}

const fn plain(name: &'static str, number: i32, size: Option<i32>) -> Type {
    Type {
        name,
        number,
        size,
        signed: None,
        takes: &[],
    }
}

const fn whole(name: &'static str, number: i32, digits: i32, signed: bool) -> Type {
    Type {
        name,
        number,
        size: Some(digits),
        signed: Some(signed),
        takes: &[],
    }
}

/// By number, and then by name.
const TYPES: [Type; 19] = [
    plain("boolean", -7, Some(1)),
    whole("tinyint", -6, 3, true),
    whole("tinyint unsigned", -6, 3, false),
    whole("bigint", -5, 19, true),
    whole("bigint unsigned", -5, 20, false),
    plain("bytea", -3, None),
    plain("char", 1, None),
    Type {
        name: "decimal",
        number: 3,
        size: Some(38),
        signed: Some(true),
        takes: &["precision", "scale"],
    },
    whole("integer", 4, 10, true),
    whole("integer unsigned", 4, 10, false),
    whole("smallint", 5, 5, true),
    whole("smallint unsigned", 5, 5, false),
    whole("real", 7, 24, true),
    whole("double", 8, 53, true),
    plain("interval", 10, None),
    plain("varchar", 12, None),
    plain("date", 91, Some(10)),
    plain("time", 92, Some(15)),
    plain("timestamp", 93, Some(26)),
];

/// The columns that Flight SQL fixes.
pub(super) fn schema() -> SchemaRef {
    let number = |name, nullable| Field::new(name, DataType::Int32, nullable);
    let text = |name, nullable| Field::new(name, DataType::Utf8, nullable);
    let truth = |name, nullable| Field::new(name, DataType::Boolean, nullable);
    let words = Arc::new(Field::new_list_field(DataType::Utf8, true));
    Arc::new(Schema::new(vec![
        text("type_name", false),
        number("data_type", false),
        number("column_size", true),
        text("literal_prefix", true),
        text("literal_suffix", true),
        Field::new("create_params", DataType::List(words), true),
        number("nullable", false),
        truth("case_sensitive", false),
        number("searchable", false),
        truth("unsigned_attribute", true),
        truth("fixed_prec_scale", false),
        truth("auto_increment", true),
        text("local_type_name", true),
        number("minimum_scale", true),
        number("maximum_scale", true),
        number("sql_data_type", false),
        number("datetime_subcode", true),
        number("num_prec_radix", true),
        number("interval_precision", true),
    ]))
}

/// The types, or those of one number.
///
/// # Errors
/// None that can happen: the columns are those of the schema.
pub(super) fn rows(wanted: Option<i32>) -> Result<RecordBatch, Report> {
    let all = TYPES.iter();
    let all: Vec<&Type> = all
        .filter(|one| wanted.is_none_or(|wanted| wanted == one.number))
        .collect();
    let numbers = |of: &dyn Fn(&Type) -> Option<i32>| -> ArrayRef {
        Arc::new(all.iter().map(|one| of(one)).collect::<Int32Array>())
    };
    let texts = |of: &dyn Fn(&Type) -> Option<&'static str>| -> ArrayRef {
        Arc::new(all.iter().map(|one| of(one)).collect::<StringArray>())
    };
    let truths = |of: &dyn Fn(&Type) -> Option<bool>| -> ArrayRef {
        Arc::new(all.iter().map(|one| of(one)).collect::<BooleanArray>())
    };
    // Numbers stand by themselves, other constants in quotes.
    let quote = |one: &Type| (one.signed.is_none() && one.number != -7).then_some("'");
    let mut takes = ListBuilder::new(StringBuilder::new());
    for one in &all {
        for word in one.takes {
            takes.values().append_value(word);
        }
        takes.append(!one.takes.is_empty());
    }
    let dated = |one: &Type| matches!(one.number, 91..=93).then_some(one.number - 90);
    let scale = |most: i32| {
        move |one: &Type| match one.name {
            "decimal" => Some(most),
            _ => one.signed.map(|_| 0),
        }
    };
    let columns: Vec<ArrayRef> = vec![
        texts(&|one| Some(one.name)),
        numbers(&|one| Some(one.number)),
        numbers(&|one| one.size),
        texts(&quote),
        texts(&quote),
        Arc::new(takes.finish()),
        numbers(&|_| Some(1)),
        truths(&|one| Some(matches!(one.number, 1 | 12))),
        numbers(&|_| Some(3)),
        truths(&|one| one.signed.map(|signed| !signed)),
        truths(&|_| Some(false)),
        truths(&|one| one.signed.map(|_| false)),
        texts(&|one| Some(one.name)),
        numbers(&scale(0)),
        numbers(&scale(38)),
        // Moments are of one kind, and told apart by what follows.
        numbers(&|one| Some(if dated(one).is_some() { 9 } else { one.number })),
        numbers(&dated),
        numbers(&|one| match one.number {
            7 | 8 => Some(2),
            _ => one.signed.map(|_| 10),
        }),
        numbers(&|_| None),
    ];
    RecordBatch::try_new(schema(), columns)
        .map_err(|e| Report::error(errors::INTERNAL, e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_in_order() {
        let mut sorted: Vec<_> = TYPES.iter().map(|one| (one.number, one.name)).collect();
        sorted.sort_unstable();
        let all: Vec<_> = TYPES.iter().map(|one| (one.number, one.name)).collect();
        assert_eq!(all, sorted);
        assert_eq!(rows(None).unwrap().num_rows(), TYPES.len());
        assert_eq!(rows(Some(-5)).unwrap().num_rows(), 2);
        assert_eq!(rows(Some(99)).unwrap().num_rows(), 0);
    }
}
