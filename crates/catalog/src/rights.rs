//! Who may do what: the rights of a role over the tables, views, sequences, arrays and schemas of a statement.
//!
//! A store without roles lets everybody do everything, and so it is for who runs the program. Things are named as the
//! catalog names them: a schema by what [`of_schema`] makes of it, the database by [`DATABASE`].

use std::collections::BTreeSet;
use std::sync::Arc;

use messages::error::WITHIN;
use messages::{Error, Result};
use syntax::names::{
    CATALOG, INFORMATION_SCHEMA, PG_CATALOG, SCHEMA, base, of_schema, schema_of, session_of,
};
use table::{Acl, Privileges, Role, Tables};

use crate::settings::SessionOwner;

pub use syntax::roles::PUBLIC;

/// What stands for the database where names of things stand.
pub const DATABASE: &str = "\u{1}";

/// Roles that there always are: what their members may do.
pub(crate) const READ_ALL_DATA: &str = "pg_read_all_data";
pub(crate) const WRITE_ALL_DATA: &str = "pg_write_all_data";
pub(crate) const READ_FILES: &str = "pg_read_server_files";
pub(crate) const WRITE_FILES: &str = "pg_write_server_files";
/// The role whose members see what all sessions do.
pub const MONITOR: &str = "pg_monitor";
pub(crate) const SIGNAL_BACKEND: &str = "pg_signal_backend";

/// The roles that there always are.
pub const GIVEN: [&str; 6] = [
    MONITOR,
    READ_ALL_DATA,
    READ_FILES,
    SIGNAL_BACKEND,
    WRITE_ALL_DATA,
    WRITE_FILES,
];

/// The rights of whom a statement is of.
#[derive(Clone, Debug, Default)]
pub struct Rights(Option<Arc<Held>>);

/// Of somebody who may not do everything.
#[derive(Debug)]
struct Held {
    /// The roles whose rights it has, its own among them.
    with: BTreeSet<String>,
}

/// The error for what one may not do.
pub fn denied(message: impl Into<String>) -> Error {
    Error::Denied {
        message: message.into(),
    }
}

/// The error for a role that there is not.
pub fn no_role(name: &str) -> Error {
    Error::coded("42704", format!("role \"{name}\" does not exist"))
}

/// Whether there is a role of this name.
pub fn is_role(tables: &Tables, name: &str) -> bool {
    tables.role(name).is_some() || GIVEN.contains(&name)
}

/// The roles whose rights `role` has, its own among them: with `inherited`, those alone that it need not ask for.
pub fn reached(tables: &Tables, role: &str, inherited: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::from([role.to_owned()]);
    let mut left = vec![role.to_owned()];
    while let Some(next) = left.pop() {
        let Some(own) = tables.role(&next) else {
            continue;
        };
        if inherited && !own.inherit {
            continue;
        }
        let more = own.member_of.keys();
        let more: Vec<String> = more
            .filter(|other| !found.contains(*other))
            .cloned()
            .collect();
        found.extend(more.iter().cloned());
        left.extend(more);
    }
    found
}

/// The role that something belongs to: that of its table, if it is the sequence of a column. None: who runs the program.
pub fn owner<'t>(tables: &'t Tables, name: &str) -> Option<&'t str> {
    if let Some(acl) = tables.acl(name).filter(|acl| acl.owner.is_some()) {
        return acl.owner.as_deref();
    }
    tables.sequence(name)?;
    let mut names = tables.names().into_iter();
    let table = names.find(|table| {
        let definition = tables.get(table).map(|table| table.definition());
        let mut columns = definition.into_iter().flat_map(|own| &own.columns);
        columns.any(|column| column.sequences.iter().any(|own| own == name))
    })?;
    tables.acl(table)?.owner.as_deref()
}

/// What is said of a thing, or what is so if nothing is.
pub fn acl(tables: &Tables, name: &str) -> Acl {
    let mut acl = match tables.acl(name) {
        Some(acl) => acl.clone(),
        None => first(name),
    };
    acl.owner = owner(tables, name).map(str::to_owned);
    acl
}

