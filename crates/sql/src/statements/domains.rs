//! `create domain`, `alter domain`, `drop domain`.

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::DataType;
use catalog::rights::Rights;
use catalog::search_path::SearchPath;
use sqlparser::ast::{ArrayElemTypeDef, ColumnDef, DataType as SqlType, Ident};
use syntax::domains::{DomainChange, DomainStatement, NewCheck, NewDomain, VALUE, data_type};
use syntax::lengths;
use syntax::mentioned::{columns, with_column};
use syntax::mentioned_types::of_expression;
use syntax::names::{base, catalog_name, exact, quoted, schema_of, written};
use table::{Check, Domain, Tables, titled, within};

use crate::bind::definition::define;
use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::domains::Conditions;
use crate::statements::constrain::any;
use crate::statements::owner;
use crate::statements::rebuild::exactly;
use crate::statements::scope::Scope;
use crate::statements::types::in_no_field;
use crate::statements::types::{is_free, may_get, renamed, stays_unused, unknown};

/// Runs such a statement.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    statement: DomainStatement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        DomainStatement::Create(new) => create(scope, *new, started).await,
        DomainStatement::Alter { name, change } => alter(scope, &name, change, started).await,
        DomainStatement::Drop {
            names,
            if_exists,
            cascade,
        } => drop(scope, &names, (if_exists, cascade), started).await,
    }
}

async fn create(scope: &mut Scope<'_>, new: NewDomain, started: Instant) -> Result<Answer> {
    let name = scope.new_name(&new.name)?;
    let (mut writing, mut context) = scope.write("CREATE DOMAIN", &[&name], started).await?;
    scope.schema_stays(&context, &name)?;
    is_free(&context, &name)?;
    let (mut own, notices) = typed(&context, &name, new.data_type)?;
    own.not_null = new.not_null;
    if let Some(parent) = &own.parent {
        scope.claim(std::slice::from_ref(parent))?;
        own.default = context
            .tables
            .domain(parent)
            .and_then(|d| d.default.clone());
    }
    if let Some(text) = new.default {
        check_default(&context, &own, &text).await?;
        own.default = Some(text);
    }
    for check in new.checks {
        add(&context.tables, &mut own, check)?;
    }
    compiled(&mut context, &own).await?;
    table::create_domain(&mut writing.tx, &own)?;
    scope.keep(writing).await?;
    let answer = Answer::changed(None, &context.clock);
    Ok(notices.into_iter().fold(answer, Answer::with_notice))
}

/// A domain called `name` over a type, of which nothing else is said yet; and what is to be told.
fn typed(
    context: &StatementContext,
    name: &str,
    sql_type: SqlType,
) -> Result<(Domain, Vec<String>)> {
    let tables = &context.tables;
    let mut own = Domain {
        name: name.to_owned(),
        composite: false,
        data_type: DataType::Null,
        text: String::new(),
        parent: None,
        not_null: false,
        default: None,
        checks: Vec::new(),
    };
    let mut sql_type = without_lengths(sql_type)?;
    if let SqlType::Custom(of, _) = &sql_type {
        let of = written(of)?;
        let found = context.path.resolve_type(tables, &of);
        if let Some(parent) = tables.domain(&found) {
            own.data_type = parent.data_type.clone();
            own.text.clone_from(&parent.text);
            own.parent = Some(found);
            return Ok((own, Vec::new()));
        }
        if tables.named_type(&found).is_some() {
            // In its schema, so that it is looked up in no path.
            sql_type = data_type(&quoted(&exact(&found)))?;
        }
    }
    let mut columns = [ColumnDef {
        name: Ident::new(VALUE),
        data_type: sql_type,
        options: Vec::new(),
    }];
    let notices = lengths::narrow(&mut columns).into_iter().map(|notice| {
        let about = format!("column \"{VALUE}\"");
        notice.replacen(&about, &format!("domain \"{}\"", titled(name)), 1)
    });
    let [column] = columns;
    own.text = column.data_type.to_string();
    if data_type(&own.text)? != column.data_type {
        return Err(Error::unsupported(format!(
            "a domain over the type {} is not supported",
            own.text
        )));
    }
    let types = context.types();
    let defined = define("domain", vec![column], Vec::new(), true, &types, tables)?;
    if !defined.sequences.is_empty() {
        return Err(unknown(&own.text.to_lowercase()));
    }
    own.data_type = defined.definition.columns[0].data_type.clone();
    Ok((own, notices.collect()))
}

/// A type without the lengths of arrays, which PostgreSQL reads over.
///
/// # Errors
/// For arrays of types that were created.
fn without_lengths(sql_type: SqlType) -> Result<SqlType> {
    let SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)) = sql_type else {
        return Ok(sql_type);
    };
    if matches!(item.as_ref(), SqlType::Custom(..)) {
        return Err(Error::unsupported(
            "a domain over arrays of a type that was created is not supported",
        ));
    }
    let item = Box::new(without_lengths(*item)?);
    Ok(SqlType::Array(ArrayElemTypeDef::SquareBracket(item, None)))
}

