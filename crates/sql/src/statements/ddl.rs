//! `create table`, `drop table`, `truncate`.

use std::time::Instant;

use arrow::datatypes::{Field, Schema};
use futures::TryStreamExt;
use sqlparser::ast::{
    CascadeOption, ColumnDef, CreateTable, DataType, ObjectName, OnCommit, Query, Statement as Sql,
    Truncate, TruncateIdentityOption,
};
use syntax::names::{base, check_column, check_new, column_name, table_name, temporary, written};
use syntax::row_order;
use syntax::sequences::SequenceOptions;
use syntax::table_options::keys_hold;
use table::{Definition, Privileges, Tables, titled};

use crate::bind::definition::{Defined, define};
use crate::error::{Error, Result};
use crate::messages::tags::shown;
use crate::run::answer::Answer;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::generated::GeneratedColumns;
use crate::run::{modifiers, query};
use crate::statements::asked::stay_there;
use crate::statements::cascade::drop_dependents;
use crate::statements::owned;
use crate::statements::references::{may_empty, referring_tables};
use crate::statements::relations::{self, taken, there_already};
use crate::statements::scope::Scope;
use crate::statements::sequences::{self, no_sequence};
use crate::statements::views::{stay_unread, stays_unused};
use crate::statements::write::Writing;

/// `create [or replace] table [if not exists] name (columns) | as query`.
pub(crate) async fn create(
    scope: &mut Scope<'_>,
    statement: CreateTable,
    started: Instant,
) -> Result<Answer> {
    let name = new_name(scope, &statement)?;
    let on_commit = on_commit(&statement)?;
    let (mut writing, mut context) = scope.write("CREATE TABLE", &[&name], started).await?;
    if statement.temporary {
        scope.temporary().begin(&context, &mut writing)?;
    }
    if on_commit != table::OnCommit::Preserve {
        scope.temporary().ends();
    }
    scope.schema_stays(&context, &name)?;
    no_sequence(&context.tables, &name)?;
    let mut gone: Vec<String> = Vec::new();
    if context.tables.get(&name).is_some() {
        if statement.if_not_exists {
            return Ok(Answer::changed(None, &context.clock).with_notice(there_already(&name)));
        }
        if !statement.or_replace {
            return Err(Error::TableExists { name });
        }
        context.rights.check_owner(&context.tables, &name)?;
        may_go(&context.tables, &[&name], false)?;
        stays_unused(&context, &[&name])?;
        sequences_may_go(scope, &context, &name, &[&name])?;
        let before = context.table(&name)?;
        let columns = before.definition().columns.iter();
        gone = columns.flat_map(|c| c.sequences.iter().cloned()).collect();
        table::drop(&mut writing.tx, &name)?;
    } else if context.tables.view(&name).is_some() {
        return Err(Error::TableExists { name });
    }
    let mut told = Vec::new();
    let changed = match statement.query {
        Some(query) if statement.columns.iter().all(is_name) => {
            let names = statement.columns.iter().map(|own| column_name(&own.name));
            let names: Vec<String> = names.collect();
            let own = (name.as_str(), names.as_slice(), on_commit);
            let (filled, rows) = create_as(&mut context, writing, own, query).await?;
            writing = filled;
            Some(rows)
        }
        Some(_) => {
            return Err(Error::unsupported(
                "`create table ... as` takes names of columns, and not their types: cast in the query",
            ));
        }
        None => {
            told = declare(scope, (&mut context, &mut writing), &name, statement, &gone).await?;
            None
        }
    };
    scope.keep(writing).await?;
    let answer = Answer::changed(changed, &context.clock);
    Ok(told.into_iter().fold(answer, Answer::with_notice))
}

/// Whether a column of a `create table ... as` is a name alone.
fn is_name(column: &ColumnDef) -> bool {
    column.data_type == DataType::Unspecified && column.options.is_empty()
}

