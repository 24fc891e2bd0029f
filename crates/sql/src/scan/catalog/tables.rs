//! Tables of `pg_catalog` about what there is.

use std::borrow::Cow;
use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::error::Result;
use table::{Column, Definition, Privileges, Tables, is_enum};

use crate::frontend::lengths;
use crate::messages::numbers::{
    CATALOG_SCHEMA, DATABASE, OWNER, TYPES, composite_number, enum_number, schema_number,
    table_number, type_number,
};
use crate::names::{
    self, CATALOG, PG_CATALOG, PUBLIC, SCHEMA, base, catalog_name, constraint_of, of_schema,
    permanent, schema_of,
};
use crate::scan::catalog::build::{Built, ViewColumns};
use crate::scan::catalog::composites::{composites, definition};
use crate::scan::catalog::expressions::{default, generated, seen_view};
use crate::scan::catalog::indexes::{TableIndex, indexes};
use crate::scan::catalog::seen::Seen;
use crate::scan::catalog::types::{alignment, collation_of, storage, typed};
use crate::scan::catalog::{roles, system_attributes};
use crate::search_path::SearchPath;

/// The names of all schemas.
fn schemas(all: &Tables) -> Vec<&str> {
    let mut names = vec![PG_CATALOG, SCHEMA, names::INFORMATION_SCHEMA];
    names.extend(all.schemas());
    names
}

/// The names of the roles that things belong to.
fn all_owners<'t>(
    all: &'t Tables,
    names: impl Iterator<Item = String> + 't,
) -> impl Iterator<Item = &'t str> + 't {
    names.map(|name| roles::owner(all, &name))
}

/// `information_schema.schemata`: those in which whoever asks may find or make something.
pub(super) fn schemata(seen: &Seen<'_>) -> Built {
    let all = seen.tables;
    let mut names = schemas(all);
    let given = [PG_CATALOG, names::INFORMATION_SCHEMA];
    names.retain(|name| given.contains(name) || seen.has(&of_schema(name)));
    let rows = names.len();
    let owned = names.iter().map(|name| of_schema(name));
    let owners: Vec<&str> = all_owners(all, owned.collect::<Vec<_>>().into_iter()).collect();
    Built::default()
        .text("catalog_name", CATALOG, rows)
        .names("schema_name", names)
        .names("schema_owner", owners)
}

pub(super) fn namespaces(all: &Tables) -> Built {
    let names = schemas(all);
    Built::default()
        .numbers("oid", names.iter().map(|name| schema_number(name)))
        .names("nspname", names)
        .numbers(
            "nspowner",
            schemas(all)
                .into_iter()
                .map(|name| roles::owner_number(all, &of_schema(name))),
        )
        .lists(
            "nspacl",
            schemas(all)
                .into_iter()
                .map(|name| roles::acl(all, &of_schema(name), Privileges::OF_SCHEMA)),
        )
}

/// The number of the schema of what has this name in the catalog.
pub(super) fn schema_of_number(name: &str) -> i64 {
    schema_number(schema_of(name))
}

/// The kind of the relation of a composite type.
const COMPOSITE: &str = "c";

/// A row of `pg_class`.
struct Relation<'t> {
    /// The name in the catalog.
    name: Cow<'t, str>,
    /// What has its owner: the table of an index, others themselves.
    owned: &'t str,
    kind: &'static str,
    /// The number of the access method.
    method: i64,
    columns: usize,
    rows: i64,
    definition: Option<&'t Definition>,
    populated: bool,
}

