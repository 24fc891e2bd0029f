//! `pg_catalog`: what clients of PostgreSQL ask about a database. The tables that they read, with the columns that they
//! name; those about things that there are not here are [empty](empty).

mod build;
mod constraints;
mod empty;
mod indexes;
mod roles;
mod sequences;
mod sessions;
mod standard;
mod statistics;
mod tables;
mod types;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::error::Result;
use table::Tables;

use crate::resources::activity::Activity;
use crate::rights::Rights;
use crate::settings::StatementSettings;

pub(crate) use build::ViewColumns;
pub(crate) use constraints::constraints;
pub(crate) use indexes::indexes;

/// `information_schema.schemata`.
pub(crate) fn schemata(all: &Tables) -> Result<Arc<dyn TableProvider>> {
    tables::schemata(all).table()
}

/// `information_schema.sequences`.
pub(crate) fn sequences(all: &Tables) -> Result<Arc<dyn TableProvider>> {
    sequences::by_standard(all).table()
}

/// The view of `information_schema` about rights or constraints of that name, if there is one, as whose rights these are sees it.
pub(crate) fn of_standard(
    all: &Tables,
    rights: &Rights,
    name: &str,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let built = match name {
        "table_privileges" => roles::table_privileges(all, rights, false),
        "role_table_grants" => roles::table_privileges(all, rights, true),
        "enabled_roles" => roles::enabled(all, rights),
        name => match standard::view(all, name) {
            Some(view) => view,
            None => return Ok(None),
        },
    };
    built.table().map(Some)
}

/// The table of that name in `pg_catalog`, if there is one. `views` are the columns of views, `activity` tells of sessions,
/// `settings` are those of this one.
pub(crate) fn view(
    (all, views): (&Tables, &ViewColumns),
    name: &str,
    activity: impl FnOnce() -> Vec<Activity>,
    settings: &StatementSettings,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let built = match name {
        "pg_namespace" => tables::namespaces(all),
        "pg_class" => tables::classes(all),
        "pg_attribute" => tables::attributes(all, views),
        "pg_attrdef" => tables::defaults(all),
        "pg_type" => types::by_number(all),
        "pg_enum" => types::labels(all),
        "pg_database" => tables::databases(),
        "pg_constraint" => constraints::by_number(all),
        "pg_index" => indexes::by_number(all),
        "pg_indexes" => indexes::by_name(all),
        "pg_roles" | "pg_user" | "pg_authid" => roles::roles(all),
        "pg_db_role_setting" => roles::role_settings(all),
        "pg_auth_members" => roles::members(all),
        "pg_tables" => tables::plain_tables(all),
        "pg_views" => tables::views(all),
        "pg_description" => tables::descriptions(all),
        "pg_matviews" => tables::materialized(all),
        "pg_sequence" => sequences::by_number(all),
        "pg_sequences" => sequences::by_name(all),
        "pg_get_keywords" => standard::keywords(),
        "pg_stat_user_tables" | "pg_stat_all_tables" => statistics::tables(all),
        "pg_am" => tables::access_methods(),
        "pg_collation" => tables::collations(),
        "pg_cursors" => sessions::cursors(settings.cursors()),
        "pg_settings" => sessions::settings(settings),
        "pg_stat_activity" => sessions::activity(activity()),
        "pg_timezone_names" => sessions::zones(),
        "pg_timezone_abbrevs" => sessions::abbreviations(),
        name => match empty::columns(name) {
            Some(columns) => columns,
            None => return Ok(None),
        },
    };
    built.table().map(Some)
}
