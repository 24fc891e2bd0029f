//! Roles: `create`, `alter` and `drop role`, membership, `set role`.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, StringArray};
use catalog::limits;
use catalog::rights::{self, GIVEN, denied, is_role, no_role};
use scram::Verifier;
use syntax::authorization::{AUTHORIZATION, Authorize};
use syntax::names::{CATALOG, check_new, quoted};
use syntax::role_options::RoleOptions;
use syntax::roles::RoleStatement;
use syntax::schemas;
use table::{ROLES, Role, Tables};

use crate::error::{Error, Result};
use crate::functions::system;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::grants;
use crate::statements::relations::missing;
use crate::statements::scope::{Scope, may_be, may_be_of, not_of};
use crate::statements::transaction::clock;

/// Runs a statement about roles or rights.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    statement: RoleStatement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        RoleStatement::Create { name, options } => create(scope, &name, options, started).await,
        RoleStatement::Alter { name, options } => alter(scope, &name, options, started).await,
        RoleStatement::Configure {
            name,
            setting,
            value,
        } => configure(scope, &name, (setting, value), started).await,
        RoleStatement::Drop { names, if_exists } => drop(scope, &names, if_exists, started).await,
        RoleStatement::Members {
            grants,
            roles,
            members,
            option,
        } => self::members(scope, (&roles, &members), (grants, option), started).await,
        RoleStatement::Privileges {
            grants,
            privileges,
            things,
            roles,
            option,
        } => {
            let change = grants::Change {
                grants,
                privileges,
                roles,
                option,
            };
            grants::change(scope, things, change, started).await
        }
        RoleStatement::Owner {
            things,
            if_exists,
            role,
        } => grants::own(scope, things, if_exists, role, started).await,
        RoleStatement::Set { role, local } => set(scope, role, local, started),
        RoleStatement::Authorize(own) => authorize(scope, own, started),
        RoleStatement::Show(name) => {
            let role = if name == AUTHORIZATION {
                scope.user_name()
            } else {
                let role = scope.session_path().role();
                role.map_or("none".to_owned(), |role| role.to_string())
            };
            let role: ArrayRef = Arc::new(StringArray::from(vec![role]));
            Answer::of_columns(vec![(name, role)], &clock(&scope.instance, started))
        }
    }
}

/// What may be changed of roles by whose statement it is.
struct Master {
    superuser: bool,
    create_role: bool,
}

impl Master {
    fn of(scope: &Scope<'_>, context: &StatementContext) -> Master {
        let superuser = context.rights.is_all();
        let role = scope.role();
        let own = role.as_ref().and_then(|role| context.tables.role(role));
        Master {
            superuser,
            create_role: superuser || own.is_some_and(|own| own.create_role),
        }
    }

    /// That it may make a role, or one that it is into this.
    fn check(&self, what: &str, before: Option<&Role>, after: &Role) -> Result<()> {
        let touches = after.superuser || before.is_some_and(|own| own.superuser);
        if touches && !self.superuser {
            return Err(denied(format!(
                "permission denied to {what} role: Only superusers {what} superusers."
            )));
        }
        if self.create_role {
            return Ok(());
        }
        Err(denied(format!(
            "permission denied to {what} role: Only superusers and roles with `createrole` may {what} roles."
        )))
    }
}

/// What is kept of a password: its verifier, which a client may give itself.
fn verifier(password: Option<String>) -> Result<Option<String>> {
    let Some(password) = password.filter(|password| !password.is_empty()) else {
        return Ok(None);
    };
    if Verifier::read(&password).is_some() {
        return Ok(Some(password));
    }
    if !password.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Err(Error::coded(
            "22023",
            "a password has no characters but those of ASCII that are printed",
        ));
    }
    match Verifier::new(&password) {
        Ok(verifier) => Ok(Some(verifier.text())),
        Err(reason) => Err(Error::Execution {
            code: "XX000",
            message: reason,
        }),
    }
}

/// A number that no role has had: who was let in as a role that is dropped is not let in as another of its name.
fn new_number() -> Result<u64> {
    let mut bytes = [0; 8];
    scram::fill(&mut bytes).map_err(|message| Error::Execution {
        code: "XX000",
        message,
    })?;
    // Zero is that of roles without a number.
    Ok(u64::from_le_bytes(bytes).max(1))
}