impl<'t> Relation<'t> {
    fn new(all: &'t Tables, name: &'t str, kind: &'static str) -> Relation<'t> {
        let table = all.get(name);
        let definition = table.map(|table| table.definition());
        Relation {
            name: Cow::Borrowed(name),
            owned: name,
            kind,
            method: if matches!(kind, "r" | "m") { 2 } else { 0 },
            columns: definition.map_or(0, |own| own.columns.len()),
            rows: table.map_or(-1, |table| table.rows() as i64),
            definition,
            populated: all.materialized(name).is_none_or(|query| query.populated),
        }
    }

    fn number(&self) -> i64 {
        match self.kind {
            COMPOSITE => composite_number(&self.name),
            _ => table_number(&self.name),
        }
    }

    /// The privileges that there are for it.
    fn privileges(&self) -> Privileges {
        match self.kind {
            "S" => Privileges::OF_SEQUENCE,
            _ => Privileges::OF_TABLE,
        }
    }

    fn has(&self, what: impl Fn(&Definition) -> bool) -> bool {
        self.definition.is_some_and(what)
    }
}

/// Tables, views, sequences, indexes and composite types, in order of their names.
fn relations(all: &Tables) -> Vec<Relation<'_>> {
    let (kept, plain): (Vec<_>, Vec<_>) = permanent(all.names())
        .into_iter()
        .partition(|name| all.materialized(name).is_some());
    let kinds = [
        (plain, "r"),
        (kept, "m"),
        (permanent(all.views()), "v"),
        (permanent(all.sequences()), "S"),
    ];
    let of_kind = |(names, kind): (Vec<_>, _)| {
        let names = names.into_iter();
        names.map(move |name| Relation::new(all, name, kind))
    };
    let mut relations: Vec<_> = kinds.into_iter().flat_map(of_kind).collect();
    relations.extend(indexes(all).into_iter().map(|own| Relation {
        name: Cow::Owned(own.full_name()),
        owned: own.table,
        kind: "i",
        method: own.method_number(),
        columns: own.width(),
        rows: -1,
        definition: None,
        populated: true,
    }));
    relations.extend(composites(all).into_iter().map(|name| Relation {
        columns: definition(all, name).map_or(0, |own| own.columns.len()),
        ..Relation::new(all, name, COMPOSITE)
    }));
    relations.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
    relations
}

/// Whether a table has indexes, of keys that hold or declared.
fn is_indexed(definition: &Definition) -> bool {
    !definition.keys.is_empty() || !definition.indexes.is_empty()
}

pub(super) fn classes(all: &Tables) -> Built {
    let relations = relations(all);
    let rows = relations.len();
    let each = || relations.iter();
    // As in PostgreSQL, foreign keys are kept by triggers on both tables; psql shows them only where there are any.
    let foreign = each().filter_map(|own| own.definition);
    let foreign = foreign.flat_map(|own| &own.foreign_keys);
    let referred: BTreeSet<&str> = foreign.map(|own| own.parent.as_str()).collect();
    let built = Built::default()
        .numbers("oid", each().map(Relation::number))
        .names("relname", each().map(|own| base(&own.name)))
        .numbers(
            "relnamespace",
            each().map(|own| schema_of_number(&own.name)),
        )
        .number("reltype", 0, rows)
        .number("reloftype", 0, rows)
        .numbers(
            "relowner",
            each().map(|own| roles::owner_number(all, own.owned)),
        )
        .numbers("relam", each().map(|own| own.method))
        .number("relfilenode", 0, rows)
        .number("reltablespace", 0, rows)
        .number("relpages", 0, rows)
        .numbers("reltuples", each().map(|own| own.rows))
        .number("reltoastrelid", 0, rows)
        .names("relkind", each().map(|own| own.kind))
        .counts("relnatts", each().map(|own| own.columns as i32))
        .counts(
            "relchecks",
            each().map(|own| {
                let checks = own.definition.map(|own| own.checks.iter());
                checks.map_or(0, |all| {
                    all.filter(|own| !lengths::is_one(own)).count() as i32
                })
            }),
        )
        .text("relpersistence", "p", rows)
        .text("relreplident", "d", rows)
        .lists(
            "relacl",
            each().map(|own| match own.kind {
                COMPOSITE => None,
                _ => roles::acl(all, &own.name, own.privileges()),
            }),
        )
        .no_lists("reloptions", rows)
        .nothing("relpartbound", rows)
        .truths(
            "relhaspkey",
            each().map(|own| own.has(|own| !own.primary_key.is_empty())),
        )
        .truths("relispopulated", each().map(|own| own.populated))
        .truths(
            "relhastriggers",
            each().map(|own| {
                own.has(|own| !own.foreign_keys.is_empty()) || referred.contains(&*own.name)
            }),
        )
        // A view is a rule.
        .truths("relhasrules", each().map(|own| matches!(own.kind, "v" | "m")))
        .truths("relhasindex", each().map(|own| own.has(is_indexed)));
    [
        "relisshared",
        "relhassubclass",
        "relrowsecurity",
        "relforcerowsecurity",
        "relispartition",
    ]
    .into_iter()
    .fold(built, |built, name| built.truth(name, false, rows))
}

