//! DataFusion's errors as errors of statements.
//!
//! DataFusion wraps errors in layers ("Arrow error: External error: ..."), appends advice about its own
//! settings, and asks for bug reports. `translate` takes the layers off, sorts what is inside into
//! [`Error`], and keeps only the sentences that help the person who typed the statement.

use std::collections::HashSet;

use arrow::error::ArrowError;
use datafusion_common::DataFusionError;
use datafusion_common::{Column, SchemaError};
use parquet::errors::ParquetError;
use sqlparser::parser::ParserError;

use crate::calls;
use crate::codes;
use crate::error::{Error, Position};
use crate::hidden::is_hidden;
use crate::near::nearest;
use crate::nearest::unknown_function;
use crate::overflow;
use crate::plain;
use crate::planner_words;
use crate::tags::shown;

impl From<DataFusionError> for Error {
    fn from(e: DataFusionError) -> Error {
        translate(&e)
    }
}

impl From<ArrowError> for Error {
    fn from(e: ArrowError) -> Error {
        arrow(&e)
    }
}

impl From<ParserError> for Error {
    fn from(e: ParserError) -> Error {
        parser(&e)
    }
}

impl From<Error> for DataFusionError {
    fn from(e: Error) -> DataFusionError {
        DataFusionError::External(Box::new(e))
    }
}

/// How a message about the memory limit begins: operators wrap it in sentences of their own.
pub const MEMORY_LIMIT: &str = "memory limit";

/// How the planner says that the sides of `between` do not go together.
const COERCED: &str = "Failed to coerce types ";

/// The innermost cause of `e` as an [`Error`].
pub(crate) fn translate(e: &DataFusionError) -> Error {
    match e {
        DataFusionError::Context(_, inner) => translate(inner),
        DataFusionError::Shared(inner) => translate(inner),
        DataFusionError::Collection(all) => match all.first() {
            Some(first) => translate(first),
            None => failed("failed without a reason".into()),
        },
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let place = diagnostic.span.map(|span| Position {
                line: span.start.line,
                column: span.start.column,
            });
            translate(inner).at(place)
        }
        DataFusionError::External(inner) => external(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => arrow(inner),
        DataFusionError::IoError(inner) => match inner.get_ref() {
            Some(cause) => external(cause),
            None => failed(inner.to_string()),
        },
        DataFusionError::SQL(inner, _) => parser(inner),
        DataFusionError::NotImplemented(message) if message.starts_with("Unnest should be") => {
            Error::unsupported(
                "set-returning functions are not supported here: they stand in the select list and in `from`",
            )
        }
        DataFusionError::NotImplemented(message) => match no_type(message) {
            Some(error) => error,
            None => Error::unsupported(format!("not supported: {}", tidy(message))),
        },
        DataFusionError::SchemaError(inner, _) => schema(inner),
        DataFusionError::ResourcesExhausted(message) => memory(message),
        DataFusionError::ExecutionJoin(join) => {
            if join.is_cancelled() {
                Error::Cancelled
            } else {
                Error::Defect {
                    message: tidy(&join.to_string()),
                }
            }
        }
        // It is the planner that takes types which do not go together for a defect here.
        DataFusionError::Internal(message) if message.contains(COERCED) => plan(message),
        DataFusionError::Internal(message) => Error::Defect {
            message: tidy(message),
        },
        DataFusionError::Plan(message) | DataFusionError::Configuration(message) => plan(message),
        DataFusionError::Execution(message) => execution(message),
        // Of parts of DataFusion that are not in the program.
        other => execution(&other.to_string()),
    }
}

