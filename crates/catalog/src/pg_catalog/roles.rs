//! What roles there are, whom things belong to, and who may do what with them.

use messages::numbers::{OWNER, role_number};
use syntax::names::{CATALOG, base, permanent, schema_of};
use table::{Acl, Grant, Privileges, Role, Tables};

use crate::pg_catalog::build::Built;
use crate::rights::{self, GIVEN, PUBLIC, Rights};

/// What clients are told of a role.
struct Shown {
    name: String,
    superuser: bool,
    create_role: bool,
    inherit: bool,
    login: bool,
    /// -1 for as many as there is room for.
    connections: i64,
    /// `name=value`.
    settings: Option<Vec<String>>,
}

/// All roles: who runs the program, those that were created, those that there always are.
fn all_roles(all: &Tables) -> Vec<Shown> {
    let mut roles = vec![Shown {
        name: CATALOG.into(),
        superuser: true,
        create_role: true,
        inherit: true,
        login: true,
        connections: -1,
        settings: None,
    }];
    let created = all.roles().filter(|(name, _)| *name != CATALOG);
    roles.extend(created.map(|(name, role)| Shown {
        name: name.into(),
        superuser: role.superuser,
        create_role: role.create_role,
        inherit: role.inherit,
        login: role.login,
        connections: role.connections.map_or(-1, i64::from),
        settings: settings(role),
    }));
    if all.has_roles() {
        roles.extend(GIVEN.map(|name| Shown {
            name: name.into(),
            superuser: false,
            create_role: false,
            inherit: true,
            login: false,
            connections: -1,
            settings: None,
        }));
    }
    roles
}

/// What the sessions of a role begin with; none if nothing was said.
fn settings(role: &Role) -> Option<Vec<String>> {
    let all = role.settings.iter();
    let all: Vec<String> = all.map(|(name, value)| format!("{name}={value}")).collect();
    (!all.is_empty()).then_some(all)
}

/// `pg_db_role_setting`.
pub(super) fn role_settings(all: &Tables) -> Built {
    let told = |(name, role)| Some((role_number(name), settings(role)?));
    let rows: Vec<(i64, Vec<String>)> = all.roles().filter_map(told).collect();
    Built::default()
        .number("setdatabase", 0, rows.len())
        .numbers("setrole", rows.iter().map(|row| row.0))
        .lists("setconfig", rows.iter().map(|row| Some(row.1.clone())))
}

/// `pg_roles`, `pg_authid` and `pg_user`. Nothing is told of passwords.
pub(super) fn roles(all: &Tables) -> Built {
    let shown = all_roles(all);
    let rows = shown.len();
    let truths = |of: fn(&Shown) -> bool| shown.iter().map(of).collect::<Vec<_>>();
    let built = Built::default()
        .numbers("oid", shown.iter().map(|role| role_number(&role.name)))
        .numbers("usesysid", shown.iter().map(|role| role_number(&role.name)))
        .names("rolname", shown.iter().map(|role| role.name.as_str()))
        .names("usename", shown.iter().map(|role| role.name.as_str()))
        .numbers("rolconnlimit", shown.iter().map(|role| role.connections))
        .nothing("rolvaliduntil", rows)
        .nothing("rolpassword", rows)
        .lists("rolconfig", shown.iter().map(|role| role.settings.clone()))
        .lists("useconfig", shown.iter().map(|role| role.settings.clone()))
        .truths("rolsuper", truths(|role| role.superuser))
        .truths("usesuper", truths(|role| role.superuser))
        .truths("rolinherit", truths(|role| role.inherit))
        .truths("rolcanlogin", truths(|role| role.login))
        .truths("rolcreaterole", truths(|role| role.create_role));
    [
        "rolcreatedb",
        "rolreplication",
        "rolbypassrls",
        "usecreatedb",
    ]
    .into_iter()
    .fold(built, |built, name| built.truth(name, false, rows))
}

/// `pg_auth_members`.
pub(super) fn members(all: &Tables) -> Built {
    let mut rows: Vec<(&str, &str, bool)> = Vec::new();
    for (member, role) in all.roles() {
        let groups = role.member_of.iter();
        rows.extend(groups.map(|(group, admin)| (group.as_str(), member, *admin)));
    }
    Built::default()
        .numbers("roleid", rows.iter().map(|row| role_number(row.0)))
        .numbers("member", rows.iter().map(|row| role_number(row.1)))
        .number("grantor", OWNER, rows.len())
        .truths("admin_option", rows.iter().map(|row| row.2))
}

/// The name of the role that something belongs to.
pub(super) fn owner<'t>(all: &'t Tables, name: &str) -> &'t str {
    rights::owner(all, name).unwrap_or(CATALOG)
}

/// Its number.
pub(super) fn owner_number(all: &Tables, name: &str) -> i64 {
    role_number(owner(all, name))
}