/// A column, its table or view, and its place from 1 on.
type Place<'t> = (&'t Definition, i64, &'t Column);

/// The columns of tables and of these views.
fn columns<'t>(all: &'t Tables, views: &'t ViewColumns) -> Vec<Place<'t>> {
    let mut names = permanent(all.names());
    names.extend(views.keys().map(String::as_str));
    names.sort_unstable();
    let of_table = |name: &str| -> Option<&'t Definition> {
        let table = || all.get(name).map(|table| table.definition());
        views.get(name).or_else(table)
    };
    let mut places = Vec::new();
    for definition in names.into_iter().filter_map(of_table) {
        let columns = definition.columns.iter().enumerate();
        places.extend(columns.map(|(at, column)| (definition, at as i64 + 1, column)));
    }
    places
}

/// The expression that makes the values of a column, or their default.
fn value(all: &Tables, table: &Definition, column: &Column) -> Option<String> {
    generated(all, table, column).or_else(|| default(all, table, column))
}

fn identities(all: &Tables, places: &[Place<'_>]) -> Built {
    let options = places.iter().map(|(_, _, column)| identity(all, column));
    Built::default().texts("attidentityoptions", options)
}

/// How a column is numbered, as JSON, in the words of SQLAlchemy.
fn identity(all: &Tables, column: &Column) -> Option<String> {
    let (sequence, always) = column.identity()?;
    let own = all.sequence(sequence)?;
    Some(format!(
        "{{\"always\": {always}, \"start\": {}, \"increment\": {}, \"minvalue\": {}, \"maxvalue\": {}, \"cache\": 1, \"cycle\": {}}}",
        own.start, own.increment, own.min, own.max, own.cycle
    ))
}

/// Bytes of a value of a column; -1 if they differ.
fn length(column: &Column) -> i32 {
    if is_enum(&column.data_type) {
        return 4;
    }
    let number = i64::from(type_number(&column.data_type));
    let known = TYPES.iter().find(|known| known.number == number);
    known.map_or(-1, |known| known.length)
}

/// The names and types of attributes.
fn attribute_types(all: &Tables, places: &[Place<'_>]) -> Built {
    identities(all, places)
        .numbers(
            "attrelid",
            places.iter().map(|(table, _, _)| table_number(&table.name)),
        )
        .names(
            "attname",
            places.iter().map(|(_, _, column)| column.name.as_str()),
        )
        .numbers(
            "atttypid",
            places
                .iter()
                .map(|(table, _, column)| typed(all, table, column).0),
        )
        .counts("attlen", places.iter().map(|(_, _, column)| length(column)))
        .numbers("attnum", places.iter().map(|(_, at, _)| *at))
        .counts(
            "attndims",
            places
                .iter()
                .map(|(_, _, column)| matches!(column.data_type, DataType::List(_)).into()),
        )
        .numbers(
            "atttypmod",
            places
                .iter()
                .map(|(table, _, column)| typed(all, table, column).1),
        )
}

/// The columns of indexes and composite types, as those of tables.
fn beside_tables(all: &Tables) -> Vec<Definition> {
    let indexes = indexes(all);
    let mut others: Vec<Definition> = indexes.iter().map(TableIndex::as_table).collect();
    let names = composites(all).into_iter();
    others.extend(names.filter_map(|name| definition(all, name)));
    others
}

pub(super) fn attributes(all: &Tables, views: &ViewColumns) -> Result<Built> {
    let others = beside_tables(all);
    let mut places = columns(all, views);
    for own in &others {
        let columns = (1..).zip(&own.columns);
        places.extend(columns.map(|(at, column)| (own, at, column)));
    }
    let rows = places.len();
    attribute_types(all, &places)
        .truths(
            "attnotnull",
            places.iter().map(|(_, _, column)| !column.nullable),
        )
        .truths(
            "atthasdef",
            places
                .iter()
                .map(|(table, _, column)| value(all, table, column).is_some()),
        )
        .texts(
            "attdefault",
            places
                .iter()
                .map(|(table, _, column)| value(all, table, column)),
        )
        .truth("attisdropped", false, rows)
        .truth("attislocal", true, rows)
        .truth("atthasmissing", false, rows)
        .names(
            "attidentity",
            places.iter().map(|(_, _, column)| match column.identity() {
                None => "",
                Some((_, true)) => "a",
                Some((_, false)) => "d",
            }),
        )
        .names(
            "attgenerated",
            places
                .iter()
                .map(|(_, _, column)| column.expression().map_or("", |_| "s")),
        )
        .names(
            "attstorage",
            places.iter().map(|(_, _, column)| {
                storage(type_number(&column.data_type).into(), length(column))
            }),
        )
        .names(
            "attalign",
            places.iter().map(|(_, _, column)| {
                alignment(type_number(&column.data_type).into(), length(column))
            }),
        )
        .text("attcompression", "", rows)
        .numbers(
            "attcollation",
            places
                .iter()
                .map(|(_, _, column)| collation_of(&column.data_type)),
        )
        .number("attinhcount", 0, rows)
        .number("attstattarget", -1, rows)
        .no_lists("attacl", rows)
        .no_lists("attoptions", rows)
        .no_lists("attfdwoptions", rows)
        .and(&system_attributes::of_tables(all))
}

pub(super) fn defaults(all: &Tables) -> Built {
    let views = ViewColumns::new();
    let places: Vec<_> = columns(all, &views)
        .into_iter()
        .filter(|(table, _, column)| value(all, table, column).is_some())
        .collect();
    Built::default()
        .numbers(
            "oid",
            places
                .iter()
                .map(|(table, at, _)| table_number(&format!("{} {at}", table.name))),
        )
        .numbers(
            "adrelid",
            places.iter().map(|(table, _, _)| table_number(&table.name)),
        )
        .numbers("adnum", places.iter().map(|(_, at, _)| *at))
        .texts(
            "adbin",
            places
                .iter()
                .map(|(table, _, column)| value(all, table, column)),
        )
}

pub(super) fn databases() -> Built {
    Built::default()
        .number("oid", DATABASE, 1)
        .names("datname", [CATALOG])
        .number("datdba", OWNER, 1)
        .number("encoding", 6, 1)
        .names("datlocprovider", ["c"])
        .truth("datistemplate", false, 1)
        .truth("datallowconn", true, 1)
        .number("datconnlimit", -1, 1)
        .names("datcollate", ["C"])
        .names("datctype", ["C.UTF-8"])
        .nothing("daticulocale", 1)
        .nothing("datlocale", 1)
        .nothing("daticurules", 1)
        .no_lists("datacl", 1)
        .number("dattablespace", 1663, 1)
}

/// `pg_matviews`.
pub(super) fn materialized(all: &Tables, path: &SearchPath) -> Built {
    let names = permanent(all.names()).into_iter();
    let kept: Vec<_> = names
        .filter_map(|name| all.materialized(name).map(|query| (name, query)))
        .collect();
    let rows = kept.len();
    Built::default()
        .names("schemaname", kept.iter().map(|(name, _)| schema_of(name)))
        .names("matviewname", kept.iter().map(|(name, _)| base(name)))
        .names(
            "matviewowner",
            kept.iter().map(|(name, _)| roles::owner(all, name)),
        )
        .nothing("tablespace", rows)
        .truth("hasindexes", false, rows)
        .truths("ispopulated", kept.iter().map(|(_, query)| query.populated))
        .names(
            "definition",
            kept.iter()
                .map(|(_, query)| seen_view(all, path, query.text)),
        )
}

pub(super) fn plain_tables(all: &Tables) -> Built {
    let mut names = permanent(all.names());
    names.retain(|name| all.materialized(name).is_none());
    names.sort_unstable();
    let rows = names.len();
    let built = Built::default()
        .names("schemaname", names.iter().map(|name| schema_of(name)))
        .names("tablename", names.iter().map(|name| base(name)))
        .names(
            "tableowner",
            names.iter().map(|name| roles::owner(all, name)),
        )
        .nothing("tablespace", rows)
        .truths(
            "hasindexes",
            names.iter().map(|name| {
                let table = all.get(name).map(|table| table.definition());
                table.is_some_and(is_indexed)
            }),
        );
    ["hasrules", "hastriggers", "rowsecurity"]
        .into_iter()
        .fold(built, |built, name| built.truth(name, false, rows))
}

pub(super) fn views(all: &Tables, path: &SearchPath) -> Built {
    let mut names = permanent(all.views());
    names.sort_unstable();
    let texts: Vec<_> = names
        .iter()
        .map(|name| Some(seen_view(all, path, all.view(name)?)))
        .collect();
    Built::default()
        .names("schemaname", names.iter().map(|name| schema_of(name)))
        .names("viewname", names.iter().map(|name| base(name)))
        .names(
            "viewowner",
            names.iter().map(|name| roles::owner(all, name)),
        )
        .texts("definition", texts)
}

/// `pg_description`.
pub(super) fn descriptions(all: &Tables, views: &ViewColumns) -> Built {
    let mut rows: Vec<(i64, i64, String)> = Vec::new();
    let mut of_constraints = Vec::new();
    for relation in relations(all) {
        let name = relation.name.as_ref();
        let is_own = !matches!(relation.kind, "i" | COMPOSITE);
        let Some(said) = all.comments(name).filter(|_| is_own) else {
            continue;
        };
        let number = table_number(name);
        rows.extend(said.own.iter().map(|text| (number, 0, text.clone())));
        let definition = relation.definition.or_else(|| views.get(name));
        let columns = definition.map(|own| &own.columns);
        for (at, column) in (1..).zip(columns.into_iter().flatten()) {
            let text = said.columns.get(&column.name);
            rows.extend(text.map(|text| (number, at, text.clone())));
        }
        let index = |key: &str| table_number(&catalog_name(schema_of(name), key));
        for (key, text) in &said.keys {
            match constraint_of(key) {
                Some(constraint) => of_constraints.push((index(constraint), 0, text.clone())),
                None => rows.push((index(key), 0, text.clone())),
            }
        }
    }
    let relations = rows.len();
    for schema in schemas(all) {
        let said = all.comments(&of_schema(schema));
        let text = said.and_then(|said| said.own.clone());
        rows.extend(text.map(|text| (schema_number(schema), 0, text)));
    }
    if all.comments(&of_schema(SCHEMA)).is_none() {
        // What PostgreSQL says of it. `pg_dump` writes what is said otherwise.
        rows.push((schema_number(SCHEMA), 0, PUBLIC.to_owned()));
    }
    let schemas = rows.len();
    for name in all.types().into_iter().chain(all.domains()) {
        let text = all.comments(name).and_then(|said| said.own.clone());
        rows.extend(text.map(|text| (enum_number(name).into(), 0, text)));
    }
    let types = rows.len();
    rows.append(&mut of_constraints);
    let catalog = |at: usize| {
        table_number(match at {
            at if at < relations => "pg_class",
            at if at < schemas => "pg_namespace",
            at if at < types => "pg_type",
            _ => "pg_constraint",
        })
    };
    Built::default()
        .numbers("objoid", rows.iter().map(|row| row.0))
        .numbers("classoid", (0..rows.len()).map(catalog))
        .numbers("objsubid", rows.iter().map(|row| row.1))
        .names("description", rows.iter().map(|row| row.2.as_str()))
}

pub(super) fn access_methods() -> Built {
    Built::default()
        .numbers("oid", [2, 403, 405, 3580])
        .names("amname", ["heap", "btree", "hash", "brin"])
        .names("amtype", ["t", "i", "i", "i"])
}

pub(super) fn collations() -> Built {
    Built::default()
        .numbers("oid", [100, 950])
        .names("collname", ["default", "C"])
        .number("collnamespace", CATALOG_SCHEMA, 2)
        .number("collowner", OWNER, 2)
        .names("collprovider", ["d", "c"])
        .truth("collisdeterministic", true, 2)
        .counts("collencoding", [-1, -1])
        .names("collcollate", ["", "C"])
        .names("collctype", ["", "C"])
}
