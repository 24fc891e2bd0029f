//! Whom things are given to.

use std::sync::Arc;

use catalog::rights::{self, denied, no_role};
use syntax::names::CATALOG;
use syntax::roles::RoleName;
use table::Tables;

use crate::error::Result;
use crate::run::context::StatementContext;
use crate::statements::scope::{Scope, may_be};
use crate::statements::write::Writing;

/// The name of the role that a statement means; none for who runs the program, to whom all belongs where there are no roles.
///
/// # Errors
/// If there is none of that name.
pub(crate) fn named(scope: &Scope<'_>, tables: &Tables, role: &RoleName) -> Result<Option<String>> {
    let name = match role {
        RoleName::Named(name) => Some(Arc::from(name.as_str())),
        RoleName::Current => scope.role(),
        RoleName::Session => scope.session_user(),
    };
    let Some(name) = name else {
        return Ok(None);
    };
    if tables.role(&name).is_some() {
        return Ok(Some(name.to_string()));
    }
    let program = *name == *CATALOG || (!tables.has_roles() && *name == *scope.user_name());
    if program {
        Ok(None)
    } else {
        Err(no_role(&name))
    }
}

/// That something of whose statement it is may be given to a role.
///
/// # Errors
/// If it is not a member of it.
pub(crate) fn may_own(
    scope: &Scope<'_>,
    context: &StatementContext,
    role: Option<&str>,
) -> Result<()> {
    let own = scope.role();
    let member = |own: &Arc<str>| role.is_some_and(|role| may_be(&context.tables, own, role));
    if context.rights.is_all() || own.as_ref().is_some_and(member) {
        return Ok(());
    }
    let role = role.unwrap_or(CATALOG);
    Err(denied(format!("must be member of role \"{role}\"")))
}

/// Gives a table, a view, a sequence, an array or a schema to a role.
///
/// # Errors
/// As [`named`] and [`may_own`].
pub(crate) fn give(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    name: &str,
    role: &RoleName,
) -> Result<()> {
    let role = named(scope, &context.tables, role)?;
    may_own(scope, context, role.as_deref())?;
    let mut acl = match table::acl(&writing.tx, name)? {
        Some(acl) => acl,
        None if role.is_none() => return Ok(()),
        None => rights::first(name),
    };
    acl.owner = role;
    Ok(table::put_acl(&mut writing.tx, name, &acl)?)
}
