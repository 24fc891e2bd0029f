//! `alter table`.

use std::time::Instant;

use arrow::array::new_null_array;
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation as Operation, ColumnDef, DropBehavior,
    Ident, RenameTableNameKind,
};
use syntax::changes::only_types;
use syntax::names::{
    base, catalog_name, check_column, column_name, schema_of, table_name, written,
};
use syntax::schemas::Kind;
use syntax::{kept, lengths, mentioned};
use table::{Definition, Table, titled};

use crate::bind::definition::{Defined, define};
use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::answer::Answer;
use crate::run::checks;
use crate::run::context::StatementContext;
use crate::run::domains::Conditions;
use crate::run::generated::GeneratedColumns;
use crate::statements::asked::stays_there;
use crate::statements::identity::{may_have_default, place};
use crate::statements::kept_texts::kept_texts;
use crate::statements::relation_kinds::has;
use crate::statements::relations::missing;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;
use crate::statements::{constrain, drop_columns, owned, rebuild, renames, texts};

/// `alter table [if exists] name change`.
pub(crate) async fn alter(
    scope: &mut Scope<'_>,
    statement: AlterTable,
    started: Instant,
) -> Result<Answer> {
    let name = table_name(&statement.name)?;
    let mut operations = statement.operations;
    if only_types(&operations) {
        return types(scope, (&name, statement.if_exists), operations, started).await;
    }
    let (Some(operation), true) = (operations.pop(), operations.is_empty()) else {
        // Where it is not a statement of its own, several were made of it.
        return Err(Error::unsupported(
            "`alter table` makes one change at a time here: write a statement for each",
        ));
    };
    if let Some(answer) = of_view(scope, (&name, statement.if_exists), &operation, started).await? {
        return Ok(answer);
    }
    changed(scope, (&name, statement.if_exists), operation, started).await
}

/// `alter table [if exists] name change`, of one change to a table.
async fn changed(
    scope: &mut Scope<'_>,
    (name, if_exists): (&str, bool),
    operation: Operation,
    started: Instant,
) -> Result<Answer> {
    let target = new_name(name, &operation)?;
    let mut names = vec![name];
    names.extend(target.as_deref());
    let (mut writing, mut context) = scope.write("ALTER TABLE", &names, started).await?;
    // PostgreSQL takes the word for views and sequences, too.
    if let Some(to) = &target
        && has(&context.tables, Kind::Table, name)
    {
        renames::relation(&*scope, &context, &mut writing, (name, to))?;
        scope.keep(writing).await?;
        return Ok(Answer::changed(None, &context.clock));
    }
    if if_exists && context.tables.get(name).is_none() {
        let notice = missing("relation", name);
        return Ok(Answer::changed(None, &context.clock).with_notice(notice));
    }
    let table = context.table(name)?;
    let definition = table.definition();
    let mut told = Vec::new();
    match operation {
        Operation::RenameColumn {
            old_column_name,
            new_column_name,
        } => {
            let (from, to) = (column_name(&old_column_name), column_name(&new_column_name));
            let of = (&*scope, &context);
            rename_column(of, &mut writing, definition, (&from, &to))?;
        }
        Operation::AddColumn {
            if_not_exists,
            column_def,
            ..
        } => {
            let of = (&mut context, writing);
            let (next, more) = add(scope, of, &table, column_def, if_not_exists).await?;
            writing = next;
            if more.is_none() {
                texts::without_more(&*scope, &context, &mut writing, definition)?;
            }
            told.extend(more);
        }
        Operation::DropColumn {
            column_names,
            if_exists,
            drop_behavior,
            ..
        } => {
            let cascade = matches!(drop_behavior, Some(DropBehavior::Cascade));
            let of = (&*scope, &context, &mut writing);
            told = drop_columns::drop(of, definition, &column_names, (if_exists, cascade))?;
        }
        Operation::AlterColumn { column_name, op } => {
            column(&mut context, &mut writing, definition, &column_name, op).await?;
        }
        other if constrain::is_one(&other) => {
            let of = (&mut context, &mut writing);
            told = constrain::change(&*scope, of, definition, &other).await?;
        }
        other => return Err(refused(&other)),
    }
    scope.keep(writing).await?;
    let answer = Answer::changed(None, &context.clock);
    Ok(told.into_iter().fold(answer, Answer::with_notice))
}

/// `alter table ... rename column` of a view: PostgreSQL takes the word for these, too. None of what is none.
async fn of_view(
    scope: &mut Scope<'_>,
    (name, if_exists): (&str, bool),
    operation: &Operation,
    started: Instant,
) -> Result<Option<Answer>> {
    let Operation::RenameColumn {
        old_column_name,
        new_column_name,
    } = operation
    else {
        return Ok(None);
    };
    if !has(&*scope.tables()?, Kind::View, name) {
        return Ok(None);
    }
    let (from, to) = (column_name(old_column_name), column_name(new_column_name));
    let answer = renames::view_column(scope, name, (&from, &to), if_exists, started);
    answer.await.map(Some)
}

