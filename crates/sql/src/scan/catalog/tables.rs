//! Tables of `pg_catalog` about what there is.

use table::{Column, Definition, Privileges, Tables};

use crate::messages::numbers::{
    CATALOG_SCHEMA, DATABASE, OWNER, TYPES, schema_number, table_number, type_modifier, type_number,
};
use crate::names::{self, CATALOG, PG_CATALOG, SCHEMA, base, of_schema, permanent, schema_of};
use crate::scan::catalog::build::Built;
use crate::scan::catalog::roles;

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

pub(super) fn schemata(all: &Tables) -> Built {
    let names = schemas(all);
    let rows = names.len();
    Built::default()
        .text("catalog_name", CATALOG, rows)
        .names("schema_name", names)
        .names(
            "schema_owner",
            all_owners(all, schemas(all).into_iter().map(of_schema)),
        )
        .nothing("default_character_set_catalog", rows)
        .nothing("default_character_set_schema", rows)
        .nothing("default_character_set_name", rows)
        .nothing("sql_path", rows)
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
fn schema_of_number(name: &str) -> i64 {
    schema_number(schema_of(name))
}

/// Names of tables, views and sequences, in order, each with its `relkind`.
fn relations(all: &Tables) -> Vec<(&str, &'static str)> {
    let (kept, plain): (Vec<_>, Vec<_>) = permanent(all.names())
        .into_iter()
        .partition(|name| all.materialized(name).is_some());
    let kinds = [
        (plain, "r"),
        (kept, "m"),
        (all.views(), "v"),
        (permanent(all.sequences()), "S"),
    ];
    let of_kind = |(names, kind): (Vec<_>, _)| names.into_iter().map(move |name| (name, kind));
    let mut relations: Vec<_> = kinds.into_iter().flat_map(of_kind).collect();
    relations.sort_unstable();
    relations
}

pub(super) fn classes(all: &Tables) -> Built {
    let relations = relations(all);
    let rows = relations.len();
    let table = |name: &str| all.get(name);
    let keyed =
        |name: &str| table(name).is_some_and(|table| !table.definition().primary_key.is_empty());
    let width = |name: &str| table(name).map_or(0, |table| table.definition().columns.len() as i32);
    let built = Built::default()
        .numbers("oid", relations.iter().map(|(name, _)| table_number(name)))
        .names("relname", relations.iter().map(|(name, _)| base(name)))
        .numbers(
            "relnamespace",
            relations.iter().map(|(name, _)| schema_of_number(name)),
        )
        .number("reltype", 0, rows)
        .number("reloftype", 0, rows)
        .numbers(
            "relowner",
            relations
                .iter()
                .map(|(name, _)| roles::owner_number(all, name)),
        )
        .numbers(
            "relam",
            relations
                .iter()
                .map(|(_, kind)| if *kind == "r" { 2 } else { 0 }),
        )
        .number("relfilenode", 0, rows)
        .number("reltablespace", 0, rows)
        .number("relpages", 0, rows)
        .numbers(
            "reltuples",
            relations
                .iter()
                .map(|(name, _)| table(name).map_or(-1, |table| table.rows() as i64)),
        )
        .number("reltoastrelid", 0, rows)
        .names("relkind", relations.iter().map(|(_, kind)| *kind))
        .counts("relnatts", relations.iter().map(|(name, _)| width(name)))
        .counts("relchecks", relations.iter().map(|_| 0))
        .text("relpersistence", "p", rows)
        .text("relreplident", "d", rows)
        .lists(
            "relacl",
            relations.iter().map(|(name, kind)| {
                let there = match *kind {
                    "S" => Privileges::OF_SEQUENCE,
                    _ => Privileges::OF_TABLE,
                };
                roles::acl(all, name, there)
            }),
        )
        .no_lists("reloptions", rows)
        .nothing("relpartbound", rows)
        .truths("relhaspkey", relations.iter().map(|(name, _)| keyed(name)));
    let filled = |name: &str| all.materialized(name).is_none_or(|query| query.populated);
    let populated = relations.iter().map(|(name, _)| filled(name));
    let built = built.truths("relispopulated", populated);
    [
        "relhasindex",
        "relisshared",
        "relhasrules",
        "relhastriggers",
        "relhassubclass",
        "relrowsecurity",
        "relforcerowsecurity",
        "relispartition",
    ]
    .into_iter()
    .fold(built, |built, name| built.truth(name, false, rows))
}

/// A column, its table, and its place from 1 on.
type Place<'t> = (&'t str, i64, &'t Column);

fn columns(all: &Tables) -> Vec<Place<'_>> {
    let mut names = permanent(all.names());
    names.sort_unstable();
    let of_table = |name: &'_ str| {
        let definition = all.get(name).map(|table| table.definition());
        definition.map_or(&[][..], |definition| &definition.columns[..])
    };
    let mut places = Vec::new();
    for name in names {
        let columns = of_table(name).iter().enumerate();
        places.extend(columns.map(|(at, column)| (name, at as i64 + 1, column)));
    }
    places
}

