//! `create array`, `drop array`, `create version`, `drop version`.

use std::time::Instant;

use array::Writer;
use syntax::arrays::ArrayStatement;

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::statements::relations::there_already;
use crate::statements::scope::Scope;
use crate::statements::views::stays_unused;

/// Makes or drops an array or a version of one.
pub(crate) async fn define(
    scope: &mut Scope<'_>,
    statement: ArrayStatement,
    started: Instant,
) -> Result<Answer> {
    let (what, names) = match &statement {
        ArrayStatement::Create { name, .. } => ("CREATE ARRAY", vec![name.clone()]),
        ArrayStatement::Drop { names, .. } => ("DROP ARRAY", names.clone()),
        ArrayStatement::CreateVersion { array, .. } => ("CREATE VERSION", vec![array.clone()]),
        ArrayStatement::DropVersion { array, .. } => ("DROP VERSION", vec![array.clone()]),
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write(what, &names, started).await?;
    let mut writer = Writer::of(writing.tx);
    let mut gone = Vec::new();
    match &statement {
        ArrayStatement::Create {
            name,
            schema,
            if_not_exists,
        } => {
            if *if_not_exists && context.array(name)?.is_some() {
                let notice = there_already(name);
                return Ok(Answer::changed(None, &context.clock).with_notice(notice));
            }
            writer.create(name, schema)?;
        }
        ArrayStatement::Drop {
            names: all,
            if_exists,
        } => {
            stays_unused(&context, &names)?;
            for (at, name) in all.iter().enumerate() {
                match writer.delete(name) {
                    Err(array::Error::NoArray { .. }) if *if_exists || all[..at].contains(name) => {
                    }
                    Err(array::Error::NoArray { .. }) => {
                        // If it is a table or a view, that is said.
                        context.table(name)?;
                        return Err(Error::coded(
                            "42809",
                            format!("\"{name}\" is not an array; use `drop table`"),
                        ));
                    }
                    deleted => deleted?,
                }
                gone.push(name);
            }
        }
        ArrayStatement::CreateVersion { array, version } => {
            writer.create_version(array, version)?;
        }
        ArrayStatement::DropVersion { array, version } => writer.drop_version(array, version)?,
    }
    writing.tx = writer.into_transaction();
    for name in gone {
        table::forget_acl(&mut writing.tx, name);
    }
    scope.keep_arrays(writing, &names).await?;
    Ok(Answer::changed(None, &context.clock))
}