/// What is so of a thing of which nothing has been said: everybody may use `public`.
pub fn first(name: &str) -> Acl {
    let mut acl = Acl::default();
    if name == of_schema(SCHEMA) {
        acl.grant(PUBLIC, Privileges::USAGE, false);
    }
    acl
}

/// What a thing is called in messages, with its kind.
pub fn titled(tables: &Tables, name: &str) -> String {
    if name == DATABASE {
        return format!("database {CATALOG}");
    }
    let kind = if name.ends_with(WITHIN) {
        return format!("schema {}", schema_of(name));
    } else if tables.materialized(name).is_some() {
        "materialized view"
    } else if tables.get(name).is_some() {
        "table"
    } else if tables.view(name).is_some() {
        "view"
    } else if tables.sequence(name).is_some() {
        "sequence"
    } else if tables.has_type(name) {
        "type"
    } else {
        "array"
    };
    format!("{kind} {}", base(name))
}

impl Rights {
    /// The rights to everything.
    pub fn all() -> Rights {
        Rights(None)
    }

    /// The rights of the role of this name; none: of who runs the program.
    ///
    /// # Errors
    /// If there are roles, and none of that name.
    pub fn of(tables: &Tables, role: Option<&str>) -> Result<Rights> {
        let Some(name) = role.filter(|_| tables.has_roles()) else {
            return Ok(Rights::all());
        };
        match tables.role(name) {
            Some(Role {
                superuser: true, ..
            }) => Ok(Rights::all()),
            Some(_) => Ok(Rights(Some(Arc::new(Held {
                with: reached(tables, name, true),
            })))),
            None => Err(denied(format!(
                "role \"{name}\" does not exist: a superuser creates it with `create role`"
            ))),
        }
    }

    /// The rights by which something that belongs to another is run: those of its owner.
    ///
    /// # Errors
    /// As [`of`](Rights::of).
    pub fn of_owner(tables: &Tables, name: &str) -> Result<Rights> {
        Rights::of(tables, owner(tables, name))
    }

    /// The rights of a role that is none of those that were created: of all roles together, or of one that there always is.
    pub fn of_nobody(name: &str) -> Rights {
        Rights(Some(Arc::new(Held {
            with: BTreeSet::from([name.to_owned()]),
        })))
    }

    /// Whether they are those of a superuser.
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Whether they are those of a member of one of the roles that there always are.
    pub fn is_member(&self, given: &str) -> bool {
        self.0.as_ref().is_none_or(|held| held.with.contains(given))
    }

    /// Whether they are, among others, those of a role.
    pub fn includes(&self, role: Option<&str>) -> bool {
        match (&self.0, role) {
            (None, _) => true,
            (Some(held), Some(role)) => held.with.contains(role),
            (Some(_), None) => false,
        }
    }

    /// Whether something belongs to whom they are of.
    pub fn owns(&self, tables: &Tables, name: &str) -> bool {
        self.is_all() || self.includes(owner(tables, name))
    }

    /// Which of `wanted` they lack for something.
    fn lacking(&self, tables: &Tables, name: &str, wanted: Privileges) -> Privileges {
        let Some(held) = &self.0 else {
            return Privileges::default();
        };
        if self.owns(tables, name) {
            return Privileges::default();
        }
        let acl = match tables.acl(name) {
            Some(acl) => acl.clone(),
            None => first(name),
        };
        let mut lacking = wanted.without(acl.of(PUBLIC).held);
        for role in &held.with {
            lacking = lacking.without(acl.of(role).held);
        }
        let schema = name.ends_with(WITHIN);
        for (given, own) in [
            (READ_ALL_DATA, Privileges::SELECT),
            (
                WRITE_ALL_DATA,
                Privileges::INSERT
                    .and(Privileges::UPDATE)
                    .and(Privileges::DELETE),
            ),
        ] {
            if held.with.contains(given) {
                lacking = lacking.without(if schema { Privileges::USAGE } else { own });
            }
        }
        lacking
    }

    /// Whether they include all of `wanted` for something.
    pub fn has(&self, tables: &Tables, name: &str, wanted: Privileges) -> bool {
        self.lacking(tables, name, wanted).is_empty()
    }

