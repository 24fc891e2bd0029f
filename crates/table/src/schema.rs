//! Definitions: what a table is called, its columns and its declared keys.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A table: its name, columns and declared keys.
///
/// Keys are declarations: NOT NULL follows from a primary key, uniqueness is not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Name, unique in the store.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Positions of the primary key's columns; empty if none is declared.
    pub primary_key: Vec<usize>,
    /// Declared foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
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

/// The type in which values of `from` are stored and delivered: text and binary become views,
/// dictionaries their values, small decimals `Decimal128`. `None` if they cannot be stored.
pub fn stored_type(from: &DataType) -> Option<DataType> {
    use DataType::*;
    Some(match from {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => from.clone(),
        Float32 | Float64 | Date32 | Time32(_) | Time64(_) | Timestamp(_, _) => from.clone(),
        Decimal128(_, _) => from.clone(),
        Float16 => Float32,
        Date64 => Timestamp(TimeUnit::Millisecond, None),
        Decimal32(p, s) | Decimal64(p, s) => Decimal128(*p, *s),
        Decimal256(p, s) if *p <= 38 => Decimal128(*p, *s),
        Utf8 | LargeUtf8 | Utf8View | Null => Utf8View,
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => BinaryView,
        Dictionary(_, value) => return stored_type(value),
        _ => return None,
    })
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
            });
        }
        let definition = Definition {
            name: name.to_owned(),
            columns,
            primary_key: vec![],
            foreign_keys: vec![],
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

/// Most columns a table can have; bounds the block records.
pub const MAX_COLUMNS: usize = 4096;

/// Casts `batch`, whose columns stand in the table's order, to the definition's types.
///
/// # Errors
/// [`Error::Mismatch`] for another number of columns, [`Error::Null`] for a NULL where none is
/// allowed, [`Error::Arrow`] for values that do not fit the type.
pub fn normalise(batch: &RecordBatch, definition: &Definition) -> Result<RecordBatch> {
    if batch.num_columns() != definition.columns.len() {
        let (got, wanted) = (batch.num_columns(), definition.columns.len());
        let what = format!("{got} columns where it has {wanted}");
        return Err(Error::Mismatch {
            table: definition.name.clone(),
            what,
        });
    }
    let schema = definition.schema();
    let options = CastOptions {
        safe: false,
        ..Default::default()
    };
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let column = if column.data_type() == field.data_type() {
            column.clone()
        } else {
            cast_with_options(column, field.data_type(), &options)?
        };
        if !field.is_nullable() && column.logical_null_count() > 0 {
            let (table, column) = (definition.name.clone(), field.name().clone());
            return Err(Error::Null { table, column });
        }
        columns.push(column);
    }
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// [`DataType`] in the catalog's own numbering, so that the format does not move with Arrow's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TypeRecord {
    Boolean,
    Int(u8),
    UInt(u8),
    Float(u8),
    Decimal(u8, i8),
    Date,
    /// Decimal power of the unit (0, 3, 6, 9).
    Time(u8),
    Timestamp(u8, Option<String>),
    Text,
    Binary,
}

impl TypeRecord {
    pub(crate) fn of(data_type: &DataType) -> Option<TypeRecord> {
        use DataType::*;
        Some(match data_type {
            Boolean => TypeRecord::Boolean,
            Int8 => TypeRecord::Int(1),
            Int16 => TypeRecord::Int(2),
            Int32 => TypeRecord::Int(4),
            Int64 => TypeRecord::Int(8),
            UInt8 => TypeRecord::UInt(1),
            UInt16 => TypeRecord::UInt(2),
            UInt32 => TypeRecord::UInt(4),
            UInt64 => TypeRecord::UInt(8),
            Float32 => TypeRecord::Float(4),
            Float64 => TypeRecord::Float(8),
            Decimal128(p, s) => TypeRecord::Decimal(*p, *s),
            Date32 => TypeRecord::Date,
            Time32(unit) | Time64(unit) => TypeRecord::Time(power(unit)),
            Timestamp(unit, zone) => {
                TypeRecord::Timestamp(power(unit), zone.as_ref().map(|z| z.to_string()))
            }
            Utf8View => TypeRecord::Text,
            BinaryView => TypeRecord::Binary,
            _ => return None,
        })
    }

    pub(crate) fn data_type(&self) -> Option<DataType> {
        Some(match self {
            TypeRecord::Boolean => DataType::Boolean,
            TypeRecord::Int(1) => DataType::Int8,
            TypeRecord::Int(2) => DataType::Int16,
            TypeRecord::Int(4) => DataType::Int32,
            TypeRecord::Int(8) => DataType::Int64,
            TypeRecord::UInt(1) => DataType::UInt8,
            TypeRecord::UInt(2) => DataType::UInt16,
            TypeRecord::UInt(4) => DataType::UInt32,
            TypeRecord::UInt(8) => DataType::UInt64,
            TypeRecord::Float(4) => DataType::Float32,
            TypeRecord::Float(8) => DataType::Float64,
            TypeRecord::Decimal(p, s) => DataType::Decimal128(*p, *s),
            TypeRecord::Date => DataType::Date32,
            TypeRecord::Time(p @ (0 | 3)) => DataType::Time32(unit(*p)?),
            TypeRecord::Time(p) => DataType::Time64(unit(*p)?),
            TypeRecord::Timestamp(p, zone) => {
                DataType::Timestamp(unit(*p)?, zone.as_deref().map(Into::into))
            }
            TypeRecord::Text => DataType::Utf8View,
            TypeRecord::Binary => DataType::BinaryView,
            _ => return None,
        })
    }
}

fn power(unit: &TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn unit(power: u8) -> Option<TimeUnit> {
    Some(match power {
        0 => TimeUnit::Second,
        3 => TimeUnit::Millisecond,
        6 => TimeUnit::Microsecond,
        9 => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// A [`Definition`] as the catalog keeps it.
#[derive(Serialize, Deserialize)]
pub(crate) struct DefinitionRecord {
    name: String,
    columns: Vec<(String, TypeRecord, bool)>,
    primary_key: Vec<usize>,
    foreign_keys: Vec<ForeignKey>,
}

impl DefinitionRecord {
    pub(crate) fn of(definition: &Definition) -> Option<DefinitionRecord> {
        let columns = definition
            .columns
            .iter()
            .map(|c| Some((c.name.clone(), TypeRecord::of(&c.data_type)?, c.nullable)))
            .collect::<Option<Vec<_>>>()?;
        Some(DefinitionRecord {
            name: definition.name.clone(),
            columns,
            primary_key: definition.primary_key.clone(),
            foreign_keys: definition.foreign_keys.clone(),
        })
    }

    pub(crate) fn definition(self) -> Option<Definition> {
        let columns = self
            .columns
            .into_iter()
            .map(|(name, record, nullable)| {
                Some(Column {
                    name,
                    data_type: record.data_type()?,
                    nullable,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Definition {
            name: self.name,
            columns,
            primary_key: self.primary_key,
            foreign_keys: self.foreign_keys,
        })
    }
}