/// An [`Error`] that DataFusion carried, or any other error, translated.
pub(crate) fn external(e: &(dyn std::error::Error + Send + Sync + 'static)) -> Error {
    if let Some(ours) = e.downcast_ref::<Error>() {
        return ours.clone();
    }
    if let Some(inner) = e.downcast_ref::<DataFusionError>() {
        return translate(inner);
    }
    if let Some(inner) = e.downcast_ref::<ArrowError>() {
        return arrow(inner);
    }
    if let Some(inner) = e.downcast_ref::<ParquetError>() {
        return failed(tidy(strip(&inner.to_string(), "Parquet error: ")));
    }
    execution(&e.to_string())
}

fn arrow(e: &ArrowError) -> Error {
    match e {
        ArrowError::ExternalError(inner) => external(inner.as_ref()),
        ArrowError::DivideByZero => uncomputable("division by zero".into()),
        ArrowError::ArithmeticOverflow(message) => uncomputable(overflow::message(&tidy(strip(
            message,
            "Overflow happened on: ",
        )))),
        ArrowError::CastError(message) => match unreadable(message) {
            Some(message) => uncomputable(message),
            None => execution(message),
        },
        ArrowError::ComputeError(message) | ArrowError::ParseError(message) => execution(message),
        ArrowError::InvalidArgumentError(message) | ArrowError::SchemaError(message) => {
            execution(message)
        }
        ArrowError::CsvError(message) => failed(tidy(message)),
        ArrowError::JsonError(message) => failed(tidy(message)),
        ArrowError::ParquetError(message) | ArrowError::IpcError(message) => failed(tidy(message)),
        ArrowError::IoError(message, inner) => match inner.get_ref() {
            Some(cause) => external(cause),
            None => failed(tidy(message)),
        },
        ArrowError::NotYetImplemented(message) => {
            Error::unsupported(format!("not supported: {}", tidy(message)))
        }
        ArrowError::MemoryError(message) => Error::Memory {
            message: tidy(message),
        },
        other => failed(tidy(&other.to_string())),
    }
}

/// PostgreSQL's words for a text that is read as a number or a truth value and says none.
fn unreadable(message: &str) -> Option<String> {
    let rest = message
        .strip_prefix("Cannot cast string '")
        .or_else(|| message.strip_prefix("Cannot cast value '"))?;
    let (text, to) = rest.rsplit_once("' to value of ")?;
    let title = match to.strip_suffix(" type")? {
        "Int8" | "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        "Float32" => "real",
        "Float64" => "double precision",
        "Boolean" => "boolean",
        decimal if decimal.starts_with("Decimal") => "numeric",
        _ => return None,
    };
    let digits = text.trim().trim_start_matches(['-', '+']);
    let (whole, behind) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = !digits.is_empty() && all_digits(whole) && all_digits(behind);
    match title {
        "smallint" | "integer" | "bigint" if is_number && !digits.contains('.') => {
            Some(format!("value \"{text}\" is out of range for type {title}"))
        }
        "numeric" if is_number => Some("numeric field overflow".into()),
        // What PostgreSQL has, and decimals here have not.
        "numeric" if matches!(digits.to_lowercase().as_str(), "nan" | "inf" | "infinity") => {
            Some(format!(
                "\"{text}\" is not supported for type numeric of up to 38 digits: use one of more, such as numeric(50,10), or double precision"
            ))
        }
        _ => Some(format!("invalid input syntax for type {title}: \"{text}\"")),
    }
}

fn parser(e: &ParserError) -> Error {
    match e {
        ParserError::RecursionLimitExceeded => Error::too_deep(),
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            let (message, position) = split_position(strip(message, "sql parser error: "));
            // Of a table that an `insert` has an alias for.
            if message.starts_with("invalid reference to FROM-clause entry") {
                return Error::coded("42P01", message).at(position);
            }
            Error::Syntax {
                message: lower_first(&message),
                position,
            }
        }
    }
}

/// Takes " at Line: 1, Column: 8" off the end of a message.
fn split_position(message: &str) -> (String, Option<Position>) {
    let Some(start) = message.rfind(" at Line: ") else {
        return (tidy(message), None);
    };
    let mut numbers = message[start..]
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse::<u64>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(line), Some(column)) if line > 0 => {
            (tidy(&message[..start]), Some(Position { line, column }))
        }
        _ => (tidy(&message[..start]), None),
    }
}

