//! Which functions there are.

use std::collections::BTreeSet;

use syntax::rewrite;

use crate::functions::{advisory, descriptions, objects, privileges, sequences, settings};
use crate::run::instance::Instance;

/// Functions that the parser or the planner has words of their own for.
const WORDS: [&str; 15] = [
    "coalesce",
    "current_date",
    "current_time",
    "current_timestamp",
    "extract",
    "generate_series",
    "grouping",
    "nullif",
    "overlay",
    "position",
    "range",
    "substring",
    "timezone",
    "trim",
    "unnest",
];

/// Functions that ask what a session has got, or the catalog.
const ASKING: [&str; 18] = [
    "col_description",
    "current_schemas",
    "current_setting",
    "currval",
    "has_sequence_privilege",
    "lastval",
    "nextval",
    "obj_description",
    "pg_backend_pid",
    "pg_cancel_backend",
    "pg_get_serial_sequence",
    "pg_has_role",
    "pg_terminate_backend",
    "set_config",
    "setval",
    "to_regnamespace",
    "to_regproc",
    "to_regrole",
];

impl Instance {
    /// The names of all functions that statements may call, in order: scalar functions, aggregates, functions of windows, and
    /// those that stand in `from`.
    pub fn functions(&self) -> Vec<String> {
        let planner = &self.template;
        let scalars = planner.functions.scalar_names();
        let all = scalars
            .chain(planner.functions.aggregates().keys())
            .chain(planner.functions.windows().keys());
        let mut names: BTreeSet<String> = all.cloned().collect();
        names.extend(rewrite::names().iter().map(ToString::to_string));
        names.extend(WORDS.map(str::to_owned));
        let asking = ASKING.into_iter();
        let asking = asking.filter(|name| {
            sequences::is_name(name)
                || descriptions::is_name(name)
                || objects::is_name(name)
                || privileges::is_name(name)
                || settings::is_name(name)
        });
        names.extend(asking.map(str::to_owned));
        names.extend(advisory::names().map(str::to_owned));
        // Those of operators.
        names.retain(|name| !name.contains(' '));
        names.into_iter().collect()
    }
}
