//! `grant` and `revoke` of privileges, and whom things belong to.

use std::time::Instant;

use catalog::rights::{self, PUBLIC, denied, no_role, titled};
use catalog::search_path::no_schema;
use syntax::grants::Things;
use syntax::names::{SCHEMA, of_schema, permanent, schema_of};
use syntax::roles::RoleName;
use table::{Acl, Privileges, Tables};

use crate::error::{Error, Result, WITHIN};
use crate::messages::nearest::unknown_table;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::access::is_there;
use crate::statements::owner;
use crate::statements::scope::Scope;

/// What a `grant` or `revoke` says.
pub(crate) struct Change {
    pub grants: bool,
    /// None for all that there are.
    pub privileges: Option<Privileges>,
    pub roles: Vec<String>,
    pub option: bool,
}

/// The names in the catalog of what privileges are of.
fn names(scope: &Scope<'_>, things: &Things) -> Result<Vec<String>> {
    let within = |schemas: &[String], tables: &Tables, sequences: bool| -> Result<Vec<String>> {
        for schema in schemas {
            if schema != SCHEMA && !tables.has_schema(schema) {
                return Err(no_schema(schema));
            }
        }
        let names = if sequences {
            permanent(tables.sequences())
        } else {
            permanent([tables.names(), tables.views()].concat())
        };
        let names = names.into_iter();
        let names = names.filter(|name| schemas.iter().any(|own| own == schema_of(name)));
        Ok(names.map(str::to_owned).collect())
    };
    match things {
        Things::Tables(all) | Things::Sequences(all) => {
            all.iter().map(|written| scope.own(written)).collect()
        }
        Things::Schemas(all) => Ok(all.clone()),
        Things::Database => Ok(vec![rights::DATABASE.to_owned()]),
        Things::TablesIn(schemas) => within(schemas, &*scope.tables()?, false),
        Things::SequencesIn(schemas) => within(schemas, &*scope.tables()?, true),
    }
}

/// That there is such a thing, of the kind that the statement says.
fn check_kind(context: &StatementContext, things: &Things, name: &str) -> Result<()> {
    let tables = &context.tables;
    if name == rights::DATABASE {
        return Ok(());
    }
    if let Some(schema) = name.strip_suffix(WITHIN) {
        return if schema == SCHEMA || tables.has_schema(schema) {
            Ok(())
        } else {
            Err(no_schema(schema))
        };
    }
    if !is_there(context, name) {
        return Err(unknown_table(name, tables));
    }
    let sequence = tables.sequence(name).is_some();
    match things {
        Things::Sequences(_) if !sequence => Err(Error::coded(
            "42809",
            format!("\"{name}\" is not a sequence"),
        )),
        _ => Ok(()),
    }
}

/// What of `wanted` whose statement it is may grant on something.
fn grantable(context: &StatementContext, name: &str, wanted: Privileges) -> Privileges {
    let (rights, tables) = (&context.rights, &context.tables);
    if rights.owns(tables, name) {
        return wanted;
    }
    let acl = rights::acl(tables, name);
    let own = acl.grants.iter();
    let own = own.filter(|(role, _)| *role != PUBLIC && rights.includes(Some(role)));
    let all = own.fold(Privileges::default(), |all, (_, grant)| {
        all.and(grant.grantable)
    });
    all.within(wanted)
}

/// Grants privileges, or revokes them.
pub(crate) async fn change(
    scope: &mut Scope<'_>,
    things: Things,
    change: Change,
    started: Instant,
) -> Result<Answer> {
    let names = names(scope, &things)?;
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let what = if change.grants { "GRANT" } else { "REVOKE" };
    let (mut writing, context) = scope.write(what, &all, started).await?;
    let tables = &context.tables;
    for role in change.roles.iter().filter(|role| *role != PUBLIC) {
        if !rights::is_role(tables, role) {
            return Err(no_role(role));
        }
    }
    if change.grants && change.option && change.roles.iter().any(|role| role == PUBLIC) {
        return Err(Error::coded(
            "0LP01",
            "grant options can only be granted to roles",
        ));
    }
    for name in all {
        check_kind(&context, &things, name)?;
        let wanted = wanted(tables, &things, &change, name)?;
        let may = grantable(&context, name, wanted);
        if !may.has(wanted) {
            return Err(denied(format!(
                "permission denied for {}",
                titled(tables, name)
            )));
        }
        let mut acl = match table::acl(&writing.tx, name)? {
            Some(acl) => acl,
            None => rights::first(name),
        };
        apply(&mut acl, &change, wanted);
        table::put_acl(&mut writing.tx, name, &acl)?;
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// The privileges that the statement means for a thing.
fn wanted(tables: &Tables, things: &Things, change: &Change, name: &str) -> Result<Privileges> {
    let sequence = tables.sequence(name).is_some();
    let there = if sequence {
        Privileges::OF_SEQUENCE
    } else {
        things.all()
    };
    match change.privileges {
        None => Ok(there),
        Some(wanted) if there.has(wanted) => Ok(wanted),
        Some(_) => Err(Error::coded(
            "0LP01",
            format!("invalid privilege type for {}", titled(tables, name)),
        )),
    }
}

fn apply(acl: &mut Acl, change: &Change, wanted: Privileges) {
    for role in &change.roles {
        if change.grants {
            acl.grant(role, wanted, change.option)
        } else {
            acl.revoke(role, wanted, change.option)
        }
    }
}

/// `alter ... owner to role`.
pub(crate) async fn own(
    scope: &mut Scope<'_>,
    things: Things,
    if_exists: bool,
    role: RoleName,
    started: Instant,
) -> Result<Answer> {
    let names = names(scope, &things)?;
    if if_exists {
        let context = scope.peek(started)?;
        if let Some(missing) = names.iter().find(|name| !is_there(&context, name)) {
            let notice = format!(
                "relation \"{}\" does not exist, skipping",
                table::titled(missing)
            );
            return Ok(Answer::changed(None, &context.clock).with_notice(notice));
        }
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write("ALTER OWNER", &all, started).await?;
    for name in all {
        check_kind(&context, &things, name)?;
        let tables = &context.tables;
        if tables.sequence(name).is_some()
            && tables.acl(name).is_none_or(|acl| acl.owner.is_none())
            && rights::owner(tables, name).is_some()
        {
            return Err(Error::unsupported(
                "cannot change owner of a sequence that belongs to a column: change that of its table",
            ));
        }
        if !name.ends_with(WITHIN) {
            let schema = of_schema(schema_of(name));
            let role = owner::named(scope, tables, &role)?;
            owner::may_own(scope, &context, role.as_deref())?;
            let new = rights::Rights::of(tables, role.as_deref())?;
            if !context.rights.is_all() {
                new.check(tables, &schema, Privileges::CREATE)?;
            }
        }
        owner::give(scope, &context, &mut writing, name, &role)?;
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}
