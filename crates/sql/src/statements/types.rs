//! `create type`, `alter type`, `drop type`. What is only said of composite types stands [there](crate::statements::composites).

use std::time::Instant;

use catalog::rights::Rights;
use catalog::search_path::SearchPath;
use syntax::mentioned_types::{MentionedTypes, of_expression, of_view};
use syntax::names::{base, catalog_name, check_new, of_schema, schema_of};
use syntax::roles::RoleName;
use syntax::types::{Beside, TypeChange, TypeStatement};
use table::{EnumType, Label, Privileges, Tables, enum_within, titled, within};

use crate::bind::composites;
use crate::error::{Error, Result};
use crate::messages::numbers::{item_named, type_named};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::owner;
use crate::statements::relations::taken;
use crate::statements::scope::Scope;

/// The most bytes of a label.
const LONGEST: usize = 63;

/// Runs such a statement.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    statement: TypeStatement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        TypeStatement::Create { name, labels } => create(scope, &name, labels, started).await,
        TypeStatement::Composite { name, .. } => Err(Error::Defect {
            message: format!("the composite type {name} is made elsewhere"),
        }),
        TypeStatement::Alter { name, change } => alter(scope, &name, change, started).await,
        TypeStatement::Drop {
            names,
            if_exists,
            cascade,
        } => drop(scope, &names, (if_exists, cascade), started).await,
    }
}

