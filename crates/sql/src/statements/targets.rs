//! The tables that statements change, by the names that they have in the catalog: those of
//! [temporary tables](crate::statements::temporary) are others than a session writes.

use datafusion::sql::sqlparser::ast::{
    FromTable, Ident, ObjectName, ObjectType, Statement as Sql, TableAlias, TableFactor,
    TableObject, TableWithJoins,
};

use crate::error::Result;
use crate::frontend::parse::Statement;
use crate::names::{base, session_of, table_name};
use crate::statements::scope::Scope;

/// Puts their names in the catalog in the places of the temporary tables that `statement` changes.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) fn named(scope: &mut Scope<'_>, statement: &mut Statement) -> Result<()> {
    if scope.session_schema().is_none() {
        return Ok(());
    }
    match statement {
        // They outlive the session.
        Statement::View { .. } | Statement::Materialized(_) => {
            scope.without_temporary();
            Ok(())
        }
        Statement::Sql(sql) | Statement::Returning { statement: sql, .. } => of_sql(scope, sql),
        Statement::Explain { statement, .. } => named(scope, statement),
        Statement::Identity(change) => {
            change.table = scope.own(std::mem::take(&mut change.table))?;
            Ok(())
        }
        Statement::CopyFrom(copy) => replace(scope, &mut copy.table),
        _ => Ok(()),
    }
}

fn of_sql(scope: &Scope<'_>, sql: &mut Sql) -> Result<()> {
    match sql {
        Sql::Insert(insert) => match &mut insert.table {
            TableObject::TableName(name) => replace(scope, name),
            _ => Ok(()),
        },
        Sql::Update(update) => aliased(scope, &mut update.table),
        Sql::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                &mut delete.from;
            from.iter_mut().try_for_each(|table| aliased(scope, table))
        }
        Sql::Truncate(truncate) => {
            let mut targets = truncate.table_names.iter_mut();
            targets.try_for_each(|target| replace(scope, &mut target.name))
        }
        Sql::AlterTable(alter) => replace(scope, &mut alter.name),
        Sql::Drop {
            object_type: ObjectType::Table,
            names,
            ..
        } => names.iter_mut().try_for_each(|name| replace(scope, name)),
        Sql::ExplainTable { table_name, .. } => replace(scope, table_name),
        _ => Ok(()),
    }
}

/// Replaces the name of a table that keeps it as the name of its columns.
fn aliased(scope: &Scope<'_>, table: &mut TableWithJoins) -> Result<()> {
    let TableFactor::Table { name, alias, .. } = &mut table.relation else {
        return Ok(());
    };
    replace(scope, name)?;
    if alias.is_none()
        && let Ok(stored) = table_name(name)
        && session_of(&stored).is_some()
    {
        *alias = Some(TableAlias {
            explicit: true,
            name: Ident::with_quote('"', base(&stored)),
            columns: Vec::new(),
            at: None,
        });
    }
    Ok(())
}

fn replace(scope: &Scope<'_>, name: &mut ObjectName) -> Result<()> {
    if let [_] = &name.0[..]
        && let Ok(plain) = table_name(name)
    {
        let stored = scope.own(plain)?;
        if session_of(&stored).is_some() {
            *name = ObjectName::from(vec![Ident::with_quote('"', stored)]);
        }
    }
    Ok(())
}