/// The error for a type of which the planner knows nothing but the name.
fn no_type(message: &str) -> Option<Error> {
    let name = message.strip_prefix("Unsupported SQL type ")?.trim();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | ' ');
    let name = name.split('\n').next().unwrap_or(name);
    name.chars().all(plain).then(|| {
        let name = name.trim_matches('"').to_lowercase();
        Error::coded("42704", format!("type \"{name}\" does not exist"))
    })
}

fn schema(e: &SchemaError) -> Error {
    match e {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let (mut qualified, mut plain) = (Vec::new(), Vec::new());
            // An output column that has a tag is none of those that the name may mean.
            let is_other = |c: &&Column| {
                let is_tagged = c.name != field.name && shown(&c.name) == field.name;
                !is_hidden(&c.name) && !is_tagged
            };
            for valid in valid_fields.iter().filter(is_other) {
                qualified.push(flat(valid));
                plain.push(shown(&valid.name).to_string());
            }
            let mut candidates = nearest(&field.name, plain);
            if candidates.is_empty() {
                // Nothing is near: the first few columns tell at least what there is.
                let mut seen = HashSet::new();
                qualified.retain(|name| seen.insert(name.clone()));
                qualified.truncate(12);
                candidates = qualified;
            }
            Error::UnknownColumn {
                name: flat(field),
                candidates,
                relation: None,
                position: field.spans().first().map(|span| Position {
                    line: span.start.line,
                    column: span.start.column,
                }),
            }
        }
        SchemaError::AmbiguousReference { field } => Error::coded(
            "42702",
            format!(
                "column \"{0}\" is ambiguous: more than one table has it; write table.{0}",
                shown(&field.name)
            ),
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => Error::duplicate_column(shown(name)),
    }
}

/// `table.column`, without catalog and schema.
fn flat(column: &Column) -> String {
    match &column.relation {
        Some(table) => format!("{}.{}", table.table(), shown(&column.name)),
        None => shown(&column.name).to_string(),
    }
}

fn memory(message: &str) -> Error {
    // The memory pool's refusal is a full sentence somewhere inside; what operators add around it is left out.
    match message.find(MEMORY_LIMIT) {
        Some(start) => Error::Memory {
            message: tidy(&message[start..]),
        },
        None => Error::Memory {
            message: tidy(message),
        },
    }
}

fn plan(whole: &str) -> Error {
    let message = tidy(whole);
    if let Some(message) = calls::message(whole, &message) {
        return Error::coded("42883", message);
    }
    if message.contains("Column count doesn't match insert query") {
        return Error::coded(
            "42601",
            "the number of values differs from the number of columns to insert into",
        );
    }
    if message
        .to_lowercase()
        .contains("projections require unique expression names")
    {
        return Error::coded(
            "42701",
            "two columns of the query have the same name; rename one with `as`",
        );
    }
    if message.contains(" at Line: ") {
        let (text, place) = split_position(&message);
        return refused(text).at(place);
    }
    if let Some(start) = message
        .find("Overflow happened on: ")
        .or_else(|| message.find("Divide by zero"))
    {
        return execution(&message[start..]);
    }
    refused(lower_first(&message))
}

/// What was not computed, with the code that its text stands for.
fn uncomputable(message: String) -> Error {
    Error::Arithmetic {
        code: codes::of_value(&message),
        message,
    }
}

/// What has failed while it ran, in the same way.
fn failed(message: String) -> Error {
    Error::Execution {
        code: codes::of_value(&message),
        message,
    }
}

/// What the planner has refused, in the same way.
fn refused(message: String) -> Error {
    match codes::of_plan(&message) {
        Some(code) => Error::coded(code, message),
        None => Error::invalid(message),
    }
}

/// Errors of kernels that arrive as text: overflow, division, casts.
fn execution(message: &str) -> Error {
    let message = tidy(message);
    let lower = message.to_lowercase();
    if message.contains(MEMORY_LIMIT) {
        return memory(&message);
    }
    if lower.contains("divide by zero") || lower.contains("division by zero") {
        return uncomputable("division by zero".into());
    }
    if let Some(start) = message.find("Overflow happened on: ") {
        let what = strip(&message[start..], "Overflow happened on: ");
        return uncomputable(overflow::message(what));
    }
    let arithmetic = [
        "overflow",
        "out of range",
        "too large to store",
        "too small to store",
        "can't cast value",
        "cannot cast",
    ];
    if arithmetic.iter().any(|word| lower.contains(word)) {
        return uncomputable(lower_first(&message));
    }
    failed(lower_first(&message))
}

