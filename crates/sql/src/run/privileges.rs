//! Who may do what, as functions ask it.

use std::sync::Arc;

use catalog::rights::{self, DATABASE, GIVEN, PUBLIC, Rights, no_role};
use catalog::search_path::{SearchPath, no_schema};
use syntax::names::{CATALOG, INFORMATION_SCHEMA, PG_CATALOG, SCHEMA, of_schema};
use table::{Privileges, Tables};

use crate::error::{Error, Result};
use crate::functions::privileges::{Named, Privileged, Thing};
use crate::functions::sequences::relation;
use crate::messages::nearest::unknown_table;
use crate::messages::numbers::{role_number, schema_number, table_number};
use crate::run::arrays::Arrays;

/// What a statement sees, and by whose rights.
#[derive(Debug)]
pub(super) struct Known {
    pub tables: Arc<Tables>,
    pub arrays: Arrays,
    pub path: SearchPath,
    pub rights: Rights,
    /// The role of the statement; none: who runs the program.
    pub role: Option<Arc<str>>,
}

impl Known {
    /// The rights of a role, and its name; none where it is who runs the program.
    fn of(&self, role: Option<Named<'_>>) -> Result<(Rights, Option<String>)> {
        let name = match role {
            None => {
                return Ok((
                    self.rights.clone(),
                    self.role.as_ref().map(|own| own.to_string()),
                ));
            }
            Some(Named::Text("public")) => PUBLIC.to_owned(),
            Some(Named::Text(name)) => name.to_owned(),
            Some(Named::Number(number)) => match self.role(number) {
                Some(name) => name,
                None => return Err(no_role(&number.to_string())),
            },
        };
        if name == CATALOG && self.tables.role(&name).is_none() {
            return Ok((Rights::all(), None));
        }
        let rights = match self.tables.role(&name) {
            Some(_) => Rights::of(&self.tables, Some(&name))?,
            None if !self.tables.has_roles() => Rights::all(),
            None if name == PUBLIC || GIVEN.contains(&name.as_str()) => Rights::of_nobody(&name),
            None => return Err(no_role(&name)),
        };
        Ok((rights, Some(name)))
    }

    /// The name in the catalog of what is named, of a schema as [`of_schema`] has it.
    fn thing(&self, kind: Thing, named: Named<'_>) -> Result<Option<String>> {
        let tables = &self.tables;
        match (kind, named) {
            (Thing::Database, Named::Text(CATALOG)) | (Thing::Database, Named::Number(_)) => {
                Ok(Some(DATABASE.to_owned()))
            }
            (Thing::Database, Named::Text(name)) => Err(Error::coded(
                "3D000",
                format!("database \"{name}\" does not exist"),
            )),
            (Thing::Schema, Named::Text(name)) => {
                let given = [SCHEMA, PG_CATALOG, INFORMATION_SCHEMA].contains(&name);
                if given || tables.has_schema(name) {
                    Ok(Some(of_schema(name)))
                } else {
                    Err(no_schema(name))
                }
            }
            (Thing::Schema, Named::Number(number)) => {
                let given = [SCHEMA, PG_CATALOG, INFORMATION_SCHEMA].into_iter();
                let mut all = given.chain(tables.schemas());
                let found = all.find(|name| schema_number(name) == number);
                Ok(found.map(of_schema))
            }
            (_, Named::Number(number)) => {
                let all = [tables.names(), tables.views(), tables.sequences()];
                let mut all = all.into_iter().flatten();
                let found = all.find(|name| table_number(name) == number);
                Ok(found.map(str::to_owned))
            }
            (_, Named::Text(text)) => {
                let name = self.path.resolve(tables, &relation(text)?);
                let there = tables.get(&name).is_some()
                    || tables.view(&name).is_some()
                    || tables.sequence(&name).is_some()
                    || self.arrays.find(&name)?.is_some();
                if there {
                    Ok(Some(name))
                } else {
                    Err(unknown_table(&name, tables))
                }
            }
        }
    }
}

/// A privilege of a list, and whether it is about granting it further.
fn privilege(text: &str) -> (String, bool) {
    let upper = text.trim().to_uppercase();
    let words: Vec<&str> = upper.split_whitespace().collect();
    match words.as_slice() {
        [name, "WITH", "GRANT" | "ADMIN", "OPTION"] => ((*name).to_owned(), true),
        _ => (words.join(" "), false),
    }
}

fn unrecognized(text: &str) -> Error {
    Error::coded("22023", format!("unrecognized privilege type: \"{text}\""))
}

impl Privileged for Known {
    fn has(
        &self,
        kind: Thing,
        role: Option<Named<'_>>,
        thing: Named<'_>,
        privileges: &str,
    ) -> Result<Option<bool>> {
        let (rights, name) = self.of(role)?;
        if kind == Thing::Role {
            return self.is_member((rights, name), thing, privileges).map(Some);
        }
        let Some(thing) = self.thing(kind, thing)? else {
            return Ok(None);
        };
        let mut any = false;
        for text in privileges.split(',') {
            let (word, option) = privilege(text);
            let given = kind == Thing::Database
                && matches!(word.as_str(), "CONNECT" | "TEMPORARY" | "TEMP");
            let system = kind == Thing::Schema
                && word == "USAGE"
                && [PG_CATALOG, INFORMATION_SCHEMA]
                    .iter()
                    .any(|own| of_schema(own) == thing);
            let mut known = Privileges::ALL.iter();
            any |= match known.find(|(_, own, _)| *own == word) {
                _ if given || system => true,
                // Whose table it is may do that.
                None if word == "TRIGGER" && kind == Thing::Table => {
                    rights.owns(&self.tables, &thing)
                }
                None => return Err(unrecognized(text.trim())),
                Some((wanted, ..)) if option => {
                    let acl = rights::acl(&self.tables, &thing);
                    rights.owns(&self.tables, &thing)
                        || acl.grants.iter().any(|(role, own)| {
                            own.grantable.has(*wanted) && rights.includes(Some(role))
                        })
                }
                Some((wanted, ..)) => rights.has(&self.tables, &thing, *wanted),
            };
        }
        Ok(Some(any))
    }

    fn role(&self, number: i64) -> Option<String> {
        if number == role_number(CATALOG) {
            return Some(CATALOG.to_owned());
        }
        let roles = self.tables.roles().map(|(name, _)| name);
        let mut all = roles.chain(GIVEN);
        let found = all.find(|name| role_number(name) == number);
        found.map(str::to_owned)
    }
}

impl Known {
    /// Whether a role is a member of another, or has its rights.
    fn is_member(
        &self,
        (rights, role): (Rights, Option<String>),
        of: Named<'_>,
        privileges: &str,
    ) -> Result<bool> {
        let of = match of {
            Named::Text(name) => name.to_owned(),
            Named::Number(number) => match self.role(number) {
                Some(name) => name,
                None => return Err(no_role(&number.to_string())),
            },
        };
        if of != CATALOG && !rights::is_role(&self.tables, &of) && self.tables.has_roles() {
            return Err(no_role(&of));
        }
        let mut any = false;
        for text in privileges.split(',') {
            let (word, _) = privilege(text);
            any |= rights.is_all()
                || match (word.as_str(), &role) {
                    ("MEMBER" | "SET", Some(role)) => {
                        rights::reached(&self.tables, role, false).contains(&of)
                    }
                    ("USAGE", _) => rights.includes(Some(&of)),
                    ("MEMBER" | "SET", None) => true,
                    _ => return Err(unrecognized(text.trim())),
                };
        }
        Ok(any)
    }
}
