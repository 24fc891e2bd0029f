//! `alter ... rename to`: what is called otherwise keeps its rights and comments, and whatever named it goes on meaning it.

use std::time::Instant;

use catalog::rights::Rights;
use syntax::mentioned;
use syntax::names::{base, catalog_name, check_column, check_new, quoted, schema_of};
use syntax::schemas::Kind;
use syntax::views::query_text;

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::depth::Depth;
use crate::statements::kept_texts::kept_texts;
use crate::statements::relation_kinds::{has, wrong_kind};
use crate::statements::relations::{definition, has_index, is_taken, missing, taken};
use crate::statements::scope::Scope;
use crate::statements::texts;
use crate::statements::write::Writing;

/// `alter {view | materialized view | sequence} [if exists] name rename to name`.
///
/// # Errors
/// If there is no such thing, or something has the new name; those of writing.
pub(crate) async fn rename(
    scope: &mut Scope<'_>,
    kind: Kind,
    (written, to): (&str, &str),
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    if kind == Kind::Index {
        return index(scope, (written, to), if_exists, started).await;
    }
    let name = scope.own(written)?;
    let to = catalog_name(schema_of(&name), to);
    let what = match kind {
        Kind::Table => "ALTER TABLE",
        Kind::View => "ALTER VIEW",
        Kind::MaterializedView => "ALTER MATERIALIZED VIEW",
        Kind::Sequence => "ALTER SEQUENCE",
        Kind::Index => "ALTER INDEX",
    };
    let (mut writing, context) = scope.write(what, &[&name, &to], started).await?;
    if !has(&context.tables, kind, &name) {
        if taken(&context, &name)? {
            return Err(wrong_kind(&name, kind));
        }
        if !if_exists {
            return Err(Error::coded(
                "42P01",
                format!("relation \"{}\" does not exist", base(&name)),
            ));
        }
        let notice = missing("relation", &name);
        return Ok(Answer::changed(None, &context.clock).with_notice(notice));
    }
    relation(scope, &context, &mut writing, (&name, &to))?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// `alter view [if exists] name rename [column] name to name`, of the view that the catalog calls `name`: views that read the
/// column go on.
///
/// # Errors
/// If there is no such view or column, or another has the new name; those of writing.
pub(crate) async fn view_column(
    scope: &mut Scope<'_>,
    name: &str,
    (from, to): (&str, &str),
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let (mut writing, context) = scope.write("ALTER VIEW", &[name], started).await?;
    let Some(text) = context.tables.view(name) else {
        if taken(&context, name)? {
            return Err(wrong_kind(name, Kind::View));
        }
        if !if_exists {
            return Err(Error::coded(
                "42P01",
                format!("relation \"{}\" does not exist", base(name)),
            ));
        }
        let notice = missing("relation", name);
        return Ok(Answer::changed(None, &context.clock).with_notice(notice));
    };
    check_column(to)?;
    let rights = Rights::of_owner(&context.tables, name)?;
    let plan = context.view(name, text, Depth::default(), &rights).await?;
    let columns = plan.schema().fields().iter();
    let old: Vec<String> = columns.map(|own| own.name().clone()).collect();
    if !old.iter().any(|own| own == from) {
        return Err(Error::coded(
            "42703",
            format!("column \"{from}\" does not exist"),
        ));
    }
    if old.iter().any(|own| own == to) {
        return Err(Error::coded(
            "42701",
            format!(
                "column \"{to}\" of relation \"{}\" already exists",
                base(name)
            ),
        ));
    }
    let now = old.iter().map(|own| if own == from { to } else { own });
    let now: Vec<&str> = now.collect();
    let both = now.iter().copied().zip(old.iter().map(String::as_str));
    texts::with_columns(&*scope, &context, &mut writing, (name, both.collect()))?;
    let now: Vec<String> = now.into_iter().map(quoted).collect();
    let text = format!(
        "create view {} ({}) as {}",
        quoted(base(name)),
        now.join(", "),
        query_text(text).trim_end_matches(';')
    );
    table::change_view(&mut writing.tx, name, &text)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// `alter index [if exists] name rename to name`: that of a key is called as the key.
async fn index(
    scope: &mut Scope<'_>,
    (written, to): (&str, &str),
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let name = table::base_of(written).to_owned();
    let table = {
        let tables = scope.tables()?;
        let has =
            |table: &&str| definition(&tables, table).is_some_and(|own| has_index(own, &name));
        let with = tables.names().into_iter().filter(has);
        let found = scope.path().first_in(&tables, written, with);
        found.map(str::to_owned)
    };
    let Some(table) = table else {
        let context = scope.read(started).await?;
        if !if_exists {
            return Err(Error::coded(
                "42P01",
                format!("relation \"{name}\" does not exist"),
            ));
        }
        let notice = missing("relation", &name);
        return Ok(Answer::changed(None, &context.clock).with_notice(notice));
    };
    let (mut writing, context) = scope.write("ALTER INDEX", &[&table], started).await?;
    if is_taken(&context, &catalog_name(schema_of(&table), to))? {
        return Err(Error::coded(
            "42P07",
            format!("relation \"{to}\" already exists"),
        ));
    }
    table::redefine(&mut writing.tx, &table, |own| {
        let keys = own.keys.iter_mut().map(|key| &mut key.name);
        let all = keys.chain(own.indexes.iter_mut().map(|index| &mut index.name));
        all.filter(|own| **own == name)
            .for_each(|own| to.clone_into(own));
        Ok(())
    })?;
    table::comment(&mut writing.tx, &table, |all| {
        if let Some(text) = all.keys.remove(&name) {
            all.keys.insert(to.to_owned(), text);
        }
    })?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// Gives a table, view or sequence another name, also in the texts of views, checks and defaults.
///
/// # Errors
/// If something has the new name; those of changing the texts, and of the store.
pub(crate) fn relation(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    (name, to): (&str, &str),
) -> Result<()> {
    check_new(to)?;
    // Whoever keeps the names of arrays tells of theirs.
    if is_taken(context, to)? && context.array(to)?.is_none() {
        return Err(Error::coded(
            "42P07",
            format!("relation \"{}\" already exists", base(to)),
        ));
    }
    let tables = &context.tables;
    if tables.get(name).is_some() {
        table::rename(&mut writing.tx, name, to)?;
        kept_texts(writing, to, mentioned::without_table)?;
    } else if tables.view(name).is_some() {
        table::rename_view(&mut writing.tx, name, to)?;
    } else {
        table::rename_sequence(&mut writing.tx, name, to)?;
    }
    let renamed = |own: &str| (own == name).then(|| to.to_owned());
    texts::renamed(scope, context, writing, &renamed)
}