/// That a text can be the default of a domain.
async fn check_default(context: &StatementContext, own: &Domain, text: &str) -> Result<()> {
    let title = titled(&own.name);
    context.default(&title, text, &own.data_type).await?;
    Ok(())
}

/// Adds a check to a domain, which gets a name if it has none.
fn add(tables: &Tables, own: &mut Domain, check: NewCheck) -> Result<()> {
    let name = match check.name {
        Some(name) if place(own, &name).is_some() => return Err(taken(own, &name)),
        Some(name) => name,
        None => own.free_name(),
    };
    let mut named = columns(&check.text)?.into_iter();
    if let Some(other) = named.find(|name| name != VALUE) {
        return Err(Error::coded(
            "42703",
            format!("column \"{other}\" does not exist: a check of a domain is about `value`"),
        ));
    }
    // One that tests itself would never end.
    let path = SearchPath::kept();
    for mentioned in of_expression(&check.text)? {
        if tables
            .domain(&path.resolve_type(tables, &mentioned))
            .is_some()
        {
            return Err(Error::unsupported(format!(
                "a check of a domain does not cast to a domain: cast to the type behind \"{}\"",
                titled(&mentioned)
            )));
        }
    }
    own.checks.push(Check {
        name,
        text: check.text,
        unchecked: false,
    });
    Ok(())
}

/// The conditions of a domain that is not kept yet.
async fn compiled(context: &mut StatementContext, own: &Domain) -> Result<Conditions> {
    let tables = Arc::clone(&context.tables);
    let mut lineage: Vec<&Domain> = match &own.parent {
        Some(parent) => tables
            .lineage(parent)
            .into_iter()
            .map(AsRef::as_ref)
            .collect(),
        None => Vec::new(),
    };
    lineage.push(own);
    Conditions::over(context, &lineage).await
}

/// The tables that have columns of a domain or of one that was made from it, and these columns.
fn columns_of(tables: &Tables, name: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for table in tables.names() {
        let Some(own) = tables.get(table) else {
            continue;
        };
        for column in &own.definition().columns {
            let of_it = |domain: &String| {
                let mut lineage = tables.lineage(domain).into_iter();
                lineage.any(|own| own.name == name)
            };
            if column.domain.as_ref().is_some_and(of_it) {
                found.push((table.to_owned(), column.name.clone()));
            }
        }
    }
    found
}

/// The tables that have columns of a domain or of one that was made from it.
pub(super) fn tables_of(tables: &Tables, name: &str) -> Vec<String> {
    let mut names: Vec<String> = columns_of(tables, name)
        .into_iter()
        .map(|(table, _)| table)
        .collect();
    names.dedup();
    names
}

