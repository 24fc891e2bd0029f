//! Functions that clients of PostgreSQL call about its catalog.

use std::sync::Arc;

use arrow::array::builder::{Int32Builder, Int64Builder, ListBuilder, StringViewBuilder};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;
use messages::names::{CATALOG, quoted};
use messages::numbers::{table_number, type_named, type_title};

use crate::arguments::TEXT;
use crate::lists::types::{list_of, lists, range};
use crate::own::Own;

/// The name of the function that writes the number of a row as PostgreSQL writes where one is, `(0,1)`: a block of 65,536
/// rows, and the place in it. Statements cannot write it.
pub const ROW_PLACE: &str = "row place";

fn row_place(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let rows = args[0].as_primitive::<UInt64Type>().iter();
    // Rows that are in no block yet have the highest bit. A number of a block of PostgreSQL has 32 bits, of which DuckDB reads
    // the highest as a sign.
    let block = |row: u64| (row & !(1 << 63)) >> 16 | (row >> 63) << 30;
    let place = |row: u64| format!("({},{})", block(row), row & 0xffff);
    let places = rows.map(|row| row.map(place));
    Ok(Arc::new(places.collect::<StringArray>()))
}

/// The names of the functions for the columns of `pg_options_to_table`, which statements cannot write, and what the columns
/// are called.
pub const OPTIONS: [(&str, &str); 2] = [
    ("option names", "option_name"),
    ("option values", "option_value"),
];

/// A part of each option of `name=value`.
fn options(args: &[ArrayRef], of: impl Fn(&str) -> Option<&str>) -> Result<ArrayRef> {
    let options = lists(&args[0]);
    let items = cast(options.values(), &TEXT)?;
    let items = items.as_string_view();
    let mut made = ListBuilder::new(StringViewBuilder::new());
    for row in 0..options.len() {
        for at in range(options, row) {
            let text = items.is_valid(at).then(|| items.value(at));
            made.values().append_option(text.and_then(&of));
        }
        made.append(options.is_valid(row));
    }
    Ok(Arc::new(made.finish()))
}

/// The name of the function that reads where a row is, as it is written. Statements cannot write it.
pub const READ_PLACE: &str = "read place";

fn read_place(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let texts: &StringArray = args[0].as_string();
    let places = texts.iter().map(|text| text.map(place).transpose());
    Ok(Arc::new(places.collect::<Result<StringArray>>()?))
}

/// The place that a text names. As in PostgreSQL, what stands around it is passed over.
fn place(text: &str) -> Result<String> {
    let found = || {
        let (_, rest) = text.split_once('(')?;
        let (block, rest) = rest.split_once(',')?;
        let (row, _) = rest.split_once(')')?;
        let block: i64 = block.trim().parse().ok()?;
        // A block below 0 is that of the same bits.
        let block = u32::try_from(block).or_else(|_| i32::try_from(block).map(i32::cast_unsigned));
        let row: u16 = row.trim().parse().ok()?;
        Some(format!("({},{row})", block.ok()?))
    };
    let wrong = || {
        let message = format!("invalid input syntax for type tid: \"{text}\"");
        Error::coded("22P02", message).into()
    };
    found().ok_or_else(wrong)
}

/// The name of the function that gives an array of no numbers. Statements cannot write it.
pub const NO_NUMBERS: &str = "no numbers";

/// Functions that are true whatever they are asked.
const TRUE: [&str; 25] = [
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
    "has_foreign_data_wrapper_privilege",
    "has_parameter_privilege",
    "has_server_privilege",
    "has_tablespace_privilege",
    "pg_conversion_is_visible",
    "pg_opfamily_is_visible",
    "pg_statistics_obj_is_visible",
    "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible",
    "pg_ts_parser_is_visible",
    "pg_ts_template_is_visible",
];

/// Functions that are false whatever they are asked.
const NEVER: [&str; 5] = [
    "pg_is_other_temp_schema",
    "pg_is_wal_replay_paused",
    "pg_jit_available",
    // No changes are sent to others, and rows have no policies.
    "pg_relation_is_publishable",
    "row_security_active",
];

/// Functions about transactions and triggers by numbers that there are not: 0.
const ZERO: [&str; 3] = ["mxid_age", "pg_trigger_depth", "txid_current"];

/// Functions that give the sessions that another waits for. Who waits for whom is not told.
const NOBODY: [&str; 2] = ["pg_blocking_pids", "pg_safe_snapshot_blocking_pids"];

/// The number of the one encoding.
const UTF8: i32 = 6;

