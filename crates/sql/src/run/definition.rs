//! The definition of a table, as statements declare it.

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::Schema;
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, Expr, ForeignKeyConstraint, Ident, IndexColumn, Statement as Sql,
    TableConstraint,
};
use table::{Definition, ForeignKey, Tables};

use crate::error::{Error, Result};
use crate::frontend::grammar;
use crate::frontend::names::{check_column, check_new, column_name, table_name};
use crate::run::context::Scope;
use crate::run::engine::Engine;

impl Engine {
    /// The definition that `text` declares for a table `name`: a `create table` statement, whose own name does
    /// not matter, or only its list of columns and keys. Nothing is created.
    ///
    /// # Errors
    ///
    /// As `create table` would fail, but for a table of that name that exists.
    pub fn definition(self: &Arc<Self>, name: &str, text: &str) -> Result<table::Definition> {
        definition(self, name, text)
    }
}

/// See [`Engine::definition`].
pub(crate) fn definition(engine: &Arc<Engine>, name: &str, text: &str) -> Result<Definition> {
    let text = text.trim().trim_end_matches(';');
    let whole = text
        .get(..6)
        .is_some_and(|word| word.eq_ignore_ascii_case("create"));
    let statement = match (whole, text.starts_with('(')) {
        (true, _) => text.to_owned(),
        (false, true) => format!("create table t {text}"),
        (false, false) => format!("create table t ({text})"),
    };
    let mut statements = crate::frontend::parse::parse(&statement)?;
    let statement = match (statements.pop(), statements.is_empty()) {
        (
            Some(crate::frontend::parse::Parsed {
                statement: crate::frontend::parse::Statement::Sql(sql),
                ..
            }),
            true,
        ) => match *sql {
            Sql::CreateTable(statement) if statement.query.is_none() => statement,
            _ => {
                return Err(Error::invalid(
                    "a schema is one `create table` with its columns, or their list",
                ));
            }
        },
        _ => {
            return Err(Error::invalid(
                "a schema is one `create table` with its columns, or their list",
            ));
        }
    };
    check_new(name)?;
    let scope = Scope::new(engine, &engine.store().snapshot(), Instant::now())?;
    define(&scope, name, statement.columns, statement.constraints)
}

/// The definition of a table from its columns and constraints.
pub(crate) fn define(
    scope: &Scope,
    name: &str,
    columns: Vec<ColumnDef>,
    constraints: Vec<TableConstraint>,
) -> Result<Definition> {
    if columns.is_empty() {
        return Err(Error::invalid(format!(
            "table \"{name}\" needs at least one column"
        )));
    }
    let (columns, keys) = split_columns(columns)?;
    let schema = column_types(scope, columns)?;
    let mut definition = Definition::from_schema(name, &schema)?;
    for key in keys.into_iter().chain(table_keys(constraints)?) {
        match key {
            Key::Primary(columns) => {
                if !definition.primary_key.is_empty() {
                    return Err(Error::invalid(format!(
                        "table \"{name}\" has two primary keys"
                    )));
                }
                definition.primary_key = indices(&definition, &columns)?;
                for column in definition.primary_key.clone() {
                    definition.columns[column].nullable = false;
                }
            }
            Key::Foreign {
                columns,
                parent,
                parent_columns,
            } => {
                let columns = indices(&definition, &columns)?;
                let key = foreign_key(&scope.tables, &definition, columns, parent, parent_columns)?;
                definition.foreign_keys.push(key);
            }
        }
    }
    Ok(definition)
}

/// A key as the statement has it.
enum Key {
    Primary(Vec<String>),
    Foreign {
        columns: Vec<String>,
        parent: String,
        parent_columns: Vec<String>,
    },
}

/// Takes the keys off the columns; what is left is name, type and NOT NULL.
fn split_columns(columns: Vec<ColumnDef>) -> Result<(Vec<ColumnDef>, Vec<Key>)> {
    let mut keys = Vec::new();
    let mut plain = Vec::with_capacity(columns.len());
    for mut column in columns {
        let name = column_name(&column.name);
        check_column(&name)?;
        let mut kept = Vec::new();
        for option in std::mem::take(&mut column.options) {
            match option.option {
                ColumnOption::NotNull => kept.push(option),
                ColumnOption::Null | ColumnOption::Comment(_) => {}
                ColumnOption::PrimaryKey(key) => {
                    grammar::primary_key_parts(&key)?;
                    keys.push(Key::Primary(vec![name.clone()]));
                }
                ColumnOption::ForeignKey(key) => keys.push(foreign(key, Some(&name))?),
                ColumnOption::Default(_) => {
                    return Err(refused(
                        &name,
                        "default values are not supported yet; write the value in `insert`",
                    ));
                }
                ColumnOption::Unique(_) => {
                    return Err(refused(
                        &name,
                        "unique is not supported; declare a primary key",
                    ));
                }
                ColumnOption::Check(_) => {
                    return Err(refused(&name, "check constraints are not supported"));
                }
                other => return Err(refused(&name, &format!("`{other}` is not supported"))),
            }
        }
        column.options = kept;
        plain.push(column);
    }
    Ok((plain, keys))
}

