//! `create schema`, `drop schema`, `alter schema ... rename`, `alter ... set schema`, and the search path.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arrow::array::{ArrayRef, StringArray};
use catalog::search_path::{Setting, no_schema, text_of};
use catalog::settings::DateSettings;
use syntax::names::{
    INFORMATION_SCHEMA, PG_CATALOG, SCHEMA, base, catalog_name, check_new, of_schema, schema_of,
    session_of,
};
use syntax::roles::RoleName;
use syntax::schemas::{Kind, SchemaStatement};
use table::Tables;

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::cascade::drop_dependents;
use crate::statements::domains::{self, children_first};
use crate::statements::owned;
use crate::statements::owner;
use crate::statements::relation_kinds::{has, wrong_kind};
use crate::statements::relations::{missing, taken};
use crate::statements::renames;
use crate::statements::scope::Scope;
use crate::statements::texts;
use crate::statements::transaction::clock;
use crate::statements::types;
use crate::statements::write::Writing;

/// `set search_path`, or `set_config` of it.
fn set_path(
    scope: &Scope<'_>,
    setting: Option<Setting>,
    (local, called): (bool, bool),
    started: Instant,
) -> Result<Answer> {
    let path = scope.session_path();
    let setting = setting.unwrap_or_else(|| path.first());
    let text = text_of(&setting);
    match (local, scope.is_alone()) {
        (false, _) => path.set(setting),
        (true, false) => path.set_local(setting),
        // It lasts until the end of this statement.
        (true, true) => {}
    }
    if called {
        shown(scope, "set_config", text, started)
    } else {
        Ok(Answer::changed(None, &clock(&scope.instance, started)))
    }
}

/// Runs such a statement.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    statement: SchemaStatement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        SchemaStatement::Create {
            name,
            if_not_exists,
            owner,
        } => {
            let name = name_of(scope, name, owner.as_ref());
            create(scope, &name, if_not_exists, owner, started).await
        }
        SchemaStatement::Drop {
            names,
            if_exists,
            cascade,
        } => drop(scope, names, (if_exists, cascade), started).await,
        SchemaStatement::Rename { name, to } => rename(scope, &name, &to, started).await,
        SchemaStatement::Move {
            kind,
            name,
            if_exists,
            schema,
        } => moved(scope, kind, (&name, &schema), if_exists, started).await,
        SchemaStatement::RenameRelation {
            kind,
            name,
            if_exists,
            to,
        } => renames::rename(scope, kind, (&name, &to), if_exists, started).await,
        SchemaStatement::RenameColumn(own) => {
            let (view, columns) = (scope.own(&own.view)?, (own.from.as_str(), own.to.as_str()));
            renames::view_column(scope, &view, columns, own.if_exists, started).await
        }
        SchemaStatement::SetPath {
            setting,
            local,
            called,
        } => set_path(scope, setting, (local, called), started),
        SchemaStatement::SetDates { name, value, local } => {
            let path = scope.session_path();
            let dates = path.dates().with(name, value.as_deref())?;
            // For the transaction alone, it lasts until the end of this statement where there is none.
            if !(local && scope.is_alone()) {
                path.set_dates(dates, local);
            }
            Ok(Answer::changed(None, &clock(&scope.instance, started)))
        }
        SchemaStatement::ShowDates(name) => {
            let dates = scope.session_path().dates();
            let text = dates.get(name).unwrap_or_default().to_owned();
            let shown_as = DateSettings::shown(name).unwrap_or(name);
            shown(scope, shown_as, text, started)
        }
        SchemaStatement::ShowPath => {
            let text = text_of(&scope.session_path().setting());
            shown(scope, "search_path", text, started)
        }
    }
}

/// The name of a new schema: that of its owner, if it has none of its own.
fn name_of(scope: &Scope<'_>, name: Option<String>, owner: Option<&RoleName>) -> String {
    match (name, owner) {
        (Some(name), _) => name,
        (None, Some(RoleName::Named(name))) => name.clone(),
        (None, Some(RoleName::Session)) => scope.user_name(),
        (None, _) => scope.role_name(),
    }
}

