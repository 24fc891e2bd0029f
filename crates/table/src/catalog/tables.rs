//! The tables of a snapshot.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use store::Snapshot;

use crate::catalog::body::body;
use crate::catalog::rights::{ROLES, Rights};
use crate::catalog::table::{Body, Table};
use crate::error::Result;
use crate::format::named_type::NamedType;
use crate::format::record::damaged;
use crate::format::{comments, key, named_type, sequence};
use crate::schema::{Acl, Comments, Domain, EnumType, Role, Sequence, WITHIN};

/// Gives the tables of snapshots. A table that did not change from one snapshot to the next is not
/// decoded again.
#[derive(Debug, Default)]
pub struct Catalog {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bodies: HashMap<u32, Arc<Body>>,
    /// Weak, so that an idle catalog keeps no old snapshot (and its freed pages) alive.
    latest: Weak<Tables>,
}

/// The tables of one snapshot.
#[derive(Debug)]
pub struct Tables {
    version: u64,
    tables: BTreeMap<String, Arc<Table>>,
    /// Texts of queries, as they lie in the catalog.
    views: BTreeMap<String, Arc<[u8]>>,
    sequences: BTreeMap<String, Numbers>,
    comments: BTreeMap<String, Arc<Comments>>,
    /// Tables whose rows are those of queries: whether they are there, and the text.
    materialized: BTreeMap<String, (bool, Arc<str>)>,
    schemas: BTreeSet<String>,
    /// Types that were created.
    types: BTreeMap<String, Arc<EnumType>>,
    domains: BTreeMap<String, Arc<Domain>>,
    rights: Rights,
}

/// A table whose rows are those of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Materialized<'t> {
    /// The query, as it was when the table was made.
    pub text: &'t str,
    /// Whether the rows are there.
    pub populated: bool,
}

/// A sequence, and its record as it lies in the catalog.
#[derive(Clone, Debug)]
struct Numbers {
    record: Arc<[u8]>,
    sequence: Arc<Sequence>,
}

impl Catalog {
    /// A catalog that has decoded nothing yet.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// A catalog that has decoded what this one has, for the snapshots of a transaction under way: what it reads does
    /// not show here.
    pub fn fork(&self) -> Catalog {
        Catalog {
            kept: Mutex::new(Kept {
                bodies: self.kept.lock().bodies.clone(),
                latest: Weak::new(),
            }),
        }
    }

    /// The tables of `snapshot`. Those of transactions under way are better read with a [fork](Catalog::fork), or
    /// what others have decoded is let go for them.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) if a record does not decode.
    pub fn tables(&self, snapshot: &Snapshot) -> Result<Arc<Tables>> {
        let mut kept = self.kept.lock();
        if let Some(tables) = kept
            .latest
            .upgrade()
            .filter(|t| t.version == snapshot.version() && !snapshot.is_open())
        {
            return Ok(tables);
        }
        let mut tables = BTreeMap::new();
        let mut bodies = HashMap::new();
        for (entry, value) in snapshot.prefix(key::DIRECTORY, key::TABLE) {
            let (name, space) = key::directory_entry(&entry, &value)?;
            let body = body(snapshot, &name, space, kept.bodies.get(&space))?;
            bodies.insert(space, body.clone());
            tables.insert(
                name,
                Arc::new(Table {
                    body,
                    snapshot: snapshot.clone(),
                    chosen: None,
                }),
            );
        }
        let (types, domains) = types(snapshot)?;
        let tables = Arc::new(Tables {
            version: snapshot.version(),
            tables,
            views: views(snapshot)?,
            sequences: sequences(snapshot)?,
            comments: comments(snapshot)?,
            materialized: materialized(snapshot)?,
            schemas: schemas(snapshot)?,
            types,
            domains,
            rights: Rights::of(snapshot)?,
        });
        let latest = if snapshot.is_open() {
            Weak::new()
        } else {
            Arc::downgrade(&tables)
        };
        *kept = Kept { bodies, latest };
        Ok(tables)
    }

    /// The table called `name` of a snapshot that is not of a transaction under way, without looking at any other. None if
    /// there is no such table, and for one whose rows are those of a query.
    ///
    /// # Errors
    /// As [`tables`](Catalog::tables).
    pub fn table(&self, snapshot: &Snapshot, name: &str) -> Result<Option<Arc<Table>>> {
        let entry = key::table(name);
        let Some(value) = snapshot.get(key::DIRECTORY, &entry) else {
            return Ok(None);
        };
        let query = snapshot.get(key::DIRECTORY, &key::materialized(name));
        if query.is_some() {
            return Ok(None);
        }
        let (name, space) = key::directory_entry(&entry, &value)?;
        let mut kept = self.kept.lock();
        let body = body(snapshot, &name, space, kept.bodies.get(&space))?;
        if !snapshot.is_open() {
            kept.bodies.insert(space, Arc::clone(&body));
        }
        Ok(Some(Arc::new(Table {
            body,
            snapshot: snapshot.clone(),
            chosen: None,
        })))
    }
}

