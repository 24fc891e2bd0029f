//! Functions that give several rows: in `from` and in the select list they are `unnest` of an array of their values.
//!
//! `generate_series` of constants stands in `from` as a table function, which makes its values one by one.

use std::ops::ControlFlow;

use functions::lists::names;
use functions::{acl, catalog, json};
use messages::numbers::item_named;
use messages::tags::tagged;
use messages::{Error, Result};
use sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, TableAlias, TableAliasColumnDef,
    TableFactor, Value, VisitorMut,
};
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::Tokenizer;

use crate::call::call;
use crate::dialect::{DIALECT, parser};
use crate::flow::flow;
use crate::names::{PG_CATALOG, column_name};
use crate::rewrite::named::placed;
use crate::rewrite::series::{SERIES, whole_arguments};
use crate::rewrite::special;
use crate::rewrite::tokens::ROWS_FROM;

/// What a function gives rows of: arrays, each for a column.
struct Rows {
    /// The arrays, and what their columns are called.
    columns: Vec<(Expr, String)>,
    called: String,
}

/// The rows of the function `name`, if it is one that gives several.
fn rows(name: &str, args: &[FunctionArg]) -> Option<Rows> {
    let args = placed(name, args)?;
    let one = |function: &str, args: Vec<Expr>| vec![(call(function, args), name.to_string())];
    let columns = match (name, args.len()) {
        (SERIES, 2 | 3) => one(names::SERIES, args),
        ("generate_subscripts", 2 | 3) => one(names::SUBSCRIPTS, args),
        ("_pg_expandarray", 1) => one(names::EXPANDED, args),
        ("aclexplode", 1) => {
            let of = |(function, column): (&str, &str)| {
                (call(function, args.clone()), column.to_string())
            };
            acl::COLUMNS.map(of).into()
        }
        ("pg_options_to_table", 1) => {
            let of = |(function, column): (&str, &str)| {
                (call(function, args.clone()), column.to_string())
            };
            catalog::OPTIONS.map(of).into()
        }
        // No table has partitions.
        ("pg_partition_ancestors", 1) => one(catalog::NO_NUMBERS, args),
        (names::PLACES, 1) => one(names::ORDINALS, args),
        ("regexp_matches", 2 | 3) => one(names::MATCHES, args),
        ("regexp_split_to_table", 2 | 3) => one("regexp_split_to_array", args),
        ("string_to_table", 2 | 3) => one("string_to_array", args),
        ("jsonb_path_query" | "jsonb_path_query_tz", 2..=4) => one(json::path::QUERY, args),
        (ROWS_FROM, _) => {
            let mut all = Vec::new();
            for arg in args {
                let Expr::Function(function) = arg else {
                    return None;
                };
                let FunctionArguments::List(list) = &function.args else {
                    return None;
                };
                let own = name_of(&function.name)?;
                let plain = list.args.iter().map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                    _ => None,
                });
                if own == "unnest" {
                    let plain = plain.collect::<Option<Vec<Expr>>>()?;
                    all.extend(plain.into_iter().map(|expr| (expr, own.clone())));
                } else {
                    all.extend(rows(&own, &list.args)?.columns);
                }
            }
            all
        }
        (_, 1) => {
            let (prefix, columns) = of_json(name)?;
            let of = |(function, column): &(&str, &str)| {
                let own = if column.is_empty() { name } else { column };
                let values = call(&format!("{prefix}{function}"), args.clone());
                (values, own.to_string())
            };
            columns.iter().map(of).collect()
        }
        _ => return None,
    };
    Some(Rows {
        columns,
        called: name.to_string(),
    })
}

/// The columns of a function over JSON that gives rows, and the prefix of its kind of JSON.
fn of_json(name: &str) -> Option<(&'static str, &'static [(&'static str, &'static str)])> {
    let (prefix, rest) = match name.strip_prefix("jsonb") {
        Some(rest) => ("jsonb", rest),
        None => ("json", name.strip_prefix("json")?),
    };
    let known = json::TABLES.iter().find(|(own, _)| *own == rest);
    known.map(|(_, columns)| (prefix, *columns))
}

fn name_of(name: &ObjectName) -> Option<String> {
    match &name.0[..] {
        [part] => part.as_ident().map(column_name),
        _ => None,
    }
}

/// `expr` as an array of one dimension, which is what `unnest` of an array gives.
fn flat(expr: Expr) -> Expr {
    let as_it_is = match &expr {
        Expr::Function(function) => matches!(
            name_of(&function.name).as_deref(),
            Some(
                names::VALUES
                    | names::SERIES
                    | names::SUBSCRIPTS
                    | names::MATCHES
                    | names::RECORDS
                    | json::populate::ITEMS
            )
        ),
        _ => false,
    };
    if as_it_is {
        expr
    } else {
        call(names::VALUES, vec![expr])
    }
}

