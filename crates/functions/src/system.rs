//! Functions about types, this program, and its user.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::DataType;
use chrono::Utc;
use datafusion_common::{Result, plan_err};
use messages::names::{CATALOG, SCHEMA};
use messages::types::{standard_name, type_name};

use crate::arguments::{TEXT, UTC};
use crate::dates::zoned;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    let text = |_: &[DataType]| Ok(TEXT);
    vec![
        Own::new("typeof", one, text, |args, rows| {
            all_of(&type_name(args[0].data_type()), rows)
        }),
        Own::new("pg_typeof", one, text, |args, rows| {
            all_of(&standard_name(args[0].data_type()), rows)
        }),
        Own::constant("version", text, |_, rows| {
            all_of(
                concat!("PostgreSQL 15.0 (Atoll ", env!("CARGO_PKG_VERSION"), ")"),
                rows,
            )
        }),
        Own::constant("current_database", text, |_, rows| all_of(CATALOG, rows))
            .or("current_catalog"),
        // A store has one writer, and no other follows it.
        Own::constant(
            "pg_is_in_recovery",
            |_| Ok(DataType::Boolean),
            |_, rows| Ok(Arc::new(BooleanArray::from(vec![false; rows]))),
        ),
        Own::constant("pg_postmaster_start_time", instant, began).or("pg_conf_load_time"),
        // There are temporary tables, and no schema that has them.
        Own::constant(
            "pg_my_temp_schema",
            |_| Ok(DataType::Int64),
            |_, rows| Ok(Arc::new(Int64Array::from(vec![0; rows]))),
        ),
        Own::constant("current_schema", text, |_, rows| all_of(SCHEMA, rows)),
        Own::constant("current_user", text, |_, rows| all_of(&user(), rows))
            .or("session_user")
            .or("current_role"),
    ]
}

/// When the program began to answer statements.
static BEGAN: LazyLock<i64> = LazyLock::new(|| Utc::now().timestamp_micros());

/// Takes the time at which the program begins to answer statements, unless it has been taken.
pub(super) fn begin() {
    LazyLock::force(&BEGAN);
}

fn instant(_: &[DataType]) -> Result<DataType> {
    Ok(zoned())
}

fn began(_: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let instants = TimestampMicrosecondArray::from_value(*BEGAN, rows);
    Ok(Arc::new(instants.with_timezone(UTC)))
}

fn one(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_] => Ok(types.to_vec()),
        _ => plan_err!("typeof takes one value"),
    }
}

fn all_of(text: &str, rows: usize) -> Result<ArrayRef> {
    Ok(Arc::new(StringArray::from_iter_values(
        std::iter::repeat_n(text, rows),
    )))
}

/// The name of the operating system's user that runs the program.
pub fn user() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| CATALOG.to_string())
}
