//! Constraints as `information_schema` tells of them, and the words that the parser knows.

use messages::keywords::{Reserved, reserved};
use messages::types;
use sqlparser::keywords::{ALL_KEYWORDS, RESERVED_FOR_COLUMN_ALIAS};
use syntax::names::{CATALOG, base, permanent, schema_of};
use table::{Deferral, Domain, Tables, is_enum};

use crate::pg_catalog::build::Built;
use crate::pg_catalog::constraints::{TableConstraint, constraints};
use crate::pg_catalog::seen::Seen;
use crate::pg_catalog::types::length as domain_length;

/// The view of `information_schema` about constraints or functions of that name, if there is one.
pub(super) fn view(seen: &Seen<'_>, name: &str) -> Option<Built> {
    let all = seen.tables;
    Some(match name {
        "table_constraints" => table_constraints(seen),
        "key_column_usage" => key_columns(seen),
        "constraint_column_usage" => used_columns(seen),
        "referential_constraints" => references(seen),
        "check_constraints" => checks(seen),
        "domains" => domains(all),
        "domain_constraints" => domain_constraints(seen),
        "column_domain_usage" => domain_columns(all),
        _ => return None,
    })
}

/// Those that SQL calls constraints: `not null` is none here.
fn table_constraints(seen: &Seen<'_>) -> Built {
    let mut keys = seen.constraints_of_changed();
    keys.retain(|key| !key.is_of_domain());
    let rows = keys.len();
    Built::default()
        .text("constraint_catalog", CATALOG, rows)
        .names("constraint_schema", keys.iter().map(schema))
        .names("constraint_name", keys.iter().map(|key| key.name.as_str()))
        .text("table_catalog", CATALOG, rows)
        .names("table_schema", keys.iter().map(schema))
        .names("table_name", keys.iter().map(|key| base(&key.of)))
        .names(
            "constraint_type",
            keys.iter().map(|key| match key.kind {
                "p" => "PRIMARY KEY",
                "u" => "UNIQUE",
                "f" => "FOREIGN KEY",
                _ => "CHECK",
            }),
        )
        .names(
            "is_deferrable",
            keys.iter().map(|key| yes(key.is_deferrable())),
        )
        .names(
            "initially_deferred",
            keys.iter()
                .map(|key| yes(key.deferral == Deferral::Deferred)),
        )
        .text("enforced", "YES", rows)
}

fn yes(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}

fn schema(key: &TableConstraint) -> &str {
    schema_of(&key.of)
}

/// A column of a constraint.
struct Used<'k> {
    key: &'k TableConstraint,
    /// The table whose column it is.
    table: &'k str,
    column: &'k str,
    /// The place in the constraint, from 1 on, and in the key that it refers to.
    place: i32,
    parent_place: Option<i32>,
}

/// The names of columns at these places, from 1 on, of a table.
fn named<'t>(all: &'t Tables, table: &str, places: &[i16]) -> Vec<&'t str> {
    let columns = all.get(table).map(|table| &table.definition().columns);
    let of = |place: &i16| {
        let at = usize::try_from(*place).ok()?.checked_sub(1)?;
        Some(columns?.get(at)?.name.as_str())
    };
    places.iter().filter_map(of).collect()
}

/// The columns of keys and foreign keys.
fn key_columns(seen: &Seen<'_>) -> Built {
    let keys = seen.constraints();
    let keys = keys.iter().filter(|key| key.kind != "c");
    let used: Vec<Used<'_>> = keys
        .flat_map(|key| {
            let names = named(seen.tables, &key.of, &key.columns);
            (1..).zip(names).map(move |(place, column)| Used {
                key,
                table: &key.of,
                column,
                place,
                parent_place: (key.kind == "f").then_some(place),
            })
        })
        .collect();
    about(&used)
        .numbers("ordinal_position", used.iter().map(|own| own.place.into()))
        .some_numbers(
            "position_in_unique_constraint",
            used.iter().map(|own| own.parent_place.map(i64::from)),
        )
}

