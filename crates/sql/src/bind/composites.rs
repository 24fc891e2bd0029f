//! Composite types: structs that have a name.
//!
//! A name becomes the struct that it stands for wherever a type is read, so that whatever computes with values knows structs
//! alone. The catalog keeps the struct as a text, whose fields name other composite types and domains by their
//! [whole names](syntax::names::exact).

use std::sync::Arc;

use catalog::search_path::SearchPath;
use sqlparser::ast::{ArrayElemTypeDef, DataType, StructBracketKind, StructField, TimezoneInfo};
use syntax::domains::data_type;
use syntax::lengths;
use syntax::names::{column_name, written};
use table::{Domain, Tables};

use crate::error::{Error, Result};

/// The domain or composite type that a type names, and of how many dimensions the arrays of it are that the type says. Arrays
/// are of composite types only, but for casts that this program writes, to `array<domain>`.
pub(crate) fn named<'t>(
    sql_type: &DataType,
    tables: &'t Tables,
    path: &SearchPath,
) -> Option<(&'t Arc<Domain>, usize)> {
    match sql_type {
        DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            let name = written(name).ok()?;
            let own = tables.domain(&path.resolve_type(tables, &name))?;
            Some((own, 0))
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, None)) => {
            let (own, dimensions) = named(item, tables, path)?;
            own.composite.then_some((own, dimensions + 1))
        }
        DataType::Array(ArrayElemTypeDef::AngleBracket(item)) => {
            let (own, dimensions) = named(item, tables, path)?;
            Some((own, dimensions + 1))
        }
        _ => None,
    }
}

/// The type behind a domain or a composite type: no part of it has the name of another.
///
/// # Errors
/// If its text is no type: a defect.
pub(crate) fn behind(own: &Domain, tables: &Tables) -> Result<DataType> {
    let mut found = data_type(&own.text)?;
    if has_fields(&found) {
        expand(&mut found, tables)?;
    }
    Ok(found)
}

fn has_fields(sql_type: &DataType) -> bool {
    matches!(sql_type, DataType::Struct(..))
}

/// Puts types in the places of names, and takes the lengths of texts away, which are [tested](tested).
fn expand(sql_type: &mut DataType, tables: &Tables) -> Result<()> {
    match sql_type {
        DataType::Struct(fields, _) => {
            for field in fields {
                expand(&mut field.field_type, tables)?;
            }
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => expand(item, tables)?,
        DataType::Custom(..) => {
            if let Some((own, _)) = named(sql_type, tables, &SearchPath::kept()) {
                *sql_type = behind(own, tables)?;
                // A domain of texts has a length of its own, too.
                expand_length(sql_type);
            }
        }
        other => expand_length(other),
    }
    Ok(())
}

fn expand_length(sql_type: &mut DataType) {
    if lengths::of_type(sql_type).is_some() {
        *sql_type = DataType::Text;
    }
}

/// Arrays of so many dimensions of a type.
pub(crate) fn arrays_of(sql_type: DataType, dimensions: usize) -> DataType {
    (0..dimensions).fold(sql_type, |item, _| {
        DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(item), None))
    })
}

/// A type as a text that is read as it.
pub(crate) fn text(sql_type: &DataType) -> String {
    let mut own = sql_type.clone();
    in_parentheses(&mut own);
    own.to_string()
}

/// Structs as statements write them: between pairs of `<` and `>` two that end together would be read as an operator.
fn in_parentheses(sql_type: &mut DataType) {
    match sql_type {
        DataType::Struct(fields, brackets) => {
            *brackets = StructBracketKind::Parentheses;
            for field in fields {
                in_parentheses(&mut field.field_type);
            }
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => in_parentheses(item),
        DataType::Map(key, value) => {
            in_parentheses(key);
            in_parentheses(value);
        }
        _ => {}
    }
}

/// What is to be tested of the values of a field of a composite type, or of their items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tested {
    /// How many characters texts have at most, and the standard's name of their type.
    Length(&'static str, u64),
    /// That they are values of the domain or composite type of this name in the catalog.
    Named(String),
}

/// The fields of a composite type of whose values something is to be tested, by their places.
///
/// # Errors
/// As [`behind`].
pub(crate) fn tested(own: &Domain, tables: &Tables) -> Result<Vec<(usize, Tested)>> {
    if !own.composite {
        return Ok(Vec::new());
    }
    let DataType::Struct(fields, _) = data_type(&own.text)? else {
        return Err(Error::Defect {
            message: format!("the composite type {} has no fields", own.name),
        });
    };
    let mut found = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let all = of_field(&field.field_type, tables)?.into_iter();
        found.extend(all.map(|tested| (at, tested)));
    }
    Ok(found)
}

