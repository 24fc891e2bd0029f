//! `alter table` that writes the rows of a table anew: other types of columns, and new columns whose values are made.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use futures::{StreamExt, TryStreamExt};
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation as Operation, ColumnDef, DataType as SqlType, Expr,
    Ident, Statement as Sql, visit_expressions,
};
use syntax::expression::{expression, written};
use syntax::names::{base, column_name, exact};
use syntax::sequences::SequenceOptions;
use syntax::{kept, lengths, mentioned};
use table::{Definition, Table, may_refer};

use crate::bind::definition::{Defined, define};
use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::messages::types::type_name;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::generated::GeneratedColumns;
use crate::run::query;
use crate::statements::scope::Scope;
use crate::statements::sequences;
use crate::statements::views::stays_unused;
use crate::statements::write::Writing;

/// A column in a query of this program.
pub(crate) fn column_text(name: &str) -> String {
    Ident::with_quote('"', name).to_string()
}

/// A table in a query of this program, which calls it by its name alone.
pub(crate) fn exactly(name: &str) -> String {
    let (name, called) = (exact(name), base(name));
    let (name, called) = (Ident::with_quote('"', name), Ident::with_quote('"', called));
    format!("{name} as {called}")
}

/// Writes the rows of a table anew: `after` is what it becomes, `values` has an expression over the rows that there are for
/// each of its columns. Those of generated columns are computed whatever that says.
///
/// # Errors
/// If a row does not fit; those of the expressions, and of writing. Nothing may be kept then.
pub(crate) async fn rebuild(
    context: &mut StatementContext,
    mut writing: Writing,
    after: &Definition,
    values: &[String],
) -> Result<Writing> {
    let name = &after.name;
    let mut aside = after.clone();
    // No statement can give a table such a name.
    aside.name = format!("{name}\u{2}");
    table::create(&mut writing.tx, &aside)?;
    let columns = after.columns.iter().zip(values);
    let items: Vec<String> = columns
        .map(|(column, value)| format!("{value} as {}", column_text(&column.name)))
        .collect();
    let text = format!("select {} from {}", items.join(", "), exactly(name));
    let plan = context.plan(Sql::Query(written(&text)?), None).await?;
    let generated = GeneratedColumns::new(context, after).await?;
    let mut checked = after.clone();
    checked.checks.retain(|check| !check.unchecked);
    let checks = Checks::new(context, &checked).await?;
    let width = context.instance.workers().width();
    let rows = query::rows(context, &plan).await?.map_err(Error::from);
    let rows = rows.map(|batch| Ok(table::normalise(&generated.fill(batch?)?, after)?));
    let appended = writing.append(&aside, &checks, rows, width).await;
    let (mut writing, _) = appended.map_err(|e| of_rows(e, name))?;
    table::take_over(&mut writing.tx, name, &aside.name)?;
    Ok(writing)
}

/// The error of rows that are there and do not fit what the table becomes.
pub(crate) fn of_rows(e: Error, table: &str) -> Error {
    let shown = table::titled(table);
    let told = e.told();
    // What a domain tells is of the value, wherever it stands.
    if ["domain ", "value for domain "]
        .iter()
        .any(|own| told.message.starts_with(own))
    {
        return e;
    }
    let (code, message) = match (e.sqlstate(), &told.detail) {
        ("23505", Some(detail)) => {
            let key = quoted_part(&told.message, 1);
            let detail = detail.replace("already exists", "is duplicated");
            let message = format!("could not create unique index \"{key}\": {detail}");
            ("23505", message)
        }
        ("23514", _) => {
            let check = quoted_part(&told.message, 3);
            let message = format!(
                "check constraint \"{check}\" of relation \"{shown}\" is violated by some row"
            );
            ("23514", message)
        }
        ("23502", _) => {
            let column = quoted_part(&told.message, 1);
            let message =
                format!("column \"{column}\" of relation \"{shown}\" contains null values");
            ("23502", message)
        }
        _ => return e,
    };
    Error::Constraint { code, message }
}

/// The part of a message at this place, where those in quotes have odd ones.
fn quoted_part(message: &str, place: usize) -> &str {
    message.split('"').nth(place).unwrap_or_default()
}

