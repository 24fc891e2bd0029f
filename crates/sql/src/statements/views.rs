//! `create view`, `drop view`.

use std::time::Instant;

use arrow::datatypes::Fields;
use catalog::rights::Rights;
use sqlparser::ast::{CreateView, ObjectName};
use syntax::names::{base, check_new, temporary, written};
use table::{Tables, titled};

use crate::error::{Error, Result};
use crate::messages::types::type_name;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::depth::Depth;
use crate::statements::cascade::drop_dependents;
use crate::statements::relations;
use crate::statements::scope::Scope;
use crate::statements::sequences::no_sequence;

/// `create [or replace] view [if not exists] name [(columns)] as query`, whose whole text is `text`.
pub(crate) async fn create(
    scope: &mut Scope<'_>,
    view: CreateView,
    text: &str,
    started: Instant,
) -> Result<Answer> {
    let name = written(&view.name)?;
    let name = if view.temporary {
        check_new(&name)?;
        temporary(scope.temporary().schema(), &name)
    } else {
        scope.new_name(&name)?
    };
    let (mut writing, context) = scope.write("CREATE VIEW", &[&name], started).await?;
    if view.temporary {
        scope.temporary().begin(&context, &mut writing)?;
    }
    scope.schema_stays(&context, &name)?;
    no_sequence(&context.tables, &name)?;
    let before = context.tables.view(&name);
    if context.tables.get(&name).is_some() || before.is_some() {
        if view.if_not_exists {
            return Ok(Answer::changed(None, &context.clock));
        }
        if before.is_none() && view.or_replace {
            return Err(Error::coded(
                "42809",
                format!("\"{}\" is not a view", base(&name)),
            ));
        }
        if before.is_none() || !view.or_replace {
            return Err(Error::TableExists { name });
        }
    }
    if reaches(&context, text, &name)? {
        return Err(Error::coded(
            "42P17",
            format!("view \"{name}\" would name itself"),
        ));
    }
    if before.is_some() {
        context.rights.check_owner(&context.tables, &name)?;
    }
    let depth = Depth::default();
    let plan = context.view(&name, text, depth, &context.rights).await?;
    if let Some(before) = before {
        let rights = Rights::of_owner(&context.tables, &name)?;
        let old = context.view(&name, before, depth, &rights).await?;
        let (old, new) = (old.schema().fields(), plan.schema().fields());
        may_become(old, new)?;
        table::drop_view(&mut writing.tx, &name)?;
    }
    table::create_view(&mut writing.tx, &name, text)?;
    if let Some(said) = context.tables.comments(&name) {
        // What takes the place of a view keeps them.
        table::comment(&mut writing.tx, &name, |all| *all = said.clone())?;
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// That a view with the columns `old` may have `new` in their places.
fn may_become(old: &Fields, new: &Fields) -> Result<()> {
    let cannot = |what: String| Error::coded("42P16", what);
    if new.len() < old.len() {
        return Err(cannot("cannot drop columns from view".to_owned()));
    }
    for (old, new) in old.iter().zip(new) {
        if old.name() != new.name() {
            return Err(cannot(format!(
                "cannot change name of view column \"{}\" to \"{}\"",
                old.name(),
                new.name()
            )));
        }
        if old.data_type() != new.data_type() {
            return Err(cannot(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name(),
                type_name(old.data_type()),
                type_name(new.data_type())
            )));
        }
    }
    Ok(())
}

/// Whether a view of this text names `name`, itself or through other views.
fn reaches(context: &StatementContext, text: &str, name: &str) -> Result<bool> {
    let tables: &Tables = &context.tables;
    let (mut left, mut seen) = (context.uses(text)?, Vec::new());
    while let Some(used) = left.pop() {
        if used == name {
            return Ok(true);
        }
        if let Some(text) = tables.view(&used).filter(|_| !seen.contains(&used)) {
            left.extend(context.uses(text)?);
            seen.push(used);
        }
    }
    Ok(false)
}

/// `drop view [if exists] a, b [cascade]`.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    (if_exists, cascade): (bool, bool),
    started: Instant,
) -> Result<Answer> {
    let is_there = |context: &StatementContext, name: &str| match context.tables.view(name) {
        Some(_) => Ok(true),
        None if context.tables.get(name).is_some() => Err(Error::coded(
            "42809",
            format!("\"{name}\" is not a view; use `drop table`"),
        )),
        None if if_exists => Ok(false),
        None => Err(Error::coded(
            "42P01",
            format!("there is no view \"{name}\""),
        )),
    };
    relations::drop(
        scope,
        "DROP VIEW",
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
            for name in there {
                table::drop_view(&mut writing.tx, name)?;
            }
            Ok(gone)
        },
    )
    .await
}

/// That no view that stays reads one of `names`, which go.
///
/// # Errors
/// [`Error::Constraint`] with the first that does.
pub(crate) fn stay_unread(context: &StatementContext, names: &[&str]) -> Result<()> {
    let Some(view) = context.dependent(names, names)? else {
        return Ok(());
    };
    let tables = &context.tables;
    let kind = |name: &str| match (tables.view(name), tables.materialized(name)) {
        (Some(_), _) => "view",
        (None, Some(_)) => "materialized view",
        (None, None) => "table",
    };
    let text = tables.view(&view);
    let text = text.or_else(|| tables.materialized(&view).map(|query| query.text));
    let used = context.uses(text.unwrap_or_default())?;
    let read = names
        .iter()
        .find(|name| used.iter().any(|own| own == *name));
    let read = read.copied().unwrap_or(names[0]);
    let what = format!("{} {}", kind(read), titled(read));
    Err(Error::Constraint {
        code: "2BP01",
        message: format!(
            "cannot drop {what} because other objects depend on it: {} {} depends on {what}",
            kind(&view),
            titled(&view)
        ),
    })
}

/// That no view that stays names one of `names`, which change.
///
/// # Errors
/// [`Error::Constraint`] with the first that does.
pub(crate) fn stays_unused(context: &StatementContext, names: &[&str]) -> Result<()> {
    match context.dependent(names, names)? {
        None => Ok(()),
        Some(view) => Err(Error::Constraint {
            code: "2BP01",
            message: format!(
                "view \"{view}\" depends on {}; drop \"{view}\" first",
                names.join(", ")
            ),
        }),
    }
}