/// The name of the schema that a statement has made, and the role that it was made for, if it says one.
///
/// # Errors
/// If there is no such role; for a statement that makes no schema.
pub(crate) fn made(
    scope: &Scope<'_>,
    statement: SchemaStatement,
) -> Result<(String, Option<String>)> {
    let SchemaStatement::Create { name, owner, .. } = statement else {
        return Err(Error::Defect {
            message: "a statement with what is in a schema makes none".into(),
        });
    };
    let name = name_of(scope, name, owner.as_ref());
    let role = match &owner {
        Some(role) => owner::named(scope, &*scope.tables()?, role)?,
        None => None,
    };
    Ok((name, role))
}

/// An answer of one text.
fn shown(scope: &Scope<'_>, name: &'static str, text: String, started: Instant) -> Result<Answer> {
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    Answer::of_columns(vec![(name, text)], &clock(&scope.instance, started))
}

/// Whether a schema is there without having been created.
fn is_given(name: &str) -> bool {
    matches!(name, SCHEMA | PG_CATALOG | INFORMATION_SCHEMA)
}

/// Refuses the name of a new schema that it must not have.
fn check_name(tables: &Tables, name: &str) -> Result<()> {
    check_new(name)?;
    if is_given(name) || tables.has_schema(name) {
        return Err(Error::coded(
            "42P06",
            format!("schema \"{name}\" already exists"),
        ));
    }
    if name.starts_with("pg_") {
        return Err(Error::coded(
            "42939",
            format!(
                "unacceptable schema name \"{name}\": The prefix \"pg_\" is reserved for system schemas."
            ),
        ));
    }
    Ok(())
}