/// Sentences of DataFusion that are of no use to people who type statements.
const NOISE: [&str; 8] = [
    "This issue was likely caused by a bug in DataFusion's code.",
    "Please help us to resolve this by filing a bug report in our issue tracker",
    "https://github.com/apache/datafusion/issues",
    "Consider increasing memory limit config",
    "Column names are case sensitive.",
    "No function matches the given name and argument types",
    "You might need to add explicit type casts.",
    "Candidate functions:",
];

/// Prefixes that name the layer rather than the problem.
const LAYERS: [&str; 18] = [
    "Arrow error: ",
    "External error: ",
    "External: ",
    "Execution error: ",
    "Error during planning: ",
    "Internal error: ",
    "Compute error: ",
    "Cast error: ",
    "Parser error: ",
    "Invalid argument error: ",
    "Schema error: ",
    "Parquet error: ",
    "Csv error: ",
    "Json error: ",
    "Object Store error: ",
    "Generic LocalFileSystem error: ",
    "Resources exhausted: ",
    "Optimizer rule",
];

/// One line, without layers, noise, or a trailing full stop.
pub(crate) fn tidy(message: &str) -> String {
    let mut text = message.split("\n\nbacktrace:").next().unwrap_or(message);
    for noise in NOISE {
        if let Some(at) = text.find(noise)
            && at > 0
        {
            text = &text[..at];
        }
    }
    loop {
        let stripped = LAYERS
            .iter()
            .filter(|l| **l != "Optimizer rule")
            .fold(text, |t, layer| strip(t, layer));
        if stripped.len() == text.len() {
            break;
        }
        text = stripped;
    }
    // What a function says of its arguments is said in full by itself.
    const COERCION: &str = "user-defined coercion failed with: ";
    if let Some(at) = text.find(COERCION) {
        return tidy(&text[at + COERCION.len()..]);
    }
    // Functions list every signature they have; syntax trees say nothing to a person.
    for tail in [", errors:", " { expr:"] {
        if let Some(at) = text.find(tail) {
            text = &text[..at];
        }
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace(
        "failed to match any signature",
        "does not take arguments of these types",
    );
    if let Some(unknown) = unknown_function(&line) {
        return unknown;
    }
    planner_words::reworded(plain::message(&line).trim_end_matches(['.', ' ']))
}

fn strip<'a>(text: &'a str, prefix: &str) -> &'a str {
    text.strip_prefix(prefix).unwrap_or(text)
}

/// Messages start in lower case because they follow a file name or `error:`.
fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        // SUM, XML: not a capitalised word.
        (Some(_), Some(second)) if second.is_uppercase() => text.to_string(),
        (Some(first), _) => first.to_lowercase().collect::<String>() + &text[first.len_utf8()..],
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_and_noise_come_off() {
        let e = DataFusionError::ArrowError(
            Box::new(ArrowError::ExternalError(Box::new(
                DataFusionError::Context(
                    "while".into(),
                    Box::new(DataFusionError::Internal("boom".into())),
                ),
            ))),
            None,
        );
        assert!(matches!(translate(&e), Error::Defect { message } if message == "boom"));
        assert_eq!(
            tidy(
                "Arrow error: Cast error: Cannot.\nThis issue was likely caused by a bug in DataFusion's code. Please"
            ),
            "Cannot"
        );
    }

    #[test]
    fn positions_are_taken_from_the_text() {
        let e = parser(&ParserError::ParserError(
            "Expected: end, found: x at Line: 3, Column: 14".into(),
        ));
        assert_eq!(
            e.position(),
            Some(Position {
                line: 3,
                column: 14
            })
        );
        assert_eq!(
            e.to_string(),
            "syntax error at line 3, column 14: expected: end, found: x"
        );
    }
}
