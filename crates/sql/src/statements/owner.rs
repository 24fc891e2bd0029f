//! Whom things are given to.

use std::sync::Arc;

use table::Tables;

use crate::error::{Error, Result};
use crate::frontend::roles::RoleName;
use crate::rights::{self, denied, no_role};
use crate::run::context::StatementContext;
use crate::statements::scope::{Scope, may_be};
use crate::statements::write::Writing;

/// The name of the role that a statement means.
///
/// # Errors
/// If there is none of that name; none where the statement is of who runs the program.
pub(crate) fn named(scope: &Scope<'_>, tables: &Tables, role: &RoleName) -> Result<String> {
    let name = match role {
        RoleName::Named(name) => Some(Arc::from(name.as_str())),
        RoleName::Current => scope.role(),
        RoleName::Session => scope.user().cloned(),
    };
    match name {
        Some(name) if tables.role(&name).is_some() => Ok(name.to_string()),
        Some(name) => Err(no_role(&name)),
        None => Err(Error::unsupported(
            "this session is of no role: name the one that is meant",
        )),
    }
}

/// That something of whose statement it is may be given to a role.
///
/// # Errors
/// If it is not a member of it.
pub(crate) fn may_own(scope: &Scope<'_>, context: &StatementContext, role: &str) -> Result<()> {
    let own = scope.role();
    let member = |own: &Arc<str>| may_be(&context.tables, own, role);
    if context.rights.is_all() || own.as_ref().is_some_and(member) {
        return Ok(());
    }
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
    may_own(scope, context, &role)?;
    let mut acl = match table::acl(&writing.tx, name)? {
        Some(acl) => acl,
        None => rights::first(name),
    };
    acl.owner = Some(role);
    Ok(table::put_acl(&mut writing.tx, name, &acl)?)
}
