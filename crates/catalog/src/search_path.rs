//! `search_path`: the schemas in which a name is looked up that is written without one.
//!
//! What a text means that is kept in the catalog does not depend on it: there, a name without a schema is in `public`.

use std::sync::{Arc, OnceLock};

use messages::error::WITHIN;
use messages::{Error, Result};
use parking_lot::Mutex;
use syntax::names::{
    INFORMATION_SCHEMA, PG_CATALOG, PG_TEMP, SCHEMA, base, catalog_name, exact, quoted, schema_of,
    temporary,
};
use syntax::system::is_of_catalog;
use table::Tables;

use crate::settings::DateSettings;

/// In a path, the schema that is called as the user.
const USER: &str = "$user";

pub use syntax::names::PathSetting as Setting;

/// The path of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPath {
    /// The names of schemas, some of which may not exist.
    schemas: Arc<[String]>,
    /// The schema of the session's temporary tables, if it has made any.
    temporary: Option<String>,
}

impl SearchPath {
    /// The path of what is kept in the catalog.
    pub fn kept() -> SearchPath {
        SearchPath {
            schemas: Arc::from([SCHEMA.to_owned()]),
            temporary: None,
        }
    }

    /// The path that is set, of a user of this name. `temporary` is the schema of the session's temporary tables, if it has
    /// made any.
    pub fn new(setting: &Setting, user: &str, temporary: Option<&str>) -> SearchPath {
        let schemas = match setting {
            Some(schemas) => schemas
                .iter()
                .map(|name| if name == USER { user } else { name.as_str() })
                .map(str::to_owned)
                .collect(),
            None => Arc::from([user.to_owned(), SCHEMA.to_owned()]),
        };
        SearchPath {
            schemas,
            temporary: temporary.map(str::to_owned),
        }
    }

    /// The schema of the session's temporary tables, if it has made any.
    pub fn temporary(&self) -> Option<&str> {
        self.temporary.as_deref()
    }

