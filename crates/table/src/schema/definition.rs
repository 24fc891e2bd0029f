//! Definitions: what a table is called, its columns and its declared keys.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::schema::enums::is_enum;
use crate::schema::types::{DOMAIN, stored_type};

/// A table: its name, columns and keys.
///
/// A key of [`keys`](Definition::keys) holds: no two rows have the same, and an index finds rows by it. A primary key
/// that is not among them is a declaration: its columns are NOT NULL, and nobody checks that it is unique. That the rows
/// exist that foreign keys refer to is for whoever writes rows to check.
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
    /// The keys that hold: the primary key, unless it is only declared, and the unique ones.
    pub keys: Vec<Key>,
    /// The foreign keys that hold, and what becomes of rows whose parent goes or changes. Whoever writes rows sees to it.
    pub rules: Vec<Rule>,
    /// Conditions that no row may fail. Whoever writes rows tests them: this crate only keeps them.
    pub checks: Vec<Check>,
    /// Indexes that are known by their names and hold nothing: statistics of blocks do what they would.
    pub indexes: Vec<Index>,
    /// What becomes of its rows at the end of a transaction. Whoever commits sees to it.
    pub on_commit: OnCommit,
    /// The columns by whose values rows lie in order that are written together, by position; empty if they lie as they come.
    /// Whoever writes rows sees to it.
    pub order: Vec<usize>,
}

/// What becomes of the rows of a temporary table at the end of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnCommit {
    /// They stay.
    #[default]
    Preserve,
    /// They go.
    DeleteRows,
    /// The table goes.
    Drop,
}

/// An index that is declared: its name and its columns. Nothing is kept for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Its name, without a schema: it is in that of its table.
    pub name: String,
    /// The method that was asked for, such as `btree`.
    pub method: String,
    /// Its columns, at least one; those that its expressions name, if it has some.
    pub columns: Vec<IndexColumn>,
    /// What it is made of, if that is not only columns: the text of each expression, and of its order behind it.
    #[serde(skip)]
    pub items: Vec<(String, String)>,
    /// The condition on its rows, as a text.
    #[serde(skip)]
    pub predicate: Option<String>,
}

/// A column of a declared index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Its position in the table.
    pub column: usize,
    /// Whether the greatest value comes first.
    pub descending: bool,
    /// Whether NULLs come before other values.
    pub nulls_first: bool,
}

/// Columns in which no two rows have the same values. Rows with a NULL in one of them have no key, and are as many as
/// there may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Its name, unique among the constraints of the table.
    pub name: String,
    /// What its records in the catalog are found by: no other key of the table has it.
    pub number: u32,
    /// Positions of its columns, at least one.
    pub columns: Vec<usize>,
    /// Whether it is the primary key.
    pub primary: bool,
}

/// A foreign key that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its place in [`Definition::foreign_keys`].
    pub foreign_key: usize,
    /// Its name, unique among the constraints of the table.
    pub name: String,
    /// When the row that is referred to is deleted.
    pub on_delete: Action,
    /// When its key changes.
    pub on_update: Action,
    /// Places in the columns of the foreign key of those that `on_delete` sets to NULL or their defaults; all if empty.
    #[serde(skip)]
    pub delete_columns: Vec<usize>,
    /// Whether a row has all of the key or nothing of it: `match full`.
    #[serde(skip)]
    pub full: bool,
    /// When it is looked at.
    #[serde(skip)]
    pub deferral: Deferral,
    /// Whether rows that were there before it need not agree: `not valid`.
    #[serde(skip)]
    pub unchecked: bool,
}

/// When a constraint is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deferral {
    /// At the end of each statement, always.
    #[default]
    Never,
    /// At the end of each statement, unless a transaction says otherwise.
    Immediate,
    /// At the end of the transaction, unless it says otherwise.
    Deferred,
}

/// What becomes of rows that refer to one that goes or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// There may be none.
    NoAction,
    /// They go, or change, too.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their defaults. Builds before 0.4 refuse tables that have it.
    SetDefault,
    /// There may be none, not even if another row gets the key in the same statement. Likewise.
    Restrict,
}

impl Action {
    /// Whether rows that refer are changed, and not only looked for.
    pub fn changes_rows(self) -> bool {
        !matches!(self, Action::NoAction | Action::Restrict)
    }
}

