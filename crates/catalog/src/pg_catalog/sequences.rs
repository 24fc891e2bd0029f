//! What sequences there are. Where they are is not told: `pg_sequences` has no `last_value`.

use std::sync::Arc;

use messages::numbers::{table_number, type_number};
use messages::types::{digits, standard_name};
use syntax::names::{CATALOG, base, permanent, schema_of};
use table::{Position, Sequence, Tables};

use crate::pg_catalog::build::Built;
use crate::pg_catalog::roles;
use crate::pg_catalog::seen::Seen;

/// The sequences with their names, in order.
fn all(tables: &Tables) -> Vec<(&str, &Arc<Sequence>)> {
    let names = permanent(tables.sequences()).into_iter();
    let named = names.filter_map(|name| tables.sequence(name).map(|own| (name, own)));
    named.collect()
}

/// `pg_sequence`.
pub(super) fn by_number(tables: &Tables) -> Built {
    let all = all(tables);
    let rows = all.len();
    let number = |(_, own): &(&str, &Arc<Sequence>)| i64::from(type_number(&own.data_type()));
    Built::default()
        .numbers("seqrelid", all.iter().map(|(name, _)| table_number(name)))
        .numbers("seqtypid", all.iter().map(number))
        .numbers("seqstart", all.iter().map(|(_, own)| own.start))
        .numbers("seqincrement", all.iter().map(|(_, own)| own.increment))
        .numbers("seqmax", all.iter().map(|(_, own)| own.max))
        .numbers("seqmin", all.iter().map(|(_, own)| own.min))
        .number("seqcache", 1, rows)
        .truths("seqcycle", all.iter().map(|(_, own)| own.cycle))
}

/// `pg_sequences`.
pub(super) fn by_name(tables: &Tables) -> Built {
    let all = all(tables);
    let rows = all.len();
    let name_of_type = |(_, own): &(&str, &Arc<Sequence>)| standard_name(&own.data_type());
    Built::default()
        .names("schemaname", all.iter().map(|(name, _)| schema_of(name)))
        .names("sequencename", all.iter().map(|(name, _)| base(name)))
        .names(
            "sequenceowner",
            all.iter().map(|(name, _)| roles::owner(tables, name)),
        )
        .names("data_type", all.iter().map(name_of_type))
        .numbers("start_value", all.iter().map(|(_, own)| own.start))
        .numbers("min_value", all.iter().map(|(_, own)| own.min))
        .numbers("max_value", all.iter().map(|(_, own)| own.max))
        .numbers("increment_by", all.iter().map(|(_, own)| own.increment))
        .truths("cycle", all.iter().map(|(_, own)| own.cycle))
        .number("cache_size", 1, rows)
        .some_numbers("last_value", all.iter().map(|_| None))
}

/// A sequence as a table of one row, as programs that save and restore it read it.
pub(super) fn state(at: Position) -> Built {
    Built::default()
        .number("last_value", at.value, 1)
        .number("log_cnt", 0, 1)
        .truth("is_called", at.called, 1)
}

/// `information_schema.sequences`.
pub(super) fn by_standard(seen: &Seen<'_>) -> Built {
    let mut all = all(seen.tables);
    all.retain(|(name, _)| seen.has(name));
    let rows = all.len();
    let of = |part: fn(&Sequence) -> String| all.iter().map(move |(_, own)| part(own));
    let precision = |(_, own): &(&str, &Arc<Sequence>)| {
        digits(&own.data_type()).map_or(0, |digits| digits.precision)
    };
    Built::default()
        .text("sequence_catalog", CATALOG, rows)
        .names(
            "sequence_schema",
            all.iter().map(|(name, _)| schema_of(name)),
        )
        .names("sequence_name", all.iter().map(|(name, _)| base(name)))
        .names("data_type", of(|own| standard_name(&own.data_type())))
        .counts("numeric_precision", all.iter().map(precision))
        .counts("numeric_precision_radix", all.iter().map(|_| 2))
        .counts("numeric_scale", all.iter().map(|_| 0))
        .names("start_value", of(|own| own.start.to_string()))
        .names("minimum_value", of(|own| own.min.to_string()))
        .names("maximum_value", of(|own| own.max.to_string()))
        .names("increment", of(|own| own.increment.to_string()))
        .names(
            "cycle_option",
            of(|own| if own.cycle { "YES" } else { "NO" }.into()),
        )
}
