//! `create table`, `drop table`, `truncate`.

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::{Field, Schema};
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, Expr, ForeignKeyConstraint, Ident, IndexColumn,
    ObjectName, Query, Statement as Sql, TableConstraint,
};
use futures::TryStreamExt;
use table::{Definition, ForeignKey, Tables};

use crate::error::{Error, Result};
use crate::frontend::names::{check_column, check_new, column_name, table_name};
use crate::frontend::{grammar, rewrite};
use crate::run::answer::Answer;
use crate::run::context::Scope;
use crate::run::engine::Engine;
use crate::run::query;
use crate::statements::write::Writing;

/// `create [or replace] table [if not exists] name (columns) | as query`.
pub(crate) async fn create(
    engine: &Arc<Engine>,
    statement: CreateTable,
    started: Instant,
) -> Result<Answer> {
    let name = table_name(&statement.name)?;
    check_new(&name)?;
    let mut writing = Writing::begin(engine).await?;
    let mut scope = Scope::new(engine, writing.tx.base(), started)?;
    if scope.tables.get(&name).is_some() {
        if statement.if_not_exists {
            return Ok(Answer::changed(None, &scope.clock));
        }
        if !statement.or_replace {
            return Err(Error::TableExists { name });
        }
        drop_order(&scope.tables, &[&name])?;
        table::drop(&mut writing.tx, &name)?;
    }
    let changed = match statement.query {
        Some(query) if statement.columns.is_empty() => {
            let (filled, rows) = create_as(&mut scope, writing, &name, query).await?;
            writing = filled;
            Some(rows)
        }
        Some(_) => {
            return Err(Error::unsupported(
                "`create table name (columns) as` is not supported: rename the columns in the query with `as`",
            ));
        }
        None => {
            let definition = define(&scope, &name, statement.columns, statement.constraints)?;
            table::create(&mut writing.tx, &definition)?;
            None
        }
    };
    writing.commit().await?;
    Ok(Answer::changed(changed, &scope.clock))
}

async fn create_as<'e>(
    scope: &mut Scope,
    mut writing: Writing<'e>,
    name: &str,
    query: Box<Query>,
) -> Result<(Writing<'e>, u64)> {
    let plan = scope.plan(Sql::Query(query), None).await?;
    let fields: Vec<Field> = plan
        .schema()
        .fields()
        .iter()
        .map(|field| {
            Field::new(
                rewrite::shown(field.name()),
                field.data_type().clone(),
                true,
            )
        })
        .collect();
    for (i, field) in fields.iter().enumerate() {
        check_column(field.name())?;
        if fields[..i].iter().any(|other| other.name() == field.name()) {
            return Err(rewrite::twice_named(field.name()));
        }
    }
    let definition = Definition::from_schema(name, &Schema::new(fields))?;
    table::create(&mut writing.tx, &definition)?;
    let rows = query::rows(scope, &plan).await?.map_err(Error::from);
    writing
        .append(name, &definition, rows, scope.engine.workers().width())
        .await
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
fn define(
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

/// The order in which to drop `names`: whoever refers to another goes first.
///
/// # Errors
///
/// When a table that stays refers to one of them.
fn drop_order(tables: &Tables, names: &[&str]) -> Result<Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    let parents = |child: &str| {
        let table = tables.get(child);
        table.map_or(Vec::new(), |t| {
            t.definition()
                .foreign_keys
                .iter()
                .map(|key| key.parent.clone())
                .collect()
        })
    };
    let refers =
        |child: &str, parent: &str| child != parent && parents(child).iter().any(|p| p == parent);
    let staying = tables
        .names()
        .into_iter()
        .filter(|name| !names.contains(name));
    for child in staying {
        if let Some(parent) = names.iter().find(|name| refers(child, name)) {
            return Err(Error::Constraint {
                message: format!(
                    "table \"{parent}\" is referred to by a foreign key of \"{child}\"; drop \"{child}\" first, or both in one statement"
                ),
            });
        }
    }
    // A parent exists before its child does, so there is always one that nobody left refers to.
    while order.len() < names.len() {
        let left = || {
            names
                .iter()
                .filter(|name| !order.iter().any(|done| done == *name))
        };
        match left().find(|name| !left().any(|other| refers(other, name))) {
            Some(next) => order.push((*next).to_string()),
            None => {
                return Err(Error::Constraint {
                    message: "the tables refer to each other".into(),
                });
            }
        }
    }
    Ok(order)
}

/// `drop table [if exists] a, b`.
pub(crate) async fn drop(
    engine: &Arc<Engine>,
    names: Vec<ObjectName>,
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    let mut writing = Writing::begin(engine).await?;
    let scope = Scope::new(engine, writing.tx.base(), started)?;
    let mut there: Vec<&str> = Vec::new();
    for name in &names {
        match scope.table(name) {
            Ok(_) if there.contains(&name.as_str()) => {}
            Ok(_) => there.push(name),
            Err(_) if if_exists => {}
            Err(e) => return Err(e),
        }
    }
    for name in drop_order(&scope.tables, &there)? {
        table::drop(&mut writing.tx, &name)?;
    }
    if !there.is_empty() {
        writing.commit().await?;
    }
    Ok(Answer::changed(None, &scope.clock))
}

/// `truncate [table] a, b`.
pub(crate) async fn truncate(
    engine: &Arc<Engine>,
    names: Vec<ObjectName>,
    started: Instant,
) -> Result<Answer> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    let mut writing = Writing::begin(engine).await?;
    let scope = Scope::new(engine, writing.tx.base(), started)?;
    let mut rows = 0;
    for name in &names {
        rows += empty(&scope, &mut writing, name)?;
    }
    writing.commit().await?;
    Ok(Answer::changed(Some(rows), &scope.clock))
}

/// Removes all rows of a table, and says how many there were.
pub(crate) fn empty(scope: &Scope, writing: &mut Writing<'_>, name: &str) -> Result<u64> {
    let table = scope.table(name)?;
    table::truncate(&mut writing.tx, name)?;
    Ok(table.rows())
}