/// The array whose items a function gives as rows, where they have one column.
pub(super) fn values(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let name = name_of(&function.name)?;
    if name == "unnest" {
        return match &list.args[..] {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] => Some(arg.clone()),
            _ => None,
        };
    }
    // What it finds for a row are arrays, which have no numbers.
    if name == "regexp_matches" {
        return None;
    }
    let mut columns = rows(&name, &list.args)?.columns.into_iter();
    match (columns.next(), columns.next()) {
        (Some((values, _)), None) => Some(values),
        _ => None,
    }
}

/// The arrays of a function whose rows have several columns, and what these are called; none of others.
pub(super) fn columns(name: &str, args: &[FunctionArg]) -> Vec<(Expr, String)> {
    let found = rows(name, args).map(|rows| rows.columns);
    found.filter(|all| all.len() > 1).unwrap_or_default()
}

/// What the columns of such a function are called.
pub(super) fn names_of_columns(name: &str) -> Option<Vec<&'static str>> {
    let of = |columns: &[(&'static str, &'static str)]| {
        let names = columns.iter().map(|(_, column)| *column);
        names.collect::<Vec<_>>()
    };
    match name {
        "aclexplode" => Some(of(&acl::COLUMNS)),
        "pg_options_to_table" => Some(of(&catalog::OPTIONS)),
        name => Some(of(of_json(name)?.1)).filter(|names| names.len() > 1),
    }
}

/// A function that gives several rows, in the select list: `unnest` of their values, which are rows themselves where there are
/// several columns.
///
/// # Errors
/// For `unnest` of several arrays.
pub(super) fn function(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &function.args else {
        return Ok(None);
    };
    let Some(name) = name_of(&function.name) else {
        return Ok(None);
    };
    let values = match (&name[..], &list.args[..]) {
        ("unnest", [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))]) => arg.clone(),
        ("unnest", [_, _, ..]) => {
            return Err(Error::unsupported(
                "unnest of several arrays stands in `from` only, as in PostgreSQL",
            ));
        }
        _ => match rows(&name, &list.args) {
            None => return Ok(None),
            Some(rows) => match <[(Expr, String); 1]>::try_from(rows.columns) {
                Ok([(values, _)]) => values,
                Err(columns) => {
                    let fields = columns.into_iter().flat_map(|(values, name)| {
                        let name = Value::SingleQuotedString(name);
                        [Expr::Value(name.with_empty_span()), values]
                    });
                    call(names::RECORDS, fields.collect())
                }
            },
        },
    };
    let mut rows = function.clone();
    if name != "unnest" {
        rows.name = ObjectName::from(vec![Ident::new("unnest")]);
    }
    if let FunctionArguments::List(list) = &mut rows.args {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(flat(values)))];
    }
    Ok(Some(Expr::Function(rows)))
}

/// Rewrites functions that stand in `from`.
pub(super) struct Tables;

impl VisitorMut for Tables {
    type Break = Box<Error>;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Box<Error>> {
        flow(table(factor))
    }
}

/// `unnest(a, b) with ordinality`, `generate_series(1, t.a)`, `json_each(j)` and its kind.
///
/// # Errors
/// For columns that have no names.
fn table(factor: &mut TableFactor) -> Result<()> {
    if let TableFactor::Table { name, args, .. } = factor
        && args.is_some()
    {
        without_catalog(name);
        if keywords(name) {
            *args = None;
            return Ok(());
        }
    }
    let (rows, alias, numbered) = match factor {
        TableFactor::UNNEST {
            alias,
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality,
        } => {
            let called = "unnest".to_string();
            let columns = std::mem::take(array_exprs).into_iter();
            let columns = columns.map(|expr| (expr, called.clone())).collect();
            (Rows { columns, called }, alias.take(), *with_ordinality)
        }
        TableFactor::Table {
            name,
            args: Some(args),
            alias,
            with_ordinality,
            ..
        } => {
            if let Some(records) = recorded(name, &args.args, alias, *with_ordinality)? {
                *factor = records;
                return Ok(());
            }
            if let Some(row) = single(name, &args.args, alias.as_ref())? {
                *factor = row;
                return Ok(());
            }
            if !*with_ordinality && streamed(name, &mut args.args, alias) {
                return Ok(());
            }
            match name_of(name).and_then(|name| rows(&name, &args.args)) {
                Some(rows) => (rows, alias.take(), *with_ordinality),
                None => return Ok(()),
            }
        }
        TableFactor::Function {
            name,
            args,
            alias,
            with_ordinality,
            ..
        } => {
            without_catalog(name);
            if let Some(records) = recorded(name, args, alias, *with_ordinality)? {
                *factor = records;
                return Ok(());
            }
            if !*with_ordinality && streamed(name, args, alias) {
                return Ok(());
            }
            match name_of(name).and_then(|name| rows(&name, args)) {
                Some(rows) => (rows, alias.take(), *with_ordinality),
                None => return Ok(()),
            }
        }
        _ => return Ok(()),
    };
    *factor = unnested(rows, alias, numbered)?;
    Ok(())
}