/// Creates the table that a statement declares, and returns what is to be told of it.
async fn declare(
    scope: &mut Scope<'_>,
    (context, writing): (&mut StatementContext, &mut Writing),
    name: &str,
    statement: CreateTable,
    gone: &[String],
) -> Result<Vec<String>> {
    let on_commit = on_commit(&statement)?;
    let Defined {
        mut definition,
        sequences,
        notices,
    } = define(
        name,
        statement.columns,
        statement.constraints,
        keys_hold(&statement.table_options)?,
        &context.types(),
        &context.tables,
    )?;
    definition.on_commit = on_commit;
    definition.order = row_order::columns(statement.order_by.as_ref(), &definition)?;
    owned::create(scope, context, writing, &mut definition, sequences, gone)?;
    GeneratedColumns::check(context, &definition).await?;
    may_refer(context, &definition, 0)?;
    context.defaults_of(&definition).await?;
    stay_there(&definition)?;
    Checks::new(context, &definition).await?;
    table::create(&mut writing.tx, &definition)?;
    Ok(notices)
}

/// That whose statement it is may declare the foreign keys of a table, but for the first `known`.
///
/// # Errors
/// [`Error::Denied`].
pub(crate) fn may_refer(context: &StatementContext, own: &Definition, known: usize) -> Result<()> {
    let mut keys = own.foreign_keys.iter().skip(known);
    keys.try_for_each(|key| {
        if key.parent == own.name {
            Ok(())
        } else {
            context.may(&key.parent, Privileges::REFERENCES)
        }
    })
}

/// What becomes of the rows of a new table at the end of a transaction.
fn on_commit(statement: &CreateTable) -> Result<table::OnCommit> {
    let own = match statement.on_commit {
        None | Some(OnCommit::PreserveRows) => table::OnCommit::Preserve,
        Some(OnCommit::DeleteRows) => table::OnCommit::DeleteRows,
        Some(OnCommit::Drop) => table::OnCommit::Drop,
    };
    if statement.on_commit.is_some() && !statement.temporary {
        return Err(Error::coded(
            "42P16",
            "ON COMMIT can only be used on temporary tables",
        ));
    }
    Ok(own)
}

/// What the new table is called in the catalog.
fn new_name(scope: &Scope<'_>, statement: &CreateTable) -> Result<String> {
    let name = written(&statement.name)?;
    if !statement.temporary {
        return scope.new_name(&name);
    }
    check_new(&name)?;
    Ok(temporary(scope.temporary().schema(), &name))
}

async fn create_as(
    context: &mut StatementContext,
    mut writing: Writing,
    (name, names, on_commit): (&str, &[String], table::OnCommit),
    query: Box<Query>,
) -> Result<(Writing, u64)> {
    let plan = context.plan(Sql::Query(query), None).await?;
    let fields = plan.schema().fields().iter().enumerate();
    let fields: Vec<Field> = fields
        .map(|(at, field)| {
            let own = names.get(at).map_or(shown(field.name()), String::as_str);
            Field::new(own, field.data_type().clone(), true)
        })
        .collect();
    if names.len() > fields.len() {
        return Err(Error::coded(
            "42601",
            "too many column names were specified",
        ));
    }
    for (i, field) in fields.iter().enumerate() {
        check_column(field.name())?;
        if fields[..i].iter().any(|other| other.name() == field.name()) {
            return Err(Error::duplicate_column(field.name()));
        }
    }
    let mut definition = Definition::from_schema(name, &Schema::new(fields))?;
    definition.on_commit = on_commit;
    modifiers::keep(&mut definition, &modifiers::of_plan(&plan));
    table::create(&mut writing.tx, &definition)?;
    let rows = query::rows_to_write(context, &plan)
        .await?
        .map_err(Error::from);
    writing
        .append(
            &definition,
            &Checks::default(),
            rows,
            context.instance.workers().width(),
        )
        .await
}

/// That no table that stays refers to one of `names`, which go, unless its foreign keys go, too.
///
/// # Errors
/// [`Error::Constraint`] names the foreign key.
fn may_go(tables: &Tables, names: &[&str], cascade: bool) -> Result<()> {
    let staying = tables.names().into_iter();
    for child in staying.filter(|name| !names.contains(name) && !cascade) {
        let Some(own) = tables.get(child).map(|child| child.definition()) else {
            continue;
        };
        for (at, key) in own.foreign_keys.iter().enumerate() {
            if !names.contains(&key.parent.as_str()) {
                continue;
            }
            let rule = own.rules.iter().find(|rule| rule.foreign_key == at);
            let what = match rule {
                Some(rule) => format!("constraint {}", rule.name),
                None => "a foreign key".to_owned(),
            };
            let parent = titled(&key.parent);
            return Err(Error::Constraint {
                code: "2BP01",
                message: format!(
                    "cannot drop table {parent} because other objects depend on it: {what} on table {} depends on table {parent}",
                    titled(child)
                ),
            });
        }
    }
    Ok(())
}