    /// The schemas of the path that there are, in order, each once.
    fn existing<'p>(&'p self, tables: &'p Tables) -> impl Iterator<Item = &'p str> {
        let actual = move |name: &'p String| match name.as_str() {
            PG_TEMP => self.temporary.as_deref(),
            SCHEMA | PG_CATALOG | INFORMATION_SCHEMA => Some(name.as_str()),
            name if Some(name) == self.temporary.as_deref() => Some(name),
            name => tables.has_schema(name).then_some(name),
        };
        let before =
            move |at: usize, name: &str| self.schemas[..at].iter().any(|other| other == name);
        let schemas = self.schemas.iter().enumerate();
        schemas
            .filter(move |(at, name)| !before(*at, name))
            .filter_map(move |(_, name)| actual(name))
    }

    /// The schemas in which names are looked up, in order. That of temporary tables comes first, and then `pg_catalog`, unless
    /// the path says otherwise: nobody is shown another's table in the place of one of the system.
    fn searched<'p>(&'p self, tables: &'p Tables) -> impl Iterator<Item = &'p str> {
        let temporary = self.temporary.as_deref();
        let said = |schema: &&str| {
            self.schemas
                .iter()
                .any(|own| own == PG_TEMP || own == schema)
        };
        let first = temporary.filter(|schema| !said(schema));
        let system = (!self.has(PG_CATALOG)).then_some(PG_CATALOG);
        first.into_iter().chain(system).chain(self.existing(tables))
    }

    /// The name in the catalog of the table, view or sequence that a statement calls `name`; none if there is none.
    pub fn find(&self, tables: &Tables, name: &str) -> Option<String> {
        self.find_beside(tables, None, name)
    }

    /// The same where there is one more, which is called `new` in the catalog.
    fn find_beside(&self, tables: &Tables, new: Option<&str>, name: &str) -> Option<String> {
        let there = |name: &String| {
            new == Some(name.as_str())
                || schema_of(name) == PG_CATALOG && is_of_catalog(base(name))
                || tables.get(name).is_some()
                || tables.view(name).is_some()
                || tables.sequence(name).is_some()
        };
        let mut names = self
            .searched(tables)
            .map(|schema| catalog_name(schema, name));
        names.find(there)
    }

    /// The name in the catalog of what a statement [writes](syntax::names::written) so, whether there is such a thing or not.
    /// What is found nowhere gets a name that nothing has, unless it may be something that is no table in `public`.
    pub fn resolve(&self, tables: &Tables, written: &str) -> String {
        self.resolve_beside(tables, None, written)
    }

    /// The same where there is one more, which is called `new` in the catalog.
    pub fn resolve_beside(&self, tables: &Tables, new: Option<&str>, written: &str) -> String {
        match written.split_once(WITHIN) {
            Some((schema, name)) => self.named(schema, name),
            None => match self.find_beside(tables, new, written) {
                Some(found) => found,
                None if self.has(SCHEMA) => written.to_owned(),
                None => format!("{WITHIN}{written}"),
            },
        }
    }

    /// The name in the catalog of the type that a statement [writes](syntax::names::written) so, whether there is one or not.
    pub fn resolve_type(&self, tables: &Tables, written: &str) -> String {
        if let Some((schema, name)) = written.split_once(WITHIN) {
            return self.named(schema, name);
        }
        let mut names = self
            .searched(tables)
            .map(|schema| catalog_name(schema, written));
        match names.find(|name| tables.has_type(name)) {
            Some(found) => found,
            None => format!("{WITHIN}{written}"),
        }
    }

    /// The name in the catalog of `name` in the schema that a statement calls `schema`.
    pub fn named(&self, schema: &str, name: &str) -> String {
        match (schema, &self.temporary) {
            (PG_TEMP, Some(own)) => temporary(own, name),
            (schema, _) => catalog_name(schema, name),
        }
    }

    /// Of `names`, the first whose schema is the one that `written` names, or comes first in the path if it names none.
    pub fn first_in<'n>(
        &self,
        tables: &Tables,
        written: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Option<&'n str> {
        let mut names = names;
        if let Some(schema) = table::schema_of(written) {
            let wanted = self.named(schema, "");
            return names.find(|name| schema_of(name) == schema_of(&exact(&wanted)));
        }
        let schemas: Vec<&str> = self.searched(tables).collect();
        let place = |name: &&str| schemas.iter().position(|own| *own == schema_of(name));
        names
            .filter_map(|name| Some((place(&name)?, name)))
            .min()
            .map(|(_, name)| name)
    }

    /// Whether the path has a schema.
    pub fn has(&self, schema: &str) -> bool {
        self.schemas.iter().any(|own| own == schema)
    }

    /// The schema in which new tables are made; none if none of the path exists.
    pub fn current<'p>(&'p self, tables: &'p Tables) -> Option<&'p str> {
        self.existing(tables).next()
    }

    /// The name in the catalog of what is to be created and is [written](syntax::names::written) so.
    ///
    /// # Errors
    /// If its schema does not exist or is the system's, or if the path has none.
    pub fn creates(&self, tables: &Tables, written: &str) -> Result<String> {
        let (schema, name) = match written.split_once(WITHIN) {
            Some(parts) => parts,
            None => match self.current(tables) {
                Some(schema) => (schema, written),
                None => {
                    return Err(Error::coded(
                        "3F000",
                        "no schema has been selected to create in",
                    ));
                }
            },
        };
        if schema == PG_CATALOG || schema == INFORMATION_SCHEMA {
            return Err(Error::coded(
                "42501",
                format!(
                    "permission denied to create \"{schema}.{name}\": System catalog modifications are currently disallowed."
                ),
            ));
        }
        if schema != SCHEMA && !tables.has_schema(schema) {
            return Err(no_schema(schema));
        }
        Ok(catalog_name(schema, name))
    }

    /// What `current_schemas` returns.
    pub fn all(&self, tables: &Tables, implicit: bool) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        if implicit {
            let first = self.searched(tables).next();
            let own = first.filter(|schema| Some(*schema) == self.temporary.as_deref());
            all.extend(own.filter(|_| !self.has(PG_TEMP)).map(str::to_owned));
            if !self.has(PG_CATALOG) {
                all.push(PG_CATALOG.to_owned());
            }
        }
        all.extend(self.existing(tables).map(str::to_owned));
        all
    }

    /// What a statement has to call the table, view or sequence of this name in the catalog: its name alone where that finds
    /// it, otherwise with its schema.
    pub fn shown(&self, tables: &Tables, name: &str) -> String {
        if self.sees(tables, name) {
            quoted(base(name))
        } else {
            quoted(&exact(name))
        }
    }

    /// The same of a type.
    pub fn shown_type(&self, tables: &Tables, name: &str) -> String {
        if self.resolve_type(tables, base(name)) == name {
            quoted(base(name))
        } else {
            quoted(&exact(name))
        }
    }

    /// Whether statements see what has this name in the catalog without naming its schema.
    pub fn sees(&self, tables: &Tables, name: &str) -> bool {
        self.find(tables, base(name)).as_deref() == Some(name)
    }
}

/// The error for a schema that does not exist.
pub fn no_schema(name: &str) -> Error {
    Error::coded("3F000", format!("schema \"{name}\" does not exist"))
}

/// The text of what a path is set to.
pub fn text_of(setting: &Setting) -> String {
    match setting {
        None => "\"$user\", public".to_owned(),
        Some(schemas) => {
            let names: Vec<String> = schemas.iter().map(|name| quoted(name)).collect();
            names.join(", ")
        }
    }
}

/// The path of a session, its role, and how it reads and writes dates, which its statements change.
#[derive(Debug, Default)]
pub struct SessionPath {
    saved: Mutex<Saved>,
    /// The number of the role that its user was when it began, once that is known.
    began_as: OnceLock<u64>,
}