/// A condition on the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, unique in the table.
    pub name: String,
    /// The condition, in the language of whoever declared it.
    pub text: String,
    /// Whether rows that were there before it need not agree: `not valid`.
    #[serde(skip)]
    pub unchecked: bool,
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
    /// How its values are made, if rows do not bring them.
    pub generated: Option<Generated>,
    /// The sequences that belong to it, by name: they go when it goes.
    pub sequences: Vec<String>,
    /// To how many digits behind the second its values are rounded, of a timestamp, a time or an interval, or arrays of such;
    /// `None` if they keep all that their type has.
    pub digits: Option<u8>,
    /// The name in the catalog of the [`Domain`](crate::Domain) that it is of; `data_type` is the type behind that.
    pub domain: Option<String>,
}

/// Where the metadata of a field has the digits behind the second to which the values of a column are
/// [rounded](Column::digits).
pub const SECOND_DIGITS: &str = "atoll:digits";

/// How the values of a column are made. Whoever writes rows does so: this crate only keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generated {
    /// As numbers of a sequence, which is one of the column's own.
    Identity {
        /// The name of the sequence.
        sequence: String,
        /// Whether rows that bring a value are refused, unless they insist.
        always: bool,
    },
    /// By an expression over the other columns of the row, in the language of whoever declared it.
    Stored {
        /// The expression.
        text: String,
    },
}

impl Column {
    /// The expression that makes its values, if one does.
    pub fn expression(&self) -> Option<&str> {
        match &self.generated {
            Some(Generated::Stored { text }) => Some(text),
            _ => None,
        }
    }

    /// The sequence that its values come from, and whether they always do, if it is an identity column.
    pub fn identity(&self) -> Option<(&str, bool)> {
        match &self.generated {
            Some(Generated::Identity { sequence, always }) => Some((sequence, *always)),
            _ => None,
        }
    }
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

/// The key of `parent` that holds and that a foreign key refers to: one of the same columns, in any order.
pub fn referred_key<'d>(parent: &'d Definition, foreign: &ForeignKey) -> Option<&'d Key> {
    let mut keys = parent.keys.iter();
    keys.find(|key| {
        let has = |column: &usize| {
            foreign
                .parent_columns
                .contains(&parent.columns[*column].name)
        };
        key.columns.len() == foreign.parent_columns.len() && key.columns.iter().all(has)
    })
}