fn refused(column: &str, why: &str) -> Error {
    Error::unsupported(format!("column \"{column}\": {why}"))
}

fn table_keys(constraints: Vec<TableConstraint>) -> Result<Vec<Key>> {
    constraints
        .into_iter()
        .map(|constraint| match constraint {
            TableConstraint::PrimaryKey(key) => Ok(Key::Primary(
                key.columns.iter().map(key_column).collect::<Result<_>>()?,
            )),
            TableConstraint::ForeignKey(key) => foreign(key, None),
            other => Err(Error::unsupported(format!(
                "`{other}` is not supported: a table can declare primary and foreign keys"
            ))),
        })
        .collect()
}

fn key_column(column: &IndexColumn) -> Result<String> {
    match &column.column.expr {
        Expr::Identifier(name) => Ok(column_name(name)),
        other => Err(Error::unsupported(format!(
            "a primary key is made of columns, not of {other}"
        ))),
    }
}

fn foreign(key: ForeignKeyConstraint, column: Option<&str>) -> Result<Key> {
    grammar::foreign_key(&key)?;
    if key.on_delete.is_some() || key.on_update.is_some() {
        return Err(Error::unsupported(
            "`on delete` and `on update` are not supported: foreign keys are declared, not enforced",
        ));
    }
    let names = |idents: &[Ident]| idents.iter().map(column_name).collect::<Vec<_>>();
    Ok(Key::Foreign {
        columns: column.map_or_else(|| names(&key.columns), |name| vec![name.to_string()]),
        parent: table_name(&key.foreign_table)?,
        parent_columns: names(&key.referred_columns),
    })
}

/// Column types as DataFusion understands SQL's names.
fn column_types(scope: &Scope, columns: Vec<ColumnDef>) -> Result<Schema> {
    let names = scope.names();
    let schema = SqlToRel::new(&names).build_schema(columns)?;
    for (i, field) in schema.fields().iter().enumerate() {
        if schema.fields()[..i]
            .iter()
            .any(|other| other.name() == field.name())
        {
            return Err(Error::invalid(format!(
                "column \"{}\" appears twice",
                field.name()
            )));
        }
    }
    Ok(schema)
}

fn indices(definition: &Definition, names: &[String]) -> Result<Vec<usize>> {
    names
        .iter()
        .map(
            |name| match definition.columns.iter().position(|c| c.name == *name) {
                Some(index) => Ok(index),
                None => Err(unknown_column(name, definition)),
            },
        )
        .collect()
}

fn unknown_column(name: &str, definition: &Definition) -> Error {
    let names = definition.columns.iter().map(|c| c.name.clone());
    Error::UnknownColumn {
        name: name.to_string(),
        candidates: crate::run::translate::nearest(name, names),
        position: None,
    }
}

/// Checks a reference against its parent: there, with those columns, as many, of the same types.
fn foreign_key(
    tables: &Tables,
    child: &Definition,
    columns: Vec<usize>,
    parent: String,
    mut parent_columns: Vec<String>,
) -> Result<ForeignKey> {
    let found = tables.get(&parent);
    let target = match &found {
        _ if parent == child.name => child,
        Some(table) => table.definition(),
        None => {
            return Err(Error::UnknownTable {
                candidates: crate::run::translate::nearest(
                    &parent,
                    tables.names().into_iter().map(str::to_string),
                ),
                name: parent,
                position: None,
            });
        }
    };
    if parent_columns.is_empty() {
        parent_columns = target
            .primary_key
            .iter()
            .map(|i| target.columns[*i].name.clone())
            .collect();
    }
    if parent_columns.len() != columns.len() {
        return Err(Error::Constraint {
            message: format!(
                "foreign key of \"{}\": {} columns refer to {} columns of \"{parent}\"",
                child.name,
                columns.len(),
                parent_columns.len()
            ),
        });
    }
    for (column, referred) in columns.iter().zip(indices(target, &parent_columns)?) {
        let (here, there) = (&child.columns[*column], &target.columns[referred]);
        if here.data_type != there.data_type {
            return Err(Error::Constraint {
                message: format!(
                    "foreign key of \"{}\": {} is {}, but {parent}.{} is {}",
                    child.name,
                    here.name,
                    crate::types::type_name(&here.data_type),
                    there.name,
                    crate::types::type_name(&there.data_type)
                ),
            });
        }
    }
    Ok(ForeignKey {
        columns,
        parent,
        parent_columns,
    })
}