async fn create(
    scope: &mut Scope<'_>,
    written: &str,
    labels: Vec<String>,
    started: Instant,
) -> Result<Answer> {
    let name = scope.new_name(written)?;
    let (mut writing, context) = scope.write("CREATE TYPE", &[&name], started).await?;
    scope.schema_stays(&context, &name)?;
    is_free(&context, &name)?;
    for (at, label) in labels.iter().enumerate() {
        check_label(label)?;
        if labels[..at].contains(label) {
            return Err(Error::coded(
                "23505",
                format!(
                    "duplicate key value violates unique constraint \"pg_enum_typid_label_index\": label \"{label}\" stands twice in enum {}",
                    titled(&name)
                ),
            ));
        }
    }
    if labels.len() > usize::from(u16::MAX) {
        return Err(too_many(&name));
    }
    table::create_type(&mut writing.tx, &EnumType::new(&name, labels))?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// That nothing has the name of a new type.
pub(super) fn is_free(context: &StatementContext, name: &str) -> Result<()> {
    if type_named(base(name)).is_some() || item_named(base(name)).is_some() {
        return Err(Error::coded(
            "42710",
            format!(
                "type \"{}\" already exists: it is one of the system",
                base(name)
            ),
        ));
    }
    if taken(context, name)? || context.tables.has_type(name) {
        return Err(Error::coded(
            "42710",
            format!("type \"{}\" already exists", base(name)),
        ));
    }
    Ok(())
}

fn check_label(label: &str) -> Result<()> {
    if label.len() > LONGEST {
        return Err(Error::coded(
            "42602",
            format!("invalid enum label \"{label}\": Labels must be {LONGEST} bytes or less."),
        ));
    }
    Ok(())
}

fn too_many(name: &str) -> Error {
    Error::coded(
        "54000",
        format!(
            "enum {} cannot have another label: {} have been made",
            titled(name),
            u16::MAX
        ),
    )
}

pub(super) fn unknown(written: &str) -> Error {
    Error::coded(
        "42704",
        format!("type \"{}\" does not exist", titled(written)),
    )
}

/// Something that is of a type, or names it.
enum Dependent {
    Column {
        table: String,
        column: String,
    },
    /// A domain.
    Type(String),
    Text(String),
}

impl Dependent {
    fn told(&self, name: &str) -> String {
        match self {
            Dependent::Column { table, column } => format!(
                "column {column} of table {} depends on type {}",
                titled(table),
                titled(name)
            ),
            Dependent::Type(other) => {
                format!("type {} depends on type {}", titled(other), titled(name))
            }
            Dependent::Text(what) => format!("{what} depends on type {}", titled(name)),
        }
    }
}

/// The columns of tables that are of a type, and the domains over it.
fn columns(tables: &Tables, name: &str) -> Vec<Dependent> {
    let mut found = Vec::new();
    for table in tables.names() {
        let Some(own) = tables.get(table) else {
            continue;
        };
        for column in &own.definition().columns {
            let of_enum = column.domain.is_none() && enum_within(&column.data_type) == Some(name);
            if of_enum || column.domain.as_deref() == Some(name) {
                found.push(Dependent::Column {
                    table: table.to_owned(),
                    column: column.name.clone(),
                });
            }
        }
    }
    for domain in tables
        .domains()
        .into_iter()
        .filter_map(|own| tables.domain(own))
    {
        let of_enum = domain.parent.is_none() && enum_within(&domain.data_type) == Some(name);
        if of_enum || domain.parent.as_deref() == Some(name) {
            found.push(Dependent::Type(domain.name.clone()));
        }
    }
    found
}

/// The first text that is kept and names a type: of a view, a default, a check, a generated column or
/// a domain, but those of `but`.
fn text(tables: &Tables, name: &str, but: &[&str]) -> Result<Option<Dependent>> {
    let path = SearchPath::kept();
    let names = |mentioned: MentionedTypes| {
        let mut mentioned = mentioned.iter();
        mentioned.any(|written| path.resolve_type(tables, written) == name)
    };
    let all = tables.views().into_iter().chain(tables.names());
    for view in all.filter(|view| !but.contains(view)) {
        let kept = tables.materialized(view).map(|query| query.text);
        if let Some(text) = tables.view(view).or(kept)
            && names(of_view(text)?)
        {
            let what = format!("view {}", titled(view));
            return Ok(Some(Dependent::Text(what)));
        }
        let Some(table) = tables.get(view) else {
            continue;
        };
        let own = table.definition();
        for column in &own.columns {
            let texts = [column.default.as_deref(), column.expression()];
            for text in texts.into_iter().flatten() {
                if names(of_expression(text)?) {
                    let what = format!(
                        "default value for column {} of table {}",
                        column.name,
                        titled(view)
                    );
                    return Ok(Some(Dependent::Text(what)));
                }
            }
        }
        for check in &own.checks {
            if names(of_expression(&check.text)?) {
                let what = format!("constraint {} on table {}", check.name, titled(view));
                return Ok(Some(Dependent::Text(what)));
            }
        }
    }
    let domains = tables
        .domains()
        .into_iter()
        .filter(|own| !but.contains(own));
    for own in domains.filter_map(|own| tables.domain(own)) {
        if enum_within(&own.data_type) == Some(name) {
            let what = format!("domain {}", titled(&own.name));
            return Ok(Some(Dependent::Text(what)));
        }
        if composites::mentions(own, name, tables)? {
            let what = format!("composite type {}", titled(&own.name));
            return Ok(Some(Dependent::Text(what)));
        }
        let checks = own.checks.iter().map(|check| check.text.as_str());
        for text in checks.chain(own.default.as_deref()) {
            if names(of_expression(text)?) {
                let what = format!("domain {}", titled(&own.name));
                return Ok(Some(Dependent::Text(what)));
            }
        }
    }
    Ok(None)
}

async fn alter(
    scope: &mut Scope<'_>,
    written: &str,
    change: TypeChange,
    started: Instant,
) -> Result<Answer> {
    let name = scope.path().resolve_type(&*scope.tables()?, written);
    let (mut writing, context) = scope.write("ALTER TYPE", &[&name], started).await?;
    let tables = &context.tables;
    let Some(own) = tables.named_type(&name) else {
        if tables.domain(&name).is_some() {
            return Err(not_an_enum(written));
        }
        return Err(unknown(written));
    };
    let mut own = own.as_ref().clone();
    match change {
        TypeChange::Add {
            label,
            if_not_exists,
            place,
        } => {
            if own.place(&label).is_some() {
                let message = format!("enum label \"{label}\" already exists");
                if !if_not_exists {
                    return Err(Error::coded("42710", message));
                }
                let notice = format!("{message}, skipping");
                return Ok(Answer::changed(None, &context.clock).with_notice(notice));
            }
            add(&mut own, label, place)?;
        }
        TypeChange::RenameValue { label, to } => {
            check_label(&to)?;
            if own.place(&label).is_some() && own.place(&to).is_some() {
                return Err(Error::coded(
                    "42710",
                    format!("enum label \"{to}\" already exists"),
                ));
            }
            let mut labels = own.labels.iter_mut();
            match labels.find(|own| own.text == label) {
                Some(own) => own.text = to,
                None => return Err(no_label(&label)),
            }
        }
        TypeChange::Rename(to) => {
            own.name = catalog_name(schema_of(&name), &to);
            renamed(scope, &context, &name, &own.name)?;
        }
        TypeChange::Move(schema) => {
            own.name = scope
                .path()
                .creates(tables, &within(&schema, base(&name)))?;
            if own.name == name {
                return Ok(Answer::changed(None, &context.clock));
            }
            scope.schema_stays(&context, &own.name)?;
            context.rights.check_creates(tables, &own.name)?;
            renamed(scope, &context, &name, &own.name)?;
        }
        TypeChange::Owner(role) => {
            may_get(scope, &context, &name, &role)?;
            owner::give(scope, &context, &mut writing, &name, &role)?;
            scope.keep(writing).await?;
            return Ok(Answer::changed(None, &context.clock));
        }
    }
    scope.claim(&tables_of(tables, &name))?;
    table::change_type(&mut writing.tx, &name, &own)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// Domains are changed by statements of their own.
fn not_an_enum(written: &str) -> Error {
    let name = titled(written);
    Error::coded(
        "42809",
        format!(
            "\"{name}\" is not an enum or a composite type: `alter domain` and `drop domain` are for domains"
        ),
    )
}

fn no_label(label: &str) -> Error {
    Error::coded(
        "22023",
        format!("\"{label}\" is not an existing enum label"),
    )
}

/// Puts a label at its place.
fn add(own: &mut EnumType, text: String, place: Option<Beside>) -> Result<()> {
    check_label(&text)?;
    let at = match &place {
        None => own.labels.len(),
        Some(Beside { label, before }) => {
            let at = own.place(label).ok_or_else(|| no_label(label))?;
            usize::from(at) + usize::from(!before)
        }
    };
    let number = own.free_number().ok_or_else(|| too_many(&own.name))?;
    own.labels.insert(at, Label { number, text });
    Ok(())
}

/// That a type may be called `to`.
pub(super) fn renamed(
    scope: &Scope<'_>,
    context: &StatementContext,
    name: &str,
    to: &str,
) -> Result<()> {
    check_new(to)?;
    is_free(context, to)?;
    scope.claim(&[to.to_owned()])?;
    is_unnamed(&context.tables, name)
}

/// The tables that have columns of a type.
pub(super) fn tables_of(tables: &Tables, name: &str) -> Vec<String> {
    let users = columns(tables, name).into_iter();
    let users = users.filter_map(|user| match user {
        Dependent::Column { table, .. } => Some(table),
        Dependent::Type(_) | Dependent::Text(_) => None,
    });
    users.collect()
}

/// That a type that goes with its schema is not in use by what stays; `gone` goes, too.
pub(super) fn goes(tables: &Tables, name: &str, gone: &[&str]) -> Result<()> {
    let stays = |user: &Dependent| match user {
        Dependent::Column { table, .. } => !gone.contains(&table.as_str()),
        Dependent::Type(other) => !gone.contains(&other.as_str()),
        Dependent::Text(_) => true,
    };
    let mut users = columns(tables, name);
    users.extend(text(tables, name, gone)?);
    match users.iter().find(|user| stays(user)) {
        None => Ok(()),
        Some(user) => Err(Error::unsupported(format!(
            "`cascade` drops no columns: {}; drop that first",
            user.told(name)
        ))),
    }
}

/// That a domain whose values are to satisfy more is no field of a composite type, whose columns would have to be looked at.
///
/// # Errors
/// [`Error::Unsupported`] with the composite type.
pub(super) fn in_no_field(tables: &Tables, name: &str) -> Result<()> {
    let others = tables.domains().into_iter();
    for other in others.filter_map(|other| tables.domain(other)) {
        if composites::mentions(other, name, tables)? {
            return Err(Error::unsupported(format!(
                "domain {} gets no other conditions: the composite type {} has a column of it",
                titled(name),
                titled(&other.name)
            )));
        }
    }
    Ok(())
}

/// That no text that is kept names a type that gets another name.
pub(super) fn is_unnamed(tables: &Tables, name: &str) -> Result<()> {
    match text(tables, name, &[])? {
        None => Ok(()),
        Some(kept) => Err(Error::Constraint {
            code: "2BP01",
            message: format!(
                "cannot rename type {}: {}, and its text would name another; drop it first, and make it again afterwards",
                titled(name),
                kept.told(name)
            ),
        }),
    }
}

/// That a type may belong to a role.
pub(super) fn may_get(
    scope: &Scope<'_>,
    context: &StatementContext,
    name: &str,
    role: &RoleName,
) -> Result<()> {
    let tables = &context.tables;
    let role = owner::named(scope, tables, role)?;
    owner::may_own(scope, context, role.as_deref())?;
    if context.rights.is_all() {
        return Ok(());
    }
    let schema = of_schema(schema_of(name));
    Rights::of(tables, role.as_deref())?.check(tables, &schema, Privileges::CREATE)
}

async fn drop(
    scope: &mut Scope<'_>,
    written: &[String],
    (if_exists, cascade): (bool, bool),
    started: Instant,
) -> Result<Answer> {
    let (path, tables) = (scope.path(), scope.tables()?);
    let names: Vec<String> = written
        .iter()
        .map(|written| path.resolve_type(&tables, written))
        .collect();
    let targets: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write("DROP TYPE", &targets, started).await?;
    let mut answer = Answer::changed(None, &context.clock);
    let mut there: Vec<&str> = Vec::new();
    for (name, written) in targets.into_iter().zip(written) {
        let own = context.tables.domain(name);
        if own.is_some_and(|own| !own.composite) {
            return Err(not_an_enum(written));
        }
        if !context.tables.has_type(name) {
            if !if_exists {
                return Err(unknown(written));
            }
            let notice = format!("type \"{}\" does not exist, skipping", titled(written));
            answer = answer.with_notice(notice);
        } else if !there.contains(&name) {
            there.push(name);
        }
    }
    for name in &there {
        stays_unused(&context.tables, name, &there, cascade)?;
    }
    if !there.is_empty() {
        for name in there {
            if context.tables.domain(name).is_some() {
                table::drop_domain(&mut writing.tx, name)?;
            } else {
                table::drop_type(&mut writing.tx, name)?;
            }
        }
        scope.keep(writing).await?;
    }
    Ok(answer)
}

/// That nothing is of a type that is dropped, or names it, but other types that are `dropped`.
///
/// # Errors
/// [`Error::Constraint`] with what does; [`Error::Unsupported`] if it would go, too.
pub(super) fn stays_unused(
    tables: &Tables,
    name: &str,
    dropped: &[&str],
    cascade: bool,
) -> Result<()> {
    let mut dependents = columns(tables, name);
    dependents.retain(|own| match own {
        Dependent::Type(other) => !dropped.contains(&other.as_str()),
        _ => true,
    });
    dependents.extend(text(tables, name, dropped)?);
    let Some(first) = dependents.first() else {
        return Ok(());
    };
    if cascade {
        return Err(Error::unsupported(format!(
            "`cascade` drops nothing but types: {}; drop that first",
            first.told(name)
        )));
    }
    let what = if dropped.len() > 1 {
        "cannot drop desired object(s) because other objects depend on them".to_owned()
    } else {
        let name = titled(name);
        format!("cannot drop type {name} because other objects depend on it")
    };
    Err(Error::Constraint {
        code: "2BP01",
        message: format!("{what}: {}", first.told(name)),
    })
}
