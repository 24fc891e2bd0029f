//! Definitions: what a table is called, its columns and its declared keys.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::schema::types::stored_type;

/// A table: its name, columns and declared keys.
///
/// Keys are declarations. Columns of a primary key are NOT NULL; that keys are unique, and that the
/// rows exist that foreign keys refer to, is not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Name, unique in the store.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// The columns of the primary key, by position; empty if none is declared.
    pub primary_key: Vec<usize>,
    /// Declared foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// Conditions that no row may fail. Whoever writes rows tests them: this crate only keeps them.
    pub checks: Vec<Check>,
}

/// A condition on the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, unique in the table.
    pub name: String,
    /// The condition, in the language of whoever declared it.
    pub text: String,
}

/// A column of a [`Definition`].
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name, unique in the table.
    pub name: String,
    /// One of the stored types (see [`stored_type`]).
    pub data_type: DataType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// What a new row has here that does not say: an expression in the language of whoever declared it; NULL where
    /// there is none.
    pub default: Option<String>,
}

/// A declared reference to the primary key of another table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Positions of the referring columns.
    pub columns: Vec<usize>,
    /// The table referred to.
    pub parent: String,
    /// Names of its columns, in the order of `columns`.
    pub parent_columns: Vec<String>,
}

impl Definition {
    /// A definition with the columns of `schema` and no keys; types are normalised by
    /// [`stored_type`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] names a column whose type cannot be stored, [`Error::Mismatch`] a
    /// name that occurs twice or a schema without columns.
    pub fn from_schema(name: &str, schema: &Schema) -> Result<Definition> {
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let data_type = stored_type(field.data_type()).ok_or_else(|| Error::Unsupported {
                column: field.name().clone(),
                data_type: field.data_type().to_string(),
            })?;
            columns.push(Column {
                name: field.name().clone(),
                data_type,
                nullable: field.is_nullable(),
                default: None,
            });
        }
        let definition = Definition {
            name: name.to_owned(),
            columns,
            primary_key: vec![],
            foreign_keys: vec![],
            checks: vec![],
        };
        definition.validate()?;
        Ok(definition)
    }

    /// Checks names and key positions; called by [`crate::create`].
    ///
    /// # Errors
    /// As [`Definition::from_schema`], and [`Error::Key`] for a key that names no column.
    pub fn validate(&self) -> Result<()> {
        let mismatch = |what: String| Error::Mismatch {
            table: self.name.clone(),
            what,
        };
        if self.columns.is_empty() || self.columns.len() > MAX_COLUMNS {
            let count = self.columns.len();
            return Err(mismatch(format!(
                "{count} columns; 1 to {MAX_COLUMNS} are possible"
            )));
        }
        let mut seen = std::collections::HashSet::new();
        for column in &self.columns {
            if !seen.insert(column.name.as_str()) {
                return Err(mismatch(format!("column '{}' occurs twice", column.name)));
            }
            if stored_type(&column.data_type).as_ref() != Some(&column.data_type) {
                return Err(Error::Unsupported {
                    column: column.name.clone(),
                    data_type: column.data_type.to_string(),
                });
            }
        }
        let keys = self.foreign_keys.iter().flat_map(|key| &key.columns);
        if let Some(bad) = self
            .primary_key
            .iter()
            .chain(keys)
            .find(|c| **c >= self.columns.len())
        {
            let what = format!("there is no column number {bad}");
            return Err(Error::Key {
                table: self.name.clone(),
                what,
            });
        }
        for key in &self.foreign_keys {
            if key.columns.len() != key.parent_columns.len() || key.columns.is_empty() {
                let what = format!(
                    "a foreign key to '{}' must name as many columns",
                    key.parent
                );
                return Err(Error::Key {
                    table: self.name.clone(),
                    what,
                });
            }
        }
        Ok(())
    }

    /// The Arrow schema that scans deliver.
    pub fn schema(&self) -> SchemaRef {
        let fields = self.columns.iter().enumerate().map(|(position, column)| {
            let nullable = column.nullable && !self.primary_key.contains(&position);
            Field::new(&column.name, column.data_type.clone(), nullable)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Position of the column called `name`.
    ///
    /// # Errors
    /// [`Error::NoColumn`].
    pub fn position(&self, name: &str) -> Result<usize> {
        self.columns
            .iter()
            .position(|c| c.name == name)
            .ok_or_else(|| Error::NoColumn {
                table: self.name.clone(),
                column: name.to_owned(),
            })
    }
}

/// The most columns of a table.
pub const MAX_COLUMNS: usize = 4096;