async fn create(
    scope: &mut Scope<'_>,
    name: &str,
    if_not_exists: bool,
    owner: Option<RoleName>,
    started: Instant,
) -> Result<Answer> {
    let marker = of_schema(name);
    let (mut writing, context) = scope.write("CREATE SCHEMA", &[&marker], started).await?;
    let there = is_given(name) || context.tables.has_schema(name);
    if there && if_not_exists {
        return Ok(Answer::changed(None, &context.clock)
            .with_notice(format!("schema \"{name}\" already exists, skipping")));
    }
    check_name(&context.tables, name)?;
    // Before anybody can see it.
    scope.instance.schemas.store(true, Ordering::Release);
    table::create_schema(&mut writing.tx, name)?;
    if let Some(owner) = owner {
        owner::give(scope, &context, &mut writing, &marker, &owner)?;
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// What is in schemas.
#[derive(Default)]
struct Contents {
    tables: Vec<String>,
    views: Vec<String>,
    sequences: Vec<String>,
    types: Vec<String>,
}

impl Contents {
    fn of(tables: &Tables, schemas: &[&str]) -> Contents {
        let within = |names: Vec<&str>| -> Vec<String> {
            let names = names.into_iter();
            let names = names.filter(|name| schemas.contains(&schema_of(name)));
            names.map(str::to_owned).collect()
        };
        Contents {
            tables: within(tables.names()),
            views: within(tables.views()),
            sequences: within(tables.sequences()),
            types: within(tables.types().into_iter().chain(tables.domains()).collect()),
        }
    }

    /// Something that is there, and its kind.
    fn first(&self) -> Option<(&'static str, &str)> {
        let kinds = [
            ("table", &self.tables),
            ("view", &self.views),
            ("sequence", &self.sequences),
            ("type", &self.types),
        ];
        let mut first = kinds
            .into_iter()
            .filter_map(|(kind, names)| Some((kind, names.first()?.as_str())));
        first.next()
    }
}

async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<String>,
    (if_exists, cascade): (bool, bool),
    started: Instant,
) -> Result<Answer> {
    let markers: Vec<String> = names.iter().map(|name| of_schema(name)).collect();
    let markers: Vec<&str> = markers.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write("DROP SCHEMA", &markers, started).await?;
    let mut there: Vec<&str> = Vec::new();
    let mut notices = Vec::new();
    for name in &names {
        if is_given(name) {
            return Err(Error::Constraint {
                code: "2BP01",
                message: format!(
                    "cannot drop schema {name} because it is required by the database system"
                ),
            });
        }
        if context.tables.has_schema(name) {
            if !there.contains(&name.as_str()) {
                there.push(name);
            }
        } else if if_exists {
            notices.push(missing("schema", name));
        } else {
            return Err(no_schema(name));
        }
    }
    let answer = Answer::changed(None, &context.clock);
    let answer = notices.into_iter().fold(answer, Answer::with_notice);
    if there.is_empty() {
        return Ok(answer);
    }
    for name in &there {
        scope.claim_schema(name)?;
    }
    let contents = Contents::of(&context.tables, &there);
    if let Some((kind, first)) = contents.first() {
        if !cascade {
            let schema = schema_of(first);
            return Err(Error::Constraint {
                code: "2BP01",
                message: format!(
                    "cannot drop schema {schema} because other objects depend on it: {kind} {} depends on schema {schema}; `cascade` drops what is in it, too",
                    table::titled(first)
                ),
            });
        }
        empty(scope, &context, &mut writing, &contents)?;
    }
    for name in there {
        table::drop_schema(&mut writing.tx, name)?;
    }
    scope.keep(writing).await?;
    Ok(answer)
}

/// Drops all that is in schemas, and what depends on it.
fn empty(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    contents: &Contents,
) -> Result<()> {
    let all: Vec<&str> = contents
        .tables
        .iter()
        .chain(&contents.views)
        .map(String::as_str)
        .collect();
    drop_dependents(scope, context, writing, &all)?;
    texts::without_defaults(scope, context, writing, &contents.sequences, &all)?;
    for name in &contents.tables {
        // They may refer to each other, one way and the other.
        let definition = context.tables.get(name).map(|table| table.definition());
        if definition.is_some_and(|own| !own.foreign_keys.is_empty()) {
            table::redefine(&mut writing.tx, name, |own| {
                own.foreign_keys.clear();
                own.rules.clear();
                Ok(())
            })?;
        }
    }
    for name in &contents.tables {
        table::drop(&mut writing.tx, name)?;
    }
    for name in &contents.views {
        table::drop_view(&mut writing.tx, name)?;
    }
    for name in &contents.sequences {
        match table::drop_sequence(&mut writing.tx, name) {
            // It went with its table.
            Ok(()) | Err(table::Error::NoTable { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let of_schema = contents.types.iter().map(String::as_str);
    let gone: Vec<&str> = all.iter().copied().chain(of_schema.clone()).collect();
    let (domains, enums): (Vec<&str>, Vec<&str>) =
        of_schema.partition(|name| context.tables.domain(name).is_some());
    for name in children_first(&context.tables, &domains) {
        types::goes(&context.tables, name, &gone)?;
        table::drop_domain(&mut writing.tx, name)?;
    }
    for name in enums {
        types::goes(&context.tables, name, &gone)?;
        table::drop_type(&mut writing.tx, name)?;
    }
    Ok(())
}

async fn rename(scope: &mut Scope<'_>, name: &str, to: &str, started: Instant) -> Result<Answer> {
    let markers = [of_schema(name), of_schema(to)];
    let markers: Vec<&str> = markers.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write("ALTER SCHEMA", &markers, started).await?;
    if is_given(name) {
        return Err(Error::unsupported(format!(
            "schema \"{name}\" is always there: it cannot be renamed"
        )));
    }
    if !context.tables.has_schema(name) {
        return Err(no_schema(name));
    }
    check_name(&context.tables, to)?;
    scope.claim_schema(name)?;
    table::rename_schema(&mut writing.tx, name, to)?;
    let renamed =
        |own: &str| (table::schema_of(own) == Some(name)).then(|| catalog_name(to, base(own)));
    texts::renamed(scope, &context, &mut writing, &renamed)?;
    for own in context
        .tables
        .types()
        .into_iter()
        .chain(context.tables.domains())
    {
        if table::schema_of(own) == Some(name) {
            types::is_unnamed(&context.tables, own)?;
            scope.claim(&types::tables_of(&context.tables, own))?;
            scope.claim(&domains::tables_of(&context.tables, own))?;
        }
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// `alter ... set schema`.
async fn moved(
    scope: &mut Scope<'_>,
    kind: Kind,
    (written, schema): (&str, &str),
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let name = scope.own(written)?;
    let what = match kind {
        Kind::Table => "ALTER TABLE",
        Kind::View => "ALTER VIEW",
        Kind::MaterializedView => "ALTER MATERIALIZED VIEW",
        Kind::Sequence => "ALTER SEQUENCE",
        Kind::Index => "ALTER INDEX",
    };
    let (mut writing, context) = scope.write(what, &[&name], started).await?;
    let tables = &context.tables;
    if !has(tables, kind, &name) {
        if !taken(&context, &name)? {
            return if if_exists {
                Ok(Answer::changed(None, &context.clock).with_notice(missing("relation", &name)))
            } else {
                Err(Error::coded(
                    "42P01",
                    format!("relation \"{name}\" does not exist"),
                ))
            };
        }
        return Err(wrong_kind(&name, kind));
    }
    takes(tables, &name, schema)?;
    if schema_of(&name) == schema {
        return Ok(Answer::changed(None, &context.clock));
    }
    scope.claim(&[of_schema(schema)])?;
    let pairs = pairs(tables, &name, schema)?;
    context
        .rights
        .check_creates(tables, &catalog_name(schema, base(&name)))?;
    for (from, to) in &pairs {
        scope.claim(&[from.clone(), to.clone()])?;
        if taken(&context, to)? {
            return Err(Error::coded(
                "42P07",
                format!(
                    "relation \"{}\" already exists in schema \"{schema}\"",
                    base(to)
                ),
            ));
        }
        if tables.get(from).is_some() {
            table::rename(&mut writing.tx, from, to)?;
        } else if tables.view(from).is_some() {
            table::rename_view(&mut writing.tx, from, to)?;
        } else {
            table::rename_sequence(&mut writing.tx, from, to)?;
        }
    }
    let renamed = |own: &str| {
        let mut pairs = pairs.iter();
        pairs
            .find(|(from, _)| from == own)
            .map(|(_, to)| to.clone())
    };
    texts::renamed(scope, &context, &mut writing, &renamed)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// That what has this name may go to a schema.
fn takes(tables: &Tables, name: &str, schema: &str) -> Result<()> {
    if schema.starts_with("pg_temp") || session_of(name).is_some() {
        return Err(Error::unsupported(
            "cannot move objects into or out of temporary schemas",
        ));
    }
    if schema == PG_CATALOG || schema == INFORMATION_SCHEMA {
        return Err(Error::coded(
            "42501",
            format!("permission denied for schema {schema}"),
        ));
    }
    if schema != SCHEMA && !tables.has_schema(schema) {
        return Err(no_schema(schema));
    }
    Ok(())
}

/// What gets which name where `name` goes to a schema: a table takes the sequences of its columns along.
fn pairs(tables: &Tables, name: &str, schema: &str) -> Result<Vec<(String, String)>> {
    let to = |name: &str| (name.to_owned(), catalog_name(schema, base(name)));
    if tables.sequence(name).is_some()
        && let Some(owner) = owned::owner(tables, name)
    {
        return Err(Error::unsupported(format!(
            "cannot move an owned sequence into another schema: Sequence \"{name}\" is linked to table \"{}\".",
            owner.table
        )));
    }
    let mut pairs = vec![to(name)];
    if let Some(table) = tables.get(name) {
        let columns = table.definition().columns.iter();
        let sequences = columns.flat_map(|column| &column.sequences);
        let there = sequences.filter(|sequence| tables.sequence(sequence).is_some());
        pairs.extend(there.map(|sequence| to(sequence)));
    }
    Ok(pairs)
}
