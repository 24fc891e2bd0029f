//! Tables and views by name, and the databases, access methods and collations that there are.

use messages::numbers::{CATALOG_SCHEMA, DATABASE, OWNER};
use syntax::names::{CATALOG, base, permanent, schema_of};
use table::Tables;

use crate::pg_catalog::build::Built;
use crate::pg_catalog::expressions::seen_view;
use crate::pg_catalog::relations::is_indexed;
use crate::pg_catalog::roles;
use crate::search_path::SearchPath;

/// `pg_database`.
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

/// `pg_tables`.
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

/// `pg_views`.
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

/// `pg_am`.
pub(super) fn access_methods() -> Built {
    Built::default()
        .numbers("oid", [2, 403, 405, 3580])
        .names("amname", ["heap", "btree", "hash", "brin"])
        .names("amtype", ["t", "i", "i", "i"])
}

/// `pg_collation`.
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