/// `alter table` that only changes the types of columns.
async fn types(
    scope: &mut Scope<'_>,
    (name, if_exists): (&str, bool),
    operations: Vec<Operation>,
    started: Instant,
) -> Result<Answer> {
    let (writing, mut context) = scope.write("ALTER TABLE", &[name], started).await?;
    if if_exists && context.tables.get(name).is_none() {
        let notice = missing("relation", name);
        return Ok(Answer::changed(None, &context.clock).with_notice(notice));
    }
    let table = context.table(name)?;
    let own = &*scope;
    let writing = rebuild::retype(own, &mut context, writing, &table, operations).await?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// The name that a table is to get.
fn new_name(name: &str, operation: &Operation) -> Result<Option<String>> {
    match operation {
        Operation::RenameTable {
            table_name: RenameTableNameKind::To(to) | RenameTableNameKind::As(to),
        } => {
            let to = written(to)?;
            if table::schema_of(&to).is_some_and(|schema| schema != schema_of(name)) {
                return Err(Error::unsupported(
                    "`rename to` leaves a table in its schema: `set schema` moves it to another",
                ));
            }
            Ok(Some(catalog_name(schema_of(name), base(&to))))
        }
        _ => Ok(None),
    }
}

fn rename_column(
    (scope, context): (&Scope<'_>, &StatementContext),
    writing: &mut Writing,
    definition: &Definition,
    (from, to): (&str, &str),
) -> Result<()> {
    known(definition, from)?;
    free(definition, to)?;
    let name = &definition.name;
    let columns = definition.columns.iter().map(|own| {
        let old = own.name.as_str();
        (if old == from { to } else { old }, old)
    });
    texts::with_columns(scope, context, writing, (name, columns.collect()))?;
    table::rename_column(&mut writing.tx, name, from, to)?;
    kept_texts(writing, name, |text| mentioned::with_column(text, from, to))
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
        Ok(_) => Err(Error::coded(
            "42701",
            format!(
                "column \"{column}\" of table \"{}\" exists already",
                definition.name
            ),
        )),
        Err(_) => Ok(()),
    }
}

/// Adds a column. Returns what is to be told.
#[expect(clippy::too_many_lines, reason = "one kind of column after the other")]
async fn add(
    scope: &Scope<'_>,
    (context, mut writing): (&mut StatementContext, Writing),
    table: &Table,
    column: ColumnDef,
    if_not_exists: bool,
) -> Result<(Writing, Option<String>)> {
    let definition = table.definition();
    let name = column_name(&column.name);
    if if_not_exists && definition.position(&name).is_ok() {
        let notice = format!(
            "column \"{name}\" of relation \"{}\" already exists, skipping",
            titled(&definition.name)
        );
        return Ok((writing, Some(notice)));
    }
    free(definition, &name)?;
    let Defined {
        definition: mut alone,
        sequences,
        notices,
    } = define(
        &definition.name,
        vec![column],
        vec![],
        true,
        &context.types(),
        &context.tables,
    )?;
    if let Some(notice) = notices.first() {
        return Err(Error::unsupported(notice.clone()));
    }
    let length = alone.checks.pop_if(|check| lengths::is_one(check));
    let plain = alone.primary_key.is_empty()
        && alone.foreign_keys.is_empty()
        && alone.keys.is_empty()
        && alone.checks.is_empty();
    if !plain {
        return Err(Error::unsupported(
            "`alter table ... add column` declares no keys and checks: add the column, then `alter table ... add constraint`",
        ));
    }
    let numbered = sequences.first().map(|own| own.options.clone());
    owned::create(scope, context, &mut writing, &mut alone, sequences, &[])?;
    let column = alone.columns.swap_remove(0);
    let mut after = definition.clone();
    after.columns.push(column.clone());
    let made = numbered.is_some() || column.expression().is_some();
    if made {
        GeneratedColumns::check(context, &after).await?;
    }
    if made && table.rows() > 0 {
        let new = match numbered {
            None => "null".to_owned(),
            Some(options) => {
                let rows = table.rows();
                owned::numbered(scope, &mut writing, &column, &options, rows)?
            }
        };
        let length = length.map(|length| lengths::named_anew(length, definition));
        after.checks.extend(length);
        let old = definition.columns.iter();
        let old = old.map(|own| rebuild::column_text(&own.name));
        let values: Vec<String> = old.chain([new]).collect();
        let writing = rebuild::rebuild(context, writing, &after, &values).await?;
        return Ok((writing, None));
    }
    let mut value = if made {
        new_null_array(&column.data_type, 1)
    } else {
        context.default_value(&column).await?
    };
    if let Some(domain) = column.domain.as_ref().filter(|_| !made && table.rows() > 0) {
        Conditions::new(context, domain).await?.test(&value)?;
    }
    let check = length.map(|length| lengths::named_anew(length, definition));
    if let Some(length) = check
        .as_ref()
        .and_then(|check| checks::length(check, &after))
    {
        value = checks::length_of(&length, &value)?;
    }
    table::add_column(&mut writing.tx, &definition.name, column, &value)?;
    if let Some(check) = check {
        table::redefine(&mut writing.tx, &definition.name, |own| {
            own.checks.push(check.clone());
            Ok(())
        })?;
    }
    Ok((writing, None))
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
            may_have_default(definition, position, false)?;
            let text = kept::text(&value)?;
            context.default(&column, &text, &own.data_type).await?;
            stays_there(&definition.name, &column, &text)?;
            own.default = Some(text);
        }
        AlterColumnOperation::DropDefault => {
            may_have_default(definition, position, true)?;
            own.default = None;
        }
        AlterColumnOperation::DropNotNull if own.identity().is_some() => {
            return Err(Error::coded(
                "42601",
                format!("{} is an identity column", place(definition, position)),
            ));
        }
        AlterColumnOperation::DropNotNull if definition.primary_key.contains(&position) => {
            return Err(Error::Constraint {
                code: "42P16",
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
