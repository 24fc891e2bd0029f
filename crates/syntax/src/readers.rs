//! Calls that read files in a query: `read_csv('file', delim=';', ...)` and the like.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use arrow::datatypes::DataType;
use functions::lists::names::{MAKE, STRUCT};
use ingest::{Compression, Format, Options};
use messages::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    Statement, TableFactor, UnaryOperator, Value, VisitorMut,
};

use crate::walk::WalkMut;

/// Finds the names and types of the columns in a list such as `zip varchar, n int`.
pub(crate) type ColumnTypes<'t> = &'t dyn Fn(&str) -> Result<Vec<(String, DataType)>>;

/// Functions that read files, and the format that each is for.
const FUNCTIONS: [(&str, Format); 9] = [
    ("read_csv", Format::Csv),
    ("read_csv_auto", Format::Csv),
    ("read_json", Format::Json),
    ("read_json_auto", Format::Json),
    ("read_ndjson", Format::Json),
    ("read_ndjson_auto", Format::Json),
    ("read_parquet", Format::Parquet),
    ("parquet_scan", Format::Parquet),
    ("read_arrow", Format::Arrow),
];

/// Whether `name` is one of the functions that read files.
pub(crate) fn reads(name: &ObjectName) -> bool {
    function(name).is_some()
}

fn function(name: &ObjectName) -> Option<(&'static str, Format)> {
    let called = name.to_string().to_lowercase();
    FUNCTIONS.into_iter().find(|(known, _)| *known == called)
}

/// Options of all formats.
const COMMON: &str = "compression, hive_partitioning, types";
/// Options of text files.
const TEXT: &str = "delim, header, quote, escape, nullstr, names, types, dateformat, all_varchar, compression, hive_partitioning";

/// A call of one of these functions: what it reads, and how.
#[derive(Clone, Debug)]
pub struct Call {
    /// The paths and patterns.
    pub paths: Vec<PathBuf>,
    /// How the files are read.
    pub options: Options,
}

/// Replaces each call such as `read_csv(...)` in `statement` by a table named after the text of the call, and returns
/// the call behind each of these names.
pub fn take(types: ColumnTypes<'_>, statement: &mut Statement) -> Result<HashMap<String, Call>> {
    let mut taking = Taking {
        types,
        calls: HashMap::new(),
    };
    match statement.walk_mut(&mut taking) {
        ControlFlow::Continue(()) => Ok(taking.calls),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Taking<'t> {
    types: ColumnTypes<'t>,
    calls: HashMap<String, Call>,
}

impl VisitorMut for Taking<'_> {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table {
            name, args: given, ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let Some(args) = given else {
            return ControlFlow::Continue(());
        };
        let Some((function, format)) = function(name) else {
            return ControlFlow::Continue(());
        };
        let list: Vec<String> = args.args.iter().map(ToString::to_string).collect();
        let text = format!("{function}({})", list.join(", "));
        match call(self.types, function, format, &args.args) {
            Ok(call) => self.calls.insert(text.clone(), call),
            Err(error) => return ControlFlow::Break(error),
        };
        *name = ObjectName::from(vec![Ident::with_quote('"', text)]);
        *given = None;
        ControlFlow::Continue(())
    }
}

fn call(
    types: ColumnTypes<'_>,
    function: &str,
    format: Format,
    args: &[FunctionArg],
) -> Result<Call> {
    let mut args = args.iter();
    let usage = || {
        Error::coded(
            "42883",
            format!(
                "{function} takes the path of a file, a pattern, or a list of them, and then options by name, such as {function}('file', compression='gzip')"
            ),
        )
    };
    let first = match args.next() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) => first,
        _ => return Err(usage()),
    };
    let paths: Vec<PathBuf> = match texts(first) {
        Some(paths) if !paths.is_empty() => paths.into_iter().map(PathBuf::from).collect(),
        _ => return Err(usage()),
    };
    let mut options = Options {
        format: Some(format),
        ..Options::default()
    };
    for arg in args {
        let (name, value) = match arg {
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(value),
                ..
            } => (name.value.to_lowercase(), value),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            })) => match left.as_ref() {
                Expr::Identifier(name) => (name.value.to_lowercase(), right.as_ref()),
                _ => return Err(usage()),
            },
            _ => return Err(usage()),
        };
        set(types, &mut options, function, &name, value)?;
    }
    if options.format == Some(Format::Csv) && tbl(&paths) {
        options.format = Some(Format::Tbl);
    }
    options.check()?;
    Ok(Call { paths, options })
}

/// Whether all files come from TPC-H's generator, whose lines end with a delimiter.
fn tbl(paths: &[PathBuf]) -> bool {
    let tbl = |path: &PathBuf| Format::of_name(&path.to_string_lossy()) == Some(Format::Tbl);
    paths.iter().all(tbl)
}

