//! The options of `create table ... with (...)`.

use messages::{Error, Result};
use sqlparser::ast::{CreateTableOptions, Expr, SqlOption, Value};

use crate::names::column_name;

/// Whether keys hold in a table with these options: `with (enforce_keys = false)` only declares them.
///
/// # Errors
/// For any other option.
pub fn keys_hold(options: &CreateTableOptions) -> Result<bool> {
    let options = match options {
        CreateTableOptions::None => return Ok(true),
        CreateTableOptions::With(options)
        | CreateTableOptions::Options(options)
        | CreateTableOptions::Plain(options)
        | CreateTableOptions::TableProperties(options) => options,
    };
    let mut hold = true;
    for option in options {
        hold = match option {
            SqlOption::KeyValue { key, value } if column_name(key) == "enforce_keys" => match value
            {
                Expr::Value(value) if value.value == Value::Boolean(true) => true,
                Expr::Value(value) if value.value == Value::Boolean(false) => false,
                _ => return Err(Error::coded("22023", "`enforce_keys` is true or false")),
            },
            SqlOption::KeyValue { key, .. } if is_storage(&column_name(key)) => hold,
            other => {
                return Err(Error::unsupported(format!(
                    "`{}` is not supported in `create table ... with`: the options are `enforce_keys` and PostgreSQL's storage parameters, which change nothing",
                    other.to_string().to_lowercase()
                )));
            }
        };
    }
    Ok(hold)
}

/// Whether an option only says how PostgreSQL stores, cleans or scans a table: what is in it does not depend on that.
fn is_storage(key: &str) -> bool {
    let others = [
        "fillfactor",
        "log_autovacuum_min_duration",
        "parallel_workers",
        "toast_tuple_target",
        "user_catalog_table",
    ];
    others.contains(&key) || key.starts_with("autovacuum_") || key.starts_with("vacuum_")
}