/// The expression that makes the values of a column, or their default.
fn value(column: &Column) -> Option<&str> {
    column.expression().or(column.default.as_deref())
}

pub(super) fn attributes(all: &Tables) -> Built {
    let places = columns(all);
    let rows = places.len();
    let length = |column: &Column| {
        let number = i64::from(type_number(&column.data_type));
        TYPES
            .iter()
            .find(|known| known.number == number)
            .map_or(-1, |known| known.length)
    };
    Built::default()
        .numbers(
            "attrelid",
            places.iter().map(|(table, _, _)| table_number(table)),
        )
        .names(
            "attname",
            places.iter().map(|(_, _, column)| column.name.as_str()),
        )
        .numbers(
            "atttypid",
            places
                .iter()
                .map(|(_, _, column)| type_number(&column.data_type).into()),
        )
        .counts("attlen", places.iter().map(|(_, _, column)| length(column)))
        .numbers("attnum", places.iter().map(|(_, at, _)| *at))
        .number("attndims", 0, rows)
        .numbers(
            "atttypmod",
            places
                .iter()
                .map(|(_, _, column)| type_modifier(&column.data_type).into()),
        )
        .truths(
            "attnotnull",
            places.iter().map(|(_, _, column)| !column.nullable),
        )
        .truths(
            "atthasdef",
            places.iter().map(|(_, _, column)| value(column).is_some()),
        )
        .texts(
            "attdefault",
            places.iter().map(|(_, _, column)| value(column)),
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
        .text("attstorage", "p", rows)
        .text("attcompression", "", rows)
        .number("attcollation", 0, rows)
        .number("attinhcount", 0, rows)
        .number("attstattarget", -1, rows)
        .no_lists("attacl", rows)
        .no_lists("attoptions", rows)
        .no_lists("attfdwoptions", rows)
}

pub(super) fn defaults(all: &Tables) -> Built {
    let places: Vec<_> = columns(all)
        .into_iter()
        .filter(|(_, _, column)| value(column).is_some())
        .collect();
    Built::default()
        .numbers(
            "oid",
            places
                .iter()
                .map(|(table, at, _)| table_number(&format!("{table} {at}"))),
        )
        .numbers(
            "adrelid",
            places.iter().map(|(table, _, _)| table_number(table)),
        )
        .numbers("adnum", places.iter().map(|(_, at, _)| *at))
        .texts("adbin", places.iter().map(|(_, _, column)| value(column)))
}

pub(super) fn types() -> Built {
    // Each type, and its arrays.
    let arrays = TYPES.iter().filter(|known| known.array != 0);
    let all: Vec<_> = TYPES
        .iter()
        .map(|known| {
            (
                known.number,
                known.name.to_string(),
                known.length,
                known.category,
                known.array,
                0,
            )
        })
        .chain(arrays.map(|known| {
            (
                known.array,
                format!("_{}", known.name),
                -1,
                "A",
                0,
                known.number,
            )
        }))
        .collect();
    let rows = all.len();
    Built::default()
        .numbers("oid", all.iter().map(|known| known.0))
        .names("typname", all.iter().map(|known| known.1.clone()))
        .number("typnamespace", CATALOG_SCHEMA, rows)
        .number("typowner", OWNER, rows)
        .counts("typlen", all.iter().map(|known| known.2))
        .truths(
            "typbyval",
            all.iter().map(|known| (0..=8).contains(&known.2)),
        )
        .text("typtype", "b", rows)
        .names("typcategory", all.iter().map(|known| known.3))
        .truth("typispreferred", false, rows)
        .truth("typisdefined", true, rows)
        .text("typdelim", ",", rows)
        .number("typrelid", 0, rows)
        .numbers("typelem", all.iter().map(|known| known.5))
        .numbers("typarray", all.iter().map(|known| known.4))
        .names("typinput", all.iter().map(|known| format!("{}in", known.1)))
        .names(
            "typreceive",
            all.iter().map(|known| format!("{}recv", known.1)),
        )
        .names(
            "typsend",
            all.iter().map(|known| format!("{}send", known.1)),
        )
        .truth("typnotnull", false, rows)
        .number("typbasetype", 0, rows)
        .number("typtypmod", -1, rows)
        .number("typndims", 0, rows)
        .number("typcollation", 0, rows)
        .nothing("typdefault", rows)
        .no_lists("typacl", rows)
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

/// A key: its name, kind, table, the columns there, the table referred to, and the columns there.
struct Key {
    name: String,
    kind: &'static str,
    schema: i64,
    table: i64,
    columns: String,
    parent: i64,
    parent_columns: String,
}

fn keys(all: &Tables) -> Vec<Key> {
    let list = |columns: &[usize]| {
        let numbers: Vec<String> = columns.iter().map(|at| (at + 1).to_string()).collect();
        format!("{{{}}}", numbers.join(","))
    };
    let mut names = permanent(all.names());
    names.sort_unstable();
    let mut keys = Vec::new();
    for name in names {
        let Some(definition) = all.get(name).map(|table| table.definition()) else {
            continue;
        };
        if !definition.primary_key.is_empty() {
            keys.push(Key {
                name: format!("{}_pkey", base(name)),
                kind: "p",
                schema: schema_of_number(name),
                table: table_number(name),
                columns: list(&definition.primary_key),
                parent: 0,
                parent_columns: "{}".into(),
            });
        }
        for key in &definition.foreign_keys {
            let of = |at: &usize| {
                definition
                    .columns
                    .get(*at)
                    .map_or("", |column| column.name.as_str())
            };
            let columns: Vec<&str> = key.columns.iter().map(of).collect();
            keys.push(Key {
                name: format!("{}_{}_fkey", base(name), columns.join("_")),
                kind: "f",
                schema: schema_of_number(name),
                table: table_number(name),
                columns: list(&key.columns),
                parent: table_number(&key.parent),
                parent_columns: list(&places_of(
                    all.get(&key.parent).map(|parent| parent.definition()),
                    &key.parent_columns,
                )),
            });
        }
    }
    keys
}

/// The places of columns in a table.
fn places_of(parent: Option<&Definition>, names: &[String]) -> Vec<usize> {
    let place = |name: &String| parent?.position(name).ok();
    names.iter().filter_map(place).collect()
}

pub(super) fn constraints(all: &Tables) -> Built {
    let keys = keys(all);
    let rows = keys.len();
    Built::default()
        .numbers("oid", keys.iter().map(|key| table_number(&key.name)))
        .names("conname", keys.iter().map(|key| key.name.as_str()))
        .numbers("connamespace", keys.iter().map(|key| key.schema))
        .names("contype", keys.iter().map(|key| key.kind))
        .truth("condeferrable", false, rows)
        .truth("condeferred", false, rows)
        .truth("convalidated", true, rows)
        .numbers("conrelid", keys.iter().map(|key| key.table))
        .number("contypid", 0, rows)
        .number("conindid", 0, rows)
        .number("conparentid", 0, rows)
        .numbers("confrelid", keys.iter().map(|key| key.parent))
        .text("confupdtype", "a", rows)
        .text("confdeltype", "a", rows)
        .text("confmatchtype", "s", rows)
        .names("conkey", keys.iter().map(|key| key.columns.as_str()))
        .names(
            "confkey",
            keys.iter().map(|key| key.parent_columns.as_str()),
        )
        .nothing("conbin", rows)
}

/// `pg_matviews`.
pub(super) fn materialized(all: &Tables) -> Built {
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
        .names("definition", kept.iter().map(|(_, query)| query.text))
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
        .nothing("tablespace", rows);
    ["hasindexes", "hasrules", "hastriggers", "rowsecurity"]
        .into_iter()
        .fold(built, |built, name| built.truth(name, false, rows))
}

pub(super) fn views(all: &Tables) -> Built {
    let mut names = all.views();
    names.sort_unstable();
    let texts: Vec<_> = names
        .iter()
        .map(|name| all.view(name).map(str::to_string))
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
pub(super) fn descriptions(all: &Tables) -> Built {
    let mut rows: Vec<(i64, i64, String)> = Vec::new();
    for (name, _) in relations(all) {
        let Some(said) = all.comments(name) else {
            continue;
        };
        rows.extend(
            said.own
                .iter()
                .map(|text| (table_number(name), 0, text.clone())),
        );
        let columns = all.get(name).map(|table| &table.definition().columns);
        for (at, column) in (1..).zip(columns.into_iter().flatten()) {
            let text = said.columns.get(&column.name);
            rows.extend(text.map(|text| (table_number(name), at, text.clone())));
        }
        let keys = said.keys.iter();
        rows.extend(keys.map(|(key, text)| (table_number(key), 0, text.clone())));
    }
    Built::default()
        .numbers("objoid", rows.iter().map(|row| row.0))
        .number("classoid", table_number("pg_class"), rows.len())
        .numbers("objsubid", rows.iter().map(|row| row.1))
        .names("description", rows.iter().map(|row| row.2.as_str()))
}

pub(super) fn access_methods() -> Built {
    Built::default()
        .number("oid", 2, 1)
        .names("amname", ["heap"])
        .names("amtype", ["t"])
}

pub(super) fn collations() -> Built {
    Built::default()
        .numbers("oid", [100, 950])
        .names("collname", ["default", "C"])
        .number("collnamespace", CATALOG_SCHEMA, 2)
        .names("collcollate", ["", "C"])
        .names("collctype", ["", "C"])
}
