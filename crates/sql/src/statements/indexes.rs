//! `create index`: a unique one is a key here, and any other a name, as zone maps do its work; `drop index`.

use std::time::Instant;

use datafusion::sql::sqlparser::ast::{
    CreateIndex, Expr, IndexColumn, IndexType, ObjectName, OrderByExpr, Statement as Sql,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use table::{Definition, Index, Tables};

use crate::error::{Error, Result};
use crate::frontend::parse::{Statement, parse};
use crate::messages::nearest::unknown_column;
use crate::names::{base, catalog_name, column_name, quoted, schema_of, written};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::alter;
use crate::statements::relations::taken;
use crate::statements::scope::Scope;

/// `create [unique] index [concurrently] [[if not exists] name] on table [using method] (columns)`: adds a key, or a name.
///
/// # Errors
/// For an index that has what none has here; if something has its name; those of adding a key.
pub(crate) async fn create(
    scope: &mut Scope<'_>,
    statement: CreateIndex,
    started: Instant,
) -> Result<Answer> {
    let method = plain(&statement)?;
    let table = scope.own(&written(&statement.table_name)?)?;
    let parts: Vec<Part> = statement.columns.iter().map(part).collect::<Result<_>>()?;
    let name = match &statement.name {
        Some(name) => Some(own_name(name, &table)?),
        None => None,
    };
    if statement.if_not_exists
        && let Some(name) = &name
    {
        let context = scope.read(started).await?;
        if is_taken(&context, &catalog_name(schema_of(&table), name))? {
            return Ok(Answer::changed(None, &context.clock)
                .with_notice(format!("relation \"{name}\" already exists, skipping")));
        }
    }
    if statement.unique {
        return unique(scope, (&table, name), &parts, started).await;
    }
    let (mut writing, context) = scope.write("CREATE INDEX", &[&table], started).await?;
    let definition = context.table(&table)?.definition().clone();
    let columns: Vec<table::IndexColumn> = parts
        .iter()
        .map(|part| part.of(&definition))
        .collect::<Result<_>>()?;
    let in_schema = |name: &str| catalog_name(schema_of(&table), name);
    let name = match name {
        Some(name) if is_taken(&context, &in_schema(&name))? => {
            return Err(Error::coded(
                "42P07",
                format!("relation \"{name}\" already exists"),
            ));
        }
        Some(name) => name,
        None => {
            let columns: Vec<&str> = parts.iter().map(|part| part.column.as_str()).collect();
            let wanted = format!("{}_{}_idx", base(&table), columns.join("_"));
            let (mut free, mut number) = (wanted.clone(), 0);
            while is_taken(&context, &in_schema(&free))? {
                number += 1;
                free = format!("{wanted}{number}");
            }
            free
        }
    };
    let notice = format!(
        "index \"{name}\" is a name only: scans skip the blocks that their statistics rule out, which needs no index"
    );
    let index = Index {
        name,
        method,
        columns,
    };
    table::redefine(&mut writing.tx, &table, |own| {
        own.indexes.push(index);
        Ok(())
    })?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock).with_notice(notice))
}

/// The name of an index, which is in the schema of its table.
fn own_name(name: &ObjectName, table: &str) -> Result<String> {
    let name = written(name)?;
    if table::schema_of(&name).is_some_and(|schema| schema != schema_of(table)) {
        return Err(Error::coded(
            "42601",
            format!(
                "an index is in the schema of its table: call it {}",
                base(&name)
            ),
        ));
    }
    Ok(base(&name).to_owned())
}

/// Whether a table, a view, a sequence or an index has this name in the catalog.
fn is_taken(context: &StatementContext, name: &str) -> Result<bool> {
    let tables = &context.tables;
    let mut others = tables.names().into_iter();
    let has = |table: &str| {
        schema_of(table) == schema_of(name)
            && definition(tables, table).is_some_and(|own| has_index(own, base(name)))
    };
    Ok(taken(context, name)? || others.any(has))
}

fn definition<'t>(tables: &'t Tables, table: &str) -> Option<&'t Definition> {
    tables.get(table).map(|table| table.definition())
}

/// Whether a key that holds or an index of a table has this name.
fn has_index(definition: &Definition, name: &str) -> bool {
    definition.keys.iter().any(|key| key.name == name)
        || definition.indexes.iter().any(|index| index.name == name)
}

/// Adds a unique key.
async fn unique(
    scope: &mut Scope<'_>,
    (table, name): (&str, Option<String>),
    parts: &[Part],
    started: Instant,
) -> Result<Answer> {
    let columns: Vec<String> = parts.iter().map(|part| part.column.clone()).collect();
    let name = name.unwrap_or_else(|| format!("{}_{}_idx", base(table), columns.join("_")));
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let text = format!(
        "alter table {} add constraint {} unique ({})",
        quoted(table),
        quoted(&name),
        columns.join(", ")
    );
    changed(scope, &text, started).await
}