/// Gives columns other types. `operations` are such changes alone; their expressions are all over the old rows.
///
/// # Errors
/// If a column cannot have the type, or something depends on its type; those of [`rebuild`].
pub(crate) async fn retype(
    scope: &Scope<'_>,
    context: &mut StatementContext,
    mut writing: Writing,
    table: &Table,
    operations: Vec<Operation>,
) -> Result<Writing> {
    let before = table.definition();
    stays_unused(context, &[&before.name])?;
    let mut after = before.clone();
    let names = before.columns.iter().map(|own| column_text(&own.name));
    let mut values: Vec<String> = names.collect();
    for operation in operations {
        let Operation::AlterColumn {
            column_name: name,
            op:
                AlterColumnOperation::SetDataType {
                    data_type, using, ..
                },
        } = operation
        else {
            return Err(Error::Defect {
                message: "the type of a column is changed by another change".into(),
            });
        };
        let name = column_name(&name);
        let Ok(at) = before.position(&name) else {
            return Err(unknown_column(&name, before));
        };
        let new = New::of(context, before, &name, data_type)?;
        may_change(context, before, at, &new, using.is_some())?;
        if before.columns[at].default.is_some()
            && !assignable(&before.columns[at].data_type, &new.data_type)
        {
            return Err(Error::coded(
                "42804",
                format!(
                    "default for column \"{name}\" cannot be cast automatically to type {}",
                    type_name(&new.data_type)
                ),
            ));
        }
        if let Some((sequence, _)) = before.columns[at].identity() {
            let sequence = sequence.to_owned();
            let options = SequenceOptions {
                bytes: Some(match new.data_type {
                    DataType::Int16 => 2,
                    DataType::Int32 => 4,
                    _ => 8,
                }),
                ..SequenceOptions::default()
            };
            scope.claim(std::slice::from_ref(&sequence))?;
            sequences::change(scope, context, &mut writing, &sequence, &options)?;
        }
        values[at] = new.value(&values[at], using.as_ref())?;
        new.put(&mut after, at)?;
    }
    rebuild(context, writing, &after, &values).await
}

/// The type that a column gets.
struct New {
    data_type: DataType,
    digits: Option<u8>,
    domain: Option<String>,
    /// The check that keeps the length of its texts.
    length: Option<table::Check>,
    /// As a statement writes it; lengths are checked and cut nothing off.
    text: String,
}

impl New {
    fn of(
        context: &StatementContext,
        table: &Definition,
        name: &str,
        data_type: SqlType,
    ) -> Result<New> {
        let written = data_type.to_string();
        let column = ColumnDef {
            name: Ident::with_quote('"', name),
            data_type,
            options: vec![],
        };
        let Defined {
            definition: mut alone,
            sequences,
            notices,
        } = define(
            &table.name,
            vec![column],
            vec![],
            true,
            &context.types(),
            &context.tables,
        )?;
        if let Some(notice) = notices.into_iter().next() {
            return Err(Error::unsupported(notice));
        }
        if !sequences.is_empty() {
            return Err(Error::coded(
                "42704",
                format!("type \"{}\" does not exist", written.to_lowercase()),
            ));
        }
        let length = alone.checks.pop_if(|check| lengths::is_one(check));
        let own = alone.columns.swap_remove(0);
        Ok(New {
            text: match length {
                Some(_) => "text".to_owned(),
                None => written,
            },
            data_type: own.data_type,
            digits: own.digits,
            domain: own.domain,
            length,
        })
    }

    /// The value of the column, which is `old` or what `using` makes of the row.
    fn value(&self, old: &str, using: Option<&Expr>) -> Result<String> {
        let value = match using {
            Some(value) => {
                let text = kept::text(value)?;
                of_the_row(&text)?;
                text
            }
            None => old.to_owned(),
        };
        Ok(format!("cast(({value}) as {})", self.text))
    }

    fn put(self, after: &mut Definition, at: usize) -> Result<()> {
        let column = &mut after.columns[at];
        column.data_type = self.data_type;
        column.digits = self.digits;
        column.domain = self.domain;
        let name = column.name.clone();
        let mut checks = Vec::with_capacity(after.checks.len());
        for check in std::mem::take(&mut after.checks) {
            if !lengths::is_one(&check) || mentioned::columns(&check.text)? != [name.as_str()] {
                checks.push(check);
            }
        }
        after.checks = checks;
        if let Some(length) = self.length {
            let length = lengths::named_anew(length, after);
            after.checks.push(length);
        }
        Ok(())
    }
}

