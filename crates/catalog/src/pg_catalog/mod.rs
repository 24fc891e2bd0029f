//! `pg_catalog`: what clients of PostgreSQL ask about a database. The tables that they read, with the columns that they
//! name; those about things that there are not here are [empty](system::empty).

mod attributes;
mod build;
mod comments;
mod composites;
pub mod constraints;
mod depend;
mod expressions;
mod features;
mod indexes;
mod locks;
mod relations;
mod roles;
mod schemas;
mod seen;
mod seen_constraints;
mod sequences;
mod sessions;
mod standard;
mod statistics;
pub mod system;
mod system_attributes;
mod system_relations;
mod tables;
mod types;
mod usage;

use arrow::array::RecordBatch;
use datafusion_common::Result;
use table::{Position, Tables};

use crate::activity::Activity;
use crate::locks::Shown;
use crate::search_path::SearchPath;
use crate::settings::StatementSettings;

pub use build::{Built, ViewColumns};
pub use composites::of_number;
pub use constraints::{constraints, laid_out};
pub(crate) use depend::read_by;
pub use expressions::{default, generated, seen_expression, seen_view};
pub use indexes::indexes;
pub use seen::Seen;
pub(crate) use types::length as domain_length;

/// The table of the types that each type is made of, which statements of people do not name.
const TREES: &str = "pg_type_trees";

/// The view of `information_schema` of that name, if there is one, with all its columns. `built` has those that are known of it
/// already.
pub(crate) fn of_standard(
    seen: &Seen<'_>,
    name: &str,
    built: Option<Built>,
) -> Result<Option<RecordBatch>> {
    let (all, rights) = (seen.tables, seen.rights);
    let own = || match name {
        "schemata" => Some(schemas::schemata(seen)),
        "sequences" => Some(sequences::by_standard(seen)),
        "table_privileges" => Some(roles::table_privileges(all, rights, false)),
        "role_table_grants" => Some(roles::table_privileges(all, rights, true)),
        "sql_features" => Some(features::features()),
        "enabled_roles" => Some(roles::enabled(all, rights)),
        "applicable_roles" => Some(roles::applicable(all, rights)),
        name => standard::view(seen, name)
            .or_else(|| usage::view(seen, name))
            .or_else(|| system::empty_view(name)),
    };
    match built.or_else(own) {
        Some(built) => system::completed_view(name, built).batch().map(Some),
        None => Ok(None),
    }
}

/// `pg_locks`, of these locks.
pub fn locks(all: &Tables, shown: &[Shown], settings: &StatementSettings) -> Result<RecordBatch> {
    system::completed("pg_locks", locks::locks(all, shown, settings)).batch()
}

/// A sequence as a table of one row.
pub fn sequence_state(at: Position) -> Result<RecordBatch> {
    sequences::state(at).batch()
}

/// The table of that name in `pg_catalog`, if there is one. `views` are the columns of views, `path` is where names are looked
/// up, `activity` tells of sessions, `settings` are those of this one.
pub fn view(
    (all, views, path): (&Tables, &ViewColumns, &SearchPath),
    name: &str,
    activity: impl FnOnce() -> Vec<Activity>,
    settings: &StatementSettings,
) -> Result<Option<RecordBatch>> {
    let built = match name {
        "pg_namespace" => schemas::namespaces(all),
        "pg_class" => relations::classes(all),
        "pg_attribute" => attributes::attributes(all, views)?,
        "pg_attrdef" => attributes::defaults(all),
        "pg_type" => types::by_number(all),
        TREES => types::trees(all),
        "pg_enum" => types::labels(all),
        "pg_database" => tables::databases(),
        "pg_constraint" => constraints::by_number(all),
        "pg_index" => indexes::by_number(all),
        "pg_indexes" => indexes::by_name(all),
        "pg_roles" | "pg_user" | "pg_authid" => roles::roles(all),
        "pg_db_role_setting" => roles::role_settings(all),
        "pg_auth_members" => roles::members(all),
        "pg_tables" => tables::plain_tables(all),
        "pg_views" => tables::views(all, path),
        "pg_description" => comments::descriptions(all, views),
        "pg_matviews" => tables::materialized(all, path),
        "pg_sequence" => sequences::by_number(all),
        "pg_sequences" => sequences::by_name(all),
        "pg_get_keywords" => standard::keywords(),
        "pg_stat_user_tables" | "pg_stat_all_tables" => statistics::tables(all),
        "pg_stat_user_indexes" | "pg_stat_all_indexes" => statistics::of_indexes(all),
        "pg_stat_gssapi" => sessions::kerberos(&activity()),
        "pg_am" => tables::access_methods(),
        "pg_aggregate" => system::aggregates(),
        "pg_cast" => system::casts(),
        "pg_collation" => tables::collations(),
        "pg_depend" => depend::dependencies(all),
        "pg_language" => system::languages(),
        "pg_opclass" => system::classes(),
        "pg_operator" => system::operators(),
        "pg_proc" => system::functions(),
        "pg_rewrite" => depend::rules(all),
        "pg_stat_database" => statistics::database(),
        "pg_tablespace" => system::tablespaces(),
        "pg_cursors" => sessions::cursors(settings.cursors()),
        "pg_settings" | "pg_show_all_settings" => sessions::settings(settings),
        "pg_stat_activity" => sessions::activity(activity()),
        "pg_timezone_names" => sessions::zones(),
        "pg_timezone_abbrevs" => sessions::abbreviations(),
        name => match system::empty(name) {
            Some(columns) => columns,
            None => return Ok(None),
        },
    };
    system::completed(name, built).batch().map(Some)
}
