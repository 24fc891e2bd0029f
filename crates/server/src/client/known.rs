//! The settings that there are.
//!
//! Those that PostgreSQL has and that mean nothing here are taken where they change no answer: its planner's switches and
//! costs, the memory of its operators, its logs. Those that would change an answer are done, or take only what is so.

use crate::client::value_kinds::{self, Kind};

/// What a setting may be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// What is of its kind: it changes nothing here, or is looked at where it does.
    Any(Kind),
    /// One of these, which say the same. The first is what it is.
    One(&'static [&'static str]),
    /// One of these, which do not say the same.
    Of(&'static [&'static str]),
    /// The style of dates, and the order of their parts in what is read.
    Dates,
    /// A time zone.
    Zone,
    /// Nothing.
    Fixed,
}

/// A setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub name: &'static str,
    /// Whether clients are told of it when they connect, and when it changes.
    pub told: bool,
    /// What it is at first.
    pub first: &'static str,
    pub takes: Takes,
}

/// The version of PostgreSQL whose protocol and catalogs these are.
pub(crate) const VERSION: &str = concat!("15.0 (Atoll ", env!("CARGO_PKG_VERSION"), ")");

/// The schemas in which names are looked up, unless a client says otherwise.
pub(crate) const FIRST_PATH: &str = "\"$user\", public";

const fn known(name: &'static str, first: &'static str, takes: Takes) -> Known {
    Known {
        name,
        told: false,
        first,
        takes,
    }
}

const fn told(name: &'static str, first: &'static str, takes: Takes) -> Known {
    Known {
        name,
        told: true,
        first,
        takes,
    }
}

/// A switch.
const fn switch(name: &'static str, first: &'static str) -> Known {
    known(name, first, Takes::Any(Kind::Truth))
}

/// A number, maybe with a point.
const fn number(name: &'static str, first: &'static str) -> Known {
    known(name, first, Takes::Any(Kind::Number))
}

/// Bytes, in units of 1024 of them.
const fn memory(name: &'static str, first: &'static str) -> Known {
    known(name, first, Takes::Any(Kind::Memory))
}

/// A time in milliseconds.
const fn time(name: &'static str) -> Known {
    known(name, "0", Takes::Any(Kind::Time))
}

const fn text(name: &'static str, first: &'static str) -> Known {
    known(name, first, Takes::Any(Kind::Text))
}

const fn fixed(name: &'static str, first: &'static str) -> Known {
    known(name, first, Takes::Fixed)
}

/// The levels of messages.
const LEVELS: Takes = Takes::Of(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
]);

/// What means something here: it is done, or is what it is.
const MEANT: &[Known] = &[
    told("application_name", "", Takes::Any(Kind::Text)),
    known("bytea_output", "hex", Takes::One(&["hex"])),
    told(
        "client_encoding",
        "UTF8",
        Takes::One(&["UTF8", "utf-8", "unicode", "utf_8"]),
    ),
    known("client_min_messages", "notice", LEVELS),
    told("datestyle", "ISO, MDY", Takes::Dates),
    known(
        "default_transaction_isolation",
        "repeatable read",
        Takes::Of(&[
            "repeatable read",
            "read committed",
            "read uncommitted",
            "serializable",
        ]),
    ),
    switch("default_transaction_deferrable", "off"),
    switch("default_transaction_read_only", "off").told(),
    known("default_table_access_method", "heap", Takes::One(&["heap"])),
    known("default_tablespace", "", Takes::One(&["", "pg_default"])),
    known("extra_float_digits", "1", Takes::Any(Kind::Digits)),
    time("idle_in_transaction_session_timeout"),
    told("in_hot_standby", "off", Takes::Fixed),
    told("integer_datetimes", "on", Takes::Fixed),
    told(
        "intervalstyle",
        "postgres",
        Takes::Of(&["postgres", "postgres_verbose", "iso_8601"]),
    ),
    told("is_superuser", "off", Takes::Fixed),
    fixed("lc_collate", "C"),
    fixed("lc_ctype", "C.UTF-8"),
    time("lock_timeout"),
    known("idle_session_timeout", "0", Takes::One(&["0", "0ms", "0s"])),
    // What `alter role` says.
    fixed("memory_limit", "0"),
    fixed("max_identifier_length", "63"),
    fixed("max_index_keys", "32"),
    known(
        "quote_all_identifiers",
        "off",
        Takes::One(&["off", "false", "no", "0"]),
    ),
    known("array_nulls", "on", Takes::One(&["on", "true", "yes", "1"])),
    // The engine's, but for what a client says when it connects.
    text("search_path", FIRST_PATH),
    fixed("block_size", "8192"),
    fixed("server_encoding", "UTF8").told(),
    fixed("server_version", VERSION).told(),
    fixed("server_version_num", "150000"),
    told("session_authorization", "", Takes::Fixed),
    told(
        "standard_conforming_strings",
        "on",
        Takes::One(&["on", "true", "yes", "1"]),
    ),
    time("statement_timeout"),
    told("timezone", "UTC", Takes::Zone),
    // The engine's, of the transaction in progress.
    fixed("transaction_isolation", "repeatable read"),
    fixed("transaction_read_only", "off"),
    fixed("transaction_deferrable", "off"),
    known(
        "transform_null_equals",
        "off",
        Takes::One(&["off", "false", "no", "0"]),
    ),
    fixed("wal_level", "replica"),
];