/// What these are of a session, and come back to.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// What it was at first.
    first: Setting,
    now: Setting,
    /// What it is until the end of the transaction.
    local: Option<Setting>,
    /// The role that the session has taken; none: that of its user.
    role: Option<Arc<str>>,
    /// The same until the end of the transaction.
    local_role: Option<Option<Arc<str>>>,
    /// The role that the session is of in the place of its user.
    authorization: Option<Arc<str>>,
    /// The same until the end of the transaction.
    local_authorization: Option<Option<Arc<str>>>,
    /// How dates and times are read and written.
    dates: Arc<DateSettings>,
    /// The same until the end of the transaction.
    local_dates: Option<Arc<DateSettings>>,
}

impl SessionPath {
    /// The role of the session's user has this number; if one was said before, it stays.
    pub fn begin_as(&self, role: u64) {
        self.began_as.get_or_init(|| role);
    }

    /// Whether the role of the session's user may be the one of this number.
    pub fn is_of(&self, role: u64) -> bool {
        self.began_as.get().is_none_or(|own| *own == role)
    }

    /// What it is set to.
    pub fn setting(&self) -> Setting {
        let own = self.saved.lock();
        own.local.clone().unwrap_or_else(|| own.now.clone())
    }

    /// What it is when it is reset.
    pub fn first(&self) -> Setting {
        self.saved.lock().first.clone()
    }

    /// Sets what it is, and comes back to when it is reset.
    pub fn begin(&self, setting: Setting) {
        *self.saved.lock() = Saved {
            first: setting.clone(),
            now: setting,
            ..Saved::default()
        };
    }

    /// One of its own that looks names up in `schema` first, with the roles that are taken or, without `roles`, none.
    pub fn within(&self, schema: &str, roles: bool) -> SessionPath {
        let mut own = self.save();
        let before = own.local.take().unwrap_or_else(|| own.now.take());
        let before: Vec<String> = match before {
            Some(names) => names.to_vec(),
            None => vec![USER.to_owned(), SCHEMA.to_owned()],
        };
        own.now = Some([schema.to_owned()].into_iter().chain(before).collect());
        if !roles {
            (own.role, own.local_role) = (None, None);
            (own.authorization, own.local_authorization) = (None, None);
        }
        SessionPath {
            saved: Mutex::new(own),
            began_as: OnceLock::new(),
        }
    }

    /// `set search_path`.
    pub fn set(&self, setting: Setting) {
        let mut own = self.saved.lock();
        own.now = setting;
        own.local = None;
    }

    /// `set local search_path`.
    pub fn set_local(&self, setting: Setting) {
        self.saved.lock().local = Some(setting);
    }

    /// The role that the session has taken.
    pub fn role(&self) -> Option<Arc<str>> {
        let own = self.saved.lock();
        own.local_role.clone().unwrap_or_else(|| own.role.clone())
    }

    /// `set role`, of which only the transaction is to know if `local`.
    pub fn set_role(&self, role: Option<Arc<str>>, local: bool) {
        let mut own = self.saved.lock();
        if local {
            own.local_role = Some(role);
        } else {
            own.role = role;
            own.local_role = None;
        }
    }

    /// The role that the session is of in the place of its user.
    pub fn authorization(&self) -> Option<Arc<str>> {
        let own = self.saved.lock();
        let local = own.local_authorization.clone();
        local.unwrap_or_else(|| own.authorization.clone())
    }

    /// `set session authorization`, of which only the transaction is to know if `local`. No other role is taken then.
    pub fn set_authorization(&self, role: Option<Arc<str>>, local: bool) {
        let mut own = self.saved.lock();
        if local {
            own.local_authorization = Some(role);
            own.local_role = Some(None);
        } else {
            own.authorization = role;
            own.local_authorization = None;
            own.role = None;
            own.local_role = None;
        }
    }

    /// How dates and times are read and written.
    pub fn dates(&self) -> Arc<DateSettings> {
        let own = self.saved.lock();
        Arc::clone(own.local_dates.as_ref().unwrap_or(&own.dates))
    }

    /// Sets how they are, for the transaction alone if `local`.
    pub fn set_dates(&self, dates: DateSettings, local: bool) {
        let mut own = self.saved.lock();
        if local {
            own.local_dates = Some(Arc::new(dates));
        } else {
            own.dates = Arc::new(dates);
            own.local_dates = None;
        }
    }

    /// What it is, to come back to.
    pub fn save(&self) -> Saved {
        self.saved.lock().clone()
    }

    /// Comes back to what it was.
    pub fn restore(&self, saved: Saved) {
        *self.saved.lock() = saved;
    }

    /// The transaction has committed.
    pub fn end_local(&self) {
        let mut own = self.saved.lock();
        own.local = None;
        own.local_role = None;
        own.local_authorization = None;
        own.local_dates = None;
    }
}
