//! Functions that clients of PostgreSQL call about its catalog.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, plan_err};

use crate::functions::arguments::TEXT;
use crate::functions::own::Own;
use crate::messages::numbers::{table_number, type_named, type_title};
use crate::names::{CATALOG, quoted};

/// Functions that are true whatever they are asked.
const TRUE: [&str; 14] = [
    "pg_table_is_visible",
    "pg_type_is_visible",
    "pg_function_is_visible",
    "pg_collation_is_visible",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "has_schema_privilege",
    "has_table_privilege",
    "has_database_privilege",
    "has_column_privilege",
    "has_any_column_privilege",
    // What everybody has in PostgreSQL, unless it is taken away.
    "has_function_privilege",
    "has_language_privilege",
    "has_type_privilege",
];

pub(super) fn all() -> Vec<Own> {
    let text = |_: &[DataType]| Ok(TEXT);
    let truth = |_: &[DataType]| Ok(DataType::Boolean);
    let number = |_: &[DataType]| Ok(DataType::Int64);
    let always = |name| {
        Own::new(name, any, truth, |_, rows| {
            Ok(Arc::new(BooleanArray::from(vec![true; rows])))
        })
    };
    let nothing = |name| {
        Own::new(name, any, text, |_, rows| {
            Ok(Arc::new(StringArray::new_null(rows)))
        })
    };
    let mut functions = vec![
        Own::new("format_type", numbers, text, title),
        Own::new("pg_get_userbyid", any, text, |_, rows| {
            Ok(Arc::new(StringArray::from(vec![CATALOG; rows])))
        }),
        Own::new("pg_encoding_to_char", any, text, |_, rows| {
            Ok(Arc::new(StringArray::from(vec!["UTF8"; rows])))
        }),
        Own::new("pg_get_expr", any, text, |args, _| cast_text(&args[0])),
        Own::new("to_regclass", one_text, number, |args, _| {
            let names: &StringArray = args[0].as_string();
            let found = names.iter().map(|name| name.map(of_name));
            Ok(Arc::new(found.collect::<Int64Array>()))
        }),
        Own::new("to_regtype", one_text, number, |args, _| {
            let names: &StringArray = args[0].as_string();
            let found = names.iter().map(|name| name.and_then(type_named));
            Ok(Arc::new(found.collect::<Int64Array>()))
        }),
        Own::new("quote_ident", one_text, text, |args, _| {
            let names: &StringArray = args[0].as_string();
            let quoted = names.iter().map(|name| name.map(quoted));
            Ok(Arc::new(quoted.collect::<StringArray>()))
        }),
    ];
    functions.extend(TRUE.into_iter().map(always));
    for name in [
        "shobj_description",
        "pg_get_indexdef",
        "pg_get_constraintdef",
        "pg_get_partkeydef",
        "pg_get_viewdef",
        "pg_get_function_result",
        "pg_get_function_arguments",
        "pg_get_ruledef",
        "pg_tablespace_location",
    ] {
        functions.push(nothing(name));
    }
    functions.extend(sizes());
    functions
}

/// What is not counted by table, index or database: nobody knows.
fn sizes() -> impl Iterator<Item = Own> {
    let names = [
        "pg_database_size",
        "pg_indexes_size",
        "pg_relation_size",
        "pg_stat_get_numscans",
        "pg_table_size",
        "pg_total_relation_size",
    ];
    names.into_iter().map(|name| {
        Own::new(
            name,
            any,
            |_| Ok(DataType::Int64),
            |_, rows| Ok(Arc::new(Int64Array::new_null(rows))),
        )
    })
}

fn any(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [] => plan_err!("the function takes an argument"),
        types => Ok(types.to_vec()),
    }
}

fn numbers(types: &[DataType]) -> Result<Vec<DataType>> {
    match types.len() {
        2 => Ok(vec![DataType::Int64; 2]),
        _ => plan_err!("format_type takes the numbers of a type and of its modifier"),
    }
}

fn one_text(types: &[DataType]) -> Result<Vec<DataType>> {
    match types.len() {
        1 => Ok(vec![DataType::Utf8]),
        _ => plan_err!("the function takes one text"),
    }
}

fn cast_text(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(array, &DataType::Utf8)?)
}

fn title(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let numbers = args[0].as_primitive::<Int64Type>();
    let modifiers = args[1].as_primitive::<Int64Type>();
    let titles = (0..rows).map(|at| {
        let modifier = if modifiers.is_null(at) {
            -1
        } else {
            modifiers.value(at)
        };
        let number = (!numbers.is_null(at)).then(|| numbers.value(at))?;
        Some(type_title(number, modifier).unwrap_or_else(|| "???".into()))
    });
    Ok(Arc::new(titles.collect::<StringArray>()))
}

/// The number of the table that a text names, with or without its schema.
fn of_name(name: &str) -> i64 {
    let plain = name.rsplit('.').next().unwrap_or(name);
    match plain
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(exact) => table_number(exact),
        None => table_number(&plain.to_lowercase()),
    }
}
