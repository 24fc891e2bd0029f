//! Constraints as `create table` and `alter table` declare them.

use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ColumnOption, ColumnOptionDef, ConstraintCharacteristics, Expr,
    ForeignKeyConstraint, Ident, IndexColumn, ReferentialAction, TableConstraint,
};
use table::Action;

use crate::error::{Error, Result};
use crate::frontend::{grammar, kept};
use crate::names::{column_name, table_name};

/// A constraint as the statement has it.
#[derive(Debug)]
pub(crate) struct Constraint {
    /// The name that it was given.
    pub name: Option<String>,
    /// Whether it holds, unless the table says that keys are declared only.
    pub held: bool,
    pub what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Primary(Vec<String>),
    Unique(Vec<String>),
    Check {
        text: String,
    },
    Foreign {
        columns: Vec<String>,
        parent: String,
        /// Empty for the primary key.
        parent_columns: Vec<String>,
        on_delete: Action,
        on_update: Action,
    },
}

/// The constraint that an option of a column is, if it is one.
///
/// # Errors
/// For what no constraint of a column may have.
pub(crate) fn of_column(column: &str, option: &ColumnOptionDef) -> Result<Option<Constraint>> {
    let named = |name: &Option<Ident>| option.name.as_ref().or(name.as_ref()).map(column_name);
    let own = || vec![column.to_owned()];
    Ok(Some(match &option.option {
        ColumnOption::PrimaryKey(key) => {
            grammar::primary_key_parts(key)?;
            Constraint {
                name: named(&key.name),
                held: holds(&key.characteristics),
                what: What::Primary(own()),
            }
        }
        ColumnOption::Unique(key) => {
            grammar::unique_parts(key)?;
            Constraint {
                name: named(&key.name),
                held: holds(&key.characteristics),
                what: What::Unique(own()),
            }
        }
        ColumnOption::Check(own) => {
            let name = named(&own.name);
            check(own, name)?
        }
        ColumnOption::ForeignKey(key) => {
            let name = named(&key.name);
            foreign(key, name, own())?
        }
        _ => return Ok(None),
    }))
}

/// The constraint that a table declares.
///
/// # Errors
/// For what it may not have, and for constraints of other databases.
pub(crate) fn of_table(constraint: &TableConstraint) -> Result<Constraint> {
    let named = |name: &Option<Ident>| name.as_ref().map(column_name);
    Ok(match constraint {
        TableConstraint::PrimaryKey(key) => {
            grammar::primary_key_parts(key)?;
            Constraint {
                name: named(&key.name),
                held: holds(&key.characteristics),
                what: What::Primary(key.columns.iter().map(key_column).collect::<Result<_>>()?),
            }
        }
        TableConstraint::Unique(key) => {
            grammar::unique_parts(key)?;
            Constraint {
                name: named(&key.name),
                held: holds(&key.characteristics),
                what: What::Unique(key.columns.iter().map(key_column).collect::<Result<_>>()?),
            }
        }
        TableConstraint::ForeignKey(key) => {
            let columns = key.columns.iter().map(column_name).collect();
            foreign(key, named(&key.name), columns)?
        }
        TableConstraint::Check(own) => check(own, named(&own.name))?,
        other => {
            return Err(Error::unsupported(format!(
                "`{other}` is not supported: a table can declare primary, unique and foreign keys, and checks"
            )));
        }
    })
}

/// Whether a key is not `not enforced`.
fn holds(characteristics: &Option<ConstraintCharacteristics>) -> bool {
    let enforced = characteristics.as_ref().and_then(|c| c.enforced);
    enforced != Some(false)
}

fn check(check: &CheckConstraint, name: Option<String>) -> Result<Constraint> {
    if check.enforced == Some(false) {
        return Err(Error::unsupported(
            "`check ... not enforced` is not supported: leave it out",
        ));
    }
    Ok(Constraint {
        name,
        held: true,
        what: What::Check {
            text: kept::text(&check.expr)?,
        },
    })
}

fn key_column(column: &IndexColumn) -> Result<String> {
    match &column.column.expr {
        Expr::Identifier(name) => Ok(column_name(name)),
        other => Err(Error::unsupported(format!(
            "a key is made of columns, not of {other}"
        ))),
    }
}

fn foreign(
    key: &ForeignKeyConstraint,
    name: Option<String>,
    columns: Vec<String>,
) -> Result<Constraint> {
    grammar::foreign_key(key)?;
    Ok(Constraint {
        name,
        held: holds(&key.characteristics),
        what: What::Foreign {
            columns,
            parent: table_name(&key.foreign_table)?,
            parent_columns: key.referred_columns.iter().map(column_name).collect(),
            on_delete: action(key.on_delete)?,
            on_update: action(key.on_update)?,
        },
    })
}

fn action(action: Option<ReferentialAction>) -> Result<Action> {
    match action {
        None | Some(ReferentialAction::NoAction | ReferentialAction::Restrict) => {
            Ok(Action::NoAction)
        }
        Some(ReferentialAction::Cascade) => Ok(Action::Cascade),
        Some(ReferentialAction::SetNull) => Ok(Action::SetNull),
        Some(ReferentialAction::SetDefault) => Err(Error::unsupported(
            "`set default` of a foreign key is not supported: there are no action, restrict, cascade and set null",
        )),
    }
}