/// Who may do what with something, as PostgreSQL shows it: `{ann=arwdDx/ann,=r/ann}`; none if nothing was granted.
pub(super) fn acl(all: &Tables, name: &str, there: Privileges) -> Option<Vec<String>> {
    let own: &Acl = all.acl(name)?;
    let owner = owner(all, name);
    let full = Grant {
        held: there,
        grantable: Privileges::default(),
    };
    let mut items = vec![item(owner, full, owner)];
    let grants = own.grants.iter();
    items.extend(grants.map(|(role, grant)| item(role, *grant, owner)));
    Some(items)
}

fn item(role: &str, grant: Grant, by: &str) -> String {
    let mut text = format!("{role}=");
    for (one, _, letter) in Privileges::ALL {
        if grant.held.has(one) {
            text.push(letter);
        }
        if grant.grantable.has(one) {
            text.push('*');
        }
    }
    format!("{text}/{by}")
}

/// A privilege on a table: who has it, and whether it may be granted further.
pub(super) struct TableGrant {
    pub grantor: String,
    pub grantee: String,
    /// The name in the catalog.
    pub table: String,
    pub privilege: &'static str,
    pub grantable: bool,
}

/// The same on its columns.
pub(super) type ColumnGrant = TableGrant;

/// What may be done with the columns of tables, of what [`table_privileges`] tells.
pub(super) fn column_grants(all: &Tables, rights: &Rights, of_roles: bool) -> Vec<ColumnGrant> {
    let mut grants = table_grants(all, rights, of_roles);
    let of_columns = ["SELECT", "INSERT", "UPDATE", "REFERENCES"];
    grants.retain(|own| of_columns.contains(&own.privilege));
    grants
}

/// `information_schema.table_privileges`, or only those of roles that are the caller's: `role_table_grants`.
pub(super) fn table_privileges(all: &Tables, rights: &Rights, of_roles: bool) -> Built {
    let rows = table_grants(all, rights, of_roles);
    let yes = |yes: bool| if yes { "YES" } else { "NO" };
    Built::default()
        .names("grantor", rows.iter().map(|row| row.grantor.as_str()))
        .names("grantee", rows.iter().map(|row| row.grantee.as_str()))
        .text("table_catalog", CATALOG, rows.len())
        .names("table_schema", rows.iter().map(|row| schema_of(&row.table)))
        .names("table_name", rows.iter().map(|row| base(&row.table)))
        .names("privilege_type", rows.iter().map(|row| row.privilege))
        .names("is_grantable", rows.iter().map(|row| yes(row.grantable)))
        .names(
            "with_hierarchy",
            rows.iter().map(|row| yes(row.privilege == "SELECT")),
        )
}

fn table_grants(all: &Tables, rights: &Rights, of_roles: bool) -> Vec<TableGrant> {
    let mut rows = Vec::new();
    for name in permanent(all.names())
        .into_iter()
        .chain(permanent(all.views()))
    {
        let owner = owner(all, name);
        let mut grants = vec![(
            owner,
            Grant {
                held: Privileges::OF_TABLE,
                grantable: Privileges::OF_TABLE,
            },
        )];
        let said = all.acl(name).into_iter().flat_map(|acl| &acl.grants);
        grants.extend(said.map(|(role, grant)| (role.as_str(), *grant)));
        for (role, grant) in grants {
            let own = rights.includes(Some(role)) || rights.includes(Some(owner));
            if !(own || role == PUBLIC && !of_roles) {
                continue;
            }
            let held = Privileges::ALL
                .iter()
                .filter(|(one, ..)| grant.held.has(*one));
            rows.extend(held.map(|(one, word, _)| TableGrant {
                grantor: owner.to_owned(),
                grantee: if role == PUBLIC { "PUBLIC" } else { role }.to_owned(),
                table: name.to_owned(),
                privilege: word,
                grantable: grant.grantable.has(*one),
            }));
        }
    }
    rows
}

/// `information_schema.enabled_roles`: those whose rights the caller has.
pub(super) fn enabled(all: &Tables, rights: &Rights) -> Built {
    let shown = all_roles(all).into_iter();
    let own = shown.filter(|role| rights.includes(Some(&role.name)));
    Built::default().names("role_name", own.map(|role| role.name))
}

/// `information_schema.applicable_roles`: the memberships of the roles whose rights the caller has.
pub(super) fn applicable(all: &Tables, rights: &Rights) -> Built {
    let mut rows: Vec<(&str, &str, bool)> = Vec::new();
    for (member, role) in all.roles().filter(|(name, _)| rights.includes(Some(name))) {
        let groups = role.member_of.iter();
        rows.extend(groups.map(|(group, admin)| (member, group.as_str(), *admin)));
    }
    let yes = |yes: bool| if yes { "YES" } else { "NO" };
    Built::default()
        .names("grantee", rows.iter().map(|row| row.0))
        .names("role_name", rows.iter().map(|row| row.1))
        .names("is_grantable", rows.iter().map(|row| yes(row.2)))
}