/// Whether rows with a column of the type `child` may refer to a key with one of the type `parent`: each value of the one is
/// one of the other, or equal to none.
pub fn may_refer(child: &DataType, parent: &DataType) -> bool {
    let whole = |own: &DataType| matches!(own, DataType::Int16 | DataType::Int32 | DataType::Int64);
    child == parent || whole(child) && (whole(parent) || matches!(parent, DataType::Decimal128(..)))
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
                generated: None,
                sequences: vec![],
                digits: field
                    .metadata()
                    .get(SECOND_DIGITS)
                    .and_then(|digits| digits.parse().ok()),
                domain: field.metadata().get(DOMAIN).cloned(),
            });
        }
        let definition = Definition {
            name: name.to_owned(),
            columns,
            primary_key: vec![],
            foreign_keys: vec![],
            keys: vec![],
            rules: vec![],
            checks: vec![],
            indexes: vec![],
            on_commit: OnCommit::Preserve,
            order: vec![],
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
        let indexed = self.indexes.iter().flat_map(|index| &index.columns);
        if let Some(bad) = indexed
            .map(|own| own.column)
            .find(|at| *at >= self.columns.len())
        {
            return Err(mismatch(format!("there is no column number {bad}")));
        }
        self.validate_order()?;
        self.validate_keys()
    }

    /// That the columns by which rows lie in order are there, and have an order.
    fn validate_order(&self) -> Result<()> {
        let nested = |data_type: &DataType| {
            matches!(
                data_type,
                DataType::List(_) | DataType::Struct(_) | DataType::Map(..) | DataType::Interval(_)
            )
        };
        let has_order = |at: &usize| {
            let column = self.columns.get(*at);
            column.is_some_and(|own| is_enum(&own.data_type) || !nested(&own.data_type))
        };
        match self.order.iter().find(|at| !has_order(at)) {
            None => Ok(()),
            Some(at) => Err(Error::Mismatch {
                table: self.name.clone(),
                what: match self.columns.get(*at) {
                    Some(own) => format!("rows cannot lie in the order of column '{}'", own.name),
                    None => format!("there is no column number {at}"),
                },
            }),
        }
    }

    /// That keys are of columns that there are, and go with each other.
    fn validate_keys(&self) -> Result<()> {
        let keys = self.foreign_keys.iter().flat_map(|key| &key.columns);
        let keys = keys.chain(self.keys.iter().flat_map(|key| &key.columns));
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
        let all = self.primary_key.iter();
        let all = all.chain(self.foreign_keys.iter().flat_map(|key| &key.columns));
        let mut all = all.chain(self.keys.iter().flat_map(|key| &key.columns));
        let nested = |c: &&usize| {
            let own = &self.columns[**c].data_type;
            let nested = matches!(
                own,
                DataType::List(_) | DataType::Struct(_) | DataType::Map(..) | DataType::Interval(_)
            );
            nested && !is_enum(own)
        };
        if let Some(column) = all.find(nested) {
            return Err(Error::Key {
                table: self.name.clone(),
                what: format!(
                    "arrays, structs, maps, intervals and JSON stand in no key, but column '{}' would",
                    self.columns[*column].name
                ),
            });
        }
        for (at, key) in self.keys.iter().enumerate() {
            let mut others = self.keys[..at].iter();
            if key.columns.is_empty()
                || key.primary && key.columns != self.primary_key
                || others.any(|other| other.number == key.number || other.name == key.name)
            {
                return Err(Error::Key {
                    table: self.name.clone(),
                    what: format!("\"{}\" is not one that can be", key.name),
                });
            }
        }
        self.validate_rules()?;
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

    /// That the foreign keys that hold are of foreign keys that there are, and set columns of them.
    fn validate_rules(&self) -> Result<()> {
        for rule in &self.rules {
            let what = match self.foreign_keys.get(rule.foreign_key) {
                None => "is of no foreign key",
                Some(key)
                    if rule
                        .delete_columns
                        .iter()
                        .any(|at| *at >= key.columns.len()) =>
                {
                    "sets a column that it has not"
                }
                Some(_) => continue,
            };
            return Err(Error::Key {
                table: self.name.clone(),
                what: format!("\"{}\" {what}", rule.name),
            });
        }
        Ok(())
    }

    /// Makes the primary key one that holds, under the name that PostgreSQL gives it. Nothing happens if none is
    /// declared, or if it holds already.
    pub fn enforce_primary_key(&mut self) {
        if !self.primary_key.is_empty() && !self.keys.iter().any(|key| key.primary) {
            let name = self.free_name(&format!("{}_pkey", self.name));
            self.add_key(name, self.primary_key.clone(), true);
        }
    }

    /// Adds a key that holds.
    pub fn add_key(&mut self, name: String, columns: Vec<usize>, primary: bool) {
        let number = self.keys.iter().map(|key| key.number + 1).max();
        self.keys.push(Key {
            name,
            number: number.unwrap_or(0),
            columns,
            primary,
        });
    }

    /// Takes out the foreign keys to the tables that `refers` says, and the rules of these.
    pub fn forget_references(&mut self, refers: impl Fn(&str) -> bool) {
        while let Some(at) = self.foreign_keys.iter().position(|key| refers(&key.parent)) {
            self.foreign_keys.remove(at);
            self.rules.retain(|rule| rule.foreign_key != at);
            for rule in &mut self.rules {
                rule.foreign_key -= usize::from(rule.foreign_key > at);
            }
        }
    }

    /// A name for a constraint: `wanted`, with a number behind it if another has that.
    pub fn free_name(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 0;
        while self.has_constraint(&name) || self.indexes.iter().any(|own| own.name == name) {
            number += 1;
            name = format!("{wanted}{number}");
        }
        name
    }

    /// Whether a key, a foreign key that holds or a check has this name.
    pub fn has_constraint(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
            || self.rules.iter().any(|rule| rule.name == name)
            || self.checks.iter().any(|check| check.name == name)
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
