//! `create index`: a unique one is a key here, and any other a name, as zone maps do its work; `drop index`.

use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlparser::ast::{
    BinaryOperator, CreateIndex, Expr, Ident, IndexColumn, IndexType, ObjectName, OrderByExpr,
    Statement as Sql,
};
use syntax::expression::expression;
use syntax::names::{base, catalog_name, column_name, quoted, schema_of, written};
use syntax::parse::{Statement, parse};
use syntax::{kept, mentioned};
use table::{Definition, Index, Tables};

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::row_values::RowValues;
use crate::statements::alter;
use crate::statements::relations::{definition, has_index, is_taken};
use crate::statements::scope::Scope;

/// `create [unique] index [concurrently] [[if not exists] name] on table [using method] (columns)`: adds a key, or a name.
///
/// # Errors
/// For an index that has what none has here; if something has its name; those of adding a key.
#[expect(
    clippy::too_many_lines,
    reason = "one part of the statement after the other"
)]
pub(crate) async fn create(
    scope: &mut Scope<'_>,
    statement: CreateIndex,
    started: Instant,
) -> Result<Answer> {
    let method = plain(&statement)?;
    let table = scope.own(&written(&statement.table_name)?)?;
    let parts: Vec<Part> = statement.columns.iter().map(part).collect::<Result<_>>()?;
    let predicate = statement.predicate.as_ref().map(kept::text).transpose()?;
    let includes: Vec<String> = statement.include.iter().map(column_name).collect();
    let name = match &statement.name {
        Some(name) => Some(own_name(name, &table)?),
        None => None,
    };
    if statement.if_not_exists
        && let Some(name) = &name
    {
        // With the turn to write, so that nobody makes it in between.
        let (_, context) = scope.write("CREATE INDEX", &[&table], started).await?;
        if is_taken(&context, &catalog_name(schema_of(&table), name))? {
            return Ok(Answer::changed(None, &context.clock)
                .with_notice(format!("relation \"{name}\" already exists, skipping")));
        }
    }
    if statement.unique {
        if predicate.is_some() || parts.iter().any(|part| part.text.is_some()) {
            return Err(Error::unsupported(
                "a unique index of expressions, or with `where`, is not supported: a key is made of columns, of all rows; a generated column may have the expression",
            ));
        }
        return unique(scope, (&table, name), &parts, started).await;
    }
    let (mut writing, mut context) = scope.write("CREATE INDEX", &[&table], started).await?;
    let definition = context.table(&table)?.definition().clone();
    for column in &includes {
        if definition.position(column).is_err() {
            return Err(unknown_column(column, &definition));
        }
    }
    let mut columns: Vec<table::IndexColumn> = Vec::new();
    let texts = parts.iter().filter_map(|part| part.text.as_deref());
    are_fixed(&mut context, &definition, texts.collect(), false).await?;
    are_fixed(
        &mut context,
        &definition,
        predicate.iter().map(String::as_str).collect(),
        true,
    )
    .await?;
    for part in &parts {
        columns.extend(part.of(&definition)?);
    }
    if let Some(predicate) = &predicate {
        for name in mentioned::columns(predicate)? {
            let column = definition.position(&name);
            columns.push(table::IndexColumn {
                column: column.map_err(|_| unknown_column(&name, &definition))?,
                descending: false,
                nulls_first: false,
            });
        }
    }
    // An expression of no column goes with the first.
    if columns.is_empty() {
        columns.push(table::IndexColumn {
            column: 0,
            descending: false,
            nulls_first: false,
        });
    }
    let plain = predicate.is_none() && parts.iter().all(|part| part.text.is_none());
    let items = parts.iter().filter(|_| !plain).map(Part::item);
    let items: Vec<(String, String)> = items.collect();
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
            let columns = columns.as_slice();
            let wanted = format!("{}_{}_idx", base(&table), columns.join("_"));
            let (mut free, mut number) = (wanted.clone(), 0);
            while is_taken(&context, &in_schema(&free))? {
                number += 1;
                free = format!("{wanted}{number}");
            }
            free
        }
    };
    let notice = scope.is_new_to_indexes().then(|| {
        format!(
            "index \"{name}\" is a name only: scans skip the blocks that their statistics rule out, which needs no index"
        )
    });
    let index = Index {
        name,
        method,
        columns,
        items,
        predicate,
    };
    table::redefine(&mut writing.tx, &table, |own| {
        own.indexes.push(index);
        Ok(())
    })?;
    scope.keep(writing).await?;
    let answer = Answer::changed(None, &context.clock);
    Ok(notice.into_iter().fold(answer, Answer::with_notice))
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

/// The table with the index that is [written](syntax::names::written) so.
fn table_of(scope: &Scope<'_>, tables: &Tables, written: &str) -> Option<String> {
    let name = base(written);
    let has = |table: &&str| definition(tables, table).is_some_and(|own| has_index(own, name));
    let with = tables.names().into_iter().filter(has);
    let found = scope.path().first_in(tables, written, with);
    found.map(str::to_owned)
}

/// Whether there is an index that is [written](syntax::names::written) so.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) fn is_index(
    context: &StatementContext,
    written: &str,
    scope: &Scope<'_>,
) -> Result<bool> {
    Ok(table_of(scope, &context.tables, written).is_some())
}