/// `drop index [if exists] name, ...`: drops unique keys, and names.
///
/// # Errors
/// If there is none of a name, or a foreign key needs it.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let [name] = &names[..] else {
        return Err(Error::unsupported(
            "`drop index` drops one index at a time: write a statement for each",
        ));
    };
    let written = written(name)?;
    let name = base(&written);
    let tables = scope.tables()?;
    let has = |table: &&str| {
        definition(&tables, table).is_some_and(|own| {
            has_index(own, name) && !own.keys.iter().any(|key| key.name == name && key.primary)
        })
    };
    let with = tables.names().into_iter().filter(has);
    let table = match scope.path().first_in(&tables, &written, with) {
        Some(table) => table.to_string(),
        None if if_exists => {
            let context = scope.read(started).await?;
            return Ok(Answer::changed(None, &context.clock)
                .with_notice(format!("index \"{name}\" does not exist, skipping")));
        }
        None => {
            return Err(Error::coded(
                "42704",
                format!("index \"{written}\" does not exist"),
            ));
        }
    };
    let is_name = definition(&tables, &table)
        .is_some_and(|own| own.indexes.iter().any(|index| index.name == name));
    if is_name {
        let (mut writing, context) = scope.write("DROP INDEX", &[&table], started).await?;
        table::redefine(&mut writing.tx, &table, |own| {
            own.indexes.retain(|index| index.name != name);
            Ok(())
        })?;
        table::comment(&mut writing.tx, &table, |all| {
            all.keys.remove(name);
        })?;
        scope.keep(writing).await?;
        return Ok(Answer::changed(None, &context.clock));
    }
    let text = format!(
        "alter table {} drop constraint {}",
        quoted(&table),
        quoted(name)
    );
    changed(scope, &text, started).await
}

/// Runs an `alter table`.
fn changed<'s>(
    scope: &'s mut Scope<'_>,
    text: &'s str,
    started: Instant,
) -> BoxFuture<'s, Result<Answer>> {
    async move {
        let statement = parse(text)?.pop().map(|parsed| parsed.statement);
        match statement {
            Some(Statement::Sql(sql)) => match *sql {
                Sql::AlterTable(change) => alter::alter(scope, change, started).await,
                _ => Err(lost()),
            },
            _ => Err(lost()),
        }
    }
    .boxed()
}

fn lost() -> Error {
    Error::Defect {
        message: "the change of an index is no `alter table`".into(),
    }
}

/// The method of an index that has nothing but columns.
fn plain(statement: &CreateIndex) -> Result<String> {
    let CreateIndex {
        name,
        table_name: _,
        using,
        columns: _,
        unique,
        // There is nothing to build that would lock the table.
        concurrently: _,
        if_not_exists,
        include,
        nulls_distinct,
        with,
        predicate,
        index_options,
        alter_options,
    } = statement;
    let refused = [
        (!include.is_empty(), "include"),
        (*nulls_distinct == Some(false), "nulls not distinct"),
        (!with.is_empty(), "with"),
        (predicate.is_some(), "where"),
        (
            !index_options.is_empty() || !alter_options.is_empty(),
            "an option",
        ),
    ];
    if let Some((_, what)) = refused.iter().find(|(there, _)| *there) {
        return Err(Error::unsupported(format!(
            "`{what}` is not supported in `create index`: an index is made of columns"
        )));
    }
    if *if_not_exists && name.is_none() {
        return Err(Error::Syntax {
            message: "`if not exists` needs the name of the index".into(),
            position: None,
        });
    }
    match using {
        None | Some(IndexType::BTree) => Ok("btree".into()),
        Some(IndexType::Hash) if !unique => Ok("hash".into()),
        Some(IndexType::BRIN) if !unique => Ok("brin".into()),
        Some(other) => Err(Error::unsupported(format!(
            "`using {}` is not supported in `create index`: there are btree, hash and brin, and only btree for a unique one",
            other.to_string().to_lowercase()
        ))),
    }
}

/// A column of an index, as a statement writes it.
struct Part {
    column: String,
    descending: bool,
    nulls_first: bool,
}

impl Part {
    fn of(&self, definition: &Definition) -> Result<table::IndexColumn> {
        let column = definition
            .position(&self.column)
            .map_err(|_| unknown_column(&self.column, definition))?;
        Ok(table::IndexColumn {
            column,
            descending: self.descending,
            nulls_first: self.nulls_first,
        })
    }
}

fn part(part: &IndexColumn) -> Result<Part> {
    let OrderByExpr {
        expr,
        options,
        with_fill: _,
    } = &part.column;
    match expr {
        Expr::Identifier(name) if part.operator_class.is_none() => {
            let descending = options.asc == Some(false);
            Ok(Part {
                column: column_name(name),
                descending,
                nulls_first: options.nulls_first.unwrap_or(descending),
            })
        }
        Expr::Identifier(_) => Err(Error::unsupported(
            "operator classes are not supported in `create index`: name the columns alone",
        )),
        other => Err(Error::unsupported(format!(
            "an index is made of columns, not of {other}"
        ))),
    }
}
