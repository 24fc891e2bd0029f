//! Columns of relations, as rows of `pg_attribute`, and their defaults, as rows of `pg_attrdef`.

use arrow::datatypes::DataType;
use datafusion_common::Result;
use messages::numbers::{TYPES, table_number, type_number};
use syntax::names::permanent;
use table::{Column, Definition, Tables, is_enum};

use crate::pg_catalog::build::{Built, ViewColumns};
use crate::pg_catalog::composites::{composites, definition};
use crate::pg_catalog::expressions::{default, generated};
use crate::pg_catalog::indexes::{TableIndex, indexes};
use crate::pg_catalog::types::{alignment, collation_of, storage, typed};
use crate::pg_catalog::{system_attributes, system_relations};

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

/// The columns of indexes, composite types and relations of the system, as those of tables.
fn beside_tables(all: &Tables) -> Vec<Definition> {
    let indexes = indexes(all);
    let mut others: Vec<Definition> = indexes.iter().map(TableIndex::as_table).collect();
    let names = composites(all).into_iter();
    others.extend(names.filter_map(|name| definition(all, name)));
    others.extend(system_relations::as_tables());
    others
}

/// `pg_attribute`.
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

/// The number of the default of the column at a place, from 1 on.
pub(super) fn default_number(table: &str, place: i64) -> i64 {
    table_number(&format!("{table} {place}"))
}

/// `pg_attrdef`.
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
                .map(|(table, at, _)| default_number(&table.name, *at)),
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