/// `drop table [if exists] a, b [cascade]`.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    (if_exists, cascade): (bool, bool),
    started: Instant,
) -> Result<Answer> {
    let is_there = |context: &StatementContext, name: &str| match context.table(name) {
        Ok(_) => Ok(true),
        Err(e) if taken(context, name)? => Err(e),
        Err(_) if if_exists => Ok(false),
        Err(_) => Err(Error::coded(
            "42P01",
            format!("table \"{}\" does not exist", base(name)),
        )),
    };
    relations::drop(
        scope,
        "DROP TABLE",
        names,
        started,
        is_there,
        |scope, context, writing, there| {
            let gone = if cascade {
                drop_dependents(scope, context, writing, there)?
            } else {
                stay_unread(context, there)?;
                Vec::new()
            };
            may_go(&context.tables, there, cascade)?;
            for name in there {
                // They may refer to each other.
                table::redefine(&mut writing.tx, name, |own| {
                    own.forget_references(|parent| there.contains(&parent));
                    Ok(())
                })?;
            }
            for name in there {
                sequences_may_go(scope, context, name, there)?;
                table::drop(&mut writing.tx, name)?;
            }
            Ok(gone)
        },
    )
    .await
}

/// The right to drop the sequences of a table, which others than the tables `there` do not ask.
fn sequences_may_go(
    scope: &Scope<'_>,
    context: &StatementContext,
    name: &str,
    there: &[&str],
) -> Result<()> {
    let table = context.table(name)?;
    let columns = &table.definition().columns;
    owned::may_go(scope, context, columns, &format!("table {name}"), there)
}

/// `truncate [table] a, b [restart identity]`.
pub(crate) async fn truncate(
    scope: &mut Scope<'_>,
    statement: Truncate,
    started: Instant,
) -> Result<Answer> {
    let names = statement.table_names.iter().map(|target| &target.name);
    let names = names.map(table_name).collect::<Result<Vec<_>>>()?;
    let targets: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write("TRUNCATE TABLE", &targets, started).await?;
    let (mut names, mut told) = (names, Vec::new());
    if matches!(statement.cascade, Some(CascadeOption::Cascade)) {
        for name in referring_tables(&context.tables, &names) {
            scope.claim(std::slice::from_ref(&name))?;
            context.may(&name, Privileges::TRUNCATE)?;
            told.push(format!("truncate cascades to table \"{}\"", titled(&name)));
            names.push(name);
        }
    }
    may_empty(&context.tables, &names)?;
    let mut rows = 0;
    for name in &names {
        rows += empty(&context, &mut writing, name)?;
        if let Some(TruncateIdentityOption::Restart) = statement.identity {
            restart(scope, &context, &mut writing, name)?;
        }
    }
    scope.keep(writing).await?;
    let answer = Answer::changed(Some(rows), &context.clock);
    Ok(told.into_iter().fold(answer, Answer::with_notice))
}

/// Has the sequences of a table begin anew.
fn restart(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    name: &str,
) -> Result<()> {
    let table = context.table(name)?;
    let options = SequenceOptions {
        restart: Some(None),
        ..SequenceOptions::default()
    };
    let columns = table.definition().columns.iter();
    for sequence in columns.flat_map(|column| &column.sequences) {
        scope.claim(std::slice::from_ref(sequence))?;
        sequences::change(scope, context, writing, sequence, &options)?;
    }
    Ok(())
}

/// Removes all rows of a table, and says how many there were.
pub(crate) fn empty(context: &StatementContext, writing: &mut Writing, name: &str) -> Result<u64> {
    let table = context.table(name)?;
    table::truncate(&mut writing.tx, name)?;
    Ok(table.rows())
}
