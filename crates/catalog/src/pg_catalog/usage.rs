//! What `information_schema` tells of the columns, types and tables that things use, and of what may be done with columns.

use arrow::datatypes::DataType;
use messages::numbers::{short_name, type_number};
use messages::types::standard_name;
use syntax::names::{CATALOG, PG_CATALOG, base, schema_of};
use table::Column;

use crate::pg_catalog::build::Built;
use crate::pg_catalog::roles::{self, ColumnGrant};
use crate::pg_catalog::seen::Seen;

/// The view of that name, if it is one of these.
pub(super) fn view(seen: &Seen<'_>, name: &str) -> Option<Built> {
    Some(match name {
        "information_schema_catalog_name" => Built::default().text("catalog_name", CATALOG, 1),
        "character_sets" => Built::default()
            .text("character_set_name", "UTF8", 1)
            .text("character_repertoire", "UCS", 1)
            .text("form_of_use", "UTF8", 1)
            .text("default_collate_catalog", CATALOG, 1)
            .text("default_collate_schema", PG_CATALOG, 1)
            .text("default_collate_name", "default", 1),
        "element_types" => element_types(seen),
        "column_udt_usage" => column_types(seen),
        "constraint_table_usage" => constraint_tables(seen),
        "column_privileges" => column_privileges(seen, false),
        "role_column_grants" => column_privileges(seen, true),
        _ => return None,
    })
}

/// The columns of the tables that are seen: table, place from 1 on, column.
fn columns<'t>(seen: &Seen<'t>) -> Vec<(&'t str, usize, &'t Column)> {
    let mut all = Vec::new();
    for name in seen.names() {
        let columns = seen.tables.get(name).map(|own| &own.definition().columns);
        let columns = columns.into_iter().flatten().enumerate();
        all.extend(columns.map(|(at, column)| (name, at + 1, column)));
    }
    all
}

/// The types of the items of arrays.
fn element_types(seen: &Seen<'_>) -> Built {
    let of_arrays = columns(seen).into_iter();
    let items = of_arrays.filter_map(|(table, at, column)| match &column.data_type {
        DataType::List(item) => Some((table, at, item.data_type())),
        _ => None,
    });
    let items: Vec<(&str, usize, &DataType)> = items.collect();
    let rows = items.len();
    Built::default()
        .text("object_catalog", CATALOG, rows)
        .names("object_schema", items.iter().map(|own| schema_of(own.0)))
        .names("object_name", items.iter().map(|own| base(own.0)))
        .text("object_type", "TABLE", rows)
        .names(
            "collection_type_identifier",
            items.iter().map(|own| own.1.to_string()),
        )
        .names("data_type", items.iter().map(|own| standard_name(own.2)))
        .text("udt_catalog", CATALOG, rows)
        .text("udt_schema", PG_CATALOG, rows)
        .names(
            "udt_name",
            items.iter().map(|own| short_name(type_number(own.2))),
        )
        .names(
            "dtd_identifier",
            items.iter().map(|own| format!("a{}", own.1)),
        )
}

/// The types of columns of tables that belong to whoever asks.
fn column_types(seen: &Seen<'_>) -> Built {
    let mut own = columns(seen);
    own.retain(|(table, ..)| seen.rights.owns(seen.tables, table));
    let rows = own.len();
    let made = |column: &Column| {
        let item = match &column.data_type {
            DataType::List(item) => item.data_type(),
            own => own,
        };
        table::enum_name(item).map(str::to_owned)
    };
    Built::default()
        .text("udt_catalog", CATALOG, rows)
        .names(
            "udt_schema",
            own.iter().map(|(_, _, column)| match made(column) {
                Some(name) => schema_of(&name).to_owned(),
                None => PG_CATALOG.to_owned(),
            }),
        )
        .names(
            "udt_name",
            own.iter().map(|(_, _, column)| match made(column) {
                Some(name) => base(&name).to_owned(),
                None => short_name(type_number(&column.data_type)),
            }),
        )
        .text("table_catalog", CATALOG, rows)
        .names("table_schema", own.iter().map(|own| schema_of(own.0)))
        .names("table_name", own.iter().map(|own| base(own.0)))
        .names("column_name", own.iter().map(|own| own.2.name.as_str()))
}

/// The tables of keys, and those that foreign keys refer to.
fn constraint_tables(seen: &Seen<'_>) -> Built {
    let mut keys = seen.constraints_of_owned();
    keys.retain(|key| !key.is_of_domain());
    let rows = keys.len();
    let tables: Vec<&str> = keys
        .iter()
        .map(|key| key.parent_of.as_deref().unwrap_or(&key.of))
        .collect();
    Built::default()
        .text("table_catalog", CATALOG, rows)
        .names("table_schema", tables.iter().map(|table| schema_of(table)))
        .names("table_name", tables.iter().map(|table| base(table)))
        .text("constraint_catalog", CATALOG, rows)
        .names(
            "constraint_schema",
            keys.iter().map(|key| schema_of(&key.of)),
        )
        .names("constraint_name", keys.iter().map(|key| key.name.as_str()))
}

/// What may be done with columns: what may be done with their tables.
fn column_privileges(seen: &Seen<'_>, of_roles: bool) -> Built {
    let grants = roles::column_grants(seen.tables, seen.rights, of_roles);
    let mut rows: Vec<(&ColumnGrant, &str)> = Vec::new();
    for grant in &grants {
        let table = seen.tables.get(&grant.table);
        let columns = table.map(|own| &own.definition().columns);
        let names = columns.into_iter().flatten().map(|own| own.name.as_str());
        rows.extend(names.map(|name| (grant, name)));
    }
    let count = rows.len();
    let yes = |yes: bool| if yes { "YES" } else { "NO" };
    Built::default()
        .names("grantor", rows.iter().map(|(own, _)| own.grantor.as_str()))
        .names("grantee", rows.iter().map(|(own, _)| own.grantee.as_str()))
        .text("table_catalog", CATALOG, count)
        .names(
            "table_schema",
            rows.iter().map(|(own, _)| schema_of(&own.table)),
        )
        .names("table_name", rows.iter().map(|(own, _)| base(&own.table)))
        .names("column_name", rows.iter().map(|(_, name)| *name))
        .names("privilege_type", rows.iter().map(|(own, _)| own.privilege))
        .names(
            "is_grantable",
            rows.iter().map(|(own, _)| yes(own.grantable)),
        )
}
