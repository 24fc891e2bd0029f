//! The columns that every table has beside its own, as rows of `pg_attribute`: their numbers are negative. Views, indexes and
//! composite types have none.

use messages::numbers::table_number;
use syntax::names::permanent;
use table::Tables;

use crate::pg_catalog::build::Built;

/// A column: its name, the number of its type, its bytes, and how they are aligned.
type SystemColumn = (&'static str, i64, i32, &'static str);

/// All of them, in the order of their numbers from -1 on.
const ALL: [SystemColumn; 6] = [
    ("ctid", 27, 6, "s"),
    ("xmin", 28, 4, "i"),
    ("cmin", 29, 4, "i"),
    ("xmax", 28, 4, "i"),
    ("cmax", 29, 4, "i"),
    ("tableoid", 26, 4, "i"),
];

/// Those of all tables, as far as they are not NULL.
pub(super) fn of_tables(all: &Tables) -> Built {
    let names = permanent(all.names());
    let rows = names.len() * ALL.len();
    let each = || {
        names
            .iter()
            .flat_map(|name| (1i64..).zip(&ALL).map(move |(at, own)| (*name, at, own)))
    };
    Built::default()
        .numbers("attrelid", each().map(|(name, _, _)| table_number(name)))
        .names("attname", each().map(|(_, _, own)| own.0))
        .numbers("atttypid", each().map(|(_, _, own)| own.1))
        .counts("attlen", each().map(|(_, _, own)| own.2))
        .numbers("attnum", each().map(|(_, at, _)| -at))
        .counts("attndims", std::iter::repeat_n(0, rows))
        .number("atttypmod", -1, rows)
        .truth("attnotnull", true, rows)
        .truth("atthasdef", false, rows)
        .truth("attisdropped", false, rows)
        .truth("attislocal", true, rows)
        .truth("atthasmissing", false, rows)
        .text("attidentity", "", rows)
        .text("attgenerated", "", rows)
        .text("attstorage", "p", rows)
        .names("attalign", each().map(|(_, _, own)| own.3))
        .text("attcompression", "", rows)
        .number("attcollation", 0, rows)
        .number("attinhcount", 0, rows)
        .number("attstattarget", 0, rows)
}
