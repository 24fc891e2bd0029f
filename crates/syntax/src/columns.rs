//! Columns of a `create table`: where their values come from, and their constraints.

use arrow::datatypes::DataType;
use messages::{Error, Result};
use sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, DataType as SqlType, GeneratedExpressionMode,
};

use crate::constraints::{self, Constraint};
use crate::identity;
use crate::kept;
use crate::names::{check_column, column_name};
use crate::rewrite::is_of_bytes;
use crate::sequences::SequenceOptions;

/// Where the values of a column come from that rows do not bring.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Values {
    /// They are NULL.
    #[default]
    Plain,
    /// From an expression of constants and functions.
    Default(String),
    /// From an expression over the other columns, always.
    Stored(String),
    /// From a sequence of its own.
    Numbers {
        /// How the numbers of its sequence follow each other.
        options: SequenceOptions,
        /// Of an identity column, whether always; `None` for a default.
        always: Option<bool>,
    },
}

/// Takes a column of the table `table` apart: what is left of it has name, type and NOT NULL, its constraints are added
/// to `all`.
///
/// # Errors
/// For options that it may not have, or not with each other.
pub fn split(
    table: &str,
    mut column: ColumnDef,
    all: &mut Vec<Constraint>,
) -> Result<(ColumnDef, Values)> {
    let name = column_name(&column.name);
    check_column(&name)?;
    let mut found = Found {
        place: format!("column \"{name}\" of table \"{table}\""),
        ..Found::default()
    };
    if let Some(data_type) = serial(&column.data_type) {
        column.data_type = data_type;
        found.put(Values::Numbers {
            options: SequenceOptions::default(),
            always: None,
        })?;
    }
    for option in std::mem::take(&mut column.options) {
        if let Some(constraint) = constraints::of_column(&name, &option)? {
            all.push(constraint);
            continue;
        }
        found.option((&name, &column.data_type), option)?;
    }
    if found.not_null && found.null {
        return Err(syntax(format!(
            "conflicting NULL/NOT NULL declarations for {}",
            found.place
        )));
    }
    if found.not_null {
        column.options.push(ColumnOptionDef {
            name: None,
            option: ColumnOption::NotNull,
        });
    }
    Ok((column, found.values))
}

/// That a type is one of texts, or one that only the catalog knows.
fn may_be_ordered_so(data_type: &SqlType) -> Result<()> {
    match data_type {
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::CharacterVarying(_)
        | SqlType::CharVarying(_)
        | SqlType::Char(_)
        | SqlType::Character(_)
        | SqlType::String(_)
        | SqlType::Custom(..)
        | SqlType::Array(_) => Ok(()),
        other => Err(Error::coded(
            "42804",
            format!(
                "collations are not supported by type {}",
                other.to_string().to_lowercase()
            ),
        )),
    }
}

/// The options for a sequence of a column of this type.
///
/// # Errors
/// If no sequence has it.
pub fn of_type(mut options: SequenceOptions, data_type: &DataType) -> Result<SequenceOptions> {
    options.bytes = Some(match data_type {
        DataType::Int16 => 2,
        DataType::Int32 => 4,
        DataType::Int64 => 8,
        _ => {
            return Err(Error::coded(
                "22023",
                "identity column type must be smallint, integer, or bigint",
            ));
        }
    });
    Ok(options)
}

/// The options of a column, as far as they were read.
#[derive(Default)]
struct Found {
    /// The column, for messages.
    place: String,
    values: Values,
    not_null: bool,
    null: bool,
}

impl Found {
    fn option(
        &mut self,
        (name, data_type): (&str, &SqlType),
        option: ColumnOptionDef,
    ) -> Result<()> {
        match option.option {
            ColumnOption::Collation(collation) if is_of_bytes(&collation) => {
                may_be_ordered_so(data_type)?;
            }
            ColumnOption::NotNull => self.not_null = true,
            ColumnOption::Null => self.null = true,
            ColumnOption::Comment(_) => {}
            ColumnOption::Default(value) => self.put(Values::Default(kept::text(&value)?))?,
            ColumnOption::Generated {
                generation_expr: Some(value),
                generation_expr_mode: Some(GeneratedExpressionMode::Stored),
                generated_keyword: true,
                ..
            } => self.put(Values::Stored(kept::text(&value)?))?,
            ColumnOption::Generated {
                generation_expr: Some(_),
                ..
            } => {
                return Err(Error::unsupported(format!(
                    "column \"{name}\": values that are computed when they are read are not supported: write `generated always as (...) stored`"
                )));
            }
            ColumnOption::DialectSpecific(tokens)
                if let Some(identity) = identity::of_option(&tokens)? =>
            {
                self.put(Values::Numbers {
                    options: identity.options,
                    always: Some(identity.always),
                })?;
            }
            other => {
                return Err(Error::unsupported(format!(
                    "column \"{name}\": `{other}` is not supported"
                )));
            }
        }
        Ok(())
    }

    /// Says where values come from, unless that was said.
    fn put(&mut self, values: Values) -> Result<()> {
        self.not_null |= matches!(values, Values::Numbers { .. });
        let before = std::mem::replace(&mut self.values, values);
        if before == Values::Plain {
            return Ok(());
        }
        // In the order of PostgreSQL's messages.
        let word = |values: &Values| match values {
            Values::Plain => (3, ""),
            Values::Default(_) | Values::Numbers { always: None, .. } => (0, "default"),
            Values::Numbers { .. } => (1, "identity"),
            Values::Stored(_) => (2, "generation expression"),
        };
        let (first, second) = (word(&before), word(&self.values));
        let (first, second) = (first.min(second).1, first.max(second).1);
        Err(syntax(match (first, second) {
            ("default", "default") => {
                format!("multiple default values specified for {}", self.place)
            }
            ("identity", "identity") => {
                format!("multiple identity specifications for {}", self.place)
            }
            (first, second) if first == second => {
                format!("multiple generation clauses specified for {}", self.place)
            }
            (first, second) => format!("both {first} and {second} specified for {}", self.place),
        }))
    }
}

fn syntax(message: String) -> Error {
    Error::Syntax {
        message,
        position: None,
    }
}

/// Whether a column of this type has numbers of a sequence.
pub fn is_serial(data_type: &SqlType) -> bool {
    serial(data_type).is_some()
}

/// The type of a column that is declared `serial` or the like.
fn serial(data_type: &SqlType) -> Option<SqlType> {
    let SqlType::Custom(name, modifiers) = data_type else {
        return None;
    };
    let [part] = &name.0[..] else {
        return None;
    };
    let word = part.as_ident().filter(|_| modifiers.is_empty())?;
    match column_name(word).as_str() {
        "smallserial" | "serial2" => Some(SqlType::SmallInt(None)),
        "serial" | "serial4" => Some(SqlType::Int(None)),
        "bigserial" | "serial8" => Some(SqlType::BigInt(None)),
        _ => None,
    }
}
