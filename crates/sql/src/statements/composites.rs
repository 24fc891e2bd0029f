//! `create type name as (field type, ...)`, and what `alter type` does to such types.

use std::time::Instant;

use arrow::datatypes::DataType;
use sqlparser::ast::{
    ArrayElemTypeDef, ColumnDef, DataType as SqlType, Ident, StructBracketKind, StructField,
};
use syntax::domains::{VALUE, data_type};
use syntax::names::{base, catalog_name, check_column, exact, known, quoted, schema_of, written};
use syntax::types::{TypeChange, TypeStatement};
use table::{Domain, Tables, enum_within, titled, within};

use crate::bind::composites::{self, behind, check_field};
use crate::bind::definition::define;
use crate::error::{Error, Result};
use crate::messages::numbers::item_named;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::domains::tables_of;
use crate::statements::owner;
use crate::statements::scope::Scope;
use crate::statements::types::{self, is_free, may_get, renamed, unknown};

/// Runs a statement about types.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    statement: TypeStatement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        TypeStatement::Composite { name, fields } => create(scope, &name, fields, started).await,
        TypeStatement::Alter { name, change } => {
            let tables = scope.tables()?;
            let found = scope.path().resolve_type(&tables, &name);
            if tables.domain(&found).is_some_and(|own| own.composite) {
                return alter(scope, &found, change, started).await;
            }
            types::run(scope, TypeStatement::Alter { name, change }, started).await
        }
        other => types::run(scope, other, started).await,
    }
}

/// Makes a composite type.
async fn create(
    scope: &mut Scope<'_>,
    written: &str,
    fields: Vec<(String, SqlType)>,
    started: Instant,
) -> Result<Answer> {
    let name = scope.new_name(written)?;
    let (mut writing, context) = scope.write("CREATE TYPE", &[&name], started).await?;
    scope.schema_stays(&context, &name)?;
    is_free(&context, &name)?;
    let (own, named) = typed(&context, &name, fields)?;
    // Nobody drops or changes these meanwhile.
    scope.claim(&named)?;
    table::create_domain(&mut writing.tx, &own)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// A composite type called `name` of these fields, and the names in the catalog of the types that it names.
fn typed(
    context: &StatementContext,
    name: &str,
    fields: Vec<(String, SqlType)>,
) -> Result<(Domain, Vec<String>)> {
    let tables = &context.tables;
    let mut named = Vec::new();
    let mut all: Vec<StructField> = Vec::with_capacity(fields.len());
    for (field, sql_type) in fields {
        check_column(&field)?;
        if all.iter().any(|own| is_called(own, &field)) {
            return Err(Error::coded(
                "42701",
                format!("column \"{field}\" specified more than once"),
            ));
        }
        let field_type = resolved(context, &field, sql_type, &mut named)?;
        check_field(&field, &field_type)?;
        all.push(StructField {
            field_name: Some(Ident::with_quote('"', &field)),
            field_type,
            options: None,
        });
    }
    let sql_type = SqlType::Struct(all, StructBracketKind::AngleBrackets);
    let mut own = Domain {
        name: name.to_owned(),
        composite: true,
        data_type: DataType::Null,
        text: composites::text(&sql_type),
        parent: None,
        not_null: false,
        default: None,
        checks: Vec::new(),
    };
    if data_type(&own.text)? != sql_type {
        return Err(Error::unsupported(format!(
            "a composite type of the columns {} is not supported",
            own.text
        )));
    }
    let column = ColumnDef {
        name: Ident::new(VALUE),
        data_type: behind(&own, tables)?,
        options: Vec::new(),
    };
    let types = context.types();
    let defined = define("type", vec![column], Vec::new(), true, &types, tables)?;
    own.data_type = defined.definition.columns[0].data_type.clone();
    Ok((own, named))
}

fn is_called(own: &StructField, name: &str) -> bool {
    own.field_name
        .as_ref()
        .is_some_and(|own| own.value == *name)
}

/// The type of a field as it is kept: a type that was created is named with its schema, so that it is looked up in no path.
///
/// # Errors
/// For types that no field is of.
fn resolved(
    context: &StatementContext,
    field: &str,
    sql_type: SqlType,
    named: &mut Vec<String>,
) -> Result<SqlType> {
    let tables = &context.tables;
    let name = match sql_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => {
            let item = resolved(context, field, *item, named)?;
            if let Some(own) = domain_of(&item, tables)?
                && !own.composite
            {
                return Err(Error::unsupported(format!(
                    "column \"{field}\": arrays of domains are not supported: name the type behind \"{}\"",
                    titled(&own.name)
                )));
            }
            return Ok(composites::arrays_of(item, 1));
        }
        SqlType::Custom(name, modifiers) if modifiers.is_empty() => name,
        other => return Ok(other),
    };
    let written = written(&name)?;
    let found = context.path.resolve_type(tables, &written);
    let of_enum = match (tables.named_type(&found), tables.domain(&found)) {
        (Some(_), _) => true,
        (None, Some(own)) => enum_within(&own.data_type).is_some(),
        (None, None) => {
            // PostgreSQL's own name of an array.
            return Ok(match item_named(&written) {
                Some(item) => composites::arrays_of(data_type(item)?, 1),
                None => SqlType::Custom(name, Vec::new()),
            });
        }
    };
    if of_enum {
        return Err(Error::unsupported(format!(
            "column \"{field}\" of an enum in a composite type is not supported: name it text",
        )));
    }
    if let Some(own) = tables.domain(&found).filter(|own| !own.composite) {
        check_field(field, &data_type(&own.text)?)?;
    }
    let kept = data_type(&quoted(&exact(&found)))?;
    named.push(found);
    Ok(kept)
}

/// The domain or composite type that a kept type names.
fn domain_of<'t>(sql_type: &SqlType, tables: &'t Tables) -> Result<Option<&'t Domain>> {
    let SqlType::Custom(name, _) = sql_type else {
        return Ok(None);
    };
    let name = known(&written(name)?);
    Ok(tables.domain(&name).map(AsRef::as_ref))
}

/// Gives a composite type another name, schema or owner.
async fn alter(
    scope: &mut Scope<'_>,
    name: &str,
    change: TypeChange,
    started: Instant,
) -> Result<Answer> {
    let (mut writing, context) = scope.write("ALTER TYPE", &[name], started).await?;
    let tables = &context.tables;
    let Some(own) = tables.domain(name) else {
        return Err(unknown(name));
    };
    let to = match change {
        TypeChange::Add { .. } | TypeChange::RenameValue { .. } => {
            return Err(Error::coded(
                "42809",
                format!("\"{}\" is not an enum", titled(name)),
            ));
        }
        TypeChange::Rename(to) => catalog_name(schema_of(name), &to),
        TypeChange::Move(schema) => {
            let to = scope.path().creates(tables, &within(&schema, base(name)))?;
            if to == name {
                return Ok(Answer::changed(None, &context.clock));
            }
            scope.schema_stays(&context, &to)?;
            context.rights.check_creates(tables, &to)?;
            to
        }
        TypeChange::Owner(role) => {
            may_get(scope, &context, name, &role)?;
            owner::give(scope, &context, &mut writing, name, &role)?;
            scope.keep(writing).await?;
            return Ok(Answer::changed(None, &context.clock));
        }
    };
    renamed(scope, &context, name, &to)?;
    scope.claim(&tables_of(tables, name))?;
    let changed = Domain {
        name: to,
        ..own.as_ref().clone()
    };
    table::change_domain(&mut writing.tx, name, &changed)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}