async fn alter(
    scope: &mut Scope<'_>,
    written: &str,
    change: DomainChange,
    started: Instant,
) -> Result<Answer> {
    let name = scope.path().resolve_type(&*scope.tables()?, written);
    let (mut writing, mut context) = scope.write("ALTER DOMAIN", &[&name], started).await?;
    let own = context.tables.domain(&name).filter(|own| !own.composite);
    let Some(own) = own else {
        return Err(no_domain(&context.tables, &name, written));
    };
    let mut own = own.as_ref().clone();
    let tables = Arc::clone(&context.tables);
    // Whoever writes to these meanwhile has seen other conditions.
    scope.claim(&tables_of(&tables, &name))?;
    match change {
        DomainChange::Default(None) => own.default = None,
        DomainChange::Default(Some(text)) => {
            check_default(&context, &own, &text).await?;
            own.default = Some(text);
        }
        DomainChange::NotNull(not_null) => {
            if not_null && !own.not_null {
                in_no_field(&tables, &name)?;
                without_nulls(&mut context, &name).await?;
            }
            own.not_null = not_null;
        }
        DomainChange::Add(check) => {
            in_no_field(&tables, &name)?;
            add(&tables, &mut own, check)?;
            compiled(&mut context, &own).await?;
            if let Some(check) = own.checks.last() {
                satisfied(&mut context, &name, &check.text).await?;
            }
        }
        change @ (DomainChange::DropConstraint { .. }
        | DomainChange::Validate(_)
        | DomainChange::RenameConstraint { .. }) => match constraint(&mut own, change)? {
            Done::Changed => {}
            Done::Nothing => return Ok(Answer::changed(None, &context.clock)),
            Done::Told(notice) => {
                return Ok(Answer::changed(None, &context.clock).with_notice(notice));
            }
        },
        DomainChange::Rename(to) => {
            own.name = catalog_name(schema_of(&name), &to);
            renamed(scope, &context, &name, &own.name)?;
        }
        DomainChange::Move(schema) => {
            let to = within(&schema, base(&name));
            own.name = scope.path().creates(&tables, &to)?;
            if own.name == name {
                return Ok(Answer::changed(None, &context.clock));
            }
            scope.schema_stays(&context, &own.name)?;
            context.rights.check_creates(&tables, &own.name)?;
            renamed(scope, &context, &name, &own.name)?;
        }
        DomainChange::Owner(role) => {
            may_get(scope, &context, &name, &role)?;
            owner::give(scope, &context, &mut writing, &name, &role)?;
            scope.keep(writing).await?;
            return Ok(Answer::changed(None, &context.clock));
        }
    }
    table::change_domain(&mut writing.tx, &name, &own)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// What has become of a domain.
enum Done {
    Changed,
    Nothing,
    Told(String),
}

/// Drops, renames or looks for a constraint.
fn constraint(own: &mut Domain, change: DomainChange) -> Result<Done> {
    Ok(match change {
        DomainChange::DropConstraint { name, if_exists } => match place(own, &name) {
            Some(at) => {
                own.checks.remove(at);
                Done::Changed
            }
            None if if_exists => Done::Told(format!("{}, skipping", no_constraint(own, &name))),
            None => return Err(no_constraint(own, &name)),
        },
        DomainChange::RenameConstraint { name, to } => {
            let Some(at) = place(own, &name) else {
                return Err(no_constraint(own, &name));
            };
            if place(own, &to).is_some() {
                return Err(taken(own, &to));
            }
            own.checks[at].name = to;
            Done::Changed
        }
        DomainChange::Validate(name) if place(own, &name).is_none() => {
            return Err(no_constraint(own, &name));
        }
        // All that there are hold.
        _ => Done::Nothing,
    })
}

fn taken(own: &Domain, constraint: &str) -> Error {
    Error::coded(
        "42710",
        format!(
            "constraint \"{constraint}\" for domain \"{}\" already exists",
            titled(&own.name)
        ),
    )
}

/// The place of a constraint of a domain.
fn place(own: &Domain, constraint: &str) -> Option<usize> {
    own.checks.iter().position(|check| check.name == constraint)
}

fn no_constraint(own: &Domain, constraint: &str) -> Error {
    Error::coded(
        "42704",
        format!(
            "constraint \"{constraint}\" of domain \"{}\" does not exist",
            titled(&own.name)
        ),
    )
}

/// Why a statement that is about a domain is not about what it names.
fn no_domain(tables: &Tables, name: &str, written: &str) -> Error {
    if tables.has_type(name) {
        return Error::coded("42809", format!("\"{}\" is not a domain", titled(written)));
    }
    unknown(written)
}

/// That no column of a domain has a NULL, whoever may read it.
async fn without_nulls(context: &mut StatementContext, name: &str) -> Result<()> {
    let columns = columns_of(&context.tables, name);
    let own = std::mem::replace(&mut context.rights, Rights::all());
    for (table, column) in columns {
        let quoted = Ident::with_quote('"', &column);
        let text = format!(
            "select 1 from {} where {quoted} is null limit 1",
            exactly(&table)
        );
        if any(context, &text).await? {
            return Err(Error::Constraint {
                code: "23502",
                message: format!(
                    "column \"{column}\" of table \"{}\" contains null values",
                    titled(&table)
                ),
            });
        }
    }
    context.rights = own;
    Ok(())
}

/// That a condition does not fail for a value of a column of a domain, whoever may read it.
async fn satisfied(context: &mut StatementContext, name: &str, check: &str) -> Result<()> {
    let columns = columns_of(&context.tables, name);
    let own = std::mem::replace(&mut context.rights, Rights::all());
    for (table, column) in columns {
        let condition = with_column(check, VALUE, &column)?;
        let text = format!(
            "select 1 from {} where not ({condition}) limit 1",
            exactly(&table)
        );
        if any(context, &text).await? {
            return Err(Error::Constraint {
                code: "23514",
                message: format!(
                    "column \"{column}\" of table \"{}\" contains values that violate the new constraint",
                    titled(&table)
                ),
            });
        }
    }
    context.rights = own;
    Ok(())
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
    let (mut writing, context) = scope.write("DROP DOMAIN", &targets, started).await?;
    let mut answer = Answer::changed(None, &context.clock);
    let mut there: Vec<&str> = Vec::new();
    for (name, written) in targets.into_iter().zip(written) {
        let own = context.tables.domain(name);
        if own.is_some_and(|own| !own.composite) {
            if !there.contains(&name) {
                there.push(name);
            }
        } else if if_exists && !context.tables.has_type(name) {
            let notice = format!("type \"{}\" does not exist, skipping", titled(written));
            answer = answer.with_notice(notice);
        } else {
            return Err(no_domain(&context.tables, name, written));
        }
    }
    for name in &there {
        stays_unused(&context.tables, name, &there, cascade)?;
    }
    if !there.is_empty() {
        for name in children_first(&context.tables, &there) {
            table::drop_domain(&mut writing.tx, name)?;
        }
        scope.keep(writing).await?;
    }
    Ok(answer)
}

/// These domains, those that were made from others before these.
pub(super) fn children_first<'n>(tables: &Tables, names: &[&'n str]) -> Vec<&'n str> {
    let mut names = names.to_vec();
    names.sort_by_key(|name| std::cmp::Reverse(tables.lineage(name).len()));
    names
}