/// That an expression reads nothing but the row.
fn of_the_row(text: &str) -> Result<()> {
    let reads = visit_expressions(&expression(text)?, |part| match part {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    if reads.is_break() {
        return Err(Error::coded(
            "0A000",
            "cannot use subquery in transform expression",
        ));
    }
    Ok(())
}

/// That nothing but the rows depends on the type of a column.
fn may_change(
    context: &StatementContext,
    table: &Definition,
    at: usize,
    new: &New,
    using: bool,
) -> Result<()> {
    let own = &table.columns[at];
    let name = &own.name;
    for other in &table.columns {
        if let Some(text) = other.expression()
            && mentioned::columns(text)?.contains(name)
        {
            return Err(Error::coded(
                "0A000",
                format!(
                    "cannot alter type of a column used by a generated column: Column \"{name}\" is used by generated column \"{}\".",
                    other.name
                ),
            ));
        }
    }
    let numbers = [DataType::Int16, DataType::Int32, DataType::Int64];
    if own.identity().is_some() && !numbers.contains(&new.data_type) {
        return Err(Error::coded(
            "22023",
            "identity column type must be smallint, integer, or bigint",
        ));
    }
    may_still_refer(context, table, at, new, using)?;
    if own.expression().is_none() && !using && !assignable(&own.data_type, &new.data_type) {
        return Err(Error::coded(
            "42804",
            format!(
                "column \"{name}\" cannot be cast automatically to type {}: write `using` and an expression",
                type_name(&new.data_type)
            ),
        ));
    }
    Ok(())
}

/// That the foreign keys with the column, on either side, go on to hold.
fn may_still_refer(
    context: &StatementContext,
    table: &Definition,
    at: usize,
    new: &New,
    using: bool,
) -> Result<()> {
    let own = &table.columns[at];
    let mut fits = true;
    for key in &table.foreign_keys {
        let columns = key.columns.iter().zip(&key.parent_columns);
        for (_, name) in columns.filter(|(column, _)| **column == at) {
            let parent = context.tables.get(&key.parent);
            let parent = parent.map_or(table, |parent| parent.definition());
            let other = parent.columns.iter().find(|other| other.name == *name);
            fits &= other.is_some_and(|other| may_refer(&new.data_type, &other.data_type));
            fits &= !using;
        }
    }
    for child in context.tables.names() {
        let Some(child) = context.tables.get(child).map(|child| child.definition()) else {
            continue;
        };
        for key in child
            .foreign_keys
            .iter()
            .filter(|key| key.parent == table.name)
        {
            let columns = key.columns.iter().zip(&key.parent_columns);
            for (column, _) in columns.filter(|(_, name)| **name == own.name) {
                fits &= may_refer(&child.columns[*column].data_type, &new.data_type) && !using;
            }
        }
    }
    if fits {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "column \"{}\" is of a foreign key, which would not hold then: drop the constraint, change the column, and add it again",
        own.name
    )))
}

/// Whether values of a type become those of another where rows are written, without a cast that somebody writes.
fn assignable(from: &DataType, to: &DataType) -> bool {
    let time = |own: &DataType| {
        matches!(
            own,
            DataType::Date32
                | DataType::Timestamp(_, _)
                | DataType::Time64(_)
                | DataType::Time32(_)
        )
    };
    let plain = |own: &DataType| own.is_numeric() && !matches!(own, DataType::Boolean);
    from == to
        || *to == DataType::Utf8View
        || plain(from) && plain(to)
        || time(from) && time(to)
        || matches!((from, to), (DataType::Struct(_), DataType::Struct(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_nothing_by_themselves() {
        assert!(assignable(&DataType::Int32, &DataType::Int64));
        assert!(assignable(&DataType::Int32, &DataType::Utf8View));
        assert!(!assignable(&DataType::Utf8View, &DataType::Int32));
        assert!(!assignable(&DataType::Boolean, &DataType::Int32));
        assert!(!assignable(&DataType::Int32, &DataType::Boolean));
    }
}