/// `json_to_recordset(j) as x(a int, b text)` and its kind: `unnest` of arrays, one for each column, if it is such a call.
///
/// # Errors
/// For columns without types, and for types that are not read from JSON.
fn recorded(
    name: &ObjectName,
    args: &[FunctionArg],
    alias: &mut Option<TableAlias>,
    numbered: bool,
) -> Result<Option<TableFactor>> {
    let Some(own) = name_of(name) else {
        return Ok(None);
    };
    let Some((_, prefix, all)) = RECORDS.iter().find(|(called, ..)| *called == own) else {
        return Ok(None);
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(json))] = args else {
        return Ok(None);
    };
    let listed = alias.as_mut().filter(|alias| !alias.columns.is_empty());
    let Some(alias) = listed else {
        return Err(Error::coded(
            "42601",
            "a column definition list is required for functions returning \"record\"",
        ));
    };
    let mut columns = Vec::with_capacity(alias.columns.len());
    for column in &mut alias.columns {
        let Some(data_type) = column.data_type.take() else {
            return Err(Error::coded(
                "42601",
                "a column definition list is required for functions returning \"record\"",
            ));
        };
        let key = column_name(&column.name);
        let values = values_of(&own, prefix, *all, (json, &key), data_type)?;
        columns.push((values, key));
    }
    let rows = Rows {
        columns,
        called: own,
    };
    unnested(rows, Some(alias.clone()), numbered).map(Some)
}

/// An array of the values that records of JSON have under a key, of the type of a column.
fn values_of(
    own: &str,
    prefix: &str,
    all: bool,
    (json, key): (&Expr, &str),
    data_type: DataType,
) -> Result<Expr> {
    let json_type = matches!(data_type, DataType::JSON | DataType::JSONB);
    if is_odd(&data_type) {
        return Err(Error::unsupported(format!(
            "columns of type {} are not supported for {own}: name a type without a length, or json, and cast it",
            data_type.to_string().to_lowercase()
        )));
    }
    let whole = matches!(data_type, DataType::Array(_) | DataType::Custom(..));
    let function = match (json_type || whole, all) {
        (true, true) => "parts of records",
        (true, false) => "part of record",
        (false, true) => "texts of records",
        (false, false) => "text of record",
    };
    let key = special::text(key);
    let values = call(&format!("{prefix} {function}"), vec![json.clone(), key]);
    if matches!(data_type, DataType::Text) {
        return Ok(values);
    }
    let is_array = match &data_type {
        DataType::Array(_) => true,
        // PostgreSQL's own name of an array.
        DataType::Custom(name, _) => name_of(name).is_some_and(|own| item_named(&own).is_some()),
        _ => false,
    };
    let arrays = DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(data_type), None));
    let cast = |expr: Expr| Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type: arrays.clone(),
        array: false,
        format: None,
    };
    if !whole {
        return Ok(cast(values));
    }
    // Arrays and composite types are read from the parts of JSON, not from its text.
    let null = Expr::value(Value::Null);
    let values = call(json::populate::ITEMS, vec![cast(null), values]);
    // What is to be tested of a type that was created is tested by a cast.
    Ok(if is_array { values } else { cast(values) })
}

/// Whether values of a type would not be all that the type says.
fn is_odd(data_type: &DataType) -> bool {
    match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, None)) => {
            matches!(item.as_ref(), DataType::Custom(..)) || is_odd(item)
        }
        DataType::Array(_) => true,
        DataType::Character(length) | DataType::Char(length) => length.is_some(),
        DataType::CharacterVarying(length)
        | DataType::CharVarying(length)
        | DataType::Varchar(length) => length.is_some(),
        _ => false,
    }
}

/// The functions that give records, their kind of JSON, and whether they give several.
const RECORDS: [(&str, &str, bool); 4] = [
    ("json_to_record", "json", false),
    ("json_to_recordset", "json", true),
    ("jsonb_to_record", "jsonb", false),
    ("jsonb_to_recordset", "jsonb", true),
];