fn set(
    types: ColumnTypes<'_>,
    options: &mut Options,
    function: &str,
    name: &str,
    value: &Expr,
) -> Result<()> {
    let text_file = options.format == Some(Format::Csv);
    let wrong = |wanted: &str| {
        Error::coded(
            "22023",
            format!("{function}: {name} takes {wanted}, not {value}"),
        )
    };
    let byte = || character(value).ok_or_else(|| wrong("one ASCII character"));
    let flag = || boolean(value).ok_or_else(|| wrong("true or false"));
    match name {
        "delim" | "delimiter" | "sep" if text_file => {
            options.delimiter = Some(byte()?.ok_or_else(|| wrong("one ASCII character"))?);
        }
        "quote" if text_file => options.quote = Some(byte()?),
        "escape" if text_file => options.escape = byte()?,
        "header" if text_file => options.header = Some(flag()?),
        "nullstr" | "null" | "nulls" if text_file => {
            options.nulls = texts(value).ok_or_else(|| wrong("a string or a list of strings"))?;
        }
        "names" if text_file => {
            options.names = texts(value).ok_or_else(|| wrong("a list of strings"))?;
        }
        "dateformat" | "date_format" if text_file => {
            let form = text(value).ok_or_else(|| wrong("a string"))?;
            options.dates = Some(form.parse()?);
        }
        "all_varchar" if text_file => options.all_text = flag()?,
        "types" | "dtypes" | "column_types" => options.types = declared(types, value)?,
        "columns" if text_file => {
            options.types = declared(types, value)?;
            options.names = options.types.iter().map(|(name, _)| name.clone()).collect();
        }
        "compression" => {
            let named = text(value).ok_or_else(|| wrong("a string"))?;
            options.compression = match named.as_str() {
                "auto" => None,
                named => Some(Compression::named(named)?),
            };
        }
        "hive_partitioning" | "hive" => options.hive = Some(flag()?),
        _ => {
            let known = if text_file { TEXT } else { COMMON };
            return Err(Error::coded(
                "22023",
                format!("{function} has no option {name}; it has: {known}"),
            ));
        }
    }
    Ok(())
}

/// `{'zip': 'varchar'}` or `'zip varchar, n int'`.
fn declared(types: ColumnTypes<'_>, value: &Expr) -> Result<Vec<(String, DataType)>> {
    let usage = "types are given as {'column': 'type', ...} or 'column type, ...'";
    let list = match elements(value, STRUCT) {
        Some(pairs) => {
            let column = |pair: &[&Expr]| {
                let (key, value) = (text(pair.first()?)?, text(pair.get(1)?)?);
                Some(format!("\"{}\" {value}", key.replace('"', "\"\"")))
            };
            let columns: Option<Vec<String>> = pairs.chunks(2).map(column).collect();
            columns
                .ok_or_else(|| Error::coded("42883", usage))?
                .join(", ")
        }
        None => text(value).ok_or_else(|| Error::coded("42883", usage))?,
    };
    if list.trim().is_empty() {
        return Ok(vec![]);
    }
    types(&list)
}

pub(super) fn value_of(expr: &Expr) -> Option<&Value> {
    match expr {
        Expr::Value(value) => Some(&value.value),
        Expr::Nested(inner) => value_of(inner),
        _ => None,
    }
}

pub(super) fn text(expr: &Expr) -> Option<String> {
    match value_of(expr)? {
        Value::SingleQuotedString(text)
        | Value::EscapedStringLiteral(text)
        | Value::DollarQuotedString(sqlparser::ast::DollarQuotedString { value: text, .. }) => {
            Some(text.clone())
        }
        _ => None,
    }
}

/// A string, or a list of strings.
fn texts(expr: &Expr) -> Option<Vec<String>> {
    match elements(expr, MAKE) {
        Some(list) => list.into_iter().map(text).collect(),
        None => text(expr).map(|one| vec![one]),
    }
}

/// What stands in `[...]` or `{...}`, which is a call by now, of the function `called`.
fn elements<'e>(expr: &'e Expr, called: &str) -> Option<Vec<&'e Expr>> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let name = function.name.0.last()?.as_ident()?;
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let elements = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(element)) => Some(element),
        _ => None,
    });
    (name.value == called).then(|| elements.collect()).flatten()
}

/// One ASCII character; `Some(None)` for the empty string.
fn character(expr: &Expr) -> Option<Option<u8>> {
    let text = text(expr)?;
    match text.as_bytes() {
        [] => Some(None),
        b"\\t" => Some(Some(b'\t')),
        [byte] if byte.is_ascii() => Some(Some(*byte)),
        _ => None,
    }
}

fn boolean(expr: &Expr) -> Option<bool> {
    if let Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr,
    } = expr
    {
        return boolean(expr).map(|value| !value);
    }
    match value_of(expr)? {
        Value::Boolean(value) => Some(*value),
        Value::Number(number, _) if *number == "1" => Some(true),
        Value::Number(number, _) if *number == "0" => Some(false),
        Value::SingleQuotedString(text) => match text.to_lowercase().as_str() {
            "true" | "on" | "1" => Some(true),
            "false" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