/// Functions about things that there are not, or that nobody says anything of: NULL.
const NOTHING: [&str; 21] = [
    "inet_client_addr",
    "inet_server_addr",
    "pg_current_logfile",
    "pg_describe_object",
    "pg_get_constraintdef",
    "pg_get_function_arg_default",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_function_sqlbody",
    "pg_get_functiondef",
    "pg_get_indexdef",
    "pg_get_partition_constraintdef",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_statisticsobjdef",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_get_viewdef",
    "pg_relation_filepath",
    "pg_tablespace_location",
];

pub(super) fn all() -> Vec<Own> {
    let text = |_: &[DataType]| Ok(TEXT);
    let truth = |_: &[DataType]| Ok(DataType::Boolean);
    let number = |_: &[DataType]| Ok(DataType::Int64);
    let texts = |types: &[DataType]| match types {
        [_] => Ok(vec![list_of(TEXT)]),
        _ => plan_err!("pg_options_to_table takes an array of options"),
    };
    let of_texts = |_: &[DataType]| Ok(list_of(TEXT));
    let [names, values] = OPTIONS.map(|(name, _)| name);
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
        Own::new(ROW_PLACE, |_| Ok(vec![DataType::UInt64]), text, row_place),
        Own::new(names, texts, of_texts, |args, _| {
            options(args, |text| {
                Some(text.split_once('=').map_or(text, |(name, _)| name))
            })
        }),
        Own::new(values, texts, of_texts, |args, _| {
            options(args, |text| text.split_once('=').map(|(_, value)| value))
        }),
        Own::new(READ_PLACE, one_text, text, read_place),
        Own::new(
            NO_NUMBERS,
            as_given,
            |_| Ok(list_of(DataType::Int64)),
            |_, rows| {
                let mut none = ListBuilder::new(Int64Builder::new());
                (0..rows).for_each(|_| none.append(true));
                Ok(Arc::new(none.finish()))
            },
        ),
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
    functions.push(nothing("shobj_description"));
    functions.extend(fixed());
    functions.extend(sizes());
    functions
}

/// Functions that say the same whatever they are asked.
fn fixed() -> impl Iterator<Item = Own> {
    let nothing = NOTHING.into_iter().map(move |name| {
        Own::new(
            name,
            as_given,
            |_| Ok(TEXT),
            |_, rows| Ok(Arc::new(StringArray::new_null(rows))),
        )
    });
    let never = NEVER.into_iter().map(move |name| {
        Own::new(
            name,
            as_given,
            |_| Ok(DataType::Boolean),
            |_, rows| Ok(Arc::new(BooleanArray::from(vec![false; rows]))),
        )
    });
    let encoding = Own::new(
        "getdatabaseencoding",
        as_given,
        |_| Ok(TEXT),
        |_, rows| Ok(Arc::new(StringArray::from(vec!["UTF8"; rows]))),
    );
    let number = Own::new(
        "pg_char_to_encoding",
        any,
        |_| Ok(DataType::Int32),
        |_, rows| Ok(Arc::new(Int32Array::from(vec![UTF8; rows]))),
    );
    let encodings = [encoding.or("pg_client_encoding"), number];
    let zero = ZERO.into_iter().map(move |name| {
        Own::new(
            name,
            as_given,
            |_| Ok(DataType::Int64),
            |_, rows| Ok(Arc::new(Int64Array::from(vec![0; rows]))),
        )
    });
    let nobody = NOBODY.into_iter().map(move |name| {
        Own::new(
            name,
            as_given,
            |_| Ok(list_of(DataType::Int32)),
            |_, rows| {
                let mut none = ListBuilder::new(Int32Builder::new());
                (0..rows).for_each(|_| none.append(true));
                Ok(Arc::new(none.finish()))
            },
        )
    });
    let fixed = nothing.chain(never).chain(encodings);
    fixed.chain(zero).chain(nobody)
}

/// What is not counted by table, index or database: nobody knows.
fn sizes() -> impl Iterator<Item = Own> {
    let names = [
        "pg_database_size",
        "pg_indexes_size",
        "pg_relation_size",
        "pg_stat_get_numscans",
        "pg_table_size",
        "pg_tablespace_size",
        "pg_total_relation_size",
        "inet_client_port",
        "inet_server_port",
    ];
    names.into_iter().map(|name| {
        Own::new(
            name,
            as_given,
            |_| Ok(DataType::Int64),
            |_, rows| Ok(Arc::new(Int64Array::new_null(rows))),
        )
    })
}

fn as_given(types: &[DataType]) -> Result<Vec<DataType>> {
    Ok(types.to_vec())
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
