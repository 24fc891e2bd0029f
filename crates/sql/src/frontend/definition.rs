//! Table definitions from the columns and constraints of `create table`.

use arrow::datatypes::Schema;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, Expr, ForeignKeyConstraint, Ident, IndexColumn, Statement as Sql,
    TableConstraint,
};
use table::{Definition, ForeignKey, Tables};

use crate::error::{Error, Result};
use crate::frontend::parse::{Statement, parse};
use crate::frontend::{grammar, kept};
use crate::messages::nearest::{unknown_column, unknown_table};
use crate::messages::types::type_name;
use crate::names::{check_column, check_new, column_name, table_name};

/// The definition that `text` declares for a table `name`: a `create table` statement, whose own name does not matter,
/// or only its list of columns and keys. `context` knows the types, `tables` are those that foreign keys may name.
///
/// # Errors
/// As [`define`], and for texts that are neither.
pub(crate) fn of_text(
    name: &str,
    text: &str,
    context: &impl ContextProvider,
    tables: &Tables,
) -> Result<Definition> {
    let text = text.trim().trim_end_matches(';');
    let whole = text
        .get(..6)
        .is_some_and(|word| word.eq_ignore_ascii_case("create"));
    let statement = match (whole, text.starts_with('(')) {
        (true, _) => text.to_owned(),
        (false, true) => format!("create table t {text}"),
        (false, false) => format!("create table t ({text})"),
    };
    let neither =
        || Error::invalid("a schema is one `create table` with its columns, or their list");
    let mut statements = parse(&statement)?;
    let (Some(only), true) = (statements.pop(), statements.is_empty()) else {
        return Err(neither());
    };
    let Statement::Sql(sql) = only.statement else {
        return Err(neither());
    };
    let Sql::CreateTable(statement) = *sql else {
        return Err(neither());
    };
    if statement.query.is_some() {
        return Err(neither());
    }
    check_new(name)?;
    define(
        name,
        statement.columns,
        statement.constraints,
        context,
        tables,
    )
}

/// The definition of a table `name` with these columns and constraints.
///
/// # Errors
/// For columns and keys that cannot be declared, and for references to tables or columns that do not exist.
pub(crate) fn define(
    name: &str,
    columns: Vec<ColumnDef>,
    constraints: Vec<TableConstraint>,
    context: &impl ContextProvider,
    tables: &Tables,
) -> Result<Definition> {
    if columns.is_empty() {
        return Err(Error::invalid(format!(
            "table \"{name}\" needs at least one column"
        )));
    }
    let (columns, keys, defaults) = split_columns(columns)?;
    let schema = column_types(context, columns)?;
    let mut definition = Definition::from_schema(name, &schema)?;
    for (column, default) in definition.columns.iter_mut().zip(defaults) {
        column.default = default;
    }
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
                let key = foreign_key(tables, &definition, columns, parent, parent_columns)?;
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

/// Columns with name, type and NOT NULL, their keys, and the default of each.
type Split = (Vec<ColumnDef>, Vec<Key>, Vec<Option<String>>);

/// Separates keys and defaults from the columns.
fn split_columns(columns: Vec<ColumnDef>) -> Result<Split> {
    let (mut keys, mut defaults) = (Vec::new(), Vec::new());
    let mut plain = Vec::with_capacity(columns.len());
    for mut column in columns {
        let name = column_name(&column.name);
        check_column(&name)?;
        let (mut kept, mut default) = (Vec::new(), None);
        for option in std::mem::take(&mut column.options) {
            match option.option {
                ColumnOption::NotNull => kept.push(option),
                ColumnOption::Null | ColumnOption::Comment(_) => {}
                ColumnOption::PrimaryKey(key) => {
                    grammar::primary_key_parts(&key)?;
                    keys.push(Key::Primary(vec![name.clone()]));
                }
                ColumnOption::ForeignKey(key) => keys.push(foreign(key, Some(&name))?),
                ColumnOption::Default(value) => default = Some(kept::text(&value)?),
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
        defaults.push(default);
    }
    Ok((plain, keys, defaults))
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

/// The columns with the types that DataFusion's planner gives SQL's names.
fn column_types(context: &impl ContextProvider, columns: Vec<ColumnDef>) -> Result<Schema> {
    let schema = SqlToRel::new(context).build_schema(columns)?;
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

/// A foreign key, once its parent is known to exist with as many columns of the same types.
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
            return Err(unknown_table(&parent, tables));
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
                    type_name(&here.data_type),
                    there.name,
                    type_name(&there.data_type)
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
