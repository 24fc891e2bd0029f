//! What a `create schema` makes within the schema: its kinds, their order, and the schema that they name.

use sqlparser::ast::{Ident, ObjectName, Statement as Sql};
use syntax::names::{base, written};
use syntax::parse::Statement;
use syntax::roles::RoleStatement;
use syntax::sequences::SequenceStatement;
use table::{schema_of, within};

use crate::error::{Error, Result};

/// The statements that make what is in a new schema, in the order in which they run: what others may need comes first.
///
/// # Errors
/// If there is one that a `create schema` does not take, or that names another schema.
pub(crate) fn within_schema(elements: Vec<Statement>, schema: &str) -> Result<Vec<Statement>> {
    let mut placed: Vec<(u8, Statement)> = Vec::with_capacity(elements.len());
    for mut element in elements {
        let place = place(&mut element, schema)?;
        placed.push((place, element));
    }
    placed.sort_by_key(|(place, _)| *place);
    Ok(placed.into_iter().map(|(_, element)| element).collect())
}

/// Puts what a statement makes into the schema; returns its place among the others.
fn place(element: &mut Statement, schema: &str) -> Result<u8> {
    match element {
        Statement::Sequence(SequenceStatement::Create {
            name, temporary, ..
        }) => {
            *name = put(name, schema, *temporary)?;
            Ok(0)
        }
        Statement::Sql(sql) => match &mut **sql {
            Sql::CreateTable(create) if create.query.is_none() => {
                put_object(&mut create.name, schema, create.temporary)?;
                Ok(1)
            }
            Sql::CreateIndex(create) => {
                put_object(&mut create.table_name, schema, false)?;
                Ok(3)
            }
            _ => Err(not_taken()),
        },
        Statement::Like(create) => {
            create.name = put(&create.name, schema, create.temporary)?;
            Ok(1)
        }
        Statement::View { view, .. } => {
            put_object(&mut view.name, schema, view.temporary)?;
            Ok(2)
        }
        Statement::Role(RoleStatement::Privileges { grants: true, .. }) => Ok(4),
        _ => Err(not_taken()),
    }
}

fn not_taken() -> Error {
    Error::Syntax {
        message: "expected what a new schema may hold: `create table` with columns, `create view`, `create sequence`, `create index` or `grant`".into(),
        position: None,
    }
}

fn put_object(name: &mut ObjectName, schema: &str, temporary: bool) -> Result<()> {
    let own = put(&written(name)?, schema, temporary)?;
    let parts = [schema, base(&own)].map(|part| Ident::with_quote('"', part));
    *name = ObjectName::from(parts.to_vec());
    Ok(())
}

/// The name in the schema of what is [written](written) so.
fn put(name: &str, schema: &str, temporary: bool) -> Result<String> {
    match schema_of(name) {
        Some(other) if other != schema => Err(Error::coded(
            "42P15",
            format!(
                "CREATE specifies a schema ({other}) different from the one being created ({schema})"
            ),
        )),
        _ if temporary => Err(Error::coded(
            "42P16",
            "cannot create temporary relation in non-temporary schema",
        )),
        _ => Ok(within(schema, base(name))),
    }
}