/// The views of a snapshot.
fn views(snapshot: &Snapshot) -> Result<BTreeMap<String, Arc<[u8]>>> {
    let view = |(entry, text): (Arc<[u8]>, Arc<[u8]>)| {
        let name = std::str::from_utf8(&entry[key::VIEW.len()..]);
        match (name, std::str::from_utf8(&text)) {
            (Ok(name), Ok(_)) => Ok((name.to_owned(), text.clone())),
            _ => Err(damaged(
                &String::from_utf8_lossy(&entry),
                "the text of a view",
            )),
        }
    };
    let entries = snapshot.prefix(key::DIRECTORY, key::VIEW);
    entries.map(view).collect()
}

/// The sequences of a snapshot.
fn sequences(snapshot: &Snapshot) -> Result<BTreeMap<String, Numbers>> {
    let own = |(entry, record): (Arc<[u8]>, Arc<[u8]>)| {
        let name = String::from_utf8_lossy(&entry[key::SEQUENCE.len()..]).into_owned();
        let sequence = Arc::new(sequence::read(&record, &name)?);
        Ok((name, Numbers { record, sequence }))
    };
    let entries = snapshot.prefix(key::DIRECTORY, key::SEQUENCE);
    entries.map(own).collect()
}

/// The comments of a snapshot.
fn comments(snapshot: &Snapshot) -> Result<BTreeMap<String, Arc<Comments>>> {
    let own = |(entry, record): (Arc<[u8]>, Arc<[u8]>)| {
        let name = String::from_utf8_lossy(&entry[key::COMMENTS.len()..]).into_owned();
        let comments = comments::read(&record, &name)?;
        Ok((name, Arc::new(comments)))
    };
    let entries = snapshot.prefix(key::DIRECTORY, key::COMMENTS);
    entries.map(own).collect()
}

/// The tables of a snapshot whose rows are those of queries.
fn materialized(snapshot: &Snapshot) -> Result<BTreeMap<String, (bool, Arc<str>)>> {
    let own = |(entry, record): (Arc<[u8]>, Arc<[u8]>)| {
        let name = String::from_utf8_lossy(&entry[key::MATERIALIZED.len()..]).into_owned();
        let text = match &record[..] {
            [1, populated @ (0 | 1), text @ ..] => {
                let text = std::str::from_utf8(text).ok();
                text.map(|text| (*populated == 1, Arc::from(text)))
            }
            _ => None,
        };
        let text = text.ok_or_else(|| damaged(&name, "the text of its query"))?;
        Ok((name, text))
    };
    let entries = snapshot.prefix(key::DIRECTORY, key::MATERIALIZED);
    entries.map(own).collect()
}

/// The types of a snapshot.
fn types(snapshot: &Snapshot) -> Result<Types> {
    let mut types = Types::default();
    for (entry, record) in snapshot.prefix(key::DIRECTORY, key::TYPE) {
        let name = String::from_utf8_lossy(&entry[key::TYPE.len()..]).into_owned();
        match named_type::read(&record, &name)? {
            NamedType::Enum(own) => _ = types.0.insert(name, Arc::new(own)),
            NamedType::Domain(own) => _ = types.1.insert(name, Arc::new(own)),
        }
    }
    Ok(types)
}

/// Enums and domains, by name.
type Types = (
    BTreeMap<String, Arc<EnumType>>,
    BTreeMap<String, Arc<Domain>>,
);

/// Whether a snapshot has any schema.
pub fn has_schemas(snapshot: &Snapshot) -> bool {
    has_any(snapshot, key::SCHEMA)
}

/// Whether a snapshot has any view.
pub fn has_views(snapshot: &Snapshot) -> bool {
    has_any(snapshot, key::VIEW)
}

/// Whether a snapshot has any role.
pub fn has_roles(snapshot: &Snapshot) -> bool {
    has_any(snapshot, key::ROLE)
}

fn has_any(snapshot: &Snapshot, prefix: &[u8]) -> bool {
    snapshot.prefix(key::DIRECTORY, prefix).next().is_some()
}

