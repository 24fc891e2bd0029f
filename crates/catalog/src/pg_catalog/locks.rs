//! `pg_locks`.

use std::time::SystemTime;

use messages::numbers::{DATABASE, table_number};
use table::Tables;

use crate::locks::{Key, Shown, Subject};
use crate::pg_catalog::build::Built;
use crate::settings::StatementSettings;

/// How PostgreSQL shows the key of an advisory lock: `classid`, `objid` and `objsubid`.
fn shown_key(key: Key) -> (i64, i64, i16) {
    // The bits, as a number without a sign.
    let bits = |half: i32| i64::from(half.cast_unsigned());
    match key {
        Key::One(key) => {
            let key = key.cast_unsigned();
            let low = key & u64::from(u32::MAX);
            ((key >> 32).cast_signed(), low.cast_signed(), 1)
        }
        Key::Two(first, second) => (bits(first), bits(second), 2),
    }
}

/// The locks that there are, as `all` tables name those of tables.
pub(super) fn locks(all: &Tables, shown: &[Shown], settings: &StatementSettings) -> Built {
    let is_known = |own: &&Shown| match &own.what {
        Subject::Advisory(_) => true,
        Subject::Table(name) => all.get(name).is_some() || all.view(name).is_some(),
    };
    let shown: Vec<&Shown> = shown.iter().filter(is_known).collect();
    let rows = shown.len();
    let key = |own: &Shown| match own.what {
        Subject::Advisory(key) => Some(shown_key(key)),
        Subject::Table(_) => None,
    };
    let kind = |own: &Shown| match own.what {
        Subject::Advisory(_) => "advisory",
        Subject::Table(_) => "relation",
    };
    let table = |own: &Shown| match &own.what {
        Subject::Advisory(_) => None,
        Subject::Table(name) => Some(table_number(name)),
    };
    // Sessions that nobody serves are of this process.
    let process = |own: &Shown| match own.process {
        0 => settings.process(),
        process => process,
    };
    let since = |own: &Shown| {
        let since = own.waits_since?.duration_since(SystemTime::UNIX_EPOCH);
        i64::try_from(since.ok()?.as_micros()).ok()
    };
    let all = || shown.iter().copied();
    Built::default()
        .names("locktype", all().map(kind))
        .number("database", DATABASE, rows)
        .some_numbers("relation", all().map(table))
        .no_counts("page", rows)
        .some_small("tuple", all().map(|_| None))
        .nothing("virtualxid", rows)
        .some_numbers("transactionid", all().map(|_| None))
        .some_numbers("classid", all().map(|own| Some(key(own)?.0)))
        .some_numbers("objid", all().map(|own| Some(key(own)?.1)))
        .some_small("objsubid", all().map(|own| Some(key(own)?.2)))
        .names(
            "virtualtransaction",
            all().map(|own| format!("{}/{}", process(own), own.session)),
        )
        .counts(
            "pid",
            all().map(|own| i32::try_from(process(own)).unwrap_or(i32::MAX)),
        )
        .names("mode", all().map(|own| own.mode))
        .truths("granted", all().map(|own| own.waits_since.is_none()))
        .truth("fastpath", false, rows)
        .moments("waitstart", all().map(since))
}
