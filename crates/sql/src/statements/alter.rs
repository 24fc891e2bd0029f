//! `alter table`.

use std::time::Instant;

use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation as Operation, ColumnDef, Ident,
    RenameTableNameKind,
};
use table::Definition;

use crate::error::{Error, Result};
use crate::frontend::definition::define;
use crate::frontend::kept;
use crate::messages::nearest::unknown_column;
use crate::names::{check_column, check_new, column_name, table_name};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::constrain;
use crate::statements::scope::Scope;
use crate::statements::views::stays_unused;
use crate::statements::write::Writing;

/// `alter table [if exists] name change`.
pub(crate) async fn alter(
    scope: &mut Scope<'_>,
    statement: AlterTable,
    started: Instant,
) -> Result<Answer> {
    let name = table_name(&statement.name)?;
    let mut operations = statement.operations;
    let (Some(operation), true) = (operations.pop(), operations.is_empty()) else {
        return Err(Error::unsupported(
            "`alter table` makes one change at a time: write a statement for each",
        ));
    };
    let target = match &operation {
        Operation::RenameTable {
            table_name: RenameTableNameKind::To(to) | RenameTableNameKind::As(to),
        } => Some(table_name(to)?),
        _ => None,
    };
    let mut names = vec![name.as_str()];
    names.extend(target.as_deref());
    let (mut writing, mut context) = scope.write("ALTER TABLE", &names, started).await?;
    if statement.if_exists && context.tables.get(&name).is_none() {
        return Ok(Answer::changed(None, &context.clock));
    }
    let table = context.table(&name)?;
    let definition = table.definition();
    match operation {
        Operation::RenameTable { .. } => {
            let to = target.unwrap_or_default();
            check_new(&to)?;
            stays_unused(&context, &[&name])?;
            table::rename(&mut writing.tx, &name, &to)?;
        }
        Operation::RenameColumn {
            old_column_name,
            new_column_name,
        } => {
            let (from, to) = (column_name(&old_column_name), column_name(&new_column_name));
            known(definition, &from)?;
            free(definition, &to)?;
            stays_unused(&context, &[&name])?;
            table::rename_column(&mut writing.tx, &name, &from, &to)?;
        }
        Operation::AddColumn {
            if_not_exists,
            column_def,
            ..
        } => {
            add(
                &mut context,
                &mut writing,
                definition,
                column_def,
                if_not_exists,
            )
            .await?
        }
        Operation::DropColumn {
            column_names,
            if_exists,
            ..
        } => drop_columns(&context, &mut writing, definition, &column_names, if_exists)?,
        Operation::AlterColumn { column_name, op } => {
            column(&mut context, &mut writing, definition, &column_name, op).await?;
        }
        other if constrain::is_one(&other) => {
            constrain::change(&mut context, &mut writing, definition, &other).await?;
        }
        other => return Err(refused(&other)),
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

fn refused(operation: &Operation) -> Error {
    let text = operation.to_string();
    let start: Vec<&str> = text.split_whitespace().take(2).collect();
    Error::unsupported(format!(
        "`alter table ... {}` is not supported: use `create table new as select ...`",
        start.join(" ").to_lowercase()
    ))
}

fn known(definition: &Definition, column: &str) -> Result<()> {
    match definition.position(column) {
        Ok(_) => Ok(()),
        Err(_) => Err(unknown_column(column, definition)),
    }
}

/// That a new column may have this name.
fn free(definition: &Definition, column: &str) -> Result<()> {
    check_column(column)?;
    match definition.position(column) {
        Ok(_) => Err(Error::invalid(format!(
            "column \"{column}\" of table \"{}\" exists already",
            definition.name
        ))),
        Err(_) => Ok(()),
    }
}

async fn add(
    context: &mut StatementContext,
    writing: &mut Writing,
    definition: &Definition,
    column: ColumnDef,
    if_not_exists: bool,
) -> Result<()> {
    let name = column_name(&column.name);
    if if_not_exists && definition.position(&name).is_ok() {
        return Ok(());
    }
    free(definition, &name)?;
    let alone = define(
        &definition.name,
        vec![column],
        vec![],
        true,
        &context.types(),
        &context.tables,
    )?;
    let plain = alone.primary_key.is_empty()
        && alone.foreign_keys.is_empty()
        && alone.keys.is_empty()
        && alone.checks.is_empty();
    let (Some(column), true) = (alone.columns.into_iter().next(), plain) else {
        return Err(Error::unsupported(
            "`alter table ... add column` declares no keys and checks: add the column, then `alter table ... add constraint`",
        ));
    };
    let value = context.default_value(&column).await?;
    table::add_column(&mut writing.tx, &definition.name, column, &value)?;
    Ok(())
}

fn drop_columns(
    context: &StatementContext,
    writing: &mut Writing,
    definition: &Definition,
    columns: &[Ident],
    if_exists: bool,
) -> Result<()> {
    let table = &definition.name;
    stays_unused(context, &[table])?;
    for column in columns {
        let column = column_name(column);
        if !(if_exists && definition.position(&column).is_err()) {
            known(definition, &column)?;
            table::drop_column(&mut writing.tx, table, &column)?;
        }
    }
    Ok(())
}

async fn column(
    context: &mut StatementContext,
    writing: &mut Writing,
    definition: &Definition,
    column: &Ident,
    op: AlterColumnOperation,
) -> Result<()> {
    let column = column_name(column);
    known(definition, &column)?;
    let position = definition.position(&column)?;
    let mut own = definition.columns[position].clone();
    match op {
        AlterColumnOperation::SetDefault { value } => {
            let text = kept::text(&value)?;
            context.default(&column, &text, &own.data_type).await?;
            own.default = Some(text);
        }
        AlterColumnOperation::DropDefault => own.default = None,
        AlterColumnOperation::DropNotNull if definition.primary_key.contains(&position) => {
            return Err(Error::Constraint {
                message: format!("column \"{column}\" is in the primary key, which is NOT NULL"),
            });
        }
        AlterColumnOperation::DropNotNull => own.nullable = true,
        AlterColumnOperation::SetNotNull => {
            constrain::no_nulls(context, definition, &column).await?;
            own.nullable = false;
        }
        other @ (AlterColumnOperation::SetDataType { .. }
        | AlterColumnOperation::AddGenerated { .. }) => {
            return Err(refused(&Operation::AlterColumn {
                column_name: Ident::new(column),
                op: other,
            }));
        }
    }
    table::redefine(&mut writing.tx, &definition.name, |definition| {
        definition.columns[position] = own;
        Ok(())
    })?;
    Ok(())
}