/// `drop index [if exists] name, ...` in a transaction, or of one name.
///
/// # Errors
/// As [`drop`].
pub(crate) async fn drop_all(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    if names.len() > 1 && scope.is_alone() {
        return Err(Error::Defect {
            message: "several indexes are dropped without a transaction".into(),
        });
    }
    let mut answer: Option<Answer> = None;
    for name in names {
        let mut next = drop(scope, &name, if_exists, started).await?;
        if let Some(before) = answer {
            next.notices.splice(0..0, before.notices);
        }
        answer = Some(next);
    }
    answer.ok_or_else(lost)
}

/// `drop index [if exists] name`: drops a unique key, or a name.
///
/// # Errors
/// If there is none of the name, or a constraint or a foreign key needs it.
async fn drop(
    scope: &mut Scope<'_>,
    name: &ObjectName,
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let written = written(name)?;
    let name = base(&written);
    let tables = scope.tables()?;
    let table = match table_of(scope, &tables, &written) {
        Some(table) => {
            let own = definition(&tables, &table);
            let primary =
                own.is_some_and(|own| own.keys.iter().any(|key| key.name == name && key.primary));
            if primary {
                return Err(Error::Constraint {
                    code: "2BP01",
                    message: format!(
                        "cannot drop index {name} because constraint {name} on table {} requires it",
                        base(&table)
                    ),
                });
            }
            table
        }
        None if if_exists => {
            let context = scope.peek(started)?;
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
    // What is included is for reading an index alone; how it is stored is PostgreSQL's.
    let (_, _) = (include, predicate);
    let refused = [
        (*nulls_distinct == Some(false), "nulls not distinct"),
        (!with.iter().all(is_storage), "with"),
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

/// Whether an option of an index only says how PostgreSQL stores it.
fn is_storage(option: &Expr) -> bool {
    let name = match option {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            ..
        } => &**left,
        other => other,
    };
    let known = [
        "fillfactor",
        "deduplicate_items",
        "buffering",
        "pages_per_range",
        "autosummarize",
    ];
    matches!(name, Expr::Identifier(name) if known.contains(&column_name(name).as_str()))
}

/// That these expressions over the rows of a table are always the same for a row; conditions if `conditions`.
async fn are_fixed(
    context: &mut StatementContext,
    definition: &Definition,
    texts: Vec<&str>,
    conditions: bool,
) -> Result<()> {
    if texts.is_empty() {
        return Ok(());
    }
    let items = texts.iter().map(|text| expression(text));
    let items = items.collect::<Result<Vec<_>>>()?;
    let name = Ident::with_quote('"', &definition.name);
    let schema = definition.schema();
    let rows = (&name, &schema);
    let (what, values) = if conditions {
        let values = RowValues::conditions(context, rows, None, items, "WHERE").await?;
        ("predicate", values)
    } else {
        let values = RowValues::new(context, rows, None, items, &[]).await?;
        ("expression", values)
    };
    if values.is_fixed() {
        return Ok(());
    }
    let message = format!("functions in index {what} must be marked IMMUTABLE");
    Err(Error::coded("42P17", message))
}

/// A column or an expression of an index, as a statement writes it.
struct Part {
    /// The name of the column, or what the index is called after.
    column: String,
    /// The text of an expression.
    text: Option<String>,
    descending: bool,
    nulls_first: bool,
}

impl Part {
    /// The columns that it names, of which an expression may have any number.
    fn of(&self, definition: &Definition) -> Result<Vec<table::IndexColumn>> {
        let names = match &self.text {
            Some(text) => mentioned::columns(text)?,
            None => vec![self.column.clone()],
        };
        let place = |name: &String| {
            let column = definition.position(name);
            Ok(table::IndexColumn {
                column: column.map_err(|_| unknown_column(name, definition))?,
                descending: self.descending,
                nulls_first: self.nulls_first,
            })
        };
        names.iter().map(place).collect()
    }

    /// Its text, and that of its order.
    fn item(&self) -> (String, String) {
        let order = match (self.descending, self.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        };
        let text = match &self.text {
            // A call stands by itself.
            Some(text) if called(text).is_some() => text.clone(),
            Some(text) => format!("({text})"),
            None => quoted(&self.column),
        };
        (text, order.to_owned())
    }
}

/// The name of the function if a text is a call of one.
fn called(text: &str) -> Option<String> {
    match expression(text).ok()? {
        Expr::Nested(inner) => match *inner {
            Expr::Function(call) => {
                let name = call.name.0.last()?.as_ident()?;
                Some(column_name(name))
            }
            _ => None,
        },
        _ => None,
    }
}

fn part(part: &IndexColumn) -> Result<Part> {
    let OrderByExpr {
        expr,
        options,
        with_fill: _,
    } = &part.column;
    let class = part.operator_class.as_ref().and_then(|name| name.0.last());
    if let Some(class) = class.map(ToString::to_string)
        && !class.ends_with("_ops")
    {
        return Err(Error::coded(
            "42704",
            format!("operator class \"{class}\" does not exist for access method \"btree\""),
        ));
    }
    let descending = options.asc == Some(false);
    let nulls_first = options.nulls_first.unwrap_or(descending);
    match expr {
        Expr::Identifier(name) => Ok(Part {
            column: column_name(name),
            text: None,
            descending,
            nulls_first,
        }),
        other => {
            let text = kept::text(other)?;
            Ok(Part {
                column: called(&text).unwrap_or_else(|| "expr".to_owned()),
                text: Some(text),
                descending,
                nulls_first,
            })
        }
    }
}
