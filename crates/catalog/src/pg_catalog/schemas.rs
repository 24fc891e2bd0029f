//! Schemas, as rows of `pg_namespace` and of `information_schema.schemata`.

use messages::numbers::schema_number;
use syntax::names::{self, CATALOG, PG_CATALOG, SCHEMA, of_schema, schema_of};
use table::{Privileges, Tables};

use crate::pg_catalog::build::Built;
use crate::pg_catalog::roles;
use crate::pg_catalog::seen::Seen;

/// The names of all schemas.
pub(super) fn schemas(all: &Tables) -> Vec<&str> {
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

/// `pg_namespace`.
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