/// Makes of a role what the options say.
fn apply(role: &mut Role, options: &RoleOptions) -> Result<()> {
    let flags = [
        (&mut role.superuser, options.superuser),
        (&mut role.create_role, options.create_role),
        (&mut role.inherit, options.inherit),
        (&mut role.login, options.login),
    ];
    for (flag, wanted) in flags {
        *flag = wanted.unwrap_or(*flag);
    }
    if let Some(password) = &options.password {
        role.verifier = verifier(password.clone())?;
    }
    if let Some(connections) = options.connections {
        role.connections = connections;
    }
    Ok(())
}

fn check_name(tables: &Tables, name: &str) -> Result<()> {
    if is_role(tables, name) {
        return Err(Error::coded(
            "42710",
            format!("role \"{name}\" already exists"),
        ));
    }
    if name.starts_with("pg_") || matches!(name, "public" | "none" | CATALOG) {
        return Err(Error::coded(
            "42939",
            format!("role name \"{name}\" is reserved: take another"),
        ));
    }
    if name.len() > 63 || name.contains(':') {
        return Err(Error::coded(
            "42602",
            format!("{name:?} cannot name a role: 1 to 63 bytes, without a colon"),
        ));
    }
    check_new(name)
}

async fn create(
    scope: &mut Scope<'_>,
    name: &str,
    options: RoleOptions,
    started: Instant,
) -> Result<Answer> {
    let (mut writing, context) = scope.write("CREATE ROLE", &[ROLES], started).await?;
    let tables = &context.tables;
    check_name(tables, name)?;
    let mut role = Role {
        number: new_number()?,
        ..Role::default()
    };
    apply(&mut role, &options)?;
    Master::of(scope, &context).check("create", None, &role)?;
    first_is_a_superuser(scope, tables, name, &role)?;
    for group in options.in_roles.iter().flatten() {
        may_give(scope, &context, group)?;
        role.member_of.insert(group.clone(), false);
    }
    table::put_role(&mut writing.tx, name, &role)?;
    for (members, admin) in [(&options.members, false), (&options.admins, true)] {
        for member in members.iter().flatten() {
            let Some(own) = tables.role(member) else {
                return Err(no_role(member));
            };
            no_circle(
                tables,
                name,
                &role.member_of.keys().cloned().collect::<Vec<_>>(),
                member,
            )?;
            let mut own = own.clone();
            own.member_of.insert(name.to_owned(), admin);
            table::put_role(&mut writing.tx, member, &own)?;
        }
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// That who creates the first role can go on: once there is one, users that are none may do nothing.
fn first_is_a_superuser(scope: &Scope<'_>, tables: &Tables, name: &str, role: &Role) -> Result<()> {
    let Some(user) = scope.user().filter(|_| !tables.has_roles()) else {
        return Ok(());
    };
    if **user == *name && role.superuser && role.login {
        return Ok(());
    }
    Err(Error::coded(
        "55000",
        format!(
            "the first role must be your own, or you could do nothing from then on: `create role {} superuser login password '...'`, or have who runs the program create roles by `atoll sql`",
            quoted(user)
        ),
    ))
}

/// That a member of `group` may be made.
fn may_give(scope: &Scope<'_>, context: &StatementContext, group: &str) -> Result<()> {
    let tables = &context.tables;
    if !is_role(tables, group) {
        return Err(no_role(group));
    }
    if context.rights.is_all() {
        return Ok(());
    }
    let role = scope.role();
    let role = role.as_deref().unwrap_or_default();
    let mut with = rights::reached(tables, role, false).into_iter();
    let admin = with.any(|own| {
        let own = tables.role(&own);
        own.is_some_and(|own| own.member_of.get(group) == Some(&true))
    });
    let group_role = tables.role(group);
    let creates = tables.role(role).is_some_and(|own| own.create_role)
        && group_role.is_some_and(|own| !own.superuser);
    if admin || creates {
        return Ok(());
    }
    Err(denied(format!(
        "must have admin option on role \"{group}\""
    )))
}

/// That `member` is not reached from `group`, which is a member of `above`.
fn no_circle(tables: &Tables, group: &str, above: &[String], member: &str) -> Result<()> {
    let mut above = above.iter();
    if group == member
        || rights::reached(tables, group, false).contains(member)
        || above.any(|own| rights::reached(tables, own, false).contains(member))
    {
        return Err(Error::coded(
            "0LP01",
            format!("role \"{group}\" is a member of role \"{member}\""),
        ));
    }
    Ok(())
}

async fn alter(
    scope: &mut Scope<'_>,
    name: &str,
    options: RoleOptions,
    started: Instant,
) -> Result<Answer> {
    let (mut writing, context) = scope.write("ALTER ROLE", &[ROLES], started).await?;
    let Some(before) = context.tables.role(name) else {
        return Err(if GIVEN.contains(&name) {
            Error::coded("42939", format!("role \"{name}\" is reserved"))
        } else {
            no_role(name)
        });
    };
    let mut after = before.clone();
    apply(&mut after, &options)?;
    let only_password = RoleOptions {
        password: options.password.clone(),
        ..RoleOptions::default()
    };
    // Everybody may change their own password.
    let own = scope.role().as_deref() == Some(name) && options == only_password;
    if !own {
        Master::of(scope, &context).check("alter", Some(before), &after)?;
        let own = scope.role().as_deref() == Some(name) && !context.rights.is_all();
        if own && after.connections != before.connections {
            return Err(denied(format!(
                "permission denied to alter role: only superusers change the limits of their own role \"{name}\""
            )));
        }
    }
    if before.superuser && before.login && !(after.superuser && after.login) {
        stays_manageable(scope, &context.tables, &[name])?;
    }
    table::put_role(&mut writing.tx, name, &after)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// `alter role ... set` and `reset`; no setting stands for all, no value for what there is without it.
async fn configure(
    scope: &mut Scope<'_>,
    name: &str,
    (setting, value): (Option<String>, Option<String>),
    started: Instant,
) -> Result<Answer> {
    let (mut writing, context) = scope.write("ALTER ROLE", &[ROLES], started).await?;
    let Some(before) = context.tables.role(name) else {
        return Err(if GIVEN.contains(&name) {
            Error::coded("42939", format!("role \"{name}\" is reserved"))
        } else {
            no_role(name)
        });
    };
    let mut after = before.clone();
    match (&setting, value) {
        (None, _) => after.settings.clear(),
        (Some(setting), Some(value)) => {
            let value = limits::normal(setting, &value)?;
            if setting == limits::PATH {
                schemas::setting(&value)?;
            }
            after.settings.insert(setting.clone(), value);
        }
        (Some(setting), None) => {
            // That there is such a setting.
            if setting != limits::PATH {
                limits::normal(setting, "0")?;
            }
            after.settings.remove(setting);
        }
    }
    let changes = |setting: &String| before.settings.get(setting) != after.settings.get(setting);
    let mut all = before.settings.keys().chain(after.settings.keys());
    let bounds = all.any(|setting| limits::bounds(setting) && changes(setting));
    // Everybody may say where their own names are looked up, and nobody how much they may have.
    if bounds || scope.role().as_deref() != Some(name) {
        Master::of(scope, &context).check("alter", Some(before), &after)?;
        if bounds && scope.role().as_deref() == Some(name) && !context.rights.is_all() {
            return Err(denied(format!(
                "permission denied to alter role: only superusers change the limits of their own role \"{name}\""
            )));
        }
    }
    table::put_role(&mut writing.tx, name, &after)?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// That a superuser who may log in is left for a session that is of one; who runs the program needs none.
fn stays_manageable(scope: &Scope<'_>, tables: &Tables, gone: &[&str]) -> Result<()> {
    if scope.user().is_none() {
        return Ok(());
    }
    let mut left = tables.roles().filter(|(name, _)| !gone.contains(name));
    if left.any(|(_, role)| role.superuser && role.login) {
        return Ok(());
    }
    Err(Error::coded(
        "55006",
        "the last superuser who may log in stays: make another first",
    ))
}

async fn drop(
    scope: &mut Scope<'_>,
    names: &[String],
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let (mut writing, context) = scope.write("DROP ROLE", &[ROLES], started).await?;
    let tables = &context.tables;
    let mut gone: Vec<&str> = Vec::new();
    let mut answer = Answer::changed(None, &context.clock);
    for name in names {
        let Some(role) = tables.role(name) else {
            if if_exists {
                answer = answer.with_notice(missing("role", name));
                continue;
            }
            return Err(no_role(name));
        };
        Master::of(scope, &context).check("drop", Some(role), role)?;
        let of = [scope.user().cloned(), scope.session_user()];
        if of.iter().flatten().any(|user| **user == **name) {
            return Err(Error::coded("55006", "session user cannot be dropped"));
        }
        if scope.role().as_deref() == Some(name) {
            return Err(Error::coded("55006", "current user cannot be dropped"));
        }
        if let Some((thing, acl)) = tables.acls().find(|(_, acl)| acl.names(name)) {
            let how = if acl.owner.as_deref() == Some(name) {
                "owner of"
            } else {
                "privileges for"
            };
            return Err(Error::Constraint {
                code: "2BP01",
                message: format!(
                    "role \"{name}\" cannot be dropped because some objects depend on it: {how} {}",
                    rights::titled(tables, thing)
                ),
            });
        }
        gone.push(name);
    }
    if !gone.is_empty() {
        stays_manageable(scope, tables, &gone)?;
    }
    for name in &gone {
        match table::drop_role(&mut writing.tx, name) {
            // It was named twice.
            Ok(()) | Err(table::Error::NoTable { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    for (name, role) in tables.roles().filter(|(name, _)| !gone.contains(name)) {
        let mut role = role.clone();
        let before = role.member_of.len();
        role.member_of
            .retain(|group, _| !gone.contains(&group.as_str()));
        if role.member_of.len() < before {
            table::put_role(&mut writing.tx, name, &role)?;
        }
    }
    scope.keep(writing).await?;
    Ok(answer)
}

/// `grant` and `revoke` of roles.
async fn members(
    scope: &mut Scope<'_>,
    (roles, members): (&[String], &[String]),
    (grants, option): (bool, bool),
    started: Instant,
) -> Result<Answer> {
    let what = if grants { "GRANT" } else { "REVOKE" };
    let (mut writing, context) = scope.write(what, &[ROLES], started).await?;
    let tables = &context.tables;
    for group in roles {
        may_give(scope, &context, group)?;
    }
    for member in members {
        let Some(own) = tables.role(member) else {
            return Err(no_role(member));
        };
        let mut own = own.clone();
        for group in roles {
            if grants {
                no_circle(tables, group, &[], member)?;
                let admin = own.member_of.entry(group.clone()).or_default();
                *admin |= option;
            } else if option {
                own.member_of
                    .entry(group.clone())
                    .and_modify(|admin| *admin = false);
            } else {
                own.member_of.remove(group);
            }
        }
        table::put_role(&mut writing.tx, member, &own)?;
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// `set role`.
fn set(scope: &Scope<'_>, role: Option<String>, local: bool, started: Instant) -> Result<Answer> {
    if let Some(name) = &role {
        let tables = scope.tables()?;
        if tables.role(name).is_none() {
            return Err(Error::coded(
                "22023",
                format!("role \"{name}\" does not exist"),
            ));
        }
        let user = scope.session_user();
        if let Some(user) = user.filter(|user| !may_be(&tables, user, name)) {
            return Err(denied(format!(
                "permission denied to set role \"{name}\": \"{user}\" is no member of it"
            )));
        }
    }
    // It lasts until the end of this statement.
    if !(local && scope.is_alone()) {
        scope.session_path().set_role(role.map(Arc::from), local);
    }
    Ok(Answer::changed(None, &clock(&scope.instance, started)))
}

/// `set session authorization`. A superuser may have the session be of any role, everybody of themselves; who has connected
/// counts, and not who the session is of now.
fn authorize(scope: &Scope<'_>, own: Authorize, started: Instant) -> Result<Answer> {
    let Authorize { role, local, .. } = own;
    let itself = |name: &String| match scope.user() {
        Some(user) => **user == **name,
        None => *name == system::user(),
    };
    let other = role.filter(|name| !itself(name));
    if let Some(name) = &other {
        let tables = scope.tables()?;
        if tables.role(name).is_none() {
            return Err(Error::coded(
                "22023",
                format!("role \"{name}\" does not exist"),
            ));
        }
        if scope.user().is_some_and(|user| !may_be_of(&tables, user)) {
            return Err(not_of(name));
        }
    }
    // It lasts until the end of this statement.
    if !(local && scope.is_alone()) {
        let path = scope.session_path();
        path.set_authorization(other.map(Arc::from), local);
    }
    Ok(Answer::changed(None, &clock(&scope.instance, started)))
}