impl Known {
    const fn told(mut self) -> Known {
        self.told = true;
        self
    }
}

/// What PostgreSQL's planner and executor look at. Here they change nothing.
const PLANNER: &[Known] = &[
    switch("enable_async_append", "on"),
    switch("enable_bitmapscan", "on"),
    switch("enable_gathermerge", "on"),
    switch("enable_hashagg", "on"),
    switch("enable_hashjoin", "on"),
    switch("enable_incremental_sort", "on"),
    switch("enable_indexonlyscan", "on"),
    switch("enable_indexscan", "on"),
    switch("enable_material", "on"),
    switch("enable_memoize", "on"),
    switch("enable_mergejoin", "on"),
    switch("enable_nestloop", "on"),
    switch("enable_parallel_append", "on"),
    switch("enable_parallel_hash", "on"),
    switch("enable_partition_pruning", "on"),
    switch("enable_partitionwise_aggregate", "off"),
    switch("enable_partitionwise_join", "off"),
    switch("enable_seqscan", "on"),
    switch("enable_sort", "on"),
    switch("enable_tidscan", "on"),
    switch("geqo", "off"),
    number("geqo_effort", "5"),
    number("geqo_generations", "0"),
    number("geqo_pool_size", "0"),
    number("geqo_seed", "0"),
    number("geqo_selection_bias", "2"),
    number("geqo_threshold", "12"),
    switch("jit", "off"),
    number("jit_above_cost", "100000"),
    number("jit_inline_above_cost", "500000"),
    number("jit_optimize_above_cost", "500000"),
    number("cpu_index_tuple_cost", "0.005"),
    number("cpu_operator_cost", "0.0025"),
    number("cpu_tuple_cost", "0.01"),
    number("parallel_setup_cost", "1000"),
    number("parallel_tuple_cost", "0.1"),
    number("random_page_cost", "4"),
    number("seq_page_cost", "1"),
    number("cursor_tuple_fraction", "0.1"),
    number("default_statistics_target", "100"),
    number("from_collapse_limit", "8"),
    number("join_collapse_limit", "8"),
    number("recursive_worktable_factor", "10"),
    number("effective_io_concurrency", "1"),
    number("max_parallel_maintenance_workers", "2"),
    number("max_parallel_workers", "8"),
    number("max_parallel_workers_per_gather", "2"),
    switch("parallel_leader_participation", "on"),
    known(
        "force_parallel_mode",
        "off",
        Takes::Of(&["off", "on", "regress"]),
    ),
    known(
        "plan_cache_mode",
        "auto",
        Takes::Of(&["auto", "force_generic_plan", "force_custom_plan"]),
    ),
    known(
        "constraint_exclusion",
        "partition",
        Takes::Of(&["partition", "on", "off"]),
    ),
    memory("effective_cache_size", "4GB"),
    memory("maintenance_work_mem", "64MB"),
    memory("logical_decoding_work_mem", "64MB"),
    memory("min_parallel_index_scan_size", "512kB"),
    memory("min_parallel_table_scan_size", "8MB"),
    memory("temp_buffers", "8MB"),
    memory("work_mem", "4MB"),
    number("hash_mem_multiplier", "2"),
    switch("synchronize_seqscans", "off"),
];

