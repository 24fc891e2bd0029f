//! Statements that change tables, and make views.

use messages::{Error, Result};
use sqlparser::ast::{
    AlterTable, AlterTableOperation, CreateTableOptions, CreateView, SqlOption, ViewColumnDef,
};

use crate::grammar::refuse::{none_of, refused, refused_for};
use crate::names::column_name;

/// Checks an `alter table`; changes that are not made are refused where the table is altered.
pub(super) fn alter_table(statement: &AlterTable) -> Result<()> {
    let AlterTable {
        name: _,
        if_exists: _,
        only: _,
        operations,
        location,
        on_cluster,
        table_type,
        end_token: _,
    } = statement;
    none_of(&[
        (location.is_some(), "set location"),
        (on_cluster.is_some(), "on cluster"),
        (table_type.is_some(), "alter of other than a plain table"),
    ])?;
    operations.iter().try_for_each(|operation| match operation {
        AlterTableOperation::AddColumn {
            column_keyword: _,
            if_not_exists: _,
            column_def: _,
            column_position,
        } => none_of(&[(column_position.is_some(), "first or after in `add column`")]),
        // Done, or refused where the table is altered.
        _ => Ok(()),
    })
}

/// Checks a `create view`.
pub(super) fn create_view(statement: &CreateView) -> Result<()> {
    let CreateView {
        or_alter,
        or_replace: _,
        materialized,
        secure,
        name: _,
        name_before_not_exists: _,
        columns,
        query: _,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists: _,
        temporary: _,
        copy_grants,
        to,
        params,
    } = statement;
    let typed = |column: &ViewColumnDef| {
        let ViewColumnDef {
            name: _,
            data_type,
            options,
        } = column;
        data_type.is_some() || options.is_some()
    };
    view_options(options)?;
    none_of(&[
        (*or_alter, "create or alter view"),
        (*materialized, "create materialized view"),
        (*secure, "create secure view"),
        (
            columns.iter().any(typed),
            "a type or an option of a view's column",
        ),
        (!cluster_by.is_empty(), "cluster by in a view"),
        (comment.is_some(), "comment in a view"),
        (*with_no_schema_binding, "with no schema binding"),
        (*copy_grants, "copy grants"),
        (to.is_some(), "to in a view"),
        (
            params.is_some(),
            "algorithm, definer or sql security of a view",
        ),
    ])
}

/// Checks what stands behind the `with` of a view: only what is so anyway is taken. A condition from outside may be tested on
/// rows that those of the view leave out, and tell of them in an error; and a view reads by the rights of its owner.
fn view_options(options: &CreateTableOptions) -> Result<()> {
    let all = match options {
        CreateTableOptions::None => return Ok(()),
        CreateTableOptions::With(all) => all,
        _ => return Err(refused("an option of a view")),
    };
    for option in all {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(refused("an option of a view"));
        };
        let name = column_name(key);
        let instead = match name.as_str() {
            "security_barrier" => {
                "an error about a row may tell of what the view leaves out: grant a materialized view"
            }
            "security_invoker" => "a view reads by the rights of its owner",
            "check_option" => return Err(refused("check_option of a view")),
            _ => {
                return Err(Error::coded(
                    "22023",
                    format!("unrecognized parameter \"{name}\""),
                ));
            }
        };
        let text = value.to_string().to_lowercase();
        match text.trim_matches('\'') {
            "false" | "off" | "no" | "0" => {}
            "true" | "on" | "yes" | "1" => {
                return Err(refused_for(&format!("{name} = {text}"), instead));
            }
            other => {
                return Err(Error::coded(
                    "22023",
                    format!("invalid value for boolean option \"{name}\": {other}"),
                ));
            }
        }
    }
    Ok(())
}