/// The columns that keys and checks are of, and those that foreign keys refer to.
fn used_columns(seen: &Seen<'_>) -> Built {
    let keys = seen.constraints_of_owned();
    let keys = keys.iter().filter(|key| !key.is_of_domain());
    let used: Vec<Used<'_>> = keys
        .flat_map(|key| {
            let (table, places) = match &key.parent_of {
                Some(parent) => (parent, &key.parent_columns),
                None => (&key.of, &key.columns),
            };
            let names = named(seen.tables, table, places);
            (1..).zip(names).map(move |(place, column)| Used {
                key,
                table,
                column,
                place,
                parent_place: None,
            })
        })
        .collect();
    about(&used)
}

fn about(used: &[Used<'_>]) -> Built {
    let rows = used.len();
    Built::default()
        .text("constraint_catalog", CATALOG, rows)
        .names("constraint_schema", used.iter().map(|own| schema(own.key)))
        .names(
            "constraint_name",
            used.iter().map(|own| own.key.name.as_str()),
        )
        .text("table_catalog", CATALOG, rows)
        .names("table_schema", used.iter().map(|own| schema_of(own.table)))
        .names("table_name", used.iter().map(|own| base(own.table)))
        .names("column_name", used.iter().map(|own| own.column))
}

/// Foreign keys with the keys that they refer to.
fn references(seen: &Seen<'_>) -> Built {
    let keys = seen.constraints_of_changed();
    let foreign: Vec<&TableConstraint> = keys.iter().filter(|key| key.kind == "f").collect();
    let rows = foreign.len();
    let all = constraints(seen.tables);
    let parent = |key: &&TableConstraint| {
        let own = all.iter().find(|other| {
            matches!(other.kind, "p" | "u")
                && Some(&other.of) == key.parent_of.as_ref()
                && other.columns == key.parent_columns
        });
        own.map(|own| own.name.clone())
    };
    let rule = |word: &str| match word {
        "c" => "CASCADE",
        "n" => "SET NULL",
        "d" => "SET DEFAULT",
        "r" => "RESTRICT",
        _ => "NO ACTION",
    };
    Built::default()
        .text("constraint_catalog", CATALOG, rows)
        .names("constraint_schema", foreign.iter().map(|key| schema(key)))
        .names(
            "constraint_name",
            foreign.iter().map(|key| key.name.as_str()),
        )
        .text("unique_constraint_catalog", CATALOG, rows)
        .texts(
            "unique_constraint_schema",
            foreign
                .iter()
                .map(|key| key.parent_of.as_deref().map(schema_of)),
        )
        .texts("unique_constraint_name", foreign.iter().map(parent))
        .names("match_option", foreign.iter().map(|key| key.match_option()))
        .names("update_rule", foreign.iter().map(|key| rule(key.on_update)))
        .names("delete_rule", foreign.iter().map(|key| rule(key.on_delete)))
}

fn checks(seen: &Seen<'_>) -> Built {
    let keys = seen.constraints_of_owned();
    let checks: Vec<&TableConstraint> = keys.iter().filter(|key| key.kind == "c").collect();
    let clause = |key: &&TableConstraint| key.text.trim_start_matches("CHECK ").to_owned();
    Built::default()
        .text("constraint_catalog", CATALOG, checks.len())
        .names("constraint_schema", checks.iter().map(|key| schema(key)))
        .names(
            "constraint_name",
            checks.iter().map(|key| key.name.as_str()),
        )
        .names("check_clause", checks.iter().map(clause))
}

fn domains(all: &Tables) -> Built {
    let names = all.domains().into_iter();
    let own: Vec<&Domain> = names
        .filter_map(|name| Some(all.domain(name)?.as_ref()))
        .filter(|own: &&Domain| !own.composite)
        .collect();
    let rows = own.len();
    let plain = |own: &&Domain| own.parent.is_none();
    let digits = |own: &&Domain| {
        let own = Some(own).filter(|own| plain(own))?;
        types::digits(&own.data_type)
    };
    let length = |own: &&Domain| i64::try_from(domain_length(own)?.1).ok();
    Built::default()
        .text("domain_catalog", CATALOG, rows)
        .names("domain_schema", own.iter().map(|own| schema_of(&own.name)))
        .names("domain_name", own.iter().map(|own| base(&own.name)))
        .names(
            "data_type",
            own.iter().map(|own| match &own.data_type {
                data_type if is_enum(data_type) || own.parent.is_some() => {
                    "USER-DEFINED".to_owned()
                }
                data_type => match domain_length(own) {
                    Some((title, _)) => title.to_owned(),
                    None => types::standard_name(data_type),
                },
            }),
        )
        .some_numbers("character_maximum_length", own.iter().map(length))
        .some_numbers(
            "numeric_precision",
            own.iter()
                .map(|own| digits(own).map(|d| d.precision.into())),
        )
        .some_numbers(
            "numeric_precision_radix",
            own.iter().map(|own| digits(own).map(|d| d.radix.into())),
        )
        .some_numbers(
            "numeric_scale",
            own.iter()
                .map(|own| digits(own).and_then(|d| d.scale).map(i64::from)),
        )
        .texts("domain_default", own.iter().map(|own| own.default.clone()))
}

/// The checks of domains.
fn domain_constraints(seen: &Seen<'_>) -> Built {
    let mut keys = seen.constraints();
    keys.retain(TableConstraint::is_of_domain);
    let rows = keys.len();
    Built::default()
        .text("constraint_catalog", CATALOG, rows)
        .names("constraint_schema", keys.iter().map(schema))
        .names("constraint_name", keys.iter().map(|key| key.name.as_str()))
        .text("domain_catalog", CATALOG, rows)
        .names("domain_schema", keys.iter().map(schema))
        .names("domain_name", keys.iter().map(|key| base(&key.of)))
        .text("is_deferrable", "NO", rows)
        .text("initially_deferred", "NO", rows)
}

/// The columns of domains.
fn domain_columns(all: &Tables) -> Built {
    let tables = permanent(all.names()).into_iter();
    let tables = tables.filter_map(|name| Some(all.get(name)?.definition()));
    let used: Vec<(&str, &str, &str)> = tables
        .flat_map(|own| {
            own.columns.iter().filter_map(|column| {
                let domain = column.domain.as_deref()?;
                all.domain(domain).filter(|own| !own.composite)?;
                Some((domain, own.name.as_str(), column.name.as_str()))
            })
        })
        .collect();
    let rows = used.len();
    Built::default()
        .text("domain_catalog", CATALOG, rows)
        .names("domain_schema", used.iter().map(|own| schema_of(own.0)))
        .names("domain_name", used.iter().map(|own| base(own.0)))
        .text("table_catalog", CATALOG, rows)
        .names("table_schema", used.iter().map(|own| schema_of(own.1)))
        .names("table_name", used.iter().map(|own| base(own.1)))
        .names("column_name", used.iter().map(|own| own.2))
}

/// `pg_get_keywords()`.
pub(super) fn keywords() -> Built {
    let kind = |word: &str| reserved(&word.to_lowercase());
    let code = |word: &&str| match kind(word) {
        Some(Reserved::Fully) => "R",
        Some(Reserved::OnlyFunction) => "T",
        Some(Reserved::NoFunction) => "C",
        None => "U",
    };
    let told = |word: &&str| match kind(word) {
        Some(Reserved::Fully) => "reserved",
        Some(Reserved::OnlyFunction) => "reserved (can be function or type name)",
        Some(Reserved::NoFunction) => "unreserved (cannot be function or type name)",
        None => "unreserved",
    };
    // In this grammar, where an alias may stand without `as`.
    let bare = |word: &&str| {
        let mut all = RESERVED_FOR_COLUMN_ALIAS.iter();
        !all.any(|own| own.to_string().eq_ignore_ascii_case(word))
    };
    let rows = ALL_KEYWORDS.len();
    Built::default()
        .names("word", ALL_KEYWORDS.iter().map(|word| word.to_lowercase()))
        .names("catcode", ALL_KEYWORDS.iter().map(code))
        .truths("barelabel", ALL_KEYWORDS.iter().map(bare))
        .names("catdesc", ALL_KEYWORDS.iter().map(told))
        .nothing("baredesc", rows)
}