/// What is about PostgreSQL's logs, its files and its own languages. Here they change nothing.
const OTHER: &[Known] = &[
    number("vacuum_cost_delay", "0"),
    number("vacuum_cost_limit", "200"),
    number("vacuum_cost_page_dirty", "20"),
    number("vacuum_cost_page_hit", "1"),
    number("vacuum_cost_page_miss", "2"),
    number("vacuum_failsafe_age", "1600000000"),
    number("vacuum_freeze_min_age", "50000000"),
    number("vacuum_freeze_table_age", "150000000"),
    number("vacuum_multixact_failsafe_age", "1600000000"),
    number("vacuum_multixact_freeze_min_age", "5000000"),
    number("vacuum_multixact_freeze_table_age", "150000000"),
    switch("check_function_bodies", "on"),
    switch("debug_pretty_print", "on"),
    switch("debug_print_parse", "off"),
    switch("debug_print_plan", "off"),
    switch("debug_print_rewritten", "off"),
    switch("escape_string_warning", "on"),
    text("lc_messages", "C"),
    text("lc_monetary", "C"),
    text("lc_numeric", "C"),
    text("lc_time", "C"),
    switch("log_duration", "off"),
    switch("log_executor_stats", "off"),
    switch("log_lock_waits", "off"),
    text("log_min_duration_statement", "-1"),
    text("log_min_error_statement", "error"),
    text("log_min_messages", "warning"),
    switch("log_parser_stats", "off"),
    switch("log_planner_stats", "off"),
    text("log_statement", "none"),
    switch("log_statement_stats", "off"),
    text("log_temp_files", "-1"),
    switch("row_security", "on"),
    text("synchronous_commit", "on"),
    switch("track_activities", "on"),
    switch("track_counts", "on"),
    text("track_functions", "none"),
    switch("track_io_timing", "off"),
    text("xmlbinary", "base64"),
    text("xmloption", "content"),
];

/// All settings.
pub(crate) fn all() -> impl Iterator<Item = &'static Known> {
    MEANT.iter().chain(PLANNER).chain(OTHER)
}

/// The setting of that name.
pub(crate) fn find(name: &str) -> Option<&'static Known> {
    let name = name.to_ascii_lowercase();
    all().find(|known| known.name == name)
}

/// As clients know them, with capitals.
const SHOWN: [(&str, &str); 3] = [
    ("datestyle", "DateStyle"),
    ("intervalstyle", "IntervalStyle"),
    ("timezone", "TimeZone"),
];

/// The name of a setting as it is shown.
pub(crate) fn shown(name: &str) -> &str {
    let found = SHOWN.iter().find(|(plain, _)| *plain == name);
    found.map_or(name, |(_, shown)| shown)
}

impl Known {
    /// What it becomes when it is set to `value`; none if it cannot be that.
    pub(crate) fn value(&self, value: &str, now: &str) -> Option<String> {
        let same = |one: &&&str| one.eq_ignore_ascii_case(value.trim());
        match self.takes {
            Takes::Any(kind) => value_kinds::normal(kind, value),
            // Of those that say the same, what it is stays.
            Takes::One(all) => all
                .iter()
                .find(same)
                .and(all.first())
                .map(|one| (*one).to_string()),
            Takes::Of(all) => all.iter().find(same).map(|one| (*one).to_string()),
            Takes::Dates => sql::date_style(value, now),
            Takes::Zone => sql::time_zone(value),
            Takes::Fixed => (now == value).then(|| value.to_string()),
        }
    }

    /// What it may be, in words.
    pub(crate) fn hint(&self) -> String {
        match self.takes {
            Takes::Any(kind) => value_kinds::hint(kind).to_string(),
            Takes::One(all) => format!("it is {}", quoted(&all[..1])),
            Takes::Of(all) => format!("available values: {}", quoted(all)),
            Takes::Dates => {
                "it is a style, ISO, SQL, Postgres or German, and an order, MDY, DMY or YMD".into()
            }
            Takes::Zone => {
                "it is the name of a zone such as Europe/Berlin, or so many hours from UTC".into()
            }
            Takes::Fixed => "it cannot be changed".into(),
        }
    }

    /// The type of its values, as `pg_settings` calls it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.takes {
            Takes::Any(Kind::Truth) => "bool",
            Takes::Any(Kind::Number) => "real",
            Takes::Any(Kind::Memory | Kind::Time | Kind::Digits) => "integer",
            Takes::Any(Kind::Text) | Takes::Dates | Takes::Zone | Takes::Fixed => "string",
            Takes::One(_) | Takes::Of(_) => "enum",
        }
    }
}

fn quoted(all: &[&str]) -> String {
    let all: Vec<&str> = all
        .iter()
        .map(|one| if one.is_empty() { "''" } else { one })
        .collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stands_there_once_and_is_what_it_may_be() {
        let mut names: Vec<&str> = all().map(|known| known.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for known in all() {
            let value = known.value(known.first, known.first);
            assert_eq!(value.as_deref(), Some(known.first), "{}", known.name);
        }
    }
}
