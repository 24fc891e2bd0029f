//! What PostgreSQL counts about tables. Of it there are the rows of each here; what is not counted is NULL.

use messages::numbers::{DATABASE, table_number};
use syntax::names::{CATALOG, base, permanent, schema_of};
use table::Tables;

use crate::pg_catalog::build::Built;
use crate::pg_catalog::indexes::{TableIndex, indexes};

/// `pg_stat_database`, of the one database. Nothing is counted.
pub(super) fn database() -> Built {
    Built::default()
        .number("datid", DATABASE, 1)
        .text("datname", CATALOG, 1)
}

/// Columns of counts that there are not.
const COUNTS: [&str; 20] = [
    "seq_scan",
    "seq_tup_read",
    "idx_scan",
    "idx_tup_fetch",
    "n_tup_ins",
    "n_tup_upd",
    "n_tup_del",
    "n_tup_hot_upd",
    "n_dead_tup",
    "n_mod_since_analyze",
    "n_ins_since_vacuum",
    "vacuum_count",
    "autovacuum_count",
    "analyze_count",
    "autoanalyze_count",
    "heap_blks_read",
    "heap_blks_hit",
    "idx_blks_read",
    "idx_blks_hit",
    "toast_blks_read",
];

/// Columns of moments that there are not.
const MOMENTS: [&str; 4] = [
    "last_vacuum",
    "last_autovacuum",
    "last_analyze",
    "last_autoanalyze",
];

/// `pg_stat_user_tables`, and `pg_stat_all_tables`, which has no more.
pub(super) fn tables(all: &Tables) -> Built {
    let mut names = permanent(all.names());
    names.sort_unstable();
    let rows = names.len();
    let built = Built::default()
        .numbers("relid", names.iter().map(|name| table_number(name)))
        .names("schemaname", names.iter().map(|name| schema_of(name)))
        .names("relname", names.iter().map(|name| base(name)))
        .numbers(
            "n_live_tup",
            names
                .iter()
                .map(|name| all.get(name).map_or(0, |table| table.rows() as i64)),
        );
    let nothing = || std::iter::repeat_n(None, rows);
    let built = COUNTS
        .into_iter()
        .fold(built, |built, name| built.some_numbers(name, nothing()));
    MOMENTS
        .into_iter()
        .fold(built, |built, name| built.moments(name, nothing()))
}

/// `pg_stat_user_indexes`, and `pg_stat_all_indexes`, which has no more.
pub(super) fn of_indexes(all: &Tables) -> Built {
    let indexes = indexes(all);
    let names: Vec<String> = indexes.iter().map(TableIndex::full_name).collect();
    let nothing = || std::iter::repeat_n(None, names.len());
    let built = Built::default()
        .numbers("relid", indexes.iter().map(|own| table_number(own.table)))
        .numbers("indexrelid", indexes.iter().map(TableIndex::number))
        .names("schemaname", indexes.iter().map(|own| schema_of(own.table)))
        .names("relname", indexes.iter().map(|own| base(own.table)))
        .names("indexrelname", names.iter().map(|name| base(name)));
    ["idx_scan", "idx_tup_read", "idx_tup_fetch"]
        .into_iter()
        .fold(built, |built, name| built.some_numbers(name, nothing()))
}