    /// Whether they include anything for a table, a view or a sequence: then one may know of it.
    pub fn sees(&self, tables: &Tables, name: &str) -> bool {
        let mut all = Privileges::ALL.into_iter();
        all.any(|(one, _, _)| self.has(tables, name, one))
    }

    /// That they include all of `wanted` for something, and the use of its schema.
    ///
    /// # Errors
    /// [`Error::Denied`].
    pub fn check(&self, tables: &Tables, name: &str, wanted: Privileges) -> Result<()> {
        if self.is_all() {
            return Ok(());
        }
        self.check_schema(tables, name)?;
        if self.has(tables, name, wanted) {
            return Ok(());
        }
        Err(denied(format!(
            "permission denied for {}",
            titled(tables, name)
        )))
    }

    /// That what is in the schema of `name` may be used.
    fn check_schema(&self, tables: &Tables, name: &str) -> Result<()> {
        let schema = schema_of(name);
        let given = matches!(schema, PG_CATALOG | INFORMATION_SCHEMA);
        if name.ends_with(WITHIN) || given || session_of(name).is_some() {
            return Ok(());
        }
        self.check(tables, &of_schema(schema), Privileges::USAGE)
    }

    /// That something belongs to whom they are of.
    ///
    /// # Errors
    /// [`Error::Denied`].
    pub fn check_owner(&self, tables: &Tables, name: &str) -> Result<()> {
        if self.owns(tables, name) {
            return Ok(());
        }
        self.check_schema(tables, name)?;
        Err(denied(format!("must be owner of {}", titled(tables, name))))
    }

    /// That something called `name` may be made.
    ///
    /// # Errors
    /// [`Error::Denied`].
    pub fn check_creates(&self, tables: &Tables, name: &str) -> Result<()> {
        if self.is_all() || session_of(name).is_some() {
            return Ok(());
        }
        if name.ends_with(WITHIN) {
            return self.check(tables, DATABASE, Privileges::CREATE);
        }
        let schema = of_schema(schema_of(name));
        self.check(tables, &schema, Privileges::CREATE)
    }

    /// That rows of everything may be read, also of what nobody can be granted rights on.
    ///
    /// # Errors
    /// [`Error::Denied`]; `what` is called so.
    pub fn check_all_data(&self, what: &str) -> Result<()> {
        if self.is_member(READ_ALL_DATA) {
            return Ok(());
        }
        Err(denied(format!("permission denied for {what}")))
    }

    /// That a session of `owner` may be ended, or only its statement.
    ///
    /// # Errors
    /// [`Error::Denied`].
    pub fn check_stops(&self, tables: &Tables, owner: &SessionOwner, ends: bool) -> Result<()> {
        if self.is_all() {
            return Ok(());
        }
        // A role that was dropped, whose name another has now, is nobody's.
        let role = tables.role(&owner.user);
        let role = role.filter(|own| owner.role.is_none_or(|number| number == own.number));
        if role.is_some_and(|own| own.superuser) {
            return Err(denied(if ends {
                "must be a superuser to terminate superuser process"
            } else {
                "must be a superuser to cancel superuser query"
            }));
        }
        if role.is_some() && self.includes(Some(&owner.user)) || self.is_member(SIGNAL_BACKEND) {
            return Ok(());
        }
        let what = if ends {
            "process is being terminated"
        } else {
            "query is being canceled"
        };
        Err(denied(format!(
            "must be a member of the role whose {what} or member of {SIGNAL_BACKEND}"
        )))
    }

    /// That files of this machine may be read, or written.
    ///
    /// # Errors
    /// [`Error::Denied`]; `file` is called so.
    pub fn check_files(&self, file: &str, writes: bool) -> Result<()> {
        let (role, verb) = if writes {
            (WRITE_FILES, "write")
        } else {
            (READ_FILES, "read")
        };
        if self.is_member(role) {
            return Ok(());
        }
        Err(denied(format!(
            "permission denied to {verb} {file}: Only superusers and members of {role} {verb} files of the server."
        )))
    }
}