fn of_field(sql_type: &DataType, tables: &Tables) -> Result<Vec<Tested>> {
    if let DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) = sql_type {
        return of_field(item, tables);
    }
    let length = |sql_type: &DataType| {
        let (title, length) = lengths::of_type(sql_type)?;
        Some(Tested::Length(title, length))
    };
    let Some((own, _)) = named(sql_type, tables, &SearchPath::kept()) else {
        return Ok(length(sql_type).into_iter().collect());
    };
    if !is_tested(own, tables)? {
        return Ok(Vec::new());
    }
    let length = length(&data_type(&own.text)?);
    let named = Tested::Named(own.name.clone());
    Ok(length.into_iter().chain([named]).collect())
}

/// Whether a struct, or a value of the type behind, may be no value of a composite type or of a domain.
///
/// # Errors
/// As [`behind`].
pub(crate) fn is_tested(own: &Domain, tables: &Tables) -> Result<bool> {
    if !own.composite {
        return Ok(true);
    }
    tested(own, tables).map(|fields| !fields.is_empty())
}

/// Whether a field of a composite type names a domain or another composite type.
///
/// # Errors
/// If the text of the composite type is no type: a defect.
pub(crate) fn mentions(own: &Domain, name: &str, tables: &Tables) -> Result<bool> {
    if !own.composite {
        return Ok(false);
    }
    let DataType::Struct(fields, _) = data_type(&own.text)? else {
        return Ok(false);
    };
    let path = SearchPath::kept();
    let is_of = |field: &StructField| {
        let found = base_name(&field.field_type);
        found.is_some_and(|written| path.resolve_type(tables, &written) == name)
    };
    Ok(fields.iter().any(is_of))
}

/// The name of a type, or of the items of its arrays.
fn base_name(sql_type: &DataType) -> Option<String> {
    match sql_type {
        DataType::Custom(name, _) => written(name).ok(),
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => base_name(item),
        _ => None,
    }
}

/// Refuses what a field of a struct does not keep of its type, as it would be lost.
///
/// # Errors
/// The refusal.
pub(crate) fn check_field(name: &str, sql_type: &DataType) -> Result<()> {
    let lost = match sql_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => {
            return check_field(name, item);
        }
        DataType::Struct(fields, _) => {
            for field in fields {
                let own = field.field_name.as_ref().map(column_name);
                check_field(own.as_deref().unwrap_or(name), &field.field_type)?;
                if lengths::of_type(&field.field_type).is_some() {
                    return Err(lengthy(name, &field.field_type));
                }
            }
            return Ok(());
        }
        DataType::Timestamp(digits, _) | DataType::Datetime(digits) => {
            !matches!(digits, None | Some(0 | 3 | 6))
        }
        DataType::Time(digits, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => digits.is_some(),
        DataType::Time(digits, _) => digits.is_some(),
        DataType::Interval { fields, precision } => fields.is_some() || precision.is_some(),
        _ => false,
    };
    if lost {
        return Err(lengthy(name, sql_type));
    }
    Ok(())
}

fn lengthy(name: &str, sql_type: &DataType) -> Error {
    Error::unsupported(format!(
        "column \"{name}\" of type {} in a composite type is not supported: name the type without digits or a length",
        sql_type.to_string().to_lowercase()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_types_are_read_as_they_were() {
        for text_of in [
            "STRUCT(\"a\" INT, \"b c\" TEXT)",
            "STRUCT(\"a\" STRUCT(\"b\" STRUCT(\"c\" INT)), \"d\" NUMERIC(9,2))",
            "STRUCT(\"a\" STRUCT(\"b\" INT[])[], \"c\" \"s\u{1}t\"[][])",
        ] {
            let found = data_type(text_of).unwrap();
            assert_eq!(text(&found), text_of);
        }
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        for (text, is_kept) in [
            ("integer", true),
            ("varchar(3)", true),
            ("timestamp(3)", true),
            ("timestamp(2)", false),
            ("time(0)[]", false),
            ("interval(2)", false),
            ("struct(a varchar(3))", false),
        ] {
            let own = data_type(text).unwrap();
            assert_eq!(check_field("f", &own).is_ok(), is_kept, "{text}");
        }
    }
}