/// The schemas of a snapshot.
fn schemas(snapshot: &Snapshot) -> Result<BTreeSet<String>> {
    let own = |(entry, record): (Arc<[u8]>, Arc<[u8]>)| {
        let name = std::str::from_utf8(&entry[key::SCHEMA.len()..]);
        match (name, &record[..]) {
            (Ok(name), [1]) => Ok(name.to_owned()),
            _ => Err(damaged(
                &String::from_utf8_lossy(&entry),
                "the record of a schema",
            )),
        }
    };
    let entries = snapshot.prefix(key::DIRECTORY, key::SCHEMA);
    entries.map(own).collect()
}

impl Tables {
    /// The names of the schemas that were created, in alphabetical order.
    pub fn schemas(&self) -> Vec<&str> {
        self.schemas.iter().map(String::as_str).collect()
    }

    /// Whether a schema of this name was created.
    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas.contains(name)
    }

    /// The names of the tables, in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        self.tables.keys().map(String::as_str).collect()
    }

    /// The table called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// The text of the view called `name`.
    pub fn view(&self, name: &str) -> Option<&str> {
        let text = self.views.get(name)?;
        std::str::from_utf8(text).ok()
    }

    /// The names of the views, in alphabetical order.
    pub fn views(&self) -> Vec<&str> {
        self.views.keys().map(String::as_str).collect()
    }

    /// The sequence called `name`.
    pub fn sequence(&self, name: &str) -> Option<&Arc<Sequence>> {
        self.sequences.get(name).map(|own| &own.sequence)
    }

    /// The names of the sequences, in alphabetical order.
    pub fn sequences(&self) -> Vec<&str> {
        self.sequences.keys().map(String::as_str).collect()
    }

    /// The enum called `name`.
    pub fn named_type(&self, name: &str) -> Option<&Arc<EnumType>> {
        self.types.get(name)
    }

    /// The domain called `name`.
    pub fn domain(&self, name: &str) -> Option<&Arc<Domain>> {
        self.domains.get(name)
    }

    /// The domain called `name` and those that it was made from, the first of them first.
    pub fn lineage(&self, name: &str) -> Vec<&Arc<Domain>> {
        let mut found: Vec<&Arc<Domain>> = Vec::new();
        let mut next = self.domains.get(name);
        while let Some(own) = next.filter(|own| !found.iter().any(|known| known.name == own.name)) {
            found.push(own);
            next = own
                .parent
                .as_ref()
                .and_then(|parent| self.domains.get(parent));
        }
        found.reverse();
        found
    }

    /// The names of the domains, in alphabetical order.
    pub fn domains(&self) -> Vec<&str> {
        self.domains.keys().map(String::as_str).collect()
    }

    /// Whether an enum or a domain is called `name`.
    pub fn has_type(&self, name: &str) -> bool {
        self.types.contains_key(name) || self.domains.contains_key(name)
    }

    /// The names of the enums, in alphabetical order.
    pub fn types(&self) -> Vec<&str> {
        self.types.keys().map(String::as_str).collect()
    }

    /// The query of the table called `name`, if its rows are those of one.
    pub fn materialized(&self, name: &str) -> Option<Materialized<'_>> {
        let (populated, text) = self.materialized.get(name)?;
        Some(Materialized {
            text,
            populated: *populated,
        })
    }

    /// What is said about the table, view or sequence called `name`, if anything is.
    pub fn comments(&self, name: &str) -> Option<&Comments> {
        self.comments.get(name).map(Arc::as_ref)
    }

    /// The roles that were created, in the alphabetical order of their names.
    pub fn roles(&self) -> impl Iterator<Item = (&str, &Role)> {
        let roles = self.rights.roles.iter();
        roles.map(|(name, role)| (name.as_str(), role.as_ref()))
    }

    /// Whether any role was created: if none was, everybody may do everything.
    pub fn has_roles(&self) -> bool {
        !self.rights.roles.is_empty()
    }

    /// The role of this name.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.rights.roles.get(name).map(Arc::as_ref)
    }

    /// Whom the table, view, sequence, array or schema of this name belongs to, if anything is said of that. A schema has
    /// the name that [`within`](crate::within) makes of it and nothing.
    pub fn acl(&self, name: &str) -> Option<&Acl> {
        self.rights.acls.get(name).map(Arc::as_ref)
    }

    /// All that anything is said of, and what that is.
    pub fn acls(&self) -> impl Iterator<Item = (&str, &Acl)> {
        let acls = self.rights.acls.iter();
        acls.map(|(name, acl)| (name.as_str(), acl.as_ref()))
    }

    /// Whether the table, view, sequence or type called `name` is another in `other`, which is of the same store: there is one in only
    /// one of them, or it was changed, or dropped and made again. A name that [ends with its schema](crate::within) means
    /// that: whether it is in only one of them, or another thing is said about it. [`ROLES`] means all roles.
    pub fn differs(&self, other: &Tables, name: &str) -> bool {
        if self.rights.differ(&other.rights, name) {
            return true;
        }
        if name == ROLES {
            return false;
        }
        if let Some(schema) = name.strip_suffix(WITHIN) {
            return self.has_schema(schema) != other.has_schema(schema)
                || self.comments.get(name) != other.comments.get(name);
        }
        let same_view = match (self.views.get(name), other.views.get(name)) {
            (None, None) => true,
            (Some(here), Some(there)) => Arc::ptr_eq(here, there),
            _ => false,
        };
        let same_sequence = match (self.sequences.get(name), other.sequences.get(name)) {
            (None, None) => true,
            (Some(here), Some(there)) => Arc::ptr_eq(&here.record, &there.record),
            _ => false,
        };
        let same_comments = self.comments.get(name) == other.comments.get(name);
        let same_query = self.materialized.get(name) == other.materialized.get(name);
        !same_view
            || self.types.get(name) != other.types.get(name)
            || self.domains.get(name) != other.domains.get(name)
            || !same_sequence
            || !same_comments
            || !same_query
            || self.differs_as_table(other, name)
    }

    fn differs_as_table(&self, other: &Tables, name: &str) -> bool {
        match (self.get(name), other.get(name)) {
            (None, None) => false,
            (Some(here), Some(there)) => !here.is_unchanged_in(there),
            _ => true,
        }
    }

    /// These tables with what a transaction has changed, which began at `base` and has come to `own`: its own tables
    /// where the two differ, and ours where they do not, although `base` may be later than we are.
    pub fn overlaid(&self, base: &Tables, own: &Tables) -> Tables {
        let (mut tables, mut views) = (self.tables.clone(), self.views.clone());
        let mut sequences = self.sequences.clone();
        let mut types = self.types.clone();
        let mut domains = self.domains.clone();
        let mut comments = self.comments.clone();
        let mut materialized = self.materialized.clone();
        let names = [base, own].into_iter();
        let names = names.flat_map(|all| {
            let others = all.views.keys().chain(all.sequences.keys());
            let types = all.types.keys().chain(all.domains.keys());
            all.tables.keys().chain(others).chain(types)
        });
        for name in names.filter(|name| base.differs(own, name)) {
            match own.get(name) {
                Some(table) => tables.insert(name.clone(), table.clone()),
                None => tables.remove(name),
            };
            match own.views.get(name) {
                Some(text) => views.insert(name.clone(), text.clone()),
                None => views.remove(name),
            };
            match own.sequences.get(name) {
                Some(numbers) => sequences.insert(name.clone(), numbers.clone()),
                None => sequences.remove(name),
            };
            match own.types.get(name) {
                Some(kind) => types.insert(name.clone(), kind.clone()),
                None => types.remove(name),
            };
            match own.domains.get(name) {
                Some(kind) => domains.insert(name.clone(), kind.clone()),
                None => domains.remove(name),
            };
            match own.comments.get(name) {
                Some(said) => comments.insert(name.clone(), said.clone()),
                None => comments.remove(name),
            };
            match own.materialized.get(name) {
                Some(query) => materialized.insert(name.clone(), query.clone()),
                None => materialized.remove(name),
            };
        }
        // What is said about schemas, whose names end so.
        let about = base.comments.keys().chain(own.comments.keys());
        for name in about.filter(|name| name.ends_with(WITHIN)) {
            match own.comments.get(name) {
                said if said == base.comments.get(name) => {}
                Some(said) => _ = comments.insert(name.clone(), said.clone()),
                None => _ = comments.remove(name),
            }
        }
        let mut schemas = self.schemas.clone();
        schemas.extend(own.schemas.difference(&base.schemas).cloned());
        schemas.retain(|name| own.schemas.contains(name) || !base.schemas.contains(name));
        Tables {
            version: self.version,
            tables,
            views,
            sequences,
            comments,
            materialized,
            schemas,
            types,
            domains,
            rights: self.rights.overlaid(&base.rights, &own.rights),
        }
    }

    /// The version of their snapshot.
    pub fn version(&self) -> u64 {
        self.version
    }
}