/// Whether this is `pg_get_keywords()` or its kin, which are tables of `pg_catalog` here; it gets its whole name.
fn keywords(name: &mut ObjectName) -> bool {
    let tables = ["pg_get_keywords", "pg_show_all_settings"];
    let own = name_of(name).is_some_and(|name| tables.contains(&name.as_str()));
    if own {
        let schema = ObjectNamePart::Identifier(Ident::new(PG_CATALOG));
        name.0.insert(0, schema);
    }
    own
}

/// Takes `pg_catalog` away from the name of a function.
fn without_catalog(name: &mut ObjectName) {
    if let [schema, _] = &name.0[..]
        && schema.as_ident().map(column_name).as_deref() == Some(PG_CATALOG)
    {
        name.0.remove(0);
    }
}

/// Functions of one value that clients write in `from`.
const SINGLE: [&str; 4] = [
    "current_setting",
    "parse_ident",
    "regexp_split_to_array",
    "string_to_array",
];

/// `string_to_array(a, ',') as s` as a table of one row, if it is such a call.
fn single(
    name: &ObjectName,
    args: &[FunctionArg],
    alias: Option<&TableAlias>,
) -> Result<Option<TableFactor>> {
    let Some(own) = name_of(name).filter(|own| SINGLE.contains(&own.as_str())) else {
        return Ok(None);
    };
    let table = alias.map_or_else(|| Ident::with_quote('"', own), |alias| alias.name.clone());
    let column = alias.and_then(|alias| alias.columns.first());
    let column = column.map_or(&table, |column| &column.name);
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let text = format!(
        "(select {name}({}) as {column}) as {table}",
        args.join(", ")
    );
    let tokens = Tokenizer::new(&DIALECT, &text).tokenize_with_location();
    let tokens = tokens.map_err(|e| Error::from(ParserError::from(e)))?;
    Ok(Some(parser(tokens).parse_table_factor()?))
}

fn unnested(rows: Rows, alias: Option<TableAlias>, numbered: bool) -> Result<TableFactor> {
    let Rows { columns, called } = rows;
    if numbered && called == "regexp_matches" {
        return Err(Error::unsupported(
            "`regexp_matches(...) with ordinality` is not supported",
        ));
    }
    let (exprs, names): (Vec<Expr>, Vec<String>) = columns.into_iter().unzip();
    let alias = with_columns(alias, names, numbered, called)?;
    let mut all: Vec<Expr> = exprs.iter().cloned().map(flat).collect();
    if numbered {
        all.push(flat(call(names::ORDINALS, exprs)));
    }
    Ok(TableFactor::UNNEST {
        alias: Some(alias),
        array_exprs: all,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    })
}

/// Whether this is a `generate_series` of constants, which are then numbers; it gets its names.
fn streamed(
    name: &ObjectName,
    args: &mut Vec<FunctionArg>,
    alias: &mut Option<TableAlias>,
) -> bool {
    if name_of(name).as_deref() != Some(SERIES) {
        return false;
    }
    let Some(numbers) = whole_arguments(args) else {
        return false;
    };
    *args = numbers;
    let called = Ident::with_quote('"', SERIES);
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: called,
        columns: vec![],
        at: None,
    });
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef {
            name: alias.name.clone(),
            data_type: None,
        });
    }
    true
}

/// The alias with a name for each column: as it says, otherwise the function's own.
fn with_columns(
    alias: Option<TableAlias>,
    names: Vec<String>,
    numbered: bool,
    called: String,
) -> Result<TableAlias> {
    let given = alias.is_some();
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', called),
        columns: vec![],
        at: None,
    });
    let single = names.len() == 1 && given;
    let mut all: Vec<Ident> = names
        .into_iter()
        .map(|name| Ident::with_quote('"', name))
        .collect();
    if single {
        // A function of one column gives it the name of the table.
        all[0] = alias.name.clone();
    }
    if numbered {
        all.push(Ident::new("ordinality"));
    }
    if alias.columns.len() > all.len() {
        return Err(Error::coded(
            "42P10",
            format!(
                "table \"{}\" has {} columns available but {} columns specified",
                alias.name.value,
                all.len(),
                alias.columns.len()
            ),
        ));
    }
    for name in all.into_iter().skip(alias.columns.len()) {
        let taken = |column: &TableAliasColumnDef| column_name(&column.name) == column_name(&name);
        // Columns of one name: those behind the first can be had by `*` alone.
        let name = if alias.columns.iter().any(taken) {
            tagged(&name.value, alias.columns.len())
        } else {
            name
        };
        alias.columns.push(TableAliasColumnDef {
            name,
            data_type: None,
        });
    }
    Ok(alias)
}
